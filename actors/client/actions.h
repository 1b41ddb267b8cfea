/* What the files of the client actor call of each other, by file. */
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

/* Keep an error for the program; the first one is raised. */
void mu__client_note_error(struct client_actor *c, const mu_error *error);

/* The same of one that stops no closure: nothing is cancelled for it, and it is raised
 * once nothing is outstanding. */
void mu__client_note_notice(struct client_actor *c, const mu_error *error);

/* If an error is to be raised and nobody was told, cancel what is outstanding. */
void mu__client_start_cancelling(struct mu__ctx *ctx, struct client_actor *c);

/* Answer a call about the session if it can be answered; false when it must wait. */
bool mu__client_try(struct mu__ctx *ctx, struct client_actor *c, struct mu__call *call);

/* Answer those that wait and need not any more. */
void mu__client_review(struct mu__ctx *ctx, struct client_actor *c);

/* ---- call_timeouts.c: calls that wait, and their timeouts ---- */

bool mu__client_unlist(struct mu__call **list, struct mu__call *call);

/* A timer, by which a map finds `value`; 0: out of memory. */
uint64_t mu__client_start_timer(struct mu__ctx *ctx, struct mu__map *timers,
                                uint64_t delay_ms, void *value);

/* Start the call's timeout, or `timeout_ms` instead. False: no memory; the call is
 * completed then. */
bool mu__client_start_timeout(struct mu__ctx *ctx, struct client_actor *c,
                              struct mu__call *call, int64_t timeout_ms);

/* Put it into a list (NULL: into none), with its timeout. */
void mu__client_call_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__call **list, struct mu__call *call);

/* Ends its timeout. It is in no list. */
void mu__client_complete(struct mu__ctx *ctx, struct client_actor *c,
                         struct mu__call *call, int code);

void mu__client_close_calls(struct mu__ctx *ctx, struct client_actor *c,
                            struct mu__call **list);

/* A timer has fired. False when it is of no call. */
bool mu__client_timeout_passed(struct mu__ctx *ctx, struct client_actor *c,
                               uint64_t timer);

/* ---- supervisor_requests.c: requests to the supervisor ---- */

/* A STATUS, EXPLAIN or REQUEST of the program. */
void mu__client_request(struct mu__ctx *ctx, struct client_actor *c,
                        struct mu__client_call *call);

/* A wait has timed out: ask the chief what keeps it, for the error. The call is in no
 * list and has no timer. */
void mu__client_explain_timeout(struct mu__ctx *ctx, struct client_actor *c,
                        struct mu__client_call *call);

/* No answer within the timeout. The call has no timer. */
void mu__client_no_answer(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__call *call);

/* The chief is up: send the requests that waited for it; it is lost: fail all. */
void mu__client_send_waiting(struct mu__ctx *ctx, struct client_actor *c);
void mu__client_fail_requests(struct mu__ctx *ctx, struct client_actor *c,
                              const mu_error *error);

void mu__client_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_made(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- futures.c: futures and who waits for them ---- */

/* What became of a closure. `future` may be NULL; the client's reference goes. */
void mu__client_resolve(struct mu__ctx *ctx, struct client_actor *c,
                        mu_remote_value *future, int state);
void mu__client_resolve_error(struct mu__ctx *ctx, struct client_actor *c,
                              mu_remote_value *future, int state, const mu_error *error);

/* The same of one that a session counts. */
void mu__client_failed(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot, const mu_error *error);
void mu__client_cancelled(struct mu__ctx *ctx, struct client_actor *c,
                          const struct closure_slot *slot, const mu_error *error);

/* A FETCH of the program; and one that has timed out. */
void mu__client_fetch(struct mu__ctx *ctx, struct client_actor *c,
                      struct mu__client_call *call);
void mu__client_fetch_late(struct mu__ctx *ctx, struct client_actor *c,
                           struct mu__client_call *call);

/* Nobody holds the result that is pinned under `number` any more. */
void mu__client_release(struct mu__ctx *ctx, struct client_actor *c, uint64_t number);

/* The chief is lost, and with it all pinned results. */
void mu__client_forget_pinned(struct mu__ctx *ctx, struct client_actor *c,
                              const mu_error *error);

void mu__client_waiter_add(mu_remote_value *future, struct mu__waiter *waiter);
void mu__client_waiter_remove(struct mu__waiter *waiter);

void mu__client_on_fetched(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__client_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- pending.c: closures that wait for their inputs ---- */

/* Send those whose inputs are there. At the end of every handler that may resolve
 * something. */
void mu__client_settle(struct mu__ctx *ctx, struct client_actor *c);

/* The input that it waited for is there. */
void mu__client_input_ready(struct client_actor *c, struct mu__pending_closure *closure);

void mu__client_cancel_pending(struct mu__ctx *ctx, struct client_actor *c);

/* It is resolved: nothing refers to it any more. */
void mu__client_forget_pending(struct mu__ctx *ctx, struct client_actor *c,
                               struct mu__pending_closure *closure);

/* Its message leaves for the chief: what it holds, that holds from now on. */
void mu__client_hand_over(struct client_actor *c, uint32_t slot, struct mu__msg *msg);

/* Words for an input of a chief that is gone. */
extern const char mu__client_lost_input[];

/* So many inputs of a closure failed, and the error is of the first one. */
void mu__client_name_failure(const struct mu__schedule *body, uint32_t failed,
                             mu_error *error);

/* A deadline has passed. */
void mu__client_over_deadline(struct mu__ctx *ctx, struct client_actor *c,
                              uint64_t timer);

void mu__client_on_pending(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- client.c: slots ---- */

/* The token of a new slot that is as `slot`; 0 when out of memory. */
uint64_t mu__client_add_slot(struct client_actor *c, const struct closure_slot *slot);

/* A slot with what `body` says of a closure, without its future. Flags that nobody after
 * the client knows are taken from it. */
struct closure_slot mu__client_make_slot(struct mu__schedule *body, uint64_t bytes);

/* It is free from now on, wherever its closure waited. */
struct closure_slot mu__client_take_slot(struct mu__ctx *ctx, struct client_actor *c,
                                         uint64_t token);

/* A closure has ended with an error: it was cancelled, or has failed. */
void mu__client_ended(struct mu__ctx *ctx, struct client_actor *c,
                      const struct closure_slot *slot, const mu_error *error);

/* The time that a closure waited here is part of its deadline. */
static inline void mu__client_shorten_deadline(struct mu__schedule *body,
                                               uint64_t waited_ms)
{
    if (body->deadline_ms > 0)
        body->deadline_ms = body->deadline_ms > waited_ms ? body->deadline_ms - waited_ms
                                                          : 1;
}

/* Whether a closure from the program can go on; if not, it was resolved. */
bool mu__client_admits(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot);

/* The chief's link did not take the message of a closure; there was no memory to let it
 * wait. */
void mu__client_not_sent(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         int code);
void mu__client_not_stored(struct mu__ctx *ctx, struct client_actor *c, uint64_t token);

/* ---- room.c ---- */

/* A SCHEDULE that has its token: send it, or let it wait. Takes msg. */
void mu__client_dispatch(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         struct mu__msg *msg);

/* Send those that wait, as far as there is room; say so if there is too little. */
void mu__client_room_use(struct mu__ctx *ctx, struct client_actor *c);

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
