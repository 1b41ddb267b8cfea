/* How actors end, who is told of that and of nodes, and work of a kernel. */
#include "tests/runtime/kernel/kernel_fixture.h"

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
TEST_ON(test_an_actor_may_stop_itself, struct bench *bench, setup, teardown)
{
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
TEST_ON(test_an_actor_ends_when_asked, struct bench *bench, setup, teardown)
{
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

TEST_ON(test_an_actor_may_stop_another, struct bench *bench, setup, teardown)
{
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
TEST_ON(test_an_actor_may_stop_itself_at_once, struct bench *bench, setup, teardown)
{
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
TEST_ON(test_ends_do_not_run_in_circles, struct bench *bench, setup, teardown)
{
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
TEST_ON(test_everybody_ends_with_the_kernel, struct bench *bench, setup, teardown)
{
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

TEST_ON(test_monitors_tell_the_end, struct bench *bench, setup, teardown)
{
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

    mu__kernel_node_down(bench->kernel, node, reason, false);
    memset(reason, 'x', sizeof reason);
    mu__kernel_turn(bench->kernel);
}

/* Who begins to watch is told of the nodes that are up already. */
TEST_ON(test_node_news, struct bench *bench, setup, teardown)
{
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
TEST_ON(test_node_trouble, struct bench *bench, setup, teardown)
{
    struct step step = {watch, NULL};

    tell(bench, spawn(bench, &probe_behavior), &step);
    (void)spawn(bench, &probe_behavior);
    expect(bench, 1, "");
    mu__kernel_node_trouble(bench->kernel, "ps", 3, "refused");
    mu__kernel_turn(bench->kernel);
    assert_string_equal(sim_trace(bench->sim), "[    1] n probe: 16: ps 3: refused\n");
}

/* A lost node takes all of its actors along. */
TEST_ON(test_monitors_of_other_nodes, struct bench *bench, setup, teardown)
{
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

TEST_ON(test_work_comes_back_to_its_owner, struct bench *bench, setup, teardown)
{
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

TEST_ON(test_the_door, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    uint64_t seen[3] = {0};
    struct step step = {look_around, seen};

    sim_run_until(bench->sim, 42);
    tell(bench, probe, &step);
    expect(bench, 1, "[   42] n probe: hello\n");
    assert_int_equal(seen[0], 42);
    assert_true(seen[1] != seen[2]);
}

TEST(test_null_is_fine)
{
    mu__kernel_free(NULL);
    assert_true(sizeof(struct mu__msg) % 16 == 0);
}

TEST_PROGRAM()
