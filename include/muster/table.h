/* Embedding tables on the parameter servers: rows of 32-bit floats, by 64-bit ids.
 *
 * The ids of a table are spread over 256 partitions, which are on the servers as shards
 * of variables are (variable.h): with two servers or more, unless the chief's option
 * `backups` is 0, an acknowledged push survives the loss of any one, and counts once. Any
 * thread but a loop's may call.
 *
 * A look-up reads. An id that was never pushed to has its initial row, which is a
 * function of the table's seed and name, the id and the column: the same on every server,
 * before and after a loss. No row is made for it. The first push of an id makes its row,
 * and the slots that the optimizer keeps beside it. Each row has its own step: the number
 * of its pushes.
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

enum mu_table_initializer {
    MU_TABLE_ZEROS,
    MU_TABLE_CONSTANT, /* `initial_a` */
    MU_TABLE_UNIFORM,  /* from `initial_a` to below `initial_b` */
    MU_TABLE_NORMAL    /* mean `initial_a`, standard deviation `initial_b` */
};

enum mu_table_flag {
    MU_TABLE_EXISTING = 1, /* never create it: -MU_ENOTFOUND */
    MU_TABLE_RECREATE = 2  /* parts that were lost begin anew, without rows; else
                              -MU_EDATALOSS */
};

enum { MU_TABLE_DIM_MAX = 4096 };

typedef struct mu_table_spec {
    const char *name; /* 1 to 255 bytes of UTF-8 */
    unsigned dim;     /* numbers of a row, 1 to MU_TABLE_DIM_MAX */
    int initializer;  /* enum mu_table_initializer */
    float initial_a;
    float initial_b;
    uint64_t seed;
    const mu_optimizer *optimizer; /* of pushes that name none; its kind is that of all.
                                      NULL: plain descent with a rate of 0.01 */
    unsigned flags;                /* enum mu_table_flag, or 0 */
} mu_table_spec;

/* Open a table, creating it when there is none of that name. -MU_EPRECONDITION: it has
 * rows of another size, another initializer or another kind of optimizer. -MU_EDATALOSS:
 * a part of it was lost with its server. */
MU_EXPORT int mu_table_open(mu_node *node, const mu_table_spec *spec, int64_t timeout_ms,
                            mu_error *ret_error, mu_table **ret_table);

/* Free the handle; the table stays on its servers. NULL is fine. */
MU_EXPORT void mu_table_close(mu_table *table);

MU_EXPORT unsigned mu_table_dim(const mu_table *table);

/* Read the rows of `count` ids, at most 2^31, in their order, into `rows`: `count` times
 * mu_table_dim() numbers. The same id may be there several times. */
MU_EXPORT int mu_table_lookup(mu_table *table, const uint64_t *ids, size_t count,
                              float *rows, int64_t timeout_ms, mu_error *ret_error);

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

/* Delete rows: their ids are as if never pushed to. */
MU_EXPORT int mu_table_delete(mu_table *table, const uint64_t *ids, size_t count,
                              int64_t timeout_ms, mu_error *ret_error);

/* The same as writes of a run: copied by the call, sent when its function has returned 0,
 * and applied once for a closure with MU_CLOSURE_EFFECT_ONCE (variable.h). */
MU_EXPORT int mu_run_table_apply(mu_run *run, mu_table *table, const uint64_t *ids,
                                 const float *gradients, size_t count,
                                 const mu_optimizer *optimizer);
MU_EXPORT int mu_run_table_apply_bags(mu_run *run, mu_table *table,
                                      const mu_table_bags *bags, const float *gradients,
                                      const mu_optimizer *optimizer);
MU_EXPORT int mu_run_table_delete(mu_run *run, mu_table *table, const uint64_t *ids,
                                  size_t count);

#ifdef __cplusplus
}
#endif

#endif
