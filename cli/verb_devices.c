/* `muster devices`: the machines of the tasks, with their accelerators. */
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_own_machine(const struct cmd_client *client, const mu_value *machine)
{
    return strcmp(cmd_map_text(machine, "task"), mu_node_task(client->node)) == 0;
}

/* Append the devices' names, as far as they fit; equal neighbours as "TPU v4 x4". */
static void append_device_names(char text[CMD_CELL_BYTES], const mu_value *devices)
{
    size_t count = mu_value_count(devices);
    size_t same;

    for (size_t i = 0; i < count; i += same) {
        const char *name = cmd_map_text(mu_value_at(devices, i), "name");
        size_t used = strlen(text);
        char times[24] = "";

        same = 1;
        while (i + same < count &&
               strcmp(name, cmd_map_text(mu_value_at(devices, i + same), "name")) == 0)
            same++;
        if (same > 1)
            (void)snprintf(times, sizeof times, " x%zu", same);
        (void)snprintf(text + used, CMD_CELL_BYTES - used, "%s%s%s",
                       used == 0 ? "" : ", ", name, times);
    }
}

static void machine_row(struct cmd_table *table, const mu_value *machine)
{
    const mu_value *gpus = mu_value_find(machine, "gpus");
    const mu_value *tpus = mu_value_find(machine, "tpus");
    char names[CMD_CELL_BYTES] = "";

    append_device_names(names, gpus);
    append_device_names(names, tpus);
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(machine, "task"));
    cmd_table_cell(table, 1, "%s", cmd_map_text(machine, "host"));
    cmd_table_cell(table, 2, "%" PRId64, cmd_map_number(machine, "cores"));
    cmd_table_cell(table, 3, "%" PRId64 " MiB",
                   cmd_map_number(machine, "memory_bytes") >> 20);
    cmd_table_cell(table, 4, "%zu", mu_value_count(gpus));
    cmd_table_cell(table, 5, "%zu", mu_value_count(tpus));
    cmd_table_cell(table, 6, "%s", names);
}

static int print_machines_json(const struct cmd_client *client, const mu_value *machines)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < mu_value_count(machines); i++)
        if (!is_own_machine(client, mu_value_at(machines, i)))
            (void)cJSON_AddItemToArray(list, cmd_json_value(mu_value_at(machines, i)));
    return cmd_json_print(list);
}

static void print_machines(const struct cmd_client *client, const mu_value *machines)
{
    struct cmd_table table;

    cmd_table_init(&table, "TASK|HOST|CORES|MEMORY|GPUS|TPUS|NAMES");
    for (size_t i = 0; i < mu_value_count(machines); i++)
        if (!is_own_machine(client, mu_value_at(machines, i)))
            machine_row(&table, mu_value_at(machines, i));
    cmd_table_print(&table, "machines of the tasks that are connected");
    cmd_table_done(&table);
}

int cmd_devices(struct cmd_client *client, mu_error *error)
{
    mu_value *machines;
    int rv = mu_tasks_devices(client->node, cmd_timeout_ms(client), error, &machines);

    if (rv != 0)
        return cmd_exit_code(rv);
    if (cmd_is_json(client))
        rv = print_machines_json(client, machines);
    else
        print_machines(client, machines);
    mu_value_free(machines);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}
