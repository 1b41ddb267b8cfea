/* The calls that this process makes, from the mode, the cluster, the task and the
 * strategy. Pure, and the same on every task, so that they fit together. */
#ifndef MU_RESOLVER_DISTRIBUTE_PLAN_H
#define MU_RESOLVER_DISTRIBUTE_PLAN_H

#include <muster/distribute.h>

#include <stdbool.h>

enum {
    MU__PLAN_RUNS_MAX = 4096 /* calls in threads of one process */
};

/* The barrier at which chief and workers meet. */
enum mu__plan_barrier {
    MU__BARRIER_NONE,
    MU__BARRIER_THREADS, /* they are threads of this process */
    MU__BARRIER_SERVICE  /* each has a process */
};

/* Warnings to log before the run; bits. */
enum mu__plan_warning {
    MU__PLAN_NO_EVAL = 1,          /* the worker function evaluates */
    MU__PLAN_NO_EVAL_STRATEGY = 2, /* the default one is taken */
    MU__PLAN_EVAL_LEFT_OUT = 4     /* in local mode nothing evaluates without the
                                      function */
};

struct mu__plan_request {
    int mode;                  /* enum mu_mode */
    const mu_cluster *cluster; /* NULL or empty: none */
    const char *type;          /* NULL or "": not known */
    int index;
    bool between_graph; /* of the strategy */
    bool has_eval;
    bool has_eval_strategy;
};

/* One call. */
struct mu__plan_run {
    const char *type; /* NULL: of no task; static */
    int index;
    bool evaluates;
    bool meets; /* it waits at the barrier */
};

struct mu__plan {
    bool local;   /* there is no cluster */
    bool serves;  /* this process is a server of its task, */
    bool joins;   /* and has nothing to do but to wait for the job's end */
    bool client;  /* makes the calls of other tasks */
    bool leads;   /* gathers the results of others, and ends the job */
    bool threads; /* each call has a thread; else one after the other */
    unsigned warnings;
    enum mu__plan_barrier barrier;
    struct mu__plan_run *runs; /* owned */
    size_t runs_count;
};

/* -MU_EINVALID: the mode is none, a task is missing or has no part in it; -MU_EEXHAUSTED
 * beyond MU__PLAN_RUNS_MAX; and errors of mu_cluster_validate. */
int mu__plan_make(const struct mu__plan_request *request, mu_error *ret_error,
                  struct mu__plan *ret_plan);

void mu__plan_done(struct mu__plan *plan);

/* The name of a call among the results: its task, "worker_fn" or "eval_fn". */
void mu__plan_run_name(const struct mu__plan_run *run, char *out, size_t size);

/* Whether a task acts as the chief; `type` NULL (a call for all tasks) does. */
bool mu__plan_is_chief(const mu_cluster *cluster, const char *type, int index);

/* What a session of the task connects to, "layer://host:port"; "" for the evaluator and
 * without a cluster. */
void mu__plan_target(const mu_cluster *cluster, const char *layer, const char *type,
                     int index, char *out, size_t size);

/* The tasks that the leader `type`:`index` of this plan has to tell that the job is
 * done, as a set: those that only wait. "" for none; the caller frees it; NULL when out
 * of memory. */
char *mu__plan_joining(const struct mu__plan *plan, const mu_cluster *cluster,
                       const char *type, int index);

/* The chief and the workers as a set of tasks, "chief:0,worker:0,worker:2". The caller
 * frees it; NULL when out of memory. */
char *mu__plan_tasks(const mu_cluster *cluster);

#endif
