#include "actors/ps/staging.h"

#include "actors/effects/effects.h"
#include "runtime/message/block_pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct mu__staging_limits mu__staging_limits_default = {
    .bytes_max = UINT64_C(1) << 30,
    .node_bytes_max = UINT64_C(1) << 28,
    .node_batches_max = 64,
};

struct piece {
    struct mu__store_write write;   /* first: writes are linked by it */
    struct piece *next;             /* the same as write.next */
    unsigned char data[];
};

struct staged_batch {
    struct staged_batch *next;
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
    struct mu__staged_node *next;
    uint32_t node;
    uint32_t batches_count;
    uint64_t bytes;
    struct staged_batch *batches;          /* the one that grew last first */
};

void mu__staging_init(struct mu__staging *staging,
                      const struct mu__staging_limits *limits)
{
    *staging = (struct mu__staging){.limits = *limits};
}

/* ---- Finding: what was found moves to the front, for the next time ---- */

static struct mu__staged_node *find_node(struct mu__staging *staging, uint32_t node)
{
    struct mu__staged_node **link = &staging->first;
    struct mu__staged_node *found;

    while (*link != NULL && (*link)->node != node)
        link = &(*link)->next;
    found = *link;
    if (found == NULL)
        return NULL;
    *link = found->next;
    found->next = staging->first;
    staging->first = found;
    return found;
}

static struct staged_batch *find_batch(struct mu__staged_node *from, uint64_t number)
{
    struct staged_batch **link;
    struct staged_batch *found;

    if (from == NULL)
        return NULL;
    link = &from->batches;
    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    found = *link;
    if (found == NULL)
        return NULL;
    *link = found->next;
    found->next = from->batches;
    from->batches = found;
    return found;
}

/* ---- Forgetting ---- */

static void free_batch(struct mu__staging *staging, struct mu__staged_node *from,
                       struct staged_batch **link)
{
    struct staged_batch *batch = *link;

    *link = batch->next;
    while (batch->first != NULL) {
        struct piece *next = batch->first->next;

        mu__block_put(batch->first);
        batch->first = next;
    }
    staging->bytes -= batch->bytes;
    staging->batches--;
    from->bytes -= batch->bytes;
    from->batches_count--;
    free(batch);
}

/* Free the first node if it stages nothing. */
static void free_first_if_empty(struct mu__staging *staging)
{
    struct mu__staged_node *from = staging->first;

    if (from->batches != NULL)
        return;
    staging->first = from->next;
    free(from);
}

void mu__staging_drop(struct mu__staging *staging, uint32_t node, uint64_t batch)
{
    struct mu__staged_node *from = find_node(staging, node);

    if (find_batch(from, batch) == NULL)
        return;
    free_batch(staging, from, &from->batches);
    free_first_if_empty(staging);
}

void mu__staging_drop_node(struct mu__staging *staging, uint32_t node)
{
    struct mu__staged_node *from = find_node(staging, node);

    if (from == NULL)
        return;
    while (from->batches != NULL)
        free_batch(staging, from, &from->batches);
    free_first_if_empty(staging);
}

void mu__staging_drop_others(struct mu__staging *staging, uint64_t origin)
{
    struct mu__staged_node **from = &staging->first;

    while (*from != NULL) {
        struct mu__staged_node *node = *from;
        struct staged_batch **link = &node->batches;

        while (*link != NULL) {
            if ((*link)->effect != 0 && (*link)->origin != origin)
                free_batch(staging, node, link);
            else
                link = &(*link)->next;
        }
        if (node->batches != NULL) {
            from = &node->next;
            continue;
        }
        *from = node->next;
        free(node);
    }
}

void mu__staging_done(struct mu__staging *staging)
{
    while (staging->first != NULL)
        mu__staging_drop_node(staging, staging->first->node);
}

/* ---- Growing ---- */

static int out_of_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
}

/* NULL when out of memory. */
static struct mu__staged_node *need_node(struct mu__staging *staging, uint32_t node)
{
    struct mu__staged_node *from = find_node(staging, node);

    if (from != NULL)
        return from;
    from = calloc(1, sizeof *from);
    if (from == NULL)
        return NULL;
    from->node = node;
    from->next = staging->first;
    staging->first = from;
    return from;
}

static int begin(struct mu__staging *staging, const struct mu__staging_piece *piece,
                 mu_error *ret_error)
{
    uint32_t node = piece->write.writer.node;
    struct mu__staged_node *from;
    struct staged_batch *batch;

    mu__staging_drop(staging, node, piece->batch);
    from = need_node(staging, node);
    if (from == NULL)
        return out_of_memory(ret_error);
    if (from->batches_count >= staging->limits.node_batches_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu32 " batches of one node are staged, at most "
                            "%" PRIu32,
                            from->batches_count, staging->limits.node_batches_max);
    batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        free_first_if_empty(staging);
        return out_of_memory(ret_error);
    }
    batch->number = piece->batch;
    batch->origin = piece->origin;
    batch->effect = piece->effect;
    batch->next = from->batches;
    from->batches = batch;
    from->batches_count++;
    staging->batches++;
    return 0;
}

static int check_room(const struct mu__staging *staging,
                      const struct mu__staged_node *from, uint64_t bytes,
                      mu_error *ret_error)
{
    if (bytes > staging->limits.node_bytes_max - from->bytes)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes of one node are staged, at most %" PRIu64,
                            from->bytes, staging->limits.node_bytes_max);
    if (bytes > staging->limits.bytes_max - staging->bytes)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes are staged, at most %" PRIu64,
                            staging->bytes, staging->limits.bytes_max);
    return 0;
}

static struct piece *copy_of(const struct mu__store_write *write)
{
    struct piece *piece = mu__block_get(sizeof *piece + write->data.size);

    if (piece == NULL)
        return NULL;
    piece->next = NULL;
    piece->write = *write;
    piece->write.next = NULL;
    if (write->data.size > 0)
        memcpy(piece->data, write->data.data, write->data.size);
    piece->write.data.data = piece->data;
    return piece;
}

static void append(struct staged_batch *batch, struct piece *piece)
{
    if (batch->last == NULL) {
        batch->first = piece;
    } else {
        batch->last->next = piece;
        batch->last->write.next = &piece->write;
    }
    batch->last = piece;
    batch->pieces++;
}

/* Append to the first batch of `from`. */
static int grow(struct mu__staging *staging, struct mu__staged_node *from,
                const struct mu__store_write *write, mu_error *ret_error)
{
    uint64_t bytes = mu__effect_weight(write->data.size);
    struct piece *piece;
    int rv = check_room(staging, from, bytes, ret_error);

    if (rv != 0)
        return rv;
    piece = copy_of(write);
    if (piece == NULL)
        return out_of_memory(ret_error);
    append(from->batches, piece);
    from->batches->bytes += bytes;
    from->bytes += bytes;
    staging->bytes += bytes;
    return 0;
}

int mu__staging_add(struct mu__staging *staging, const struct mu__staging_piece *piece,
                    mu_error *ret_error, struct mu__staged *ret_staged)
{
    uint32_t node = piece->write.writer.node;
    struct mu__staged_node *from;
    struct staged_batch *batch;
    int rv = piece->before == 0 ? begin(staging, piece, ret_error) : 0;

    if (rv != 0)
        return rv;
    from = find_node(staging, node);
    batch = find_batch(from, piece->batch);
    if (batch == NULL || batch->pieces != piece->before) {
        mu__staging_drop(staging, node, piece->batch);
        return mu_error_set(ret_error, -MU_EABORTED,
                            "piece %" PRIu32 " of a batch follows none", piece->before);
    }
    rv = grow(staging, from, &piece->write, ret_error);
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
    struct staged_batch *found = find_batch(find_node(staging, node), batch);

    if (found != NULL)
        found->reported = found->bytes;
}
