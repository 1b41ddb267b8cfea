/* Taps: actors that give streams to each other by chance, and the model of what may come
 * of it: see tests/actors/user/test_stream_seeds.c. */
#ifndef MU_TESTS_TAPS_H
#define MU_TESTS_TAPS_H

#include "actors/user/actions.h"
#include "sim/world/random.h"
#include "tests/sim/cluster.h"

enum { TAPS_MAX = 192, FLOWS_MAX = 1 << 13 };

enum reached {
    BEGUN,
    ITEMS,
    ENDED_WELL,
    ENDED_BY_ERROR,
    LOST,
    FAILED_METHODS,
    FAILED_TURNS,
    REFUSED,
    ROOMS,
    PAUSES,
    CLOSED,
    CANCELLED,
    REACHED
};

/* A stream. */
struct flow {
    unsigned from; /* taps: that gives it, */
    unsigned to;   /* and that reads it; both + 1; 0: there is no such flow */
    unsigned ahead;
    uint32_t total; /* items that it is to have */
    bool lasts;     /* it is closed after these, not ended */

    /* Of who gives. */
    mu_stream *stream; /* NULL: not begun, or over */
    uint32_t given;    /* in turns that have ended well, and in the present one */
    int code;          /* that it ended with */
    bool begun;
    bool failed;  /* its method has */
    bool ended;   /* by who gives it */
    bool blocked; /* refused, and not told of room since */

    /* Of who reads. */
    uint32_t seen;
    bool paused;
    bool over; /* it was closed, or its end has come */
};

struct tap {
    mu_address address;
    unsigned number;
    struct cluster_task *task;
};

struct taps {
    struct cluster *cluster;
    struct sim_random random;
    struct tap taps[TAPS_MAX];
    unsigned taps_count;
    struct flow flows[FLOWS_MAX];
    unsigned flows_count;
    unsigned lives[CLUSTER_TASKS_MAX];
    bool over; /* nothing new is begun */
    uint64_t *reached;
};

/* Those of the run. */
extern struct taps *taps;

extern const mu_actor_type tap_type;

/* One more, of a task. */
void taps_spawn(struct cluster_task *task);

struct office *taps_office(const struct cluster_task *task);

#endif
