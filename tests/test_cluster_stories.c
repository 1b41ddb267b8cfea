/* What a cluster does, told as stories in virtual time: who comes and goes, what is run
 * where, what the program hears. A frame takes 10 ms, a dial 20 ms, news of a broken
 * connection 10 ms; heartbeats come every 100 ms, silence of 500 ms is death. */
#include "tests/story.h"

#include <inttypes.h>

/* ---- Coming up ---- */

static void start_one(struct sim *sim, void *arg)
{
    (void)sim;
    cluster_start(arg);
}

/* The chief first, last, in the middle, all at once: tasks start in any order. */
static void test_any_order(void **state)
{
    static const unsigned gaps_ms[] = {0, 7, 300, 4000};
    struct cluster_closure *closure;

    (void)state;
    for (unsigned order = 0; order < 12; order++) {
        struct cluster *cluster = MAKE(.workers = 2, .servers = 1, .clients = 1,
                                       .evaluator = true);
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

static void test_up(void **state)
{
    struct cluster *cluster = MAKE(.workers = 1);

    (void)state;
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, 1000);
    expect_trace(cluster,
        "[   50] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[   60] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[   60] chief/0 supervisor: /job:worker/task:0 takes closures (1 "
          "threads, window 4)\n");
    end(cluster);
}

/* A task that is missing is named, ever less often. */
static void test_missing(void **state)
{
    struct cluster *cluster = MAKE(.workers = 1);

    (void)state;
    cluster_start(cluster->chief);
    sim_run_until(cluster->sim, 30000);
    expect_trace(cluster,
        "[ 3000] chief/0 links: waiting for /job:worker/task:0 at "
          "tcp://worker-0:1 for 3 s (dialling)\n"
        "[ 6000] chief/0 links: waiting for /job:worker/task:0 at "
          "tcp://worker-0:1 for 6 s (dialling)\n"
        "[12000] chief/0 links: waiting for /job:worker/task:0 at "
          "tcp://worker-0:1 for 12 s (dialling)\n"
        "[24000] chief/0 links: waiting for /job:worker/task:0 at "
          "tcp://worker-0:1 for 24 s (dialling)\n");
    end(cluster);
}

/* ---- Running ---- */

static void test_run(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[4];

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[  180] sim note: worker/0 runs square 1\n"
        "[  180] sim note: worker/1 runs square 0\n"
        "[  190] sim note: worker/0 runs square 2\n"
        "[  190] sim note: worker/1 runs square 3\n");
    expect_squares(closures, 4);
    expect_counts(cluster->chief, 4, 0, 0);
    end(cluster);
}

/* Nobody wants the result; an inline function; results that are not ints. */
static void test_kinds(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *quick;
    struct cluster_closure *made;
    const void *data;
    size_t size = 0;

    (void)state;
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

/* ---- Workers that go ---- */

/* Twelve closures, windows of four. Worker/0 has finished 1 and got 8 for it: with it go
 * 2, 5, 6 and 8. They go to the front of the queue, before 10 and 11, in their order. */
static void test_worker_crash(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[12];

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 12, closures);
    run_until(cluster, 1500);
    sim_crash(cluster->workers[0]->node);
    run_until(cluster, 4000);
    expect_trace(cluster,
        "[ 1170] sim note: worker/0 runs square 1\n"
        "[ 1170] sim note: worker/1 runs square 0\n"
        "[ 1510] chief/0 links: /job:worker/task:0 is lost: its connection "
          "broke: closed by the peer\n"
        "[ 1510] chief/0 supervisor: /job:worker/task:0 is lost with 4 closures "
          "in flight: they run again elsewhere\n"
        "[ 2170] sim note: worker/1 runs square 3\n"
        "[ 3170] sim note: worker/1 runs square 4\n");
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[ 4170] sim note: worker/1 runs square 7\n"
        "[ 4534] chief/0 links: waiting for /job:worker/task:0 at "
          "tcp://worker-0:1 for 3 s (dialling; its connection broke: closed by "
          "the peer)\n"
        "[ 5170] sim note: worker/1 runs square 9\n"
        "[ 6170] sim note: worker/1 runs square 2\n"
        "[ 7170] sim note: worker/1 runs square 5\n"
        "[ 7534] chief/0 links: waiting for /job:worker/task:0 at "
          "tcp://worker-0:1 for 6 s (dialling; its connection broke: closed by "
          "the peer)\n"
        "[ 8170] sim note: worker/1 runs square 6\n"
        "[ 9170] sim note: worker/1 runs square 8\n"
        "[10170] sim note: worker/1 runs square 10\n"
        "[11170] sim note: worker/1 runs square 11\n");
    expect_squares(closures, 12);
    assert_int_equal(cluster_count(&cluster->chief->session->shared.retried), 4);
    end(cluster);
}

/* The new life is another incarnation, and gets work as soon as it offers itself. */
static void test_worker_restart(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closures[2];

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 500);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[  510] chief/0 links: /job:worker/task:0 is lost: its connection "
          "broke: closed by the peer\n"
        "[  510] chief/0 supervisor: /job:worker/task:0 is lost with 2 closures "
          "in flight: they run again elsewhere\n"
        "[  634] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[  644] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[  644] chief/0 supervisor: /job:worker/task:0 takes closures (1 "
          "threads, window 4)\n"
        "[ 1654] sim note: worker/0 runs square 0\n"
        "[ 2654] sim note: worker/0 runs square 1\n");
    expect_squares(closures, 2);
    assert_int_equal(cluster->runs[0], 1);
    end(cluster);
}

/* The worker lives on and finishes what it had begun, but that attempt counts no more:
 * its result has nobody to go to. */
static void test_cut(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    run_until(cluster, 500);
    sim_cut(cluster->sim, cluster->chief->node, cluster->workers[0]->node);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[  510] chief/0 links: /job:worker/task:0 is lost: connection to it "
          "broke: connection broken\n"
        "[  510] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure "
          "in flight: it runs again elsewhere\n"
        "[  510] worker/0 links: /job:chief/task:0 is lost: its connection "
          "broke: connection broken\n"
        "[  634] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[  644] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[  644] chief/0 supervisor: /job:worker/task:0 takes closures (1 "
          "threads, window 4)\n"
        "[ 1170] sim note: worker/0 runs square 0\n"
        "[ 2170] sim note: worker/0 runs square 0\n");
    expect_squares(&closure, 1);
    expect_counts(cluster->chief, 1, 0, 0);
    assert_int_equal(cluster->runs[0], 2);
    end(cluster);
}

/* The worker has answered, and the answer is on its way when the chief gives the worker
 * up: an answer of a link that is down is not taken. */
static void test_late_answer(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closure;

    (void)state;
    set_work_ms(cluster, 300);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    run_until(cluster, 400);
    sim_block(cluster->sim, cluster->workers[1]->node, cluster->chief->node);
    run_until(cluster, 2000);
    sim_unblock(cluster->sim, cluster->workers[1]->node, cluster->chief->node);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[  470] sim note: worker/1 runs square 0\n"
        "[  900] chief/0 links: /job:worker/task:1 is lost: silent for 540 ms\n"
        "[  900] chief/0 supervisor: /job:worker/task:1 is lost with 1 closure "
          "in flight: it runs again elsewhere\n"
        "[  910] worker/1 links: /job:chief/task:0 is lost: its connection "
          "broke: closed by the peer\n"
        "[ 1210] sim note: worker/0 runs square 0\n");
    expect_squares(&closure, 1);
    expect_counts(cluster->chief, 1, 0, 0);
    assert_int_equal(cluster->runs[0], 2);
    end(cluster);
}

static void test_silence(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);

    (void)state;
    sim_block(cluster->sim, cluster->workers[0]->node, cluster->chief->node);
    sim_block(cluster->sim, cluster->chief->node, cluster->workers[0]->node);
    run_until(cluster, 2000);
    sim_heal(cluster->sim);
    run_until(cluster, 5000);
    expect_trace(cluster,
        "[  650] worker/0 links: /job:chief/task:0 is lost: silent for 540 ms\n"
        "[  700] chief/0 links: /job:worker/task:0 is lost: silent for 540 ms\n"
        "[  700] chief/0 supervisor: /job:worker/task:0 is lost; nothing was in "
          "flight\n"
        "[ 2084] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[ 2094] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[ 2094] chief/0 supervisor: /job:worker/task:0 takes closures (1 "
          "threads, window 4)\n");
    end(cluster);
}

static void test_short_pause(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[4];

    (void)state;
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    sim_pause(cluster->workers[0]->node, 300);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 4);
    expect_trace(cluster,
        "[  460] worker/0 links: this process stood still for 310 ms\n");
    end(cluster);
}

/* Nobody was silent: nobody was listened to. The workers here have more patience than the
 * chief, who stands still for longer than his own. */
static void test_chief_pause(void **state)
{
    struct cluster *cluster = MAKE(.workers = 2);
    struct cluster_closure *closures[2];

    (void)state;
    cluster_start(cluster->chief);
    cluster->options.silence_ms = 60000;
    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    (void)sim_trace(cluster->sim);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    sim_run_until(cluster->sim, 165);
    sim_pause(cluster->chief->node, 3000);
    assert_int_equal(join(cluster->chief), 0);
    run_for(cluster, 3000);
    expect_trace(cluster,
        "[ 3165] chief/0 links: this process stood still for 3015 ms\n");
    expect_squares(closures, 2);
    assert_int_equal(cluster_count(&cluster->chief->session->shared.retried), 0);
    end(cluster);
}

/* Workers that hear nothing of the chief for too long hang up; what they had is begun
 * anew when he is back. */
static void test_long_chief_pause(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    sim_run_until(cluster->sim, 165);
    sim_pause(cluster->chief->node, 3000);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[  700] worker/0 links: /job:chief/task:0 is lost: silent for 530 ms\n"
        "[ 1170] sim note: worker/0 runs square 0\n"
        "[ 3165] chief/0 links: this process stood still for 3015 ms\n"
        "[ 3165] chief/0 links: /job:worker/task:0 is lost: connection to it "
          "broke: connection reset by the peer\n"
        "[ 3165] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure "
          "in flight: it runs again elsewhere\n"
        "[ 3289] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[ 3299] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[ 3299] chief/0 supervisor: /job:worker/task:0 takes closures (1 "
          "threads, window 4)\n"
        "[ 4309] sim note: worker/0 runs square 0\n");
    expect_squares(&closure, 1);
    end(cluster);
}

/* A worker under which everything dies: a closure is not tried for ever. */
static void test_attempts(void **state)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .attempts_max = 3);
    struct cluster_closure *closure;
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    for (int i = 0; i < 3; i++) {
        run_for(cluster, 900);
        assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    }
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EABORTED);
    assert_string_equal(call->of.call.error.message,
        "function \"square\" lost its worker 3 times, last /job:worker/task:0; "
          "given up");
    assert_string_equal(call->of.call.error.function, "square");
    assert_int_equal(call->of.call.error.attempt, 3);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_READY);
    expect_counts(cluster->chief, 0, 1, 0);
    end(cluster);
}

/* A worker that says goodbye is lost at once, not after silence. */
static void test_leave(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[2];

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 400);
    mu__member_leave(&cluster->workers[0]->member, "the machine is needed");
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster,
        "[  410] chief/0 links: /job:worker/task:0 is lost: it left: the machine "
          "is needed\n"
        "[  410] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure "
          "in flight: it runs again elsewhere\n"
        "[  420] worker/0 links: /job:chief/task:0 is lost: its connection "
          "broke: closed by the peer\n"
        "[ 1170] sim note: worker/0 runs square 1\n"
        "[ 1170] sim note: worker/1 runs square 0\n"
        "[ 2170] sim note: worker/1 runs square 1\n");
    expect_squares(closures, 2);
    end(cluster);
}

/* ---- Messages that nobody should have sent ---- */

/* The chief has two workers, nodes 1 and 2; the second has the first closure, which has
 * the first id, in its first attempt. Results of anything else are nobody's. */
static void test_forged_results(void **state)
{
    static const uint64_t first = UINT64_C(1) << 32;
    static const struct {
        mu__pid from;
        struct mu__result result;
    } rows[] = {
        {{1, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 1}},
        {{3, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 1}},
        {{0, MU__CLIENT}, {.closure = UINT64_C(1) << 32, .attempt = 1}},
        {{2, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 2}},
        {{2, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 0}},
        {{2, MU__WORKER}, {.closure = UINT64_C(2) << 32, .attempt = 1}},
        {{2, MU__WORKER}, {.closure = 0, .attempt = 1}},
        {{2, MU__WORKER}, {.closure = UINT64_MAX, .attempt = 1, .code = 13}},
    };
    const size_t count = sizeof rows / sizeof rows[0];
    struct cluster *cluster = BEGIN(.workers = 2);
    const struct mu__result good = {.closure = first, .attempt = 1, .code = MU_EABORTED};
    struct cluster_closure *closure;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 50);
    for (size_t i = 0; i < count; i++)
        forge(cluster->chief, rows[i].from, MU__SUPERVISOR, MU__RESULT, &rows[i].result,
              sizeof rows[i].result);
    run_for(cluster, 50);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_NOT_READY);
    assert_int_equal(status_number(cluster->chief, "closures", "stale_results"), count);

    /* That it is the rows, and not the way they came, shows the one that is right. */
    forge(cluster->chief, (mu__pid){2, MU__WORKER}, MU__SUPERVISOR, MU__RESULT, &good,
          sizeof good);
    run_for(cluster, 50);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_READY);
    assert_int_equal(closure->future->error->code, -MU_EABORTED);
    assert_int_equal(join(cluster->chief), -MU_EABORTED);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 0);
    end(cluster);
}

/* A client takes answers of its chief alone, each once. Its chief is node 1. */
static void test_forged_answers(void **state)
{
    static const struct {
        mu__pid from;
        struct mu__resolved answer;
    } rows[] = {
        {{2, MU__SUPERVISOR}, {.token = 1, .attempt = 1}},
        {{1, MU__WORKER}, {.token = 1, .attempt = 1}},
        {{0, MU__CLIENT}, {.token = 1, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = 0, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = 2, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = 1 << 20, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = UINT64_MAX, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = (UINT64_C(1) << 32) + 1, .attempt = 1}},
    };
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    const struct mu__resolved good = {.token = 1, .attempt = 1, .code = MU_EABORTED};
    struct cluster_closure *closure;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(client);
    closure = cluster_schedule(client, "square");
    run_for(cluster, 50);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        forge(client, rows[i].from, MU__CLIENT, MU__RESOLVED, &rows[i].answer,
              sizeof rows[i].answer);
    run_for(cluster, 50);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_NOT_READY);
    expect_counts(client, 0, 0, 0);

    /* The right one is taken, and the supervisor's own, later, is not. */
    forge(client, (mu__pid){1, MU__SUPERVISOR}, MU__CLIENT, MU__RESOLVED, &good,
          sizeof good);
    run_for(cluster, 3000);
    expect_counts(client, 0, 1, 0);
    assert_int_equal(join(client), -MU_EABORTED);
    end(cluster);
}

/* The place of a closure that is resolved is the next one's: so a client's memory follows
 * what is outstanding. Places count from 1 in what the client says and hears. */
static void test_places(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    const struct mu__resolved first = {.token = 1, .attempt = 1, .code = MU_EABORTED};
    struct cluster_closure *closure;

    (void)state;
    open_at(client);
    for (int i = 0; i < 50; i++) {
        (void)cluster_schedule(client, "square");
        assert_int_equal(join(client), 0);
    }
    closure = cluster_schedule(client, "square");
    run_for(cluster, 5);
    forge(client, (mu__pid){1, MU__SUPERVISOR}, MU__CLIENT, MU__RESOLVED, &first,
          sizeof first);
    run_for(cluster, 1);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_READY);
    assert_int_equal(join(client), -MU_EABORTED);
    end(cluster);
}

/* A worker that offers itself twice is one worker; nobody else can offer himself. */
static void test_forged_offers(void **state)
{
    const struct mu__register offer = {.threads = 4};
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_closure *closures[8];

    (void)state;
    for (uint32_t node = 0; node < 5; node++)
        forge(cluster->chief, (mu__pid){node, MU__WORKER}, MU__SUPERVISOR, MU__REGISTER,
              &offer, sizeof offer);
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 8, closures);
    run_for(cluster, 50);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 4);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 4);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* ---- Clients that go ---- */

static void test_client_crash(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2);
    struct cluster_closure *lost[6];
    struct cluster_closure *kept[2];

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 100);
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    schedule(cluster->clients[0], "square", 6, lost);
    schedule(cluster->clients[1], "square", 2, kept);
    run_until(cluster, 350);
    sim_crash(cluster->clients[0]->node);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(kept, 2);
    assert_int_equal(status_number(cluster->chief, "closures", "finished"), 3);
    assert_int_equal(status_number(cluster->chief, "closures", "forgotten"), 5);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 0);
    end(cluster);
}

/* The client does not know what became of its closures: all are aborted, and the program
 * hears so once. Then it goes on. */
static void test_chief_lost(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[3];
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(client);
    schedule(client, "square", 3, closures);
    run_until(cluster, 500);
    sim_cut(cluster->sim, client->node, cluster->chief->node);
    run_until(cluster, 520);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(mu_remote_value_state(closures[i]->future), MU_REMOTE_ABORTED);
        assert_int_equal(closures[i]->future->error->code, -MU_EUNAVAILABLE);
        assert_string_equal(closures[i]->future->error->message,
            "/job:chief/task:0 at tcp://chief-0:1 is lost: connection to it "
              "broke: connection broken");
    }
    call = cluster_ask(client, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EUNAVAILABLE);
    assert_string_equal(call->of.call.error.task, "/job:chief/task:0");

    run_until(cluster, 1000);
    schedule(client, "square", 3, closures);
    assert_int_equal(join(client), 0);
    expect_squares(closures, 3);
    expect_counts(client, 3, 0, 3);
    end(cluster);
}

/* Scheduling while the chief is away is an error that is raised, too: a program that
 * joins must not take what never ran for done. */
static void test_schedule_without_chief(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    struct cluster_call *call;

    (void)state;
    open_at(client);
    sim_block(cluster->sim, cluster->chief->node, client->node);
    sim_block(cluster->sim, client->node, cluster->chief->node);
    run_until(cluster, 1000);
    assert_int_equal(join(client), 0);
    cluster_schedule_dropped(client, "square");
    closure = cluster_schedule(client, "square");
    call = cluster_ask(client, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EUNAVAILABLE);
    assert_string_equal(call->of.call.error.message,
                        "/job:chief/task:0 at tcp://chief-0:1 is not connected");
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_ABORTED);
    expect_counts(client, 0, 0, 2);
    sim_heal(cluster->sim);
    end(cluster);
}

/* ---- Errors ---- */

/* Six closures on one worker with a window of two, the second of which fails: what is
 * queued is cancelled as soon as somebody wants to hear, also on the worker, what runs
 * ends, then the error is raised, once. */
static void test_error(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[6];
    struct cluster_call *call;
    const mu_error *error;

    (void)state;
    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "square");
    closures[1] = cluster_schedule(cluster->chief, "fail");
    schedule(cluster->chief, "square", 4, closures + 2);
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EINVALID);
    error = &call->of.call.error;
    assert_string_equal(error->message, "bad 1");
    assert_string_equal(error->task, "/job:worker/task:0");
    assert_string_equal(error->function, "fail");
    assert_int_equal(error->attempt, 1);
    expect_counts(cluster->chief, 2, 1, 3);
    expect_squares(closures, 1);
    expect_squares(closures + 2, 1);
    assert_int_equal(cluster->runs[closures[3]->key], 0);
    assert_int_equal(mu_remote_value_state(closures[1]->future), MU_REMOTE_READY);
    assert_int_equal(mu_remote_value_state(closures[4]->future), MU_REMOTE_ABORTED);
    assert_int_equal(mu_remote_value_state(closures[5]->future), MU_REMOTE_ABORTED);
    assert_int_equal(closures[5]->future->error->code, -MU_ECANCELLED);

    assert_int_equal(join(cluster->chief), 0);
    schedule(cluster->chief, "square", 3, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 3);
    end(cluster);
}

/* Three fail, one error is raised: the first that the chief heard of. */
static void test_errors_while_cancelling(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 4);
    struct cluster_closure *closures[3];
    struct cluster_call *call;

    (void)state;
    NEEDS_LONG_TURNS(cluster);
    open_at(cluster->chief);
    schedule(cluster->chief, "fail", 3, closures);
    call = cluster_ask(cluster->chief, MU__CLIENT_RAISE, -1);
    assert_int_equal(cluster_wait(call), 0);
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EINVALID);
    assert_string_equal(call->of.call.error.message, "bad 1");
    expect_counts(cluster->chief, 0, 3, 0);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* Of two that wait, one gets the error; what runs is told that nobody wants it. */
static void test_cancel_in_flight(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 4);
    struct cluster_closure *closures[4];
    struct cluster_call *calls[2];

    (void)state;
    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "fail");
    schedule(cluster->chief, "patient", 3, closures + 1);
    calls[0] = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    calls[1] = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    (void)cluster_wait(calls[0]);
    (void)cluster_wait(calls[1]);
    assert_int_equal(calls[0]->of.call.code + calls[1]->of.call.code, -MU_EINVALID);
    expect_trace(cluster,
        "[  270] sim note: worker/0 runs fail 0\n");
    expect_counts(cluster->chief, 0, 1, 3);
    end(cluster);
}

/* What was cancelled while it was in flight is not run again when its worker is lost. */
static void test_cancelled_and_lost(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

    (void)state;
    open_at(cluster->chief);
    set_work_ms(cluster, 5000);
    closures[0] = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 20);
    set_work_ms(cluster, 100);
    closures[1] = cluster_schedule(cluster->chief, "fail");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    run_for(cluster, 300);
    assert_false(call->done);
    sim_crash(cluster->workers[1]->node);
    assert_int_equal(cluster_wait(call), -MU_EINVALID);
    assert_true(sim_now_ms(cluster->sim) < 1000);
    assert_int_equal(mu_remote_value_state(closures[0]->future), MU_REMOTE_ABORTED);
    expect_counts(cluster->chief, 0, 1, 1);
    run_for(cluster, 10000);
    assert_int_equal(cluster->runs[closures[0]->key], 0);
    end(cluster);
}

/* Whoever does not wait is told to try again, and finds the error raised later. */
static void test_raise_at_once(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "fail");
    closures[1] = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 150);
    call = cluster_ask(cluster->chief, MU__CLIENT_RAISE, -1);
    call->of.client.at_once = true;
    assert_int_equal(cluster_wait(call), -MU_EAGAIN);
    run_for(cluster, 200);
    call = cluster_ask(cluster->chief, MU__CLIENT_RAISE, -1);
    call->of.client.at_once = true;
    assert_int_equal(cluster_wait(call), -MU_EINVALID);
    expect_squares(closures + 1, 1);
    end(cluster);
}

static void test_unknown_function(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_call *call;

    (void)state;
    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "sqare");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_ENOTFOUND);
    assert_string_equal(call->of.call.error.message,
        "no function \"sqare\" on /job:worker/task:0, which knows 8 (is its plugin "
          "loaded there?)");
    assert_string_equal(call->of.call.error.task, "/job:worker/task:0");
    end(cluster);
}

/* Of another program's error a program hears nothing, and loses nothing. */
static void test_errors_are_of_one_client(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2);
    struct cluster_closure *closures[8];

    (void)state;
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    (void)cluster_schedule(cluster->clients[0], "fail");
    schedule(cluster->clients[1], "square", 8, closures);
    assert_int_equal(join(cluster->clients[0]), -MU_EINVALID);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(closures, 8);
    end(cluster);
}

/* ---- Handshakes ---- */

static void test_other_cluster(void **state)
{
    struct cluster *cluster = MAKE(.workers = 1);

    (void)state;
    cluster->workers[0]->cluster_name = "other";
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, 1000);
    expect_trace(cluster,
        "[   30] worker/0 links: refused /job:chief/task:0 at tcp://chief-0:1: "
          "cluster name \"test\", but /job:worker/task:0 belongs to cluster "
          "\"other\"\n"
        "[   60] chief/0 links: /job:worker/task:0: it refused us: cluster name "
          "\"test\", but /job:worker/task:0 belongs to cluster \"other\"\n");
    cluster_free(cluster);
}

/* At worker/0's address answers somebody who takes himself for the chief, and hears of it
 * when he dials what he takes for worker/0. */
static void test_same_task(void **state)
{
    struct cluster *cluster = MAKE(.workers = 1);

    (void)state;
    cluster->workers[0]->type = "chief";
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, 100);
    expect_trace(cluster,
        "[   30] worker/0 links: refused /job:chief/task:0 at tcp://chief-0:1: "
          "task /job:chief/task:0 is already played by tcp://worker-0:1\n"
        "[   30] worker/0 links: refused /job:chief/task:0 at tcp://worker-0:1: "
          "task /job:chief/task:0 is already played by tcp://worker-0:1\n"
        "[   60] chief/0 links: /job:worker/task:0: it refused us: task "
          "/job:chief/task:0 is already played by tcp://worker-0:1\n"
        "[   60] worker/0 links: /job:worker/task:0: it refused us: task "
          "/job:chief/task:0 is already played by tcp://worker-0:1\n");
    cluster_free(cluster);
}

/* Two processes play worker/0: the later one is told so, until the first has gone. */
static void test_two_workers(void **state)
{
    struct cluster *cluster =
        MAKE(.workers = 1, .servers = 1);
    struct cluster_task *twin = cluster_add(cluster, "worker", 0, "twin");

    (void)state;
    cluster_start(cluster->servers[0]);
    cluster_start(cluster->workers[0]);
    sim_run_until(cluster->sim, 1000);
    cluster_start(twin);
    sim_run_until(cluster->sim, 3000);
    expect_trace(cluster,
        "[   50] ps/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[   60] worker/0 links: /job:ps/task:0 is up at tcp://ps-0:1\n"
        "[ 1030] ps/0 links: refused /job:worker/task:0 at tcp://twin:1: task "
          "/job:worker/task:0 is already played by tcp://worker-0:1\n"
        "[ 1060] twin links: /job:ps/task:0: it refused us: task "
          "/job:worker/task:0 is already played by tcp://worker-0:1\n");
    sim_crash(cluster->workers[0]->node);
    sim_run_until(cluster->sim, 10000);
    expect_trace(cluster,
        "[ 3010] ps/0 links: /job:worker/task:0 is lost: connection to it broke: "
          "connection reset by the peer\n"
        "[ 4100] twin links: waiting for /job:ps/task:0 at tcp://ps-0:1 for 3 s "
          "(resting; it refused us: task /job:worker/task:0 is already played by "
          "tcp://worker-0:1)\n"
        "[ 5330] ps/0 links: /job:worker/task:0 is up at tcp://twin:1\n"
        "[ 5340] twin links: /job:ps/task:0 is up at tcp://ps-0:1\n");
    cluster_free(cluster);
}

/* ---- Large messages, full wires ---- */

/* Six MiB at 4 KiB a millisecond take 1.5 s, three times the silence that is death. */
static void test_large_arguments(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    size_t size = 6 << 20;
    void *data = calloc(1, size);
    struct cluster_closure *closure;
    struct mu__links_counters before;
    struct mu__links_counters after;

    (void)state;
    assert_non_null(data);
    sim_settings(cluster->sim)->bytes_per_ms = 4096;
    sim_settings(cluster->sim)->connection_bytes_max = 1 << 20;
    open_at(client);
    mu__links_counters(client->member.links, &before);
    closure = cluster_schedule_value(client, "weigh", mu_value_bytes(data, size));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), size);
    mu__links_counters(client->member.links, &after);
    assert_true(sim_now_ms(cluster->sim) > 3000);
    /* Seven pieces, and a heartbeat every now and then between them and after. */
    assert_true(after.frames_out - before.frames_out >= 7 + 3000 / 200);
    expect_trace(cluster, "");
    free(data);
    end(cluster);
}

static void test_large_result(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_closure *closure;
    const void *data;
    size_t size = 0;

    (void)state;
    open_at(cluster->clients[0]);
    closure = cluster_schedule_value(cluster->clients[0], "make", mu_value_int(9 << 20));
    assert_int_equal(join(cluster->clients[0]), 0);
    assert_int_equal(mu_value_get_bytes(closure->future->result, &data, &size), 0);
    assert_int_equal(size, 9 << 20);
    end(cluster);
}

/* A wire that takes little at once only makes it take longer. */
static void test_full_wire(void **state)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .clients = 1, .window = 64);
    struct cluster_closure *closures[500];

    (void)state;
    sim_settings(cluster->sim)->connection_bytes_max = 512;
    sim_settings(cluster->sim)->again_percent = 50;
    open_at(cluster->clients[0]);
    schedule(cluster->clients[0], "quick", 500, closures);
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 500);
    end(cluster);
}

/* A chief that is there but takes nothing: at 64 MiB unsent the client gives up. */
static void test_peer_does_not_read(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1, .silence_ms = 60000);
    struct cluster_task *client = cluster->clients[0];
    size_t size = 1 << 20;
    void *data = calloc(1, size);

    (void)state;
    assert_non_null(data);
    sim_settings(cluster->sim)->connection_bytes_max = 1 << 20;
    open_at(client);
    sim_block(cluster->sim, client->node, cluster->chief->node);
    for (int i = 0; i < 60; i++)
        (void)cluster_schedule_value(client, "weigh", mu_value_bytes(data, size));
    run_for(cluster, 1000);
    expect_trace(cluster, "");
    for (int i = 0; i < 10; i++)
        (void)cluster_schedule_value(client, "weigh", mu_value_bytes(data, size));
    run_for(cluster, 40);
    expect_trace(cluster,
        "[ 1160] client/0 links: /job:chief/task:0 is lost: it does not read "
          "what it is sent\n");
    assert_int_equal(join(client), -MU_EUNAVAILABLE);
    sim_heal(cluster->sim);
    free(data);
    end(cluster);
}

/* ---- The end of the job ---- */

static void test_job_done(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2, .servers = 1, .clients = 1);
    struct cluster_call *waits[4];
    struct cluster_call *ending;

    (void)state;
    waits[0] = cluster_job(cluster->workers[0], MU__JOB_WAIT, 0, NULL, -1);
    waits[1] = cluster_job(cluster->servers[0], MU__JOB_WAIT, 0, NULL, -1);
    waits[2] = cluster_job(cluster->clients[0], MU__JOB_WAIT, 0, NULL, -1);
    sim_crash(cluster->workers[1]->node);
    run_for(cluster, 100);
    ending = cluster_job(cluster->chief, MU__JOB_END, -MU_EDATALOSS, "the data is bad",
                         -1);
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

static void test_job_limits(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_call *call;

    (void)state;
    call = cluster_job(cluster->workers[0], MU__JOB_WAIT, 0, NULL, 300);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "the job is not done after 300 ms: /job:chief/task:0 at tcp://chief-0:1 has not "
        "ended it");
    call = cluster_job(cluster->chief, MU__JOB_END, 0, NULL, 500);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "2 tasks have not hung up after 500 ms, first /job:worker/task:0");
    end(cluster);
}

/* A worker's word is not the chief's. */
static void test_job_of_others(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1);
    struct cluster_call *wait;

    (void)state;
    wait = cluster_job(cluster->servers[0], MU__JOB_WAIT, 0, NULL, 2000);
    (void)cluster_job(cluster->workers[0], MU__JOB_END, 0, NULL, 100);
    assert_int_equal(cluster_wait(wait), -MU_EDEADLINE);
    end(cluster);
}

/* ---- Limits and questions ---- */

static void test_open_without_chief(void **state)
{
    struct cluster *cluster = MAKE(.clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_call *call;

    (void)state;
    cluster_start(client);
    call = cluster_open(client, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "/job:chief/task:0 at tcp://chief-0:1 was not reached within 1000 ms");
    assert_int_equal(call->done_ms, 1000);
    client->session->over = true;

    call = cluster_open(client, -1);
    run_for(cluster, 5000);
    assert_false(call->done);
    assert_int_equal(cluster_wait(cluster_open(client, 10)), -MU_EEXISTS);
    cluster_start(cluster->chief);
    assert_int_equal(cluster_wait(call), 0);
    end(cluster);
}

static void test_join_limit(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_closure *closures[3];
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 3000);
    open_at(cluster->clients[0]);
    schedule(cluster->clients[0], "square", 3, closures);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_JOIN, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "3 closures are outstanding after 1000 ms; closure 4294967296 \"square\" "
          "runs on /job:worker/task:0 for 1000 ms");

    /* Nor does a chief that does not answer keep it for long. */
    sim_block(cluster->sim, cluster->chief->node, cluster->clients[0]->node);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_JOIN, 100);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "0 closures are outstanding after 100 ms; the chief did not say more");
    sim_heal(cluster->sim);
    (void)join(cluster->clients[0]);
    end(cluster);
}

/* No worker at all. */
static void test_join_without_workers(void **state)
{
    struct cluster *cluster = MAKE(.workers = 1);
    struct cluster_call *call;

    (void)state;
    cluster_start(cluster->chief);
    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "square");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "1 closures are outstanding after 1000 ms; none is in flight: no worker "
          "is up, or none has room; /job:worker/task:0 is missing for 1000 ms");
    cluster_start(cluster->workers[0]);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

static void test_fetch_limit(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 3000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    call = cluster_fetch(closure, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_non_null(strstr(call->of.call.error.message,
                           "the closure has no result after 1000 ms; "));
    assert_int_equal(cluster_wait(cluster_fetch(closure, 10000)), 0);
    expect_squares(&closure, 1);
    assert_int_equal(cluster_wait(cluster_fetch(closure, 0)), 0);
    end(cluster);
}

/* A queue of 16: room is told of when an eighth is free. */
static void test_room(void **state)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .clients = 1, .queue_max = 16);
    struct cluster_closure *closures[16];
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 100);
    open_at(cluster->clients[0]);
    assert_int_equal(cluster_wait(cluster_ask(cluster->clients[0], MU__CLIENT_ROOM, 0)),
                     0);
    schedule(cluster->clients[0], "square", 16, closures);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_ROOM, 50);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_ROOM, -1);
    assert_int_equal(cluster_wait(call), 0);
    expect_counts(cluster->clients[0], 2, 0, 0);
    assert_int_equal(join(cluster->clients[0]), 0);
    end(cluster);
}

/* The chief holds at most so many closures: of all clients together. */
static void test_chief_is_full(void **state)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .clients = 2, .queue_max = 8);
    struct cluster_closure *closures[16];
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    schedule(cluster->clients[0], "square", 8, closures);
    run_for(cluster, 20);
    schedule(cluster->clients[1], "square", 1, closures + 8);
    call = cluster_ask(cluster->clients[1], MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EEXHAUSTED);
    assert_string_equal(call->of.call.error.message,
                        "the chief holds as many closures as it may");
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 8);
    end(cluster);
}

static void test_close(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[6];

    (void)state;
    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 6, closures);
    run_for(cluster, 10);
    assert_int_equal(cluster_wait(cluster_ask(cluster->chief, MU__CLIENT_CLOSE, -1)), 0);
    expect_counts(cluster->chief, 1, 0, 5);
    cluster->chief->session->over = true;
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 2);
    end(cluster);
}

static void test_status(void **state)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1, .clients = 1,
                                    .evaluator = true);
    struct cluster_closure *closures[6];
    struct cluster_call *call;

    (void)state;
    set_work_ms(cluster, 1000);
    open_at(cluster->clients[0]);
    schedule(cluster->clients[0], "square", 6, closures);
    cluster_report(cluster->evaluator, "loss", 0.25, 7);
    run_for(cluster, 100);
    assert_int_equal(status_number(cluster->evaluator, "closures", "scheduled"), 6);
    assert_int_equal(status_number(cluster->clients[0], "closures", "in_flight"), 4);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 2);
    call = cluster_metric(cluster->chief, "loss");
    assert_int_equal(cluster_wait(call), 0);
    assert_true(call->of.metric.number == 0.25);
    assert_int_equal(call->of.metric.step, 7);
    call = cluster_metric(cluster->chief, "accuracy");
    assert_int_equal(cluster_wait(call), -MU_ENOTFOUND);
    assert_int_equal(join(cluster->clients[0]), 0);

    /* A server that does not answer is waited for, but not long. */
    sim_block(cluster->sim, cluster->servers[0]->node, cluster->chief->node);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_STATUS, 200);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(call->of.call.error.message,
        "/job:chief/task:0 at tcp://chief-0:1 did not answer within 200 ms");
    sim_heal(cluster->sim);
    end(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_up),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_worker_crash),
        cmocka_unit_test(test_worker_restart),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_late_answer),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_short_pause),
        cmocka_unit_test(test_chief_pause),
        cmocka_unit_test(test_long_chief_pause),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_forged_results),
        cmocka_unit_test(test_forged_answers),
        cmocka_unit_test(test_forged_offers),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_client_crash),
        cmocka_unit_test(test_chief_lost),
        cmocka_unit_test(test_schedule_without_chief),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_errors_while_cancelling),
        cmocka_unit_test(test_cancel_in_flight),
        cmocka_unit_test(test_cancelled_and_lost),
        cmocka_unit_test(test_raise_at_once),
        cmocka_unit_test(test_unknown_function),
        cmocka_unit_test(test_errors_are_of_one_client),
        cmocka_unit_test(test_other_cluster),
        cmocka_unit_test(test_same_task),
        cmocka_unit_test(test_two_workers),
        cmocka_unit_test(test_large_arguments),
        cmocka_unit_test(test_large_result),
        cmocka_unit_test(test_full_wire),
        cmocka_unit_test(test_peer_does_not_read),
        cmocka_unit_test(test_job_done),
        cmocka_unit_test(test_job_limits),
        cmocka_unit_test(test_job_of_others),
        cmocka_unit_test(test_open_without_chief),
        cmocka_unit_test(test_join_limit),
        cmocka_unit_test(test_join_without_workers),
        cmocka_unit_test(test_fetch_limit),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_chief_is_full),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
