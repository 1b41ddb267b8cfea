/* Look-ups of a table, for the files that have more than one kind of them. */
#ifndef MU_API_TABLE_LOOKUPS_H
#define MU_API_TABLE_LOOKUPS_H

#include "actors/variables/table_calls.h"

#include "muster/table.h"

/* A look-up, whose ids and rows are to be set. */
struct mu__table_call mu__table_lookup_call(const mu_table *table, int64_t timeout_ms);
int mu__table_look_up(const mu_table *table, struct mu__table_call *call,
                      mu_error *ret_error);

const mu_node *mu__table_node(const mu_table *table);

#endif
