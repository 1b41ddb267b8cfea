/* Workers and clients that go, and come back: crashes, cuts, silence, pauses. */
#include "tests/support/story.h"

/* ---- Workers that go ---- */

/* Twelve closures, windows of four. Worker/0 has finished 1 and got 8 for it: with it go
 * 2, 5, 6 and 8. They go to the front of the queue, before 10 and 11, in their order. */
TEST(test_worker_crash)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[12];

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
                 "[ 1510] chief/0 links: /job:worker/task:0 is lost: its "
                 "connection broke: closed by the peer\n"
                 "[ 1510] chief/0 supervisor: /job:worker/task:0 is lost with 4 closures "
                 "in flight: they run again elsewhere\n"
                 "[ 2170] sim note: worker/1 runs square 3\n"
                 "[ 3170] sim note: worker/1 runs square 4\n");
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[ 4170] sim note: worker/1 runs square 7\n"
                          "[ 4518] chief/0 links: waiting for /job:worker/task:0 at "
                          "tcp://worker-0:1 for 3 s (dialling; its connection broke: "
                          "closed by the peer)\n"
                          "[ 5170] sim note: worker/1 runs square 9\n"
                          "[ 6170] sim note: worker/1 runs square 2\n"
                          "[ 7170] sim note: worker/1 runs square 5\n"
                          "[ 7518] chief/0 links: waiting for /job:worker/task:0 at "
                          "tcp://worker-0:1 for 6 s (dialling; its connection broke: "
                          "closed by the peer)\n"
                          "[ 8170] sim note: worker/1 runs square 6\n"
                          "[ 9170] sim note: worker/1 runs square 8\n"
                          "[10170] sim note: worker/1 runs square 10\n"
                          "[11170] sim note: worker/1 runs square 11\n");
    expect_squares(closures, 12);
    assert_int_equal(cluster_count(&cluster->chief->session->shared.retried), 4);
    end(cluster);
}

/* The new life is another incarnation, and gets work as soon as it offers itself. */
TEST(test_worker_restart)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closures[2];

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 500);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(
        cluster,
        "[  510] chief/0 links: /job:worker/task:0 is lost: its connection broke: "
        "closed by the peer\n"
        "[  510] chief/0 supervisor: /job:worker/task:0 is lost with 2 closures in "
        "flight: they run again elsewhere\n"
        "[  548] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[  558] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[  558] chief/0 supervisor: /job:worker/task:0 takes closures (1 threads, "
        "window 4)\n"
        "[ 1568] sim note: worker/0 runs square 0\n"
        "[ 2568] sim note: worker/0 runs square 1\n");
    expect_squares(closures, 2);
    assert_int_equal(cluster->runs[0], 1);
    end(cluster);
}

/* The worker lives on and finishes what it had begun, but that attempt counts no more:
 * its result has nobody to go to. */
TEST(test_cut)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    run_until(cluster, 500);
    sim_cut(cluster->sim, cluster->chief->node, cluster->workers[0]->node);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(
        cluster,
        "[  510] worker/0 links: /job:chief/task:0 is lost: its connection broke: "
        "connection broken\n"
        "[  510] chief/0 links: /job:worker/task:0 is lost: its connection broke: "
        "connection broken\n"
        "[  510] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure in "
        "flight: it runs again elsewhere\n"
        "[  548] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[  558] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[  558] chief/0 supervisor: /job:worker/task:0 takes closures (1 threads, "
        "window 4)\n"
        "[ 1170] sim note: worker/0 runs square 0\n"
        "[ 2170] sim note: worker/0 runs square 0\n");
    expect_squares(&closure, 1);
    expect_counts(cluster->chief, 1, 0, 0);
    assert_int_equal(cluster->runs[0], 2);
    end(cluster);
}

/* The worker has answered, and the answer is on its way when the chief gives the worker
 * up: an answer of a link that is down is not taken. */
TEST(test_late_answer)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closure;

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
                 "[  850] chief/0 links: /job:worker/task:1 is lost: silent for 540 ms\n"
                 "[  850] chief/0 supervisor: /job:worker/task:1 is lost with 1 closure "
                 "in flight: it runs again elsewhere\n"
                 "[  860] worker/1 links: /job:chief/task:0 is lost: its connection "
                 "broke: closed by the peer\n"
                 "[ 1160] sim note: worker/0 runs square 0\n");
    expect_squares(&closure, 1);
    expect_counts(cluster->chief, 1, 0, 0);
    assert_int_equal(cluster->runs[0], 2);
    end(cluster);
}

TEST(test_silence)
{
    struct cluster *cluster = BEGIN(.workers = 1);

    sim_block(cluster->sim, cluster->workers[0]->node, cluster->chief->node);
    sim_block(cluster->sim, cluster->chief->node, cluster->workers[0]->node);
    run_until(cluster, 2000);
    sim_heal(cluster->sim);
    run_until(cluster, 5000);
    expect_trace(
        cluster,
        "[  650] chief/0 links: /job:worker/task:0 is lost: silent for 540 ms\n"
        "[  650] chief/0 supervisor: /job:worker/task:0 is lost; nothing was in flight\n"
        "[  650] worker/0 links: /job:chief/task:0 is lost: silent for 540 ms\n"
        "[ 2948] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[ 2958] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[ 2958] chief/0 supervisor: /job:worker/task:0 takes closures (1 threads, "
        "window 4)\n");
    end(cluster);
}

TEST(test_short_pause)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[4];

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
TEST(test_chief_pause)
{
    struct cluster *cluster = MAKE(.workers = 2);
    struct cluster_closure *closures[2];

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
TEST(test_long_chief_pause)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    sim_run_until(cluster->sim, 165);
    sim_pause(cluster->chief->node, 3000);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(
        cluster,
        "[  700] worker/0 links: /job:chief/task:0 is lost: silent for 530 ms\n"
        "[ 1170] sim note: worker/0 runs square 0\n"
        "[ 3165] chief/0 links: this process stood still for 3015 ms\n"
        "[ 3165] chief/0 links: /job:worker/task:0 is lost: its connection broke: "
        "closed by the peer\n"
        "[ 3165] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure in "
        "flight: it runs again elsewhere\n"
        "[ 3203] worker/0 links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[ 3213] chief/0 links: /job:worker/task:0 is up at tcp://worker-0:1\n"
        "[ 3213] chief/0 supervisor: /job:worker/task:0 takes closures (1 threads, "
        "window 4)\n"
        "[ 4223] sim note: worker/0 runs square 0\n");
    expect_squares(&closure, 1);
    end(cluster);
}

/* A worker under which everything dies: a closure is not tried for ever. */
TEST(test_attempts)
{
    struct cluster *cluster = BEGIN(.workers = 1, .attempts_max = 3);
    struct cluster_closure *closure;
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    for (int i = 0; i < 3; i++) {
        run_for(cluster, 900);
        assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    }
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EABORTED);
    assert_string_equal(
        call->of.call.error.message,
        "function \"square\" lost its worker 3 times, last /job:worker/task:0; given up");
    assert_string_equal(call->of.call.error.function, "square");
    assert_int_equal(call->of.call.error.attempt, 3);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_READY);
    expect_counts(cluster->chief, 0, 1, 0);
    end(cluster);
}

/* A worker that says goodbye is taken out at once, not after silence. */
TEST(test_leave)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[2];

    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 400);
    mu__member_leave(&cluster->workers[0]->member, "the machine is needed");
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(
        cluster,
        "[  410] chief/0 links: /job:worker/task:0 is gone: it left: the machine "
        "is needed\n"
        "[  410] chief/0 supervisor: /job:worker/task:0 has left with 1 closure "
        "in flight: it runs again elsewhere\n"
        "[  420] worker/0 links: /job:chief/task:0 is lost: its connection "
        "broke: closed by the peer\n"
        "[ 1170] sim note: worker/0 runs square 1\n"
        "[ 1170] sim note: worker/1 runs square 0\n"
        "[ 2170] sim note: worker/1 runs square 1\n");
    expect_squares(closures, 2);
    end(cluster);
}

TEST(test_leave_idle)
{
    struct cluster *cluster = BEGIN(.workers = 1);

    run_until(cluster, 400);
    mu__member_leave(&cluster->workers[0]->member, "the machine is needed");
    run_until(cluster, 500);
    expect_trace(
        cluster,
        "[  410] chief/0 links: /job:worker/task:0 is gone: it left: the machine "
        "is needed\n"
        "[  410] chief/0 supervisor: /job:worker/task:0 has left; nothing was in flight\n"
        "[  420] worker/0 links: /job:chief/task:0 is lost: its connection "
        "broke: closed by the peer\n");
    end(cluster);
}

/* ---- Clients that go ---- */

TEST(test_client_crash)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2);
    struct cluster_closure *lost[6];
    struct cluster_closure *kept[2];

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
TEST(test_chief_lost)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[3];
    struct cluster_call *call;

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
                            "/job:chief/task:0 at tcp://chief-0:1 is lost: its "
                            "connection broke: connection broken");
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
TEST(test_schedule_without_chief)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    struct cluster_call *call;

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

TEST_PROGRAM()
