/* A checkpoint while training goes on: variables on two parameter servers in other
 * processes are saved, and small ones are added to by threads. The limits are a file of
 * the same size that is written in the same directory and flushed, as by dd with
 * conv=fdatasync bs=1M, and the rate of the adds without a checkpoint. The directory is
 * TMPDIR, or /tmp. Then a table is saved in full, and an increment of it. */
#include "bench/adder.h"

#include <muster/checkpoint.h>
#include <muster/table.h>

#include <fcntl.h>

enum {
    SERVERS = 2,
    VARIABLES = 8,
    SMALL_ELEMENTS = 256,
    BLOCK_BYTES = 1 << 20,
    ROUNDS = 5
};

static uint64_t count_large_bytes(void)
{
    return bench_size(1 << 20, UINT64_C(1) << 30);
}

/* ---- The cluster ---- */

struct world {
    struct cluster cluster;
    mu_node *node;
    mu_variable *large[VARIABLES];
    struct adder adder;
    char directory[128];
};

static void begin_world(struct world *world)
{
    const char *folder = getenv("TMPDIR");
    mu_node_options options;
    char name[24];

    (void)snprintf(world->directory, sizeof world->directory, "%s/muster-bench-XXXXXX",
                   folder == NULL ? "/tmp" : folder);
    if (mkdtemp(world->directory) == NULL)
        cluster_die("directory", world->directory);
    mu_node_options_init(&options);
    world->node = cluster_begin(&world->cluster, SERVERS, &options);
    for (int i = 0; i < VARIABLES; i++) {
        (void)snprintf(name, sizeof name, "large%d", i);
        world->large[i] = adder_open_floats(
            world->node, name, count_large_bytes() / VARIABLES / sizeof(float), SERVERS);
    }
    adder_begin(&world->adder, world->node, SMALL_ELEMENTS, SERVERS);
}

static void end_world(struct world *world)
{
    adder_end(&world->adder);
    for (int i = 0; i < VARIABLES; i++)
        mu_variable_close(world->large[i]);
    cluster_end(&world->cluster, world->node);
}

/* ---- What is measured ---- */

static void remove_all(const char *path)
{
    char command[256];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0)
        cluster_die("remove", path);
}

static void save_checkpoint(void *arg)
{
    const struct world *world = arg;
    mu_checkpoint_options options;
    mu_error error;

    mu_checkpoint_options_init(&options);
    options.directory = world->directory;
    cluster_check(mu_checkpoint_save(&options, 1, world->large, VARIABLES, NULL, &error,
                                     NULL),
                  &error);
}

static void write_plain_file(void *arg)
{
    const struct world *world = arg;
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

static void wait_a_while(void *arg)
{
    (void)arg;
    cluster_pause_ms(bench_size(20, 1000));
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

/* Three rates of adds, and two of bytes, of one round. */
enum { IDLE, BESIDE_FILE, BESIDE_SAVE, FILE_RATE, SAVE_RATE, RATES };

static void save_in_turn(struct world *world, uint64_t samples[RATES][ROUNDS],
                         uint64_t round)
{
    double mib = (double)count_large_bytes() / (1 << 20);
    double plain_s;
    double save_s;

    samples[IDLE][round] =
        (uint64_t)adder_rate_beside(&world->adder, wait_a_while, world, &plain_s);
    samples[BESIDE_FILE][round] =
        (uint64_t)adder_rate_beside(&world->adder, write_plain_file, world, &plain_s);
    samples[BESIDE_SAVE][round] =
        (uint64_t)adder_rate_beside(&world->adder, save_checkpoint, world, &save_s);
    samples[FILE_RATE][round] = (uint64_t)(mib / plain_s);
    samples[SAVE_RATE][round] = (uint64_t)(mib / save_s);
}

static void measure(struct world *world)
{
    uint64_t rounds = bench_size(1, ROUNDS);
    uint64_t samples[RATES][ROUNDS];
    double rates[RATES];

    for (uint64_t i = 0; i < rounds; i++)
        save_in_turn(world, samples, i);
    for (int i = 0; i < RATES; i++)
        rates[i] = (double)bench_median(samples[i], rounds);
    report("a plain file, flushed", rates[FILE_RATE], "MiB/s", 0);
    report("a checkpoint", rates[SAVE_RATE], "MiB/s", rates[FILE_RATE]);
    report("adds without a checkpoint", rates[IDLE], "1/s", 0);
    report("adds beside the plain file", rates[BESIDE_FILE], "1/s", 0);
    report("adds beside the checkpoint", rates[BESIDE_SAVE], "1/s", rates[IDLE]);
}

/* ---- Increments of a table ---- */

enum { DIM = 16, FILLED = 1 << 14 /* rows that are set at a time */ };

static uint64_t count_rows(void)
{
    return bench_size(1 << 12, UINT64_C(1) << 22);
}

/* Set rows of `count` ids, which are `every` apart. */
static void set_rows(mu_table *table, uint64_t count, uint64_t every, float number)
{
    static uint64_t ids[FILLED];
    static float rows[FILLED * DIM];
    mu_error error;

    for (size_t i = 0; i < FILLED * DIM; i++)
        rows[i] = number;
    for (uint64_t first = 0; first < count; first += FILLED) {
        uint64_t some = count - first < FILLED ? count - first : FILLED;

        for (uint64_t i = 0; i < some; i++)
            ids[i] = (first + i) * every;
        cluster_check(mu_table_insert(table, ids, rows, some, -1, &error), &error);
    }
}

/* Returns how long it took; the path is the caller's. */
static double save_table(const struct world *world, mu_table *table, uint64_t step,
                         const char *base, char **ret_path)
{
    uint64_t start_ns = bench_now_ns();
    mu_checkpoint_options options;
    mu_error error;

    mu_checkpoint_options_init(&options);
    options.directory = world->directory;
    options.name = "table";
    options.tables = &table;
    options.tables_count = 1;
    options.base = base;
    cluster_check(mu_checkpoint_save(&options, step, NULL, 0, NULL, &error, ret_path),
                  &error);
    return (double)(bench_now_ns() - start_ns) / 1e9;
}

/* 1 % of the rows change between two saves. */
static void measure_increments(struct world *world)
{
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_ADAGRAD, 0.1);
    const mu_table_spec spec = {.name = "emb", .dim = DIM, .optimizer = &optimizer};
    struct bench_line line = {.bench = "checkpoint",
                              .metric = "an increment of 1 % of the rows",
                              .unit = "of a full one's time",
                              .target = 0.05,
                              .less_is_more = true};
    char *base = NULL;
    char *path = NULL;
    mu_table *table;
    mu_error error;
    double full_s;

    cluster_check(mu_table_open(world->node, &spec, -1, &error, &table), &error);
    set_rows(table, count_rows(), 1, 1);
    full_s = save_table(world, table, 1, NULL, &base);
    set_rows(table, count_rows() / 100, 100, 2);
    line.value = save_table(world, table, 2, base, &path) / full_s;
    bench_report(&line);
    report("rows saved in full",
           (double)count_rows() * 2 * DIM * sizeof(float) / (1 << 20) / full_s, "MiB/s",
           0);
    mu_table_close(table);
    free(base);
    free(path);
}

int main(int argc, char **argv)
{
    struct world world = {.node = NULL};

    if (cluster_is_task(argc, argv))
        return cluster_play_server(argv);
    begin_world(&world);
    measure(&world);
    measure_increments(&world);
    remove_all(world.directory);
    end_world(&world);
    return 0;
}
