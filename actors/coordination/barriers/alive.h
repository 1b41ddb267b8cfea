/* Rounds of requests for the tasks that are alive: each connected member of a set makes
 * one, and all get the same list once the last has. */
#ifndef MU_ACTORS_COORDINATION_ALIVE_H
#define MU_ACTORS_COORDINATION_ALIVE_H

#include "actors/coordination/internal.h"

/* Bounds; beyond them a request is answered with -MU_EEXHAUSTED. */
#ifdef MUSTER_TINY
enum { MU__ALIVE_ROUNDS_MAX = 4, MU__ALIVE_REQUESTS_MAX = 64 };
enum { MU__ALIVE_OF_TASK_MAX = 16 };
#else
enum { MU__ALIVE_ROUNDS_MAX = 1024, MU__ALIVE_REQUESTS_MAX = 1 << 16 };
enum { MU__ALIVE_OF_TASK_MAX = 1 << 10 }; /* of one task in one round */
#endif

struct coord_alive;

/* NULL: out of memory. */
struct coord_alive *mu__coord_alive_new(void);
void mu__coord_alive_free(struct coord_alive *alive);

/* Forget all without answers: the requests will be repeated. */
void mu__coord_alive_forget(struct coord_alive *alive);

/* `get->tasks` is not empty. */
void mu__coord_alive_request(struct mu__ctx *ctx, struct coordination *c,
                             struct coord_alive *alive, struct mu__roster_task *task,
                             const struct mu__tasks_get *get);

/* A task is not CONNECTED any more; a task has become CONNECTED. */
void mu__coord_alive_left(struct mu__ctx *ctx, struct coordination *c,
                          struct coord_alive *alive, const struct mu__roster_task *task);
void mu__coord_alive_joined(struct coord_alive *alive,
                            const struct mu__roster_task *task);

void mu__coord_alive_tick(struct mu__ctx *ctx, struct coordination *c,
                          struct coord_alive *alive);
uint64_t mu__coord_alive_due_ms(const struct coord_alive *alive);

#endif
