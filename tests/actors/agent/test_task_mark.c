/* Errors of tasks that another one reports or resets, in whole clusters in virtual time:
 * an operator's client at the coordination service. A question takes 20 ms there and
 * back. */
#include "actors/agent/internal.h"
#include "tests/support/story.h"

static struct cluster *begin(const struct cluster_options *options)
{
    struct cluster *cluster = cluster_new(1, options);

    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    run_until(cluster, 200);
    return cluster;
}

#define SERVICE(...) begin(&(struct cluster_options){.hosts = "chief:0", __VA_ARGS__})

static int state_of(const struct cluster_task *task)
{
    return atomic_load(&task->member.agent.state);
}

/* With code 0 a reset. */
static struct cluster_call *mark(struct cluster_task *task, const char *which, int code,
                                 const char *words)
{
    struct mu__agent_call call = {
        .call = {.operation = MU__AGENT_MARK, .timeout_ms = 1000},
        .tasks = which,
    };

    if (code != 0)
        (void)mu_error_set(&call.failure, code, "%s", words);
    return cluster_agent(task, &call);
}

static void expect_fine(struct cluster_call *call)
{
    if (cluster_wait(call) != 0)
        fail_msg("%s", call->of.call.error.message);
}

static void expect_refused(struct cluster_call *call, int code, const char *words)
{
    assert_int_equal(cluster_wait(call), code);
    assert_string_equal(call->of.call.error.message, words);
}

static struct cluster_call *get(struct cluster_task *task)
{
    return cluster_key(
        task, &(mu_kv_request){.operation = MU_KV_GET, .key = "never", .timeout_ms = -1});
}

static void expect_shown(struct cluster_task *task, const char *which, const char *shown)
{
    struct mu__agent_call ask = {
        .call = {.operation = MU__AGENT_TASKS, .timeout_ms = 1000},
        .tasks = which,
        .what = MU__TASKS_STATES,
    };
    struct cluster_call *call = cluster_agent(task, &ask);

    assert_int_equal(cluster_wait(call), 0);
    expect_text(mu_value_at(call->of.agent.content, 0), "state", shown);
    mu_value_free(call->of.agent.content);
}

TEST(test_error_of_a_task_is_reported_by_a_client)
{
    struct cluster *cluster = SERVICE(.workers = 2, .clients = 1);
    struct cluster_task *worker = cluster->workers[1];
    struct cluster_call *waits = get(worker);

    expect_fine(mark(cluster->clients[0], "worker:1", -MU_EDATALOSS, "a bad disk"));
    run_for(cluster, 50);
    assert_int_equal(state_of(worker), MU_AGENT_ERROR);
    expect_refused(waits, -MU_EDATALOSS, "a bad disk (reported by /job:client/task:0)");
    assert_string_equal(waits->of.call.error.task, "/job:worker/task:1");
    expect_shown(cluster->clients[0], "worker:1", "error");
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);
    end(cluster);
}

/* What its own report would do, this does: all share its fate, the reporter, too, which
 * has its answer by then. */
TEST(test_reported_error_is_that_of_all)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .clients = 1, .coordination = {.recoverable = "none"});

    expect_fine(mark(cluster->clients[0], "worker:1", -MU_EDATALOSS, ""));
    run_for(cluster, 50);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_ERROR);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_ERROR);
    expect_refused(get(cluster->workers[0]), -MU_EDATALOSS,
                   "(reported by /job:client/task:0)");
    end(cluster);
}

/* Its agent comes back by itself: its program waits, and does not reset it. */
TEST(test_reset_by_a_client_brings_a_task_back)
{
    struct cluster *cluster = SERVICE(.workers = 2, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_task *worker = cluster->workers[1];

    expect_fine(mark(client, "worker:1", -MU_EDATALOSS, "a bad disk"));
    run_for(cluster, 50);
    expect_fine(mark(client, "worker:1", 0, NULL));
    run_for(cluster, 50);
    assert_int_equal(state_of(worker), MU_AGENT_CONNECTED);
    expect_shown(client, "worker:1", "connected");
    (void)cluster_key(worker, &(mu_kv_request){.operation = MU_KV_PUT,
                                               .key = "never",
                                               .value = "1",
                                               .size = 1,
                                               .timeout_ms = -1});
    expect_fine(get(cluster->workers[0]));
    end(cluster);
}

/* One that others' failure put into error is reset like the one that failed. */
TEST(test_all_are_reset_one_by_one)
{
    static const char *const names[] = {"chief:0", "worker:0", "worker:1"};
    struct cluster *cluster =
        SERVICE(.workers = 2, .clients = 2, .coordination = {.recoverable = "none"});

    expect_fine(mark(cluster->clients[0], "worker:1", -MU_EDATALOSS, "a bad disk"));
    run_for(cluster, 50);
    expect_refused(mark(cluster->clients[0], "worker:1", 0, NULL), -MU_EDATALOSS,
                   "a bad disk (reported by /job:client/task:0)");
    expect_fine(
        cluster_agent(cluster->clients[1],
                      &(struct mu__agent_call){
                          .call = {.operation = MU__AGENT_RESET, .timeout_ms = 1000}}));
    expect_fine(
        cluster_agent(cluster->clients[1],
                      &(struct mu__agent_call){.call = {.operation = MU__AGENT_REGISTER,
                                                        .timeout_ms = 1000}}));
    for (size_t i = 0; i < 3; i++)
        expect_fine(mark(cluster->clients[1], names[i], 0, NULL));
    run_for(cluster, 50);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    end(cluster);
}

TEST(test_what_cannot_be_marked)
{
    struct cluster *cluster = SERVICE(.workers = 2, .clients = 1);
    struct cluster_task *client = cluster->clients[0];

    expect_refused(mark(client, "worker:1", 0, NULL), -MU_EPRECONDITION,
                   "/job:worker/task:1 is connected: a task is reset from being in "
                   "error");
    expect_refused(mark(client, "worker:7", 0, NULL), -MU_ENOTFOUND,
                   "/job:worker/task:7 is not known");
    expect_refused(mark(client, "worker:0-1", -MU_EINTERNAL, "x"), -MU_EINVALID,
                   "expected one task, got \"worker:0-1\"");
    expect_fine(mark(client, "worker:1", -MU_EINTERNAL, "x"));
    expect_refused(mark(client, "worker:1", -MU_EINTERNAL, "y"), -MU_EPRECONDITION,
                   "/job:worker/task:1 is in error already: x (reported by "
                   "/job:client/task:0)");
    end(cluster);
}

/* A task that is gone for good leaves its name in error: one that is started anew may
 * have it after the reset. */
TEST(test_next_incarnation_registers_after_a_reset)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .clients = 1, .coordination = {.recoverable = "worker"});
    struct cluster_task *client = cluster->clients[0];
    struct cluster_task *worker = cluster->workers[1];

    expect_fine(mark(client, "worker:1", -MU_EDATALOSS, "a bad disk"));
    sim_crash(worker->node);
    run_for(cluster, 3000);
    expect_shown(client, "worker:1", "error");
    expect_fine(mark(client, "worker:1", 0, NULL));
    expect_shown(client, "worker:1", "disconnected");
    assert_int_equal(sim_restart(worker->node), 0);
    run_for(cluster, 400);
    expect_shown(client, "worker:1", "connected");
    end(cluster);
}

TEST_PROGRAM()
