/* `muster actors` and `actors stop`: actors that have names. */
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "muster/actor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 20 }; /* between two looks at whether one has ended */

/* ---- actors ---- */

static bool is_actor_listed(const struct cmd_client *client, const mu_value *actor)
{
    const char *type = cmd_text(client->options, CMD_FLAG_ACTOR_TYPE);

    return type == NULL || strcmp(cmd_map_text(actor, "type"), type) == 0;
}

static void add_actor_row(struct cmd_table *table, const mu_value *actor)
{
    int64_t due_ms = cmd_map_number(actor, "due_ms");
    char duration[32];

    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(actor, "name"));
    cmd_table_cell(table, 1, "%s", cmd_map_text(actor, "type"));
    cmd_table_cell(table, 2, "%s", cmd_map_text(actor, "task"));
    if (due_ms > 0)
        cmd_table_cell(table, 3, "restarting in %s",
                       cmd_duration(due_ms, duration, sizeof duration));
    else
        cmd_table_cell(table, 3, "%s", cmd_map_text(actor, "state"));
    cmd_table_cell(table, 4, "%" PRId64, cmd_map_number(actor, "epoch"));
    cmd_table_cell(table, 5, "%" PRId64, cmd_map_number(actor, "restarts"));
    cmd_table_cell(table, 6, "%" PRId64, cmd_map_number(actor, "mailbox"));
    if (cmd_map_number(actor, "mailbox") > 0)
        cmd_table_cell(table, 7, "%s",
                       cmd_duration(cmd_map_number(actor, "oldest_ms"), duration,
                                    sizeof duration));
}

static void print_actors_table(const struct cmd_client *client, const mu_value *actors)
{
    struct cmd_table table;
    const char *type = cmd_text(client->options, CMD_FLAG_ACTOR_TYPE);
    bool any = false;

    cmd_table_init(&table, "NAME|TYPE|TASK|STATE|EPOCH|RESTARTS|MAILBOX|OLDEST");
    for (size_t i = 0; i < mu_value_count(actors); i++)
        if (is_actor_listed(client, mu_value_at(actors, i)))
            add_actor_row(&table, mu_value_at(actors, i));
    if (table.rows < 2)
        (void)printf("no actor%s%s has a name\n", type == NULL ? "" : " of type ",
                     type == NULL ? "" : type);
    cmd_table_print(&table, "actors");
    cmd_table_done(&table);
    for (size_t i = 0; i < mu_value_count(actors); i++) {
        const mu_value *actor = mu_value_at(actors, i);
        const char *error = cmd_map_text(actor, "error");

        if (error[0] == '\0' || !is_actor_listed(client, actor))
            continue;
        (void)printf("%s  %s: %s\n", any ? "" : "\nlast errors\n",
                     cmd_map_text(actor, "name"), error);
        any = true;
    }
}

static int print_actors_json(const struct cmd_client *client, const mu_value *actors)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < mu_value_count(actors); i++)
        if (is_actor_listed(client, mu_value_at(actors, i)))
            (void)cJSON_AddItemToArray(list, cmd_json_value(mu_value_at(actors, i)));
    return cmd_json_print(list) == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_actors(struct cmd_client *client, mu_error *error)
{
    mu_value *actors;
    int rv = mu_actors_list(client->node, cmd_timeout_ms(client), error, &actors);
    int code = CMD_FINE;

    if (rv != 0)
        return cmd_exit_code(rv);
    if (cmd_is_json(client))
        code = print_actors_json(client, actors);
    else
        print_actors_table(client, actors);
    mu_value_free(actors);
    return code;
}

/* ---- stop ---- */

/* -MU_EEXISTS: it is there. */
static int look_for_actor(struct cmd_client *client, const char *name, mu_error *error)
{
    mu_value *actors;
    int rv = mu_actors_list(client->node, cmd_timeout_ms(client), error, &actors);

    if (rv != 0)
        return rv;
    for (size_t i = 0; rv == 0 && i < mu_value_count(actors); i++)
        if (strcmp(cmd_map_text(mu_value_at(actors, i), "name"), name) == 0)
            rv = -MU_EEXISTS;
    mu_value_free(actors);
    return rv;
}

static int wait_for_end(struct cmd_client *client, const char *name, mu_error *error)
{
    const struct timespec moment = {0, LOOK_MS * 1000000L};
    int64_t left_ms = cmd_timeout_ms(client);
    int rv;

    while ((rv = look_for_actor(client, name, error)) == -MU_EEXISTS && left_ms > 0) {
        (void)nanosleep(&moment, NULL);
        left_ms -= LOOK_MS;
    }
    if (rv != -MU_EEXISTS)
        return rv;
    return mu_error_set(error, -MU_EDEADLINE,
                        "the actor \"%s\" has not ended within %" PRId64 " ms", name,
                        cmd_timeout_ms(client));
}

int cmd_actors_stop(struct cmd_client *client, mu_error *error)
{
    const char *name = client->options->operands[0];
    mu_address who;
    int rv;

    if (mu_actor_find(client->node, name, &who) != 0) {
        (void)mu_error_set(error, -MU_EINVALID, "\"%.200s\" is no name of an actor",
                           name);
        return CMD_USAGE;
    }
    rv = look_for_actor(client, name, error);
    if (rv == 0) {
        (void)mu_error_set(error, -MU_ENOTFOUND, "no actor has the name \"%s\"", name);
        return CMD_FAILED;
    }
    if (rv == -MU_EEXISTS)
        rv = mu_node_stop_actor(client->node, &who, MU_STOP_AFTER_QUEUE);
    if (rv == 0)
        rv = wait_for_end(client, name, error);
    return rv == 0 ? CMD_FINE : cmd_exit_code(rv);
}
