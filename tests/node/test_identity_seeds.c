/* Clusters in which second processes say that they are a task that another process plays
 * already: a worker, a parameter server, the chief; at an address of their own or at the
 * first one's. They come, stand still and die as the seed says, while the chief's program
 * schedules closures.
 *
 * In a quiet run nothing happens to the first processes: then none of them loses a run,
 * and each second one is told to end. In the others they stand still and are restarted,
 * too. In all of them everything comes to its end when the second ones have gone, and
 * what cluster.h says is looked for after every event. */
#include "sim/world/random.h"
#include "tests/sim/cluster.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 300,
    TWINS_MAX = 4,
    CLOSURES = 60,
    BEGIN_MS = 500,
    CHAOS_MS = 15000,
    /* Until a second process that tries again and again is told to end: see member.h. */
    CLAIM_MS = 500 * MU__CLAIM_SILENCES + MU__CLAIM_MS + 2000
};

enum reached { QUIET, TAKEN, TOOK_OVER, SHARED_ADDRESS, REACHED };

struct twin {
    struct cluster_task *task;
    struct cluster_task *of;
    uint64_t alive_ms; /* since when it is, undisturbed; 0: it is not */
    char name[16];
};

struct run {
    struct cluster *cluster;
    struct sim_random random;
    bool quiet;
    struct twin twins[TWINS_MAX];
    unsigned twins_count;
    uint64_t *reached;
};

static uint64_t draw(struct run *run, uint64_t min, uint64_t max)
{
    return sim_between(&run->random, min, max);
}

static struct cluster_task *draw_first(struct run *run)
{
    struct cluster *cluster = run->cluster;

    switch (draw(run, 0, 3)) {
    case 0:
        return cluster->chief;
    case 1:
        return cluster->servers[0];
    default:
        return cluster->workers[draw(run, 0, cluster->options.workers - 1)];
    }
}

static void add_twin(struct run *run)
{
    struct twin *twin = &run->twins[run->twins_count];

    twin->of = draw_first(run);
    (void)snprintf(twin->name, sizeof twin->name, "twin-%u", run->twins_count);
    twin->task = cluster_add(run->cluster, twin->of->type, twin->of->index, twin->name);
    if (draw(run, 0, 1) == 0) {
        twin->task->advertises = twin->of->address;
        run->reached[SHARED_ADDRESS]++;
    }
    run->twins_count++;
}

/* A second process that was there for long enough, undisturbed, knows that it is one. */
static void check_told(struct run *run, const struct twin *twin)
{
    if (!run->quiet || twin->alive_ms == 0 ||
        sim_now_ms(run->cluster->sim) < twin->alive_ms + CLAIM_MS)
        return;
    if (twin->task->taken == 0)
        cluster_break(run->cluster,
                      "%s is there since %" PRIu64 " ms, and does not know "
                      "that %s is, too",
                      twin->name, twin->alive_ms, twin->of->name);
}

static void disturb(struct run *run, struct twin *twin)
{
    check_told(run, twin);
    if (!sim_alive(twin->task->node)) {
        twin->task->taken = 0;
        cluster_start(twin->task);
        twin->alive_ms = sim_now_ms(run->cluster->sim);
        return;
    }
    if (draw(run, 0, 2) > 0)
        return;
    twin->alive_ms = 0;
    run->reached[TAKEN] += twin->task->taken > 0;
    sim_crash(twin->task->node);
}

static void disturb_first(struct run *run)
{
    struct cluster_task *task = run->cluster->workers[0];

    if (run->quiet)
        return;
    if (draw(run, 0, 2) == 0)
        (void)sim_restart(task->node);
    else
        sim_pause(task->node, draw(run, 100, 3000));
}

static void set_up(struct run *run, uint64_t seed)
{
    struct cluster_options options = {
        .workers = 0, .servers = 1, .hosts = "chief:0", .attempts_max = 1000};
    uint64_t twins;

    run->random = sim_stream(seed, 77);
    run->quiet = draw(run, 0, 1) == 0;
    run->reached[QUIET] += run->quiet;
    options.workers = (unsigned)draw(run, 1, 3);
    run->cluster = cluster_new(seed, &options);
    cluster_start_all(run->cluster);
    sim_run_until(run->cluster->sim, BEGIN_MS);
    twins = draw(run, 1, TWINS_MAX);
    for (uint64_t i = 0; i < twins; i++)
        add_twin(run);
}

static void note_take_overs(struct run *run)
{
    for (unsigned i = 0; i < run->cluster->options.workers; i++)
        run->reached[TOOK_OVER] += run->cluster->workers[i]->taken > 0;
}

/* What must be of the first ones in a quiet run. */
static void check_quiet(struct run *run, const struct cluster_task *chief)
{
    struct cluster *cluster = run->cluster;

    if (cluster_count(&chief->session->shared.retried) > 0)
        cluster_break(cluster, "a run was lost to a second process");
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (strncmp(cluster->tasks[i].name, "twin", 4) != 0 &&
            cluster->tasks[i].taken > 0)
            cluster_break(cluster, "%s was there first, and was told to end",
                          cluster->tasks[i].name);
}

static void finish(struct run *run)
{
    struct cluster *cluster = run->cluster;

    for (unsigned i = 0; i < run->twins_count; i++) {
        check_told(run, &run->twins[i]);
        sim_exit(run->twins[i].task->node);
    }
    if (run->quiet)
        check_quiet(run, cluster->chief);
    note_take_overs(run);
    if (cluster_wait(cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1)) != 0)
        cluster_break(cluster, "join fails");
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + 20000);
    (void)cluster_check_rest(cluster);
}

static void run_seed(uint64_t seed, bool show, void *sum,
                     struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    struct run run = {.reached = sum == NULL ? again : sum};
    unsigned scheduled = 0;
    struct cluster *cluster;

    set_up(&run, seed);
    cluster = run.cluster;
    sim_set_check(cluster->sim, cluster_check_event, cluster);
    (void)cluster_wait(cluster_open(cluster->chief, -1));
    while (sim_now_ms(cluster->sim) < BEGIN_MS + CHAOS_MS && cluster->broken[0] == '\0') {
        if (scheduled < CLOSURES && draw(&run, 0, 1) == 0) {
            (void)cluster_schedule(cluster->chief, "square");
            scheduled++;
        }
        if (draw(&run, 0, 3) == 0)
            disturb(&run, &run.twins[draw(&run, 0, run.twins_count - 1)]);
        if (draw(&run, 0, 9) == 0)
            disturb_first(&run);
        sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + draw(&run, 1, 900));
    }
    finish(&run);
    ret_verdict->digest = sim_digest(cluster->sim);
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s",
                   cluster->broken);
    if (show)
        fputs(sim_trace(cluster->sim), stdout);
    cluster_free(cluster);
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of identity --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_seed,
};

TEST(test_seeds)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    for (int i = 0; i < REACHED && seeds_count() >= SEEDS; i++)
        assert_true(reached[i] > SEEDS / 20);
}

SEEDS_PROGRAM(seeds)
