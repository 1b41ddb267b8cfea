/* Calls that lack one field of a structure, for tests/real/cluster/test_null_arguments.c.
 */
#ifndef MUSTER_TESTS_REAL_NULL_FIELDS_H
#define MUSTER_TESTS_REAL_NULL_FIELDS_H

#include "tests/real/null_env.h"

static intmax_t begin_without_key(struct null_env *e, mu_error *error)
{
    const mu_kv_request ask = {.operation = MU_KV_GET};

    (void)error;
    return mu_kv_request_async(e->node, &ask, null_on_answer, NULL, NULL);
}

static intmax_t put_without_value(struct null_env *e, mu_error *error)
{
    return mu_kv_put(e->node, "a", NULL, 1, 0, 0, NULL_TIMEOUT_MS, error, NULL);
}

static intmax_t transact(struct null_env *e, const mu_kv_check *check,
                         const mu_kv_change *change, mu_error *error)
{
    const mu_kv_transaction transaction = {check, 1, change, 1};

    return mu_kv_transact(e->node, &transaction, NULL_TIMEOUT_MS, error, NULL);
}

static const mu_kv_check good_check = {.type = MU_KV_IF_ABSENT, .key = "a"};
static const mu_kv_change good_change = {.operation = MU_KV_DELETE, .key = "a"};

static intmax_t transact_without_checks(struct null_env *e, mu_error *error)
{
    return transact(e, NULL, &good_change, error);
}

static intmax_t transact_without_changes(struct null_env *e, mu_error *error)
{
    return transact(e, &good_check, NULL, error);
}

static intmax_t transact_without_check_key(struct null_env *e, mu_error *error)
{
    const mu_kv_check check = {.type = MU_KV_IF_ABSENT};

    return transact(e, &check, &good_change, error);
}

static intmax_t transact_without_check_value(struct null_env *e, mu_error *error)
{
    const mu_kv_check check = {.type = MU_KV_IF_VALUE, .key = "a", .size = 1};

    return transact(e, &check, &good_change, error);
}

static intmax_t transact_without_change_key(struct null_env *e, mu_error *error)
{
    const mu_kv_change change = {.operation = MU_KV_DELETE};

    return transact(e, &good_check, &change, error);
}

static intmax_t transact_without_change_value(struct null_env *e, mu_error *error)
{
    const mu_kv_change change = {.operation = MU_KV_PUT, .key = "a", .size = 1};

    return transact(e, &good_check, &change, error);
}

static intmax_t open_variable_without_name(struct null_env *e, mu_error *error)
{
    mu_variable_spec spec = e->variable_spec;
    mu_variable *variable;

    spec.name = NULL;
    return mu_variable_open(e->node, &spec, NULL_TIMEOUT_MS, error, &variable);
}

static intmax_t open_variable_without_dims(struct null_env *e, mu_error *error)
{
    mu_variable_spec spec = e->variable_spec;
    mu_variable *variable;

    spec.dims = NULL;
    return mu_variable_open(e->node, &spec, NULL_TIMEOUT_MS, error, &variable);
}

static intmax_t save_nowhere(struct null_env *e, mu_error *error)
{
    mu_checkpoint_options options = e->checkpoint_options;

    options.directory = NULL;
    return mu_checkpoint_save(&options, 1, &e->variable, 1, NULL, error, NULL);
}

static intmax_t save_no_variable(struct null_env *e, mu_error *error)
{
    mu_variable *const variables[2] = {e->variable, NULL};

    return mu_checkpoint_save(&e->checkpoint_options, 1, variables, 2, NULL, error, NULL);
}

static intmax_t restore_no_name(struct null_env *e, mu_error *error)
{
    const char *const names[1] = {NULL};

    return mu_checkpoint_restore(e->node, "no/such", names, 1, NULL_TIMEOUT_MS, error);
}

static intmax_t fetch_no_value(struct null_env *e, mu_error *error)
{
    mu_remote_value *const values[2] = {e->remote, NULL};

    return mu_remote_value_fetch_all(values, 2, NULL_TIMEOUT_MS, error, NULL);
}

static intmax_t unite_no_resolver(struct null_env *e, mu_error *error)
{
    mu_resolver *const members[2] = {e->resolver, NULL};
    mu_resolver *resolver;

    return mu_resolver_new_union(members, 2, error, &resolver);
}

static intmax_t register_kind_without_name(struct null_env *e, mu_error *error)
{
    mu_resolver_kind kind = e->resolver_kind;

    kind.name = NULL;
    return mu_resolver_register(&kind, error);
}

static intmax_t register_kind_without_resolve(struct null_env *e, mu_error *error)
{
    return mu_resolver_register(&e->resolver_kind, error);
}

static intmax_t open_node_without_cluster(struct null_env *e, mu_error *error)
{
    mu_node_options options = e->node_options;
    mu_node *node;

    options.cluster = NULL;
    return mu_node_open(&options, error, &node);
}

static intmax_t open_node_without_type(struct null_env *e, mu_error *error)
{
    mu_node_options options = e->node_options;
    mu_node *node;

    options.task_type = NULL;
    return mu_node_open(&options, error, &node);
}

static intmax_t open_node_without_name(struct null_env *e, mu_error *error)
{
    mu_node_options options = e->node_options;
    mu_node *node;

    options.cluster_name = NULL;
    return mu_node_open(&options, error, &node);
}

static intmax_t open_node_without_texts(struct null_env *e, mu_error *error)
{
    mu_node_options options = e->node_options;
    mu_node *node = NULL;
    int rv;

    options.coordinated_jobs = NULL;
    options.recoverable = NULL;
    options.worker_types = NULL;
    options.store = NULL;
    options.log = NULL;
    options.log_level = MU_LOG_ERROR;
    rv = mu_node_open(&options, error, &node);
    if (rv == 0)
        rv = mu_node_close(node, -1, error);
    return rv;
}

static intmax_t start_server_without_type(struct null_env *e, mu_error *error)
{
    mu_server_options options = e->server_options;
    mu_node_options node = e->node_options;
    mu_server *server;

    options.environment = "";
    options.node = &node;
    node.task_type = NULL;
    return mu_server_start(&options, error, &server);
}

static intmax_t start_server_without_filters(struct null_env *e, mu_error *error)
{
    mu_server_options options = e->server_options;
    mu_session_config config = e->session_config;
    mu_server *server;

    options.environment = "";
    options.config = &config;
    config.device_filters_count = 1;
    return mu_server_start(&options, error, &server);
}

static intmax_t offer_without_cluster(struct null_env *e, mu_error *error)
{
    mu_server_options offer = e->server_options;
    mu_node_options node = e->node_options;

    offer.node = &node;
    node.cluster = NULL;
    return mu_server_assign_cluster(&offer, NULL_TIMEOUT_MS, error);
}

static intmax_t offer_without_type(struct null_env *e, mu_error *error)
{
    mu_server_options offer = e->server_options;
    mu_node_options node = e->node_options;

    offer.node = &node;
    node.task_type = NULL;
    return mu_server_assign_cluster(&offer, NULL_TIMEOUT_MS, error);
}

static intmax_t open_session_without_name(struct null_env *e, mu_error *error)
{
    mu_session_options options = e->session_options;
    mu_session *session;

    options.name = NULL;
    return mu_session_open(e->node, &options, error, &session);
}

static intmax_t distribute_nothing(struct null_env *e, mu_error *error)
{
    mu_distribute_options options = e->distribute_options;

    options.worker = NULL;
    return mu_distribute_run(&options, error, NULL);
}

#define FIELD(function, field, call)                 \
    {                                                \
        function, field, call, NULL_REFUSED, 0, true \
    }

static const struct null_row fields[] = {
    {"mu_kv_request_async", "ask.key", begin_without_key, NULL_REFUSED, 0, false},
    FIELD("mu_kv_put", "value", put_without_value),
    FIELD("mu_kv_transact", "checks", transact_without_checks),
    FIELD("mu_kv_transact", "changes", transact_without_changes),
    FIELD("mu_kv_transact", "check.key", transact_without_check_key),
    FIELD("mu_kv_transact", "check.value", transact_without_check_value),
    FIELD("mu_kv_transact", "change.key", transact_without_change_key),
    FIELD("mu_kv_transact", "change.value", transact_without_change_value),
    FIELD("mu_variable_open", "spec.name", open_variable_without_name),
    FIELD("mu_variable_open", "spec.dims", open_variable_without_dims),
    FIELD("mu_checkpoint_save", "directory", save_nowhere),
    FIELD("mu_checkpoint_save", "variables[1]", save_no_variable),
    FIELD("mu_checkpoint_restore", "names[0]", restore_no_name),
    FIELD("mu_remote_value_fetch_all", "values[1]", fetch_no_value),
    FIELD("mu_resolver_new_union", "members[1]", unite_no_resolver),
    FIELD("mu_resolver_register", "name", register_kind_without_name),
    FIELD("mu_resolver_register", "resolve", register_kind_without_resolve),
    FIELD("mu_node_open", "cluster", open_node_without_cluster),
    FIELD("mu_node_open", "task_type", open_node_without_type),
    FIELD("mu_node_open", "cluster_name", open_node_without_name),
    {"mu_node_open", "texts", open_node_without_texts, NULL_ANSWERED, 0, true},
    FIELD("mu_server_start", "task_type", start_server_without_type),
    FIELD("mu_server_start", "device_filters", start_server_without_filters),
    FIELD("mu_server_assign_cluster", "cluster", offer_without_cluster),
    FIELD("mu_server_assign_cluster", "task_type", offer_without_type),
    FIELD("mu_session_open", "name", open_session_without_name),
    FIELD("mu_distribute_run", "worker", distribute_nothing),
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

#endif
