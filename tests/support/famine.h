/* One node of a cluster in the simulator is short of memory: some of its allocations
 * fail. Include it in one file of a test whose name ends in _oom. */
#ifndef MU_TESTS_FAMINE_H
#define MU_TESTS_FAMINE_H

#include "tests/sim/cluster.h"
#include "tests/sim/inner.h"

static struct {
    const struct sim_node *victim;  /* NULL: there is memory for everybody */
    struct sim_random random;
    unsigned percent;               /* of its allocations fail */
    uint64_t failed;
} famine;

/* For malloc_fails(). */
static bool famine_strikes(void)
{
    if (famine.victim == NULL || sim_own_memory > 0 ||
        famine.victim->sim->current != famine.victim ||
        !sim_chance(&famine.random, famine.percent))
        return false;
    famine.failed++;
    return true;
}

/* What is in the free lists would be used before malloc is asked: they are emptied. */
static void famine_begin(struct cluster_task *task)
{
    struct mu__pool *pool = mu__kernel_pool(task->member.kernel);
    uint64_t live = pool->live;

    mu__pool_done(pool);
    mu__pool_init(pool);
    pool->live = live;
    famine.victim = task->node;
}

static void famine_end(void)
{
    famine.victim = NULL;
}

#endif
