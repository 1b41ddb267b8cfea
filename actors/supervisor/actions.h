/* What the files of the supervisor call of each other, by file. */
#ifndef MU_ACTORS_SUPERVISOR_ACTIONS_H
#define MU_ACTORS_SUPERVISOR_ACTIONS_H

#include "actors/supervisor/internal.h"

/* ---- supervisor.c ---- */

/* Count the end of a closure, for the status. */
void mu__sup_count_outcome(struct supervisor *s, int code);

/* End a closure: answer its client, settle its effect, and remove it unless its result is
 * pinned. It ends even if the answer cannot be sent. */
void mu__sup_resolve(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, const struct closure_outcome *outcome);

/* Tell a client how its closure, or one that it has joined, has ended. */
void mu__sup_answer(struct mu__ctx *ctx, struct supervisor *s,
                    const struct mu__closure *closure, mu__pid to, uint64_t token,
                    const struct closure_outcome *outcome, bool has_result);

/* The same as mu__sup_resolve with an error of the chief's own. */
void mu__sup_resolve_error(struct mu__ctx *ctx, struct supervisor *s,
                           struct mu__closure *closure, int code, uint32_t kind,
                           const char *text);

/* Remove a closure without an answer, and release its function's name. */
void mu__sup_remove(struct supervisor *s, struct mu__closure *closure);

/* The journal that was read over many turns is in use: what was held is handled. */
void mu__sup_opened(struct mu__ctx *ctx, struct supervisor *s);

/* Free a closure's extra: its timer is cancelled, its inputs are released. */
void mu__sup_drop_extra(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure);

/* ---- clients.c ---- */

/* The client with a pid, a new one if there is none; NULL: too many, or no memory. */
struct supervisor_client *mu__sup_client(struct supervisor *s, mu__pid pid);

/* The same; NULL: there is none. */
struct supervisor_client *mu__sup_find_client(struct supervisor *s, mu__pid pid);

void mu__sup_forget_client(struct mu__ctx *ctx, struct supervisor *s,
                           struct supervisor_client *client);

/* The closure that a client knows by a token; NULL when there is none (any more). */
struct mu__closure *mu__sup_closure_at(struct supervisor *s, mu__pid pid, uint64_t token);

/* The client's token no longer stands for the closure. */
void mu__sup_forget_token(struct supervisor_client *client,
                          const struct mu__closure *closure);

/* Make a client the owner of a closure, which it knows by `token`. */
void mu__sup_adopt(struct supervisor *s, struct supervisor_client *client,
                   struct mu__closure *closure, uint64_t token);

/* Whether a closure is still to be run: its client waits, or the journal has it. */
bool mu__sup_is_awaited(const struct supervisor *s, const struct mu__closure *closure);

/* Answer a SCHEDULE with an error; its closure is not queued. */
void mu__sup_refuse(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                    uint32_t kind, const char *text);

/* No worker is left, as worker_states.none_left says: end what waits for one. */
void mu__sup_fail_waiting(struct mu__ctx *ctx, struct supervisor *s);

/* Tell every client of an error that belongs to no closure. */
void mu__sup_fault(struct mu__ctx *ctx, struct supervisor *s, int code, uint32_t kind,
                   const char *task, const char *text);

/* ---- dispatch.c ---- */

/* Remove the pinned results that nobody uses any more, and give out closures while there
 * are any and a worker has room. */
void mu__sup_after_batch(struct mu__ctx *ctx, void *state);

/* Give out the closures that are for one worker alone, while it has room. */
void mu__sup_dispatch_affine(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* The queue where a closure belongs; MU__LIST_NONE: out of memory. */
uint32_t mu__sup_queue_of(struct supervisor *s, const struct mu__closure *closure);

/* Put a closure to the front or the end of its queue. */
void mu__sup_queue_first(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure);
void mu__sup_queue_last(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure);

/* Move a closure to MU__LIST_HELD, where it waits for a time or for inputs. */
void mu__sup_hold(struct supervisor *s, struct mu__closure *closure);

/* Queue the closures of MU__LIST_UNREAD again whose clients read. */
void mu__sup_queue_read(struct mu__ctx *ctx, struct supervisor *s);

/* An attempt has ended: take it off its worker's load. */
void mu__sup_unload(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                    const struct abandoned_attempt *was);

/* The number of the latest attempt: backups have numbers too, and no two attempts of a
 * closure have the same. */
uint32_t mu__sup_last_attempt(const struct supervisor *s,
                              const struct mu__closure *closure);

int mu__sup_send_run(struct mu__ctx *ctx, struct supervisor *s,
                     const struct mu__member_worker *worker,
                     const struct mu__closure *closure, uint32_t attempt);
void mu__sup_send_cancel(struct mu__ctx *ctx, uint32_t node, uint64_t closure,
                         uint32_t attempt);

/* Whether windows follow run times, and not the configuration. */
static inline bool mu__sup_is_adaptive(const struct supervisor *s)
{
    return s->config.window == 0;
}

/* How many closures like those it ran last a worker may have in flight; for the
 * status. */
uint32_t mu__sup_window(const struct supervisor *s,
                        const struct mu__member_worker *worker);

/* ---- finish_attempts.c ---- */

/* Why a worker is not there any more. */
enum mu__loss {
    MU__LOSS,         /* its link is down */
    MU__LOSS_DRAINED, /* the same, and it was to leave */
    MU__LOSS_REMOVED  /* it is not in the cluster any more */
};

/* The worker of a closure was lost: the closure ends, or goes back to the front of its
 * queue. Only real losses count as crashes of the closure, not removals. */
void mu__sup_take_back(struct mu__ctx *ctx, struct supervisor *s,
                       struct mu__closure *closure, struct mu__worker_id worker,
                       enum mu__loss loss);

/* A worker reports an abandoned attempt: it gives it back (`returned`), or the attempt
 * has begun. False: there is no such attempt. */
bool mu__sup_abandoned_reported(struct mu__ctx *ctx, struct supervisor *s,
                                uint32_t number, uint64_t closure, uint32_t attempt,
                                bool returned);

/* All attempts of a closure end here: `answered` is the worker that has answered, 0:
 * none; the others are asked to stop, and are not waited for. */
void mu__sup_finish_attempts(struct mu__ctx *ctx, struct supervisor *s,
                             struct mu__closure *closure, uint32_t answered);

/* Set a closure's timer for the earliest of its times; to be called when one of these has
 * changed. */
void mu__sup_arm(struct mu__ctx *ctx, struct supervisor *s, struct mu__closure *closure);

/* ---- workers.c ---- */

/* Its link is down; `left`: it said goodbye. */
void mu__sup_lose_worker(struct mu__ctx *ctx, struct supervisor *s,
                         const struct mu__member_worker *worker, bool left);

/* Listed workers count as missing from the start. False: out of memory. */
bool mu__sup_expect_workers(struct mu__ctx *ctx, struct supervisor *s);

/* Room for the state of workers up to `number`; false when out of memory. */
bool mu__sup_need_worker_state(struct supervisor *s, uint32_t number);

/* Wait for an absent worker, for `recovery_ms` from the first such call on. */
void mu__sup_await_worker(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* Let a draining worker leave if nothing is in flight there. */
void mu__sup_leave_if_idle(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* Answer a DRAIN or a FORGET. */
void mu__sup_answer_drain(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                          const char *text);

/* Send a parameter server a FENCE: it applies the effects of this supervisor only. */
void mu__sup_fence(struct mu__ctx *ctx, const struct supervisor *s, uint32_t node);

/* ---- builds.c ---- */

/* A worker has built a per-worker value, or failed to. */
void mu__sup_built(struct mu__ctx *ctx, struct supervisor *s, const struct mu__msg *msg);

/* A worker has joined: it builds the values there are before it gets closures. */
void mu__sup_builds_begin(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* A worker was lost: its builds end. */
void mu__sup_builds_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                         enum mu__loss loss);

/* False: one of the closure's inputs is being built slowly on this worker. */
bool mu__sup_builds_suit(const struct supervisor *s, const struct closure_extra *extra,
                         const struct mu__member_worker *worker);

/* ---- status.c ---- */

/* How many closures are in flight; known to have begun, of these; waiting or held. */
uint32_t mu__sup_in_flight(const struct supervisor *s);
uint32_t mu__sup_running(const struct supervisor *s);
uint32_t mu__sup_waiting(const struct supervisor *s);

/* All workers, if each thread of theirs runs a function while the same process has
 * closures outstanding, which can wait for no thread then; else 0. */
uint32_t mu__sup_blocked_workers(const struct supervisor *s);

/* A closure in flight, as the status shows it. */
mu_value *mu__sup_running_value(const struct supervisor *s,
                                const struct mu__closure *closure, uint64_t now_ms);

/* Answer a STATUS_GET. Takes `map`. */
void mu__sup_send_status(struct mu__ctx *ctx, mu__pid to, uint64_t token, mu_value *map);

/* ---- explain.c ---- */

/* Answer a STATUS_GET that asks about one closure. */
void mu__sup_explain(struct mu__ctx *ctx, struct supervisor *s, struct mu__msg *msg);

/* The workers that are known and absent, each with the time for which it is missing. */
mu_value *mu__sup_missing_value(const struct supervisor *s, uint64_t now_ms);

/* Watch for closures that make no progress, from now on. */
void mu__sup_watchdog_watch(struct mu__ctx *ctx, struct supervisor *s);

/* ---- inputs.c, pinning.c, per_worker_values.c ---- */

void mu__sup_drop_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct closure_extra *extra);

/* The closure of a pinned result has run again, with a result (code 0) or an error.
 * False: its result was not being recomputed. */
bool mu__sup_recomputed(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure,
                        const struct closure_outcome *outcome, uint32_t number);

/* Remove the pinned results that are in the list of unused ones. Never inside of a walk
 * over closures or results, whose next entry it may free. */
void mu__sup_remove_unused_results(struct mu__ctx *ctx, struct supervisor *s);
mu_value *mu__sup_per_worker_value(const struct supervisor *s);

#endif
