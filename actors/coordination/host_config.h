/* What a host of the coordination service is started with. */
#ifndef MU_ACTORS_COORDINATION_HOST_CONFIG_H
#define MU_ACTORS_COORDINATION_HOST_CONFIG_H

#include "actors/coordination/store/store.h"

/* The job's run that the process takes part in, as its agent was told; 0: none yet. */
struct mu__own_run {
    uint64_t store;         /* the number of the content that it is a run of */
    uint64_t number;
};

struct mu__coordination_config {
    const struct mu__store_kind *store;
    const char *store_location;
    struct mu__storage *storage;        /* journal */
    struct mu__http *http;  /* etcd */
    const struct mu__store_access *access;  /* etcd; may be NULL. Outlives the actor */
    const char *cluster_name;
    const char *task;       /* of this node; outlives the actor */
    uint64_t incarnation;   /* of this node */
    const char *tasks;      /* a task set: the coordinated jobs, which "all" means */
    const char *recoverable; /* types whose failures are not told to others, with commas
                               between; "all", "none" */
    uint32_t suspect_ms;    /* not heard for so long: suspect */
    uint32_t dead_ms;       /* and for so long: dead */
    uint32_t reconnect_ms;  /* dead, too, when its link is down for so long */
    uint32_t stuck_ms;      /* a task that says nothing about its progress for so long is
                               in error; 0: none is */
    uint32_t leave_ms;      /* a barrier at shutdown, with this limit; 0: none */
    uint32_t lease_ms;      /* of the leader among hosts */
    const char *run;        /* the job's run that it is to be in; NULL, "": the one that
                               goes on, or a new one */
    const struct mu__own_run *own_run;  /* NULL: it takes part in none. Outlives the
                                           actor */
    uint64_t (*wall_ms)(void);  /* since 1970; NULL: the world's clock is shown */
    bool only_looks;        /* shows and clears what the store has, begins no run */
};

#endif
