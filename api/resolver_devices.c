#include "api/resolver_devices.h"

#include "resolver/engine/resolver.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/retry.h"

#include <muster/coordination.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

/* ---- Counting ---- */

static const mu_value *machine_of(const mu_value *devices, const char *task)
{
    for (size_t i = 0; i < mu_value_count(devices); i++) {
        const mu_value *machine = mu_value_at(devices, i);
        const mu_value *name = mu_value_find(machine, "task");
        const char *text;
        size_t size;

        if (name != NULL && mu_value_get_string(name, &text, &size) == 0 &&
            strcmp(text, task) == 0)
            return machine;
    }
    return NULL;
}

/* The name of a kind, and its key in a machine's map. */
static const struct {
    const char *name;
    const char *key;
} kinds[MU__ACCELERATORS] = {
    [MU__GPU] = {"GPU", "gpus"},
    [MU__TPU] = {"TPU", "tpus"},
};

/* What is compared: the first task that was counted, and its numbers. */
struct tally {
    bool any;
    char task[MU_CLUSTER_TASK_BYTES];
    size_t counts[MU__ACCELERATORS];
};

static int count_machine(struct tally *tally, const char *task, const mu_value *machine,
                         mu_error *ret_error)
{
    for (int i = 0; i < MU__ACCELERATORS; i++) {
        size_t count = mu_value_count(mu_value_find(machine, kinds[i].key));

        if (tally->any && tally->counts[i] != count)
            return mu_error_set(ret_error, -MU_EPRECONDITION,
                                "expected the same number of accelerators on each task: "
                                "of %ss %s has %zu and %s has %zu",
                                kinds[i].name, tally->task, tally->counts[i], task,
                                count);
        tally->counts[i] = count;
    }
    if (!tally->any)
        (void)snprintf(tally->task, sizeof tally->task, "%s", task);
    tally->any = true;
    return 0;
}

static int count_task_devices(const mu_value *devices, const char *type, int index,
                              struct tally *sum, mu_error *ret_error)
{
    char task[MU_CLUSTER_TASK_BYTES];
    const mu_value *machine;

    mu__task_name(task, sizeof task, type, index);
    machine = machine_of(devices, task);
    if (machine == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s has not reported its devices yet", task);
    return count_machine(sum, task, machine, ret_error);
}

static int count_cluster(const mu_value *devices, const mu_cluster *cluster,
                         const char *type, struct tally *sum, mu_error *ret_error)
{
    const char *address;
    const char *other;
    int index;
    int rv = 0;

    for (size_t i = 0;
         rv == 0 && mu_cluster_task_at(cluster, i, &other, &index, &address) == 0; i++)
        if (type == NULL || strcmp(type, other) == 0)
            rv = count_task_devices(devices, other, index, sum, ret_error);
    return rv;
}

static int count_list(const mu_value *devices, const char *type, struct tally *sum,
                      mu_error *ret_error)
{
    char start[64] = "";
    int rv = 0;

    if (type != NULL)
        (void)snprintf(start, sizeof start, "/job:%.40s/", type);
    for (size_t i = 0; rv == 0 && i < mu_value_count(devices); i++) {
        const mu_value *machine = mu_value_at(devices, i);
        const mu_value *name = mu_value_find(machine, "task");
        const char *text;
        size_t size;

        if (name != NULL && mu_value_get_string(name, &text, &size) == 0 &&
            strncmp(text, start, strlen(start)) == 0)
            rv = count_machine(sum, text, machine, ret_error);
    }
    return rv;
}

int mu__devices_count(const mu_value *devices, const mu_cluster *cluster,
                      const char *type, int index, mu_error *ret_error,
                      size_t ret_counts[MU__ACCELERATORS])
{
    struct tally sum = {.any = false};
    int rv;

    if (type != NULL && index >= 0)
        rv = count_task_devices(devices, type, index, &sum, ret_error);
    else if (mu_cluster_task_count(cluster, type) > 0)
        rv = count_cluster(devices, cluster, type, &sum, ret_error);
    else
        rv = count_list(devices, type, &sum, ret_error);
    if (rv == 0)
        memcpy(ret_counts, sum.counts, sizeof sum.counts);
    return rv;
}

/* ---- Requesting ---- */

static int64_t left_until(uint64_t end_ms)
{
    uint64_t now_ms = uv_hrtime() / 1000000;

    if (end_ms == MU__RETRY_NO_END)
        return -1;
    return now_ms < end_ms ? (int64_t)(end_ms - now_ms) : 0;
}

/* One call of mu_resolver_accelerators with a node. */
struct device_request {
    const mu_resolver *resolver; /* whose progress function gets each try */
    struct mu_node *node;
    const mu_resolution *resolution;
    const char *type;
    int index;
    uint64_t end_ms;
};

static int request_devices_once(const struct device_request *q, mu_error *ret_error,
                                size_t ret_counts[MU__ACCELERATORS])
{
    mu_value *devices;
    int rv = mu_tasks_devices(q->node, left_until(q->end_ms), ret_error, &devices);

    if (rv != 0)
        return rv;
    rv = mu__devices_count(devices, q->resolution->cluster, q->type, q->index, ret_error,
                           ret_counts);
    mu_value_free(devices);
    return rv;
}

static uint64_t get_random_bits(void)
{
    uint64_t bits;

    return uv_random(NULL, NULL, &bits, sizeof bits, 0, NULL) == 0 ? bits : uv_hrtime();
}

static void report_device_try(const struct device_request *q, unsigned tries,
                              const char *why, uint64_t pause_ms)
{
    char line[640];

    (void)snprintf(line, sizeof line,
                   "try %u: %.500s; again in %" PRIu64 ".%" PRIu64 " s", tries, why,
                   pause_ms / 1000, pause_ms % 1000 / 100);
    mu__resolver_progress(q->resolver, line);
}

/* Tried until the end, since tasks may still connect. */
static int request_devices(const struct device_request *q, mu_error *ret_error,
                           size_t ret_counts[MU__ACCELERATORS])
{
    const struct mu__retry retry = {.end_ms = q->end_ms};
    mu_error error;
    int rv = -MU_EUNAVAILABLE;

    for (unsigned tries = 1;; tries++) {
        uint64_t now_ms;
        uint64_t due_ms;

        rv = request_devices_once(q, &error, ret_counts);
        if (rv != -MU_EDEADLINE && rv != -MU_EUNAVAILABLE)
            break;
        now_ms = uv_hrtime() / 1000000;
        if (!mu__retry_next(&retry, tries, now_ms, get_random_bits(), 0, &due_ms)) {
            rv = mu_error_set(ret_error, -MU_EDEADLINE, "%.440s, after %u tries",
                              error.message, tries);
            return rv;
        }
        report_device_try(q, tries, error.message, due_ms - now_ms);
        uv_sleep((unsigned)(due_ms - now_ms));
    }
    if (rv != 0 && ret_error != NULL)
        *ret_error = error;
    return rv;
}

/* ---- The call ---- */

static int make_counts(const mu_accelerator *rows, int rows_count, mu_error *ret_error,
                       mu_value **ret_counts)
{
    mu_value *counts = mu_value_map();
    int rv = counts == NULL ? -MU_ENOMEM : 0;

    for (int i = 0; rv == 0 && i < rows_count; i++)
        if (rows[i].kind[0] != '\0')
            rv = mu_value_set(counts, rows[i].kind, mu_value_int(rows[i].count));
    if (rv != 0) {
        mu_value_free(counts);
        return mu_error_set(ret_error, rv,
                            rv == -MU_ENOMEM ? "out of memory"
                                             : "the name of an accelerator is no text");
    }
    *ret_counts = counts;
    return 0;
}

static mu_accelerator make_accelerator_row(const char *kind, int count)
{
    mu_accelerator row = {.count = count};

    (void)snprintf(row.kind, sizeof row.kind, "%.15s", kind);
    return row;
}

static int of_source(const mu_resolution *resolution, mu_error *ret_error,
                     mu_value **ret_counts)
{
    mu_accelerator row =
        make_accelerator_row(resolution->accelerators < 0 ? "" : resolution->accelerator,
                             resolution->accelerators);

    return resolution->accelerators_set_count > 0
               ? make_counts(resolution->accelerators_set,
                             resolution->accelerators_set_count, ret_error, ret_counts)
               : make_counts(&row, 1, ret_error, ret_counts);
}

/* Where there are none at all, the source says of what kind there are none. */
static int of_tasks(struct device_request *q, mu_error *ret_error, mu_value **ret_counts)
{
    size_t found[MU__ACCELERATORS] = {0};
    mu_accelerator rows[MU__ACCELERATORS];
    int count = 0;
    int rv;

    if (q->type == NULL && q->resolution->task_type[0] != '\0' &&
        q->resolution->task_index >= 0) {
        q->type = q->resolution->task_type;
        q->index = q->resolution->task_index;
    }
    rv = request_devices(q, ret_error, found);
    if (rv != 0)
        return rv;
    for (int i = 0; i < MU__ACCELERATORS; i++)
        if (found[i] > 0)
            rows[count++] = make_accelerator_row(kinds[i].name, (int)found[i]);
    if (count == 0)
        rows[count++] = make_accelerator_row(q->resolution->accelerator, 0);
    return make_counts(rows, count, ret_error, ret_counts);
}

int mu_resolver_accelerators(mu_resolver *resolver, struct mu_node *node,
                             const char *type, int index, int64_t timeout_ms,
                             mu_error *ret_error, mu_value **ret_counts)
{
    mu_resolution resolution;
    struct device_request request = {
        .resolver = resolver,
        .node = node,
        .resolution = &resolution,
        .type = type,
        .index = index,
        .end_ms = timeout_ms < 0 ? MU__RETRY_NO_END
                                 : uv_hrtime() / 1000000 + (uint64_t)timeout_ms,
    };
    int rv;

    if (ret_counts == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected room for the counts, got NULL");
    if (type != NULL && !mu__task_type_is_valid(type))
        return mu__task_type_check(type, ret_error);
    rv = mu_resolver_resolve(resolver, timeout_ms, ret_error, &resolution);
    if (rv != 0)
        return rv;
    if (node == NULL)
        rv = of_source(&resolution, ret_error, ret_counts);
    else
        rv = of_tasks(&request, ret_error, ret_counts);
    mu_cluster_free(resolution.cluster);
    return rv;
}
