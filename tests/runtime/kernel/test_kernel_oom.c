/* Every allocation of the kernel fails once: nothing is lost, nothing leaks (the address
 * sanitizer counts), and the kernel goes on when there is memory again. */
#include "muster/error.h"
#include "runtime/kernel/kernel.h"
#include "tests/support/bare_world.h"
#include "tests/support/test.h"

#include "tests/support/fault.h"

/* ---- A world that is quiet and allocates nothing ---- */

static uint64_t clock_ms;
static unsigned errors_logged;

static uint64_t quiet_now_ms(struct mu__world *world)
{
    (void)world;
    return clock_ms;
}

static int quiet_transmit(struct mu__world *world, struct mu__msg *msg)
{
    (void)world;
    (void)msg;
    fail();
    return 0;
}

static void quiet_log(struct mu__world *world, enum mu__log_level level, const char *who,
                      const char *line)
{
    (void)world;
    (void)who;
    (void)line;
    errors_logged += level == MU__LOG_ERROR;
}

static const struct mu__world_ops quiet_ops = {
    .now_ms = quiet_now_ms,
    .random = bare_random,
    .wake_at = bare_wake_at,
    .transmit = quiet_transmit,
    .submit = bare_submit,
    .withdraw = bare_withdraw,
    .log = quiet_log,
};

static struct mu__world quiet = {&quiet_ops};

/* ---- An actor that asks for everything ---- */

#define MU__BEGIN_FIELDS(F, S) F(S, REQUIRED, u64, number, 0)

enum { MU__BEGIN = 16, KINDS_END = 17 };

MU__MESSAGE_STRUCT(begin, MU__BEGIN_FIELDS)

static const struct mu__field no_fields[1];

static const struct mu__row rows[KINDS_END] = {
    [MU__BEGIN] = {.name = "begin",
                   .fields = no_fields,
                   .body_size = sizeof(struct mu__begin)},
};

static const struct mu__local_row local[] = {MU__SYSTEM_MESSAGES(MU__DESCRIBE_LOCAL)};

static const struct mu__schema schema = {rows, KINDS_END, local,
                                         sizeof local / sizeof local[0]};

struct greedy {
    unsigned refusals;
    unsigned downs;
    unsigned monitors;
    unsigned timers;
    unsigned timers_set;
    unsigned ups;
    unsigned begins;
};

static void count(struct greedy *greedy, int rv, unsigned *granted)
{
    assert_true(rv == 0 || rv == -MU_ENOMEM);
    if (rv == 0)
        ++*granted;
    else
        greedy->refusals++;
}

static void ask(struct mu__ctx *ctx, struct greedy *greedy)
{
    unsigned sent = 0;

    count(greedy, mu__monitor(ctx, (mu__pid){0, 12345}), &greedy->monitors);
    count(greedy, mu__monitor(ctx, ctx->self), &sent);
    count(greedy, mu__monitor(ctx, (mu__pid){1, 1}), &sent);
    count(greedy, mu__send(ctx, ctx->self, mu__msg_new(ctx, MU__BEGIN)), &sent);
    if (mu__timer_set(ctx, 1, 7) != 0)
        greedy->timers_set++;
    else
        greedy->refusals++;
}

static int greedy_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct greedy *greedy = state;

    (void)arg;
    ask(ctx, greedy);
    return mu__watch_nodes(ctx);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct greedy *greedy = state;

    (void)ctx;
    (void)msg;
    greedy->timers++;
}

static void on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct greedy *greedy = state;
    struct mu__down *body = mu__body(msg);

    (void)ctx;
    greedy->downs += body->actor == 12345;
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct greedy *greedy = state;

    (void)ctx;
    (void)msg;
    greedy->ups++;
}

static void on_begin(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct greedy *greedy = state;

    (void)msg;
    if (greedy->begins++ == 0)
        ask(ctx, greedy);
}

static const struct mu__handler handlers[] = {
    {MU__TIMER, on_timer},
    {MU__DOWN, on_down},
    {MU__NODE_UP, on_node_up},
    {MU__BEGIN, on_begin},
};

static const struct mu__behavior greedy_behavior = {.name = "greedy",
                                                    .state_size = sizeof(struct greedy),
                                                    .handlers = handlers,
                                                    .handlers_count = sizeof handlers /
                                                                      sizeof handlers[0],
                                                    .init = greedy_init};

/* ---- The sweep ---- */

static void turns(struct mu__kernel *kernel)
{
    for (int i = 0; i < 20; i++) {
        clock_ms++;
        mu__kernel_turn(kernel);
    }
}

/* What was granted has happened, and only that. */
static void check_greedy(struct mu__kernel *kernel, mu__pid pid)
{
    const struct greedy *greedy = mu__actor_state(kernel, pid);

    assert_non_null(greedy);
    assert_int_equal(greedy->downs, greedy->monitors);
    assert_int_equal(greedy->timers, greedy->timers_set);
}

static void use_kernel(struct mu__kernel *kernel)
{
    mu__pid pids[3];
    size_t spawned = 0;

    mu__kernel_node_up(kernel, 1, "worker", 0, 1, "tcp://w:1");
    for (size_t i = 0; i < 3; i++) {
        int rv = mu__spawn(kernel, &greedy_behavior, 0, NULL, &pids[spawned]);

        assert_true(rv == 0 || rv == -MU_ENOMEM);
        spawned += rv == 0;
    }
    assert_true(spawned >= 2);
    mu__kernel_node_up(kernel, 2, "worker", 1, 1, "tcp://w:2");
    turns(kernel);
    mu__kernel_node_down(kernel, 1, "lost", false);
    turns(kernel);
    for (size_t i = 0; i < spawned; i++)
        check_greedy(kernel, pids[i]);
}

/* One failure at most has happened: whoever comes now gets everything. */
static void use_kernel_again(struct mu__kernel *kernel)
{
    const struct greedy *greedy;
    mu__pid pid;

    assert_int_equal(mu__spawn(kernel, &greedy_behavior, 0, NULL, &pid), 0);
    turns(kernel);
    greedy = mu__actor_state(kernel, pid);
    assert_int_equal(greedy->refusals, 0);
    assert_int_equal(greedy->timers, 2);
    assert_int_equal(greedy->downs, 2);
    check_greedy(kernel, pid);
}

static bool run_with_fault(long n)
{
    struct mu__kernel *kernel = NULL;
    bool failed;
    int rv;

    fault_arm(n);
    rv = mu__kernel_new(&quiet, &schema, &kernel);
    if (rv == 0)
        use_kernel(kernel);
    failed = fault_disarm();
    if (rv == 0) {
        use_kernel_again(kernel);
    } else {
        assert_int_equal(rv, -MU_ENOMEM);
        assert_null(kernel);
    }
    mu__kernel_free(kernel);
    return failed;
}

TEST(test_every_allocation_can_fail)
{
    long n = 0;

    errors_logged = 0;
    while (run_with_fault(n)) {
        n++;
        assert_true(n < 1000);
    }
    assert_true(n > 20);
    assert_true(errors_logged > 0);
}

TEST_PROGRAM()
