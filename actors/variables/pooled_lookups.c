/* Look-ups of sums of rows: what they ask for, and their answers. */
#include "actors/variables/table_calls.h"

#include "actors/ps/tables/pooling.h"

#include "muster/error.h"

#include <stdlib.h>
#include <string.h>

void mu__lookup_bags_put(const struct mu__lookup_bags *bags, const uint32_t *positions,
                         uint32_t count, uint8_t *to_bags, uint8_t *to_weights)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(to_bags + i * sizeof(uint32_t), &bags->bag_of[positions[i]],
               sizeof(uint32_t));
        if (bags->weights != NULL)
            memcpy(to_weights + i * sizeof(float), &bags->weights[positions[i]],
                   sizeof(float));
    }
}

static struct mu__bag_sums *first_sums(const struct mu__lookup_bags *bags)
{
    return MU__LIST_FIRST(&bags->answers, struct mu__bag_sums, node);
}

/* The first that has higher ids; NULL: none has. */
static struct mu__bag_sums *find_behind(const struct mu__lookup_bags *bags,
                                        uint32_t first)
{
    struct mu__bag_sums *at = first_sums(bags);

    while (at != NULL && at->first < first)
        at = MU__LIST_NEXT(at, struct mu__bag_sums, node);
    return at;
}

int mu__bag_sums_add(struct mu__lookup_bags *bags, uint32_t first, struct mu__view sums)
{
    struct mu__bag_sums *added = malloc(sizeof *added + sums.size);
    struct mu__bag_sums *behind = find_behind(bags, first);

    if (added == NULL)
        return -MU_ENOMEM;
    added->first = first;
    memcpy(added->sums, sums.data, sums.size);
    mu__list_insert(&bags->answers, behind == NULL ? NULL : &behind->node, &added->node);
    return 0;
}

void mu__bag_sums_take(struct mu__lookup_bags *bags, uint32_t dim, float *ret_rows)
{
    size_t numbers = (size_t)bags->count * dim;

    memset(ret_rows, 0, numbers * sizeof *ret_rows);
    for (const struct mu__bag_sums *at = first_sums(bags); at != NULL;
         at = MU__LIST_NEXT(at, struct mu__bag_sums, node))
        mu__pool_add(ret_rows, at->sums, 1, (uint32_t)numbers);
    mu__bag_sums_drop(bags);
}

void mu__bag_sums_drop(struct mu__lookup_bags *bags)
{
    struct mu__list_node *node;

    while ((node = mu__list_pop(&bags->answers)) != NULL)
        free(MU__LIST_ENTRY(node, struct mu__bag_sums, node));
}
