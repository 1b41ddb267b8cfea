/* Look-ups and pushes of bags that nobody waits for: a look-up is cut into pieces by the
 * thread that begins it, and their calls follow each other on the loop. */
#include "api/tables/bags.h"

#include "api/internal.h"
#include "api/under_way.h"

#include "node/deadline.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <string.h>

/* A look-up that is under way. */
struct bags_later {
    struct mu__pending pending; /* first */
    mu_table *table;            /* held */
    uint64_t counted;
    uint64_t deadline_ns;
    mu_table_bags bags; /* copies, without ids */
    float *rows;        /* the program's */
    size_t at;          /* the piece whose call is under way */
    size_t pieces_count;
    struct mu__bags_piece *pieces;
    mu_table_done_fn done;
    void *user;
};

static void free_bags_later(struct bags_later *later)
{
    for (; later->at < later->pieces_count; later->at++)
        mu__bags_piece_finish(&later->pieces[later->at], &later->bags, -MU_ECANCELLED,
                              later->rows);
    mu__under_way_end(&later->table->bytes_under_way, later->counted);
    mu_table_close(later->table);
    free((void *)(uintptr_t)later->bags.offsets);
    free((void *)(uintptr_t)later->bags.weights);
    free(later->pieces);
    free(later);
}

static void on_piece_done(struct mu__pending *pending);

static int call_piece(struct bags_later *later)
{
    struct mu__call *call = &later->pieces[later->at].call.call;

    call->timeout_ms = mu__deadline_left_ms(later->deadline_ns);
    return mu__node_call_later(later->table->node, MU__VARIABLES, &later->pending, call,
                               on_piece_done);
}

/* On the loop. */
static void on_piece_done(struct mu__pending *pending)
{
    struct bags_later *later = (struct bags_later *)(void *)pending;
    struct mu__bags_piece *piece = &later->pieces[later->at];
    struct mu__call *call = &piece->call.call;

    if (call->code == 0)
        mu__bags_piece_finish(piece, &later->bags, 0, later->rows);
    if (call->code == 0 && ++later->at < later->pieces_count) {
        call = &later->pieces[later->at].call.call;
        call->code = call_piece(later);
        if (call->code == 0)
            return;
    }
    mu__table_report(later->table, call, later->done, later->user);
    free_bags_later(later);
}

/* False: out of memory. */
static bool copy_bags(const mu_table_bags *bags, mu_table_bags *copy)
{
    uint64_t *offsets = calloc(bags->bags, sizeof *offsets);
    float *weights =
        bags->weights == NULL ? NULL : malloc((bags->count + 1) * sizeof *weights);

    *copy = *bags;
    copy->ids = NULL;
    copy->offsets = offsets;
    copy->weights = weights;
    if (offsets == NULL || (bags->weights != NULL && weights == NULL))
        return false;
    memcpy(offsets, bags->offsets, bags->bags * sizeof *offsets);
    if (weights != NULL)
        memcpy(weights, bags->weights, bags->count * sizeof *weights);
    return true;
}

static size_t count_pieces(const mu_table_bags *bags, unsigned dim)
{
    size_t count = 0;

    for (size_t end = 0; end < bags->bags; count++)
        end = mu__bags_piece_end(bags, end, dim);
    return count;
}

static int make_pieces(struct bags_later *later, const mu_table_bags *bags)
{
    unsigned dim = mu_table_dim(later->table);
    size_t count = count_pieces(bags, dim);
    mu_table_bags lent = later->bags;
    size_t end = 0;

    lent.ids = bags->ids;
    later->pieces = calloc(count, sizeof *later->pieces);
    if (later->pieces == NULL)
        return -MU_ENOMEM;
    for (; later->pieces_count < count; later->pieces_count++) {
        struct mu__bags_piece *piece = &later->pieces[later->pieces_count];

        piece->first = end;
        piece->end = end = mu__bags_piece_end(bags, end, dim);
        if (mu__bags_piece_begin(later->table, &lent, piece) != 0)
            return -MU_ENOMEM;
    }
    return 0;
}

/* What it needs while it is under way: of an id its place, its bag and its weight, of a
 * bag its offset and its sums. */
static uint64_t bytes_of_bags(const mu_table_bags *bags, unsigned dim)
{
    return bags->count * (sizeof(uint64_t) + 3 * sizeof(uint32_t)) +
           bags->bags * (sizeof(uint64_t) + dim * sizeof(float));
}

static int prepare_bags(struct bags_later *later, const mu_table_bags *bags)
{
    int rv = mu__under_way_begin(&later->table->bytes_under_way,
                                 bytes_of_bags(bags, mu_table_dim(later->table)),
                                 &later->counted);

    if (rv == 0 && !copy_bags(bags, &later->bags))
        rv = -MU_ENOMEM;
    return rv == 0 ? make_pieces(later, bags) : rv;
}

int mu_table_lookup_bags_async(mu_table *table, const mu_table_bags *bags, float *rows,
                               int64_t timeout_ms, mu_table_done_fn done, void *user)
{
    MU__REQUIRE(NULL, table, bags, rows, done);

    struct bags_later *later;
    int rv = bags->bags == 0 ? -MU_EINVALID : mu__bags_check(bags, NULL);

    if (rv != 0)
        return rv;
    later = calloc(1, sizeof *later);
    if (later == NULL)
        return -MU_ENOMEM;
    mu__table_ref(table);
    later->table = table;
    later->deadline_ns = mu__deadline_in(timeout_ms);
    later->rows = rows;
    later->done = done;
    later->user = user;
    rv = prepare_bags(later, bags);
    if (rv == 0)
        rv = call_piece(later);
    if (rv != 0)
        free_bags_later(later);
    return rv;
}

int mu_table_apply_bags_async(mu_table *table, const mu_table_bags *bags,
                              const float *gradients, const mu_optimizer *optimizer,
                              int64_t timeout_ms, mu_table_done_fn done, void *user)
{
    MU__REQUIRE(NULL, table, bags, gradients, done);

    float *spread;
    int rv = mu__bags_check(bags, NULL);

    if (rv != 0)
        return rv;
    spread = mu__bags_spread(bags, mu_table_dim(table), gradients);
    if (spread == NULL)
        return -MU_ENOMEM;
    rv = mu_table_apply_async(table, bags->ids, spread, bags->count, optimizer,
                              timeout_ms, done, user);
    free(spread);
    return rv;
}
