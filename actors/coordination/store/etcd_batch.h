/* Changes to be written to etcd: puts and deletes of keys, in batches that count as a
 * whole; and the results of agents, packed into few keys. Plain data. */
#ifndef MU_NODE_STORE_ETCD_BATCH_H
#define MU_NODE_STORE_ETCD_BATCH_H

#include "runtime/message/message.h"

/* Bounds of one transaction; a larger batch is staged first (see etcd_write.c). Below
 * etcd's own defaults, 128 operations and 1.5 MiB for the whole request, with room for
 * the rest of the request. One change of the largest size fits, with its result. */
#ifdef MUSTER_TINY
enum { MU__ETCD_TXN_OPS = 6, MU__ETCD_TXN_BYTES = 1280 << 10 };
#else
enum { MU__ETCD_TXN_OPS = 120, MU__ETCD_TXN_BYTES = 1280 << 10 };
#endif

enum { MU__ETCD_BUCKET = 256 }; /* tokens of an agent whose results share a key */

struct mu__etcd_op {
    struct mu__view key;   /* below the cluster's prefix; in one allocation with */
    struct mu__view value; /* the value. Empty: the key is deleted; no empty value is
                              ever put */
};

struct mu__etcd_batch {
    struct mu__etcd_batch *next;
    struct mu__etcd_op *ops;
    size_t count;
    size_t capacity;
    size_t bytes;      /* about what they take in a request */
    uint64_t sequence; /* of the commit that ended it */
};

/* NULL: out of memory. */
struct mu__etcd_batch *mu__etcd_batch_new(void);
void mu__etcd_batch_free(struct mu__etcd_batch *batch); /* NULL is fine */

/* Put (or, with an empty value, delete) a key; both are copied. -MU_ENOMEM. */
int mu__etcd_batch_add(struct mu__etcd_batch *batch, struct mu__view key,
                       struct mu__view value);

/* Keep only the last operation of each key, in order of keys. -MU_ENOMEM: nothing
 * changed. */
int mu__etcd_batch_settle(struct mu__etcd_batch *batch);

/* Move the operations of a later batch behind these, and settle. -MU_ENOMEM: nothing
 * changed. */
int mu__etcd_batch_append(struct mu__etcd_batch *batch, struct mu__etcd_batch *later);

/* The end of the operations from `at` on that go into one transaction. */
size_t mu__etcd_batch_chunk(const struct mu__etcd_batch *batch, size_t at);

/* ---- Results ---- */

struct mu__etcd_results;

struct mu__etcd_results *mu__etcd_results_new(void);
void mu__etcd_results_free(struct mu__etcd_results *results);

/* Add a packed record of an agent's result, and forget those with tokens below `done`,
 * possibly itself. -MU_EINVALID: agent 0. -MU_ENOMEM: all results are void. */
int mu__etcd_results_add(struct mu__etcd_results *results, uint64_t agent, uint64_t token,
                         uint64_t done, struct mu__view packed);

/* Add the keys that have changed since the last time. -MU_ENOMEM: the same. */
int mu__etcd_results_write(struct mu__etcd_results *results,
                           struct mu__etcd_batch *batch);

/* All results were read from etcd: none has changed. */
void mu__etcd_results_read(struct mu__etcd_results *results);

#endif
