/* `muster assign`: sends the cluster spec, and its own task, to each task that waits for
 * one (`muster node --wait-cluster`, or a server without a cluster spec). */
#include "cli/output/log.h"
#include "cli/output/print_json.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "muster/compat/server.h"

#include <stdio.h>
#include <string.h>

struct assigning {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *cluster;
    const char *tasks; /* the set of --tasks; NULL: all */
    cJSON *list;       /* the JSON output; NULL: text is printed */
    uint64_t due_ms;
    int code;
};

/* ---- the tasks ---- */

/* Whether the cluster is assigned to a task. Without --tasks not to clients, which do not
 * wait for it. */
static bool is_assignee(const struct assigning *o, const char *type, int index)
{
    return o->tasks == NULL ? strcmp(type, "client") != 0
                            : cmd_tasks_have_task(o->tasks, type, index);
}

static int check_known(const struct assigning *o, mu_error *error)
{
    mu_task_range range;

    for (size_t i = 0; mu_tasks_range_at(o->tasks, i, NULL, &range) == 0; i++)
        for (int index = range.first; index <= range.last; index++)
            if (mu_cluster_address(o->cluster, range.type, index) == NULL)
                return mu_error_set(error, -MU_EINVALID,
                                    "--tasks: the cluster has no /job:%s/task:%d",
                                    range.type, index);
    return 0;
}

static int parse_assigned_tasks(struct assigning *o, mu_error *error)
{
    int rv;

    o->tasks = cmd_text(o->options, CMD_FLAG_TASKS);
    if (o->tasks == NULL)
        return 0;
    rv = cmd_tasks_check(o->options, error);
    return rv == 0 ? check_known(o, error) : rv;
}

static int prepare_assignment(struct assigning *o, mu_error *error)
{
    mu_resolution found;
    int rv = cmd_spec_cluster(o->options, error, &found);

    if (rv == 0)
        o->cluster = found.cluster;
    if (rv == 0 && o->cluster == NULL)
        rv = cmd_spec_none(error);
    return rv == 0 ? parse_assigned_tasks(o, error) : rv;
}

/* ---- assign ---- */

static void note_assignment(struct assigning *o, const char *task, const char *url,
                            int rv, const mu_error *error)
{
    int code = rv == 0                                         ? CMD_FINE
               : rv == -MU_EDEADLINE || rv == -MU_EUNAVAILABLE ? CMD_UNREACHED
                                                               : CMD_FAILED;
    cJSON *map = o->list == NULL ? NULL : cJSON_CreateObject();

    if (o->code == CMD_FINE)
        o->code = code;
    if (rv != 0)
        (void)fprintf(stderr, "muster assign: %s: %s\n", task, error->message);
    else if (o->list == NULL)
        (void)printf("%s at %s has the cluster\n", task, url);
    if (map == NULL)
        return;
    (void)cJSON_AddStringToObject(map, "task", task);
    (void)cJSON_AddStringToObject(map, "address", url);
    (void)cJSON_AddItemToObject(map, "assigned", cJSON_CreateBool(rv == 0));
    if (rv != 0)
        cmd_json_add_text(map, "message", error->message);
    (void)cJSON_AddItemToArray(o->list, map);
}

/* The rest of the timeout, which all tasks share; at least LEAST_MS for each. */
static int64_t get_assign_left_ms(const struct assigning *o)
{
    enum { LEAST_MS = 200 };
    uint64_t now = cmd_now_ms();

    return o->due_ms < now + LEAST_MS ? LEAST_MS : (int64_t)(o->due_ms - now);
}

static void assign_to_task(struct assigning *o, const char *type, int index)
{
    const char *url = mu_cluster_url(o->cluster, type, index);
    mu_server_options offer;
    mu_node_options node;
    mu_error error = {0};
    char task[CMD_TASK_BYTES];
    int rv;

    cmd_task_name(task, type, index);
    mu_node_options_init(&node);
    cmd_peer_options(o->options, &node);
    node.cluster = o->cluster;
    node.task_type = type;
    node.task_index = index;
    node.log = cmd_log_line;
    node.log_user = &o->log;
    node.log_level = o->log.level;
    mu_server_options_init(&offer);
    offer.node = &node;
    rv = mu_server_assign_cluster(&offer, get_assign_left_ms(o), &error);
    note_assignment(o, task, url, rv, &error);
}

static void assign_to_all(struct assigning *o)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0; mu_cluster_task_at(o->cluster, i, &type, &index, &address) == 0;
         i++)
        if (is_assignee(o, type, index))
            assign_to_task(o, type, index);
}

int cmd_assign(struct cmd_options *options)
{
    struct assigning o = {
        .options = options,
        .due_ms = cmd_now_ms() + cmd_number(options, CMD_FLAG_TIMEOUT_MS),
        .list = cmd_number(options, CMD_FLAG_OUTPUT) == 1 ? cJSON_CreateArray() : NULL,
        .code = CMD_USAGE,
    };
    mu_error error;

    if (cmd_log_open_client(options, &error, &o.log) != 0) {
        cmd_print_error("assign", error.message);
        return CMD_USAGE;
    }
    if (prepare_assignment(&o, &error) == 0) {
        o.code = CMD_FINE;
        assign_to_all(&o);
        if (o.list != NULL && cmd_json_print(o.list) != 0)
            o.code = CMD_FAILED;
    } else {
        cmd_print_error("assign", error.message);
        cJSON_Delete(o.list);
    }
    mu_cluster_free(o.cluster);
    cmd_log_close(&o.log);
    return o.code;
}
