/* Batches: what a run writes to one server. */
#ifndef MU_ACTORS_VARIABLES_BATCHES_H
#define MU_ACTORS_VARIABLES_BATCHES_H

#include "actors/variables/actions.h"

/* ---- batches.c ---- */

/* Cut what a run writes into batches, and sort it by server. After an error, too, its
 * writes are whole, and batches may be there. */
int mu__vars_plan_batches(struct mu__ctx *ctx, struct variables *v,
                          struct operation *op);

static inline void mu__vars_take_out_batch(struct write_batch *batch)
{
    if (batch->in != NULL)
        mu__list_remove(batch->in, &batch->node);
    batch->in = NULL;
}

static inline void mu__vars_put_batch_last(struct mu__list *list,
                                           struct write_batch *batch)
{
    mu__vars_take_out_batch(batch);
    batch->in = list;
    mu__list_append(list, &batch->node);
}

static inline void mu__vars_put_batch_first(struct mu__list *list,
                                            struct write_batch *batch)
{
    mu__vars_take_out_batch(batch);
    batch->in = list;
    mu__list_prepend(list, &batch->node);
}

/* The queue of a batch that has not begun. */
static inline struct mu__list *mu__vars_queue_of(const struct variables *v,
                                                 const struct write_batch *batch)
{
    return &v->servers[batch->server]->queues[batch->queue];
}

/* Let a batch begin with its first piece, for the first time or again. Nothing of it is
 * under way any more. */
void mu__vars_rewind_batch(struct variables *v, struct write_batch *batch);

/* Send the next piece of the batch that is next. 0: there is none, or its window is full;
 * 1: it was sent, or its run has failed; or the code of a failure that passes. */
int mu__vars_send_batch(struct mu__ctx *ctx, struct variables *v, uint32_t index,
                        enum queue queue);

/* ---- runs.c ---- */

/* A run has failed: `error` names its server, or is without one. */
void mu__vars_fail_run(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       const mu_error *error);

/* The link of a server is down: its batches may be sent again, or their runs fail. */
void mu__vars_recall_batches(struct mu__ctx *ctx, struct variables *v, uint32_t server);
void mu__vars_send_again(struct variables *v, struct write_batch *batch);

#endif
