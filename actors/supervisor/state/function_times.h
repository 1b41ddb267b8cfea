/* How long functions run, by the supervisor's number for their name: for windows and for
 * stragglers. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_FUNCTION_TIMES_H
#define MU_ACTORS_SUPERVISOR_FUNCTION_TIMES_H

#include <stddef.h>
#include <stdint.h>

enum {
    MU__WINDOW_TIME_US = 4000, /* work that each thread of a worker may have ahead */
    MU__COST_UNIT_US = 16,
    MU__COST_UNKNOWN = UINT16_MAX, /* of these units: about a second */
    MU__TIMES_COUNT_MAX = 100
};

struct mu__function_time {
    uint32_t count;   /* runs that were noted; stays at 100 */
    uint32_t mean_us; /* the last ones count most */
    uint16_t cost;    /* what the next one is taken to cost */
};

struct mu__function_times {
    struct mu__function_time *items;
    uint32_t size;
};

/* Zeroed memory is empty. */
void mu__function_times_done(struct mu__function_times *times);

/* The slow way of mu__function_times_note: the count or the mean changes. */
void mu__function_times_change(struct mu__function_times *times, uint32_t function,
                               uint32_t ran_us);

/* The number now stands for another function. */
void mu__function_times_forget(struct mu__function_times *times, uint32_t function);

/* NULL: no run was noted. */
static inline const struct mu__function_time *mu__function_times_find(
    const struct mu__function_times *times, uint32_t function)
{
    return function < times->size && times->items[function].count > 0
               ? &times->items[function]
               : NULL;
}

/* A time as a cost: in units of MU__COST_UNIT_US, at most MU__COST_UNKNOWN. */
static inline uint16_t mu__cost_of_us(uint64_t us)
{
    uint64_t cost = us / MU__COST_UNIT_US;

    return cost < MU__COST_UNKNOWN ? (uint16_t)cost : MU__COST_UNKNOWN;
}

/* What a run of it is taken to cost a worker: its mean, but at first more, so that what
 * is given ahead of an unknown function grows twofold with each result. */
static inline uint16_t mu__function_times_cost(const struct mu__function_times *times,
                                               uint32_t function)
{
    const struct mu__function_time *time = mu__function_times_find(times, function);

    return time == NULL ? MU__COST_UNKNOWN : time->cost;
}

/* A run of a function took so long. Out of memory: it is not noted. */
static inline void mu__function_times_note(struct mu__function_times *times,
                                           uint32_t function, uint32_t ran_us)
{
    if (function >= times->size || times->items[function].count < MU__TIMES_COUNT_MAX ||
        times->items[function].mean_us != ran_us)
        mu__function_times_change(times, function, ran_us);
}

#endif
