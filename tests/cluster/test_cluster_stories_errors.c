/* Errors of closures on their way to the program: the first is raised, once, and what is
 * under way is cancelled. */
#include "tests/support/story.h"

/* Six closures on one worker with a window of two, the second of which fails: what is
 * queued is cancelled as soon as somebody wants to hear, also on the worker, what runs
 * ends, then the error is raised, once. */
TEST(test_error)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[6];
    struct cluster_call *call;
    const mu_error *error;

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
TEST(test_errors_while_cancelling)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 4);
    struct cluster_closure *closures[3];
    struct cluster_call *call;

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

/* Both that wait get the error, and only they; what runs is told that nobody wants it. */
TEST(test_cancel_in_flight)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 4);
    struct cluster_closure *closures[4];
    struct cluster_call *calls[2];

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "fail");
    schedule(cluster->chief, "patient", 3, closures + 1);
    calls[0] = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    calls[1] = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cluster_wait(calls[i]), -MU_EINVALID);
        assert_string_equal(calls[i]->of.call.error.message, "bad 0");
    }
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  270] sim note: worker/0 runs fail 0\n");
    expect_counts(cluster->chief, 0, 1, 3);
    end(cluster);
}

/* What was cancelled while it was in flight is not run again when its worker is lost. */
TEST(test_cancelled_and_lost)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

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
TEST(test_raise_at_once)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

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

TEST(test_unknown_function)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_call *call;

    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "sqare");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_ENOTFOUND);
    assert_string_equal(
        call->of.call.error.message,
        "no function \"sqare\" on /job:worker/task:0, which has 8 (is its plugin "
        "loaded there?)");
    assert_string_equal(call->of.call.error.task, "/job:worker/task:0");
    end(cluster);
}

/* Of another program's error a program hears nothing, and loses nothing. */
TEST(test_errors_are_of_one_client)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2);
    struct cluster_closure *closures[8];

    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    (void)cluster_schedule(cluster->clients[0], "fail");
    schedule(cluster->clients[1], "square", 8, closures);
    assert_int_equal(join(cluster->clients[0]), -MU_EINVALID);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(closures, 8);
    end(cluster);
}

TEST_PROGRAM()
