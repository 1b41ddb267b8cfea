/* `muster tasks`: the states of tasks, from the coordination service. */
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* Tasks that are not printed: this process, and disconnected clients unless --tasks names
 * them. */
static bool is_task_hidden(const struct cmd_client *client, const mu_value *task)
{
    if (strcmp(cmd_map_text(task, "task"), mu_node_task(client->node)) == 0)
        return true;
    return cmd_text(client->options, CMD_FLAG_TASKS) == NULL &&
           strcmp(cmd_map_text(task, "type"), "client") == 0 &&
           strcmp(cmd_map_text(task, "state"), "disconnected") == 0;
}

static bool is_task_up(const mu_value *task)
{
    const char *state = cmd_map_text(task, "state");

    return strcmp(state, "connected") == 0 || strcmp(state, "suspect") == 0;
}

/* Whether all tasks of --tasks, or without it all coordinated ones, are connected. */
static bool all_connected(const struct cmd_client *client, const mu_value *tasks)
{
    bool named = cmd_text(client->options, CMD_FLAG_TASKS) != NULL;

    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);

        if ((named || cmd_map_bool(task, "coordinated")) && !is_task_up(task))
            return false;
    }
    return true;
}

/* ---- table and JSON ---- */

/* Only the state of a task that was never registered is known. */
static void add_task_row(struct cmd_table *table, const mu_value *task)
{
    const char *incarnation = cmd_map_text(task, "incarnation");
    bool seen = incarnation[0] != '\0';
    char duration[32];

    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(task, "task"));
    cmd_table_cell(table, 1, "%s", cmd_map_text(task, "state"));
    if (!seen)
        return;
    cmd_table_cell(table, 2, "%s",
                   cmd_duration(cmd_map_number(task, "since_ms"), duration,
                                sizeof duration));
    cmd_table_cell(table, 3, "%s ago",
                   cmd_duration(cmd_map_number(task, "heard_ms"), duration,
                                sizeof duration));
    cmd_table_cell(table, 4, "%s", incarnation);
    cmd_table_cell(table, 5, "%s", cmd_map_bool(task, "coordinated") ? "yes" : "no");
}

static const char *error_text(const mu_value *task)
{
    return cmd_map_text(mu_value_find(task, "error"), "message");
}

static void print_tasks_table(const struct cmd_client *client, const mu_value *tasks)
{
    bool any = false;
    struct cmd_table table;

    cmd_table_init(&table, "TASK|STATE|FOR|HEARD|INCARNATION|COORDINATED");
    for (size_t i = 0; i < mu_value_count(tasks); i++)
        if (!is_task_hidden(client, mu_value_at(tasks, i)))
            add_task_row(&table, mu_value_at(tasks, i));
    cmd_table_print(&table, "tasks");
    cmd_table_done(&table);
    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);

        if (error_text(task)[0] == '\0' || is_task_hidden(client, task))
            continue;
        (void)printf("%s  %s: %s\n", any ? "" : "\nerrors\n", cmd_map_text(task, "task"),
                     error_text(task));
        any = true;
    }
}

static int print_tasks_json(const struct cmd_client *client, const mu_value *tasks)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < mu_value_count(tasks); i++)
        if (!is_task_hidden(client, mu_value_at(tasks, i)))
            (void)cJSON_AddItemToArray(list, cmd_json_value(mu_value_at(tasks, i)));
    return cmd_json_print(list);
}

/* ---- watching ---- */

static const mu_value *find_listed_task(const mu_value *tasks, const char *name)
{
    for (size_t i = 0; i < mu_value_count(tasks); i++)
        if (strcmp(cmd_map_text(mu_value_at(tasks, i), "task"), name) == 0)
            return mu_value_at(tasks, i);
    return NULL;
}

static bool is_same_field(const mu_value *one, const mu_value *other, const char *key)
{
    return strcmp(cmd_map_text(one, key), cmd_map_text(other, key)) == 0;
}

static int print_change(const struct cmd_client *client, const mu_value *before,
                        const mu_value *task)
{
    if (cmd_is_json(client))
        return cmd_json_line(cmd_json_value(task));
    (void)printf("%s is %s", cmd_map_text(task, "task"), cmd_map_text(task, "state"));
    if (before != NULL && !is_same_field(before, task, "incarnation") &&
        cmd_map_text(before, "incarnation")[0] != '\0')
        (void)printf(", started anew");
    if (error_text(task)[0] != '\0')
        (void)printf(": %s", error_text(task));
    (void)printf("\n");
    return 0;
}

/* A client's end is printed when its connection was. */
static bool is_task_shown(const struct cmd_client *client, const mu_value *before,
                          const mu_value *task)
{
    return !is_task_hidden(client, task) ||
           (before != NULL && !is_task_hidden(client, before));
}

/* Print the tasks whose state or incarnation differs from `before`, and new tasks. */
static int print_task_changes(const struct cmd_client *client, const mu_value *before,
                              const mu_value *tasks)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);
        const mu_value *old = find_listed_task(before, cmd_map_text(task, "task"));

        if (!is_task_shown(client, old, task) ||
            (old != NULL && is_same_field(old, task, "state") &&
             is_same_field(old, task, "incarnation")))
            continue;
        rv = print_change(client, old, task);
    }
    return rv != 0 || fflush(stdout) != 0 ? -MU_ECANCELLED : 0;
}

static int watch_tasks(struct cmd_client *client, mu_error *error)
{
    const char *names = cmd_text(client->options, CMD_FLAG_TASKS);
    mu_value *before = NULL;
    uint64_t version = 0;
    int rv = 0;

    while (rv == 0) {
        mu_value *tasks;

        rv = mu_tasks_watch(client->node, names, version, cmd_wait_timeout_ms(client),
                            error, &version, &tasks);
        if (rv != 0)
            break;
        rv = print_task_changes(client, before, tasks);
        if (rv != 0)
            (void)mu_error_set(error, rv, "standard output cannot be written");
        mu_value_free(before);
        before = tasks;
    }
    mu_value_free(before);
    return rv;
}

/* ---- the verb ---- */

static int print_listed_tasks(const struct cmd_client *client, const mu_value *tasks,
                              mu_error *error)
{
    if (!cmd_is_json(client))
        print_tasks_table(client, tasks);
    else if (print_tasks_json(client, tasks) != 0)
        return CMD_FAILED;
    error->message[0] = '\0';
    return all_connected(client, tasks) ? CMD_FINE : CMD_FAILED;
}

static int get_tasks_exit_code(int rv)
{
    return rv == -MU_EINVALID || rv == -MU_ERANGE ? CMD_USAGE : cmd_exit_code(rv);
}

int cmd_tasks(struct cmd_client *client, mu_error *error)
{
    const char *names = cmd_text(client->options, CMD_FLAG_TASKS);
    bool watches = cmd_number(client->options, CMD_FLAG_WATCH) == 1;
    bool waits = cmd_number(client->options, CMD_FLAG_WAIT) == 1;
    int64_t left_ms = cmd_wait_timeout_ms(client);
    mu_value *tasks;
    int rv = 0;
    int code;

    if (names != NULL && (waits || watches))
        rv = cmd_await_known(client, names, error, &left_ms);
    if (rv == 0 && watches)
        return get_tasks_exit_code(watch_tasks(client, error));
    if (rv == 0)
        rv = waits ? mu_tasks_wait(client->node, names, left_ms, error, &tasks)
                   : mu_tasks_states(client->node, names, cmd_timeout_ms(client), error,
                                     &tasks);
    if (rv != 0)
        return get_tasks_exit_code(rv);
    code = print_listed_tasks(client, tasks, error);
    mu_value_free(tasks);
    return code;
}
