/* Batches of writes that have not come to their end: their pieces, by the node that sends
 * them and the number that it gave the batch. Plain data.
 *
 * A piece knows how many go before it in its batch. One that does not follow what is here
 * ends the batch: so a batch is whole, or it is nothing. */
#ifndef MU_ACTORS_STAGING_H
#define MU_ACTORS_STAGING_H

#include "actors/ps/variable_store.h"

/* Bounds. A piece beyond one is refused with -MU_EEXHAUSTED, and its batch goes. */
struct mu__staging_limits {
    uint64_t bytes_max;         /* by weight, as are all bytes here */
    uint64_t node_bytes_max;
    uint32_t node_batches_max;
};

extern const struct mu__staging_limits mu__staging_limits_default;

struct mu__staged_node;

struct mu__staging {
    struct mu__staging_limits limits;
    uint64_t bytes;
    uint32_t batches;
    struct mu__staged_node *first;  /* whoever sent last comes first */
};

void mu__staging_init(struct mu__staging *staging,
                      const struct mu__staging_limits *limits);
void mu__staging_done(struct mu__staging *staging);

/* A piece that has come: `write` borrows its data, and tells the node. */
struct mu__staging_piece {
    uint64_t batch;
    uint64_t origin;                /* of the batch, if `effect` is not 0 */
    uint64_t effect;
    uint32_t before;                /* pieces that go before it */
    struct mu__store_write write;
};

/* What is here of a batch. */
struct mu__staged {
    const struct mu__store_write *first;    /* the rest follows by `next` */
    uint64_t bytes;                         /* their weight */
    uint64_t fresh;                         /* of these: since mu__staging_reported */
};

/* Copy a piece to the end of its batch; a piece that none goes before begins one, anew
 * if there is one. What is returned lasts until the next call. -MU_EABORTED when it does
 * not follow what is here, -MU_EEXHAUSTED, -MU_ENOMEM: the batch is forgotten. */
int mu__staging_add(struct mu__staging *staging, const struct mu__staging_piece *piece,
                    mu_error *ret_error, struct mu__staged *ret_staged);

/* The sender is told how much of a batch is here. */
void mu__staging_reported(struct mu__staging *staging, uint32_t node, uint64_t batch);

/* Forget a batch, if it is here. */
void mu__staging_drop(struct mu__staging *staging, uint32_t node, uint64_t batch);

/* Forget all of a node. */
void mu__staging_drop_node(struct mu__staging *staging, uint32_t node);

/* Forget all effects of other origins. */
void mu__staging_drop_others(struct mu__staging *staging, uint64_t origin);

#endif
