/* Small helpers of actors that fill in messages: values and strings into buffers. */
#ifndef MU_ACTORS_PACKING_H
#define MU_ACTORS_PACKING_H

#include "runtime/message/codec.h"

/* A buffer that holds a packed value, as `ret_packed` views it; NULL when out of
 * memory or beyond the bounds of values. */
struct mu__buf *mu__pack_value(const mu_value *value, struct mu__packed *ret_packed);

/* The same for a message, of at most MU__VALUE_BYTES_MAX. A value that is nothing but
 * large bytes is not copied: the buffer has a reference to it. With `keeps_tensors` nor
 * is a tensor, which must not be written to any more. The padding behind the tail may be
 * missing. */
struct mu__buf *mu__pack_to_send(const mu_value *value, bool keeps_tensors,
                                 struct mu__packed *ret_packed);

/* The same for a value that mu__value_measure has measured, and that has not changed:
 * *packed has the sizes. Tensors are copied. */
struct mu__buf *mu__pack_measured(const mu_value *value, struct mu__packed *packed);

/* A buffer with a copy of a packed value. */
struct mu__buf *mu__pack_copy(const struct mu__packed *packed,
                              struct mu__packed *ret_packed);

/* Copy a view's bytes to `at` and let the view point there. Returns the address behind
 * them. */
uint8_t *mu__pack_view(uint8_t *at, struct mu__view *view);

/* A buffer with copies of two views, which point there from now on. NULL: out of memory;
 * the views stay as they were. */
struct mu__buf *mu__pack_two(struct mu__view *first, struct mu__view *second);

/* memset to zero, for structs of some hundred bytes that are cleared often: for a size
 * known at compile time compilers may use a string instruction, which starts slowly. */
void mu__clear(void *memory, size_t size);

/* Grow an array to `count` items of `size` bytes; false when out of memory. */
bool mu__grow_array(void **array, size_t count, size_t size);

/* Make room for one more than `count` items: the capacity *room, in items, doubles when
 * it is reached. */
bool mu__grow_for_one(void **array, uint32_t *room, uint32_t count, size_t size);

/* Grow to `new_count` items, if that is more than *count; the new ones are zeroed. */
bool mu__grow_zeroed(void **array, uint32_t *count, uint32_t new_count, size_t size);
void mu__free_array(void *array);

/* ---- Lists of attempts in RECALL, RECALLED and BEGUN ----
 *
 * An entry is two or three numbers of 64 bits: closure, attempt, and how many
 * milliseconds the attempt has run. */

enum { MU__ATTEMPT_BYTES = 16, MU__ATTEMPT_TIMED_BYTES = 24 };

struct mu__attempt {
    uint64_t closure;
    uint32_t attempt;
    uint64_t for_ms; /* how long it has run; 0 in lists without times */
};

/* The number of whole entries, of `bytes` each, in a view. */
static inline uint32_t mu__attempts_count(struct mu__view view, uint32_t bytes)
{
    return view.size / bytes;
}

/* Entry `i`. An attempt that does not fit 32 bits is read as 0, which no closure has. */
struct mu__attempt mu__attempts_at(struct mu__view view, uint32_t bytes, uint32_t i);

/* Write an entry at `at`; returns the address behind it. */
uint8_t *mu__attempts_put(uint8_t *at, uint32_t bytes, const struct mu__attempt *attempt);

#endif
