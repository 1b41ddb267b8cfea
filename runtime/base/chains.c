#include "runtime/base/chains.h"

#include "muster/error.h"

#include <assert.h>

uint64_t mu__task_key(struct mu__view type, uint32_t index)
{
    return (uint64_t)((mu__view_hash(type) & 0x3fffffff) | 0x40000000) << 32 | index;
}

void mu__chains_done(struct mu__chains *chains)
{
    mu__map_done(&chains->first);
}

struct mu__chained *mu__chains_first(const struct mu__chains *chains, uint64_t key)
{
    return mu__map_get(&chains->first, key);
}

int mu__chains_add(struct mu__chains *chains, uint64_t key, struct mu__chained *one)
{
    struct mu__chained *first = mu__chains_first(chains, key);

    assert(one->key == 0 && key != 0);
    if (mu__map_set(&chains->first, key, one) != 0)
        return -MU_ENOMEM;
    *one = (struct mu__chained){.key = key, .next = first};
    if (first != NULL)
        first->prev = one;
    return 0;
}

void mu__chains_remove(struct mu__chains *chains, struct mu__chained *one)
{
    if (one->key == 0)
        return;
    if (one->next != NULL)
        one->next->prev = one->prev;
    if (one->prev != NULL)
        one->prev->next = one->next;
    else if (one->next != NULL)     /* takes no memory: the key is there */
        (void)mu__map_set(&chains->first, one->key, one->next);
    else
        (void)mu__map_remove(&chains->first, one->key);
    *one = (struct mu__chained){0};
}
