/* A query of a resolver in a loop, without blocking it. Loop thread only. */
#ifndef MU_NODE_LOOP_QUERY_H
#define MU_NODE_LOOP_QUERY_H

#include "resolver/engine/query.h"

#include <muster/resolver.h>

#include <uv.h>

enum mu__query_operation {
    MU__QUERY_RESOLVE,
    MU__QUERY_DETECT,   /* only find out which resolver it is: see
                           mu__resolver_announces in resolver/engine/resolver.h */
    MU__QUERY_ANNOUNCE,
    MU__QUERY_WITHDRAW
};

/* What came of it. */
struct mu__query_result {
    int code;                   /* 0, or the error */
    mu_error error;
    mu_resolution resolution;   /* of RESOLVE, when code is 0: `cluster` is now the
                                   callback's to free */
    int task_index;             /* of ANNOUNCE: the task's, chosen where it was -1 */
    uint32_t again_ms;          /* of ANNOUNCE: when to announce again; 0: not */
    unsigned rounds;            /* that have failed */
};

struct mu__loop_query_config {
    uv_loop_t *loop;
    struct mu__requester *requester; /* in the same loop: mu__requester_uv_base() */
    mu_resolver *resolver;           /* borrowed; one query at a time, and beside it one
                                   that announces or withdraws */

    /* In place of a resolver (which is NULL then): the function that is run, as in
     * mu__query_config; `what` is RESOLVE. */
    int (*run)(void *run_owner, struct mu__requests *requests, mu_error *ret_error);
    void *run_owner;
    enum mu__query_operation what;
    const mu_announcement *announcement;    /* copied; of ANNOUNCE and WITHDRAW */
    struct mu__query_limits limits; /* `timeout_ms` as of mu_resolver_resolve */

    /* Called once, from the loop, never within start; not after cancel. The query
     * is freed before. */
    void (*done)(void *owner, struct mu__query_result *resolved);

    /* A line for people when something is tried again; may be NULL: then the resolver's
     * own (mu_resolver_on_progress) is called. */
    void (*progress)(void *owner, const char *line);
    void *owner;
};

struct mu__loop_query;

/* -MU_ENOMEM. */
int mu__loop_query_start(const struct mu__loop_query_config *config,
                         struct mu__loop_query **ret_query);

/* The same on the calling thread, in a loop of its own, until it is done. Of `config`,
 * loop, requester and done are not looked at. -MU_EPRECONDITION on a thread that runs a
 * node's loop. */
int mu__loop_query_call(const struct mu__loop_query_config *config, mu_error *ret_error,
                        struct mu__query_result *ret_resolved);

/* What the resolver reads has changed: a pause before the next round ends now. */
void mu__loop_query_hurry(struct mu__loop_query *loop_query);

/* End it without a callback. Its memory is freed in the loop's next rounds, so the loop
 * has to be run until it has no handles of it. NULL is fine. */
void mu__loop_query_cancel(struct mu__loop_query *loop_query);

#endif
