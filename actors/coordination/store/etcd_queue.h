/* Changes that etcd does not have yet: the owner's present batch, committed ones, and the
 * one that is being written. */
#ifndef MU_ACTORS_STORE_ETCD_QUEUE_H
#define MU_ACTORS_STORE_ETCD_QUEUE_H

#include "actors/coordination/store/etcd_batch.h"

enum {
    ETCD_REASON_MAX = 640,
    ETCD_QUEUE_BYTES_MAX = 64 << 20 /* of changes that are not safe yet */
};

/* The stage of the batch that the transaction under way belongs to. */
enum etcd_stage {
    ETCD_PLAIN,    /* a batch that fits one transaction */
    ETCD_STAGING,  /* a larger one is written below staged/, in parts; */
    ETCD_POINTING, /* meta/staged is written, from when on the batch counts; */
    ETCD_APPLYING, /* it is applied, in parts; */
    ETCD_CLEARING  /* and staged/ is deleted */
};

struct etcd_work {
    bool active;
    enum etcd_stage stage;
    struct mu__etcd_batch *batch;
    struct mu__etcd_batch *merged; /* the committed batches that it was made of, in
                                      order; they have no operations any more */
    size_t at;                     /* the operations of the transaction under way */
    size_t end;
};

/* Changes that are not safe yet. */
struct etcd_queue {
    struct mu__etcd_batch *open;  /* the owner's present one */
    struct mu__etcd_batch *first; /* committed, and not sent yet */
    struct mu__etcd_batch **end;
    size_t bytes;          /* of these */
    struct etcd_work work; /* the batch under way */
    struct mu__etcd_results *results;
    bool failed; /* a write: `lost` follows */
    char reason[ETCD_REASON_MAX];
};

/* Begin with the batches that wait, unless one is under way. False: there is nothing to
 * write. */
bool mu__etcd_queue_take(struct etcd_queue *queue);

/* Enter a stage of the work, at its first operation; end the work. */
void mu__etcd_work_enter(struct etcd_work *work, enum etcd_stage stage);
void mu__etcd_work_end(struct etcd_work *work);

void mu__etcd_batches_free(struct mu__etcd_batch *first);

/* Forget all changes that are not safe. */
void mu__etcd_queue_forget(struct etcd_queue *queue);

#endif
