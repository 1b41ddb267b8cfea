/* What a backup costs, and what it gives: writes of 1 KiB to two parameter servers in
 * other processes with and without backups, in turns; and how long no write is answered
 * after one of the servers was killed. The same with journals instead, which are in the
 * working folder, so on its disk. */
#include "bench/cluster.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENTS = 256, THREADS = 8, SERVERS = 2, KILLS_MAX = 16 };

static const char journal_variable[] = "BENCH_PS_JOURNAL";
static const char sync_variable[] = "BENCH_PS_JOURNAL_SYNC";

static int play_server(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    options.ps_journal = getenv(journal_variable);
    options.journal_sync = getenv(sync_variable) != NULL;
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("variable", error->message);
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

    cluster_make(&world->cluster, 0, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        cluster_start(&world->cluster, "ps", i);
    mu_node_options_init(&options);
    options.backups = backups;
    world->node = cluster_open(world->cluster.json, "chief", 0, &options);
    check(mu_variable_open(world->node, &spec, 10000, &error, &world->variable), &error);
}

static void end_world(struct world *world)
{
    mu_error error;

    mu_variable_close(world->variable);
    check(mu_node_close(world->node, 1000, &error), &error);
    cluster_stop(&world->cluster);
}

static void add(const struct world *world)
{
    static const float ones[ELEMENTS * SERVERS] = {1};
    mu_error error;

    check(mu_variable_add(world->variable, ones, sizeof ones, 60000, &error), &error);
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

/* ---- Fail-over ---- */

static void pause_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static _Atomic bool stops;
static _Atomic uint64_t longest_ns;

static void *add_until_told(void *arg)
{
    while (!atomic_load(&stops)) {
        uint64_t start_ns = bench_now_ns();
        uint64_t for_ns;

        add(arg);
        for_ns = bench_now_ns() - start_ns;
        if (for_ns > atomic_load(&longest_ns))
            atomic_store(&longest_ns, for_ns);
    }
    return NULL;
}

/* Kill a server, and start it again; what comes after is done with a backup again. */
static void kill_one(struct cluster *cluster, int index)
{
    int at = index;

    (void)kill(cluster->children[at], SIGKILL);
    (void)waitpid(cluster->children[at], NULL, 0);
    pause_ms(500);
    cluster_start(cluster, "ps", index);
    cluster->children[at] = cluster->children[--cluster->children_count];
    pause_ms(1500);
}

static void measure_failover(void)
{
    uint64_t kills = bench_size(1, KILLS_MAX);
    uint64_t pauses[KILLS_MAX];
    struct world world = {.node = NULL};
    pthread_t thread;

    begin_world(&world, 1);
    pause_ms(1000);
    if (pthread_create(&thread, NULL, add_until_told, &world) != 0)
        cluster_die("thread", "none is left");
    for (uint64_t i = 0; i < kills; i++) {
        atomic_store(&longest_ns, 0);
        kill_one(&world.cluster, (int)(i % SERVERS));
        pauses[i] = atomic_load(&longest_ns) / 1000;
    }
    atomic_store(&stops, true);
    (void)pthread_join(thread, NULL);
    end_world(&world);
    report("a server is killed: median pause of writes",
           (double)bench_median(pauses, kills) / 1e3, "ms", 0, 100);
    report("the longest", (double)bench_percentile(pauses, kills, 100) / 1e3, "ms", 0,
           300);
}

int main(int argc, char **argv)
{
    if (cluster_is_task(argc, argv))
        return play_server(argv);
    compare();
    compare_journals();
    measure_failover();
    return 0;
}
