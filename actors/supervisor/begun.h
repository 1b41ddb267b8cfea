/* Runs that have begun, and how much longer they are expected to go on.
 *
 * A run that its worker has reported (BEGUN) is expected to take the mean of its
 * function. What is left of it counts as work that its worker has, so that the next
 * closure is sent while it still runs. One of an unknown function, or that takes much
 * longer than the mean, is lasting: its thread is not counted on, and what waits behind
 * it is recalled.
 *
 * How much is sent ahead covers the round trip to the worker and back, which is measured
 * here: the time between RUN and RESULT, or BEGUN, that the run itself did not take. The
 * least since the worker joined is believed: no wait can make it larger. */
#ifndef MU_ACTORS_SUPERVISOR_BEGUN_H
#define MU_ACTORS_SUPERVISOR_BEGUN_H

#include "actors/supervisor/internal.h"

/* What a closure in flight, or its backup attempt, adds to the load of its worker. */
static inline struct abandoned_attempt mu__sup_charge(const struct mu__closure *closure)
{
    unsigned running = closure->marks & MU__MARKS_RUNNING;

    return (struct abandoned_attempt){
        .closure = mu__closure_id(closure),
        .attempt = closure->attempt,
        .bytes = mu__closure_bytes(closure),
        .charge = {.cost_us = (uint32_t)closure->cost * MU__COST_UNIT_US,
                   .stage = running == 0                ? MU__STAGE_SENT
                            : running == MU__MARK_BEGUN ? MU__STAGE_BEGUN
                                                        : MU__STAGE_LASTING},
    };
}

struct abandoned_attempt mu__sup_backup_charge(const struct mu__closure *closure,
                                               const struct closure_extra *extra);

/* An attempt that ran for `ran_us` was answered `elapsed_ms` after it was sent. */
void mu__sup_note_round_trip(struct supervisor *s, uint32_t number, uint32_t elapsed_ms,
                             uint32_t ran_us);

/* A worker has reported these (struct mu__attempt, with times). */
void mu__sup_note_all_begun(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                            struct mu__view begun);

/* Time has passed: less is left of what runs. */
void mu__sup_review_begun(struct mu__ctx *ctx, struct supervisor *s);

#endif
