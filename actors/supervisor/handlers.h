/* The supervisor's handlers of messages and timers: supervisor.c calls them. */
#ifndef MU_ACTORS_SUPERVISOR_HANDLERS_H
#define MU_ACTORS_SUPERVISOR_HANDLERS_H

#include <stdint.h>

struct closure_extra;
struct mu__ctx;
struct mu__msg;
struct supervisor;

void mu__sup_on_begun(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cancel_all(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cancel_closure(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_drain(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_server_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_fetch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_forget(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_per_worker_make(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_pulled(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_recalled(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_result(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_room_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_job_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_task_ended(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- Timers ---- */

void mu__sup_worker_timer(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);
void mu__sup_builds_timer(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);
void mu__sup_status_timer(struct mu__ctx *ctx, struct supervisor *s, uint64_t number);
void mu__sup_closure_timer(struct mu__ctx *ctx, struct supervisor *s,
                           struct closure_extra *extra);
void mu__sup_backup_tick(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_watchdog(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_journal_tick(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_journal_opening(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_journal_step(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_recall_tick(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_room_timer(struct mu__ctx *ctx, struct supervisor *s);

#endif
