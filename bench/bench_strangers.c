/* What strangers cost a cluster at work: closures a second, and the chief's memory, with
 * thousands of connections that say nothing, and others that come all the time with
 * garbage, against the same cluster without them, in turns. Over TLS. */
#include "bench/cluster.h"

#include <poll.h>
#include <sys/resource.h>

enum {
    WORKERS = 2,
    OUTSTANDING = 64,
    SILENT = 5000,
    GARBAGE_EACH_MS = 5, /* one connection, with garbage */
    TURNS_MAX = 5
};

static const char garbage[] = "GET / HTTP/1.1\r\nHost: nobody\r\n\r\n";

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("strangers", error->message);
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
    if (mu_node_register_function(node, "f", no_op, NULL, MU_FUNCTION_INLINE) != 0)
        cluster_die("worker", "cannot register");
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

/* ---- the crowd: a process of its own ---- */

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0)
        (void)connect(fd, (const struct sockaddr *)&address, sizeof address);
    return fd;
}

static void say_garbage(int port)
{
    int fd = connect_to(port);
    struct pollfd connected = {.fd = fd, .events = POLLOUT};

    if (fd < 0)
        return;
    if (poll(&connected, 1, 100) == 1)
        (void)send(fd, garbage, sizeof garbage - 1, MSG_NOSIGNAL);
    (void)close(fd);
}

/* Ends when `control` is closed. A connection that the chief has ended is made again. */
static void crowd(int port, int control)
{
    static int fds[SILENT];
    const int count = (int)bench_size(50, SILENT);
    struct rlimit limit;
    int next = 0;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (int i = 0; i < count; i++)
        fds[i] = connect_to(port);
    for (;;) {
        struct pollfd ended = {.fd = control, .events = POLLIN};

        if (poll(&ended, 1, GARBAGE_EACH_MS) != 0)
            _exit(0);
        say_garbage(port);
        if (fds[next] >= 0)
            (void)close(fds[next]);
        fds[next] = connect_to(port);
        next = (next + 1) % count;
    }
}

static pid_t crowd_begin(int port, int *ret_control)
{
    pid_t parent = getpid();
    int ends[2];
    pid_t pid;

    if (pipe(ends) != 0 || (pid = fork()) < 0)
        cluster_die("crowd", "cannot begin");
    if (pid == 0) {
        (void)close(ends[1]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            crowd(port, ends[0]);
        _exit(1);
    }
    (void)close(ends[0]);
    *ret_control = ends[1];
    return pid;
}

static void crowd_end(pid_t pid, int control)
{
    (void)close(control);
    (void)waitpid(pid, NULL, 0);
}

/* ---- the cluster at work ---- */

static double closures_rate(mu_coordinator *coordinator)
{
    uint64_t count = bench_size(2000, 1000000);
    mu_error error;
    uint64_t start_ns = bench_now_ns();

    for (uint64_t i = 0; i < count; i++)
        check(mu_coordinator_schedule(coordinator, "f", NULL, -1, &error, NULL), &error);
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    return bench_rate(count, start_ns, bench_now_ns());
}

static int port_of(const char *json)
{
    const char *port = strstr(json, "127.0.0.1:");

    return port == NULL ? 0 : atoi(port + strlen("127.0.0.1:"));
}

static void report(uint64_t *alone, uint64_t *crowded, uint64_t turns, double grown_mib)
{
    double limit = (double)bench_median(alone, turns);
    const struct bench_line rate = {.bench = "strangers",
                                    .metric = "closures, 5,000 strangers at the chief",
                                    .unit = "closures/s",
                                    .value = (double)bench_median(crowded, turns),
                                    .limit = limit,
                                    .target = 0.9 * limit};
    const struct bench_line memory = {.bench = "strangers",
                                      .metric = "memory of the chief, more than without",
                                      .unit = "MiB",
                                      .value = grown_mib,
                                      .target = 16.0,
                                      .less_is_more = true};

    bench_report(&rate);
    bench_report(&memory);
}

int main(int argc, char **argv)
{
    const struct timespec moment = {.tv_nsec = bench_is_full() ? 500000000 : 1000000};
    uint64_t turns = bench_size(1, TURNS_MAX);
    uint64_t alone[TURNS_MAX];
    uint64_t crowded[TURNS_MAX];
    mu_coordinator *coordinator;
    struct cluster cluster;
    mu_node_options options;
    double before_mib;
    double most_mib = 0.0;
    double now_mib;
    mu_node *node;
    mu_error error;

    if (cluster_is_task(argc, argv))
        return play(argv);
    (void)setenv(CLUSTER_TLS_VARIABLE, "1", 1);
    cluster_tune_malloc();
    cluster_make(&cluster, WORKERS, 0);
    for (int i = 0; i < WORKERS; i++)
        cluster_start(&cluster, "worker", i);
    mu_node_options_init(&options);
    options.window = OUTSTANDING;
    node = cluster_open(cluster.json, "chief", 0, &options);
    check(mu_coordinator_open(node, 30000, &error, &coordinator), &error);
    for (uint64_t i = 0; i < turns; i++)
        (void)closures_rate(coordinator);
    before_mib = cluster_resident_mib(getpid());
    for (uint64_t i = 0; i < turns; i++) {
        int control;
        pid_t pid;

        alone[i] = (uint64_t)closures_rate(coordinator);
        pid = crowd_begin(port_of(cluster.json), &control);
        (void)nanosleep(&moment, NULL);
        crowded[i] = (uint64_t)closures_rate(coordinator);
        now_mib = cluster_resident_mib(getpid());
        most_mib = now_mib > most_mib ? now_mib : most_mib;
        crowd_end(pid, control);
    }
    report(alone, crowded, turns, most_mib - before_mib);
    mu_coordinator_close(coordinator);
    check(mu_node_close(node, 5000, &error), &error);
    cluster_stop(&cluster);
    return 0;
}
