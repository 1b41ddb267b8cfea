/* What must be of the replicas of counted variables at any moment, looked at from the
 * outside, whatever the chief and the servers believe:
 *
 * - What was acknowledged is at each member of the newest view that anybody knows.
 * - Members that have applied the same record have the same sum.
 * - The number of a view that servers have heard of stands for one view, and of two
 *   primaries at most the one of the newest view completes writes by itself. */
#ifndef MU_TESTS_SIM_CLUSTER_COPIES_H
#define MU_TESTS_SIM_CLUSTER_COPIES_H

#include "sim/world/random.h"
#include "tests/sim/cluster/counted.h"

enum { CLUSTER_SHARDS_MAX = 8 };

struct cluster_copies {
    /* The test's, before it begins. It outlives the simulator's run. */
    const struct cluster_counts *counts;
    struct sim_random random;
    unsigned servers; /* of cluster->servers */
    uint64_t until_ms;

    struct mu__partition_view heard[CLUSTER_SHARDS_MAX]; /* the newest one, by servers */
    uint64_t looked;                                     /* at members with content */
    uint64_t compared; /* times at which two had the same record */
};

void cluster_copies_begin(struct cluster_copies *copies);

/* The members of a partition in the newest view; NULL: its process is gone, or has not
 * heard of it yet, or it is not counted on, as one that is being filled. */
struct cluster_members {
    struct mu__partition_view newest;
    const struct partition *primary;
    const struct partition *backup;
    bool are_alike; /* they have applied the same record in the same view */
};

struct cluster_members cluster_members_of(const struct cluster_copies *copies,
                                          uint32_t partition);

#endif
