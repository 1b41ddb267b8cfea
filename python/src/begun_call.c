/* Calls of the main thread that the library ends by a callback: no helper thread waits
 * for them, so that two wakes of a thread fewer are between Python and the node. */
#include "extension.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* One that is under way: of the caller, and of the callback, which frees it if the
 * caller was interrupted. */
struct mupy_begun {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mupy_call *call;
    bool over;
    bool left; /* the caller was interrupted */
};

static struct mupy_begun *begun_new(struct mupy_call *call)
{
    struct mupy_begun *begun = calloc(1, sizeof *begun);
    pthread_condattr_t clock;

    if (begun == NULL)
        return NULL;
    begun->call = call;
    (void)pthread_mutex_init(&begun->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&begun->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    return begun;
}

static void begun_free(struct mupy_begun *begun)
{
    (void)pthread_cond_destroy(&begun->changed);
    (void)pthread_mutex_destroy(&begun->lock);
    free(begun);
}

static void *forget_on_thread(void *call)
{
    mupy_call_forget(call);
    return NULL;
}

/* The loop does not wait for the GIL. Without a thread the memory is lost. */
static void forget_later(struct mupy_call *call)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, forget_on_thread, call) == 0)
        (void)pthread_detach(thread);
}

void mupy_begun_ended(void *user, int code, const mu_error *error)
{
    struct mupy_begun *begun = user;
    struct mupy_call *call = begun->call;
    bool left;

    (void)pthread_mutex_lock(&begun->lock);
    call->rv = code;
    if (error != NULL)
        call->error = *error;
    begun->over = true;
    left = begun->left;
    (void)pthread_cond_signal(&begun->changed);
    (void)pthread_mutex_unlock(&begun->lock);
    if (!left)
        return;
    begun_free(begun);
    forget_later(call);
}

/* True when it has ended; false when one piece of the wait has passed. */
static bool wait_begun(struct mupy_begun *begun)
{
    struct timespec until = mupy_in_piece();
    int rv = 0;
    bool over;

    (void)pthread_mutex_lock(&begun->lock);
    while (!begun->over && rv == 0)
        rv = pthread_cond_timedwait(&begun->changed, &begun->lock, &until);
    over = begun->over;
    (void)pthread_mutex_unlock(&begun->lock);
    return over;
}

/* Leave the call to its callback. True when it has just ended: then it is still the
 * caller's. */
static bool leave_begun(struct mupy_begun *begun)
{
    bool over;

    (void)pthread_mutex_lock(&begun->lock);
    over = begun->over;
    begun->left = !over;
    (void)pthread_mutex_unlock(&begun->lock);
    return over;
}

static int begin(struct mupy_begun *begun)
{
    int rv;

    Py_BEGIN_ALLOW_THREADS
    rv = begun->call->begin(begun->call, begun);
    Py_END_ALLOW_THREADS
    return rv;
}

bool mupy_call_begin(struct mupy_call *call, int *ret_rv)
{
    struct mupy_begun *begun = begun_new(call);
    bool over = false;

    if (begun == NULL)
        return false;
    if (begin(begun) != 0) {
        begun_free(begun);
        return false;
    }
    *ret_rv = 0;
    while (!over) {
        Py_BEGIN_ALLOW_THREADS
        over = wait_begun(begun);
        Py_END_ALLOW_THREADS
        if (over || PyErr_CheckSignals() == 0)
            continue;
        *ret_rv = -1;
        if (!leave_begun(begun))
            return true;
        over = true;
        mupy_call_drop(call);
    }
    begun_free(begun);
    return true;
}
