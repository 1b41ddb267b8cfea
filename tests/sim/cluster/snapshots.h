/* A program that takes snapshots of counted variables, one partition after the other,
 * while others add to them, and reads them slowly. Each must be a prefix of the stream:
 *
 * - An item has what was acknowledged before the snapshot was asked for, and nothing that
 *   was begun after it was opened.
 * - A variable has no more than the one that is always added to before it.
 * - The windows have a number for each add that is in it.
 * - Of two snapshots the later one is not of an earlier record; of the same record they
 *   have the same sum and the same items. */
#ifndef MU_TESTS_SIM_CLUSTER_SNAPSHOTS_H
#define MU_TESTS_SIM_CLUSTER_SNAPSHOTS_H

#include "tests/sim/cluster/copies.h"

enum { CLUSTER_SNAPSHOT_ITEMS_MAX = 1 << 14 };

/* Of one partition, as it was read last. */
struct cluster_snapshot {
    uint64_t record;
    uint64_t sum;
    int64_t first[CLUSTER_COUNTED_MAX]; /* items of the shard */
};

struct cluster_snapshots {
    /* The test's, before it begins. It outlives the simulator's run. No variable has more
     * than CLUSTER_SNAPSHOT_ITEMS_MAX items. */
    const struct cluster_counts *counts;
    struct cluster_task *task;
    struct sim_random random;
    uint64_t until_ms; /* then no snapshot is taken any more */

    struct cluster_call *call;
    struct mu__snapshot_call asked;
    unsigned life;   /* of the task, in which the variables were opened: */
    unsigned opened; /* the first ones */
    uint64_t ids[CLUSTER_COUNTED_MAX][CLUSTER_SHARDS_MAX];
    uint8_t wanted[CLUSTER_COUNTED_MAX * 8];

    /* The snapshot that is read. */
    bool reads;
    uint32_t shard;
    unsigned part;                                      /* the next one: a variable, */
    struct cluster_counted before[CLUSTER_COUNTED_MAX]; /* behind them the windows */
    struct cluster_counted after[CLUSTER_COUNTED_MAX];
    uint64_t windows_bytes;
    struct cluster_snapshot snapshot;
    int64_t items[CLUSTER_COUNTED_MAX][CLUSTER_SNAPSHOT_ITEMS_MAX];
    uint8_t windows[1 << 14];

    struct cluster_snapshot last[CLUSTER_SHARDS_MAX];
    uint64_t taken;
    uint64_t aborted;
};

void cluster_snapshots_begin(struct cluster_snapshots *snapshots);

#endif
