/* Each word from that of `base` to that of `end` - 1 has a slot in the ring; all other
 * slots are 0. Bits of numbers below `base` in the first word mean nothing. */
#include "runtime/base/id_window.h"

#include "muster/error.h"

#include <stdlib.h>

enum {
    WORD_BITS = 64,
    WORDS_RETAINED = 16 /* a ring never shrinks below this size */
};

static uint64_t count_window_words(const struct mu__id_window *window)
{
    return window->bits_size / WORD_BITS;
}

static uint64_t *word_at(const struct mu__id_window *window, uint64_t id)
{
    return &window->bits[id / WORD_BITS & (count_window_words(window) - 1)];
}

static uint64_t bit_of(uint64_t id)
{
    return UINT64_C(1) << id % WORD_BITS;
}

/* Words that have bits of the numbers from base to `end` - 1. */
static uint64_t words_needed(const struct mu__id_window *window, uint64_t end)
{
    if (end == window->base)
        return 0;
    return (end - 1) / WORD_BITS - window->base / WORD_BITS + 1;
}

static uint64_t round_up_words(uint64_t words)
{
    uint64_t power = 1;

    while (power < words)
        power *= 2;
    return power;
}

void mu__id_window_init(struct mu__id_window *window, uint64_t base)
{
    *window = (struct mu__id_window){.base = base, .end = base};
}

void mu__id_window_done(struct mu__id_window *window)
{
    free(window->bits);
    mu__id_window_init(window, window->base);
}

bool mu__id_window_has(const struct mu__id_window *window, uint64_t id)
{
    if (id < window->base)
        return true;
    return id < window->end && (*word_at(window, id) & bit_of(id)) != 0;
}

/* Move the bits to a ring of `words`, a power of two that has room for them all. */
static int resize_id_window(struct mu__id_window *window, uint64_t words)
{
    struct mu__id_window other = *window;
    uint64_t id = window->base;

    other.bits = calloc((size_t)words, sizeof *other.bits);
    if (other.bits == NULL)
        return -MU_ENOMEM;
    other.bits_size = words * WORD_BITS;
    for (uint64_t n = words_needed(window, window->end); n > 0; n--) {
        *word_at(&other, id) = *word_at(window, id);
        id += WORD_BITS;
    }
    free(window->bits);
    *window = other;
    return 0;
}

/* Give memory back when most of the ring is unused. When the smaller ring cannot be
 * allocated, the larger one stays. */
static void shrink_id_window(struct mu__id_window *window)
{
    uint64_t needed = words_needed(window, window->end);

    if (count_window_words(window) <= WORDS_RETAINED ||
        needed * 8 > count_window_words(window))
        return;
    (void)resize_id_window(window,
                           round_up_words(needed * 2 < WORDS_RETAINED ? WORDS_RETAINED
                                                                      : needed * 2));
}

int mu__id_window_add(struct mu__id_window *window, uint64_t id)
{
    if (mu__id_window_has(window, id))
        return -MU_EEXISTS;
    if (id - window->base >= MU__ID_WINDOW_SPAN_MAX || id == UINT64_MAX)
        return -MU_EEXHAUSTED;
    if (id >= window->end) {
        uint64_t needed = words_needed(window, id + 1);

        if (needed > count_window_words(window) &&
            resize_id_window(window, round_up_words(needed)) != 0)
            return -MU_ENOMEM;
        window->end = id + 1;
    }
    *word_at(window, id) |= bit_of(id);
    return 0;
}

void mu__id_window_raise(struct mu__id_window *window, uint64_t base)
{
    uint64_t words = words_needed(window, window->end);
    uint64_t below = base / WORD_BITS - window->base / WORD_BITS;

    if (base <= window->base)
        return;
    for (uint64_t i = 0; i < words && i < below; i++)
        *word_at(window, window->base + i * WORD_BITS) = 0;
    if (base >= window->end && words > below)
        *word_at(window, base) = 0;
    window->base = base;
    if (window->end < base)
        window->end = base;
    shrink_id_window(window);
}

uint64_t mu__id_window_settle(struct mu__id_window *window)
{
    uint64_t id = window->base;

    while (id < window->end) {
        uint64_t left = WORD_BITS - id % WORD_BITS;
        uint64_t gaps = ~(*word_at(window, id) >> id % WORD_BITS);
        uint64_t run = gaps == 0 ? WORD_BITS : (uint64_t)__builtin_ctzll(gaps);

        id += run;
        if (run < left)
            break;
    }
    mu__id_window_raise(window, id);
    return window->base;
}
