/* A set of numbers that are added nearly in order: one bit for each from `base` on, and
 * everything below `base` is in the set. Plain data. */
#ifndef MU_RUNTIME_BASE_ID_WINDOW_H
#define MU_RUNTIME_BASE_ID_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { MU__ID_WINDOW_SPAN_MAX = 1 << 23 }; /* all numbers are below base + this */

struct mu__id_window {
    uint64_t base;
    uint64_t *bits;     /* a ring; number n has bit n modulo its size */
    uint64_t bits_size; /* in bits: a power of two from 64 on, or 0 */
    uint64_t end;       /* one behind the largest number in the set, at least base */
};

/* A set of all numbers below `base`. */
void mu__id_window_init(struct mu__id_window *window, uint64_t base);
void mu__id_window_done(struct mu__id_window *window);

bool mu__id_window_has(const struct mu__id_window *window, uint64_t id);

/* 0; -MU_EEXISTS when it is in the set; -MU_EEXHAUSTED when it is SPAN_MAX or more past
 * base; -MU_ENOMEM. */
int mu__id_window_add(struct mu__id_window *window, uint64_t id);

/* Add everything below `base`. No effect when the window's base is higher already. */
void mu__id_window_raise(struct mu__id_window *window, uint64_t base);

/* Raise base over all numbers in the set that follow it without a gap; returns it. */
uint64_t mu__id_window_settle(struct mu__id_window *window);

#endif
