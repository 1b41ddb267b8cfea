/* The resolver aws: the variables of a multi-node job of AWS Batch. */
#include "resolver/cloud/aws/aws.h"
#include "resolver/cloud/resolvers.h"
#include "resolver/source/ranks.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <string.h>

static const char main_index[] = "AWS_BATCH_JOB_MAIN_NODE_INDEX";
static const char main_address[] = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
static const char node_index[] = MU__BATCH_NODE_INDEX;
static const char nodes_count[] = "AWS_BATCH_JOB_NUM_NODES";
static const char hint[] = ": AWS Batch sets it in the jobs of several nodes";

struct batch {
    unsigned nodes;
    unsigned node;
    unsigned main;
};

static int read_batch(struct mu__requests *requests, mu_error *ret_error,
                      struct batch *batch)
{
    int rv = mu__rank_number(requests, nodes_count, hint, 1, MU_CLUSTER_TASKS_MAX,
                             ret_error, &batch->nodes);

    if (rv == 0)
        rv = mu__rank_own(requests, node_index, hint, batch->nodes, nodes_count,
                          ret_error, &batch->node);
    if (rv == 0)
        rv = mu__rank_own(requests, main_index, hint, batch->nodes, nodes_count,
                          ret_error, &batch->main);
    return rv;
}

/* The main node is not told its own address. */
static int find_host(struct mu__requests *requests, const struct batch *batch,
                     mu_error *ret_error, char *ret_host)
{
    const char *text = mu__request_variable(requests, main_address);

    if (text == NULL && batch->node == batch->main)
        return mu__rank_host(requests, node_index, ret_error, ret_host);
    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%s is not set: where the main node (%u) is, which is not "
                            "this one (%u)",
                            main_address, batch->main, batch->node);
    if (strlen(text) > MU__HOST_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected an address, got %zu bytes", main_address,
                            strlen(text));
    (void)snprintf(ret_host, MU__HOST_BYTES_MAX + 1, "%s", text);
    return 0;
}

/* The main node is rank 0, whatever its index; the others keep their order. */
static unsigned rank_of(const struct batch *batch)
{
    if (batch->node == batch->main)
        return 0;
    return batch->node < batch->main ? batch->node + 1 : batch->node;
}

static int join(const struct mu__pass *pass, const struct batch *batch, const char *host,
                mu_error *ret_error, mu_resolution *resolution)
{
    static const struct mu__rank_settings settings = {
        MU__BATCH_SET_JOBS, MU__BATCH_SET_PORT, MU__BATCH_SET_RPC_LAYER};
    bool is_v6 = strchr(host, ':') != NULL;
    char address[MU__HOST_BYTES_MAX + 16];
    unsigned port;
    int rv = mu__rank_port(pass, MU__BATCH_SET_PORT, 0, 1, ret_error, &port);

    if (rv != 0)
        return rv;
    (void)snprintf(address, sizeof address, "%s%s%s:%u", is_v6 ? "[" : "", host,
                   is_v6 ? "]" : "", port);
    return mu__ranks_meet(pass, &settings, main_address, address, batch->nodes,
                          rank_of(batch), mu__setting(pass, MU__BATCH_SET_BIND_ADDRESS),
                          ret_error, resolution);
}

int mu__batch_resolve(const struct mu__pass *pass, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    struct batch batch = {.nodes = 0};
    char host[MU__HOST_BYTES_MAX + 1];
    int rv = read_batch(pass->requests, ret_error, &batch);

    if (rv == 0)
        rv = find_host(pass->requests, &batch, ret_error, host);
    return rv == 0 ? join(pass, &batch, host, ret_error, ret_resolution) : rv;
}
