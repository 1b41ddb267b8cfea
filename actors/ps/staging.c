#include "actors/ps/staging.h"

#include "actors/variables/effects.h"
#include "runtime/message/block_pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct mu__staging_limits mu__staging_limits_default = {
    .bytes_max = UINT64_C(1) << 30,
    .node_bytes_max = UINT64_C(1) << 28,
    .node_batches_max = 64,
};

/* A batch's pieces are linked by `next` of their writes. */
struct piece {
    struct mu__store_write write; /* first */
    unsigned char data[];
};

struct staged_batch {
    struct mu__list_node node; /* in its node's list */
    uint64_t number;
    uint64_t origin;
    uint64_t effect;
    uint64_t bytes;
    uint64_t reported;
    uint32_t pieces;
    struct piece *first;
    struct piece *last;
};

struct mu__staged_node {
    struct mu__list_node listed; /* in the list of nodes */
    uint32_t node;
    uint32_t batches_count;
    uint64_t bytes;
    struct mu__list batches; /* the one that grew last first */
};

static struct mu__staged_node *first_node(const struct mu__staging *staging)
{
    return MU__LIST_FIRST(&staging->nodes, struct mu__staged_node, listed);
}

static struct staged_batch *first_batch(const struct mu__staged_node *from)
{
    return MU__LIST_FIRST(&from->batches, struct staged_batch, node);
}

void mu__staging_init(struct mu__staging *staging,
                      const struct mu__staging_limits *limits)
{
    *staging = (struct mu__staging){.limits = *limits};
}

/* ---- Finding: what was found moves to the front, for the next time ---- */

static void move_to_front(struct mu__list *list, struct mu__list_node *node)
{
    if (list->first == node)
        return;
    mu__list_remove(list, node);
    mu__list_prepend(list, node);
}

static struct mu__staged_node *find_staged_node(struct mu__staging *staging,
                                                uint32_t node)
{
    struct mu__staged_node *at = first_node(staging);

    while (at != NULL && at->node != node)
        at = MU__LIST_NEXT(at, struct mu__staged_node, listed);
    if (at != NULL)
        move_to_front(&staging->nodes, &at->listed);
    return at;
}

static struct staged_batch *find_batch(struct mu__staged_node *from, uint64_t number)
{
    struct staged_batch *at = from == NULL ? NULL : first_batch(from);

    while (at != NULL && at->number != number)
        at = MU__LIST_NEXT(at, struct staged_batch, node);
    if (at != NULL)
        move_to_front(&from->batches, &at->node);
    return at;
}

bool mu__staging_has_node(const struct mu__staging *staging, uint32_t node)
{
    for (const struct mu__staged_node *at = first_node(staging); at != NULL;
         at = MU__LIST_NEXT(at, struct mu__staged_node, listed))
        if (at->node == node)
            return true;
    return false;
}

/* ---- Forgetting ---- */

static void free_batch(struct mu__staging *staging, struct mu__staged_node *from,
                       struct staged_batch *batch)
{
    mu__list_remove(&from->batches, &batch->node);
    while (batch->first != NULL) {
        const struct mu__store_write *next = batch->first->write.next;

        mu__block_put(batch->first);
        batch->first = (struct piece *)(uintptr_t)next;
    }
    staging->bytes -= batch->bytes;
    if (staging->used != NULL)
        *staging->used -= batch->bytes;
    staging->batches--;
    from->bytes -= batch->bytes;
    from->batches_count--;
    free(batch);
}

static void free_if_empty(struct mu__staging *staging, struct mu__staged_node *from)
{
    if (!mu__list_is_empty(&from->batches))
        return;
    mu__list_remove(&staging->nodes, &from->listed);
    free(from);
}

void mu__staging_drop(struct mu__staging *staging, uint32_t node, uint64_t batch)
{
    struct mu__staged_node *from = find_staged_node(staging, node);
    struct staged_batch *found = find_batch(from, batch);

    if (found == NULL)
        return;
    free_batch(staging, from, found);
    free_if_empty(staging, from);
}

/* Drop a node's batches, or only those with effects of other origins than `but`. */
static void drop_batches(struct mu__staging *staging, struct mu__staged_node *from,
                         const uint64_t *but)
{
    struct staged_batch *next;

    for (struct staged_batch *at = first_batch(from); at != NULL; at = next) {
        next = MU__LIST_NEXT(at, struct staged_batch, node);
        if (but == NULL || (at->effect != 0 && at->origin != *but))
            free_batch(staging, from, at);
    }
    free_if_empty(staging, from);
}

void mu__staging_drop_node(struct mu__staging *staging, uint32_t node)
{
    struct mu__staged_node *from = find_staged_node(staging, node);

    if (from != NULL)
        drop_batches(staging, from, NULL);
}

void mu__staging_drop_others(struct mu__staging *staging, uint64_t origin)
{
    struct mu__staged_node *next;

    for (struct mu__staged_node *from = first_node(staging); from != NULL; from = next) {
        next = MU__LIST_NEXT(from, struct mu__staged_node, listed);
        drop_batches(staging, from, &origin);
    }
}

void mu__staging_done(struct mu__staging *staging)
{
    while (first_node(staging) != NULL)
        drop_batches(staging, first_node(staging), NULL);
}

/* ---- Growing ---- */

static int fail_staging_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
}

/* NULL when out of memory. */
static struct mu__staged_node *need_node(struct mu__staging *staging, uint32_t node)
{
    struct mu__staged_node *from = find_staged_node(staging, node);

    if (from != NULL)
        return from;
    from = calloc(1, sizeof *from);
    if (from == NULL)
        return NULL;
    from->node = node;
    mu__list_prepend(&staging->nodes, &from->listed);
    return from;
}

static int begin_staged_batch(struct mu__staging *staging,
                              const struct mu__staging_piece *piece, mu_error *ret_error)
{
    uint32_t node = piece->write.writer.node;
    struct mu__staged_node *from;
    struct staged_batch *batch;

    mu__staging_drop(staging, node, piece->batch);
    from = need_node(staging, node);
    if (from == NULL)
        return fail_staging_memory(ret_error);
    if (from->batches_count >= staging->limits.node_batches_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu32 " batches of one node are staged, at most "
                            "%" PRIu32,
                            from->batches_count, staging->limits.node_batches_max);
    batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        free_if_empty(staging, from);
        return fail_staging_memory(ret_error);
    }
    batch->number = piece->batch;
    batch->origin = piece->origin;
    batch->effect = piece->effect;
    mu__list_prepend(&from->batches, &batch->node);
    from->batches_count++;
    staging->batches++;
    return 0;
}

static int check_staging_room(const struct mu__staging *staging,
                              const struct mu__staged_node *from, uint64_t bytes,
                              mu_error *ret_error)
{
    uint64_t used = staging->used == NULL ? staging->bytes : *staging->used;

    if (bytes > staging->limits.node_bytes_max - from->bytes)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes of one node are staged, at most %" PRIu64,
                            from->bytes, staging->limits.node_bytes_max);
    if (bytes > staging->limits.bytes_max - used)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes are staged, at most %" PRIu64, used,
                            staging->limits.bytes_max);
    return 0;
}

static struct piece *copy_write_piece(const struct mu__store_write *write)
{
    struct piece *piece =
        mu__block_get(sizeof *piece + write->data.size + write->rule.size);

    if (piece == NULL)
        return NULL;
    piece->write = *write;
    piece->write.next = NULL;
    if (write->data.size > 0)
        memcpy(piece->data, write->data.data, write->data.size);
    if (write->rule.size > 0)
        memcpy(piece->data + write->data.size, write->rule.data, write->rule.size);
    piece->write.data.data = piece->data;
    piece->write.rule.data = piece->data + write->data.size;
    return piece;
}

static void append_piece(struct staged_batch *batch, struct piece *piece)
{
    if (batch->last == NULL)
        batch->first = piece;
    else
        batch->last->write.next = &piece->write;
    batch->last = piece;
    batch->pieces++;
}

static int grow_staged_batch(struct mu__staging *staging, struct mu__staged_node *from,
                             struct staged_batch *batch,
                             const struct mu__store_write *write, mu_error *ret_error)
{
    uint64_t bytes = mu__effect_weight(write->data.size);
    struct piece *piece;
    int rv = check_staging_room(staging, from, bytes, ret_error);

    if (rv != 0)
        return rv;
    piece = copy_write_piece(write);
    if (piece == NULL)
        return fail_staging_memory(ret_error);
    append_piece(batch, piece);
    batch->bytes += bytes;
    from->bytes += bytes;
    staging->bytes += bytes;
    if (staging->used != NULL)
        *staging->used += bytes;
    return 0;
}

int mu__staging_add(struct mu__staging *staging, const struct mu__staging_piece *piece,
                    mu_error *ret_error, struct mu__staged *ret_staged)
{
    uint32_t node = piece->write.writer.node;
    struct mu__staged_node *from;
    struct staged_batch *batch;
    int rv = piece->before == 0 ? begin_staged_batch(staging, piece, ret_error) : 0;

    if (rv != 0)
        return rv;
    from = find_staged_node(staging, node);
    batch = find_batch(from, piece->batch);
    if (batch == NULL || batch->pieces != piece->before) {
        mu__staging_drop(staging, node, piece->batch);
        return mu_error_set(ret_error, -MU_EABORTED,
                            "piece %" PRIu32 " of a batch follows none", piece->before);
    }
    rv = grow_staged_batch(staging, from, batch, &piece->write, ret_error);
    if (rv != 0) {
        mu__staging_drop(staging, node, piece->batch);
        return rv;
    }
    *ret_staged = (struct mu__staged){&batch->first->write, batch->bytes,
                                      batch->bytes - batch->reported};
    return 0;
}

void mu__staging_reported(struct mu__staging *staging, uint32_t node, uint64_t batch)
{
    struct staged_batch *found = find_batch(find_staged_node(staging, node), batch);

    if (found != NULL)
        found->reported = found->bytes;
}
