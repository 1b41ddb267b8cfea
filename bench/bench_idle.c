/* An idle worker, connected to its chief: resident memory, threads, and how often any of
 * its threads wakes up, beside heartbeats (which are set to one a minute here). It speaks
 * TLS. */
#include "bench/cluster.h"

#include <dirent.h>

static int play_worker(char **argv)
{
    mu_node_options options;
    mu_node *node;

    mu_node_options_init(&options);
    options.heartbeat_ms = 60000;
    options.silence_ms = 180000;
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

/* Over all threads of a process: how often one of them went to sleep and was woken. */
static uint64_t wakes(pid_t pid)
{
    char path[300];
    uint64_t sum = 0;
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    if (dir == NULL)
        cluster_die(path, "cannot be read");
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%d/task/%.200s/status", (int)pid,
                       entry->d_name);
        sum += cluster_number_in(path, "voluntary_ctxt_switches:");
    }
    (void)closedir(dir);
    return sum;
}

static void report(const char *metric, double value, const char *unit, double target)
{
    struct bench_line line = {.bench = "idle",
                              .metric = metric,
                              .value = value,
                              .unit = unit,
                              .target = target,
                              .less_is_more = true};

    bench_report(&line);
}

int main(int argc, char **argv)
{
    unsigned seconds = (unsigned)bench_size(0, 10);
    mu_node_options options;
    mu_coordinator *coordinator;
    struct cluster cluster;
    mu_error error;
    mu_node *node;
    uint64_t before;

    if (cluster_is_task(argc, argv))
        return play_worker(argv);
    (void)setenv(CLUSTER_TLS_VARIABLE, "1", 1);
    cluster_make(&cluster, 1, 0);
    cluster_start(&cluster, "worker", 0);
    mu_node_options_init(&options);
    options.heartbeat_ms = 60000;
    options.silence_ms = 180000;
    node = cluster_open(cluster.json, "chief", 0, &options);
    if (mu_coordinator_open(node, 5000, &error, &coordinator) != 0 ||
        mu_coordinator_schedule(coordinator, "absent", NULL, -1, &error, NULL) != 0 ||
        mu_coordinator_join(coordinator, 10000, &error) != -MU_ENOTFOUND)
        cluster_die("chief", error.message);
    sleep(seconds / 5);
    before = wakes(cluster.children[0]);
    sleep(seconds);
    if (seconds > 0)
        report("wakes", (double)(wakes(cluster.children[0]) - before) / seconds,
               "wakes/s", 2.0);
    report("resident", cluster_resident_mib(cluster.children[0]), "MiB", 6.0);
    report("resident, without pages of files",
           cluster_status_of(cluster.children[0], "RssAnon:") / 1024.0, "MiB", 0.0);
    report("threads", cluster_status_of(cluster.children[0], "Threads:"), "threads", 0.0);
    mu_coordinator_close(coordinator);
    (void)mu_node_close(node, 1000, &error);
    cluster_stop(&cluster);
    return 0;
}
