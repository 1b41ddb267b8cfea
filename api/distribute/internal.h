/* What the parts of the distribute coordinator share: one run, and its calls. For node/
 * only.
 *
 *     distribute.c           from options to a plan, a server and calls; the cache
 *     distribute_spec.c      which cluster it is, and which task
 *     distribute_calls.c     the calls, in threads or one after the other
 *     distribute_tasks.c     what independent tasks tell each other, by the service
 *     distribute_results.c   what came of each call
 *     context.c              what a call sees
 *     strategy.c             the strategies that are built in */
#ifndef MU_DISTRIBUTE_INTERNAL_H
#define MU_DISTRIBUTE_INTERNAL_H

#include "node/discovery/discover.h"
#include "node/thread_barrier.h"
#include "resolver/spec/distribute_plan.h"

#include <stdatomic.h>
#include <uv.h>

enum {
    MU__TARGET_BYTES = 320,
    MU__SERVICE_MS = 10000  /* for one word to the coordination service */
};

/* A strategy's copy for one task, and what it wants of its sessions. */
struct mu__strategy_copy {
    const mu_strategy *strategy;    /* NULL: not made */
    void *copy;
    mu_session_config config;       /* texts owned by the copy or the options' owner */
};

int mu__strategy_copy_make(const mu_strategy *strategy, const mu_strategy_task *task,
                           const mu_session_config *config, mu_error *ret_error,
                           struct mu__strategy_copy *ret_copy);
void mu__strategy_copy_drop(struct mu__strategy_copy *copy);

/* The cluster, and who this process is. */
struct mu__spec {
    mu_tf_config config;            /* its cluster is owned */
    mu_node_options node_options;   /* the caller's; of a server whose place a resolver
                                       has found, pointing into `found`, too */
    struct mu__discovered *found;   /* owned; NULL: there is no such place */
};

struct mu__distribution;

struct mu_context {
    struct mu__distribution *run;
    const struct mu__plan_run *plan;
    unsigned participant;           /* its number at the barrier of threads */
    char name[MU_CLUSTER_TASK_BYTES];   /* among the results */
    char task[MU_CLUSTER_TASK_BYTES];   /* "" without a type */
    mu_cluster *cluster;            /* owned; NULL locally */
    struct mu__strategy_copy strategy;
    char master_target[MU__TARGET_BYTES];
    mu_session *session;            /* NULL: not asked for */
    mu_value *result;               /* owned */
    mu_error error;                 /* words that the function has set */
    bool started;                   /* it has a thread */
    uv_thread_t thread;
    bool ended;                     /* guarded by the run's lock */
};

/* What independent tasks hear of each other. Held by the run and by each request that is
 * under way, whose answers come on the loop's thread. */
struct mu__task_news;

struct mu__distribution {
    mu_distribute_options options;  /* pointers as the caller gave them */
    mu_tf_config spec;              /* cluster (owned) and task of this process, layer,
                                       environment, session_master */
    struct mu__spec spec_origin;          /* where it is from, without its cluster */
    mu_cluster *cluster;            /* without the evaluator; owned; NULL locally */
    struct mu__plan plan;
    unsigned number;                /* of the run on this thread's server */
    struct mu__strategy_copy own;   /* what this process's server is configured with */
    mu_server *server;              /* NULL: none, or a node was given */
    struct mu__task_news *news;     /* NULL without a service, or a node */
    bool reports;                     /* and hears of other tasks, by the service */
    struct mu__thread_barrier *barrier; /* NULL: none */
    atomic_uint holds;              /* of the memory: the run and its threads */
    atomic_bool over;               /* nobody needs the calls any more */
    atomic_bool trained;            /* nobody needs evaluation any more */
    uv_mutex_t lock;                /* guards all below, and the contexts' `ended` */
    uv_cond_t moved;                /* a call has ended */
    mu_node *node;                  /* given, the server's or a client's own; may be
                                       NULL */
    bool owns_node;                 /* a client's: closed with the run */
    mu_error first;                 /* the first error; code 0: none yet */
    mu_value *results;              /* a map; owned */
    struct mu_context contexts[];   /* plan.runs_count of them */
};

/* A line for a person, where the node's log goes or else to standard error. */
void mu__distribution_say(struct mu__distribution *run, int level, const char *format,
                          ...) MU_PRINTF(3, 4);

/* Tell the program of a node that was opened (NULL: there is none). */
int mu__distribution_opened(struct mu__distribution *run, mu_node *node,
                            mu_error *ret_error);

/* ---- spec.c ---- */

/* `kept` is the server of an earlier run on this thread, whose place is then this one's;
 * NULL: none. May block as long as resolve_ms of the node's options says. */
int mu__spec_read(const mu_distribute_options *o, const mu_server *server,
                  mu_error *error, struct mu__spec *ret_spec);

/* A place that was found is not needed any more; to be called before the run returns,
 * since it needs the resolver. With `withdraws` the others are told. Frees neither the
 * cluster nor `found`. */
void mu__spec_leave(struct mu__spec *spec, bool withdraws);

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

/* One holder less; the last one frees the run. */
void mu__distribution_unhold(struct mu__distribution *run);

/* ---- results.c ---- */

/* A result as a map: code, value (borrowed, may be NULL), and of `error` its texts. NULL
 * when out of memory. */
mu_value *mu__result_make(int code, const mu_value *value, const mu_error *error);

/* The error in such a map; its code is 0 when there is none. */
void mu__result_error(const mu_value *result, mu_error *ret_error);

/* Put a result among those of the run, unless they were given away already. Takes it;
 * NULL is fine. */
void mu__result_keep(struct mu__distribution *run, const char *name, mu_value *result);

/* To bytes and back. The caller frees *ret_bytes. -MU_EDATALOSS on bad bytes. */
int mu__result_pack(const mu_value *result, mu_error *ret_error, void **ret_bytes,
                    size_t *ret_size);
int mu__result_unpack(const void *bytes, size_t size, mu_error *ret_error,
                      mu_value **ret_result);

/* ---- tasks.c ---- */

/* Begin to listen, for a run with a node that has a service: run->news stays NULL without
 * one. */
int mu__tasks_open(struct mu__distribution *run, mu_error *ret_error);
void mu__tasks_close(struct mu__distribution *run);

/* Hear when the run's node is being closed, or the job done: calls are then cancelled. */
int mu__tasks_watch_node(struct mu__distribution *run, mu_error *ret_error);

/* Why the run has failed, if it has: what was heard, or else what the key says, which may
 * be known before this task has heard. The run has news. */
bool mu__tasks_failure(struct mu__distribution *run, mu_error *ret_why);

/* Meet chief and workers. */
int mu__tasks_meet(struct mu__distribution *run, int64_t timeout_ms, mu_error *ret_error);

/* Nobody in this process waits for the others any more. The run has news. */
void mu__tasks_end_waits(struct mu__distribution *run, const mu_error *why);

/* Tell the others what came of this task's call, and end their waiting when it failed. */
void mu__tasks_report(struct mu__distribution *run, const struct mu_context *context,
                    const mu_error *error);

/* The leading task: wait for everybody's result. Returns the first error among them. */
int mu__tasks_gather(struct mu__distribution *run, mu_error *ret_error);

/* Serve until the job is done. */
int mu__tasks_join(struct mu__distribution *run, mu_error *ret_error);

/* Whether there is a coordination service. */
bool mu__tasks_have_service(mu_node *node);

/* The leading task waits until all who join are there to hear of the end; at the limit of
 * the options it says in the log who is not. */
void mu__tasks_await_joining(struct mu__distribution *run);

/* The leading task's word that it is, with the code that it came to. A cluster without a
 * chief hears it by the service. */
int mu__tasks_end(mu_node *node, bool has_chief, const mu_error *why, int64_t timeout_ms,
                  mu_error *ret_error);

#endif
