/* Ids that are several times in one push. */
#include "actors/ps/tables/table_part.h"

#include <stdlib.h>
#include <string.h>

enum { INSERTED_MAX = 32 }; /* so few are sorted by insertion */

static uint64_t pushed_id(const void *ids, uint32_t i)
{
    uint64_t id;

    memcpy(&id, (const unsigned char *)ids + (size_t)i * sizeof id, sizeof id);
    return id;
}

bool mu__table_is_sorted(const void *ids, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (pushed_id(ids, i - 1) >= pushed_id(ids, i))
            return false;
    return true;
}

static int compare_pushed(const void *a_, const void *b_)
{
    const struct mu__pushed_id *a = a_;
    const struct mu__pushed_id *b = b_;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

static void insert_pushed(struct mu__pushed_id *pushed, uint32_t i)
{
    struct mu__pushed_id last = pushed[i];

    for (; i > 0 && compare_pushed(&pushed[i - 1], &last) > 0; i--)
        pushed[i] = pushed[i - 1];
    pushed[i] = last;
}

uint32_t mu__pushed_sort(struct mu__pushed_id *pushed, uint32_t count)
{
    uint32_t different = count > 0;

    if (count > INSERTED_MAX)
        qsort(pushed, count, sizeof *pushed, compare_pushed);
    for (uint32_t i = 1; i < count && count <= INSERTED_MAX; i++)
        insert_pushed(pushed, i);
    for (uint32_t i = 1; i < count; i++)
        different += pushed[i].id != pushed[i - 1].id;
    return different;
}

static void add_gradient(unsigned char *sum, const unsigned char *gradient, uint32_t dim)
{
    for (uint32_t i = 0; i < dim; i++) {
        float a;
        float b;

        memcpy(&a, sum + i * sizeof a, sizeof a);
        memcpy(&b, gradient + i * sizeof b, sizeof b);
        a += b;
        memcpy(sum + i * sizeof a, &a, sizeof a);
    }
}

uint32_t mu__pushed_sum(const struct mu__pushed_ids *some, uint32_t different,
                        const void *gradients, uint32_t dim, void *ret_sums)
{
    const struct mu__pushed_id *pushed = some->items;
    size_t bytes = dim * sizeof(float);
    unsigned char *ids = ret_sums;
    unsigned char *sums = ids + different * sizeof(uint64_t);
    uint32_t at = 0;

    for (uint32_t i = 0; i < different; i++, sums += bytes) {
        uint64_t id = pushed[at].id;
        const unsigned char *all = gradients;

        memcpy(ids + i * sizeof id, &id, sizeof id);
        if (bytes > 0)
            memcpy(sums, all + pushed[at].position * bytes, bytes);
        for (at++; at < some->count && pushed[at].id == id; at++)
            if (bytes > 0)
                add_gradient(sums, all + pushed[at].position * bytes, dim);
    }
    return at;
}
