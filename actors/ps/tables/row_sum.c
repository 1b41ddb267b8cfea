#include "actors/ps/tables/row_sum.h"

#include <string.h>

/* Words are added by turns to so many sums, and each of these, after each word, to a sum
 * of sums: a word counts there as often as words follow. Words are read in such pieces as
 * a rule writes them: others would wait until what was just written is in the cache. */
enum { TURNS = 8, TURN_BYTES = TURNS * 4 };

typedef uint32_t turn __attribute__((vector_size(TURN_BYTES / 2)));

struct turn_sums {
    turn sums[2];
    turn sums_of_sums[2];
};

static inline void add_turn(struct turn_sums *to, const unsigned char *from)
{
    turn words[2];

    memcpy(words, from, sizeof words);
    for (int k = 0; k < 2; k++) {
        to->sums[k] += words[k];
        to->sums_of_sums[k] += to->sums[k];
    }
}

uint64_t mu__row_sum(uint64_t begin, const unsigned char *numbers, uint32_t bytes)
{
    struct turn_sums of = {{{0}, {0}}, {{0}, {0}}};
    unsigned char rest[TURN_BYTES] = {0};
    uint32_t at = 0;

    for (; at + TURN_BYTES <= bytes; at += TURN_BYTES)
        add_turn(&of, numbers + at);
    if (at < bytes) {
        memcpy(rest, numbers + at, bytes - at);
        add_turn(&of, rest);
    }
    for (unsigned k = 0; k < TURNS; k++)
        begin = begin * UINT64_C(0x9E3779B97F4A7C15) +
                ((uint64_t)of.sums_of_sums[k / 4][k % 4] << 32 | of.sums[k / 4][k % 4]);
    return begin;
}
