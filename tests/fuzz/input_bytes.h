/* An input as choices: numbers and bytes that it is asked for one after the other. Behind
 * its end numbers go on that follow from it. */
#ifndef MU_TESTS_FUZZ_INPUT_BYTES_H
#define MU_TESTS_FUZZ_INPUT_BYTES_H

#include "runtime/base/view.h"
#include "sim/world/random.h"

struct input_bytes {
    const uint8_t *data;
    size_t size;
    struct sim_random behind;
};

static inline uint8_t take_byte(struct input_bytes *in)
{
    if (in->size == 0)
        return (uint8_t)sim_draw(&in->behind);
    in->size--;
    in->behind.state = in->behind.state * 31 + *in->data;
    return *in->data++;
}

static inline uint64_t take_number(struct input_bytes *in)
{
    uint64_t number = 0;
    unsigned count = 1U << (take_byte(in) % 4);

    for (unsigned i = 0; i < count; i++)
        number |= (uint64_t)take_byte(in) << (8 * i);
    return number;
}

/* A number as it should be, most times. */
static inline uint64_t choose(struct input_bytes *in, uint64_t usual)
{
    return take_byte(in) < 250 ? usual : take_number(in);
}

/* What was packed, changed in a few places, or the input's own bytes instead. */
static inline struct mu__view spoil(struct input_bytes *in, uint8_t *packed,
                                    uint32_t size)
{
    uint8_t how = take_byte(in);

    if (how < 200)
        return (struct mu__view){packed, size};
    for (unsigned i = 0; i < how % 4U && size > 0; i++)
        packed[take_number(in) % size] ^= take_byte(in);
    if (how > 240)
        size = (uint32_t)(take_number(in) % (size + 1));
    return (struct mu__view){packed, size};
}

#endif
