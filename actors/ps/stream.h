/* A partition's stream of records to its other replicas and to a journal, how a learner
 * is filled, snapshots for clients, and clocks. */
#ifndef MU_ACTORS_PS_STREAM_H
#define MU_ACTORS_PS_STREAM_H

#include "actors/ps/server.h"

/* How a message that could not be sent is logged: a requester that is gone waits for no
 * answer. */
static inline enum mu__log_level mu__ps_lost_level(int rv)
{
    return rv == -MU_EUNAVAILABLE ? MU__LOG_DEBUG : MU__LOG_WARN;
}

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

/* The body of a message as record p->record: mutation->size bytes. */
enum { MU__RECORD_BODY_MAX = 512 };

void mu__stream_fill_record(const struct partition *p, const struct mutation *mutation,
                            const struct mu__msg *msg,
                            uint8_t ret_body[MU__RECORD_BODY_MAX]);

/* Send the answers whose records the replica and the journal have. */
void mu__stream_release(struct mu__ctx *ctx, struct partition *p);

/* Whether no replica and no journal has the records, so that none compares their sums. */
bool mu__stream_is_alone(const struct partition *p);

/* The record was applied: its sum is remembered. */
void mu__stream_applied(struct partition *p);
void mu__stream_defer(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      struct mu__msg *msg);
void mu__stream_drain(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__stream_hold(struct mu__ctx *ctx, struct partition *p, mu__pid to, uint16_t kind,
                     const void *body, size_t size);

/* The same for the answer that a write is applied. */
void mu__stream_hold_written(struct mu__ctx *ctx, struct partition *p, mu__pid to,
                             uint64_t token);

/* The last record that all have for whom answers wait; the same of replicas alone,
 * without the journal. */
uint64_t mu__stream_acked(const struct partition *p);
uint64_t mu__stream_replicated(const struct partition *p);

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

/* ---- The same to a journal: see ps_journal.h ---- */

/* The numbers are in the file. */
enum mu__ps_held {
    MU__PS_HELD_NOT,        /* the file does not have the partition from here on */
    MU__PS_HELD_SAME,       /* another view */
    MU__PS_HELD_GENERATION, /* the same, and what is of the moment is forgotten */
    MU__PS_HELD_EMPTY       /* it begins here, empty */
};

/* Whether a record of this message can be written; false: later, perhaps. */
bool mu__ps_journal_has_room(struct mu__ctx *ctx, struct ps *ps,
                             const struct partition *p, const struct mu__msg *msg);

/* Write a message as record p->record, which was applied; or a record that a primary has
 * sent, if the journal has the partition, as this was the primary. */
void mu__ps_journal_record(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           const struct mutation *mutation, const struct mu__msg *msg);
void mu__ps_journal_copy(struct ps *ps, const struct partition *p,
                         const struct mutation *mutation, const struct mu__msg *msg);

/* Whether its records go to the file, or to the new one of a snapshot. */
bool mu__ps_is_written(const struct partition *p);

/* The file does not have it any more. */
void mu__ps_leave_journal(struct partition *p);

/* Forget what is of the generation that ends, of a copy. */
void mu__ps_end_copied_generation(struct mu__ctx *ctx, struct ps *ps,
                                  struct partition *p);

/* The partition has another view, which is p->view; or it is not here, or not served: the
 * newest that was heard is written. */
void mu__ps_journal_view(struct mu__ctx *ctx, struct ps *ps, uint32_t partition,
                         enum mu__ps_held held);

/* Flush, and send the answers that waited for it. */
void mu__ps_journal_flush(struct mu__ctx *ctx, struct ps *ps);
void mu__ps_journal_tick(struct mu__ctx *ctx, struct ps *ps);

void mu__ps_journal_close(struct ps *ps);

/* Read the file, if there is one, and begin to write. */
int mu__ps_journal_open(struct mu__ctx *ctx, struct ps *ps,
                        const struct mu__ps_config *config);

/* For VIEWS_HELD; the caller's memory. */
struct mu__ps_restored {
    uint8_t partitions[MU__PARTITIONS * MU__NUMBERED_BYTES];
    uint8_t former[8 * MU__FORMER_MAX];
};

/* Whether a process of this task that is no more wrote it. */
bool mu__ps_journal_is_of(const struct ps *ps, const struct mu__replica *replica);
void mu__ps_journal_report(const struct ps *ps, struct mu__ps_restored *memory,
                           struct mu__views_held *body);

/* ---- filling.c ---- */

void mu__fill_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p);
void mu__fill_end(struct ps *ps, struct partition *p);
void mu__fill_check_level(struct ps *ps, struct partition *p);
void mu__fill_go_on(struct mu__ctx *ctx, struct ps *ps, struct partition *p);

/* Take what a FILL_... message says, from a primary or the journal: the bytes that it
 * counts in the window of fillings. */
uint32_t mu__fill_take(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       const struct mu__msg *msg);

/* What a partition holds, to a learner or a journal. False: it could not be put. */
typedef bool (*mu__fill_put_fn)(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                                uint16_t kind, const void *body, size_t size);
bool mu__fill_put_windows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                          mu__fill_put_fn put);
bool mu__fill_put_shard(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__store_shard *shard, mu__fill_put_fn put);

void mu__fill_on_part(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__fill_on_taken(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- snapshots.c ---- */

void mu__snapshot_on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__snapshot_on_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__snapshot_on_close(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Open the snapshot that a message asks for; false: that has to wait. */
bool mu__snapshot_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__msg *msg);

/* One that was not read for so long ends within twice that time. */
enum { SNAPSHOT_IDLE_MS = 300000 };

void mu__snapshots_tick(struct mu__ctx *ctx, struct ps *ps);

/* A mutation: WINDOWS_PUT. */
void mu__snapshot_apply_windows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                                const struct mu__msg *msg, mu__pid from);

/* ---- rows/row_answers.c ---- */

/* Answer a VAR_READ of rows by number. */
void mu__rows_answer(struct mu__ctx *ctx, struct partition *p, const struct mu__msg *msg);

/* ---- clock_requests.c ---- */

/* The tokens of the actor's timers. */
enum ps_timer { PS_RETRY, PS_CLOCKS, PS_JOURNAL, PS_SNAPSHOTS };

void mu__ps_apply_clock_set(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__msg *msg, mu__pid from);
void mu__ps_on_clock_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* The clocks of a partition, as a part of what a learner is filled with. */
bool mu__ps_put_clocks(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       mu__fill_put_fn put);
void mu__ps_take_fill_clock(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__fill_clock *body);

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
