/* A one-shot channel between two threads; see extension.h. On a semaphore, since a signal
 * ends a wait on that, and not one on a condition. */
#define _GNU_SOURCE
#include "extension.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct mupy_waiter {
    sem_t posted;
    atomic_int holders;
    atomic_int outcome; /* 0: nothing yet */
};

struct mupy_waiter *mupy_waiter_new(void)
{
    struct mupy_waiter *waiter = calloc(1, sizeof *waiter);

    if (waiter == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    (void)sem_init(&waiter->posted, 0, 0);
    atomic_init(&waiter->holders, 2);
    return waiter;
}

void mupy_waiter_unref(struct mupy_waiter *waiter)
{
    if (atomic_fetch_sub(&waiter->holders, 1) != 1)
        return;
    (void)sem_destroy(&waiter->posted);
    free(waiter);
}

void mupy_waiter_post(struct mupy_waiter *waiter, int what)
{
    atomic_store(&waiter->outcome, what);
    (void)sem_post(&waiter->posted);
    mupy_waiter_unref(waiter);
}

int mupy_waiter_outcome(struct mupy_waiter *waiter)
{
    while (atomic_load(&waiter->outcome) == 0)
        (void)sem_wait(&waiter->posted);
    return atomic_load(&waiter->outcome);
}

/* Returns early when a signal was handled on this thread. */
static bool wait_on_semaphore(struct mupy_waiter *waiter, int64_t piece_ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(piece_ms / 1000);
    until.tv_nsec += (long)(piece_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)sem_clockwait(&waiter->posted, CLOCK_MONOTONIC, &until);
    return atomic_load(&waiter->outcome) != 0;
}

int mupy_waiter_wait(struct mupy_waiter *waiter, struct mupy_pieces *pieces)
{
    while (true) {
        int64_t piece_ms = mupy_pieces_next(pieces);
        bool over;

        Py_BEGIN_ALLOW_THREADS
        over = wait_on_semaphore(waiter, piece_ms);
        Py_END_ALLOW_THREADS
        if (over)
            return 0;
        if (PyErr_CheckSignals() != 0)
            return -1;
        if (mupy_pieces_over(pieces))
            return 1;
    }
}
