/* Sets of tasks as agents name them, against the tasks that the service knows. */
#ifndef MU_ACTORS_COORDINATION_SETS_H
#define MU_ACTORS_COORDINATION_SETS_H

#include "actors/coordination/internal.h"

/* One that was read. `text` is canonical. */
struct coord_set {
    struct mu__task_set set;
    char *text;
};

/* Read it, and look whether `task` is in it. -MU_EINVALID, -MU_ERANGE, -MU_ENOMEM; with
 * words. */
int mu__coord_set_read(struct mu__view text, const struct mu__roster_task *task,
                       mu_error *ret_error, struct coord_set *ret_set);
void mu__coord_set_done(struct coord_set *set);

/* Slots of all its tasks, in its order; freed with free(). -MU_EINVALID names the first
 * one that is not known. */
int mu__coord_set_slots(const struct coordination *c, const struct coord_set *set,
                        mu_error *ret_error, uint32_t **ret_slots, uint32_t *ret_count);

#endif
