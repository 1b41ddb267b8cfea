/* `muster vars dump`: rows of a variable or a table, as text. */
#include "cli/vars/element_text.h"
#include "cli/vars/vars.h"

#include "runtime/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 1 << 20 }; /* of a variable, at a time, if a row has less */

/* What the flags say, and how rows are printed. */
struct dump {
    uint64_t first; /* --rows */
    uint64_t end;
    uint64_t *ids; /* --ids; NULL: none were given */
    size_t ids_count;
    uint64_t limit;
    bool is_json;
    const char *key; /* what the number of a row is called */
    int dtype;
    uint64_t elements; /* of a row */
};

/* ---- Flags ---- */

/* A decimal number that ends with `end`; "" is `otherwise`. */
static bool parse_number(const char *text, const char *end, uint64_t otherwise,
                         uint64_t *ret_number)
{
    char *stop;

    *ret_number = otherwise;
    if (text == end)
        return true;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(text, &stop, 10);
    return errno == 0 && stop == end;
}

static int refuse_dump_flag(const struct cmd_client *client, enum cmd_flag flag,
                            const char *expected, mu_error *error)
{
    const char *text = cmd_text(client->options, flag);
    char origin[CMD_ORIGIN_BYTES];
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID, "%s: %s: expected %s",
                        cmd_origin(client->options, flag, origin, sizeof origin), shown,
                        expected);
}

static int parse_rows(const struct cmd_client *client, struct dump *dump, mu_error *error)
{
    const char *text = cmd_text(client->options, CMD_FLAG_ROWS);
    const char *colon = text == NULL ? NULL : strchr(text, ':');

    dump->end = UINT64_MAX;
    if (text == NULL)
        return 0;
    if (colon == NULL || !parse_number(text, colon, 0, &dump->first) ||
        !parse_number(colon + 1, text + strlen(text), UINT64_MAX, &dump->end) ||
        dump->first > dump->end)
        return refuse_dump_flag(client, CMD_FLAG_ROWS, "FIRST:END", error);
    return 0;
}

static int parse_ids(const struct cmd_client *client, struct dump *dump, mu_error *error)
{
    const char *text = cmd_text(client->options, CMD_FLAG_IDS);

    if (text == NULL)
        return 0;
    dump->ids = malloc((strlen(text) + 1) * sizeof *dump->ids);
    if (dump->ids == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    for (const char *end; text != NULL; text = *end == '\0' ? NULL : end + 1) {
        end = text + strcspn(text, ",");
        if (text == end || !parse_number(text, end, 0, &dump->ids[dump->ids_count++]))
            return refuse_dump_flag(client, CMD_FLAG_IDS, "ids with commas between them",
                                    error);
    }
    return 0;
}

/* ---- Rows ---- */

static void print_dump_row(const struct dump *dump, uint64_t number, const void *row)
{
    size_t size = mu_dtype_bytes(dump->dtype);
    char text[CMD_ELEMENT_BYTES];

    if (dump->is_json)
        (void)printf("{\"%s\": %" PRIu64 ", \"values\": [", dump->key, number);
    else
        (void)printf("%" PRIu64 "\t", number);
    for (uint64_t i = 0; i < dump->elements; i++)
        (void)printf("%s%s",
                     i == 0          ? ""
                     : dump->is_json ? ", "
                                     : " ",
                     cmd_element_text(dump->dtype, (const char *)row + i * size,
                                      dump->is_json, text));
    (void)printf(dump->is_json ? "]}\n" : "\n");
}

static void print_dump_rows(const struct dump *dump, uint64_t first, uint64_t count,
                            const char *rows)
{
    uint64_t bytes = dump->elements * mu_dtype_bytes(dump->dtype);

    for (uint64_t i = 0; i < count; i++)
        print_dump_row(dump, first + i, rows + i * bytes);
}

static int read_dump_rows(const struct cmd_client *client, mu_variable *variable,
                          bool is_scalar, const mu_rows *rows, void *buffer, size_t bytes,
                          mu_error *error)
{
    return is_scalar
               ? mu_variable_read(variable, buffer, bytes, cmd_timeout_ms(client), error)
               : mu_variable_read_rows(variable, rows, buffer, bytes,
                                       cmd_timeout_ms(client), error);
}

static int dump_rows(const struct cmd_client *client, const struct dump *dump,
                     mu_variable *variable, bool is_scalar, mu_error *error)
{
    size_t row_bytes = dump->elements * mu_dtype_bytes(dump->dtype);
    uint64_t some = row_bytes >= READ_BYTES ? 1 : READ_BYTES / row_bytes;
    char *buffer = malloc(some * row_bytes);
    int rv = buffer == NULL ? mu_error_set(error, -MU_ENOMEM, "out of memory") : 0;
    mu_rows rows = {.first = dump->first};

    for (; rv == 0 && rows.first < dump->end; rows.first += rows.count) {
        uint64_t left = dump->end - rows.first;

        rows.count = left < some ? left : some;
        rv = read_dump_rows(client, variable, is_scalar, &rows, buffer,
                            rows.count * row_bytes, error);
        if (rv == 0)
            print_dump_rows(dump, rows.first, rows.count, buffer);
    }
    free(buffer);
    return rv;
}

/* Cut the range to the rows that there are, and to the limit. */
static void cut_rows(struct dump *dump, uint64_t rows)
{
    dump->end = dump->end < rows ? dump->end : rows;
    dump->first = dump->first < dump->end ? dump->first : dump->end;
    if (dump->limit > 0 && dump->end - dump->first > dump->limit)
        dump->end = dump->first + dump->limit;
}

static int dump_variable(const struct cmd_client *client, struct dump *dump,
                         const mu_value *found, mu_error *error)
{
    const mu_value *dims = mu_value_find(found, "dims");
    uint64_t rows = 1;
    mu_variable *variable;
    int rv;

    if (dump->ids != NULL)
        return refuse_dump_flag(client, CMD_FLAG_IDS, "a table, and this is a variable",
                                error);
    rv = cmd_vars_open_variable(client, found, error, &variable);
    if (rv != 0)
        return rv;
    dump->key = "row";
    dump->dtype = mu_dtype_find(cmd_map_text(found, "dtype"));
    dump->elements = mu_variable_bytes(variable) / mu_dtype_bytes(dump->dtype);
    if (mu_value_count(dims) > 0) {
        int64_t dim = 1;

        (void)mu_value_get_int(mu_value_at(dims, 0), &dim);
        rows = (uint64_t)dim;
        dump->elements /= rows;
    }
    cut_rows(dump, rows);
    rv = dump_rows(client, dump, variable, mu_value_count(dims) == 0, error);
    mu_variable_close(variable);
    return rv;
}

/* ---- Tables ---- */

/* Not 0: the limit is reached. */
static int dump_exported(void *user, const uint64_t *ids, const float *rows, size_t count)
{
    struct dump *dump = user;

    for (size_t i = 0; i < count; i++) {
        print_dump_row(dump, ids[i], rows + i * dump->elements);
        if (dump->limit > 0 && --dump->limit == 0)
            return 1;
    }
    return 0;
}

static int dump_ids(const struct cmd_client *client, const struct dump *dump,
                    mu_table *table, mu_error *error)
{
    float *rows = malloc(dump->ids_count * dump->elements * sizeof *rows);
    int rv = rows == NULL ? mu_error_set(error, -MU_ENOMEM, "out of memory")
                          : mu_table_lookup(table, dump->ids, dump->ids_count, rows,
                                            cmd_timeout_ms(client), error);

    for (size_t i = 0; i < dump->ids_count && rv == 0; i++)
        print_dump_row(dump, dump->ids[i], rows + i * dump->elements);
    free(rows);
    return rv;
}

static int dump_table(const struct cmd_client *client, struct dump *dump,
                      const mu_value *found, mu_error *error)
{
    mu_table *table;
    int rv;

    if (cmd_text(client->options, CMD_FLAG_ROWS) != NULL)
        return refuse_dump_flag(client, CMD_FLAG_ROWS, "a variable, and this is a table",
                                error);
    rv = cmd_vars_open_table(client, found, error, &table);
    if (rv != 0)
        return rv;
    dump->key = "id";
    dump->dtype = MU_F32;
    dump->elements = mu_table_dim(table);
    if (dump->ids != NULL) {
        rv = dump_ids(client, dump, table, error);
    } else {
        rv = mu_table_export(table, dump_exported, dump, cmd_wait_timeout_ms(client),
                             error);
        rv = rv == 1 ? 0 : rv;
    }
    mu_table_close(table);
    return rv;
}

int cmd_vars_dump(struct cmd_client *client, mu_error *error)
{
    struct dump dump = {.limit = cmd_number(client->options, CMD_FLAG_LIMIT),
                        .is_json = cmd_is_json(client)};
    const mu_value *found;
    mu_value *value = NULL;
    int rv = parse_rows(client, &dump, error);

    if (rv == 0)
        rv = parse_ids(client, &dump, error);
    if (rv == 0)
        rv = cmd_vars_request(client, true, error, &value);
    if (rv == 0)
        rv = cmd_vars_find(value, client->options->operands[0], error, &found);
    if (rv == 0)
        rv = cmd_vars_is_table(found) ? dump_table(client, &dump, found, error)
                                      : dump_variable(client, &dump, found, error);
    mu_value_free(value);
    free(dump.ids);
    return rv == -MU_EINVALID ? CMD_USAGE : cmd_exit_code(rv);
}
