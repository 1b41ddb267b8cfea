/* Sets of tasks as agents name them: their canonical text and their slots. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/roster.h"

#include <inttypes.h>
#include <stdlib.h>

void mu__coord_set_done(struct coord_set *set)
{
    mu__task_set_done(&set->set);
    free(set->text);
    set->text = NULL;
}

int mu__coord_set_read(struct mu__view text, const struct mu__roster_task *task,
                       mu_error *ret_error, struct coord_set *ret_set)
{
    struct coord_set read = {.text = NULL};
    int rv = mu__task_set_parse(text, ret_error, &read.set);

    if (rv != 0)
        return rv;
    if (!mu__task_set_has(&read.set, task->type, task->index)) {
        mu__coord_set_done(&read);
        return mu_error_set(ret_error, -MU_EINVALID, "%s is not one of its tasks",
                            task->name);
    }
    read.text = mu__task_set_text(&read.set);
    if (read.text == NULL) {
        mu__coord_set_done(&read);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a set of tasks");
    }
    *ret_set = read;
    return 0;
}

static int refuse_unknown_task(mu_error *ret_error, const char *type, uint32_t index)
{
    return mu_error_set(ret_error, -MU_EINVALID,
                        "/job:%s/task:%" PRIu32 " is not known to the cluster", type,
                        index);
}

int mu__coord_set_slots(const struct coordination *c, const struct coord_set *set,
                        mu_error *ret_error, uint32_t **ret_slots, uint32_t *ret_count)
{
    uint32_t *slots = malloc(c->roster->count * sizeof *slots);
    uint32_t count = 0;

    if (slots == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a set of tasks");
    for (uint32_t i = 0; i < set->set.count; i++) {
        const struct mu__task_range *range = &set->set.ranges[i];

        for (uint32_t index = range->first; index <= range->last; index++) {
            const struct mu__roster_task *task =
                mu__roster_find(c->roster, range->type, index);

            if (task == NULL) {
                free(slots);
                return refuse_unknown_task(ret_error, range->type, index);
            }
            slots[count++] = task->slot;
        }
    }
    *ret_slots = slots;
    *ret_count = count;
    return 0;
}
