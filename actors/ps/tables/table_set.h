/* The parts of tables that are in one partition, and what writes do to them. Plain
 * data. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_SET_H
#define MU_ACTORS_PS_TABLES_TABLE_SET_H

#include "actors/ps/tables/policies/table_sweeps.h"
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
    bool may_sweep; /* a push may have made a sweep due */
    bool is_alone;  /* no replica compares what comes of writes: pushes are not summed */
    const void *checked_data;      /* of the last push that was checked, */
    struct mu__table_push checked; /* and what it says */
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

/* A sweep that a table's policy asks for; false: there is none, until another push is
 * applied. */
bool mu__tables_sweep_due(const struct mu__table_set *set, uint64_t *ret_table,
                          struct mu__table_bound *ret_bound);

/* Remove rows; 0: there is no such table. */
uint64_t mu__tables_sweep(struct mu__table_set *set, uint64_t id,
                          const struct mu__table_bound *bound);

/* A number that depends on what came of the last write; 0: there is no such table. */
uint64_t mu__tables_sample(const struct mu__table_set *set, uint64_t id);

/* What a piece of a copy is; the numbers are part of the wire format. */
enum mu__table_piece_kind {
    MU__PIECE_ROWS,       /* as they are, each with mu__table_row_bytes */
    MU__PIECE_CANDIDATES, /* buckets, as they are, from the last ones down, behind the
                             rows of their ids */
    MU__PIECE_STATE,      /* a struct mu__table_state: last, as all before changes it */
    MU__TABLE_PIECES
};

struct mu__table_piece {
    uint64_t table;
    uint32_t kind;
    struct mu__view bytes;
};

/* Where a copy of all tables is: it begins as zeros. Rows from the last one of a table
 * down to the first, so that none is left out that a delete has moved. If candidates are
 * counted, a copy has to know which ids have rows before it counts any: so some buckets,
 * and the rows whose ids belong to them, are of one time, again and again. */
struct mu__table_cursor {
    uint64_t table; /* 0: it has not begun */
    uint32_t step;
    uint32_t left;  /* rows of it, or buckets */
    uint32_t low;   /* the first of the buckets that are being copied, */
    uint32_t rows;  /* among so many rows; */
    bool is_within; /* what follows has to be of the same time as the last piece */
};

/* False: there are no more. */
bool mu__tables_next_piece(const struct mu__table_set *set,
                           struct mu__table_cursor *cursor,
                           struct mu__table_piece *ret_piece);

/* Make a table, unless it is there with the same form. -MU_EPRECONDITION,
 * -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__tables_need(struct mu__table_set *set, const struct mu__table_open *open,
                    mu_error *ret_error);

/* Make a table for a copy, with the state that it has when the copy begins; one that is
 * there is kept. -MU_EPRECONDITION, -MU_EINVALID, -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__tables_put(struct mu__table_set *set, const struct mu__table_open *open,
                   struct mu__view state, mu_error *ret_error);

/* -MU_ENOTFOUND, -MU_EINVALID, -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__tables_put_piece(struct mu__table_set *set, const struct mu__table_piece *piece,
                         mu_error *ret_error);

#endif
