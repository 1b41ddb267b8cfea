/* The closures of this node that are outstanding, by their token. Part of the client
 * actor. */
#ifndef MU_CLIENT_SLOTS_H
#define MU_CLIENT_SLOTS_H

#include "actors/client/client.h"

/* A scheduled closure that is outstanding. */
struct closure_slot {
    union {
        uint32_t next_free;     /* SLOT_FREE: slot + 1; 0: none */
        mu_remote_value *future;    /* NULL: nobody wants the result */
        struct mu__pending_closure *pending;    /* `is_pending`: which has the future */
    };
    uint32_t bytes;             /* of its arguments */
    uint8_t state;              /* enum closure_slot_state */
    bool is_pending;            /* not sent, and waits for inputs or did */
    bool own_error;             /* nobody but the future has its error */
    bool has_holds;             /* its SUBMIT, which waits: actors/client/holds.h */
};

enum closure_slot_state {
    SLOT_FREE,
    SLOT_BLOCKED,               /* waits for its inputs */
    SLOT_WAITS,                 /* for room at the chief */
    SLOT_SENT
};

/* Outstanding closures. A token is a slot's index + 1. */
struct client_slots {
    struct closure_slot *items;
    uint32_t count;
    uint32_t free_first;        /* slot + 1; 0: none */
};

static inline struct mu__pending_closure *
mu__slot_pending(const struct closure_slot *slot)
{
    return slot->is_pending ? slot->pending : NULL;
}

static inline mu_remote_value *mu__slot_future(const struct closure_slot *slot)
{
    return slot->is_pending ? slot->pending->future : slot->future;
}

#endif
