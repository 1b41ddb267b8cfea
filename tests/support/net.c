#include "tests/support/net.h"

#include "runtime/message/codec.h"
#include "tests/support/bare_world.h"
#include "tests/support/test.h"

#include <inttypes.h>

/* ---- The world ---- */

static uint64_t world_now_ms(struct mu__world *world)
{
    return ((struct net_process *)world)->net->now_ms;
}

static uint64_t world_random(struct mu__world *world)
{
    return sim_draw(&((struct net_process *)world)->net->random);
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct net_process *p = (struct net_process *)world;

    if (due_ms < p->wake_ms)
        p->wake_ms = due_ms;
}

static struct net_process *find_peer(struct net_process *p, uint32_t number)
{
    for (size_t i = 0; i < p->net->processes_count; i++)
        if (number != 0 && p->numbers[i] == number)
            return &p->net->processes[i];
    return NULL;
}

static void push(struct net_process *from, struct net_process *to, uint16_t kind,
                 struct mu__buf *bytes)
{
    struct net *net = from->net;
    struct net_frame *frame = calloc(1, sizeof *frame);

    assert_non_null(frame);
    *frame = (struct net_frame){NULL, from, to, kind, bytes};
    *net->last = frame;
    net->last = &frame->next;
    net->counts[kind]++;
    net->bytes += bytes->size;
    if (net->bytes > net->bytes_peak)
        net->bytes_peak = net->bytes;
}

static int transmit(struct net_process *from, const struct mu__msg *msg)
{
    struct net_process *to = find_peer(from, msg->to.node);
    struct mu__buf *bytes;

    if (to == NULL)
        return -MU_EUNAVAILABLE;
    if (to->full)
        return -MU_EEXHAUSTED;
    bytes = mu__buf_new(mu__encode_bound(&mu__messages, msg));
    assert_non_null(bytes);
    assert_int_equal(mu__encode(&mu__messages, msg, bytes), 0);
    push(from, to, msg->kind, bytes);
    return 0;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct net_process *from = (struct net_process *)world;
    int rv = transmit(from, msg);

    mu__pool_put(mu__kernel_pool(from->kernel), msg);
    return rv;
}

static void world_log(struct mu__world *world, enum mu__log_level level, const char *who,
                      const char *line)
{
    struct net *net = ((struct net_process *)world)->net;

    (void)who;
    if (level <= MU__LOG_WARN)
        (void)snprintf(net->warning, sizeof net->warning, "%s", line);
}

static const struct mu__world_ops world_ops = {
    .now_ms = world_now_ms,
    .random = world_random,
    .wake_at = world_wake_at,
    .transmit = world_transmit,
    .submit = bare_submit,
    .withdraw = bare_withdraw,
    .log = world_log,
};

/* ---- Frames ---- */

/* The one at `link` is in the queue no more: the caller's. */
static struct net_frame *take_frame(struct net *net, struct net_frame **link)
{
    struct net_frame *frame = *link;

    *link = frame->next;
    if (frame->next == NULL)
        net->last = link;
    net->bytes -= frame->bytes->size;
    return frame;
}

static void free_frame(struct net_frame *frame)
{
    mu__buf_unref(frame->bytes);
    free(frame);
}

static bool is_between(const struct net_frame *frame, const struct net_process *a,
                       const struct net_process *b)
{
    return (frame->from == a && frame->to == b) || (frame->from == b && frame->to == a);
}

void net_drop_between(struct net_process *a, struct net_process *b)
{
    struct net_frame **link = &a->net->first;

    while (*link != NULL) {
        if (is_between(*link, a, b))
            free_frame(take_frame(a->net, link));
        else
            link = &(*link)->next;
    }
}

void net_drop_all(struct net *net)
{
    while (net->first != NULL)
        free_frame(take_frame(net, &net->first));
}

/* ---- Links ---- */

static void link_one_way(struct net_process *p, struct net_process *peer)
{
    size_t i = (size_t)(peer - p->net->processes);

    p->numbers[i] = ++p->net->number_last;
    mu__kernel_node_up(p->kernel, p->numbers[i], peer->type, peer->index,
                       peer->incarnation, peer->address);
    world_wake_at(&p->world, 0);
}

void net_link_up(struct net_process *a, struct net_process *b)
{
    link_one_way(a, b);
    link_one_way(b, a);
}

static void unlink_one_way(struct net_process *p, struct net_process *peer)
{
    size_t i = (size_t)(peer - p->net->processes);
    uint32_t number = p->numbers[i];

    p->numbers[i] = 0;
    if (p->kernel == NULL || number == 0)
        return;
    mu__kernel_node_down(p->kernel, number, "connection lost", false);
    world_wake_at(&p->world, 0);
}

void net_link_down(struct net_process *a, struct net_process *b)
{
    net_drop_between(a, b);
    unlink_one_way(a, b);
    unlink_one_way(b, a);
}

void net_link_anew(struct net_process *p, struct net_process *peer)
{
    unlink_one_way(p, peer);
    link_one_way(p, peer);
}

void net_cut(struct net_process *p)
{
    for (size_t i = 0; i < p->net->processes_count; i++)
        if (p->numbers[i] != 0)
            net_link_down(p, &p->net->processes[i]);
}

void net_heal(struct net_process *p)
{
    for (size_t i = 0; i < p->net->processes_count; i++)
        if (&p->net->processes[i] != p && p->net->processes[i].kernel != NULL)
            net_link_up(p, &p->net->processes[i]);
}

/* ---- Processes ---- */

void net_init(struct net *net, uint64_t seed)
{
    *net = (struct net){.random = sim_stream(seed, 1)};
    net->last = &net->first;
}

void net_done(struct net *net)
{
    for (size_t i = 0; i < net->processes_count; i++)
        if (net->processes[i].kernel != NULL)
            net_crash(&net->processes[i]);
    assert_null(net->first);
}

struct net_process *net_add(struct net *net, const char *type, uint32_t index,
                            int (*spawn)(struct net_process *p))
{
    struct net_process *p = &net->processes[net->processes_count];

    assert_true(net->processes_count < NET_PROCESSES_MAX);
    *p = (struct net_process){
        .world = {&world_ops}, .net = net, .type = type, .index = index, .spawn = spawn};
    (void)snprintf(p->address, sizeof p->address, "tcp://%s%" PRIu32 ":1", type, index);
    net->processes_count++;
    return p;
}

void net_start(struct net_process *p)
{
    p->incarnation++;
    p->wake_ms = UINT64_MAX;
    assert_int_equal(mu__kernel_new(&p->world, &mu__messages, &p->kernel), 0);
    assert_int_equal(p->spawn(p), 0);
    net_heal(p);
}

void net_crash(struct net_process *p)
{
    struct mu__kernel *kernel = p->kernel;

    p->kernel = NULL;
    for (size_t i = 0; i < p->net->processes_count; i++)
        net_link_down(p, &p->net->processes[i]);
    p->kernel = kernel; /* for what is still sent, to nobody */
    mu__kernel_free(kernel);
    p->kernel = NULL;
}

void net_restart(struct net_process *p)
{
    net_crash(p);
    net_start(p);
    net_settle(p->net);
}

/* ---- Time ---- */

void net_turn(struct net_process *p)
{
    p->wake_ms = UINT64_MAX;
    mu__kernel_turn(p->kernel);
}

void net_deliver(struct net_process *p, struct mu__msg *msg)
{
    assert_int_equal(mu__kernel_deliver(p->kernel, msg), 0);
    net_turn(p);
}

static bool turn_one(struct net *net)
{
    for (size_t i = 0; i < net->processes_count; i++) {
        struct net_process *p = &net->processes[i];

        if (p->kernel == NULL || p->wake_ms > net->now_ms)
            continue;
        net_turn(p);
        return true;
    }
    return false;
}

static void take_in(const struct net_frame *frame)
{
    struct net_process *to = frame->to;
    struct mu__msg *msg;
    size_t offset = 0;
    char why[128];

    if (mu__decode(&mu__messages, mu__kernel_pool(to->kernel), frame->bytes, &offset, why,
                   sizeof why, &msg) != 0)
        fail_msg("%s", why);
    msg->from.node = to->numbers[frame->from - to->net->processes];
    (void)mu__kernel_deliver(to->kernel, msg);
    net_turn(to);
}

bool net_step(struct net *net)
{
    struct net_frame *frame;

    if (turn_one(net))
        return true;
    if (net->first == NULL)
        return false;
    frame = take_frame(net, &net->first);
    if (!frame->to->deaf)
        take_in(frame);
    free_frame(frame);
    return true;
}

void net_settle(struct net *net)
{
    for (int i = 0; net_step(net); i++)
        assert_true(i < 10000000);
}

void net_run_until(struct net *net, uint64_t until_ms)
{
    net_settle(net);
    while (net->now_ms < until_ms) {
        uint64_t next_ms = until_ms;

        for (size_t i = 0; i < net->processes_count; i++)
            if (net->processes[i].kernel != NULL && net->processes[i].wake_ms < next_ms)
                next_ms = net->processes[i].wake_ms;
        net->now_ms = next_ms;
        net_settle(net);
    }
}

void net_run_for(struct net *net, uint64_t ms)
{
    net_run_until(net, net->now_ms + ms);
}

void net_run_to_frame(struct net *net, uint16_t kind)
{
    while (turn_one(net))
        ;
    for (int i = 0; net->first == NULL || net->first->kind != kind; i++) {
        assert_true(i < 100000);
        assert_true(net_step(net));
        while (turn_one(net))
            ;
    }
}
