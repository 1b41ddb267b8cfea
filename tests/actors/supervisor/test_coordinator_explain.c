/* No wait is silent: what the chief says about a closure that has not run, what a join
 * says at its limit, and the line in the log when nothing moves. */
#include "tests/support/story.h"

static unsigned failures_left;

static int run_trouble(mu_run *run, void *user)
{
    note_run(user, "trouble", number_of(run));
    if (failures_left == 0)
        return 0;
    failures_left--;
    return mu_run_fail(run, -MU_EUNKNOWN, "passing trouble");
}

static const struct cluster_function own[] = {{"trouble", run_trouble, 0}};

#define OWN .functions = own, .functions_count = 1

/* One worker with a window of one, three closures and one of a more urgent queue. */
TEST(test_queued)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[3];
    struct cluster_closure *urgent;

    set_work_ms(cluster, 1000);
    open_at(client);
    run_for(cluster, 20); /* until the client knows how much room there is */
    schedule(client, "square", 3, closures);
    run_for(cluster, 5); /* the worker has the first one */
    urgent = cluster_schedule_with(client, "square", ASK(.priority = 1));
    run_until(cluster, 300);

    /* A question takes 20 ms: the worker dies at 360, and is asked about at 510. */
    expect_explained(closures[0], "running", "for its function to return");
    expect_explained(urgent, "queued",
                     "for a worker, as the next: the only worker has no room");
    expect_explained(closures[2], "queued",
                     "for a worker, behind 2 others: the only worker has no room");
    sim_crash(cluster->workers[0]->node);
    run_until(cluster, 500);
    expect_explained(closures[0], "queued",
                     "for a worker, behind 1 other: no worker is up; /job:worker/task:0 "
                     "is missing for 140 ms");
    cluster_start(cluster->workers[0]);
    assert_int_equal(join(client), 0);
    end(cluster);
}

TEST(test_held)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node.unknown_is_worker = true, OWN);
    struct cluster_closure *closure;

    failures_left = 3;
    open_at(cluster->chief);
    closure = call_with(cluster->chief, "trouble", 0, NULL);
    run_until(cluster, 195);
    expect_explained(closure, "held", "5 ms more before it is tried again");
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

TEST(test_constrained)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *constrained;
    struct cluster_closure *pinned;
    struct cluster_closure *plain;

    open_at(cluster->chief);
    constrained = cluster_schedule_with(cluster->chief, "square", ASK(.not_worker = 1));
    pinned = cluster_schedule_with(cluster->chief, "square", ASK(.worker = 2));
    plain = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 100);

    /* The plain one has passed them. */
    expect_squares(&plain, 1);
    expect_explained(constrained, "queued", "for another worker than /job:worker/task:0");
    expect_explained(pinned, "queued", "for /job:worker/task:1, which is missing");
    cluster_start(cluster_add(cluster, "worker", 1, "second"));
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&constrained, 1);
    expect_squares(&pinned, 1);
    end(cluster);
}

/* A worker that is up and gets nothing: why. */
TEST(test_late_worker)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .window = 1, .node.start_delay_ms = 3000);
    struct cluster_closure *closures[2];

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_for(cluster, 100);
    expect_explained(closures[1], "queued",
                     "for a worker, as the next: none of 2 workers has room, 1 yet to "
                     "be started");
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

TEST(test_leaving_worker)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closures[2];

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 100);
    (void)cluster_drain(cluster->workers[0], -1, -1);
    run_for(cluster, 100);
    closures[1] = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 100);
    expect_explained(closures[1], "queued",
                     "for a worker, as the next: the only worker has no room, 1 leaving");
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 2);
    end(cluster);
}

TEST(test_hanging_worker)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;

    set_work_ms(cluster, 5000);
    open_at(cluster->chief);
    (void)cluster_schedule_with(cluster->chief, "square", ASK(.run_timeout_ms = 500));
    closure = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 600);
    set_work_ms(cluster, 10);
    expect_explained(closure, "queued",
                     "for a worker, as the next: the only worker has no room, 1 busy "
                     "with runs that do not end");
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

TEST(test_building_worker)
{
    struct cluster *cluster = BEGIN(.workers = 1, OWN);
    struct cluster_closure *closure;
    struct cluster_call *call;
    struct mu__held *held;

    failures_left = 0;
    open_at(cluster->chief);
    call = cluster_per_worker(cluster->chief, "trouble", mu_value_int(0), 1000);
    assert_int_equal(cluster_wait(call), 0);
    held = cluster_per_worker_made(call);
    run_for(cluster, 100);
    set_work_ms(cluster, 3000);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    run_for(cluster, 1000);
    closure = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 100);
    expect_explained(closure, "queued",
                     "for a worker, as the next: the only worker has no room, 1 "
                     "building per-worker values");
    assert_int_equal(join(cluster->chief), 0);
    mu__held_unref(held);
    end(cluster);
}

/* By name, and of a name that nobody has. */
TEST(test_named)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    (void)cluster_schedule_with(cluster->chief, "square", ASK(.name = "epoch 7"));
    run_until(cluster, 300);
    call = cluster_explain(cluster->chief, NULL, "epoch 7");
    assert_int_equal(cluster_wait(call), 0);
    expect_text(call->of.client.status, "state", "running");
    expect_text(call->of.client.status, "task", "/job:worker/task:0");
    expect_text(call->of.client.status, "name", "epoch 7");
    mu_value_free(call->of.client.status);
    call = cluster_explain(cluster->chief, NULL, "epoch 8");
    assert_int_equal(cluster_wait(call), 0);
    expect_text(call->of.client.status, "state", "unknown");
    expect_text(call->of.client.status, "waits_for",
                "for nothing: the chief has no such closure (it may be resolved)");
    mu_value_free(call->of.client.status);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* One that waits for another's result is not at the chief yet: the client says so. */
TEST(test_inputs)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *first;
    struct cluster_closure *user;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    first = cluster_schedule(cluster->chief, "square");
    user =
        cluster_schedule_args(cluster->chief, "square", cluster_reference(first), NULL);
    run_until(cluster, 400);
    expect_explained(user, "waiting", "for 1 of its 1 input");
    (void)join(cluster->chief);
    end(cluster);
}

/* ---- The watchdog ---- */

/* It looks ten times in its period. At 160 the first closures come; a worker is lost at
 * 410; one function hangs. */
TEST(test_watchdog)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1, .node.watchdog_ms = 1000);
    struct cluster_closure *closures[3];

    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 3000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 3, closures);
    run_until(cluster, 400);
    sim_crash(cluster->workers[0]->node);
    run_until(cluster, 2300);
    expect_trace(
        cluster,
        "[  410] chief/0 links: /job:worker/task:0 is lost: its connection broke: "
        "closed by the peer\n"
        "[  410] chief/0 supervisor: /job:worker/task:0 is lost with 1 closure in "
        "flight: it runs again elsewhere\n"
        "[ 1160] chief/0 supervisor: no closure was resolved for 1000 ms; 2 are queued, "
        "0 sent to workers, 1 running; closure 4294967296 \"square\" on "
        "/job:worker/task:1 for 980 ms; the only worker has no room; "
        "/job:worker/task:0 is missing for 750 ms\n"
        "[ 2160] chief/0 supervisor: no closure was resolved for 1000 ms; 2 are queued, "
        "0 sent to workers, 1 running; closure 4294967296 \"square\" on "
        "/job:worker/task:1 for 1980 ms; the only worker has no room; "
        "/job:worker/task:0 is missing for 1750 ms\n");
    assert_int_equal(status_number(cluster->chief, "closures", "stalls"), 2);
    cluster_start(cluster->workers[0]);
    (void)join(cluster->chief);
    end(cluster);
}

/* It is silent while closures are resolved, and when there are none; a worker that has
 * room is not said to have none. */
TEST(test_watchdog_is_fair)
{
    struct cluster *cluster = BEGIN(.workers = 2, .node.watchdog_ms = 1000);
    struct cluster_closure *closures[40];
    struct cluster_closure *slow;

    sim_trace_level(cluster->sim, MU__LOG_WARN);
    set_work_ms(cluster, 300);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 40, closures);
    assert_int_equal(join(cluster->chief), 0);
    run_for(cluster, 5000);
    expect_trace(cluster, "");
    set_work_ms(cluster, 1500);
    slow = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 1100);
    assert_non_null(strstr(sim_trace(cluster->sim),
                           "; 0 are queued, 0 sent to workers, 1 running; closure "));
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&slow, 1);
    end(cluster);
}

/* The words about workers, exactly. */
TEST(test_watchdog_room)
{
    struct cluster *cluster = BEGIN(.workers = 2, .node.watchdog_ms = 1000);
    struct cluster_closure *slow;

    NEEDS_LONG_TURNS(cluster);
    sim_trace_level(cluster->sim, MU__LOG_WARN);
    set_work_ms(cluster, 1500);
    open_at(cluster->chief);
    slow = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 1100);
    expect_trace(
        cluster,
        "[ 1160] chief/0 supervisor: no closure was resolved for 1000 ms; 0 are queued, "
        "0 sent to workers, 1 running; closure 4294967296 \"square\" on "
        "/job:worker/task:1 for 980 ms; 2 of 2 workers have room\n");
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&slow, 1);
    end(cluster);
}

/* A result that was kept is lost; somebody wants it, long after all closures were
 * resolved: that wait is watched, too. */
TEST(test_watchdog_of_kept)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node.watchdog_ms = 1000, OWN);
    struct cluster_closure *kept;
    struct cluster_call *call;

    failures_left = 0;
    open_at(cluster->chief);
    kept = call_with(cluster->chief, "trouble", 0, ASK(.flags = MU_CLOSURE_PIN_RESULT));
    assert_int_equal(join(cluster->chief), 0);
    sim_crash(cluster->workers[0]->node);
    run_until(cluster, 5000);
    sim_trace_level(cluster->sim, MU__LOG_WARN);
    (void)sim_trace(cluster->sim);
    call = cluster_fetch(kept, -1);
    run_until(cluster, 6000);
    expect_trace(
        cluster,
        "[ 6000] chief/0 supervisor: no closure was resolved for 1000 ms; 1 are queued, "
        "0 sent to workers, 0 running; no worker is up; /job:worker/task:0 is "
        "missing for 5800 ms\n");
    cluster_start(cluster->workers[0]);
    assert_int_equal(cluster_wait(call), 0);
    end(cluster);
}

/* ---- Joins ---- */

TEST(test_join)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[2];
    struct cluster_call *call;

    set_work_ms(cluster, 3000);
    open_at(client);
    run_for(cluster, 20);
    schedule(client, "square", 2, closures);
    call = cluster_ask(client, MU__CLIENT_JOIN, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_int_equal(call->of.call.error.kind, MU_ERROR_LIMIT);
    assert_string_equal(
        call->of.call.error.message,
        "2 closures are outstanding after 1000 ms; closure 4294967296 \"square\" runs on "
        "/job:worker/task:0 for 980 ms; the chief has 1 running, 1 sent, 0 queued");
    assert_int_equal(join(client), 0);
    expect_squares(closures, 2);
    end(cluster);
}

/* What was sent to a worker that stands still does not run there. */
TEST(test_join_of_what_has_not_begun)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[3];
    struct cluster_call *call;

    open_at(client);
    run_for(cluster, 20);
    sim_pause(cluster->workers[0]->node, 400);
    schedule(client, "square", 3, closures);
    call = cluster_ask(client, MU__CLIENT_JOIN, 200);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "3 closures are outstanding after 200 ms; closure 4294967296 \"square\" was sent "
        "to /job:worker/task:0 200 ms ago; the chief has 0 running, 2 sent, 1 queued");
    assert_int_equal(join(client), 0);
    expect_squares(closures, 3);
    end(cluster);
}

TEST_PROGRAM()
