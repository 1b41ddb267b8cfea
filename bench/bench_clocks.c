/* Ticks of eight members of a synchronous clock, all in one process, of which the server
 * is another one, over tcp; and the round trip of a tick that never waits. */
#include "bench/cluster.h"

#include <muster/clock.h>

#include <pthread.h>

enum { MEMBERS = 8 };

static void *tick_all(void *clock)
{
    uint64_t ticks = bench_size(10, 5000);
    mu_error error;

    for (uint64_t i = 0; i < ticks; i++)
        cluster_check(mu_clock_tick(clock, 30000, &error, NULL), &error);
    return NULL;
}

/* Steps of all members a second. */
static double measure_steps(mu_node *node)
{
    mu_clock *clocks[MEMBERS];
    pthread_t threads[MEMBERS];
    uint64_t start_ns;
    mu_error error;

    for (int i = 0; i < MEMBERS; i++)
        cluster_check(mu_clock_open(node, "steps", 0, 10000, &error, &clocks[i]), &error);
    start_ns = bench_now_ns();
    for (int i = 0; i < MEMBERS; i++)
        if (pthread_create(&threads[i], NULL, tick_all, clocks[i]) != 0)
            cluster_die("thread", "cannot be started");
    for (int i = 0; i < MEMBERS; i++)
        (void)pthread_join(threads[i], NULL);
    start_ns = bench_now_ns() - start_ns;
    for (int i = 0; i < MEMBERS; i++)
        mu_clock_close(clocks[i]);
    return (double)(MEMBERS * bench_size(10, 5000)) / ((double)start_ns / 1e9);
}

/* In microseconds, the median. */
static double measure_round_trip(mu_node *node)
{
    static uint64_t samples[5000];
    uint64_t count = bench_size(10, 5000);
    mu_clock *clock;
    mu_error error;

    cluster_check(mu_clock_open(node, "alone", MU_CLOCK_UNLIMITED, 10000, &error, &clock),
                  &error);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        cluster_check(mu_clock_tick(clock, 30000, &error, NULL), &error);
        samples[i] = bench_now_ns() - start_ns;
    }
    mu_clock_close(clock);
    return (double)bench_median(samples, count) / 1e3;
}

int main(int argc, char **argv)
{
    mu_node_options options;
    struct cluster cluster;
    mu_node *node;

    if (cluster_is_task(argc, argv))
        return cluster_play_server(argv);
    mu_node_options_init(&options);
    node = cluster_begin(&cluster, 1, &options);
    bench_report(&(struct bench_line){.bench = "clocks",
                                      .metric = "ticks of 8 members, synchronous",
                                      .value = measure_steps(node),
                                      .unit = "1/s"});
    bench_report(&(struct bench_line){.bench = "clocks",
                                      .metric = "tick, round trip",
                                      .value = measure_round_trip(node),
                                      .unit = "us"});
    cluster_end(&cluster, node);
    return 0;
}
