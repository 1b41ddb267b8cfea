/* Limits in time, and cancelling: what is told then, and what becomes of the worker. */
#include "tests/support/story.h"

static unsigned failures_left;

/* Cancelled though nobody asked for it, so many times. */
static int run_trouble(mu_run *run, void *user)
{
    note_run(user, "trouble", number_of(run));
    if (failures_left == 0)
        return 0;
    failures_left--;
    return mu_run_fail(run, -MU_ECANCELLED, "passing trouble");
}

static const struct cluster_function own[] = {{"trouble", run_trouble, 0}};

#define OWN .functions = own, .functions_count = 1

/* ---- Deadlines ---- */

/* The second closure waits behind the first one, which takes a second. */
TEST(test_deadline_in_queue)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "square");
    closures[1] =
        cluster_schedule_with(cluster->chief, "square", ASK(.deadline_ms = 300));
    call = cluster_fetch(closures[1], -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 460);
    assert_string_equal(
        error_of(closures[1])->message,
        "the closure's deadline has passed: it has not been given to a worker");
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    expect_squares(closures, 1);
    assert_int_equal(cluster->runs[1], 0);
    end(cluster);
}

/* It runs at 180, 210, 260 (after 20 ms), 330 (40): at 400 it waits for another 80. */
TEST(test_deadline_held)
{
    struct cluster *cluster = BEGIN(.workers = 1, OWN);
    struct cluster_closure *closure;
    struct cluster_call *call;

    failures_left = 99;
    open_at(cluster->chief);
    closure = call_with(cluster->chief, "trouble", 0, ASK(.deadline_ms = 240));
    run_until(cluster, 390);
    expect_explained(closure, "held", "30 ms more before it is tried again");
    call = cluster_fetch(closure, -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 400);
    assert_int_equal(error_of(closure)->attempt, 4);
    assert_string_equal(
        error_of(closure)->message,
        "the closure's deadline has passed: it has not been given to a worker again");
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    end(cluster);
}

/* In flight: the program hears at once, the worker is asked to stop, and its place is
 * taken until it has. */
TEST(test_deadline_in_flight)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closures[0] =
        cluster_schedule_with(cluster->chief, "patient", ASK(.deadline_ms = 300));
    closures[1] = cluster_schedule(cluster->chief, "square");
    call = cluster_fetch(closures[0], -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 460);
    set_work_ms(cluster, 10);
    assert_int_equal(worker_number(cluster->chief, 0, "in_flight"), 0);
    assert_int_equal(worker_number(cluster->chief, 0, "abandoned"), 1);
    call = cluster_fetch(closures[1], -1);
    assert_int_equal(cluster_wait(call), 0);

    /* The first is back at 1180, the second takes 30 ms. It stopped early, unrecorded. */
    assert_int_equal(call->done_ms, 1210);
    assert_int_equal(cluster->runs[0], 0);
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    end(cluster);
}

/* A closure that waits for another's result: here, at the client. */
TEST(test_deadline_of_inputs)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *first;
    struct cluster_closure *user;
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    first = cluster_schedule(cluster->chief, "square");
    user = cluster_schedule_args(cluster->chief, "square", cluster_reference(first),
                                 ASK(.deadline_ms = 300));
    call = cluster_fetch(user, -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 460);
    assert_int_equal(error_of(user)->kind, MU_ERROR_LIMIT);
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    expect_squares(&first, 1);
    end(cluster);
}

/* ---- Runs that do not end ---- */

/* The run hangs on worker/1 from 170 on, which is told 10 ms later; 300 ms after it was
 * known to run, it runs on worker/0. What is for worker/1 alone waits until the hanging
 * one has answered. */
TEST(test_run_limit)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *closure;
    struct cluster_closure *pinned;
    struct cluster_call *call;

    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 5000);
    open_at(cluster->chief);
    closure = cluster_schedule_with(cluster->chief, "square", ASK(.run_timeout_ms = 300));
    run_until(cluster, 200);
    set_work_ms(cluster, 10);
    pinned = cluster_schedule_with(cluster->chief, "square", ASK(.worker = 2));
    call = cluster_fetch(closure, -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 480 + 30);
    assert_int_equal(closure->future->attempt, 2);
    expect_trace(cluster,
                 "[  480] chief/0 supervisor: closure 4294967296: it ran for 300 ms on "
                 "/job:worker/task:1, which is the limit of one run\n"
                 "[  500] sim note: worker/0 runs square 0\n");
    assert_int_equal(worker_number(cluster->chief, 1, "abandoned"), 1);
    expect_explained(pinned, "queued", "for /job:worker/task:1, which is busy");
    call = cluster_fetch(pinned, -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 5180 + 30);
    assert_int_equal(worker_number(cluster->chief, 1, "abandoned"), 0);
    expect_counts(cluster->chief, 2, 0, 0);
    assert_int_equal(status_number(cluster->chief, "closures", "stuck"), 1);
    end(cluster);
}

/* One thread, a window of four: a closure without a limit waits behind the one that
 * hangs. It is taken back, and nothing else is sent there, though most of the places are
 * free. */
TEST(test_behind_a_stuck_one)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 4);
    struct cluster_closure *stuck;
    struct cluster_closure *other;
    struct cluster_closure *later[4];

    NEEDS_LONG_TURNS(cluster);
    sim_pause(cluster->workers[0]->node, 120);
    set_work_ms(cluster, 60000);
    open_at(cluster->chief);
    stuck = cluster_schedule_with(cluster->chief, "square",
                                  ASK(.run_timeout_ms = 300, .not_worker = 1));
    other = cluster_schedule_with(cluster->chief, "square", ASK(.not_worker = 1));
    run_until(cluster, 200);
    set_work_ms(cluster, 10);
    assert_int_equal(worker_number(cluster->chief, 1, "in_flight"), 2);
    run_until(cluster, 520);
    assert_int_equal(worker_number(cluster->chief, 1, "in_flight"), 0);
    assert_int_equal(worker_number(cluster->chief, 1, "abandoned"), 1);
    schedule(cluster->chief, "square", 4, later);
    run_for(cluster, 1000);
    expect_squares(later, 4);
    assert_int_equal(worker_number(cluster->chief, 1, "in_flight"), 0);

    /* These two may not run on the other worker; a third one comes. */
    cluster_start(cluster_add(cluster, "worker", 2, "third"));
    run_for(cluster, 1000);
    expect_squares(&stuck, 1);
    expect_squares(&other, 1);
    assert_int_equal(join(cluster->chief), 0);

    /* When the hanging one returns, the worker works again. What was taken back has run
     * once, and that was its first attempt. */
    assert_int_equal(other->future->attempt, 1);
    run_until(cluster, 60300);
    assert_int_equal(worker_number(cluster->chief, 1, "abandoned"), 0);
    later[0] = cluster_schedule_with(cluster->chief, "square", ASK(.worker = 2));
    run_for(cluster, 100);
    expect_squares(later, 1);
    assert_int_equal(cluster->runs[0], 2);
    assert_int_equal(cluster->runs[1], 1);
    end(cluster);
}

/* Two threads: one that hangs leaves the other one. */
TEST(test_one_thread_left)
{
    struct cluster *cluster = BEGIN(.workers = 1, .threads = 2, .window = 2);
    struct cluster_closure *stuck;
    struct cluster_closure *others[3];

    set_work_ms(cluster, 5000);
    open_at(cluster->chief);
    stuck = cluster_schedule_with(cluster->chief, "square",
                                  ASK(.run_timeout_ms = 300, .attempts_max = 1));
    run_until(cluster, 200);
    set_work_ms(cluster, 10);
    schedule(cluster->chief, "square", 3, others);
    run_until(cluster, 600);
    expect_squares(others, 3);
    assert_int_equal(error_of(stuck)->code, -MU_EDEADLINE);
    assert_int_equal(error_of(stuck)->kind, MU_ERROR_LIMIT);
    assert_string_equal(error_of(stuck)->task, "/job:worker/task:0");
    assert_string_equal(
        error_of(stuck)->message,
        "it ran for 300 ms on /job:worker/task:0, which is the limit of one run (given "
        "up after 1 runs)");
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    end(cluster);
}

/* A function that is always too slow ends: without a number of attempts of its own after
 * as many runs as for lost workers. */
TEST(test_always_too_slow)
{
    struct cluster *cluster = BEGIN(.workers = 1, .threads = 2, .window = 2);
    struct cluster_closure *ends;
    struct cluster_closure *more;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    ends = cluster_schedule_with(cluster->chief, "square", ASK(.run_timeout_ms = 300));
    run_until(cluster, 10000);
    assert_int_equal(error_of(ends)->code, -MU_EDEADLINE);
    assert_string_equal(
        error_of(ends)->message,
        "it ran for 300 ms on /job:worker/task:0, which is the limit of one run (given "
        "up after 10 runs)");
    assert_int_equal(cluster->runs[0], 10);
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    more = cluster_schedule_with(cluster->chief, "square",
                                 ASK(.run_timeout_ms = 300, .attempts_max = 5));
    run_for(cluster, 10000);
    assert_int_equal(error_of(more)->code, -MU_EDEADLINE);
    assert_int_equal(cluster->runs[1], 5);
    assert_int_equal(join(cluster->chief), -MU_EDEADLINE);
    end(cluster);
}

/* ---- Waiting for a worker ---- */

/* A worker that was there and does not come back: what is for it alone ends. Others go
 * on. */
TEST(test_recovery_limit)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 1, .node.recovery_ms = 2000);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *pinned;
    struct cluster_closure *other;
    struct cluster_call *call;

    open_at(client);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 300);
    pinned = cluster_schedule_with(client, "square", ASK(.worker = 2));
    other = cluster_schedule(client, "square");
    call = cluster_fetch(pinned, -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 170 + 2000 + 10);
    expect_squares(&other, 1);
    assert_int_equal(error_of(pinned)->kind, MU_ERROR_WORKER);
    assert_string_equal(
        error_of(pinned)->message,
        "the closure is for /job:worker/task:1 alone, which has not come back "
        "within 2000 ms");
    assert_string_equal(raised(client).message, error_of(pinned)->message);
    assert_int_equal(join(client), 0);

    /* It comes after all, and is welcome. */
    cluster_start(cluster->workers[1]);
    run_for(cluster, 10000);
    pinned = cluster_schedule_with(client, "square", ASK(.worker = 2));
    assert_int_equal(join(client), 0);
    expect_squares(&pinned, 1);
    end(cluster);
}

/* A worker that never was there is waited for in the same way. */
TEST(test_worker_never_there)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node.recovery_ms = 2000);
    struct cluster_closure *pinned;
    struct cluster_call *call;

    open_at(cluster->chief);
    pinned = cluster_schedule_with(cluster->chief, "square", ASK(.worker = 8));
    run_until(cluster, 1000);
    expect_explained(pinned, "queued", "for /job:worker/task:7, which is missing");
    call = cluster_fetch(pinned, -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 160 + 2000);
    assert_int_equal(join(cluster->chief), -MU_EUNAVAILABLE);
    end(cluster);
}

/* ---- Cancelling ---- */

/* Queued: at once. In flight: the run is asked to stop, and what it returns is not looked
 * at. Waiting for an input: at once. None of them is an error. */
TEST(test_cancel)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *running;
    struct cluster_closure *queued;
    struct cluster_closure *waiting;

    set_work_ms(cluster, 1000);
    open_at(client);
    running = cluster_schedule(client, "square");
    queued = cluster_schedule(client, "square");
    waiting = cluster_schedule_args(client, "square", cluster_reference(queued), NULL);
    run_until(cluster, 300);
    cluster_cancel(waiting);
    run_until(cluster, 301);
    assert_int_equal(error_of(waiting)->code, -MU_ECANCELLED);
    cluster_cancel(queued);
    run_until(cluster, 325);
    assert_int_equal(error_of(queued)->code, -MU_ECANCELLED);
    assert_string_equal(error_of(queued)->message, "cancelled before it ran");
    cluster_cancel(running);
    run_until(cluster, 1150);
    assert_false(is_resolved(running));
    assert_int_equal(join(client), 0);
    assert_int_equal(error_of(running)->code, -MU_ECANCELLED);
    expect_counts(client, 0, 0, 3);
    assert_int_equal(cluster->runs[queued->key], 0);
    end(cluster);
}

/* A closure that others wait for: they end with an input error, which is one. */
TEST(test_cancel_an_input)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_closure *first;
    struct cluster_closure *user;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    first = cluster_schedule(cluster->chief, "square");
    user =
        cluster_schedule_args(cluster->chief, "square", cluster_reference(first), NULL);
    run_until(cluster, 300);
    cluster_cancel(first);
    run_until(cluster, 2000);
    assert_int_equal(error_of(user)->kind, MU_ERROR_INPUT);
    assert_int_equal(error_of(user)->code, -MU_ECANCELLED);
    (void)join(cluster->chief);
    end(cluster);
}

TEST_PROGRAM()
