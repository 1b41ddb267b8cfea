/* `muster stop`: stops another task, which ends as if the job was done. */
#include "cli/chief_client.h"
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"

#include "muster/compat/server.h"

#include <stdio.h>
#include <string.h>

struct stop {
    char type[CMD_TYPE_BYTES];
    int index;
    char task[CMD_TASK_BYTES]; /* "/job:ps/task:0" */
    bool is_direct;            /* without a chief: the request goes to the task itself */
};

static int parse_stop_task(const char *text, mu_error *error, struct stop *stop)
{
    char shown[MU__QUOTE_BYTES];

    if (cmd_task_parse(text, stop->type, &stop->index)) {
        cmd_task_name(stop->task, stop->type, stop->index);
        return 0;
    }
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected a task, as ps:0 or /job:ps/task:0", shown);
}

/* Target the chief; in a cluster without a chief the task itself. */
static int target_chief_or_task(struct cmd_client *client, mu_error *error)
{
    struct stop *stop = client->user;
    const char *url;
    int rv = parse_stop_task(client->options->operands[0], error, stop);

    if (rv != 0)
        return rv;
    if (cmd_text(client->options, CMD_FLAG_ADDRESS) != NULL ||
        mu_cluster_address(client->spec, "chief", 0) != NULL ||
        mu_cluster_task_count(client->spec, NULL) == 0)
        return cmd_target_chief(client, error);
    url = mu_cluster_url(client->spec, stop->type, stop->index);
    if (url == NULL)
        return mu_error_set(error, -MU_EINVALID, "the cluster has no %s", stop->task);
    client->address = url;
    client->is_any = true;
    stop->is_direct = true;
    return 0;
}

static int print_stopped(const struct cmd_client *client, const struct stop *stop)
{
    const char *reason = client->options->operands[1];
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)printf("%s has stopped\n", stop->task);
        return CMD_FINE;
    }
    if (reason == NULL)
        reason = "";
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "task", stop->task);
    cmd_json_add_text(map, "reason", reason);
    (void)cJSON_AddItemToObject(map, "stopped", cJSON_CreateTrue());
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

/* Request the chief's status to choose the timeout: a connected worker may take long to
 * finish its closures, a task that is not connected is waited for as long as for a
 * response. Returns 0 or the exit code. */
static int choose_stop_timeout(struct cmd_client *client, const struct stop *stop,
                               mu_error *error, int64_t *timeout_ms)
{
    bool is_listed = mu_cluster_address(client->spec, stop->type, stop->index) != NULL ||
                     mu_cluster_task_count(client->spec, NULL) == 0;
    mu_value *status;
    int rv = mu_node_status(client->node, cmd_timeout_ms(client), error, &status);
    bool connected;

    if (rv != 0)
        return cmd_exit_code(rv);
    connected = cmd_tasks_have(mu_value_find(status, "tasks"), stop->type, stop->index);
    mu_value_free(status);
    if (!connected && !is_listed && strcmp(stop->type, "chief") != 0)
        return cmd_exit_code(mu_error_set(error, -MU_ENOTFOUND,
                                          "the cluster has no %s, and none has joined it",
                                          stop->task));
    if (!connected)
        *timeout_ms = cmd_timeout_ms(client);
    return 0;
}

static int stop_task(struct cmd_client *client, mu_error *error)
{
    const struct stop *stop = client->user;
    int64_t timeout_ms =
        stop->is_direct ? cmd_timeout_ms(client) : cmd_wait_timeout_ms(client);
    int rv = stop->is_direct ? 0 : choose_stop_timeout(client, stop, error, &timeout_ms);

    if (rv != 0)
        return rv;
    rv = mu_server_stop_remote(client->node, stop->task, client->options->operands[1],
                               timeout_ms, error);
    return rv == 0 ? print_stopped(client, stop) : cmd_exit_code(rv);
}

int cmd_stop(struct cmd_options *options)
{
    struct stop stop = {.index = 0};

    return cmd_with_client(options, target_chief_or_task, stop_task, &stop);
}
