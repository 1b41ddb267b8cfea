/* What TLS costs: the same clusters over plain tcp and over TLS with a key, in turns.
 * Closures a second with 64 outstanding, the time of one alone, a variable of 64 MiB;
 * then what a handshake costs, and how fast this machine encrypts by itself. */
#include "bench/cluster.h"

#include "transport/wire/tls/endpoint.h"

#include <openssl/evp.h>
#include <sys/resource.h>

enum { WORKERS = 2, OUTSTANDING = 64, TURNS_MAX = 5, BLOCK_BYTES = 16 << 10 };

/* One row is measured with each cluster. */
enum row { RATE, ALONE, READ, ASSIGN, ROWS };

static const struct {
    const char *metric;
    const char *unit;
    double part; /* of the plain figure: the target */
    bool less_is_more;
} rows[ROWS] = {
    [RATE] = {"closures, 64 outstanding a worker", "closures/s", 0.7, false},
    [ALONE] = {"one closure alone", "us", 1.5, true},
    [READ] = {"read of 64 MiB", "GB/s", 0.5, false},
    [ASSIGN] = {"assign of 64 MiB", "GB/s", 0.5, false},
};

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("tls", error->message);
}

/* ---- tasks ---- */

static int no_op(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

static int play(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (strcmp(argv[2], "worker") == 0 &&
        mu_node_register_function(node, "f", no_op, NULL, MU_FUNCTION_INLINE) != 0)
        cluster_die("worker", "cannot register");
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

/* ---- one cluster ---- */

static double closures_rate(mu_coordinator *coordinator)
{
    uint64_t count = bench_size(2000, 500000);
    mu_error error;
    uint64_t start_ns = bench_now_ns();

    for (uint64_t i = 0; i < count; i++)
        check(mu_coordinator_schedule(coordinator, "f", NULL, -1, &error, NULL), &error);
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    return bench_rate(count, start_ns, bench_now_ns());
}

static double one_alone(mu_coordinator *coordinator)
{
    static uint64_t samples[5000];
    uint64_t count = bench_size(50, 5000);
    mu_error error;

    for (uint64_t i = 0; i < count; i++) {
        mu_remote_value *value;
        uint64_t start_ns = bench_now_ns();

        check(mu_coordinator_schedule(coordinator, "f", NULL, -1, &error, &value),
              &error);
        check(mu_remote_value_fetch(value, 5000, &error, NULL), &error);
        samples[i] = bench_now_ns() - start_ns;
        mu_remote_value_free(value);
    }
    return (double)bench_median(samples, count) / 1000.0;
}

static double variable_rate(mu_variable *variable, void *data, size_t bytes, bool reads)
{
    uint64_t samples[9];
    uint64_t rounds = bench_size(1, 9);
    mu_error error;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t start_ns = bench_now_ns();

        check(reads ? mu_variable_read(variable, data, bytes, 30000, &error)
                    : mu_variable_assign(variable, data, bytes, 30000, &error),
              &error);
        samples[i] = bench_now_ns() - start_ns;
    }
    return (double)bytes / (double)bench_median(samples, rounds);
}

static void measure_variable(mu_node *node, double out[ROWS])
{
    uint64_t floats = bench_size(1 << 10, 16 << 20);
    size_t bytes = (size_t)floats * sizeof(float);
    mu_variable_spec spec = {
        .name = "w", .dtype = MU_F32, .rank = 1, .dims = &floats, .shards = 1};
    void *data = calloc(1, bytes);
    mu_variable *variable;
    mu_error error;

    if (data == NULL)
        cluster_die("variable", "out of memory");
    check(mu_variable_open(node, &spec, 30000, &error, &variable), &error);
    out[ASSIGN] = variable_rate(variable, data, bytes, false);
    out[READ] = variable_rate(variable, data, bytes, true);
    mu_variable_close(variable);
    free(data);
}

static void measure(bool over_tls, double out[ROWS])
{
    mu_coordinator *coordinator;
    struct cluster cluster;
    mu_node_options options;
    mu_node *node;
    mu_error error;

    (void)(over_tls ? setenv(CLUSTER_TLS_VARIABLE, "1", 1)
                    : unsetenv(CLUSTER_TLS_VARIABLE));
    cluster_make(&cluster, WORKERS, 1);
    for (int i = 0; i < WORKERS; i++)
        cluster_start(&cluster, "worker", i);
    cluster_start(&cluster, "ps", 0);
    mu_node_options_init(&options);
    options.window = OUTSTANDING;
    node = cluster_open(cluster.json, "chief", 0, &options);
    check(mu_coordinator_open(node, 30000, &error, &coordinator), &error);
    (void)closures_rate(coordinator);
    out[RATE] = closures_rate(coordinator);
    out[ALONE] = one_alone(coordinator);
    measure_variable(node, out);
    mu_coordinator_close(coordinator);
    check(mu_node_close(node, 5000, &error), &error);
    cluster_stop(&cluster);
}

static double median_of(double values[TURNS_MAX], uint64_t count)
{
    uint64_t samples[TURNS_MAX];

    for (uint64_t i = 0; i < count; i++)
        samples[i] = (uint64_t)(values[i] * 1000.0);
    return (double)bench_median(samples, count) / 1000.0;
}

static void bench_clusters(void)
{
    double plain[ROWS][TURNS_MAX];
    double tls[ROWS][TURNS_MAX];
    uint64_t turns = bench_size(1, TURNS_MAX);

    for (uint64_t turn = 0; turn < turns; turn++) {
        double out[ROWS];

        measure(false, out);
        for (int row = 0; row < ROWS; row++)
            plain[row][turn] = out[row];
        measure(true, out);
        for (int row = 0; row < ROWS; row++)
            tls[row][turn] = out[row];
    }
    for (int row = 0; row < ROWS; row++) {
        double limit = median_of(plain[row], turns);
        const struct bench_line line = {.bench = "tls",
                                        .metric = rows[row].metric,
                                        .unit = rows[row].unit,
                                        .value = median_of(tls[row], turns),
                                        .limit = limit,
                                        .target = rows[row].part * limit,
                                        .less_is_more = rows[row].less_is_more};

        bench_report(&line);
    }
}

/* ---- handshakes ---- */

/* What one end has to say, to the other one. */
static void carry(struct mu__tls *from, struct mu__tls *to)
{
    struct mu__buf *output = mu__tls_output(from);
    char byte;

    if (output == NULL)
        return;
    if (!mu__tls_receive(to, output->data, output->size) ||
        mu__tls_read(to, &byte, 1) < 0)
        cluster_die("handshake", mu__tls_why(to));
    mu__buf_unref(output);
}

static void shake_hands(struct mu__tls_identity *identity)
{
    struct mu__tls *client = mu__tls_new(identity, false);
    struct mu__tls *server = mu__tls_new(identity, true);

    if (client == NULL || server == NULL || mu__tls_begin(client) != 0)
        cluster_die("handshake", "cannot begin");
    for (int i = 0; i < 3 && !mu__tls_is_open(server); i++) {
        carry(client, server);
        carry(server, client);
    }
    if (!mu__tls_is_open(server) || !mu__tls_is_open(client))
        cluster_die("handshake", "does not end");
    mu__tls_free(client);
    mu__tls_free(server);
}

static double processor_s(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Of both ends together, so a node with a thousand peers needs about half of it. */
static void bench_handshakes(void)
{
    uint64_t count = bench_size(3, 1000);
    struct mu__tls_identity *identity;
    struct bench_line line = {.bench = "tls",
                              .metric = "processor time of 1,000 handshakes, both ends",
                              .unit = "s",
                              .target = 5.0,
                              .less_is_more = true};
    struct mu__key key;
    mu_error error;
    double begin_s;

    check(mu__key_new(&error, &key), &error);
    check(mu__tls_identity_of_key(&key, &error, &identity), &error);
    shake_hands(identity);
    begin_s = processor_s();
    for (uint64_t i = 0; i < count; i++)
        shake_hands(identity);
    line.value = (processor_s() - begin_s) * 1000.0 / (double)count;
    bench_report(&line);
    mu__tls_identity_free(identity);
}

/* AES-128-GCM on one core, in blocks as of TLS: the limit of each direction. */
static void bench_cipher(void)
{
    static unsigned char block[BLOCK_BYTES];
    static unsigned char out[BLOCK_BYTES + 16];
    const unsigned char key[16] = {1};
    const unsigned char nonce[12] = {2};
    uint64_t count = bench_size(10, 200000);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    struct bench_line line = {
        .bench = "tls", .metric = "AES-128-GCM alone, one core", .unit = "GB/s"};
    uint64_t start_ns = bench_now_ns();
    int size;

    if (context == NULL ||
        EVP_EncryptInit_ex2(context, EVP_aes_128_gcm(), key, nonce, NULL) != 1)
        cluster_die("cipher", "AES-128-GCM is not there");
    for (uint64_t i = 0; i < count; i++)
        if (EVP_EncryptUpdate(context, out, &size, block, BLOCK_BYTES) != 1)
            cluster_die("cipher", "cannot encrypt");
    line.value = (double)count * BLOCK_BYTES / (double)(bench_now_ns() - start_ns);
    bench_report(&line);
    EVP_CIPHER_CTX_free(context);
}

int main(int argc, char **argv)
{
    if (cluster_is_task(argc, argv))
        return play(argv);
    cluster_tune_malloc();
    bench_clusters();
    bench_handshakes();
    bench_cipher();
    return 0;
}
