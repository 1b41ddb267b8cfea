#include "actors/coordination/store/etcd_queue.h"

#include <stddef.h>

void mu__etcd_batches_free(struct mu__etcd_batch *batch)
{
    while (batch != NULL) {
        struct mu__etcd_batch *next = batch->next;

        mu__etcd_batch_free(batch);
        batch = next;
    }
}

void mu__etcd_work_end(struct etcd_work *work)
{
    mu__etcd_batch_free(work->batch);
    work->batch = NULL;
    work->active = false;
}

void mu__etcd_work_enter(struct etcd_work *work, enum etcd_stage stage)
{
    work->stage = stage;
    work->at = 0;
}

static struct mu__etcd_batch *pop_first_batch(struct etcd_queue *queue)
{
    struct mu__etcd_batch *batch = queue->first;

    queue->first = batch->next;
    if (queue->first == NULL)
        queue->end = &queue->first;
    batch->next = NULL;
    return batch;
}

static bool fits_in_batch(const struct mu__etcd_batch *batch,
                          const struct mu__etcd_batch *more)
{
    return batch->count + more->count <= MU__ETCD_TXN_OPS &&
           batch->bytes + more->bytes <= MU__ETCD_TXN_BYTES;
}

/* Takes the first batch, and as many of the next as fit into the same transaction; fewer
 * without memory to merge them. */
bool mu__etcd_queue_take(struct etcd_queue *queue)
{
    struct etcd_work *work = &queue->work;
    struct mu__etcd_batch **end = &work->merged;
    struct mu__etcd_batch *all;

    if (work->active || queue->first == NULL)
        return work->active;
    all = mu__etcd_batch_new();
    if (all == NULL)
        return false;
    while (queue->first != NULL &&
           (work->merged == NULL || fits_in_batch(all, queue->first))) {
        size_t bytes = queue->first->bytes;

        if (mu__etcd_batch_append(all, queue->first) != 0)
            break;
        queue->bytes -= bytes;
        *end = pop_first_batch(queue);
        end = &(*end)->next;
    }
    if (work->merged == NULL) {
        mu__etcd_batch_free(all);
        return false;
    }
    work->batch = all;
    work->active = true;
    mu__etcd_work_enter(work, mu__etcd_batch_chunk(all, 0) < all->count ? ETCD_STAGING
                                                                        : ETCD_PLAIN);
    return true;
}

void mu__etcd_queue_forget(struct etcd_queue *queue)
{
    mu__etcd_batches_free(queue->first);
    mu__etcd_batches_free(queue->work.merged);
    mu__etcd_batch_free(queue->work.batch);
    mu__etcd_batch_free(queue->open);
    mu__etcd_results_free(queue->results);
    *queue = (struct etcd_queue){.end = &queue->first};
}
