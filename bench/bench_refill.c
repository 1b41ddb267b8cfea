/* A backup that is filled again, and partitions that are moved, while training goes on:
 * variables on two parameter servers in other processes, and small adds by threads. A
 * server is killed, and a new process of it gets copies of all; or it is drained, and the
 * other one gets its half. The limit is the rate of the adds without that, and beside two
 * processes that do no more than write as many bytes to a socket and read them into new
 * memory.
 *
 *     bench_refill [refill|move] */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */

#include "bench/adder.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { SERVERS = 2, VARIABLES = 8, SHARDS = 16, SMALL_ELEMENTS = 256, ROUNDS_MAX = 5 };

struct world {
    struct cluster cluster;
    mu_node *node;
    mu_coordinator *coordinator;
    mu_variable *large[VARIABLES];
    struct adder adder;
};

static uint64_t count_filled_bytes(void)
{
    return bench_size(1 << 20, UINT64_C(1) << 30);
}

static size_t count_variable_bytes(void)
{
    return (size_t)(count_filled_bytes() / VARIABLES);
}

/* Pages that were never written cost less to read. */
static void assign_all(struct world *world)
{
    size_t bytes = count_variable_bytes();
    float *data = malloc(bytes);
    mu_error error;

    if (data == NULL)
        cluster_die("data", "out of memory");
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        data[i] = (float)(i % 1000);
    for (int i = 0; i < VARIABLES; i++)
        cluster_check(mu_variable_assign(world->large[i], data, bytes, 60000, &error),
                      &error);
    free(data);
}

static void begin_filled(struct world *world, unsigned backups)
{
    mu_node_options options;
    mu_error error;
    char name[24];

    mu_node_options_init(&options);
    options.backups = backups;
    world->node = cluster_begin(&world->cluster, SERVERS, &options);
    cluster_check(mu_coordinator_open(world->node, 10000, &error, &world->coordinator),
                  &error);
    for (int i = 0; i < VARIABLES; i++) {
        (void)snprintf(name, sizeof name, "large%d", i);
        world->large[i] = adder_open_floats(
            world->node, name, count_variable_bytes() / sizeof(float), SHARDS);
    }
    assign_all(world);
    adder_begin(&world->adder, world->node, SMALL_ELEMENTS, SERVERS);
    cluster_await(world->node, cluster_is_whole);
}

static void end_filled(struct world *world)
{
    adder_end(&world->adder);
    for (int i = 0; i < VARIABLES; i++)
        mu_variable_close(world->large[i]);
    mu_coordinator_close(world->coordinator);
    cluster_end(&world->cluster, world->node);
}

/* ---- What is measured ---- */

static void wait_a_while(void *arg)
{
    (void)arg;
    cluster_pause_ms(bench_size(20, 2000));
}

static void await_copies(void *arg)
{
    cluster_await(((struct world *)arg)->node, cluster_is_whole);
}

static void drain_last(void *arg)
{
    const struct world *world = arg;
    mu_error error;

    cluster_check(mu_coordinator_drain_task(world->coordinator, "ps", SERVERS - 1, 60000,
                                            &error),
                  &error);
}

/* ---- The limit: a socket, and two processes that do nothing else ---- */

enum { PLAIN_PIECE_BYTES = 1 << 17, PLAIN_PIECES = 128 };

static int write_plain(int socket, size_t left)
{
    char *data = malloc((size_t)PLAIN_PIECES * PLAIN_PIECE_BYTES);
    ssize_t rv = 1;

    if (data == NULL)
        return EXIT_FAILURE;
    memset(data, 1, (size_t)PLAIN_PIECES * PLAIN_PIECE_BYTES);
    for (size_t i = 0; left > 0 && rv > 0; i = (i + 1) % PLAIN_PIECES) {
        rv = write(socket, data + i * PLAIN_PIECE_BYTES,
                   left < PLAIN_PIECE_BYTES ? left : PLAIN_PIECE_BYTES);
        left -= rv > 0 ? (size_t)rv : 0;
    }
    free(data);
    return left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int read_plain(int socket, size_t left)
{
    char *data =
        mmap(NULL, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ssize_t rv = 1;

    if (data == MAP_FAILED)
        return EXIT_FAILURE;
#ifdef MADV_HUGEPAGE
    (void)madvise(data, left, MADV_HUGEPAGE);
#endif
    while (left > 0 && rv > 0) {
        rv = read(socket, data, left < PLAIN_PIECE_BYTES ? left : PLAIN_PIECE_BYTES);
        data += rv > 0 ? rv : 0;
        left -= rv > 0 ? (size_t)rv : 0;
    }
    return left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* argv is {self, "write" or "read", socket}. */
static bool is_plain(int argc, char **argv)
{
    return argc == 3 && (strcmp(argv[1], "write") == 0 || strcmp(argv[1], "read") == 0);
}

static int play_plain(char **argv)
{
    int socket = atoi(argv[2]);
    size_t bytes = (size_t)count_filled_bytes();

    return argv[1][0] == 'w' ? write_plain(socket, bytes) : read_plain(socket, bytes);
}

static pid_t start_plain(const char *role, int socket)
{
    char number[16];
    pid_t child = fork();

    if (child < 0)
        cluster_die("fork", strerror(errno));
    if (child > 0) {
        close(socket);
        return child;
    }
    (void)snprintf(number, sizeof number, "%d", socket);
    execl("/proc/self/exe", "bench_refill", role, number, (char *)NULL);
    _exit(EXIT_FAILURE);
}

static void connect_plain(int sockets[2])
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    int listener;

    (void)cluster_free_port(&listener);
    sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(sockets[0], (const struct sockaddr *)&address, sizeof address) != 0)
        cluster_die("socket", strerror(errno));
    sockets[1] = accept(listener, NULL, NULL);
    close(listener);
}

static void copy_plainly(void *arg)
{
    int sockets[2];
    pid_t children[2];
    int status;

    (void)arg;
    connect_plain(sockets);
    children[0] = start_plain("write", sockets[0]);
    children[1] = start_plain("read", sockets[1]);
    for (int i = 0; i < 2; i++)
        if (waitpid(children[i], &status, 0) != children[i] || status != 0)
            cluster_die("plain copy", "it ended early");
}

static double plain_cpu_s(const struct world *world)
{
    struct rusage usage;

    (void)world;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- Rounds ---- */

static double servers_cpu_s(const struct world *world)
{
    double s = 0;

    for (int i = 0; i < SERVERS; i++)
        s += cluster_cpu_s(world->cluster.children[i]);
    return s;
}

/* Of each round. */
struct filled {
    uint64_t mb_per_s[ROUNDS_MAX];
    uint64_t permille[ROUNDS_MAX]; /* of the adds without */
    uint64_t cpu_ms[ROUNDS_MAX];   /* of both processes, for each GB */
};

/* How the copy goes that `work` does or awaits. What servers do for the adds is in their
 * processor time, too. */
static void note_filled(struct filled *filled, uint64_t round, struct world *world,
                        double bytes, double before, void (*work)(void *arg),
                        double (*get_cpu_s)(const struct world *world))
{
    double cpu_s = get_cpu_s(world);
    double s;
    double during = adder_rate_beside(&world->adder, work, world, &s);

    filled->mb_per_s[round] = (uint64_t)(bytes / s / 1e6);
    filled->permille[round] = (uint64_t)(1000 * during / before);
    filled->cpu_ms[round] = (uint64_t)((get_cpu_s(world) - cpu_s) * 1e3 / (bytes / 1e9));
}

static void report_filled(struct filled *filled, uint64_t rounds, const char *rate,
                          const char *share)
{
    bench_report(&(struct bench_line){
        .bench = "refill",
        .metric = rate,
        .value = (double)bench_median(filled->mb_per_s, rounds) / 1e3,
        .unit = "GB/s",
        .target = 1});
    bench_report(&(struct bench_line){
        .bench = "refill",
        .metric = share,
        .value = (double)bench_median(filled->permille, rounds) / 1e3,
        .unit = "of 1",
        .target = 0.7});
    bench_report(
        &(struct bench_line){.bench = "refill",
                             .metric = "processor time of both processes for that",
                             .value = (double)bench_median(filled->cpu_ms, rounds) / 1e3,
                             .unit = "s/GB"});
}

/* All partitions are on both servers. */
static void measure_refill(void)
{
    uint64_t rounds = bench_size(1, ROUNDS_MAX);
    struct world world = {.node = NULL};
    struct filled filled;
    struct filled plain;
    double before;
    double s;

    begin_filled(&world, 1);
    for (uint64_t i = 0; i < rounds; i++) {
        before = adder_rate_beside(&world.adder, wait_a_while, NULL, &s);
        note_filled(&plain, i, &world, (double)count_filled_bytes(), before, copy_plainly,
                    plain_cpu_s);
        cluster_kill_server(&world.cluster, 1);
        cluster_await(world.node, cluster_is_degraded);
        cluster_restart_server(&world.cluster, 1);
        cluster_await(world.node, cluster_is_refilled);
        note_filled(&filled, i, &world, (double)count_filled_bytes(), before,
                    await_copies, servers_cpu_s);
        cluster_pause_ms(bench_size(20, 1000));
    }
    end_filled(&world);
    report_filled(&plain, rounds, "two processes copy as much",
                  "adds beside them, to those before");
    report_filled(&filled, rounds, "a backup is filled again",
                  "adds meanwhile, to those before");
}

static void measure_move(void)
{
    uint64_t rounds = bench_size(1, ROUNDS_MAX);
    struct filled filled;

    for (uint64_t i = 0; i < rounds; i++) {
        struct world world = {.node = NULL};
        double before;
        double s;

        begin_filled(&world, 0);
        before = adder_rate_beside(&world.adder, wait_a_while, NULL, &s);
        note_filled(&filled, i, &world, (double)count_filled_bytes() / SERVERS, before,
                    drain_last, servers_cpu_s);
        end_filled(&world);
    }
    report_filled(&filled, rounds, "half of the partitions are moved",
                  "adds meanwhile, to those before the move");
}

int main(int argc, char **argv)
{
    if (is_plain(argc, argv))
        return play_plain(argv);
    if (cluster_is_task(argc, argv))
        return cluster_play_server(argv);
    if (argc == 1 || strcmp(argv[1], "refill") == 0)
        measure_refill();
    if (argc == 1 || strcmp(argv[1], "move") == 0)
        measure_move();
    return 0;
}
