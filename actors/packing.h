/* Small helpers of actors that fill in messages: values and strings into buffers. */
#ifndef MU_ACTORS_PACKING_H
#define MU_ACTORS_PACKING_H

#include "runtime/message/codec.h"

/* A buffer that holds a packed value, as `ret_packed` views it; NULL when out of
 * memory or beyond the bounds of values. */
struct mu__buf *mu__pack_value(const mu_value *value, struct mu__packed *ret_packed);

/* The same for a message: large bytes that are the whole value stay where they are, and
 * the buffer holds the value; with `keeps_tensors` a tensor too, which nobody may write
 * to any more. Behind the tail there may be nothing. */
struct mu__buf *mu__pack_to_send(const mu_value *value, bool keeps_tensors,
                                 struct mu__packed *ret_packed);

/* The same of a value that mu__value_measure has measured, and that is as it was then:
 * the sizes stand in *packed. Tensors are not kept. */
struct mu__buf *mu__pack_measured(const mu_value *value, struct mu__packed *packed);

/* A buffer with a copy of a packed value. */
struct mu__buf *mu__pack_copy(const struct mu__packed *packed,
                              struct mu__packed *ret_packed);

/* Copy a view's bytes to `at`, let the view point there; returns behind them. */
uint8_t *mu__pack_view(uint8_t *at, struct mu__view *view);

/* Zeroes. For structs of some hundred bytes that are cleared often: to clear what it
 * knows the size of, a compiler may take a string instruction, slow to begin. */
void mu__clear(void *memory, size_t size);

/* Grow an array to `count` items of `size` bytes; false when out of memory. */
bool mu__grow_array(void **array, size_t count, size_t size);

/* Room for one item behind `count` of them: *room, in items, doubles when it is full. */
bool mu__grow_for_one(void **array, uint32_t *room, uint32_t count, size_t size);

/* To `new_count` items, if that is more than *count; the new ones are zeroed. */
bool mu__grow_zeroed(void **array, uint32_t *count, uint32_t new_count, size_t size);
void mu__free_array(void *array);

/* ---- Lists of attempts, as RECALL, RECALLED and BEGUN carry them ----
 *
 * An entry is two or three numbers of 64 bits: a closure, its attempt, and for how many
 * milliseconds that has run. */

enum { MU__ATTEMPT_BYTES = 16, MU__ATTEMPT_TIMED_BYTES = 24 };

struct mu__attempt {
    uint64_t closure;
    uint32_t attempt;
    uint64_t for_ms;        /* 0 in lists without times */
};

/* How many whole entries of `bytes` a view has. */
static inline uint32_t mu__attempts_count(struct mu__view view, uint32_t bytes)
{
    return view.size / bytes;
}

/* Entry `i` of a list whose entries have `bytes`. An attempt that no closure can have is
 * read as 0, which none has. */
struct mu__attempt mu__attempts_at(struct mu__view view, uint32_t bytes, uint32_t i);

/* Write an entry at `at`; returns where the next one goes. */
uint8_t *mu__attempts_put(uint8_t *at, uint32_t bytes, const struct mu__attempt *attempt);

#endif
