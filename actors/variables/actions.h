/* What the files of this actor call of each other, by file; batches.h has more of it. */
#ifndef MU_ACTORS_VARIABLES_ACTIONS_H
#define MU_ACTORS_VARIABLES_ACTIONS_H

#include "actors/variables/internal.h"

/* ---- variables.c ---- */

/* A new operation of a call, which the caller begins. -MU_ERANGE, -MU_ENOMEM,
 * -MU_EEXHAUSTED. */
int mu__vars_plan(struct mu__ctx *ctx, struct variables *v,
                  struct mu__variable_call *call, struct operation **ret_op);

/* Begin a call. False: it has ended already. */
bool mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Set a timer, unless it is set. If the kernel has none left, the next event tries
 * again. */
void mu__vars_arm(struct mu__ctx *ctx, struct variables *v, enum timer timer,
                  uint64_t delay_ms);
void mu__vars_arm_at(struct mu__ctx *ctx, struct variables *v, enum timer timer,
                     uint64_t due_ms);

/* A part has nothing left to do in this phase, or at all: it rests. */
void mu__vars_rest(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* Complete a call, and free its operation. */
void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code);

/* End the opens that reopen variables for an operation. */
void mu__vars_drop_inners(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* ---- flights.c ---- */

enum { RETRY_MS = 5 }; /* after a link had no room */

/* Into and out of the queue of a part's server, in which parts with something to send
 * stand; or of those that wait for a server. */
void mu__vars_enqueue(struct variables *v, struct op_part *part);
void mu__vars_dequeue(struct op_part *part);
void mu__vars_unstage(struct variables *v, struct op_part *part);

/* Take `count` numbers for what counts once at a partition; they are answered, or given
 * up. All numbers below mu__vars_settled() are. */
void mu__vars_number(struct variables *v, uint32_t partition, struct numbered *numbered,
                     uint64_t count);
void mu__vars_settle(struct variables *v, uint32_t partition, struct numbered *numbered);
uint64_t mu__vars_settled(const struct variables *v, uint32_t partition);
uint64_t mu__vars_need_origin(struct mu__ctx *ctx, struct variables *v);

int mu__vars_flights_init(struct variables *v); /* -MU_ENOMEM */

/* A flight to the server of a partition that is counted, without bytes. NULL: out of
 * memory. */
struct flight *mu__vars_flight_new(struct variables *v, uint32_t partition,
                                   enum queue queue, uint16_t answer);

/* So many more bytes of a flight are under way; or fewer. */
void mu__vars_note_sent(struct variables *v, struct flight *flight, uint32_t size);
void mu__vars_note_arrived(struct variables *v, struct flight *flight, uint32_t size);

/* Free a flight: nothing of it is under way any more. */
void mu__vars_end_flight(struct variables *v, struct flight *flight);

/* Ignore the answers under way of a call, or of one of its parts (NULL: all). */
void mu__vars_disown_flights(struct variables *v, struct operation *op,
                             const struct op_part *part);

/* Where a flight with this token would be. */
static inline struct flight *mu__vars_flight_slot(const struct variables *v,
                                                  uint64_t token)
{
    return &v->flights[token & (v->flights_size - 1)];
}

/* By token, or by the message that is about it; NULL when there is none. */
static inline struct flight *mu__vars_flight_of(const struct variables *v, uint64_t token)
{
    struct flight *flight = mu__vars_flight_slot(v, token);

    return token == 0 || flight->token != token ? NULL : flight;
}

struct flight *mu__vars_find_flight(const struct variables *v, const struct mu__msg *msg,
                                    uint64_t token);

/* The same for an answer, which ends the flight; false when there is none. */
bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight);

/* Send what fits into the windows, to all servers, or to that of an event and all. */
void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v);
void mu__vars_go_on(struct mu__ctx *ctx, struct variables *v, uint32_t server);

/* ---- runs.c ---- */

void mu__vars_on_effects_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_effect_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_effects_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_wake_resting(struct mu__ctx *ctx, struct variables *v);
void mu__vars_check_timeouts(struct mu__ctx *ctx, struct variables *v);

/* Free all runs, and do not touch what belongs to the worker, which may have ended. */
void mu__vars_drop_runs(struct mu__ctx *ctx, struct variables *v);

/* ---- opens.c ---- */

/* Begin an open, perhaps anew. `replaces`, if not 0: the id of the shard 0 to be
 * replaced. */
void mu__vars_begin_open(struct variables *v, struct operation *op, uint64_t replaces);

/* A part rests: go to the next phase of its open while all of its parts do. */
void mu__vars_go_through(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* Whether a part of an open leaves it to others to create its shard: it may wait long. */
bool mu__vars_requests_existing(const struct op_part *part);
bool mu__vars_has_absent(const struct operation *op);
void mu__vars_take_opened(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__var_opened *body);

/* A server notes that a shard does not exist; its answer comes when it does. `flight` may
 * be NULL. */
void mu__vars_take_absent(struct mu__ctx *ctx, struct variables *v,
                          struct flight *flight);

/* The open may need partitions that are not served any more. */
void mu__vars_lose_in_open(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op);

/* ---- servers.c ---- */

/* Learn the servers known at the start; `options` may be NULL. mu__vars_servers_done is
 * due after a failure, too. */
int mu__vars_servers_init(struct mu__ctx *ctx, struct variables *v,
                          const struct mu__variables_options *options);
void mu__vars_servers_done(struct variables *v);

/* So many servers. -MU_ERANGE, -MU_ENOMEM. */
int mu__vars_need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count);
void mu__vars_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

bool mu__vars_is_lost(struct mu__ctx *ctx, const struct variables *v, uint32_t server);

/* Fail an operation that needs a lost server; false: it needs none. */
bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Set the timer for the next server to be lost; after a server went down or an operation
 * began. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v);
void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v);

/* ---- placements.c ---- */

/* Guess again where partitions are of which no server has told. */
void mu__vars_guess_placements(struct variables *v);

/* The link of a server is down. */
void mu__vars_lose_placements(struct mu__ctx *ctx, struct variables *v, uint32_t server);
void mu__vars_on_serves(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- failures.c ---- */

/* "/job:ps/task:1 (tcp://host:port) has not answered for 2.0 s", nor since a request. */
void mu__vars_server_words(struct mu__ctx *ctx, const struct variables *v,
                           uint32_t partition, uint64_t since_ms, char *out, size_t size);

/* Whether an error of an operation may name a server: it owes an answer, or it is down
 * and will be needed. */
bool mu__vars_waits_for(const struct variables *v, const struct operation *op,
                        uint32_t server);

/* The operation needs lost servers. */
void mu__vars_fail_by_loss(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op);

/* With an error from `server`: "variable w: add: <reason>". */
void mu__vars_fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                   uint32_t server, int code, const char *reason);

/* The same; the reason is `before`, the server with its address, `after`. */
void mu__vars_fail_at(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      uint32_t server, int code, const char *before, const char *after);

/* The server of a partition has answered with an error; has answered something else than
 * was asked; was lost before it answered a batch without an effect number. */
void mu__vars_fail_by_answer(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op, uint32_t partition, uint32_t code,
                             struct mu__view reason);
void mu__vars_fail_bad_answer(struct mu__ctx *ctx, struct variables *v,
                              struct op_part *part);
void mu__vars_fail_unknown(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                           uint32_t partition);

/* The variable was created anew while it was written. */
void mu__vars_fail_replaced(struct mu__ctx *ctx, struct variables *v,
                            struct op_part *part);

/* The server of a partition does not have a shard. */
void mu__vars_fail_forgotten(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op, uint32_t partition);

/* With the error of an inner operation. */
void mu__vars_fail_as(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      const struct mu__variable_call *inner);

/* Some servers have their shards of the variable, and others have lost theirs. */
void mu__vars_fail_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* The timeout of a call has passed, or of a run. */
void mu__vars_fail_by_timeout(struct mu__ctx *ctx, struct variables *v,
                              struct operation *op);

/* ---- abandons.c ---- */

/* Tell the server of a partition that an open, a creation or an assign was given up; or a
 * batch. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, uint32_t partition,
                           uint64_t variable, uint64_t transfer);
void mu__vars_abandon_batch(struct mu__ctx *ctx, struct variables *v,
                            const struct write_batch *batch);

/* The same of what a part has begun and will not finish. */
void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part);

/* Send again the ABANDONs that found no room in a link; drop these. */
void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v);
void mu__vars_drop_abandons(struct variables *v);

/* ---- reopen.c ---- */

/* A server does not know the shard of a part, or one that a batch writes to: open the
 * variable by its name, and go on. The operation may have failed when this returns. */
void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part);
void mu__vars_reopen_batch(struct mu__ctx *ctx, struct variables *v,
                           struct write_batch *batch);

/* True: the shard that took a write was replaced since, and the operation has failed. */
bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part);

/* An open for another operation has ended, and is out of all lists. */
void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code);

#endif
