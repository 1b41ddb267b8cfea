/* Embedding tables on the parameter servers: rows of floats, by 64-bit ids.
 *
 * The ids of a table are spread over 256 partitions, which are on the servers as shards
 * of variables are (variable.h): with two servers or more, unless the chief's option
 * `backups` is 0, an acknowledged push survives the loss of any one, and counts once. Any
 * thread but a loop's may call.
 *
 * A look-up reads. An id that was never pushed to has its initial row, which is a
 * function of the initializer's seed, the table's name, the id and the column: the same
 * on every server, before and after a loss. No row is made for it. The first push of an
 * id makes its row, unless a policy says otherwise, and the slots that the optimizer
 * keeps beside it. Each row has its own step: the number of its pushes.
 *
 * A push is gradients of some ids, each in any number of copies; gradients of one id are
 * summed first, then the optimizer's rule is applied once. A NaN or infinity is refused.
 * What goes to one partition is applied as a whole, or not at all.
 *
 * Errors are those of variable.h. Of look-ups and pushes -MU_ENOTFOUND says that a server
 * does not have its part of the table: it was restarted, and nobody had a copy. */
#ifndef MUSTER_TABLE_H
#define MUSTER_TABLE_H

#include "node.h"
#include "variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_table mu_table;

enum mu_table_flag {
    MU_TABLE_EXISTING = 1,     /* never create it: -MU_ENOTFOUND */
    MU_TABLE_RECREATE = 2,     /* parts that were lost begin anew, without rows; else
                                  -MU_EDATALOSS */
    MU_TABLE_UNKNOWN_ZEROS = 4 /* look-ups of ids without a row give zeros, and not their
                                  initial rows */
};

/* Which rows a table beyond its capacity removes. */
enum mu_table_eviction {
    MU_TABLE_EVICT_NONE, /* none: pushes that need more are refused, -MU_EEXHAUSTED */
    MU_TABLE_EVICT_LRU,  /* those whose last push has the lowest time */
    MU_TABLE_EVICT_LFU   /* those with the fewest pushes */
};

enum { MU_TABLE_DIM_MAX = 4096 };

typedef struct mu_table_spec {
    const char *name;                  /* 1 to 255 bytes of UTF-8 */
    unsigned dim;                      /* numbers of a row, 1 to MU_TABLE_DIM_MAX */
    const mu_initializer *initializer; /* of rows; NULL: zeros */
    const mu_optimizer *optimizer; /* of pushes that name none; its kind is that of all.
                                      NULL: plain descent with a rate of 0.01 */
    unsigned flags;                /* enum mu_table_flag, or 0 */

    int dtype; /* of rows on the servers: MU_F32 or 0, MU_F16, MU_BF16 */

    /* Policies, in words below; 0: none. */
    uint32_t admit_after;     /* the push of an id that makes its row, */
    uint64_t candidates;      /* and how many ids are counted; 0: 2^20 */
    double admit_probability; /* or the chance of each push to make it */
    uint64_t ttl;             /* how long rows stay after their last push */
    uint64_t capacity;        /* rows */
    int eviction;             /* enum mu_table_eviction */
} mu_table_spec;

/* Rows of 16 bits: look-ups give them as 32-bit floats, but mu_table_lookup_as() as they
 * are; slots have 32 bits, and what a
 * push makes of a row is rounded up or down by chance, with the mean that it should have:
 * by a hash of the seed, the id, the number of the row's push, and the column. So small
 * steps are not lost, and backups agree. Initial rows are rounded to the nearest. */

/* Policies are functions of what was pushed, so that backups agree: time is in the pushes
 * (mu_table_apply_at), and chance is a hash of the seed, the id, and the number of the
 * push. They are of each partition by itself: numbers of rows and of ids are divided by
 * 256, rounded up.
 *
 * Admission. With `admit_after` n, an id's first n - 1 gradients are counted and dropped,
 * and look-ups give its initial row. A partition that counts too many ids forgets that
 * one of a few whose last push is longest ago: so a row may come late, and never early.
 * With `admit_probability`, each gradient of an id without a row makes it with that
 * chance, or is dropped.
 *
 * Time. A push at time 0 is one later than the latest push of its partition, so without
 * times they are numbers of pushes. A row keeps the largest time of its pushes. Times are
 * below 2^32: steps, or seconds.
 *
 * Time to live. Rows whose time is more than `ttl` below the largest one of a partition
 * are removed, with their slots, when that has gone on by an eighth of `ttl`.
 *
 * Capacity. A partition with more rows than its part of `capacity` keeps the best 7/8 of
 * that part (rounded up) by its eviction; of equal ones those with the largest ids. A row
 * that was removed begins anew. */

/* Open a table, creating it when there is none of that name. -MU_EPRECONDITION: it has
 * rows of another size, another initializer or another kind of optimizer. -MU_EDATALOSS:
 * a part of it was lost with its server. */
MU_EXPORT int mu_table_open(mu_node *node, const mu_table_spec *spec, int64_t timeout_ms,
                            mu_error *ret_error, mu_table **ret_table);

/* Open a table that is there, in the form that it was made in, to look at it: the chief
 * is asked what its servers have. -MU_ENOTFOUND; -MU_EUNAVAILABLE: it is not known, since
 * servers did not answer in time. */
MU_EXPORT int mu_table_open_existing(mu_node *node, const char *name, int64_t timeout_ms,
                                     mu_error *ret_error, mu_table **ret_table);

/* Free the handle; the table stays on its servers. NULL is fine. */
MU_EXPORT void mu_table_close(mu_table *table);

MU_EXPORT unsigned mu_table_dim(const mu_table *table);

/* Read the rows of `count` ids, at most 2^31, in their order, into `rows`: `count` times
 * mu_table_dim() numbers. The same id may be there several times. */
MU_EXPORT int mu_table_lookup(mu_table *table, const uint64_t *ids, size_t count,
                              float *rows, int64_t timeout_ms, mu_error *ret_error);

/* The same rows in `dtype`, which is MU_F32, or that of the table, in whose bits they are
 * given then. Another one is -MU_EINVALID. */
MU_EXPORT int mu_table_lookup_as(mu_table *table, int dtype, const uint64_t *ids,
                                 size_t count, void *rows, int64_t timeout_ms,
                                 mu_error *ret_error);

/* Some ids of one table, and where their rows go. */
typedef struct mu_table_ids {
    mu_table *table;
    const uint64_t *ids;
    size_t count;
    float *rows;
} mu_table_ids;

/* The same for several tables of one node at once. After an error no rows are defined. */
MU_EXPORT int mu_tables_lookup(const mu_table_ids *lookups, size_t count,
                               int64_t timeout_ms, mu_error *ret_error);

enum mu_table_combiner {
    MU_TABLE_SUM,
    MU_TABLE_MEAN, /* the sum, divided by the sum of the weights; 0 if that is 0 */
    MU_TABLE_SQRTN /* ... by the square root of the sum of their squares */
};

/* Ids in bags. */
typedef struct mu_table_bags {
    const uint64_t *ids;
    const float *weights;    /* as many; NULL: 1 */
    size_t count;            /* at most 2^31 */
    const uint64_t *offsets; /* where each bag begins among the ids, rising, the first one
                                at 0; a bag ends where the next one begins */
    size_t bags;             /* at most 2^31 */
    int combiner;            /* enum mu_table_combiner */
} mu_table_bags;

/* Read one row for each bag: its ids' rows, each multiplied by its weight, combined at
 * the servers. A bag without ids has zeros. A server adds the rows that it has in the
 * order of their partitions, and in one of these in that of the ids; then what comes from
 * the servers is added, that with the first partition first. So the bits depend on where
 * partitions are. */
MU_EXPORT int mu_table_lookup_bags(mu_table *table, const mu_table_bags *bags,
                                   float *rows, int64_t timeout_ms, mu_error *ret_error);

/* Push the gradients of such rows, one for each bag: each id gets its bag's as it has
 * gone into the row. Else as mu_table_apply. */
MU_EXPORT int mu_table_apply_bags(mu_table *table, const mu_table_bags *bags,
                                  const float *gradients, const mu_optimizer *optimizer,
                                  int64_t timeout_ms, mu_error *ret_error);

/* Push gradients, as many rows as ids. `optimizer` has the kind of the table's, NULL: it
 * is the table's. -MU_EEXHAUSTED: more than 64 MiB in one call, or the servers have no
 * room for the rows. After another error some partitions may have applied theirs. */
MU_EXPORT int mu_table_apply(mu_table *table, const uint64_t *ids, const float *gradients,
                             size_t count, const mu_optimizer *optimizer,
                             int64_t timeout_ms, mu_error *ret_error);

/* The same at a time that is not 0; -MU_EINVALID: it is 2^32 or more. */
MU_EXPORT int mu_table_apply_at(mu_table *table, uint64_t time, const uint64_t *ids,
                                const float *gradients, size_t count,
                                const mu_optimizer *optimizer, int64_t timeout_ms,
                                mu_error *ret_error);

/* ---- Without waiting ---- */

/* How a call ended; `error` (NULL: `code` is 0) is valid during this one. */
typedef void (*mu_table_done_fn)(void *user, int code, const mu_error *error);

/* Begin a look-up, or a push: `done` is called once, on the loop's thread, when it has
 * ended, also when the node is closed meanwhile (-MU_ECLOSED). It must not block. Ids and
 * gradients are copied; `rows` is lent until then. The table may be closed before. Many
 * of them are under way at a time, in no order; none is cancelled: its timeout is its
 * limit. -MU_EAGAIN: more than 65536 of a handle are, or they have copied 256 MiB
 * together; -MU_EINVALID: there are no ids, or no bags; other errors of the arguments as
 * of the calls that wait. Then `done` is not called. Any thread, also a loop's. */
MU_EXPORT int mu_table_lookup_async(mu_table *table, const uint64_t *ids, size_t count,
                                    float *rows, int64_t timeout_ms,
                                    mu_table_done_fn done, void *user);
MU_EXPORT int mu_table_lookup_as_async(mu_table *table, int dtype, const uint64_t *ids,
                                       size_t count, void *rows, int64_t timeout_ms,
                                       mu_table_done_fn done, void *user);
MU_EXPORT int mu_table_apply_async(mu_table *table, const uint64_t *ids,
                                   const float *gradients, size_t count,
                                   const mu_optimizer *optimizer, int64_t timeout_ms,
                                   mu_table_done_fn done, void *user);

/* The same push as of mu_table_apply_at(), but a time of 0 is that of none. */
MU_EXPORT int mu_table_apply_at_async(mu_table *table, uint64_t time, const uint64_t *ids,
                                      const float *gradients, size_t count,
                                      const mu_optimizer *optimizer, int64_t timeout_ms,
                                      mu_table_done_fn done, void *user);

/* The same of bags: ids, weights and offsets are copied, and room for the sums of a
 * look-up counts as if it was. */
MU_EXPORT int mu_table_lookup_bags_async(mu_table *table, const mu_table_bags *bags,
                                         float *rows, int64_t timeout_ms,
                                         mu_table_done_fn done, void *user);
MU_EXPORT int mu_table_apply_bags_async(mu_table *table, const mu_table_bags *bags,
                                        const float *gradients,
                                        const mu_optimizer *optimizer, int64_t timeout_ms,
                                        mu_table_done_fn done, void *user);

/* Remove rows whose last push was before a time; of a table with neither `ttl` nor
 * MU_TABLE_EVICT_LRU, rows with fewer pushes than `before`. -MU_EPRECONDITION: it has no
 * policy of either kind. */
MU_EXPORT int mu_table_expire(mu_table *table, uint64_t before, int64_t timeout_ms,
                              mu_error *ret_error);

/* Delete rows: their ids are as if never pushed to. */
MU_EXPORT int mu_table_delete(mu_table *table, const uint64_t *ids, size_t count,
                              int64_t timeout_ms, mu_error *ret_error);

/* Set rows, as many as ids; an id that is there several times gets the last one. What the
 * optimizer keeps of a row stays as it is, and begins for a new one; no push is counted.
 */
MU_EXPORT int mu_table_insert(mu_table *table, const uint64_t *ids, const float *rows,
                              size_t count, int64_t timeout_ms, mu_error *ret_error);

typedef struct mu_table_stats {
    uint64_t rows;
    uint64_t bytes;   /* of the servers' memory, without backups */
    uint64_t dropped; /* gradients of ids that were not admitted */
    uint64_t refused; /* parts of pushes in one partition, for a NaN or infinity */
    uint64_t expired; /* rows that were removed for their age, or by mu_table_expire(), */
    uint64_t evicted; /* and beyond the capacity */
} mu_table_stats;

/* How large a table is, and what was counted since it was made or restored. Each
 * partition is as it was at a moment of its own. */
MU_EXPORT int mu_table_get_stats(mu_table *table, int64_t timeout_ms, mu_error *ret_error,
                                 mu_table_stats *ret_stats);

/* Takes some rows of a table; `rows` has mu_table_dim() numbers for each id. Not 0: the
 * end, which mu_table_export returns. */
typedef int (*mu_table_export_fn)(void *user, const uint64_t *ids, const float *rows,
                                  size_t count);

/* Give all rows of a table, piece by piece, to a function, on the thread that calls. Each
 * partition is as it was after one of its writes, while training goes on; no more than a
 * few pieces are in memory. A row may be given again, when a server was lost meanwhile:
 * the last time counts. */
MU_EXPORT int mu_table_export(mu_table *table, mu_table_export_fn function, void *user,
                              int64_t timeout_ms, mu_error *ret_error);

/* The same as writes of a run: copied by the call, sent when its function has returned 0,
 * and applied once for a closure with MU_CLOSURE_EFFECT_ONCE (variable.h). */
MU_EXPORT int mu_run_table_apply(mu_run *run, mu_table *table, const uint64_t *ids,
                                 const float *gradients, size_t count,
                                 const mu_optimizer *optimizer);
MU_EXPORT int mu_run_table_apply_at(mu_run *run, mu_table *table, uint64_t time,
                                    const uint64_t *ids, const float *gradients,
                                    size_t count, const mu_optimizer *optimizer);
MU_EXPORT int mu_run_table_apply_bags(mu_run *run, mu_table *table,
                                      const mu_table_bags *bags, const float *gradients,
                                      const mu_optimizer *optimizer);
MU_EXPORT int mu_run_table_delete(mu_run *run, mu_table *table, const uint64_t *ids,
                                  size_t count);
MU_EXPORT int mu_run_table_insert(mu_run *run, mu_table *table, const uint64_t *ids,
                                  const float *rows, size_t count);

#ifdef __cplusplus
}
#endif

#endif
