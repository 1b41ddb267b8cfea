/* Reads and adds of dense variables of 64 KiB to 4 MiB by 1 to 16 threads of one process,
 * each with a variable of its own, on one parameter server in another process, over tcp.
 *
 * Beside each row stand libuv's bare streams (the limit) and raw nng with blocks of the
 * same size, as many in flight as there are threads, without a copy on either side. All
 * three are measured in turns; each figure is the median of ROUNDS. malloc is left as it
 * is found.
 *
 *     bench_variable_sizes [kib=N] [threads=N] [direction=read|add] [peers=0] */
#include "bench/cluster.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS_MAX = 16, ROUNDS = 5, ROUND_MS = 250, PEER_MEGABYTES = 512 };

struct reader {
    pthread_t thread;
    mu_variable *variable;
    float *data;
    size_t bytes;
    bool read;
    atomic_bool *stop;
    uint64_t calls;
};

struct only {
    unsigned kib; /* 0: all */
    unsigned threads;
    int direction; /* -1: both; 0: add, 1: read */
    bool peers;
};

static int play_untuned(char **argv)
{
    mu_node_options options;

    mu_node_options_init(&options);
    return cluster_play(argv, &options);
}

static void call(struct reader *reader)
{
    mu_error error;

    cluster_check(reader->read ? mu_variable_read(reader->variable, reader->data,
                                                  reader->bytes, 30000, &error)
                               : mu_variable_add(reader->variable, reader->data,
                                                 reader->bytes, 30000, &error),
                  &error);
    reader->calls++;
}

static void *reader_main(void *arg)
{
    struct reader *reader = arg;

    do
        call(reader);
    while (!atomic_load(reader->stop));
    return NULL;
}

/* Gigabytes a second of one round of all readers. */
static double run_round(struct reader *readers, unsigned count)
{
    uint64_t start_ns = bench_now_ns();
    uint64_t calls = 0;
    atomic_bool stop = false;

    for (unsigned i = 0; i < count; i++) {
        readers[i].calls = 0;
        readers[i].stop = &stop;
        if (pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]) != 0)
            cluster_die("thread", "cannot be started");
    }
    cluster_pause_ms(bench_size(1, ROUND_MS));
    atomic_store(&stop, true);
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(readers[i].thread, NULL);
        calls += readers[i].calls;
    }
    return bench_rate(calls * readers[0].bytes, start_ns, bench_now_ns()) / 1e9;
}

static void open_readers(mu_node *node, struct reader *readers, unsigned count,
                         uint64_t bytes)
{
    uint64_t dims[1] = {bytes / sizeof(float)};
    char name[32];
    mu_variable_spec spec = {
        .name = name, .dtype = MU_F32, .rank = 1, .dims = dims, .shards = 1};
    mu_error error;

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "w%u_%u", i, (unsigned)bytes);
        readers[i] = (struct reader){.bytes = bytes, .data = calloc(1, bytes)};
        if (readers[i].data == NULL)
            cluster_die("data", "out of memory");
        readers[i].data[0] = 1;
        cluster_check(mu_variable_open(node, &spec, 10000, &error, &readers[i].variable),
                      &error);
    }
}

/* What was added to the first element is what is read. */
static void check_sums(struct reader *readers, unsigned count, uint64_t adds[])
{
    for (unsigned i = 0; i < count; i++) {
        readers[i].read = true;
        call(&readers[i]);
        if ((uint64_t)readers[i].data[0] != adds[i] || readers[i].data[1] != 0.0f)
            cluster_die("read", "gave other numbers than were added");
    }
}

static void close_readers(struct reader *readers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        mu_variable_close(readers[i].variable);
        free(readers[i].data);
    }
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

static double peer(const char *program, bool read, size_t bytes, unsigned threads)
{
    char args[128];
    double value = 0;

    (void)snprintf(args, sizeof args,
                   "direction=%s depth=%u kib=%zu megabytes=%d malloc=raised",
                   read ? "pull" : "push", threads, bytes >> 10, PEER_MEGABYTES);
    (void)bench_raw(program, args, &value);
    return value;
}

static void run_row(struct reader *readers, unsigned threads, bool read, bool peers)
{
    unsigned rounds = (unsigned)bench_size(1, ROUNDS);
    size_t bytes = readers[0].bytes;
    double ours[ROUNDS];
    double uv[ROUNDS] = {0};
    double nng[ROUNDS] = {0};
    char metric[64];
    char extra[160];
    struct bench_line line = {
        .bench = "variable_sizes", .metric = metric, .unit = "GB/s", .extra = extra};

    for (unsigned i = 0; i < threads; i++)
        readers[i].read = read;
    for (unsigned i = 0; i < rounds; i++) {
        ours[i] = run_round(readers, threads);
        if (!bench_is_full() || !peers)
            continue;
        uv[i] = peer("raw_uv_bandwidth", read, bytes, threads);
        nng[i] = peer("raw_nng_bandwidth", read, bytes, threads);
    }
    (void)snprintf(metric, sizeof metric, "%s, %zu KiB, %u threads",
                   read ? "read" : "add", bytes >> 10, threads);
    line.value = median(ours, rounds);
    line.limit = median(uv, rounds);
    (void)snprintf(extra, sizeof extra,
                   "\"min\":%.3f,\"max\":%.3f,\"nng\":%.3f,\"nng_ratio\":%.3f", ours[0],
                   ours[rounds - 1], median(nng, rounds),
                   nng[0] > 0 ? line.value / nng[rounds / 2] : 0.0);
    bench_report(&line);
}

static void run_size(mu_node *node, size_t bytes, const struct only *only)
{
    static const unsigned threads[] = {1, 2, 4, 8, 16};
    struct reader readers[THREADS_MAX];
    uint64_t adds[THREADS_MAX] = {0};

    open_readers(node, readers, THREADS_MAX, bytes);
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        call(&readers[i]);
        adds[i]++;
    }
    check_sums(readers, THREADS_MAX, adds);
    for (int read = 1; read >= 0; read--)
        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
            if ((only->threads == 0 || only->threads == threads[i]) &&
                (only->direction < 0 || only->direction == read))
                run_row(readers, threads[i], read != 0, only->peers);
    close_readers(readers, THREADS_MAX);
}

static struct only parse(int argc, char **argv)
{
    struct only only = {.direction = -1, .peers = true};

    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "kib=%u", &only.kib) == 1 ||
            sscanf(argv[i], "threads=%u", &only.threads) == 1)
            continue;
        if (strcmp(argv[i], "peers=0") == 0)
            only.peers = false;
        else if (strcmp(argv[i], "direction=read") == 0)
            only.direction = 1;
        else if (strcmp(argv[i], "direction=add") == 0)
            only.direction = 0;
        else
            cluster_die(argv[i], "not an argument of this program");
    }
    return only;
}

int main(int argc, char **argv)
{
    static const unsigned sizes_kib[] = {64, 256, 1024, 4096};
    mu_node_options options;
    struct cluster cluster;
    struct only only;
    mu_node *node;

    if (cluster_is_task(argc, argv))
        return play_untuned(argv);
    only = parse(argc, argv);
    mu_node_options_init(&options);
    node = cluster_begin(&cluster, 1, &options);
    for (size_t i = 0; i < sizeof sizes_kib / sizeof sizes_kib[0]; i++)
        if (only.kib == 0 || only.kib == sizes_kib[i])
            run_size(node, (size_t)sizes_kib[i] << 10, &only);
    cluster_end(&cluster, node);
    return 0;
}
