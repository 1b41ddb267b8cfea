/* A notation for what happens to a barrier. */
#ifndef MU_TESTS_BARRIER_NOTATION_H
#define MU_TESTS_BARRIER_NOTATION_H

#include "actors/coordination/barriers/barrier_table.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum { SEEDS = 300, STEPS = 400, SLOTS = 6, NAMES = 3 };

struct player {
    uint64_t incarnation;
    uint64_t token;
    uint64_t generation;
};

struct game {
    struct mu__barriers barriers;
    struct player players[SLOTS];
    uint32_t slots[SLOTS];
    uint32_t count; /* slots that take part */
    bool recoverable;
    bool anew;
    uint64_t now_ms;
    uint64_t incarnation;
};

static const struct mu__view name = {.data = "sync", .size = 4};

static inline struct mu__barrier *running(const struct game *game)
{
    return mu__barriers_find(&game->barriers, name);
}

static inline const char *arrived(struct game *game, uint32_t slot, const char *set,
                                  uint64_t generation)
{
    const struct mu__barrier_arrival arrival = {
        .name = name,
        .generation = generation,
        .set = set,
        .of_all = strcmp(set, "all") == 0,
        .all = "all",
        .slot = slot,
        .recoverable = game->recoverable,
        .anew = game->anew,
        .incarnation = game->players[slot].incarnation,
        .token = game->players[slot].token,
    };
    const struct mu__barrier_outcome *outcome = NULL;
    struct mu__barrier *barrier;
    uint64_t replaced = 0;
    enum mu__arrived how =
        mu__barriers_arrive(&game->barriers, &arrival, &outcome, &replaced);

    if (how == MU__ARRIVED_FIRST) {
        if (mu__barriers_begin(&game->barriers, &arrival, game->slots, game->count, 0,
                               game->now_ms, NULL, &barrier) != 0)
            return "f";
        how = mu__barriers_arrive(&game->barriers, &arrival, &outcome, &replaced);
    }
    if (how == MU__ARRIVED_LAST) {
        (void)mu__barriers_end(&game->barriers, running(game), NULL, 0, game->now_ms);
        return "ok";
    }
    if (how == MU__ARRIVED_AGAIN)
        return outcome->code == 0 ? "a" : "ax";
    if (how == MU__ARRIVED_WAITS)
        return replaced != 0 ? "r" : "w";
    if (how == MU__ARRIVED_DIFFERENT)
        return "other";
    return how == MU__ARRIVED_SLOW ? "slow" : "quick";
}

#endif
