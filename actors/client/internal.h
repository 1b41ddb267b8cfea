/* What the client actor is made of; for actors/client*.c only. */
#ifndef MU_ACTORS_CLIENT_PARTS_H
#define MU_ACTORS_CLIENT_PARTS_H

#include "actors/client/client.h"

#include "actors/client/room.h"
#include "actors/messages.h"
#include "runtime/base/map.h"

enum { TROUBLE_BYTES_MAX = 256 };

/* A scheduled closure that is outstanding. */
struct slot {
    union {
        uint32_t next_free;     /* SLOT_FREE: slot + 1; 0: none */
        mu_remote_value *future;    /* NULL: nobody wants the result */
        struct mu__pending_closure *pending;    /* `is_pending`: which has the future */
    };
    uint32_t bytes;             /* of its arguments */
    uint8_t state;              /* enum slot_state */
    bool is_pending;            /* not sent, and waits for inputs or did */
    bool own_error;             /* nobody but the future has its error */
    bool has_holds;             /* its SUBMIT, which waits: actors/client/holds.h */
};

enum slot_state {
    SLOT_FREE,
    SLOT_BLOCKED,               /* waits for its inputs */
    SLOT_WAITS,                 /* for room at the chief */
    SLOT_SENT
};

struct mu__pending_list {
    struct mu__pending_closure *first;
    struct mu__pending_closure *last;
};

struct client {
    struct mu__client_config config;
    bool has_chief;
    mu__pid chief;
    uint16_t life;              /* of the chief: one more whenever it is lost */
    char trouble[TROUBLE_BYTES_MAX];
    struct mu__session *session;
    bool ending;                /* the session: by CLOSE */
    struct slot *slots;       /* a token is a slot's index + 1 */
    uint32_t slots_count;
    uint32_t free_first;        /* slot + 1; 0: none */
    uint64_t arrived;           /* closures of the session, since it began */
    uint64_t resolved;
    uint64_t bytes_resolved;
    struct mu__room room;
    mu_error error;             /* the first one, while the phase is not FINE */
    mu_error notice;            /* raised once nothing is outstanding; code 0: none */
    struct mu__call *waiting;   /* OPEN, CLOSE, JOIN, RAISE; unasked questions */
    struct mu__call *asking;    /* waiting for the answer to a question */
    struct mu__map limits;      /* of calls: timers to calls */
    struct mu__map deadlines;   /* of closures that wait here: timers to closures */
    struct mu__map fetching;    /* numbers of kept results to futures, which are held */
    struct mu__pending_list blocked;    /* closures that wait for inputs */
    struct mu__pending_list ready;      /* and those that do not any more */
    uint64_t token_next;
};

/* ---- client_session.c: counts, the phase, errors ---- */

uint64_t mu__client_outstanding(const struct client *c);
int mu__client_phase(const struct client *c);
void mu__client_set_phase(struct client *c, int phase);
void mu__client_add(atomic_uint_fast64_t *counter, uint64_t number);

/* Another closure is resolved, with `bytes` of arguments. */
void mu__client_count_resolved(struct mu__ctx *ctx, struct client *c, uint64_t bytes);

/* Keep an error for the program; the first one is raised. */
void mu__client_note_error(struct client *c, const mu_error *error);

/* The same of one that stops no closure: nothing is cancelled for it, and it is raised
 * once nothing is outstanding. */
void mu__client_note_notice(struct client *c, const mu_error *error);

/* If an error is to be raised and nobody was told, cancel what is outstanding. */
void mu__client_start_cancelling(struct mu__ctx *ctx, struct client *c);

/* Answer a call about the session if it can be answered; false when it must wait. */
bool mu__client_try(struct mu__ctx *ctx, struct client *c, struct mu__call *call);

/* Answer those that wait and need not any more. */
void mu__client_review(struct mu__ctx *ctx, struct client *c);

/* ---- client_calls.c: calls that wait, and their limits ---- */

bool mu__client_unlist(struct mu__call **list, struct mu__call *call);

/* Begin the call's limit, or `timeout_ms` instead. False: no memory; the call is
 * completed then. */
bool mu__client_limit(struct mu__ctx *ctx, struct client *c, struct mu__call *call,
                      int64_t timeout_ms);

/* Put it into a list (NULL: into none), with its limit. */
void mu__client_hold(struct mu__ctx *ctx, struct client *c, struct mu__call **list,
                     struct mu__call *call);

/* Ends its limit. It is in no list. */
void mu__client_complete(struct mu__ctx *ctx, struct client *c, struct mu__call *call,
                         int code);

void mu__client_close_calls(struct mu__ctx *ctx, struct client *c,
                            struct mu__call **list);

/* A limit has passed. False when `timer` is of no call. */
bool mu__client_over_limit(struct mu__ctx *ctx, struct client *c, uint64_t timer);

/* ---- client_ask.c: questions to the supervisor ---- */

/* A STATUS, EXPLAIN or ASK of the program. */
void mu__client_ask(struct mu__ctx *ctx, struct client *c, struct mu__client_call *call);

/* A wait is over its limit: ask the chief what keeps it, then tell. The call is in no
 * list and has no timer. */
void mu__client_ask_why(struct mu__ctx *ctx, struct client *c,
                        struct mu__client_call *call);

/* No answer within the limit. The call has no timer. */
void mu__client_no_answer(struct mu__ctx *ctx, struct client *c, struct mu__call *call);

/* The chief is up: ask what waited for it; it is lost: tell those who asked. */
void mu__client_ask_waiting(struct mu__ctx *ctx, struct client *c);
void mu__client_end_questions(struct mu__ctx *ctx, struct client *c,
                              const mu_error *error);

void mu__client_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_made(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- client_futures.c: futures and who waits for them ---- */

/* What became of a closure. `future` may be NULL; the client's reference goes. */
void mu__client_resolve(struct mu__ctx *ctx, struct client *c, mu_remote_value *future,
                        int state);
void mu__client_resolve_error(struct mu__ctx *ctx, struct client *c,
                              mu_remote_value *future, int state, const mu_error *error);

/* The same of one that a session counts. */
void mu__client_failed(struct mu__ctx *ctx, struct client *c, const struct slot *slot,
                       const mu_error *error);
void mu__client_cancelled(struct mu__ctx *ctx, struct client *c,
                          const struct slot *slot, const mu_error *error);

/* A FETCH of the program; and one whose limit has passed. */
void mu__client_fetch(struct mu__ctx *ctx, struct client *c,
                      struct mu__client_call *call);
void mu__client_fetch_late(struct mu__ctx *ctx, struct client *c,
                           struct mu__client_call *call);

/* Nobody holds what is kept under `number` any more. */
void mu__client_release(struct mu__ctx *ctx, struct client *c, uint64_t number);

/* The chief is lost, and what was kept with it. */
void mu__client_forget_kept(struct mu__ctx *ctx, struct client *c, const mu_error *error);

void mu__client_waiter_add(mu_remote_value *future, struct mu__waiter *waiter);
void mu__client_waiter_remove(struct mu__waiter *waiter);

void mu__client_on_fetched(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- client_pending.c: closures that wait for their inputs ---- */

/* Send those whose inputs are there. At the end of every handler that may resolve
 * something. */
void mu__client_settle(struct mu__ctx *ctx, struct client *c);

/* The input that it waited for is there. */
void mu__client_input_ready(struct client *c, struct mu__pending_closure *closure);

void mu__client_cancel_pending(struct mu__ctx *ctx, struct client *c);

/* It is resolved: nothing refers to it any more. */
void mu__client_forget_pending(struct mu__ctx *ctx, struct client *c,
                               struct mu__pending_closure *closure);

/* Its message leaves for the chief: what it holds, that holds from now on. */
void mu__client_let_go(struct client *c, uint32_t slot, struct mu__msg *msg);

/* Words for an input of a chief that is gone. */
extern const char mu__client_lost_input[];

/* So many inputs of a closure failed, and the error is of the first one. */
void mu__client_name_failure(const struct mu__schedule *body, uint32_t failed,
                             mu_error *error);

/* A deadline has passed. */
void mu__client_over_deadline(struct mu__ctx *ctx, struct client *c, uint64_t timer);

void mu__client_on_pending(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- client.c: slots ---- */

static inline struct mu__pending_closure *mu__slot_pending(const struct slot *slot)
{
    return slot->is_pending ? slot->pending : NULL;
}

static inline mu_remote_value *mu__slot_future(const struct slot *slot)
{
    return slot->is_pending ? slot->pending->future : slot->future;
}

/* The token of a new slot that is as `slot`; 0 when out of memory. */
uint64_t mu__client_add_slot(struct client *c, const struct slot *slot);

/* A slot with what `body` says of a closure, without its future. Flags that nobody after
 * the client knows are taken from it. */
struct slot mu__client_make_slot(struct mu__schedule *body, uint64_t bytes);

/* It is free from now on, wherever its closure waited. */
struct slot mu__client_take_slot(struct mu__ctx *ctx, struct client *c, uint64_t token);

/* Whether a closure from the program can go on; if not, it was resolved. */
bool mu__client_admits(struct mu__ctx *ctx, struct client *c, const struct slot *slot);

/* The chief's link did not take the message of a closure; there was no memory to let it
 * wait. */
void mu__client_not_sent(struct mu__ctx *ctx, struct client *c, uint64_t token, int code);
void mu__client_not_kept(struct mu__ctx *ctx, struct client *c, uint64_t token);

#endif
