/* Who waits for whom. */
#ifndef MU_ACTORS_USER_CHAIN_HOPS_H
#define MU_ACTORS_USER_CHAIN_HOPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* An actor that waits. */
struct chain_hop {
    uint64_t incarnation;
    uint32_t number;
};

/* The calls that wait for each other: see chain.c. */
struct chain {
    unsigned refs;
    bool is_closed; /* the call at its end was answered: nobody waits by it */
    uint32_t size;  /* of the text */
    uint32_t hops_count;
    char *text; /* behind the hops */
    struct chain_hop hops[];
};

/* NULL is fine for both. */
static inline struct chain *mu__chain_ref(struct chain *chain)
{
    if (chain != NULL)
        chain->refs++;
    return chain;
}

static inline void mu__chain_unref(struct chain *chain)
{
    if (chain != NULL && --chain->refs == 0)
        free(chain);
}

#endif
