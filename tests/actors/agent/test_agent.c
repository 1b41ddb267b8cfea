/* The agent of the coordination service, in whole clusters with the real service: what
 * programs are told, and when. */
#include "tests/actors/agent/agent_story.h"

/* ---- Registering ---- */

TEST(test_everybody_registers)
{
    struct cluster *cluster = SERVICE(.workers = 2, .servers = 1, .clients = 1);

    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->servers[0]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->clients[0]), MU_AGENT_CONNECTED);
    expect_done(ask(cluster->workers[0], MU__AGENT_REGISTER, 0), 0, 0);
    end(cluster);
}

/* ---- Keys ---- */

TEST(test_keys)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_call *call;

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

TEST(test_get_waits)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_call *call = key_call(cluster->workers[0], MU_KV_GET, "late", -1);

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
TEST(test_many_in_order)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[50];
    char value[16];

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

TEST(test_list)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;

    assert_int_equal(cluster_wait(put(cluster->chief, "d/b", "2", 0, -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "d/a", "1", 0, -1)), 0);
    assert_int_equal(cluster_wait(put(cluster->chief, "e", "3", 0, -1)), 0);
    call = cluster_agent(cluster->workers[0],
                         CALL(.call = {.operation = MU__AGENT_LIST, .timeout_ms = 1000},
                              .name = "d"));
    expect_done(call, 0, 20);
    assert_int_equal(mu_value_count(call->of.agent.content), 2);
    expect_text(mu_value_at(call->of.agent.content, 0), "key", "d/a");
    expect_text(mu_value_at(call->of.agent.content, 1), "key", "d/b");
    mu_value_free(call->of.agent.content);
    end(cluster);
}

/* Keys are any bytes but for control characters: what is no text is a key, too. */
TEST(test_list_of_bytes)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;
    const mu_value *key;
    const void *data = NULL;
    size_t size = 0;

    assert_int_equal(cluster_wait(put(cluster->chief, "d/\xff", "1", 0, -1)), 0);
    call = cluster_agent(cluster->workers[0],
                         CALL(.call = {.operation = MU__AGENT_LIST, .timeout_ms = 1000},
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

TEST(test_no_host_yet)
{
    struct cluster *cluster =
        cluster_new(1, &(struct cluster_options){.hosts = "chief:0", .workers = 1});
    struct cluster_call *call;

    cluster_start(cluster->workers[0]);
    call = put(cluster->workers[0], "a", "1", 0, 300);
    expect_done(call, -MU_EDEADLINE, 300);
    assert_string_equal(
        call->of.call.error.message,
        "key \"a\" was not changed within 300 ms: /job:chief/task:0 at tcp://chief-0:1, "
        "which hosts the service, was never connected: nothing has answered yet");
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
TEST(test_limit_of_a_change)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;

    call = put(cluster->workers[0], "a", "1", 0, 400);
    run_for(cluster, 5);
    sim_crash(cluster->chief->node);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "key \"a\" was not changed within 400 ms: /job:chief/task:0, which hosts the "
        "service, is not connected since 385 ms: its connection broke: closed by the "
        "peer; it may have been applied");
    cluster_start(cluster->chief);
    end(cluster);
}

/* One that used nothing is registered again, and nobody is told. */
TEST(test_store_lost_unused)
{
    struct cluster *cluster = SERVICE(.workers = 1);

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

TEST(test_store_lost)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *call;

    told_errors = 0;
    expect_done(cluster_agent(worker, CALL(.call = {.operation = MU__AGENT_ON_ERROR},
                                           .on_error = note_error)),
                0, 0);
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

TEST(test_set_error)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *get = key_call(worker, MU_KV_GET, "a", -1);
    struct cluster_call *call;

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
TEST(test_report)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .coordination = {.recoverable = "none"});
    struct cluster_call *call;

    expect_done(fail_with(cluster->workers[0], MU__AGENT_REPORT, -MU_EINTERNAL,
                          "no more"),
                0, 20);
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
TEST(test_client_dies)
{
    struct cluster *cluster =
        SERVICE(.workers = 1, .clients = 1, .coordination = {.recoverable = "none"});

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
TEST(test_must_be_reset)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .coordination = {.recoverable = "chief"});
    struct cluster_task *worker = cluster->workers[0];

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

TEST(test_leave)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *get = key_call(worker, MU_KV_GET, "a", -1);

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
TEST(test_leave_in_error)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];

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
TEST(test_leave_without_others)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .coordination = {.recoverable = "none", .leave_ms = 1000});
    struct cluster_task *worker = cluster->workers[0];

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
    return cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_BARRIER, .timeout_ms = timeout_ms},
                   .name = "b", .tasks = "worker:0-1"));
}

/* The host stands still for longer than the barrier's limit: nobody gives up alone, and
 * the pause counts for nobody. */
TEST(test_barrier_of_a_paused_host)
{
    static const uint64_t comes_ms[] = {3500, 9000};

    for (size_t i = 0; i < 2; i++) {
        struct cluster *cluster =
            SERVICE(.workers = 2, .silence_ms = 8000,
                    .coordination = {
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
TEST(test_clean_end)
{
    static const char *const recoverable[] = {"all", "none", "ps"};

    for (size_t i = 0; i < 3; i++) {
        struct cluster *cluster =
            SERVICE(.workers = 3, .coordination = {.recoverable = recoverable[i]});
        struct cluster_call *call;

        mu__member_leave(&cluster->workers[0]->member, "it is closing");
        run_for(cluster, 100);
        sim_exit(cluster->workers[0]->node);
        call = cluster_agent(
            cluster->workers[1],
            CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                 .name = ""));
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
TEST(test_end_without_word)
{
    struct cluster *cluster =
        SERVICE(.workers = 2, .coordination = {.recoverable = "none"});

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
TEST(test_restart_while_others_register)
{
    struct cluster *cluster =
        MAKE(.workers = 3, .hosts = "chief:0", .coordination = {.recoverable = "none"});
    struct cluster_call *calls[4];

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

TEST(test_nobody_hosts)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    static const char words[] =
        "there is no coordination service: option service_hosts names no task that may "
        "host it";

    assert_int_equal(state_of(cluster->chief), MU_AGENT_UNINITIALIZED);
    for (int i = 0; i < MU__AGENT_OPERATIONS_COUNT; i++)
        if (i != MU__AGENT_ON_ERROR && i != MU__AGENT_STATE && i != MU__AGENT_WATCH_CLOSE)
            expect_failed(ask(cluster->chief, i, -1), -MU_EPRECONDITION, words);
    expect_failed(put(cluster->chief, "a", "1", 0, -1), -MU_EPRECONDITION, words);
    end(cluster);
}

/* What a node knows of the service, also before it is there and in error. */
TEST(test_service)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call = ask(cluster->workers[0], MU__AGENT_SERVICE, -1);
    mu_value *service;
    int64_t epoch = 0;
    const char *task;
    size_t size;

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

TEST_PROGRAM()
