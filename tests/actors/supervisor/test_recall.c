/* What was sent to a worker and has not begun there is still the chief's. */
#include "actors/packing.h"
#include "tests/support/story.h"

#define SLOW_US (UINT64_C(500) * 1000)
#define HANG_US (UINT64_C(3600) * 1000000)

enum { QUICK_US = 50, TURNS_AT = 20000 };

static struct cluster *turning; /* whose settings "vary" changes, */
static unsigned turns_left;     /* after so many runs */

static int run_it(mu_run *run, void *user)
{
    struct cluster_task *task = user;

    sim_note(task->cluster->sim, MU__LOG_INFO, "%s ends %lld", task->name,
             (long long)number_of(run));
    mu_run_return(run, mu_value_int(number_of(run)));
    return 0;
}

/* Quick so often; whatever begins later takes long. */
static int run_vary(mu_run *run, void *user)
{
    (void)user;
    if (turns_left > 0 && --turns_left == 0)
        sim_settings(turning->sim)->work = (struct sim_range){SLOW_US, SLOW_US};
    mu_run_return(run, mu_value_int(number_of(run)));
    return 0;
}

static const struct cluster_function own[] = {
    {"tiny", run_it, 0}, {"step", run_it, 0},   {"slow", run_it, 0},
    {"hang", run_it, 0}, {"vary", run_vary, 0},
};

static uint64_t takes_us(const char *function)
{
    if (strcmp(function, "tiny") == 0)
        return QUICK_US;
    if (strcmp(function, "step") == 0)
        return 100 * 1000;
    if (strcmp(function, "slow") == 0)
        return SLOW_US;
    return strcmp(function, "hang") == 0 ? HANG_US : 0;
}

#define OWN \
    .functions = own, .functions_count = sizeof own / sizeof own[0], .work_us = takes_us

/* Frames take no time that matters here: windows hide it, and are what is looked at. */
static struct cluster *begin_quick(const struct cluster_options *options)
{
    const struct sim_range quick = {50, 50};
    struct cluster *cluster = cluster_new(1, options);

    sim_settings(cluster->sim)->latency = quick;
    sim_settings(cluster->sim)->work = quick;
    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    open_at(cluster->chief);
    return cluster;
}

#define BEGIN_QUICK(...) begin_quick(&(struct cluster_options){__VA_ARGS__, OWN})

static void call_many(struct cluster *cluster, const char *function, unsigned count,
                      struct cluster_closure **ret_closures)
{
    for (unsigned i = 0; i < count; i++) {
        struct cluster_closure *closure = call_with(cluster->chief, function, i, NULL);

        if (ret_closures != NULL)
            ret_closures[i] = closure;
    }
}

static unsigned count_done(struct cluster_closure *const *closures, unsigned count)
{
    unsigned done = 0;

    for (unsigned i = 0; i < count; i++)
        done += mu_remote_value_state(closures[i]->future) == MU_REMOTE_READY &&
                closures[i]->future->error == NULL;
    return done;
}

static int64_t count_of(struct cluster *cluster, const char *name)
{
    return status_number(cluster->chief, "closures", name);
}

/* ---- Slow ones behind quick ones ---- */

/* Another function: nothing is known of it, so nobody gets more than he has threads. */
TEST(test_slow_function_after_a_quick_one)
{
    struct cluster *cluster =
        BEGIN_QUICK(.workers = 2, .adaptive = true, .queue_max = TURNS_AT + 40);
    uint64_t start_ms = sim_now_ms(cluster->sim);

    call_many(cluster, "tiny", TURNS_AT, NULL);
    call_many(cluster, "slow", 20, NULL);
    assert_true(joined_after(cluster->chief, start_ms) < (500 + 10 * 500) * 11 / 10);
    end(cluster);
}

/* The same function, which nobody could know: what has not begun goes to the one that is
 * free. */
TEST(test_function_that_becomes_slow)
{
    struct cluster *cluster =
        BEGIN_QUICK(.workers = 2, .adaptive = true, .queue_max = TURNS_AT + 40);
    uint64_t start_ms = sim_now_ms(cluster->sim);

    turning = cluster;
    turns_left = TURNS_AT;
    call_many(cluster, "vary", TURNS_AT + 20, NULL);
    assert_true(joined_after(cluster->chief, start_ms) < (500 + 10 * 500) * 11 / 10);
    assert_int_equal(count_of(cluster, "retried"), 0);
    end(cluster);
}

/* The second worker comes when all has been sent to the first. */
TEST(test_worker_that_joins_gets_its_part)
{
    struct cluster *cluster =
        MAKE(.workers = 2, .adaptive = true, .queue_max = TURNS_AT + 40, OWN);
    const struct sim_range quick = {50, 50};
    uint64_t start_ms;

    sim_settings(cluster->sim)->latency = quick;
    sim_settings(cluster->sim)->work = quick;
    cluster_start(cluster->chief);
    cluster_start(cluster->workers[0]);
    run_for(cluster, 300);
    open_at(cluster->chief);
    turning = cluster;
    turns_left = TURNS_AT;
    call_many(cluster, "vary", TURNS_AT + 20, NULL);
    while (turns_left > 0)
        run_for(cluster, 10);
    start_ms = sim_now_ms(cluster->sim);
    cluster_start(cluster->workers[1]);
    assert_true(joined_after(cluster->chief, start_ms) < 10 * 500 * 11 / 10);
    assert_true(worker_number(cluster->chief, 1, "finished") >= 9);
    end(cluster);
}

/* ---- Behind one that hangs ---- */

/* One of a function that was quick so far hangs; what was sent behind it, before anybody
 * could know, runs on the other worker; and so does all that comes when the hanging one
 * has been cancelled. How many closures were tried again. */
static int64_t hang_and_go_on(struct cluster *cluster)
{
    const struct sim_range quick = {50, 50};
    struct cluster_closure *closures[200];
    struct cluster_closure *hanging;
    int64_t retried;

    turns_left = 0;
    call_many(cluster, "vary", 1000, NULL);
    assert_int_equal(join(cluster->chief), 0);
    set_work_ms(cluster, 3600 * 1000);
    hanging = call_with(cluster->chief, "vary", 0, NULL);
    run_for(cluster, 2);
    sim_settings(cluster->sim)->work = quick;
    call_many(cluster, "vary", 200, closures);
    run_for(cluster, 100);
    assert_int_equal(count_done(closures, 200), 200);
    cluster_cancel(hanging);
    run_for(cluster, 100);
    call_many(cluster, "vary", 200, closures);
    run_for(cluster, 100);
    assert_int_equal(count_done(closures, 200), 200);
    assert_int_equal(count_of(cluster, "in_flight"), 1);
    retried = count_of(cluster, "retried");
    run_for(cluster, 3600 * 1000);
    end(cluster);
    return retried;
}

TEST(test_behind_a_hanging_one)
{
    assert_int_equal(hang_and_go_on(BEGIN_QUICK(.workers = 2, .adaptive = true)), 0);
}

TEST(test_behind_a_hanging_one_in_a_fixed_window)
{
    assert_int_equal(hang_and_go_on(BEGIN_QUICK(.workers = 2, .window = 300)), 0);
}

/* Two of three threads hang: the third goes on with what is known to be quick. */
TEST(test_threads_that_are_left)
{
    struct cluster *cluster = BEGIN_QUICK(.workers = 1, .threads = 3, .adaptive = true);
    struct cluster_closure *closures[100];

    call_many(cluster, "tiny", 100, NULL);
    assert_int_equal(join(cluster->chief), 0);
    call_many(cluster, "hang", 2, NULL);
    run_for(cluster, 50);
    call_many(cluster, "tiny", 100, closures);
    run_for(cluster, 50);
    assert_int_equal(count_done(closures, 100), 100);
    assert_int_equal(worker_number(cluster->chief, 0, "running"), 2);
    run_for(cluster, 3600 * 1000);
    end(cluster);
}

/* One of many that take 10 ms hangs, and what was sent behind it comes back although
 * other closures are queued: as soon as it takes longer than twice the mean, and than
 * results are under way. Nothing more is sent behind it. */
TEST(test_behind_one_that_takes_longer)
{
    struct cluster *cluster = BEGIN(.workers = 2, .adaptive = true, OWN);
    struct cluster_closure *closures[200];

    turns_left = 0;
    set_work_ms(cluster, 10);
    open_at(cluster->chief);
    call_many(cluster, "vary", 100, NULL);
    assert_int_equal(join(cluster->chief), 0);
    set_work_ms(cluster, 3600 * 1000);
    (void)call_with(cluster->chief, "vary", 0, ASK(.worker = 1));
    run_for(cluster, 15);
    set_work_ms(cluster, 10);
    call_many(cluster, "vary", 200, closures);
    run_for(cluster, 50);
    assert_true(worker_number(cluster->chief, 0, "in_flight") > 1);
    for (run_for(cluster, 120); count_done(closures, 200) < 180; run_for(cluster, 10))
        assert_int_equal(worker_number(cluster->chief, 0, "in_flight"), 1);
    run_for(cluster, 300);
    assert_int_equal(count_done(closures, 200), 200);
    run_for(cluster, 3600 * 1000);
    end(cluster);
}

/* ---- More urgent ones ---- */

/* Four in a window, each 100 ms. The urgent one comes when the first of them runs, and
 * is the second to run. */
static void expect_next(const struct cluster_ask *ask)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 4, OWN);
    struct cluster_closure *usual[6];
    struct cluster_closure *urgent;

    open_at(cluster->chief);
    call_many(cluster, "step", 6, usual);
    run_until(cluster, 200);
    urgent = call_with(cluster->chief, "step", 77, ask);
    run_until(cluster, 395);
    assert_int_equal(count_done(usual, 6), 1);
    assert_int_equal(count_done(&urgent, 1), 1);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(count_done(usual, 6), 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(usual[i]->future->attempt, 1);
    end(cluster);
}

TEST(test_urgent_one_is_next)
{
    expect_next(ASK(.priority = 1));
}

TEST(test_pinned_one_is_next)
{
    expect_next(ASK(.worker = 1));
}

/* ---- Cancelled before it began ---- */

TEST(test_cancelled_behind_a_hanging_one)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 4, OWN);
    struct cluster_closure *behind;

    open_at(cluster->chief);
    (void)call_with(cluster->chief, "hang", 0, NULL);
    behind = call_with(cluster->chief, "step", 1, NULL);
    run_until(cluster, 300);
    cluster_cancel(behind);
    run_for(cluster, 25);
    assert_int_equal(mu_remote_value_state(behind->future), MU_REMOTE_ABORTED);
    assert_int_equal(count_of(cluster, "in_flight"), 1);
    run_for(cluster, 3600 * 1000);
    end(cluster);
}

/* ---- It is no attempt ---- */

TEST(test_given_back_is_no_attempt)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 4, OWN);
    struct cluster_closure *closures[4];

    NEEDS_LONG_TURNS(cluster);
    sim_pause(cluster->workers[1]->node, 200);
    open_at(cluster->chief);
    (void)call_with(cluster->chief, "slow", 0, ASK(.not_worker = 2));
    for (int i = 0; i < 4; i++)
        closures[i] = call_with(cluster->chief, "step", i, ASK(.attempts_max = 1));
    assert_int_equal(join(cluster->chief), 0);
    assert_true(count_of(cluster, "recalled") > 0);
    assert_int_equal(count_of(cluster, "retried"), 0);
    assert_int_equal(count_done(closures, 4), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(closures[i]->future->attempt, 1);
    end(cluster);
}

/* ---- Told ---- */

TEST(test_told_apart)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 2, OWN, .node.watchdog_ms = 1000);
    struct cluster_closure *closures[3];

    NEEDS_LONG_TURNS(cluster);
    open_at(cluster->chief);
    call_many(cluster, "hang", 1, closures);
    call_many(cluster, "step", 2, closures + 1);
    run_until(cluster, 960);
    expect_explained(closures[0], "running", "for its function to return");
    expect_explained(closures[1], "sent",
                     "for a thread of /job:worker/task:0: it was sent there 800 ms ago, "
                     "and is not known to have begun; in front of it \"hang\" runs "
                     "since 780 ms");
    expect_explained(closures[2], "queued",
                     "for a worker, as the next: the only worker has no room");
    assert_int_equal(count_of(cluster, "running"), 1);
    assert_int_equal(count_of(cluster, "sent"), 1);
    assert_int_equal(count_of(cluster, "queued"), 1);
    (void)sim_trace(cluster->sim);
    run_until(cluster, 1170);
    expect_trace(
        cluster,
        "[ 1160] chief/0 supervisor: no closure was resolved for 1000 ms; 1 are queued, "
        "1 sent to workers, 1 running; closure 4294967296 \"hang\" on "
        "/job:worker/task:0 for 980 ms; the only worker has no room\n");
    run_for(cluster, 3600 * 1000);
    end(cluster);
}

/* ---- Lost, twice, or from nobody ---- */

static const uint64_t first_id = UINT64_C(1) << 32;

/* Of the chief's view: the worker that has them is node 1, or 2. */
static void say_recalled(struct cluster *cluster, uint32_t node, uint64_t closure,
                         uint32_t attempt)
{
    uint8_t list[MU__ATTEMPT_BYTES];
    const struct mu__recalled body = {.returned = {list, sizeof list}};

    (void)mu__attempts_put(list, sizeof list, &(struct mu__attempt){closure, attempt, 0});
    forge(cluster->chief, (mu__pid){node, MU__WORKER}, MU__SUPERVISOR, MU__RECALLED,
          &body, sizeof body);
    run_for(cluster, 1);
}

/* What is not where it is said to come from stays where it is. */
TEST(test_forged_words)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1, OWN);
    struct cluster_closure *closures[3];

    open_at(cluster->chief);
    call_many(cluster, "slow", 3, closures);
    run_until(cluster, 300);
    for (uint32_t node = 0; node <= 3; node++) {
        say_recalled(cluster, node, first_id, 2);
        say_recalled(cluster, node, first_id, 0);
        say_recalled(cluster, node, first_id + 2, 1);
        say_recalled(cluster, node, first_id + 77, 1);
        say_recalled(cluster, node, 0, 0);
    }
    say_recalled(cluster, 3, first_id, 1);
    assert_int_equal(count_of(cluster, "in_flight"), 2);
    assert_int_equal(count_of(cluster, "recalled"), 0);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(count_done(closures, 3), 3);
    end(cluster);
}

/* A worker that dies, or a chief that does, while the question or the answer is under
 * way: what was asked for runs elsewhere, once. */
static unsigned lose_between(uint64_t at_ms, bool chief)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 1, .window = 8, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[8];
    unsigned done;

    open_at(client);
    sim_pause(cluster->workers[1]->node, 100);
    (void)call_with(client, "slow", 0, ASK(.not_worker = 2));
    for (int i = 0; i < 8; i++)
        closures[i] = call_with(client, "step", i, NULL);
    run_until(cluster, at_ms);
    assert_int_equal(
        sim_restart(chief ? cluster->chief->node : cluster->workers[0]->node), 0);
    if (chief) {
        assert_int_equal(join(client), -MU_EUNAVAILABLE);
        run_for(cluster, 1000);
        for (int i = 0; i < 8; i++)
            closures[i] = call_with(client, "step", i, NULL);
    }
    assert_int_equal(join(client), 0);
    done = count_done(closures, 8);
    end(cluster);
    return done;
}

TEST(test_lost_between)
{
    for (uint64_t at_ms = 175; at_ms <= 260; at_ms += 5) {
        assert_int_equal(lose_between(at_ms, false), 8);
        assert_int_equal(lose_between(at_ms, true), 8);
    }
}

TEST_PROGRAM()
