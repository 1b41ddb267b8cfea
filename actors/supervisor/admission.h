/* How much of the chief's queue each client may use: its two bounds (closures, bytes of
 * their arguments) are divided among the clients that schedule, which stay within what
 * they are granted. Part of the supervisor. */
#ifndef MU_ACTORS_SUPERVISOR_ADMISSION_H
#define MU_ACTORS_SUPERVISOR_ADMISSION_H

#include "actors/messages.h"
#include "actors/supervisor/state/shares.h"
#include "runtime/kernel/kernel.h"

struct supervisor_client;
struct supervisor;
struct mu__closure;

enum mu__bound { MU__BOUND_CLOSURES, MU__BOUND_BYTES, MU__BOUNDS_COUNT };

struct mu__admission {
    struct mu__shares bounds[MU__BOUNDS_COUNT];
    struct mu__share **list; /* of one bound, while it is divided */
    uint32_t list_size;
    uint32_t members; /* clients that schedule */
    uint64_t need_last;
    uint64_t timer;  /* 0: none */
    uint64_t due_ms; /* when the timer fires */
};

/* Of one client. Zeroed: it has no session. */
struct mu__client_room {
    struct mu__share shares[MU__BOUNDS_COUNT];
    uint64_t granted[MU__BOUNDS_COUNT]; /* by the last ROOM_ALLOW */
    uint32_t number;                    /* of that message */
    uint32_t session;                   /* the client's, as it was told there */
    bool is_member;
    uint64_t need_since_ms;
    uint64_t granted_since_ms; /* when that message was sent */
};

void mu__sup_room_init(struct supervisor *s);

/* Whether a client may have one closure more, with so many bytes of arguments. */
bool mu__sup_room_admits(const struct supervisor *s,
                         const struct supervisor_client *client, uint64_t bytes);

/* Charge a closure to a client; take it off its client's account. */
void mu__sup_own(struct supervisor *s, struct supervisor_client *client,
                 struct mu__closure *closure);
void mu__sup_disown(struct mu__ctx *ctx, struct supervisor *s,
                    const struct mu__closure *closure);

/* The client schedules no more: what it was granted is divided among the others. */
void mu__sup_room_leave(struct mu__ctx *ctx, struct supervisor *s,
                        struct supervisor_client *client);

#endif
