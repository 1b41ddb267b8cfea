/* A chief and a server with real links, which dial each other, in virtual time. */
#ifndef MU_TESTS_TRANSPORT_LINK_TWO_NODES_H
#define MU_TESTS_TRANSPORT_LINK_TWO_NODES_H

#include "actors/messages.h"
#include "sim/world/sim.h"
#include "tests/support/test.h"
#include "transport/link/links.h"

struct node {
    struct sim_node *node;
    const char *type;
    uint32_t index;
    const char *address;
    struct mu__links *links;
    unsigned ups;
    unsigned downs;
    unsigned delivered; /* messages */
    uint64_t incarnation;
    struct mu__world *world;
    struct mu__pool pool;
};

struct two_nodes {
    struct sim *sim;
    struct node chief;
    struct node server;
};

/* ---- a node ---- */

static inline void note_up(void *owner, uint32_t node, const char *type, uint32_t index,
                           uint64_t incarnation, const char *address)
{
    (void)node;
    (void)type;
    (void)index;
    (void)incarnation;
    (void)address;
    ((struct node *)owner)->ups++;
}

static inline void note_down(void *owner, uint32_t node, const char *reason, bool left)
{
    (void)node;
    (void)reason;
    (void)left;
    ((struct node *)owner)->downs++;
}

static inline void note_trouble(void *owner, const char *type, uint32_t index,
                                const char *reason)
{
    (void)owner;
    (void)type;
    (void)index;
    (void)reason;
}

static inline void drop_message(void *owner, struct mu__msg *msg)
{
    struct node *node = owner;

    node->delivered++;
    mu__pool_put(&node->pool, msg);
}

static inline void on_turn(void *owner)
{
    struct node *node = owner;
    uint64_t now_ms = node->world->ops->now_ms(node->world);

    if (now_ms >= mu__links_due_ms(node->links))
        (void)mu__links_tick(node->links, now_ms);
    mu__links_flush(node->links);
    node->world->ops->wake_at(node->world, mu__links_due_ms(node->links));
}

static inline void on_up(void *owner, uint32_t connection)
{
    mu__links_connected(((struct node *)owner)->links, connection);
}

static inline void on_down(void *owner, uint32_t connection, const char *reason)
{
    mu__links_disconnected(((struct node *)owner)->links, connection, reason);
}

static inline void on_writable(void *owner, uint32_t connection)
{
    mu__links_writable(((struct node *)owner)->links, connection);
}

static inline bool on_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    mu__links_frame(((struct node *)owner)->links, connection, frame);
    return true;
}

static const struct mu__wire_events events = {
    .up = on_up,
    .down = on_down,
    .writable = on_writable,
    .frame = on_frame,
    .burst_end = on_turn,
};

static inline int start(void *arg, struct sim_node *place, struct mu__world *world,
                        struct mu__wire *wire)
{
    struct node *node = arg;
    const struct mu__world_hooks hooks = {.owner = node, .turn = on_turn};
    const struct mu__links_upcalls upcalls = {
        node, note_up, note_down, note_trouble, drop_message, NULL, NULL, NULL};
    const struct mu__links_config config = {
        .cluster_name = "test",
        .task_type = node->type,
        .task_index = node->index,
        .address = node->address,
        .incarnation = node->incarnation = world->ops->random(world) | 1,
        .heartbeat_ms = 1000,
        .silence_ms = 5000,
        .schema = &mu__messages,
        .pool = &node->pool,
        .world = world,
    };

    node->world = world;
    mu__pool_init(&node->pool);
    sim_attach(place, &hooks, &events, node);
    world->ops->wake_at(world, 0);
    return mu__links_new(&config, &upcalls, wire, &node->links);
}

static inline void stop(void *arg)
{
    struct node *node = arg;

    mu__links_free(node->links);
    mu__pool_done(&node->pool);
}

static inline void add(struct two_nodes *f, struct node *node, const char *type)
{
    static const struct sim_program program = {start, stop};

    node->type = type;
    node->address = type[0] == 'c' ? "tcp://chief:1" : "tcp://ps:1";
    node->node = sim_node_add(f->sim, type, node->address, &program, node);
    assert_int_equal(sim_start(node->node), 0);
}

/* Both are there, and dial each other. */
static inline void two_nodes_open(struct two_nodes *f)
{
    add(f, &f->chief, "chief");
    add(f, &f->server, "ps");
    assert_int_equal(mu__links_dial(f->chief.links, "ps", 0, "tcp://ps:1"), 0);
    assert_int_equal(mu__links_dial(f->server.links, "chief", 0, "tcp://chief:1"), 0);
}

#endif
