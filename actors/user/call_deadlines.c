#include "actors/user/call_deadlines.h"

static struct mu__list *deadline_slot(struct mu__deadlines *deadlines, uint64_t ms)
{
    return &deadlines->slots[ms % MU__DEADLINE_SLOTS];
}

void mu__deadlines_add(struct mu__deadlines *deadlines, uint64_t now_ms,
                       struct mu__deadline *deadline, uint64_t due_ms)
{
    if (deadlines->count++ == 0)
        deadlines->checked_ms = now_ms;
    deadline->due_ms = due_ms;
    mu__list_append(deadline_slot(deadlines, due_ms), &deadline->node);
}

void mu__deadlines_remove(struct mu__deadlines *deadlines, struct mu__deadline *deadline)
{
    mu__list_remove(deadline_slot(deadlines, deadline->due_ms), &deadline->node);
    deadlines->count--;
}

static struct mu__deadline *pop_from_slot(struct mu__list *slot, uint64_t now_ms)
{
    for (struct mu__deadline *d = MU__LIST_FIRST(slot, struct mu__deadline, node);
         d != NULL; d = MU__LIST_NEXT(d, struct mu__deadline, node)) {
        if (d->due_ms > now_ms)
            continue;
        mu__list_remove(slot, &d->node);
        return d;
    }
    return NULL;
}

struct mu__deadline *mu__deadlines_pop(struct mu__deadlines *deadlines, uint64_t now_ms)
{
    if (deadlines->count > 0 && now_ms >= deadlines->checked_ms + MU__DEADLINE_SLOTS)
        deadlines->checked_ms = now_ms - MU__DEADLINE_SLOTS + 1;
    while (deadlines->count > 0 && deadlines->checked_ms <= now_ms) {
        struct mu__deadline *due =
            pop_from_slot(deadline_slot(deadlines, deadlines->checked_ms), now_ms);

        if (due != NULL) {
            deadlines->count--;
            return due;
        }
        deadlines->checked_ms++;
    }
    return NULL;
}

uint64_t mu__deadlines_next_ms(const struct mu__deadlines *deadlines)
{
    uint64_t ms = deadlines->checked_ms;

    if (deadlines->count == 0)
        return UINT64_MAX;
    while (mu__list_is_empty(&deadlines->slots[ms % MU__DEADLINE_SLOTS]))
        ms++;
    return ms;
}
