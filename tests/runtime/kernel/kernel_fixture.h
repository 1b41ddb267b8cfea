/* A kernel over the simulated world. Actors do in their handlers what a test's step says,
 * and log what they hear; the tests compare the lines. */
#ifndef MU_TESTS_RUNTIME_KERNEL_KERNEL_FIXTURE_H
#define MU_TESTS_RUNTIME_KERNEL_KERNEL_FIXTURE_H

#include "muster/error.h"
#include "runtime/kernel/kernel.h"
#include "sim/world/sim.h"
#include "tests/support/test.h"

#include <inttypes.h>

/* ---- Messages of the tests ---- */

#define MU__PING_FIELDS(F, S) F(S, REQUIRED, u64, number, 0)

#define TEST_MESSAGES(M)                             \
    M(16, PING, ping, NONE, MU__PING_FIELDS)         \
    M(17, LOOK, look, OBSERVE_READ, MU__PING_FIELDS) \
    M(18, UNHEARD, unheard, NONE, MU__PING_FIELDS)

#define TEST_LOCAL_MESSAGES(M) M(272, STEP, step)

enum { MU__PING = 16, MU__LOOK = 17, MU__UNHEARD = 18, KINDS_END = 19, MU__STEP = 272 };

MU__MESSAGE_STRUCT(ping, MU__PING_FIELDS)
MU__MESSAGE_STRUCT(look, MU__PING_FIELDS)
MU__MESSAGE_STRUCT(unheard, MU__PING_FIELDS)

struct mu__step {
    struct step *step;
};

TEST_MESSAGES(MU__DESCRIBE_FIELDS)

static const struct mu__row rows[KINDS_END] = {TEST_MESSAGES(MU__DESCRIBE_ROW)};

static const struct mu__local_row local[] = {MU__SYSTEM_MESSAGES(MU__DESCRIBE_LOCAL)
                                                 TEST_LOCAL_MESSAGES(MU__DESCRIBE_LOCAL)};

static const struct mu__schema schema = {rows, KINDS_END, local,
                                         sizeof local / sizeof local[0]};

/* ---- Actors of the tests ---- */

/* What an actor does once, inside its handler. */
struct step {
    void (*run)(struct mu__ctx *ctx, void *arg);
    void *arg;
};

struct probe {
    uint64_t pings;
    struct step *at_end; /* run in done() */
};

struct probe_arg {
    struct step *at_begin;
    struct step *at_end;
    int rv;
};

static inline int probe_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    const struct probe_arg *given = arg;
    struct probe *probe = state;

    if (given == NULL)
        return 0;
    probe->at_end = given->at_end;
    if (given->at_begin != NULL)
        given->at_begin->run(ctx, given->at_begin->arg);
    return given->rv;
}

static inline void probe_done(struct mu__ctx *ctx, void *state)
{
    struct probe *probe = state;

    mu__log(ctx, MU__LOG_INFO, "%u ends", ctx->self.actor);
    if (probe->at_end != NULL)
        probe->at_end->run(ctx, probe->at_end->arg);
}

static inline void on_ping(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct probe *probe = state;
    struct mu__ping *body = mu__body(msg);

    probe->pings++;
    mu__log(ctx, MU__LOG_INFO, "%u: ping %" PRIu64 " from %u", ctx->self.actor,
            body->number, msg->from.actor);
}

static inline void on_look(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__look *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: look %" PRIu64 " of %u", ctx->self.actor,
            body->number, msg->from.node);
}

static inline void on_step(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__step *body = mu__body(msg);
    struct step *step = body->step;

    (void)state;
    step->run(ctx, step->arg);
}

static inline void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__timer *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: timer %" PRIu64, ctx->self.actor, body->token);
}

static inline void on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__down *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: %u:%u is down", ctx->self.actor, body->node,
            body->actor);
}

static inline void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__node_up *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: node %u up: %.*s %u %" PRIx64 " %.*s",
            ctx->self.actor, body->node, (int)body->type.size,
            (const char *)body->type.data, body->index, body->incarnation,
            (int)body->address.size, (const char *)body->address.data);
}

static inline void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__node_down *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: node %u down: %.*s", ctx->self.actor, body->node,
            (int)body->reason.size, (const char *)body->reason.data);
}

static inline void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__node_trouble *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: %.*s %u: %.*s", ctx->self.actor, (int)body->type.size,
            (const char *)body->type.data, body->index, (int)body->reason.size,
            (const char *)body->reason.data);
}

static inline void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__work_done *body = mu__body(msg);

    (void)state;
    assert_non_null(body->work);
    mu__log(ctx, MU__LOG_INFO, "%u: work done", ctx->self.actor);
}

static const struct mu__handler probe_handlers[] = {
    {MU__TIMER, on_timer},
    {MU__DOWN, on_down},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
    {MU__WORK_DONE, on_work_done},
    {MU__PING, on_ping},
    {MU__LOOK, on_look},
    {MU__STEP, on_step},
};

#define PROBE(label, mailbox)                                                      \
    {                                                                              \
        .name = label, .state_size = sizeof(struct probe), .mailbox_max = mailbox, \
        .handlers = probe_handlers,                                                \
        .handlers_count = sizeof probe_handlers / sizeof probe_handlers[0],        \
        .init = probe_init, .done = probe_done                                     \
    }

static const struct mu__behavior probe_behavior = PROBE("probe", 0);

/* Hears nothing, has no state. */
static const struct mu__behavior deaf_behavior = {.name = "deaf"};

/* ---- One node of the simulator with a kernel on it ---- */

struct bench {
    struct sim *sim;
    struct sim_node *node;
    struct mu__kernel *kernel;
    uint32_t sent_to; /* the last node that something was transmitted to */
    uint64_t dead;    /* dead letters at the last look */
};

static inline void hook_deliver(void *owner, struct mu__msg *msg)
{
    struct bench *bench = owner;

    (void)mu__kernel_deliver(bench->kernel, msg);
}

static inline void hook_turn(void *owner)
{
    struct bench *bench = owner;

    mu__kernel_turn(bench->kernel);
}

static inline int hook_transmit(void *owner, struct mu__msg *msg)
{
    struct bench *bench = owner;

    bench->sent_to = msg->to.node;
    mu__pool_put(mu__kernel_pool(bench->kernel), msg);
    return bench->sent_to == 9 ? -MU_EUNAVAILABLE : 0;
}

static inline int bench_start(void *arg, struct sim_node *node, struct mu__world *world,
                              struct mu__wire *wire)
{
    struct bench *bench = arg;
    struct mu__world_hooks hooks = {bench, hook_deliver, hook_turn, hook_transmit};

    (void)wire;
    sim_attach(node, &hooks, NULL, NULL);
    return mu__kernel_new(world, &schema, &bench->kernel);
}

static inline void bench_stop(void *arg)
{
    struct bench *bench = arg;

    mu__kernel_free(bench->kernel);
}

static const struct sim_program bench_program = {bench_start, bench_stop};

static inline int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    bench->sim = sim_new(1);
    bench->node = sim_node_add(bench->sim, "n", "tcp://n:1", &bench_program, bench);
    assert_int_equal(sim_start(bench->node), 0);
    *state = bench;
    return 0;
}

static inline int teardown(void **state)
{
    struct bench *bench = *state;

    sim_free(bench->sim);
    free(bench);
    return 0;
}

static inline mu__pid spawn(struct bench *bench, const struct mu__behavior *behavior)
{
    mu__pid pid = {7, 7};

    assert_int_equal(mu__spawn(bench->kernel, behavior, 0, NULL, &pid), 0);
    assert_int_equal(pid.node, MU__NODE_SELF);
    return pid;
}

/* From outside: into the mailbox, and a turn soon. */
static inline int post(struct bench *bench, mu__pid to, uint16_t kind, const void *body,
                       size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);
    struct mu__world *world = mu__kernel_world(bench->kernel);

    assert_non_null(msg);
    msg->to = to;
    memcpy(msg->body, body, size);
    world->ops->wake_at(world, 0);
    return mu__kernel_deliver(bench->kernel, msg);
}

static inline int ping(struct bench *bench, mu__pid to, uint64_t number)
{
    struct mu__ping body = {number};

    return post(bench, to, MU__PING, &body, sizeof body);
}

/* Let the actor do something in its next turn. `step` lives until then. */
static inline void tell(struct bench *bench, mu__pid to, struct step *step)
{
    struct mu__step body = {step};

    assert_int_equal(post(bench, to, MU__STEP, &body, sizeof body), 0);
}

static inline void expect(struct bench *bench, uint64_t for_ms, const char *lines)
{
    sim_run_until(bench->sim, sim_now_ms(bench->sim) + for_ms);
    assert_string_equal(sim_trace(bench->sim), lines);
}

/* Dead letters since the last look. */
static inline uint64_t new_dead(struct bench *bench)
{
    struct mu__kernel_counters counters;
    uint64_t before = bench->dead;

    mu__kernel_counters(bench->kernel, &counters);
    bench->dead = counters.dead_letters;
    return bench->dead - before;
}

static inline struct mu__kernel_counters counters_of(struct bench *bench)
{
    struct mu__kernel_counters counters;

    mu__kernel_counters(bench->kernel, &counters);
    return counters;
}

/* ---- Turns ---- */

static inline void ping_itself(struct mu__ctx *ctx, void *arg)
{
    int *count = arg;

    for (int i = 0; i < *count; i++)
        assert_int_equal(mu__send(ctx, ctx->self, mu__msg_new(ctx, MU__PING)), 0);
}

#endif
