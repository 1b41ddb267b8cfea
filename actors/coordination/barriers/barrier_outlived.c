#include "actors/coordination/barriers/barrier_outlived.h"

#include <assert.h>

void mu__barrier_renew(struct mu__barrier *barrier,
                       const struct mu__barrier_outcome *outcome, uint64_t revision)
{
    for (struct mu__barrier_outcome *at = barrier->outcomes; at != NULL; at = at->next)
        if (at == outcome)
            at->revision = revision;
    if (outcome->generation < barrier->read_end && barrier->read_revision < revision)
        barrier->read_revision = revision;
}

/* Whether all who have arrived named the generation before. */
static bool were_all_for_last(const struct mu__barrier *barrier)
{
    for (uint32_t i = 0; i < barrier->seats_count; i++)
        if (barrier->seats[i].arrived &&
            barrier->seats[i].awaited + 1 != barrier->generation)
            return false;
    return true;
}

const struct mu__barrier_outcome *
mu__barrier_outlived(const struct mu__barriers *barriers,
                     const struct mu__barrier *barrier, uint32_t slot, uint64_t since)
{
    const struct mu__barrier_outcome *outcome;

    if (!barrier->running || barrier->read_end != barrier->generation ||
        mu__barrier_seat(barrier, slot) == NULL)
        return NULL;
    outcome = mu__barrier_outcome(barrier, barrier->generation - 1);
    return outcome == NULL || outcome->revision < since ||
                   mu__barrier_is_quiet(barriers, outcome) || !were_all_for_last(barrier)
               ? NULL
               : outcome;
}

void mu__barriers_withdraw(struct mu__barriers *barriers, struct mu__barrier *barrier,
                           uint64_t now_ms)
{
    assert(barrier->running);
    barrier->expected = barrier->arrived = 0;
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        struct mu__barrier_seat *seat = &barrier->seats[i];

        *seat = (struct mu__barrier_seat){
            .slot = seat->slot,
            .past = (uint16_t)(seat->past >> 1),
            .over_end = seat->over_end,
        };
        barrier->expected += seat->past & 1;
    }
    (void)mu__barrier_count_begun(barriers, barrier->beginner, -1, NULL);
    barrier->running = false;
    barrier->since_ms = now_ms;
    mu__barrier_unlink(&barriers->running, barrier);
    mu__barrier_append(&barriers->over, barrier);
}
