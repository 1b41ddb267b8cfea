/* Servers. A server is a node, and what it was started with. */
#include "muster/compat/server.h"

#include "actors/packing.h"
#include "actors/task_set.h"
#include "api/compat/compat.h"
#include "node/deadline.h"
#include "node/member/session_config.h"
#include "node/node.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/arguments.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLOSE_TIMEOUT_MS = 1000, /* of a node that was opened in vain */
    TARGET_BYTES = 320,
    LAYER_BYTES = 16
};

struct mu_server {
    mu_node *node; /* held: see mu__node_ref. NULL: environment "google" */
    mu_cluster *cluster;
    mu_session_config config;
    char type[16];
    int index;
    char task[64];
    char rpc_layer[LAYER_BYTES];
    char environment[LAYER_BYTES];
    char target[TARGET_BYTES];
    uv_mutex_t lock; /* guards the rest */
    uv_cond_t changed;
    bool stopping;
    bool stopped;
};

static const char google[] = "google";

void mu_server_options_init_sized(mu_server_options *options, size_t size)
{
    const mu_server_options defaults = {
        .rpc_layer = "grpc", .environment = "", .timeout_ms = -1};

    mu__options_init(options, size, &defaults, sizeof defaults);
}

int mu__server_request_read(const mu_server_options *options, mu_error *ret_error,
                            struct mu__server_request *ret_request)
{
    mu_server_options own;
    int rv = MU__OPTIONS_READ(mu_server_options, options, ret_error, &own);

    if (rv == 0)
        rv = MU__OPTIONS_READ(mu_node_options, own.node, ret_error, &ret_request->node);
    if (rv == 0)
        rv = MU__OPTIONS_READ(mu_session_config, own.config, ret_error,
                              &ret_request->config);
    ret_request->rpc_layer = own.rpc_layer;
    ret_request->environment = own.environment;
    ret_request->timeout_ms = own.timeout_ms;
    return rv;
}

/* ---- checks ---- */

static const char *layer_of(const struct mu__server_request *o)
{
    return o->rpc_layer == NULL ? "" : o->rpc_layer;
}

static const char *environment_of(const struct mu__server_request *o)
{
    return o->environment == NULL ? "" : o->environment;
}

static int check_words(const struct mu__server_request *o, mu_error *ret_error)
{
    if (strlen(layer_of(o)) >= LAYER_BYTES)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a server's rpc_layer has at most %d bytes, got \"%.80s\"",
                            LAYER_BYTES - 1, layer_of(o));
    if (environment_of(o)[0] != '\0' && strcmp(environment_of(o), google) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a server's environment is \"%.80s\", expected \"\" or "
                            "\"google\"",
                            environment_of(o));
    if (o->node.loop != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a server's node has a loop of its own: expected "
                            "node.loop NULL");
    return mu__session_config_check(&o->config, ret_error);
}

static int check_server_task(const struct mu__server_request *o, mu_error *ret_error)
{
    if (o->node.cluster == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a server needs a cluster, a resolver, or a bind_address "
                            "where it can wait for one");
    if (o->node.task_type == NULL || o->node.task_type[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID, "a server needs a task type");
    if (o->node.task_index < 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a server needs a task index: /job:%s/task:?",
                            o->node.task_type);
    return 0;
}

/* ---- starting ---- */

static void compat_server_free(mu_server *server)
{
    if (server->node != NULL)
        mu__node_unref(server->node);
    mu_cluster_free(server->cluster);
    mu__session_config_done(&server->config);
    mu__lock_destroy(&server->lock, &server->changed);
    free(server);
}

static mu_server *compat_server_new(const struct mu__server_request *o)
{
    mu_server *server = calloc(1, sizeof *server);

    if (server == NULL || mu__lock_init(&server->lock, &server->changed) != 0) {
        free(server);
        return NULL;
    }
    server->cluster = mu_cluster_copy(o->node.cluster);
    if (server->cluster == NULL ||
        mu__session_config_copy(&o->config, &server->config) != 0) {
        compat_server_free(server);
        return NULL;
    }
    server->index = o->node.task_index;
    (void)snprintf(server->type, sizeof server->type, "%s", o->node.task_type);
    (void)snprintf(server->rpc_layer, LAYER_BYTES, "%s", layer_of(o));
    (void)snprintf(server->environment, LAYER_BYTES, "%s", environment_of(o));
    mu__task_name(server->task, sizeof server->task, server->type, server->index);
    return server;
}

/* "tcp://host:port" -> "grpc://host:port". */
static void set_server_target(mu_server *server)
{
    static const char scheme[] = "tcp://";
    const char *address = mu_node_address(server->node);

    if (strncmp(address, scheme, sizeof scheme - 1) == 0)
        address += sizeof scheme - 1;
    (void)snprintf(server->target, sizeof server->target, "%s%s%s", server->rpc_layer,
                   server->rpc_layer[0] == '\0' ? "" : "://", address);
}

int mu__server_settings(mu_node *node, const mu_session_config *config)
{
    char number[16];
    char *filters;
    int rv = 0;

    if (config->intra_op_threads > 0) {
        (void)snprintf(number, sizeof number, "%u", config->intra_op_threads);
        rv = mu_node_set_setting(node, "intra_op_threads", number);
    }
    if (rv != 0 || config->device_filters_count == 0)
        return rv;
    filters = mu__session_config_filters(config);
    rv = filters == NULL ? -MU_ENOMEM
                         : mu_node_set_setting(node, "device_filters", filters);
    free(filters);
    return rv;
}

static int open_server_node(mu_server *server, const struct mu__server_request *o,
                            struct mu__discovered *found, mu_error *ret_error)
{
    mu_node_options options = o->node;
    mu_node *node;
    int rv;

    if (o->config.inter_op_threads > 0)
        options.threads = o->config.inter_op_threads;
    rv = mu__node_open_discovered(&options, NULL, found, ret_error, &node);
    if (rv != 0)
        return rv;
    rv = mu__server_settings(node, &server->config);
    if (rv != 0) {
        (void)mu_node_close(node, CLOSE_TIMEOUT_MS, NULL);
        return mu_error_set(ret_error, rv, "no memory for a server");
    }
    mu__node_ref(node);
    server->node = node;
    set_server_target(server);
    return 0;
}

int mu__server_start_discovered(const struct mu__server_request *o,
                                struct mu__discovered *found, mu_error *ret_error,
                                mu_server **ret_server)
{
    mu_server *server;
    int rv = check_server_task(o, ret_error);

    if (rv == 0)
        rv = mu_cluster_validate(o->node.cluster, o->node.task_type, o->node.task_index,
                                 ret_error);
    if (rv != 0)
        return rv;
    server = compat_server_new(o);
    if (server == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a server");
    if (strcmp(server->environment, google) != 0)
        rv = open_server_node(server, o, found, ret_error);
    if (rv != 0)
        compat_server_free(server);
    else
        *ret_server = server;
    return rv;
}

/* The resolver's rpc_layer and environment win over the options', as TF_CONFIG's do. */
static int start_searching(struct mu__server_request *o, mu_error *ret_error,
                           mu_server **ret_server)
{
    const mu_resolution *resolution;
    struct mu__discovered found;
    int rv = mu__discover(&o->node, NULL, ret_error, &found);

    resolution = &found.resolution;
    if (rv == 0 && resolution->rpc_layer[0] != '\0')
        o->rpc_layer = resolution->rpc_layer;
    if (rv == 0 && resolution->environment[0] != '\0')
        o->environment = resolution->environment;
    if (rv == 0)
        rv = mu__server_start_discovered(o, &found, ret_error, ret_server);
    mu__discovered_done(&found, &o->node, rv != 0 || (*ret_server)->node == NULL);
    return rv;
}

static int start_offered(struct mu__server_request *o, mu_error *ret_error,
                         mu_server **ret_server)
{
    struct mu__server_offered offered = {0};
    int rv = mu__server_wait_for_cluster(o, ret_error, &offered);

    if (rv != 0)
        return rv;
    mu__server_apply(&offered, &o->node);
    o->config = offered.config;
    rv = start_searching(o, ret_error, ret_server);
    mu__server_offered_done(&offered);
    return rv;
}

int mu__server_start(struct mu__server_request *o, mu_error *ret_error,
                     mu_server **ret_server)
{
    int rv = check_words(o, ret_error);

    if (rv != 0)
        return rv;
    if (o->node.cluster == NULL && o->node.resolver == NULL &&
        o->node.bind_address != NULL)
        return start_offered(o, ret_error, ret_server);
    return start_searching(o, ret_error, ret_server);
}

int mu_server_start(const mu_server_options *options, mu_error *ret_error,
                    mu_server **ret_server)
{
    MU__REQUIRE(ret_error, options, ret_server);

    struct mu__server_request o;
    int rv = mu__server_request_read(options, ret_error, &o);

    return rv == 0 ? mu__server_start(&o, ret_error, ret_server) : rv;
}

static int start_from_config(struct mu__server_request *o, const mu_tf_config *tf_config,
                             mu_error *ret_error, mu_server **ret_server)
{
    o->node.cluster = tf_config->cluster;
    if (tf_config->cluster != NULL || o->node.resolver == NULL) {
        o->node.task_type = tf_config->task_type;
        o->node.task_index = tf_config->task_index;
    }
    if (tf_config->rpc_layer[0] != '\0')
        o->rpc_layer = tf_config->rpc_layer;
    if (tf_config->environment[0] != '\0')
        o->environment = tf_config->environment;
    if (tf_config->cluster == NULL && o->node.resolver == NULL &&
        o->node.bind_address == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "TF_CONFIG: cluster is missing: a server needs one");
    if (tf_config->cluster != NULL && tf_config->task_type[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "TF_CONFIG: task is missing: a server needs one");
    return mu__server_start(o, ret_error, ret_server);
}

int mu_server_start_from_environment(const mu_server_options *options,
                                     mu_error *ret_error, mu_server **ret_server)
{
    const char *text = getenv("TF_CONFIG");
    struct mu__server_request o;
    mu_tf_config tf_config = {.cluster = NULL};
    int rv = mu__server_request_read(options, ret_error, &o);

    if (rv != 0)
        return rv;
    if ((text == NULL || text[0] == '\0') && o.node.resolver == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "TF_CONFIG is not set: a server needs a cluster and a task");
    rv = mu_node_options_from_environment(&o.node, ret_error);
    if (rv == 0 && (text == NULL || text[0] == '\0'))
        return mu__server_start(&o, ret_error, ret_server);
    if (rv == 0)
        rv = mu_tf_config_parse(text, strlen(text), ret_error, &tf_config);
    if (rv != 0)
        return rv;
    rv = start_from_config(&o, &tf_config, ret_error, ret_server);
    mu_cluster_free(tf_config.cluster);
    return rv;
}

/* ---- what it was started with ---- */

bool mu__server_matches(const mu_server *server, const struct mu__server_request *o)
{
    return o->node.cluster != NULL && o->node.task_type != NULL &&
           strcmp(server->type, o->node.task_type) == 0 &&
           server->index == o->node.task_index &&
           strcmp(server->rpc_layer, layer_of(o)) == 0 &&
           strcmp(server->environment, environment_of(o)) == 0 &&
           mu__session_config_same(&server->config, &o->config) &&
           mu__cluster_same(server->cluster, o->node.cluster);
}

int mu_server_matches(const mu_server *server, const mu_server_options *options)
{
    MU__REQUIRE_OR(0, server, options);

    struct mu__server_request o;

    return mu__server_request_read(options, NULL, &o) == 0 &&
           mu__server_matches(server, &o);
}

mu_node *mu_server_node(mu_server *server)
{
    MU__REQUIRE_OR(NULL, server);
    return server->node;
}

const char *mu_server_target(const mu_server *server)
{
    MU__REQUIRE_OR(NULL, server);
    return server->target;
}

const mu_cluster *mu_server_cluster(const mu_server *server)
{
    MU__REQUIRE_OR(NULL, server);
    return server->cluster;
}

const char *mu_server_task(const mu_server *server)
{
    MU__REQUIRE_OR(NULL, server);
    return server->task;
}

const mu_session_config *mu_server_config(const mu_server *server)
{
    MU__REQUIRE_OR(NULL, server);
    return &server->config;
}

/* ---- joining and stopping ---- */

/* Of a server without a node, which has nothing but the stop to wait for. */
static int wait_stopped(mu_server *server, int64_t timeout_ms, mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    bool is_stopped;

    uv_mutex_lock(&server->lock);
    while (!server->stopped &&
           mu__deadline_wait(deadline_ns, &server->changed, &server->lock))
        ;
    is_stopped = server->stopped;
    uv_mutex_unlock(&server->lock);
    return is_stopped ? 0
                      : mu_error_set(ret_error, -MU_EDEADLINE,
                                     "%s was not stopped after %" PRId64 " ms",
                                     server->task, timeout_ms);
}

static bool is_server_stopping(mu_server *server)
{
    bool is_stopping;

    uv_mutex_lock(&server->lock);
    is_stopping = server->stopping;
    uv_mutex_unlock(&server->lock);
    return is_stopping;
}

int mu_server_join(mu_server *server, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, server);

    int rv;

    if (server->node == NULL)
        return wait_stopped(server, timeout_ms, ret_error);
    rv = mu_node_wait_job(server->node, timeout_ms, ret_error);
    if (rv != -MU_ECLOSED || !is_server_stopping(server))
        return rv;
    if (ret_error != NULL)
        *ret_error = (mu_error){0};
    return 0;
}

static int close_server_node(mu_server *server, int64_t timeout_ms, mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);

    if (server->node == NULL)
        return 0;
    if (mu__worker_types_has(&server->node->member.worker_types, server->type) &&
        timeout_ms != 0)
        (void)mu_node_drain(server->node, timeout_ms, NULL);
    return mu_node_close(server->node, mu__deadline_left_ms(deadline_ns), ret_error);
}

/* False: another thread stops it, or has. */
static bool begin_stopping(mu_server *server)
{
    bool is_first;

    uv_mutex_lock(&server->lock);
    is_first = !server->stopping;
    server->stopping = true;
    uv_mutex_unlock(&server->lock);
    return is_first;
}

int mu_server_stop(mu_server *server, int64_t drain_timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, server);

    int rv;

    if (!is_server_stopping(server) && server->node != NULL &&
        mu__node_on_loop(server->node))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "a server is not stopped on its own loop's thread");
    if (!begin_stopping(server))
        return wait_stopped(server, -1, ret_error);
    rv = close_server_node(server, drain_timeout_ms, ret_error);
    uv_mutex_lock(&server->lock);
    server->stopped = true;
    uv_cond_broadcast(&server->changed);
    uv_mutex_unlock(&server->lock);
    return rv;
}

void mu_server_free(mu_server *server)
{
    if (server == NULL)
        return;
    (void)mu_server_stop(server, 0, NULL);
    compat_server_free(server);
}

/* ---- stopping others ---- */

/* Exactly one task. */
static int parse_server_task(const char *text, mu_error *ret_error,
                             struct mu__job_call *call)
{
    struct mu__task_set set;
    mu_error error;

    if (text == NULL || mu__task_set_parse(mu__view_str(text), &error, &set) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected a task, as \"/job:ps/task:0\", got \"%.100s\"",
                            text == NULL ? "" : text);
    if (mu__task_set_count(&set) != 1) {
        mu__task_set_done(&set);
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected one task, as \"/job:ps/task:0\", got \"%.100s\"",
                            text);
    }
    memcpy(call->type, set.ranges[0].type, sizeof call->type);
    call->index = set.ranges[0].first;
    mu__task_set_done(&set);
    return 0;
}

int mu_server_stop_remote(mu_node *node, const char *task, const char *reason,
                          int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, task);

    char words[MU__ERROR_TEXT_MAX + 1];
    struct mu__job_call call = {
        .call.operation = MU__JOB_STOP,
        .call.timeout_ms = timeout_ms,
        .message = words,
    };
    int rv = parse_server_task(task, ret_error, &call);

    if (rv != 0)
        return rv;
    (void)snprintf(words, sizeof words, "%s", reason == NULL ? "" : reason);
    return mu__node_call(node, MU__JOB, &call.call, ret_error);
}
