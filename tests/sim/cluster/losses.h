/* Parameter servers that die, one at a time: each time that every partition has a backup,
 * as the chief's views say, one server may be killed; it starts again, empty, and gets
 * its share. Others are drained meanwhile. So nothing that was acknowledged may be
 * missing in the end. */
#ifndef MU_TESTS_SIM_CLUSTER_LOSSES_H
#define MU_TESTS_SIM_CLUSTER_LOSSES_H

#include "tests/sim/cluster.h"
#include "tests/sim/random.h"

struct cluster_losses {
    /* The test's, before it begins. It outlives the simulator's run. */
    struct cluster *cluster;
    struct sim_random random;
    uint64_t until_ms; /* then no server is killed any more */

    unsigned killed;
    unsigned drained;
    unsigned moving; /* times at which partitions were moved */
};

/* Not within an event. */
void cluster_losses_begin(struct cluster_losses *losses);

/* Whether nothing is copied or moved any more; as sim_run_to() takes it. `arg` is the
 * losses. */
bool cluster_losses_are_mended(void *arg);

#endif
