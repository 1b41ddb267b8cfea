/* The cluster, and which task this process is: from the options of a run, TF_CONFIG, a
 * resolver, or the strategy. */
#include "api/compat/compat.h"
#include "api/distribute/internal.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy_spec_text(char *out, size_t size, const char *what, const char *text,
                          mu_error *error)
{
    if (text == NULL)
        return 0;
    if (strlen(text) >= size)
        return mu_error_set(error, -MU_EINVALID,
                            "option %s is \"%.80s\"; expected at most %zu bytes", what,
                            text, size - 1);
    (void)snprintf(out, size, "%s", text);
    return 0;
}

/* The local mode is that of one process, whatever cluster it is in. */
static int read_spec_tf_config(const mu_distribute_options *o, mu_error *error,
                               mu_tf_config *ret_config)
{
    bool is_read = !o->ignore_environment && o->mode != MU_MODE_LOCAL;
    const char *text = is_read ? getenv("TF_CONFIG") : NULL;

    *ret_config = (mu_tf_config){.task_index = -1};
    if (text == NULL || text[0] == '\0')
        return 0;
    return mu_tf_config_parse(text, strlen(text), error, ret_config);
}

/* With the caller's cluster, the task is the caller's, too. */
static int copy_caller_cluster(const mu_distribute_options *o, mu_tf_config *spec,
                               mu_error *error)
{
    mu_cluster_free(spec->cluster);
    spec->cluster = mu_cluster_copy(o->cluster);
    spec->task_type[0] = '\0';
    spec->task_index = -1;
    return spec->cluster != NULL ? 0 : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

/* The spec by the strategy's function, if it has one. */
static int request_strategy(const mu_strategy *strategy, mu_tf_config *spec,
                            mu_error *error)
{
    mu_tf_config found = {.task_index = -1};
    int rv;

    if (strategy == NULL || strategy->spec == NULL)
        return 0;
    rv = strategy->spec(strategy->user, error, &found);
    if (rv != 0)
        return rv;
    if (found.rpc_layer[0] == '\0')
        memcpy(found.rpc_layer, spec->rpc_layer, sizeof found.rpc_layer);
    mu_cluster_free(spec->cluster);
    *spec = found;
    return 0;
}

/* ---- a resolver ---- */

/* Takes the resolution's cluster. Only a fixed master is taken: other masters are made of
 * the task's address, as mu__plan_target does. */
static int apply_resolution(const mu_resolution *found, mu_tf_config *spec,
                            mu_error *error)
{
    mu_cluster_free(spec->cluster);
    spec->cluster = found->cluster;
    (void)snprintf(spec->task_type, sizeof spec->task_type, "%s", found->task_type);
    spec->task_index = found->task_index;
    if (found->rpc_layer[0] != '\0')
        memcpy(spec->rpc_layer, found->rpc_layer, sizeof spec->rpc_layer);
    if (found->environment[0] != '\0')
        memcpy(spec->environment, found->environment, sizeof spec->environment);
    if (found->master_fixed == 0)
        return 0;
    return copy_spec_text(spec->session_master, sizeof spec->session_master,
                          "resolver: its master", found->master, error);
}

/* A server's way to its cluster, which listens and announces the task, if the resolver
 * takes announcements. */
static int discover_spec(const mu_distribute_options *o, struct mu__spec *spec,
                         mu_error *error)
{
    mu_node_options *options = &spec->node_options;
    mu_resolution resolution;
    int rv;

    spec->found = calloc(1, sizeof *spec->found);
    if (spec->found == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory for a run");
    options->cluster = NULL;
    options->resolver = o->resolver;
    options->task_type = o->task_type;
    options->task_index = o->task_type == NULL ? -1 : o->task_index;
    rv = mu__discover_any(options, NULL, error, spec->found);
    if (rv != 0)
        return rv;
    resolution = spec->found->resolution;
    resolution.cluster = mu_cluster_copy(spec->found->cluster);
    if (resolution.cluster == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    rv = apply_resolution(&resolution, &spec->config, error);
    spec->config.task_index = options->task_index;
    return rv;
}

static bool starts_server(const mu_distribute_options *o)
{
    if (o->node != NULL || (o->task_type != NULL && strcmp(o->task_type, "client") == 0))
        return false;
    return o->mode != MU_MODE_STANDALONE || o->task_type != NULL;
}

static int take_from_server(const mu_server *server, mu_tf_config *spec, mu_error *error)
{
    mu_cluster_free(spec->cluster);
    spec->cluster = mu_cluster_copy(mu_server_cluster(server));
    (void)sscanf(mu_server_task(server), "/job:%15[^/]/task:%d", spec->task_type,
                 &spec->task_index);
    return spec->cluster != NULL ? 0 : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

static int request_resolver(const mu_distribute_options *o, const mu_server *server,
                            struct mu__spec *spec, mu_error *error)
{
    mu_resolution resolution;
    int rv;

    if (o->resolver == NULL || o->mode == MU_MODE_LOCAL)
        return 0;
    if (server != NULL)
        return take_from_server(server, &spec->config, error);
    if (starts_server(o))
        return discover_spec(o, spec, error);
    rv = mu_resolver_resolve(o->resolver, spec->node_options.resolve_ms, error,
                             &resolution);
    if (rv != 0)
        return rv;
    memcpy(spec->cluster_name, resolution.cluster_name, sizeof spec->cluster_name);
    return apply_resolution(&resolution, &spec->config, error);
}

/* ---- all sources ---- */

static int read_sources(const mu_distribute_options *o, const mu_server *server,
                        struct mu__spec *spec, mu_error *error)
{
    int rv = read_spec_tf_config(o, error, &spec->config);

    if (rv != 0)
        return rv;
    if (!mu_cluster_is_empty(o->cluster))
        return copy_caller_cluster(o, &spec->config, error);
    if (mu_cluster_is_empty(spec->config.cluster))
        rv = request_resolver(o, server, spec, error);
    if (rv == 0 && mu_cluster_is_empty(spec->config.cluster))
        rv = request_strategy(o->strategy, &spec->config, error);
    return rv;
}

/* Task, layer and environment by the options, wherever the cluster is from. */
static int read_spec_options(const mu_distribute_options *o,
                             const struct mu__discovered *found, mu_tf_config *spec,
                             mu_error *error)
{
    int rv;

    if (spec->rpc_layer[0] == '\0')
        (void)snprintf(spec->rpc_layer, sizeof spec->rpc_layer, "grpc");
    if (o->task_type != NULL && found == NULL)
        spec->task_index = o->task_index;
    rv = copy_spec_text(spec->task_type, sizeof spec->task_type, "task_type",
                        o->task_type, error);
    if (rv == 0)
        rv = copy_spec_text(spec->rpc_layer, sizeof spec->rpc_layer, "rpc_layer",
                            o->rpc_layer, error);
    if (rv == 0)
        rv = copy_spec_text(spec->environment, sizeof spec->environment, "environment",
                            o->environment, error);
    if (rv == 0 && spec->environment[0] != '\0' &&
        strcmp(spec->environment, "google") != 0)
        rv = mu_error_set(error, -MU_EINVALID,
                          "environment \"%s\"; expected \"\" or \"google\"",
                          spec->environment);
    return rv;
}

/* The options win over TF_CONFIG, that over the resolver, and that over the strategy. */
int mu__spec_read(const mu_distribute_options *o, const mu_server *server,
                  mu_error *error, struct mu__spec *ret_spec)
{
    struct mu__spec spec = {.config = {.task_index = -1}};
    int rv =
        MU__OPTIONS_READ(mu_node_options, o->node_options, error, &spec.node_options);

    if (rv == 0)
        rv = read_sources(o, server, &spec, error);
    if (rv == 0)
        rv = read_spec_options(o, spec.found, &spec.config, error);
    if (rv == 0)
        *ret_spec = spec;
    else
        mu__spec_drop(&spec);
    return rv;
}

void mu__spec_leave(struct mu__spec *spec, bool withdraws)
{
    if (spec->found != NULL)
        mu__discovered_done(spec->found, &spec->node_options, withdraws);
}

void mu__spec_drop(struct mu__spec *spec)
{
    mu__spec_leave(spec, true);
    free(spec->found);
    mu_cluster_free(spec->config.cluster);
}
