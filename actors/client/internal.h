/* The client actor's state; for actors/client/ only. */
#ifndef MU_CLIENT_INTERNAL_H
#define MU_CLIENT_INTERNAL_H

#include "actors/client/client.h"

#include "actors/messages.h"
#include "runtime/base/map.h"

enum { CHIEF_ERROR_BYTES_MAX = 256 };

/* An outstanding closure. */
struct closure_slot {
    union {
        uint32_t next_free;                  /* SLOT_FREE: slot + 1; 0: none */
        mu_remote_value *future;             /* NULL: the result is not needed */
        struct mu__pending_closure *pending; /* `is_pending`: it has the future */
    };
    uint32_t bytes;  /* of its arguments */
    uint8_t state;   /* enum closure_slot_state */
    bool is_pending; /* a mu__pending_closure that was not sent */
    bool own_error;  /* its error goes to the future, not to the session */
    bool has_holds;  /* its queued SUBMIT has holds: see holds.h */
};

enum closure_slot_state {
    SLOT_FREE,
    SLOT_BLOCKED, /* waits for its inputs */
    SLOT_WAITS,   /* queued for room at the chief */
    SLOT_SENT
};

/* Outstanding closures. A token is a slot's index + 1. */
struct client_slots {
    struct closure_slot *items;
    uint32_t count;
    uint32_t free_first; /* slot + 1; 0: none */
};

static inline struct mu__pending_closure *mu__slot_pending(
    const struct closure_slot *slot)
{
    return slot->is_pending ? slot->pending : NULL;
}

static inline mu_remote_value *mu__slot_future(const struct closure_slot *slot)
{
    return slot->is_pending ? slot->pending->future : slot->future;
}

/* The chief that this node schedules with. */
struct client_chief {
    bool connected;
    uint16_t epoch; /* grows by one each time the chief is lost */
    mu__pid pid;
    char reported_error[CHIEF_ERROR_BYTES_MAX]; /* why it cannot be reached */
};

/* The session that the program has opened. */
struct client_session {
    struct mu__session *shared; /* NULL: no session is open */
    bool ending;                /* by CLOSE */
    uint64_t arrived;           /* closures, since the session began */
    uint64_t resolved;
    uint64_t bytes_resolved;
    mu_error error;  /* the first one, while the phase is not FINE */
    mu_error notice; /* raised once nothing is outstanding; code 0: none */
};

/* Pending calls of the program. */
struct client_calls {
    struct mu__call *waiting;   /* OPEN, CLOSE, JOIN, RAISE; requests that are not sent */
    struct mu__call *requested; /* calls whose request the chief has not answered */
    struct mu__map timeouts;    /* timers to calls */
    uint64_t token_next;        /* of requests */
};

/* Closures that were not sent to the queue for room yet. */
struct client_pending {
    struct mu__list blocked;  /* some input is not ready */
    struct mu__list ready;    /* all inputs are ready */
    struct mu__map deadlines; /* timers to closures */
};

/* ---- Room at the chief: how much of its queue this client may fill, what it has there,
 * and the closures queued in the client until there is room; and calls of threads that
 * wait for room in the program's own bounds ---- */

/* A queued closure, by the index of its slot. */
struct mu__room_entry {
    struct mu__msg *msg; /* its SUBMIT; NULL: it is not queued */
    uint32_t next;       /* of the same priority: slot + 1; 0: the last one */
    uint32_t prev;
    uint64_t since_ms;
    uint64_t timer; /* of its deadline; 0: none */
};

struct mu__room_queue {
    uint32_t first; /* slot + 1; 0: empty */
    uint32_t last;
};

struct mu__room {
    uint32_t session; /* grows by one with each that is opened */
    uint32_t number;  /* of the chief's last ROOM_ALLOW; 0: none yet */
    uint32_t clients; /* that share the chief's bounds */
    uint64_t closures_allowed;
    uint64_t bytes_allowed;
    uint64_t closures_max; /* the chief's bounds */
    uint64_t bytes_max;
    uint64_t closures_sent;  /* and not resolved */
    uint64_t bytes_sent;     /* of those; at most bytes_max for one */
    uint32_t lacks_reported; /* in the last ROOM_REQUEST: enum mu__room_lack */
    uint64_t need_reported;  /* in the last ROOM_REQUEST, bytes */
    bool need_stands;        /* nothing was sent since then */
    uint32_t waiting;        /* queued closures */
    struct mu__room_queue queues[MU__PRIORITIES];
    struct mu__room_entry *entries; /* by slot; allocated when one is queued */
    uint32_t entries_count;
    struct mu__map deadlines; /* timers to slots + 1 */
    struct mu__list calls;    /* ROOM calls of waiting threads, in their order */
    uint64_t review_timer;    /* for these calls; 0: none */
};

/* The bytes of the chief's room that a closure takes: a larger one takes all of it. */
static inline uint64_t mu__room_size(const struct mu__room *room, uint64_t bytes)
{
    return room->bytes_max != 0 && bytes > room->bytes_max ? room->bytes_max : bytes;
}

/* A closure that was sent is resolved. */
static inline void mu__room_sent_done(struct mu__room *room, uint64_t bytes)
{
    room->closures_sent--;
    room->bytes_sent -= mu__room_size(room, bytes);
}

struct client_actor {
    struct mu__client_config config;
    struct client_chief chief;
    struct client_slots slots;
    struct client_session session;
    struct client_calls calls;
    struct client_pending pending;
    struct mu__room room;
    struct mu__map fetching;  /* numbers of pinned results to futures, referenced */
    uint32_t error_data_last; /* the last number given to the data of an error */
};

#endif
