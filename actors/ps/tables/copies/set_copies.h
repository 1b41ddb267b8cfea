/* Some tables of a partition as they were at one time (table_copies.h). */
#ifndef MU_ACTORS_PS_TABLES_SET_COPIES_H
#define MU_ACTORS_PS_TABLES_SET_COPIES_H

#include "actors/ps/tables/copies/table_copies.h"
#include "actors/ps/tables/table_set.h"

struct mu__set_copy {
    uint64_t id;
    struct mu__table_copy rows;
    uint64_t *deleted; /* ids, behind the rows; */
    uint32_t deleted_count;
    bool is_taken; /* of these nothing is left */
};

struct mu__set_copies {
    struct mu__set_copy *tables; /* in the order of the ids that were asked for */
    uint32_t count;
};

enum { MU__SET_COPIES_ID_BYTES = 8, MU__SET_COPIES_SIZE_BYTES = 3 * 4 + 5 * 8 };

/* Of one table in a partition. */
struct mu__set_copies_size {
    uint32_t rows;     /* all, or those that have changed, */
    uint32_t deleted;  /* and ids that were deleted */
    uint32_t is_whole; /* all */
    uint64_t bytes;    /* of memory */
    uint64_t dropped;  /* as struct mu__table_state has them, */
    uint64_t refused;
    uint64_t expired;
    uint64_t evicted;
};

/* Since when rows have changed, and what is to be known from now on (table_marks.h). */
struct mu__set_copies_marks {
    uint64_t since; /* 0, or not known: all rows */
    uint64_t mark;  /* 0: none */
};

/* Those with these ids, 8 bytes each in host byte order, each once. -MU_EDATALOSS: one is
 * not there; -MU_EINVALID, -MU_ENOMEM. */
int mu__set_copies_begin(struct mu__set_copies *copies, const struct mu__table_set *set,
                         struct mu__view ids, const struct mu__set_copies_marks *marks,
                         const struct mu__table_copy_memory *memory, mu_error *ret_error);
void mu__set_copies_end(struct mu__set_copies *copies);

/* NULL: it is not among them. */
struct mu__set_copy *mu__set_copies_find(const struct mu__set_copies *copies,
                                         uint64_t id);

/* How many have something that was not taken; bytes for which one had no memory, or 0. */
uint32_t mu__set_copies_unread(const struct mu__set_copies *copies);
uint64_t mu__set_copies_refused(const struct mu__set_copies *copies);

/* Read the next piece of one: whole rows, or, behind these, all ids that were deleted.
 * -MU_EABORTED: it is another piece; -MU_ENOMEM. The caller frees *ret_data. */
int mu__set_copy_read(const struct mu__set_copy *copy, uint64_t offset, uint32_t size,
                      mu_error *ret_error, uint8_t **ret_data);

/* That piece is not needed any more; whether it was the last one. */
bool mu__set_copy_take(struct mu__set_copy *copy, uint32_t size);

/* For each of the ids in turn its size, as 3 times 4 and 5 times 8 bytes in host byte
 * order; 0 of what is not there. NULL: out of memory. */
uint8_t *mu__set_copies_sizes(const struct mu__table_set *set, struct mu__view ids,
                              uint64_t since, uint32_t *ret_size);
struct mu__set_copies_size mu__set_copies_size_at(const uint8_t *sizes, size_t i);

#endif
