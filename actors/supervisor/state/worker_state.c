#include "actors/supervisor/state/worker_state.h"

#include "actors/packing.h"

enum { FIRST_SIZE = 8 };

uint32_t mu__worker_states_size_for(const struct worker_states *states, uint32_t number)
{
    uint32_t size = states->size == 0 ? FIRST_SIZE : states->size;

    while (size <= number)
        size *= 2;
    return size;
}

bool mu__worker_states_grow(struct worker_states *states, uint32_t size)
{
    return mu__grow_zeroed((void **)&states->items, &states->size, size,
                           sizeof *states->items);
}

void mu__worker_states_done(struct worker_states *states)
{
    for (uint32_t i = 0; i < states->size; i++)
        mu__free_array(states->items[i].abandoned);
    mu__free_array(states->items);
}

bool mu__abandoned_add(struct worker_state *state, const struct abandoned_attempt *was)
{
    if (!mu__grow_for_one((void **)&state->abandoned, &state->abandoned_size,
                          state->abandoned_count, sizeof *state->abandoned))
        return false;
    state->abandoned[state->abandoned_count++] = *was;
    return true;
}

struct abandoned_attempt *mu__abandoned_find(const struct worker_state *state,
                                             uint64_t closure, uint32_t attempt)
{
    for (uint32_t i = 0; i < state->abandoned_count; i++)
        if (state->abandoned[i].closure == closure &&
            state->abandoned[i].attempt == attempt)
            return &state->abandoned[i];
    return NULL;
}

struct abandoned_attempt mu__abandoned_remove(struct worker_state *state,
                                              struct abandoned_attempt *abandoned)
{
    struct abandoned_attempt was = *abandoned;

    *abandoned = state->abandoned[--state->abandoned_count];
    return was;
}
