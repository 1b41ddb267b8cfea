/* The parts of tables that are in one partition, and what writes do to them. Plain
 * data. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_SET_H
#define MU_ACTORS_PS_TABLES_TABLE_SET_H

#include "actors/ps/tables/table_writes.h"
#include "runtime/base/list.h"

enum { MU__TABLES_MAX = 4096 }; /* of a partition */

struct mu__named_table {
    struct mu__list_node node; /* by age */
    uint64_t id;
    bool sealed;
    uint64_t last; /* a sum of what came of the last write */
    struct mu__table part;
    uint32_t name_size;
    char name[];
};

struct mu__table_set {
    struct mu__table_memory memory;
    uint64_t secret;
    uint32_t count;
    struct mu__list tables; /* struct mu__named_table */
};

void mu__tables_init(struct mu__table_set *set, const struct mu__table_memory *memory,
                     uint64_t secret);
void mu__tables_done(struct mu__table_set *set);

static inline struct mu__named_table *mu__tables_first(const struct mu__table_set *set)
{
    return MU__LIST_FIRST(&set->tables, struct mu__named_table, node);
}

static inline struct mu__named_table *mu__tables_next(const struct mu__named_table *table)
{
    return MU__LIST_NEXT(table, struct mu__named_table, node);
}

/* NULL: it is not here. */
struct mu__named_table *mu__tables_find(const struct mu__table_set *set, uint64_t id);

/* A write of a batch: MU__WRITE_TABLE_... */
struct mu__table_write {
    uint64_t id;
    uint32_t operation;
    struct mu__view data;
};

/* Before the first write of a batch is checked. */
void mu__tables_begin_batch(struct mu__table_set *set);

/* Whether it can be applied, behind those of the batch that were checked; gets the memory
 * that it needs. An open makes its table here, so that writes behind it in the same batch
 * find it. -MU_ENOTFOUND (table), -MU_EINVALID (data; NaN or infinity in a gradient),
 * -MU_EPRECONDITION (another form, or rule), -MU_EAGAIN, -MU_EDATALOSS (of an open),
 * -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__tables_check(struct mu__table_set *set, const struct mu__table_write *write,
                     mu_error *ret_error);

/* Apply one for which that has returned 0. */
void mu__tables_apply(struct mu__table_set *set, const struct mu__table_write *write);

/* A number that depends on what came of the last write; 0: there is no such table. */
uint64_t mu__tables_sample(const struct mu__table_set *set, uint64_t id);

/* Where a copy of all rows is: it begins as zeros. From the last row of a table down to
 * its first, so that none is left out that a delete has moved. */
struct mu__table_cursor {
    uint64_t table; /* 0: it has not begun */
    uint32_t left;  /* rows of it */
};

/* Some rows; false: there are no more. */
bool mu__tables_next_rows(const struct mu__table_set *set,
                          struct mu__table_cursor *cursor, uint64_t *ret_table,
                          struct mu__view *ret_rows);

/* Make a table for a copy; one that is there is kept. -MU_EPRECONDITION,
 * -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__tables_put(struct mu__table_set *set, const struct mu__table_open *open,
                   mu_error *ret_error);

/* Rows of a copy, each with mu__table_row_bytes. -MU_ENOTFOUND, -MU_EINVALID,
 * -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__tables_put_rows(struct mu__table_set *set, uint64_t id, struct mu__view rows,
                        mu_error *ret_error);

#endif
