/* The coordination service: key-values of one program against a service in another
 * process over tcp, and barriers of many threads over two, eight and 64 processes.
 *
 * The limit of the rates is bench/raw/raw_nng_closures: messages of that size packed by
 * hand, with nothing behind them. */
#include "cluster.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { KEYS = 1024, VALUE_BYTES = 16, BARRIER_TASKS_MAX = 64, THREADS_MAX = 64 };

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("coordination", error->message);
}

/* ---- key-values ---- */

/* Requests that are outstanding: each answer begins the next one. */
struct flow {
    mu_node *node;
    mu_kv_ask ask;
    char keys[KEYS][24];
    char value[VALUE_BYTES];
    uint64_t left;              /* to begin; on the loop once it has begun */
    uint64_t unanswered;
    uint64_t revision;          /* of the last answer */
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over;
};

static void begin_next(struct flow *flow);

static void answered(void *user, const mu_kv_answer *answer)
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
    int rv;

    flow->left--;
    flow->ask.key = flow->keys[flow->left % KEYS];
    rv = mu_kv_begin(flow->node, &flow->ask, answered, flow, NULL);
    if (rv != 0)
        cluster_die("begin", mu_strerror(rv));
}

static void flow_init(struct flow *flow, mu_node *node, int operation)
{
    memset(flow, 0, sizeof *flow);
    flow->node = node;
    flow->ask = (mu_kv_ask){
        .operation = operation,
        .flags = operation == MU_KV_PUT ? MU_KV_OVERWRITE : 0,
        .value = flow->value,
        .size = operation == MU_KV_PUT ? VALUE_BYTES : 0,
        .limit_ms = 60000,
    };
    for (int i = 0; i < KEYS; i++)
        (void)snprintf(flow->keys[i], sizeof flow->keys[i], "bench/%d", i);
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
        mu_kv_ask ask = first->ask;

        ask.key = first->keys[i % KEYS];
        if (mu_kv_begin(node, &ask, answered, first, NULL) != 0)
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

static void count_answer(void *user, const mu_kv_answer *answer)
{
    struct stream *stream = user;

    if (answer->code != 0)
        cluster_die("request", answer->error->message);
    atomic_store_explicit(&stream->answered,
                          atomic_load_explicit(&stream->answered, memory_order_relaxed) +
                              1, memory_order_release);
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
        if (mu_kv_begin(node, &flow->ask, count_answer, stream, NULL) != 0)
            cluster_die("begin", "refused");
    }
    while (atomic_load_explicit(&stream->answered, memory_order_acquire) < count)
        give_way();
    rate = bench_rate(count, start_ns, bench_now_ns());
    free(stream);
    free(flow);
    return rate;
}

static double one_that_waits(mu_node *node, int operation, uint64_t count,
                             uint64_t *samples)
{
    char value[VALUE_BYTES] = {0};
    mu_kv_item item = {NULL, 0, 0};
    mu_error error;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        if (operation == MU_KV_PUT) {
            check(mu_kv_put(node, "bench/0", value, sizeof value, MU_KV_OVERWRITE, 0,
                            5000, &error, NULL), &error);
        } else {
            check(mu_kv_try_get(node, "bench/0", 5000, &error, &item), &error);
            mu_kv_item_done(&item);
        }
        samples[i] = bench_now_ns() - start_ns;
    }
    return (double)bench_median(samples, count) / 1e3;
}

static mu_node *open_task(const char *json, const char *type, int index)
{
    mu_node_options options;
    mu_node *node;
    mu_error error;

    cluster_tune_malloc();
    mu_node_options_init(&options);
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

static double best_of(double (*run)(mu_node *, int, uint64_t, uint64_t), mu_node *node,
                      int operation, uint64_t outstanding, uint64_t count)
{
    uint64_t samples[5];
    uint64_t runs = bench_size(1, 5);

    for (uint64_t i = 0; i < runs; i++)
        samples[i] = (uint64_t)run(node, operation, outstanding, count);
    return (double)bench_median(samples, runs);
}

static void bench_waiting(mu_node *node)
{
    uint64_t count = bench_size(200, 20000);
    uint64_t *samples = malloc(count * sizeof *samples);
    struct bench_line line = {.bench = "coordination", .unit = "us",
                              .less_is_more = true};

    if (samples == NULL)
        cluster_die("samples", "out of memory");
    if (bench_is_full())
        (void)bench_raw("raw_nng_rtt", "transport=tcp", &line.limit);
    line.metric = "put, one that waits, median";
    line.value = one_that_waits(node, MU_KV_PUT, count, samples);
    bench_report(&line);
    line.metric = "get, one that waits, median";
    line.value = one_that_waits(node, MU_KV_TRY_GET, count, samples);
    bench_report(&line);
    free(samples);
}

static void bench_rates(mu_node *node)
{
    static const struct {
        const char *metric;
        double (*run)(mu_node *, int, uint64_t, uint64_t);
        int operation;
        uint64_t outstanding;
        double target;
    } rows[] = {
        {"put, 64 outstanding", run_flow, MU_KV_PUT, 64, 0.0},
        {"get, 64 outstanding", run_flow, MU_KV_TRY_GET, 64, 0.0},
        {"put, 4096 pipelined", run_flow, MU_KV_PUT, 4096, 1.3e6},
        {"get, 4096 pipelined", run_flow, MU_KV_TRY_GET, 4096, 1.3e6},
        {"put, 4096 pipelined from a thread", run_stream, MU_KV_PUT, 4096, 1.3e6},
        {"get, 4096 pipelined from a thread", run_stream, MU_KV_TRY_GET, 4096, 1.3e6},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t count = rows[i].outstanding == 64 ? bench_size(2000, 300000)
                                                   : bench_size(10000, 1000000);
        struct bench_line line = {.bench = "coordination", .metric = rows[i].metric,
                                  .unit = "requests/s", .target = rows[i].target};

        (void)rows[i].run(node, rows[i].operation, rows[i].outstanding, count / 5 + 4096);
        line.value = best_of(rows[i].run, node, rows[i].operation, rows[i].outstanding,
                             count);
        bench_report(&line);
    }
}

static void bench_keys(void)
{
    struct cluster cluster;
    mu_node *node;

    cluster_make(&cluster, 1, 0);
    cluster_start(&cluster, "chief", 0);
    node = open_task(cluster.json, "worker", 0);
    bench_waiting(node);
    bench_rates(node);
    stop(&cluster, node);
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
    options.limit_ms = 60000;
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

static void bench_barrier(int processes, const char *metric)
{
    struct cluster cluster;
    uint64_t rounds = barrier_rounds();
    uint64_t *samples = malloc(rounds * sizeof *samples);
    struct bench_line line = {.bench = "coordination", .metric = metric, .unit = "us",
                              .less_is_more = true};
    mu_node *node;

    if (samples == NULL)
        cluster_die("samples", "out of memory");
    cluster_make(&cluster, processes - 1, 0);
    for (int i = 0; i < processes - 1; i++)
        cluster_start(&cluster, "worker", i);
    node = open_task(cluster.json, "chief", 0);
    run_party(node, THREADS_MAX / (unsigned)processes, rounds, samples);
    line.value = (double)bench_median(samples, rounds) / 1e3;
    bench_report(&line);
    free(samples);
    stop(&cluster, node);
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
    if (cluster_is_task(argc, argv))
        return play_task(argv);
    bench_keys();
    bench_barrier(2, "barrier of 64 threads in 2 processes, median");
    bench_barrier(8, "barrier of 64 threads in 8 processes, median");
    if (bench_is_full())
        bench_barrier(BARRIER_TASKS_MAX, "barrier of 64 processes, median");
    return 0;
}
