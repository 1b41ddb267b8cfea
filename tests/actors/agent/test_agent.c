/* The agent of the coordination service, in whole clusters with the real service: what
 * programs are told, and when.
 *
 * The chief hosts the service. Everybody is registered at 200 ms, when stories begin;
 * agents say that they live every 166 ms. A question of a worker takes 20 ms there and
 * back, one of the chief none. A host that does not answer for 500 ms is lost. */
#include "actors/agent/internal.h"
#include "tests/sim/storage.h"
#include "tests/support/story.h"

#define CALL(...) (&(struct mu__agent_call){__VA_ARGS__})
#define KEY(...) (&(mu_kv_request){__VA_ARGS__})

#define SERVICE(...) begin(&(struct cluster_options){.hosts = "chief:0", __VA_ARGS__})

static void started(struct cluster *cluster)
{
    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    run_until(cluster, 200);
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    (void)sim_trace(cluster->sim);
}

static struct cluster *begin(const struct cluster_options *options)
{
    struct cluster *cluster = cluster_new(1, options);

    started(cluster);
    return cluster;
}

static struct cluster_call *ask(struct cluster_task *task, int operation,
                                int64_t timeout_ms)
{
    return cluster_agent(task, CALL(.call = {.operation = operation,
                                             .timeout_ms = timeout_ms}));
}

static struct cluster_call *put(struct cluster_task *task, const char *key,
                                const char *value, unsigned flags, int64_t timeout_ms)
{
    return cluster_key(task, KEY(.operation = MU_KV_PUT, .key = key, .value = value,
                                 .size = strlen(value), .flags = flags,
                                 .timeout_ms = timeout_ms));
}

static struct cluster_call *key_call(struct cluster_task *task, int operation,
                                     const char *key, int64_t timeout_ms)
{
    return cluster_key(task, KEY(.operation = operation, .key = key, .by = 1,
                                 .timeout_ms = timeout_ms));
}

static void expect_done(struct cluster_call *call, int code, uint64_t after_ms)
{
    uint64_t began_ms = sim_now_ms(call->task->cluster->sim);
    int rv = cluster_wait(call);

    if (rv != code)
        fail_msg("%s: %s", mu_err_name(rv), call->of.call.error.message);
    assert_int_equal(call->done_ms - began_ms, after_ms);
}

static void expect_failed(struct cluster_call *call, int code, const char *words)
{
    assert_int_equal(cluster_wait(call), code);
    assert_string_equal(call->of.call.error.message, words);
    assert_int_equal(call->of.call.error.code, code);
}

static void expect_key(struct cluster_task *task, const char *key, const char *value)
{
    struct cluster_call *call = key_call(task, MU_KV_TRY_GET, key, 1000);

    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.key.value, value);
}

static int state_of(const struct cluster_task *task)
{
    return atomic_load(&task->member.agent.state);
}

/* What a task is told about another one. */
static void expect_shown(struct cluster_task *task, const char *tasks, const char *shown)
{
    struct cluster_call *call = cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_TASKS, .timeout_ms = 1000},
                   .tasks = tasks, .what = MU__TASKS_STATES));

    assert_int_equal(cluster_wait(call), 0);
    expect_text(mu_value_at(call->of.agent.content, 0), "state", shown);
    mu_value_free(call->of.agent.content);
}

static struct cluster_call *register_with_all(struct cluster_task *task)
{
    return cluster_agent(task, CALL(.call = {.operation = MU__AGENT_REGISTER,
                                             .timeout_ms = -1}, .barrier = true));
}

/* ---- Registering ---- */

static void test_everybody_registers(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2, .servers = 1, .clients = 1);

    (void)state;
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->servers[0]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->clients[0]), MU_AGENT_CONNECTED);
    expect_done(ask(cluster->workers[0], MU__AGENT_REGISTER, 0), 0, 0);
    end(cluster);
}

/* ---- Keys ---- */

static void test_keys(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_call *call;

    (void)state;
    expect_done(put(cluster->chief, "a/b", "one", 0, -1), 0, 0);
    expect_key(cluster->workers[0], "a/b", "one");
    expect_done(put(cluster->workers[0], "a/b", "two", 0, 1000), -MU_EEXISTS, 20);
    expect_done(put(cluster->workers[0], "a/b", "two", MU_KV_OVERWRITE, 1000), 0, 20);
    expect_key(cluster->chief, "a/b", "two");
    call = key_call(cluster->workers[1], MU_KV_INCREMENT, "n", -1);
    expect_done(call, 0, 20);
    assert_int_equal(call->of.key.number, 1);
    call = key_call(cluster->workers[1], MU_KV_DELETE, "a", -1);
    expect_done(call, 0, 20);
    assert_int_equal(call->of.key.number, 1);
    expect_done(key_call(cluster->chief, MU_KV_TRY_GET, "a/b", -1), -MU_ENOTFOUND, 0);
    end(cluster);
}

static void test_get_waits(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_call *call = key_call(cluster->workers[0], MU_KV_GET, "late", -1);

    (void)state;
    run_for(cluster, 100);
    assert_false(call->done);
    (void)put(cluster->workers[1], "late", "here", 0, -1);
    expect_done(call, 0, 20);
    assert_string_equal(call->of.key.value, "here");
    call = key_call(cluster->workers[0], MU_KV_GET, "never", 300);
    expect_done(call, -MU_EDEADLINE, 300);
    assert_string_equal(call->of.call.error.message,
                        "key \"never\" was not put within 300 ms: /job:chief/task:0, "
                        "which hosts the service, is connected, and was heard 102 ms "
                        "ago");
    call = key_call(cluster->workers[0], MU_KV_GET, "never", -1);
    run_for(cluster, 50);
    cluster_key_cancel(call);
    expect_failed(call, -MU_ECANCELLED, "cancelled");
    end(cluster);
}

/* What was asked is asked in order, whatever it takes on its way. */
static void test_many_in_order(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[50];
    char value[16];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        (void)snprintf(value, sizeof value, "%u", i);
        calls[i] = put(cluster->workers[0], "last", value, MU_KV_OVERWRITE, 5000);
    }
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(cluster_wait(calls[i]), 0);
        assert_int_equal(calls[i]->of.key.revision, i + 1);
    }
    expect_key(cluster->workers[0], "last", "49");
    end(cluster);
}

static void test_list(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;

    (void)state;
    assert_int_equal(cluster_wait(put(cluster->chief, "d/b", "2", 0, -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/a", "1", 0, -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "e", "3", 0, -1)), 0);
    call = cluster_agent(cluster->workers[0], CALL(.call = {.operation = MU__AGENT_LIST,
                                                            .timeout_ms = 1000},
                                                   .name = "d"));
    expect_done(call, 0, 20);
    assert_int_equal(mu_value_count(call->of.agent.content), 2);
    expect_text(mu_value_at(call->of.agent.content, 0), "key", "d/a");
    expect_text(mu_value_at(call->of.agent.content, 1), "key", "d/b");
    mu_value_free(call->of.agent.content);
    end(cluster);
}

/* Keys are any bytes but for control characters: what is no text is a key, too. */
static void test_list_of_bytes(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;
    const mu_value *key;
    const void *data = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(cluster_wait(put(cluster->chief, "d/\xff", "1", 0, -1)), 0);
    call = cluster_agent(cluster->workers[0], CALL(.call = {.operation = MU__AGENT_LIST,
                                                            .timeout_ms = 1000},
                                                   .name = "d"));
    expect_done(call, 0, 20);
    assert_int_equal(mu_value_count(call->of.agent.content), 1);
    key = mu_value_find(mu_value_at(call->of.agent.content, 0), "key");
    assert_int_equal(mu_value_get_bytes(key, &data, &size), 0);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "d/\xff", 3);
    mu_value_free(call->of.agent.content);
    end(cluster);
}

/* ---- The host is away ---- */

static void test_no_host_yet(void **state)
{
    struct cluster *cluster =
        cluster_new(1, &(struct cluster_options){.hosts = "chief:0", .workers = 1});
    struct cluster_call *call;

    (void)state;
    cluster_start(cluster->workers[0]);
    call = put(cluster->workers[0], "a", "1", 0, 300);
    expect_done(call, -MU_EDEADLINE, 300);
    assert_string_equal(call->of.call.error.message,
        "key \"a\" was not changed within 300 ms: /job:chief/task:0 at tcp://chief-0:1, "
        "which hosts the service, was never connected: nothing has "
        "answered yet");
    assert_int_equal(call->of.call.error.kind, MU_ERROR_LIMIT);
    call = ask(cluster->workers[0], MU__AGENT_REGISTER, 100);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_DISCONNECTED);

    call = put(cluster->workers[0], "a", "2", 0, -1);
    cluster_start(cluster->chief);
    assert_int_equal(cluster_wait(call), 0);
    expect_key(cluster->chief, "a", "2");
    end(cluster);
}

/* The put was sent, and its answer is never heard. */
static void test_limit_of_a_change(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;

    (void)state;
    call = put(cluster->workers[0], "a", "1", 0, 400);
    run_for(cluster, 5);
    sim_crash(cluster->chief->node);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "key \"a\" was not changed within 400 ms: /job:chief/task:0, which hosts the "
        "service, is not connected since 385 ms: its connection broke: closed by the "
        "peer; it may have been applied");
    cluster_start(cluster->chief);
    end(cluster);
}

/* One that used nothing is registered again, and nobody is told. */
static void test_store_lost_unused(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);

    (void)state;
    sim_crash(cluster->chief->node);
    run_for(cluster, 50);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_DISCONNECTED);
    cluster_start(cluster->chief);
    assert_int_equal(cluster_wait(ask(cluster->workers[0], MU__AGENT_REGISTER, -1)), 0);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);
    end(cluster);
}

static unsigned told_errors;
static mu_error told_error;

static void note_error(void *user, const mu_error *error)
{
    (void)user;
    told_errors++;
    told_error = *error;
}

static void test_store_lost(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *call;

    (void)state;
    told_errors = 0;
    expect_done(cluster_agent(worker, CALL(.call = {.operation = MU__AGENT_ON_ERROR},
                                           .on_error = note_error)), 0, 0);
    assert_int_equal(cluster_wait(put(worker, "a", "1", 0, -1)), 0);
    sim_crash(cluster->chief->node);
    run_for(cluster, 50);
    call = key_call(worker, MU_KV_TRY_GET, "a", -1);
    cluster_start(cluster->chief);
    expect_failed(call, -MU_EABORTED,
                  "the coordination service at /job:chief/task:0 was restarted, and has "
                  "lost the keys and barriers that this task had used");
    assert_int_equal(told_errors, 1);
    assert_int_equal(told_error.code, -MU_EABORTED);
    assert_int_equal(state_of(worker), MU_AGENT_ERROR);
    assert_int_equal(cluster_wait(put(worker, "a", "1", 0, -1)), -MU_EABORTED);

    expect_done(ask(worker, MU__AGENT_RESET, 1000), 0, 20);
    expect_failed(put(worker, "a", "1", 0, -1), -MU_EPRECONDITION,
                  "this task is not registered with the coordination service: "
                  "mu_agent_register registers it");
    expect_done(ask(worker, MU__AGENT_REGISTER, 1000), 0, 20);
    expect_done(put(worker, "a", "1", 0, -1), 0, 20);
    end(cluster);
}

/* ---- Errors, resets, leaving ---- */

static struct cluster_call *fail_with(struct cluster_task *task, int operation, int code,
                                      const char *words)
{
    struct mu__agent_call call = {.call = {.operation = operation, .timeout_ms = 1000}};

    (void)mu_error_set(&call.failure, code, "%s", words);
    return cluster_agent(task, &call);
}

static void test_set_error(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *get = key_call(worker, MU_KV_GET, "a", -1);
    struct cluster_call *call;

    (void)state;
    run_for(cluster, 30);
    expect_done(fail_with(worker, MU__AGENT_SET_ERROR, -MU_EDATALOSS, "bad disk"), 0, 0);
    expect_failed(get, -MU_EDATALOSS, "bad disk");
    assert_string_equal(get->of.call.error.task, "/job:worker/task:0");
    call = ask(worker, MU__AGENT_STATE, -1);
    expect_done(call, 0, 0);
    assert_string_equal(call->of.call.error.task, "/job:worker/task:0");

    /* Nobody else heard of it, and it lives. */
    run_for(cluster, 3000);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    sim_crash(cluster->chief->node);
    run_for(cluster, 600);
    expect_done(ask(worker, MU__AGENT_RESET, -1), 0, 0);
    assert_int_equal(state_of(worker), MU_AGENT_DISCONNECTED);
    expect_failed(ask(worker, MU__AGENT_RESET, -1), -MU_EPRECONDITION,
                  "a task is reset from being in error, and this one is not");
    call = ask(worker, MU__AGENT_REGISTER, -1);
    cluster_start(cluster->chief);
    assert_int_equal(cluster_wait(call), 0);
    end(cluster);
}

/* Not recoverable: its error is that of all. */
static void test_report(void **state)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .coordination = {.recoverable = "none"});
    struct cluster_call *call;

    (void)state;
    expect_done(fail_with(cluster->workers[0], MU__AGENT_REPORT, -MU_EINTERNAL,
                          "no more"), 0, 20);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_ERROR);
    run_for(cluster, 50);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_ERROR);
    call = put(cluster->workers[1], "a", "1", 0, -1);
    expect_failed(call, -MU_EINTERNAL, "no more");
    assert_string_equal(call->of.call.error.task, "/job:worker/task:0");
    expect_failed(fail_with(cluster->workers[1], MU__AGENT_REPORT, -MU_EINTERNAL, "too"),
                  -MU_EINTERNAL, "no more");
    end(cluster);
}

/* A client that dies without a word is nobody's error, where the coordinated tasks share
 * their fate. */
static void test_client_dies(void **state)
{
    struct cluster *cluster =
        SERVICE(.workers = 1, .clients = 1, .coordination = {.recoverable = "none"});

    (void)state;
    assert_int_equal(state_of(cluster->clients[0]), MU_AGENT_CONNECTED);
    sim_crash(cluster->clients[0]->node);
    run_for(cluster, 20000);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);

    /* A worker's death is. */
    sim_crash(cluster->workers[0]->node);
    run_for(cluster, 20000);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_ERROR);
    end(cluster);
}

/* A task that failed while it was away, or was restarted, hears that it must be reset. */
static void test_must_be_reset(void **state)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .coordination = {.recoverable = "chief"});
    struct cluster_task *worker = cluster->workers[0];

    (void)state;
    sim_crash(worker->node);
    run_for(cluster, 100);
    assert_int_equal(sim_restart(worker->node), 0);
    run_for(cluster, 300);
    assert_int_equal(state_of(worker), MU_AGENT_ERROR);
    expect_failed(put(worker, "a", "1", 0, -1), -MU_EABORTED,
                  "/job:worker/task:0 was registered with another incarnation: it was "
                  "restarted, and must be reset first");
    expect_done(ask(worker, MU__AGENT_RESET, 1000), 0, 20);
    expect_done(ask(worker, MU__AGENT_REGISTER, 1000), 0, 20);
    expect_done(put(worker, "a", "1", 0, -1), 0, 20);
    end(cluster);
}

static void test_leave(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *get = key_call(worker, MU_KV_GET, "a", -1);

    (void)state;
    expect_done(ask(worker, MU__AGENT_LEAVE, 1000), 0, 20);
    expect_failed(get, -MU_EPRECONDITION, "this task has left");
    assert_int_equal(state_of(worker), MU_AGENT_DISCONNECTED);
    expect_failed(ask(worker, MU__AGENT_LEAVE, 1000), -MU_EPRECONDITION,
                  "this task is not registered with the coordination service: "
                  "mu_agent_register registers it");
    expect_done(ask(worker, MU__AGENT_REGISTER, -1), 0, 20);
    end(cluster);
}

/* A task in error leaves, hears that it does so in error, and may come again. */
static void test_leave_in_error(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];

    (void)state;
    expect_done(fail_with(worker, MU__AGENT_REPORT, -MU_EDATALOSS, "bad disk"), 0, 20);
    assert_int_equal(state_of(worker), MU_AGENT_ERROR);
    expect_failed(ask(worker, MU__AGENT_LEAVE, -1), -MU_EPRECONDITION,
                  "this task leaves in error: EDATALOSS: bad disk");
    assert_int_equal(state_of(worker), MU_AGENT_DISCONNECTED);
    run_for(cluster, 3000);
    assert_int_equal(state_of(worker), MU_AGENT_DISCONNECTED);
    expect_shown(cluster->chief, "worker:0", "disconnected");
    expect_done(ask(worker, MU__AGENT_REGISTER, -1), 0, 20);
    end(cluster);
}

/* That the others did not come keeps nobody: it has left all the same, here and there. */
static void test_leave_without_others(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2, .coordination = {
        .recoverable = "none", .leave_ms = 1000});
    struct cluster_task *worker = cluster->workers[0];

    (void)state;
    assert_int_equal(cluster_wait(ask(worker, MU__AGENT_LEAVE, 300)), -MU_EDEADLINE);
    assert_int_equal(state_of(worker), MU_AGENT_DISCONNECTED);
    run_for(cluster, 3000);
    assert_int_equal(state_of(worker), MU_AGENT_DISCONNECTED);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    expect_shown(cluster->chief, "worker:0", "disconnected");

    assert_int_equal(cluster_wait(ask(cluster->workers[1], MU__AGENT_LEAVE, -1)),
                     -MU_EINTERNAL);
    run_for(cluster, 3000);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_DISCONNECTED);
    end(cluster);
}

static struct cluster_call *barrier_of_two(struct cluster_task *task, int64_t timeout_ms)
{
    return cluster_agent(task, CALL(.call = {.operation = MU__AGENT_BARRIER,
                                             .timeout_ms = timeout_ms},
                                    .name = "b", .tasks = "worker:0-1"));
}

/* The host stands still for longer than the barrier's limit: nobody gives up alone, and
 * the pause counts for nobody. */
static void test_barrier_of_a_paused_host(void **state)
{
    static const uint64_t comes_ms[] = {3500, 9000};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct cluster *cluster = SERVICE(
            .workers = 2, .silence_ms = 8000, .coordination = {
            .suspect_ms = 5000, .dead_ms = 10000, .reconnect_ms = 5000});
        struct cluster_call *first = barrier_of_two(cluster->workers[0], 3000);
        struct cluster_call *second;

        run_for(cluster, 100);
        sim_pause(cluster->chief->node, 4500);
        run_for(cluster, comes_ms[i]);
        second = barrier_of_two(cluster->workers[1], 3000);
        assert_int_equal(cluster_wait(first), i == 0 ? 0 : -MU_EDEADLINE);
        assert_int_equal(cluster_wait(second), i == 0 ? 0 : -MU_EDEADLINE);
        end(cluster);
    }
}

/* A process that ends well has left, in every setting: nobody is in error for it, and a
 * round of preemption does not ask it. */
static void test_clean_end(void **state)
{
    static const char *const recoverable[] = {"all", "none", "ps"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct cluster *cluster = SERVICE(.workers = 3, .coordination = {
            .recoverable = recoverable[i]});
        struct cluster_call *call;

        mu__member_leave(&cluster->workers[0]->member, "it is closing");
        run_for(cluster, 100);
        sim_exit(cluster->workers[0]->node);
        call = cluster_agent(cluster->workers[1],
                             CALL(.call = {.operation = MU__AGENT_NOTICE,
                                           .timeout_ms = 1000}, .name = ""));
        assert_int_equal(cluster_wait(call), 0);
        run_for(cluster, 10000);
        assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
        assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
        expect_shown(cluster->chief, "worker:0", "disconnected");
        assert_null(strstr(sim_trace(cluster->sim), "waiting for /job:worker/task:0"));
        end(cluster);
    }
}

/* Without a word it is lost. */
static void test_end_without_word(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2, .coordination = {
        .recoverable = "none"});

    (void)state;
    cluster->workers[0]->member.fails = true;
    mu__member_leave(&cluster->workers[0]->member, "it is closing");
    run_for(cluster, 100);
    sim_exit(cluster->workers[0]->node);
    run_for(cluster, 3000);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_ERROR);
    end(cluster);
}

/* Restarted while others wait until all have registered, and before all have: its link
 * breaks, it is away for longer than a link may be down, and comes again. */
static void test_restart_while_others_register(void **state)
{
    struct cluster *cluster = MAKE(.workers = 3, .hosts = "chief:0",
                                   .coordination = {.recoverable = "none"});
    struct cluster_call *calls[4];

    (void)state;
    cluster_start(cluster->chief);
    cluster_start(cluster->workers[0]);
    cluster_start(cluster->workers[1]);
    run_until(cluster, 500);
    calls[0] = register_with_all(cluster->chief);
    calls[1] = register_with_all(cluster->workers[0]);
    run_for(cluster, 300);
    /* One that waits, for a short time; one that has just registered, for a long one. */
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    sim_crash(cluster->workers[1]->node);
    run_for(cluster, 3000);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);
    assert_false(calls[0]->done);
    cluster_start(cluster->workers[1]);
    cluster_start(cluster->workers[2]);
    run_for(cluster, 300);
    calls[1] = register_with_all(cluster->workers[0]);
    calls[2] = register_with_all(cluster->workers[1]);
    calls[3] = register_with_all(cluster->workers[2]);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(cluster_wait(calls[i]), 0);

    /* From now on a restart is a failure, of all. */
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    run_for(cluster, 3000);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_ERROR);
    end(cluster);
}

static void test_nobody_hosts(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    static const char words[] =
        "there is no coordination service: option service_hosts names no task that may "
        "host it";

    (void)state;
    assert_int_equal(state_of(cluster->chief), MU_AGENT_UNINITIALIZED);
    for (int i = 0; i < MU__AGENT_OPERATIONS_COUNT; i++)
        if (i != MU__AGENT_ON_ERROR && i != MU__AGENT_STATE &&
            i != MU__AGENT_WATCH_CLOSE)
            expect_failed(ask(cluster->chief, i, -1), -MU_EPRECONDITION, words);
    expect_failed(put(cluster->chief, "a", "1", 0, -1), -MU_EPRECONDITION, words);
    end(cluster);
}

/* What a node knows of the service, also before it is there and in error. */
static void test_service(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call = ask(cluster->workers[0], MU__AGENT_SERVICE, -1);
    mu_value *service;
    int64_t epoch = 0;
    const char *task;
    size_t size;

    (void)state;
    assert_int_equal(cluster_wait(call), 0);
    service = call->of.agent.content;
    assert_int_equal(mu_value_get_string(mu_value_find(service, "task"), &task, &size),
                     0);
    assert_string_equal(task, "/job:chief/task:0");
    assert_int_equal(mu_value_get_int(mu_value_find(service, "epoch"), &epoch), 0);
    assert_int_equal(epoch, 1);
    mu_value_free(service);

    sim_crash(cluster->chief->node);
    run_for(cluster, 2000);
    call = ask(cluster->workers[0], MU__AGENT_SERVICE, -1);
    assert_int_equal(cluster_wait(call), 0);
    service = call->of.agent.content;
    assert_int_equal(mu_value_get_string(mu_value_find(service, "task"), &task, &size),
                     0);
    assert_string_equal(task, "");
    assert_null(mu_value_find(service, "epoch"));
    mu_value_free(service);
    cluster_start(cluster->chief);
    end(cluster);
}

/* ---- Barriers ---- */

static struct cluster_call *meet(struct cluster_task *task, const char *name,
                                 const char *tasks, unsigned threads, int64_t timeout_ms)
{
    return cluster_agent(task, CALL(.call = {.operation = MU__AGENT_BARRIER,
                                             .timeout_ms = timeout_ms},
                                    .name = name, .tasks = tasks, .threads = threads));
}

static void test_barrier(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[2];

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        calls[0] = meet(cluster->workers[0], "b", NULL, 1, 1000);
        run_for(cluster, 100);
        assert_false(calls[0]->done);
        calls[1] = meet(cluster->chief, "b", NULL, 1, 1000);
        expect_done(calls[1], 0, 0);
        expect_done(calls[0], 0, 10);
    }
    end(cluster);
}

/* A worker that was restarted counts from 0 and joins the third generation; from then on
 * it counts as the others do. */
static void test_barrier_restarted(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *chief;

    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        chief = meet(cluster->chief, "b", NULL, 1, -1);
        if (round == 2) {
            run_for(cluster, 100);
            sim_crash(cluster->workers[0]->node);
            run_for(cluster, 2000);
            cluster_start(cluster->workers[0]);
            run_for(cluster, 1000);
        }
        assert_false(chief->done);
        expect_done(meet(cluster->workers[0], "b", NULL, 1, 1000), 0, 20);
        assert_int_equal(cluster_wait(chief), 0);
    }
    end(cluster);
}

/* Who was reset does not go through a generation again that it went through before. */
static void test_barrier_after_reset(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *chief = meet(cluster->chief, "b", NULL, 1, -1);
    struct cluster_call *again;

    (void)state;
    expect_done(meet(worker, "b", NULL, 1, 1000), 0, 20);
    assert_int_equal(cluster_wait(chief), 0);
    expect_done(fail_with(worker, MU__AGENT_SET_ERROR, -MU_EDATALOSS, "bad"), 0, 0);
    expect_done(ask(worker, MU__AGENT_RESET, 1000), 0, 20);
    expect_done(ask(worker, MU__AGENT_REGISTER, 1000), 0, 20);
    again = meet(worker, "b", NULL, 1, -1);
    run_for(cluster, 1000);
    assert_false(again->done);
    expect_done(meet(cluster->chief, "b", NULL, 1, 1000), 0, 0);
    assert_int_equal(cluster_wait(again), 0);
    end(cluster);
}

static void test_barrier_of_threads(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *other = meet(cluster->chief, "b", NULL, 1, -1);
    struct cluster_call *calls[3];

    (void)state;
    calls[0] = meet(worker, "b", NULL, 3, -1);
    calls[1] = meet(worker, "b", NULL, 3, -1);
    run_for(cluster, 100);
    assert_false(other->done);
    expect_failed(meet(worker, "b", NULL, 2, -1), -MU_EINVALID,
                  "barrier \"b\": 3 threads of this task are to meet, and this one says "
                  "2");
    expect_failed(meet(worker, "b", "chief:0", 3, -1), -MU_EINVALID,
                  "barrier \"b\": the first thread said tasks \"\", and this one says "
                  "\"chief:0\"");
    calls[2] = meet(worker, "b", NULL, 3, -1);
    expect_failed(meet(worker, "b", NULL, 3, -1), -MU_EINVALID,
                  "barrier \"b\": all 3 threads of this task are here already");
    expect_done(calls[0], 0, 20);
    expect_done(calls[1], 0, 0);
    expect_done(calls[2], 0, 0);
    assert_true(other->done);
    end(cluster);
}

/* The service is not told: the chief's barrier goes on. */
static void test_too_few_threads(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *other = meet(cluster->chief, "b", NULL, 1, -1);
    struct cluster_call *calls[2];

    (void)state;
    calls[0] = meet(cluster->workers[0], "b", NULL, 3, 300);
    run_for(cluster, 100);
    calls[1] = meet(cluster->workers[0], "b", NULL, 3, 9000);
    expect_failed(calls[1], -MU_EDEADLINE,
                  "barrier \"b\": 2 of 3 threads of this task arrived, the others did "
                  "not come within 300 ms");
    assert_int_equal(calls[1]->done_ms, 500);
    assert_int_equal(calls[0]->done_ms, 500);
    assert_false(other->done);
    expect_done(meet(cluster->workers[0], "b", NULL, 1, -1), 0, 20);
    assert_true(other->done);
    end(cluster);
}

/* Of one task: the service is not asked, though it is away. */
static void test_barrier_alone(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[2];

    (void)state;
    sim_crash(cluster->chief->node);
    run_for(cluster, 50);
    calls[0] = meet(cluster->workers[0], "b", "worker:0", 2, 100);
    calls[1] = meet(cluster->workers[0], "b", "worker:0", 2, 100);
    expect_done(calls[0], 0, 0);
    expect_done(calls[1], 0, 0);
    cluster_start(cluster->chief);
    end(cluster);
}

/* A program may have a new name for each of its steps: old ones are forgotten. */
static void test_many_barriers(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[2];
    char name[32];

    (void)state;
    for (unsigned i = 0; i <= AGENT_BARRIERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "step %u", i);
        assert_int_equal(cluster_wait(meet(cluster->chief, name, NULL, 2, 0)),
                         -MU_EDEADLINE);
    }
    for (unsigned round = 0; round < 3; round++) {
        calls[0] = meet(cluster->chief, "step 1", NULL, 1, 1000);
        calls[1] = meet(cluster->workers[0], "step 1", NULL, 1, 1000);
        assert_int_equal(cluster_wait(calls[0]), 0);
        assert_int_equal(cluster_wait(calls[1]), 0);
    }
    end(cluster);
}

static void test_barrier_cancel(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *cancel;
    struct cluster_call *calls[2];

    (void)state;
    cancel = cluster_agent(cluster->chief,
                           CALL(.call = {.operation = MU__AGENT_BARRIER_CANCEL,
                                         .timeout_ms = 1000}, .name = "b"));
    expect_failed(cancel, -MU_EPRECONDITION, "this task is not at barrier \"b\"");
    for (unsigned round = 0; round < 2; round++) {
        calls[0] = meet(cluster->workers[0], "b", "chief:0,worker:0", 1, -1);
        run_for(cluster, 50);
        expect_failed(meet(cluster->workers[0], "b", "chief:0,worker:0", 1, -1),
                      -MU_EPRECONDITION, "this task is at barrier \"b\" already");
        cancel = cluster_agent(cluster->workers[0],
                               CALL(.call = {.operation = MU__AGENT_BARRIER_CANCEL,
                                             .timeout_ms = 1000}, .name = "b"));
        expect_done(cancel, 0, 20);
        assert_int_equal(cluster_wait(calls[0]), -MU_ECANCELLED);
        calls[1] = meet(cluster->chief, "b", "chief:0,worker:0", 1, -1);
        assert_int_equal(cluster_wait(calls[1]), -MU_ECANCELLED);
    }
    calls[0] = meet(cluster->workers[0], "t", NULL, 2, -1);
    cancel = cluster_agent(cluster->workers[0],
                           CALL(.call = {.operation = MU__AGENT_BARRIER_CANCEL},
                                .name = "t"));
    expect_done(cancel, 0, 0);
    expect_failed(calls[0], -MU_ECANCELLED, "barrier \"t\" was cancelled");
    end(cluster);
}

/* ---- A store that outlives its host ---- */

static void is_gone(struct mu__storage *base)
{
    sim_storage_crash((struct sim_storage *)base);
}

static struct cluster *begin_journal(struct sim_storage **ret_storage)
{
    struct cluster *cluster = cluster_new(1, &(struct cluster_options){
        .hosts = "chief:0",
        .workers = 2,
        .coordination = {.store = &mu__store_journal},
    });

    *ret_storage = sim_storage_new("store", 5);
    cluster->chief->store =
        (struct cluster_journal){&(*ret_storage)->base, NULL, is_gone, NULL, NULL};
    started(cluster);
    return cluster;
}

static void end_journal(struct cluster *cluster, struct sim_storage *storage)
{
    end(cluster);
    sim_storage_free(storage);
}

/* Each time the host dies while the answers are on their way, or before it was asked:
 * whatever was applied is not applied again. */
static void test_applied_once(void **state)
{
    (void)state;
    for (unsigned after_ms = 0; after_ms <= 25; after_ms += 5) {
        struct sim_storage *storage;
        struct cluster *cluster = begin_journal(&storage);
        struct cluster_call *calls[6];

        for (unsigned i = 0; i < 6; i++)
            calls[i] = key_call(cluster->workers[i % 2], MU_KV_INCREMENT, "n", -1);
        run_for(cluster, after_ms);
        assert_int_equal(sim_restart(cluster->chief->node), 0);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(cluster_wait(calls[i]), 0);
        run_for(cluster, 1000);
        expect_key(cluster->chief, "n", "6");
        assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);
        end_journal(cluster, storage);
    }
}

/* ---- Watches ---- */

static struct mu__agent_watch *watch(struct cluster_task *task, const char *key,
                                     bool below)
{
    struct mu__agent_watch *opened = mu__agent_watch_new();
    struct cluster_call *call = cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_WATCH, .timeout_ms = 1000},
                   .name = key, .below = below, .watch = opened));

    assert_non_null(opened);
    assert_int_equal(cluster_wait(call), 0);
    return opened;
}

static struct cluster_call *next(struct cluster_task *task, struct mu__agent_watch *of,
                                 int64_t timeout_ms)
{
    return cluster_agent(task, CALL(.call = {.operation = MU__AGENT_WATCH_NEXT,
                                             .timeout_ms = timeout_ms}, .watch = of));
}

/* "SET a 1", "DELETED a", "CURRENT". */
static void expect_event(struct cluster_task *task, struct mu__agent_watch *of,
                         const char *text)
{
    static const char *const names[] = {"SET", "DELETED", "CURRENT"};
    struct cluster_call *call = next(task, of, 1000);
    mu_kv_event *event = &call->of.agent.event;
    char told[128];

    if (cluster_wait(call) != 0)
        fail_msg("%s: %s", text, call->of.call.error.message);
    (void)snprintf(told, sizeof told, "%s%s%s%s%s", names[event->type],
                   event->key == NULL ? "" : " ", event->key == NULL ? "" : event->key,
                   event->item.value == NULL ? "" : " ",
                   event->item.value == NULL ? "" : event->item.value);
    assert_string_equal(told, text);
    free(event->item.value);
    free(event->key);
}

static void close_watch(struct cluster_task *task, struct mu__agent_watch *of)
{
    expect_done(cluster_agent(task, CALL(.call = {.operation = MU__AGENT_WATCH_CLOSE},
                                         .watch = of)), 0, 0);
    mu__agent_watch_unref(of);
}

static void test_watch(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;
    struct cluster_call *call;

    (void)state;
    assert_int_equal(cluster_wait(put(cluster->chief, "d/a", "1", 0, -1)), 0);
    of = watch(worker, "d", true);
    expect_event(worker, of, "SET d/a 1");
    expect_event(worker, of, "CURRENT");
    expect_failed(next(worker, of, 100), -MU_EDEADLINE,
                  "what is watched as \"d\" did not change within 100 ms: "
                  "/job:chief/task:0, which hosts the service, is connected, and was "
                  "heard 134 ms ago");
    call = next(worker, of, -1);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/b", "2", 0, -1)), 0);
    expect_done(call, 0, 10);
    free(call->of.agent.event.item.value);
    free(call->of.agent.event.key);

    /* Changes of one key are one; the first that changed comes first. */
    assert_int_equal(cluster_wait(put(cluster->chief, "d/b", "3", MU_KV_OVERWRITE, -1)),
                     0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/a", "4", MU_KV_OVERWRITE, -1)),
                     0);
    assert_int_equal(cluster_wait(key_call(cluster->chief, MU_KV_DELETE, "d/b", -1)), 0);
    run_for(cluster, 50);
    expect_event(worker, of, "DELETED d/b");
    expect_event(worker, of, "SET d/a 4");
    call = next(worker, of, -1);
    run_for(cluster, 20);
    close_watch(worker, of);
    expect_failed(call, -MU_ECLOSED, "the watch is closed");
    end(cluster);
}

/* What was deleted, changed, added, and left alone while the watcher was cut off. */
static void test_watch_goes_on(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;

    (void)state;
    assert_int_equal(cluster_wait(put(cluster->chief, "d/a", "1", 0, -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/b", "2", 0, -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/c", "3", 0, -1)), 0);
    of = watch(worker, "d", true);
    expect_event(worker, of, "SET d/a 1");
    expect_event(worker, of, "SET d/b 2");
    expect_event(worker, of, "SET d/c 3");
    expect_event(worker, of, "CURRENT");

    sim_cut(cluster->sim, cluster->chief->node, worker->node);
    run_for(cluster, 5);
    assert_int_equal(cluster_wait(key_call(cluster->chief, MU_KV_DELETE, "d/a", -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/c", "4", MU_KV_OVERWRITE, -1)),
                     0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/e", "5", 0, -1)), 0);
    sim_heal(cluster->sim);
    expect_event(worker, of, "SET d/c 4");
    expect_event(worker, of, "SET d/e 5");
    expect_event(worker, of, "DELETED d/a");
    expect_failed(next(worker, of, 100), -MU_EDEADLINE,
                  "what is watched as \"d\" did not change within 100 ms: "
                  "/job:chief/task:0, which hosts the service, is connected, and was "
                  "heard 120 ms ago");
    close_watch(worker, of);
    end(cluster);
}

/* Its task was in error when it was begun again. */
static void test_watch_of_one_in_error(void **state)
{
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    struct cluster *cluster = SERVICE(.workers = 1);
    struct mu__agent_watch *of = watch(cluster->chief, "d", true);
    struct mu__key_event refused = {.code = MU_EABORTED};

    (void)state;
    expect_event(cluster->chief, of, "CURRENT");
    for (refused.token = 0; refused.token < 8; refused.token++)
        forge(cluster->chief, service, MU__AGENT, MU__KEY_EVENT, &refused,
              sizeof refused);
    run_for(cluster, 1000);
    assert_int_equal(cluster_wait(put(cluster->workers[0], "d/a", "1", 0, -1)), 0);
    expect_event(cluster->chief, of, "SET d/a 1");
    close_watch(cluster->chief, of);
    end(cluster);
}

/* A key of another store is another one, though its revision is the same. */
static void test_watch_of_another_store(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;

    (void)state;
    assert_int_equal(cluster_wait(put(worker, "d/a", "1", 0, -1)), 0);
    of = watch(worker, "d", true);
    expect_event(worker, of, "SET d/a 1");
    expect_event(worker, of, "CURRENT");
    assert_int_equal(sim_restart(cluster->chief->node), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/a", "2", 0, -1)), 0);
    run_for(cluster, 1000);
    assert_int_equal(state_of(worker), MU_AGENT_ERROR);
    assert_int_equal(cluster_wait(ask(worker, MU__AGENT_RESET, 1000)), 0);
    assert_int_equal(cluster_wait(ask(worker, MU__AGENT_REGISTER, 1000)), 0);
    expect_event(worker, of, "SET d/a 2");
    close_watch(worker, of);
    end(cluster);
}

static const struct agent *agent_of(struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__AGENT});
}

/* A task that was lost and does not know it: what happens before it is registered again
 * is told then. */
static void test_watch_of_the_lost(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of = watch(worker, "a", false);
    const mu__pid service = {agent_of(worker)->hosts.followed->node, MU__COORDINATION};
    const struct mu__task_heard heard = {.epoch = agent_of(worker)->hosts.epoch,
                                         .code = MU_EUNAVAILABLE};

    (void)state;
    expect_event(worker, of, "CURRENT");
    forge(worker, service, MU__AGENT, MU__TASK_HEARD, &heard, sizeof heard);
    assert_int_equal(cluster_wait(put(cluster->chief, "a", "1", 0, -1)), 0);
    expect_event(worker, of, "SET a 1");
    close_watch(worker, of);
    end(cluster);
}

/* More keys than are remembered: the watch says so once and begins anew. */
static void test_watch_overflow(void **state)
{
    enum { MANY = (1 << 16) + 200 };
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;
    struct cluster_call *call;
    char key[16];

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    of = watch(worker, "d", true);
    expect_event(worker, of, "CURRENT");
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "d/%u", i);
        call = put(cluster->chief, key, "", 0, -1);
        if (i % 1000 == 0)
            assert_int_equal(cluster_wait(call), 0);
    }
    assert_int_equal(cluster_wait(call), 0);
    run_for(cluster, 100);
    expect_failed(next(worker, of, 1000), -MU_EEXHAUSTED,
                  "more than 65536 keys of \"d\" had changed and were not read: the "
                  "watch begins anew");
    assert_int_equal(cluster_wait(key_call(cluster->chief, MU_KV_DELETE, "d", -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/x", "1", 0, -1)), 0);
    run_for(cluster, 100);
    close_watch(worker, of);
    of = watch(worker, "d", true);
    expect_event(worker, of, "SET d/x 1");
    close_watch(worker, of);
    end(cluster);
}

/* ---- Preemption ---- */

static struct cluster_call *reach(struct cluster_task *task, uint64_t step)
{
    atomic_store(&task->member.agent.step, step + 1);
    return cluster_agent(task, CALL(.call = {.operation = MU__AGENT_REACHED,
                                             .timeout_ms = -1}, .version = step));
}

static bool stops_at(struct cluster_task *task, uint64_t step)
{
    struct cluster_call *call = reach(task, step);

    assert_int_equal(cluster_wait(call), 0);
    return call->of.agent.number != 0;
}

static struct cluster_call *wait_round(struct cluster_task *task, uint64_t round,
                                       bool agreed)
{
    return cluster_agent(task, CALL(.call = {.operation = MU__AGENT_PREEMPTION,
                                             .timeout_ms = 1000},
                                    .version = round, .number = agreed));
}

/* The largest step that anybody has reached is 7: all stop at 8, and only there. */
static void test_preemption(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 2, .servers = 1);
    struct cluster_call *call;

    (void)state;
    assert_false(stops_at(cluster->workers[0], 3));
    assert_false(stops_at(cluster->workers[1], 7));
    assert_false(stops_at(cluster->chief, 5));
    call = cluster_agent(cluster->workers[0],
                         CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                              .name = "maintenance", .version = 5000));
    assert_int_equal(cluster_wait(call), 0);
    call = wait_round(cluster->servers[0], 0, true);
    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.agent.preemption.task, "/job:worker/task:0");
    assert_string_equal(call->of.agent.preemption.reason, "maintenance");
    assert_int_equal(call->of.agent.preemption.step, 8);
    assert_int_equal(call->of.agent.preemption.round, 1);
    run_for(cluster, 20);
    assert_false(stops_at(cluster->workers[0], 7));
    assert_true(stops_at(cluster->workers[0], 8));
    assert_true(stops_at(cluster->workers[1], 8));
    assert_false(stops_at(cluster->chief, 9));
    assert_int_equal(atomic_load(&cluster->chief->member.agent.stop), 8);
    assert_int_equal(cluster_wait(wait_round(cluster->chief, 1, false)), -MU_EDEADLINE);

    /* Another round, later. */
    assert_false(stops_at(cluster->workers[1], 20));
    call = cluster_agent(cluster->chief,
                         CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                              .name = "", .version = 5000));
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(cluster_wait(wait_round(cluster->workers[1], 1, true)), 0);
    assert_true(stops_at(cluster->workers[1], 21));
    end(cluster);
}

/* It was asked while it left: nobody would tell it what came of that. */
static void test_preemption_of_one_that_left(void **state)
{
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    const struct mu__preempt_ask round = {.round = 1};
    struct cluster *cluster = SERVICE(.workers = 1);

    (void)state;
    expect_done(ask(cluster->chief, MU__AGENT_LEAVE, 1000), 0, 0);
    forge(cluster->chief, service, MU__AGENT, MU__PREEMPT_ASK, &round, sizeof round);
    run_for(cluster, 100);
    assert_int_equal(atomic_load(&cluster->chief->member.agent.gate), MU__GATE_OPEN);
    assert_false(stops_at(cluster->chief, 1));
    end(cluster);
}

/* A step that is begun while the tasks agree waits, and is the one to stop at when it is
 * one more than the largest. */
static void test_preemption_waits(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;

    (void)state;
    assert_false(stops_at(cluster->workers[0], 4));
    (void)cluster_agent(cluster->chief,
                        CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                             .name = ""));
    run_for(cluster, 15);
    call = reach(cluster->workers[0], 5);
    run_for(cluster, 1);
    assert_false(call->done);
    expect_done(call, 0, 14);
    assert_int_equal(call->of.agent.number, 1);
    end(cluster);
}

/* ---- Several hosts, and what nobody should say ---- */

/* Of two that say that they lead, the one with the higher epoch is followed. */
static void test_highest_epoch(void **state)
{
    struct cluster *cluster =
        begin(&(struct cluster_options){.hosts = "chief:0,worker:1", .workers = 2});
    const struct mu__service_here here = {.leads = true, .epoch = 9, .store = 77};
    const char *trace;

    (void)state;
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    forge(cluster->workers[1], (mu__pid){MU__NODE_SELF, MU__COORDINATION}, MU__AGENT,
          MU__SERVICE_HERE, &here, sizeof here);
    run_for(cluster, 50);
    trace = sim_trace(cluster->sim);
    assert_non_null(strstr(trace, "registered with /job:worker/task:1"));
    assert_null(strstr(trace, "registered with /job:chief/task:0"));
    end(cluster);
}

/* What the service says of a former session, in which it may not have known this task
 * any more, is no answer: all is asked again. */
static void test_answers_of_a_former_session(void **state)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    struct cluster_call *get = key_call(cluster->chief, MU_KV_GET, "a", -1);
    struct cluster_call *barrier = meet(cluster->chief, "b", NULL, 1, -1);
    const struct mu__task_heard heard = {.epoch = 1, .code = MU_EUNAVAILABLE};

    (void)state;
    run_for(cluster, 20);
    forge(cluster->chief, service, MU__AGENT, MU__TASK_HEARD, &heard, sizeof heard);
    for (uint64_t token = 1; token < 32; token++) {
        const struct mu__key_done done = {.token = token, .code = MU_EPRECONDITION};
        const struct mu__barrier_passed passed = {.token = token,
                                                  .code = MU_EPRECONDITION};

        forge(cluster->chief, service, MU__AGENT, MU__KEY_DONE, &done, sizeof done);
        forge(cluster->chief, service, MU__AGENT, MU__BARRIER_PASSED, &passed,
              sizeof passed);
    }
    run_for(cluster, 20);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_false(get->done);
    assert_false(barrier->done);
    assert_int_equal(cluster_wait(put(cluster->workers[0], "a", "1", 0, -1)), 0);
    assert_int_equal(cluster_wait(meet(cluster->workers[0], "b", NULL, 1, -1)), 0);
    assert_int_equal(cluster_wait(get), 0);
    assert_int_equal(cluster_wait(barrier), 0);
    end(cluster);
}

/* From the host, under tokens of other questions, and of none; and from others. */
static void test_wrong_answers(void **state)
{
    static const uint16_t kinds[] = {
        MU__TASKS_ANSWER, MU__BARRIER_PASSED, MU__KEY_LISTED, MU__KEY_EVENT};
    struct cluster *cluster = SERVICE(.workers = 1);
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    const mu__pid stranger = {99, MU__COORDINATION};
    struct cluster_call *get = key_call(cluster->chief, MU_KV_GET, "a", -1);
    struct cluster_call *barrier = meet(cluster->chief, "b", NULL, 1, -1);
    const struct mu__preempt_stop stop = {.round = 1, .step = 4};
    const struct mu__preempt_ask round = {.round = 1};
    const struct mu__task_error error = {.code = MU_EINTERNAL};
    struct {
        uint64_t token;
        uint64_t rest[16];
    } body = {0};

    (void)state;
    run_for(cluster, 20);
    for (body.token = 0; body.token < 32; body.token++) {
        const struct mu__key_done done = {.token = body.token};

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (kinds[i] != MU__BARRIER_PASSED)
                forge(cluster->chief, service, MU__AGENT, kinds[i], &body, sizeof body);
        forge(cluster->chief, stranger, MU__AGENT, MU__BARRIER_PASSED, &body,
              sizeof body);
        forge(cluster->chief, stranger, MU__AGENT, MU__KEY_DONE, &done, sizeof done);
    }
    forge(cluster->chief, service, MU__AGENT, MU__PREEMPT_STOP, &stop, sizeof stop);
    forge(cluster->chief, stranger, MU__AGENT, MU__PREEMPT_ASK, &round, sizeof round);
    forge(cluster->chief, stranger, MU__AGENT, MU__TASK_ERROR, &error, sizeof error);
    forge(cluster->chief, stranger, MU__AGENT, MU__SERVICE_HERE, &body, sizeof body);
    run_for(cluster, 100);
    assert_false(get->done);
    assert_false(barrier->done);
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(atomic_load(&cluster->chief->member.agent.gate), MU__GATE_OPEN);
    assert_int_equal(cluster_wait(put(cluster->workers[0], "a", "1", 0, -1)), 0);
    assert_int_equal(cluster_wait(meet(cluster->workers[0], "b", NULL, 1, -1)), 0);
    assert_int_equal(cluster_wait(get), 0);
    assert_int_equal(cluster_wait(barrier), 0);
    end(cluster);
}

/* What takes more than may be on its way is sent bit by bit; and there is a most. */
static void test_bounds(void **state)
{
    enum { LARGE = 1 << 20, MANY = 40 };
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[MANY];
    struct cluster_call *refused = NULL;
    char *value = calloc(1, LARGE + 1);
    unsigned count = 0;

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    assert_non_null(value);
    memset(value, 'x', LARGE);
    for (unsigned i = 0; i < MANY; i++)
        calls[i] = put(cluster->workers[0], "large", value, MU_KV_OVERWRITE, -1);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(cluster_wait(calls[i]), 0);
        assert_int_equal(calls[i]->of.key.revision, i + 1);
    }
    while (refused == NULL) {
        struct cluster_call *call = key_call(cluster->chief, MU_KV_GET, "never", 60000);

        if (call->done)
            refused = call;
        else
            count++;
    }
    assert_int_equal(count, MU__KEY_REQUESTS_MAX);
    assert_int_equal(refused->of.call.code, -MU_EAGAIN);
    run_for(cluster, 61000);
    assert_int_equal(cluster_wait(put(cluster->chief, "a", "1", 0, -1)), 0);
    free(value);
    end(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody_registers),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_get_waits),
        cmocka_unit_test(test_many_in_order),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_of_bytes),
        cmocka_unit_test(test_no_host_yet),
        cmocka_unit_test(test_limit_of_a_change),
        cmocka_unit_test(test_store_lost_unused),
        cmocka_unit_test(test_store_lost),
        cmocka_unit_test(test_set_error),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_client_dies),
        cmocka_unit_test(test_must_be_reset),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_leave_in_error),
        cmocka_unit_test(test_leave_without_others),
        cmocka_unit_test(test_barrier_of_a_paused_host),
        cmocka_unit_test(test_clean_end),
        cmocka_unit_test(test_end_without_word),
        cmocka_unit_test(test_restart_while_others_register),
        cmocka_unit_test(test_nobody_hosts),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_barrier_restarted),
        cmocka_unit_test(test_barrier_after_reset),
        cmocka_unit_test(test_barrier_of_threads),
        cmocka_unit_test(test_too_few_threads),
        cmocka_unit_test(test_barrier_alone),
        cmocka_unit_test(test_many_barriers),
        cmocka_unit_test(test_barrier_cancel),
        cmocka_unit_test(test_applied_once),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_watch_goes_on),
        cmocka_unit_test(test_watch_of_one_in_error),
        cmocka_unit_test(test_watch_of_another_store),
        cmocka_unit_test(test_watch_of_the_lost),
        cmocka_unit_test(test_watch_overflow),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_preemption_waits),
        cmocka_unit_test(test_preemption_of_one_that_left),
        cmocka_unit_test(test_highest_epoch),
        cmocka_unit_test(test_answers_of_a_former_session),
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
