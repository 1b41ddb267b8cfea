/* Roles: the types of the tasks that run closures, by their places in option
 * worker_types. A closure for one type alone waits in a queue of that role, one for each
 * priority; of what is in front of these and of the common queues the more urgent one
 * goes first, and at the same priority each in turn. */
#ifndef MU_ACTORS_SUPERVISOR_ROLES_H
#define MU_ACTORS_SUPERVISOR_ROLES_H

#include "actors/supervisor/state/closures.h"
#include "actors/supervisor/state/membership.h"

struct mu__ctx;
struct supervisor;
struct closure_extra;

/* "/job:worker/task:1"; for one call: mu__sup_task(s, worker).text. */
struct task_text {
    char text[MU__TASK_NAME_MAX + 1];
};

struct task_text mu__sup_task(const struct supervisor *s,
                              const struct mu__member_worker *worker);
struct task_text mu__sup_task_of(const struct supervisor *s, struct mu__worker_id id);

/* The type a role stands for. */
const char *mu__sup_role_name(const struct supervisor *s, uint32_t role);

/* The role that a closure is for; MU__ROLE_ANY. `extra` may be NULL. */
uint32_t mu__sup_role(const struct closure_extra *extra);

/* The worker of a task index that a closure names: of its own role, or of type
 * "worker". */
struct mu__worker_id mu__sup_named_worker(
    const struct supervisor *s, const struct closure_extra *extra, uint32_t index);

/* Whether a worker is of the closure's role, and not the one that it avoids. `extra` may
 * be NULL. */
bool mu__sup_role_suits(const struct supervisor *s, const struct closure_extra *extra,
                        const struct mu__member_worker *worker);

/* Take over the type that a closure is for, "" for any. mu__sup_check_role: 0, or
 * -MU_EINVALID where a type that it names runs no closures. */
void mu__sup_take_role(const struct supervisor *s, struct closure_extra *extra,
                       struct mu__view type);
int mu__sup_check_role(const struct supervisor *s, const struct closure_extra *extra,
                       mu_error *ret_error);

/* The name of the type that a closure is for, "" for any. */
struct mu__view mu__sup_role_view(const struct supervisor *s,
                                  const struct closure_extra *extra);

/* The closure that is given out next, and a worker with room for it; NULL: there is
 * none. */
struct next_closure {
    struct mu__closure *closure;
    uint32_t number;
};

/* While has_queued. */
struct next_closure mu__sup_next_of_roles(struct supervisor *s);

/* The first that is queued for a role alone; NULL. */
struct mu__closure *mu__sup_role_first(const struct supervisor *s, uint32_t role);

/* How many are queued for a role alone. */
uint32_t mu__sup_role_queued(const struct supervisor *s, uint32_t role);

/* The lists before this number hold the closures that wait, except those for one worker
 * alone. */
uint32_t mu__sup_waiting_lists(const struct supervisor *s);

/* A task offered itself whose type runs no closures here: both sides log it. */
void mu__sup_refuse_worker(struct mu__ctx *ctx, const struct supervisor *s,
                           mu__pid worker, const char *type, uint32_t index);

#endif
