/* Knows whether the job is done, for this task at least. One on every node.
 *
 * Hears:  CALL from the node's program; JOB_DONE from the chief; SERVER_STOP from chief
 *         and clients; CLUSTER_OFFER from who offers a cluster spec; SERVER_STOPPED;
 *         DRAINED from the supervisor; CLUSTER_REMOVED of this task; node news; its
 *         timers
 * Says:   JOB_DONE to every node that is up, on the chief; SERVER_STOP, CLUSTER_OFFER and
 *         SERVER_STOPPED to other job actors; DRAIN to the supervisor
 * Owns:   the calls that wait
 * Fails:  never */
#ifndef MU_ACTORS_JOB_H
#define MU_ACTORS_JOB_H

#include "actors/call.h"
#include "runtime/kernel/kernel.h"

#include "muster/value.h"

/* The task type of nodes that only offer a cluster spec. No cluster has one. */
#define MU__OFFER_TYPE "offer"

/* A cluster spec, and who a server is in it. Borrowed. */
struct mu__offer {
    struct mu__view cluster;    /* JSON */
    struct mu__view type;
    uint32_t index;
    struct mu__packed config;   /* head_size 0: none */
};

/* 0, or why a server does not take it. */
typedef int (*mu__offer_check_fn)(void *owner, const struct mu__offer *offer,
                                  mu_error *ret_error);

/* The strings outlive the actor. */
struct mu__job_config {
    const char *task;           /* of this node, "/job:worker/task:1" */
    const char *type;
    uint32_t index;
    bool runs_closures;         /* its type is one of worker_types */
    const char *chief_type;     /* who ends the job; worker 0 where there is no chief */
    uint32_t chief_index;
    const char *chief;          /* the same in words, with its address */
    mu__offer_check_fn check;   /* of cluster specs; NULL: none is taken */
    void *check_owner;
    bool takes_offer;           /* the first one that passes is kept for TAKE */
};

enum mu__job_operation {
    MU__JOB_WAIT,   /* until the job is done: 0, with the job's own error in `error` */
    MU__JOB_END,    /* tell every node; waits until all have hung up */
    MU__JOB_STOP,   /* have another task stopped; waits until it is */
    MU__JOB_OFFER,  /* give a cluster spec to the first node that is up */
    MU__JOB_TAKE    /* wait for a cluster spec that passes */
};

struct mu__job_call {
    struct mu__call call;
    int job_code;           /* END: what the job came to, 0 or negative */
    const char *message;    /* END: words, or NULL. STOP: the reason, or NULL */
    char type[16];          /* STOP: the task */
    uint32_t index;
    struct mu__offer offer; /* OFFER */
    const char *recipient;      /* OFFER: to whom and where, for messages */

    char *cluster;          /* TAKE: JSON, the caller frees it; `type` and `index` too */
    mu_value *config;       /* the caller's, NULL: none */

    uint64_t token;         /* the actor's, as what follows */
    uint32_t node;          /* that was asked and is up; 0: none */
    uint64_t began_ms;
    bool over_chief;        /* it was the chief, who is not the one */
    bool was_lost;          /* after it was asked */
};

extern const struct mu__behavior mu__job;   /* init takes the config */

#endif
