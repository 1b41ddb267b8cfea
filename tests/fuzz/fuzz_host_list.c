/* Any bytes as a list of hosts, as a file of hosts, and as numbers of tasks: an error in
 * words, or hosts that are names within the bounds. */
#include "resolver/source/mpi.h"
#include "resolver/spec/layout.h"
#include "tests/fuzz/must.h"

#include <muster/cluster.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rv, const mu_error *error)
{
    must(rv == 0 || (rv == error->code && error->message[0] != '\0'), "words");
}

static void check_hosts(const struct mu__host_list *hosts)
{
    must(hosts->count <= MU_CLUSTER_TASKS_MAX, "count");
    for (size_t i = 0; i < hosts->count; i++) {
        size_t length = strlen(hosts->names[i]);

        must(length > 0 && length <= MU__HOST_BYTES_MAX, "name");
    }
    if (hosts->count > 0)
        must(mu__host_list_find(hosts, hosts->names[0], strlen(hosts->names[0])) == 0,
             "found");
}

static void deal(const unsigned *counts, size_t nodes, unsigned plane)
{
    struct mu__layout layout;
    size_t sum = 0;

    for (size_t i = 0; i < nodes; i++)
        sum += counts[i];
    if (sum > MU_CLUSTER_TASKS_MAX)
        return;
    for (int how = MU__DISTRIBUTION_BLOCK; how <= MU__DISTRIBUTION_PLANE; how++) {
        must(mu__layout_assign((enum mu__distribution)how, plane, counts, nodes,
                               &layout) == 0,
             "deal");
        must(layout.tasks == sum, "sum");
        for (unsigned i = 0; i < layout.tasks; i++)
            must(layout.nodes[i] < nodes && layout.locals[i] < counts[layout.nodes[i]],
                 "place");
        mu__layout_done(&layout);
    }
}

static void read_counts(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    size_t nodes = size % 7 + 1;
    unsigned *counts;
    mu_error error;
    int rv;

    must(text != NULL, "memory");
    rv = mu__task_counts_parse(text, "FUZZ", nodes, &error, &counts);
    check(rv, &error);
    if (rv == 0) {
        deal(counts, nodes, (unsigned)(size % 3 + 1));
        free(counts);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__host_list hosts = {0};
    unsigned *slots = NULL;
    mu_error error;
    int rv = mu__host_list_parse((const char *)data, size, "FUZZ", &error, &hosts);

    check(rv, &error);
    must(rv == 0 || hosts.names == NULL, "untouched");
    if (rv == 0)
        check_hosts(&hosts);
    mu__host_list_done(&hosts);
    rv = mu__host_file_parse((const char *)data, size, "FUZZ", &error, &hosts, &slots);
    check(rv, &error);
    if (rv == 0)
        check_hosts(&hosts);
    mu__host_list_done(&hosts);
    free(slots);
    read_counts(data, size);
    return 0;
}
