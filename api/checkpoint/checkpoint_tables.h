/* Tables in checkpoints: rows from snapshots into the columns of files, and back to the
 * servers. */
#ifndef MU_API_CHECKPOINT_TABLES_H
#define MU_API_CHECKPOINT_TABLES_H

#include "api/checkpoint/checkpoint_slots.h"
#include "node/files/checkpoint/ckpt_tables.h"
#include "node/files/checkpoint/ckpt_writer.h"

/* ---- Saving ---- */

struct mu__saved_tables;

/* The tables of a snapshot that has begun: where the rows of each partition go. Their
 * forms are noted in the writer. The caller frees it with mu__saved_tables_free. */
int mu__saved_tables_new(struct mu__ckpt_writer *writer,
                         const struct mu__snapshot_sources *sources,
                         const struct mu__snapshot_reader *reader, mu_error *ret_error,
                         struct mu__saved_tables **ret_saved);
void mu__saved_tables_free(struct mu__saved_tables *saved);

/* Copies of rows of the i-th table (snapshot_reader.h); `columns`: its tensors. */
int mu__saved_tables_put(struct mu__saved_tables *saved, size_t i, const size_t *columns,
                         uint32_t partition, uint32_t first, const void *copies,
                         uint32_t count, mu_error *ret_error);

/* All ids of a partition that were deleted, into their tensor. */
int mu__saved_tables_put_deleted(struct mu__saved_tables *saved, size_t i, size_t column,
                                 uint32_t partition, const void *ids, uint32_t count,
                                 mu_error *ret_error);

/* The sum of a column, once all rows were put. */
uint32_t mu__saved_tables_sum(const struct mu__saved_tables *saved, size_t i,
                              unsigned column);

/* ---- Restoring ---- */

/* Whether a tensor is a variable, and not one of an optimizer or a table. */
bool mu__ckpt_is_variable(const struct mu__ckpt_reader *reader,
                          const struct mu__manifest_variable *tensor);

/* -MU_EPRECONDITION: an increment is not restored. */
int mu__ckpt_refuse_increment(const struct mu__ckpt_reader *reader, mu_error *ret_error);

/* Check all tables, before anything is written. -MU_EDATALOSS. */
int mu__ckpt_check_tables(const struct mu__ckpt_reader *reader, mu_error *ret_error);

/* Give a table on the servers the rows of the checkpoint, and no others. */
int mu__ckpt_restore_table(mu_node *node, const struct mu__ckpt_reader *reader,
                           const struct mu__manifest_table *saved, uint64_t deadline_ns,
                           mu_error *ret_error);

/* A list of maps: name, dim, initializer, initial, seed, optimizer, rows, bytes. NULL:
 * out of memory, or one is malformed. */
mu_value *mu__ckpt_describe_tables(const struct mu__ckpt_reader *reader);

#endif
