/* An evaluation of a resolver in a loop, without blocking it. Loop thread only. */
#ifndef MU_NODE_RESOLVING_H
#define MU_NODE_RESOLVING_H

#include "resolver/engine/ask.h"

#include <muster/resolver.h>

#include <uv.h>

enum mu__resolving_what {
    MU__RESOLVING_RESOLVE,
    MU__RESOLVING_DETECT,       /* only find out which resolver it is: see
                                   mu__resolver_announces in resolver/engine/resolver.h */
    MU__RESOLVING_ANNOUNCE,
    MU__RESOLVING_WITHDRAW
};

/* What came of it. */
struct mu__resolved {
    int code;                   /* 0, or the error */
    mu_error error;
    mu_resolution resolution;   /* of RESOLVE, when code is 0: `cluster` is now the
                                   callback's to free */
    int task_index;             /* of ANNOUNCE: the task's, chosen where it was -1 */
    uint32_t again_ms;          /* of ANNOUNCE: when to announce again; 0: not */
    unsigned rounds;            /* that have failed */
};

struct mu__resolving_config {
    uv_loop_t *loop;
    struct mu__asker *asker;    /* in the same loop: mu__asker_uv_asker() */
    mu_resolver *resolver;      /* borrowed; one evaluation at a time, and beside it one
                                   that announces or withdraws */

    /* In place of a resolver (which is NULL then): what is run, as
       mu__evaluation_config has it; `what` is RESOLVE. */
    int (*run)(void *run_owner, struct mu__notes *notes, mu_error *ret_error);
    void *run_owner;
    enum mu__resolving_what what;
    const mu_announcement *announcement;    /* copied; of ANNOUNCE and WITHDRAW */
    int64_t timeout_ms;           /* as of mu_resolver_resolve */
    uint32_t pause_most_ms;     /* the longest pause before what is not known yet is
                                   looked at again; 0: the usual one */
    int64_t whole_ms;           /* as mu__evaluation_config has them */
    unsigned rounds_before;

    /* Called once, from the loop, never within start; not after cancel. The resolving is
     * gone then. */
    void (*done)(void *owner, struct mu__resolved *resolved);

    /* A line for people when something is tried again; may be NULL: then the resolver's
     * own (mu_resolver_on_progress) is called. */
    void (*progress)(void *owner, const char *line);
    void *owner;
};

struct mu__resolving;

/* -MU_ENOMEM. */
int mu__resolving_start(const struct mu__resolving_config *config,
                        struct mu__resolving **ret_resolving);

/* The same on the calling thread, in a loop of its own, until it is done. Of `config`,
 * loop, asker and done are not looked at. -MU_EPRECONDITION on a thread that runs a
 * node's loop. */
int mu__resolving_call(const struct mu__resolving_config *config, mu_error *ret_error,
                       struct mu__resolved *ret_resolved);

/* What is looked at has changed: a pause before it is looked at again ends now. */
void mu__resolving_hurry(struct mu__resolving *resolving);

/* Nobody wants to know any more: nothing is called. Its memory goes with the loop's next
 * rounds, so the loop has to be run until it has no handles of it. NULL is fine. */
void mu__resolving_cancel(struct mu__resolving *resolving);

#endif
