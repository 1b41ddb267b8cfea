/* How long writes pause when a parameter server of a cluster with backups is lost.
 * Threads write all partitions again and again; the pause is the longest of these writes:
 * it lasts from before the signal until the last partition is served elsewhere. */
#include "bench/adder.h"

#include <string.h>

enum { PARTITIONS = 256, LOSSES_MAX = 16, HEARTBEAT_MS = 100, SILENCE_MS = 500 };

struct loss {
    const char *median;
    const char *longest;
    int servers;
    int signal;
    uint64_t losses;
    double median_target_ms; /* 0: none */
    double longest_target_ms;
};

static const struct loss rows[] = {
    {"one of 2 servers is killed: median pause of writes", "the longest", 2, SIGKILL, 16,
     100, 300},
    {"one of 4, which is primary of 64 partitions, is killed: median pause",
     "the longest pause", 4, SIGKILL, 16, 50, 0},
    {"one of 2 is stopped (silence 500 ms): median pause", "the longest of these", 2,
     SIGSTOP, 8, SILENCE_MS + 300, SILENCE_MS + 300},
};

static void set_failover_options(mu_node_options *options)
{
    mu_node_options_init(options);
    options->backups = 1;
    options->heartbeat_ms = HEARTBEAT_MS;
    options->silence_ms = SILENCE_MS;
}

static int play_quick_server(char **argv)
{
    mu_node_options options;

    set_failover_options(&options);
    cluster_tune_malloc();
    return cluster_play(argv, &options);
}

/* What comes after is done with a backup again. */
static void lose_server(struct cluster *cluster, mu_node *node, const struct loss *loss,
                        int index)
{
    (void)kill(cluster->children[index], loss->signal);
    cluster_pause_ms(loss->signal == SIGSTOP ? 4 * SILENCE_MS : SILENCE_MS);
    cluster_kill_server(cluster, index);
    cluster_restart_server(cluster, index);
    cluster_await(node, cluster_is_whole);
    cluster_pause_ms(200);
}

static void report_pause(const char *metric, double ms, double target)
{
    bench_report(&(struct bench_line){.bench = "failover",
                                      .metric = metric,
                                      .value = ms,
                                      .unit = "ms",
                                      .target = target,
                                      .less_is_more = true});
}

static void measure_loss(const struct loss *loss)
{
    uint64_t count = bench_size(1, loss->losses);
    uint64_t pauses[LOSSES_MAX];
    struct adder adder = {.bytes = 0};
    mu_node_options options;
    struct cluster cluster;
    mu_node *node;

    set_failover_options(&options);
    node = cluster_begin(&cluster, loss->servers, &options);
    adder_begin(&adder, node, PARTITIONS, PARTITIONS);
    cluster_await(node, cluster_is_whole);
    for (uint64_t i = 0; i < count; i++) {
        atomic_store(&adder.longest_ns, 0);
        lose_server(&cluster, node, loss, (int)(i % (uint64_t)loss->servers));
        pauses[i] = atomic_load(&adder.longest_ns) / 1000;
    }
    adder_end(&adder);
    cluster_end(&cluster, node);
    report_pause(loss->median, (double)bench_median(pauses, count) / 1e3,
                 loss->median_target_ms);
    report_pause(loss->longest, (double)bench_percentile(pauses, count, 100) / 1e3,
                 loss->longest_target_ms);
}

int main(int argc, char **argv)
{
    if (cluster_is_task(argc, argv))
        return play_quick_server(argv);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        measure_loss(&rows[i]);
    return 0;
}
