/* Batches: what a run writes to one partition.
 *
 * A batch of a single message is never active; those of tables go several in one
 * (write_frames.c):
 *
 *     SINGLES ----------------------------> FLYING --> (answered)
 *     LARGES --> ACTIVE (piece by piece) ---^  |
 *        ^---------^------ RESTING <-----------'   the server said: again */
#ifndef MU_ACTORS_VARIABLES_BATCHES_H
#define MU_ACTORS_VARIABLES_BATCHES_H

#include "actors/variables/actions.h"

/* All writes of a run to one partition. */
struct write_batch {
    struct mu__list_node node;   /* in the list `in` */
    struct mu__list *in;         /* NULL: in none, since it was answered */
    struct write_batch *sibling; /* the next of the same run, */
    struct write_batch **link;   /* and what points to this one */
    struct operation *op;
    uint32_t partition;
    enum queue queue;
    uint32_t writes_count;
    uint64_t bytes;           /* of their data */
    bool is_of_tables;        /* all of them are */
    struct mu__effect *first; /* its writes follow each other */
    struct mu__effect *last;
    struct numbered numbered;    /* if its run has no effect number */
    bool doubted;                /* of these: it was sent to a server that was lost */
    uint64_t token;              /* of its flight; 0: not begun */
    const struct mu__effect *at; /* the next piece: of this write, */
    uint64_t offset;             /* from here */
    uint32_t writes_left;        /* `at` included */
    uint32_t pieces;             /* sent in this try */
    int refused;                 /* if `rested`: the server's code; 0: it knows no
                                    supervisor */
    bool rested;
    uint64_t due_ms;    /* RESTING */
    uint32_t reopening; /* variables that are being reopened; if any, it is in no
                           list */
    unsigned reopens;
};

/* ---- batches.c ---- */

/* Cut what a run writes into batches, and sort it by partition. After an error, too, its
 * writes are whole, and batches may be there. */
int mu__vars_plan_batches(struct mu__ctx *ctx, struct variables *v, struct operation *op);

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

/* The queue of a batch that has not begun, or where it waits for a server. */
static inline struct mu__list *mu__vars_queue_of(struct variables *v,
                                                 const struct write_batch *batch)
{
    struct placement *placement = &v->placements[batch->partition];

    return placement->served ? &v->servers[placement->server]->queues[batch->queue]
                             : &placement->batches;
}

/* Let a batch begin with its first piece, for the first time or again. Nothing of it is
 * under way any more. */
void mu__vars_rewind_batch(struct variables *v, struct write_batch *batch);

/* Send the next piece of the batch that is next. 0: there is none, or its window is full;
 * 1: it was sent, or its run has failed; or the code of a failure that passes. */
int mu__vars_send_batch(struct mu__ctx *ctx, struct variables *v, uint32_t index,
                        enum queue queue);

/* The flight of a batch, which begins with its first piece. NULL: out of memory. */
struct flight *mu__vars_begin_batch(struct variables *v, struct write_batch *batch);

/* The message of the next piece of a batch that has begun. */
void mu__vars_fill_piece(struct mu__ctx *ctx, struct variables *v,
                         const struct write_batch *batch, struct mu__effect_write *body);

/* Go behind the piece that was sent; false when it was the last. */
bool mu__vars_move_on(struct variables *v, struct write_batch *batch,
                      struct flight *flight);

/* ---- write_frames.c ---- */

/* Send SINGLES of tables, of which there are some, as many as go in one message; as
 * mu__vars_send_batch. */
int mu__vars_send_frame(struct mu__ctx *ctx, struct variables *v, uint32_t index);

/* ---- runs.c ---- */

/* A run has failed: `error` names its server, or is without one. */
void mu__vars_fail_run(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       const mu_error *error);

/* Some of a server's partitions are not served any more: their batches wait for the next
 * one to be sent again. */
void mu__vars_recall_batches(struct variables *v, uint32_t server);
void mu__vars_send_again(struct variables *v, struct write_batch *batch);

#endif
