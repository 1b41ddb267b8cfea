/* Chance from a seed: a counter that is mixed until its bits look unrelated. The same
 * seed gives the same sequence everywhere. */
#ifndef MU_SIM_WORLD_RANDOM_H
#define MU_SIM_WORLD_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

static inline uint64_t sim_draw(struct sim_random *random)
{
    random->state += UINT64_C(0x9E3779B97F4A7C15);
    return sim_mix(random->state);
}

/* A stream of its own for `number`, unrelated to the streams of other numbers. */
static inline struct sim_random sim_stream(uint64_t seed, uint64_t number)
{
    return (struct sim_random){sim_mix(seed) ^ sim_mix(~number)};
}

/* Both ends included. Draws nothing when there is nothing to choose. */
static inline uint64_t sim_between(struct sim_random *random, uint64_t min, uint64_t max)
{
    if (min >= max)
        return min;
    return min + sim_draw(random) % (max - min + 1);
}

static inline bool sim_chance(struct sim_random *random, unsigned percent)
{
    return percent > 0 && sim_between(random, 0, 99) < percent;
}

#endif
