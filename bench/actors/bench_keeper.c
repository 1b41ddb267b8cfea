/* The longest time that a call to a kept actor takes while its keeper's file is written
 * anew, and while none is; and that a call of the same node takes while the file is read
 * at start. Other kept actors have large states, which a second thread records. */
#include "bench/bench.h"
#include "bench/cluster.h"

#include <muster.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { TIMEOUT_MS = 60000, LARGE_MAX = 200 };

static size_t state_bytes;

/* ---- actors ---- */

static int change(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    ++*(int64_t *)state;
    return mu_actor_record(self, NULL); /* the whole state */
}

static int save_small(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(*(int64_t *)state);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int save_large(void *state, mu_value **ret_saved)
{
    uint8_t *bytes = malloc(state_bytes);

    if (bytes == NULL)
        return -MU_ENOMEM;
    memset(bytes, (int)(*(int64_t *)state & 0x7f), state_bytes);
    *ret_saved = mu_value_bytes(bytes, state_bytes);
    free(bytes);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load_any(mu_actor *self, void *state, const mu_value *saved, unsigned version)
{
    (void)self;
    (void)state;
    (void)saved;
    (void)version;
    return 0;
}

static const mu_actor_method methods[] = {{"change", change}, {NULL, NULL}};
static const mu_actor_type small_type = {
    .name = "small",
    .state_size = sizeof(int64_t),
    .methods = methods,
    .save = save_small,
    .load = load_any,
};
static const mu_actor_type large_type = {
    .name = "large",
    .state_size = sizeof(int64_t),
    .methods = methods,
    .save = save_large,
    .load = load_any,
};

static int answer(mu_actor *self, void *state, const mu_value *args)
{
    (void)self;
    (void)state;
    (void)args;
    return 0;
}

static const mu_actor_method plain_methods[] = {{"answer", answer}, {NULL, NULL}};
static const mu_actor_type plain_type = {
    .name = "plain", .state_size = 1, .methods = plain_methods};

/* ---- the node ---- */

static void must(int rv, const mu_error *error)
{
    if (rv == 0)
        return;
    (void)fprintf(stderr, "bench_keeper: %s: %s\n", mu_err_name(rv), error->message);
    exit(1);
}

static mu_node *open_chief(const mu_cluster *cluster, const char *store)
{
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = "chief";
    options.log_level = MU_LOG_ERROR;
    options.store = store;
    options.store_sync = 0;
    must(mu_node_open(&options, &error, &node), &error);
    must(mu_node_register_actor(node, &small_type), &error);
    must(mu_node_register_actor(node, &large_type), &error);
    must(mu_node_register_actor(node, &plain_type), &error);
    return node;
}

static mu_address spawn(mu_node *node, const char *type, const char *name)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;

    mu_actor_options_init(&options);
    options.name = name;
    options.flags = name == NULL ? 0 : MU_ACTOR_KEPT;
    must(mu_node_spawn(node, type, NULL, &options, TIMEOUT_MS, &error, &address), &error);
    return address;
}

static void request(mu_node *node, const mu_address *to, const char *method)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    must(mu_actor_request(node, to, method, NULL, TIMEOUT_MS, &error, &value), &error);
    must(mu_remote_value_fetch(value, -1, &error, NULL), &error);
    mu_remote_value_free(value);
}

static mu_address find(mu_node *node, const char *name)
{
    mu_error error = {0};
    mu_address address;

    must(mu_actor_find(node, name, &address), &error);
    return address;
}

/* ---- states that are recorded ---- */

struct writer {
    mu_node *node;
    mu_address large[LARGE_MAX];
    uint64_t count;  /* actors */
    uint64_t rounds; /* records */
    atomic_bool is_done;
};

static void *write_states(void *arg)
{
    struct writer *writer = arg;

    for (uint64_t i = 0; i < writer->rounds; i++)
        request(writer->node, &writer->large[i % writer->count], "change");
    atomic_store(&writer->is_done, true);
    return NULL;
}

/* Calls until `is_done`; returns the longest, in ms. */
static double call_meanwhile(mu_node *node, const mu_address *to, const char *method,
                             atomic_bool *is_done)
{
    uint64_t longest_ns = 0;

    while (!atomic_load(is_done)) {
        uint64_t begin_ns = bench_now_ns();
        uint64_t taken_ns;

        request(node, to, method);
        taken_ns = bench_now_ns() - begin_ns;
        longest_ns = taken_ns > longest_ns ? taken_ns : longest_ns;
    }
    return (double)longest_ns / 1e6;
}

static double longest_call_ms(struct writer *writer, const mu_address *to,
                              uint64_t rounds)
{
    pthread_t thread;
    double longest_ms;

    writer->rounds = rounds;
    atomic_store(&writer->is_done, false);
    if (pthread_create(&thread, NULL, write_states, writer) != 0)
        exit(1);
    longest_ms = call_meanwhile(writer->node, to, "change", &writer->is_done);
    (void)pthread_join(thread, NULL);
    return longest_ms;
}

/* ---- measuring ---- */

static void report(const char *metric, double value, const char *unit)
{
    const struct bench_line line = {.bench = "keeper",
                                    .metric = metric,
                                    .value = value,
                                    .unit = unit,
                                    .less_is_more = true};

    bench_report(&line);
}

static uint64_t inode_of(const char *path, double *ret_mib)
{
    struct stat status;

    if (stat(path, &status) != 0)
        exit(1);
    *ret_mib = (double)status.st_size / (1 << 20);
    return status.st_ino;
}

/* All states once, in which the file is written anew whenever it has doubled; then until
 * it is written anew once more; then as much again without. */
static void measure_rewrite(mu_node *node, const char *path)
{
    static struct writer writer;
    mu_address small = spawn(node, "small", "small");
    uint64_t rounds = bench_size(2, 20);
    double longest_ms = 0;
    double mib = 0;
    uint64_t inode;
    char name[16];

    writer.node = node;
    writer.count = bench_size(10, LARGE_MAX);
    for (uint64_t i = 0; i < writer.count; i++) {
        (void)snprintf(name, sizeof name, "large-%u", (unsigned)i);
        writer.large[i] = spawn(node, "large", name);
    }
    (void)longest_call_ms(&writer, &small, writer.count);
    inode = inode_of(path, &mib);
    report("the keeper's file", mib, "MiB");
    for (uint64_t i = 0; bench_is_full() && inode_of(path, &mib) == inode; i++) {
        double ms = longest_call_ms(&writer, &small, rounds);

        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    report("the keeper's file, written anew", mib, "MiB");
    report("longest call until it is written anew", longest_ms, "ms");
    report("longest call while it is not", longest_call_ms(&writer, &small, rounds),
           "ms");
}

struct reader {
    mu_node *node;
    atomic_bool is_done;
};

static void *await_kept(void *arg)
{
    struct reader *reader = arg;
    mu_address small = find(reader->node, "small");

    request(reader->node, &small, "change");
    atomic_store(&reader->is_done, true);
    return NULL;
}

static void measure_start(const mu_cluster *cluster, const char *store)
{
    uint64_t begin_ns = bench_now_ns();
    struct reader reader = {.node = open_chief(cluster, store)};
    double open_ms = (double)(bench_now_ns() - begin_ns) / 1e6;
    mu_address plain = spawn(reader.node, "plain", NULL);
    mu_error error = {0};
    pthread_t thread;
    double longest_ms;

    if (pthread_create(&thread, NULL, await_kept, &reader) != 0)
        exit(1);
    longest_ms = call_meanwhile(reader.node, &plain, "answer", &reader.is_done);
    (void)pthread_join(thread, NULL);
    report("a node with that file opens", open_ms, "ms");
    report("longest call to a plain actor until a kept one answers", longest_ms, "ms");
    must(mu_node_close(reader.node, 5000, &error), &error);
}

/* A process that dies with what it has. */
static void run_and_die(const mu_cluster *cluster, const char *store, const char *path)
{
    pid_t process = fork();
    int status = 0;

    if (process == 0) {
        measure_rewrite(open_chief(cluster, store), path);
        _exit(0);
    }
    if (waitpid(process, &status, 0) != process || status != 0)
        exit(1);
}

static void run(const char *folder)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_error error = {0};
    char address[32];
    char store[128];
    char path[128];
    int held = -1;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", cluster_free_port(&held));
    must(mu_cluster_add(cluster, "chief", 0, address, &error), &error);
    (void)close(held);
    (void)snprintf(store, sizeof store, "journal:%s/store", folder);
    (void)snprintf(path, sizeof path, "%s/store.kept", folder);
    run_and_die(cluster, store, path);
    measure_start(cluster, store);
    mu_cluster_free(cluster);
}

int main(void)
{
    char folder[] = "./bench-keeper-XXXXXX";
    char command[64];

    state_bytes = bench_size(1 << 16, 1 << 20);
    if (mkdtemp(folder) == NULL)
        return 1;
    run(folder);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}
