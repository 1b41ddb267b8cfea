/* What the tests of seeds with a simulated cluster have in common
 * (tests/support/seeds.h).
 */
#ifndef MU_TESTS_SIM_VERDICT_H
#define MU_TESTS_SIM_VERDICT_H

#include "sim/world/chaos.h"
#include "sim/world/inner.h"
#include "tests/sim/cluster.h"
#include "tests/support/seeds.h"

#include <stdio.h>

/* Faults that the seed draws begin now; they end at `until_ms`. */
static inline void verdict_begin_chaos(struct cluster *cluster, uint64_t until_ms)
{
    struct sim_chaos chaos;

    sim_chaos_draw(cluster->sim, &chaos);
    sim_chaos_start(cluster->sim, &chaos, until_ms);
}

/* At the end of a run: what happened, and what went wrong. `show`: with the trace. */
static inline void verdict_of(const struct cluster *cluster, bool show,
                              struct seeds_verdict *ret_verdict)
{
    ret_verdict->digest = sim_digest(cluster->sim);
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s",
                   cluster->broken);
    if (show)
        (void)fputs(sim_trace(cluster->sim), stdout);
}

#endif
