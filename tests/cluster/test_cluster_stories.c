/* What a cluster does, told as stories in virtual time: who comes, what is run where, how
 * it ends. A frame takes 10 ms, a dial 20 ms, news of a broken connection 10 ms;
 * heartbeats come every 100 ms, silence of 500 ms is death. */
#include "tests/support/story.h"

/* ---- Coming up ---- */

static void start_one(struct sim *sim, void *arg)
{
    (void)sim;
    cluster_start(arg);
}

/* The chief first, last, in the middle, all at once: tasks start in any order. */
TEST(test_any_order)
{
    static const unsigned gaps_ms[] = {0, 7, 300, 4000};
    struct cluster_closure *closure;

    for (unsigned order = 0; order < 12; order++) {
        struct cluster *cluster =
            MAKE(.workers = 2, .servers = 1, .clients = 1, .evaluator = true);
        unsigned count = cluster->tasks_count;

        for (unsigned i = 0; i < count; i++) {
            unsigned turn = (i + order) % count;
            unsigned which = order < 6 ? turn : count - 1 - turn;

            sim_at(cluster->sim, i * gaps_ms[order % 4], start_one,
                   &cluster->tasks[which]);
        }
        sim_run_until(cluster->sim, count * gaps_ms[order % 4]);
        assert_true(cluster_settle(cluster));
        open_at(cluster->clients[0]);
        closure = cluster_schedule(cluster->clients[0], "square");
        assert_int_equal(join(cluster->clients[0]), 0);
        expect_squares(&closure, 1);
        end(cluster);
    }
}

TEST(test_up)
{
    struct cluster *cluster = MAKE(.workers = 1);

    cluster_start_all(cluster);
    sim_run_until(cluster->sim, 1000);
    expect_trace(
        cluster,
        "[   30] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[   40] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[   40] chief/0 supervisor: /job:worker/task:0 takes closures (1 threads, "
        "window 4)\n");
    end(cluster);
}

/* A task that is missing is named, ever less often. */
TEST(test_missing)
{
    struct cluster *cluster = MAKE(.workers = 1);

    cluster_start(cluster->chief);
    sim_run_until(cluster->sim, 30000);
    expect_trace(cluster,
                 "[ 3000] chief/0 links: waiting for /job:worker/task:0 at "
                 "tcp://worker-0:1 for 3 s (dialling; nothing has answered yet)\n"
                 "[ 6000] chief/0 links: waiting for /job:worker/task:0 at "
                 "tcp://worker-0:1 for 6 s (dialling; nothing has answered yet)\n"
                 "[12000] chief/0 links: waiting for /job:worker/task:0 at "
                 "tcp://worker-0:1 for 12 s (dialling; nothing has answered yet)\n"
                 "[24000] chief/0 links: waiting for /job:worker/task:0 at "
                 "tcp://worker-0:1 for 24 s (dialling; nothing has answered yet)\n");
    end(cluster);
}

/* ---- Running ---- */

TEST(test_run)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[4];

    NEEDS_LONG_TURNS(cluster);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  180] sim note: worker/0 runs square 1\n"
                          "[  180] sim note: worker/1 runs square 0\n"
                          "[  190] sim note: worker/0 runs square 2\n"
                          "[  190] sim note: worker/1 runs square 3\n");
    expect_squares(closures, 4);
    expect_counts(cluster->chief, 4, 0, 0);
    end(cluster);
}

/* Nobody wants the result; an inline function; results that are not ints. */
TEST(test_kinds)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *quick;
    struct cluster_closure *made;
    const void *data;
    size_t size = 0;

    open_at(client);
    cluster_schedule_dropped(client, "square");
    quick = cluster_schedule(client, "quick");
    made = cluster_schedule_value(client, "make", mu_value_int(1000));
    assert_int_equal(join(client), 0);
    expect_squares(&quick, 1);
    assert_int_equal(mu_value_get_bytes(made->future->result, &data, &size), 0);
    assert_int_equal(size, 1000);
    expect_counts(client, 3, 0, 0);
    assert_int_equal(cluster->runs[0], 1);
    end(cluster);
}

/* ---- Handshakes ---- */

TEST(test_other_cluster)
{
    struct cluster *cluster = MAKE(.workers = 1);

    cluster->workers[0]->cluster_name = "other";
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, 1000);
    expect_trace(
        cluster,
        "[   30] worker/0 links: refused /job:chief/task:0 at tcp://chief-0:1: cluster "
        "name \"test\", but /job:worker/task:0 belongs to cluster \"other\"\n"
        "[   40] chief/0 links: /job:worker/task:0: it refused us: cluster name "
        "\"test\", but /job:worker/task:0 belongs to cluster \"other\"\n");
    cluster_free(cluster);
}

/* A trace without the incarnations of processes, which are drawn. The caller's. */
static char *without_incarnations(const char *trace)
{
    char *copy = strdup(trace);
    char *at = copy;

    assert_non_null(copy);
    while ((at = strstr(at, " (incarnation ")) != NULL) {
        const char *past = strchr(at, ')');

        assert_non_null(past);
        memmove(at, past + 1, strlen(past + 1) + 1);
    }
    return copy;
}

/* At worker/0's address answers somebody who takes himself for the chief, and hears of it
 * when he dials what he takes for worker/0. (That he refuses himself, too, is the second
 * line about peers in a second.) */
TEST(test_same_task)
{
    struct cluster *cluster = MAKE(.workers = 1);
    char *trace;

    cluster->workers[0]->type = "chief";
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, 100);
    trace = without_incarnations(sim_trace(cluster->sim));
    assert_string_equal(
        trace,
        "[   30] worker/0 links: refused /job:chief/task:0 at tcp://chief-0:1: task "
        "/job:chief/task:0 is already played by tcp://worker-0:1\n"
        "[   40] chief/0 links: /job:worker/task:0: it refused us: task "
        "/job:chief/task:0 is already played by tcp://worker-0:1\n"
        "[   40] worker/0 links: /job:worker/task:0: it refused us: task "
        "/job:chief/task:0 is already played by tcp://worker-0:1\n");
    free(trace);
    cluster_free(cluster);
}

/* Two processes play worker/0: the later one is told so, until the first has gone. */
TEST(test_two_workers)
{
    struct cluster *cluster = MAKE(.workers = 1, .servers = 1);
    struct cluster_task *twin = cluster_add(cluster, "worker", 0, "twin");
    char *trace;

    cluster_start(cluster->servers[0]);
    cluster_start(cluster->workers[0]);
    sim_run_until(cluster->sim, 1000);
    cluster_start(twin);
    sim_run_until(cluster->sim, 2500);
    trace = without_incarnations(sim_trace(cluster->sim));
    assert_string_equal(
        trace,
        "[   30] ps/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[   40] worker/0 links: /job:ps/task:0 is up at tcp://ps-0:1\n"
        "[ 1030] ps/0 links: refused /job:worker/task:0 at tcp://twin:1: task "
        "/job:worker/task:0 is already played by tcp://worker-0:1\n"
        "[ 1040] twin links: /job:ps/task:0: it refused us: task /job:worker/task:0 is "
        "already played by tcp://worker-0:1\n");
    free(trace);
    sim_crash(cluster->workers[0]->node);
    sim_run_until(cluster->sim, 4000);
    trace = without_incarnations(sim_trace(cluster->sim));
    assert_non_null(strstr(trace, "ps/0 links: /job:worker/task:0 is up at "
                                  "tcp://twin:1"));
    assert_non_null(strstr(trace, "twin links: /job:ps/task:0 is up at tcp://ps-0:1"));
    free(trace);
    assert_int_equal(twin->taken, 0);
    cluster_free(cluster);
}

static void begin_all_but_twins(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (strncmp(cluster->tasks[i].name, "twin", 4) != 0)
            cluster_start(&cluster->tasks[i]);
    run_until(cluster, 500);
}

/* The same at one address: with another bind address it says that of the spec, too. The
 * second process is told where it listens, and is to end after a while; the first one
 * loses nothing. */
TEST(test_two_workers_at_one_address)
{
    struct cluster *cluster = MAKE(.workers = 1, .servers = 1, .hosts = "chief:0");
    struct cluster_task *twin = cluster_add(cluster, "worker", 0, "twin");
    struct cluster_closure *closures[40];
    char *trace;

    begin_all_but_twins(cluster);
    set_work_ms(cluster, 100);
    twin->advertises = "tcp://worker-0:1";
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 40, closures);
    sim_trace_level(cluster->sim, MU__LOG_WARN);
    cluster_start(twin);
    run_until(cluster, 5000);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 40);
    assert_int_equal(retried(cluster->chief), 0);
    assert_int_equal(cluster->workers[0]->taken, 0);
    assert_int_equal(twin->taken, 1);
    trace = without_incarnations(sim_trace(cluster->sim));
    assert_non_null(strstr(
        trace, "chief/0 links: refused /job:worker/task:0 at tcp://worker-0:1: task "
               "/job:worker/task:0 is already played by tcp://worker-0:1\n"));
    assert_non_null(strstr(
        trace,
        "twin links: another process is /job:worker/task:0: this one ends (/job:"));
    assert_non_null(strstr(trace, "/task:0: it refused us: task /job:worker/task:0 is "
                                  "already played by tcp://worker-0:1)\n"));
    assert_null(strstr(trace, "is lost"));
    free(trace);
    sim_crash(twin->node);
    end(cluster);
}

/* The first process stands still, and holds its port: the second one is reached where it
 * listens. The first one hears that it was replaced when it goes on. */
TEST(test_twin_takes_over)
{
    struct cluster *cluster = MAKE(.workers = 1, .hosts = "chief:0");
    struct cluster_task *twin = cluster_add(cluster, "worker", 0, "twin");
    struct cluster_closure *closures[20];

    begin_all_but_twins(cluster);
    set_work_ms(cluster, 100);
    twin->advertises = "tcp://worker-0:1";
    open_at(cluster->chief);
    cluster_start(twin);
    run_until(cluster, 1000);
    schedule(cluster->chief, "square", 20, closures);
    sim_pause(cluster->workers[0]->node, 4000);
    run_until(cluster, 4500);
    assert_int_equal(join(cluster->chief), 0);
    assert_true(sim_now_ms(cluster->sim) < 5000);
    expect_squares(closures, 20);
    assert_int_equal(twin->taken, 0);
    run_until(cluster, 10000);
    assert_int_equal(twin->taken, 0);
    assert_int_equal(cluster->workers[0]->taken, 1);
    sim_crash(cluster->workers[0]->node);
    end(cluster);
}

/* Of two chiefs the one that came first stays, and so it is with two servers, whom the
 * chief dials. */
TEST(test_two_of_each)
{
    struct cluster *cluster = MAKE(.workers = 2, .servers = 1, .hosts = "chief:0");
    struct cluster_task *chief = cluster_add(cluster, "chief", 0, "twin-chief");
    struct cluster_task *server = cluster_add(cluster, "ps", 0, "twin-ps");
    struct cluster_closure *closures[20];

    begin_all_but_twins(cluster);
    set_work_ms(cluster, 200);
    chief->advertises = "tcp://chief-0:1";
    server->advertises = "tcp://ps-0:1";
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 20, closures);
    cluster_start(chief);
    cluster_start(server);
    run_until(cluster, 6000);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 20);
    assert_int_equal(retried(cluster->chief), 0);
    assert_int_equal(chief->taken, 1);
    assert_int_equal(server->taken, 1);
    assert_int_equal(cluster->chief->taken, 0);
    assert_int_equal(cluster->servers[0]->taken, 0);
    sim_crash(chief->node);
    sim_crash(server->node);
    end(cluster);
}

/* ---- The end of the job ---- */

TEST(test_job_done)
{
    struct cluster *cluster = BEGIN(.workers = 2, .servers = 1, .clients = 1);
    struct cluster_call *waits[4];
    struct cluster_call *ending;

    waits[0] = cluster_job(cluster->workers[0], MU__JOB_WAIT, 0, NULL, -1);
    waits[1] = cluster_job(cluster->servers[0], MU__JOB_WAIT, 0, NULL, -1);
    waits[2] = cluster_job(cluster->clients[0], MU__JOB_WAIT, 0, NULL, -1);
    sim_crash(cluster->workers[1]->node);
    run_for(cluster, 100);
    ending =
        cluster_job(cluster->chief, MU__JOB_END, -MU_EDATALOSS, "the data is bad", -1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cluster_wait(waits[i]), 0);
        assert_int_equal(waits[i]->of.call.error.code, -MU_EDATALOSS);
        assert_string_equal(waits[i]->of.call.error.message, "the data is bad");
    }
    assert_false(ending->done);
    mu__member_leave(&cluster->workers[0]->member, "bye");
    mu__member_leave(&cluster->servers[0]->member, "bye");
    mu__member_leave(&cluster->clients[0]->member, "bye");
    assert_int_equal(cluster_wait(ending), 0);

    /* Who comes late is told, too. */
    cluster_start(cluster->workers[1]);
    waits[3] = cluster_job(cluster->workers[1], MU__JOB_WAIT, 0, NULL, 10000);
    assert_int_equal(cluster_wait(waits[3]), 0);
    assert_int_equal(waits[3]->of.call.error.code, -MU_EDATALOSS);
    end(cluster);
}

TEST(test_job_limits)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_call *call;

    call = cluster_job(cluster->workers[0], MU__JOB_WAIT, 0, NULL, 300);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "the job is not done after 300 ms: /job:chief/task:0 at tcp://chief-0:1 has not "
        "ended it");
    call = cluster_job(cluster->chief, MU__JOB_END, 0, NULL, 500);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "2 tasks have not hung up after 500 ms: /job:worker/task:0, /job:worker/task:1");
    end(cluster);
}

/* A worker's word is not the chief's. */
TEST(test_job_of_others)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1);
    struct cluster_call *wait;

    wait = cluster_job(cluster->servers[0], MU__JOB_WAIT, 0, NULL, 2000);
    (void)cluster_job(cluster->workers[0], MU__JOB_END, 0, NULL, 100);
    assert_int_equal(cluster_wait(wait), -MU_EDEADLINE);
    end(cluster);
}

TEST_PROGRAM()
