/* `muster kv get`, `put`, `ls`, `rm` and `incr`. */
#include "cli/keys/kv_condition.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_BYTES_MAX = 1 << 20 };

static const char *get_operand(const struct cmd_client *client, size_t i)
{
    return client->options->operands[i];
}

/* Print a number of the verb's key; as JSON with the key and the number under `name`. */
static int print_number(const struct cmd_client *client, const char *name, int64_t number)
{
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)printf("%" PRId64 "\n", number);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "key", get_operand(client, 0));
    cmd_json_add_int(map, name, number);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- lists ---- */

static const char *item_value(const mu_value *item, size_t *ret_size)
{
    const void *value = "";

    *ret_size = 0;
    (void)mu_value_get_bytes(mu_value_find(item, "value"), &value, ret_size);
    return value;
}

static void print_keys(const mu_value *items)
{
    for (size_t i = 0; i < mu_value_count(items); i++)
        (void)printf("%s\n", cmd_map_text(mu_value_at(items, i), "key"));
}

/* Not a table: keys may be longer than a table's cell, so they come last in the line. */
static void print_long(const mu_value *items)
{
    for (size_t i = 0; i < mu_value_count(items); i++) {
        const mu_value *item = mu_value_at(items, i);
        size_t size;

        (void)item_value(item, &size);
        (void)printf("%8zu %10" PRId64 "  %s\n", size, cmd_map_number(item, "revision"),
                     cmd_map_text(item, "key"));
    }
}

static int print_items_json(const mu_value *items)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < mu_value_count(items); i++) {
        const mu_value *item = mu_value_at(items, i);
        const char *key = cmd_map_text(item, "key");
        cJSON *map = cJSON_CreateObject();
        const char *value;
        size_t size;

        (void)cJSON_AddItemToArray(list, map);
        cmd_json_add_text(map, "key", key);
        value = item_value(item, &size);
        cmd_json_add_value(map, value, size);
        cmd_json_add_int(map, "size", (int64_t)size);
        cmd_json_add_int(map, "revision", cmd_map_number(item, "revision"));
    }
    return cmd_json_print(list) == 0 ? CMD_FINE : CMD_FAILED;
}

/* One line for each key, with the value escaped, so that a shell can read it. */
static void print_values(const mu_value *items)
{
    for (size_t i = 0; i < mu_value_count(items); i++) {
        const mu_value *item = mu_value_at(items, i);
        size_t size;
        const char *value = item_value(item, &size);

        (void)printf("%s\t", cmd_map_text(item, "key"));
        cmd_print_escaped(value, size);
        (void)printf("\n");
    }
}

static int print_below(struct cmd_client *client, const char *directory, mu_error *error,
                       void (*print)(const mu_value *items))
{
    mu_value *items;
    int rv = mu_kv_list(client->node, directory, cmd_timeout_ms(client), error, &items);
    int code = CMD_FINE;

    if (rv != 0)
        return cmd_kv_code(rv);
    if (cmd_is_json(client))
        code = print_items_json(items);
    else
        print(items);
    mu_value_free(items);
    return code;
}

/* ---- get ---- */

static int print_item(const struct cmd_client *client, const mu_kv_item *item)
{
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)fwrite(item->value, 1, item->size, stdout);
        if (isatty(STDOUT_FILENO) &&
            (item->size == 0 || item->value[item->size - 1] != '\n'))
            (void)printf("\n");
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "key", get_operand(client, 0));
    cmd_json_add_value(map, item->value, item->size);
    cmd_json_add_int(map, "revision", (int64_t)item->revision);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

static int get_key_value(struct cmd_client *client, mu_error *error)
{
    bool waits = cmd_number(client->options, CMD_FLAG_WAIT) == 1;
    const char *key = get_operand(client, 0);
    mu_kv_item item;
    int rv = waits
                 ? mu_kv_get(client->node, key, cmd_wait_timeout_ms(client), error, &item)
                 : mu_kv_try_get(client->node, key, cmd_timeout_ms(client), error, &item);

    if (rv != 0)
        return cmd_kv_code(rv);
    rv = print_item(client, &item);
    mu_kv_item_clear(&item);
    return rv;
}

int cmd_kv_get(struct cmd_client *client, mu_error *error)
{
    if (!cmd_kv_is_directory(client))
        return get_key_value(client, error);
    if (cmd_number(client->options, CMD_FLAG_WAIT) == 1)
        return cmd_kv_code(mu_error_set(error, -MU_EINVALID,
                                        "--wait is for one key, and "
                                        "\"%.100s\" is all below one",
                                        get_operand(client, 0)));
    return print_below(client, get_operand(client, 0), error, print_values);
}

/* ---- put ---- */

static int put_value(struct cmd_client *client, const char *value, size_t size,
                     mu_error *error)
{
    const mu_kv_change change = {.operation = MU_KV_PUT,
                                 .key = get_operand(client, 0),
                                 .value = value,
                                 .size = size};
    uint64_t revision = 0;
    int code = cmd_kv_put_if(client, &change, error, &revision);

    return code != 0 ? code : print_number(client, "revision", (int64_t)revision);
}

int cmd_kv_put(struct cmd_client *client, mu_error *error)
{
    const char *value = get_operand(client, 1);
    size_t size = strlen(value);
    char *input = NULL;
    int rv;

    if (strcmp(value, "-") == 0) {
        rv = cmd_kv_read_input(VALUE_BYTES_MAX, error, &input, &size);
        if (rv != 0)
            return cmd_kv_code(rv);
    }
    rv = put_value(client, input == NULL ? value : input, size, error);
    free(input);
    return rv;
}

/* ---- ls ---- */

int cmd_kv_ls(struct cmd_client *client, mu_error *error)
{
    const char *directory =
        client->options->operands_count == 0 ? "" : get_operand(client, 0);
    bool is_long = cmd_number(client->options, CMD_FLAG_LONG) == 1;

    return print_below(client, directory, error, is_long ? print_long : print_keys);
}

/* ---- rm, incr ---- */

int cmd_kv_rm(struct cmd_client *client, mu_error *error)
{
    const mu_kv_change change = {.operation = MU_KV_DELETE,
                                 .key = get_operand(client, 0)};
    uint64_t count = 0;
    int rv;

    if (cmd_kv_has_condition(client->options)) {
        rv = cmd_kv_change_if(client, &change, error, &count);
        return rv != 0 ? rv : print_number(client, "revision", (int64_t)count);
    }
    rv = mu_kv_delete(client->node, get_operand(client, 0), cmd_timeout_ms(client), error,
                      &count);
    if (rv != 0)
        return cmd_kv_code(rv);
    return print_number(client, "deleted", (int64_t)count);
}

int cmd_kv_incr(struct cmd_client *client, mu_error *error)
{
    const char *text = client->options->operands_count < 2 ? "1" : get_operand(client, 1);
    int64_t by;
    int64_t sum = 0;
    int rv = cmd_kv_read_number(text, &by)
                 ? mu_kv_increment(client->node, get_operand(client, 0), by,
                                   cmd_timeout_ms(client), error, &sum)
                 : mu_error_set(error, -MU_EINVALID,
                                "expected a whole number of 64 bits to add, got "
                                "\"%.40s\"",
                                text);

    if (rv != 0)
        return cmd_kv_code(rv);
    return print_number(client, "number", sum);
}
