/* Reading embedding tables from checkpoints, without a node: for serving.
 *
 * A checkpoint with tables, and the increments after it, each of the one before
 * (mu_checkpoint_options.base), are read as one table. All bytes are checked when it is
 * opened; rows are then read from files that are mapped. The files may be removed
 * meanwhile. An index in memory has 16 bytes for each id, at most half full. What a
 * reader shows never changes: after another increment, open another one.
 *
 * Any thread may call, several at once. */
#ifndef MUSTER_TABLE_READER_H
#define MUSTER_TABLE_READER_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_table_reader mu_table_reader;

/* Open a table of the checkpoints `paths`: the first is no increment, each other one is
 * that of the one before; else -MU_EPRECONDITION. -MU_EDATALOSS: one is damaged, or has
 * the table otherwise; -MU_ENOTFOUND: there is no such checkpoint, or no such table in
 * it. */
MU_EXPORT int mu_table_reader_open(const char *const *paths, size_t count,
                                   const char *table, mu_error *ret_error,
                                   mu_table_reader **ret_reader);

/* NULL is fine. */
MU_EXPORT void mu_table_reader_close(mu_table_reader *reader);

/* Numbers of a row; rows; the step of the last checkpoint. */
MU_EXPORT unsigned mu_table_reader_dim(const mu_table_reader *reader);
MU_EXPORT uint64_t mu_table_reader_rows(const mu_table_reader *reader);
MU_EXPORT uint64_t mu_table_reader_step(const mu_table_reader *reader);

/* Read the rows of `count` ids, in their order, into `rows`. An id without a row has its
 * initial row, which is the same as on the servers. -MU_EINVALID: NULL. */
MU_EXPORT int mu_table_reader_lookup(const mu_table_reader *reader, const uint64_t *ids,
                                     size_t count, float *rows, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
