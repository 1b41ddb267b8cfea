/* One partition's part of an embedding table: rows of floats, by 64-bit ids. Plain data.
 *
 * A look-up reads: an id without a row has its initial row (initial_row.h), and none is
 * made. A push of an id makes its row, the first one unless the table's policy says
 * otherwise (table_policy.h); gradients of ids that get no row are dropped. So what a
 * part holds is a function of the writes alone, in their order; so is the number of each
 * row, whose order mu__table_row_at shows.
 *
 * Rows are in slabs of some KiB, which are never moved; an index of 8 bytes an entry, at
 * most 7/8 full, is doubled when it is full. Lists of ids have 8 bytes for each, and
 * lists of numbers 4, in host byte order and not aligned. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_H
#define MU_ACTORS_PS_TABLES_TABLE_H

#include "actors/messages/limits.h"
#include "actors/ps/rules/rules.h"
#include "actors/ps/tables/copies/table_marks.h"
#include "actors/ps/tables/initial_row.h"
#include "actors/ps/tables/policies/candidates.h"
#include "actors/ps/tables/policies/table_policy.h"
#include "runtime/base/block_pages.h"
#include "runtime/base/list.h"

enum { MU__TABLE_DIM_MAX = MU__TABLE_DIM_LIMIT };

/* The memory of several parts together. A push beyond it is refused. */
struct mu__table_memory {
    uint64_t bytes_max;
    uint64_t *bytes_used;
    struct mu__block_pages *pages; /* for rows; NULL: the heap */
};

/* What all parts of a table have in common. */
struct mu__table_form {
    uint32_t dim;
    uint32_t dtype;    /* of rows: MU_F16, MU_BF16, or 0: 32-bit floats, as slots are */
    uint32_t rows_max; /* of a part; 0: as many as there is memory for */
    struct mu__initial initial;
    struct mu__rule rule; /* whose slots rows have */
    struct mu__table_policy policy;
};

/* -MU_EINVALID, -MU_ERANGE. */
int mu__table_form_check(const struct mu__table_form *form, mu_error *ret_error);

/* What a part knows besides its rows and candidates: the same at all replicas. In host
 * byte order, as rows are. */
struct mu__table_state {
    uint64_t pushes;  /* writes of pushes that were applied */
    uint64_t latest;  /* the largest time of a push */
    uint64_t swept;   /* rows of times below this one were removed for their age */
    uint64_t made;    /* rows, by pushes */
    uint64_t dropped; /* gradients of ids that got no row */
    uint64_t refused; /* pushes with NaN or infinity */
    uint64_t expired; /* rows that were removed below a score, or for their age, */
    uint64_t evicted; /* and beyond the capacity */
};

/* Where rows of a push that is about to come are, most likely (table_ahead.h). */
struct mu__table_guess {
    const void *ids; /* of the push; NULL: there is none */
    uint32_t count;
    const unsigned char *const *rows; /* NULL: an id has none */
};

struct mu__table {
    struct mu__table_form form;
    struct mu__table_memory memory;
    struct mu__table_state state;
    struct mu__candidates candidates;
    uint64_t bytes;  /* of this part */
    uint64_t secret; /* of the index: who chooses ids does not know it */
    uint64_t *index; /* row + 1, and 32 bits of the hash above; 0: empty */
    uint32_t index_bits;
    uint32_t rows;
    uint64_t reserved;  /* more, for which there is memory, */
    uint32_t pending;   /* by so many pushes */
    uint32_t row_bytes; /* in a slab: the id, the count of pushes, the row, the slots; of
                           some policies, the time of the last push */
    uint32_t slots_at[MU__RULE_SLOTS_MAX]; /* where they are in a row; 0: none */
    uint32_t slab_rows;                    /* a power of two */
    unsigned char **slabs;
    uint32_t slabs_count;
    uint32_t slabs_room;
    struct mu__list copies; /* that are being read (table_copies.h) */
    struct mu__table_marks marks;
    struct mu__table_guess guess; /* until a row is removed */
    bool is_alone;                /* what comes of pushes is not summed */
};

/* The form was checked. */
void mu__table_init(struct mu__table *table, const struct mu__table_form *form,
                    const struct mu__table_memory *memory, uint64_t secret);
void mu__table_done(struct mu__table *table);

/* Make room for candidates, if the policy counts any: once, before the first push.
 * -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__table_make_candidates(struct mu__table *table, mu_error *ret_error);

/* Copy the numbers of `count` ids' rows to `rows`, in 32 bits or in 16, as they are held,
 * one behind the other. */
void mu__table_lookup(const struct mu__table *table, const void *ids, uint32_t count,
                      void *rows);

/* Ids, each with the number of a sum, 4 bytes, and a weight; no weights (NULL): 1. */
struct mu__pooled {
    uint32_t count;
    const unsigned char *ids;
    const unsigned char *bags;
    const unsigned char *weights;
};

/* Add the rows of ids to sums, in their order: `sums` has as many numbers for each as a
 * row has. */
void mu__table_pool(const struct mu__table *table, const struct mu__pooled *pooled,
                    void *sums);

/* Ask for what tells where the rows of ids are; then for the rows, with their slots or
 * without: where they most likely are, NULL: there is none. There is an index. */
void mu__table_prefetch_index(const struct mu__table *table, const void *ids,
                              uint32_t count, uint64_t *ret_hashes);
void mu__table_prefetch_rows(const struct mu__table *table, const uint64_t *hashes,
                             uint32_t count, bool with_slots,
                             const unsigned char **ret_guessed);

/* mu__table_lookup of ids whose rows were guessed, since when nothing was written. */
void mu__table_lookup_guessed(const struct mu__table *table, const void *ids,
                              uint32_t count, const unsigned char *const *guessed,
                              void *rows);

/* Whether there is memory for the rows that a push of these ids makes, besides those that
 * were reserved since mu__table_unreserve, and make it ready: then mu__table_push cannot
 * fail. -MU_EEXHAUSTED, -MU_ENOMEM: nothing has changed. */
int mu__table_reserve(struct mu__table *table, const void *ids, uint32_t count,
                      mu_error *ret_error);
void mu__table_unreserve(struct mu__table *table);

/* The same for one row that is set, whatever the policy says of pushes. */
int mu__table_reserve_row(struct mu__table *table, uint64_t id, mu_error *ret_error);

/* Apply gradients of ids that are in rising order, each once (mu__pushed_sum);
 * they were reserved. The rule is of the kind of the table's; if it has no step, that of
 * a row is the number of its pushes, this one included. A push at time 0 is one later
 * than the latest. Returns a sum of what came of it, or of a table that is alone any
 * number. */
uint64_t mu__table_push_at(struct mu__table *table, uint32_t time, const void *ids,
                           const void *gradients, uint32_t count,
                           const struct mu__rule *rule);

static inline uint64_t mu__table_push(struct mu__table *table, const void *ids,
                                      const void *gradients, uint32_t count,
                                      const struct mu__rule *rule)
{
    return mu__table_push_at(table, 0, ids, gradients, count, rule);
}

/* Whether ids are in rising order, each once. */
bool mu__table_is_sorted(const void *ids, uint32_t count);

/* Ids of a push, and where their gradients are in a list. */
struct mu__pushed_id {
    uint64_t id;
    uint32_t position;
};

struct mu__pushed_ids {
    struct mu__pushed_id *items;
    uint32_t count;
};

/* Sort them by ids, those that are alike by positions; returns how many differ. */
uint32_t mu__pushed_sort(struct mu__pushed_id *pushed, uint32_t count);

/* Put the first `different` ids of some that are sorted, each once, and behind them their
 * gradients: of an id that is there several times the sum, in the order of positions. Of
 * a delete (`dim` is 0) there are none. Returns how many items that were. */
uint32_t mu__pushed_sum(const struct mu__pushed_ids *some, uint32_t different,
                        const void *gradients, uint32_t dim, void *ret_sums);

/* Delete a row; false: there is none. The last row takes its number. */
bool mu__table_delete(struct mu__table *table, uint64_t id);

/* Delete all rows; their memory is kept for others. */
void mu__table_clear(struct mu__table *table);

/* A row as it is, for copies: the id, the count of pushes, then the row and the slots,
 * and the time, if rows have one. Those of one slab, `slab_rows` of them, follow each
 * other. */
const unsigned char *mu__table_row_at(const struct mu__table *table, uint32_t row);

/* Set the numbers of an id's row, for which there is memory; slots and pushes stay as
 * they are, or begin. Returns a sum of what came of it. */
uint64_t mu__table_insert(struct mu__table *table, uint64_t id, const void *numbers);

/* Set a row to such a copy, for which there is memory, and return a sum of it; or get the
 * memory. -MU_EEXHAUSTED, -MU_ENOMEM. */
uint64_t mu__table_set_row(struct mu__table *table, const unsigned char *copy);
int mu__table_put_row(struct mu__table *table, const unsigned char *copy,
                      mu_error *ret_error);

enum { MU__TABLE_ROW_HEAD = 12 }; /* bytes of the id and the count */

/* Bytes of the numbers of a row. */
static inline uint32_t mu__table_numbers_bytes(const struct mu__table_form *form)
{
    return form->dim * (uint32_t)(form->dtype == 0 ? sizeof(float) : sizeof(uint16_t));
}

/* The same, padded, behind the head: then come the slots. */
uint32_t mu__table_values_bytes(const struct mu__table_form *form);

uint64_t mu__table_row_id(const unsigned char *row);
uint32_t mu__table_row_pushes(const unsigned char *row);

/* The time of the last push of a row; of a policy with times. */
uint32_t mu__table_row_time(const struct mu__table *table, const unsigned char *row);

/* Bytes of such a copy. */
uint32_t mu__table_row_bytes(const struct mu__table_form *form);

#endif
