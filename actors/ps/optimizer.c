/* The loops run over blocks of a fixed length, copied to a local array first: so data
 * from the network need not be aligned, nothing overlaps, and the compiler, which knows
 * the number of rounds, makes vector code of them already at -O2. */
#include "actors/ps/optimizer.h"

#include "muster/value.h"
#include "runtime/base/narrow_floats.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 };

struct element_range {
    void *x;
    void *v; /* NULL: unused */
    const void *d;
    double rate;
    double momentum;
};

/* One block of `count` elements. `v` is NULL for loops without velocity. */
typedef void (*block_fn)(void *restrict x, void *restrict v, const void *restrict d,
                         size_t count, const struct element_range *range);

/* The same for a full block, of a number of elements that the compiler knows. */
#define LOOPS(type, count, statement)               \
    do {                                            \
        enum { FULL = BLOCK_BYTES / sizeof(type) }; \
                                                    \
        if ((count) == FULL)                        \
            for (size_t i = 0; i < FULL; i++)       \
                statement;                          \
        else                                        \
            for (size_t i = 0; i < (count); i++)    \
                statement;                          \
    } while (0)

/* Signed numbers add as unsigned ones, so that they wrap. */
#define ADD(name, type)                                           \
    static void add_##name(void *restrict x_, void *restrict v_,  \
                           const void *restrict d_, size_t count, \
                           const struct element_range *range)     \
    {                                                             \
        type *x = x_;                                             \
        const type *d = d_;                                       \
                                                                  \
        (void)v_;                                                 \
        (void)range;                                              \
        LOOPS(type, count, x[i] = (type)(x[i] + d[i]));           \
    }

#define LEARN(name, type)                                                         \
    static void sgd_##name(void *restrict x_, void *restrict v_,                  \
                           const void *restrict d_, size_t count,                 \
                           const struct element_range *range)                     \
    {                                                                             \
        type *x = x_;                                                             \
        const type *d = d_;                                                       \
        const type rate = (type)range->rate;                                      \
                                                                                  \
        (void)v_;                                                                 \
        LOOPS(type, count, x[i] -= rate * d[i]);                                  \
    }                                                                             \
                                                                                  \
    static void momentum_##name(void *restrict x_, void *restrict v_,             \
                                const void *restrict d_, size_t count,            \
                                const struct element_range *range)                \
    {                                                                             \
        type *x = x_;                                                             \
        type *v = v_;                                                             \
        const type *d = d_;                                                       \
        const type rate = (type)range->rate;                                      \
        const type momentum = (type)range->momentum;                              \
                                                                                  \
        LOOPS(type, count, (v[i] = momentum * v[i] + d[i], x[i] -= rate * v[i])); \
    }

static void add_f16(void *restrict x_, void *restrict v_, const void *restrict d_,
                    size_t count, const struct element_range *range)
{
    uint16_t *x = x_;
    const uint16_t *d = d_;

    (void)v_;
    (void)range;
    for (size_t i = 0; i < count; i++)
        x[i] = mu__f16_of_f32(mu__f32_of_f16(x[i]) + mu__f32_of_f16(d[i]));
}

static void add_bf16(void *restrict x_, void *restrict v_, const void *restrict d_,
                     size_t count, const struct element_range *range)
{
    uint16_t *x = x_;
    const uint16_t *d = d_;

    (void)v_;
    (void)range;
    for (size_t i = 0; i < count; i++)
        x[i] = mu__bf16_of_f32(mu__f32_of_bf16(x[i]) + mu__f32_of_bf16(d[i]));
}

ADD(f32, float)
ADD(f64, double)
ADD(i8, uint8_t)
ADD(i16, uint16_t)
ADD(i32, uint32_t)
ADD(i64, uint64_t)
LEARN(f32, float)
LEARN(f64, double)

static const struct loops {
    block_fn add;
    block_fn sgd;
    block_fn momentum;
} loops[] = {
    [MU_F32] = {add_f32, sgd_f32, momentum_f32},
    [MU_F64] = {add_f64, sgd_f64, momentum_f64},
    [MU_I8] = {add_i8, NULL, NULL},
    [MU_I16] = {add_i16, NULL, NULL},
    [MU_I32] = {add_i32, NULL, NULL},
    [MU_I64] = {add_i64, NULL, NULL},
    [MU_U8] = {add_i8, NULL, NULL},
    [MU_F16] = {add_f16, NULL, NULL},
    [MU_U16] = {add_i16, NULL, NULL},
    [MU_U32] = {add_i32, NULL, NULL},
    [MU_U64] = {add_i64, NULL, NULL},
    [MU_BF16] = {add_bf16, NULL, NULL},
};

/* The loops of a dtype; an unknown one gets the empty row of MU_DTYPE_NONE. */
static const struct loops *find_loops(int dtype)
{
    if (dtype < 0 || (size_t)dtype >= sizeof loops / sizeof loops[0])
        return &loops[MU_DTYPE_NONE];
    return &loops[dtype];
}

/* Run a loop over the whole range, block after block. */
static void run_blocks(block_fn run, size_t element_bytes,
                       const struct element_range *range, size_t bytes)
{
    _Alignas(64) uint8_t aligned[BLOCK_BYTES];
    const uint8_t *d = range->d;
    uint8_t *x = range->x;
    uint8_t *v = range->v;

    assert(run != NULL && bytes % element_bytes == 0);
    while (bytes > 0) {
        size_t size = bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES;

        memcpy(aligned, d, size);
        run(x, v, aligned, size / element_bytes, range);
        bytes -= size;
        d += size;
        x += size;
        v = v == NULL ? NULL : v + size;
    }
}

bool mu__optimizer_adds(int dtype)
{
    return find_loops(dtype)->add != NULL;
}

bool mu__optimizer_learns(int dtype)
{
    return find_loops(dtype)->sgd != NULL;
}

void mu__optimizer_add(int dtype, void *x, const void *delta, size_t bytes)
{
    run_blocks(find_loops(dtype)->add, mu_dtype_bytes(dtype),
               &(struct element_range){.x = x, .d = delta}, bytes);
}

void mu__optimizer_sgd(int dtype, void *x, const void *gradient, size_t bytes,
                       double rate)
{
    run_blocks(find_loops(dtype)->sgd, mu_dtype_bytes(dtype),
               &(struct element_range){.x = x, .d = gradient, .rate = rate}, bytes);
}

void mu__optimizer_momentum(int dtype, void *x, void *v, const void *gradient,
                            size_t bytes, const struct mu__momentum *how)
{
    struct element_range range = {
        .x = x, .v = v, .d = gradient, .rate = how->rate, .momentum = how->momentum};

    run_blocks(find_loops(dtype)->momentum, mu_dtype_bytes(dtype), &range, bytes);
}
