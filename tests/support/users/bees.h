/* Bees: actors that do things to each other by chance, and the model of what they may see
 * of it: see tests/actors/user/test_actor_seeds.c. */
#ifndef MU_TESTS_BEES_H
#define MU_TESTS_BEES_H

#include "actors/user/actions.h"
#include "sim/world/random.h"
#include "tests/sim/cluster.h"

enum { BEES_MAX = 256, CALLS_MAX = 1 << 15, WATCHES_MAX = 1 << 12, TIMERS_MAX = 1 << 13 };

enum reached {
    SENT,
    FAILED_TURNS,
    FULL,
    ANSWERED,
    RAN_NO,
    RAN_MAYBE,
    RAN_YES,
    CYCLES,
    DOWNS,
    CANCELLED,
    REMOTE,
    WORKS,
    REACHED
};

/* Of a call: what has become of it. */
struct call {
    unsigned from; /* bee + 1; 0: the call is free */
    uint64_t begun_ms;
    uint64_t timeout_ms;
    unsigned ran; /* times */
    bool ended;
    bool not_run; /* as its error said */
    bool cycle;   /* it cannot succeed */
};

struct watched {
    unsigned by;
    unsigned who;
    bool fired;
};

struct timed {
    unsigned bee;
    uint64_t other; /* is cancelled when this one fires; 0: none */
    bool cancelled;
    bool fired;
};

struct bee {
    mu_address address;
    unsigned number;
    bool alive;
    bool refused; /* for want of room, and not told of any since */
    struct cluster_task *task;
    uint32_t mailbox_max;
    uint32_t sent[BEES_MAX]; /* to each, in turns that have ended well */
    uint32_t seen[BEES_MAX]; /* the last from each */
};

struct hive {
    struct cluster *cluster;
    struct sim_random random;
    struct bee bees[BEES_MAX];
    unsigned bees_count;
    struct call calls[CALLS_MAX];
    unsigned calls_count;
    struct watched watched[WATCHES_MAX];
    unsigned watched_count;
    struct timed timed[TIMERS_MAX];
    unsigned timed_count;
    unsigned lives[CLUSTER_TASKS_MAX];
    bool over; /* nothing new is begun */
    uint64_t *reached;
};

/* The one of the run. */
extern struct hive *hive;

extern const mu_actor_type bee_type;

uint64_t hive_draw(uint64_t min, uint64_t max);

/* One more, of a task, or as a child. */
void hive_spawn(struct cluster_task *task, mu_actor *parent);

struct office *hive_office(const struct cluster_task *task);

#endif
