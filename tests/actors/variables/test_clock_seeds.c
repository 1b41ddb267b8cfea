/* A clock under faults that follow from a seed: tasks tick, workers are killed, some for
 * good, and servers, one at a time while partitions have backups. Nobody is let through
 * who is further ahead of a living member than the staleness; and all that live come to
 * the end of their ticks.
 *
 * Run by hand for more seeds or others: test_clock_seeds FIRST COUNT. */
#include "sim/world/random.h"
#include "tests/sim/cluster.h"
#include "tests/sim/cluster/losses.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 200,
    MEMBERS_MAX = 8,
    TICKS_MAX = 40,
    PAUSE_MAX_MS = 100,
    KILLS_MS = 4000,
    BACK_MAX_MS = 3000,
    OVER_MS = 300 * 1000
};

struct clock_run;

/* A task that opens the clock, ticks, and closes it. */
struct member {
    struct clock_run *run;
    struct cluster_task *task;
    struct sim_random random;
    struct cluster_call *call;
    unsigned life; /* in which it was opened */
    uint64_t member;
    uint64_t left; /* ticks */
    uint64_t step; /* that it has said, or says now: the server has no greater one */
    bool is_open;  /* the server has counted it since before now */
    bool is_dead;  /* killed for good */
    bool finished;
};

struct clock_run {
    struct cluster *cluster;
    struct cluster_losses losses;
    struct sim_random random;
    uint64_t staleness;
    uint64_t passed;
    unsigned killed;
    struct member members[MEMBERS_MAX];
    size_t members_count;
};

static bool lives(const struct member *m)
{
    return sim_alive(m->task->node) && m->life == sim_lives(m->task->node);
}

/* One was let through at this step. */
static void check_passed(const struct member *m, uint64_t step)
{
    struct clock_run *run = m->run;

    for (size_t i = 0; i < run->members_count; i++) {
        const struct member *other = &run->members[i];

        if (other != m && other->is_open && lives(other) && step > other->step &&
            step - other->step > run->staleness)
            cluster_break(run->cluster,
                          "%s is let through at step %" PRIu64 ", %s is at %" PRIu64,
                          m->task->name, step, other->task->name, other->step);
    }
}

static void post(struct member *m, int operation)
{
    const struct mu__clock_call call = {
        .call = {.operation = operation, .timeout_ms = 5000},
        .name = "train",
        .staleness = m->run->staleness,
        .servers_count = m->run->cluster->options.servers,
        .member = m->member,
    };

    m->call = cluster_clock(m->task, &call);
}

static void take_answer(struct member *m)
{
    const struct mu__clock_call *call = &m->call->of.clock;
    int operation = call->call.operation;

    m->call = NULL;
    if (call->call.code == -MU_ECLOSED)
        return;
    if (call->call.code != 0 && call->call.code != -MU_EDEADLINE &&
        call->call.code != -MU_EUNAVAILABLE)
        cluster_break(m->run->cluster, "%s: operation %d: %s", m->task->name, operation,
                      call->call.error.message);
    if (call->call.code != 0 || operation == MU__CLOCK_CLOSE)
        return;
    m->step = call->step;
    m->member = call->member;
    if (operation == MU__CLOCK_OPEN) {
        m->is_open = true;
        return;
    }
    m->left--;
    m->run->passed++;
    check_passed(m, call->step);
}

/* After a timeout, the step is said already. */
static void begin_next(struct member *m)
{
    if (m->life != sim_lives(m->task->node)) {
        m->life = sim_lives(m->task->node);
        m->is_open = false;
    }
    if (!m->is_open) {
        post(m, MU__CLOCK_OPEN);
    } else if (m->left > 0) {
        post(m, MU__CLOCK_TICK);
        m->step++;
    } else {
        m->is_open = false;
        m->finished = true;
        post(m, MU__CLOCK_CLOSE);
    }
}

static void step_member(struct sim *sim, void *arg)
{
    struct member *m = arg;

    if (m->call != NULL && m->call->done)
        take_answer(m);
    if (m->call == NULL && sim_alive(m->task->node) && !m->finished)
        begin_next(m);
    if (!m->finished)
        sim_at(sim, sim_now_ms(sim) + sim_between(&m->random, 1, PAUSE_MAX_MS),
               step_member, m);
}

static void add_member(struct clock_run *run, struct cluster_task *task)
{
    struct member *m = &run->members[run->members_count];

    *m = (struct member){.run = run,
                         .task = task,
                         .random = sim_stream(sim_draw(&run->random), run->members_count),
                         .left = sim_between(&run->random, 5, TICKS_MAX)};
    run->members_count++;
    sim_at(run->cluster->sim, 1, step_member, m);
}

/* ---- Workers that die ---- */

static void start_worker(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

static void kill_worker(struct clock_run *run)
{
    struct member *m =
        &run->members[sim_between(&run->random, 1, run->members_count - 1)];
    struct sim *sim = run->cluster->sim;

    if (!sim_alive(m->task->node))
        return;
    sim_note(sim, MU__LOG_WARN, "%s is killed", m->task->name);
    sim_crash(m->task->node);
    run->killed++;
    m->is_dead = sim_chance(&run->random, 20);
    if (m->is_dead)
        m->finished = true;
    else
        sim_at(sim, sim_now_ms(sim) + sim_between(&run->random, 1, BACK_MAX_MS),
               start_worker, m->task);
}

static void step_kills(struct sim *sim, void *arg)
{
    struct clock_run *run = arg;

    if (sim_now_ms(sim) >= KILLS_MS)
        return;
    kill_worker(run);
    sim_at(sim, sim_now_ms(sim) + sim_between(&run->random, 50, 2000), step_kills, run);
}

/* ---- A run ---- */

static void begin_clock_run(struct clock_run *run, uint64_t seed)
{
    static const uint64_t stalenesses[] = {0, 0, 1, 3, UINT64_MAX};
    struct cluster_options options = {.servers = 3};

    *run = (struct clock_run){.random = sim_stream(seed, 300)};
    options.workers = (unsigned)sim_between(&run->random, 1, 5);
    options.node.backups = 1;
    run->staleness = stalenesses[sim_between(&run->random, 0, 4)];
    run->cluster = cluster_new(seed, &options);
    sim_settings_draw(run->cluster->sim);
    cluster_start_all(run->cluster);
    add_member(run, run->cluster->chief);
    for (unsigned i = 0; i < options.workers; i++)
        add_member(run, run->cluster->workers[i]);
    sim_at(run->cluster->sim, sim_between(&run->random, 100, 2000), step_kills, run);
    run->losses = (struct cluster_losses){
        .cluster = run->cluster,
        .random = sim_stream(seed, 301),
        .until_ms = KILLS_MS,
        .servers = options.servers,
    };
    cluster_losses_begin(&run->losses);
}

static bool is_clock_over(void *arg)
{
    const struct clock_run *run = arg;

    for (size_t i = 0; i < run->members_count; i++)
        if (!run->members[i].finished)
            return false;
    return true;
}

struct clock_sum {
    uint64_t passed;
    uint64_t workers;
    uint64_t servers; /* that were killed */
};

static void run_clock(uint64_t seed, bool show, void *sum,
                      struct seeds_verdict *ret_verdict)
{
    struct clock_sum *all = sum;
    struct clock_run run;

    begin_clock_run(&run, seed);
    if (!sim_run_to(run.cluster->sim, is_clock_over, &run, OVER_MS))
        cluster_break(run.cluster, "the members do not come to an end");
    ret_verdict->digest = sim_digest(run.cluster->sim);
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s",
                   run.cluster->broken);
    if (show)
        fputs(sim_trace(run.cluster->sim), stdout);
    if (all != NULL) {
        all->passed += run.passed;
        all->workers += run.killed;
        all->servers += run.losses.killed;
    }
    cluster_free(run.cluster);
}

static const struct seeds seeds = {
    .replay = "build/dev/tests/test_clock_seeds",
    .count = SEEDS,
    .repeat_every = 50,
    .seconds_max = 60,
    .run = run_clock,
};

TEST(test_clocks)
{
    struct clock_sum sum = {0};

    seeds_expect_well(&seeds, &sum);
    print_message("%" PRIu64 " steps, %" PRIu64 " tasks and %" PRIu64 " servers killed\n",
                  sum.passed, sum.workers, sum.servers);
    assert_true(sum.passed > 0);
    assert_true(sum.workers > 0);
    assert_true(sum.servers > 0);
}

SEEDS_PROGRAM(seeds)
