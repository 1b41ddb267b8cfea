/* Functions that the files of users' actors share, by file. */
#ifndef MU_ACTORS_USER_ACTIONS_H
#define MU_ACTORS_USER_ACTIONS_H

#include "actors/user/internal.h"

/* ---- mail.c ---- */

/* NULL: out of memory. */
struct mail *mu__mail_new(struct office *office, enum mail_kind kind);
void mu__mail_free(struct office *office, struct mail *mail);

/* Put mail into a mailbox; `actor` has not ended. */
void mu__mail_put(mu_actor *actor, struct mail *mail);

/* The next of a mailbox, which is not empty; what it counts for is over. */
struct mail *mu__mail_take(mu_actor *actor);

/* Take it out of the middle, and free it. */
void mu__mail_remove(mu_actor *actor, struct mail *mail);

/* Whether a message with so many bytes fits. */
bool mu__mail_has_room(const mu_actor *actor, uint32_t bytes);

/* A number of an actor that waits for room. Each is in a list once. */
void mu__room_add(struct mu__list *rooms, uint32_t actor);

/* Tell them all, and forget them. `address`: to whom there is room. */
void mu__room_notify(struct office *office, struct mu__list *rooms,
                     const mu_address *address);

/* A message was taken out of the mailbox. */
void mu__room_review(mu_actor *actor);

/* Bytes that arguments count for. -MU_ERANGE: too deep or too large; -MU_EINVALID: there
 * is a reference or an object in it. */
int mu__mail_measure(const mu_value *value, uint32_t *ret_bytes);

/* Notify an actor; nothing if it has ended or there is no memory. */
struct mail *mu__mail_notice(struct office *office, uint32_t actor, int notice,
                             uint64_t token, const mu_address *address);

/* ---- user_actor.c ---- */

/* NULL: there is none, or it ends; or with the other call only the first. */
mu_actor *mu__actor_find(const struct office *office, uint32_t number);
mu_actor *mu__actor_any(const struct office *office, uint32_t number);

mu_address mu__actor_address(const struct office *office, uint32_t number);

/* The lists that an actor has, all empty if it has none: to look at; and to add to one.
 * NULL: out of memory. */
const struct actor_ties *mu__actor_ties(const mu_actor *actor);
struct actor_ties *mu__actor_ties_get(mu_actor *actor);

/* Make an actor that has not started: its first mail is to be a MAIL_START. */
int mu__actor_new(struct office *office, const mu_actor_type *type, mu_actor *parent,
                  const mu_actor_options *options, mu_actor **ret_actor);

void mu__actor_poke(mu_actor *actor);

/* It ends once its present turn is over; `why` NULL: it was stopped. */
void mu__actor_end(mu_actor *actor, const mu_error *why);

/* Stop it as mu_actor_stop does. NULL is fine. */
void mu__actor_request_stop(struct office *office, mu_actor *actor, int how);

/* ---- turn.c; from mu__turn_do on effects.c ---- */

/* The turn of `self` that may be added to; NULL: it is not its turn. */
struct turn *mu__turn_of(const mu_actor *self);

/* Add to what the turn does at its end. NULL: out of memory. */
struct mail *mu__turn_add(struct turn *turn, enum mail_kind kind);

/* Take a turn for one mail. */
void mu__turn_take(mu_actor *actor, struct mail *mail);

/* A notice that is no mail. */
void mu__turn_notify(mu_actor *actor, const mu_notice *notice);

/* The last one. */
void mu__turn_end_actor(mu_actor *actor);

/* Do what is to be done at once, or at the end of a turn. */
void mu__turn_do(struct office *office, struct mail *mail);

/* Give back what was set aside for all of these, which are not done. */
void mu__turn_undo(struct office *office, struct mu__list *out);

/* ---- answers.c ---- */

/* Fill in an error of an actor. */
void mu__answer_error(const struct office *office, const mu_actor_type *type,
                      const char *method, int ran, mu_error *error);

/* Answer a message: with a value, which it takes, or an error. */
void mu__answer(struct office *office, const struct answer_to *to, mu_value *value,
                const mu_error *error);

/* A message that will not be handled; frees it. */
void mu__answer_refused(struct office *office, struct mail *mail,
                        const mu_actor_type *type, int code, const char *words);

/* A copy; NULL: out of memory. */
mu_error *mu__error_copy(const mu_error *error);

/* ---- actor_calls.c ---- */

/* A call that has not begun: it is in no table. NULL: out of memory. */
struct pending_call *mu__call_new(struct office *office, const mu_address *to,
                                  const char *method, int64_t timeout_ms);
void mu__call_free(struct office *office, struct pending_call *call);

/* From now on it ends by its timeout. -MU_ENOMEM. */
int mu__call_begin(struct office *office, struct pending_call *call);

/* It is answered: with a value, which it takes, or an error. */
void mu__call_end(struct office *office, struct pending_call *call, mu_value *value,
                  const mu_error *error);

/* It ends with an error of this node, with `ran` as far as it is known here. */
void mu__call_fail(struct office *office, struct pending_call *call, int code,
                   const char *words);

/* Out of all tables, and the caller's again. */
void mu__call_unlist(struct office *office, struct pending_call *call);

/* Nobody waits for it any more. */
void mu__call_forget(struct office *office, struct pending_call *call);

void mu__calls_on_timer(struct office *office);
void mu__calls_done(struct office *office);

/* ---- actor_messages.c ---- */

/* NULL: the type has no method of this name. */
const mu_actor_method *mu__method_find(const mu_actor_type *type, struct mu__view name);

/* Make the mail of a message, to this node or another: *ret_mail is to be added to a turn
 * or done at once. `call` NULL: a send. `waits`: the number of the actor that hears when
 * there is room; 0: none. The errors of mu_actor_send, with words; then the call is still
 * the caller's. */
int mu__message_make(struct office *office, const mu_address *to, const char *method,
                     const mu_value *args, struct pending_call *call, uint32_t waits,
                     mu_error *ret_error, struct mail **ret_mail);

/* Put a message into the mailbox of its actor, or answer it with an error. */
void mu__message_deliver(struct office *office, struct mail *mail);

/* ---- actor_monitors.c ---- */

void mu__watch_begin(struct office *office, struct user_watch *watch);
void mu__watch_free(struct office *office, struct user_watch *watch);
void mu__watch_down(struct office *office, struct user_watch *watch, const mu_error *why);
void mu__watch_drop(struct office *office, mu_actor *watcher, uint64_t token);
void mu__watch_actor_ended(mu_actor *actor);

/* ---- actor_timers.c ---- */

void mu__actor_timer_free(struct office *office, struct actor_timer *timer);
void mu__actor_timers_drop(mu_actor *actor, uint64_t token);
void mu__actor_timers_end(mu_actor *actor);

/* ---- actor_works.c ---- */

void mu__actor_work_submit(struct office *office, struct actor_work *work);
void mu__actor_on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- actor_peers.c ---- */

/* The process with an address; NULL with an error: it cannot be reached. */
struct peer *mu__peer_reach(struct office *office, const mu_address *address,
                            mu_error *ret_error);
struct peer *mu__peer_of_node(const struct office *office, uint32_t node);

/* Send a message to a peer, or let it wait until that is up. Takes msg. */
void mu__peer_send(struct office *office, struct peer *peer, struct mu__msg *msg);

/* The message of a call does not wait any more. */
void mu__peer_unqueue(struct office *office, struct peer *peer, uint64_t call);

void mu__peers_end(struct office *office);
void mu__peer_on_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__peer_on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__peer_on_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- ways.c ---- */

/* Take room for one message to an actor of a peer. -MU_EAGAIN: there is none, and `waits`
 * hears when there is; -MU_ENOMEM. */
int mu__way_take(struct peer *peer, uint32_t actor, uint32_t bytes, uint32_t waits);

/* It was not sent. */
void mu__way_untake(struct office *office, struct peer *peer, uint32_t actor,
                    uint32_t bytes);

/* One has come from a peer. False: it sends more than it may. */
bool mu__way_arrived(struct peer *peer, uint32_t actor, uint32_t bytes);

/* One that came from there was taken out of the mailbox. */
void mu__way_taken(struct office *office, const struct mail *mail);

/* The actor has ended, or never was. */
void mu__way_actor_ended(struct office *office, uint32_t actor);
void mu__way_say_ended(struct office *office, struct peer *peer, uint32_t actor);

void mu__ways_free(struct office *office, struct peer *peer);
void mu__way_on_room(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- remote.c: what other offices say ---- */

void mu__remote_on_message(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_answer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_start(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_watch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__remote_on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- spawning.c ---- */

const mu_actor_type *mu__types_find(const struct office *office, struct mu__view name);
int mu__types_add(struct office *office, const mu_actor_type *type, mu_error *ret_error);
void mu__types_done(struct office *office);

/* A new actor, with its MAIL_START in *ret_start, to be added to a turn or done. Takes
 * `args`. */
int mu__spawn_user(struct office *office, struct mu__view type, mu_actor *parent,
                   mu_value *args, const mu_actor_options *options, mu_error *ret_error,
                   struct mail **ret_start);

/* A task is up: the actors that threads want there are made. */
void mu__spawn_at_peer(struct office *office, struct peer *peer);

/* A thread's request for a new actor, of which `call` is made. */
void mu__spawn_for_thread(struct office *office, struct pending_call *call);

#endif
