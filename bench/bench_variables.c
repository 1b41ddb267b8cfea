/* Read and assign of one dense variable of 64 MiB on one parameter server in another
 * process, over tcp. The limit is bench/raw/raw_nng_bandwidth: 1 MiB messages, four under
 * way, with the same thresholds of malloc and one copy on each side, as any use has. */
#include "bench/cluster.h"

/* Gigabytes a second, the median of a few rounds. */
static double measure(mu_variable *variable, float *data, size_t bytes, bool read)
{
    uint64_t samples[9];
    uint64_t rounds = bench_size(1, 9);
    mu_error error;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t repeats = bench_size(1, 8);
        uint64_t start_ns = bench_now_ns();

        for (uint64_t j = 0; j < repeats; j++)
            cluster_check(read ? mu_variable_read(variable, data, bytes, 30000, &error)
                               : mu_variable_assign(variable, data, bytes, 30000, &error),
                          &error);
        samples[i] = (bench_now_ns() - start_ns) / repeats;
    }
    return (double)bytes / (double)bench_median(samples, rounds);
}

static void report(const char *metric, double value, const char *direction)
{
    char args[96];
    struct bench_line line = {
        .bench = "variables", .metric = metric, .value = value, .unit = "GB/s"};

    if (bench_is_full()) {
        (void)snprintf(args, sizeof args, "direction=%s mode=copy malloc=raised",
                       direction);
        (void)bench_raw("raw_nng_bandwidth", args, &line.limit);
        line.target = 0.8 * line.limit;
    }
    bench_report(&line);
}

int main(int argc, char **argv)
{
    uint64_t rows = bench_size(64, 16384);
    uint64_t dims[2] = {rows, 1024};
    size_t bytes = (size_t)(rows * 1024 * sizeof(float));
    mu_variable_spec spec = {
        .name = "w", .dtype = MU_F32, .rank = 2, .dims = dims, .shards = 1};
    mu_node_options options;
    struct cluster cluster;
    mu_variable *variable;
    mu_error error;
    mu_node *node;
    float *data = malloc(bytes);

    if (cluster_is_task(argc, argv))
        return cluster_play_server(argv);
    if (data == NULL)
        cluster_die("data", "out of memory");
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        data[i] = (float)(i % 1000);
    cluster_tune_malloc();
    mu_node_options_init(&options);
    node = cluster_begin(&cluster, 1, &options);
    cluster_check(mu_variable_open(node, &spec, 10000, &error, &variable), &error);
    (void)measure(variable, data, bytes, false);
    report("assign, 64 MiB", measure(variable, data, bytes, false), "push");
    (void)measure(variable, data, bytes, true);
    report("read, 64 MiB", measure(variable, data, bytes, true), "pull");
    if (data[999] != 999.0f ||
        data[bytes / sizeof(float) - 1] != (float)((bytes / sizeof(float) - 1) % 1000))
        cluster_die("read", "gave other numbers than were assigned");
    mu_variable_close(variable);
    cluster_end(&cluster, node);
    free(data);
    return 0;
}
