/* Faults drawn from the seed. Which kinds there are at all is drawn per run, because a
 * run with everything on never reaches the rare places. Every fault is a line of the
 * trace. */
#ifndef MU_SIM_WORLD_CHAOS_H
#define MU_SIM_WORLD_CHAOS_H

#include "sim/world/sim.h"

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

/* ---- Faults that are told ---- */

#define SIM_FAULT_NO_END UINT64_MAX

enum { SIM_FAULTS_NOTED_MAX = 4096 };

/* One fault as it began. */
struct sim_fault_told {
    enum sim_fault kind;
    unsigned number;    /* frames that it still sends; how many times slower */
    struct sim_node *a; /* alive, or nothing happens */
    struct sim_node *b; /* of those of two */
    uint64_t at_us;
    uint64_t end_us;                   /* of a crash SIM_FAULT_NO_END: not by itself */
    uint64_t side[SIM_NODES_MAX / 64]; /* a partition's, by the number of the node */
};

void sim_fault_put_aside(struct sim_fault_told *fault, const struct sim_node *node);
bool sim_fault_is_aside(const struct sim_fault_told *fault, const struct sim_node *node);

/* Now, whatever its at_us says. */
void sim_fault_begin(const struct sim_fault_told *fault);

/* Start the process if it does not run and did not exit. */
void sim_fault_revive(struct sim_node *node);

/* sim_chaos_start with these faults, in the order of their times: borrowed. */
void sim_chaos_repeat(struct sim *sim, const struct sim_fault_told *told, size_t count,
                      uint64_t until_ms);

/* What chaos has begun so far: the first SIM_FAULTS_NOTED_MAX. */
const struct sim_fault_told *sim_chaos_noted(const struct sim *sim, size_t *ret_count);

bool sim_fault_of_two(enum sim_fault fault);

/* "crash midway" for SIM_FAULT_CRASH_MIDWAY. */
const char *sim_fault_name(enum sim_fault fault);

#endif
