/* Memory of frames, packed values, tensors and pieces of variables: blocks of some KB
 * to a hundred MB that come and go thousands of times a second. Free ones are kept, by
 * size, and given out again: malloc would map, fault in and unmap each large one anew.
 *
 * Any thread may get and put, also a block of another thread's. Each size class has a
 * lock of its own, held for a few instructions. Nobody waits for one whose holder has
 * lost its processor: then the system is asked, and given the block. What is kept is
 * bounded by bytes_max. mu__block_pool_trim, called now and then, gives back what was not
 * needed since the last call, so an idle process keeps nothing.
 *
 * mu__blocks is the pool of the process, as malloc is. It keeps blocks while it has
 * users, which are the loops of the real world. Without users (in the simulator, where
 * tests make allocations fail) and with the address sanitizer every block is malloc's, so
 * that a use after free and a double free are reported as usual. */
#ifndef MU_RUNTIME_MESSAGE_BLOCK_POOL_H
#define MU_RUNTIME_MESSAGE_BLOCK_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__BLOCK_BYTES_MIN = 4 << 10,      /* smaller blocks are malloc's, */
    MU__BLOCK_BYTES_MAX = 128 << 20,    /* larger ones are mapped and never kept */
    MU__BLOCK_HEADER_BYTES = 16,        /* before each block, counted in its class */
    MU__BLOCK_CLASSES = 15 * 4 + 1,     /* four for each doubling of the size */
#ifdef MUSTER_TINY
    MU__BLOCKS_CACHED_BYTES_MAX = 256 << 10,
#else
    MU__BLOCKS_CACHED_BYTES_MAX = 512 << 20,
#endif
    MU__BLOCKS_TRIM_MS = 2000           /* between two trims */
};

struct mu__block;

struct mu__block_class {
    atomic_flag lock;
    struct mu__block *first;    /* free ones; the last that was put is the next got */
    uint32_t count;
    uint32_t unused;            /* lowest count since the last trim */
};

struct mu__block_pool {
    struct mu__block_class classes[MU__BLOCK_CLASSES];
    uint64_t bytes_max;
    atomic_uint users;          /* 0: nothing is pooled */
    atomic_uint_fast64_t cached_bytes;
    atomic_uint_fast64_t reused;        /* blocks given out again, */
    atomic_uint_fast64_t allocated;     /* got from the system, of a class of the pool, */
    atomic_uint_fast64_t released;      /* and given back to it */
    atomic_uint_fast64_t trim_ms;       /* time of the last trim */
};

struct mu__block_counts {
    uint64_t cached_bytes;
    uint64_t reused;
    uint64_t allocated;
    uint64_t released;
};

/* The pool of the process. */
extern struct mu__block_pool mu__blocks;

void mu__block_pool_init(struct mu__block_pool *pool, uint64_t bytes_max);

/* Gives back all that is kept. Blocks that are out may be put later. */
void mu__block_pool_clear(struct mu__block_pool *pool);

/* A user more, and a user less: with the last one, what is kept is given back. Nothing
 * happens to mu__blocks with the address sanitizer. */
void mu__block_pool_join(struct mu__block_pool *pool);
void mu__block_pool_leave(struct mu__block_pool *pool);

/* At least `size` bytes, aligned to 16; the content is undefined. NULL when out of
 * memory. */
void *mu__block_pool_get(struct mu__block_pool *pool, size_t size);

/* Give a block back to the pool that it is from; NULL is fine. A block that is given back
 * twice ends the process. */
void mu__block_pool_put(struct mu__block_pool *pool, void *data);

/* Give back to the system what no call needed since the last trim. Nothing happens within
 * MU__BLOCKS_TRIM_MS of the last one; `now_ms` is of one clock for all callers. Returns
 * whether anything is kept still. */
bool mu__block_pool_trim(struct mu__block_pool *pool, uint64_t now_ms);

struct mu__block_counts mu__block_pool_counts(struct mu__block_pool *pool);

static inline uint64_t mu__block_pool_cached(struct mu__block_pool *pool)
{
    return atomic_load_explicit(&pool->cached_bytes, memory_order_relaxed);
}

/* Whether the process keeps memory for later: it has loops, and no address sanitizer. */
static inline bool mu__blocks_pooled(void)
{
    return atomic_load_explicit(&mu__blocks.users, memory_order_relaxed) > 0;
}

static inline void *mu__block_get(size_t size)
{
    return mu__block_pool_get(&mu__blocks, size);
}

static inline void mu__block_put(void *data)
{
    mu__block_pool_put(&mu__blocks, data);
}

#endif
