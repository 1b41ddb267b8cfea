/* Room at the chief: how much of its queue this client may fill, what it has there, and
 * the closures that wait here until there is room. Part of the client actor; and its
 * calls of threads that wait for room in the program's own bounds. */
#ifndef MU_ACTORS_CLIENT_ROOM_H
#define MU_ACTORS_CLIENT_ROOM_H

#include "actors/client/client.h"

#include "actors/messages.h"
#include "runtime/base/map.h"

struct client_actor;

/* A closure that waits, by its slot (see struct closure_slot of the client). */
struct mu__room_entry {
    struct mu__msg *msg;        /* its SCHEDULE; NULL: it does not wait */
    uint32_t next;              /* of the same priority: slot + 1, 0 ends it */
    uint32_t prev;
    uint64_t since_ms;
    uint64_t timer;             /* of its deadline; 0: none */
};

struct mu__room_queue {
    uint32_t first;             /* slot + 1; 0: empty */
    uint32_t last;
};

struct mu__room {
    uint32_t session;           /* how often one was opened */
    uint32_t number;            /* of the chief's last ROOM_ALLOW; 0: none yet */
    uint32_t clients;           /* that share the chief's bounds */
    uint64_t closures_allowed;
    uint64_t bytes_allowed;
    uint64_t closures_max;      /* the chief's bounds */
    uint64_t bytes_max;
    uint64_t closures_sent;     /* and not resolved */
    uint64_t bytes_sent;        /* of those; at most bytes_max for one */
    uint32_t lacks_reported;        /* what the chief was told */
    uint64_t need_reported;
    bool need_stands;           /* nothing was sent since that was told */
    uint32_t waiting;           /* closures */
    struct mu__room_queue queues[MU__PRIORITIES];
    struct mu__room_entry *entries;     /* by slot; made when one waits */
    uint32_t entries_count;
    struct mu__map deadlines;   /* timers to slots + 1 */
    struct mu__call *first;     /* threads that wait for room here, in their order */
    struct mu__call *last;
    uint64_t review_timer;      /* for those; 0: none */
};

/* A SCHEDULE that has its token: send it, or let it wait. Takes msg. */
void mu__client_dispatch(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         struct mu__msg *msg);

/* Send those that wait, as far as there is room; say so if there is too little. */
void mu__client_room_use(struct mu__ctx *ctx, struct client_actor *c);

/* What a closure takes of the chief's room: one that is too large takes all of it. */
static inline uint64_t mu__room_size(const struct mu__room *room, uint64_t bytes)
{
    return room->bytes_max != 0 && bytes > room->bytes_max ? room->bytes_max : bytes;
}

/* One that was sent is resolved. */
static inline void mu__room_sent_done(struct mu__room *room, uint64_t bytes)
{
    room->closures_sent--;
    room->bytes_sent -= mu__room_size(room, bytes);
}

/* One that waits does so no more. */
void mu__client_room_drop(struct mu__ctx *ctx, struct client_actor *c, uint32_t slot);

/* Cancel all that wait, after an error. */
void mu__client_room_cancel_all(struct mu__ctx *ctx, struct client_actor *c);

/* The chief is there and a session is open; the session is over; the chief is lost, and
 * nothing waits any more. */
void mu__client_room_open(struct mu__ctx *ctx, struct client_actor *c);
void mu__client_room_close(struct mu__ctx *ctx, struct client_actor *c);
void mu__client_room_forget(struct client_actor *c);

/* Words for one that waits: for what, and who has filled it. */
void mu__client_room_describe(const struct client_actor *c, uint32_t slot, char *out,
                              size_t size);
struct mu__view mu__client_room_function(const struct client_actor *c, uint32_t slot);

/* A timer of a waiting closure's deadline, or of the threads' review. False: it is
 * neither. */
bool mu__client_room_timer(struct mu__ctx *ctx, struct client_actor *c, uint64_t timer);

void mu__client_on_allow(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_room_done(struct client_actor *c);

/* ---- admitting.c: threads that wait for room in the program's own bounds ---- */

/* A ROOM call: answer it, or let it wait behind the others. */
void mu__client_room_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__client_call *call);

/* Answer those for whom there is room now, the first ones first. */
void mu__client_room_review(struct mu__ctx *ctx, struct client_actor *c);

/* The review's timer has fired. */
void mu__client_room_late(struct mu__ctx *ctx, struct client_actor *c);

/* Take a call out; false when it is not among them. */
bool mu__client_room_unlist(struct client_actor *c, const struct mu__call *call);

/* All of them hear that the coordinator is being closed, or the node. */
void mu__client_room_end(struct mu__ctx *ctx, struct client_actor *c, const char *words);

#endif
