/* Assigning a cluster to a server.
 *
 * A server that waits for its cluster is two nodes, one after the other at the same
 * address: the first speaks with clients that offer a cluster spec and with nobody else,
 * until the first one that fits. */
#include "muster/compat/server.h"

#include "actors/packing.h"
#include "api/compat/compat.h"
#include "node/member/session_config.h"
#include "node/node.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/arguments.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_TIMEOUT_MS = 1000 }; /* of a node that was only to wait, or to offer */

/* ---- waiting for a cluster ---- */

static int read_taken(struct mu__job_call *call, mu_error *ret_error,
                      struct mu__server_offered *ret_offered)
{
    struct mu__server_offered offered = {.index = (int)call->index};
    int rv = mu_cluster_parse(call->cluster, strlen(call->cluster), "offered cluster",
                              ret_error, &offered.cluster);

    memcpy(offered.type, call->type, sizeof offered.type);
    if (rv == 0)
        rv = mu__session_config_read(call->config, ret_error, &offered.config);
    free(call->cluster);
    mu_value_free(call->config);
    if (rv == 0)
        *ret_offered = offered;
    else
        mu_cluster_free(offered.cluster);
    return rv;
}

int mu__server_take(mu_node *waiting, int64_t timeout_ms, mu_error *ret_error,
                    struct mu__server_offered *ret_offered)
{
    struct mu__job_call call = {
        .call.operation = MU__JOB_TAKE,
        .call.timeout_ms = timeout_ms,
    };
    struct mu__server_offered offered = {0};
    int rv = mu__node_call(waiting, MU__JOB, &call.call, ret_error);

    if (rv == 0)
        rv = read_taken(&call, ret_error, &offered);
    if (rv != 0)
        return rv;
    (void)snprintf(offered.address, sizeof offered.address, "%s",
                   waiting->offer.urls.listens);
    *ret_offered = offered;
    return 0;
}

void mu__server_offered_done(struct mu__server_offered *offered)
{
    mu_cluster_free(offered->cluster);
    mu__session_config_done(&offered->config);
    *offered = (struct mu__server_offered){0};
}

int mu__server_wait_open(const mu_node_options *options, mu_error *ret_error,
                         mu_node **ret_node)
{
    static const struct mu__node_extra extra = {
        .only = MU__OFFER_TYPE,
        .only_why = "it waits for its cluster spec",
        .takes_offer = true,
    };
    mu_node_options waiting = *options;
    mu_cluster *none = mu_cluster_new();
    int rv;

    if (none == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a server");
    waiting.cluster = none;
    waiting.task_type = MU__LINK_UNKNOWN;
    waiting.task_index = 0;
    waiting.journal = NULL;
    waiting.service_hosts = "none";
    waiting.store = NULL;
    rv = mu__node_open(&waiting, &extra, NULL, ret_error, ret_node);
    mu_cluster_free(none);
    return rv;
}

int mu__server_wait_for_cluster(const struct mu__server_request *o, mu_error *ret_error,
                                struct mu__server_offered *ret_offered)
{
    mu_node *waiting;
    int rv = mu__server_wait_open(&o->node, ret_error, &waiting);

    if (rv != 0)
        return rv;
    rv = mu__server_take(waiting, o->timeout_ms, ret_error, ret_offered);
    (void)mu_node_close(waiting, CLOSE_TIMEOUT_MS, NULL);
    return rv;
}

void mu__server_apply(const struct mu__server_offered *offered, mu_node_options *options)
{
    options->cluster = offered->cluster;
    options->task_type = offered->type;
    options->task_index = offered->index;
    options->bind_address = offered->address;
    if (offered->config.inter_op_threads > 0)
        options->threads = offered->config.inter_op_threads;
}

/* ---- assigning a cluster ---- */

static int check_offer(const struct mu__server_request *o, mu_error *ret_error)
{
    int rv;

    if (o->node.cluster == NULL || o->node.task_type == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "an offer needs a cluster and a task type");
    rv = mu_cluster_validate(o->node.cluster, o->node.task_type, o->node.task_index,
                             ret_error);
    if (rv == 0)
        rv = mu__session_config_check(&o->config, ret_error);
    if (rv == 0 &&
        mu_cluster_url(o->node.cluster, o->node.task_type, o->node.task_index) == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "the cluster has no address for /job:%s/task:%d",
                          o->node.task_type, o->node.task_index);
    return rv;
}

/* The offering client's task index: clients that offer at the same time must differ. */
static int random_index(void)
{
    uint32_t number = 0;

    if (uv_random(NULL, NULL, &number, sizeof number, 0, NULL) != 0)
        number = (uint32_t)uv_hrtime();
    return (int)(number % MU_CLUSTER_INDEX_MAX);
}

static int open_offering(const struct mu__server_request *o, const char *url,
                         mu_error *ret_error, mu_node **ret_node)
{
    mu_node_options options = o->node;

    options.size = sizeof options;
    options.task_type = MU__OFFER_TYPE;
    options.task_index = random_index();
    options.service_hosts = "none";
    options.bind_address = NULL;
    options.advertise_address = NULL;
    options.loop = NULL;
    options.journal = NULL;
    options.store = NULL;
    return mu_node_open_at(&options, url, ret_error, ret_node);
}

static int send_assignment(const struct mu__server_request *o, const char *url,
                           struct mu__job_call *call, mu_error *ret_error)
{
    mu_node *node;
    int rv = open_offering(o, url, ret_error, &node);

    if (rv != 0)
        return rv;
    rv = mu__node_call(node, MU__JOB, &call->call, ret_error);
    (void)mu_node_close(node, CLOSE_TIMEOUT_MS, NULL);
    return rv;
}

static int make_offer(const struct mu__server_request *o, const char *json,
                      const struct mu__packed *config, int64_t timeout_ms,
                      mu_error *ret_error)
{
    const char *url =
        mu_cluster_url(o->node.cluster, o->node.task_type, o->node.task_index);
    char task_and_url[384];
    struct mu__job_call call = {
        .call.operation = MU__JOB_OFFER,
        .call.timeout_ms = timeout_ms,
        .offer = {mu__view_str(json), mu__view_str(o->node.task_type),
                  (uint32_t)o->node.task_index, *config},
        .recipient = task_and_url,
    };

    if (call.offer.cluster.size > MU__CLUSTER_TEXT_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "a cluster spec of %" PRIu32 " bytes is too large to be "
                            "offered: at most %d",
                            call.offer.cluster.size, MU__CLUSTER_TEXT_MAX);
    (void)snprintf(task_and_url, sizeof task_and_url, "/job:%s/task:%d at %s",
                   o->node.task_type, o->node.task_index, url);
    return send_assignment(o, url, &call, ret_error);
}

int mu_server_assign_cluster(const mu_server_options *options, int64_t timeout_ms,
                             mu_error *ret_error)
{
    MU__REQUIRE(ret_error, options);

    struct mu__packed packed = {.head = NULL};
    struct mu__buf *backing = NULL;
    struct mu__server_request o;
    mu_value *config;
    char *json;
    int rv = mu__server_request_read(options, ret_error, &o);

    if (rv == 0)
        rv = check_offer(&o, ret_error);
    if (rv != 0)
        return rv;
    json = mu_cluster_to_json(o.node.cluster);
    config = mu__session_config_value(&o.config);
    if (config != NULL)
        backing = mu__pack_value(config, &packed);
    if (json == NULL || backing == NULL)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for an offer");
    else
        rv = make_offer(&o, json, &packed, timeout_ms, ret_error);
    mu__buf_unref(backing);
    mu_value_free(config);
    free(json);
    return rv;
}
