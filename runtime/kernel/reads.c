/* The reads of nodes that are behind. A small request may have a large answer: while much
 * waits to be sent to a node, its further reads wait, in their order, so that what it can
 * make this node keep is bounded however much it asks for. All other messages go on: they
 * are what catching up may depend on. */
#include "runtime/kernel/internal.h"

#include <stdlib.h>

enum { RUN_BATCH = 16 }; /* reads of one node in one turn */

static bool is_behind(const struct reads_waiting *reads)
{
    return reads != NULL && (reads->is_behind || reads->owed > MU__OWED_BYTES);
}

/* Memory for them is taken once, when the node is behind for the first time. NULL: none,
 * or there is no such node. */
static struct reads_waiting *reads_of(struct mu__kernel *kernel, uint32_t number)
{
    struct node *node = mu__kernel_find_node(kernel, number);

    if (node == NULL)
        return NULL;
    if (node->reads == NULL) {
        node->reads = calloc(1, sizeof *node->reads);
        kernel->behind_count += node->reads != NULL;
    }
    return node->reads;
}

/* ---- what waits ---- */

static size_t backing_bytes(const struct mu__msg *msg)
{
    return msg->backing == NULL ? 0 : msg->backing->capacity;
}

/* The messages of one frame share its memory. */
static void append(struct mu__kernel *kernel, struct reads_waiting *reads,
                   struct mu__msg *msg)
{
    msg->next = NULL;
    if (reads->first == NULL || reads->last->backing != msg->backing)
        reads->bytes += backing_bytes(msg);
    if (reads->first == NULL)
        reads->first = msg;
    else
        reads->last->next = msg;
    reads->last = msg;
    reads->count++;
    kernel->reads_count++;
}

static struct mu__msg *pop_waiting_read(struct mu__kernel *kernel,
                                        struct reads_waiting *reads)
{
    struct mu__msg *msg = reads->first;

    if (msg->next == NULL || msg->next->backing != msg->backing)
        reads->bytes -= backing_bytes(msg);
    reads->first = msg->next;
    reads->count--;
    kernel->reads_count--;
    return msg;
}

static void set_full(struct mu__kernel *kernel, struct reads_waiting *reads)
{
    if (reads->count >= MU__READS_FULL || reads->bytes >= MU__READS_BYTES)
        reads->is_full = true;
    else if (reads->count <= MU__READS_FULL / 8)
        reads->is_full = false;
    if (reads->is_full != reads->is_full_reported)
        kernel->has_full_news = true;
}

bool mu__reads_hold(struct mu__kernel *kernel, struct mu__msg *msg)
{
    const struct mu__schema *schema = kernel->schema;
    struct node *node;

    if (msg->from.node == MU__NODE_SELF || msg->kind >= schema->rows_count ||
        !schema->rows[msg->kind].is_read)
        return false;
    node = mu__kernel_find_node(kernel, msg->from.node);
    if (node == NULL || node->reads == NULL ||
        (!is_behind(node->reads) && node->reads->count == 0))
        return false;
    if (node->reads->count >= MU__READS_MAX ||
        node->reads->bytes >= MU__READS_BYTES_MAX) {
        kernel->counters.dead_letters++;
        mu__pool_put(&kernel->pool, msg);
        return true;
    }
    append(kernel, node->reads, msg);
    set_full(kernel, node->reads);
    return true;
}

/* ---- once the node has caught up ---- */

static void run(struct mu__kernel *kernel, struct mu__msg *msg)
{
    struct actor *actor = mu__kernel_find(kernel, msg->to.actor);

    if (actor != NULL) {
        mu__kernel_handle(kernel, actor, msg);
        return;
    }
    kernel->counters.dead_letters++;
    mu__pool_put(&kernel->pool, msg);
}

/* `reads` of a node stays while it handles its messages: nodes come and go between
 * turns. */
static int run_node(struct mu__kernel *kernel, struct reads_waiting *reads)
{
    int count = 0;

    while (count < RUN_BATCH && reads->count > 0 && !is_behind(reads)) {
        run(kernel, pop_waiting_read(kernel, reads));
        count++;
    }
    set_full(kernel, reads);
    return count;
}

int mu__reads_run(struct mu__kernel *kernel)
{
    int count = 0;

    for (size_t i = 0; kernel->reads_count > 0 && i < kernel->nodes_count; i++)
        if (kernel->nodes[i].reads != NULL)
            count += run_node(kernel, kernel->nodes[i].reads);
    return count;
}

bool mu__reads_are_due(const struct mu__kernel *kernel)
{
    for (size_t i = 0; kernel->reads_count > 0 && i < kernel->nodes_count; i++) {
        const struct reads_waiting *reads = kernel->nodes[i].reads;

        if (reads != NULL && reads->count > 0 && !is_behind(reads))
            return true;
    }
    return false;
}

void mu__reads_free(struct mu__kernel *kernel, struct node *node)
{
    if (node->reads == NULL)
        return;
    while (node->reads->count > 0)
        mu__pool_put(&kernel->pool, pop_waiting_read(kernel, node->reads));
    free(node->reads);
    node->reads = NULL;
    kernel->behind_count--;
}

/* ---- calls ---- */

void mu__kernel_node_behind(struct mu__kernel *kernel, uint32_t node, bool behind)
{
    struct reads_waiting *reads = reads_of(kernel, node);

    if (reads == NULL)
        return;
    reads->is_behind = behind;
    if (!behind && reads->count > 0)
        mu__kernel_wake(kernel, kernel->world->ops->now_ms(kernel->world));
}

bool mu__kernel_next_full(struct mu__kernel *kernel, uint32_t *ret_node,
                          bool *ret_is_full)
{
    for (size_t i = 0; kernel->has_full_news && i < kernel->nodes_count; i++) {
        struct reads_waiting *reads = kernel->nodes[i].reads;

        if (reads == NULL || reads->is_full == reads->is_full_reported)
            continue;
        reads->is_full_reported = reads->is_full;
        *ret_node = kernel->nodes[i].number;
        *ret_is_full = reads->is_full;
        return true;
    }
    kernel->has_full_news = false;
    return false;
}

void mu__owe(struct mu__ctx *ctx, uint32_t node, int64_t bytes)
{
    struct reads_waiting *reads;

    if (node == MU__NODE_SELF || bytes == 0)
        return;
    reads = reads_of(ctx->kernel, node);
    if (reads == NULL)
        return;
    if (bytes < 0 && reads->owed < (uint64_t)-bytes)
        reads->owed = 0;
    else
        reads->owed += (uint64_t)bytes;
}

bool mu__is_behind(const struct mu__ctx *ctx, uint32_t node)
{
    const struct node *known = ctx->kernel->behind_count == 0 || node == MU__NODE_SELF
                                   ? NULL
                                   : mu__kernel_find_node(ctx->kernel, node);

    return known != NULL && is_behind(known->reads);
}

void mu__handle_again(struct mu__ctx *ctx, struct mu__msg *msg)
{
    mu__kernel_wake(ctx->kernel, mu__now_ms(ctx));
    mu__kernel_post(ctx->kernel, msg);
}
