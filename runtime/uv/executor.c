/* One lock, one queue, threads that sleep. The lock guards everything that is not
 * constant after the start.
 *
 * The wake is sent while holding the lock, so that after mu__executor_abandon has cleared
 * `wake` under the lock, no thread can be about to touch the owner. */
#include "runtime/uv/executor.h"

#include "muster/error.h"
#include "runtime/uv/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

struct thread {
    struct mu__executor *executor;
    pthread_t id;
    unsigned number;
    bool ended;
};

struct mu__executor {
    pthread_mutex_t lock;
    pthread_cond_t work_ready;
    struct mu__list queued;     /* of mu__work.node */
    struct mu__list done;
    void (*wake)(void *owner);  /* NULL: nobody to wake any more */
    void *owner;
    unsigned idle;              /* threads that wait for work */
    unsigned woken;             /* of these, signalled and not running yet */
    unsigned alive;             /* threads that have not ended */
    bool stopping;
    bool abandoned;             /* the last thread frees this */
    unsigned threads_count;
    struct thread threads[];
};

static void wake_owner(struct mu__executor *executor)
{
    if (executor->wake != NULL)
        executor->wake(executor->owner);
}

static void destroy(struct mu__executor *executor)
{
    (void)pthread_cond_destroy(&executor->work_ready);
    (void)pthread_mutex_destroy(&executor->lock);
    free(executor);
}

static void name_thread(unsigned number)
{
#ifdef __linux__
    char name[16];

    (void)snprintf(name, sizeof name, "mu-exec-%u", number);
    (void)prctl(PR_SET_NAME, name);
#else
    (void)number;
#endif
}

/* The next piece of work, or NULL when the thread has to end. With the lock held. */
static struct mu__work *wait_for_work(struct mu__executor *executor)
{
    struct mu__work *work;

    while (mu__list_is_empty(&executor->queued) && !executor->stopping) {
        executor->idle++;
        (void)pthread_cond_wait(&executor->work_ready, &executor->lock);
        executor->idle--;
        if (executor->woken > 0)
            executor->woken--;
    }
    if (executor->stopping)
        return NULL;
    work = MU__LIST_ENTRY(mu__list_pop(&executor->queued), struct mu__work, node);
    work->queued = false;
    return work;
}

/* uv_hrtime() is also the clock of the loop, which counts milliseconds. */
static void run_one(struct mu__work *work)
{
    uint64_t begun_ns = uv_hrtime();
    uint64_t ran_us;

    atomic_store_explicit(&work->begun_ms, begun_ns / 1000000, memory_order_relaxed);
    if (work->begin != NULL)
        work->begin(work);
    work->run(work);
    ran_us = (uv_hrtime() - begun_ns) / 1000;
    work->ran_us = ran_us < UINT32_MAX ? (uint32_t)ran_us : UINT32_MAX;
}

static void run_until_stopped(struct mu__executor *executor)
{
    struct mu__work *work;

    while ((work = wait_for_work(executor)) != NULL) {
        bool first;

        (void)pthread_mutex_unlock(&executor->lock);
        run_one(work);
        (void)pthread_mutex_lock(&executor->lock);

        first = mu__list_is_empty(&executor->done);
        mu__list_append(&executor->done, &work->node);
        if (first)
            wake_owner(executor);
    }
}

static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    struct mu__executor *executor = thread->executor;
    bool last;

    name_thread(thread->number);
    (void)pthread_mutex_lock(&executor->lock);
    run_until_stopped(executor);
    thread->ended = true;
    executor->alive--;
    last = executor->abandoned && executor->alive == 0;
    wake_owner(executor);
    (void)pthread_mutex_unlock(&executor->lock);

    if (last)
        destroy(executor);
    return NULL;
}

static int start_threads(struct mu__executor *executor, unsigned threads)
{
    int rv = 0;

    (void)pthread_mutex_lock(&executor->lock);
    while (rv == 0 && executor->threads_count < threads) {
        struct thread *thread = &executor->threads[executor->threads_count];

        *thread = (struct thread){.executor = executor,
                                  .number = executor->threads_count};
        if (mu__thread_start(thread_main, thread, &thread->id) != 0)
            rv = -MU_EEXHAUSTED;
        else
            executor->threads_count++;
    }
    executor->alive = executor->threads_count;
    (void)pthread_mutex_unlock(&executor->lock);
    return rv;
}

int mu__executor_new(unsigned threads, void (*wake)(void *owner), void *owner,
                     struct mu__executor **ret_executor)
{
    struct mu__executor *executor;
    int rv;

    if (threads == 0 || threads > MU__EXECUTOR_THREADS_MAX)
        return -MU_EINVALID;
    executor = calloc(1, sizeof *executor + threads * sizeof executor->threads[0]);
    if (executor == NULL)
        return -MU_ENOMEM;
    executor->wake = wake;
    executor->owner = owner;
    rv = -MU_EEXHAUSTED;
    if (pthread_mutex_init(&executor->lock, NULL) != 0)
        goto err_executor;
    if (pthread_cond_init(&executor->work_ready, NULL) != 0)
        goto err_lock;

    rv = start_threads(executor, threads);
    if (rv != 0) {
        mu__executor_free(executor);
        return rv;
    }
    *ret_executor = executor;
    return 0;

err_lock:
    (void)pthread_mutex_destroy(&executor->lock);
err_executor:
    free(executor);
    return rv;
}

void mu__executor_submit(struct mu__executor *executor, struct mu__work *work)
{
    bool wakes;

    assert(work->run != NULL);
    atomic_store_explicit(&work->begun_ms, 0, memory_order_relaxed);
    (void)pthread_mutex_lock(&executor->lock);
    assert(!executor->stopping);
    mu__list_append(&executor->queued, &work->node);
    work->queued = true;
    wakes = executor->idle > executor->woken;
    if (wakes)
        executor->woken++;
    (void)pthread_mutex_unlock(&executor->lock);
    if (wakes)
        (void)pthread_cond_signal(&executor->work_ready);
}

bool mu__executor_withdraw(struct mu__executor *executor, struct mu__work *work)
{
    bool queued;

    (void)pthread_mutex_lock(&executor->lock);
    queued = work->queued && !executor->stopping;
    if (queued) {
        mu__list_remove(&executor->queued, &work->node);
        work->queued = false;
    }
    (void)pthread_mutex_unlock(&executor->lock);
    return queued;
}

struct mu__list mu__executor_take_done(struct mu__executor *executor)
{
    struct mu__list done;

    (void)pthread_mutex_lock(&executor->lock);
    done = executor->done;
    executor->done = (struct mu__list){NULL, NULL};
    (void)pthread_mutex_unlock(&executor->lock);
    return done;
}

struct mu__list mu__executor_stop(struct mu__executor *executor)
{
    struct mu__list given_back;

    (void)pthread_mutex_lock(&executor->lock);
    executor->stopping = true;
    given_back = executor->queued;
    executor->queued = (struct mu__list){NULL, NULL};
    (void)pthread_cond_broadcast(&executor->work_ready);
    (void)pthread_mutex_unlock(&executor->lock);
    return given_back;
}

bool mu__executor_has_ended(struct mu__executor *executor)
{
    bool ended;

    (void)pthread_mutex_lock(&executor->lock);
    ended = executor->alive == 0;
    (void)pthread_mutex_unlock(&executor->lock);
    return ended;
}

void mu__executor_free(struct mu__executor *executor)
{
    if (executor == NULL)
        return;
    (void)pthread_mutex_lock(&executor->lock);
    executor->wake = NULL;
    (void)pthread_mutex_unlock(&executor->lock);
    (void)mu__executor_stop(executor);
    for (unsigned i = 0; i < executor->threads_count; i++)
        (void)pthread_join(executor->threads[i].id, NULL);
    destroy(executor);
}

void mu__executor_abandon(struct mu__executor *executor)
{
    bool ended;

    (void)mu__executor_stop(executor);
    (void)pthread_mutex_lock(&executor->lock);
    executor->wake = NULL;
    executor->abandoned = true;
    ended = executor->alive == 0;
    for (unsigned i = 0; i < executor->threads_count; i++)
        (void)pthread_detach(executor->threads[i].id);
    (void)pthread_mutex_unlock(&executor->lock);
    if (ended)
        destroy(executor);
}
