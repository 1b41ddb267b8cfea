/* A one-shot channel between two threads; see extension.h. */
#include "extension.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct mupy_waiter {
    pthread_mutex_t lock;
    pthread_cond_t told;
    atomic_int holders;
    int told_what;          /* 0: nothing yet */
};

struct mupy_waiter *mupy_waiter_new(void)
{
    struct mupy_waiter *waiter = calloc(1, sizeof *waiter);
    pthread_condattr_t clock;

    if (waiter == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    (void)pthread_mutex_init(&waiter->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&waiter->told, &clock);
    (void)pthread_condattr_destroy(&clock);
    atomic_init(&waiter->holders, 2);
    return waiter;
}

void mupy_waiter_unref(struct mupy_waiter *waiter)
{
    if (atomic_fetch_sub(&waiter->holders, 1) != 1)
        return;
    (void)pthread_cond_destroy(&waiter->told);
    (void)pthread_mutex_destroy(&waiter->lock);
    free(waiter);
}

void mupy_waiter_tell(struct mupy_waiter *waiter, int what)
{
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->told_what = what;
    (void)pthread_mutex_unlock(&waiter->lock);
    /* Outside of the lock, on which the woken thread would wait. */
    (void)pthread_cond_signal(&waiter->told);
    mupy_waiter_unref(waiter);
}

int mupy_waiter_said(struct mupy_waiter *waiter)
{
    int what;

    (void)pthread_mutex_lock(&waiter->lock);
    while (waiter->told_what == 0)
        (void)pthread_cond_wait(&waiter->told, &waiter->lock);
    what = waiter->told_what;
    (void)pthread_mutex_unlock(&waiter->lock);
    return what;
}

static bool wait_until(struct mupy_waiter *waiter, int64_t piece_ms)
{
    struct timespec until;
    bool over;
    int rv = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(piece_ms / 1000);
    until.tv_nsec += (long)(piece_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_mutex_lock(&waiter->lock);
    while (waiter->told_what == 0 && rv == 0)
        rv = pthread_cond_timedwait(&waiter->told, &waiter->lock, &until);
    over = waiter->told_what != 0;
    (void)pthread_mutex_unlock(&waiter->lock);
    return over;
}

int mupy_waiter_wait(struct mupy_waiter *waiter, struct mupy_pieces *pieces)
{
    while (true) {
        int64_t piece_ms = mupy_pieces_next(pieces);
        bool over;

        Py_BEGIN_ALLOW_THREADS
        over = wait_until(waiter, piece_ms);
        Py_END_ALLOW_THREADS
        if (over)
            return 0;
        if (PyErr_CheckSignals() != 0)
            return -1;
        if (mupy_pieces_over(pieces))
            return 1;
    }
}
