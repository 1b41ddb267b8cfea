/* What a queued closure costs.
 *
 * The chief has no workers, so everything scheduled stays queued. Each closure has an
 * argument of 16 bytes and a remote value that the program holds. The arguments'
 * bytes are taken off, and so is the program's own array of handles. */
#include "bench/cluster.h"

enum { ARGUMENT_BYTES = 16 };

/* Bytes handed out by malloc: what closures keep, without what the allocator keeps. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%*s %lu", &pages) != 1)
        cluster_die("statm", "cannot be read");
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void wait_until_queued(mu_node *node, uint64_t count)
{
    int64_t queued = 0;
    mu_error error;

    while (queued < (int64_t)count) {
        mu_value *status;

        if (mu_node_status(node, 10000, &error, &status) != 0)
            cluster_die("status", error.message);
        if (mu_value_get_int(mu_value_find(mu_value_find(status, "closures"), "queued"),
                             &queued) != 0)
            cluster_die("status", "has no number of queued closures");
        mu_value_free(status);
    }
}

static void schedule_all(mu_coordinator *coordinator, uint64_t count,
                         mu_remote_value **values)
{
    static const char text[ARGUMENT_BYTES] = "fifteen letters";
    mu_value *argument = mu_value_bytes(text, sizeof text);
    mu_error error;

    for (uint64_t i = 0; i < count; i++)
        if (mu_coordinator_schedule(coordinator, "work", argument, -1, &error,
                                    &values[i]) != 0)
            cluster_die("schedule", error.message);
    mu_value_free(argument);
}

int main(void)
{
    uint64_t count = bench_size(10000, 1000000);
    mu_remote_value **values = calloc(count, sizeof *values);
    mu_node_options options;
    mu_coordinator *coordinator;
    mu_error error;
    mu_node *node;
    size_t heap;
    size_t resident;
    struct bench_line line = {.bench = "memory",
                              .unit = "bytes/closure",
                              .less_is_more = true,
                              .target = 200.0};

    if (values == NULL)
        cluster_die("values", "out of memory");
    mu_node_options_init(&options);
    options.queue_max = 2000000;
    node = cluster_open("{\"chief\":[\"127.0.0.1:0\"]}", "chief", 0, &options);
    if (mu_coordinator_open(node, 5000, &error, &coordinator) != 0)
        cluster_die("chief", error.message);
    memset(values, 0, count * sizeof *values);
    heap = heap_bytes();
    resident = resident_bytes();
    schedule_all(coordinator, count, values);
    wait_until_queued(node, count);

    line.metric = "queued, beside its argument (allocated)";
    line.value = (double)(heap_bytes() - heap) / (double)count - ARGUMENT_BYTES;
    bench_report(&line);
    line.metric = "queued, beside its argument (resident)";
    line.value = (double)(resident_bytes() - resident) / (double)count - ARGUMENT_BYTES;
    bench_report(&line);

    mu_coordinator_close(coordinator);
    for (uint64_t i = 0; i < count; i++)
        mu_remote_value_free(values[i]);
    free(values);
    return mu_node_close(node, 5000, &error) == 0 ? 0 : 1;
}
