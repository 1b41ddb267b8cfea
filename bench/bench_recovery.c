/* How long it takes until closures go on, with real processes over tcp.
 *
 *     killed   the worker that runs a closure is killed: until the closure begins on
 *              another one
 *     stopped  it is stopped (SIGSTOP): the same; what is heard of it decides
 *     restart  the chief is started anew over a journal of closures that have not
 *              finished: from the start of its process until so many of them have run
 *
 * The processes share a page of memory, where functions write down that they began. */
#include "bench/cluster.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum {
    WORKERS = 2,
    LOSSES_MAX = 25,
    RESTARTS_MAX = 5,
    HEARTBEAT_MS = 100,
    SILENCE_MS = 300,
    WAIT_MS = 20000,
    FIRST = 100 /* closures that have run after a restart */
};

struct page {
    atomic_uint_fast64_t began_ns; /* when the last run began */
    atomic_uint_fast64_t begun;    /* how many runs did */
    atomic_int runner;             /* the process of the last one */
    atomic_int released;           /* runs may end */
    atomic_uint_fast64_t filled;   /* 1: the journal is */
    atomic_uint_fast64_t counted;
    atomic_uint_fast64_t counted_ns; /* when FIRST were */
};

static struct page *page;
static char folder[] = "/tmp/muster-bench-XXXXXX";

static void pause_a_little(void)
{
    const struct timespec time = {.tv_nsec = 50000};

    (void)nanosleep(&time, NULL);
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("recovery", error->message);
}

/* ---- the page ---- */

static void page_path(char *out, size_t size, const char *of)
{
    if ((size_t)snprintf(out, size, "%s/page", of) >= size)
        cluster_die("page", "its path is too long");
}

/* Other processes find the folder in the environment. */
static void open_page(const char *of, int flags)
{
    char path[BENCH_PATH_MAX];
    void *memory;
    int fd;

    page_path(path, sizeof path, of);
    fd = open(path, O_RDWR | flags, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *page) != 0)
        cluster_die("page", "cannot be opened");
    memory = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        cluster_die("page", "cannot be mapped");
    page = memory;
    (void)close(fd);
}

static void await(const atomic_uint_fast64_t *counter, uint64_t number, const char *what)
{
    uint64_t end_ns = bench_now_ns() + (uint64_t)WAIT_MS * 1000000;

    while (atomic_load(counter) < number) {
        if (bench_now_ns() > end_ns)
            cluster_die(what, "took too long");
        pause_a_little();
    }
}

/* ---- what workers and chiefs do ---- */

static int hold(mu_run *run, void *user)
{
    (void)user;
    atomic_store(&page->began_ns, bench_now_ns());
    atomic_store(&page->runner, getpid());
    atomic_fetch_add(&page->begun, 1);
    while (atomic_load(&page->released) == 0 && !mu_run_cancelled(run))
        pause_a_little();
    return 0;
}

static int count(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    if (atomic_fetch_add(&page->counted, 1) + 1 == FIRST)
        atomic_store(&page->counted_ns, bench_now_ns());
    return 0;
}

static void set_options(mu_node_options *options)
{
    mu_node_options_init(options);
    options->heartbeat_ms = HEARTBEAT_MS;
    options->silence_ms = SILENCE_MS;
}

_Noreturn static void play_worker(char **argv)
{
    mu_node_options options;
    mu_node *node;

    set_options(&options);
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (mu_node_register_function(node, "hold", hold, NULL, 0) != 0 ||
        mu_node_register_function(node, "count", count, NULL, MU_FUNCTION_INLINE) != 0)
        cluster_die("worker", "cannot register");
    for (;;)
        (void)mu_node_wait_job(node, -1, NULL);
}

static void schedule_named(mu_coordinator *coordinator, const char *name,
                           int64_t deadline_ms, mu_remote_value **ret_value)
{
    mu_closure_options named;
    mu_error error;

    mu_closure_options_init(&named);
    named.name = name;
    named.deadline_ms = deadline_ms;
    check(mu_coordinator_schedule_with(coordinator, "count", NULL, &named, -1, &error,
                                       ret_value),
          &error);
}

/* The last one ends by its deadline, since there is no worker: what was written before is
 * in the file when that is told. */
static void fill_journal(mu_node *node)
{
    uint64_t closures = bench_size(1000, 100000);
    mu_coordinator *coordinator;
    mu_remote_value *last;
    mu_error error;
    char name[32];

    check(mu_coordinator_open(node, 5000, &error, &coordinator), &error);
    for (uint64_t i = 0; i < closures; i++) {
        (void)snprintf(name, sizeof name, "step %llu", (unsigned long long)i);
        schedule_named(coordinator, name, 0, NULL);
    }
    schedule_named(coordinator, "last", 1, &last);
    if (mu_remote_value_fetch(last, WAIT_MS, &error, NULL) != -MU_EDEADLINE)
        cluster_die("journal", "the last closure did not end by its deadline");
    atomic_store(&page->filled, 1);
}

/* A chief that finds a journal goes on with it without being asked. */
_Noreturn static void play_chief(char **argv, const char *of)
{
    char journal[BENCH_PATH_MAX];
    mu_node_options options;
    mu_node *node;

    (void)snprintf(journal, sizeof journal, "%s/journal", of);
    cluster_tune_malloc();
    set_options(&options);
    options.journal = journal;
    options.queue_max = 200000;
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (atomic_load(&page->filled) == 0)
        fill_journal(node);
    for (;;)
        (void)pause();
}

/* ---- losing workers ---- */

static uint64_t ready_workers(mu_node *node)
{
    const mu_value *tasks;
    mu_value *status;
    uint64_t found = 0;
    mu_error error;

    check(mu_node_status(node, 5000, &error, &status), &error);
    tasks = mu_value_find(status, "tasks");
    for (size_t i = 0; i < mu_value_count(tasks); i++)
        found += mu_value_find(mu_value_at(tasks, i), "threads") != NULL;
    mu_value_free(status);
    return found;
}

static void await_workers(mu_node *node)
{
    uint64_t end_ns = bench_now_ns() + (uint64_t)WAIT_MS * 1000000;

    while (ready_workers(node) < WORKERS) {
        if (bench_now_ns() > end_ns)
            cluster_die("workers", "took too long to join");
        pause_a_little();
    }
}

static void end_child(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void start_again(struct cluster *cluster, pid_t pid)
{
    for (int i = 0; i < WORKERS; i++) {
        if (cluster->children[i] != pid)
            continue;
        end_child(pid);
        cluster_start(cluster, "worker", i);
        cluster->children[i] = cluster->children[--cluster->children_count];
    }
}

/* Nanoseconds from the signal until the closure runs elsewhere. */
static uint64_t lose_one(struct cluster *cluster, mu_node *node, mu_coordinator *c,
                         int sign)
{
    uint64_t begun = atomic_load(&page->begun);
    mu_remote_value *value;
    uint64_t start_ns;
    mu_error error;
    pid_t victim;

    await_workers(node);
    atomic_store(&page->released, 0);
    check(mu_coordinator_schedule(c, "hold", NULL, -1, &error, &value), &error);
    await(&page->begun, begun + 1, "the first run");
    victim = atomic_load(&page->runner);
    start_ns = bench_now_ns();
    (void)kill(victim, sign);
    await(&page->begun, begun + 2, "the second run");
    atomic_store(&page->released, 1);
    check(mu_remote_value_fetch(value, 5000, &error, NULL), &error);
    mu_remote_value_free(value);
    start_again(cluster, victim);
    return atomic_load(&page->began_ns) - start_ns;
}

static void report(const char *metric, uint64_t ns, double target_ms)
{
    const struct bench_line line = {.bench = "recovery",
                                    .metric = metric,
                                    .value = (double)ns / 1e6,
                                    .unit = "ms",
                                    .target = target_ms,
                                    .less_is_more = true};

    bench_report(&line);
}

static void bench_losses(struct cluster *cluster, mu_node *node, mu_coordinator *c)
{
    const struct {
        int sign;
        double target_ms;
        const char *median;
        const char *worst;
    } rows[] = {
        {SIGKILL, 50, "worker killed, until it runs elsewhere, median",
         "worker killed, until it runs elsewhere, worst of 25"},
        {SIGSTOP, 500, "worker stopped (silence 300 ms), median",
         "worker stopped (silence 300 ms), worst of 25"},
    };
    uint64_t rounds = bench_size(1, LOSSES_MAX);
    uint64_t samples[LOSSES_MAX];

    for (size_t i = 0; i < 2; i++) {
        for (uint64_t j = 0; j < rounds; j++)
            samples[j] = lose_one(cluster, node, c, rows[i].sign);
        report(rows[i].median, bench_median(samples, rounds), rows[i].target_ms);
        report(rows[i].worst, bench_percentile(samples, rounds, 100), rows[i].target_ms);
    }
}

static void lose_workers(void)
{
    struct cluster cluster;
    mu_node_options options;
    mu_coordinator *c;
    mu_error error;
    mu_node *node;

    cluster_make(&cluster, WORKERS, 0);
    for (int i = 0; i < WORKERS; i++)
        cluster_start(&cluster, "worker", i);
    set_options(&options);
    node = cluster_open(cluster.json, "chief", 0, &options);
    check(mu_coordinator_open(node, 5000, &error, &c), &error);
    bench_losses(&cluster, node, c);
    mu_coordinator_close(c);
    check(mu_node_close(node, 1000, &error), &error);
    cluster_stop(&cluster);
}

/* ---- the chief's restart ---- */

static void copy_file(const char *from, const char *to)
{
    static char block[1 << 16];
    char path[BENCH_PATH_MAX];
    FILE *source;
    FILE *target;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%s", folder, from);
    source = fopen(path, "rb");
    (void)snprintf(path, sizeof path, "%s/%s", folder, to);
    target = fopen(path, "wb");
    if (source == NULL || target == NULL)
        cluster_die("journal", "cannot be copied");
    while ((size = fread(block, 1, sizeof block, source)) > 0)
        if (fwrite(block, 1, size, target) != size)
            cluster_die("journal", "cannot be copied");
    (void)fclose(source);
    if (fclose(target) != 0)
        cluster_die("journal", "cannot be copied");
}

static void make_journal(struct cluster *cluster)
{
    cluster_start(cluster, "chief", 0);
    await(&page->filled, 1, "filling the journal");
    end_child(cluster->children[--cluster->children_count]);
    copy_file("journal", "filled");
}

static uint64_t restart(struct cluster *cluster)
{
    uint64_t start_ns;

    copy_file("filled", "journal");
    atomic_store(&page->counted, 0);
    start_ns = bench_now_ns();
    cluster_start(cluster, "chief", 0);
    await(&page->counted, FIRST, "a restarted chief");
    end_child(cluster->children[--cluster->children_count]);
    return atomic_load(&page->counted_ns) - start_ns;
}

static void restart_chief(void)
{
    uint64_t rounds = bench_size(1, RESTARTS_MAX);
    uint64_t samples[RESTARTS_MAX];
    struct cluster cluster;

    cluster_make(&cluster, WORKERS, 0);
    make_journal(&cluster);
    for (int i = 0; i < WORKERS; i++)
        cluster_start(&cluster, "worker", i);
    for (uint64_t i = 0; i < rounds; i++)
        samples[i] = restart(&cluster);
    report("chief restarted, 100,000 closures in its journal, until 100 have run, median",
           bench_median(samples, rounds), 2000);
    report("chief restarted, 100,000 closures in its journal, until 100 have run, worst",
           bench_percentile(samples, rounds, 100), 2000);
    cluster_stop(&cluster);
}

static void remove_files(void)
{
    const char *names[] = {"page", "journal", "journal.new", "filled"};
    char path[BENCH_PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

int main(int argc, char **argv)
{
    const char *of = getenv("MUSTER_BENCH_FOLDER");

    if (cluster_is_task(argc, argv) && of != NULL) {
        open_page(of, 0);
        if (strcmp(argv[2], "chief") == 0)
            play_chief(argv, of);
        play_worker(argv);
    }
    if (mkdtemp(folder) == NULL || setenv("MUSTER_BENCH_FOLDER", folder, 1) != 0)
        cluster_die("folder", "cannot be made");
    (void)atexit(remove_files);
    open_page(folder, O_CREAT);
    lose_workers();
    restart_chief();
    return 0;
}
