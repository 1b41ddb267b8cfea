/* Runs of the job, as the coordination service sees them: which one it is in, what
 * belongs to it, and when another begins.
 *
 * In a store that lasts a run is the key "_muster/run/NUMBER", and what belongs to it is
 * below that key. When another run begins all this goes, with the leases and results of
 * tasks and the keys of RUN_DIRECTORIES in runs.c; the keys of programs stay. */
#ifndef MU_ACTORS_COORDINATION_RUNS_H
#define MU_ACTORS_COORDINATION_RUNS_H

#include "actors/coordination/internal.h"
#include "actors/coordination/store/store_run.h"

int mu__coord_runs_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_runs_done(struct coordination *c);

/* It has come to hold the store, and everything was read: the present run goes on, or
 * another one begins. Negative, with a message: this process may not host the service. */
int mu__coord_runs_lead(struct mu__ctx *ctx, struct coordination *c, mu_error *ret_error);

/* The present run. `number` is 0 where nothing of it is kept. */
const struct mu__store_run *mu__coord_run(const struct coordination *c);

/* "_muster/run/7/what". */
enum { MU__RUN_KEY_MAX = 128 };
size_t mu__coord_run_key(const struct coordination *c, const char *what,
                         char out[MU__RUN_KEY_MAX]);

/* Whether a task may register that takes part in another run, or was started for one. */
int mu__coord_runs_admit(const struct coordination *c, const struct coord_peer *peer,
                         const struct mu__task_register *body, mu_error *ret_error);

/* The run that a task takes part in once it has registered; 0: none, and it may register
 * in any later. Who comes when the run has ended, perhaps for the next one, takes no part
 * in it. `run`: that it has said. */
uint64_t mu__coord_runs_number_for(const struct coordination *c, uint64_t run);

void mu__coord_on_run_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_runs_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_runs_clear(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A store that is never held. */
struct mu__store *mu__coord_no_store(void);

#endif
