/* How the verbs `muster vars ...` find a variable or a table, and open it. */
#include "cli/vars/vars.h"

#include "runtime/base/text.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_CLOSE_MS = 500 };

/* ---- Finding ---- */

static const mu_value *find_named(const mu_value *list, const char *key, const char *name)
{
    for (size_t i = 0; i < mu_value_count(list); i++)
        if (strcmp(cmd_map_text(mu_value_at(list, i), key), name) == 0)
            return mu_value_at(list, i);
    return NULL;
}

bool cmd_vars_is_table(const mu_value *found)
{
    return mu_value_find(found, "table") != NULL;
}

int cmd_vars_find(const mu_value *value, const char *name, mu_error *error,
                  const mu_value **ret_found)
{
    int64_t silent = cmd_map_number(value, "servers_missing");
    int64_t left_out = cmd_map_number(value, "left_out");
    const mu_value *found = find_named(mu_value_find(value, "variables"), "name", name);
    char shown[MU__QUOTE_BYTES];

    if (found == NULL)
        found = find_named(mu_value_find(value, "tables"), "table", name);
    *ret_found = found;
    if (found != NULL)
        return 0;
    mu__quote(shown, sizeof shown, name, strlen(name));
    if (silent > 0)
        return mu_error_set(error, -MU_EUNAVAILABLE,
                            "no variable or table %s is listed, and %" PRId64
                            " parameter servers did not answer in time",
                            shown, silent);
    return mu_error_set(error, -MU_ENOTFOUND, "there is no variable or table %s%s", shown,
                        left_out > 0 ? " among those that the servers list" : "");
}

/* ---- Reaching the servers ---- */

/* Where a server is: as the cluster spec says, or else the chief. NULL: neither does. */
static const char *server_address(const struct cmd_client *client, const mu_value *tasks,
                                  int index)
{
    const char *address = mu_cluster_address(client->spec, "ps", index);

    for (size_t i = 0; address == NULL && i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);

        if (strcmp(cmd_map_text(task, "type"), "ps") == 0 &&
            cmd_map_number(task, "index") == index)
            address = cmd_map_text(task, "address");
    }
    return address;
}

/* How many there are, by the views of partitions. */
static int count_servers(const struct cmd_client *client, const mu_value *status)
{
    const mu_value *views = mu_value_find(mu_value_find(status, "partitions"), "views");
    int64_t end = mu_cluster_job_end(client->spec, "ps");

    for (size_t i = 0; i < mu_value_count(views); i++) {
        int64_t primary = cmd_map_number(mu_value_at(views, i), "primary");

        end = primary >= end ? primary + 1 : end;
    }
    return (int)end;
}

static int target_servers(struct cmd_client *client, const mu_value *status,
                          mu_error *error)
{
    int count = count_servers(client, status);
    int rv = 0;

    for (int i = 0; i < count && rv == 0; i++) {
        const char *address = server_address(client, mu_value_find(status, "tasks"), i);

        if (address == NULL || address[0] == '\0')
            return mu_error_set(error, -MU_EUNAVAILABLE,
                                "the address of /job:ps/task:%d is not known: it is not "
                                "connected to the chief, and no --cluster says it",
                                i);
        rv = mu_cluster_add(client->targets, "ps", i, address, error);
    }
    return rv;
}

static int reach_servers(struct cmd_client *client, const mu_value *status,
                         mu_error *error)
{
    mu_node_options options;
    int rv = target_servers(client, status, error);

    if (rv != 0)
        return rv;
    (void)mu_node_close(client->node, FIRST_CLOSE_MS, NULL);
    client->node = NULL;
    options = cmd_client_options(client->options, &client->log, client->targets);
    if (client->cluster_name[0] != '\0' &&
        client->options->values[CMD_FLAG_CLUSTER_NAME].source == CMD_FROM_DEFAULT)
        options.cluster_name = client->cluster_name;
    options.task_index = client->own_index;
    return mu_node_open(&options, error, &client->node);
}

int cmd_vars_request(struct cmd_client *client, bool reaches, mu_error *error,
                     mu_value **ret_value)
{
    mu_value *status;
    mu_value *value = NULL;
    int rv = mu_node_status(client->node, cmd_timeout_ms(client), error, &status);

    if (rv != 0)
        return rv;
    if (reaches)
        rv = reach_servers(client, status, error);
    if (rv == 0) {
        value = cmd_vars_value(status);
        rv = value == NULL ? -MU_ENOMEM : 0;
    }
    mu_value_free(status);
    *ret_value = value;
    return rv;
}

/* ---- Opening ---- */

int cmd_vars_open_variable(const struct cmd_client *client, const mu_value *found,
                           mu_error *error, mu_variable **ret_variable)
{
    const mu_value *list = mu_value_find(found, "dims");
    uint64_t dims[MU_TENSOR_RANK_MAX] = {0};
    const mu_variable_spec spec = {
        .name = cmd_map_text(found, "name"),
        .dtype = mu_dtype_find(cmd_map_text(found, "dtype")),
        .rank = (unsigned)mu_value_count(list),
        .dims = dims,
        .flags = MU_VARIABLE_EXISTING,
    };

    for (size_t i = 0; i < mu_value_count(list) && i < MU_TENSOR_RANK_MAX; i++) {
        int64_t dim = 0;

        (void)mu_value_get_int(mu_value_at(list, i), &dim);
        dims[i] = (uint64_t)dim;
    }
    return mu_variable_open(client->node, &spec, cmd_timeout_ms(client), error,
                            ret_variable);
}

int cmd_vars_open_table(const struct cmd_client *client, const mu_value *found,
                        mu_error *error, mu_table **ret_table)
{
    return mu_table_open_existing(client->node, cmd_map_text(found, "table"),
                                  cmd_timeout_ms(client), error, ret_table);
}
