/* Batches of writes whose last piece has not come: their pieces, by the node that sends
 * them and the number that it gave the batch. Plain data.
 *
 * A piece carries the number of pieces before it. One that does not continue the batch
 * drops it: so a batch is applied as a whole, or not at all. */
#ifndef MU_ACTORS_STAGING_H
#define MU_ACTORS_STAGING_H

#include "actors/ps/variable_store.h"
#include "runtime/base/list.h"

/* Bounds. A piece beyond one is refused with -MU_EEXHAUSTED, and its batch is dropped. */
struct mu__staging_limits {
    uint64_t bytes_max; /* all bytes here are weights: mu__effect_weight */
    uint64_t node_bytes_max;
    uint32_t node_batches_max;
};

extern const struct mu__staging_limits mu__staging_limits_default;

struct mu__staging {
    struct mu__staging_limits limits;
    uint64_t bytes;
    uint32_t batches;
    uint64_t *used;        /* bytes of several together; NULL: of this one */
    struct mu__list nodes; /* struct mu__staged_node; the last sender first */
};

void mu__staging_init(struct mu__staging *staging,
                      const struct mu__staging_limits *limits);
void mu__staging_done(struct mu__staging *staging);

/* A piece as received: `write` borrows its data, and names the node. */
struct mu__staging_piece {
    uint64_t batch;
    uint64_t origin; /* of the batch, if `effect` is not 0 */
    uint64_t effect;
    uint32_t before; /* pieces that go before it */
    struct mu__store_write write;
};

/* The staged part of a batch. */
struct mu__staged {
    const struct mu__store_write *first; /* the rest follows by `next` */
    uint64_t bytes;                      /* their weight */
    uint64_t fresh;                      /* since mu__staging_reported */
};

/* Copy a piece to the end of its batch; a first piece begins the batch anew. What is
 * returned lasts until the next call. -MU_EABORTED when it does not continue its batch,
 * -MU_EEXHAUSTED, -MU_ENOMEM: the batch is forgotten. */
int mu__staging_add(struct mu__staging *staging, const struct mu__staging_piece *piece,
                    mu_error *ret_error, struct mu__staged *ret_staged);

/* The sender has been told how much of a batch is staged. */
void mu__staging_reported(struct mu__staging *staging, uint32_t node, uint64_t batch);

/* Drop a batch, if it is staged. */
void mu__staging_drop(struct mu__staging *staging, uint32_t node, uint64_t batch);

/* Drop all batches of a node. */
void mu__staging_drop_node(struct mu__staging *staging, uint32_t node);

bool mu__staging_has_node(const struct mu__staging *staging, uint32_t node);

/* Drop all batches with effects of other origins. */
void mu__staging_drop_others(struct mu__staging *staging, uint64_t origin);

#endif
