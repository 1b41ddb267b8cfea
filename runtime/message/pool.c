/* The slow paths of the message pool: malloc, and messages for other threads. */
#include "runtime/message/pool.h"

#include "runtime/message/block_pool.h"

#include <stdlib.h>

_Static_assert(sizeof(struct mu__msg) < 64, "the smallest class has room for a body");

/* Messages for other threads, by class. */
struct depot {
    atomic_flag lock; /* held for a few instructions; nobody waits for it */
    struct mu__msg *first;
    uint32_t count;
};

static struct depot depots[MU__POOL_CLASSES] = {
    {.lock = ATOMIC_FLAG_INIT}, {.lock = ATOMIC_FLAG_INIT}, {.lock = ATOMIC_FLAG_INIT},
    {.lock = ATOMIC_FLAG_INIT}, {.lock = ATOMIC_FLAG_INIT},
};

static bool try_lock(struct depot *depot)
{
    return !atomic_flag_test_and_set_explicit(&depot->lock, memory_order_acquire);
}

static void unlock_depot(struct depot *depot)
{
    atomic_flag_clear_explicit(&depot->lock, memory_order_release);
}

static void free_message_list(struct mu__msg *msg, size_t bytes)
{
    while (msg != NULL) {
        struct mu__msg *next;

        MU__UNPOISON(msg, bytes);
        next = msg->next;
        free(msg);
        msg = next;
    }
}

static void empty_depot(unsigned pool_class)
{
    struct depot *depot = &depots[pool_class];
    struct mu__msg *first;

    if (!try_lock(depot))
        return; /* in use: the end of the next pool empties it */
    first = depot->first;
    depot->first = NULL;
    depot->count = 0;
    unlock_depot(depot);
    free_message_list(first, mu__pool_class_bytes(pool_class));
}

void mu__pool_init(struct mu__pool *pool)
{
    *pool = (struct mu__pool){.live = 0};
}

void mu__pool_done(struct mu__pool *pool)
{
    for (unsigned i = 0; i < MU__POOL_CLASSES; i++) {
        free_message_list(pool->free[i], mu__pool_class_bytes(i));
        free_message_list(pool->returned[i], mu__pool_class_bytes(i));
        pool->free[i] = pool->returned[i] = NULL;
        pool->free_count[i] = pool->returned_count[i] = 0;
        empty_depot(i);
    }
}

struct mu__msg *mu__pool_get_slow(struct mu__pool *pool, uint16_t kind, size_t body_size)
{
    unsigned pool_class = mu__pool_class(body_size);
    size_t bytes = sizeof(struct mu__msg) + body_size;
    struct mu__msg *msg;

    if (pool_class < MU__POOL_CLASSES)
        bytes = mu__pool_class_bytes(pool_class);
    msg = malloc(bytes);
    if (msg == NULL)
        return NULL;
    pool->live++;
    return mu__msg_init(msg, kind, pool_class, body_size);
}

/* Move the collected messages to the depot, where other threads take them; free them when
 * the depot is full or locked. */
static void give_messages_to_depot(struct mu__pool *pool, unsigned pool_class)
{
    struct depot *depot = &depots[pool_class];
    struct mu__msg *first = pool->returned[pool_class];
    struct mu__msg *last = first;

    pool->returned[pool_class] = NULL;
    pool->returned_count[pool_class] = 0;
    if (mu__blocks_pooled() && try_lock(depot)) {
        bool has_room = depot->count < MU__POOL_RETURNED_MAX;

        if (has_room) {
            while (last->next != NULL)
                last = last->next;
            last->next = depot->first;
            depot->first = first;
            depot->count += MU__POOL_RETURNED;
        }
        unlock_depot(depot);
        if (has_room)
            return;
    }
    free_message_list(first, mu__pool_class_bytes(pool_class));
}

static void collect_free_message(struct mu__pool *pool, struct mu__msg *msg,
                                 unsigned pool_class)
{
    msg->next = pool->returned[pool_class];
    pool->returned[pool_class] = msg;
    if (++pool->returned_count[pool_class] >= MU__POOL_RETURNED)
        give_messages_to_depot(pool, pool_class);
}

void mu__pool_put_slow(struct mu__pool *pool, struct mu__msg *msg)
{
    if (msg->pool_class > MU__POOL_HEAP) {
        collect_free_message(pool, msg, msg->pool_class - MU__POOL_HEAP - 1U);
        return;
    }
    if (msg->pool_class < MU__POOL_HEAP) {
        assert(pool->live > 0);
        pool->live--;
    }
    free(msg);
}

static struct mu__msg *take_depot_messages(unsigned pool_class)
{
    struct depot *depot = &depots[pool_class];
    struct mu__msg *msg;

    if (!try_lock(depot))
        return NULL;
    msg = depot->first;
    if (msg != NULL) {
        depot->first = msg->next;
        depot->count--;
    }
    unlock_depot(depot);
    return msg;
}

struct mu__msg *mu__msg_heap(uint16_t kind, size_t body_size)
{
    unsigned pool_class = mu__pool_class(body_size);
    struct mu__msg *msg;

    if (pool_class == MU__POOL_LARGE || !mu__blocks_pooled()) {
        msg = malloc(sizeof *msg + body_size);
        return msg == NULL ? NULL : mu__msg_init(msg, kind, MU__POOL_HEAP, body_size);
    }
    msg = take_depot_messages(pool_class);
    if (msg == NULL)
        msg = malloc(mu__pool_class_bytes(pool_class));
    if (msg == NULL)
        return NULL;
    (void)mu__msg_init(msg, kind, pool_class, body_size);
    msg->pool_class = (uint16_t)(MU__POOL_HEAP + 1 + pool_class);
    return msg;
}
