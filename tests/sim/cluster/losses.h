/* Parameter servers that die, one at a time: each time that every partition has a backup,
 * as the chief's views say, one server may be killed; it starts again, empty, and gets
 * its share. Others are drained meanwhile, and the chief dies, if views are recorded. So
 * nothing that was acknowledged may be missing in the end. */
#ifndef MU_TESTS_SIM_CLUSTER_LOSSES_H
#define MU_TESTS_SIM_CLUSTER_LOSSES_H

#include "tests/sim/cluster/resizing.h"

struct cluster_losses {
    /* The test's, before it begins. It outlives the simulator's run. */
    struct cluster *cluster;
    struct sim_random random;
    uint64_t until_ms;                 /* then no server is killed any more */
    unsigned servers;                  /* that may be killed: the first ones */
    bool chief_dies;                   /* what it records outlives it */
    struct cluster_resizing *resizing; /* zeroed: in some runs servers come and go, too,
                                          and are killed; NULL: that is the test's */

    unsigned killed;
    unsigned drained;
    unsigned moving; /* times at which partitions were moved */
    unsigned chiefs; /* that were killed */
};

/* The state of the chief's views actor; NULL: there is no chief now. */
const void *cluster_views(const struct cluster *cluster);

/* Whether all partitions would survive the loss of any server. */
bool cluster_is_backed(const struct cluster *cluster);

/* The server is to give away all that it has; false: there is no chief now. */
bool cluster_drain_server(struct cluster *cluster, unsigned server);

/* Not within an event. */
void cluster_losses_begin(struct cluster_losses *losses);

/* Whether nothing is copied or moved any more; as sim_run_to() takes it. `arg` is the
 * losses. */
bool cluster_losses_are_mended(void *arg);

#endif
