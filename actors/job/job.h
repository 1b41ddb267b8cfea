/* The end of the job, and of this task if it is stopped alone. One on every node.
 *
 * Hears:  CALL from the node's program; JOB_DONE from the chief; SERVER_STOP from the
 *         chief and clients; CLUSTER_OFFER from clients; SERVER_STOPPED; DRAINED from the
 *         supervisor; CLUSTER_REMOVED of this task; node news; its timers
 * Says:   on the chief JOB_DONE to every node that is up; SERVER_STOP, CLUSTER_OFFER and
 *         SERVER_STOPPED to other job actors; DRAIN to the supervisor
 * Owns:   the pending calls
 * Fails:  never */
#ifndef MU_ACTORS_JOB_H
#define MU_ACTORS_JOB_H

#include "actors/call.h"
#include "actors/task_set.h"
#include "runtime/kernel/kernel.h"

#include "muster/value.h"

/* A cluster spec, and the task that a server is in it. Borrowed. */
struct mu__offer {
    struct mu__view cluster; /* JSON */
    struct mu__view type;
    uint32_t index;
    struct mu__packed config; /* head_size 0: none */
};

/* Whether a server accepts an offer: 0, or negative with an error. */
typedef int (*mu__offer_check_fn)(void *owner, const struct mu__offer *offer,
                                  mu_error *ret_error);

/* The strings outlive the actor. */
struct mu__job_config {
    const char *task; /* of this node, "/job:worker/task:1" */
    const char *type;
    uint32_t index;
    bool runs_closures;     /* its type is one of worker_types */
    const char *chief_type; /* the task that ends the job: the chief, or worker 0 in a
                               cluster without one */
    uint32_t chief_index;
    const char *chief;        /* its name and address, for messages */
    mu__offer_check_fn check; /* of cluster specs; NULL: all are refused */
    void *check_owner;
    uint64_t orphan_ms; /* without any of them the job is taken to have ended; 0:
                           never */
    const struct mu__task_set *hosts; /* of the coordination service */
    bool takes_offer;                 /* the first accepted offer is stored for TAKE */
};

enum mu__job_operation {
    MU__JOB_WAIT,  /* until the job is done: 0, with the job's own error in `error` */
    MU__JOB_END,   /* tell every node that the job is done; waits until all links are
                      down */
    MU__JOB_STOP,  /* stop another task; waits until it has stopped */
    MU__JOB_OFFER, /* offer a cluster spec to the first node that is up */
    MU__JOB_TAKE   /* wait for an accepted cluster spec */
};

struct mu__job_call {
    struct mu__call call;
    int job_code;        /* END: the outcome of the job, 0 or negative */
    const char *message; /* END: of the error; STOP: the reason; may be NULL */
    char type[16];       /* STOP: of the task to stop; TAKE: the answer */
    uint32_t index;
    struct mu__offer offer; /* OFFER */
    const char *recipient;  /* OFFER: the server and its address, for messages */

    /* The answer to TAKE; the caller owns it. */
    char *cluster;    /* JSON; to be freed with free() */
    mu_value *config; /* NULL: none */

    /* The actor's. */
    uint64_t token; /* of the last request */
    uint32_t node;  /* that has the request and is up; 0: none */
    uint64_t began_ms;
    bool over_chief; /* STOP: the request goes to the chief, which relays it */
    bool was_lost;   /* the link to the requested node went down */
};

extern const struct mu__behavior mu__job; /* init takes the config */

#endif
