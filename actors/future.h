/* The program's end of a closure: what mu_remote_value points to.
 *
 * The client actor resolves it, on the loop; any thread looks at it. Everything that a
 * reader sees is written before `state` leaves MU_REMOTE_NOT_READY, and not after. */
#ifndef MU_ACTORS_FUTURE_H
#define MU_ACTORS_FUTURE_H

#include "actors/call.h"

#include "muster/coordinator.h"

#include <stdatomic.h>

struct mu_remote_value {
    atomic_uint refs;
    atomic_int state;           /* enum mu_remote_value_state */
    mu_value *result;           /* NULL: nil */
    mu_error *error;            /* NULL: none */
    struct mu__call *waiters;   /* the client actor's */
    mu_node *node;              /* whose loop resolves it; not looked into by actors */
};

/* Two references: the program's and the client actor's. NULL: out of memory. */
mu_remote_value *mu__future_new(mu_node *node);

#endif
