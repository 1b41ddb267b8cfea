/* Runs of the job in the coordination service: which one is present, what belongs to it,
 * and when another begins.
 *
 * In a persistent store a run is the key "_muster/run/NUMBER", and its contents are below
 * that key. When another run begins these are deleted, with the leases and results of
 * tasks and the keys of run_directories in job_runs.c; the keys of programs stay. */
#ifndef MU_ACTORS_COORDINATION_RUNS_H
#define MU_ACTORS_COORDINATION_RUNS_H

#include "actors/coordination/internal.h"
#include "actors/coordination/store/store_run.h"

int mu__coord_runs_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_runs_done(struct coordination *c);

/* The store is held and was read: the present run goes on, or another one begins.
 * Negative, with a message: this process may not host the service. */
int mu__coord_runs_lead(struct mu__ctx *ctx, struct coordination *c, mu_error *ret_error);

/* The present run; `number` is 0 before there is one. */
const struct mu__store_run *mu__coord_run(const struct coordination *c);

/* "_muster/run/7/what". */
enum { MU__RUN_KEY_MAX = 128 };
size_t mu__coord_run_key(const struct coordination *c, const char *what,
                         char out[MU__RUN_KEY_MAX]);

/* Whether a task may register: not one that takes part in another run, or was started
 * for another. -MU_EABORTED with a message. */
int mu__coord_runs_admit(const struct coordination *c, const struct coord_peer *peer,
                         const struct mu__task_register *body, mu_error *ret_error);

/* The run that a task takes part in once it has registered; 0: none, and it may register
 * in any later one. `run`: the one it reported. A new task takes no part in a run that
 * has ended: it may have been started for the next. */
uint64_t mu__coord_runs_number_for(const struct coordination *c, uint64_t run);

void mu__coord_on_run_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_runs_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_runs_clear(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
