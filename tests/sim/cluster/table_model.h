/* What the rows of two tables must be that are written together: each push of an id puts
 * the same gradient to its row in both. One table is plain descent by whole numbers,
 * which rows of 16 bits hold, the other one has slots and a step of its own for each row
 * (Adam). All rows begin alike, so a row is a function of how often its id was pushed; it
 * says that number.
 *
 * A shared id is pushed by everybody and never deleted. An own one is pushed and deleted
 * by one program, until it does not know what came of a write; from then on it is left
 * alone. All ids are in a few partitions.
 *
 * A primary that was replaced and has not noticed yet answers look-ups with what it has,
 * for as long as it takes to notice that nobody else is heard: so a look-up may show what
 * a row was at any time since then. */
#ifndef MU_TESTS_SIM_CLUSTER_TABLE_MODEL_H
#define MU_TESTS_SIM_CLUSTER_TABLE_MODEL_H

#include "actors/ps/tables/table_set.h"
#include "tests/sim/cluster/copies.h"

enum {
    CLUSTER_TABLES = 2,
    CLUSTER_TABLE_DIM_MAX = 1024,
    CLUSTER_TABLE_SHARED = 12, /* the first rows of the model */
    CLUSTER_TABLE_ROWS_MAX = 4096,
    CLUSTER_TABLE_PUSHES_MAX = 512,
    CLUSTER_TABLE_PARTITIONS = 3,
    CLUSTER_TABLE_CHANGES = 64 /* the last ones of a row that are known */
};

/* A write whose outcome is not known, or not yet. */
enum cluster_doubt { CLUSTER_DOUBT_NONE, CLUSTER_DOUBT_PUSH, CLUSTER_DOUBT_DELETE };

struct cluster_table_row {
    uint64_t id;
    uint32_t partition;
    uint64_t pushes;          /* acknowledged, since it was deleted last */
    uint64_t begun;           /* shared: pushes that were begun, */
    uint64_t seen;            /* and how many a look-up has seen */
    enum cluster_doubt doubt; /* own */
};

/* What was known of a row before its last changes, and when they were. */
struct cluster_table_history {
    struct cluster_table_row rows[CLUSTER_TABLE_CHANGES];
    uint64_t until_ms[CLUSTER_TABLE_CHANGES];
    uint64_t count;
};

struct cluster_table_model {
    struct cluster *cluster;
    uint64_t ids[CLUSTER_TABLES]; /* of the tables */
    const char *names[CLUSTER_TABLES];
    struct mu__table_form forms[CLUSTER_TABLES];
    struct cluster_table_row rows[CLUSTER_TABLE_ROWS_MAX];
    struct cluster_table_history histories[CLUSTER_TABLE_ROWS_MAX];
    uint32_t rows_count;
    uint64_t id_last;
    float *expected[CLUSTER_TABLES]; /* by the number of pushes */
};

/* Shared rows are there. */
void cluster_table_model_init(struct cluster_table_model *model, struct cluster *cluster,
                              uint32_t dim);
void cluster_table_model_free(struct cluster_table_model *model);

/* A new own row, without pushes. */
uint32_t cluster_table_model_add(struct cluster_table_model *model);

/* The gradient of one push, `dim` numbers, times `part`. */
void cluster_table_gradient(const struct cluster_table_model *model, float part,
                            float *ret_gradient);

/* A row as it was shown by `who`: its content, as it was at some time since `since_ms`.
 */
struct cluster_table_shown {
    unsigned table;
    uint32_t row;
    uint64_t since_ms;
    const float *content;
    const char *who;
};

/* Before a row changes: what was known of it until now. */
void cluster_table_keep(struct cluster_table_model *model, uint32_t row);

/* How often it was pushed, as it says; what cannot be breaks the cluster. */
uint64_t cluster_table_pushes(const struct cluster_table_model *model,
                              const struct cluster_table_shown *shown);

/* A look-up has seen so many, which nobody has before: no later one sees fewer. */
void cluster_table_see(struct cluster_table_model *model,
                       const struct cluster_table_shown *shown, uint64_t pushes);

/* What a member has of one of the partitions. */
void cluster_table_check_member(const struct cluster_table_model *model,
                                const struct partition *p, uint32_t partition,
                                const char *who);

/* Two members have the same rows, bit by bit. */
void cluster_table_check_alike(const struct cluster_table_model *model,
                               const struct partition *a, const struct partition *b,
                               uint32_t partition);

#endif
