/* Somebody who looks after a file of a task: a chief's journal, a host's store. Crashes
 * damage it now and then; a process must not start over it, and must not change it. Then
 * it is put back from a copy, and the process is started again. In some runs the disk has
 * no room for a while, also while the process is started again. */
#ifndef MU_TESTS_SIM_MENDING_H
#define MU_TESTS_SIM_MENDING_H

#include "sim/world/random.h"
#include "sim/world/storage.h"
#include "tests/sim/cluster.h"

struct cluster_mending {
    /* The test's, before it begins. It outlives the simulator's run. */
    struct cluster *cluster;
    struct cluster_task *task;
    struct sim_storage *storage;
    struct sim_random random;
    uint64_t until_ms;     /* then all is well for good */
    unsigned hurt_percent; /* of crashes that damage the file */
    bool tight;            /* there is no room now and then */

    unsigned refused;       /* of the task, as it was seen last */
    unsigned refused_tight; /* the same */
    unsigned tight_count;   /* how often there was no room */
};

void cluster_mending_begin(struct cluster_mending *mending);

#endif
