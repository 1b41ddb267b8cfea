/* What is run again: after a lost worker, after passing trouble; how often at most. */
#include "tests/support/story.h"

/* Kills the process that it runs on when its number is the poison's. */
enum { POISON = 666 };

static int run_sip(mu_run *run, void *user)
{
    struct cluster_task *task = user;

    note_run(task, "sip", number_of(run));
    if (number_of(run) == POISON)
        sim_exit(task->node);
    mu_run_return(run, mu_value_int(number_of(run)));
    return 0;
}

/* Fails with the code that its number is, so many times; then it succeeds. */
static unsigned failures_left;

static int run_trouble(mu_run *run, void *user)
{
    note_run(user, "trouble", number_of(run));
    if (failures_left == 0)
        return 0;
    failures_left--;
    return mu_run_fail(run, (int)number_of(run), "passing trouble");
}

/* A server that fails; its number is the server's index. */
static int run_write(mu_run *run, void *user)
{
    mu_error error = {.code = -MU_EUNAVAILABLE, .kind = MU_ERROR_SERVER};

    note_run(user, "save", number_of(run));
    if (failures_left == 0)
        return 0;
    failures_left--;
    (void)snprintf(error.task, sizeof error.task, "/job:ps/task:%d", (int)number_of(run));
    (void)snprintf(error.message, sizeof error.message, "%s is lost", error.task);
    return mu_run_fail_with(run, &error);
}

/* Has a process of its own, which dies; with a number of 1 it passes on what another
 * closure came to. */
static int run_in_process(mu_run *run, void *user)
{
    mu_error error = {.code = -MU_EABORTED, .kind = MU_ERROR_WORKER};

    note_run(user, "lane", number_of(run));
    if (failures_left == 0)
        return 0;
    failures_left--;
    (void)snprintf(error.message, sizeof error.message, "killed by signal 9");
    if (number_of(run) == 1)
        (void)snprintf(error.task, sizeof error.task, "/job:worker/task:7");
    return mu_run_fail_with(run, &error);
}

static const struct cluster_function own[] = {{"sip", run_sip, 0},
                                              {"trouble", run_trouble, 0},
                                              {"save", run_write, 0},
                                              {"lane", run_in_process, 0}};

#define OWN .functions = own, .functions_count = 4

/* ---- Lost workers ---- */

/* Five closures, one worker with a window of two: 0 and 1 go with it at 300, and are
 * given to its next life, before the three that never ran, in their order. */
TEST(test_to_the_front)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[5];

    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 200);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 5, closures);
    run_until(cluster, 300);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    run_until(cluster, 450);
    (void)sim_trace(cluster->sim);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  568] sim note: worker/0 runs square 0\n"
                          "[  768] sim note: worker/0 runs square 1\n"
                          "[  968] sim note: worker/0 runs square 2\n"
                          "[ 1168] sim note: worker/0 runs square 3\n"
                          "[ 1368] sim note: worker/0 runs square 4\n");
    assert_int_equal(retried(cluster->chief), 2);
    end(cluster);
}

/* The poison takes down whoever runs it; three innocents were given to the same worker.
 * After the second loss each of the four runs alone, so that the poison dies by itself:
 * it is given up when four workers were lost under it, and the innocents all finish. */
TEST(test_poison)
{
    struct cluster *cluster = BEGIN(.workers = 1, .attempts_max = 4, OWN);
    struct cluster_closure *innocent[3];
    struct cluster_closure *poison;
    mu_error error;

    open_at(cluster->chief);
    poison = call_with(cluster->chief, "sip", POISON, NULL);
    for (int i = 0; i < 3; i++)
        innocent[i] = call_with(cluster->chief, "sip", i, NULL);
    for (int i = 0; i < 4; i++) {
        run_for(cluster, 1000);
        if (!sim_alive(cluster->workers[0]->node))
            cluster_start(cluster->workers[0]);
    }
    run_for(cluster, 1000);
    error = raised(cluster->chief);
    assert_int_equal(error.code, -MU_EABORTED);
    assert_int_equal(error.kind, MU_ERROR_WORKER);
    assert_int_equal(error.attempt, 4);
    assert_string_equal(error.message, "function \"sip\" lost its worker 4 times, last "
                                       "/job:worker/task:0; given up");
    assert_int_equal(error_of(poison)->code, -MU_EABORTED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster_result(innocent[i]), i);
    expect_counts(cluster->chief, 3, 1, 0);
    end(cluster);
}

/* The same of closures that are for this worker alone. */
TEST(test_poison_for_one_worker)
{
    struct cluster *cluster = BEGIN(.workers = 2, .attempts_max = 4, OWN);
    struct cluster_closure *innocent[3];
    struct cluster_closure *poison;

    open_at(cluster->chief);
    poison = call_with(cluster->chief, "sip", POISON, ASK(.worker = 1));
    for (int i = 0; i < 3; i++)
        innocent[i] = call_with(cluster->chief, "sip", i, ASK(.worker = 1));
    for (int i = 0; i < 4; i++) {
        run_for(cluster, 1000);
        if (!sim_alive(cluster->workers[0]->node))
            cluster_start(cluster->workers[0]);
    }
    run_for(cluster, 1000);
    assert_int_equal(join(cluster->chief), -MU_EABORTED);
    assert_int_equal(error_of(poison)->code, -MU_EABORTED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster_result(innocent[i]), i);
    end(cluster);
}

/* What waits for the worker that a quarantined closure has to itself gets it when that
 * has ended. */
TEST(test_behind_a_quarantined_closure)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *quarantined;
    struct cluster_closure *pinned;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    quarantined = cluster_schedule(cluster->chief, "square");
    for (int i = 0; i < 2; i++) {
        run_for(cluster, 500);
        assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    }
    run_for(cluster, 300);
    pinned = cluster_schedule_with(cluster->chief, "square", ASK(.worker = 1));
    run_for(cluster, 100);
    expect_explained(pinned, "queued", "for /job:worker/task:0, which is busy");
    run_for(cluster, 2100);
    expect_squares(&quarantined, 1);
    expect_squares(&pinned, 1);
    end(cluster);
}

/* A quarantined closure waits for a worker that has nothing else, and that gets nothing
 * else while it runs: with two workers the other one does all the rest meanwhile. */
TEST(test_alone)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 2, OWN);
    struct cluster_closure *quarantined;
    struct cluster_closure *others[4];

    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    quarantined = cluster_schedule_with(cluster->chief, "square", ASK(.not_worker = 1));
    for (int i = 0; i < 2; i++) {
        run_for(cluster, 500);
        assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    }
    run_for(cluster, 9);
    run_for(cluster, 500);
    schedule(cluster->chief, "square", 4, others);
    run_for(cluster, 100);
    assert_int_equal(worker_number(cluster->chief, 1, "in_flight"), 1);
    assert_int_equal(worker_number(cluster->chief, 0, "in_flight"), 2);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 2);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(quarantined->future->attempt, 3);
    expect_squares(&quarantined, 1);
    expect_squares(others, 4);
    end(cluster);
}

/* The quarantined closure waits for worker/1, which has another closure until 1414. Its
 * answer and its end reach the chief together: when the answer is heard the worker is
 * there no more, and has not been missed yet. */
TEST(test_gone_in_the_same_moment)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *quarantined;
    struct cluster_closure *other;

    NEEDS_LONG_TURNS(cluster);
    sim_settings(cluster->sim)->burst_percent = 100;
    sim_settings(cluster->sim)->burst_us = 5000;
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    quarantined = cluster_schedule(cluster->chief, "square");
    run_until(cluster, 210);
    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    run_until(cluster, 400);
    other = cluster_schedule(cluster->chief, "square");
    run_until(cluster, 500);
    sim_crash(cluster->workers[0]->node);
    run_until(cluster, 1416);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 1434);
    expect_squares(&other, 1);
    cluster_start_all(cluster);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&quarantined, 1);
    end(cluster);
}

/* ---- Passing trouble ---- */

struct row {
    const char *function;
    int64_t number;
    unsigned failures;
    mu_node_options config;
    unsigned attempts_max; /* the closure's */
    int code;              /* what it comes to */
    unsigned attempts;     /* runs in all */
    uint64_t waited_ms;    /* back-off between them */
};

static void expect_row(const struct row *row)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node = row->config, OWN);
    struct cluster_closure *closure;
    struct cluster_call *call;

    failures_left = row->failures;
    open_at(cluster->chief);
    closure = call_with(cluster->chief, row->function, row->number,
                        ASK(.attempts_max = row->attempts_max));
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), row->code);
    assert_int_equal(closure->future->error == NULL ? closure->future->attempt
                                                    : closure->future->error->attempt,
                     row->attempts);
    assert_int_equal(call->done_ms, 160 + 30 * row->attempts + row->waited_ms);
    end(cluster);
}

/* One worker; a run takes 30 ms with its way there and back. The wait before attempt n
 * doubles: 10, 20, 40 ... and 5 s at most. */
TEST(test_passing)
{
    static const struct row rows[] = {
        /* clang-format off */
        /* A function's own error is final, whatever it is. */
        {"trouble", -MU_EINVALID, 1, {0}, 0, -MU_EINVALID, 1, 0},
        {"trouble", -MU_EUNAVAILABLE, 1, {0}, 0, -MU_EUNAVAILABLE, 1, 0},
        {"trouble", -MU_EABORTED, 1, {0}, 0, -MU_EABORTED, 1, 0},
        {"trouble", -MU_EUNKNOWN, 1, {0}, 0, -MU_EUNKNOWN, 1, 0},
        {"trouble", -MU_EDEADLINE, 1, {0}, 0, -MU_EDEADLINE, 1, 0},

        /* Cancelled though nobody asked for it: at once, then later and later. */
        {"trouble", -MU_ECANCELLED, 1, {0}, 0, 0, 2, 0},
        {"trouble", -MU_ECANCELLED, 3, {0}, 0, 0, 4, 20 + 40},
        {"trouble", -MU_ECANCELLED, 99, {.retries_max = 3}, 0, -MU_EABORTED, 3, 20},
        {"trouble", -MU_ECANCELLED, 99, {0}, 2, -MU_EABORTED, 2, 0},
        {"trouble", -MU_ECANCELLED, 99, {.retries_max = 3}, 4, -MU_EABORTED, 4, 20 + 40},

        /* An error that nobody knows may be taken for the worker's. */
        {"trouble", -MU_EUNKNOWN, 2, {.unknown_is_worker = true}, 0, 0, 3, 10 + 20},
        {"trouble", -MU_EUNKNOWN, 9, {.unknown_is_worker = true, .retries_max = 3}, 0,
         -MU_EUNKNOWN, 3, 10 + 20},

        /* Two timeouts are ignored, the third one counts. */
        {"trouble", -MU_EDEADLINE, 2, {.timeouts = 2}, 0, 0, 3, 10 + 20},
        {"trouble", -MU_EDEADLINE, 9, {.timeouts = 2}, 0, -MU_EDEADLINE, 3, 10 + 20},

        /* A server that fails: reports of one worker count once in a second. The runs end
         * at 30, 70, 120, 190, 300, 490, 840, 1510 and 2820: the eighth is the second
         * report that counts, and the ninth is one too many. */
        {"save", 0, 8, {.server_failures = 2}, 0, 0, 9,
         10 + 20 + 40 + 80 + 160 + 320 + 640 + 1280},
        {"save", 0, 9, {.server_failures = 2}, 0, -MU_EUNAVAILABLE, 9,
         10 + 20 + 40 + 80 + 160 + 320 + 640 + 1280},
        {"save", 0, 1, {0}, 0, -MU_EUNAVAILABLE, 1, 0},

        /* A process of the worker is lost: at once, then later and later. What another
         * closure lost is final. */
        {"lane", 0, 1, {0}, 0, 0, 2, 0},
        {"lane", 0, 4, {0}, 0, 0, 5, 10 + 20 + 40},
        {"lane", 0, 99, {0}, 2, -MU_EABORTED, 2, 0},
        {"lane", 1, 1, {0}, 0, -MU_EABORTED, 1, 0},
        /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_row(&rows[i]);
}

/* What gave up says so, and says whose trouble it was. */
TEST(test_given_up)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node.retries_max = 3, OWN);
    struct cluster_closure *closure;

    failures_left = 99;
    open_at(cluster->chief);
    closure = call_with(cluster->chief, "trouble", -MU_ECANCELLED, NULL);
    run_for(cluster, 1000);
    assert_string_equal(error_of(closure)->message,
                        "passing trouble (given up after 3 runs)");
    (void)join(cluster->chief);
    end(cluster);
}

/* Its process dies under it again and again, and it runs alone all the same: the worker
 * has never been lost. */
TEST(test_lost_processes)
{
    struct cluster *cluster = BEGIN(.workers = 1, .attempts_max = 4, .window = 2, OWN);
    struct cluster_closure *lost;
    struct cluster_closure *beside;

    failures_left = 99;
    open_at(cluster->chief);
    lost = call_with(cluster->chief, "lane", 0, NULL);
    beside = call_with(cluster->chief, "sip", 5, NULL);
    run_for(cluster, 1000);
    assert_int_equal(cluster_result(beside), 5);
    assert_int_equal(error_of(lost)->kind, MU_ERROR_WORKER);
    assert_int_equal(error_of(lost)->attempt, 4);
    assert_string_equal(error_of(lost)->task, "/job:worker/task:0");
    assert_string_equal(error_of(lost)->message,
                        "function \"lane\" lost its process 4 times, last on "
                        "/job:worker/task:0: killed by signal 9; given up");
    (void)join(cluster->chief);
    end(cluster);
}

/* Servers are counted each for itself, and reports are forgotten after a while: with one
 * report in a second allowed, one every two seconds never raises anything. */
TEST(test_decay)
{
    struct cluster *cluster = BEGIN(.workers = 1, .node.server_failures = 1,
                                    .node.server_failures_ms = 2000, OWN);
    struct cluster_closure *closure = NULL;

    open_at(cluster->chief);
    for (int i = 0; i < 5; i++) {
        failures_left = 1;
        closure = call_with(cluster->chief, "save", 0, NULL);
        run_for(cluster, 100);
        assert_int_equal(closure->future->attempt, 2);
        run_for(cluster, 2000);
    }

    /* Another server's failure does not count for this one. */
    for (int i = 0; i < 4; i++) {
        failures_left = 1;
        closure = call_with(cluster->chief, "save", i, NULL);
        run_for(cluster, 1100);
        assert_int_equal(closure->future->attempt, 2);
    }
    failures_left = 1;
    closure = call_with(cluster->chief, "save", 3, NULL);
    run_for(cluster, 100);
    assert_int_equal(error_of(closure)->kind, MU_ERROR_SERVER);
    assert_string_equal(error_of(closure)->task, "/job:ps/task:3");
    assert_string_equal(raised(cluster->chief).task, "/job:ps/task:3");
    end(cluster);
}

/* Two workers see the same server fail at the same moment: two reports, and a third one
 * is too many. */
TEST(test_reporters)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .window = 1, .node.server_failures = 2, OWN);
    struct cluster_closure *closures[2];

    failures_left = 2;
    open_at(cluster->chief);
    for (int i = 0; i < 2; i++)
        closures[i] = call_with(cluster->chief, "save", 1, NULL);
    run_for(cluster, 1200);
    assert_int_equal(closures[0]->future->attempt, 2);
    assert_int_equal(closures[1]->future->attempt, 2);
    failures_left = 1;
    closures[0] = call_with(cluster->chief, "save", 1, NULL);
    run_for(cluster, 100);
    assert_int_equal(error_of(closures[0])->code, -MU_EUNAVAILABLE);
    assert_int_equal(error_of(closures[0])->attempt, 1);
    assert_int_equal(join(cluster->chief), -MU_EUNAVAILABLE);
    end(cluster);
}

TEST_PROGRAM()
