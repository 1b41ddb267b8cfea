/* Addresses of actors. A pid may dangle safely: numbers are given out in order and not
 * used again, so the pid of an ended actor finds nothing. */
#ifndef MU_RUNTIME_PID_H
#define MU_RUNTIME_PID_H

#include <stdbool.h>
#include <stdint.h>

/* `node` is this node's own number for a peer's incarnation (MU__NODE_SELF here; a peer
 * that restarts gets a new number), so a pid means something on one node only and never
 * stands in a message's fields. `actor` is the number of the actor on that node. */
typedef struct mu__pid {
    uint32_t node;
    uint32_t actor;
} mu__pid;

enum { MU__NODE_SELF = 0 };

static inline bool mu__pid_equal(mu__pid a, mu__pid b)
{
    return a.node == b.node && a.actor == b.actor;
}

#endif
