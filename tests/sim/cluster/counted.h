/* Variables whose items count: each add puts 1 to each of them. Several such variables
 * have the same shape, and shard k of each is in the same partition. */
#ifndef MU_TESTS_SIM_CLUSTER_COUNTED_H
#define MU_TESTS_SIM_CLUSTER_COUNTED_H

#include "tests/sim/cluster.h"

enum { CLUSTER_COUNTED_MAX = 2 };

/* Whoever adds to a variable has added to the one before it. */
struct cluster_counted {
    const char *name;
    uint64_t begun;        /* adds; no item is more, */
    uint64_t acknowledged; /* and none is less */
};

struct cluster_counts {
    struct cluster *cluster;
    struct mu__shape shape;
    struct cluster_counted counted[CLUSTER_COUNTED_MAX];
    unsigned count;
};

static inline uint32_t cluster_counts_partition(const struct cluster_counts *counts,
                                                uint32_t shard)
{
    return mu__partition_of(mu__view_str(counts->counted[0].name), shard);
}

#endif
