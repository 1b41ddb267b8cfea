/* Function names as numbers, so that a million closures name their functions in four
 * bytes each. A number is counted: it stays while it has holders, and for some time after
 * that, so that what is stored under it (how long a function takes) is not lost when a
 * function has no closures for a moment. Then it is given to another name. */
#ifndef MU_ACTORS_NAMES_H
#define MU_ACTORS_NAMES_H

#include "runtime/base/hash_table.h"
#include "runtime/base/list.h"
#include "runtime/base/view.h"

#include <assert.h>

enum {
    MU__NAMES_MAX = 1 << 24,
    MU__NAMES_IDLE_MAX = 4096 /* names without a holder that are remembered */
};
#define MU__NAME_NONE UINT32_MAX

struct mu__name {
    struct mu__hash_node node; /* first: in by_text */
    struct mu__list_node idle; /* while it has no holder */
    uint32_t number;
    uint32_t holders;
    uint32_t size;
    char text[];
};

/* Zeroed memory is an empty table. */
struct mu__names {
    struct mu__name **names; /* by number; NULL: free */
    uint32_t count;          /* numbers that were given out, free ones included */
    uint32_t size;
    uint32_t used; /* not free */
    struct mu__hash_table by_text;
    uint64_t secret; /* of the hash, where peers choose names */
    uint32_t last;   /* the number that was given out last */
    uint32_t *free;  /* numbers */
    uint32_t free_count;
    uint32_t free_size;
    struct mu__list idle; /* the one released longest ago first */
    uint32_t idle_count;
    bool added; /* the last mu__names_take found it unknown */
};

void mu__names_done(struct mu__names *names);

/* The number of a string, held once more; MU__NAME_NONE when out of memory or of
 * numbers. */
uint32_t mu__names_take(struct mu__names *names, struct mu__view name);

/* A name got its first holder, or lost its last one. For the inline functions below. */
void mu__names_first_holder(struct mu__names *names, uint32_t number);
void mu__names_last_holder(struct mu__names *names, uint32_t number);

/* One holder more, or less. MU__NAME_NONE is fine. */
static inline void mu__names_hold(struct mu__names *names, uint32_t number)
{
    if (number != MU__NAME_NONE && names->names[number]->holders++ == 0)
        mu__names_first_holder(names, number);
}

static inline void mu__names_release(struct mu__names *names, uint32_t number)
{
    if (number == MU__NAME_NONE)
        return;
    assert(names->names[number]->holders > 0);
    if (--names->names[number]->holders == 0)
        mu__names_last_holder(names, number);
}

/* The string of a number that is held; stays as long as that. */
static inline struct mu__view mu__names_view(const struct mu__names *names,
                                             uint32_t number)
{
    assert(number < names->count && names->names[number] != NULL);
    return (struct mu__view){names->names[number]->text, names->names[number]->size};
}

#endif
