/* `muster vars`: which variables there are, and which parameter servers have them. */
#include "cli/vars/vars.h"

#include "cli/chief_client.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/verbs.h"

#include "muster/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shards, as their servers list them ---- */

struct shards {
    const mu_value **items;
    size_t count;
    int64_t left_out; /* which servers have not listed */
};

/* NULL: it is not known. */
static const mu_value *find_view(const mu_value *status, int64_t partition)
{
    const mu_value *views = mu_value_find(mu_value_find(status, "partitions"), "views");

    for (size_t i = 0; i < mu_value_count(views); i++)
        if (cmd_map_number(mu_value_at(views, i), "partition") == partition)
            return mu_value_at(views, i);
    return NULL;
}

/* A server that was replaced a moment ago may list what another one has now. */
static bool is_listed_by_primary(const mu_value *status, const mu_value *shard,
                                 int64_t ps)
{
    const mu_value *view = find_view(status, cmd_map_number(shard, "partition"));

    return view == NULL || cmd_map_number(view, "primary") == ps;
}

static void take_shards_of(struct shards *shards, const mu_value *status,
                           const mu_value *server)
{
    const mu_value *list = mu_value_find(server, "variables");
    int64_t ps = cmd_map_number(server, "ps");

    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *shard = mu_value_at(list, i);

        if (mu_value_find(shard, "clock") != NULL ||
            mu_value_find(shard, "table") != NULL)
            continue;
        if (mu_value_find(shard, "left_out") != NULL)
            shards->left_out += cmd_map_number(shard, "left_out");
        else if (is_listed_by_primary(status, shard, ps))
            shards->items[shards->count++] = shard;
    }
}

static int compare_shards(const void *a, const void *b)
{
    const mu_value *one = *(const mu_value *const *)a;
    const mu_value *two = *(const mu_value *const *)b;
    int names = strcmp(cmd_map_text(one, "name"), cmd_map_text(two, "name"));
    int64_t numbers = cmd_map_number(one, "shard") - cmd_map_number(two, "shard");

    return names != 0 ? names : (numbers > 0) - (numbers < 0);
}

/* All, by name and number. False: out of memory. */
static bool collect_shards(const mu_value *status, struct shards *ret_shards)
{
    const mu_value *servers = mu_value_find(status, "variables");
    size_t room = 1;

    for (size_t i = 0; i < mu_value_count(servers); i++)
        room += mu_value_count(mu_value_find(mu_value_at(servers, i), "variables"));
    *ret_shards = (struct shards){.items = calloc(room, sizeof *ret_shards->items)};
    if (ret_shards->items == NULL)
        return false;
    for (size_t i = 0; i < mu_value_count(servers); i++)
        take_shards_of(ret_shards, status, mu_value_at(servers, i));
    qsort(ret_shards->items, ret_shards->count, sizeof *ret_shards->items,
          compare_shards);
    return true;
}

/* ---- variables, made of their shards ---- */

/* Items that are there alone. */
static void copy_items(mu_value *to, const mu_value *from, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (mu_value_find(from, *keys) != NULL)
            (void)mu_value_set(to, *keys, mu_value_ref(mu_value_find(from, *keys)));
}

static mu_value *shard_part_value(const mu_value *status, const mu_value *shard)
{
    static const char *const of_shard[] = {"shard", "bytes", "version", "partition",
                                           NULL};
    static const char *const of_view[] = {"primary", "backup", "learner", NULL};
    mu_value *map = mu_value_map();

    copy_items(map, shard, of_shard);
    copy_items(map, find_view(status, cmd_map_number(shard, "partition")), of_view);
    return map;
}

static void set_sum(mu_value *map, const char *key, const mu_value *const *parts,
                    size_t count)
{
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += cmd_map_number(parts[i], key);
    (void)mu_value_set(map, key, mu_value_int(sum));
}

/* The variable of `count` shards. */
static mu_value *variable_value(const mu_value *status, const mu_value *const *shards,
                                size_t count)
{
    static const char *const of_all[] = {"name",      "dtype", "dims", "shards",
                                         "optimizer", "step",  NULL};
    static const char *const sums[] = {"bytes",      "reads",         "writes",
                                       "bytes_read", "bytes_written", "nonfinite"};
    int64_t version = cmd_map_number(shards[0], "version");
    mu_value *map = mu_value_map();
    mu_value *parts = mu_value_list();

    copy_items(map, shards[0], of_all);
    for (size_t i = 0; i < count; i++) {
        int64_t own = cmd_map_number(shards[i], "version");

        version = own < version ? own : version;
        (void)mu_value_append(parts, shard_part_value(status, shards[i]));
    }
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        set_sum(map, sums[i], shards, count);
    (void)mu_value_set(map, "version", mu_value_int(version));
    (void)mu_value_set(map, "parts", parts);
    return map;
}

static mu_value *clocks_value(const mu_value *status)
{
    const mu_value *servers = mu_value_find(status, "variables");
    mu_value *list = mu_value_list();

    for (size_t i = 0; i < mu_value_count(servers); i++) {
        const mu_value *items = mu_value_find(mu_value_at(servers, i), "variables");
        int64_t ps = cmd_map_number(mu_value_at(servers, i), "ps");

        for (size_t j = 0; j < mu_value_count(items); j++)
            if (mu_value_find(mu_value_at(items, j), "clock") != NULL &&
                is_listed_by_primary(status, mu_value_at(items, j), ps))
                (void)mu_value_append(list, mu_value_ref(mu_value_at(items, j)));
    }
    return list;
}

static int compare_listed_names(const void *a, const void *b)
{
    return strcmp(cmd_map_text(*(const mu_value *const *)a, "table"),
                  cmd_map_text(*(const mu_value *const *)b, "table"));
}

/* What `count` servers have of one table, together. */
static mu_value *whole_table_value(const mu_value *const *parts, size_t count)
{
    static const char *const of_all[] = {"table",     "dim",  "dtype",
                                         "optimizer", "form", NULL};
    static const char *const sums[] = {"rows",    "bytes",   "parts",   "pushes", "made",
                                       "dropped", "refused", "expired", "evicted"};
    mu_value *map = mu_value_map();

    copy_items(map, parts[0], of_all);
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        set_sum(map, sums[i], parts, count);
    return map;
}

/* The items of all servers that are tables, by name. NULL: out of memory. */
static const mu_value **collect_tables(const mu_value *servers, size_t *ret_count)
{
    const mu_value **found;
    size_t room = 1;
    size_t count = 0;

    for (size_t i = 0; i < mu_value_count(servers); i++)
        room += mu_value_count(mu_value_find(mu_value_at(servers, i), "variables"));
    found = calloc(room, sizeof *found);
    for (size_t i = 0; found != NULL && i < mu_value_count(servers); i++) {
        const mu_value *items = mu_value_find(mu_value_at(servers, i), "variables");

        for (size_t k = 0; k < mu_value_count(items); k++)
            if (mu_value_find(mu_value_at(items, k), "table") != NULL)
                found[count++] = mu_value_at(items, k);
    }
    if (count > 1)
        qsort(found, count, sizeof *found, compare_listed_names);
    *ret_count = count;
    return found;
}

static mu_value *tables_value(const mu_value *status)
{
    size_t count;
    const mu_value **found = collect_tables(mu_value_find(status, "variables"), &count);
    mu_value *list = found == NULL ? NULL : mu_value_list();

    for (size_t i = 0, end; list != NULL && i < count; i = end) {
        for (end = i + 1; end < count; end++)
            if (compare_listed_names(&found[i], &found[end]) != 0)
                break;
        (void)mu_value_append(list, whole_table_value(found + i, end - i));
    }
    free(found);
    return list;
}

mu_value *cmd_vars_value(const mu_value *status)
{
    struct shards shards;
    mu_value *list = mu_value_list();
    mu_value *map = mu_value_map();

    if (!collect_shards(status, &shards)) {
        mu_value_free(list);
        mu_value_free(map);
        return NULL;
    }
    for (size_t i = 0, end; i < shards.count; i = end) {
        const char *name = cmd_map_text(shards.items[i], "name");

        for (end = i + 1; end < shards.count; end++)
            if (strcmp(cmd_map_text(shards.items[end], "name"), name) != 0)
                break;
        (void)mu_value_append(list, variable_value(status, shards.items + i, end - i));
    }
    (void)mu_value_set(map, "variables", list);
    (void)mu_value_set(map, "tables", tables_value(status));
    (void)mu_value_set(map, "clocks", clocks_value(status));
    (void)mu_value_set(map, "left_out", mu_value_int(shards.left_out));
    (void)mu_value_set(map, "servers_missing",
                       mu_value_int(cmd_map_number(status, "servers_missing")));
    free(shards.items);
    return map;
}

/* ---- text ---- */

static void cell_number(struct cmd_table *table, unsigned column, const mu_value *map,
                        const char *key)
{
    cmd_table_cell(table, column, "%" PRId64, cmd_map_number(map, key));
}

static void cell_server(struct cmd_table *table, unsigned column, const mu_value *map,
                        const char *key)
{
    if (mu_value_find(map, key) != NULL)
        cmd_table_cell(table, column, "ps:%" PRId64, cmd_map_number(map, key));
}

static void variable_row(struct cmd_table *table, const mu_value *map)
{
    char shape[CMD_CELL_BYTES];
    int64_t shards = cmd_map_number(map, "shards");
    size_t parts = mu_value_count(mu_value_find(map, "parts"));

    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(map, "name"));
    cmd_table_cell(table, 1, "%s", cmd_map_text(map, "dtype"));
    cmd_table_cell(table, 2, "%s",
                   cmd_shape(mu_value_find(map, "dims"), shape, sizeof shape));
    if (parts == (size_t)shards)
        cmd_table_cell(table, 3, "%" PRId64, shards);
    else
        cmd_table_cell(table, 3, "%zu of %" PRId64, parts, shards);
    cell_number(table, 4, map, "bytes");
    cell_number(table, 5, map, "version");
}

static void part_rows(struct cmd_table *table, const mu_value *map)
{
    const mu_value *parts = mu_value_find(map, "parts");

    for (size_t i = 0; i < mu_value_count(parts); i++) {
        const mu_value *part = mu_value_at(parts, i);

        cmd_table_row(table);
        cmd_table_cell(table, 0, "%s", cmd_map_text(map, "name"));
        cell_number(table, 1, part, "shard");
        cell_number(table, 2, part, "bytes");
        cell_number(table, 3, part, "version");
        cell_number(table, 4, part, "partition");
        cell_server(table, 5, part, "primary");
        cell_server(table, 6, part, "backup");
        cell_server(table, 7, part, "learner");
    }
}

static void view_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cell_number(table, 0, map, "partition");
    cell_number(table, 1, map, "number");
    cell_server(table, 2, map, "primary");
    cell_server(table, 3, map, "backup");
    cell_server(table, 4, map, "learner");
    cmd_table_cell(table, 5, "%s",
                   cmd_map_bool(map, "handover") ? "handover"
                   : mu_value_find(map, "backup") != NULL &&
                           mu_value_find(map, "learner") != NULL
                       ? "copy"
                       : "");
}

static void clock_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(map, "clock"));
    if (cmd_map_text(map, "staleness")[0] != '\0')
        cmd_table_cell(table, 1, "%s", cmd_map_text(map, "staleness"));
    else
        cell_number(table, 1, map, "staleness");
    cell_number(table, 2, map, "minimum");
    cell_number(table, 3, map, "members");
    cell_number(table, 4, map, "waiting");
    cmd_table_cell(table, 5, "%s", cmd_map_text(map, "slowest"));
}

static void table_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(map, "table"));
    cell_number(table, 1, map, "dim");
    cmd_table_cell(table, 2, "%s", cmd_map_text(map, "optimizer"));
    cell_number(table, 3, map, "rows");
    cell_number(table, 4, map, "bytes");
    cell_number(table, 5, map, "parts");
}

void cmd_vars_print_shards(const mu_value *variables)
{
    cmd_table_print_list(variables, "shards",
                         "NAME|SHARD|BYTES|VERSION|PARTITION|PRIMARY|BACKUP|LEARNER",
                         part_rows);
}

static void print_variables(const mu_value *value)
{
    const mu_value *list = mu_value_find(value, "variables");
    int64_t left_out = cmd_map_number(value, "left_out");
    int64_t silent = cmd_map_number(value, "servers_missing");

    cmd_table_print_list(list, "variables", "NAME|DTYPE|SHAPE|SHARDS|BYTES|VERSION",
                         variable_row);
    cmd_vars_print_shards(list);
    if (mu_value_count(mu_value_find(value, "tables")) > 0)
        cmd_table_print_list(mu_value_find(value, "tables"), "tables",
                             "TABLE|DIM|OPTIMIZER|ROWS|BYTES|PARTITIONS", table_row);
    if (mu_value_count(mu_value_find(value, "clocks")) > 0)
        cmd_table_print_list(mu_value_find(value, "clocks"), "clocks",
                             "CLOCK|STALENESS|MINIMUM|MEMBERS|WAITING|SLOWEST",
                             clock_row);
    if (left_out > 0)
        (void)printf("\nand %" PRId64 " more shards\n", left_out);
    if (silent > 0)
        (void)printf("\n%" PRId64 " parameter server%s did not answer in time\n", silent,
                     silent == 1 ? "" : "s");
}

/* ---- the verb ---- */

/* `value` is NULL when out of memory. */
static int show_variables(const struct cmd_client *client, bool are_views,
                          const mu_value *value)
{
    if (value == NULL)
        return -MU_ENOMEM;
    if (cmd_is_json(client))
        return cmd_json_print(cmd_json_value(value));
    if (are_views)
        cmd_table_print_list(mu_value_find(value, "views"), "partitions",
                             "PARTITION|VIEW|PRIMARY|BACKUP|LEARNER|MOVE", view_row);
    else
        print_variables(value);
    return 0;
}

int cmd_vars(struct cmd_client *client, mu_error *error)
{
    bool are_views = cmd_number(client->options, CMD_FLAG_PARTITIONS) == 1;
    mu_value *status = NULL;
    mu_value *value;
    int rv = mu_node_status(client->node, cmd_timeout_ms(client), error, &status);

    if (rv != 0)
        return cmd_exit_code(rv);
    value = are_views ? mu_value_ref(mu_value_find(status, "partitions"))
                      : cmd_vars_value(status);
    rv = show_variables(client, are_views, value);
    mu_value_free(value);
    mu_value_free(status);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}
