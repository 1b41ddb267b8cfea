/* What the parts of the distribute coordinator share: one run, and its calls.
 *
 *     distribute.c     from options to a plan, a server and calls; the retained server
 *     run_spec.c       which cluster it is, and which task
 *     calls.c          the calls, in threads or one after the other
 *     independent.c    what independent tasks report to each other, by the service
 *     gather.c         the leading task collects the results of the others
 *     end.c            the end of a run of independent tasks
 *     results.c        the result of each call
 *     context.c        what a call sees
 *     strategy.c       the strategies that are built in */
#ifndef MU_DISTRIBUTE_INTERNAL_H
#define MU_DISTRIBUTE_INTERNAL_H

#include "node/discovery/discover.h"
#include "node/thread_barrier.h"
#include "resolver/spec/distribute_plan.h"

#include <stdatomic.h>
#include <uv.h>

enum {
    MU__TARGET_BYTES = 320,
    MU__SERVICE_MS = 10000 /* for one request to the coordination service */
};

/* A strategy's copy for one task, and the config of its sessions. */
struct mu__strategy_copy {
    const mu_strategy *strategy; /* NULL: not made */
    void *copy;
    mu_session_config config; /* texts owned by the copy or the options' owner */
};

/* Of the options' strategy for evaluation, or for training; NULL there is the default. */
int mu__strategy_copy_make(const mu_distribute_options *options, bool evaluates,
                           const mu_strategy_task *task, mu_error *ret_error,
                           struct mu__strategy_copy *ret_copy);
void mu__strategy_copy_drop(struct mu__strategy_copy *copy);

/* The cluster, and who this process is. */
struct mu__spec {
    mu_tf_config config;          /* its cluster is owned */
    mu_node_options node_options; /* the caller's; with `found` pointing into it, too */
    struct mu__discovered *found; /* a server's task, from a resolver; owned; NULL: not
                                     from one */
    char cluster_name[64];        /* for a client, by a resolver; "": it does not say */
};

struct mu__distribution;

struct mu_context {
    struct mu__distribution *run;
    const struct mu__plan_run *plan;
    unsigned participant;             /* its number at the barrier of threads */
    char name[MU_CLUSTER_TASK_BYTES]; /* among the results */
    char task[MU_CLUSTER_TASK_BYTES]; /* "" without a type */
    mu_cluster *cluster;              /* owned; NULL locally */
    struct mu__strategy_copy strategy;
    char master_target[MU__TARGET_BYTES];
    mu_session *session; /* NULL: not asked for */
    mu_value *result;    /* owned */
    mu_error error;      /* which the function has set */
    bool started;        /* it has a thread */
    uv_thread_t thread;
    bool ended; /* guarded by the run's lock */
};

/* What this task knows of the other independent tasks (independent.h). Held by the run
 * and by each request that is under way, whose answers come on the loop's thread. */
struct mu__task_news;

struct mu__distribution {
    mu_distribute_options options; /* pointers as the caller gave them */
    mu_node_options node_options;  /* the spec's */
    mu_tf_config spec;             /* cluster (owned) and task of this process, layer,
                                      environment, session_master */
    struct mu__spec spec_origin;   /* where it is from, without its cluster */
    mu_cluster *cluster;           /* without the evaluator; owned; NULL locally */
    struct mu__plan plan;
    unsigned number;              /* of the run on this thread's server */
    struct mu__strategy_copy own; /* what this process's server is configured with */
    mu_server *server;            /* NULL: none, or a node was given */
    struct mu__task_news *news;   /* NULL without a service, or a node */
    bool reports;                 /* its calls' ends, to other tasks by the service */
    struct mu__thread_barrier *barrier; /* NULL: none */
    atomic_uint holds;                  /* of the memory: the run and its threads */
    atomic_bool over;                   /* nobody needs the calls any more */
    atomic_bool trained;                /* nobody needs evaluation any more */
    uv_mutex_t lock;                    /* guards all below, and the contexts' `ended` */
    uv_cond_t moved;                    /* a call has ended */
    mu_node *node;                      /* given, the server's or a client's own; may be
                                           NULL */
    bool owns_node;                     /* a client's: closed with the run */
    mu_error first;                     /* the first error; code 0: none yet */
    mu_value *results;                  /* a map; owned */
    struct mu_context contexts[];       /* plan.runs_count of them */
};

/* Write a line to the node's log, or without one to standard error. */
void mu__distribution_say(struct mu__distribution *run, int level, const char *format,
                          ...) MU_PRINTF(3, 4);

/* Call the options' function `opened` with a node that was opened; NULL: does nothing. */
int mu__distribution_opened(struct mu__distribution *run, mu_node *node,
                            mu_error *ret_error);

/* ---- run_spec.c ---- */

/* Find out cluster and task. `server` is that of an earlier run on this thread, whose
 * cluster and task stand in for a resolver's; NULL: none. May block as long as resolve_ms
 * of the node's options says. */
int mu__spec_read(const mu_distribute_options *o, const mu_server *server,
                  mu_error *error, struct mu__spec *ret_spec);

/* End what discovery has opened for the spec; with `withdraws` its announcement is
 * withdrawn. To be called before the run returns, since it needs the resolver. Frees
 * neither the cluster nor `found`. */
void mu__spec_leave(struct mu__spec *spec, bool withdraws);

/* The same for a spec that is not used, with all that it owns. */
void mu__spec_drop(struct mu__spec *spec);

/* ---- context.c ---- */

/* Make the context of call `i`: its copy of the cluster and of the strategy. */
int mu__context_init(struct mu__distribution *run, size_t i, mu_error *ret_error);
void mu__context_done(struct mu_context *context);

/* Make the call on this thread, inside its context; its code, 0 or negative, with the
 * whole error in ret_error. */
int mu__context_call(struct mu_context *context, mu_error *ret_error);

/* ---- calls.c ---- */

/* Make all calls. Returns the first error. *ret_left: calls that did not end and were
 * left behind: the run's memory and its node have to stay. */
int mu__distribution_call_all(struct mu__distribution *run, mu_error *ret_error,
                              size_t *ret_left);

/* Remember the first error, and end the waiting of all others. */
void mu__distribution_failed(struct mu__distribution *run, const mu_error *why);

/* Returns the code of the run's first error, and the error; 0: there was none. */
int mu__distribution_error(struct mu__distribution *run, mu_error *ret_error);

/* One holder less; the last one frees the run. */
void mu__distribution_unhold(struct mu__distribution *run);

/* ---- results.c ---- */

/* A result as a map: code, value (borrowed, may be NULL), and of `error` its texts. NULL
 * when out of memory. */
mu_value *mu__result_make(int code, const mu_value *value, const mu_error *error);

/* The error in such a map; its code is 0 when there is none. */
void mu__result_error(const mu_value *result, mu_error *ret_error);

/* Put a result among those of the run, unless the caller has got these already. Takes
 * it; NULL is fine. */
void mu__result_keep(struct mu__distribution *run, const char *name, mu_value *result);

/* To bytes and back. The caller frees *ret_bytes. -MU_EDATALOSS on bad bytes. */
int mu__result_pack(const mu_value *result, mu_error *ret_error, void **ret_bytes,
                    size_t *ret_size);
int mu__result_unpack(const void *bytes, size_t size, mu_error *ret_error,
                      mu_value **ret_result);

/* ---- independent.c, gather.c, end.c ---- */

/* Register with the node's coordination service and request the keys by which other tasks
 * report. Without a service run->news stays NULL. */
int mu__tasks_open(struct mu__distribution *run, mu_error *ret_error);
void mu__tasks_close(struct mu__distribution *run);

/* Cancel the calls when the run's node is being closed, or the job done. */
int mu__tasks_watch_node(struct mu__distribution *run, mu_error *ret_error);

/* Why the run has failed, if it has: by the answer to this task's request, or else by a
 * look at the key, which may be there before the answer. The run has news. */
bool mu__tasks_failure(struct mu__distribution *run, mu_error *ret_why);

/* Wait at the barrier of chief and workers. */
int mu__tasks_meet(struct mu__distribution *run, int64_t timeout_ms, mu_error *ret_error);

/* End this process's waits at the barrier with an error, now and later. The run has
 * news. */
void mu__tasks_end_waits(struct mu__distribution *run, const mu_error *why);

/* Report the end of this task's call to the others; an error ends their waits. */
void mu__tasks_report(struct mu__distribution *run, const struct mu_context *context,
                      const mu_error *error);

/* The leading task: wait for everybody's result. Returns the first error among them. */
int mu__tasks_gather(struct mu__distribution *run, mu_error *ret_error);

/* Serve until the job is done. */
int mu__tasks_join(struct mu__distribution *run, mu_error *ret_error);

/* Whether there is a coordination service. */
bool mu__tasks_have_service(mu_node *node);

/* The leading task waits until the tasks that only serve are connected, so that they
 * learn of the end; after end_timeout_ms it logs which are not. */
void mu__tasks_await_joining(struct mu__distribution *run);

/* The leading task ends the job with the code of `why`. Without a chief the others learn
 * of it by a key of the service. */
int mu__tasks_end(mu_node *node, bool has_chief, const mu_error *why, int64_t timeout_ms,
                  mu_error *ret_error);

#endif
