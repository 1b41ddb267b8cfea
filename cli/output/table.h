/* A table of text, whose columns are as wide as their longest cells. */
#ifndef MU_NODE_CMD_TABLE_H
#define MU_NODE_CMD_TABLE_H

#include "muster/error.h"
#include "muster/value.h"

enum { CMD_COLUMNS_MAX = 9, CMD_CELL_BYTES = 64 };

struct cmd_table {
    unsigned columns;
    size_t rows;
    char (*cells)[CMD_CELL_BYTES]; /* in row-major order */
    int failed; /* out of memory: cells are missing, and nothing is printed */
};

/* Begin a table with its column heads, separated by |: "NAME|SIZE". */
void cmd_table_init(struct cmd_table *table, const char *heads);
void cmd_table_done(struct cmd_table *table);

/* Begin a row of empty cells, then write its cells one by one. */
void cmd_table_row(struct cmd_table *table);
void cmd_table_cell(struct cmd_table *table, unsigned column, const char *format, ...)
    MU_PRINTF(3, 4);

/* Print the title and the table, unless it has no rows besides its heads. */
void cmd_table_print(const struct cmd_table *table, const char *title);

/* Print a table of which `row` makes the rows of one item. */
void cmd_table_print_list(const mu_value *list, const char *title, const char *heads,
                          void (*row)(struct cmd_table *table, const mu_value *item));

/* Print a cell of a Markdown table: a bar is escaped. NULL prints nothing. */
void cmd_print_cell(const char *text);

#endif
