/* Tables in a checkpoint: their forms, and the tensors in which their rows are. */
#ifndef MU_NODE_FILES_CHECKPOINT_CKPT_TABLES_H
#define MU_NODE_FILES_CHECKPOINT_CKPT_TABLES_H

#include "actors/ps/tables/copies/table_columns.h"
#include "node/files/checkpoint/ckpt_reader.h"

/* A table that is read, from its first row to its last. */
struct mu__ckpt_table {
    const struct mu__manifest_table *saved;
    struct mu__table_form form;
    struct mu__table_column columns[MU__TABLE_COLUMNS_MAX];
    const struct mu__manifest_variable *tensors[MU__TABLE_COLUMNS_MAX];
    uint32_t sums[MU__TABLE_COLUMNS_MAX]; /* of what was read */
    unsigned columns_count;
    const struct mu__manifest_variable *deleted; /* ids, of an increment; NULL: none */
    uint64_t next;                               /* row */
};

/* The tensor of ids that were deleted, as a column of its own. */
extern const struct mu__table_column mu__ckpt_deleted_column;

/* The tensor of a column; false: its name would be too long. */
bool mu__ckpt_column_name(const char *table, const struct mu__table_column *column,
                          char ret_name[MU__MANIFEST_NAME_MAX + 1]);

/* NULL: it is not in the checkpoint. */
const struct mu__manifest_table *mu__ckpt_find_table(const struct mu__ckpt_reader *reader,
                                                     const char *name);

/* Whether a tensor is a column of a table. */
bool mu__ckpt_is_column(const struct mu__ckpt_reader *reader,
                        const struct mu__manifest_variable *tensor);

/* Begin with a table: its form can be one, and its tensors are there. -MU_EDATALOSS. */
int mu__ckpt_table_begin(const struct mu__ckpt_reader *reader,
                         const struct mu__manifest_table *saved, mu_error *ret_error,
                         struct mu__ckpt_table *ret_table);

/* The next rows, at most `count`: as copies of rows, and how many; 0 behind the last one.
 * With the last ones the sums are checked again. -MU_EDATALOSS, -MU_ENOMEM. */
int mu__ckpt_table_next(const struct mu__ckpt_reader *reader,
                        struct mu__ckpt_table *table, uint32_t count, void *ret_copies,
                        mu_error *ret_error, uint32_t *ret_count);

#endif
