#include "resolver/spec/layout.h"

#include "runtime/base/text.h"

#include <muster/cluster.h>

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers of tasks ---- */

static int bad_counts(const char *source, const char *text, const char *at,
                      const char *what, mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID, "%s: at %zu of %s: expected %s", source,
                        (size_t)(at - text) + 1, shown, what);
}

/* 1 to MU_CLUSTER_TASKS_MAX; moves *at past it. */
static bool read_layout_count(const char **at, unsigned *ret_count)
{
    const char *start = *at;
    unsigned count = 0;

    while (**at >= '0' && **at <= '9' && count <= MU_CLUSTER_TASKS_MAX)
        count = count * 10 + (unsigned)(*(*at)++ - '0');
    if (*at == start || count == 0 || count > MU_CLUSTER_TASKS_MAX) {
        *at = start;
        return false;
    }
    *ret_count = count;
    return true;
}

/* "3" or "3(x2)"; moves *at past it, or to where it went wrong: then the answer is what
 * was expected there. */
static const char *read_count_group(const char **at, unsigned *ret_count,
                                    unsigned *ret_times)
{
    static const char *const number = "a number from 1 to 65536";
    unsigned times = 1;

    if (!read_layout_count(at, ret_count))
        return number;
    if (**at == '(') {
        ++*at;
        if (**at != 'x')
            return "\"(xNUMBER)\"";
        ++*at;
        if (!read_layout_count(at, &times))
            return number;
        if (**at != ')')
            return "\")\"";
        ++*at;
    }
    *ret_times = times;
    return **at == '\0' || **at == ',' ? NULL : "\",\"";
}

static int read_layout_counts(const char *text, const char *source, size_t nodes,
                              mu_error *ret_error, unsigned *counts)
{
    const char *at = text;
    size_t filled = 0;

    for (;;) {
        unsigned count = 0;
        unsigned times = 0;
        const char *wrong = read_count_group(&at, &count, &times);

        if (wrong != NULL)
            return bad_counts(source, text, at, wrong, ret_error);
        if (times > nodes - filled)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: it has numbers for more than the %zu nodes", source,
                                nodes);
        while (times-- > 0)
            counts[filled++] = count;
        if (*at == '\0')
            break;
        at++;
    }
    if (filled == nodes)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: it has numbers for %zu nodes, but there are %zu", source,
                        filled, nodes);
}

int mu__task_counts_parse(const char *text, const char *source, size_t nodes,
                          mu_error *ret_error, unsigned **ret_counts)
{
    unsigned *counts = calloc(nodes + 1, sizeof *counts);
    int rv;

    if (counts == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    rv = read_layout_counts(text, source, nodes, ret_error, counts);
    if (rv == 0)
        *ret_counts = counts;
    else
        free(counts);
    return rv;
}

/* ---- Layouts ---- */

void mu__layout_done(struct mu__layout *layout)
{
    free(layout->nodes);
    free(layout->locals);
    *layout = (struct mu__layout){0};
}

static int layout_init(struct mu__layout *layout, size_t tasks)
{
    *layout = (struct mu__layout){
        .tasks = (unsigned)tasks,
        .nodes = calloc(tasks + 1, sizeof *layout->nodes),
        .locals = calloc(tasks + 1, sizeof *layout->locals),
    };
    if (layout->nodes != NULL && layout->locals != NULL)
        return 0;
    mu__layout_done(layout);
    return -MU_ENOMEM;
}

static void put_rank(struct mu__layout *layout, unsigned rank, size_t node,
                     unsigned local)
{
    layout->nodes[rank] = (uint32_t)node;
    layout->locals[rank] = local;
    if (local >= layout->node_tasks_max)
        layout->node_tasks_max = local + 1;
}

/* Assign ranks in rounds of `step` tasks to each node. `open` is working memory for all
 * nodes: those that still get tasks. */
static void distribute_rounds(const unsigned *counts, size_t nodes, unsigned step,
                              uint32_t *open, struct mu__layout *layout)
{
    size_t open_count = nodes;
    unsigned rank = 0;

    for (size_t i = 0; i < nodes; i++)
        open[i] = (uint32_t)i;
    for (unsigned from = 0; open_count > 0; from += step) {
        size_t remaining = 0;

        for (size_t i = 0; i < open_count; i++) {
            uint32_t node = open[i];

            for (unsigned j = from; j < counts[node] && j - from < step; j++)
                put_rank(layout, rank++, node, j);
            if (counts[node] > from + step)
                open[remaining++] = node;
        }
        open_count = remaining;
    }
    assert(rank == layout->tasks);
}

int mu__layout_assign(enum mu__distribution distribution, unsigned plane,
                      const unsigned *counts, size_t nodes, struct mu__layout *ret_layout)
{
    unsigned step = distribution == MU__DISTRIBUTION_PLANE    ? plane
                    : distribution == MU__DISTRIBUTION_CYCLIC ? 1
                                                              : MU_CLUSTER_TASKS_MAX;
    size_t tasks = 0;
    uint32_t *open;
    int rv;

    assert(step > 0 && step <= MU_CLUSTER_TASKS_MAX);
    for (size_t i = 0; i < nodes; i++)
        tasks += counts[i];
    assert(tasks <= MU_CLUSTER_TASKS_MAX);
    open = calloc(nodes + 1, sizeof *open);
    if (open == NULL)
        return -MU_ENOMEM;
    rv = layout_init(ret_layout, tasks);
    if (rv == 0)
        distribute_rounds(counts, nodes, step, open, ret_layout);
    free(open);
    return rv;
}

struct named {
    const char *name;
    size_t position;
};

static int compare_named_hosts(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *sort_host_names(const struct mu__host_list *hosts)
{
    struct named *names = calloc(hosts->count + 1, sizeof *names);

    for (size_t i = 0; names != NULL && i < hosts->count; i++)
        names[i] = (struct named){hosts->names[i], i};
    if (names != NULL)
        qsort(names, hosts->count, sizeof *names, compare_named_hosts);
    return names;
}

static int assign_ranks(const struct mu__host_list *ranks, const struct named *names,
                        size_t names_count, const char *source, unsigned *counts,
                        mu_error *ret_error, struct mu__layout *layout)
{
    for (size_t i = 0; i < ranks->count; i++) {
        struct named key = {ranks->names[i], 0};
        const struct named *found =
            bsearch(&key, names, names_count, sizeof *names, compare_named_hosts);

        if (found == NULL)
            return mu_error_set(ret_error, -MU_ENOTFOUND,
                                "%s: task %zu is on \"%s\", which is none of the hosts",
                                source, i, ranks->names[i]);
        put_rank(layout, (unsigned)i, found->position, counts[found->position]++);
    }
    return 0;
}

int mu__layout_listed(const struct mu__host_list *ranks,
                      const struct mu__host_list *hosts, const char *source,
                      mu_error *ret_error, struct mu__layout *ret_layout)
{
    struct named *names = sort_host_names(hosts);
    unsigned *counts = calloc(hosts->count + 1, sizeof *counts);
    struct mu__layout layout = {0};
    int rv =
        names == NULL || counts == NULL ? -MU_ENOMEM : layout_init(&layout, ranks->count);

    if (rv == 0)
        rv = assign_ranks(ranks, names, hosts->count, source, counts, ret_error, &layout);
    else
        rv = mu_error_set(ret_error, rv, "%s: out of memory", source);
    free(names);
    free(counts);
    if (rv == 0)
        *ret_layout = layout;
    else
        mu__layout_done(&layout);
    return rv;
}
