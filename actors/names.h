/* Strings given numbers, so that a million closures name their functions in four bytes
 * each. Numbers count from 0 and stay. */
#ifndef MU_ACTORS_NAMES_H
#define MU_ACTORS_NAMES_H

#include "runtime/message.h"

enum { MU__NAMES_MAX = 65536 };
#define MU__NAME_NONE UINT32_MAX

struct mu__name;

/* Zeroed memory is an empty table. */
struct mu__names {
    struct mu__name **names;    /* by number */
    uint64_t secret;            /* of the hash, where peers choose names */
    uint32_t *slots;            /* by hash: number + 1, 0: empty */
    uint32_t count;
    uint32_t slots_size;        /* a power of two, or 0 */
    uint32_t last;              /* the number that was given out last */
};

void mu__names_done(struct mu__names *names);

/* The number of a string; MU__NAME_NONE when out of memory or of numbers. */
uint32_t mu__names_number(struct mu__names *names, struct mu__view name);

/* The string of a number that was given out; stays until done. */
struct mu__view mu__names_view(const struct mu__names *names, uint32_t number);

#endif
