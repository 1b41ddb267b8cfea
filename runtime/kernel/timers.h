/* Timers: a binary heap ordered by due time, then by the order of setting.
 *
 * Each timer owns the message that it will send, so that firing cannot fail. */
#ifndef MU_RUNTIME_TIMERS_H
#define MU_RUNTIME_TIMERS_H

#include "runtime/message/pool.h"

struct mu__timer_slot {
    uint64_t due_ms;
    uint64_t order;
    struct mu__msg *msg; /* to the timer's owner; NULL: the slot is free */
    uint32_t generation; /* of the slot; part of the timer's number */
    uint32_t heap_index; /* in a free slot: the next free slot + 1 */
};

struct mu__timers {
    struct mu__timer_slot *slots;
    uint32_t *heap; /* slots by due time */
    uint32_t count;
    uint32_t capacity;
    uint32_t capacity_max;
    uint32_t free_first; /* slot + 1; 0: none */
    uint64_t order_next;
};

void mu__timers_init(struct mu__timers *timers, uint32_t capacity_max);

/* Frees the messages of timers that did not fire. */
void mu__timers_done(struct mu__timers *timers, struct mu__pool *pool);

/* Returns the timer's number, 0 when full or out of memory (then `msg` stays the
 * caller's). Otherwise takes msg and writes the number into its body. */
uint64_t mu__timers_set(struct mu__timers *timers, uint64_t due_ms, struct mu__msg *msg);

/* Takes a timer out; returns its message, NULL when no timer has this number. */
struct mu__msg *mu__timers_cancel(struct mu__timers *timers, uint64_t timer);

/* Takes out the first timer due at `now_ms` or before and set before `order_limit`;
 * returns its message, NULL when there is none. */
struct mu__msg *mu__timers_fire(struct mu__timers *timers, uint64_t now_ms,
                                uint64_t order_limit);

/* Takes out every timer of one actor. */
void mu__timers_drop(struct mu__timers *timers, uint32_t actor, struct mu__pool *pool);

/* When the first timer is due; UINT64_MAX when there is none. */
uint64_t mu__timers_next_ms(const struct mu__timers *timers);

#endif
