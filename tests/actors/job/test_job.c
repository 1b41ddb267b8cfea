/* How the job ends for one task: it is stopped by another one. */
#include "tests/support/story.h"

static struct cluster_call *stop_with(struct cluster_task *task, const char *type,
                                      uint32_t index, const char *reason,
                                      int64_t timeout_ms)
{
    struct mu__job_call wanted = {
        .call.operation = MU__JOB_STOP,
        .call.timeout_ms = timeout_ms,
        .message = reason,
        .index = index,
    };

    (void)snprintf(wanted.type, sizeof wanted.type, "%s", type);
    return cluster_job_ask(task, &wanted);
}

static struct cluster_call *stop(struct cluster_task *task, const char *type,
                                 uint32_t index)
{
    return stop_with(task, type, index, "too many", -1);
}

static struct cluster_call *wait_for(struct cluster_task *task)
{
    return cluster_job(task, MU__JOB_WAIT, 0, NULL, -1);
}

static void expect_error(struct cluster_call *call, int code, const char *words)
{
    assert_int_equal(cluster_wait(call), code);
    assert_string_equal(call->of.call.error.message, words);
}

/* ---- Who is stopped ---- */

/* A parameter server has nothing to finish. */
TEST(test_server)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 2);
    struct cluster_call *wait = wait_for(cluster->servers[1]);
    struct cluster_call *other = wait_for(cluster->servers[0]);

    sim_trace_level(cluster->sim, MU__LOG_INFO);
    assert_int_equal(cluster_wait(stop(cluster->chief, "ps", 1)), 0);
    assert_int_equal(sim_now_ms(cluster->sim), 180);
    assert_true(wait->done && !other->done);
    assert_int_equal(wait->done_ms, 170);
    assert_int_equal(wait->of.call.code, 0);
    assert_int_equal(wait->of.call.error.code, 0);
    expect_trace(cluster, "[  170] ps/1 job: stopped by /job:chief/task:0: too many\n");

    /* Who waits later need not wait, and to stop it again is fine. */
    assert_int_equal(cluster_wait(wait_for(cluster->servers[1])), 0);
    assert_int_equal(cluster_wait(stop(cluster->chief, "ps", 1)), 0);
    (void)cluster_wait(cluster_job(cluster->chief, MU__JOB_END, 0, NULL, 10));
    end(cluster);
}

/* A worker finishes what it has, and gets nothing more; the rest runs elsewhere. */
TEST(test_worker_drains)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_call *wait = wait_for(cluster->workers[0]);
    struct cluster_closure *closures[6];
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 6, closures);
    run_until(cluster, 500);
    call = stop(cluster->chief, "worker", 0);
    run_until(cluster, 1100);
    assert_false(wait->done || call->done);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 6);
    assert_true(wait->done && call->done);
    assert_int_equal(call->of.call.code, 0);

    /* Its function ends at 1170, the chief knows at 1180, and says so. */
    assert_int_equal(wait->done_ms, 1190);
    assert_int_equal(cluster->runs_count, 6);

    /* The other one runs five, each 1000 ms and 20 ms to say so and be given the next. */
    assert_int_equal(sim_now_ms(cluster->sim), 170 + 5 * 1000 + 4 * 20 + 10);
    end(cluster);
}

/* A client has no link to workers: the chief passes its wish on. */
TEST(test_client_stops_worker)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 1);
    struct cluster_call *wait = wait_for(cluster->workers[1]);

    assert_int_equal(cluster_wait(stop(cluster->clients[0], "worker", 1)), 0);
    assert_true(wait->done);
    end(cluster);
}

/* The asking thread's limit is for the functions, too: half of it. */
TEST(test_stuck_function)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_call *wait = wait_for(cluster->workers[0]);
    struct cluster_closure *closure;

    set_work_ms(cluster, 5000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 1, &closure);
    run_until(cluster, 300);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    assert_int_equal(cluster_wait(stop_with(cluster->chief, "worker", 0, "", 1000)), 0);
    assert_int_equal(wait->done_ms, 810);
    expect_trace(
        cluster,
        "[  310] worker/0 job: /job:chief/task:0 requests this task to stop: it finishes "
        "its work\n"
        "[  320] chief/0 supervisor: /job:worker/task:0 finishes 1 closure (1 running, 0 "
        "sent) and leaves\n"
        "[  810] worker/0 job: stopped by /job:chief/task:0 (its work was not "
        "finished)\n");
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* Without a chief there is nobody for whom to finish anything. */
TEST(test_chief_dies_meanwhile)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1, .clients = 1);
    struct cluster_call *wait = wait_for(cluster->workers[0]);
    struct cluster_closure *closure;

    set_work_ms(cluster, 5000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 1, &closure);
    run_until(cluster, 300);
    (void)stop(cluster->clients[0], "worker", 0);
    run_until(cluster, 400);
    assert_false(wait->done);
    sim_crash(cluster->chief->node);
    run_until(cluster, 450);
    assert_true(wait->done);
    assert_int_equal(wait->of.call.code, 0);
    cluster_free(cluster);
}

/* ---- Who may ---- */

TEST(test_others_may_not)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 2);
    struct cluster_call *wait =
        cluster_job(cluster->servers[0], MU__JOB_WAIT, 0, NULL, 1000);

    expect_error(stop(cluster->workers[0], "ps", 0), -MU_EPERMISSION,
                 "only the chief and clients may stop a task");
    expect_error(stop(cluster->servers[1], "worker", 0), -MU_EPERMISSION,
                 "only the chief and clients may stop a task");
    assert_int_equal(cluster_wait(wait), -MU_EDEADLINE);
    end(cluster);
}

TEST(test_not_the_chief)
{
    struct cluster *cluster = BEGIN(.clients = 1);

    expect_error(stop(cluster->clients[0], "chief", 0), -MU_EPRECONDITION,
                 "the chief is not stopped: it ends the job");
    expect_error(stop(cluster->chief, "chief", 0), -MU_EINVALID,
                 "a task does not stop itself by a request: use mu_server_stop");
    expect_error(stop(cluster->chief, "client", 0), -MU_EINVALID,
                 "a client serves nobody, so it cannot be stopped");
    end(cluster);
}

/* Bytes from the network: who asks for another task than one, or asks who is not the
 * chief for others. */
TEST(test_forged)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1, .clients = 1);
    static const char *const tasks[] = {"worker", "worker:0-3", "ps:0,worker:1",
                                        "x:1",    "\x01\xff",   "worker:99999999"};
    struct mu__server_stop body = {.token = 7};
    struct mu__server_stopped none = {.token = 1};
    struct cluster_call *wait = wait_for(cluster->workers[0]);

    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        body.task = mu__view_str(tasks[i]);
        for (uint32_t node = 0; node < 6; node++)
            forge(cluster->chief, (mu__pid){node, MU__JOB}, MU__JOB, MU__SERVER_STOP,
                  &body, sizeof body);
    }
    body.task = mu__view_str("worker:0");
    for (uint32_t node = 0; node < 6; node++) {
        forge(cluster->servers[0], (mu__pid){node, MU__JOB}, MU__JOB, MU__SERVER_STOP,
              &body, sizeof body);
        forge(cluster->servers[0], (mu__pid){node, MU__JOB}, MU__JOB, MU__SERVER_STOPPED,
              &none, sizeof none);
    }
    run_for(cluster, 500);
    assert_false(wait->done);
    assert_int_equal(cluster_wait(stop(cluster->clients[0], "ps", 0)), 0);
    assert_int_equal(cluster_wait(stop(cluster->clients[0], "worker", 0)), 0);
    end(cluster);
}

/* What a reason has in it does not make lines of a log. */
TEST(test_reason_is_one_line)
{
    struct cluster *cluster = BEGIN(.servers = 1);

    sim_trace_level(cluster->sim, MU__LOG_INFO);
    assert_int_equal(
        cluster_wait(stop_with(cluster->chief, "ps", 0, "a\nb\x1b[2J\x7f", -1)), 0);
    expect_trace(cluster, "[  170] ps/0 job: stopped by /job:chief/task:0: a b [2J \n");
    end(cluster);
}

/* ---- Who is not there ---- */

/* The one to be stopped comes later. */
TEST(test_comes_later)
{
    struct cluster *cluster = MAKE(.workers = 1, .servers = 1, .clients = 1);
    struct cluster_call *calls[3];

    cluster_start(cluster->chief);
    cluster_start(cluster->clients[0]);
    sim_run_until(cluster->sim, 1000);
    calls[0] = stop(cluster->chief, "worker", 0);
    calls[1] = stop(cluster->clients[0], "worker", 0);
    calls[2] = stop(cluster->clients[0], "ps", 0);
    run_for(cluster, 5000);
    for (size_t i = 0; i < 3; i++)
        assert_false(calls[i]->done);
    cluster_start_all(cluster);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cluster_wait(calls[i]), 0);
    assert_int_equal(cluster_wait(wait_for(cluster->workers[0])), 0);
    assert_int_equal(cluster_wait(wait_for(cluster->servers[0])), 0);
    end(cluster);
}

/* The answer of the chief leaves time for its way back. */
static void expect_answer_after(struct cluster_task *client, uint64_t timeout_ms,
                                uint64_t after_ms)
{
    uint64_t began_ms = sim_now_ms(client->cluster->sim);
    struct cluster_call *call = stop_with(client, "worker", 0, NULL, (int64_t)timeout_ms);

    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_non_null(strstr(call->of.call.error.message, "not connected to the chief"));
    assert_in_range(call->done_ms - began_ms, after_ms, after_ms + 100);
}

TEST(test_limits)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];

    sim_crash(cluster->workers[0]->node);
    sim_crash(cluster->servers[0]->node);
    run_for(cluster, 100);
    expect_error(stop_with(cluster->chief, "worker", 0, NULL, 400), -MU_EDEADLINE,
                 "/job:worker/task:0 was not stopped within 400 ms: it is not connected");

    /* The chief knows more than the client, and says so before the client gives up. */
    expect_error(
        stop_with(client, "worker", 0, NULL, 400), -MU_EDEADLINE,
        "/job:worker/task:0 was not stopped within 400 ms: it is not connected to the "
        "chief");
    expect_answer_after(client, 1000, 500);
    expect_answer_after(client, 8000, 7000);
    expect_error(stop_with(client, "worker", 7, NULL, 10), -MU_EDEADLINE,
                 "/job:worker/task:7 was not stopped within 10 ms: /job:chief/task:0 at "
                 "tcp://chief-0:1 got the request to stop it, and has not answered");
    sim_crash(cluster->chief->node);
    run_for(cluster, 100);
    expect_error(
        stop_with(client, "ps", 0, NULL, 400), -MU_EDEADLINE,
        "/job:ps/task:0 was not stopped within 400 ms: neither it nor /job:chief/task:0 "
        "at tcp://chief-0:1 is connected: its connection broke: closed by the peer");
    cluster_free(cluster);
}

/* Without a limit a task that dies after it was asked is not waited for for ever; one
 * that is restarted is asked again. */
TEST(test_dies_when_asked)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 1);
    struct cluster_closure *closures[2];
    struct cluster_call *calls[2];

    set_work_ms(cluster, 100000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_for(cluster, 100);
    for (uint32_t i = 0; i < 2; i++)
        calls[i] = stop(cluster->clients[0], "worker", i);
    run_for(cluster, 100);
    sim_crash(cluster->workers[0]->node);
    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    set_work_ms(cluster, 10);
    expect_error(calls[0], -MU_EUNAVAILABLE,
                 "/job:worker/task:0 got the request to stop, has not answered, and is "
                 "no longer connected to the chief");
    assert_int_equal(cluster_wait(calls[1]), 0);
    cluster_free(cluster);
}

/* A stop that was given up by who asked for it does not come true later. */
TEST(test_given_up)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2);
    struct cluster_call *wait;

    sim_crash(cluster->workers[0]->node);
    run_for(cluster, 100);
    assert_int_equal(cluster_wait(stop_with(cluster->clients[0], "worker", 0, NULL, 100)),
                     -MU_EDEADLINE);
    (void)stop(cluster->clients[1], "worker", 0);
    run_for(cluster, 100);
    sim_crash(cluster->clients[1]->node);
    run_for(cluster, 100);
    cluster_start(cluster->workers[0]);
    wait = cluster_job(cluster->workers[0], MU__JOB_WAIT, 0, NULL, 5000);
    assert_int_equal(cluster_wait(wait), -MU_EDEADLINE);
    end(cluster);
}

/* More than the chief passes on, and more than a task tells that it stops. */
TEST(test_bounds)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_call *calls[100];
    struct cluster_closure *closure;
    unsigned refused = 0;

    for (uint32_t i = 0; i < 100; i++) {
        calls[i] = stop(cluster->clients[0], "worker", 1 + i);
        run_for(cluster, 1); /* a mailbox may be small */
    }
    run_for(cluster, 100);
    for (size_t i = 0; i < 100; i++)
        refused += calls[i]->done && calls[i]->of.call.code == -MU_EEXHAUSTED;
    assert_int_equal(refused, 36);

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 1, &closure);
    run_for(cluster, 100);
    for (size_t i = 0; i < 20; i++)
        calls[i] = stop(cluster->chief, "worker", 0);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(cluster_wait(calls[i]), i < 16 ? 0 : -MU_EEXHAUSTED);
    cluster_free(cluster);
}

/* ---- The job's end ---- */

/* The wait's limit says who has not ended the job. */
TEST(test_wait_limits)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1);

    expect_error(
        cluster_job(cluster->chief, MU__JOB_WAIT, 0, NULL, 10), -MU_EDEADLINE,
        "the job is not done after 10 ms: this task, /job:chief/task:0, has not ended "
        "it");
    sim_crash(cluster->chief->node);
    run_for(cluster, 100);
    expect_error(
        cluster_job(cluster->servers[0], MU__JOB_WAIT, 0, NULL, 10), -MU_EDEADLINE,
        "the job is not done after 10 ms: /job:chief/task:0 at tcp://chief-0:1 is not "
        "connected: its connection broke: closed by the peer");
    cluster_free(cluster);
}

/* Who waits for the end, and reaches neither the chief nor the service for orphan_ms,
 * takes the job to have ended. A chief that comes back in time is waited for. */
TEST(test_orphan)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node.orphan_ms = 60000);
    struct cluster_call *wait = wait_for(cluster->workers[0]);

    run_for(cluster, 100000);
    sim_crash(cluster->chief->node);
    run_for(cluster, 50000);
    cluster_start(cluster->chief);
    run_for(cluster, 100000);
    assert_false(wait->done);
    sim_crash(cluster->chief->node);
    run_for(cluster, 59000);
    assert_false(wait->done);
    run_for(cluster, 2000);
    assert_true(wait->done);
    assert_int_equal(wait->of.call.code, 0);
    assert_int_equal(wait->of.call.error.code, -MU_EUNAVAILABLE);
    assert_non_null(strstr(wait->of.call.error.message,
                           "for 60000 ms there has been no "
                           "link to /job:chief/task:0 at tcp://chief-0:1, nor to a host "
                           "of the coordination service: "));
    cluster_free(cluster);
}

/* In a cluster without a chief worker 0 ends the job, for all. */
TEST(test_without_chief)
{
    static const struct {
        const char *type;
        uint32_t index;
        const char *name;
    } tasks[] = {
        {"worker", 0, "w0"},
        {"worker", 1, "w1"},
        {"ps", 0, "p0"},
        {"evaluator", 0, "e0"},
    };
    struct cluster *cluster = MAKE(.workers = 0);
    mu_cluster *spec = mu_cluster_new();
    struct cluster_task *started[4];
    struct cluster_call *waits[4];
    struct cluster_call *ending;

    for (size_t i = 0; i < 4; i++) {
        started[i] = cluster_add(cluster, tasks[i].type, tasks[i].index, tasks[i].name);
        started[i]->spec = spec;
        assert_int_equal(mu_cluster_add(spec, tasks[i].type, (int)tasks[i].index,
                                        started[i]->address, NULL),
                         0);
    }
    for (size_t i = 0; i < 4; i++)
        cluster_start(started[i]);
    sim_run_until(cluster->sim, 500);
    assert_int_equal(cluster_links(started[0]), 3);
    expect_error(
        cluster_job(started[2], MU__JOB_WAIT, 0, NULL, 10), -MU_EDEADLINE,
        "the job is not done after 10 ms: /job:worker/task:0 at tcp://w0:1 has not ended "
        "it");

    /* Worker 1's word is not worker 0's. */
    for (size_t i = 1; i < 4; i++)
        waits[i] = wait_for(started[i]);
    (void)cluster_job(started[1], MU__JOB_END, 0, NULL, 100);
    run_for(cluster, 200);
    assert_false(waits[2]->done || waits[3]->done);
    assert_int_equal(cluster_wait(stop(started[0], "ps", 0)), 0);
    assert_true(waits[2]->done);
    ending = cluster_job(started[0], MU__JOB_END, -MU_EDATALOSS, "bad", 100);
    assert_int_equal(cluster_wait(ending), -MU_EDEADLINE);
    assert_int_equal(waits[3]->of.call.error.code, -MU_EDATALOSS);
    cluster_free(cluster);
    mu_cluster_free(spec);
}

/* ---- Work under way ---- */

/* A worker that leaves as the job is done is not lost, whatever it runs: that is no
 * warning. Another task's word does not make the job done. */
TEST(test_work_under_way)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[2];
    struct mu__job_done none = {0};

    set_work_ms(cluster, 60000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 500);
    for (uint32_t node = 1; node < 4; node++)
        forge(cluster->chief, (mu__pid){node, MU__JOB}, MU__SUPERVISOR, MU__JOB_DONE,
              &none, sizeof none);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    sim_crash(cluster->workers[0]->node);
    run_until(cluster, 600);
    expect_trace(
        cluster,
        "[  510] chief/0 links: /job:worker/task:0 is lost: its connection broke: "
        "closed by the peer\n"
        "[  510] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure in "
        "flight: it runs again elsewhere\n");
    (void)cluster_job(cluster->chief, MU__JOB_END, 0, NULL, 100);
    run_until(cluster, 700);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 800);
    expect_trace(
        cluster,
        "[  710] chief/0 links: /job:worker/task:1 is lost: its connection broke: "
        "closed by the peer\n"
        "[  710] chief/0 supervisor: /job:worker/task:1 has left as the job is done; 2 "
        "closures had not ended there\n");
    cluster_free(cluster);
}

TEST_PROGRAM()
