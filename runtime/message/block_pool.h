/* Memory of frames, packed values, tensors and pieces of variables: blocks of some KB
 * to a hundred MB that come and go thousands of times a second. Free blocks are cached by
 * size and reused: malloc would map, fault in and unmap each large one anew.
 *
 * Any thread may get and put, also a block of another thread's. Each size class has a
 * lock of its own, held for a few instructions. A thread does not wait for a lock whose
 * holder was preempted, but allocates from the system or frees to it. The cache is
 * bounded by bytes_max. mu__block_pool_trim, called now and then, frees what was not
 * needed since the last call, so an idle process caches nothing.
 *
 * mu__blocks is the pool of the process. It caches blocks while it has users, which are
 * the event loops. Without users (in the simulator, where tests make allocations fail)
 * and with the address sanitizer every block comes from malloc, so that a use after free
 * and a double free are reported as usual. */
#ifndef MU_RUNTIME_MESSAGE_BLOCK_POOL_H
#define MU_RUNTIME_MESSAGE_BLOCK_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__BLOCK_BYTES_MIN = 4 << 10,   /* smaller blocks come from malloc, */
    MU__BLOCK_BYTES_MAX = 128 << 20, /* larger ones are mapped and never cached */
    MU__BLOCK_HEADER_BYTES = 16,     /* before each block, counted in its class */
    MU__BLOCK_CLASSES = 15 * 4 + 1,  /* four for each doubling of the size */
#ifdef MUSTER_TINY
    MU__BLOCKS_CACHED_BYTES_MAX = 256 << 10,
#else
    MU__BLOCKS_CACHED_BYTES_MAX = 512 << 20,
#endif
    MU__BLOCKS_TRIM_MS = 2000 /* between two trims */
};

struct mu__block;

struct mu__block_class {
    atomic_flag lock;
    struct mu__block *first; /* free blocks, last in first out */
    uint32_t count;          /* of the free blocks */
    uint32_t unused;         /* lowest count since the last trim */
};

struct mu__block_pool {
    struct mu__block_class classes[MU__BLOCK_CLASSES];
    uint64_t bytes_max;
    atomic_uint users; /* 0: nothing is pooled */
    atomic_uint_fast64_t cached_bytes;
    atomic_uint_fast64_t reused;    /* blocks of size classes: from the cache, */
    atomic_uint_fast64_t allocated; /* allocated from the system, */
    atomic_uint_fast64_t released;  /* and freed to it */
    atomic_uint_fast64_t trim_ms;   /* time of the last trim */
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

/* Free all cached blocks. Blocks in use may be put later. */
void mu__block_pool_clear(struct mu__block_pool *pool);

/* Add and remove a user; without users nothing is cached. No effect on mu__blocks with
 * the address sanitizer. */
void mu__block_pool_join(struct mu__block_pool *pool);
void mu__block_pool_leave(struct mu__block_pool *pool);

/* At least `size` bytes, aligned to 16; the content is undefined. NULL when out of
 * memory. */
void *mu__block_pool_get(struct mu__block_pool *pool, size_t size);

/* Give a block back to the pool that it is from; NULL is fine. A block that is given back
 * twice ends the process. */
void mu__block_pool_put(struct mu__block_pool *pool, void *data);

/* Free the cached blocks that no call needed since the last trim. No effect within
 * MU__BLOCKS_TRIM_MS of the last one; all callers take `now_ms` from the same clock.
 * Returns whether anything is still cached. */
bool mu__block_pool_trim(struct mu__block_pool *pool, uint64_t now_ms);

struct mu__block_counts mu__block_pool_counts(struct mu__block_pool *pool);

static inline uint64_t mu__block_pool_cached(struct mu__block_pool *pool)
{
    return atomic_load_explicit(&pool->cached_bytes, memory_order_relaxed);
}

/* Whether the process caches memory: it has event loops, and no address sanitizer. */
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
