/* Rows of bags of ids: the servers add rows, and what the sums are divided by is computed
 * here; gradients of bags become those of their ids here. */
#include "api/tables/bags.h"

#include "api/internal.h"

#include "node/deadline.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUMS_BYTES = 256 << 10, /* of the bags that are looked up together, */
    TOGETHER_IDS = 1 << 20  /* and their ids, unless one bag has more */
};

/* ---- Bags ---- */

int mu__bags_check(const mu_table_bags *bags, mu_error *ret_error)
{
    if (bags->combiner < MU_TABLE_SUM || bags->combiner > MU_TABLE_SQRTN)
        return mu_error_set(ret_error, -MU_EINVALID, "combiner %d: expected 0 to %d",
                            bags->combiner, MU_TABLE_SQRTN);
    if (bags->count > INT32_MAX || bags->bags > INT32_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%zu ids in %zu bags: expected at most 2^31", bags->count,
                            bags->bags);
    if ((bags->count > 0 && bags->ids == NULL) ||
        (bags->bags > 0 && bags->offsets == NULL))
        return mu_error_set(ret_error, -MU_EINVALID, "bags without ids or offsets");
    if (bags->bags == 0 ? bags->count > 0 : bags->offsets[0] != 0)
        return mu_error_set(ret_error, -MU_EINVALID, "ids before the first bag");
    for (size_t i = 0; i < bags->bags; i++)
        if (bags->offsets[i] > (i + 1 < bags->bags ? bags->offsets[i + 1] : bags->count))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "offset %" PRIu64 " of bag %zu is behind the next one",
                                bags->offsets[i], i);
    return 0;
}

static size_t end_of_bag(const mu_table_bags *bags, size_t bag)
{
    return bag + 1 < bags->bags ? (size_t)bags->offsets[bag + 1] : bags->count;
}

/* What a bag's sum is multiplied by. */
static float scale_of(const mu_table_bags *bags, size_t bag)
{
    size_t first = (size_t)bags->offsets[bag];
    size_t end = end_of_bag(bags, bag);
    double sum = bags->weights == NULL ? (double)(end - first) : 0;

    if (bags->combiner == MU_TABLE_SUM)
        return 1;
    for (size_t i = first; i < end && bags->weights != NULL; i++) {
        double weight = (double)bags->weights[i];

        sum += bags->combiner == MU_TABLE_MEAN ? weight : weight * weight;
    }
    if (bags->combiner == MU_TABLE_SQRTN)
        sum = sqrt(sum);
    return sum < 0 || sum > 0 ? (float)(1 / sum) : 0;
}

/* ---- Look-ups ---- */

static void scale_rows(const mu_table_bags *bags, size_t first, size_t end, unsigned dim,
                       float *rows)
{
    for (size_t bag = first; bag < end && bags->combiner != MU_TABLE_SUM; bag++) {
        float scale = scale_of(bags, bag);

        for (unsigned i = 0; i < dim; i++)
            rows[bag * dim + i] *= scale;
    }
}

size_t mu__bags_piece_end(const mu_table_bags *bags, size_t first, unsigned dim)
{
    size_t most = SUMS_BYTES / (dim * sizeof(float));
    size_t end = first + 1;

    while (end < bags->bags && end - first < most &&
           end_of_bag(bags, end) - bags->offsets[first] <= TOGETHER_IDS)
        end++;
    return end;
}

static uint32_t *list_bags(const mu_table_bags *bags, size_t first, size_t end)
{
    size_t ids = end_of_bag(bags, end - 1) - (size_t)bags->offsets[first];
    uint32_t *bag_of = malloc((ids + 1) * sizeof *bag_of);
    size_t at = 0;

    for (size_t bag = first; bag < end && bag_of != NULL; bag++)
        for (size_t i = (size_t)bags->offsets[bag]; i < end_of_bag(bags, bag); i++)
            bag_of[at++] = (uint32_t)(bag - first);
    return bag_of;
}

int mu__bags_piece_begin(const mu_table *table, const mu_table_bags *bags,
                         struct mu__bags_piece *piece)
{
    size_t from = (size_t)bags->offsets[piece->first];
    size_t count = end_of_bag(bags, piece->end - 1) - from;
    int rv;

    piece->call = mu__table_make_call(
        table, count == 0 ? (int)MU__VARIABLE_NOTHING : (int)MU__TABLE_LOOKUP_CALL, 0);
    piece->sorted = (struct mu__sorted_ids){.count = 0};
    piece->bag_of = NULL;
    if (count == 0)
        return 0;
    piece->bag_of = list_bags(bags, piece->first, piece->end);
    rv = piece->bag_of == NULL
             ? -MU_ENOMEM
             : mu__ids_sort(bags->ids + from, (uint32_t)count, &piece->sorted);
    if (rv != 0) {
        free(piece->bag_of);
        return rv;
    }
    piece->call.ids = &piece->sorted;
    piece->call.bags.count = (uint32_t)(piece->end - piece->first);
    piece->call.bags.bag_of = piece->bag_of;
    piece->call.bags.weights = bags->weights == NULL ? NULL : bags->weights + from;
    return 0;
}

void mu__bags_piece_finish(struct mu__bags_piece *piece, const mu_table_bags *bags,
                           int code, float *rows)
{
    uint32_t dim = piece->call.dim;
    float *to = rows + piece->first * dim;

    if (code == 0 && piece->call.ids == NULL)
        memset(to, 0, (piece->end - piece->first) * dim * sizeof *to);
    else if (code == 0)
        mu__bag_sums_take(&piece->call.bags, dim, to);
    if (code == 0)
        scale_rows(bags, piece->first, piece->end, dim, rows);
    mu__bag_sums_drop(&piece->call.bags);
    mu__sorted_ids_done(&piece->sorted);
    free(piece->bag_of);
}

static int look_up_piece(const mu_table *table, const mu_table_bags *bags,
                         struct mu__bags_piece *piece, uint64_t deadline_ns, float *rows,
                         mu_error *ret_error)
{
    int rv = mu__bags_piece_begin(table, bags, piece);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: out of memory", table->name);
    piece->call.call.timeout_ms = mu__deadline_left_ms(deadline_ns);
    if (piece->call.call.operation != MU__VARIABLE_NOTHING)
        rv = mu__table_run_call(table, &piece->call, ret_error);
    mu__bags_piece_finish(piece, bags, rv, rows);
    return rv;
}

int mu_table_lookup_bags(mu_table *table, const mu_table_bags *bags, float *rows,
                         int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, bags, rows);

    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    struct mu__bags_piece piece = {.end = 0};
    int rv = mu__bags_check(bags, ret_error);

    while (piece.end < bags->bags && rv == 0) {
        piece.first = piece.end;
        piece.end = mu__bags_piece_end(bags, piece.first, mu_table_dim(table));
        rv = look_up_piece(table, bags, &piece, deadline_ns, rows, ret_error);
    }
    return rv;
}

/* ---- Pushes ---- */

float *mu__bags_spread(const mu_table_bags *bags, unsigned dim, const float *gradients)
{
    float *spread = malloc((bags->count * dim + 1) * sizeof *spread);

    for (size_t bag = 0; bag < bags->bags && spread != NULL; bag++) {
        float scale = scale_of(bags, bag);

        for (size_t i = (size_t)bags->offsets[bag]; i < end_of_bag(bags, bag); i++) {
            float factor = bags->weights == NULL ? scale : scale * bags->weights[i];

            for (unsigned k = 0; k < dim; k++)
                spread[i * dim + k] = factor * gradients[bag * dim + k];
        }
    }
    return spread;
}

int mu_table_apply_bags(mu_table *table, const mu_table_bags *bags,
                        const float *gradients, const mu_optimizer *optimizer,
                        int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, bags, gradients);

    int rv = mu__bags_check(bags, ret_error);
    float *spread;

    if (rv != 0 || bags->count == 0)
        return rv;
    spread = mu__bags_spread(bags, mu_table_dim(table), gradients);
    if (spread == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "gradients of %zu ids: out of memory",
                            bags->count);
    rv = mu_table_apply(table, bags->ids, spread, bags->count, optimizer, timeout_ms,
                        ret_error);
    free(spread);
    return rv;
}

int mu_run_table_apply_bags(mu_run *run, mu_table *table, const mu_table_bags *bags,
                            const float *gradients, const mu_optimizer *optimizer)
{
    MU__REQUIRE(NULL, run);

    mu_error error;
    float *spread;
    int rv;

    if (table == NULL || bags == NULL || gradients == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a push without table, bags or gradients");
    rv = mu__bags_check(bags, &error);
    if (rv != 0)
        return mu_run_fail(run, rv, "%s", error.message);
    if (bags->count == 0)
        return 0;
    spread = mu__bags_spread(bags, mu_table_dim(table), gradients);
    if (spread == NULL)
        return mu_run_fail(run, -MU_ENOMEM, "gradients of %zu ids: out of memory",
                           bags->count);
    rv = mu_run_table_apply(run, table, bags->ids, spread, bags->count, optimizer);
    free(spread);
    return rv;
}
