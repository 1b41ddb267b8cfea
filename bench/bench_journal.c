/* A chief with a journal of a million named closures and more, over tcp, with a worker:
 * how long the longest turn of its loop is while they finish and the journal is compacted
 * again and again, what each finished one costs in memory and in the file, and how long
 * the chief takes to start over the file, and its longest turn meanwhile.
 *
 * The chief runs on a loop of this program, which measures each iteration without the
 * time that it waits for events. */
#include "bench/cluster.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <uv.h>

enum { AWAIT_LOOKS = 6000 };

static const uint64_t millions[] = {1, 4, 10};

struct chief {
    uv_loop_t loop;
    uv_prepare_t turn;
    uv_async_t stop;
    pthread_t thread;
    uint64_t last_ns; /* of the last iteration: its end, and what was idle */
    uint64_t last_idle_ns;
    uint64_t last_cpu_ns;
    atomic_uint_fast64_t longest_ns;
    atomic_uint_fast64_t longest_cpu_ns; /* without what other processes took */
    mu_node *node;
    const char *json;
    const char *journal;
    sem_t opened;
};

static int nothing(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

static void report(const char *what, uint64_t number, double value, const char *unit,
                   double target)
{
    char metric[128];
    const struct bench_line line = {.bench = "journal",
                                    .metric = metric,
                                    .value = value,
                                    .unit = unit,
                                    .target = target,
                                    .less_is_more = true};

    (void)snprintf(metric, sizeof metric, "%s, %llu million named closures", what,
                   (unsigned long long)number);
    bench_report(&line);
}

/* By the clock, and by the processor time that the loop has used. */
static void report_turns(const char *when, uint64_t million, struct chief *chief)
{
    char what[80];

    (void)snprintf(what, sizeof what, "longest turn %s", when);
    report(what, million, (double)atomic_load(&chief->longest_ns) / 1e6, "ms", 20);
    (void)snprintf(what, sizeof what, "longest turn %s, processor time", when);
    report(what, million, (double)atomic_load(&chief->longest_cpu_ns) / 1e6, "ms", 20);
}

/* What the program has allocated. */
static uint64_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* ---- the loop ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void on_turn(uv_prepare_t *handle)
{
    struct chief *chief = handle->data;
    uint64_t now_ns = bench_now_ns();
    uint64_t idle_ns = uv_metrics_idle_time(&chief->loop);
    uint64_t busy_ns = now_ns - chief->last_ns - (idle_ns - chief->last_idle_ns);
    uint64_t now_cpu_ns = cpu_ns();
    uint64_t used_ns = now_cpu_ns - chief->last_cpu_ns;

    if (chief->last_ns != 0 && busy_ns > atomic_load(&chief->longest_ns))
        atomic_store(&chief->longest_ns, busy_ns);
    if (chief->last_ns != 0 && used_ns > atomic_load(&chief->longest_cpu_ns))
        atomic_store(&chief->longest_cpu_ns, used_ns);
    chief->last_ns = now_ns;
    chief->last_cpu_ns = now_cpu_ns;
    chief->last_idle_ns = idle_ns;
}

static void on_closed(void *user)
{
    struct chief *chief = user;

    uv_close((uv_handle_t *)&chief->turn, NULL);
    uv_close((uv_handle_t *)&chief->stop, NULL);
}

static void on_stop(uv_async_t *handle)
{
    struct chief *chief = handle->data;

    mu_node_close_async(chief->node, on_closed, chief);
}

static void open_here(struct chief *chief)
{
    mu_node_options options;

    (void)uv_loop_init(&chief->loop);
    (void)uv_loop_configure(&chief->loop, UV_METRICS_IDLE_TIME);
    (void)uv_prepare_init(&chief->loop, &chief->turn);
    (void)uv_async_init(&chief->loop, &chief->stop, on_stop);
    chief->turn.data = chief->stop.data = chief;
    mu_node_options_init(&options);
    options.journal = chief->journal;
    options.loop = &chief->loop;
    on_turn(&chief->turn); /* the open is part of the first one */
    chief->node = cluster_open(chief->json, "chief", 0, &options);
    (void)uv_prepare_start(&chief->turn, on_turn);
}

static void *run_loop(void *arg)
{
    struct chief *chief = arg;

    open_here(chief);
    (void)sem_post(&chief->opened);
    (void)uv_run(&chief->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void open_chief(struct chief *chief, const char *json, const char *journal)
{
    memset(chief, 0, sizeof *chief);
    chief->json = json;
    chief->journal = journal;
    (void)sem_init(&chief->opened, 0, 0);
    if (pthread_create(&chief->thread, NULL, run_loop, chief) != 0)
        cluster_die("thread", "cannot be started");
    (void)sem_wait(&chief->opened);
}

static void forget_turns(struct chief *chief)
{
    atomic_store(&chief->longest_ns, 0);
    atomic_store(&chief->longest_cpu_ns, 0);
}

/* Its status says so until it is read. */
static void await_reading(struct chief *chief)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    bool reads = true;

    for (int i = 0; i < AWAIT_LOOKS && reads; i++) {
        mu_value *status;
        mu_error error;

        if (mu_node_status(chief->node, 20000, &error, &status) != 0)
            cluster_die("status", error.message);
        reads = mu_value_find(status, "journal") != NULL;
        mu_value_free(status);
        if (reads)
            (void)nanosleep(&pause, NULL);
    }
    if (reads)
        cluster_die("journal", "was not read within five minutes");
}

static void close_chief(struct chief *chief)
{
    (void)uv_async_send(&chief->stop);
    (void)pthread_join(chief->thread, NULL);
    (void)uv_loop_close(&chief->loop);
}

/* ---- the closures ---- */

static void run_named(struct chief *chief, const char *prefix, uint64_t count)
{
    mu_closure_options named;
    mu_coordinator *c;
    char name[32];
    mu_error error;

    if (mu_coordinator_open(chief->node, 20000, &error, &c) != 0)
        cluster_die("coordinator", error.message);
    mu_closure_options_init(&named);
    named.name = name;
    for (uint64_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%s %llu", prefix, (unsigned long long)i);
        if (mu_coordinator_schedule_with(c, "nothing", NULL, &named, -1, &error, NULL) !=
            0)
            cluster_die("schedule", error.message);
    }
    if (mu_coordinator_join(c, -1, &error) != 0)
        cluster_die("join", error.message);
    mu_coordinator_close(c);
}

/* What the journal says of its compaction: the name of the new file is gone. */
static void await_compaction(const char *journal)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    char path[BENCH_PATH_MAX];
    struct stat status;

    (void)snprintf(path, sizeof path, "%s.new", journal);
    for (int i = 0; i < AWAIT_LOOKS; i++) {
        (void)nanosleep(&pause, NULL);
        if (stat(path, &status) != 0)
            return;
    }
    cluster_die("compaction", "has not ended within ten minutes");
}

static uint64_t file_bytes(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static void bench_million(const char *json, const char *journal, uint64_t million)
{
    uint64_t count = bench_size(1000, million * 1000000);
    uint64_t before;
    uint64_t start_ns;
    struct chief chief;

    (void)unlink(journal);
    open_chief(&chief, json, journal);
    /* The tables of the queue have grown before it begins. */
    run_named(&chief, "warm", bench_size(1000, 300000));
    before = bytes_in_use();
    forget_turns(&chief);
    run_named(&chief, "row", count);
    report_turns("while they finish", million, &chief);
    await_compaction(journal);
    report("memory of each", million,
           ((double)bytes_in_use() - (double)before) / (double)count, "bytes", 100);
    close_chief(&chief);
    start_ns = bench_now_ns();
    open_chief(&chief, json, journal);
    await_reading(&chief);
    report("the chief's start over its journal", million,
           (double)(bench_now_ns() - start_ns) / 1e9, "s", 0);
    report_turns("while it starts", million, &chief);
    forget_turns(&chief);
    await_compaction(journal);
    report("file of each, compacted", million,
           (double)file_bytes(journal) / (double)count, "bytes", 0);
    report_turns("while that is compacted", million, &chief);
    close_chief(&chief);
    (void)unlink(journal);
}

_Noreturn static void play_worker(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (mu_node_register_function(node, "nothing", nothing, NULL, MU_FUNCTION_INLINE) !=
        0)
        cluster_die("worker", "cannot register");
    for (;;)
        (void)mu_node_wait_job(node, -1, NULL);
}

int main(int argc, char **argv)
{
    const char *only = getenv("MUSTER_BENCH_MILLIONS");
    char journal[] = "/tmp/muster-bench-journal-XXXXXX";
    struct cluster cluster;
    int fd;

    if (cluster_is_task(argc, argv))
        play_worker(argv);
    fd = mkstemp(journal);
    if (fd < 0)
        cluster_die("journal", "cannot be made");
    (void)close(fd);
    cluster_tune_malloc();
    cluster_make(&cluster, 1, 0);
    cluster_start(&cluster, "worker", 0);
    for (size_t i = 0; i < sizeof millions / sizeof millions[0]; i++)
        if (only == NULL || (uint64_t)atoi(only) == millions[i])
            bench_million(cluster.json, journal, millions[i]);
    cluster_stop(&cluster);
    (void)unlink(journal);
    return 0;
}
