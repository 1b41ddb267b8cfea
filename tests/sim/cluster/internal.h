/* What the files of the simulated cluster share. For this folder only. */
#ifndef MU_TESTS_SIM_CLUSTER_INTERNAL_H
#define MU_TESTS_SIM_CLUSTER_INTERNAL_H

#include "tests/sim/cluster.h"

#include <assert.h>
#include <stdlib.h>

enum { SETTLE_MS = 60 * 1000, SAID_MS = 100 };

/* The arguments of "write", a list. */
enum { WRITE_KEY, WRITE_SHARD, WRITE_PARTITION, WRITE_ITEM, WRITE_SIZE };

/* Zeroed memory. */
static inline void *cluster__get(size_t size)
{
    void *memory = calloc(1, size);

    assert(memory != NULL);
    return memory;
}

/* What sends RELEASE when nobody holds a value of the supervisor any more. */
extern const struct mu__future_owner cluster__holding_home;

struct cluster_call *cluster__call_new(struct cluster_task *task, int operation,
                                       int64_t timeout_ms);

void cluster__home_ref(struct mu__future_owner *home);
struct cluster_call *cluster__post(struct cluster_call *call, uint32_t actor);
void cluster__register_functions(struct cluster_task *task);
uint64_t cluster__work_us(const struct mu__work *work);

#endif
