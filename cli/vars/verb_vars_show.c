/* `muster vars show`: what the servers say of one variable or table. */
#include "cli/vars/vars.h"

#include "cli/output/print_json.h"
#include "cli/output/table.h"

#include <inttypes.h>
#include <stdio.h>

/* A line for each member that is a text, a number or a truth. */
static void print_members(const mu_value *map)
{
    for (size_t i = 0; i < mu_value_count(map); i++) {
        const char *key = mu_value_key(map, i);
        const mu_value *item = mu_value_find(map, key);
        double number;

        if (mu_value_type(item) == MU_VALUE_STRING)
            (void)printf("  %-14s%s\n", key, cmd_map_text(map, key));
        else if (mu_value_type(item) == MU_VALUE_INT)
            (void)printf("  %-14s%" PRId64 "\n", key, cmd_map_number(map, key));
        else if (mu_value_type(item) == MU_VALUE_BOOL)
            (void)printf("  %-14s%s\n", key, cmd_map_bool(map, key) ? "yes" : "no");
        else if (mu_value_get_float(item, &number) == 0)
            (void)printf("  %-14s%g\n", key, number);
    }
}

static void print_listed(const mu_value *found)
{
    mu_value *list = mu_value_list();
    char shape[CMD_CELL_BYTES];

    (void)printf("%s\n", cmd_vars_is_table(found) ? "table" : "variable");
    print_members(found);
    print_members(mu_value_find(found, "form"));
    if (mu_value_find(found, "dims") != NULL)
        (void)printf("  %-14s%s\n", "shape",
                     cmd_shape(mu_value_find(found, "dims"), shape, sizeof shape));
    if (!cmd_vars_is_table(found) && mu_value_append(list, mu_value_ref(found)) == 0)
        cmd_vars_print_shards(list);
    mu_value_free(list);
}

int cmd_vars_show(struct cmd_client *client, mu_error *error)
{
    const mu_value *found;
    mu_value *value = NULL;
    int rv = cmd_vars_request(client, false, error, &value);

    if (rv == 0)
        rv = cmd_vars_find(value, client->options->operands[0], error, &found);
    if (rv == 0 && cmd_is_json(client))
        rv = cmd_json_print(cmd_json_value(found));
    else if (rv == 0)
        print_listed(found);
    mu_value_free(value);
    return cmd_exit_code(rv);
}
