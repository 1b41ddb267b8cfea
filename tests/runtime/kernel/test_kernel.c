/* The actor kernel over the simulated world: numbers, mailboxes, turns, timers, monitors,
 * node news, work. Actors do in their handlers what a test's step says, and log what they
 * hear; the tests compare the lines. */
#include "muster/error.h"
#include "runtime/kernel/kernel.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Messages of the tests ---- */

#define MU__PING_FIELDS(F, S)                                               \
    F(S, REQUIRED, u64, number, 0)

#define TEST_MESSAGES(M)                                                    \
    M(16, PING, ping, MU__PING_FIELDS)                                      \
    M(18, UNHEARD, unheard, MU__PING_FIELDS)

#define TEST_LOCAL_MESSAGES(M) M(272, STEP, step)

enum { MU__PING = 16, MU__UNHEARD = 18, KINDS_END = 19, MU__STEP = 272 };

MU__MESSAGE_STRUCT(ping, MU__PING_FIELDS)
MU__MESSAGE_STRUCT(unheard, MU__PING_FIELDS)

struct mu__step {
    struct step *step;
};

TEST_MESSAGES(MU__DESCRIBE_FIELDS)

static const struct mu__row rows[KINDS_END] = {TEST_MESSAGES(MU__DESCRIBE_ROW)};

static const struct mu__local_row local[] = {
    MU__SYSTEM_MESSAGES(MU__DESCRIBE_LOCAL)
    TEST_LOCAL_MESSAGES(MU__DESCRIBE_LOCAL)
};

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
    struct step *at_end;    /* run in done() */
};

struct probe_arg {
    struct step *at_begin;
    struct step *at_end;
    int rv;
};

static int probe_init(struct mu__ctx *ctx, void *state, const void *arg)
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

static void probe_done(struct mu__ctx *ctx, void *state)
{
    struct probe *probe = state;

    mu__log(ctx, MU__LOG_INFO, "%u ends", ctx->self.actor);
    if (probe->at_end != NULL)
        probe->at_end->run(ctx, probe->at_end->arg);
}

static void on_ping(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct probe *probe = state;
    struct mu__ping *body = mu__body(msg);

    probe->pings++;
    mu__log(ctx, MU__LOG_INFO, "%u: ping %" PRIu64 " from %u", ctx->self.actor,
            body->number, msg->from.actor);
}

static void on_step(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__step *body = mu__body(msg);
    struct step *step = body->step;

    (void)state;
    step->run(ctx, step->arg);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__timer *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: timer %" PRIu64, ctx->self.actor, body->token);
}

static void on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__down *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: %u:%u is down", ctx->self.actor, body->node,
            body->actor);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__node_up *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: node %u up: %.*s %u %" PRIx64 " %.*s",
            ctx->self.actor, body->node, (int)body->type.size,
            (const char *)body->type.data, body->index, body->incarnation,
            (int)body->address.size, (const char *)body->address.data);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__node_down *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: node %u down: %.*s", ctx->self.actor, body->node,
            (int)body->reason.size, (const char *)body->reason.data);
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__node_trouble *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_INFO, "%u: %.*s %u: %.*s", ctx->self.actor,
            (int)body->type.size, (const char *)body->type.data, body->index,
            (int)body->reason.size, (const char *)body->reason.data);
}

static void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
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
    {MU__STEP, on_step},
};

#define PROBE(label, mailbox)                                               \
    {.name = label, .state_size = sizeof(struct probe), .mailbox_max = mailbox, \
     .handlers = probe_handlers,                                            \
     .handlers_count = sizeof probe_handlers / sizeof probe_handlers[0],    \
     .init = probe_init, .done = probe_done}

static const struct mu__behavior probe_behavior = PROBE("probe", 0);
static const struct mu__behavior tight_behavior = PROBE("tight", 2);

/* Hears nothing, has no state. */
static const struct mu__behavior deaf_behavior = {.name = "deaf"};

/* ---- One node of the simulator with a kernel on it ---- */

struct bench {
    struct sim *sim;
    struct sim_node *node;
    struct mu__kernel *kernel;
    uint32_t sent_to;       /* the last node that something was transmitted to */
    uint64_t dead;          /* dead letters at the last look */
};

static void hook_deliver(void *owner, struct mu__msg *msg)
{
    struct bench *bench = owner;

    (void)mu__kernel_deliver(bench->kernel, msg);
}

static void hook_turn(void *owner)
{
    struct bench *bench = owner;

    mu__kernel_turn(bench->kernel);
}

static int hook_transmit(void *owner, struct mu__msg *msg)
{
    struct bench *bench = owner;

    bench->sent_to = msg->to.node;
    mu__pool_put(mu__kernel_pool(bench->kernel), msg);
    return bench->sent_to == 9 ? -MU_EUNAVAILABLE : 0;
}

static int bench_start(void *arg, struct sim_node *node, struct mu__world *world,
                       struct mu__wire *wire)
{
    struct bench *bench = arg;
    struct mu__world_hooks hooks = {bench, hook_deliver, hook_turn, hook_transmit};

    (void)wire;
    sim_attach(node, &hooks, NULL, NULL);
    return mu__kernel_new(world, &schema, &bench->kernel);
}

static void bench_stop(void *arg)
{
    struct bench *bench = arg;

    mu__kernel_free(bench->kernel);
}

static const struct sim_program bench_program = {bench_start, bench_stop};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    bench->sim = sim_new(1);
    bench->node = sim_node_add(bench->sim, "n", "tcp://n:1", &bench_program, bench);
    assert_int_equal(sim_start(bench->node), 0);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    sim_free(bench->sim);
    free(bench);
    return 0;
}

static mu__pid spawn(struct bench *bench, const struct mu__behavior *behavior)
{
    mu__pid pid = {7, 7};

    assert_int_equal(mu__spawn(bench->kernel, behavior, 0, NULL, &pid), 0);
    assert_int_equal(pid.node, MU__NODE_SELF);
    return pid;
}

/* From outside: into the mailbox, and a turn soon. */
static int post(struct bench *bench, mu__pid to, uint16_t kind, const void *body,
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

static int ping(struct bench *bench, mu__pid to, uint64_t number)
{
    struct mu__ping body = {number};

    return post(bench, to, MU__PING, &body, sizeof body);
}

/* Let the actor do something in its next turn. `step` lives until then. */
static void tell(struct bench *bench, mu__pid to, struct step *step)
{
    struct mu__step body = {step};

    assert_int_equal(post(bench, to, MU__STEP, &body, sizeof body), 0);
}

static void expect(struct bench *bench, uint64_t for_ms, const char *lines)
{
    sim_run_until(bench->sim, sim_now_ms(bench->sim) + for_ms);
    assert_string_equal(sim_trace(bench->sim), lines);
}

/* Dead letters since the last look. */
static uint64_t new_dead(struct bench *bench)
{
    struct mu__kernel_counters counters;
    uint64_t before = bench->dead;

    mu__kernel_counters(bench->kernel, &counters);
    bench->dead = counters.dead_letters;
    return bench->dead - before;
}

static struct mu__kernel_counters counters_of(struct bench *bench)
{
    struct mu__kernel_counters counters;

    mu__kernel_counters(bench->kernel, &counters);
    return counters;
}

/* ---- Numbers ---- */

static void test_numbers_are_never_used_again(void **state)
{
    struct bench *bench = *state;
    mu__pid before = spawn(bench, &probe_behavior);

    for (int i = 0; i < 1000; i++) {
        mu__pid pid = spawn(bench, &probe_behavior);

        assert_true(pid.actor > before.actor);
        mu__stop(bench->kernel, pid);
        assert_null(mu__actor_state(bench->kernel, pid));
        assert_int_equal(ping(bench, pid, 1), -MU_ENOTFOUND);
        before = pid;
    }
    assert_int_equal(counters_of(bench).actors, 1);
    assert_int_equal(new_dead(bench), 1000);
}

static void test_named_numbers_are_asked_for(void **state)
{
    struct bench *bench = *state;
    mu__pid pid = {0, 0};
    mu__pid other = {3, 3};

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 5, NULL, &pid), 0);
    assert_int_equal(pid.actor, 5);
    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 5, NULL, &other),
                     -MU_EEXISTS);
    assert_int_equal(other.actor, 3);
    mu__stop(bench->kernel, pid);
    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 5, NULL, NULL), 0);
    assert_true(spawn(bench, &probe_behavior).actor >= MU__ACTOR_NAMED_MAX);
}

/* The table grows, and everybody is still found; at the bound there are no more. */
static void test_many_actors(void **state)
{
    enum { MANY = 3000 };
    struct bench *bench = *state;
    static mu__pid pids[MANY];
    int count = 0;
    int rv = 0;

    sim_trace_level(bench->sim, MU__LOG_WARN);
    while (count < MANY && rv == 0) {
        rv = mu__spawn(bench->kernel, &probe_behavior, 0, NULL, &pids[count]);
        count += rv == 0;
    }
    assert_true(count == MANY || (rv == -MU_EEXHAUSTED && count >= MU__ACTORS_MAX / 2));
    for (int i = 0; i < count; i++)
        assert_int_equal(ping(bench, pids[i], 1), 0);
    sim_run_until(bench->sim, 1);
    for (int i = 0; i < count; i++)
        assert_int_equal(((struct probe *)mu__actor_state(bench->kernel, pids[i]))->pings,
                         1);
}

static void begin_well(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, 5, 1), 0);
    assert_int_equal(mu__monitor(ctx, ctx->self), 0);
    assert_int_equal(mu__send(ctx, ctx->self, mu__msg_new(ctx, MU__PING)), 0);
}

/* What it had begun is undone, and its done() is not called. */
static void test_an_init_that_fails_leaves_nothing(void **state)
{
    struct bench *bench = *state;
    struct step step = {begin_well, NULL};
    struct probe_arg arg = {&step, NULL, -MU_EPERMISSION};
    mu__pid pid = {1, 2};

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 3, &arg, &pid),
                     -MU_EPERMISSION);
    assert_int_equal(pid.actor, 2);
    assert_int_equal(counters_of(bench).actors, 0);
    assert_int_equal(counters_of(bench).timers, 0);
    assert_int_equal(counters_of(bench).queued, 0);
    expect(bench, 100, "");
    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 3, NULL, &pid), 0);
}

/* An actor may begin to talk in its init. */
static void test_init_may_send_and_set_timers(void **state)
{
    struct bench *bench = *state;
    struct step step = {begin_well, NULL};
    struct probe_arg arg = {&step, NULL, 0};
    mu__pid pid;

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 3, &arg, &pid), 0);
    expect(bench, 100,
           "[    0] n probe: 3: ping 0 from 3\n"
           "[    5] n probe: 3: timer 1\n");
}

/* ---- Mailboxes ---- */

static void fill_the_tight_one(struct mu__ctx *ctx, void *arg)
{
    mu__pid *tight = arg;
    int wanted[] = {0, 0, -MU_EEXHAUSTED, -MU_EEXHAUSTED};

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct mu__msg *msg = mu__msg_new(ctx, MU__PING);
        struct mu__ping *body = mu__body(msg);

        body->number = i;
        assert_int_equal(mu__send(ctx, *tight, msg), wanted[i]);
    }
}

static void test_a_full_mailbox_refuses(void **state)
{
    struct bench *bench = *state;
    mu__pid tight = spawn(bench, &tight_behavior);
    mu__pid probe = spawn(bench, &probe_behavior);
    struct step step = {fill_the_tight_one, &tight};

    tell(bench, probe, &step);
    expect(bench, 10,
           "[    0] n tight: 16: ping 0 from 17\n"
           "[    0] n tight: 16: ping 1 from 17\n");
    assert_int_equal(new_dead(bench), 2);
    assert_int_equal(counters_of(bench).queued, 0);
}

static void ask_for_much(struct mu__ctx *ctx, void *arg)
{
    mu__pid *gone = arg;

    fill_the_tight_one(ctx, &ctx->self);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mu__monitor(ctx, *gone), 0);
    assert_int_not_equal(mu__timer_set(ctx, 0, 1), 0);
    assert_int_not_equal(mu__timer_set(ctx, 0, 2), 0);
}

static int count_of(const char *text, const char *words)
{
    int count = 0;

    while ((text = strstr(text, words)) != NULL) {
        text += strlen(words);
        count++;
    }
    return count;
}

/* What the kernel itself sends is bounded by what was asked for, and always fits. */
static void test_the_kernel_is_exempt_from_the_bound(void **state)
{
    struct bench *bench = *state;
    mu__pid tight = spawn(bench, &tight_behavior);
    mu__pid gone = {MU__NODE_SELF, 99999};
    struct step step = {ask_for_much, &gone};
    const char *trace;

    tell(bench, tight, &step);
    sim_run_until(bench->sim, 10);
    trace = sim_trace(bench->sim);
    assert_int_equal(count_of(trace, "ping"), 2);
    assert_int_equal(count_of(trace, "0:99999 is down"), 3);
    assert_int_equal(count_of(trace, "timer"), 2);
    assert_int_equal(new_dead(bench), 2);
}

static void test_letters_to_nobody_are_counted(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    mu__pid deaf = spawn(bench, &deaf_behavior);
    struct mu__ping body = {1};

    assert_int_equal(ping(bench, (mu__pid){0, 4711}, 1), -MU_ENOTFOUND);
    assert_int_equal(new_dead(bench), 1);
    assert_int_equal(post(bench, probe, MU__UNHEARD, &body, sizeof body), 0);
    assert_int_equal(ping(bench, deaf, 1), 0);
    sim_run_until(bench->sim, 1);
    assert_int_equal(new_dead(bench), 2);
    assert_string_equal(sim_trace(bench->sim), "");
}

static void send_around(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_equal(mu__send(ctx, ctx->self, NULL), -MU_ENOMEM);
    mu__msg_free(ctx, mu__msg_new(ctx, MU__PING));
    assert_int_equal(mu__send(ctx, (mu__pid){5, 1}, mu__msg_new(ctx, MU__PING)), 0);
    assert_int_equal(mu__send(ctx, (mu__pid){9, 1}, mu__msg_new(ctx, MU__PING)),
                     -MU_EUNAVAILABLE);
    assert_int_equal(mu__send(ctx, (mu__pid){0, 4711}, mu__msg_new(ctx, MU__PING)),
                     -MU_ENOTFOUND);
}

static void test_messages_for_other_nodes_leave(void **state)
{
    struct bench *bench = *state;
    struct step step = {send_around, NULL};

    tell(bench, spawn(bench, &probe_behavior), &step);
    sim_run_until(bench->sim, 1);
    assert_int_equal(bench->sent_to, 9);
    assert_int_equal(mu__kernel_pool(bench->kernel)->live, 0);
}

/* ---- Claiming ---- */

struct forward {
    mu__pid to;
    struct mu__msg *kept;
};

static void forward_it(struct mu__ctx *ctx, void *arg)
{
    struct forward *forward = arg;
    struct mu__msg *msg = mu__claim(ctx);

    msg->kind = MU__PING;
    memset(msg->body, 0, sizeof(struct mu__ping));
    assert_int_equal(mu__send(ctx, forward->to, msg), 0);
}

static void keep_it(struct mu__ctx *ctx, void *arg)
{
    struct forward *forward = arg;

    forward->kept = mu__claim(ctx);
}

static void free_kept(struct mu__ctx *ctx, void *arg)
{
    struct forward *forward = arg;

    mu__msg_free(ctx, forward->kept);
}

/* A claimed message is the claimer's: it goes on whole, or lives until it is freed. */
static void test_a_claimed_message_can_go_on(void **state)
{
    struct bench *bench = *state;
    mu__pid first = spawn(bench, &probe_behavior);
    struct forward forward = {spawn(bench, &probe_behavior), NULL};
    struct step steps[] = {
        {forward_it, &forward}, {keep_it, &forward}, {free_kept, &forward}};

    tell(bench, first, &steps[0]);
    expect(bench, 1, "[    0] n probe: 17: ping 0 from 16\n");
    tell(bench, first, &steps[1]);
    sim_run_until(bench->sim, 2);
    assert_int_equal(forward.kept->kind, MU__STEP);
    tell(bench, first, &steps[2]);
    sim_run_until(bench->sim, 3);
    assert_int_equal(counters_of(bench).queued, 0);
}

/* ---- Turns ---- */

static void ping_itself(struct mu__ctx *ctx, void *arg)
{
    int *count = arg;

    for (int i = 0; i < *count; i++)
        assert_int_equal(mu__send(ctx, ctx->self, mu__msg_new(ctx, MU__PING)), 0);
}

struct look {
    mu__pid at;
    uint64_t pings;
};

static void look_at_pings(struct mu__ctx *ctx, void *arg)
{
    struct look *look = arg;
    struct probe *probe = mu__actor_state(ctx->kernel, look->at);

    assert_non_null(probe);
    look->pings = probe->pings;
}

/* One that is flooded does not keep the others from their mail. */
static void test_actors_take_turns(void **state)
{
    struct bench *bench = *state;
    mu__pid flooded = spawn(bench, &probe_behavior);
    mu__pid other = spawn(bench, &probe_behavior);
    struct look look = {flooded, 0};
    struct step step = {look_at_pings, &look};

    sim_trace_level(bench->sim, MU__LOG_WARN);
    for (uint64_t i = 0; i < MU__ACTOR_BATCH * 4; i++)
        assert_int_equal(ping(bench, flooded, i), 0);
    tell(bench, other, &step);
    mu__kernel_turn(bench->kernel);
    assert_int_equal(look.pings, MU__ACTOR_BATCH);
}

/* A turn handles so many messages and no more; the rest has another turn at once. */
static void test_a_turn_is_finite(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    int count = MU__TURN_MESSAGES * 2 + 1;
    struct step step = {ping_itself, &count};
    struct probe *seen = mu__actor_state(bench->kernel, probe);

    sim_trace_level(bench->sim, MU__LOG_WARN);
    tell(bench, probe, &step);
    mu__kernel_turn(bench->kernel);
    assert_int_equal(seen->pings, MU__TURN_MESSAGES - 1);
    assert_int_equal(counters_of(bench).queued, MU__TURN_MESSAGES + 2);
    sim_run_until(bench->sim, 0);
    assert_int_equal(seen->pings, count);
    assert_int_equal(counters_of(bench).messages, count + 1);
    assert_true(counters_of(bench).turns >= 3);
}

static void test_mail_keeps_its_order(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);

    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(ping(bench, probe, i), 0);
    expect(bench, 1,
           "[    0] n probe: 16: ping 0 from 0\n"
           "[    0] n probe: 16: ping 1 from 0\n"
           "[    0] n probe: 16: ping 2 from 0\n"
           "[    0] n probe: 16: ping 3 from 0\n");
}

/* ---- Timers ---- */

static void set_timers(struct mu__ctx *ctx, void *arg)
{
    static const uint64_t delays[] = {30, 10, 20, 10, 30};
    uint64_t *timers = arg;

    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        timers[i] = mu__timer_set(ctx, delays[i], i);
        assert_int_not_equal(timers[i], 0);
    }
}

static void cancel_two(struct mu__ctx *ctx, void *arg)
{
    uint64_t *timers = arg;

    mu__timer_cancel(ctx, timers[2]);
    mu__timer_cancel(ctx, timers[0]);
    mu__timer_cancel(ctx, timers[0]);
    mu__timer_cancel(ctx, 0);
    mu__timer_cancel(ctx, UINT64_MAX);
}

static void test_timers_fire_in_order(void **state)
{
    struct bench *bench = *state;
    uint64_t timers[5];
    struct step step = {set_timers, timers};

    tell(bench, spawn(bench, &probe_behavior), &step);
    expect(bench, 100,
           "[   10] n probe: 16: timer 1\n"
           "[   10] n probe: 16: timer 3\n"
           "[   20] n probe: 16: timer 2\n"
           "[   30] n probe: 16: timer 0\n"
           "[   30] n probe: 16: timer 4\n");
    assert_int_equal(counters_of(bench).timers, 0);
}

static void test_cancelled_timers_are_silent(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    uint64_t timers[5];
    struct step steps[] = {{set_timers, timers}, {cancel_two, timers}};

    tell(bench, probe, &steps[0]);
    tell(bench, probe, &steps[1]);
    sim_run_until(bench->sim, 0);
    assert_int_equal(counters_of(bench).timers, 3);
    expect(bench, 100,
           "[   10] n probe: 16: timer 1\n"
           "[   10] n probe: 16: timer 3\n"
           "[   30] n probe: 16: timer 4\n");
    tell(bench, probe, &steps[1]);
    expect(bench, 100, "");
}

/* The number of a timer that has fired does not cancel the one that has its place. */
static void cancel_stale(struct mu__ctx *ctx, void *arg)
{
    uint64_t *stale = arg;
    uint64_t fresh = mu__timer_set(ctx, 10, 77);

    assert_true(fresh != *stale);
    mu__timer_cancel(ctx, *stale);
}

static void set_one(struct mu__ctx *ctx, void *arg)
{
    uint64_t *timer = arg;

    *timer = mu__timer_set(ctx, 1, 1);
}

static void test_stale_timer_numbers_are_harmless(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    uint64_t timer;
    struct step steps[] = {{set_one, &timer}, {cancel_stale, &timer}};

    tell(bench, probe, &steps[0]);
    expect(bench, 10, "[    1] n probe: 16: timer 1\n");
    tell(bench, probe, &steps[1]);
    expect(bench, 90, "[   20] n probe: 16: timer 77\n");
}

struct again {
    unsigned turns_left;
    uint64_t turn;          /* of the kernel, when the last one fired */
};

static const struct mu__behavior again_behavior;

static void set_now(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, 0, 0), 0);
}

static void on_again(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct again *again = state;
    struct mu__kernel_counters counters;

    (void)msg;
    mu__kernel_counters(ctx->kernel, &counters);
    assert_true(counters.turns > again->turn);
    again->turn = counters.turns;
    if (again->turns_left-- > 0)
        set_now(ctx, NULL);
}

static const struct mu__handler again_handlers[] = {{MU__TIMER, on_again}};

static int again_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct again *again = state;

    (void)arg;
    again->turns_left = 10;
    set_now(ctx, NULL);
    return 0;
}

static const struct mu__behavior again_behavior = {
    .name = "again", .state_size = sizeof(struct again), .handlers = again_handlers,
    .handlers_count = 1, .init = again_init};

/* A timer set in a handler waits for the next turn, even when it is due at once. */
static void test_a_timer_never_fires_in_its_own_turn(void **state)
{
    struct bench *bench = *state;
    mu__pid pid = spawn(bench, &again_behavior);
    struct again *again = mu__actor_state(bench->kernel, pid);

    sim_run_until(bench->sim, 0);
    assert_int_equal(again->turns_left, UINT32_MAX);
    assert_true(counters_of(bench).turns >= 11);
}

static void set_very_late(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, UINT64_MAX, 1), 0);
    assert_int_not_equal(mu__timer_set(ctx, UINT64_MAX / 2, 2), 0);
}

static void test_late_timers_do_not_overflow(void **state)
{
    struct bench *bench = *state;
    struct step step = {set_very_late, NULL};

    tell(bench, spawn(bench, &probe_behavior), &step);
    expect(bench, 1000000, "");
    assert_int_equal(counters_of(bench).timers, 2);
}

static void set_too_many(struct mu__ctx *ctx, void *arg)
{
    uint32_t *count = arg;

    while (mu__timer_set(ctx, 1000, 1) != 0)
        ++*count;
}

/* With the real bound this takes a million timers; the tiny build looks at it. */
static void test_timers_are_bounded(void **state)
{
    struct bench *bench = *state;
    uint32_t count = 0;
    struct step step = {set_too_many, &count};

    if (MU__TIMERS_MAX > 1000)
        skip();
    tell(bench, spawn(bench, &probe_behavior), &step);
    sim_run_until(bench->sim, 1);
    assert_int_equal(count, MU__TIMERS_MAX);
}

/* ---- Ends ---- */

static void stop_itself(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, 10, 1), 0);
    mu__stop(ctx->kernel, ctx->self);
    assert_non_null(mu__actor_state(ctx->kernel, ctx->self));
    assert_int_equal(mu__send(ctx, ctx->self, mu__msg_new(ctx, MU__PING)), 0);
}

/* It ends after the message; the rest of its mail and its timers go with it. */
static void test_an_actor_may_stop_itself(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    struct step step = {stop_itself, NULL};

    assert_int_equal(ping(bench, probe, 1), 0);
    tell(bench, probe, &step);
    assert_int_equal(ping(bench, probe, 2), 0);
    expect(bench, 100,
           "[    0] n probe: 16: ping 1 from 0\n"
           "[    0] n probe: 16 ends\n");
    assert_int_equal(new_dead(bench), 2);
    assert_int_equal(counters_of(bench).timers, 0);
    assert_int_equal(counters_of(bench).actors, 0);
    assert_int_equal(counters_of(bench).queued, 0);
    mu__stop(bench->kernel, probe);
}

/* END ends it behind the mail that was there before, and before the mail that comes
 * later. No behavior has to know. */
static void test_an_actor_ends_when_asked(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    mu__pid deaf = spawn(bench, &deaf_behavior);
    const struct mu__end end = {mu__view_str("enough")};

    sim_trace_level(bench->sim, MU__LOG_DEBUG);
    assert_int_equal(ping(bench, probe, 1), 0);
    assert_int_equal(post(bench, probe, MU__END, &end, sizeof end), 0);
    assert_int_equal(ping(bench, probe, 2), 0);
    expect(bench, 100,
           "[    0] n probe: 16: ping 1 from 0\n"
           "[    0] n probe: ends: enough\n"
           "[    0] n probe: 16 ends\n");
    assert_int_equal(post(bench, deaf, MU__END, &end, sizeof end), 0);
    expect(bench, 100, "[  100] n deaf: ends: enough\n");
    assert_int_equal(new_dead(bench), 1);
    assert_int_equal(counters_of(bench).actors, 0);
    assert_int_equal(counters_of(bench).queued, 0);
    assert_int_equal(post(bench, probe, MU__END, &end, sizeof end), 0);
    assert_int_equal(new_dead(bench), 1);
}

static void stop_other(struct mu__ctx *ctx, void *arg)
{
    mu__pid *other = arg;

    mu__stop(ctx->kernel, *other);
    assert_null(mu__actor_state(ctx->kernel, *other));
    assert_int_equal(mu__send(ctx, *other, mu__msg_new(ctx, MU__PING)), -MU_ENOTFOUND);
}

static void test_an_actor_may_stop_another(void **state)
{
    struct bench *bench = *state;
    mu__pid a = spawn(bench, &probe_behavior);
    mu__pid b = spawn(bench, &probe_behavior);
    mu__pid c = spawn(bench, &probe_behavior);
    struct step step = {stop_other, &b};

    tell(bench, a, &step);
    assert_int_equal(ping(bench, b, 1), 0);
    assert_int_equal(ping(bench, c, 2), 0);
    expect(bench, 1,
           "[    0] n probe: 17 ends\n"
           "[    0] n probe: 18: ping 2 from 0\n");
    assert_int_equal(new_dead(bench), 2);
}

/* Its beginning is finished before its end. */
static void test_an_actor_may_stop_itself_at_once(void **state)
{
    struct bench *bench = *state;
    struct step step = {stop_itself, NULL};
    struct probe_arg arg = {&step, NULL, 0};
    mu__pid pid = {0, 0};

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 0, &arg, &pid), 0);
    expect(bench, 1, "[    0] n probe: 16 ends\n");
    assert_null(mu__actor_state(bench->kernel, pid));
    assert_int_equal(counters_of(bench).actors, 0);
    assert_int_equal(new_dead(bench), 1);
}

static void stop_both(struct mu__ctx *ctx, void *arg)
{
    mu__pid *pids = arg;

    mu__stop(ctx->kernel, pids[0]);
    mu__stop(ctx->kernel, pids[1]);
}

/* Each of two takes the other one along, and itself. */
static void test_ends_do_not_run_in_circles(void **state)
{
    struct bench *bench = *state;
    mu__pid pids[2];
    struct step step = {stop_both, pids};
    struct probe_arg arg = {NULL, &step, 0};

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 0, &arg, &pids[i]), 0);
    mu__stop(bench->kernel, pids[0]);
    expect(bench, 1,
           "[    0] n probe: 16 ends\n"
           "[    0] n probe: 17 ends\n");
    assert_int_equal(counters_of(bench).actors, 0);
}

/* Whoever is left ends with the kernel. */
static void test_everybody_ends_with_the_kernel(void **state)
{
    struct bench *bench = *state;
    int pings = 1;
    struct step step = {ping_itself, &pings};
    struct probe_arg arg = {NULL, &step, 0};

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 1, &arg, NULL), 0);
    assert_int_equal(ping(bench, (mu__pid){0, 1}, 1), 0);
    mu__kernel_free(bench->kernel);
    assert_string_equal(sim_trace(bench->sim), "[    0] n probe: 1 ends\n");
    bench->kernel = NULL;
}

/* ---- Monitors ---- */

static void monitor(struct mu__ctx *ctx, void *arg)
{
    mu__pid *pid = arg;

    assert_int_equal(mu__monitor(ctx, *pid), 0);
}

static void test_monitors_tell_the_end(void **state)
{
    struct bench *bench = *state;
    mu__pid a = spawn(bench, &probe_behavior);
    mu__pid b = spawn(bench, &probe_behavior);
    mu__pid c = spawn(bench, &probe_behavior);
    struct step step = {monitor, &c};
    struct step end = {stop_itself, NULL};

    tell(bench, a, &step);
    tell(bench, a, &step);
    tell(bench, b, &step);
    expect(bench, 1, "");
    mu__stop(bench->kernel, b);
    assert_string_equal(sim_trace(bench->sim), "[    1] n probe: 17 ends\n");
    tell(bench, c, &end);
    expect(bench, 1,
           "[    1] n probe: 18 ends\n"
           "[    1] n probe: 16: 0:18 is down\n"
           "[    1] n probe: 16: 0:18 is down\n");
    tell(bench, a, &step);
    expect(bench, 1, "[    2] n probe: 16: 0:18 is down\n");
}

/* ---- Nodes ---- */

static void watch(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_equal(mu__watch_nodes(ctx), 0);
}

static void node_up(struct bench *bench, uint32_t node)
{
    char type[] = "worker";
    char address[] = "tcp://w:1";

    mu__kernel_node_up(bench->kernel, node, type, node * 10, 0xABC, address);
    memset(type, 'x', sizeof type);
    memset(address, 'x', sizeof address);
    mu__kernel_turn(bench->kernel);
}

static void node_down(struct bench *bench, uint32_t node)
{
    char reason[] = "silent";

    mu__kernel_node_down(bench->kernel, node, reason);
    memset(reason, 'x', sizeof reason);
    mu__kernel_turn(bench->kernel);
}

/* Who begins to watch is told of the nodes that are up already. */
static void test_node_news(void **state)
{
    struct bench *bench = *state;
    mu__pid early = spawn(bench, &probe_behavior);
    mu__pid late = spawn(bench, &probe_behavior);
    struct step step = {watch, NULL};

    tell(bench, early, &step);
    expect(bench, 1, "");
    node_up(bench, 1);
    node_up(bench, 4);
    node_down(bench, 1);
    node_down(bench, 1);
    node_down(bench, 3);
    node_up(bench, 5);
    assert_string_equal(sim_trace(bench->sim),
                        "[    1] n probe: 16: node 1 up: worker 10 abc tcp://w:1\n"
                        "[    1] n probe: 16: node 4 up: worker 40 abc tcp://w:1\n"
                        "[    1] n probe: 16: node 1 down: silent\n"
                        "[    1] n probe: 16: node 5 up: worker 50 abc tcp://w:1\n");
    tell(bench, late, &step);
    expect(bench, 1,
           "[    1] n probe: 17: node 4 up: worker 40 abc tcp://w:1\n"
           "[    1] n probe: 17: node 5 up: worker 50 abc tcp://w:1\n");
    mu__stop(bench->kernel, early);
    (void)sim_trace(bench->sim);
    node_down(bench, 5);
    assert_string_equal(sim_trace(bench->sim),
                        "[    2] n probe: 17: node 5 down: silent\n");
}

/* Why there is no link to a task is news, too. */
static void test_node_trouble(void **state)
{
    struct bench *bench = *state;
    struct step step = {watch, NULL};

    tell(bench, spawn(bench, &probe_behavior), &step);
    (void)spawn(bench, &probe_behavior);
    expect(bench, 1, "");
    mu__kernel_node_trouble(bench->kernel, "ps", 3, "refused");
    mu__kernel_turn(bench->kernel);
    assert_string_equal(sim_trace(bench->sim), "[    1] n probe: 16: ps 3: refused\n");
}

/* A lost node takes all of its actors along. */
static void test_monitors_of_other_nodes(void **state)
{
    struct bench *bench = *state;
    mu__pid a = spawn(bench, &probe_behavior);
    mu__pid b = spawn(bench, &probe_behavior);
    mu__pid near = {1, 20}, far = {2, 21}, never = {3, 22};
    struct step steps[] = {{monitor, &near}, {monitor, &far}, {monitor, &never}};

    node_up(bench, 1);
    node_up(bench, 2);
    tell(bench, a, &steps[0]);
    tell(bench, a, &steps[1]);
    tell(bench, b, &steps[0]);
    tell(bench, a, &steps[2]);
    expect(bench, 1, "[    0] n probe: 16: 3:22 is down\n");
    mu__stop(bench->kernel, b);
    (void)sim_trace(bench->sim);
    node_down(bench, 1);
    assert_string_equal(sim_trace(bench->sim), "[    1] n probe: 16: 1:20 is down\n");
    node_down(bench, 1);
    assert_string_equal(sim_trace(bench->sim), "");
}

/* ---- Work ---- */

struct task {
    struct mu__work work;
    int runs;
};

static void task_run(struct mu__work *work)
{
    ((struct task *)(void *)work)->runs++;
}

static void submit(struct mu__ctx *ctx, void *arg)
{
    struct task *task = arg;

    task->work.run = task_run;
    mu__submit(ctx, &task->work);
    assert_int_equal(task->runs, 0);
    assert_true(mu__pid_equal(task->work.owner, ctx->self));
}

static void test_work_comes_back_to_its_owner(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    struct task task = {.runs = 0};
    struct step step = {submit, &task};

    tell(bench, probe, &step);
    expect(bench, 100, "[   10] n probe: 16: work done\n");
    assert_int_equal(task.runs, 1);
    tell(bench, probe, &step);
    task.runs = 0;
    sim_run_until(bench->sim, 101);
    mu__stop(bench->kernel, probe);
    (void)sim_trace(bench->sim);
    expect(bench, 100, "");
    assert_int_equal(task.runs, 1);
    assert_int_equal(new_dead(bench), 1);
}

/* ---- The rest of the door ---- */

static void look_around(struct mu__ctx *ctx, void *arg)
{
    uint64_t *seen = arg;

    seen[0] = mu__now_ms(ctx);
    seen[1] = mu__random(ctx);
    seen[2] = mu__random(ctx);
    mu__log(ctx, MU__LOG_WARN, "%s", "hello");
    assert_ptr_equal(mu__kernel_schema(ctx->kernel), &schema);
}

static void test_the_door(void **state)
{
    struct bench *bench = *state;
    mu__pid probe = spawn(bench, &probe_behavior);
    uint64_t seen[3] = {0};
    struct step step = {look_around, seen};

    sim_run_until(bench->sim, 42);
    tell(bench, probe, &step);
    expect(bench, 1, "[   42] n probe: hello\n");
    assert_int_equal(seen[0], 42);
    assert_true(seen[1] != seen[2]);
}

static void test_null_is_fine(void **state)
{
    (void)state;
    mu__kernel_free(NULL);
    assert_true(sizeof(struct mu__msg) % 16 == 0);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_numbers_are_never_used_again),
        STORY(test_named_numbers_are_asked_for),
        STORY(test_many_actors),
        STORY(test_an_init_that_fails_leaves_nothing),
        STORY(test_init_may_send_and_set_timers),
        STORY(test_a_full_mailbox_refuses),
        STORY(test_the_kernel_is_exempt_from_the_bound),
        STORY(test_letters_to_nobody_are_counted),
        STORY(test_messages_for_other_nodes_leave),
        STORY(test_a_claimed_message_can_go_on),
        STORY(test_actors_take_turns),
        STORY(test_a_turn_is_finite),
        STORY(test_mail_keeps_its_order),
        STORY(test_timers_fire_in_order),
        STORY(test_cancelled_timers_are_silent),
        STORY(test_stale_timer_numbers_are_harmless),
        STORY(test_a_timer_never_fires_in_its_own_turn),
        STORY(test_late_timers_do_not_overflow),
        STORY(test_timers_are_bounded),
        STORY(test_an_actor_may_stop_itself),
        STORY(test_an_actor_may_stop_itself_at_once),
        STORY(test_an_actor_ends_when_asked),
        STORY(test_an_actor_may_stop_another),
        STORY(test_ends_do_not_run_in_circles),
        STORY(test_everybody_ends_with_the_kernel),
        STORY(test_monitors_tell_the_end),
        STORY(test_node_news),
        STORY(test_node_trouble),
        STORY(test_monitors_of_other_nodes),
        STORY(test_work_comes_back_to_its_owner),
        STORY(test_the_door),
        cmocka_unit_test(test_null_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
