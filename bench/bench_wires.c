/* The two wires in the same run, in turn: how long one no-op closure takes alone, from
 * schedule to fetch, how many a second go through one supervisor to two worker processes,
 * and what each needs of memory and threads. The ratios are what counts. */
#include "bench/cluster.h"

enum { WORKERS = 2, ROUNDS = 5, WIRES = 2 };

#define WIRE_VARIABLE "BENCH_WIRE"

static const char *const wires[WIRES] = {"uv", "nng"};

static int no_op(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

static int play_worker(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    options.wire = getenv(WIRE_VARIABLE);
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (mu_node_register_function(node, "inline", no_op, NULL, MU_FUNCTION_INLINE) != 0)
        cluster_die("worker", "cannot register");
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("closure", error->message);
}

static double rate(mu_coordinator *coordinator, uint64_t count)
{
    mu_error error;
    uint64_t start_ns = bench_now_ns();

    for (uint64_t i = 0; i < count; i++)
        check(mu_coordinator_schedule(coordinator, "inline", NULL, -1, &error, NULL),
              &error);
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    return bench_rate(count, start_ns, bench_now_ns());
}

static uint64_t one_alone(mu_coordinator *coordinator, uint64_t count)
{
    uint64_t *samples = malloc(count * sizeof *samples);
    uint64_t median;
    mu_error error;

    if (samples == NULL)
        cluster_die("latency", "out of memory");
    for (uint64_t i = 0; i < count; i++) {
        mu_remote_value *value;
        uint64_t start_ns = bench_now_ns();

        check(mu_coordinator_schedule(coordinator, "inline", NULL, -1, &error, &value),
              &error);
        check(mu_remote_value_fetch(value, 5000, &error, NULL), &error);
        samples[i] = bench_now_ns() - start_ns;
        mu_remote_value_free(value);
    }
    median = bench_median(samples, count);
    free(samples);
    return median;
}

/* Of one wire; medians of the rounds. */
struct figures {
    uint64_t latency_ns[ROUNDS];
    uint64_t rates[ROUNDS];
    double threads;
    double resident_mib;
};

static void measure(const char *wire, unsigned round, struct figures *figures)
{
    struct cluster cluster;
    mu_node_options options;
    mu_node *node;
    mu_coordinator *coordinator;
    mu_error error;
    uint64_t count = bench_size(2000, 500000);

    cluster_make(&cluster, WORKERS, 0);
    (void)setenv(WIRE_VARIABLE, wire, 1);
    for (int i = 0; i < WORKERS; i++)
        cluster_start(&cluster, "worker", i);
    cluster_tune_malloc();
    mu_node_options_init(&options);
    options.window = 1024;
    options.wire = wire;
    node = cluster_open(cluster.json, "chief", 0, &options);
    check(mu_coordinator_open(node, 30000, &error, &coordinator), &error);
    (void)rate(coordinator, count / 10);
    figures->rates[round] = (uint64_t)rate(coordinator, count);
    figures->latency_ns[round] = one_alone(coordinator, bench_size(100, 5000));
    figures->threads = cluster_status_of(cluster.children[0], "Threads:");
    figures->resident_mib = cluster_resident_mib(cluster.children[0]);
    mu_coordinator_close(coordinator);
    check(mu_node_close(node, 5000, &error), &error);
    cluster_stop(&cluster);
}

static void report(const char *metric, const char *unit, const double *values,
                   double least, double most)
{
    for (int i = 0; i < WIRES; i++) {
        char words[64];
        char extra[64];
        struct bench_line line = {.bench = "wires",
                                  .unit = unit,
                                  .value = values[i],
                                  .less_is_more = most > 0.0};

        (void)snprintf(words, sizeof words, "%s, wire %s", metric, wires[i]);
        (void)snprintf(extra, sizeof extra, "\"ratio_to_uv\":%.2f",
                       values[i] / values[0]);
        line.metric = words;
        line.extra = extra;
        if (i > 0)
            line.target = (most > 0.0 ? most : least) * values[0];
        bench_report(&line);
    }
}

int main(int argc, char **argv)
{
    struct figures figures[WIRES];
    unsigned rounds = (unsigned)bench_size(1, ROUNDS);
    double latency[WIRES];
    double rates[WIRES];
    double threads[WIRES];
    double resident_mib[WIRES];

    if (cluster_is_task(argc, argv))
        return play_worker(argv);
    for (unsigned round = 0; round < rounds; round++)
        for (int i = 0; i < WIRES; i++)
            measure(wires[i], round, &figures[i]);
    for (int i = 0; i < WIRES; i++) {
        latency[i] = (double)bench_median(figures[i].latency_ns, rounds) / 1e3;
        rates[i] = (double)bench_median(figures[i].rates, rounds);
        threads[i] = figures[i].threads;
        resident_mib[i] = figures[i].resident_mib;
    }
    report("closures, 1024 outstanding a worker", "closures/s", rates, 0.6, 0.0);
    report("one closure alone, schedule to fetch", "us", latency, 0.0, 2.0);
    report("threads of a worker", "threads", threads, 0.0, 20.0);
    report("memory of a worker", "MiB", resident_mib, 0.0, 3.0);
    return 0;
}
