/* Sums on parameter servers under faults that follow from a seed: several tasks add ones
 * to one variable, to the whole of it or to all of its rows by number, while links break,
 * stand still and heal, and writers die. What was acknowledged is in the sum, once; what
 * failed without an answer may be in it, once; and nothing else is. Servers crash where
 * partitions have backups, one at a time, come back and get their share; others are
 * drained, added and removed. The views of these are recorded in some runs, by the chief
 * itself or a worker; with a journal, or by a worker that lives, they outlive the chief,
 * and it dies, too, or the disk is full. Servers with journals crash at any time if there
 * are no backups, and their disks are full for a while. In some runs there is a second
 * variable, which follows the first one, and snapshots of both; in some there are tables.
 *
 * What must be at any moment is in copies.h of tests/sim/cluster, what of snapshots in
 * snapshots.h, of tables in tables.h.
 *
 * Run by hand for more seeds or others: test_variable_seeds FIRST COUNT. */
#include "actors/coordination/store/store.h"
#include "actors/variables/row_actions.h"
#include "actors/views/view_table.h"
#include "sim/world/chaos.h"
#include "sim/world/random.h"
#include "sim/world/storage.h"
#include "tests/sim/cluster.h"
#include "tests/sim/cluster/copies.h"
#include "tests/sim/cluster/lasting.h"
#include "tests/sim/cluster/losses.h"
#include "tests/sim/cluster/resizing.h"
#include "tests/sim/cluster/snapshots.h"
#include "tests/sim/cluster/tables.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 200,
    ITEMS = 6,
    ITEMS_SLOW_MAX = 40000, /* more on a slow line would be late heartbeats */
    ITEMS_MAX = 200000,     /* a few: for content that is filled in pieces */
    SHARDS_MAX = ITEMS,
    WRITERS_MAX = 8,
    SERVERS_MAX = 4 + CLUSTER_RESIZING_MAX,
    CHAOS_MS = 8 * 1000,
    HEALED_MS = 300 * 1000,
    RECOVERY_MS = MU__VIEW_RECOVERY_MS,
    REST_MS = 10 * 1000,
    TIMEOUT_MS = 3000,
    PAUSE_MAX_MS = 150
};

struct run;

/* A task that opens the variables, then adds one to each item so many times, to the first
 * variable before the second one. */
struct writer {
    struct run *run;
    struct cluster_task *task;
    struct sim_random random;
    uint64_t ids[CLUSTER_COUNTED_MAX][SHARDS_MAX];
    unsigned opened; /* variables, the first ones */
    unsigned at;     /* which variable is next */
    uint64_t left;
    unsigned life; /* in which they were opened */
    struct cluster_call *call;
    bool finished;
};

struct run {
    struct cluster *cluster;
    struct cluster_losses losses;
    struct cluster_resizing resizing; /* no servers: none are added or removed */
    struct cluster_copies copies;
    struct cluster_counts counts;
    struct cluster_snapshots *snapshots; /* NULL: there are none */
    struct cluster_tables *tables;
    unsigned servers;                          /* all that may be there */
    struct sim_storage *store;                 /* of the views; NULL: in memory */
    struct sim_storage *journals[SERVERS_MAX]; /* NULL: there are none */
    size_t items;
    int64_t *ones;
    int64_t *sums;
    struct mu__row_list list; /* all rows, the last one first, */
    struct mu__rows rows;
    uint8_t *listed_ones; /* and ones for them */
    struct writer writers[WRITERS_MAX];
    size_t writers_count;
};

static struct cluster_call *ask(struct writer *writer, int operation, unsigned variable,
                                int64_t timeout_ms)
{
    struct run *run = writer->run;
    const struct mu__variable_call call = {
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = run->counts.counted[variable].name,
        .shape = &run->counts.shape,
        .servers_count = run->cluster->options.servers,
        .ids = writer->ids[variable],
        .target = run->sums,
        .source = operation == MU__VARIABLE_ADD           ? run->ones
                  : operation == MU__VARIABLE_SCATTER_ADD ? (const void *)run->listed_ones
                                                          : NULL,
        .rows = operation == MU__VARIABLE_SCATTER_ADD ? &run->rows : NULL,
    };

    run->counts.counted[variable].begun +=
        operation == MU__VARIABLE_ADD || operation == MU__VARIABLE_SCATTER_ADD;
    return cluster_variable(writer->task, &call);
}

/* What has failed may have been added, so the other variable does not follow. */
static void take_added(struct writer *writer, int code)
{
    struct cluster_counts *counts = &writer->run->counts;

    counts->counted[writer->at].acknowledged += code == 0;
    writer->at++;
    if (code == 0 && writer->at < counts->count)
        return;
    writer->at = 0;
    writer->left--;
}

static void take_answer(struct writer *writer)
{
    struct run *run = writer->run;
    int operation = writer->call->of.call.operation;
    int code = writer->call->of.call.code;
    const char *words = writer->call->of.call.error.message;

    writer->call = NULL;
    if (code != 0 && code != -MU_EDEADLINE && code != -MU_EUNAVAILABLE &&
        code != -MU_ECLOSED)
        cluster_break(run->cluster, "%s: operation %d: %s: %s", writer->task->name,
                      operation, mu_strerror(code), words);
    if (operation == MU__VARIABLE_OPEN) {
        writer->opened += code == 0;
        return;
    }
    take_added(writer, code);
}

static void step(struct sim *sim, void *arg)
{
    struct writer *writer = arg;

    if (writer->call != NULL && writer->call->done)
        take_answer(writer);
    if (writer->call == NULL && sim_alive(writer->task->node)) {
        if (writer->life != sim_lives(writer->task->node))
            writer->opened = 0;
        writer->life = sim_lives(writer->task->node);
        if (writer->opened < writer->run->counts.count)
            writer->call = ask(writer, MU__VARIABLE_OPEN, writer->opened, TIMEOUT_MS);
        else if (writer->left > 0)
            writer->call =
                ask(writer,
                    writer->left % 2 == 0 ? MU__VARIABLE_ADD : MU__VARIABLE_SCATTER_ADD,
                    writer->at, TIMEOUT_MS);
        else
            writer->finished = true;
    }
    if (!writer->finished)
        sim_at(sim, sim_now_ms(sim) + sim_between(&writer->random, 1, PAUSE_MAX_MS), step,
               writer);
}

static void add_writer(struct run *run, struct cluster_task *task,
                       struct sim_random *random)
{
    struct writer *writer = &run->writers[run->writers_count];

    *writer = (struct writer){
        .run = run,
        .task = task,
        .random = sim_stream(sim_draw(random), run->writers_count),
        .left = sim_between(random, 5, 40),
    };
    run->writers_count++;
    sim_at(run->cluster->sim, 1, step, writer);
}

/* Of a stream of its own: runs without backups are what they were. */
static void draw_backups(struct run *run, struct cluster_options *options, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 201);

    run->items = ITEMS;
    if (options->servers < 2 || sim_chance(&random, 25))
        return;
    options->node.backups = 1;
    options->servers += sim_chance(&random, 40) ? 1 : 0;
    if (sim_chance(&random, 10))
        run->items = sim_between(&random, ITEMS, ITEMS_MAX);
    if (sim_chance(&random, 60))
        options->hosts = sim_chance(&random, 50) ? "chief:0" : "worker:0";
}

/* ---- What is counted, and how ---- */

/* Of a name whose shards are in the same partitions as those of the first one. */
static const char *follower_of(const char *name, char *ret_name, size_t size)
{
    for (unsigned i = 0;; i++) {
        (void)snprintf(ret_name, size, "follower-%u", i);
        if (mu__partition_of(mu__view_str(ret_name), 0) ==
            mu__partition_of(mu__view_str(name), 0))
            return ret_name;
    }
}

static void set_counts(struct run *run, uint32_t shards)
{
    run->counts = (struct cluster_counts){
        .cluster = run->cluster,
        .shape = {.dtype = MU_I64, .rank = 1, .dims = {run->items}, .shards = shards},
        .counted = {{.name = "sum"}},
        .count = 1,
    };
}

/* Of a stream of its own, as above. */
static void draw_snapshots(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 204);
    struct cluster *cluster = run->cluster;
    static char name[32];

    if (run->items > CLUSTER_SNAPSHOT_ITEMS_MAX || !sim_chance(&random, 50))
        return;
    run->counts.counted[1].name = follower_of("sum", name, sizeof name);
    run->counts.count = 2;
    run->snapshots = calloc(1, sizeof *run->snapshots);
    assert_non_null(run->snapshots);
    run->snapshots->counts = &run->counts;
    run->snapshots->task = cluster->options.clients > 0 && sim_chance(&random, 50)
                               ? cluster->clients[0]
                               : cluster->workers[0];
    run->snapshots->random = random;
    run->snapshots->until_ms = CHAOS_MS;
    cluster_snapshots_begin(run->snapshots);
}

static void begin_copies(struct run *run, uint64_t seed)
{
    run->copies = (struct cluster_copies){
        .counts = &run->counts,
        .random = sim_stream(seed, 205),
        .servers = run->servers,
        .until_ms = CHAOS_MS + REST_MS,
    };
    cluster_copies_begin(&run->copies);
}

static void draw_tables(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 208);

    if (!sim_chance(&random, 50))
        return;
    run->tables = calloc(1, sizeof *run->tables);
    assert_non_null(run->tables);
    run->tables->cluster = run->cluster;
    run->tables->copies = &run->copies;
    run->tables->random = random;
    run->tables->until_ms = CHAOS_MS + REST_MS;
    cluster_tables_begin(run->tables);
}

static void make_items(struct run *run)
{
    run->ones = calloc(run->items, sizeof *run->ones);
    run->sums = calloc(run->items, sizeof *run->sums);
    assert_non_null(run->ones);
    assert_non_null(run->sums);
    for (size_t i = 0; i < run->items; i++)
        run->ones[i] = 1;
}

/* Once the shape is known. */
static void list_items(struct run *run)
{
    int64_t *numbers = calloc(run->items, sizeof *numbers);

    assert_non_null(numbers);
    for (size_t i = 0; i < run->items; i++)
        numbers[i] = (int64_t)(run->items - 1 - i);
    assert_int_equal(
        mu__row_list_init(&run->list, &run->counts.shape, numbers, run->items, NULL), 0);
    run->listed_ones = mu__row_list_pack(&run->list, &run->counts.shape, run->ones);
    assert_non_null(run->listed_ones);
    run->rows = (struct mu__rows){.list = &run->list};
    free(numbers);
}

/* ---- Servers that die, and a chief that does; servers that come and go ---- */

static void spare(const struct cluster_task *task)
{
    sim_chaos_spare(task->node, SIM_FAULT_CRASH);
    sim_chaos_spare(task->node, SIM_FAULT_CRASH_MIDWAY);
}

/* A host has its store to itself. It lives, or keeps what it has in a file. */
static void let_chief_die(struct run *run, struct sim_random *random)
{
    struct cluster *cluster = run->cluster;
    bool is_host = strcmp(cluster->options.hosts, "chief:0") == 0;

    run->losses.chief_dies = true;
    if (!is_host) {
        spare(cluster->workers[0]);
        return;
    }
    run->store = sim_storage_new("store", sim_draw(random));
    cluster->chief->store = lasting_journal(run->store);
    lasting_fill_store(cluster->chief, random, CHAOS_MS);
    cluster->options.coordination.store = &mu__store_journal;
    cluster->options.coordination.store_location = "store";
}

/* Before anything is started. */
static void draw_losses(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 206);

    run->losses = (struct cluster_losses){
        .cluster = run->cluster,
        .random = sim_stream(seed, 202),
        .until_ms = CHAOS_MS,
        .servers = run->servers,
    };
    if (run->cluster->options.hosts != NULL && sim_chance(&random, 50))
        let_chief_die(run, &random);
}

/* Of a stream of its own, as above; the same. */
static void draw_resizing(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 207);

    run->servers = run->cluster->options.servers;
    if (run->servers < 2 || !sim_chance(&random, 40))
        return;
    run->resizing = (struct cluster_resizing){
        .cluster = run->cluster, .random = random, .until_ms = CHAOS_MS};
    cluster_resizing_prepare(&run->resizing);
    run->servers = run->resizing.servers;
}

/* ---- Journals of servers ---- */

/* Of a stream of its own, as above. */
static void draw_journals(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 203);
    bool has_backups = run->cluster->options.node.backups > 0;

    if (!sim_chance(&random, has_backups ? 25 : 60))
        return;
    for (unsigned i = 0; i < run->servers; i++)
        run->journals[i] =
            lasting_server_journal(run->cluster->servers[i], &random, CHAOS_MS);
}

/* It loses all that nobody else has. */
static void spare_server(struct run *run, unsigned server)
{
    const struct cluster_task *task = run->cluster->servers[server];

    if (run->journals[server] == NULL || run->cluster->options.node.backups > 0)
        spare(task);
}

/* All but servers that are not there yet. */
static void start_tasks(struct run *run)
{
    struct cluster *cluster = run->cluster;
    unsigned count = cluster->tasks_count - (run->servers - cluster->options.servers);

    for (unsigned i = 0; i < count; i++)
        cluster_start(&cluster->tasks[i]);
}

static void begin_faults(struct run *run, uint64_t seed)
{
    struct sim *sim = run->cluster->sim;
    struct sim_chaos chaos;

    sim_chaos_draw(sim, &chaos);
    sim_chaos_start(sim, &chaos, CHAOS_MS);
    if (run->cluster->options.node.backups > 0)
        cluster_losses_begin(&run->losses);
    if (run->resizing.servers > 0)
        cluster_resizing_begin(&run->resizing);
    begin_copies(run, seed);
    draw_snapshots(run, seed);
    draw_tables(run, seed);
}

static void add_writers(struct run *run, struct sim_random *random)
{
    struct cluster *cluster = run->cluster;

    add_writer(run, cluster->chief, random);
    for (unsigned i = 0; i < cluster->options.workers; i++)
        add_writer(run, cluster->workers[i], random);
    for (unsigned i = 0; i < cluster->options.clients; i++)
        add_writer(run, cluster->clients[i], random);
}

static void begin(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 200);
    struct cluster_options options = {
        .workers = (unsigned)sim_between(&random, 1, 4),
        .servers = (unsigned)sim_between(&random, 1, 3),
        .clients = (unsigned)sim_between(&random, 0, 2),
    };

    *run = (struct run){.items = ITEMS};
    draw_backups(run, &options, seed);
    run->cluster = cluster_new(seed, &options);
    make_items(run);
    set_counts(run, (uint32_t)sim_between(&random, 1, SHARDS_MAX));
    list_items(run);
    sim_settings_draw(run->cluster->sim);
    if (run->items > ITEMS_SLOW_MAX)
        sim_settings(run->cluster->sim)->bytes_per_ms = 0;
    draw_resizing(run, seed);
    draw_losses(run, seed);
    draw_journals(run, seed);
    spare(run->cluster->chief);
    for (unsigned i = 0; i < run->servers; i++)
        spare_server(run, i);
    start_tasks(run);
    add_writers(run, &random);
    begin_faults(run, seed);
}

static bool is_over(void *arg)
{
    struct run *run = arg;

    for (size_t i = 0; i < run->writers_count; i++)
        if (!run->writers[i].finished)
            return false;
    if (run->tables != NULL && !cluster_tables_are_over(run->tables))
        return false;
    return sim_alive(run->cluster->chief->node);
}

/* By the chief, who may have died since it has opened them. */
static void check_variable(struct run *run, unsigned variable)
{
    const struct cluster_counted *counted = &run->counts.counted[variable];
    struct writer *chief = &run->writers[0];
    int code = cluster_wait(ask(chief, MU__VARIABLE_OPEN, variable, 60000));

    if (code == 0)
        code = cluster_wait(ask(chief, MU__VARIABLE_READ, variable, 60000));
    if (code != 0)
        cluster_break(run->cluster, "%s cannot be read: %s", counted->name,
                      mu_strerror(code));
    for (size_t i = 0; i < run->items; i++)
        if (run->sums[i] < (int64_t)counted->acknowledged ||
            run->sums[i] > (int64_t)counted->begun)
            cluster_break(run->cluster,
                          "item %zu of %s is %" PRId64 ", %" PRIu64
                          " adds were begun, %" PRIu64 " of them acknowledged",
                          i, counted->name, run->sums[i], counted->begun,
                          counted->acknowledged);
}

static void check_sums(struct run *run)
{
    for (unsigned i = 0; i < run->counts.count; i++)
        check_variable(run, i);
    if (run->tables != NULL)
        cluster_tables_check(run->tables);
}

/* Servers are not waited for any more when moves begin. */
static void check_mended(struct run *run)
{
    struct sim *sim = run->cluster->sim;

    sim_run_until(sim, sim_now_ms(sim) + REST_MS + RECOVERY_MS);
    if (!sim_run_to(sim, cluster_losses_are_mended, &run->losses,
                    sim_now_ms(sim) + HEALED_MS))
        cluster_break(run->cluster, "copies and moves do not come to an end");
}

/* What a run came to; sums are added up by row. */
enum reached {
    ACKNOWLEDGED,
    UNKNOWN,
    KILLED,
    CHIEFS,
    DRAINED,
    MOVING,
    RESTORED,
    ADDED,
    LEFT,
    GONE,
    SNAPSHOTS,
    ABORTED,
    LOOKED,
    COMPARED,
    PUSHED,
    DELETED,
    LOOK_UPS,
    TABLES_COMPARED,
    REACHED
};

static const char *const reached_words[REACHED] = {
    [ACKNOWLEDGED] = "adds acknowledged",
    [UNKNOWN] = "unknown",
    [KILLED] = "servers killed",
    [CHIEFS] = "chiefs killed",
    [DRAINED] = "servers drained",
    [MOVING] = "looks at moves",
    [RESTORED] = "starts with a journal",
    [ADDED] = "servers added",
    [LEFT] = "left with nothing",
    [GONE] = "left with what they had",
    [SNAPSHOTS] = "snapshots",
    [ABORTED] = "snapshots given up",
    [LOOKED] = "looks at members",
    [COMPARED] = "of two that were alike",
    [PUSHED] = "pushes acknowledged",
    [DELETED] = "deletes",
    [LOOK_UPS] = "look-ups",
    [TABLES_COMPARED] = "tables compared",
};

struct verdict {
    uint64_t digest;
    uint64_t reached[REACHED];
    char broken[256];
};

static void count_reached(const struct run *run, uint64_t reached[REACHED])
{
    for (unsigned i = 0; i < run->counts.count; i++) {
        const struct cluster_counted *counted = &run->counts.counted[i];

        reached[ACKNOWLEDGED] += counted->acknowledged;
        reached[UNKNOWN] += counted->begun - counted->acknowledged;
    }
    for (unsigned i = 0; i < run->servers; i++) {
        unsigned lives = sim_lives(run->cluster->servers[i]->node);

        if (run->journals[i] != NULL && lives > 0)
            reached[RESTORED] += lives - 1;
    }
    reached[KILLED] = run->losses.killed;
    reached[CHIEFS] = run->losses.chiefs;
    reached[DRAINED] = run->losses.drained;
    reached[MOVING] = run->losses.moving;
    reached[ADDED] = run->resizing.added;
    reached[LEFT] = run->resizing.left;
    reached[GONE] = run->resizing.gone;
    reached[SNAPSHOTS] = run->snapshots != NULL ? run->snapshots->taken : 0;
    reached[ABORTED] = run->snapshots != NULL ? run->snapshots->aborted : 0;
    reached[LOOKED] = run->copies.looked;
    reached[COMPARED] = run->copies.compared;
    if (run->tables == NULL)
        return;
    reached[PUSHED] = run->tables->pushed;
    reached[DELETED] = run->tables->deleted;
    reached[LOOK_UPS] = run->tables->looked;
    reached[UNKNOWN] += run->tables->unknown;
    reached[TABLES_COMPARED] = run->tables->compared;
}

static void free_run(struct run *run)
{
    cluster_free(run->cluster);
    cluster_resizing_free(&run->resizing);
    for (unsigned i = 0; i < SERVERS_MAX; i++)
        if (run->journals[i] != NULL)
            sim_storage_free(run->journals[i]);
    if (run->store != NULL)
        sim_storage_free(run->store);
    if (run->tables != NULL)
        cluster_tables_free(run->tables);
    free(run->tables);
    free(run->snapshots);
    mu__row_list_done(&run->list);
    free(run->listed_ones);
    free(run->ones);
    free(run->sums);
}

/* Agents of a service are never at rest. */
static void check_end(struct run *run)
{
    struct cluster *cluster = run->cluster;
    struct sim *sim = cluster->sim;

    if (cluster->options.node.backups > 0)
        check_mended(run);
    if (cluster->broken[0] != '\0' || cluster->options.hosts != NULL)
        return;
    sim_run_until(sim, sim_now_ms(sim) + REST_MS);
    (void)cluster_check_rest(cluster);
}

static struct verdict run_seed(uint64_t seed, bool show)
{
    struct verdict verdict = {0};
    struct run run;
    struct sim *sim;

    begin(&run, seed);
    sim = run.cluster->sim;
    sim_run_until(sim, CHAOS_MS);
    if (!sim_run_to(sim, is_over, &run, CHAOS_MS + HEALED_MS))
        cluster_break(run.cluster, "the writers do not come to an end");
    else
        check_sums(&run);
    check_end(&run);
    verdict.digest = sim_digest(sim);
    count_reached(&run, verdict.reached);
    (void)snprintf(verdict.broken, sizeof verdict.broken, "%s", run.cluster->broken);
    if (show)
        fputs(sim_trace(sim), stdout);
    free_run(&run);
    return verdict;
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    struct verdict verdict = run_seed(seed, show);
    uint64_t *reached = sum;

    ret_verdict->digest = verdict.digest;
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s", verdict.broken);
    for (size_t i = 0; reached != NULL && i < REACHED; i++)
        reached[i] += verdict.reached[i];
}

static const struct seeds seeds = {
    .replay = "scripts/soak --variables --seed",
    .count = SEEDS,
    .repeat_every = 50,
    .seconds_max = 60,
    .run = run_one,
};

TEST(test_sums)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    for (size_t i = 0; i < REACHED; i++)
        print_message("%" PRIu64 " %s%s", reached[i], reached_words[i],
                      i + 1 < REACHED ? ", " : "\n");
    for (size_t i = 0; i < REACHED && seeds_count() >= SEEDS / 3; i++)
        assert_true(reached[i] > 0);
}

SEEDS_PROGRAM(seeds)
