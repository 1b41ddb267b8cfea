#include "cli/output/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cmd_table_init(struct cmd_table *table, const char *heads)
{
    *table = (struct cmd_table){.columns = 1};
    for (const char *at = heads; *at != '\0'; at++)
        table->columns += *at == '|';
    cmd_table_row(table);
    for (unsigned column = 0; column < table->columns; column++) {
        int length = (int)strcspn(heads, "|");

        cmd_table_cell(table, column, "%.*s", length, heads);
        heads += length + (heads[length] == '|');
    }
}

void cmd_table_done(struct cmd_table *table)
{
    free(table->cells);
    table->cells = NULL;
}

void cmd_table_row(struct cmd_table *table)
{
    size_t size = (table->rows + 1) * table->columns * CMD_CELL_BYTES;
    void *cells = table->failed ? NULL : realloc(table->cells, size);

    if (cells == NULL) {
        table->failed = 1;
        return;
    }
    table->cells = cells;
    memset(table->cells[table->rows * table->columns], 0,
           (size_t)table->columns * CMD_CELL_BYTES);
    table->rows++;
}

void cmd_table_cell(struct cmd_table *table, unsigned column, const char *format, ...)
{
    va_list args;

    if (table->failed)
        return;
    va_start(args, format);
    (void)vsnprintf(table->cells[(table->rows - 1) * table->columns + column],
                    CMD_CELL_BYTES, format, args);
    va_end(args);
}

void cmd_table_print(const struct cmd_table *table, const char *title)
{
    int widths[CMD_COLUMNS_MAX] = {0};

    if (table->failed || table->rows < 2)
        return;
    for (size_t i = 0; i < table->rows * table->columns; i++) {
        int length = (int)strlen(table->cells[i]);
        int *width = &widths[i % table->columns];

        *width = length > *width ? length : *width;
    }
    (void)printf("\n%s\n", title);
    for (size_t row = 0; row < table->rows; row++) {
        char(*cells)[CMD_CELL_BYTES] = table->cells + row * table->columns;
        unsigned last = table->columns - 1;

        for (unsigned column = 0; column < last; column++)
            (void)printf("  %-*s", widths[column], cells[column]);
        (void)printf("  %s\n", cells[last]);
    }
}

void cmd_table_print_list(const mu_value *list, const char *title, const char *heads,
                          void (*row)(struct cmd_table *table, const mu_value *item))
{
    struct cmd_table table;

    cmd_table_init(&table, heads);
    for (size_t i = 0; i < mu_value_count(list); i++)
        row(&table, mu_value_at(list, i));
    cmd_table_print(&table, title);
    cmd_table_done(&table);
}

void cmd_print_cell(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        (void)printf(*text == '|' ? "\\|" : "%c", *text);
}
