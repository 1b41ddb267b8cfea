#include "runtime/uv/blocking.h"

#include "runtime/uv/thread.h"

#include <muster/error.h>

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, WAIT_MOST_MS = 3600000 };

struct mu__blocking_jobs {
    uv_async_t wake; /* first: handles cast */
    bool has_loop;
    pthread_cond_t has_news; /* without a loop */
    bool is_interrupted;
    struct mu__list have_run; /* in order */
    void (*closed)(void *arg);
    void *arg;
};

struct job_thread {
    enum { UNUSED, STARTED, ENDED } phase;
    struct pool *pool;
    pthread_t thread;
};

struct pool {
    struct mu__list waiting; /* in order */
    unsigned threads;        /* STARTED */
    struct job_thread slots[MU__BLOCKING_NET_THREADS_MAX];
};

/* Pools belong to the process, as libuv's does. `lock` guards all of this, the private
 * fields of jobs, and have_run. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_ended = PTHREAD_COND_INITIALIZER;
static struct pool pools[MU__BLOCKING_POOLS];
static unsigned ending_count;  /* STARTED ones without a job */
static unsigned open_count;    /* mu__blocking_jobs */
static unsigned joining_count; /* calls of join_idle that wait */

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
    (void)pthread_cond_init(&has_ended, NULL);
    ending_count = 0;
    open_count = 0;
    joining_count = 0;
    (void)pthread_mutex_unlock(&lock);
}

static void on_first_open(void)
{
    (void)pthread_atfork(before_fork, after_fork, begin_in_child);
}

/* ---- On a thread ---- */

static struct mu__blocking_job *take_blocking_job(struct mu__list *list)
{
    struct mu__list_node *node = mu__list_pop(list);

    return node == NULL ? NULL : MU__LIST_ENTRY(node, struct mu__blocking_job, node);
}

static void wake_locked(struct mu__blocking_jobs *jobs)
{
    if (jobs->has_loop)
        (void)uv_async_send(&jobs->wake);
    else
        (void)pthread_cond_signal(&jobs->has_news);
}

/* Hand a job that has run to its owner, whose jobs are open as long as one of them is not
 * done. */
static void give_back_locked(struct mu__blocking_job *job)
{
    struct mu__blocking_jobs *jobs = job->jobs;

    mu__list_append(&jobs->have_run, &job->node);
    wake_locked(jobs);
}

/* Run a job and end it; its owner hears of it when the thread has no job any more. */
static void run_blocking_job_locked(struct mu__blocking_job *job)
{
    job->phase = MU__BLOCKING_RUNS;
    ending_count--;
    (void)pthread_mutex_unlock(&lock);
    job->run(job);
    (void)pthread_mutex_lock(&lock);
    job->phase = MU__BLOCKING_HAS_RUN;
    if (job->jobs != NULL) {
        give_back_locked(job);
    } else {
        (void)pthread_mutex_unlock(&lock);
        job->dropped(job);
        (void)pthread_mutex_lock(&lock);
    }
    ending_count++;
}

/* One that ends when nobody is left, since its job was dropped, is joined by nobody. */
static void end_thread_locked(struct job_thread *own)
{
    own->pool->threads--;
    own->phase = ENDED;
    ending_count--;
    if (open_count == 0 && joining_count == 0) {
        (void)pthread_detach(own->thread);
        own->phase = UNUSED;
    }
    (void)pthread_cond_broadcast(&has_ended);
}

static void *run_pool_thread(void *arg)
{
    struct job_thread *own = arg;
    struct mu__blocking_job *job;

    (void)pthread_mutex_lock(&lock);
    while ((job = take_blocking_job(&own->pool->waiting)) != NULL)
        run_blocking_job_locked(job);
    end_thread_locked(own);
    (void)pthread_mutex_unlock(&lock);
    return NULL;
}

/* A thread that has ended does not run any code when this returns: not even the end of
 * what a library, OpenSSL say, keeps for each thread. */
static void join_ended_locked(struct pool *pool)
{
    for (unsigned i = 0; i < MU__BLOCKING_NET_THREADS_MAX; i++) {
        struct job_thread *own = &pool->slots[i];

        if (own->phase == ENDED) {
            (void)pthread_join(own->thread, NULL);
            own->phase = UNUSED;
        }
    }
}

/* A job that hangs is not waited for. */
static void join_idle(void)
{
    (void)pthread_mutex_lock(&lock);
    if (--open_count == 0) {
        joining_count++;
        while (ending_count > 0)
            (void)pthread_cond_wait(&has_ended, &lock);
        for (unsigned i = 0; i < MU__BLOCKING_POOLS; i++)
            join_ended_locked(&pools[i]);
        joining_count--;
    }
    (void)pthread_mutex_unlock(&lock);
}

static void start_pool_thread_locked(struct pool *pool)
{
    struct job_thread *own = pool->slots;

    while (own->phase != UNUSED)
        own++;
    own->pool = pool;
    if (mu__thread_start(run_pool_thread, own, &own->thread) != 0)
        return;
    own->phase = STARTED;
    pool->threads++;
    ending_count++;
}

/* ---- The owner's side ---- */

/* done() may drop other jobs, so one is taken at a time. */
static void take_all(struct mu__blocking_jobs *jobs)
{
    struct mu__blocking_job *job;

    for (;;) {
        (void)pthread_mutex_lock(&lock);
        job = take_blocking_job(&jobs->have_run);
        (void)pthread_mutex_unlock(&lock);
        if (job == NULL)
            return;
        job->done(job);
    }
}

static void on_blocking_wake(uv_async_t *wake)
{
    take_all((struct mu__blocking_jobs *)wake);
}

void mu__blocking_wait(struct mu__blocking_jobs *jobs, uint64_t due_ms)
{
    uint64_t now_ms = uv_hrtime() / NS_PER_MS;

    (void)pthread_mutex_lock(&lock);
    while (mu__list_is_empty(&jobs->have_run) && !jobs->is_interrupted &&
           now_ms < due_ms) {
        uint64_t left_ms =
            due_ms - now_ms < WAIT_MOST_MS ? due_ms - now_ms : WAIT_MOST_MS;

        (void)uv_cond_timedwait(&jobs->has_news, &lock, left_ms * NS_PER_MS);
        now_ms = uv_hrtime() / NS_PER_MS;
    }
    jobs->is_interrupted = false;
    (void)pthread_mutex_unlock(&lock);
    take_all(jobs);
}

void mu__blocking_interrupt(struct mu__blocking_jobs *jobs)
{
    (void)pthread_mutex_lock(&lock);
    jobs->is_interrupted = true;
    wake_locked(jobs);
    (void)pthread_mutex_unlock(&lock);
}

static int open_in(struct mu__blocking_jobs *jobs, uv_loop_t *loop)
{
    jobs->has_loop = loop != NULL;
    if (loop == NULL)
        return uv_cond_init(&jobs->has_news);
    if (uv_async_init(loop, &jobs->wake, on_blocking_wake) != 0)
        return -1;
    uv_unref((uv_handle_t *)&jobs->wake);
    return 0;
}

int mu__blocking_open(uv_loop_t *loop, struct mu__blocking_jobs **ret_jobs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mu__blocking_jobs *jobs = calloc(1, sizeof *jobs);

    if (jobs == NULL)
        return -MU_ENOMEM;
    (void)pthread_once(&once, on_first_open);
    if (open_in(jobs, loop) != 0) {
        free(jobs);
        return -MU_ENOMEM;
    }
    (void)pthread_mutex_lock(&lock);
    open_count++;
    (void)pthread_mutex_unlock(&lock);
    *ret_jobs = jobs;
    return 0;
}

static unsigned threads_max(enum mu__blocking_pool pool)
{
    return pool == MU__BLOCKING_HTTP || pool == MU__BLOCKING_DNS
               ? MU__BLOCKING_NET_THREADS_MAX
               : MU__BLOCKING_THREADS_MAX;
}

int mu__blocking_start(struct mu__blocking_jobs *jobs, struct mu__blocking_job *job)
{
    struct pool *pool = &pools[job->pool];
    int rv = 0;

    job->jobs = jobs;
    job->phase = MU__BLOCKING_WAITS;
    (void)pthread_mutex_lock(&lock);
    join_ended_locked(pool);
    mu__list_append(&pool->waiting, &job->node);
    if (pool->threads < threads_max(job->pool))
        start_pool_thread_locked(pool);
    if (pool->threads == 0) {
        mu__list_remove(&pool->waiting, &job->node);
        rv = -MU_EEXHAUSTED;
    }
    (void)pthread_mutex_unlock(&lock);
    return rv;
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

static void on_blocking_jobs_closed(uv_handle_t *handle)
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
    join_idle();
    if (!jobs->has_loop) {
        uv_cond_destroy(&jobs->has_news);
        free(jobs);
        if (closed != NULL)
            closed(arg);
        return;
    }
    jobs->closed = closed;
    jobs->arg = arg;
    uv_close((uv_handle_t *)&jobs->wake, on_blocking_jobs_closed);
}
