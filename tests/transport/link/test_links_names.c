/* Links to a name that leads to several nodes, of which one at most is the task: who is
 * reached says that it is another, and the next address is tried at once. Between nodes
 * with real links, in virtual time. */
#include "actors/messages.h"
#include "sim/world/sim.h"
#include "tests/support/test.h"
#include "transport/link/links.h"

#define NAME "tcp://many:1"

enum { NODES_MAX = 4, PAUSE_MIN_MS = 2500, PAUSE_MAX_MS = 5000 };

struct node {
    struct sim_node *node;
    const char *type;
    uint32_t index;
    const char *address;
    struct mu__links *links;
    struct mu__world *world;
    struct mu__pool pool;
};

struct fixture {
    struct sim *sim;
    struct node chief;
    struct node workers[NODES_MAX];
    struct sim_node *mute;
};

/* ---- a node ---- */

static void note_up(void *owner, uint32_t node, const char *type, uint32_t index,
                    uint64_t incarnation, const char *address)
{
    (void)owner;
    (void)node;
    (void)type;
    (void)index;
    (void)incarnation;
    (void)address;
}

static void note_down(void *owner, uint32_t node, const char *reason, bool left)
{
    (void)owner;
    (void)node;
    (void)reason;
    (void)left;
}

static void note_trouble(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    (void)owner;
    (void)type;
    (void)index;
    (void)reason;
}

static void drop_message(void *owner, struct mu__msg *msg)
{
    mu__pool_put(&((struct node *)owner)->pool, msg);
}

static void on_turn(void *owner)
{
    struct node *node = owner;
    uint64_t now_ms = node->world->ops->now_ms(node->world);

    if (now_ms >= mu__links_due_ms(node->links))
        (void)mu__links_tick(node->links, now_ms);
    mu__links_flush(node->links);
    node->world->ops->wake_at(node->world, mu__links_due_ms(node->links));
}

static void on_up(void *owner, uint32_t connection)
{
    mu__links_connected(((struct node *)owner)->links, connection);
}

static void on_down(void *owner, uint32_t connection, const char *reason)
{
    mu__links_disconnected(((struct node *)owner)->links, connection, reason);
}

static void on_writable(void *owner, uint32_t connection)
{
    mu__links_writable(((struct node *)owner)->links, connection);
}

static bool on_frame(void *owner, uint32_t connection, struct mu__buf *frame)
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

static int start(void *arg, struct sim_node *place, struct mu__world *world,
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
        .incarnation = world->ops->random(world) | 1,
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

static void stop(void *arg)
{
    struct node *node = arg;

    mu__links_free(node->links);
    mu__pool_done(&node->pool);
}

/* One that lets everybody in, and says nothing. */
static int start_mute(void *arg, struct sim_node *place, struct mu__world *world,
                      struct mu__wire *wire)
{
    static const struct mu__world_hooks hooks;
    static const struct mu__wire_events no_events;

    (void)arg;
    (void)world;
    (void)wire;
    sim_attach(place, &hooks, &no_events, NULL);
    return 0;
}

static void stop_mute(void *arg)
{
    (void)arg;
}

/* ---- a place ---- */

static void add(struct fixture *f, struct node *node, const char *name, const char *type,
                uint32_t index, const char *address)
{
    static const struct sim_program program = {start, stop};

    node->type = type;
    node->index = index;
    node->address = address;
    node->node = sim_node_add(f->sim, name, address, &program, node);
    assert_int_equal(sim_start(node->node), 0);
}

static int setup(void **state)
{
    static const struct sim_program mute = {start_mute, stop_mute};
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    *state = f;
    f->sim = sim_new(1);
    add(f, &f->chief, "chief", "chief", 0, "tcp://chief:1");
    add(f, &f->workers[0], "w0", "worker", 0, "tcp://w0:1");
    add(f, &f->workers[1], "w1", "worker", 1, "tcp://w1:1");
    add(f, &f->workers[2], "w2", "worker", 2, "tcp://w2:1");
    f->mute = sim_node_add(f->sim, "mute", "tcp://mute:1", &mute, NULL);
    return sim_start(f->mute);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    sim_free(f->sim);
    free(f);
    return 0;
}

static void dial(struct fixture *f, const char *const *addresses, unsigned count)
{
    sim_name(f->sim, NAME, addresses, count);
    assert_int_equal(mu__links_dial(f->chief.links, "worker", 0, NAME), 0);
}

static bool is_up(void *arg)
{
    return mu__links_count_up(((struct fixture *)arg)->chief.links) == 1;
}

/* When the link came up, at `timeout_ms` from now at the latest. */
static uint64_t up_after_ms(struct fixture *f, uint64_t timeout_ms)
{
    uint64_t begin_ms = sim_now_ms(f->sim);

    assert_true(sim_run_to(f->sim, is_up, f, begin_ms + timeout_ms));
    return sim_now_ms(f->sim) - begin_ms;
}

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* How often the chief was refused by `who` since the trace was taken last. */
static unsigned refusals_by(const char *trace, const char *who)
{
    char words[128];

    (void)snprintf(words, sizeof words,
                   "chief links: /job:worker/task:0: it refused us: task "
                   "/job:worker/task:0 is not here, but %s",
                   who);
    return count_of(trace, words);
}

/* ---- stories ---- */

/* A dial takes 20 ms and a frame 10: one refusal is 60 ms, and there is no pause. */
TEST_ON(test_next_at_once, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://w1:1", "tcp://w0:1"};

    dial(f, addresses, 2);
    assert_true(up_after_ms(f, PAUSE_MIN_MS) < 200);
    assert_int_equal(refusals_by(sim_trace(f->sim), "/job:worker/task:1"), 1);
}

TEST_ON(test_third_at_once, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://w2:1", "tcp://w1:1", "tcp://w0:1"};
    const char *trace;

    dial(f, addresses, 3);
    assert_true(up_after_ms(f, PAUSE_MIN_MS) < 300);
    trace = sim_trace(f->sim);
    assert_int_equal(refusals_by(trace, "/job:worker/task:2"), 1);
    assert_int_equal(refusals_by(trace, "/job:worker/task:1"), 1);
}

/* Nobody is there at the first one, and somebody else at the second. */
TEST_ON(test_past_a_dead_one, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://nobody:1", "tcp://w1:1", "tcp://w0:1"};

    dial(f, addresses, 3);
    assert_true(up_after_ms(f, PAUSE_MIN_MS) < 200);
    assert_int_equal(refusals_by(sim_trace(f->sim), "/job:worker/task:1"), 1);
}

/* Who does not answer the greeting is no more waited for than its limit. */
TEST_ON(test_past_a_mute_one, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://mute:1", "tcp://w1:1", "tcp://w0:1"};

    dial(f, addresses, 3);
    assert_true(up_after_ms(f, 7000) < 5000 + 1000 + 200);
    assert_int_equal(refusals_by(sim_trace(f->sim), "/job:worker/task:1"), 1);
}

/* All are others: each is asked once, then comes the pause, from 2.5 s to 5 s. */
TEST_ON(test_pause_after_all, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://w1:1", "tcp://w2:1"};
    const char *trace;

    dial(f, addresses, 2);
    sim_run_until(f->sim, PAUSE_MIN_MS);
    trace = sim_trace(f->sim);
    assert_int_equal(refusals_by(trace, "/job:worker/task:1"), 1);
    assert_int_equal(refusals_by(trace, "/job:worker/task:2"), 1);
    sim_run_until(f->sim, PAUSE_MIN_MS + 20000);
    trace = sim_trace(f->sim);
    assert_in_range(refusals_by(trace, "/job:worker/task:1"), 3, 8);
    assert_in_range(refusals_by(trace, "/job:worker/task:2"), 3, 8);
}

/* One address leads to another task, and nobody is at the other: that it was reached once
 * more is not for ever. */
TEST_ON(test_pause_where_one_is_dead, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://w1:1", "tcp://nobody:1"};

    dial(f, addresses, 2);
    sim_run_until(f->sim, PAUSE_MIN_MS);
    assert_int_equal(refusals_by(sim_trace(f->sim), "/job:worker/task:1"), 2);
    sim_run_until(f->sim, 2 * PAUSE_MAX_MS);
    assert_in_range(refusals_by(sim_trace(f->sim), "/job:worker/task:1"), 2, 6);
}

/* The pause is kept to, and the name is looked up anew after it. */
TEST_ON(test_found_after_the_pause, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://w1:1", "tcp://w2:1"};
    static const char *const others[] = {"tcp://w1:1", "tcp://w0:1"};

    dial(f, addresses, 2);
    sim_run_until(f->sim, 500);
    sim_name(f->sim, NAME, others, 2);
    (void)sim_trace(f->sim);
    assert_in_range(up_after_ms(f, PAUSE_MAX_MS + 2000), PAUSE_MIN_MS - 500,
                    PAUSE_MAX_MS + 1500);
    assert_int_equal(refusals_by(sim_trace(f->sim), "/job:worker/task:1"), 1);
}

/* What was tried before the link was up is tried again when it is lost: the two workers
 * have changed places then. */
TEST_ON(test_lost_again, struct fixture *f, setup, teardown)
{
    static const char *const addresses[] = {"tcp://w1:1", "tcp://w0:1"};

    dial(f, addresses, 2);
    (void)up_after_ms(f, PAUSE_MIN_MS);
    for (unsigned i = 0; i < 2; i++) {
        sim_crash(f->workers[i].node);
        f->workers[i].address = addresses[i];
        sim_node_move(f->workers[i].node, addresses[i]);
    }
    (void)sim_trace(f->sim);
    sim_run_until(f->sim, sim_now_ms(f->sim) + 20);
    assert_false(is_up(f));
    assert_int_equal(sim_start(f->workers[0].node), 0);
    assert_int_equal(sim_start(f->workers[1].node), 0);
    assert_true(up_after_ms(f, PAUSE_MIN_MS) < 1500);
}

TEST_PROGRAM()
