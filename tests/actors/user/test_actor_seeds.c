/* Actors of a whole cluster that send, call, watch, spawn and stop each other by chance,
 * while processes crash, stand still and lose each other. All of it follows from a seed.
 * What must be, looked for at every message and after every event:
 *
 *   - what one actor sends to another arrives in order and at most once, and between two
 *     of one process all of it; of a turn that has failed nothing arrives;
 *   - a call ends once, by its limit; its method is run once at most, and not at all when
 *     its error says so, also later; what it says has run has;
 *   - calls that come back to an actor which waits for them do not succeed;
 *   - who was refused for want of room hears when there is some;
 *   - a timer that was cancelled is not seen;
 *   - one DOWN for each monitor;
 *   - mailboxes and what is on its way are within their bounds. */
#include "sim/world/chaos.h"
#include "sim/world/inner.h"
#include "tests/sim/verdict.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"
#include "tests/support/users/bees.h"

#include <stdint.h>

enum { SEEDS = 100, BEGIN_MS = 1000, BUSY_MS = 6000, CALM_MS = 20000 };

static const char *const reached_words[REACHED] = {
    "messages sent",    "turns that failed",    "mailboxes found full",
    "calls answered",   "errors that ran not",  "errors that perhaps ran",
    "errors that ran",  "cycles refused",       "monitors that fired",
    "timers cancelled", "calls to other nodes", "works",
};

/* ---- What must be ---- */

static void check_mailboxes(const struct office *office)
{
    for (const mu_actor *actor = MU__LIST_FIRST(&office->actors, mu_actor, in_office);
         actor != NULL; actor = MU__LIST_NEXT(actor, mu_actor, in_office))
        if (actor->mail_count > actor->mailbox_max + 8 * MU__ACTOR_WINDOW)
            cluster_break(hive->cluster, "%u messages are in a mailbox of %u",
                          actor->mail_count, actor->mailbox_max);
    for (struct peer *peer = MU__LIST_FIRST(&office->peers_all, struct peer, node);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct peer, node))
        for (size_t i = 0; i < peer->out.capacity; i++)
            if (peer->out.entries[i].key != 0 &&
                ((struct way *)peer->out.entries[i].value)->messages > MU__ACTOR_WINDOW)
                cluster_break(hive->cluster, "more than a window is on its way");
}

/* New processes get their bees. */
static void look(struct sim *sim, void *arg)
{
    struct cluster *cluster = hive->cluster;

    (void)arg;
    (void)sim;
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        struct cluster_task *task = &cluster->tasks[i];

        if (!task->runs || !sim_alive(task->node) || hive_office(task) == NULL)
            continue;
        if (hive->lives[i] != sim_lives(task->node)) {
            hive->lives[i] = sim_lives(task->node);
            assert_int_equal(mu__types_add(hive_office(task), &bee_type, NULL), 0);
            for (unsigned j = 0; j < 3 && !hive->over; j++)
                hive_spawn(task, NULL);
        }
        check_mailboxes(hive_office(task));
    }
}

static bool is_living(const struct bee *bee)
{
    const struct office *office =
        bee->task->runs && sim_alive(bee->task->node) ? hive_office(bee->task) : NULL;

    return office != NULL && office->config.incarnation == bee->address.incarnation &&
           mu__actor_find(office, bee->address.number) != NULL;
}

static void check_end(void)
{
    for (unsigned i = 1; i <= hive->calls_count; i++) {
        const struct call *call = &hive->calls[i];

        if (call->from != 0 && !call->ended && is_living(&hive->bees[call->from - 1]))
            cluster_break(hive->cluster, "call %u has not ended", i);
    }
    for (unsigned i = 1; i <= hive->watched_count; i++) {
        const struct watched *watched = &hive->watched[i];

        if (!watched->fired && is_living(&hive->bees[watched->by]) &&
            !is_living(&hive->bees[watched->who]))
            cluster_break(hive->cluster, "monitor %u has not fired", i);
    }
    for (unsigned i = 0; i < hive->bees_count; i++)
        if (hive->bees[i].refused && is_living(&hive->bees[i]))
            cluster_break(hive->cluster, "bee %u still waits for room", i);
    for (unsigned i = 1; i <= hive->timed_count; i++)
        if (!hive->timed[i].fired && !hive->timed[i].cancelled &&
            is_living(&hive->bees[hive->timed[i].bee]))
            cluster_break(hive->cluster, "timer %u has not fired", i);
}

/* ---- Runs ---- */

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    const struct cluster_options options = {.workers = 3, .clients = 1};
    struct cluster *cluster;

    hive = calloc(1, sizeof *hive);
    assert_non_null(hive);
    hive->reached = sum == NULL ? again : sum;
    hive->random = sim_stream(seed, 112);
    cluster = hive->cluster = cluster_new(seed, &options);
    sim_settings_draw(cluster->sim);
    cluster_start_all(cluster);
    sim_run_until(cluster->sim, BEGIN_MS);
    sim_set_check(cluster->sim, look, NULL);
    verdict_begin_chaos(cluster, BEGIN_MS + BUSY_MS);
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS);
    hive->over = true;
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS + CALM_MS);
    check_end();
    verdict_of(cluster, show, ret_verdict);
    cluster_free(cluster);
    free(hive);
    hive = NULL;
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of actor --seed",
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
