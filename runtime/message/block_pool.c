#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "runtime/message/block_pool.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Blocks of this size and more are mapped one by one, so that freeing one returns its
 * pages to the system. free() could leave them between others in the heap. */
enum { MAP_BYTES_MIN = 128 << 10 };

/* From this size on, pages of 2 MiB are requested: otherwise a block of 512 MiB takes
 * 131,072 page faults on the thread that writes to it first, which may be a loop's. */
enum { HUGE_BYTES_MIN = 4 << 20 };

enum {
    CLASS_NONE = MU__BLOCK_CLASSES, /* from malloc: too small, or the pool has no users */
    CLASS_LARGE                     /* mapped, and never cached */
};

/* Values of `state`, which other memory is unlikely to have. */
enum { STATE_OUT = 0x6f757421, STATE_FREE = 0x66726565 };

/* The header of a block. */
struct mu__block {
    uint32_t state;
    uint32_t block_class;
    union {
        struct mu__block *next; /* free block of the class */
        size_t bytes;           /* of CLASS_LARGE: size of the mapping */
    };
};

_Static_assert(sizeof(struct mu__block) == MU__BLOCK_HEADER_BYTES &&
                   MU__BLOCK_HEADER_BYTES % 16 == 0 && alignof(max_align_t) >= 16,
               "what follows the header is aligned to 16 bytes");
_Static_assert(MU__BLOCK_BYTES_MIN << 15 == MU__BLOCK_BYTES_MAX,
               "MU__BLOCK_CLASSES has fifteen doublings");

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

/* A zeroed atomic_flag is clear with GCC and Clang. */
struct mu__block_pool mu__blocks = {
    .bytes_max = MU__BLOCKS_CACHED_BYTES_MAX,
};

/* ---- locks ---- */

/* How often a lock is tried: about a microsecond. */
enum { LOCK_TRIES = 100 };

static bool lock_block_class(struct mu__block_class *of)
{
    for (int i = 0; i < LOCK_TRIES; i++)
        if (!atomic_flag_test_and_set_explicit(&of->lock, memory_order_acquire))
            return true;
    return false;
}

static void unlock_block_class(struct mu__block_class *of)
{
    atomic_flag_clear_explicit(&of->lock, memory_order_release);
}

/* ---- classes ---- */

/* Bytes of a block of a class, with its header: 4, 5, 6, 7 times a power of two. */
static size_t class_bytes(unsigned block_class)
{
    return (size_t)(4 + block_class % 4) * (MU__BLOCK_BYTES_MIN / 4) << block_class / 4;
}

/* The smallest class that `bytes` fit in; CLASS_NONE or CLASS_LARGE when none does. */
static unsigned class_of(size_t bytes)
{
    unsigned doubling;
    size_t step;

    if (bytes < MU__BLOCK_BYTES_MIN)
        return CLASS_NONE;
    if (bytes > MU__BLOCK_BYTES_MAX)
        return CLASS_LARGE;
    doubling = (unsigned)(63 - __builtin_clzll(bytes)) - 12;
    step = (size_t)(MU__BLOCK_BYTES_MIN / 4) << doubling;
    return doubling * 4 + (unsigned)((bytes + step - 1) / step) - 4;
}

_Static_assert(MU__BLOCK_BYTES_MIN == 1 << 12, "class_of counts from 12 bits");

/* ---- the system ---- */

static void add_to_counter(atomic_uint_fast64_t *counter, uint64_t number)
{
    (void)atomic_fetch_add_explicit(counter, number, memory_order_relaxed);
}

static uint64_t load_counter_value(atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static struct mu__block *map_block(size_t bytes)
{
    void *mapped =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mapped == MAP_FAILED)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_BYTES_MIN)
        (void)madvise(mapped, bytes, MADV_HUGEPAGE);
#endif
    return mapped;
}

static struct mu__block *allocate_block(struct mu__block_pool *pool, size_t bytes,
                                        unsigned block_class)
{
    bool is_pooled = block_class < MU__BLOCK_CLASSES;
    struct mu__block *block;

    if (is_pooled)
        bytes = class_bytes(block_class);
    block = block_class != CLASS_NONE && bytes >= MAP_BYTES_MIN ? map_block(bytes)
                                                                : malloc(bytes);
    if (block == NULL)
        return NULL;
    block->state = STATE_OUT;
    block->block_class = block_class;
    if (block_class == CLASS_LARGE)
        block->bytes = bytes;
    if (is_pooled)
        add_to_counter(&pool->allocated, 1);
    return block;
}

static void release_block(struct mu__block_pool *pool, struct mu__block *block)
{
    unsigned block_class = block->block_class;

    if (block_class < MU__BLOCK_CLASSES)
        add_to_counter(&pool->released, 1);
    if (block_class == CLASS_LARGE)
        (void)munmap(block, block->bytes);
    else if (block_class != CLASS_NONE && class_bytes(block_class) >= MAP_BYTES_MIN)
        (void)munmap(block, class_bytes(block_class));
    else
        free(block);
}

/* ---- get and put ---- */

static bool has_users(struct mu__block_pool *pool)
{
    return atomic_load_explicit(&pool->users, memory_order_relaxed) > 0;
}

static struct mu__block *take_free_block(struct mu__block_pool *pool,
                                         unsigned block_class)
{
    struct mu__block_class *of = &pool->classes[block_class];
    struct mu__block *block;

    if (!lock_block_class(of))
        return NULL;
    block = of->first;
    if (block != NULL) {
        of->first = block->next;
        of->count--;
        block->state = STATE_OUT;
    }
    if (of->count < of->unused)
        of->unused = of->count;
    unlock_block_class(of);
    if (block == NULL)
        return NULL;
    (void)atomic_fetch_sub_explicit(&pool->cached_bytes, class_bytes(block_class),
                                    memory_order_relaxed);
    add_to_counter(&pool->reused, 1);
    return block;
}

void *mu__block_pool_get(struct mu__block_pool *pool, size_t size)
{
    struct mu__block *block = NULL;
    unsigned block_class;

    if (size > PTRDIFF_MAX - sizeof *block)
        return NULL;
    size += sizeof *block;
    block_class = has_users(pool) ? class_of(size) : CLASS_NONE;
    if (block_class < MU__BLOCK_CLASSES)
        block = take_free_block(pool, block_class);
    if (block == NULL)
        block = allocate_block(pool, size, block_class);
    return block == NULL ? NULL : block + 1;
}

static void refuse_second_put(const struct mu__block *block)
{
    if (block->state == STATE_OUT)
        return;
    (void)fprintf(stderr, "muster: a block of memory is %s: %p\n",
                  block->state == STATE_FREE ? "given back twice"
                                             : "given back that has no header",
                  (const void *)(block + 1));
    abort();
}

static bool keep_free_block(struct mu__block_class *in, struct mu__block *block)
{
    if (!lock_block_class(in))
        return false;
    block->state = STATE_FREE;
    block->next = in->first;
    in->first = block;
    in->count++;
    unlock_block_class(in);
    return true;
}

/* Cache a block; false: it would exceed bytes_max, or the class is locked. */
static bool put_free(struct mu__block_pool *pool, struct mu__block *block)
{
    size_t bytes = class_bytes(block->block_class);
    uint64_t cached =
        atomic_fetch_add_explicit(&pool->cached_bytes, bytes, memory_order_relaxed);

    if (cached + bytes <= pool->bytes_max && has_users(pool) &&
        keep_free_block(&pool->classes[block->block_class], block))
        return true;
    (void)atomic_fetch_sub_explicit(&pool->cached_bytes, bytes, memory_order_relaxed);
    return false;
}

void mu__block_pool_put(struct mu__block_pool *pool, void *data)
{
    struct mu__block *block;

    if (data == NULL)
        return;
    block = (struct mu__block *)data - 1;
    refuse_second_put(block);
    if (block->block_class < MU__BLOCK_CLASSES && put_free(pool, block))
        return;
    block->state = STATE_FREE;
    release_block(pool, block);
}

/* ---- trimming ---- */

/* Cut the `count` blocks that were put first off the end of the list. */
static struct mu__block *cut_last(struct mu__block_class *of, uint32_t count)
{
    struct mu__block **link = &of->first;
    struct mu__block *cut;

    for (uint32_t i = of->count; i > count; i--)
        link = &(*link)->next;
    cut = *link;
    *link = NULL;
    of->count -= count;
    return cut;
}

static void trim_class(struct mu__block_pool *pool, unsigned block_class, bool all)
{
    struct mu__block_class *of = &pool->classes[block_class];
    struct mu__block *cut;

    if (!lock_block_class(of))
        return; /* the next trim comes soon */
    cut = cut_last(of, all ? of->count : of->unused);
    of->unused = of->count;
    unlock_block_class(of);
    while (cut != NULL) {
        struct mu__block *next = cut->next;

        (void)atomic_fetch_sub_explicit(&pool->cached_bytes, class_bytes(block_class),
                                        memory_order_relaxed);
        release_block(pool, cut);
        cut = next;
    }
}

bool mu__block_pool_trim(struct mu__block_pool *pool, uint64_t now_ms)
{
    uint_fast64_t last_ms = load_counter_value(&pool->trim_ms);

    if (now_ms - last_ms >= MU__BLOCKS_TRIM_MS &&
        atomic_compare_exchange_strong(&pool->trim_ms, &last_ms, now_ms))
        for (unsigned i = 0; i < MU__BLOCK_CLASSES; i++)
            trim_class(pool, i, false);
    return load_counter_value(&pool->cached_bytes) > 0;
}

void mu__block_pool_clear(struct mu__block_pool *pool)
{
    for (unsigned i = 0; i < MU__BLOCK_CLASSES; i++)
        trim_class(pool, i, true);
}

/* ---- users ---- */

static bool is_bypassed(const struct mu__block_pool *pool)
{
#ifdef HAS_ASAN
    return pool == &mu__blocks;
#else
    (void)pool;
    return false;
#endif
}

void mu__block_pool_join(struct mu__block_pool *pool)
{
    if (!is_bypassed(pool))
        (void)atomic_fetch_add(&pool->users, 1);
}

void mu__block_pool_leave(struct mu__block_pool *pool)
{
    if (!is_bypassed(pool) && atomic_fetch_sub(&pool->users, 1) == 1)
        mu__block_pool_clear(pool);
}

void mu__block_pool_init(struct mu__block_pool *pool, uint64_t bytes_max)
{
    *pool = (struct mu__block_pool){.bytes_max = bytes_max};
}

struct mu__block_counts mu__block_pool_counts(struct mu__block_pool *pool)
{
    return (struct mu__block_counts){
        load_counter_value(&pool->cached_bytes), load_counter_value(&pool->reused),
        load_counter_value(&pool->allocated), load_counter_value(&pool->released)};
}
