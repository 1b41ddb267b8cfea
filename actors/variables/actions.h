/* What the files of the variables actor call of each other, by file. */
#ifndef MU_ACTORS_VARIABLES_ACTIONS_H
#define MU_ACTORS_VARIABLES_ACTIONS_H

#include "actors/variables/internal.h"

/* ---- variables.c ---- */

/* A new operation, which the caller begins. -MU_ERANGE, -MU_ENOMEM, -MU_EEXHAUSTED. */
int mu__vars_plan(struct mu__ctx *ctx, struct variables *v,
                  struct mu__variable_call *call, struct operation **ret_op);

/* Begin an operation. It may be completed and freed when this returns. */
void mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Send again soon what a link had no room for. */
void mu__vars_retry_later(struct mu__ctx *ctx, struct variables *v);

/* A part has nothing left to do in this phase, or at all: it rests. */
void mu__vars_rest(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* Complete an operation's call, and free the operation. */
void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code);

/* Send to all servers what fits into their windows. */
void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v);

/* ---- flights.c ---- */

/* Into and out of the queue of a part's server, in which parts with something to send
 * stand. */
void mu__vars_enqueue(struct variables *v, struct op_part *part);
void mu__vars_dequeue(struct variables *v, struct op_part *part);
void mu__vars_unstage(struct variables *v, struct op_part *part);

/* Free a flight; returns what it was. */
struct flight mu__vars_end_flight(struct variables *v, struct flight *flight);

/* Ignore the answers under way of an operation, or of one of its parts (NULL: all). */
void mu__vars_disown_flights(struct variables *v, struct operation *op,
                             const struct op_part *part);
struct flight *mu__vars_flight_new(struct variables *v);
void mu__vars_count_flight(struct variables *v, const struct flight *flight);

/* The flight that a message is about; NULL when there is none. */
struct flight *mu__vars_find_flight(struct variables *v, const struct mu__msg *msg,
                                    uint64_t token);

/* The same for an answer, which ends the flight; false when there is none. */
bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight);

/* ---- opens.c ---- */

/* Begin an open, perhaps anew. `replaces`, if not 0: the id of the shard 0 to be
 * replaced. */
void mu__vars_begin_open(struct variables *v, struct operation *op, uint64_t replaces);

/* Go to the next phase of an open while all of its parts rest. */
void mu__vars_go_through(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Whether a part of an open leaves it to others to create its shard: it may wait long. */
bool mu__vars_requests_existing(const struct op_part *part);
bool mu__vars_has_absent(const struct operation *op);
void mu__vars_take_opened(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__var_opened *body);

/* A server notes that a shard does not exist; its answer comes when it does. `flight` may
 * be NULL. */
void mu__vars_take_absent(struct mu__ctx *ctx, struct variables *v,
                          struct flight *flight);

/* The link of a server that the open may need is down. */
void mu__vars_lose_in_open(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op, uint32_t server);

/* ---- servers.c, lost_servers.c ---- */

/* Learn the servers known at the start; `options` may be NULL. mu__vars_servers_done is
 * due after a failure, too. */
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

/* Fail an operation that needs a lost server; false: it needs none. */
bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Set the timer for the next server to be lost; after a server went down or an operation
 * began. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v);
void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v);

/* ---- failures.c ---- */

/* Whether an error of the operation names the part's server: it owes an answer, or it is
 * down and will be needed. */
bool mu__vars_needs_server(const struct variables *v, const struct op_part *part);

/* The operation needs lost servers. */
void mu__vars_fail_by_loss(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op);

/* With an error from `server`: "variable w: add: <reason>". */
void mu__vars_fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                   uint32_t server, int code, const char *reason);

/* A server has answered with an error; has answered something else than was asked; was
 * lost before it answered what must not be repeated. */
void mu__vars_fail_by_answer(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part, uint32_t code, struct mu__view reason);
void mu__vars_fail_bad_answer(struct mu__ctx *ctx, struct variables *v,
                              struct op_part *part);
void mu__vars_fail_unknown(struct mu__ctx *ctx, struct variables *v,
                           struct op_part *part);

/* The variable was created anew while it was written. */
void mu__vars_fail_replaced(struct mu__ctx *ctx, struct variables *v,
                            struct op_part *part);

/* A part's server does not have the shard. */
void mu__vars_fail_forgotten(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part);

/* With the error of an inner operation. */
void mu__vars_fail_as(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      const struct mu__variable_call *inner);

/* Some servers have their shards of the variable, and others have lost theirs. */
void mu__vars_fail_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* The call's timeout has passed. */
void mu__vars_fail_by_timeout(struct mu__ctx *ctx, struct variables *v,
                              struct operation *op);

/* ---- abandons.c ---- */

/* Tell a server that an open, a creation or an assign was given up. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                           uint64_t variable, uint64_t transfer);

/* The same of what a part has begun and will not finish. */
void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part);

/* Send again the ABANDONs that found no room in a link; drop these. */
void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v);
void mu__vars_drop_abandons(struct variables *v);

/* ---- reopen.c ---- */

/* A part's server does not know the shard: open the variable by its name, and go on. */
void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* True: the shard that took a write was replaced since, and the operation has failed. */
bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part);

/* An open for another operation, or for a VAR_REOPEN, has ended, and is out of all
 * lists. */
void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code);
void mu__vars_on_reopen(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
