/* `muster barrier`: waits at a barrier as one of its tasks. */
#include "cli/output/log.h"
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* ---- the own task index ---- */

/* The index of the only client in a set of tasks; -1 when there are none or several. */
static int only_client(const char *tasks)
{
    mu_task_range range;
    int index = -1;

    for (size_t i = 0; mu_tasks_range_at(tasks, i, NULL, &range) == 0; i++) {
        if (strcmp(range.type, "client") != 0)
            continue;
        if (index >= 0 || range.last > range.first)
            return -1;
        index = range.first;
    }
    return index;
}

/* The client of --as, which must be in `tasks`; -1: it is not. */
static int read_as(const char *as, const char *tasks)
{
    char type[CMD_TYPE_BYTES];
    int index;

    return cmd_task_parse(as, type, &index) && strcmp(type, "client") == 0 &&
                   cmd_tasks_have_task(tasks, type, index)
               ? index
               : -1;
}

static int read_client_index(const struct cmd_options *options, mu_error *error,
                             int *ret_index)
{
    const char *tasks = cmd_text(options, CMD_FLAG_TASKS);
    const char *as = cmd_text(options, CMD_FLAG_AS);
    int rv;

    if (tasks == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "expected --tasks, as client:0-1 or client:0,worker:0-3, "
                            "with a client among them that this process is");
    rv = cmd_tasks_check(options, error);
    if (rv != 0)
        return rv;
    *ret_index = as == NULL ? only_client(tasks) : read_as(as, tasks);
    if (*ret_index >= 0)
        return 0;
    if (as == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "--tasks have no client, or several: expected one that this "
                            "process is, or --as to say which");
    return mu_error_set(error, -MU_EINVALID,
                        "--as: expected one client that is among --tasks, as client:0, "
                        "got \"%.40s\"",
                        as);
}

/* ---- waiting ---- */

static int print_passed(const struct cmd_client *client)
{
    const char *name = client->options->operands[0];
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)printf("%s: all are there\n", name);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "barrier", name);
    (void)cJSON_AddStringToObject(map, "tasks",
                                  cmd_text(client->options, CMD_FLAG_TASKS));
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

static int wait_for_all(struct cmd_client *client, mu_error *error)
{
    mu_barrier_options options;
    mu_error why;
    int rv;

    mu_barrier_options_init(&options);
    options.tasks = cmd_text(client->options, CMD_FLAG_TASKS);
    rv = cmd_await_known(client, options.tasks, &why, &options.timeout_ms);
    if (rv == -MU_EDEADLINE)
        (void)mu_error_set(error, rv, "barrier \"%s\", %s", client->options->operands[0],
                           why.message);
    else if (rv != 0)
        *error = why;
    if (rv == 0)
        rv = mu_barrier_wait(client->node, client->options->operands[0], &options, error);
    if (rv == -MU_EINVALID)
        return CMD_USAGE;
    return rv == 0 ? print_passed(client) : cmd_exit_code(rv);
}

int cmd_barrier(struct cmd_options *options)
{
    mu_error error;
    int index = 0;

    if (read_client_index(options, &error, &index) == 0)
        return cmd_service_request_as(options, index, wait_for_all);
    cmd_print_error("barrier", error.message);
    return CMD_USAGE;
}
