/* Blocking jobs: functions that may hang, on threads that nobody has to wait for.
 *
 * libuv's pool has four threads for all that a process does, and a loop cannot be closed
 * before what it has in the pool has returned. Who looks up a name or reads a file may
 * wait for a machine that is away, and a function of the program's own may never come
 * back: such jobs have threads of their own. They run in named pools, so that what hangs
 * in one keeps nobody from another. A pool has MU__BLOCKING_THREADS_MAX threads at most,
 * for the whole process; what is beyond that waits in order. A thread ends when its pool
 * has nothing more to do, and takes no signals.
 *
 * Who has a timeout drops its job: one that has not begun is taken back, one that runs
 * goes on, finds nobody, and is freed by its thread. Loops can be closed meanwhile, and a
 * program may end. In a child that was forked there is none of these threads: it begins
 * with empty pools, for loops of its own. */
#ifndef MU_RUNTIME_BLOCKING_UV_H
#define MU_RUNTIME_BLOCKING_UV_H

#include "runtime/base/list.h"

#include <uv.h>

enum { MU__BLOCKING_THREADS_MAX = 8 };

enum mu__blocking_pool {
    MU__BLOCKING_FILES,
    MU__BLOCKING_NAMES,     /* what the system looks up */
    MU__BLOCKING_SIGNATURES,    /* they never hang */
    MU__BLOCKING_CALLS,     /* functions of the program's own */
    MU__BLOCKING_PROGRAMS,  /* other programs */
    MU__BLOCKING_POOLS
};

struct mu__blocking_jobs;

/* A member of what it is about; the first four fields are filled in by its owner. */
struct mu__blocking_job {
    enum mu__blocking_pool pool;

    /* On a thread. */
    void (*run)(struct mu__blocking_job *job);

    /* It has run, and was not dropped: it is the callee's again. In the loop. */
    void (*done)(struct mu__blocking_job *job);

    /* It was dropped, and does not run any more: free it. Within the dropping, or on its
     * thread. */
    void (*dropped)(struct mu__blocking_job *job);

    /* Ours, under our lock. */
    struct mu__blocking_jobs *home; /* NULL: it was dropped */
    struct mu__list_node node;      /* of those that wait, or have run */
    enum { MU__BLOCKING_WAITS, MU__BLOCKING_RUNS, MU__BLOCKING_HAS_RUN } phase;
};

/* Those of one loop. -MU_ENOMEM. They do not keep the loop alive: whoever starts a
 * job has a timer for its limit, which does. */
int mu__blocking_open(uv_loop_t *loop, struct mu__blocking_jobs **ret_jobs);

/* Loop thread, as the two that follow. -MU_EEXHAUSTED: no thread can be started, and the
 * job is as it was. */
int mu__blocking_start(struct mu__blocking_jobs *jobs, struct mu__blocking_job *job);

/* A job that runs elsewhere, on no thread of a pool: it has begun; its `pool` and `run`
 * count for nothing. It has run when mu__blocking_job_end is called, from any thread,
 * once. */
void mu__blocking_adopt(struct mu__blocking_jobs *jobs, struct mu__blocking_job *job);
void mu__blocking_job_end(struct mu__blocking_job *job);

/* Of one that was started, and is not done: 0 when it has begun; else how many threads of
 * its pool have not come to their end. */
unsigned mu__blocking_job_waits_for(struct mu__blocking_job *job);

/* The same. */
void mu__blocking_job_drop(struct mu__blocking_job *job);

/* All of them are done or dropped. `closed` is the last that is heard, from the loop. */
void mu__blocking_close(struct mu__blocking_jobs *jobs, void (*closed)(void *arg),
                       void *arg);

#endif
