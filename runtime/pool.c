/* The slow halves of the message pool: everything that talks to malloc. */
#include "runtime/pool.h"

#include <stdlib.h>

_Static_assert(sizeof(struct mu__msg) < 64, "the smallest class has room for a body");

void mu__pool_init(struct mu__pool *pool)
{
    *pool = (struct mu__pool){.live = 0};
}

void mu__pool_done(struct mu__pool *pool)
{
    for (unsigned i = 0; i < MU__POOL_CLASSES; i++) {
        while (pool->free[i] != NULL) {
            struct mu__msg *msg = pool->free[i];

            MU__UNPOISON(msg, mu__pool_class_bytes(i));
            pool->free[i] = msg->next;
            free(msg);
        }
        pool->free_count[i] = 0;
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

void mu__pool_put_slow(struct mu__pool *pool, struct mu__msg *msg)
{
    if (msg->pool_class != MU__POOL_HEAP) {
        assert(pool->live > 0);
        pool->live--;
    }
    free(msg);
}

struct mu__msg *mu__msg_heap(uint16_t kind, size_t body_size)
{
    struct mu__msg *msg = malloc(sizeof *msg + body_size);

    if (msg == NULL)
        return NULL;
    return mu__msg_init(msg, kind, MU__POOL_HEAP, body_size);
}
