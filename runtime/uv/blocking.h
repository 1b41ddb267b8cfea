/* Blocking jobs: functions that may hang, on threads for which no loop has to wait.
 *
 * libuv's pool has four threads for all that a process does, and a loop cannot be closed
 * before its requests in the pool have returned. But the look-up of a name or the reading
 * of a file may hang while a machine is down, and a function of the program may never
 * return: such jobs have threads of their own. They run in named pools, so that a job
 * that hangs in one does not hold up another. A pool has MU__BLOCKING_THREADS_MAX
 * threads at most, for the whole process (HTTP and DNS: MU__BLOCKING_NET_THREADS_MAX);
 * further jobs wait in order. A thread ends when its pool has no job left, and takes no
 * signals. When the last owner of jobs is closed, no thread is left but those whose job
 * was dropped and hangs.
 *
 * Jobs belong to a loop, or to a thread that waits for them itself.
 *
 * A caller whose timeout has passed drops its job: one that has not begun is taken back,
 * one that runs goes on and is freed by its thread. Loops can be closed meanwhile, and a
 * program may end. A forked child has none of these threads: it begins with empty pools,
 * for loops of its own. */
#ifndef MU_RUNTIME_BLOCKING_UV_H
#define MU_RUNTIME_BLOCKING_UV_H

#include "runtime/base/list.h"

#include <uv.h>

enum { MU__BLOCKING_THREADS_MAX = 8, MU__BLOCKING_NET_THREADS_MAX = 32 };

enum mu__blocking_pool {
    MU__BLOCKING_FILES,
    MU__BLOCKING_NAMES, /* look-ups by the system's resolver */
    MU__BLOCKING_DNS,   /* look-ups at a DNS server */
    MU__BLOCKING_HTTP,
    MU__BLOCKING_CALLS,    /* functions of the program's own */
    MU__BLOCKING_PROGRAMS, /* other programs */
    MU__BLOCKING_POOLS
};

struct mu__blocking_jobs;

/* Embedded in a struct of its owner, who fills in the first four fields. */
struct mu__blocking_job {
    enum mu__blocking_pool pool;

    /* The work itself, on a thread of the pool. */
    void (*run)(struct mu__blocking_job *job);

    /* The job has run and was not dropped: it is its owner's again. In the loop, or
     * within mu__blocking_wait. */
    void (*done)(struct mu__blocking_job *job);

    /* The job was dropped and does not run any more: free it. Called by
     * mu__blocking_job_drop, or on the job's thread. */
    void (*dropped)(struct mu__blocking_job *job);

    /* Private, under the lock of blocking.c. */
    struct mu__blocking_jobs *jobs; /* of its loop; NULL: it was dropped */
    struct mu__list_node node;      /* of the pool's waiting jobs, or of have_run */
    enum { MU__BLOCKING_WAITS, MU__BLOCKING_RUNS, MU__BLOCKING_HAS_RUN } phase;
};

/* Open the jobs of one loop. -MU_ENOMEM. They do not keep the loop alive; the timers for
 * their timeouts, which callers have, do. `loop` NULL: those of one thread, which calls
 * mu__blocking_wait. */
int mu__blocking_open(uv_loop_t *loop, struct mu__blocking_jobs **ret_jobs);

/* Without a loop: wait until a job has run, then call done() of all that have; until
 * `due_ms` at most, by uv_hrtime, or until mu__blocking_interrupt is called, before or
 * meanwhile. */
void mu__blocking_wait(struct mu__blocking_jobs *jobs, uint64_t due_ms);

/* Any thread. */
void mu__blocking_interrupt(struct mu__blocking_jobs *jobs);

/* Loop thread, as the two that follow. -MU_EEXHAUSTED: no thread can be started, and the
 * job stays the caller's. */
int mu__blocking_start(struct mu__blocking_jobs *jobs, struct mu__blocking_job *job);

/* For a job that was started and is not done: 0 when it has begun; otherwise the number
 * of threads of its pool, all of which are busy. */
unsigned mu__blocking_job_waits_for(struct mu__blocking_job *job);

/* Give up a job that was started and is not done: dropped() is called, done() is not. */
void mu__blocking_job_drop(struct mu__blocking_job *job);

/* All jobs are done or dropped. `closed` is the last call, from the loop; without a loop
 * it may be NULL, and is called within this. */
void mu__blocking_close(struct mu__blocking_jobs *jobs, void (*closed)(void *arg),
                        void *arg);

#endif
