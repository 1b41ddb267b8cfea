#include "runtime/uv/blocking.h"

#include "runtime/uv/thread.h"

#include <muster/error.h>

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mu__blocking_jobs {
    uv_async_t wake;            /* first: handles cast */
    struct mu__list have_run;   /* in order */
    void (*closed)(void *arg);
    void *arg;
};

struct pool {
    struct mu__list waiting;    /* in order */
    unsigned threads;
};

/* Pools belong to the process, as libuv's does. `lock` guards them, the private fields of
 * jobs, and have_run. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool pools[MU__BLOCKING_POOLS];

/* ---- A child that was forked ---- */

static void before_fork(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* The child has none of its parent's threads. */
static void begin_in_child(void)
{
    memset(pools, 0, sizeof pools);
    (void)pthread_mutex_unlock(&lock);
}

static void on_first_open(void)
{
    (void)pthread_atfork(before_fork, after_fork, begin_in_child);
}

/* ---- On a thread ---- */

static struct mu__blocking_job *take(struct mu__list *list)
{
    struct mu__list_node *node = mu__list_pop(list);

    return node == NULL ? NULL : MU__LIST_ENTRY(node, struct mu__blocking_job, node);
}

/* Hand a job that has run to its loop, whose jobs are open as long as one of them is not
 * done; false: it was dropped. */
static bool give_back_locked(struct mu__blocking_job *job)
{
    struct mu__blocking_jobs *jobs = job->jobs;

    job->phase = MU__BLOCKING_HAS_RUN;
    if (jobs == NULL)
        return false;
    mu__list_append(&jobs->have_run, &job->node);
    (void)uv_async_send(&jobs->wake);
    return true;
}

void mu__blocking_job_end(struct mu__blocking_job *job)
{
    bool was_given;

    (void)pthread_mutex_lock(&lock);
    was_given = give_back_locked(job);
    (void)pthread_mutex_unlock(&lock);
    if (!was_given)
        job->dropped(job);
}

static void *work(void *arg)
{
    struct pool *pool = arg;
    struct mu__blocking_job *job;

    (void)pthread_mutex_lock(&lock);
    while ((job = take(&pool->waiting)) != NULL) {
        job->phase = MU__BLOCKING_RUNS;
        (void)pthread_mutex_unlock(&lock);
        job->run(job);
        mu__blocking_job_end(job);
        (void)pthread_mutex_lock(&lock);
    }
    pool->threads--;
    (void)pthread_mutex_unlock(&lock);
    return NULL;
}

static bool start_thread(struct pool *pool)
{
    pthread_t thread;

    if (mu__thread_start(work, pool, &thread) != 0)
        return false;
    (void)pthread_detach(thread);
    return true;
}

/* ---- In the loop ---- */

/* done() may drop other jobs, so one is taken at a time. */
static void on_wake(uv_async_t *wake)
{
    struct mu__blocking_jobs *jobs = (struct mu__blocking_jobs *)wake;
    struct mu__blocking_job *job;

    for (;;) {
        (void)pthread_mutex_lock(&lock);
        job = take(&jobs->have_run);
        (void)pthread_mutex_unlock(&lock);
        if (job == NULL)
            return;
        job->done(job);
    }
}

int mu__blocking_open(uv_loop_t *loop, struct mu__blocking_jobs **ret_jobs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mu__blocking_jobs *jobs = calloc(1, sizeof *jobs);

    if (jobs == NULL)
        return -MU_ENOMEM;
    (void)pthread_once(&once, on_first_open);
    if (uv_async_init(loop, &jobs->wake, on_wake) != 0) {
        free(jobs);
        return -MU_ENOMEM;
    }
    uv_unref((uv_handle_t *)&jobs->wake);
    *ret_jobs = jobs;
    return 0;
}

int mu__blocking_start(struct mu__blocking_jobs *jobs, struct mu__blocking_job *job)
{
    struct pool *pool = &pools[job->pool];
    int rv = 0;

    job->jobs = jobs;
    job->phase = MU__BLOCKING_WAITS;
    (void)pthread_mutex_lock(&lock);
    mu__list_append(&pool->waiting, &job->node);
    if (pool->threads < MU__BLOCKING_THREADS_MAX && start_thread(pool))
        pool->threads++;
    if (pool->threads == 0) {
        mu__list_remove(&pool->waiting, &job->node);
        rv = -MU_EEXHAUSTED;
    }
    (void)pthread_mutex_unlock(&lock);
    return rv;
}

void mu__blocking_adopt(struct mu__blocking_jobs *jobs, struct mu__blocking_job *job)
{
    job->jobs = jobs;
    job->phase = MU__BLOCKING_RUNS;
}

unsigned mu__blocking_job_waits_for(struct mu__blocking_job *job)
{
    unsigned threads;

    (void)pthread_mutex_lock(&lock);
    threads = job->phase == MU__BLOCKING_WAITS ? pools[job->pool].threads : 0;
    (void)pthread_mutex_unlock(&lock);
    return threads;
}

void mu__blocking_job_drop(struct mu__blocking_job *job)
{
    struct pool *pool = &pools[job->pool];
    struct mu__blocking_jobs *jobs = job->jobs;
    bool runs;

    assert(jobs != NULL);
    (void)pthread_mutex_lock(&lock);
    runs = job->phase == MU__BLOCKING_RUNS;
    if (job->phase == MU__BLOCKING_WAITS)
        mu__list_remove(&pool->waiting, &job->node);
    else if (job->phase == MU__BLOCKING_HAS_RUN)
        mu__list_remove(&jobs->have_run, &job->node);
    job->jobs = NULL;
    (void)pthread_mutex_unlock(&lock);
    if (!runs)
        job->dropped(job);
}

static void on_closed(uv_handle_t *handle)
{
    struct mu__blocking_jobs *jobs = (struct mu__blocking_jobs *)handle;
    void (*closed)(void *arg) = jobs->closed;
    void *arg = jobs->arg;

    free(jobs);
    closed(arg);
}

void mu__blocking_close(struct mu__blocking_jobs *jobs, void (*closed)(void *arg),
                        void *arg)
{
    assert(mu__list_is_empty(&jobs->have_run));
    jobs->closed = closed;
    jobs->arg = arg;
    uv_close((uv_handle_t *)&jobs->wake, on_closed);
}
