/* A partition's stream of records to its other replicas, how a learner is filled,
 * snapshots for clients, and clocks. */
#ifndef MU_ACTORS_PS_STREAM_H
#define MU_ACTORS_PS_STREAM_H

#include "actors/ps/server.h"

/* ---- stream.c ---- */

/* Begin to send to another replica of the view, if there is one, once it is linked. */
void mu__stream_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p, int which);

/* There is a link to it now. */
void mu__stream_linked(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       int which);

/* The replica is not in the view any more. */
void mu__stream_end(struct ps *ps, struct partition *p, int which);

/* The learner is the backup now. */
void mu__stream_raise(struct ps *ps, struct partition *p);

/* The replica is lost for this view. */
void mu__stream_lose(struct ps *ps, struct partition *p, int which,
                     enum mu__replica_fate fate);

/* Another view, or more is acknowledged: answer, and go on with, what waits no more. */
void mu__stream_settle(struct mu__ctx *ctx, struct ps *ps, struct partition *p);

/* Time has passed: go on with what waits. */
void mu__stream_tick(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__stream_arm(struct mu__ctx *ctx, struct ps *ps);

/* Drop what waits, unanswered. */
void mu__stream_drop(struct mu__ctx *ctx, struct partition *p);

const struct mu__replica *mu__stream_replica(const struct partition *p, int which);

/* Whether no record can be sent now, so that requests wait. */
bool mu__stream_is_blocked(struct mu__ctx *ctx, const struct ps *ps,
                           const struct partition *p);

/* Whether a replica for which answers wait cannot be reached. */
bool mu__stream_is_cut_off(const struct partition *p);

/* Send a message as record p->record. False: it could not be sent, and may be later. */
bool mu__stream_send(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                     const struct mutation *mutation, const struct mu__msg *msg);

/* The record was applied: its sum is remembered. */
void mu__stream_applied(struct partition *p);
void mu__stream_defer(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      struct mu__msg *msg);
void mu__stream_drain(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__stream_hold(struct mu__ctx *ctx, struct partition *p, mu__pid to, uint16_t kind,
                     const void *body, size_t size);

/* The last record that all have for whom answers wait. */
uint64_t mu__stream_acked(const struct partition *p);

void mu__stream_on_records_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A record has come from a primary. */
void mu__stream_take(struct mu__ctx *ctx, struct ps *ps, const struct mutation *mutation,
                     struct mu__msg *msg);

/* What came of a record goes into the sum. */
void mu__stream_note(struct partition *p, uint64_t outcome);

/* Whether this message comes from the primary of the view in which this is a replica;
 * NULL: it does not, or the replica is to be filled anew. */
struct partition *mu__stream_replica_of(struct mu__ctx *ctx, struct ps *ps,
                                        uint32_t partition, uint64_t view, uint32_t node);
void mu__stream_mark(struct ps *ps, struct partition *p);
void mu__stream_send_marks(struct mu__ctx *ctx, struct ps *ps);

/* ---- filling.c ---- */

void mu__fill_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__fill_end(struct ps *ps, struct partition *p);
void mu__fill_check_level(struct ps *ps, struct partition *p);
void mu__fill_go_on(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__fill_on_begin(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__fill_on_writer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__fill_on_shard(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__fill_on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__fill_on_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__fill_on_taken(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- snapshots.c ---- */

void mu__snapshot_on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__snapshot_on_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__snapshot_on_close(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Open the snapshot that a message asks for; false: that has to wait. */
bool mu__snapshot_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__msg *msg);

/* A mutation: WINDOWS_PUT. */
void mu__snapshot_apply_windows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                                const struct mu__msg *msg, mu__pid from);
/* ---- clock_requests.c ---- */

/* The tokens of the actor's timers. */
enum ps_timer { PS_RETRY, PS_CLOCKS };

void mu__ps_apply_clock_set(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__msg *msg, mu__pid from);
void mu__ps_on_clock_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Send a learner all clocks; false: it is lost. */
bool mu__ps_fill_clocks(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__ps_on_fill_clock(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A member leaves a clock when its node says goodbye, when its task is there with another
 * process, or when it had no link to the primary for CLOCK_AWAY_MS. */
enum { CLOCK_AWAY_MS = 1000 };

void mu__ps_clocks_node_up(struct mu__ctx *ctx, struct ps *ps,
                           const struct mu__node_up *up);

/* Before the node is forgotten. */
void mu__ps_clocks_node_down(struct mu__ctx *ctx, struct ps *ps,
                             const struct mu__node_down *down);

/* A partition is served here from now on: members without a link have no time left but
 * this. */
void mu__ps_watch_clocks(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__ps_clocks_tick(struct mu__ctx *ctx, struct ps *ps);

#endif
