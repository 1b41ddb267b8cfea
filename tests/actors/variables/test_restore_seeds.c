/* Handles that outlive their servers, under faults that follow from a seed: several tasks
 * add ones to one variable while servers and writers die and links break. Who is told
 * that a server does not have the variable restores it, as zeros, and goes on with the
 * handle that it has. Nobody waits for ever; and when everything has healed and was
 * restored once more, each of the handles adds to all of it, exactly.
 *
 * Run by hand for more seeds or others: test_restore_seeds FIRST COUNT. */
#include "sim/world/chaos.h"
#include "sim/world/random.h"
#include "tests/sim/cluster.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 300,
    ITEMS = 6,
    WRITERS_MAX = 8,
    CHAOS_MS = 8 * 1000,
    HEALED_MS = 300 * 1000,
    NOTICED_MS = 1000, /* until everybody knows which connection was cut last */
    TIMEOUT_MS = 3000,
    PAUSE_MAX_MS = 150,
    LAST_ADDS = 3 /* of each handle, when all has healed */
};

struct run;

/* A task that opens the variable, then adds one to each item so many times. */
struct writer {
    struct run *run;
    struct cluster_task *task;
    struct sim_random random;
    uint64_t ids[ITEMS];       /* its handle */
    uint64_t other_ids[ITEMS]; /* of another one, with which it restores */
    bool opened;
    bool restores;
    uint64_t left;
    unsigned life; /* in which it was opened */
    struct cluster_call *call;
    bool finished;
};

struct run {
    struct cluster *cluster;
    struct mu__shape shape;
    int64_t ones[ITEMS];
    int64_t sums[ITEMS];
    uint64_t acknowledged;
    uint64_t unknown; /* failed, and nobody knows whether it was added */
    uint64_t restored;
    uint64_t reopened;
    bool assigns; /* the sums, which are zeros */
    struct writer writers[WRITERS_MAX];
    size_t writers_count;
};

static struct cluster_call *ask(struct writer *writer, int operation, int64_t timeout_ms)
{
    struct run *run = writer->run;
    bool opens = operation == MU__VARIABLE_OPEN;
    const struct mu__variable_call call = {
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = "sum",
        .shape = &run->shape,
        .servers_count = run->cluster->options.servers,
        .ids = writer->restores ? writer->other_ids : writer->ids,
        .flags = opens ? MU_VARIABLE_RECREATE : 0,
        .target = run->sums,
        .source = run->assigns                    ? run->sums
                  : operation == MU__VARIABLE_ADD ? run->ones
                                                  : NULL,
    };

    return cluster_variable(writer->task, &call);
}

static void take_answer(struct writer *writer)
{
    struct run *run = writer->run;
    int operation = writer->call->of.call.operation;
    int code = writer->call->of.call.code;
    const char *words = writer->call->of.call.error.message;

    run->reopened += writer->call->of.variable.reopened;
    writer->call = NULL;
    if (code != 0 && code != -MU_EDEADLINE && code != -MU_EUNAVAILABLE &&
        code != -MU_ECLOSED && code != -MU_ENOTFOUND)
        cluster_break(run->cluster, "%s: operation %d: %s: %s", writer->task->name,
                      operation, mu_strerror(code), words);
    if (operation == MU__VARIABLE_OPEN) {
        writer->opened = writer->opened || code == 0;
        run->restored += writer->restores && code == 0;
        writer->restores = writer->restores && code != 0;
        return;
    }
    writer->left--;
    writer->restores = code == -MU_ENOTFOUND;
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
            writer->opened = writer->restores = false;
        writer->life = sim_lives(writer->task->node);
        if (!writer->opened || writer->restores)
            writer->call = ask(writer, MU__VARIABLE_OPEN, TIMEOUT_MS);
        else if (writer->left > 0)
            writer->call = ask(writer, MU__VARIABLE_ADD, TIMEOUT_MS);
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

static void begin(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 200);
    const struct cluster_options options = {
        .workers = (unsigned)sim_between(&random, 1, 4),
        .servers = (unsigned)sim_between(&random, 1, 3),
        .clients = (unsigned)sim_between(&random, 0, 2),
    };
    struct cluster *cluster = cluster_new(seed, &options);
    struct sim_chaos chaos;

    *run = (struct run){.cluster = cluster};
    run->shape = (struct mu__shape){
        .dtype = MU_I64,
        .rank = 1,
        .dims = {ITEMS},
        .shards = (uint32_t)sim_between(&random, 1, ITEMS),
    };
    for (size_t i = 0; i < ITEMS; i++)
        run->ones[i] = 1;
    sim_settings_draw(cluster->sim);
    sim_chaos_spare(cluster->chief->node, SIM_FAULT_CRASH);
    sim_chaos_spare(cluster->chief->node, SIM_FAULT_CRASH_MIDWAY);
    cluster_start_all(cluster);
    add_writer(run, cluster->chief, &random);
    for (unsigned i = 0; i < options.workers; i++)
        add_writer(run, cluster->workers[i], &random);
    for (unsigned i = 0; i < options.clients; i++)
        add_writer(run, cluster->clients[i], &random);
    sim_chaos_draw(cluster->sim, &chaos);
    sim_chaos_start(cluster->sim, &chaos, CHAOS_MS);
}

static bool is_over(void *arg)
{
    struct run *run = arg;

    for (size_t i = 0; i < run->writers_count; i++)
        if (!run->writers[i].finished)
            return false;
    return true;
}

static void expect(struct run *run, struct writer *writer, int operation)
{
    struct cluster_call *call = ask(writer, operation, 60000);
    int code = cluster_wait(call);

    if (code != 0)
        cluster_break(run->cluster, "%s: operation %d when all has healed: %s",
                      writer->task->name, operation, call->of.call.error.message);
}

static void expect_sums(struct run *run, struct writer *writer, int64_t min, int64_t max)
{
    expect(run, writer, MU__VARIABLE_READ);
    for (size_t i = 0; i < ITEMS; i++)
        if (run->sums[i] < min || run->sums[i] > max)
            cluster_break(run->cluster,
                          "%s: item %zu is %" PRId64 ", not %" PRId64 " to %" PRId64,
                          writer->task->name, i, run->sums[i], min, max);
}

/* By the chief, with another handle than its own. */
static void restore(struct run *run)
{
    struct writer *chief = &run->writers[0];

    chief->restores = true;
    expect(run, chief, MU__VARIABLE_OPEN);
    memset(run->sums, 0, sizeof run->sums);
    run->assigns = true;
    expect(run, chief, MU__VARIABLE_ASSIGN);
    run->assigns = false;
    chief->restores = false;
}

/* Each of the handles, from whatever life of the servers, adds to all of it. */
static void check_sums(struct run *run)
{
    restore(run);
    expect_sums(run, &run->writers[0], 0, 0);
    for (size_t i = 0; i < run->writers_count; i++)
        for (int j = 0; j < LAST_ADDS; j++)
            expect(run, &run->writers[i], MU__VARIABLE_ADD);
    for (size_t i = 0; i < run->writers_count; i++)
        expect_sums(run, &run->writers[i], (int64_t)run->writers_count * LAST_ADDS,
                    (int64_t)run->writers_count * LAST_ADDS);
}

struct verdict {
    uint64_t digest;
    uint64_t acknowledged;
    uint64_t restored;
    uint64_t reopened;
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
    sim_run_until(sim, sim_now_ms(sim) + NOTICED_MS);
    if (run.cluster->broken[0] == '\0')
        check_sums(&run);
    if (run.cluster->broken[0] == '\0') {
        sim_run_until(sim, sim_now_ms(sim) + 10000);
        (void)cluster_check_rest(run.cluster);
    }
    verdict.digest = sim_digest(sim);
    verdict.acknowledged = run.acknowledged;
    verdict.restored = run.restored;
    verdict.reopened = run.reopened;
    (void)snprintf(verdict.broken, sizeof verdict.broken, "%s", run.cluster->broken);
    if (show)
        fputs(sim_trace(sim), stdout);
    cluster_free(run.cluster);
    return verdict;
}

struct sum {
    uint64_t acknowledged;
    uint64_t restored;
    uint64_t reopened;
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
    all->restored += verdict.restored;
    all->reopened += verdict.reopened;
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of restore --seed",
    .count = SEEDS,
    .repeat_every = 50,
    .seconds_max = 60,
    .run = run_one,
};

TEST(test_handles_outlive_servers)
{
    struct sum sum = {0};

    seeds_expect_well(&seeds, &sum);
    print_message("%" PRIu64 " adds acknowledged; restored %" PRIu64 " times, %" PRIu64
                  " calls found other shards\n",
                  sum.acknowledged, sum.restored, sum.reopened);
    assert_true(sum.acknowledged > 0);
    assert_true(sum.reopened > 0);
}

SEEDS_PROGRAM(seeds)
