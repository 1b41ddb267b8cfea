/* Says whom this node reaches and whom not, and asks others the same. One on every node.
 *
 * Hears:  CALL from the node's program; PEERS_GET and PEERS_REPORT from others;
 *         NODE_DOWN; its timers
 * Says:   PEERS_GET to every node that is up, PEERS_REPORT to who asks
 * Owns:   the calls that wait
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
    const char *state;      /* "up", or what it is at */
    const char *why;        /* it is not up; "" */
    uint64_t for_ms;
    uint32_t node;          /* while it is up; else 0 */
    bool is_dialled;        /* this side keeps it */
};

typedef void (*mu__peer_fn)(void *user, const struct mu__peer *peer);

/* Shows all links: they are not an actor's to know. */
struct mu__peers_config {
    void (*each)(void *owner, mu__peer_fn visit, void *user);
    void *owner;
};

enum mu__peers_operation {
    MU__PEERS_OWN,  /* this node's links, at once */
    MU__PEERS_ALL   /* those of every node that is up, as far as they answer in time */
};

/* OWN: a list of maps: type, index, address, state, why, for_ms, dialled. ALL: a list of
 * maps: type, index, address (that was dialled), and peers: such a list, absent when
 * there was no answer. */
struct mu__peers_call {
    struct mu__call call;
    mu_value *found;        /* the caller's when the call has succeeded */
    uint64_t token_first;   /* the actor's: each request has a token of its own, */
    uint32_t *nodes;        /* and who has it; 0: nothing more comes */
    uint32_t requests_count;
    uint32_t missing;
};

extern const struct mu__behavior mu__peers;     /* init takes the config */

#endif
