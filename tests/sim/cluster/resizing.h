/* Parameter servers that come and go while work goes on. Some are added to the cluster,
 * of which tasks learn by themselves, some late. One that is to go is drained first, and
 * goes once it has nothing; or it goes with all that it has, if every partition has a
 * backup. It may come back. */
#ifndef MU_TESTS_SIM_CLUSTER_RESIZING_H
#define MU_TESTS_SIM_CLUSTER_RESIZING_H

#include "tests/sim/changing.h"

enum { CLUSTER_RESIZING_MAX = 2 }; /* servers that are not there at first */

struct cluster_resizing {
    /* The test's, before it begins. It outlives the simulator's run. */
    struct cluster *cluster;
    struct sim_random random;
    uint64_t until_ms; /* then none comes or goes any more */

    unsigned servers; /* of cluster->servers: these may be there */
    struct cluster_changing changing;
    bool leaves[CLUSTER_SERVERS_MAX]; /* it was drained */
    unsigned added;
    unsigned left; /* with nothing, */
    unsigned gone; /* and with all that they had */
};

/* Add tasks that are not in the cluster, behind the other servers. They are not started
 * now, and chaos does not crash them. */
void cluster_resizing_prepare(struct cluster_resizing *resizing);
void cluster_resizing_begin(struct cluster_resizing *resizing);
void cluster_resizing_free(struct cluster_resizing *resizing);

#endif
