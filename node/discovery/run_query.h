/* A query of a resolver: on the calling thread, or on one of its own, whose outcome
 * arrives in a loop. */
#ifndef MU_NODE_RUN_QUERY_H
#define MU_NODE_RUN_QUERY_H

#include "resolver/engine/query.h"
#include "resolver/engine/uv/real_sources.h"

#include <muster/resolver.h>

#include <uv.h>

enum mu__query_operation {
    MU__QUERY_RESOLVE,
    MU__QUERY_DETECT, /* only find out which resolver it is: see
                         mu__resolver_announces in resolver/engine/resolver.h */
    MU__QUERY_ANNOUNCE,
    MU__QUERY_WITHDRAW,
    MU__QUERY_LEAVE /* none: wait for what was left behind, for functions until the
                       timeout; `progress` gets the names of others */
};

/* The outcome of a query. */
struct mu__query_result {
    int code; /* 0, or the error */
    mu_error error;
    mu_resolution resolution; /* of RESOLVE, when code is 0: the receiver frees
                                 `cluster` */
    int task_index;           /* of ANNOUNCE: the task's, chosen where it was -1 */
    uint32_t again_ms;        /* of ANNOUNCE: when to announce again; 0: not */
    unsigned rounds;          /* that have failed */
};

struct mu__run_query_config {
    uv_loop_t *loop;
    struct mu__sources_uv *sources; /* borrowed; of one query at a time */
    mu_resolver *resolver;          /* borrowed; one query at a time, and beside it one
                                       that announces or withdraws */

    /* In place of a resolver (which is NULL then): the function that is run, as in
     * mu__query_config; `what` is RESOLVE. */
    int (*run)(void *run_owner, struct mu__requests *requests, mu_error *ret_error);
    void *run_owner;
    enum mu__query_operation what;
    const mu_announcement *announcement; /* of ANNOUNCE and WITHDRAW; its texts are
                                            borrowed */
    struct mu__query_limits limits;      /* `timeout_ms` as of mu_resolver_resolve */

    /* Called once, from the loop, never within start. */
    void (*done)(void *owner, struct mu__query_result *resolved);

    /* A line for people when something is tried again; may be NULL: then the resolver's
     * own (mu_resolver_on_progress) is called. From the loop, of lines that come fast the
     * last one. */
    void (*progress)(void *owner, const char *line);
    void *owner;
};

/* Begin a query on a thread of its own. Loop thread. -MU_ENOMEM. To end it before its
 * time: mu__sources_uv_stop(); it is soon done then, with -MU_ECANCELLED unless it was
 * ready. */
int mu__run_query_start(const struct mu__run_query_config *config);

/* The same on the calling thread. Of `config`, loop, sources and done are not looked at.
 * -MU_EPRECONDITION on a thread that runs a node's loop. */
int mu__run_query(const struct mu__run_query_config *config, mu_error *ret_error,
                  struct mu__query_result *ret_resolved);

#endif
