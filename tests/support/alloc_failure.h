/* One node of a cluster in the simulator is short of memory: some of its allocations
 * fail. Include it in one file of a test whose name ends in _oom. */
#ifndef MU_TESTS_ALLOC_FAILURE_H
#define MU_TESTS_ALLOC_FAILURE_H

#include "sim/world/inner.h"
#include "tests/sim/cluster.h"

static struct {
    const struct sim_node *victim; /* NULL: there is memory for everybody */
    struct sim_random random;
    unsigned percent; /* of its allocations fail */
    uint64_t failed;
} alloc_failure;

/* For malloc_fails(). */
static bool alloc_failure_due(void)
{
    if (alloc_failure.victim == NULL || sim_own_memory > 0 ||
        alloc_failure.victim->sim->current != alloc_failure.victim ||
        !sim_chance(&alloc_failure.random, alloc_failure.percent))
        return false;
    alloc_failure.failed++;
    return true;
}

/* What is in the free lists would be used before malloc is asked: they are emptied. */
static void alloc_failure_begin(struct cluster_task *task)
{
    struct mu__pool *pool = mu__kernel_pool(task->member.kernel);
    uint64_t live = pool->live;

    mu__pool_done(pool);
    mu__pool_init(pool);
    pool->live = live;
    alloc_failure.victim = task->node;
}

static void alloc_failure_end(void)
{
    alloc_failure.victim = NULL;
}

#endif
