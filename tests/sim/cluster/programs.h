/* Programs of a swarm over a simulated cluster: the chief's and those of clients schedule
 * bursts of closures and ask now and then, as their random numbers say. */
#ifndef MU_TESTS_SIM_CLUSTER_PROGRAMS_H
#define MU_TESTS_SIM_CLUSTER_PROGRAMS_H

#include "sim/world/random.h"
#include "sim/world/storage.h"
#include "tests/sim/changing.h"
#include "tests/sim/cluster.h"
#include "tests/sim/cluster/losses.h"
#include "tests/sim/mending.h"
#include "tests/sim/twins.h"

enum {
    PROGRAMS_MAX = 3,
    NAMES_MAX = 60,   /* closures with names, in a run with a journal */
    QUEUE_WIDE = 4096 /* a queue that is never full here */
};

struct run;

/* Rare places: how often runs came there. */
enum reached {
    KEPT,
    WITH_INPUTS,
    RECOMPUTED,
    RELEASED,
    CANCELLED,
    DRAINED,
    JOURNALS, /* chiefs that read one */
    KNOWN,    /* names that had finished in a former life */
    NOT_WRITTEN,
    BACKUPS,
    STUCK,
    FENCES, /* chiefs of runs that write */
    ADDED,
    REMOVED,
    MOVED,   /* workers, as chiefs learned of it */
    OF_TYPE, /* closures for tasks of one type alone */
    WAITED,  /* looks at clients whose closures had no room */
    RECALLED,
    HANGS_RECALLED, /* the same, in runs where functions hang */
    REFUSED,        /* damaged files that a chief did not start over */
    TIGHT,          /* times that a disk had no room, also over restarts */
    TWINS_TOLD,     /* second processes that heard that they are */
    TOOK_OVER,      /* first ones that did: they had stood still */
    SERVERS_KILLED, /* whose partitions had backups */
    SERVERS_ADDED,
    REACHED
};

/* A closure that the chief's program schedules under a name, in each of its lives, until
 * it has finished. */
struct named {
    char name[16];
    int64_t key; /* negative: it was never scheduled */
    bool writes;
    bool seen;                       /* finished, in whatever life */
    struct cluster_closure *closure; /* the last one */
};

/* What the chief's program or a client does: bursts of closures, and now and then a
 * question. A step happens every so often; one that finds a call unanswered waits. */
struct program {
    struct run *run;
    struct cluster_task *task;
    struct sim_random random;
    uint64_t goal; /* closures to schedule, over all sessions */
    bool waits;    /* for room, before it schedules */
    bool asks;     /* has wishes about how closures are run */
    uint64_t scheduled;
    uint64_t failed_mark;      /* how many had failed when an error was raised last */
    struct cluster_call *call; /* that it waits for */
    bool opens;                /* the call opens the counter */
    uint64_t raised;           /* errors; of these: */
    uint64_t given_up;
    uint64_t chief_lost;
    uint64_t not_written; /* by the journal */
    struct named names[NAMES_MAX];
    unsigned names_count;
    unsigned names_next; /* to be scheduled in this session */
    struct cluster_per_worker *mine;
    struct cluster_call *leaves; /* of the worker that is to leave */
    struct cluster_task *leaving;
    bool finished;
};

/* What is drawn beside the cluster's options. */
struct plan {
    uint64_t chaos_ms;
    uint64_t healed_ms; /* for what is left after all chaos */
    unsigned stuck_percent;
    bool chief_crashes;
    bool asks;
    bool writes;
    bool keeps;   /* results, and per-worker values */
    bool cancels; /* closures one by one */
    bool drains;
    bool journal;
    bool full_disk;        /* for a while */
    bool changes;          /* of the cluster */
    bool mixed;            /* functions are now quick, now slow */
    bool types;            /* closures for tasks of one type alone */
    unsigned hurt_percent; /* of the chief's crashes that damage its journal */
    bool tight;            /* there is no room on its disk now and then */
    unsigned twins;        /* second processes of tasks */
};

struct run {
    struct cluster *cluster;
    struct plan plan;
    struct program programs[PROGRAMS_MAX];
    size_t programs_count;
    bool counter_ready; /* the chief has opened it */
    struct sim_storage *journal;
    struct cluster_changing changing;
    struct cluster_mending mending;
    struct cluster_twins twins;
    struct cluster_losses losses;
    struct cluster_resizing resizing;
    uint64_t *reached; /* the verdict's */
};

void program_schedule_name(struct program *program, struct named *named);
bool program_all_names_finished(const struct program *program);
void program_draw_names(struct program *program);
void program_step(struct sim *sim, void *arg);

#endif
