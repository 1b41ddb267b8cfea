/* Changes that wait until etcd has them: the owner's present batch, committed ones, and
 * the one that is being written. */
#ifndef MU_ACTORS_STORE_ETCD_QUEUE_H
#define MU_ACTORS_STORE_ETCD_QUEUE_H

#include "actors/coordination/store/etcd_batch.h"

enum {
    ETCD_REASON_MAX = 640,
    ETCD_QUEUE_BYTES_MAX = 64 << 20     /* written and not safe; more is too much */
};

/* What the transaction under way is part of. */
enum etcd_stage {
    ETCD_PLAIN,             /* a batch that fits */
    ETCD_STAGING,           /* a batch that does not: all of it is put aside; */
    ETCD_POINTING,          /* one key says so, and from now on it counts; */
    ETCD_APPLYING,          /* it is done; */
    ETCD_CLEARING           /* and what was put aside is deleted */
};

struct etcd_work {
    bool active;
    enum etcd_stage stage;
    struct mu__etcd_batch *batch;
    struct mu__etcd_batch *merged;  /* whose operations have gone into it, in order */
    size_t at;                      /* the operations of the transaction under way */
    size_t end;
};

/* Changes that are not safe yet. */
struct etcd_queue {
    struct mu__etcd_batch *open;    /* the owner's present one */
    struct mu__etcd_batch *first;   /* committed, and not sent yet */
    struct mu__etcd_batch **end;
    size_t bytes;                   /* of these */
    struct etcd_work work;          /* the one under way */
    struct mu__etcd_results *results;
    bool failed;                    /* a write: `lost` follows */
    char reason[ETCD_REASON_MAX];
};

/* Begin with what waits, if nothing is under way. False: there is nothing to write. */
bool mu__etcd_queue_take(struct etcd_queue *queue);

/* The same work, from the begin of that stage; and: it is done. */
void mu__etcd_work_enter(struct etcd_work *work, enum etcd_stage stage);
void mu__etcd_work_end(struct etcd_work *work);

void mu__etcd_batches_free(struct mu__etcd_batch *first);

/* Everything that was not safe is forgotten. */
void mu__etcd_queue_forget(struct etcd_queue *queue);

#endif
