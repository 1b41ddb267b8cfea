/* Changes of a task's state, and who hears of them. */
#ifndef MU_ACTORS_COORDINATION_TASK_STATES_H
#define MU_ACTORS_COORDINATION_TASK_STATES_H

#include "actors/coordination/internal.h"

/* The task fails: it is in ERROR with that error, which the other parts are told, and all
 * other tasks when it shares its fate; and its own agent, unless that knows or will. */
enum coord_failure {
    COORD_FAILED,       /* its agent is told */
    COORD_FAILED_OWN,   /* it said so itself */
    COORD_FAILED_LOST   /* it is not there; a recoverable one may come back */
};

void mu__coord_fail(struct mu__ctx *ctx, struct coordination *c,
                    struct mu__roster_task *task, const mu_error *error,
                    enum coord_failure how);

/* The same, in words that follow its name. And: it goes without a failure. */
void mu__coord_fail_with(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, int code, const char *what);
void mu__coord_disconnect(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task);

struct coord_tasks {
    mu_error notified; /* what the connected tasks were told last: another one's
                                   failure */
    uint64_t notified_count;
    uint32_t fresh;             /* tasks that registered since then, at most */
    bool gathering;             /* somebody registers with all others, and they were not
                                   all there at once since: who goes may come again */
};

static inline bool mu__coord_task_is_connected(const struct mu__roster_task *task)
{
    return task->state == MU__TASK_CONNECTED;
}

/* Whether its failures are those of all others, too. */
static inline bool mu__coord_shares_fate(const struct mu__roster_task *task)
{
    return task->coordinated && !task->recoverable;
}

/* ---- task_states.c ---- */

void mu__coord_task_notify(struct mu__ctx *ctx, struct coordination *c,
                 struct mu__roster_task *task);

/* Its state is another one now; whoever waits for it hears of that. */
void mu__coord_task_moved(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task, bool was_connected);
void mu__coord_task_move(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, enum mu__task_state state,
                         const mu_error *error);
void mu__coord_task_lose(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, const char *what);

#endif
