/* Sums on parameter servers under faults that follow from a seed: several tasks add ones
 * to one variable, to the whole of it or to all of its rows by number, while links break,
 * stand still and heal, and writers die. What was acknowledged is in the sum, once; what
 * failed without an answer may be in it, once; and nothing else is. Servers crash where
 * partitions have backups, one at a time, come back and get their share; others are
 * drained. The views of these are recorded in some runs, by the chief itself or a worker,
 * which may crash. Servers with journals crash at any time if there are no backups, and
 * their disks are full for a while.
 *
 * Run by hand for more seeds or others: test_variable_seeds FIRST COUNT. */
#include "actors/variables/row_actions.h"
#include "actors/views/view_table.h"
#include "tests/sim/chaos.h"
#include "tests/sim/cluster.h"
#include "tests/sim/cluster/losses.h"
#include "tests/sim/random.h"
#include "tests/sim/storage.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 300,
    ITEMS = 6,
    ITEMS_SLOW_MAX = 40000, /* more on a slow line would be late heartbeats */
    ITEMS_MAX = 200000,     /* a few: for content that is filled in pieces */
    SHARDS_MAX = ITEMS,
    WRITERS_MAX = 8,
    SERVERS_MAX = 4,
    CHAOS_MS = 8 * 1000,
    HEALED_MS = 300 * 1000,
    RECOVERY_MS = MU__VIEW_RECOVERY_MS,
    REST_MS = 10 * 1000,
    TIMEOUT_MS = 3000,
    PAUSE_MAX_MS = 150
};

struct run;

/* A task that opens the variable, then adds one to each item so many times. */
struct writer {
    struct run *run;
    struct cluster_task *task;
    struct sim_random random;
    uint64_t ids[SHARDS_MAX];
    bool opened;
    uint64_t left;
    unsigned life; /* in which it was opened */
    struct cluster_call *call;
    bool finished;
};

struct run {
    struct cluster *cluster;
    struct cluster_losses losses;
    struct sim_storage *journals[SERVERS_MAX]; /* NULL: there are none */
    struct mu__shape shape;
    size_t items;
    int64_t *ones;
    int64_t *sums;
    struct mu__row_list list; /* all rows, the last one first, */
    struct mu__rows rows;
    uint8_t *listed_ones; /* and ones for them */
    uint64_t acknowledged;
    uint64_t unknown; /* failed, and nobody knows whether it was added */
    struct writer writers[WRITERS_MAX];
    size_t writers_count;
};

static struct cluster_call *ask(struct writer *writer, int operation, int64_t timeout_ms)
{
    struct run *run = writer->run;
    const struct mu__variable_call call = {
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = "sum",
        .shape = &run->shape,
        .servers_count = run->cluster->options.servers,
        .ids = writer->ids,
        .target = run->sums,
        .source = operation == MU__VARIABLE_ADD           ? run->ones
                  : operation == MU__VARIABLE_SCATTER_ADD ? (const void *)run->listed_ones
                                                          : NULL,
        .rows = operation == MU__VARIABLE_SCATTER_ADD ? &run->rows : NULL,
    };

    return cluster_variable(writer->task, &call);
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
        writer->opened = code == 0;
        return;
    }
    writer->left--;
    if (code == 0)
        run->acknowledged++;
    else
        run->unknown++;
}

static void step(struct sim *sim, void *arg)
{
    struct writer *writer = arg;

    if (writer->call != NULL && writer->call->done)
        take_answer(writer);
    if (writer->call == NULL && sim_alive(writer->task->node)) {
        if (writer->life != sim_lives(writer->task->node))
            writer->opened = false;
        writer->life = sim_lives(writer->task->node);
        if (!writer->opened)
            writer->call = ask(writer, MU__VARIABLE_OPEN, TIMEOUT_MS);
        else if (writer->left > 0)
            writer->call =
                ask(writer,
                    writer->left % 2 == 0 ? MU__VARIABLE_ADD : MU__VARIABLE_SCATTER_ADD,
                    TIMEOUT_MS);
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
        mu__row_list_init(&run->list, &run->shape, numbers, run->items, NULL), 0);
    run->listed_ones = mu__row_list_pack(&run->list, &run->shape, run->ones);
    assert_non_null(run->listed_ones);
    run->rows = (struct mu__rows){.list = &run->list};
    free(numbers);
}

static void begin_losses(struct run *run, uint64_t seed)
{
    run->losses = (struct cluster_losses){
        .cluster = run->cluster,
        .random = sim_stream(seed, 202),
        .until_ms = CHAOS_MS,
    };
    if (run->cluster->options.node.backups > 0)
        cluster_losses_begin(&run->losses);
}

/* ---- Journals of servers ---- */

static void journal_dies(struct mu__storage *storage)
{
    sim_storage_die_after((struct sim_storage *)storage, 0);
}

static void journal_is_gone(struct mu__storage *storage)
{
    sim_storage_crash((struct sim_storage *)storage);
}

/* Of a server that runs: one that starts would refuse. */
static void fill_disk(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;
    struct sim_storage *journal = (struct sim_storage *)task->journal.storage;

    if (!sim_alive(task->node))
        return;
    sim_note(sim, MU__LOG_WARN, "the disk of %s is full", task->name);
    sim_storage_fail(journal, SIM_STORAGE_FLUSH, 5, -MU_EEXHAUSTED);
    sim_storage_fail(journal, SIM_STORAGE_APPEND, 5, -MU_EEXHAUSTED);
}

static void give_journal(struct run *run, unsigned server, struct sim_random *random)
{
    struct cluster_task *task = run->cluster->servers[server];
    struct sim_storage *journal = sim_storage_new("server.journal", sim_draw(random));

    run->journals[server] = journal;
    task->journal = (struct cluster_journal){&journal->base, journal_dies,
                                             journal_is_gone, NULL, NULL};
    task->journal_spare_bytes = sim_between(random, 1 << 10, 1 << 16);
    for (int i = 0; i < 2; i++)
        if (sim_chance(random, 30))
            sim_at(run->cluster->sim, sim_between(random, 500, CHAOS_MS), fill_disk,
                   task);
}

/* Of a stream of its own, as above. */
static void draw_journals(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 203);

    if (!sim_chance(&random, run->cluster->options.node.backups > 0 ? 25 : 60))
        return;
    for (unsigned i = 0; i < run->cluster->options.servers; i++)
        give_journal(run, i, &random);
}

/* It loses all that nobody else has. */
static void spare_server(struct run *run, unsigned server)
{
    const struct cluster_task *task = run->cluster->servers[server];

    if (run->journals[server] != NULL && run->cluster->options.node.backups == 0)
        return;
    sim_chaos_spare(task->node, SIM_FAULT_CRASH);
    sim_chaos_spare(task->node, SIM_FAULT_CRASH_MIDWAY);
}

static void begin(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 200);
    struct cluster_options options = {
        .workers = (unsigned)sim_between(&random, 1, 4),
        .servers = (unsigned)sim_between(&random, 1, 3),
        .clients = (unsigned)sim_between(&random, 0, 2),
    };
    struct cluster *cluster;
    struct sim_chaos chaos;

    *run = (struct run){.items = ITEMS};
    draw_backups(run, &options, seed);
    cluster = cluster_new(seed, &options);
    run->cluster = cluster;
    make_items(run);
    run->shape = (struct mu__shape){
        .dtype = MU_I64,
        .rank = 1,
        .dims = {run->items},
        .shards = (uint32_t)sim_between(&random, 1, SHARDS_MAX),
    };
    list_items(run);
    sim_settings_draw(cluster->sim);
    if (run->items > ITEMS_SLOW_MAX)
        sim_settings(cluster->sim)->bytes_per_ms = 0;
    sim_chaos_spare(cluster->chief->node, SIM_FAULT_CRASH);
    sim_chaos_spare(cluster->chief->node, SIM_FAULT_CRASH_MIDWAY);
    draw_journals(run, seed);
    for (unsigned i = 0; i < options.servers; i++)
        spare_server(run, i);
    cluster_start_all(cluster);
    add_writer(run, cluster->chief, &random);
    for (unsigned i = 0; i < options.workers; i++)
        add_writer(run, cluster->workers[i], &random);
    for (unsigned i = 0; i < options.clients; i++)
        add_writer(run, cluster->clients[i], &random);
    sim_chaos_draw(cluster->sim, &chaos);
    sim_chaos_start(cluster->sim, &chaos, CHAOS_MS);
    begin_losses(run, seed);
}

static bool is_over(void *arg)
{
    struct run *run = arg;

    for (size_t i = 0; i < run->writers_count; i++)
        if (!run->writers[i].finished)
            return false;
    return true;
}

/* The chief, who has opened the variable, reads it. */
static void check_sums(struct run *run)
{
    int code = cluster_wait(ask(&run->writers[0], MU__VARIABLE_READ, 60000));

    if (code != 0)
        cluster_break(run->cluster, "the sums cannot be read: %s", mu_strerror(code));
    for (size_t i = 0; i < run->items; i++)
        if (run->sums[i] < (int64_t)run->acknowledged ||
            run->sums[i] > (int64_t)(run->acknowledged + run->unknown))
            cluster_break(run->cluster,
                          "item %zu is %" PRId64 ", %" PRIu64
                          " adds were acknowledged, of %" PRIu64 " nobody knows",
                          i, run->sums[i], run->acknowledged, run->unknown);
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

struct verdict {
    uint64_t digest;
    uint64_t acknowledged;
    uint64_t unknown;
    unsigned killed;
    unsigned drained;
    unsigned moving;
    unsigned restored;
    char broken[256];
};

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
    if (run.cluster->options.node.backups > 0)
        check_mended(&run);
    /* Agents of a service are never at rest. */
    if (run.cluster->broken[0] == '\0' && run.cluster->options.hosts == NULL) {
        sim_run_until(sim, sim_now_ms(sim) + REST_MS);
        (void)cluster_check_rest(run.cluster);
    }
    verdict.digest = sim_digest(sim);
    verdict.acknowledged = run.acknowledged;
    verdict.unknown = run.unknown;
    verdict.killed = run.losses.killed;
    verdict.drained = run.losses.drained;
    verdict.moving = run.losses.moving;
    for (unsigned i = 0; i < SERVERS_MAX && run.journals[i] != NULL; i++)
        verdict.restored += sim_lives(run.cluster->servers[i]->node) - 1;
    (void)snprintf(verdict.broken, sizeof verdict.broken, "%s", run.cluster->broken);
    if (show)
        fputs(sim_trace(sim), stdout);
    cluster_free(run.cluster);
    for (unsigned i = 0; i < SERVERS_MAX; i++)
        if (run.journals[i] != NULL)
            sim_storage_free(run.journals[i]);
    mu__row_list_done(&run.list);
    free(run.listed_ones);
    free(run.ones);
    free(run.sums);
    return verdict;
}

struct sum {
    uint64_t acknowledged;
    uint64_t unknown;
    uint64_t killed; /* servers */
    uint64_t drained;
    uint64_t moving; /* times at which partitions were moved */
    uint64_t restored;
};

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    struct verdict verdict = run_seed(seed, show);
    struct sum *all = sum;

    ret_verdict->digest = verdict.digest;
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s", verdict.broken);
    if (all == NULL)
        return;
    all->acknowledged += verdict.acknowledged;
    all->unknown += verdict.unknown;
    all->killed += verdict.killed;
    all->drained += verdict.drained;
    all->moving += verdict.moving;
    all->restored += verdict.restored;
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
    struct sum sum = {0};

    seeds_expect_well(&seeds, &sum);
    print_message("%" PRIu64 " adds acknowledged, %" PRIu64 " unknown, %" PRIu64
                  " servers killed, %" PRIu64 " drained; moves at %" PRIu64
                  " times; %" PRIu64 " started again with a journal\n",
                  sum.acknowledged, sum.unknown, sum.killed, sum.drained, sum.moving,
                  sum.restored);
    assert_true(sum.acknowledged > 0);
    assert_true(sum.restored > 0);
    assert_true(sum.killed > 0);
    assert_true(sum.drained > 0);
    assert_true(sum.moving > 0);
}

SEEDS_PROGRAM(seeds)
