/* Faults drawn from the seed. Which kinds there are at all is drawn per run, because a
 * run with everything on never reaches the rare places. Every fault is a line of the
 * trace. */
#ifndef MU_TESTS_SIM_CHAOS_H
#define MU_TESTS_SIM_CHAOS_H

#include "tests/sim/sim.h"

enum sim_fault {
    SIM_FAULT_CRASH,        /* then a restart after a while */
    SIM_FAULT_CRASH_MIDWAY, /* the same, in the middle of a turn */
    SIM_FAULT_PAUSE,
    SIM_FAULT_CUT,
    SIM_FAULT_CUT_HALF,
    SIM_FAULT_BLOCK,     /* one way */
    SIM_FAULT_PARTITION, /* both ways, between two groups */
    SIM_FAULT_SLOW_NODE,
    SIM_FAULT_SLOW_LINK,
    SIM_FAULTS
};

struct sim_chaos {
    bool on[SIM_FAULTS];
    uint64_t every_ms;     /* mean time between two faults */
    uint64_t lasts_ms_max; /* of whatever lasts: a pause, a block, being dead */
};

/* Some kinds, at least one, and rates. */
void sim_chaos_draw(struct sim *sim, struct sim_chaos *ret_chaos);

/* Do that to all nodes from now until `until_ms`. Then everything heals, and processes
 * that chaos has killed are running again. Once in the life of a simulator. */
void sim_chaos_start(struct sim *sim, const struct sim_chaos *chaos, uint64_t until_ms);

/* Chaos does not do `fault` to this process, whose test could not bear it. */
void sim_chaos_spare(struct sim_node *node, enum sim_fault fault);

/* "crash midway" for SIM_FAULT_CRASH_MIDWAY. */
const char *sim_fault_name(enum sim_fault fault);

#endif
