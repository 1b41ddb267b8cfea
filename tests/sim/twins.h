/* Second processes of tasks: each says that it is a worker, or another task, which a
 * process plays already; at an address of its own, or at that of the first one. They come
 * and go by chance. Whichever of two is told that the other one plays the task ends; the
 * first ones are started again. */
#ifndef MU_TESTS_SIM_TWINS_H
#define MU_TESTS_SIM_TWINS_H

#include "sim/world/random.h"
#include "tests/sim/cluster.h"

enum { CLUSTER_TWINS_MAX = 3 };

struct cluster_twin {
    struct cluster_task *task;
    struct cluster_task *of;
    char name[16];
};

struct cluster_twins {
    /* The test's, before it begins. It outlives the simulator's run. */
    struct cluster *cluster;
    struct sim_random random;
    uint64_t until_ms; /* then all second ones are gone for good */

    /* The one that a second process plays next; NULL: none. */
    struct cluster_task *(*choose)(struct cluster_twins *twins);
    void *user;

    struct cluster_twin twins[CLUSTER_TWINS_MAX];
    unsigned count;
    unsigned first;     /* of the cluster's tasks: the first second one */
    uint64_t told;      /* second ones that ended, because they were told */
    uint64_t took_over; /* first ones that did */
};

/* Adds `count` processes, none of which is started, and plans what they do. Not within
 * an event. */
void cluster_twins_begin(struct cluster_twins *twins, unsigned count);

#endif
