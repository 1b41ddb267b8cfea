/* A table of text in columns as wide as they must be. */
#ifndef MU_NODE_CMD_TABLE_H
#define MU_NODE_CMD_TABLE_H

#include "muster/error.h"

enum { CMD_COLUMNS_MAX = 8, CMD_CELL_BYTES = 64 };

struct cmd_table {
    unsigned columns;
    size_t rows;
    char (*cells)[CMD_CELL_BYTES];  /* row after row */
    int failed;             /* out of memory: the table is not whole */
};

/* The first row is the heads, separated by |; "NAME|SIZE". */
void cmd_table_init(struct cmd_table *table, const char *heads);
void cmd_table_done(struct cmd_table *table);

/* Begin a row of empty cells, then write its cells one by one. */
void cmd_table_row(struct cmd_table *table);
void cmd_table_cell(struct cmd_table *table, unsigned column, const char *format, ...)
    MU_PRINTF(3, 4);

/* Print it below a title, when it has a row beneath its heads. */
void cmd_table_print(const struct cmd_table *table, const char *title);

#endif
