/* Bags of ids that are looked up, piece by piece: so many bags together as a message and
 * its answer hold. */
#ifndef MU_API_TABLES_BAGS_H
#define MU_API_TABLES_BAGS_H

#include "api/tables/opened_table.h"

/* Some bags. */
struct mu__bags_piece {
    struct mu__table_call call; /* points into it; MU__VARIABLE_NOTHING: without ids */
    struct mu__sorted_ids sorted;
    uint32_t *bag_of;
    size_t first;
    size_t end;
};

/* -MU_EINVALID. */
int mu__bags_check(const mu_table_bags *bags, mu_error *ret_error);

/* The end of the piece that begins with a bag that there is. */
size_t mu__bags_piece_end(const mu_table_bags *bags, size_t first, unsigned dim);

/* Make the call for the bags of a piece, whose `first` and `end` are set, in place; of
 * `bags` only the weights are lent until its end. -MU_ENOMEM: there is nothing to
 * finish. */
int mu__bags_piece_begin(const mu_table *table, const mu_table_bags *bags,
                         struct mu__bags_piece *piece);

/* Free what it has; after `code` 0 put its rows among all, of which bags->ids are not
 * looked at. */
void mu__bags_piece_finish(struct mu__bags_piece *piece, const mu_table_bags *bags,
                           int code, float *rows);

/* The gradient of each id, which is the caller's to free; NULL: out of memory. */
float *mu__bags_spread(const mu_table_bags *bags, unsigned dim, const float *gradients);

#endif
