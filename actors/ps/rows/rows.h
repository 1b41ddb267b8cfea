/* Rows of shards: what the store does for reads and writes of them. */
#ifndef MU_ACTORS_PS_ROWS_ROWS_H
#define MU_ACTORS_PS_ROWS_ROWS_H

#include "actors/ps/variable_store.h"

struct variable;

/* Writes to rows, beside enum mu__write_operation and those of row_updates.h. A range is
 * written in place, piece by piece; a list of rows has their numbers, then their contents
 * (row_list.h). The version does not count them. */
enum mu__row_operation {
    MU__WRITE_ROWS_ASSIGN = 16, /* a range */
    MU__WRITE_ROWS_ADD = 17,
    MU__WRITE_SCATTER_UPDATE = 18, /* a list; of equal numbers the last one stays */
    MU__WRITE_SCATTER_ADD = 19
};

bool mu__rows_are_written(uint32_t operation);
bool mu__rows_are_listed(uint32_t operation);

struct mu__store_read_rows {
    uint64_t id;
    struct mu__view numbers; /* in the shard */
    uint32_t size;           /* of their contents */
};

/* Copy rows to `out`. -MU_ENOTFOUND (id), -MU_EINVALID (sizes), -MU_ERANGE (a row),
 * -MU_EPRECONDITION (no content yet). */
int mu__store_read_rows(struct mu__variable_store *store,
                        const struct mu__store_read_rows *request, mu_error *ret_error,
                        void *out, uint64_t *ret_version);

/* mu__store_sample of what a write has changed. */
uint64_t mu__store_sample_write(const struct mu__variable_store *store,
                                const struct mu__store_write *write);

/* ---- For shard_writes.c ---- */

/* Whether the data of a list is whole, and all of its rows are there: -MU_EINVALID,
 * -MU_ERANGE. Of row_updates.h also -MU_EINVALID: the dtype, or a divisor of 0. */
int mu__rows_check(const struct variable *v, const struct mu__store_write *write,
                   mu_error *ret_error);

/* Apply what was checked, and whose dtype adds where it has to. Always 0. */
int mu__rows_assign(struct mu__variable_store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error);
int mu__rows_scatter_update(struct mu__variable_store *store, struct variable *v,
                            const struct mu__store_write *write, mu_error *ret_error);
int mu__rows_scatter_add(struct mu__variable_store *store, struct variable *v,
                         const struct mu__store_write *write, mu_error *ret_error);
int mu__rows_scatter_update_by(struct mu__variable_store *store, struct variable *v,
                               const struct mu__store_write *write, mu_error *ret_error);

#endif
