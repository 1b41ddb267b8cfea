/* Workers that come, leave, are waited for; how much each of them gets, and when two of
 * them run the same. */
#include "tests/support/story.h"

static struct cluster_closure *pinned(struct cluster_task *task, unsigned worker)
{
    return cluster_schedule_with(task, "square", ASK(.worker = worker + 1));
}

/* When a closure was resolved, after 160. */
static uint64_t took_ms(struct cluster_closure *closure)
{
    struct cluster_call *call = cluster_fetch(closure, -1);

    assert_int_equal(cluster_wait(call), 0);
    return call->done_ms - 160;
}

/* ---- Coming ---- */

/* Worker i begins i seconds after it joined, at 35, but after two and a half at most. */
TEST(test_staggered)
{
    static const uint64_t begin_ms[] = {0, 1035 - 160, 2035 - 160, 2535 - 160};
    struct cluster *cluster =
        BEGIN(.workers = 4, .node.start_delay_ms = 1000, .node.start_delay_max_ms = 2500);
    struct cluster_closure *closures[4];

    open_at(cluster->chief);
    for (unsigned i = 0; i < 4; i++)
        closures[i] = pinned(cluster->chief, i);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(took_ms(closures[i]), begin_ms[i] + 30);

    /* One that comes back waits again. */
    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    closures[1] = pinned(cluster->chief, 1);
    run_for(cluster, 900);
    assert_false(is_resolved(closures[1]));
    run_for(cluster, 500);
    expect_squares(closures + 1, 1);
    end(cluster);
}

/* A worker that nobody has listed joins and takes its part. */
TEST(test_joins_later)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_closure *closures[4];

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    run_until(cluster, 200);
    cluster_start(cluster_add(cluster, "worker", 9, "late"));
    run_until(cluster, 300);
    assert_int_equal(worker_number(cluster->chief, 9, "in_flight"), 1);

    /* Two and two: the first one's end at 1180 and 2200, the late one's soon after. */
    run_until(cluster, 2400);
    expect_squares(closures, 4);
    end(cluster);
}

/* ---- Leaving ---- */

struct leaver {
    struct cluster_task *task;
    struct cluster_call *wait;
};

/* What a worker's program does: it serves until it is told to leave. */
static void leave_when_told(struct cluster *cluster, struct leaver *leaver,
                            unsigned worker)
{
    *leaver = (struct leaver){cluster->workers[worker], NULL};
    leaver->wait = cluster_job(leaver->task, MU__JOB_WAIT, 0, NULL, -1);
}

/* It has two closures when it is told to leave: it finishes the one that runs and gives
 * the other back, and gets no more; what is for it alone waits for the next one of that
 * index. */
TEST(test_drained)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 2);
    struct cluster_closure *closures[4];
    struct cluster_closure *later[3];
    struct cluster_closure *mine;
    struct cluster_call *drain;
    struct leaver leaver;

    NEEDS_LONG_TURNS(cluster);
    set_work_ms(cluster, 500);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    leave_when_told(cluster, &leaver, 0);
    run_until(cluster, 200);
    drain = cluster_drain(cluster->chief, 0, -1);
    schedule(cluster->chief, "square", 3, later);
    mine = pinned(cluster->chief, 0);
    assert_int_equal(cluster_wait(leaver.wait), 0);

    /* What ran ended at 670, was heard of at 680; the word takes 10 ms back. */
    assert_int_equal(leaver.wait->done_ms, 690);
    assert_false(drain->done);
    mu__member_leave(&leaver.task->member, "drained");
    sim_crash(leaver.task->node);
    assert_int_equal(cluster_wait(drain), 0);
    run_until(cluster, 3300);
    expect_squares(closures, 4);
    expect_squares(later, 3);
    expect_explained(mine, "queued", "for /job:worker/task:0, which is missing");
    assert_int_equal(retried(cluster->chief), 0);
    cluster_start(cluster->workers[0]);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&mine, 1);
    end(cluster);
}

/* Nobody waits for one that has left as it should, and it is no loss. */
TEST(test_drained_is_not_missed)
{
    struct cluster *cluster = BEGIN(.workers = 2, .node.recovery_ms = 1000);
    struct cluster_call *drain;
    struct leaver leaver;

    open_at(cluster->chief);
    leave_when_told(cluster, &leaver, 1);
    drain = cluster_drain(cluster->chief, 1, -1);
    assert_int_equal(cluster_wait(leaver.wait), 0);
    mu__member_leave(&leaver.task->member, "drained");
    sim_crash(leaver.task->node);
    assert_int_equal(cluster_wait(drain), 0);
    run_for(cluster, 5000);
    assert_int_equal(join(cluster->chief), 0);
    drain = cluster_drain(cluster->chief, 1, -1);
    assert_int_equal(cluster_wait(drain), -MU_ENOTFOUND);
    assert_string_equal(drain->of.call.error.message,
                        "there is no /job:worker/task:1 that takes closures");
    end(cluster);
}

/* A worker that says by itself that it leaves is answered when it has nothing left. */
TEST(test_drains_itself)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *closures[2];
    struct cluster_closure *later;
    struct cluster_call *drain;

    set_work_ms(cluster, 500);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 200);
    set_work_ms(cluster, 10);
    drain = cluster_drain(cluster->workers[1], -1, -1);
    run_until(cluster, 300);
    later = cluster_schedule_with(cluster->chief, "square", ASK(.not_worker = 1));
    assert_int_equal(cluster_wait(drain), 0);
    assert_int_equal(drain->done_ms, 690);
    expect_squares(closures, 1);
    run_for(cluster, 500);
    assert_false(is_resolved(later));
    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&later, 1);
    end(cluster);
}

/* Two are lost; one is back at once and works, while the other one is waited for. */
TEST(test_each_for_itself)
{
    struct cluster *cluster = BEGIN(.workers = 2, .node.recovery_ms = 60000);
    struct cluster_closure *closures[8];

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 8, closures);
    run_until(cluster, 200);
    sim_crash(cluster->workers[0]->node);
    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    assert_int_equal(join(cluster->chief), 0);

    /* Back at 344; eight times 100 ms; then all is done, 60 s before the limit. */
    assert_true(sim_now_ms(cluster->sim) < 1250);
    expect_squares(closures, 8);
    cluster_start(cluster->workers[0]);
    end(cluster);
}

/* ---- Windows ---- */

/* Functions of 100 ms over a network of 20 ms there and back: a worker with one thread
 * never has a third one waiting there, where it would be behind the others while another
 * worker may be free. The second is sent while the first runs, once it is known how long
 * that takes. */
TEST(test_window_of_slow_ones)
{
    struct cluster *cluster = BEGIN(.workers = 2, .adaptive = true);
    struct cluster_closure *closures[20];

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 20, closures);
    for (int i = 0; i < 10; i++) {
        run_for(cluster, 100);
        assert_int_equal(worker_number(cluster->chief, 0, "window"), 1);
        assert_true(worker_number(cluster->chief, 0, "in_flight") <= 2);
        assert_true(worker_number(cluster->chief, 1, "in_flight") <= 2);
    }
    assert_int_equal(join(cluster->chief), 0);

    /* Ten each, the first and the second 120 ms with the way there and back. */
    assert_int_equal(sim_now_ms(cluster->sim), 160 + 2 * 120 + 8 * 100);
    end(cluster);
}

/* 900 functions of `work_ms`, on two threads of three workers, over a network of 20 ms
 * there and back: of 1,000 ms, how many there were runs on all threads. */
static uint64_t per_mille(struct cluster *cluster, unsigned work_ms, unsigned flags)
{
    struct sim_range work = {1000 * work_ms, 1000 * work_ms};
    uint64_t start_ms = sim_now_ms(cluster->sim);
    uint64_t took_ms;

    sim_settings(cluster->sim)->work = work;
    for (unsigned i = 0; i < 900; i++)
        (void)cluster_write(cluster->chief, ASK(.flags = flags));
    assert_int_equal(join(cluster->chief), 0);
    took_ms = sim_now_ms(cluster->sim) - start_ms;
    assert_int_equal(cluster_wait(cluster_counter_read(cluster->chief, 10000)), 0);
    cluster_check_writes(cluster, flags != 0);
    return 900 / 6 * 1000 * work_ms / took_ms;
}

#define BEGIN_AFAR                                                                  \
    BEGIN(.effects_add = mu__effects_add, .workers = 3, .servers = 1, .threads = 2, \
          .adaptive = true)

/* The way to a worker and back is hidden, and with effects once the way to the parameter
 * server as well. */
TEST(test_window_covers_the_way)
{
    static const struct {
        unsigned work_ms;
        unsigned flags;
        uint64_t per_mille; /* the more work there is, the less its beginning costs */
    } rows[] = {
        {5, 0, 850},   {5, MU_CLOSURE_EFFECT_ONCE, 850},
        {10, 0, 930},  {10, MU_CLOSURE_EFFECT_ONCE, 930},
        {50, 0, 980},  {50, MU_CLOSURE_EFFECT_ONCE, 980},
        {100, 0, 980}, {100, MU_CLOSURE_EFFECT_ONCE, 980},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster *cluster = BEGIN_AFAR;

        open_at(cluster->chief);
        assert_int_equal(cluster_wait(cluster_counter_open(cluster->chief, 1000, 10000)),
                         0);
        assert_in_range(per_mille(cluster, rows[i].work_ms, rows[i].flags),
                        rows[i].per_mille, 1000);
        end(cluster);
    }
}

/* Functions that take no time over a quick network: the window grows, twofold at most
 * with each result, and shrinks when they become slow. */
TEST(test_window_of_quick_ones)
{
    struct cluster *cluster = MAKE(.workers = 1, .adaptive = true);
    struct cluster_closure *closures[400];
    struct sim_range quick = {20, 20};

    sim_settings(cluster->sim)->latency = quick;
    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    open_at(cluster->chief);
    schedule(cluster->chief, "quick", 400, closures);
    assert_int_equal(join(cluster->chief), 0);
    assert_true(worker_number(cluster->chief, 0, "window") >= 64);
    set_work_ms(cluster, 100);
    schedule(cluster->chief, "square", 100, closures);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(worker_number(cluster->chief, 0, "window"), 1);
    end(cluster);
}

/* ---- Backup attempts ---- */

/* Five quick ones tell what is usual; then worker/0 becomes slow. */
static void learn(struct cluster *cluster)
{
    struct cluster_closure *closures[6];

    schedule(cluster->chief, "square", 6, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 6);
}

/* The straggler runs on the idle worker, too, whose answer is taken; the other's is not
 * looked at, and all is counted once. */
TEST(test_backup)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .window = 1, .node.backup_percent = 300);
    struct cluster_closure *closure;

    open_at(cluster->chief);
    learn(cluster);
    set_work_ms(cluster, 3000);
    closure = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 50);
    set_work_ms(cluster, 10);
    run_for(cluster, 250);
    expect_squares(&closure, 1);
    assert_int_equal(closure->future->attempt, 2);
    assert_int_equal(status_number(cluster->chief, "closures", "backups"), 1);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 0);
    expect_counts(cluster->chief, 7, 0, 0);

    /* Until the slow one has answered, its place is taken. */
    assert_int_equal(worker_number(cluster->chief, 0, "abandoned") +
                         worker_number(cluster->chief, 1, "abandoned"),
                     1);
    run_for(cluster, 3000);
    assert_int_equal(worker_number(cluster->chief, 0, "abandoned") +
                         worker_number(cluster->chief, 1, "abandoned"),
                     0);
    assert_int_equal(cluster->runs[closure->key], 2);
    expect_counts(cluster->chief, 7, 0, 0);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* Which worker has a closure in flight. */
static unsigned busy_one(struct cluster *cluster)
{
    return worker_number(cluster->chief, 0, "in_flight") == 1 ? 0 : 1;
}

/* Either of the two is lost: the other one's answer is taken, and nothing runs again. */
TEST(test_backup_and_a_loss)
{
    for (unsigned loses_first = 0; loses_first < 2; loses_first++) {
        struct cluster *cluster =
            BEGIN(.workers = 2, .window = 1, .node.backup_percent = 300);
        struct cluster_closure *closure;
        unsigned first;

        open_at(cluster->chief);
        learn(cluster);
        set_work_ms(cluster, 1000);
        closure = cluster_schedule(cluster->chief, "square");
        run_for(cluster, 50);
        first = busy_one(cluster);
        run_for(cluster, 250);
        assert_int_equal(status_number(cluster->chief, "closures", "backups"), 1);
        sim_crash(cluster->workers[loses_first ? first : 1 - first]->node);
        assert_int_equal(join(cluster->chief), 0);
        expect_squares(&closure, 1);
        assert_int_equal(closure->future->attempt, loses_first ? 2 : 1);
        assert_int_equal(cluster->runs[closure->key], 1);
        cluster_start_all(cluster);
        end(cluster);
    }
}

/* One that asked for it is never run twice at a time; nor is one that is for its worker
 * alone. */
TEST(test_no_backup)
{
    static const struct cluster_ask asks[] = {{.flags = MU_CLOSURE_NO_BACKUP},
                                              {.worker = 1}};

    for (size_t i = 0; i < 2; i++) {
        struct cluster *cluster =
            BEGIN(.workers = 2, .window = 1, .node.backup_percent = 300);
        struct cluster_closure *closure;

        open_at(cluster->chief);
        learn(cluster);
        set_work_ms(cluster, 3000);
        closure = cluster_schedule_with(cluster->chief, "square", &asks[i]);
        assert_int_equal(join(cluster->chief), 0);
        assert_int_equal(status_number(cluster->chief, "closures", "backups"), 0);
        assert_int_equal(cluster->runs[closure->key], 1);
        end(cluster);
    }
}

/* ---- Times ---- */

static int64_t samples(const mu_value *status, const char *timer)
{
    const mu_value *map = mu_value_find(mu_value_find(status, "timers"), timer);
    int64_t count = -1;

    (void)mu_value_get_int(mu_value_find(map, "count"), &count);
    return count;
}

/* Asked for, each run is measured, and each recovery; unasked nothing is. */
TEST(test_measured)
{
    for (unsigned measure = 0; measure < 2; measure++) {
        struct cluster *cluster = BEGIN(.workers = 1, .node.measure = measure == 1);
        struct cluster_closure *closures[3];
        mu_value *status;

        open_at(cluster->chief);
        schedule(cluster->chief, "square", 3, closures);
        assert_int_equal(join(cluster->chief), 0);
        assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
        run_for(cluster, 1000);
        status = status_of(cluster->chief);
        assert_int_equal(samples(status, "closure_execution"), measure == 1 ? 3 : -1);
        assert_int_equal(samples(status, "worker_recovery"), measure == 1 ? 1 : -1);
        mu_value_free(status);
        end(cluster);
    }
}

TEST_PROGRAM()
