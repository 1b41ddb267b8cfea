/* Nodes without a cluster of their own: a client that knows one address, and one that
 * looks at a store. */
#include "node/node.h"
#include "runtime/message/arguments.h"

#include "muster/admin.h"

#include <string.h>

/* All tasks that may host the coordination service. */
static const char any_host[] = "chief:0,evaluator:0,ps:0-999999,worker:0-999999";

static int open_at(mu_node_options *options, const char *url, mu_error *ret_error,
                   mu_node **ret_node)
{
    bool serves =
        options->service_hosts == NULL || strcmp(options->service_hosts, "none") != 0;
    const struct mu__node_extra extra = {
        .dials_any = url,
        .hosts = serves ? any_host : NULL,
    };
    mu_cluster *none = mu_cluster_new();
    int rv;

    if (none == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster");
    options->cluster = none;
    options->service_hosts = "none";
    rv = mu__node_open(options, &extra, NULL, ret_error, ret_node);
    mu_cluster_free(none);
    return rv;
}

int mu_node_open_at(const mu_node_options *options, const char *address,
                    mu_error *ret_error, mu_node **ret_node)
{
    MU__REQUIRE(ret_error, options, address, ret_node);

    mu_node_options own;
    mu_cluster *given = mu_cluster_new();
    int rv = MU__OPTIONS_READ(mu_node_options, options, ret_error, &own);

    if (rv == 0)
        rv = given == NULL
                 ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster")
                 : mu_cluster_add(given, "chief", 0, address, ret_error);
    if (rv == 0)
        rv = open_at(&own, mu_cluster_url(given, "chief", 0), ret_error, ret_node);
    mu_cluster_free(given);
    return rv;
}

int mu_node_open_store(const mu_node_options *options, mu_error *ret_error,
                       mu_node **ret_node)
{
    MU__REQUIRE(ret_error, options, ret_node);

    static const struct mu__node_extra extra = {.only_looks = true};
    mu_node_options own;
    mu_cluster *cluster = mu_cluster_new();
    int rv = MU__OPTIONS_READ(mu_node_options, options, ret_error, &own);

    if (rv == 0)
        rv = cluster == NULL
                 ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster")
                 : mu_cluster_add(cluster, "chief", 0, "127.0.0.1:0", ret_error);
    own.cluster = cluster;
    own.task_type = "chief";
    own.task_index = 0;
    own.service_hosts = "chief:0";
    if (rv == 0)
        rv = mu__node_open(&own, &extra, NULL, ret_error, ret_node);
    mu_cluster_free(cluster);
    return rv;
}
