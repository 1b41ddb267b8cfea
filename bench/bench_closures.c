/* No-op closures through one supervisor to two worker processes over tcp: how many a
 * second, and how long one alone takes from schedule to fetch. Then the same rate with
 * 16 and with 100 worker processes on this machine, as a part of the rate with two: what
 * is lost is what many small frames cost.
 *
 * The limit of the rate is bench/raw/raw_nng_closures: the same messages packed by hand,
 * with nothing behind them. The limit of the latency is bench/raw/raw_nng_rtt: the bare
 * round trip between two loops. */
#include "bench/cluster.h"

enum { WORKERS = 2 };

/* The executor threads of worker processes; unset: as usual. */
#define THREADS_VARIABLE "BENCH_WORKER_THREADS"

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
    if (getenv(THREADS_VARIABLE) != NULL)
        options.threads = (unsigned)atoi(getenv(THREADS_VARIABLE));
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (mu_node_register_function(node, "inline", no_op, NULL, MU_FUNCTION_INLINE) != 0 ||
        mu_node_register_function(node, "thread", no_op, NULL, 0) != 0)
        cluster_die("worker", "cannot register");
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

static mu_coordinator *open_chief(struct cluster *cluster, int workers, unsigned window,
                                  mu_node **ret_node)
{
    mu_node_options options;
    mu_coordinator *coordinator;
    mu_error error;

    cluster_make(cluster, workers, 0);
    for (int i = 0; i < workers; i++)
        cluster_start(cluster, "worker", i);
    cluster_tune_malloc();
    mu_node_options_init(&options);
    options.window = window;
    *ret_node = cluster_open(cluster->json, "chief", 0, &options);
    if (mu_coordinator_open(*ret_node, 30000, &error, &coordinator) != 0)
        cluster_die("chief", error.message);
    return coordinator;
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("closure", error->message);
}

static double run_many(mu_coordinator *coordinator, const char *function, uint64_t count)
{
    mu_error error;
    uint64_t start_ns = bench_now_ns();

    for (uint64_t i = 0; i < count; i++)
        check(mu_coordinator_schedule(coordinator, function, NULL, -1, &error, NULL),
              &error);
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    return bench_rate(count, start_ns, bench_now_ns());
}

/* The same, holding a remote value of each until the end. */
static double run_values(mu_coordinator *coordinator, const char *function,
                         uint64_t count)
{
    mu_remote_value **values = malloc(count * sizeof *values);
    uint64_t start_ns;
    mu_error error;
    double rate;

    if (values == NULL)
        cluster_die("values", "out of memory");
    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < count; i++)
        check(mu_coordinator_schedule(coordinator, function, NULL, -1, &error,
                                      &values[i]),
              &error);
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    rate = bench_rate(count, start_ns, bench_now_ns());
    for (uint64_t i = 0; i < count; i++) {
        check(mu_remote_value_fetch(values[i], 0, &error, NULL), &error);
        mu_remote_value_free(values[i]);
    }
    free(values);
    return rate;
}

static uint64_t one_alone(mu_coordinator *coordinator, const char *function,
                          uint64_t count, uint64_t *samples)
{
    mu_error error;

    for (uint64_t i = 0; i < count; i++) {
        mu_remote_value *value;
        uint64_t start_ns = bench_now_ns();

        check(mu_coordinator_schedule(coordinator, function, NULL, -1, &error, &value),
              &error);
        check(mu_remote_value_fetch(value, 5000, &error, NULL), &error);
        samples[i] = bench_now_ns() - start_ns;
        mu_remote_value_free(value);
    }
    return bench_median(samples, count);
}

static void stop(struct cluster *cluster, mu_coordinator *coordinator, mu_node *node)
{
    mu_error error;

    mu_coordinator_close(coordinator);
    check(mu_node_close(node, 1000, &error), &error);
    cluster_stop(cluster);
}

static double best_of(double (*run)(mu_coordinator *, const char *, uint64_t),
                      mu_coordinator *coordinator, const char *function, uint64_t count)
{
    uint64_t samples[5];
    uint64_t runs = bench_size(1, 5);

    for (uint64_t i = 0; i < runs; i++)
        samples[i] = (uint64_t)run(coordinator, function, count);
    return (double)bench_median(samples, runs);
}

static void bench_rate_at(unsigned window, double target)
{
    struct cluster cluster;
    mu_node *node;
    mu_coordinator *coordinator = open_chief(&cluster, WORKERS, window, &node);
    uint64_t count = bench_size(2000, 1000000);
    char words[64];
    char metric[64];
    double limit = 0.0;
    struct bench_line line = {
        .bench = "closures", .metric = metric, .unit = "closures/s", .target = target};

    (void)run_many(coordinator, "inline", count / 10);
    (void)snprintf(metric, sizeof metric, "inline, %u outstanding a worker", window);
    line.value = best_of(run_many, coordinator, "inline", count);
    if (bench_is_full()) {
        (void)snprintf(words, sizeof words, "outstanding=%u", window);
        (void)bench_raw("raw_nng_closures", words, &limit);
    }
    line.limit = limit;
    bench_report(&line);

    line.target = 0.0;
    (void)snprintf(metric, sizeof metric, "inline with values, %u outstanding", window);
    line.value = best_of(run_values, coordinator, "inline", count);
    bench_report(&line);
    (void)snprintf(metric, sizeof metric, "executor thread, %u outstanding", window);
    line.value = best_of(run_many, coordinator, "thread", count);
    bench_report(&line);
    stop(&cluster, coordinator, node);
}

/* A worker that has not registered yet gets nothing. */
static void await_workers(mu_node *node, int workers)
{
    int up = 0;

    for (int i = 0; up < workers && i < 10000; i++) {
        mu_value *status;
        const mu_value *tasks;
        mu_error error;

        check(mu_node_status(node, 5000, &error, &status), &error);
        tasks = mu_value_find(status, "tasks");
        up = 0;
        for (size_t j = 0; j < mu_value_count(tasks); j++)
            up += mu_value_find(mu_value_at(tasks, j), "threads") != NULL;
        mu_value_free(status);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (up < workers)
        cluster_die("workers", "not all have come");
}

/* Windows as the supervisor finds them. */
static double rate_with(int workers, uint64_t count)
{
    struct cluster cluster;
    mu_node *node;
    mu_coordinator *coordinator = open_chief(&cluster, workers, 0, &node);
    double rate;

    await_workers(node, workers);
    (void)run_many(coordinator, "thread", count / 4);
    rate = best_of(run_many, coordinator, "thread", count);
    stop(&cluster, coordinator, node);
    return rate;
}

static void bench_crowds(void)
{
    static const struct {
        int workers;
        double least; /* of the rate with two; 0: none is wanted */
    } crowds[] = {{2, 0.0}, {16, 0.6}, {100, 0.6}};
    uint64_t count = bench_size(2000, 500000);
    size_t sizes = (size_t)bench_size(2, 3);
    double first = 0.0;

    (void)setenv(THREADS_VARIABLE, "4", 1);
    for (size_t i = 0; i < sizes; i++) {
        struct bench_line line = {.bench = "closures", .unit = "closures/s"};
        char metric[64];
        char extra[64];

        line.value = rate_with(crowds[i].workers, count);
        if (i == 0)
            first = line.value;
        (void)snprintf(metric, sizeof metric, "executor thread, %d worker processes",
                       crowds[i].workers);
        (void)snprintf(extra, sizeof extra, "\"ratio_to_two\":%.2f", line.value / first);
        line.metric = metric;
        line.extra = extra;
        line.target = crowds[i].least * first;
        bench_report(&line);
    }
}

static void bench_latency(void)
{
    struct cluster cluster;
    mu_node *node;
    mu_coordinator *coordinator = open_chief(&cluster, WORKERS, 4, &node);
    uint64_t count = bench_size(200, 20000);
    uint64_t *samples = malloc(count * sizeof *samples);
    double limit = 0.0;
    struct bench_line line = {
        .bench = "closure_latency", .unit = "us", .less_is_more = true};

    if (samples == NULL)
        cluster_die("latency", "out of memory");
    (void)one_alone(coordinator, "inline", count / 10 + 1, samples);
    if (bench_is_full())
        (void)bench_raw("raw_nng_rtt", "transport=tcp", &limit);
    line.metric = "schedule to fetch, inline, median";
    line.value = (double)one_alone(coordinator, "inline", count, samples) / 1e3;
    line.limit = limit;
    line.target = 1.6 * limit;
    bench_report(&line);
    line.metric = "schedule to fetch, executor thread, median";
    line.value = (double)one_alone(coordinator, "thread", count, samples) / 1e3;
    line.target = 0.0;
    bench_report(&line);
    free(samples);
    stop(&cluster, coordinator, node);
}

int main(int argc, char **argv)
{
    if (cluster_is_task(argc, argv))
        return play_worker(argv);
    if (argc == 2 && strcmp(argv[1], "crowds") == 0) {
        bench_crowds();
        return 0;
    }
    bench_latency();
    bench_rate_at(64, 300000.0);
    bench_rate_at(1024, 600000.0);
    bench_crowds();
    return 0;
}
