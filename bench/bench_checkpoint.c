/* A checkpoint while training goes on: variables on two parameter servers in other
 * processes are saved, and small ones are added to by a thread. The limits are a file of
 * the same size that is written in the same directory and flushed, as by dd with
 * conv=fdatasync bs=1M, and the rate of the adds without a checkpoint. The directory is
 * TMPDIR, or /tmp. */
#include "bench/cluster.h"

#include <muster/checkpoint.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

enum { SERVERS = 2, VARIABLES = 8, SMALL_ELEMENTS = 256, BLOCK_BYTES = 1 << 20 };

static int play_server(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("checkpoint", error->message);
}

static uint64_t count_large_bytes(void)
{
    return bench_size(1 << 20, UINT64_C(1) << 30);
}

/* ---- The cluster ---- */

struct world {
    struct cluster cluster;
    mu_node *node;
    mu_variable *large[VARIABLES];
    mu_variable *small;
    char directory[128];
};

static mu_variable *open_floats(mu_node *node, const char *name, uint64_t elements)
{
    const mu_variable_spec spec = {
        .name = name, .dtype = MU_F32, .rank = 1, .dims = &elements, .shards = SERVERS};
    mu_variable *variable = NULL;
    mu_error error;

    check(mu_variable_open(node, &spec, 60000, &error, &variable), &error);
    return variable;
}

static void begin_world(struct world *world)
{
    const char *folder = getenv("TMPDIR");
    mu_node_options options;
    char name[24];

    (void)snprintf(world->directory, sizeof world->directory, "%s/muster-bench-XXXXXX",
                   folder == NULL ? "/tmp" : folder);
    if (mkdtemp(world->directory) == NULL)
        cluster_die("directory", world->directory);
    cluster_make(&world->cluster, 0, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        cluster_start(&world->cluster, "ps", i);
    mu_node_options_init(&options);
    world->node = cluster_open(world->cluster.json, "chief", 0, &options);
    for (int i = 0; i < VARIABLES; i++) {
        (void)snprintf(name, sizeof name, "large%d", i);
        world->large[i] = open_floats(world->node, name,
                                      count_large_bytes() / VARIABLES / sizeof(float));
    }
    world->small = open_floats(world->node, "small", SMALL_ELEMENTS);
}

static void end_world(struct world *world)
{
    mu_error error;

    for (int i = 0; i < VARIABLES; i++)
        mu_variable_close(world->large[i]);
    mu_variable_close(world->small);
    check(mu_node_close(world->node, 1000, &error), &error);
    cluster_stop(&world->cluster);
}

/* ---- Training ---- */

static _Atomic bool stops;
static _Atomic uint64_t adds;

static void *add_until_told(void *arg)
{
    static const float ones[SMALL_ELEMENTS] = {1};
    const struct world *world = arg;
    mu_error error;

    while (!atomic_load(&stops)) {
        check(mu_variable_add(world->small, ones, sizeof ones, 60000, &error), &error);
        atomic_fetch_add(&adds, 1);
    }
    return NULL;
}

/* The rate of adds during `work`, and how long that took, in seconds. */
static double measure_adds(struct world *world, void (*work)(const struct world *world),
                           double *ret_s)
{
    uint64_t before = atomic_load(&adds);
    uint64_t start_ns = bench_now_ns();
    uint64_t end_ns;

    work(world);
    end_ns = bench_now_ns();
    *ret_s = (double)(end_ns - start_ns) / 1e9;
    return bench_rate(atomic_load(&adds) - before, start_ns, end_ns);
}

/* ---- What is measured ---- */

static void remove_all(const char *path)
{
    char command[256];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0)
        cluster_die("remove", path);
}

static void save_checkpoint(const struct world *world)
{
    mu_checkpoint_options options;
    mu_error error;

    mu_checkpoint_options_init(&options);
    options.directory = world->directory;
    check(mu_checkpoint_save(&options, 1, world->large, VARIABLES, NULL, &error, NULL),
          &error);
}

static void write_plain_file(const struct world *world)
{
    char *block = calloc(1, BLOCK_BYTES);
    char path[160];
    int fd;

    (void)snprintf(path, sizeof path, "%s/plain", world->directory);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (block == NULL || fd < 0)
        cluster_die("plain file", path);
    for (uint64_t left = count_large_bytes(); left > 0; left -= BLOCK_BYTES)
        if (write(fd, block, BLOCK_BYTES) != BLOCK_BYTES)
            cluster_die("plain file", "it is not written");
    if (fdatasync(fd) != 0 || close(fd) != 0 || unlink(path) != 0)
        cluster_die("plain file", "it is not flushed");
    free(block);
}

static void wait_a_while(const struct world *world)
{
    const struct timespec time = {(time_t)bench_size(0, 3), 20000000};

    (void)world;
    (void)nanosleep(&time, NULL);
}

static void report(const char *metric, double value, const char *unit, double limit)
{
    const struct bench_line line = {.bench = "checkpoint",
                                    .metric = metric,
                                    .value = value,
                                    .unit = unit,
                                    .limit = limit,
                                    .target = 0.7 * limit};

    bench_report(&line);
}

static void measure(struct world *world)
{
    double mib = (double)count_large_bytes() / (1 << 20);
    double plain_s;
    double save_s;
    double idle_s;
    double idle_rate = measure_adds(world, wait_a_while, &idle_s);
    double rate_beside_file = measure_adds(world, write_plain_file, &plain_s);
    double rate = measure_adds(world, save_checkpoint, &save_s);

    report("a plain file, flushed", mib / plain_s, "MiB/s", 0);
    report("a checkpoint", mib / save_s, "MiB/s", mib / plain_s);
    report("adds without a checkpoint", idle_rate, "1/s", 0);
    report("adds beside the plain file", rate_beside_file, "1/s", 0);
    report("adds beside the checkpoint", rate, "1/s", idle_rate);
}

int main(int argc, char **argv)
{
    struct world world = {.node = NULL};
    pthread_t thread;

    if (cluster_is_task(argc, argv))
        return play_server(argv);
    begin_world(&world);
    if (pthread_create(&thread, NULL, add_until_told, &world) != 0)
        cluster_die("thread", "none is left");
    measure(&world);
    atomic_store(&stops, true);
    (void)pthread_join(thread, NULL);
    remove_all(world.directory);
    end_world(&world);
    return 0;
}
