/* Functions that the files of the client actor share, by file. */
#ifndef MU_CLIENT_ACTIONS_H
#define MU_CLIENT_ACTIONS_H

#include "actors/client/internal.h"

/* ---- session_state.c: counts, the phase, errors ---- */

uint64_t mu__client_outstanding(const struct client_actor *c);
int mu__client_phase(const struct client_actor *c);
void mu__client_set_phase(struct client_actor *c, int phase);
void mu__client_add(atomic_uint_fast64_t *counter, uint64_t number);

/* Another closure is resolved, with `bytes` of arguments. */
void mu__client_count_resolved(struct mu__ctx *ctx, struct client_actor *c,
                               uint64_t bytes);

/* Store an error for the program; the session's first one will be raised. */
void mu__client_note_error(struct client_actor *c, const mu_error *error);

/* Store an error that affects no closure: nothing is cancelled for it, and it is raised
 * once no closure is outstanding. */
void mu__client_note_notice(struct client_actor *c, const mu_error *error);

/* Cancel the outstanding closures if a closure has failed and that has not begun yet. */
void mu__client_start_cancelling(struct mu__ctx *ctx, struct client_actor *c);

/* Complete a call about the session if that is possible now; false: it must wait. */
bool mu__client_try(struct mu__ctx *ctx, struct client_actor *c, struct mu__call *call);

/* Complete the waiting calls for which that is possible now. */
void mu__client_review(struct mu__ctx *ctx, struct client_actor *c);

/* ---- call_timeouts.c: calls that wait, and their timeouts ---- */

/* Take a call out of a list; false: it is not in it. */
bool mu__client_unlist(struct mu__call **list, struct mu__call *call);

/* Set a timer and add `value` to a map under it; 0: out of memory. */
uint64_t mu__client_start_timer(struct mu__ctx *ctx, struct mu__map *timers,
                                uint64_t delay_ms, void *value);

/* Start the call's timeout, or `timeout_ms` instead. False: no memory; the call is
 * completed then. */
bool mu__client_start_timeout(struct mu__ctx *ctx, struct client_actor *c,
                              struct mu__call *call, int64_t timeout_ms);

/* Put a call into a list and start its timeout of that length. */
void mu__client_call_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__call **list, struct mu__call *call,
                          int64_t timeout_ms);

/* Complete a call that is in no list, and end its timeout. */
void mu__client_complete(struct mu__ctx *ctx, struct client_actor *c,
                         struct mu__call *call, int code);

void mu__client_fail_calls(struct mu__ctx *ctx, struct client_actor *c,
                           struct mu__call **list, const mu_error *error);

/* False: the timer that has fired is not a call's timeout. */
bool mu__client_timeout_passed(struct mu__ctx *ctx, struct client_actor *c,
                               uint64_t timer);

/* ---- supervisor_requests.c: requests to the supervisor ---- */

/* Begin a STATUS, EXPLAIN or REQUEST call. */
void mu__client_request(struct mu__ctx *ctx, struct client_actor *c,
                        struct mu__client_call *call);

/* A call has timed out: request the chief's status, so that the error names what the call
 * waits for. The call is in no list and has no timer. */
void mu__client_explain_timeout(struct mu__ctx *ctx, struct client_actor *c,
                                struct mu__client_call *call);

/* The chief has not answered in time. The call is in no list and has no timer. */
void mu__client_no_answer(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__call *call);

/* The chief is up: send the waiting requests. It is lost: fail those sent to it. */
void mu__client_send_waiting(struct mu__ctx *ctx, struct client_actor *c);
void mu__client_fail_requests(struct mu__ctx *ctx, struct client_actor *c,
                              const mu_error *error);

void mu__client_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_made(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- futures.c: futures and their waiters ---- */

/* Resolve a future, with an error (NULL is fine), and drop the client's reference. */
void mu__client_resolve(struct mu__ctx *ctx, struct client_actor *c,
                        mu_remote_value *future, int state);
void mu__client_resolve_error(struct mu__ctx *ctx, struct client_actor *c,
                              mu_remote_value *future, int state, const mu_error *error);

/* A closure of the open session has failed, or was cancelled. Its slot is free. */
void mu__client_failed(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot, const mu_error *error);
void mu__client_cancelled(struct mu__ctx *ctx, struct client_actor *c,
                          const struct closure_slot *slot, const mu_error *error);

/* Begin a FETCH call; one has timed out. */
void mu__client_fetch(struct mu__ctx *ctx, struct client_actor *c,
                      struct mu__client_call *call);
void mu__client_fetch_late(struct mu__ctx *ctx, struct client_actor *c,
                           struct mu__client_call *call);

/* Tell the chief that the result pinned under `number` has no holder any more. */
void mu__client_release(struct mu__ctx *ctx, struct client_actor *c, uint64_t number);

/* The chief is lost, and all pinned results with it. */
void mu__client_forget_pinned(struct mu__ctx *ctx, struct client_actor *c,
                              const mu_error *error);

void mu__client_waiter_add(mu_remote_value *future, struct mu__waiter *waiter);
void mu__client_waiter_remove(struct mu__waiter *waiter);

void mu__client_on_fetched(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- pending.c: closures that wait for their inputs ---- */

/* After each batch of messages: send the closures whose inputs are ready, and use the
 * room at the chief. */
void mu__client_after_batch(struct mu__ctx *ctx, void *state);

/* One of the closure's inputs is resolved. */
void mu__client_input_ready(struct client_actor *c, struct mu__pending_closure *closure);

void mu__client_cancel_pending(struct mu__ctx *ctx, struct client_actor *c);

/* Free a closure that is resolved. */
void mu__client_forget_pending(struct mu__ctx *ctx, struct client_actor *c,
                               struct mu__pending_closure *closure);

/* The closure's message is about to be sent to the chief: make it a SCHEDULE, and free
 * the closure's other data. */
void mu__client_hand_over(struct client_actor *c, uint32_t slot, struct mu__msg *msg);

/* The message about an input that was kept for a chief that is lost. */
extern const char mu__client_lost_input[];

/* Complete the error of a closure of which `failed` inputs failed: `error` is that of the
 * first one. */
void mu__client_name_failure(const struct mu__schedule *body, uint32_t failed,
                             mu_error *error);

/* The timer of a pending closure's deadline has fired; other timers are ignored. */
void mu__client_over_deadline(struct mu__ctx *ctx, struct client_actor *c,
                              uint64_t timer);

void mu__client_on_pending(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- client.c: slots ---- */

/* Copy `slot` to a new slot, and return its token; 0: out of memory. */
uint64_t mu__client_add_slot(struct client_actor *c, const struct closure_slot *slot);

/* A slot for a closure, without its future. Removes from `body` the flags that are for
 * the client alone. */
struct closure_slot mu__client_make_slot(struct mu__schedule *body, uint64_t bytes);

/* Free a slot, and take its closure out of the queue it waits in. Returns the former
 * content. */
struct closure_slot mu__client_take_slot(struct mu__ctx *ctx, struct client_actor *c,
                                         uint64_t token);

/* A closure was cancelled or has failed, by the code of the error. */
void mu__client_ended(struct mu__ctx *ctx, struct client_actor *c,
                      const struct closure_slot *slot, const mu_error *error);

/* Subtract the time that a closure waited here from its deadline. */
static inline void mu__client_shorten_deadline(struct mu__schedule *body,
                                               uint64_t waited_ms)
{
    if (body->deadline_ms > 0)
        body->deadline_ms =
            body->deadline_ms > waited_ms ? body->deadline_ms - waited_ms : 1;
}

/* Whether a message is from the connected chief's supervisor. */
static inline bool mu__client_is_from_chief(const struct client_actor *c,
                                            const struct mu__msg *msg)
{
    return c->chief.connected && mu__pid_equal(msg->from, c->chief.pid);
}

/* Whether the session and the chief allow a closure to be scheduled; if not, it is
 * resolved with an error. */
bool mu__client_admits(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot);

/* The closure's message could not be sent; there is no memory to queue it. */
void mu__client_not_sent(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         int code);
void mu__client_not_stored(struct mu__ctx *ctx, struct client_actor *c, uint64_t token);

/* ---- room.c ---- */

/* Send a closure's message, which has its token, or queue it. Takes msg. */
void mu__client_dispatch(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         struct mu__msg *msg);

/* Send queued closures as far as there is room, and request more. */
void mu__client_room_use(struct mu__ctx *ctx, struct client_actor *c);

/* Take a closure out of its queue and free its message. */
void mu__client_room_drop(struct mu__ctx *ctx, struct client_actor *c, uint32_t slot);

/* Cancel all queued closures, after an error. */
void mu__client_room_cancel_all(struct mu__ctx *ctx, struct client_actor *c);

/* A session is open and the chief is connected: request room. */
void mu__client_room_open(struct mu__ctx *ctx, struct client_actor *c);

/* The session is over: tell the chief. The chief is lost: there is no room any more. No
 * closure is queued. */
void mu__client_room_close(struct mu__ctx *ctx, struct client_actor *c);
void mu__client_room_forget(struct client_actor *c);

/* Describe for messages what room a queued closure waits for, and what fills it. */
void mu__client_room_describe(const struct client_actor *c, uint32_t slot, char *out,
                              size_t size);
struct mu__view mu__client_room_function(const struct client_actor *c, uint32_t slot);

/* False: the timer is no queued closure's deadline, nor the review timer. */
bool mu__client_room_timer(struct mu__ctx *ctx, struct client_actor *c, uint64_t timer);

void mu__client_on_allow(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_room_done(struct client_actor *c);

/* ---- admitting.c: threads that wait for room in the program's own bounds ---- */

/* Begin a ROOM call: complete it, or queue it behind the others. */
void mu__client_room_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__client_call *call);

/* Complete the ROOM calls for which there is room now, in their order; at the review
 * timer even if that is little. */
void mu__client_room_review(struct mu__ctx *ctx, struct client_actor *c);
void mu__client_room_late(struct mu__ctx *ctx, struct client_actor *c);

/* False: the call is not in the queue. */
bool mu__client_room_unlist(struct client_actor *c, const struct mu__call *call);

/* Fail all ROOM calls, as the coordinator or the node is being closed; `words` says
 * which. */
void mu__client_room_end(struct mu__ctx *ctx, struct client_actor *c, const char *words);

#endif
