#include "cli/chief_client.h"

#include "cli/output/log.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INDEX_FIRST = 100000, /* of this client: above the indices of other clients */
    INDEX_COUNT = 900000,
    CLOSE_MS = 500
};

/* ---- reading responses ---- */

int64_t cmd_map_number(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

bool cmd_map_bool(const mu_value *map, const char *key)
{
    int truth = 0;

    (void)mu_value_get_bool(mu_value_find(map, key), &truth);
    return truth != 0;
}

const char *cmd_map_text(const mu_value *map, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

bool cmd_tasks_have(const mu_value *tasks, const char *type, int index)
{
    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);

        if (strcmp(cmd_map_text(task, "type"), type) == 0 &&
            cmd_map_number(task, "index") == index)
            return true;
    }
    return false;
}

const char *cmd_shape(const mu_value *dims, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < mu_value_count(dims) && used < size; i++) {
        int64_t dim = 0;

        (void)mu_value_get_int(mu_value_at(dims, i), &dim);
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, i == 0 ? "" : "x",
                                 dim);
    }
    return out;
}

const char *cmd_duration(int64_t ms, char *out, size_t size)
{
    if (ms < 10000)
        (void)snprintf(out, size, "%" PRId64 " ms", ms);
    else if (ms < 600000)
        (void)snprintf(out, size, "%" PRId64 " s", ms / 1000);
    else
        (void)snprintf(out, size, "%" PRId64 " min", ms / 60000);
    return out;
}

static void add_signal(sigset_t *signals, int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        (void)sigaddset(signals, number);
}

void cmd_block_signals(sigset_t *ret_signals)
{
    (void)sigemptyset(ret_signals);
    add_signal(ret_signals, SIGINT);
    add_signal(ret_signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
}

int cmd_exit_code(int code)
{
    if (code == 0)
        return CMD_FINE;
    return code == -MU_EDEADLINE || code == -MU_EUNAVAILABLE ? CMD_UNREACHED : CMD_FAILED;
}

/* ---- flags ---- */

bool cmd_is_json(const struct cmd_client *client)
{
    return cmd_number(client->options, CMD_FLAG_OUTPUT) == 1;
}

int64_t cmd_timeout_ms(const struct cmd_client *client)
{
    return (int64_t)cmd_number(client->options, CMD_FLAG_TIMEOUT_MS);
}

int64_t cmd_wait_timeout_ms(const struct cmd_client *client)
{
    return client->options->values[CMD_FLAG_TIMEOUT_MS].source == CMD_FROM_DEFAULT
               ? -1
               : cmd_timeout_ms(client);
}

bool cmd_task_parse(const char *text, char ret_type[CMD_TYPE_BYTES], int *ret_index)
{
    static const char job[] = "/job:";
    static const char middle[] = "/task:";
    bool is_long = strncmp(text, job, sizeof job - 1) == 0;
    const char *type = is_long ? text + sizeof job - 1 : text;
    const char *end = is_long ? strstr(type, middle) : strchr(type, ':');

    if (end == NULL || end - type >= CMD_TYPE_BYTES)
        return false;
    (void)snprintf(ret_type, CMD_TYPE_BYTES, "%.*s", (int)(end - type), type);
    return cmd_type_check(ret_type, NULL) == 0 &&
           cmd_index_parse(end + (is_long ? sizeof middle - 1 : 1), ret_index);
}

void cmd_task_name(char out[CMD_TASK_BYTES], const char *type, int index)
{
    (void)snprintf(out, CMD_TASK_BYTES, "/job:%s/task:%d", type, index);
}

/* ---- the client node ---- */

/* Add a task to the targets. `origin` names the source of the address, for the error. */
static int add_target(struct cmd_client *client, const char *type, int index,
                      const char *given, const char *origin, mu_error *error)
{
    mu_error inner;
    int rv = mu_cluster_add(client->targets, type, index, given, &inner);

    if (rv != 0)
        return mu_error_set(error, rv, "%s: %s", origin, inner.message);
    client->address = mu_cluster_url(client->targets, type, index);
    return 0;
}

int cmd_target_address(struct cmd_client *client, const char *type, int index,
                       mu_error *error)
{
    char origin[CMD_ORIGIN_BYTES];

    return add_target(
        client, type, index, cmd_text(client->options, CMD_FLAG_ADDRESS),
        cmd_origin(client->options, CMD_FLAG_ADDRESS, origin, sizeof origin), error);
}

int cmd_target_chief(struct cmd_client *client, mu_error *error)
{
    const char *listed = mu_cluster_address(client->spec, "chief", 0);

    if (cmd_text(client->options, CMD_FLAG_ADDRESS) != NULL)
        return cmd_target_address(client, "chief", 0, error);
    if (listed == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "there is no chief to ask: expected --address, or --cluster "
                            "or TF_CONFIG with a chief");
    return add_target(client, "chief", 0, listed, "cluster.chief", error);
}

/* The cluster spec is read even with --address: `muster status` lists missing tasks by
 * it. */
static int read_targets(struct cmd_client *client, cmd_target_fn target, mu_error *error)
{
    mu_resolution found;
    int rv = cmd_spec_cluster(client->options, error, &found);

    if (rv != 0)
        return rv;
    client->spec = found.cluster;
    memcpy(client->cluster_name, found.cluster_name, sizeof client->cluster_name);
    client->targets = mu_cluster_new();
    if (client->targets == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    return target(client, error);
}

mu_node_options cmd_client_options(const struct cmd_options *options, struct cmd_log *log,
                                   const mu_cluster *cluster)
{
    mu_node_options made;

    mu_node_options_init(&made);
    made.cluster = cluster;
    cmd_peer_options(options, &made);
    made.service_hosts = "none";
    made.task_type = "client";
    made.task_index = INDEX_FIRST + (int)(getpid() % INDEX_COUNT);
    made.log = cmd_log_line;
    made.log_user = log;
    made.log_level = log->level;
    return made;
}

static int request_as_client(struct cmd_client *client, cmd_target_fn target,
                             cmd_request_fn request, mu_error *error)
{
    mu_node_options options;
    int rv;

    if (read_targets(client, target, error) != 0)
        return CMD_USAGE;
    options = cmd_client_options(client->options, &client->log, client->targets);
    if (client->cluster_name[0] != '\0' &&
        client->options->values[CMD_FLAG_CLUSTER_NAME].source == CMD_FROM_DEFAULT)
        options.cluster_name = client->cluster_name;
    if (client->hosts != NULL)
        options.service_hosts = client->hosts;
    if (client->own_index >= 0)
        options.task_index = client->own_index;
    client->own_index = options.task_index;
    rv = client->is_any ? mu_node_open_at(&options, client->address, error, &client->node)
                        : mu_node_open(&options, error, &client->node);
    if (rv != 0)
        return rv == -MU_EINVALID ? CMD_USAGE : CMD_ADDRESS;
    rv = request(client, error);
    (void)mu_node_close(client->node, CLOSE_MS, NULL);
    return rv;
}

int cmd_with_client(const struct cmd_options *options, cmd_target_fn target,
                    cmd_request_fn request, void *user)
{
    struct cmd_client client = {
        .options = options,
        .user = user,
        .own_index = -1,
    };
    mu_error error = {.message = "out of memory"};
    int code = CMD_USAGE;

    if (cmd_log_open_client(options, &error, &client.log) == 0) {
        code = request_as_client(&client, target, request, &error);
        cmd_log_close(&client.log);
    }
    if (code != CMD_FINE && error.message[0] != '\0')
        cmd_print_error(options->verb->name, error.message);
    mu_cluster_free(client.targets);
    mu_cluster_free(client.spec);
    free(client.hosts);
    return code;
}

int cmd_chief_verb(struct cmd_options *options)
{
    return cmd_with_client(options, cmd_target_chief, options->verb->request, NULL);
}
