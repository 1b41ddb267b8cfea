/* What bench_closures.py measures Python beside. Built twice: as a plugin for workers
 * with functions that give their arguments back, and (with -DDRIVER) as a chief in C that
 * schedules them. Prints "NAME VALUE" lines: seconds. */
#include "muster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int same(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

#ifndef DRIVER
MU_PLUGIN;

int mu_plugin_open(mu_node *node);

int mu_plugin_open(mu_node *node)
{
    return mu_node_register_function(node, "c.same", same, NULL, 0);
}
#else

static double now(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void check(int rv, const mu_error *error)
{
    if (rv == 0)
        return;
    (void)fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void call(mu_coordinator *coordinator, const mu_value *args)
{
    mu_remote_value *value;
    mu_value *result;
    mu_error error;

    check(mu_coordinator_schedule(coordinator, "c.same", args, -1, &error, &value),
          &error);
    check(mu_remote_value_fetch(value, -1, &error, &result), &error);
    mu_value_free(result);
    mu_remote_value_free(value);
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median_of(mu_coordinator *coordinator, const void *data, uint64_t bytes,
                        int count)
{
    double *times = calloc((size_t)count, sizeof *times);
    double median;

    for (int i = 0; i < count; i++) {
        double begun = now();
        mu_value *args =
            data == NULL ? mu_value_int(i) : mu_value_tensor(MU_U8, 1, &bytes, data);

        call(coordinator, args);
        mu_value_free(args);
        times[i] = now() - begun;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    median = times[count / 2];
    free(times);
    return median;
}

static void throughput(mu_coordinator *coordinator, int count)
{
    mu_remote_value **values = calloc((size_t)count, sizeof *values);
    mu_value *args = mu_value_int(1);
    double begun = now();
    mu_error error;

    for (int i = 0; i < count; i++)
        check(mu_coordinator_schedule(coordinator, "c.same", args, -1, &error,
                                      &values[i]),
              &error);
    for (int i = 0; i < count; i++) {
        mu_value *result;

        check(mu_remote_value_fetch(values[i], -1, &error, &result), &error);
        mu_value_free(result);
        mu_remote_value_free(values[i]);
    }
    (void)printf("throughput %g\n", count / (now() - begun));
    mu_value_free(args);
    free(values);
}

/* driver CLUSTER_JSON BYTES */
int main(int count, char **arguments)
{
    mu_node_options options;
    mu_cluster *cluster;
    mu_coordinator *coordinator;
    mu_node *node;
    mu_error error;
    size_t bytes = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
    void *data = calloc(1, bytes);

    (void)same;
    check(mu_cluster_parse(arguments[1], strlen(arguments[1]), "cluster", &error,
                           &cluster),
          &error);
    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = "chief";
    options.log_level = MU_LOG_ERROR;
    check(mu_node_open(&options, &error, &node), &error);
    check(mu_coordinator_open(node, -1, &error, &coordinator), &error);
    (void)median_of(coordinator, NULL, 0, 2000);
    (void)printf("latency %g\n", median_of(coordinator, NULL, 0, 3000));
    throughput(coordinator, 100000);
    throughput(coordinator, 300000);
    (void)median_of(coordinator, data, bytes, 2);
    (void)printf("array %g\n", median_of(coordinator, data, bytes, 7));
    mu_coordinator_close(coordinator);
    (void)mu_node_finish_job(node, 0, "", 2000, NULL);
    (void)mu_node_close(node, 1000, NULL);
    mu_cluster_free(cluster);
    free(data);
    return 0;
}
#endif
