/* What users' actors call when one is kept, or called by name (kept.h). */
#ifndef MU_ACTORS_KEEPER_HOOKS_H
#define MU_ACTORS_KEEPER_HOOKS_H

#include "actors/user/internal.h"

struct kept;

/* ---- The owner's side ---- */

/* A turn has ended well: make its items, then hold what it has done. An
 * error: it has failed. */
int mu__kept_commit(struct turn *turn);
void mu__kept_hold(struct turn *turn);
void mu__kept_records_done(struct turn *turn);

/* Its call has failed: a repeat fails as it did. */
void mu__kept_note_failure(const struct turn *turn, const mu_error *error);

/* The state is not what is kept. */
void mu__kept_spoil(struct kept *kept);

/* Nothing waits any more, perhaps. */
void mu__kept_ready(struct kept *kept);
/* No turn begins for now. */
bool mu__kept_is_held(const struct kept *kept);

/* Nothing that waits ever leaves. */
bool mu__kept_is_cut(const struct kept *kept);
/* Something is kept: a later life finds it. */
bool mu__kept_is_born(const struct kept *kept);
bool mu__kept_is_busy(const struct kept *kept);
int mu__kept_take_loaded(struct kept *kept, mu_error *ret_error);
void mu__kept_actor_done(mu_actor *actor);

/* A call that has had its turn: it is answered as it was. */
bool mu__kept_is_repeat(mu_actor *actor, const struct mail *mail);

/* A call that is not taken now: it is sent again. */
void mu__kept_send_away(struct office *office, const struct answer_to *to);
void mu__kept_call_came(struct office *office, const struct mu__kept_call *call,
                        uint64_t sender, const struct answer_to *to, mu_value *args);
void mu__kept_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__kept_on_item(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__kept_on_kept(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A turn (turn.c) in which it takes what was loaded. */
int mu__turn_load(mu_actor *actor, mu_error *ret_error);

/* Its state is as if it had never begun. */
void mu__turn_clear_state(mu_actor *actor);

/* ---- The caller's side ---- */

void mu__kept_call_begin(struct office *office, struct pending_call *call);
void mu__kept_call_unmake(struct office *office, struct pending_call *call);
void mu__kept_call_ended(struct office *office, struct pending_call *call);
void mu__kept_call_away(struct office *office, struct pending_call *call);
/* That which an answer is to, of a call to a kept actor; NULL: there is none, or it was
 * sent to another life since. */
struct pending_call *mu__kept_call_find(const struct office *office, uint64_t marked);
bool mu__kept_is_answer_from(const struct office *office, const struct pending_call *call,
                             uint32_t node);
void mu__kept_on_away(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__kept_on_timer(struct office *office);
void mu__kept_peer_up(struct office *office, const struct peer *peer);

/* It is not to be used any more: messages to it that wait are lost. */
void mu__kept_peer_lost(struct office *office, const struct peer *peer,
                        const mu_error *why);
void mu__kept_ways_done(struct office *office);

#endif
