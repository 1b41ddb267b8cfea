/* Closures with arguments, and with arguments and results, of 10 KB to 1 MiB to one
 * worker process over tcp: one thread schedules them all and joins. Each closure has its
 * arguments made anew from the program's own memory.
 *
 * Beside each row stand libuv's bare streams (the limit): blocks of the same size, one
 * way or there and back, without a copy on either side. Both are measured in turns; each
 * figure is the median of ROUNDS. malloc is left as it is found.
 *
 *     bench_closure_sizes [bytes=N] [results=0|1] [values=bytes|tensor] [peers=0] */
#include "bench/cluster.h"

enum { ROUNDS = 5, ROUND_MEGABYTES = 512, PEER_MEGABYTES = 512, PEER_DEPTH = 8 };

struct only {
    unsigned bytes; /* 0: all */
    int results;    /* -1: both */
    bool tensor;    /* arguments are tensors, not bytes */
    bool peers;
};

/* The bytes of a value of either kind. */
static const char *bytes_of(const mu_value *value, size_t *ret_size)
{
    const void *data = NULL;
    mu_tensor tensor;

    if (mu_value_get_tensor(value, &tensor) == 0) {
        *ret_size = tensor.bytes;
        return tensor.data;
    }
    return mu_value_get_bytes(value, &data, ret_size) == 0 ? data : NULL;
}

/* Looks at both ends of the arguments. */
static int take(mu_run *run, void *user)
{
    size_t size;
    const char *data = bytes_of(mu_run_args(run), &size);

    (void)user;
    return data != NULL && data[0] == 'b' && data[size - 1] == 'e'
               ? 0
               : mu_run_fail(run, -MU_EDATALOSS, "other arguments than were sent");
}

/* Gives its arguments back. */
static int give(mu_run *run, void *user)
{
    int rv = take(run, user);

    if (rv == 0)
        mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return rv;
}

static int play_worker(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (mu_node_register_function(node, "take", take, NULL, 0) != 0 ||
        mu_node_register_function(node, "give", give, NULL, 0) != 0)
        cluster_die("worker", "cannot register");
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("closure", error->message);
}

static mu_value *make_args(const char *source, uint64_t bytes, bool tensor)
{
    mu_value *args = tensor ? mu_value_tensor(MU_U8, 1, &bytes, source)
                            : mu_value_bytes(source, bytes);

    if (args == NULL)
        cluster_die("arguments", "out of memory");
    return args;
}

/* Gigabytes a second, each way. */
static double run_round(mu_coordinator *coordinator, const char *source, uint64_t bytes,
                        const struct only *only, bool results)
{
    uint64_t count = bench_size(4, ((uint64_t)ROUND_MEGABYTES << 20) / bytes);
    mu_remote_value *value;
    uint64_t start_ns = bench_now_ns();
    mu_error error;

    for (uint64_t i = 0; i < count; i++) {
        mu_value *args = make_args(source, bytes, only->tensor);

        check(mu_coordinator_schedule(coordinator, results ? "give" : "take", args, -1,
                                      &error, results ? &value : NULL),
              &error);
        mu_value_free(args);
        if (results)
            mu_remote_value_free(value);
    }
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    return bench_rate(count * bytes, start_ns, bench_now_ns()) / 1e9;
}

/* One result is looked at whole. */
static void check_result(mu_coordinator *coordinator, const char *source, uint64_t bytes,
                         const struct only *only)
{
    mu_value *args = make_args(source, bytes, only->tensor);
    mu_remote_value *value;
    mu_value *result;
    mu_error error;

    check(mu_coordinator_schedule(coordinator, "give", args, -1, &error, &value), &error);
    check(mu_remote_value_fetch(value, 60000, &error, &result), &error);
    if (mu_value_equal(result, args) == 0)
        cluster_die("result", "is not what was sent");
    mu_value_free(result);
    mu_value_free(args);
    mu_remote_value_free(value);
}

static double median(double *samples, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        for (unsigned j = i; j > 0 && samples[j] < samples[j - 1]; j--) {
            double swapped = samples[j];

            samples[j] = samples[j - 1];
            samples[j - 1] = swapped;
        }
    return samples[count / 2];
}

static double peer(uint64_t bytes, bool results)
{
    char args[128];
    double value = 0;

    (void)snprintf(args, sizeof args, "direction=%s depth=%d kib=%u megabytes=%d",
                   results ? "echo" : "push", PEER_DEPTH, (unsigned)(bytes >> 10),
                   PEER_MEGABYTES);
    (void)bench_raw("raw_uv_bandwidth", args, &value);
    return value;
}

static void run_row(mu_coordinator *coordinator, const char *source, uint64_t bytes,
                    const struct only *only, bool results)
{
    unsigned rounds = (unsigned)bench_size(1, ROUNDS);
    double ours[ROUNDS];
    double uv[ROUNDS] = {0};
    char metric[64];
    char extra[64];
    struct bench_line line = {
        .bench = "closure_sizes", .metric = metric, .unit = "GB/s", .extra = extra};

    check_result(coordinator, source, bytes, only);
    (void)run_round(coordinator, source, bytes, only, results);
    for (unsigned i = 0; i < rounds; i++) {
        ours[i] = run_round(coordinator, source, bytes, only, results);
        if (bench_is_full() && only->peers)
            uv[i] = peer(bytes, results);
    }
    (void)snprintf(metric, sizeof metric, "%s%s, %.4g KB",
                   only->tensor ? "tensors as " : "",
                   results ? "arguments and results" : "arguments", (double)bytes / 1000);
    line.value = median(ours, rounds);
    line.limit = median(uv, rounds);
    line.target = 1.5;
    (void)snprintf(extra, sizeof extra, "\"min\":%.3f,\"max\":%.3f", ours[0],
                   ours[rounds - 1]);
    bench_report(&line);
}

static struct only parse(int argc, char **argv)
{
    struct only only = {.results = -1, .peers = true};

    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "bytes=%u", &only.bytes) == 1 ||
            sscanf(argv[i], "results=%d", &only.results) == 1)
            continue;
        if (strcmp(argv[i], "peers=0") == 0)
            only.peers = false;
        else if (strcmp(argv[i], "values=tensor") == 0)
            only.tensor = true;
        else if (strcmp(argv[i], "values=bytes") != 0)
            cluster_die(argv[i], "not an argument of this program");
    }
    return only;
}

static void run_all(mu_coordinator *coordinator, const struct only *only)
{
    static const unsigned sizes[] = {10 * 1000, 64 << 10, 256 << 10, 1 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *source = malloc(sizes[i]);

        if (source == NULL)
            cluster_die("source", "out of memory");
        memset(source, 'm', sizes[i]);
        source[0] = 'b';
        source[sizes[i] - 1] = 'e';
        for (int results = 0; results < 2; results++)
            if ((only->bytes == 0 || only->bytes == sizes[i]) &&
                (only->results < 0 || only->results == results))
                run_row(coordinator, source, sizes[i], only, results != 0);
        free(source);
    }
}

int main(int argc, char **argv)
{
    mu_node_options options;
    mu_coordinator *coordinator;
    struct cluster cluster;
    struct only only;
    mu_error error;
    mu_node *node;

    if (cluster_is_task(argc, argv))
        return play_worker(argv);
    only = parse(argc, argv);
    cluster_make(&cluster, 1, 0);
    cluster_start(&cluster, "worker", 0);
    mu_node_options_init(&options);
    node = cluster_open(cluster.json, "chief", 0, &options);
    if (mu_coordinator_open(node, 5000, &error, &coordinator) != 0)
        cluster_die("chief", error.message);
    run_all(coordinator, &only);
    mu_coordinator_close(coordinator);
    check(mu_node_close(node, 1000, &error), &error);
    cluster_stop(&cluster);
    return 0;
}
