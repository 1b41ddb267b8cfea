/* Calls about tables: look-ups, and what is written to them (opens, pushes, deletes). */
#ifndef MU_ACTORS_VARIABLES_TABLE_CALLS_H
#define MU_ACTORS_VARIABLES_TABLE_CALLS_H

#include "actors/call.h"
#include "actors/partitions.h"
#include "actors/worker/function_run.h"
#include "runtime/base/list.h"

struct mu__rule;
struct variables;

/* Ids sorted by partition. It stays where it was made: a single id is in `one`. */
struct mu__sorted_ids {
    uint32_t count;
    uint32_t first; /* the first partition with ids, */
    uint32_t last;  /* and one that has none behind it */
    uint64_t *ids;
    uint32_t *positions;               /* where each id was before; behind the ids */
    uint64_t one[2];                   /* an id and its position */
    uint32_t ends[MU__PARTITIONS + 1]; /* partition p, of those from first to last: from
                                          ends[p] to ends[p + 1] */
};

/* -MU_ENOMEM. */
int mu__ids_sort(const uint64_t *ids, uint32_t count, struct mu__sorted_ids *ret_sorted);
void mu__sorted_ids_done(struct mu__sorted_ids *sorted);

/* What a LOOKUP has in the place of rows: sums for bags of ids. */
struct mu__lookup_bags {
    uint32_t count;          /* 0: rows */
    const uint32_t *bag_of;  /* of each id, as it was before ids were sorted; */
    const float *weights;    /* the same; NULL: 1 */
    struct mu__list answers; /* struct mu__bag_sums, by `first`; the caller's to free */
};

/* Sums of the rows of some ids, for all bags. */
struct mu__bag_sums {
    struct mu__list_node node;
    uint32_t first; /* the lowest of these ids, by their order in `ids` */
    float sums[];
};

/* -MU_ENOMEM. */
int mu__bag_sums_add(struct mu__lookup_bags *bags, uint32_t first, struct mu__view sums);

/* Add all to `ret_rows`, those of the lowest ids first, and free them. */
void mu__bag_sums_take(struct mu__lookup_bags *bags, uint32_t dim, float *ret_rows);
void mu__bag_sums_drop(struct mu__lookup_bags *bags);

/* Pack the bags of some ids, 4 bytes each, and their weights, if there are any. */
void mu__lookup_bags_put(const struct mu__lookup_bags *bags, const uint32_t *positions,
                         uint32_t count, uint8_t *to_bags, uint8_t *to_weights);

/* Lent to the actor until it is completed. */
struct mu__table_call {
    struct mu__call call; /* first: a CALL message points here; MU__TABLE_... */
    const char *name;     /* of the table, for errors */
    uint32_t servers_count;
    struct mu_run run; /* WRITE: its `effects` are applied, each partition's once */
    uint64_t table;    /* LOOKUP: */
    uint32_t dim;
    uint32_t dtype; /* of rows on the servers: 0, or of 16 bits */
    const struct mu__sorted_ids *ids;
    void *rows;  /* in the order before ids were sorted; 32-bit floats, */
    bool is_raw; /* unless they are as they came, in `dtype` */
    struct mu__lookup_bags bags;
    struct mu__table_call *others; /* LOOKUP: the next one that is completed with it */
    struct mu__table_call *lead;   /* the actor's: the first of these, */
    uint32_t lookups_left;         /* and how many are not answered */
};

/* Who has written effects: a worker, for a run, or a program that waits for a call. */
struct effects_writer {
    mu__pid worker;
    struct mu__msg *answer;       /* EFFECTS_SENT, in the memory of the EFFECTS_SEND */
    struct mu__table_call *table; /* NULL: a worker */
};

/* For the next ones. */
struct spare_writes {
    struct mu__list runs; /* operations */
    struct mu__list batches;
};

/* Append the push of some ids to what is written, one write for each partition, in pieces
 * that one message holds; ids that are there several times become one, and their
 * gradients a sum. Of a delete `gradients` is NULL. -MU_EEXHAUSTED, -MU_ENOMEM: a part
 * may have been appended. */
struct mu__table_batch {
    uint64_t table;
    uint32_t dim; /* 0: a delete */
    const struct mu__rule *rule;
    uint32_t time; /* 0: none was given */
    const uint64_t *ids;
    const void *gradients;
    uint32_t count;
};
int mu__effects_add_table(struct mu__effects *effects,
                          const struct mu__table_batch *batch);

/* Append an open for the partitions from `first` to before `end`. */
struct mu__table_open;
int mu__effects_add_table_open(struct mu__effects *effects,
                               const struct mu__table_open *open, uint32_t first,
                               uint32_t end);

/* ---- lookups.c, pooled_lookups.c; runs.c has writes ---- */

void mu__vars_begin_lookup(struct mu__ctx *ctx, struct variables *v,
                           struct mu__table_call *call);
void mu__vars_begin_table_write(struct mu__ctx *ctx, struct variables *v,
                                struct mu__table_call *call);
void mu__vars_on_table_rows(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Send what is to be sent; forget what was sent about partitions that are not served. */
void mu__vars_pump_lookups(struct mu__ctx *ctx, struct variables *v);
void mu__vars_recall_lookups(struct variables *v);

/* Fail those that need a server that is lost. */
void mu__vars_end_lost_lookups(struct mu__ctx *ctx, struct variables *v);

/* A timeout has passed; false: it is of no look-up. */
bool mu__vars_lookup_timeout(struct mu__ctx *ctx, struct variables *v, uint64_t id);
void mu__vars_close_lookups(struct mu__ctx *ctx, struct variables *v);

#endif
