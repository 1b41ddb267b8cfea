/* A worker or a parameter server runs out of memory: for a while many of its allocations
 * fail, then it dies, as the system kills such a process or its operator does, and is
 * started again. Meanwhile messages may be lost in it, so that closures wait, and some
 * fail; but nothing is resolved twice or wrongly, and after the restart everything comes
 * to its end. */
#include "tests/support/alloc_failure.h"
#include "tests/support/test.h"
#include "tests/support/wrap_malloc.h"

#include <inttypes.h>

enum {
    SEEDS = 400,
    PROGRAMS = 2,
    GOAL = 60,
    STEP_MS = 40,
    ALLOCS_FAIL_MS = 2000,
    END_MS = 120 * 1000
};

/* ---- Memory ---- */

static bool malloc_fails(void)
{
    return alloc_failure_due();
}

static void begin_alloc_failures(struct sim *sim, void *arg)
{
    (void)sim;
    alloc_failure_begin(arg);
}

static void end_alloc_failures(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    alloc_failure_end();
    if (sim_restart(task->node) != 0)
        cluster_break(task->cluster, "%s does not start", sim_node_name(task->node));
    sim_note(sim, MU__LOG_WARN, "%s has died of it", task->name);
}

/* ---- Programs ---- */

struct program {
    struct cluster_task *task;
    struct cluster_call *call;
    unsigned scheduled;
    bool finished;
};

static bool is_resolved(const struct cluster_session *session)
{
    return cluster_count(&session->shared.scheduled) ==
           cluster_count(&session->shared.resolved);
}

static void go_on(struct program *program)
{
    struct cluster_task *task = program->task;

    if (task->session == NULL) {
        program->call = cluster_open(task, -1);
    } else if (atomic_load(&task->session->shared.phase) != MU__SESSION_FINE) {
        program->call = cluster_ask(task, MU__CLIENT_RAISE, -1);
    } else if (program->scheduled < GOAL) {
        program->scheduled += 2;
        (void)cluster_schedule(task, "square");
        (void)cluster_schedule(task, "quick");
    } else if (!is_resolved(task->session)) {
        program->call = cluster_ask(task, MU__CLIENT_JOIN, -1);
    } else {
        program->finished = true;
    }
}

static void step(struct sim *sim, void *arg)
{
    struct program *program = arg;

    if (program->call != NULL && program->call->done)
        program->call = NULL;
    if (program->call == NULL && sim_alive(program->task->node))
        go_on(program);
    if (!program->finished)
        sim_at(sim, sim_now_ms(sim) + STEP_MS, step, program);
}

/* ---- Runs ---- */

static bool is_over(void *arg)
{
    const struct program *programs = arg;

    return programs[0].finished && programs[1].finished;
}

static void plan_alloc_failures(struct cluster *cluster, uint64_t seed)
{
    static const unsigned percents[] = {1, 10, 50, 100};
    struct sim_random random = sim_stream(seed, 300);
    uint64_t number = sim_between(&random, 0, cluster->options.workers);
    struct cluster_task *victim = number < cluster->options.workers
                                      ? cluster->workers[number]
                                      : cluster->servers[0];
    uint64_t begin_ms = sim_between(&random, 300, 1500);

    alloc_failure_end();
    alloc_failure.random = sim_stream(seed, 301);
    alloc_failure.percent = percents[sim_between(&random, 0, 3)];
    sim_at(cluster->sim, begin_ms, begin_alloc_failures, victim);
    sim_at(cluster->sim, begin_ms + sim_between(&random, 1, ALLOCS_FAIL_MS),
           end_alloc_failures, victim);
}

static void run_seed(uint64_t seed)
{
    const struct cluster_options options = {
        .workers = 1 + (unsigned)(seed % 3),
        .servers = 1,
        .clients = 1,
        .allocs_fail = true,
    };
    struct cluster *cluster = cluster_new(seed, &options);
    struct program programs[PROGRAMS] = {{.task = cluster->chief},
                                         {.task = cluster->clients[0]}};

    sim_settings_draw(cluster->sim);
    cluster_start_all(cluster);
    for (size_t i = 0; i < PROGRAMS; i++)
        sim_at(cluster->sim, 1, step, &programs[i]);
    plan_alloc_failures(cluster, seed);
    if (!sim_run_to(cluster->sim, is_over, programs, END_MS))
        cluster_break(cluster, "the programs do not come to an end");
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + 10000);
    if (cluster->broken[0] == '\0')
        (void)cluster_check_rest(cluster);
    if (cluster->broken[0] != '\0') {
        fputs(sim_trace(cluster->sim), stdout);
        fail_msg("seed %" PRIu64 ": %s", seed, cluster->broken);
    }
    cluster_free(cluster);
}

TEST(test_alloc_failures)
{
    uint64_t first;
    uint64_t end;

    alloc_failure.failed = 0;
    sim_seeds(SEEDS, &first, &end);
    for (uint64_t seed = first; seed < end; seed++)
        run_seed(seed);
    print_message("%" PRIu64 " allocations failed\n", alloc_failure.failed);
    assert_true(end - first < SEEDS || alloc_failure.failed > SEEDS);
}

TEST_PROGRAM()
