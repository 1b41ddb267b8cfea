/* One lock, one queue, threads that sleep. The lock guards everything that is not
 * constant after the start.
 *
 * One of the threads without work may spin, for which it lets go of the lock. Until it is
 * back it counts as one that was woken already: the first work that is queued meanwhile
 * wakes nobody.
 *
 * The wake is sent while holding the lock, so that after mu__executor_abandon has cleared
 * `wake` under the lock, no thread can be about to touch the owner. */
#include "runtime/uv/executor.h"

#include "muster/error.h"
#include "runtime/uv/spin.h"
#include "runtime/uv/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { LOCK_LOOKS = 200 };

struct thread {
    struct mu__executor *executor;
    pthread_t id;
    unsigned number;
    bool ended;
    struct mu__work *work; /* while it runs some; for the thread itself */
};

struct mu__executor {
    pthread_mutex_t lock;
    pthread_cond_t work_ready;
    struct mu__list queued; /* of mu__work.node */
    struct mu__list done;
    void (*wake)(void *owner); /* NULL: nobody to wake any more */
    void *owner;
    unsigned idle;  /* threads that wait for work */
    unsigned woken; /* of these, signalled and not running yet */
    struct mu__spin spin;
    bool spins;           /* a thread does, and takes work when it is back; */
    bool claimed;         /* there is work for it */
    atomic_bool has_work; /* for that thread, which does not have the lock */
    unsigned alive;       /* threads that have not ended */
    bool stopping;
    bool abandoned; /* the last thread frees this */
    unsigned threads_count;
    struct thread threads[];
};

static void wake_owner(struct mu__executor *executor)
{
    if (executor->wake != NULL)
        executor->wake(executor->owner);
}

static void destroy_executor(struct mu__executor *executor)
{
    (void)pthread_cond_destroy(&executor->work_ready);
    (void)pthread_mutex_destroy(&executor->lock);
    free(executor);
}

static void name_executor_thread(unsigned number)
{
#ifdef __linux__
    char name[16];

    (void)snprintf(name, sizeof name, "mu-exec-%u", number);
    (void)prctl(PR_SET_NAME, name);
#else
    (void)number;
#endif
}

/* The lock is held for moments: whoever spins does not sleep for it. */
static void lock_soon(struct mu__executor *executor)
{
    for (int i = 0; i < LOCK_LOOKS; i++) {
        if (pthread_mutex_trylock(&executor->lock) == 0)
            return;
        mu__spin_relax();
    }
    (void)pthread_mutex_lock(&executor->lock);
}

static bool has_executor_work(void *arg)
{
    return atomic_load_explicit(&((struct mu__executor *)arg)->has_work,
                                memory_order_relaxed);
}

/* Without work, and with the lock held, which is let go of meanwhile. */
static void spin_for_work(struct mu__executor *executor, uint64_t *ret_begun_ns)
{
    executor->spins = true;
    executor->claimed = false;
    atomic_store_explicit(&executor->has_work, false, memory_order_relaxed);
    (void)pthread_mutex_unlock(&executor->lock);
    (void)mu__spin_wait(&executor->spin, has_executor_work, executor, ret_begun_ns);
    lock_soon(executor);
    executor->spins = false;
}

static void sleep_for_work(struct mu__executor *executor)
{
    executor->idle++;
    (void)pthread_cond_wait(&executor->work_ready, &executor->lock);
    executor->idle--;
    if (executor->woken > 0)
        executor->woken--;
}

static bool has_to_wait(const struct mu__executor *executor)
{
    return mu__list_is_empty(&executor->queued) && !executor->stopping;
}

/* The next piece of work, or NULL when the thread has to end. With the lock held. */
static struct mu__work *wait_for_work(struct mu__executor *executor)
{
    uint64_t begun_ns = 0;
    struct mu__work *work;

    if (has_to_wait(executor) && !executor->spins && executor->spin.length_ns != 0)
        spin_for_work(executor, &begun_ns);
    if (has_to_wait(executor)) {
        do
            sleep_for_work(executor);
        while (has_to_wait(executor));
        if (begun_ns != 0)
            mu__spin_slept(&executor->spin, begun_ns);
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

/* With the lock held. */
static void give_back_work(struct mu__executor *executor, struct mu__work *work)
{
    bool first = mu__list_is_empty(&executor->done);

    mu__list_append(&executor->done, &work->node);
    if (first)
        wake_owner(executor);
}

static void run_until_stopped(struct thread *thread)
{
    struct mu__executor *executor = thread->executor;

    while ((thread->work = wait_for_work(executor)) != NULL) {
        (void)pthread_mutex_unlock(&executor->lock);
        run_one(thread->work);
        (void)pthread_mutex_lock(&executor->lock);
        give_back_work(executor, thread->work);
    }
}

/* The thread's last step. Releases the lock. */
static void end_executor_thread(struct thread *thread)
{
    struct mu__executor *executor = thread->executor;
    bool last;

    thread->ended = true;
    executor->alive--;
    last = executor->abandoned && executor->alive == 0;
    wake_owner(executor);
    (void)pthread_mutex_unlock(&executor->lock);
    if (last)
        destroy_executor(executor);
}

static void *run_executor_thread(void *arg);

/* Another thread takes the place of this one, which ends. With the lock held. */
static void replace_executor_thread(struct thread *thread)
{
    pthread_t id;

    if (mu__thread_start(run_executor_thread, thread, &id) != 0) {
        (void)fputs("muster: a function has ended its thread, and no other thread can be "
                    "started\n",
                    stderr);
        abort();
    }
    (void)pthread_detach(thread->id);
    thread->id = id;
}

/* The work has ended its thread, by pthread_exit. */
static void on_exit_of_thread(void *arg)
{
    struct thread *thread = arg;
    struct mu__executor *executor = thread->executor;

    (void)pthread_mutex_lock(&executor->lock);
    give_back_work(executor, thread->work);
    if (executor->stopping) {
        end_executor_thread(thread);
        return;
    }
    replace_executor_thread(thread);
    (void)pthread_mutex_unlock(&executor->lock);
}

static void *run_executor_thread(void *arg)
{
    struct thread *thread = arg;
    struct mu__executor *executor = thread->executor;

    name_executor_thread(thread->number);
    (void)pthread_mutex_lock(&executor->lock);
    pthread_cleanup_push(on_exit_of_thread, thread);
    run_until_stopped(thread);
    pthread_cleanup_pop(0);
    end_executor_thread(thread);
    return NULL;
}

static int start_threads(struct mu__executor *executor, unsigned threads)
{
    int rv = 0;

    (void)pthread_mutex_lock(&executor->lock);
    while (rv == 0 && executor->threads_count < threads) {
        struct thread *thread = &executor->threads[executor->threads_count];

        *thread =
            (struct thread){.executor = executor, .number = executor->threads_count};
        if (mu__thread_start(run_executor_thread, thread, &thread->id) != 0)
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
    mu__spin_init(&executor->spin, 0);
    atomic_init(&executor->has_work, false);
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

/* With the lock held: whether a sleeping thread is to be signalled for one more piece. */
static bool wakes_one(struct mu__executor *executor)
{
    if (executor->spins && !executor->claimed) {
        executor->claimed = true;
        return false;
    }
    if (executor->idle <= executor->woken)
        return false;
    executor->woken++;
    return true;
}

void mu__executor_spin(struct mu__executor *executor, uint32_t spin_us)
{
    (void)pthread_mutex_lock(&executor->lock);
    mu__spin_init(&executor->spin, spin_us);
    (void)pthread_mutex_unlock(&executor->lock);
}

void mu__executor_submit(struct mu__executor *executor, struct mu__work *work)
{
    bool wakes;

    assert(work->run != NULL);
    atomic_store_explicit(&work->begun_ms, 0, memory_order_relaxed);
    lock_soon(executor);
    assert(!executor->stopping);
    mu__list_append(&executor->queued, &work->node);
    work->queued = true;
    wakes = wakes_one(executor);
    (void)pthread_mutex_unlock(&executor->lock);
    atomic_store_explicit(&executor->has_work, true, memory_order_relaxed);
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

    lock_soon(executor);
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
    atomic_store_explicit(&executor->has_work, true, memory_order_relaxed);
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
    destroy_executor(executor);
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
        destroy_executor(executor);
}
