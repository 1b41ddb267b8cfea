/* The row of an id that a table does not hold: a function of the table's seed, the id and
 * the column, so that every server computes the same. The generator is Philox4x32-10
 * (Salmon et al., Parallel random numbers: as easy as 1, 2, 3); nothing here depends on a
 * library's mathematics. */
#ifndef MU_ACTORS_PS_TABLES_INITIAL_ROW_H
#define MU_ACTORS_PS_TABLES_INITIAL_ROW_H

#include "muster/error.h"

#include <stdint.h>

enum mu__initial_kind {
    MU__INITIAL_ZEROS,
    MU__INITIAL_CONSTANT, /* `a` */
    MU__INITIAL_UNIFORM,  /* from `a` to below `b` */
    MU__INITIAL_NORMAL    /* mean `a`, standard deviation `b` */
};

struct mu__initial {
    uint32_t kind; /* enum mu__initial_kind */
    float a;
    float b;
    uint64_t seed; /* of the table */
};

/* Whether it can be computed; else -MU_EINVALID. */
int mu__initial_check(const struct mu__initial *initial, mu_error *ret_error);

/* `row` has `dim` numbers, not aligned. */
void mu__initial_row(const struct mu__initial *initial, uint64_t id, uint32_t dim,
                     void *row);

/* Four random words of a counter and a key. */
void mu__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4]);

#endif
