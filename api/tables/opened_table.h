/* A table's handle, for the other files that write to tables. */
#ifndef MU_API_OPENED_TABLE_H
#define MU_API_OPENED_TABLE_H

#include "actors/ps/tables/table_part.h"
#include "actors/ps/tables/table_writes.h"
#include "actors/variables/table_calls.h"

#include "muster/table.h"

#include <stdatomic.h>

/* Any thread. */
struct mu_table {
    atomic_uint refs; /* the program's, and one for each call that nobody waits for; */
    atomic_ullong bytes_under_way; /* what these have copied, and some more for each */
    mu_node *node;                 /* held */
    uint64_t id;
    struct mu__table_form form;
    uint32_t home; /* the partition that knows whether all of it was made */
    char name[];
};

/* Open the table with this name and form; flags and errors are those of mu_table_open. */
int mu__table_open_form(mu_node *node, const char *name,
                        const struct mu__table_form *form, unsigned flags,
                        uint64_t deadline_ns, mu_error *ret_error, mu_table **ret_table);

void mu__table_ref(mu_table *table);

/* Whether its rows may be read in this form. */
int mu__table_check_rows_dtype(const mu_table *table, int dtype, mu_error *ret_error);

/* What is to be written by a push, in effects, which are the caller's to clear. */
int mu__table_add_push(const mu_table *table, struct mu__effects *effects, uint64_t time,
                       const uint64_t *ids, const float *gradients, size_t count,
                       const mu_optimizer *optimizer, mu_error *ret_error);

/* A call without writes: a look-up, whose ids and rows are to be set, is run. What is
 * appended to call->run.effects is applied by mu__table_send, which takes it, unless `rv`
 * says why it could not be appended. */
struct mu__table_call mu__table_make_call(const mu_table *table, int operation,
                                          uint64_t deadline_ns);
void mu__table_init_call(const mu_table *table, int operation, uint64_t deadline_ns,
                         struct mu__table_call *ret_call);
int mu__table_run_call(const mu_table *table, struct mu__table_call *call,
                       mu_error *ret_error);
int mu__table_send(const mu_table *table, struct mu__table_call *call, int rv,
                   mu_error *ret_error);

/* Say to the program how a call ended that nobody waits for. */
void mu__table_report(const mu_table *table, struct mu__call *call, mu_table_done_fn done,
                      void *user);

/* Delete all rows; set rows to copies (actors/ps/tables/copies/table_columns.h). */
int mu__table_clear_all(const mu_table *table, uint64_t deadline_ns, mu_error *ret_error);
int mu__table_set_rows(const mu_table *table, const void *copies, uint32_t count,
                       uint64_t deadline_ns, mu_error *ret_error);

#endif
