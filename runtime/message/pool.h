/* Message memory: free lists by size.
 *
 * A pool belongs to one kernel and is used on its loop thread only. Its free lists are
 * bounded by MU__POOL_KEEP_MAX per size.
 *
 * Other threads make messages with mu__msg_heap(), and the loop frees them, which is the
 * slowest case of malloc. While the process has event loops (see mu__blocks), small ones
 * are reused instead: a pool collects those that it frees and moves them, in batches, to
 * a list of the process, from which mu__msg_heap() takes.
 *
 * Under the address sanitizer a message in a free list is poisoned, so that using it
 * after it was put back is reported as if it had gone to free(). */
#ifndef MU_RUNTIME_POOL_H
#define MU_RUNTIME_POOL_H

#include "runtime/message/message.h"

#include <assert.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define MU__POOL_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MU__POOL_POISONS 1
#endif
#endif

#ifdef MU__POOL_POISONS
#include <sanitizer/asan_interface.h>
#define MU__POISON(data, size) ASAN_POISON_MEMORY_REGION(data, size)
#define MU__UNPOISON(data, size) ASAN_UNPOISON_MEMORY_REGION(data, size)
#else
#define MU__POISON(data, size) ((void)(data), (void)(size))
#define MU__UNPOISON(data, size) ((void)(data), (void)(size))
#endif

enum {
    MU__POOL_CLASSES = 5,   /* whole messages of 64, 128, 192, 256, 512 bytes */
    MU__POOL_LARGE = 5,     /* the class of larger ones: malloc, but counted live */
    MU__POOL_HEAP = 6,      /* of mu__msg_heap(), not counted as live: this class for
                               large ones, the next ones for the sizes above */
    MU__POOL_RETURNED = 32, /* messages moved to the process's list at a time, */
    MU__POOL_RETURNED_MAX = 1 << 14, /* and most in that list, per size */
#ifdef MUSTER_TINY
    MU__POOL_KEEP_MAX = 4
#else
    MU__POOL_KEEP_MAX = 1 << 16
#endif
};

struct mu__pool {
    struct mu__msg *free[MU__POOL_CLASSES];
    uint32_t free_count[MU__POOL_CLASSES];
    struct mu__msg *returned[MU__POOL_CLASSES]; /* freed ones of mu__msg_heap() */
    uint32_t returned_count[MU__POOL_CLASSES];
    uint64_t live; /* messages handed out and not freed */
};

void mu__pool_init(struct mu__pool *pool);

/* Frees the free lists, and the process's lists for other threads. Messages in use stay
 * valid. */
void mu__pool_done(struct mu__pool *pool);

/* The same as mu__pool_get for any thread, without a pool. */
struct mu__msg *mu__msg_heap(uint16_t kind, size_t body_size);

/* The slow paths of mu__pool_get and mu__pool_put: empty lists, full lists, large
 * messages, and messages of other threads. */
struct mu__msg *mu__pool_get_slow(struct mu__pool *pool, uint16_t kind, size_t body_size);
void mu__pool_put_slow(struct mu__pool *pool, struct mu__msg *msg);

/* Bytes of a whole message of a class of the free lists. */
static inline size_t mu__pool_class_bytes(unsigned pool_class)
{
    return pool_class < 4 ? ((size_t)pool_class + 1) * 64 : 512;
}

static inline unsigned mu__pool_class(size_t body_size)
{
    size_t bytes = sizeof(struct mu__msg) + body_size;

    if (bytes <= 256)
        return (unsigned)((bytes - 1) / 64);
    return bytes <= 512 ? 4 : MU__POOL_LARGE;
}

/* Clears one of the three small classes whole, a cache line at a time: for these constant
 * sizes the compiler emits a few stores, for larger or variable ones a call or a string
 * instruction, which is slow to start. */
static inline void mu__pool_clear(unsigned char *body, unsigned pool_class)
{
    memset(body, 0, 64 - sizeof(struct mu__msg));
    if (pool_class > 0)
        memset(body + 64 - sizeof(struct mu__msg), 0, 64);
    if (pool_class > 1)
        memset(body + 128 - sizeof(struct mu__msg), 0, 64);
}

static inline struct mu__msg *mu__msg_init(struct mu__msg *msg, uint16_t kind,
                                           unsigned pool_class, size_t body_size)
{
    *msg = (struct mu__msg){.kind = kind, .pool_class = (uint16_t)pool_class};
    if (pool_class <= 2)
        mu__pool_clear(msg->body, pool_class);
    else
        memset(msg->body, 0, body_size);
    return msg;
}

/* A message with a zeroed body of at least `body_size` bytes; NULL when out of memory. */
static inline struct mu__msg *mu__pool_get(struct mu__pool *pool, uint16_t kind,
                                           size_t body_size)
{
    unsigned pool_class = mu__pool_class(body_size);
    struct mu__msg *msg;

    if (pool_class >= MU__POOL_CLASSES || pool->free[pool_class] == NULL)
        return mu__pool_get_slow(pool, kind, body_size);

    msg = pool->free[pool_class];
    MU__UNPOISON(msg, mu__pool_class_bytes(pool_class));
    pool->free[pool_class] = msg->next;
    pool->free_count[pool_class]--;
    pool->live++;
    return mu__msg_init(msg, kind, pool_class, body_size);
}

/* Free a message and drop its backing; NULL is fine. Loop thread only. */
static inline void mu__pool_put(struct mu__pool *pool, struct mu__msg *msg)
{
    unsigned pool_class;

    if (msg == NULL)
        return;
    mu__buf_unref(msg->backing);
    pool_class = msg->pool_class;
    if (pool_class >= MU__POOL_CLASSES ||
        pool->free_count[pool_class] >= MU__POOL_KEEP_MAX) {
        mu__pool_put_slow(pool, msg);
        return;
    }

    assert(pool->live > 0);
    pool->live--;
    msg->next = pool->free[pool_class];
    pool->free[pool_class] = msg;
    pool->free_count[pool_class]++;
    MU__POISON(msg, mu__pool_class_bytes(pool_class));
}

#endif
