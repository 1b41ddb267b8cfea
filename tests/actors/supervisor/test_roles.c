/* Tasks of types of one's own run closures: who gets what, and what happens when there is
 * nobody of a type. */
#include "sim/world/storage.h"
#include "tests/support/story.h"

static struct cluster_closure *of_type(struct cluster_task *task, const char *type)
{
    return cluster_schedule_with(task, "square", ASK(.worker_type = type));
}

static void schedule_of_type(struct cluster_task *task, const char *type, size_t count,
                             struct cluster_closure **ret_closures)
{
    for (size_t i = 0; i < count; i++)
        ret_closures[i] = of_type(task, type);
}

static uint64_t now(const struct cluster *cluster)
{
    return sim_now_ms(cluster->sim);
}

/* Everybody but one task is there. */
static struct cluster *begin_without(struct cluster *cluster, struct cluster_task *absent)
{
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (&cluster->tasks[i] != absent)
            cluster_start(&cluster->tasks[i]);
    run_until(cluster, 160);
    return cluster;
}

static void expect_said(struct cluster *cluster, const char *words)
{
    const char *trace = sim_trace(cluster->sim);

    if (strstr(trace, words) == NULL)
        fail_msg("nobody said \"%s\" in:\n%s", words, trace);
}

/* ---- Where a closure runs ---- */

/* Six of 100 ms for the only gpu take 600 ms, although two workers have nothing to do;
 * what is for any type is done meanwhile. */
TEST(test_closure_runs_on_its_type_alone)
{
    struct cluster *cluster = BEGIN(.workers = 2, .gpus = 1);
    struct cluster_closure *gpu[6];
    struct cluster_closure *any[6];
    uint64_t began_ms = now(cluster);

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule_of_type(cluster->chief, "gpu", 6, gpu);
    schedule(cluster->chief, "square", 6, any);
    run_until(cluster, began_ms + 450);
    expect_squares(any, 6);
    assert_false(is_resolved(gpu[5]));
    assert_in_range(joined_after(cluster->chief, began_ms), 610, 700);
    expect_squares(gpu, 6);
    assert_int_equal(cluster->recalled, 0);
    end(cluster);
}

/* An index is one of the closure's type: that of type "worker" without one. */
TEST(test_index_is_of_the_type)
{
    struct cluster *cluster = BEGIN(.workers = 2, .gpus = 2);
    struct cluster_task *chief = cluster->chief;
    struct cluster_closure *closures[24];

    open_at(chief);
    for (unsigned i = 0; i < 24; i += 4) {
        unsigned index = i / 4 % 2 + 1;

        closures[i] = cluster_schedule_with(chief, "square",
                                            ASK(.worker = index, .worker_type = "gpu"));
        closures[i + 1] = cluster_schedule_with(chief, "square", ASK(.worker = index));
        closures[i + 2] = cluster_schedule_with(
            chief, "square", ASK(.not_worker = index, .worker_type = "gpu"));
        closures[i + 3] =
            cluster_schedule_with(chief, "square", ASK(.not_worker = index));
    }
    assert_int_equal(join(chief), 0);
    expect_squares(closures, 24);
    end(cluster);
}

/* Of two that are as urgent each queue has its turn; a more urgent one goes first, in
 * whichever queue it is. */
TEST(test_priorities_hold_between_queues)
{
    struct cluster *cluster = MAKE(.gpus = 1, .window = 1);
    struct cluster_task *chief = cluster->chief;
    struct cluster_closure *busy;
    struct cluster_closure *closures[6];
    static const struct cluster_ask asks[6] = {
        {.worker_type = "gpu"}, {.worker_type = "gpu"},
        {.priority = 0},        {.priority = 0},
        {.priority = 1},        {.worker_type = "gpu", .priority = 2},
    };
    static const unsigned order[6] = {4, 5, 0, 2, 1, 3};

    begin_without(cluster, NULL);
    set_work_ms(cluster, 100);
    open_at(chief);
    busy = cluster_schedule(chief, "square");
    run_for(cluster, 50);
    for (unsigned i = 0; i < 6; i++)
        closures[i] = cluster_schedule_with(chief, "square", &asks[i]);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(cluster_wait(cluster_fetch(closures[order[i]], -1)), 0);
        for (unsigned later = i + 1; later < 6; later++)
            assert_false(is_resolved(closures[order[later]]));
    }
    expect_squares(&busy, 1);
    end(cluster);
}

/* ---- Nobody of the type ---- */

TEST(test_nobody_of_the_type_is_told)
{
    struct cluster *cluster = MAKE(.workers = 1, .gpus = 1, .node.watchdog_ms = 1000);
    struct cluster_closure *closure;

    begin_without(cluster, cluster->gpus[0]);
    open_at(cluster->chief);
    closure = of_type(cluster->chief, "gpu");
    run_until(cluster, 1000);
    expect_explained(closure, "queued",
                     "for a task of type gpu, as the next: no worker "
                     "is up; /job:gpu/task:0 is missing for 1000 ms");
    run_until(cluster, 3000);
    expect_said(cluster, "1 waits for a task of type gpu, of which none is up");
    cluster_start(cluster->gpus[0]);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&closure, 1);
    end(cluster);
}

/* The type runs no closures: that is the closure's error, and work goes on. */
TEST(test_unknown_type_is_an_error)
{
    struct cluster *cluster = BEGIN(.workers = 1, .gpus = 1);
    struct cluster_closure *closure;
    mu_error error;

    open_at(cluster->chief);
    closure = call_with(cluster->chief, "weigh", 1, ASK(.worker_type = "tpu"));
    error = raised(cluster->chief);
    assert_int_equal(error.code, -MU_EINVALID);
    assert_string_equal(error.message,
                        "the task type that the closure is for runs no "
                        "closures: option worker_types of the chief is \"worker,gpu\"");
    assert_int_equal(error_of(closure)->code, -MU_EINVALID);
    closure = of_type(cluster->chief, "worker");
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&closure, 1);
    end(cluster);
}

static struct cluster *begin_with_types(struct cluster *cluster, const char *types,
                                        const char *types_of_gpus)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        cluster->tasks[i].worker_types = types;
    for (unsigned i = 0; i < cluster->options.gpus; i++)
        cluster->gpus[i]->worker_types = types_of_gpus;
    return begin_without(cluster, NULL);
}

/* Workers are no workers when the option says so; an index without a type means one. */
TEST(test_workers_that_are_not_listed_run_nothing)
{
    struct cluster *cluster = MAKE(.workers = 2, .gpus = 1);
    struct cluster_closure *closures[8];
    mu_error error;

    begin_with_types(cluster, "gpu", "gpu");
    expect_said(cluster, "/job:worker/task:1 runs no closures: option worker_types is "
                         "\"gpu\", without its type");
    open_at(cluster->chief);
    set_work_ms(cluster, 100);
    schedule(cluster->chief, "square", 8, closures);
    assert_in_range(joined_after(cluster->chief, 160), 800, 900);
    expect_squares(closures, 8);
    (void)call_with(cluster->chief, "weigh", 1, ASK(.worker = 1));
    error = raised(cluster->chief);
    assert_int_equal(error.code, -MU_EINVALID);
    assert_string_equal(error.message,
                        "the closure names a worker by its index, and no "
                        "task type: that means type \"worker\", and option worker_types "
                        "of the chief is \"gpu\"");
    end(cluster);
}

/* The chief decides; both sides say so, once for each link. */
TEST(test_task_that_the_chief_does_not_list_is_refused)
{
    struct cluster *cluster = MAKE(.workers = 1, .gpus = 1);
    struct cluster_closure *closures[4];
    const char *trace;

    begin_with_types(cluster, "worker", "worker,gpu");
    run_until(cluster, 1000);
    trace = sim_trace(cluster->sim);
    assert_non_null(strstr(trace, "/job:gpu/task:0 offers to run closures and gets none: "
                                  "option worker_types of this chief is \"worker\"\n"));
    assert_non_null(strstr(trace, "the chief gives /job:gpu/task:0 no closures: its "
                                  "option worker_types is \"worker\""));
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 4);
    end(cluster);
}

/* ---- What holds for workers holds for them ---- */

/* The one that was there has all of them; the one that joins gets its half, and the idle
 * worker nothing. */
TEST(test_sent_closures_move_to_a_task_of_the_type)
{
    struct cluster *cluster = MAKE(.workers = 1, .gpus = 2, .adaptive = true);
    struct cluster_closure *closures[20];

    begin_without(cluster, cluster->gpus[1]);
    NEEDS_LONG_TURNS(cluster);
    open_at(cluster->chief);
    set_work_ms(cluster, 1);
    schedule_of_type(cluster->chief, "gpu", 20, closures);
    assert_int_equal(join(cluster->chief), 0);
    set_work_ms(cluster, 500);
    schedule_of_type(cluster->chief, "gpu", 20, closures);
    run_for(cluster, 100);
    cluster_start(cluster->gpus[1]);
    assert_in_range(joined_after(cluster->chief, now(cluster)), 4500, 5700);
    expect_squares(closures, 20);
    end(cluster);
}

TEST(test_lost_task_of_the_type)
{
    struct cluster *cluster = BEGIN(.workers = 2, .gpus = 2);
    struct cluster_closure *closures[10];

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule_of_type(cluster->chief, "gpu", 10, closures);
    run_for(cluster, 150);
    sim_crash(cluster->gpus[0]->node);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 10);
    assert_true(retried(cluster->chief) > 0);
    end(cluster);
}

TEST(test_drained_task_of_the_type)
{
    struct cluster *cluster = BEGIN(.workers = 1, .gpus = 1);
    struct cluster_closure *closure;
    struct cluster_call *leaves;
    struct cluster_call *drain;

    open_at(cluster->chief);
    leaves = cluster_job(cluster->gpus[0], MU__JOB_WAIT, 0, NULL, -1);
    drain = cluster_drain_task(cluster->chief, "gpu", 0, -1);
    assert_int_equal(cluster_wait(leaves), 0);
    mu__member_leave(&cluster->gpus[0]->member, "drained");
    sim_crash(cluster->gpus[0]->node);
    assert_int_equal(cluster_wait(drain), 0);
    drain = cluster_drain_task(cluster->chief, "gpu", 0, -1);
    assert_int_equal(cluster_wait(drain), -MU_ENOTFOUND);
    assert_string_equal(drain->of.call.error.message,
                        "there is no /job:gpu/task:0 that takes closures");
    closure = of_type(cluster->chief, "gpu");
    run_for(cluster, 1000);
    assert_false(is_resolved(closure));
    cluster_start(cluster->gpus[0]);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* A straggler's backup runs on another task of its type, however idle others are. */
TEST(test_backup_is_of_the_type)
{
    struct cluster *cluster = BEGIN(.workers = 4, .gpus = 2, .node.backup_percent = 200);
    struct cluster_closure *closures[6];
    struct cluster_closure *slow;

    open_at(cluster->chief);
    schedule_of_type(cluster->chief, "gpu", 6, closures);
    assert_int_equal(join(cluster->chief), 0);
    set_work_ms(cluster, 3000);
    slow = of_type(cluster->chief, "gpu");
    run_for(cluster, 20);
    set_work_ms(cluster, 10);
    assert_true(joined_after(cluster->chief, now(cluster)) < 1000);
    expect_squares(&slow, 1);
    assert_int_equal(status_number(cluster->chief, "closures", "backups"), 1);
    end(cluster);
}

/* What a journal has for a type is neither lost nor run elsewhere under a chief that does
 * not list the type: that one does not begin. */
TEST(test_journal_keeps_the_type)
{
    struct cluster *cluster = MAKE(.workers = 1, .gpus = 1);
    struct sim_storage *storage = sim_storage_new("journal", 1);

    cluster->chief->journal = (struct cluster_journal){.storage = &storage->base};
    begin_without(cluster, cluster->gpus[0]);
    open_at(cluster->chief);
    (void)cluster_schedule_with(cluster->chief, "square",
                                ASK(.worker_type = "gpu", .name = "first"));
    run_for(cluster, 500);
    assert_int_equal(sim_restart(cluster->chief->node), 0);
    cluster_start(cluster->gpus[0]);
    run_for(cluster, 2000);
    open_at(cluster->chief);
    assert_int_equal(cluster->runs_count, 1);
    (void)cluster_schedule_with(cluster->chief, "square",
                                ASK(.worker_type = "gpu", .name = "second", .worker = 9));
    run_for(cluster, 500);
    cluster->chief->worker_types = "worker";
    assert_int_not_equal(sim_restart(cluster->chief->node), 0);
    expect_said(cluster,
                "the journal: it has closure \"second\", which is still to be "
                "run, and the task type that the closure is for runs no closures: option "
                "worker_types of the chief is \"worker\"");
    cluster_free(cluster);
    sim_storage_free(storage);
}

TEST_PROGRAM()
