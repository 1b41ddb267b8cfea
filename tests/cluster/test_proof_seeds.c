/* Clusters whose members prove who they are, with strangers among them: other keys, none,
 * a key for clients, a certificate of another CA, or of another task. Keys change while
 * everything runs, processes crash, stand still and lose each other; all of that follows
 * from a seed. Who has the right proof works on, and is there in the end; nobody else is
 * ever linked to the chief or told anything, and each is named with the reason.
 *
 * Run by hand for more seeds or others: test_proof_seeds FIRST COUNT. */
#include "sim/world/chaos.h"
#include "sim/world/random.h"
#include "tests/sim/cluster.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 500,
    STEP_MS = 100,
    CHAOS_MS = 10 * 1000,
    CHANGE_MS = 3000,     /* until all have the new key, */
    LATE_MS = 20 * 1000,  /* but for one, which has it so long after the chaos */
    CALM_MS = 100 * 1000, /* after the chaos */
    CLOSURES_MAX = 200
};

enum reached {
    REFUSED,
    CHANGED,
    WAITED_FOR_KEY,
    OTHER_KEY,
    OTHER_TASK,
    CLIENT_KEY,
    PLAIN,
    OTHER_CA,
    REACHED
};

static const char *const reached_words[REACHED] = {
    [REFUSED] = "connections refused",
    [CHANGED] = "keys changed",
    [WAITED_FOR_KEY] = "that were out until they had the new key",
    [OTHER_KEY] = "strangers with another key",
    [OTHER_TASK] = "with the certificate of another task",
    [CLIENT_KEY] = "with a key for clients",
    [PLAIN] = "with nothing",
    [OTHER_CA] = "with a certificate of another CA",
};

struct place {
    struct run *run;
    struct cluster_task *task;
    bool is_stranger; /* for ever */
    bool is_late;     /* with the new key */
    enum reached why; /* of a stranger */
    struct sim_credentials next;
};

struct run {
    struct cluster *cluster;
    struct sim_random random;
    bool by_key;
    struct place places[CLUSTER_TASKS_MAX];
    struct cluster_closure *closures[CLOSURES_MAX];
    unsigned closures_count;
    uint64_t reached[REACHED];
};

/* ---- Who has what ---- */

static struct sim_credentials right_one(const struct run *run,
                                        const struct cluster_task *task)
{
    bool is_client = strcmp(task->type, "client") == 0;

    if (run->by_key)
        return (struct sim_credentials){
            .kind = SIM_KEY, .of = 1, .right = is_client ? MU__RIGHT_USE : MU__RIGHT_ALL};
    return (struct sim_credentials){SIM_CERTIFICATE, 1,
                                    is_client ? MU__RIGHT_USE : MU__RIGHT_TASK,
                                    is_client ? NULL : task->type, task->index};
}

/* Of who shall not be let in. */
static void spoil(struct place *place, struct sim_credentials *credentials)
{
    struct run *run = place->run;
    bool is_client = strcmp(place->task->type, "client") == 0;
    uint64_t how = sim_between(&run->random, 0, is_client ? 1 : 2);

    if (how == 0) {
        *credentials = (struct sim_credentials){.kind = SIM_PLAIN};
        place->why = PLAIN;
    } else if (how == 1) {
        credentials->of = 2;
        place->why = run->by_key ? OTHER_KEY : OTHER_CA;
    } else if (run->by_key) {
        credentials->right = MU__RIGHT_USE;
        place->why = CLIENT_KEY;
    } else {
        credentials->task_index++;
        place->why = OTHER_TASK;
    }
    run->reached[place->why]++;
}

static void give(struct run *run, unsigned at, bool is_stranger)
{
    struct place *place = &run->places[at];
    struct sim_credentials credentials;

    *place = (struct place){
        .run = run, .task = &run->cluster->tasks[at], .is_stranger = is_stranger};
    credentials = right_one(run, place->task);
    if (is_stranger)
        spoil(place, &credentials);
    sim_node_prove(place->task->node, &credentials);
    place->next = credentials;
    place->next.of = 3;
}

/* The chief and the first worker belong to it; of the others most. */
static void give_all(struct run *run)
{
    const struct cluster *cluster = run->cluster;

    for (unsigned i = 0; i < cluster->tasks_count; i++)
        give(run, i,
             &cluster->tasks[i] != cluster->chief &&
                 &cluster->tasks[i] != cluster->workers[0] &&
                 sim_chance(&run->random, 35));
}

/* ---- Keys change ---- */

static void change(struct sim *sim, void *arg)
{
    struct place *place = arg;

    sim_note(sim, MU__LOG_INFO, "%s has the new key", place->task->name);
    if (place->is_late)
        place->run->reached[WAITED_FOR_KEY] += cluster_links(place->task) == 0;
    place->run->reached[CHANGED]++;
    sim_node_prove(place->task->node, &place->next);
}

static void plan_changes(struct run *run)
{
    const struct cluster *cluster = run->cluster;
    uint64_t from_ms = sim_between(&run->random, 1000, CHAOS_MS - CHANGE_MS);
    unsigned late = (unsigned)sim_between(&run->random, 1, cluster->tasks_count - 1);

    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        struct place *place = &run->places[i];

        if (place->is_stranger)
            continue;
        place->is_late = i == late && place->task != cluster->chief;
        sim_at(cluster->sim,
               place->is_late ? CHAOS_MS + LATE_MS
                              : from_ms + sim_between(&run->random, 0, CHANGE_MS),
               change, place);
    }
}

/* ---- What must never be ---- */

static void check_peer(void *user, const struct mu__link_view *view)
{
    const struct run *run = user;

    for (unsigned i = 0; view->node != 0 && i < run->cluster->tasks_count; i++) {
        const struct place *place = &run->places[i];

        if (place->is_stranger && strcmp(place->task->type, view->type) == 0 &&
            place->task->index == view->index)
            cluster_break(run->cluster, "the chief has a link to %s", place->task->name);
    }
}

static void check_event(struct sim *sim, void *arg)
{
    struct run *run = arg;
    const struct cluster *cluster = run->cluster;

    cluster_check_event(sim, run->cluster);
    if (cluster->chief->runs && sim_alive(cluster->chief->node))
        mu__links_each(cluster->chief->member.links, check_peer, run);
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        const struct place *place = &run->places[i];
        struct mu__links_counters counters;

        if (!place->is_stranger || !place->task->runs || !sim_alive(place->task->node))
            continue;
        mu__links_counters(place->task->member.links, &counters);
        if (counters.messages_in > 0)
            cluster_break(run->cluster, "%s was told something", place->task->name);
        if (counters.frames_in > 0 && place->why != OTHER_TASK)
            cluster_break(run->cluster, "%s was greeted", place->task->name);
    }
}

/* ---- What goes on ---- */

static void schedule(struct sim *sim, void *arg)
{
    struct run *run = arg;

    if (run->closures_count == CLOSURES_MAX || sim_now_ms(sim) > CHAOS_MS + LATE_MS)
        return;
    run->closures[run->closures_count++] =
        cluster_schedule(run->cluster->chief, "square");
    sim_at(sim, sim_now_ms(sim) + STEP_MS, schedule, run);
}

static void start(struct run *run, uint64_t seed)
{
    const struct cluster_options options = {
        .workers = (unsigned)sim_between(&run->random, 2, 6),
        .clients = (unsigned)sim_between(&run->random, 1, 2),
        .attempts_max = 1000,
        .node = {.start_delay_max_ms = 1000},
    };
    struct sim_chaos chaos;

    run->by_key = sim_chance(&run->random, 60);
    run->cluster = cluster_new(seed, &options);
    sim_settings_draw(run->cluster->sim);
    sim_set_check(run->cluster->sim, check_event, run);
    give_all(run);
    sim_chaos_spare(run->cluster->chief->node, SIM_FAULT_CRASH);
    sim_chaos_spare(run->cluster->chief->node, SIM_FAULT_CRASH_MIDWAY);
    cluster_start_all(run->cluster);
    if (run->by_key && sim_chance(&run->random, 70))
        plan_changes(run);
    sim_chaos_draw(run->cluster->sim, &chaos);
    sim_chaos_start(run->cluster->sim, &chaos, CHAOS_MS);
    (void)cluster_open(run->cluster->chief, -1);
    sim_at(run->cluster->sim, 500, schedule, run);
}

/* ---- How it ends ---- */

/* Named by who has refused it, or by who wanted to reach it. */
static void expect_named(struct run *run, const struct place *place, const char *said)
{
    char dropped[64];
    char refused[64];
    char missed[64];

    (void)snprintf(dropped, sizeof dropped, "dropped a connection from %s: it",
                   place->task->name);
    (void)snprintf(refused, sizeof refused, "refused /job:%s/task:%" PRIu32 " at ",
                   place->task->type, place->task->index);
    (void)snprintf(missed, sizeof missed, "waiting for /job:%s/task:%" PRIu32 " at ",
                   place->task->type, place->task->index);
    if (strstr(said, dropped) == NULL && strstr(said, refused) == NULL &&
        strstr(said, missed) == NULL)
        cluster_break(run->cluster, "nobody names %s", place->task->name);
}

static void expect_all_there(struct run *run)
{
    const struct cluster *cluster = run->cluster;
    const char *said = sim_trace(cluster->sim);
    uint32_t there = 0;

    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        const struct place *place = &run->places[i];

        if (place->is_stranger)
            expect_named(run, place, said);
        else
            there++;
        if (!place->is_stranger && cluster_links(place->task) == 0)
            cluster_break(run->cluster, "%s is not there", place->task->name);
    }
    if (cluster_links(cluster->chief) != there - 1)
        cluster_break(run->cluster, "the chief has %" PRIu32 " links, of %" PRIu32,
                      cluster_links(cluster->chief), there - 1);
}

static void expect_all_run(struct run *run)
{
    for (unsigned i = 0; i < run->closures_count; i++)
        if (cluster_result(run->closures[i]) != cluster_square(run->closures[i]->key))
            cluster_break(run->cluster, "closure %u has not run", i);
    if (run->closures_count < CLOSURES_MAX / 2)
        cluster_break(run->cluster, "only %u closures", run->closures_count);
}

static void run_seed(uint64_t seed, bool show, void *sum,
                     struct seeds_verdict *ret_verdict)
{
    struct run *run = calloc(1, sizeof *run);
    struct sim_counters counters;
    uint64_t *reached = sum;

    assert_non_null(run);
    run->random = sim_stream(seed, 201);
    start(run, seed);
    sim_run_until(run->cluster->sim, CHAOS_MS);
    if (show)
        fputs(sim_trace(run->cluster->sim), stdout);
    (void)sim_trace(run->cluster->sim);
    sim_run_until(run->cluster->sim, CHAOS_MS + CALM_MS);
    sim_counters(run->cluster->sim, &counters);
    run->reached[REFUSED] = counters.refused;
    expect_all_run(run);
    expect_all_there(run);
    (void)cluster_check_rest(run->cluster);
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s",
                   run->cluster->broken);
    ret_verdict->digest = sim_digest(run->cluster->sim);
    for (int i = 0; reached != NULL && i < REACHED; i++)
        reached[i] += run->reached[i];
    cluster_free(run->cluster);
    free(run);
}

static const struct seeds seeds = {
    .replay = "build/dev/tests/test_proof_seeds",
    .count = SEEDS,
    .repeat_every = 50,
    .seconds_max = 300,
    .run = run_seed,
};

TEST(test_seeds)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    printf("%10" PRIu64 " runs\n", seeds_count());
    for (int i = 0; i < REACHED; i++) {
        printf("%10" PRIu64 " %s\n", reached[i], reached_words[i]);
        if (seeds_count() >= SEEDS && reached[i] == 0)
            fail_msg("no seed has reached: %s", reached_words[i]);
    }
}

SEEDS_PROGRAM(seeds)
