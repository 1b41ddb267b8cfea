/* Barriers: arrivals, cancels, and the end of a generation. */
#ifndef MU_ACTORS_COORDINATION_BARRIER_REQUESTS_H
#define MU_ACTORS_COORDINATION_BARRIER_REQUESTS_H

#include "actors/coordination/barriers/alive.h"
#include "actors/coordination/barriers/barrier_table.h"
#include "actors/coordination/internal.h"

/* `task` is not CONNECTED any more: it failed, left or was reset. */
void mu__coord_barriers_task_left(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task, bool failed);
void mu__coord_barriers_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                    struct mu__roster_task *task);
int mu__coord_barriers_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_barriers_done(struct coordination *c);
void mu__coord_on_arrive(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_barrier_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_barriers_tick(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_barriers_due_ms(const struct coordination *c);
void mu__coord_barriers_lost(struct mu__ctx *ctx, struct coordination *c);
const struct mu__barriers *mu__coord_barriers_table(const struct coordination *c);

/* Forget the names that do not run, with their outcomes. Returns how many. */
uint64_t mu__coord_barriers_forget_over(struct mu__ctx *ctx, struct coordination *c);

/* TASKS_GET with MU__TASKS_ALIVE. */
void mu__coord_alive(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task, const struct mu__tasks_get *get);

/* A task was added to the coordinated jobs, or removed from them. Running barriers of all
 * follow; running barriers that name a removed task end with an error. */
void mu__coord_barriers_cluster(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task);

enum {
    BARRIER_NAMED_MAX = 3,    /* tasks that are named in a message */
    HOLD_LOOKS_MAX = 1 << 20, /* seats that a tick looks at for what is held */
    RUNNING_WARN = 20         /* barriers at once; with more, a warning is logged */
};

struct coord_barriers {
    struct mu__barriers table;
    char *all;        /* the canonical set of the coordinated jobs, */
    bool all_is_old;  /* as it was before the cluster changed */
    bool is_read;     /* the outcomes of former hosts, */
    uint64_t read_ms; /* and when, */
    bool has_former;  /* and whether there were any */
    uint32_t warn_at; /* barriers at once */
    uint64_t due_ms;  /* no timeout is over, and no note is due before */
    struct coord_alive *alive;
    struct mu__ctx *calling; /* for mu__coord_barrier_on_dropped */
    struct coordination *owner;
};

/* The answer to one arrival: its generation, and the outcome. */
struct barrier_answer {
    uint64_t token;
    uint64_t generation;
    bool stays; /* the task's count does not pass this generation */
    int code;
    int kind;
    struct mu__view message;
    struct mu__view task;
    struct mu__buf *backing; /* of both; NULL: they are copied */
};

/* ---- task_sets.c: sets of tasks as agents name them ---- */

struct coord_set {
    struct mu__task_set set;
    char *text; /* canonical */
};

/* Read a set, which must have `task`. -MU_EINVALID, -MU_ERANGE, -MU_ENOMEM; with a
 * message. */
int mu__coord_set_read(struct mu__view text, const struct mu__roster_task *task,
                       mu_error *ret_error, struct coord_set *ret_set);
void mu__coord_set_done(struct coord_set *set);

/* The slots of its tasks, in its order; the caller frees them. -MU_EINVALID names the
 * first task that is not known. */
int mu__coord_set_slots(const struct coordination *c, const struct coord_set *set,
                        mu_error *ret_error, uint32_t **ret_slots, uint32_t *ret_count);

/* ---- barrier_holds.c: successes of a former host, and younger processes ---- */

/* Whether the outcome is held back from an arrival, whose set was read. */
bool mu__coord_barrier_holds(const struct coordination *c,
                             const struct mu__barrier_arrival *arrival,
                             const struct mu__task_set *set);

/* The task has registered; or has left, for good as far as it knows. */
void mu__coord_barriers_registered(struct mu__ctx *ctx, struct coordination *c,
                                   const struct mu__roster_task *task);
void mu__coord_barriers_left(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task);

/* Whether those who wait are to be told; `looks` bounds the work of a tick. */
bool mu__coord_barrier_hold_is_over(struct coordination *c, struct mu__barrier *barrier,
                                    uint64_t now_ms, uint32_t *looks);

/* ---- barrier_outcomes.c ---- */

/* A younger process is about to be given the last outcome. */
void mu__coord_barrier_renew(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__barrier *barrier);

void mu__coord_barrier_on_dropped(void *user, const struct mu__barrier *barrier);

/* Read the outcomes of former hosts, once each time that this one leads. */
void mu__coord_barrier_read_outcomes(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_barrier_say(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           const struct barrier_answer *answer);
struct barrier_answer mu__coord_barrier_answer_of(
    const struct mu__barrier_outcome *outcome, uint64_t token);

/* What runs ends with `error`, or success; what is held, with the success that it has. */
const struct mu__barrier_outcome *mu__coord_barrier_finish(struct mu__ctx *ctx,
                                                           struct coordination *c,
                                                           struct mu__barrier *barrier,
                                                           const mu_error *error);
void mu__coord_barrier_time_out(struct mu__ctx *ctx, struct coordination *c,
                                struct mu__barrier *barrier);

/* A note on the missing tasks, to all that have arrived. */
void mu__coord_barrier_note_waiting(struct mu__ctx *ctx, struct coordination *c,
                                    struct mu__barrier *barrier, uint64_t now_ms);

/* Why a barrier cannot go on without a task. An error that the task reported itself keeps
 * its code and kind. */
void mu__coord_barrier_explain_removed(const struct mu__barrier *barrier,
                                       const struct mu__roster_task *task, bool failed,
                                       mu_error *ret_error);
struct mu__roster_task *mu__coord_barrier_find_failed(const struct coordination *c,
                                                      const struct mu__barrier *barrier);

#endif
