#include "actors/supervisor/state/function_times.h"

#include "actors/packing.h"

enum {
    SURE_AFTER = 12, /* runs after which the cost is the mean */
    WEIGHT = 8       /* the mean moves by 1 / WEIGHT of a run's difference */
};

void mu__function_times_done(struct mu__function_times *times)
{
    mu__free_array(times->items);
    *times = (struct mu__function_times){0};
}

static struct mu__function_time *need_function_time(struct mu__function_times *times,
                                                    uint32_t function)
{
    if (function >= times->size &&
        !mu__grow_zeroed((void **)&times->items, &times->size, function * 2 + 16,
                         sizeof *times->items))
        return NULL;
    return &times->items[function];
}

void mu__function_times_forget(struct mu__function_times *times, uint32_t function)
{
    if (function < times->size)
        times->items[function] = (struct mu__function_time){0};
}

static uint16_t cost_of(const struct mu__function_time *time)
{
    uint32_t least_us =
        time->count < SURE_AFTER ? (uint32_t)MU__WINDOW_TIME_US >> time->count : 0;

    return mu__cost_of_us(time->mean_us > least_us ? time->mean_us : least_us);
}

void mu__function_times_change(struct mu__function_times *times, uint32_t function,
                               uint32_t ran_us)
{
    struct mu__function_time *time = need_function_time(times, function);
    int64_t weight;

    if (time == NULL)
        return;
    if (time->count < MU__TIMES_COUNT_MAX)
        time->count++;
    weight = time->count < WEIGHT ? time->count : WEIGHT;
    time->mean_us =
        (uint32_t)(time->mean_us + ((int64_t)ran_us - (int64_t)time->mean_us) / weight);
    time->cost = cost_of(time);
}
