#include "actors/supervisor/roles.h"

#include "actors/supervisor/actions.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Names ---- */

const char *mu__sup_role_name(const struct supervisor *s, uint32_t role)
{
    return role < s->config.types.count ? s->config.types.rows[role].name : "(unknown)";
}

struct task_text mu__sup_task_of(const struct supervisor *s, struct mu__worker_id id)
{
    struct task_text task;

    (void)snprintf(task.text, sizeof task.text, "/job:%s/task:%" PRIu32,
                   mu__sup_role_name(s, id.role), id.index);
    return task;
}

struct task_text mu__sup_task(const struct supervisor *s,
                              const struct mu__member_worker *worker)
{
    return mu__sup_task_of(s, mu__member_id(worker));
}

/* ---- The role of a closure ---- */

uint32_t mu__sup_role(const struct closure_extra *extra)
{
    return extra == NULL || extra->options.role == 0 ? MU__ROLE_ANY
                                                     : extra->options.role - 1U;
}

struct mu__worker_id mu__sup_named_worker(
    const struct supervisor *s, const struct closure_extra *extra, uint32_t index)
{
    uint32_t role = mu__sup_role(extra);

    if (role == MU__ROLE_ANY)
        role = mu__worker_types_find(&s->config.types, mu__view_str(MU__WORKER_TYPES));
    return (struct mu__worker_id){role, index};
}

static bool is_worker_permitted(const struct supervisor *s,
                                const struct closure_extra *extra,
                                const struct mu__member_worker *worker)
{
    if (extra->options.role != 0 && worker->role != extra->options.role - 1U)
        return false;
    return extra->options.not_worker != worker->index + 1 ||
           worker->role != mu__sup_named_worker(s, extra, worker->index).role;
}

/* Whether a worker is present that a closure need not avoid. */
static bool has_other_worker(const struct supervisor *s,
                             const struct closure_extra *extra)
{
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL && i != extra->avoided &&
            is_worker_permitted(s, extra, worker))
            return true;
    }
    return false;
}

bool mu__sup_role_suits(const struct supervisor *s, const struct closure_extra *extra,
                        const struct mu__member_worker *worker)
{
    return extra == NULL ||
           (is_worker_permitted(s, extra, worker) &&
            (extra->avoided != worker->number || !has_other_worker(s, extra)));
}

void mu__sup_take_role(const struct supervisor *s, struct closure_extra *extra,
                       struct mu__view type)
{
    uint32_t role = mu__worker_types_find(&s->config.types, type);

    extra->options.role = type.size == 0 ? 0 : (uint8_t)(role + 1);
}

int mu__sup_check_role(const struct supervisor *s, const struct closure_extra *extra,
                       mu_error *ret_error)
{
    const struct closure_options *options = &extra->options;
    char types[MU__WORKER_TYPES_TEXT_MAX];

    if ((options->role == 0 && options->worker == 0 && options->not_worker == 0) ||
        mu__sup_named_worker(s, extra, 0).role < s->config.types.count)
        return 0;
    mu__worker_types_text(&s->config.types, types, sizeof types);
    if (options->role != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the task type that the closure is "
                            "for runs no closures: option worker_types of the chief is "
                            "\"%s\"",
                            types);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the closure names a worker by its "
                        "index, and no task type: that means type \"worker\", and option "
                        "worker_types of the chief is \"%s\"",
                        types);
}

struct mu__view mu__sup_role_view(const struct supervisor *s,
                                  const struct closure_extra *extra)
{
    uint32_t role = mu__sup_role(extra);

    return role == MU__ROLE_ANY ? (struct mu__view){NULL, 0}
                                : mu__view_str(mu__sup_role_name(s, role));
}

/* ---- Queues ---- */

struct mu__closure *mu__sup_role_first(const struct supervisor *s, uint32_t role)
{
    for (uint32_t priority = 0; priority < MU__PRIORITIES; priority++) {
        uint32_t list = mu__list_of_role(role, priority);

        if (mu__closures_count(&s->closures, list) > 0)
            return mu__closures_first(&s->closures, list);
    }
    return NULL;
}

uint32_t mu__sup_role_queued(const struct supervisor *s, uint32_t role)
{
    uint32_t count = 0;

    for (uint32_t priority = 0; priority < MU__PRIORITIES; priority++)
        count += mu__closures_count(&s->closures, mu__list_of_role(role, priority));
    return count;
}

/* The most urgent closure in front of a role's queue, of roles that have a worker with
 * room. */
static struct mu__closure *first_of_roles(struct supervisor *s, uint32_t *ret_number)
{
    struct mu__closure *best = NULL;
    bool has_queued = false;

    for (uint32_t role = 0; role < s->config.types.count; role++) {
        struct mu__closure *closure = mu__sup_role_first(s, role);
        uint32_t number;

        has_queued = has_queued || closure != NULL;
        if (closure == NULL || (best != NULL && mu__list_priority(best->list) <=
                                                    mu__list_priority(closure->list)))
            continue;
        number = mu__membership_pick_role(&s->members, role);
        if (number != 0) {
            best = closure;
            *ret_number = number;
        }
    }
    s->roles.has_queued = has_queued;
    return best;
}

struct next_closure mu__sup_next_of_roles(struct supervisor *s)
{
    uint32_t number = 0;
    uint32_t any = mu__membership_pick(&s->members);
    struct mu__closure *common =
        any == 0 ? NULL : mu__closures_first_queued(&s->closures);
    struct mu__closure *own = first_of_roles(s, &number);
    bool takes_common = own == NULL;

    if (own != NULL && common != NULL) {
        uint32_t own_priority = mu__list_priority(own->list);
        uint32_t priority = mu__list_priority(common->list);

        takes_common = priority < own_priority;
        if (priority == own_priority) {
            takes_common = s->roles.common_is_next;
            s->roles.common_is_next = !takes_common;
        }
    }
    return takes_common ? (struct next_closure){common, any}
                        : (struct next_closure){own, number};
}

uint32_t mu__sup_waiting_lists(const struct supervisor *s)
{
    return mu__list_of_role(s->config.types.count, 0);
}

/* ---- Tasks of other types ---- */

void mu__sup_refuse_worker(struct mu__ctx *ctx, const struct supervisor *s,
                           mu__pid worker, const char *type, uint32_t index)
{
    char types[MU__WORKER_TYPES_TEXT_MAX];
    struct mu__register_refused body;

    mu__worker_types_text(&s->config.types, types, sizeof types);
    body.worker_types = mu__view_str(types);
    mu__log(ctx, MU__LOG_WARN,
            "/job:%s/task:%" PRIu32 " offers to run closures and gets "
            "none: option worker_types of this chief is \"%s\"",
            type, index, types);
    (void)mu__send_body(ctx, worker, MU__REGISTER_REFUSED, &body, sizeof body);
}
