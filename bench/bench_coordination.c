/* The coordination service: key-values of one program against a service in another
 * process over tcp, with each kind of store, and barriers of many threads over two, eight
 * and 64 processes.
 *
 * A limit is the peer that the metric names, doing the same on this machine in the same
 * run: Redis in memory, etcd and a bare append on the disk, OpenMPI for barriers. */
#include "bench/cluster.h"
#include "bench/etcd.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { KEYS = 1024, VALUE_BYTES = 64, BARRIER_TASKS_MAX = 64, THREADS_MAX = 64 };

/* Which store the chief, a process of its own, has. */
#define STORE_VARIABLE "MUSTER_BENCH_STORE"

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("coordination", error->message);
}

/* ---- key-values ---- */

/* Requests that are outstanding: each answer begins the next one. */
struct flow {
    mu_node *node;
    mu_kv_request ask;
    char keys[KEYS][24];
    char value[VALUE_BYTES];
    uint64_t left; /* to begin; on the loop once it has begun */
    uint64_t unanswered;
    uint64_t revision; /* of the last answer */
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over;
};

static void begin_next(struct flow *flow);

static void answered(void *user, const mu_kv_response *answer)
{
    struct flow *flow = user;

    if (answer->code != 0)
        cluster_die("request", answer->error->message);
    if (flow->ask.operation == MU_KV_PUT && flow->revision != 0 &&
        answer->revision != flow->revision + 1)
        cluster_die("put", "not each once, in order");
    flow->revision = answer->revision;
    if (flow->left > 0)
        begin_next(flow);
    if (--flow->unanswered > 0)
        return;
    (void)pthread_mutex_lock(&flow->lock);
    flow->over = true;
    (void)pthread_cond_signal(&flow->done);
    (void)pthread_mutex_unlock(&flow->lock);
}

static void begin_next(struct flow *flow)
{
    mu_kv_request ask = flow->ask;
    int rv;

    flow->left--;
    ask.key = flow->keys[flow->left % KEYS];
    rv = mu_kv_request_async(flow->node, &ask, answered, flow, NULL);
    if (rv != 0)
        cluster_die("begin", mu_strerror(rv));
}

static void flow_init(struct flow *flow, mu_node *node, int operation)
{
    memset(flow, 0, sizeof *flow);
    flow->node = node;
    flow->ask = (mu_kv_request){
        .operation = operation,
        .flags = operation == MU_KV_PUT ? MU_KV_OVERWRITE : 0,
        .value = flow->value,
        .size = operation == MU_KV_PUT ? VALUE_BYTES : 0,
        .by = 1,
        .timeout_ms = 60000,
    };
    for (int i = 0; i < KEYS; i++)
        (void)snprintf(flow->keys[i], sizeof flow->keys[i], "%s/%d",
                       operation == MU_KV_INCREMENT ? "count" : "bench", i);
    (void)pthread_mutex_init(&flow->lock, NULL);
    (void)pthread_cond_init(&flow->done, NULL);
}

static void flow_wait(struct flow *flow)
{
    (void)pthread_mutex_lock(&flow->lock);
    while (!flow->over)
        (void)pthread_cond_wait(&flow->done, &flow->lock);
    (void)pthread_mutex_unlock(&flow->lock);
}

/* So many a second, with so many outstanding, begun by the answers of others. */
static double run_flow(mu_node *node, int operation, uint64_t outstanding, uint64_t count)
{
    struct flow *flow = malloc(sizeof *flow);
    struct flow *first = flow;
    uint64_t start_ns;
    double rate;

    if (flow == NULL)
        cluster_die("flow", "out of memory");
    assert(count >= outstanding);
    flow_init(flow, node, operation);
    flow->left = count - outstanding;
    flow->unanswered = count;
    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < outstanding; i++) {
        mu_kv_request ask = first->ask;

        ask.key = first->keys[i % KEYS];
        if (mu_kv_request_async(node, &ask, answered, first, NULL) != 0)
            cluster_die("begin", "refused");
    }
    flow_wait(flow);
    rate = bench_rate(count, start_ns, bench_now_ns());
    free(flow);
    return rate;
}

/* A thread that begins as many as it may, and others that answer. */
struct stream {
    atomic_uint_fast64_t answered;
    char apart[64];
};

static void count_answer(void *user, const mu_kv_response *answer)
{
    struct stream *stream = user;

    if (answer->code != 0)
        cluster_die("request", answer->error->message);
    atomic_store_explicit(&stream->answered,
                          atomic_load_explicit(&stream->answered, memory_order_relaxed) +
                              1,
                          memory_order_release);
}

static void give_way(void)
{
    const struct timespec moment = {0, 50000};

    (void)nanosleep(&moment, NULL);
}

static double run_stream(mu_node *node, int operation, uint64_t outstanding,
                         uint64_t count)
{
    struct flow *flow = malloc(sizeof *flow);
    struct stream *stream = calloc(1, sizeof *stream);
    uint64_t start_ns;
    double rate;

    if (flow == NULL || stream == NULL)
        cluster_die("stream", "out of memory");
    flow_init(flow, node, operation);
    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < count; i++) {
        while (i - atomic_load_explicit(&stream->answered, memory_order_acquire) >=
               outstanding)
            give_way();
        flow->ask.key = flow->keys[i % KEYS];
        if (mu_kv_request_async(node, &flow->ask, count_answer, stream, NULL) != 0)
            cluster_die("begin", "refused");
    }
    while (atomic_load_explicit(&stream->answered, memory_order_acquire) < count)
        give_way();
    rate = bench_rate(count, start_ns, bench_now_ns());
    free(stream);
    free(flow);
    return rate;
}

/* A thread that blocks in each call, as a program's would. */
static double run_waiting(mu_node *node, int operation, uint64_t outstanding,
                          uint64_t count)
{
    static const char value[VALUE_BYTES];
    uint64_t start_ns = bench_now_ns();
    mu_kv_item item = {NULL, 0, 0};
    mu_error error;
    int64_t number;

    (void)outstanding;
    for (uint64_t i = 0; i < count; i++) {
        if (operation == MU_KV_PUT)
            check(mu_kv_put(node, "bench/0", value, sizeof value, MU_KV_OVERWRITE, 0,
                            5000, &error, NULL),
                  &error);
        else if (operation == MU_KV_INCREMENT)
            check(mu_kv_increment(node, "count/0", 1, 5000, &error, &number), &error);
        else
            check(mu_kv_try_get(node, "bench/0", 5000, &error, &item), &error);
        mu_kv_item_clear(&item);
    }
    return bench_rate(count, start_ns, bench_now_ns());
}

static mu_node *open_task(const char *json, const char *type, int index)
{
    mu_node_options options;
    mu_node *node;
    mu_error error;

    cluster_tune_malloc();
    mu_node_options_init(&options);
    options.store = getenv(STORE_VARIABLE);
    node = cluster_open(json, type, index, &options);
    check(mu_agent_register(node, 0, 60000, &error), &error);
    return node;
}

static void stop(struct cluster *cluster, mu_node *node)
{
    mu_error error;

    check(mu_node_close(node, 5000, &error), &error);
    cluster_stop(cluster);
}

/* The program that a rate is compared with. */
enum peer_kind {
    PEER_NONE,
    PEER_REDIS,
    PEER_ETCD,
    PEER_ETCD_FENCED,
    PEER_APPEND,
    PEERS_END
};

static const struct {
    const char *name;
    const char *needs; /* a program that must be installed */
    const char *raw;
} peers[PEERS_END] = {
    [PEER_REDIS] = {"Redis", "redis-server", "raw_redis"},
    [PEER_ETCD] = {"etcd", "etcd", "raw_etcd"},
    [PEER_ETCD_FENCED] = {"etcd, by such transactions", "etcd", "raw_etcd"},
    [PEER_APPEND] = {"bare append", NULL, "raw_append"},
};

struct row {
    const char *metric;
    double (*run)(mu_node *, int, uint64_t, uint64_t);
    int operation;
    uint64_t outstanding;
    uint64_t count; /* at full size */
    double target;
    enum peer_kind peer;
    const char *peer_args;
};

/* The median of some runs, after one that warms up. */
static double median_of(const struct row *row, mu_node *node)
{
    uint64_t samples[5];
    uint64_t runs = bench_size(1, 5);
    uint64_t count = bench_size(2 * row->outstanding + 100, row->count);

    (void)row->run(node, row->operation, row->outstanding, count / 5 + row->outstanding);
    for (uint64_t i = 0; i < runs; i++)
        samples[i] = (uint64_t)row->run(node, row->operation, row->outstanding, count);
    return (double)bench_median(samples, runs);
}

static void run_row(const char *store, const struct row *row, mu_node *node,
                    const bool *has)
{
    char metric[128];
    struct bench_line line = {.bench = "coordination",
                              .metric = metric,
                              .unit = "requests/s",
                              .target = row->target};
    int used = snprintf(metric, sizeof metric, "%s: %s", store, row->metric);

    line.value = median_of(row, node);
    if (has[row->peer] &&
        bench_raw(peers[row->peer].raw, row->peer_args, &line.limit) == 0)
        (void)snprintf(metric + used, sizeof metric - (size_t)used, " (limit: %s)",
                       peers[row->peer].name);
    bench_report(&line);
}

/* The keys of a worker, whose chief hosts them in such a store. */
static void bench_store(const char *name, const char *store, const struct row *rows,
                        size_t count, const bool *has)
{
    struct cluster cluster;
    mu_node *node;

    if (setenv(STORE_VARIABLE, store, 1) != 0)
        cluster_die(store, "out of memory");
    cluster_make(&cluster, 1, 0);
    cluster_start(&cluster, "chief", 0);
    (void)unsetenv(STORE_VARIABLE);
    node = open_task(cluster.json, "worker", 0);
    for (size_t i = 0; i < count; i++)
        run_row(name, &rows[i], node, has);
    stop(&cluster, node);
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static void bench_memory(const bool *has)
{
    static const struct row rows[] = {
        {"put, one that waits", run_waiting, MU_KV_PUT, 1, 50000, 8000, PEER_REDIS,
         "operation=set"},
        {"get, one that waits", run_waiting, MU_KV_TRY_GET, 1, 50000, 8000, PEER_REDIS,
         "operation=get"},
        {"increment, one that waits", run_waiting, MU_KV_INCREMENT, 1, 50000, 8000,
         PEER_REDIS, "operation=incr"},
        {"put, 64 outstanding", run_flow, MU_KV_PUT, 64, 300000, 120e3, PEER_REDIS,
         "operation=set clients=64 requests=300000"},
        {"get, 64 outstanding", run_flow, MU_KV_TRY_GET, 64, 300000, 120e3, PEER_REDIS,
         "operation=get clients=64 requests=300000"},
        {"increment, 64 outstanding", run_flow, MU_KV_INCREMENT, 64, 300000, 120e3,
         PEER_REDIS, "operation=incr clients=64 requests=300000"},
        {"put, 4096 pipelined", run_flow, MU_KV_PUT, 4096, 1000000, 1.3e6, PEER_REDIS,
         "operation=set clients=50 pipeline=16 requests=2000000"},
        {"get, 4096 pipelined", run_flow, MU_KV_TRY_GET, 4096, 1000000, 1.3e6, PEER_REDIS,
         "operation=get clients=50 pipeline=16 requests=2000000"},
        {"increment, 4096 pipelined", run_flow, MU_KV_INCREMENT, 4096, 1000000, 1.3e6,
         PEER_REDIS, "operation=incr clients=50 pipeline=16 requests=2000000"},
        {"put, 4096 pipelined from a thread", run_stream, MU_KV_PUT, 4096, 1000000, 1.3e6,
         PEER_NONE, NULL},
        {"get, 4096 pipelined from a thread", run_stream, MU_KV_TRY_GET, 4096, 1000000,
         1.3e6, PEER_NONE, NULL},
    };

    bench_store("memory", "memory", rows, COUNT(rows), has);
}

/* Each put is on the disk before it is answered. */
static void bench_journal(const bool *has)
{
    static const struct row rows[] = {
        {"put, one that waits", run_waiting, MU_KV_PUT, 1, 5000, 4000, PEER_APPEND, ""},
        {"put, one that waits", run_waiting, MU_KV_PUT, 1, 5000, 4000, PEER_ETCD, ""},
        {"put, 64 outstanding", run_flow, MU_KV_PUT, 64, 100000, 100e3, PEER_ETCD,
         "outstanding=64"},
        {"get, 64 outstanding", run_flow, MU_KV_TRY_GET, 64, 100000, 0, PEER_NONE, NULL},
    };
    char folder[BENCH_PATH_MAX];
    char store[BENCH_PATH_MAX + 32];

    if (bench_folder(folder, sizeof folder) != 0)
        cluster_die("journal", "no folder for it");
    (void)snprintf(store, sizeof store, "journal:%s/keys", folder);
    bench_store("journal", store, rows, COUNT(rows), has);
    bench_folder_remove(folder);
}

/* A limit is etcd over gRPC, the interface of its own clients, which ours are, too. */
static void bench_etcd(const bool *has)
{
    static const struct row rows[] = {
        {"put, one that waits", run_waiting, MU_KV_PUT, 1, 2000, 0, PEER_ETCD, ""},
        {"put, one that waits", run_waiting, MU_KV_PUT, 1, 2000, 0, PEER_ETCD_FENCED,
         "transaction=1"},
        {"put, 64 outstanding", run_flow, MU_KV_PUT, 64, 30000, 0, PEER_ETCD,
         "outstanding=64"},
    };
    struct etcd etcd;
    char store[64];

    if (!has[PEER_ETCD])
        return;
    if (etcd_begin(&etcd) != 0)
        cluster_die("etcd", "it cannot be started");
    (void)snprintf(store, sizeof store, "etcd:http://127.0.0.1:%u", etcd.port);
    bench_store("etcd", store, rows, COUNT(rows), has);
    etcd_end(&etcd);
}

static void bench_keys(bool only_etcd)
{
    bool has[PEERS_END] = {false};

    for (int i = 0; i < PEERS_END; i++)
        has[i] = peers[i].raw != NULL && bench_is_full() &&
                 (peers[i].needs == NULL || bench_has(peers[i].needs));
    if (!only_etcd) {
        bench_memory(has);
        bench_journal(has);
    }
    bench_etcd(has);
}

/* ---- barriers ---- */

/* Threads of this process that go through barriers; the first one keeps the times. */
struct party {
    mu_node *node;
    unsigned threads;
    uint64_t rounds;
    uint64_t *samples;
};

static void *go_through(void *arg)
{
    const struct party *party = arg;
    mu_barrier_options options;
    mu_error error;

    mu_barrier_options_init(&options);
    options.threads = party->threads;
    options.timeout_ms = 60000;
    for (uint64_t i = 0; i < party->rounds; i++) {
        uint64_t start_ns = bench_now_ns();

        check(mu_barrier_wait(party->node, "bench", &options, &error), &error);
        if (party->samples != NULL)
            party->samples[i] = bench_now_ns() - start_ns;
    }
    return NULL;
}

static void run_party(mu_node *node, unsigned threads, uint64_t rounds, uint64_t *samples)
{
    struct party others = {node, threads, rounds, NULL};
    struct party first = {node, threads, rounds, samples};
    pthread_t ids[THREADS_MAX];

    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&ids[i], NULL, go_through, &others) != 0)
            cluster_die("thread", "cannot be started");
    (void)go_through(&first);
    for (unsigned i = 1; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
}

static uint64_t barrier_rounds(void)
{
    return bench_size(20, 2000);
}

/* What one barrier takes, seen by a thread of the chief. */
static double measure_barrier(int processes)
{
    struct cluster cluster;
    uint64_t rounds = barrier_rounds();
    uint64_t *samples = malloc(rounds * sizeof *samples);
    mu_node *node;
    double us;

    if (samples == NULL)
        cluster_die("samples", "out of memory");
    cluster_make(&cluster, processes - 1, 0);
    for (int i = 0; i < processes - 1; i++)
        cluster_start(&cluster, "worker", i);
    node = open_task(cluster.json, "chief", 0);
    run_party(node, THREADS_MAX / (unsigned)processes, rounds, samples);
    us = (double)bench_median(samples, rounds) / 1e3;
    free(samples);
    stop(&cluster, node);
    return us;
}

static void bench_barrier(int processes, double target)
{
    char metric[64];
    struct bench_line line = {.bench = "coordination",
                              .metric = metric,
                              .unit = "us",
                              .target = target,
                              .less_is_more = true};

    (void)snprintf(metric, sizeof metric, "barrier of 64 threads in %d processes, median",
                   processes);
    line.value = measure_barrier(processes);
    bench_report(&line);
}

/* As many processes and threads, with processes that give way while they wait and with
 * those that do not. */
static void bench_barrier_mpi(void)
{
    static const struct {
        const char *metric;
        const char *before;
        const char *args;
    } rows[] = {
        {"barrier of 64 threads in 8 processes, median (limit: OpenMPI, 8, yields)",
         "mpirun --allow-run-as-root -n 8 --oversubscribe --mca mpi_yield_when_idle 1 ",
         "rounds=20000"},
        {"barrier of 64 threads in 8 processes, median (limit: OpenMPI, 8, spins)",
         "mpirun --allow-run-as-root -n 8 --oversubscribe --mca mpi_yield_when_idle 0 ",
         "rounds=100"},
    };
    bool has = bench_has("mpirun");
    double us = measure_barrier(8);

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench_line line = {.bench = "coordination",
                                  .metric = rows[i].metric,
                                  .value = us,
                                  .unit = "us",
                                  .less_is_more = true};

        if (has)
            (void)bench_raw_by(rows[i].before, "raw_mpi", rows[i].args, &line.limit);
        bench_report(&line);
    }
}

/* How many processes there are, from the text of the cluster. */
static unsigned count_addresses(const char *json)
{
    unsigned count = 0;

    while ((json = strstr(json, "127.0.0.1")) != NULL) {
        count++;
        json++;
    }
    return count;
}

/* A worker takes part in the barriers; the chief hosts the keys, and waits for its
 * end. */
static int play_task(char **argv)
{
    mu_node *node = open_task(argv[4], argv[2], atoi(argv[3]));

    if (strcmp(argv[2], "worker") == 0)
        run_party(node, THREADS_MAX / count_addresses(argv[4]), barrier_rounds(), NULL);
    (void)mu_node_wait_job(node, -1, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    bool only_etcd = argc == 2 && strcmp(argv[1], "etcd") == 0;

    if (cluster_is_task(argc, argv))
        return play_task(argv);
    bench_keys(only_etcd);
    if (only_etcd)
        return 0;
    bench_barrier(2, 200);
    bench_barrier(8, 450);
    if (!bench_is_full())
        return 0;
    bench_barrier_mpi();
    bench_barrier(BARRIER_TASKS_MAX, 3000);
    return 0;
}
