/* Actors of a whole cluster that give each other streams by chance, while processes
 * crash, stand still and lose each other. All of it follows from a seed. What must be,
 * looked for at every notice and after every event:
 *
 *   - the items of a stream come once, in order, and none of a turn that has failed;
 *   - then comes its end, or an error; what its actor has ended ends behind all items;
 *   - no more is under way than was said;
 *   - who was refused for want of room hears of room, or that nobody reads on;
 *   - of what was paused nothing comes, of what was closed nothing more;
 *   - nothing of a stream is left when it is over. */
#include "actors/user/streams/producers.h"
#include "sim/world/chaos.h"
#include "sim/world/inner.h"
#include "tests/sim/verdict.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"
#include "tests/support/users/taps.h"

#include <inttypes.h>

enum { SEEDS = 100, BEGIN_MS = 1000, BUSY_MS = 6000, CALM_MS = 30000 };

static const char *const reached_words[REACHED] = {
    "streams begun",
    "items",
    "streams that ended well",
    "streams that ended by an error of their own",
    "streams that were lost",
    "methods that failed",
    "turns that failed",
    "items refused",
    "rooms",
    "pauses",
    "streams closed by who reads",
    "streams given for nobody",
};

/* ---- what must be ---- */

static void check_streams(const struct office *office)
{
    for (const mu_actor *actor = MU__LIST_FIRST(&office->actors, mu_actor, in_office);
         actor != NULL; actor = MU__LIST_NEXT(actor, mu_actor, in_office))
        for (const mu_stream *stream =
                 actor->streams == NULL
                     ? NULL
                     : MU__LIST_FIRST(&actor->streams->producers, mu_stream, node);
             stream != NULL; stream = MU__LIST_NEXT(stream, mu_stream, node))
            if (stream->under_way > stream->ahead ||
                stream->bytes > 2 * (uint64_t)MU__STREAM_BYTES)
                cluster_break(taps->cluster, "%u items, %" PRIu64 " bytes are under way",
                              stream->under_way, stream->bytes);
}

/* New processes get their taps. */
static void look(struct sim *sim, void *arg)
{
    struct cluster *cluster = taps->cluster;

    (void)arg;
    (void)sim;
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        struct cluster_task *task = &cluster->tasks[i];

        if (!task->runs || !sim_alive(task->node) || taps_office(task) == NULL)
            continue;
        if (taps->lives[i] != sim_lives(task->node)) {
            taps->lives[i] = sim_lives(task->node);
            assert_int_equal(mu__types_add(taps_office(task), &tap_type, NULL), 0);
            for (unsigned j = 0; j < 3 && !taps->over; j++)
                taps_spawn(task);
        }
        check_streams(taps_office(task));
    }
}

static bool is_living(const struct tap *tap)
{
    const struct office *office =
        tap->task->runs && sim_alive(tap->task->node) ? taps_office(tap->task) : NULL;

    return office != NULL && office->config.incarnation == tap->address.incarnation &&
           mu__actor_find(office, tap->address.number) != NULL;
}

static void check_end(void)
{
    for (unsigned i = 1; i <= taps->flows_count; i++) {
        const struct flow *flow = &taps->flows[i];

        if (flow->from == 0)
            continue;
        if (!flow->over && is_living(&taps->taps[flow->to - 1]))
            cluster_break(taps->cluster, "flow %u has not ended", i);
        if (flow->stream != NULL && is_living(&taps->taps[flow->from - 1]))
            cluster_break(taps->cluster, "flow %u is given on%s", i,
                          flow->blocked ? ", and waits for room" : "");
    }
    for (unsigned i = 0; i < taps->cluster->tasks_count; i++) {
        const struct cluster_task *task = &taps->cluster->tasks[i];
        const struct office *office =
            task->runs && sim_alive(task->node) ? taps_office(task) : NULL;

        if (office != NULL &&
            office->streams.producers.count + office->streams.consumers.count > 0)
            cluster_break(taps->cluster, "of streams something is left");
    }
}

/* ---- runs ---- */

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    const struct cluster_options options = {.workers = 3, .clients = 1};
    struct cluster *cluster;

    taps = calloc(1, sizeof *taps);
    assert_non_null(taps);
    taps->reached = sum == NULL ? again : sum;
    taps->random = sim_stream(seed, 113);
    cluster = taps->cluster = cluster_new(seed, &options);
    sim_settings_draw(cluster->sim);
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, BEGIN_MS);
    sim_set_check(cluster->sim, look, NULL);
    verdict_begin_chaos(cluster, BEGIN_MS + BUSY_MS);
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS);
    taps->over = true;
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS + CALM_MS);
    check_end();
    verdict_of(cluster, show, ret_verdict);
    cluster_free(cluster);
    free(taps);
    taps = NULL;
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of stream --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_one,
};

TEST(test_seeds)
{
    seeds_expect_reached(&seeds, reached_words, REACHED);
}

SEEDS_PROGRAM(seeds)
