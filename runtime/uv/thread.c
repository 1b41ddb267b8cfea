#include "runtime/uv/thread.h"

#include <signal.h>
#include <stddef.h>

static void fill_blocked_signals(sigset_t *set)
{
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};

    (void)sigfillset(set);
    for (size_t i = 0; i < sizeof own_faults / sizeof own_faults[0]; i++)
        (void)sigdelset(set, own_faults[i]);
}

/* A thread inherits the signal mask of the thread that starts it. */
int mu__thread_start(void *(*run)(void *arg), void *arg, pthread_t *ret_thread)
{
    sigset_t blocked;
    sigset_t before;
    int rv;

    fill_blocked_signals(&blocked);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    rv = pthread_create(ret_thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rv;
}
