/* The inputs of closures: results pinned on workers (pinning.c) and per-worker values
 * (per_worker_values.c); inputs.c: how closures use them. */
#ifndef MU_ACTORS_SUPERVISOR_INPUTS_H
#define MU_ACTORS_SUPERVISOR_INPUTS_H

#include "actors/supervisor/internal.h"

/* ---- inputs.c ---- */

/* A new closure that names inputs. 0, or why it cannot run (with a message). */
int mu__sup_take_inputs(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, struct mu__view inputs,
                        mu_error *ret_error);

/* Before a closure with inputs goes to a worker: 0 when all of them are there or on their
 * way; -MU_EAGAIN when it must wait for some, and is held; other errors: it was resolved
 * with an error. */
int mu__sup_bring_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure, struct mu__member_worker *worker);

/* Whether all of a list are per-worker values that there are. */
bool mu__sup_inputs_are_there(const struct supervisor *s, struct mu__view inputs);

/* Whether the next chief can make all of them again, from the journal. */
bool mu__sup_inputs_outlive(const struct supervisor *s,
                            const struct closure_extra *extra);

/* Whether the journal has room for those, of such, that it does not have yet. */
bool mu__sup_inputs_have_room(struct supervisor *s, const struct closure_extra *extra);

/* The worker that has most of a closure's inputs; 0: no preference. */
uint32_t mu__sup_inputs_worker(const struct supervisor *s,
                               const struct closure_extra *extra);

void mu__sup_inputs_client_lost(struct mu__ctx *ctx, struct supervisor *s,
                                mu__pid client);
void mu__sup_inputs_done(struct supervisor *s);

void mu__sup_send_input(struct mu__ctx *ctx, uint32_t node, uint64_t number,
                        const struct mu__packed *content, struct mu__buf *backing);
void mu__sup_send_drop(struct mu__ctx *ctx, uint32_t node, uint64_t number);

/* ---- pinning.c ---- */

/* The result of a closure stays on a worker. False when out of memory. */
bool mu__sup_pin_result(struct supervisor *s, const struct mu__closure *closure,
                        uint32_t number);

/* A result that nobody waits for has come from a node: should it have been pinned there,
 * it is dropped. */
void mu__sup_drop_stale(struct mu__ctx *ctx, struct supervisor *s, uint32_t node,
                        uint64_t number);

/* A worker is lost, and with it the results that were pinned there. */
void mu__sup_pinned_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* Bring a result to the chief: it is pulled from its holder, or computed again. */
void mu__sup_pinned_request(struct mu__ctx *ctx, struct supervisor *s,
                            struct pinned_result *pinned);

/* A result's client has released it, or a closure uses it no longer: it is removed after
 * the batch of messages if then it is unused. */
void mu__sup_review_use(struct supervisor *s, struct pinned_result *pinned);

/* ---- per_worker_values.c ---- */

struct per_worker;

/* NULL when there is none, or `number` is that of a pinned result. */
struct per_worker *mu__sup_per_worker_find(const struct supervisor *s, uint64_t number);

/* The item of a worker in `values`; NULL: none. */
const mu_value *mu__sup_per_worker_item(const struct supervisor *s,
                                        const mu_value *values,
                                        const struct mu__member_worker *worker);

/* A client that has made the value releases it once; one that has not changes nothing. */
void mu__sup_per_worker_release(struct mu__ctx *ctx, struct supervisor *s,
                                struct per_worker *pw, mu__pid client);
void mu__sup_per_worker_client_lost(struct mu__ctx *ctx, struct supervisor *s,
                                    mu__pid client);

/* Remove a value if its clients have released it and no closure uses it. */
void mu__sup_per_worker_remove_unused(struct mu__ctx *ctx, struct supervisor *s,
                                      struct per_worker *pw);

/* A shared value of the journal, which is there already if it was read before. The
 * journal holds it until all is read. 0 or -MU_ENOMEM. */
int mu__sup_per_worker_restore(struct supervisor *s,
                               const struct mu__journal_body *record);
void mu__sup_per_worker_restored(struct mu__ctx *ctx, struct supervisor *s);

/* A mu__journal_content_fn; `owner` is the supervisor. */
struct sent_body *mu__sup_per_worker_content(void *owner, uint64_t number,
                                             struct mu__journal_body *record);
void mu__sup_per_worker_done(struct supervisor *s);

#endif
