/* Programs that push gradients to two tables, delete rows of them and look rows up, while
 * servers die, come, go and are filled. What must be (table_model.h):
 *
 * - A row has each push that was acknowledged, once; one without an answer once, or not
 *   at all; and nothing else. A row that was deleted is gone, with its slots and its
 * step.
 * - That is so at each member of the newest view at any moment, and for each look-up.
 * What a look-up has seen once is there for all later ones: it was applied.
 * - Members that have applied the same record have the same rows, bit by bit. */
#ifndef MU_TESTS_SIM_CLUSTER_TABLES_H
#define MU_TESTS_SIM_CLUSTER_TABLES_H

#include "tests/sim/cluster/table_model.h"

enum {
    CLUSTER_TABLE_PROGRAMS_MAX = 8,
    CLUSTER_TABLE_OWN = 10,   /* rows of a program at a time */
    CLUSTER_TABLE_BATCH = 12, /* rows of a push, most */
    CLUSTER_TABLE_LOOKED = CLUSTER_TABLE_SHARED + 2 * CLUSTER_TABLE_OWN
};

enum cluster_table_step {
    CLUSTER_TABLE_FIND, /* of each table; */
    CLUSTER_TABLE_MAKE,
    CLUSTER_TABLE_SEAL,
    CLUSTER_TABLE_JOIN,
    CLUSTER_TABLE_PUSH, /* of both */
    CLUSTER_TABLE_DELETE,
    CLUSTER_TABLE_LOOK
};

struct cluster_table_program {
    struct cluster_tables *tables;
    struct cluster_task *task;
    struct sim_random random;
    unsigned life;   /* of the task, in which tables were opened: */
    unsigned opened; /* the first ones */
    uint64_t left;
    bool finished;
    uint32_t own[CLUSTER_TABLE_OWN]; /* rows */

    /* The call under way. */
    struct cluster_call *call;
    enum cluster_table_step step;
    unsigned table;
    uint32_t count;
    uint64_t begun_ms;
    uint32_t *rows; /* of the model: those that are written, or looked up */
    struct mu__sorted_ids sorted;
    float *content;
};

struct cluster_tables {
    /* The test's, before it begins. It outlives the simulator's run. */
    struct cluster *cluster;
    const struct cluster_copies *copies;
    struct sim_random random;
    uint64_t until_ms; /* then members are not looked at any more */

    struct cluster_table_model model;
    struct cluster_table_program programs[CLUSTER_TABLE_PROGRAMS_MAX];
    unsigned programs_count;
    uint64_t pushed; /* batches that were acknowledged */
    uint64_t deleted;
    uint64_t looked; /* look-ups */
    uint64_t unknown;
    uint64_t compared; /* members that had applied the same record */
};

/* Each task has a program. Not within an event. */
void cluster_tables_begin(struct cluster_tables *tables);
void cluster_tables_free(struct cluster_tables *tables);

/* Whether all programs have come to their end. */
bool cluster_tables_are_over(const struct cluster_tables *tables);

/* The chief looks all rows up. */
void cluster_tables_check(struct cluster_tables *tables);

#endif
