/* Some tables of a partition as they were at one time (table_copies.h). */
#ifndef MU_ACTORS_PS_TABLES_SET_COPIES_H
#define MU_ACTORS_PS_TABLES_SET_COPIES_H

#include "actors/ps/tables/table_copies.h"
#include "actors/ps/tables/table_set.h"

struct mu__set_copy {
    uint64_t id;
    struct mu__table_copy rows;
};

struct mu__set_copies {
    struct mu__set_copy *tables; /* in the order of the ids that were asked for */
    uint32_t count;
};

enum { MU__SET_COPIES_ID_BYTES = 8, MU__SET_COPIES_SIZE_BYTES = 4 + 8 };

/* Of one table in a partition. */
struct mu__set_copies_size {
    uint32_t rows;
    uint64_t bytes; /* of memory */
};

/* Those with these ids, 8 bytes each in host byte order, each once. -MU_EDATALOSS: one is
 * not there; -MU_EINVALID, -MU_ENOMEM. */
int mu__set_copies_begin(struct mu__set_copies *copies, const struct mu__table_set *set,
                         struct mu__view ids, const struct mu__table_copy_memory *memory,
                         mu_error *ret_error);
void mu__set_copies_end(struct mu__set_copies *copies);

/* NULL: it is not among them. */
struct mu__set_copy *mu__set_copies_find(const struct mu__set_copies *copies,
                                         uint64_t id);

/* How many have rows that were not taken; bytes for which one had no memory, or 0. */
uint32_t mu__set_copies_unread(const struct mu__set_copies *copies);
uint64_t mu__set_copies_refused(const struct mu__set_copies *copies);

/* For each of the ids in turn rows and bytes of memory, 4 and 8 bytes in host byte order;
 * 0 of what is not there. NULL: out of memory. */
uint8_t *mu__set_copies_sizes(const struct mu__table_set *set, struct mu__view ids,
                              uint32_t *ret_size);
struct mu__set_copies_size mu__set_copies_size_at(const uint8_t *sizes, size_t i);

#endif
