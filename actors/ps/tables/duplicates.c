/* Ids that are several times in one push. */
#include "actors/ps/tables/table_part.h"

#include <stdlib.h>
#include <string.h>

struct pushed {
    uint64_t id;
    uint32_t position;
};

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
    const struct pushed *a = a_;
    const struct pushed *b = b_;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
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

int mu__table_sum_duplicates(const void *ids, const void *gradients, uint32_t count,
                             uint32_t dim, void *ret_ids, void *ret_gradients,
                             uint32_t *ret_count)
{
    size_t bytes = dim * sizeof(float);
    struct pushed *sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    unsigned char *to_ids = ret_ids;
    unsigned char *to = ret_gradients;
    uint32_t found = 0;

    if (sorted == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = (struct pushed){pushed_id(ids, i), i};
    qsort(sorted, count, sizeof *sorted, compare_pushed);
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *gradient =
            (const unsigned char *)gradients + sorted[i].position * bytes;

        if (i > 0 && sorted[i].id == sorted[i - 1].id) {
            add_gradient(to + (found - 1) * bytes, gradient, dim);
            continue;
        }
        memcpy(to_ids + found * sizeof sorted[i].id, &sorted[i].id, sizeof sorted[i].id);
        memcpy(to + found * bytes, gradient, bytes);
        found++;
    }
    free(sorted);
    *ret_count = found;
    return 0;
}
