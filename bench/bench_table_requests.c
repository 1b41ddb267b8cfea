/* Requests to an embedding table on parameter servers in other processes, over tcp: look-
 * ups and pushes of some ids, drawn at random from rows that are there. The limit is
 * bench/raw/raw_uv_bandwidth with as many bytes each way, and as many under way as there
 * are threads here.
 *
 *     bench_table_requests [servers=1] [ids=1024] [dim=64] [rows=1000000] [threads=0]
 *                          [only=lookup|push|bags|single|pipelined] [dtype=f32|f16|bf16]
 *
 * threads=0: with 1, and with 4. Then bags of 20 ids, as many bags as there are ids in
 * the other requests, and look-ups of a single id, one after the other, and pipelined. */
#include "bench/cluster.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum {
    THREADS_MAX = 16,
    BAG_IDS = 20,
    DEPTH = 256, /* requests of one id that are under way, */
    SLOTS = 1024 /* and places for their rows */
};

static struct settings {
    uint64_t servers;
    uint64_t ids;
    uint64_t dim;
    uint64_t rows;
    uint64_t threads;
    const char *only; /* NULL: all */
    int dtype;
} settings = {1, 1024, 64, 1000000, 0, NULL, MU_F32};

enum request { LOOKUP, PUSH, BAGS, REQUESTS };

static const char *const request_names[REQUESTS] = {"lookup", "push", "bags"};

struct client {
    mu_table *table;
    enum request request;
    uint64_t repeats;
    uint64_t state; /* of the generator */
    uint64_t count; /* of ids */
    uint64_t *ids;
    uint64_t *offsets;
    float *numbers;
};

static uint64_t ids_of(enum request request)
{
    return settings.ids * (request == BAGS ? BAG_IDS : 1);
}

static uint64_t draw(struct client *client)
{
    client->state =
        client->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (client->state >> 33) % settings.rows;
}

static int request_once(struct client *client, mu_error *error)
{
    const mu_table_bags bags = {.ids = client->ids,
                                .count = client->count,
                                .offsets = client->offsets,
                                .bags = settings.ids,
                                .combiner = MU_TABLE_MEAN};

    if (client->request == BAGS)
        return mu_table_lookup_bags(client->table, &bags, client->numbers, 30000, error);
    if (client->request == PUSH)
        return mu_table_apply(client->table, client->ids, client->numbers, client->count,
                              NULL, 30000, error);
    return mu_table_lookup(client->table, client->ids, client->count, client->numbers,
                           30000, error);
}

static void *run_client(void *arg)
{
    struct client *client = arg;
    mu_error error;

    for (uint64_t i = 0; i < client->repeats; i++) {
        for (uint64_t k = 0; k < client->count; k++)
            client->ids[k] = draw(client);
        cluster_check(request_once(client, &error), &error);
    }
    return NULL;
}

static void make_client(struct client *client, mu_table *table, enum request request,
                        uint64_t seed)
{
    *client = (struct client){
        .table = table,
        .request = request,
        .state = seed,
        .count = ids_of(request),
        .ids = calloc(ids_of(request), sizeof(uint64_t)),
        .offsets = calloc(settings.ids, sizeof(uint64_t)),
        .numbers = calloc(settings.ids * settings.dim, sizeof(float)),
    };
    if (client->ids == NULL || client->offsets == NULL || client->numbers == NULL)
        cluster_die("requests", "out of memory");
    for (uint64_t i = 0; i < settings.ids; i++)
        client->offsets[i] = i * BAG_IDS;
}

static void free_client(struct client *client)
{
    free(client->ids);
    free(client->offsets);
    free(client->numbers);
}

/* Seconds that some requests take, by so many threads. */
static double spend(mu_table *table, enum request request, uint64_t threads,
                    uint64_t repeats)
{
    struct client clients[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    uint64_t start_ns;

    for (uint64_t i = 0; i < threads; i++) {
        make_client(&clients[i], table, request, i + 1);
        clients[i].repeats = repeats;
    }
    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, run_client, &clients[i]) != 0)
            cluster_die("threads", "none can be made");
    for (uint64_t i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
    start_ns = bench_now_ns() - start_ns;
    for (uint64_t i = 0; i < threads; i++)
        free_client(&clients[i]);
    return (double)start_ns / 1e9;
}

static uint64_t repeats_of(enum request request)
{
    uint64_t repeats = (request == PUSH ? 300000 : 1000000) / ids_of(request);

    return bench_size(2, repeats > 20000 ? 20000 : repeats);
}

/* Of some rounds: the best one's ids a second, and the mean processor time of a request
 * here and at the servers, which says more on a machine that others use, too. */
struct result {
    double rate;
    double here_us;
    double there_us;
};

static double servers_cpu_s(const struct cluster *cluster)
{
    double sum = 0.0;

    for (int i = 0; i < cluster->children_count; i++)
        sum += cluster_cpu_s(cluster->children[i]);
    return sum;
}

static struct result measure(const struct cluster *cluster, mu_table *table,
                             enum request request, uint64_t threads)
{
    uint64_t rounds = bench_size(1, 5);
    uint64_t repeats = repeats_of(request);
    double count = (double)(threads * repeats);
    double here_s = cluster_cpu_s(getpid());
    double there_s = servers_cpu_s(cluster);
    struct result result = {.rate = 0.0};

    for (uint64_t i = 0; i < rounds; i++) {
        double rate =
            count * (double)ids_of(request) / spend(table, request, threads, repeats);

        result.rate = rate > result.rate ? rate : result.rate;
    }
    result.here_us = (cluster_cpu_s(getpid()) - here_s) * 1e6 / (count * (double)rounds);
    result.there_us = (servers_cpu_s(cluster) - there_s) * 1e6 / (count * (double)rounds);
    return result;
}

/* Rows of this size in a request and its answer, through libuv alone. */
static double limit_of(enum request request, uint64_t threads)
{
    uint64_t bytes = settings.ids * settings.dim * sizeof(float);
    double gigabytes = 0.0;
    char args[96];

    (void)snprintf(args, sizeof args,
                   "direction=%s mode=copy depth=%d kib=%d megabytes=1024",
                   request == PUSH ? "push" : "pull", (int)threads,
                   (int)((bytes + 1023) / 1024));
    if (!bench_is_full() || request == BAGS ||
        bench_raw("raw_uv_bandwidth", args, &gigabytes) != 0)
        return 0.0;
    return gigabytes * 1e9 / ((double)settings.dim * sizeof(float));
}

static void report_requests(const struct cluster *cluster, mu_table *table,
                            enum request request, uint64_t threads)
{
    double limit = limit_of(request, threads);
    struct result result = measure(cluster, table, request, threads);
    char metric[64];
    char extra[96];
    const struct bench_line line = {.bench = "table_requests",
                                    .metric = metric,
                                    .value = result.rate,
                                    .unit = "ids/s",
                                    .extra = extra,
                                    .limit = limit,
                                    .target = request == BAGS ? 30e6 : 0.8 * limit};

    (void)snprintf(metric, sizeof metric, "%s, %d ids, %d thread(s)",
                   request_names[request], (int)ids_of(request), (int)threads);
    (void)snprintf(extra, sizeof extra, "\"here_us\":%.1f,\"there_us\":%.1f",
                   result.here_us, result.there_us);
    bench_report(&line);
}

/* A single id, one request after the other: the median. The limit is a bare round trip.
 */
static void report_single(mu_table *table)
{
    uint64_t samples[10000];
    uint64_t count = bench_size(10, 10000);
    struct client client;
    struct bench_line line = {.bench = "table_requests",
                              .metric = "lookup, a single id",
                              .unit = "us",
                              .target = 60,
                              .less_is_more = true};
    mu_error error;

    make_client(&client, table, LOOKUP, 1);
    client.count = 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        client.ids[0] = draw(&client);
        cluster_check(request_once(&client, &error), &error);
        samples[i] = bench_now_ns() - start_ns;
    }
    free_client(&client);
    line.value = (double)bench_median(samples, count) / 1e3;
    if (bench_is_full())
        (void)bench_raw("raw_nng_rtt", "", &line.limit);
    bench_report(&line);
}

/* ---- Requests of one id, many under way ---- */

struct pipeline {
    mu_table *table;
    struct client client;
    atomic_int under_way;
    atomic_int awaited; /* the thread sleeps until so few are under way; NOTHING */
    sem_t woken;
};

enum { NOTHING = -1 };

static void take_answer(void *user, int code, const mu_error *error)
{
    struct pipeline *pipeline = user;
    int left;

    cluster_check(code, error);
    left = atomic_fetch_sub(&pipeline->under_way, 1) - 1;
    if (left <= atomic_load(&pipeline->awaited) &&
        atomic_exchange(&pipeline->awaited, NOTHING) != NOTHING)
        (void)sem_post(&pipeline->woken);
}

static void await_answers(struct pipeline *pipeline, int under_way)
{
    atomic_store(&pipeline->awaited, under_way);
    if (atomic_load(&pipeline->under_way) > under_way ||
        atomic_exchange(&pipeline->awaited, NOTHING) == NOTHING)
        while (sem_wait(&pipeline->woken) != 0)
            continue;
}

static void look_up_pipelined(struct pipeline *pipeline, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct client *client = &pipeline->client;
        uint64_t id = draw(client);
        int rv;

        if (atomic_load(&pipeline->under_way) >= DEPTH)
            await_answers(pipeline, DEPTH / 2);
        atomic_fetch_add(&pipeline->under_way, 1);
        rv = mu_table_lookup_async(client->table, &id, 1,
                                   client->numbers + i % SLOTS * settings.dim, 30000,
                                   take_answer, pipeline);
        cluster_check(rv, &(mu_error){.message = "a look-up was not begun"});
    }
    await_answers(pipeline, 0);
}

static void report_pipelined(const struct cluster *cluster, mu_table *table)
{
    uint64_t count = bench_size(100, 1000000);
    struct pipeline pipeline = {.table = table, .awaited = NOTHING};
    char extra[96];
    struct bench_line line = {.bench = "table_requests",
                              .metric = "lookup, one id, pipelined",
                              .unit = "ids/s",
                              .extra = extra,
                              .target = 1e6};
    double here_s = cluster_cpu_s(getpid());
    double there_s = servers_cpu_s(cluster);
    uint64_t start_ns;

    (void)sem_init(&pipeline.woken, 0, 0);
    make_client(&pipeline.client, table, LOOKUP, 1);
    free(pipeline.client.numbers);
    pipeline.client.numbers = calloc(SLOTS * settings.dim, sizeof(float));
    if (pipeline.client.numbers == NULL)
        cluster_die("requests", "out of memory");
    start_ns = bench_now_ns();
    look_up_pipelined(&pipeline, count);
    line.value = bench_rate(count, 0, bench_now_ns() - start_ns);
    (void)snprintf(extra, sizeof extra, "\"here_us\":%.2f,\"there_us\":%.2f",
                   (cluster_cpu_s(getpid()) - here_s) * 1e6 / (double)count,
                   (servers_cpu_s(cluster) - there_s) * 1e6 / (double)count);
    (void)sem_destroy(&pipeline.woken);
    free_client(&pipeline.client);
    bench_report(&line);
}

static void fill_rows(mu_table *table)
{
    enum { PIECE = 8192 };
    uint64_t ids[PIECE];
    float *zeros = calloc(PIECE * settings.dim, sizeof *zeros);
    mu_error error;

    if (zeros == NULL)
        cluster_die("rows", "out of memory");
    for (uint64_t id = 0; id < settings.rows; id += PIECE) {
        uint64_t count = settings.rows - id < PIECE ? settings.rows - id : PIECE;

        for (uint64_t i = 0; i < count; i++)
            ids[i] = id + i;
        cluster_check(mu_table_apply(table, ids, zeros, count, NULL, 30000, &error),
                      &error);
    }
    free(zeros);
}

static bool take_word(const char *argument)
{
    static const char *const dtypes[] = {
        [MU_F32] = "f32", [MU_F16] = "f16", [MU_BF16] = "bf16"};

    if (strncmp(argument, "only=", 5) == 0) {
        settings.only = argument + 5;
        return true;
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (dtypes[i] != NULL && strncmp(argument, "dtype=", 6) == 0 &&
            strcmp(argument + 6, dtypes[i]) == 0) {
            settings.dtype = (int)i;
            return true;
        }
    return false;
}

static bool take_setting(const char *argument)
{
    const struct {
        const char *name;
        uint64_t *number;
    } names[] = {{"servers=", &settings.servers},
                 {"ids=", &settings.ids},
                 {"dim=", &settings.dim},
                 {"rows=", &settings.rows},
                 {"threads=", &settings.threads}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(argument, names[i].name, strlen(names[i].name)) == 0) {
            *names[i].number = strtoull(argument + strlen(names[i].name), NULL, 10);
            return true;
        }
    return false;
}

static void take_settings(int argc, char **argv)
{
    settings.rows = bench_size(4096, settings.rows);
    for (int i = 1; i < argc; i++)
        if (!take_setting(argv[i]) && !take_word(argv[i]))
            cluster_die(argv[i], "expected servers=, ids=, dim=, rows=, threads=, only= "
                                 "or dtype=");
    if (settings.threads > THREADS_MAX || settings.ids == 0 || settings.rows == 0)
        cluster_die("settings", "out of range");
}

static bool is_wanted(const char *what)
{
    return settings.only == NULL || strcmp(settings.only, what) == 0;
}

static void report_all(const struct cluster *cluster, mu_table *table)
{
    const uint64_t usual[] = {1, 4};

    for (int i = 0; i < 2; i++) {
        uint64_t threads = settings.threads == 0 ? usual[i] : settings.threads;

        for (enum request request = LOOKUP; request < REQUESTS; request++)
            if (is_wanted(request_names[request]))
                report_requests(cluster, table, request, threads);
        if (settings.threads != 0)
            return;
    }
}

int main(int argc, char **argv)
{
    const mu_optimizer adagrad = mu_optimizer_make(MU_OPTIMIZER_ADAGRAD, 0.1);
    mu_table_spec spec = {.name = "t", .optimizer = &adagrad};
    mu_node_options options;
    struct cluster cluster;
    mu_table *table;
    mu_error error;
    mu_node *node;

    if (cluster_is_task(argc, argv))
        return cluster_play_server(argv);
    take_settings(argc, argv);
    cluster_tune_malloc();
    mu_node_options_init(&options);
    node = cluster_begin(&cluster, (int)settings.servers, &options);
    spec.dim = (unsigned)settings.dim;
    spec.dtype = settings.dtype;
    cluster_check(mu_table_open(node, &spec, 30000, &error, &table), &error);
    fill_rows(table);
    report_all(&cluster, table);
    if (is_wanted("single"))
        report_single(table);
    if (is_wanted("pipelined"))
        report_pipelined(&cluster, table);
    mu_table_close(table);
    cluster_end(&cluster, node);
    return 0;
}
