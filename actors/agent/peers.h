/* Reports the state of this node's links, and asks other nodes for theirs. One on every
 * node.
 *
 * Hears:  CALL from the node's program; PEERS_GET and PEERS_REPORT from others;
 *         NODE_DOWN; its timers
 * Says:   PEERS_GET to every node that is up, PEERS_REPORT as the answer to one
 * Owns:   the pending calls
 * Fails:  never */
#ifndef MU_ACTORS_PEERS_H
#define MU_ACTORS_PEERS_H

#include "actors/call.h"
#include "runtime/kernel/kernel.h"

#include "muster/value.h"

/* One link of this node. Borrowed. */
struct mu__peer {
    const char *type;
    uint32_t index;
    const char *address;
    const char *state; /* "up", or the state of connecting */
    const char *why;   /* it is not up; "" if it is, or no reason is known */
    uint64_t for_ms;   /* time in this state */
    uint32_t node;     /* 0: the link is not up */
    bool is_dialled;   /* this side connects */
};

typedef void (*mu__peer_fn)(void *user, const struct mu__peer *peer);

/* Actors have no access to links: `each` visits all of them. */
struct mu__peers_config {
    void (*each)(void *owner, mu__peer_fn visit, void *user);
    void *owner;
};

enum mu__peers_operation {
    MU__PEERS_OWN, /* this node's links, at once */
    MU__PEERS_ALL  /* those of every node that is up, as far as they answer in time */
};

/* The answer to OWN is a list of maps: type, index, address, state, why, for_ms, dialled.
 * That to ALL is a list of maps: type, index, the address that was dialled, and peers:
 * the list of that node as for OWN, absent if it did not answer. */
struct mu__peers_call {
    struct mu__call call;
    mu_value *found; /* the answer; the caller's when the call has succeeded */

    /* The actor's. Request i has token `token_first` + i and is about item i of the
     * answer. */
    uint64_t token_first;
    uint32_t *nodes; /* by request: its node; 0: answered, or there is no answer */
    uint32_t requests_count;
    uint32_t missing; /* requests without an answer yet */
};

extern const struct mu__behavior mu__peers; /* init takes the config */

#endif
