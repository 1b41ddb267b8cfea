/* Watches by agents; several hosts, and answers that nobody should give. */
#include "tests/actors/agent/agent_story.h"

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
    return cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_WATCH_NEXT, .timeout_ms = timeout_ms},
                   .watch = of));
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
                                         .watch = of)),
                0, 0);
    mu__agent_watch_unref(of);
}

TEST(test_watch)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;
    struct cluster_call *call;

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
TEST(test_watch_goes_on)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;

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
                  "heard 73 ms ago");
    close_watch(worker, of);
    end(cluster);
}

/* Its task was in error when it was begun again. */
TEST(test_watch_of_one_in_error)
{
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    struct cluster *cluster = SERVICE(.workers = 1);
    struct mu__agent_watch *of = watch(cluster->chief, "d", true);
    struct mu__key_event refused = {.code = MU_EABORTED};

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
TEST(test_watch_of_another_store)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;

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

/* A task that was lost and does not know it: what happens before it is registered again
 * is told then. */
TEST(test_watch_of_the_lost)
{
    struct cluster *cluster = SERVICE(.workers = 2);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of = watch(worker, "a", false);
    const mu__pid service = {agent_of(worker)->hosts.followed->node, MU__COORDINATION};
    const struct mu__task_heard heard = {.epoch = agent_of(worker)->hosts.epoch,
                                         .code = MU_EUNAVAILABLE};

    expect_event(worker, of, "CURRENT");
    forge(worker, service, MU__AGENT, MU__TASK_HEARD, &heard, sizeof heard);
    assert_int_equal(cluster_wait(put(cluster->chief, "a", "1", 0, -1)), 0);
    expect_event(worker, of, "SET a 1");
    close_watch(worker, of);
    end(cluster);
}

/* More keys than are remembered: the watch says so once and begins anew. */
TEST(test_watch_overflow)
{
    enum { MANY = (1 << 16) + 200 };
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_watch *of;
    struct cluster_call *call;
    char key[16];

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

/* ---- Several hosts, and what nobody should say ---- */

/* Of two that say that they lead, the one with the higher epoch is followed. */
TEST(test_highest_epoch)
{
    struct cluster *cluster =
        begin(&(struct cluster_options){.hosts = "chief:0,worker:1", .workers = 2});
    const struct mu__service_here here = {.leads = true, .epoch = 9, .store = 77};
    const char *trace;

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
TEST(test_answers_of_a_former_session)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    struct cluster_call *get = key_call(cluster->chief, MU_KV_GET, "a", -1);
    struct cluster_call *barrier = meet(cluster->chief, "b", NULL, 1, -1);
    const struct mu__task_heard heard = {.epoch = 1, .code = MU_EUNAVAILABLE};

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
TEST(test_wrong_answers)
{
    static const uint16_t kinds[] = {MU__TASKS_ANSWER, MU__BARRIER_PASSED, MU__KEY_LISTED,
                                     MU__KEY_EVENT};
    struct cluster *cluster = SERVICE(.workers = 1);
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    const mu__pid stranger = {99, MU__COORDINATION};
    struct cluster_call *get = key_call(cluster->chief, MU_KV_GET, "a", -1);
    struct cluster_call *barrier = meet(cluster->chief, "b", NULL, 1, -1);
    const struct mu__preempt_stop stop = {.round = 1, .step = 4};
    const struct mu__preempt_request round = {.round = 1};
    const struct mu__task_error error = {.code = MU_EINTERNAL};
    struct {
        uint64_t token;
        uint64_t rest[16];
    } body = {0};

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
    forge(cluster->chief, stranger, MU__AGENT, MU__PREEMPT_REQUEST, &round, sizeof round);
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
TEST(test_bounds)
{
    enum { LARGE = 1 << 20, MANY = 40 };
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[MANY];
    struct cluster_call *refused = NULL;
    char *value = calloc(1, LARGE + 1);
    unsigned count = 0;

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

TEST_PROGRAM()
