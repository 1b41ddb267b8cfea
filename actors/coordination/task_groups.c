/* Waiting requests by group (the set of tasks they wait for), by the task that made them,
 * and by deadline. */
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/task_requests.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- lists ---- */

/* Timeouts are mostly alike: a new deadline is near the end. */
static void enlist_due(struct mu__list *due, struct pending_request *pending)
{
    struct mu__list_node *before = NULL;

    for (struct mu__list_node *at = due->last; at != NULL; at = at->prev) {
        if (MU__LIST_ENTRY(at, struct pending_request, by_due)->due_ms <= pending->due_ms)
            break;
        before = at;
    }
    mu__list_insert(due, before, &pending->by_due);
}

void mu__coord_group_enlist(struct coord_requests *rs, struct pending_request *pending)
{
    mu__list_prepend(&pending->task->requests, &pending->of_task);
    mu__list_prepend(&pending->group->requests, &pending->in_group);
    enlist_due(&rs->due, pending);
    rs->count++;
    pending->task->requests_count++;
}

void mu__coord_group_unlist(struct coord_requests *rs, struct pending_request *pending)
{
    mu__list_remove(&pending->task->requests, &pending->of_task);
    mu__list_remove(&pending->group->requests, &pending->in_group);
    mu__list_remove(&rs->due, &pending->by_due);
    rs->count--;
    pending->task->requests_count--;
}

/* ---- groups ---- */

bool mu__coord_group_has(const struct group *group, const struct mu__roster_task *task)
{
    return group->guests || mu__task_set_has(&group->set, task->type, task->index);
}

mu_value *mu__coord_group_content_of(struct mu__ctx *ctx, const struct coordination *c,
                                     const struct group *group, enum mu__tasks_what what)
{
    return mu__coord_states(ctx, c, group->guests ? NULL : &group->set, what);
}

void mu__coord_group_group_free(struct group *group)
{
    if (group == NULL)
        return;
    mu__task_set_done(&group->set);
    free(group->text);
    free(group);
}

void mu__coord_group_group_drop(struct coord_requests *rs, struct group *group)
{
    if (!mu__list_is_empty(&group->requests) || group->stays)
        return;
    mu__list_remove(&rs->groups, &group->link);
    rs->groups_count--;
    if (rs->missing_group == group)
        rs->missing_group = NULL;
    mu__coord_group_group_free(group);
}

/* Count the tasks of a set; -MU_ENOTFOUND when one of them is not known. */
static int count_group(const struct mu__roster *roster, struct group *group,
                       mu_error *ret_error)
{
    for (uint32_t i = 0; i < group->set.count; i++) {
        const struct mu__task_range *range = &group->set.ranges[i];

        for (uint64_t index = range->first; index <= range->last; index++) {
            const struct mu__roster_task *task =
                mu__roster_find(roster, range->type, (uint32_t)index);

            if (task == NULL)
                return mu_error_set(ret_error, -MU_ENOTFOUND,
                                    "/job:%s/task:%" PRIu64 " is not known: it is not "
                                    "one of the coordinated jobs, and has not registered",
                                    range->type, index);
            group->total++;
            group->connected += task->state == MU__TASK_CONNECTED;
            if (task->version > group->version)
                group->version = task->version;
        }
    }
    return 0;
}

int mu__coord_group_group_new(const struct coordination *c, struct mu__view tasks,
                              bool guests, mu_error *ret_error, struct group **ret_group)
{
    struct group *group = calloc(1, sizeof *group);
    int rv = -MU_ENOMEM;

    if (group != NULL)
        group->text = malloc((size_t)tasks.size + 1);
    if (group == NULL || group->text == NULL) {
        (void)mu_error_set(ret_error, rv, "out of memory");
        mu__coord_group_group_free(group);
        return rv;
    }
    mu__view_copy(tasks, group->text, (size_t)tasks.size + 1);
    group->guests = guests;
    group->version = guests ? c->roster->version : 0;
    group->total = guests ? c->roster->count : 0;
    rv = mu__task_set_parse(tasks, ret_error, &group->set);
    if (rv == 0)
        rv = count_group(c->roster, group, ret_error);
    if (rv != 0) {
        mu__coord_group_group_free(group);
        return rv;
    }
    *ret_group = group;
    return 0;
}

static struct group *group_find(const struct coord_requests *rs, struct mu__view tasks,
                                bool guests)
{
    for (struct group *group = MU__LIST_FIRST(&rs->groups, struct group, link);
         group != NULL; group = MU__LIST_NEXT(group, struct group, link))
        if (group->guests == guests && mu__view_is(tasks, group->text))
            return group;
    return NULL;
}

int mu__coord_group_group_of(const struct coordination *c,
                             const struct coord_request *request, mu_error *ret_error,
                             struct group **ret_group)
{
    struct coord_requests *rs = c->requests;
    bool guests = request->kind == COORD_REQUEST_WATCH && request->tasks.size == 0;
    int rv;

    if (request->tasks.size == 0 && !guests) {
        *ret_group = rs->all;
        return 0;
    }
    *ret_group = group_find(rs, request->tasks, guests);
    if (*ret_group != NULL)
        return 0;
    if (rs->groups_count == GROUPS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "requests about %d sets of tasks wait already", GROUPS_MAX);
    rv = mu__coord_group_group_new(c, request->tasks, guests, ret_error, ret_group);
    if (rv != 0)
        return rv;
    mu__list_prepend(&rs->groups, &(*ret_group)->link);
    rs->groups_count++;
    return 0;
}
