/* A cluster that changes: workers come, go, and move to another process. There is one
 * truth, in versions. Nodes learn of each version by themselves, some late; none learns
 * of an earlier one after a later one. A process whose task has gone or moved may live on
 * for a while, or is gone already. */
#ifndef MU_TESTS_SIM_CHANGING_H
#define MU_TESTS_SIM_CHANGING_H

#include "sim/world/random.h"
#include "tests/sim/cluster.h"

enum {
    CLUSTER_CHANGES_MAX = 24,
    CLUSTER_AWAY_MAX = 3 /* workers that move, with a second process each */
};

struct cluster_lesson;

struct cluster_changing {
    /* The test's, before it begins. */
    struct cluster *cluster;
    struct sim_random random;
    unsigned fixed;    /* workers, the first ones, that stay where they are */
    uint64_t until_ms; /* changes are made until then */

    /* A task hears of a version; may be NULL. `before` is what it knew. */
    void (*learned)(void *user, struct cluster_task *task, const mu_cluster *before,
                    const mu_cluster *after);
    void *user;

    mu_cluster *specs[CLUSTER_CHANGES_MAX + 1];
    unsigned count;
    unsigned known[CLUSTER_TASKS_MAX]; /* by task: the version that it has, plus 1 */
    struct cluster_task *away[CLUSTER_AWAY_MAX]; /* by worker behind the fixed ones */
    struct cluster_lesson *lessons;
};

/* Adds the second processes, which are not started, and plans changes. `config` has what
 * is the test's. There are more workers than fixed ones. */
void cluster_changing_begin(struct cluster_changing *changing,
                            const struct cluster_changing *config);

/* When all has healed: every worker is listed and runs, in one place, as soon as all have
 * learned of it. */
void cluster_changing_end(struct cluster_changing *changing);

/* By hand, of a cluster_changing that was not begun: another version, with the task,
 * which learns of it at once. There is room for CLUSTER_CHANGES_MAX. */
void cluster_changing_list(struct cluster_changing *changing, struct cluster_task *task);
void cluster_changing_free(struct cluster_changing *changing);

/* Whether a task is where its process is, in the last version. */
bool cluster_changing_lists(const struct cluster_changing *changing,
                            const struct cluster_task *task);

#endif
