/* `muster barrier`: waits at a barrier as one of its tasks. */
#include "cli/output/log.h"
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "actors/task_set.h"

#include <stdio.h>
#include <string.h>

/* ---- the own task index ---- */

/* The index of the only client in a set; -1 when there are none or several. */
static int only_client(const struct mu__task_set *set)
{
    int index = -1;

    for (uint32_t i = 0; i < set->count; i++) {
        const struct mu__task_range *range = &set->ranges[i];

        if (strcmp(range->type, "client") != 0)
            continue;
        if (index >= 0 || range->last > range->first)
            return -1;
        index = (int)range->first;
    }
    return index;
}

/* Read --as: one client, which must be in `tasks`. */
static int read_as(const struct cmd_options *options, const struct mu__task_set *tasks,
                   mu_error *error, int *ret_index)
{
    struct mu__task_set own = {0};
    int rv = cmd_task_set(options, CMD_FLAG_AS, error, &own);
    int index;

    if (rv != 0)
        return rv;
    index = mu__task_set_count(&own) == 1 ? only_client(&own) : -1;
    mu__task_set_done(&own);
    if (index < 0 || !mu__task_set_has(tasks, "client", (uint32_t)index))
        return mu_error_set(error, -MU_EINVALID,
                            "--as: expected one client that is among --tasks, as "
                            "client:0, got \"%.40s\"",
                            cmd_text(options, CMD_FLAG_AS));
    *ret_index = index;
    return 0;
}

static int find_own(const struct cmd_options *options, const struct mu__task_set *tasks,
                    mu_error *error, int *ret_index)
{
    if (cmd_text(options, CMD_FLAG_AS) != NULL)
        return read_as(options, tasks, error, ret_index);
    *ret_index = only_client(tasks);
    if (*ret_index >= 0)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "--tasks have no client, or several: expected one that this "
                        "process is, or --as to say which");
}

static int read_index(const struct cmd_options *options, mu_error *error, int *ret_index)
{
    struct mu__task_set tasks = {0};
    int rv;

    if (cmd_text(options, CMD_FLAG_TASKS) == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "expected --tasks, as client:0-1 or client:0,worker:0-3, "
                            "with a client among them that this process is");
    rv = cmd_task_set(options, CMD_FLAG_TASKS, error, &tasks);
    if (rv == 0)
        rv = find_own(options, &tasks, error, ret_index);
    mu__task_set_done(&tasks);
    return rv;
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

    if (read_index(options, &error, &index) == 0)
        return cmd_service_request_as(options, index, wait_for_all);
    cmd_print_error("barrier", error.message);
    return CMD_USAGE;
}
