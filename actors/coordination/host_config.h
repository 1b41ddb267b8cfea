/* The configuration of a host of the coordination service. */
#ifndef MU_ACTORS_COORDINATION_HOST_CONFIG_H
#define MU_ACTORS_COORDINATION_HOST_CONFIG_H

#include "actors/coordination/store/store.h"

/* The run of the job that the process takes part in, as its agent was told. */
struct mu__own_run {
    uint64_t store;  /* the number of the store's content that has this run */
    uint64_t number; /* 0: none yet */
};

struct mu__coordination_config {
    const struct mu__store_kind *store;
    const char *store_location;
    struct mu__storage *kept;    /* the file of kept actors; NULL: there are none */
    struct mu__storage *storage; /* journal */
    struct mu__http *http;       /* etcd */
    const struct mu__store_access *access; /* etcd; may be NULL. Outlives the actor */
    const char *cluster_name;
    const char *task;        /* of this node; outlives the actor */
    uint64_t incarnation;    /* of this node */
    const char *tasks;       /* a task set: the coordinated jobs, which "all" means */
    const char *recoverable; /* "ps,worker": types whose failures do not fail the others;
                               "all", "none" */
    uint32_t suspect_ms;     /* without a heartbeat for so long a task is suspect, */
    uint32_t dead_ms;        /* and for so long dead, */
    uint32_t reconnect_ms;   /* as it is when its link is down for so long */
    uint32_t stuck_ms;       /* a task without progress for so long fails; 0: none does */
    uint32_t leave_ms;       /* timeout of the barrier at shutdown; 0: no such barrier */
    uint32_t lease_ms;       /* of the leader among hosts */
    const char *run;         /* name of the run to be in; NULL, "": the present one, or a
                                new one */
    const struct mu__own_run *own_run; /* NULL: it takes part in none. Outlives the
                                          actor */
    uint64_t (*wall_ms)(void);         /* since 1970; NULL: the world's clock is shown */
    bool only_looks; /* shows and clears the content of the store, begins no run */
};

#endif
