/* What the files of the variables actor call of each other, by file. */
#ifndef MU_ACTORS_VARIABLES_ACTIONS_H
#define MU_ACTORS_VARIABLES_ACTIONS_H

#include "actors/variables/internal.h"

/* ---- variables.c ---- */

/* A new operation, which is to be begun. -MU_ERANGE, -MU_ENOMEM, -MU_EEXHAUSTED. */
int mu__vars_plan(struct mu__ctx *ctx, struct variables *v,
                  struct mu__variable_call *call, struct operation **ret_op);

/* It may be over, and gone, when this returns. */
void mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Send again soon what a link had no room for. */
void mu__vars_retry_later(struct mu__ctx *ctx, struct variables *v);

/* A part has nothing left to do in this phase, or at all. */
void mu__vars_rest(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* The operation is over, and gone. */
void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code);

/* Send to all servers what fits into their windows. */
void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v);

/* ---- flights.c ---- */

/* A part that has something to send stands in the queue of its server. */
void mu__vars_enqueue(struct variables *v, struct op_part *part);
void mu__vars_dequeue(struct variables *v, struct op_part *part);
void mu__vars_unstage(struct variables *v, struct op_part *part);

/* Free a flight; returns what it was. */
struct flight mu__vars_end_flight(struct variables *v, struct flight *flight);

/* Answers that are under way are of no use to the operation any more, or to one part of
 * it (NULL: all). */
void mu__vars_disown_flights(struct variables *v, struct operation *op,
                             const struct op_part *part);
struct flight *mu__vars_flight_new(struct variables *v);
void mu__vars_count_flight(struct variables *v, const struct flight *flight);

/* The flight that a message is about; NULL when there is none. */
struct flight *mu__vars_find_flight(struct variables *v, const struct mu__msg *msg,
                                    uint64_t token);

/* The flight that a message answers; false when there is none. */
bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight);

/* ---- opens.c ---- */

/* Begin an open, perhaps anew: in place of the shard 0 with the id `replaces`, if that is
 * not 0. */
void mu__vars_begin_open(struct variables *v, struct operation *op, uint64_t replaces);

/* After anything happened to a part of an open. */
void mu__vars_go_through(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Whether a part of an open leaves it to others to create its shard: it may wait long. */
bool mu__vars_requests_existing(const struct op_part *part);
bool mu__vars_has_absent(const struct operation *op);
void mu__vars_take_opened(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__var_opened *body);

/* Not an answer yet, and perhaps none before the limit. `flight` may be NULL. */
void mu__vars_take_absent(struct mu__ctx *ctx, struct variables *v,
                          struct flight *flight);

/* A server is lost that the open may need. */
void mu__vars_lose_in_open(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op, uint32_t server);

/* ---- servers.c, lost_servers.c ---- */

/* What is known at the start; `options` may be NULL. After a failure, too, ..._done. */
int mu__vars_servers_init(struct mu__ctx *ctx, struct variables *v,
                          const struct mu__variables_options *options);
void mu__vars_servers_done(struct variables *v);

/* Servers up to an index; their queues stay where they are. */
int mu__vars_need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count);
void mu__vars_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

enum { LOST_TOKEN = 1 };        /* of `lost_timer`; operations begin behind it */

bool mu__vars_is_lost(struct mu__ctx *ctx, const struct variables *v, uint32_t server);

/* End an operation that needs a server that is lost; false: it needs none. */
bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* After a server went down or an operation began: the timer for what is lost next. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v);
void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v);

/* ---- failures.c ---- */

/* Whether its server is to blame when the operation ends without an answer: one that is
 * missing for what will be asked of it too. */
bool mu__vars_needs_server(const struct variables *v, const struct op_part *part);

/* Servers that the operation needs are lost. */
void mu__vars_fail_by_loss(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op);

/* With an error from `server`: "variable w: add: <words>". */
void mu__vars_fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                   uint32_t server, int code, const char *reason);

/* A server has said that it cannot; has answered something else than was asked; was lost
 * before it answered what cannot be asked again. */
void mu__vars_fail_by_answer(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part, uint32_t code, struct mu__view reason);
void mu__vars_fail_bad_answer(struct mu__ctx *ctx, struct variables *v,
                              struct op_part *part);
void mu__vars_fail_unknown(struct mu__ctx *ctx, struct variables *v,
                           struct op_part *part);

/* What was asked of it is not the variable's any more. */
void mu__vars_fail_replaced(struct mu__ctx *ctx, struct variables *v,
                            struct op_part *part);

/* Its server does not have the shard. */
void mu__vars_fail_forgotten(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part);

/* As another operation has failed: an inner one. */
void mu__vars_fail_as(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      const struct mu__variable_call *inner);

/* Some servers have their shards of what is opened and others have not. */
void mu__vars_fail_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* The limit has passed. */
void mu__vars_fail_by_timeout(struct mu__ctx *ctx, struct variables *v,
                              struct operation *op);

/* ---- abandons.c ---- */

/* Without this, others would wait for what we gave up for as long as this node lives. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                           uint64_t variable, uint64_t transfer);

/* What a part has begun and will not finish is given up on its server too. */
void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part);

/* Try again what found no room in its link; give that up. */
void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v);
void mu__vars_drop_abandons(struct variables *v);

/* ---- reopen.c ---- */

/* The server does not know the shard: look for the variable by its name, and go on. */
void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* True: the shard that has answered for a write is not the variable's any more, and the
 * operation has failed. */
bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part);

/* An operation that reopens for another one, or for a VAR_REOPEN, is over, and out of all
 * lists. */
void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code);
void mu__vars_on_reopen(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
