/* Chains: what has the same key, the last one that was added first. Keys are hashes, so
 * a chain may have more in it than was meant: who searches compares.
 *
 * Peers choose some of the keys. At worst a search then looks at all there is, which its
 * owner has bounded. */
#ifndef MU_TRANSPORT_CHAINS_H
#define MU_TRANSPORT_CHAINS_H

#include "runtime/base/map.h"
#include "runtime/base/view.h"

/* Within what is chained. Zeroed: in no chain. */
struct mu__chained {
    uint64_t key;               /* 0: in no chain */
    struct mu__chained *prev;
    struct mu__chained *next;
};

/* Zeroed memory is no chain. */
struct mu__chains {
    struct mu__map first;       /* key -> struct mu__chained */
};

/* A chain's key for a task; never 0, and never with the top bit. */
uint64_t mu__task_key(struct mu__view type, uint32_t index);

/* Frees the chains' own memory, not what is in them. */
void mu__chains_done(struct mu__chains *chains);

/* NULL: there is none. */
struct mu__chained *mu__chains_first(const struct mu__chains *chains, uint64_t key);

/* `one` is in no chain yet, and `key` is not 0. -MU_ENOMEM: it still is in none. */
int mu__chains_add(struct mu__chains *chains, uint64_t key, struct mu__chained *one);

/* Of one that is in no chain: nothing happens. */
void mu__chains_remove(struct mu__chains *chains, struct mu__chained *one);

#endif
