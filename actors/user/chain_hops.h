/* Who waits for whom. */
#ifndef MU_ACTORS_USER_CHAIN_HOPS_H
#define MU_ACTORS_USER_CHAIN_HOPS_H

#include "runtime/message/message.h"

#include "muster/actor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct mail;

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

struct chain *mu__chain_copy(struct mu__view text);

/* One with another call at its end; `before` NULL or closed: the first. NULL: it is too
 * long, or out of memory. */
struct chain *mu__chain_add(const struct chain *before, const mu_actor *actor,
                            const char *method);

/* Whether the actor waits for the answer of a call that the message belongs to. */
bool mu__chain_comes_back(const mu_actor *actor, const struct mail *mail);

/* Says so, with the whole chain. */
enum { MU__CHAIN_WORDS = 480 };
void mu__chain_refusal(const mu_actor *actor, const struct mail *mail,
                       char ret_words[MU__CHAIN_WORDS]);

#endif
