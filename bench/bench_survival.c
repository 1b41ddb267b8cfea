/* What a backup costs: writes of 1 KiB to two parameter servers in other processes with
 * and without backups, in turns. The same with journals instead, which are in the working
 * folder, so on its disk. */
#include "bench/cluster.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENTS = 256, THREADS = 8, SERVERS = 2 };

static const char journal_variable[] = "BENCH_PS_JOURNAL";
static const char sync_variable[] = "BENCH_PS_JOURNAL_SYNC";

static int play_journaled(char **argv)
{
    mu_node_options options;

    mu_node_options_init(&options);
    options.ps_journal = getenv(journal_variable);
    options.journal_sync = getenv(sync_variable) != NULL;
    cluster_tune_malloc();
    return cluster_play(argv, &options);
}

/* ---- A cluster, with or without backups ---- */

struct world {
    struct cluster cluster;
    mu_node *node;
    mu_variable *variable;
};

static void begin_world(struct world *world, unsigned backups)
{
    uint64_t dims[1] = {(uint64_t)ELEMENTS * SERVERS};
    const mu_variable_spec spec = {
        .name = "w", .dtype = MU_F32, .rank = 1, .dims = dims, .shards = SERVERS};
    mu_node_options options;
    mu_error error;

    mu_node_options_init(&options);
    options.backups = backups;
    world->node = cluster_begin(&world->cluster, SERVERS, &options);
    cluster_check(mu_variable_open(world->node, &spec, 10000, &error, &world->variable),
                  &error);
}

static void end_world(struct world *world)
{
    mu_variable_close(world->variable);
    cluster_end(&world->cluster, world->node);
}

static void add(const struct world *world)
{
    static const float ones[ELEMENTS * SERVERS] = {1};
    mu_error error;

    cluster_check(mu_variable_add(world->variable, ones, sizeof ones, 60000, &error),
                  &error);
}

/* ---- Rate and latency ---- */

static void *add_many(void *arg)
{
    uint64_t count = bench_size(10, 20000);

    for (uint64_t i = 0; i < count; i++)
        add(arg);
    return NULL;
}

static double measure_rate(struct world *world)
{
    pthread_t threads[THREADS];
    uint64_t start_ns = bench_now_ns();

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, add_many, world) != 0)
            cluster_die("thread", "none is left");
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    return bench_rate(THREADS * bench_size(10, 20000), start_ns, bench_now_ns());
}

static double measure_latency_us(const struct world *world)
{
    uint64_t samples[5000];
    uint64_t count = bench_size(10, 5000);

    for (uint64_t i = 0; i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        add(world);
        samples[i] = bench_now_ns() - start_ns;
    }
    return (double)bench_median(samples, count) / 1e3;
}

static void report(const char *metric, double value, const char *unit, double limit,
                   double target)
{
    const struct bench_line line = {.bench = "survival",
                                    .metric = metric,
                                    .value = value,
                                    .unit = unit,
                                    .limit = limit,
                                    .target = target,
                                    .less_is_more = strcmp(unit, "1/s") != 0};

    bench_report(&line);
}

struct cost {
    double rate;
    double latency_us;
};

static struct cost measure_cost(unsigned backups)
{
    struct world world = {.node = NULL};
    struct cost cost;

    begin_world(&world, backups);
    (void)measure_latency_us(&world);
    cost.latency_us = measure_latency_us(&world);
    cost.rate = measure_rate(&world);
    end_world(&world);
    return cost;
}

static void remove_journals(const char *folder)
{
    char path[128];

    for (int i = 0; i < SERVERS; i++) {
        (void)snprintf(path, sizeof path, "%s/ps-%d.journal", folder, i);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static struct cost measure_journal(bool sync)
{
    char folder[] = "bench-journal-XXXXXX";
    struct cost cost;

    if (mkdtemp(folder) == NULL)
        cluster_die("journal", "no folder can be made");
    (void)setenv(journal_variable, folder, 1);
    if (sync)
        (void)setenv(sync_variable, "1", 1);
    cost = measure_cost(0);
    (void)unsetenv(journal_variable);
    (void)unsetenv(sync_variable);
    remove_journals(folder);
    return cost;
}

static void report_cost(const char *rate, const char *latency, const struct cost *cost,
                        const struct cost *alone)
{
    report(rate, cost->rate, "1/s", alone->rate, 0);
    report(latency, cost->latency_us, "us", alone->latency_us, 0);
}

static void compare_journals(void)
{
    const struct cost alone = measure_cost(0);
    const struct cost journaled = measure_journal(false);
    const struct cost synced = measure_journal(true);

    report_cost("writes by 8 threads, with journals", "latency of a write, with journals",
                &journaled, &alone);
    report_cost("the same, flushed to the disk", "its latency", &synced, &alone);
}

static void compare(void)
{
    const struct cost alone = measure_cost(0);
    const struct cost backed = measure_cost(1);

    report("writes by 8 threads, without backups", alone.rate, "1/s", 0, 0);
    report("the same with backups", backed.rate, "1/s", alone.rate, 0.45 * alone.rate);
    report("latency of a write, without backups", alone.latency_us, "us", 0, 0);
    report("the same with backups", backed.latency_us, "us", alone.latency_us,
           2.2 * alone.latency_us);
}

int main(int argc, char **argv)
{
    if (cluster_is_task(argc, argv))
        return play_journaled(argv);
    compare();
    compare_journals();
    return 0;
}
