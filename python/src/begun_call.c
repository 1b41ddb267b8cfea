/* Calls that the library ends by a callback: the main thread waits for them without a
 * helper thread, and others are not waited for at all. */
#include "extension.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* One that is under way: of the caller, and of the callback, which frees it if the
 * caller was interrupted. */
struct mupy_begun {
    struct mupy_notice notice; /* of its end, if nobody waits, */
    PyObject *tell;            /* and what is called then; NULL: the caller waits */
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

    call->rv = code;
    if (error != NULL)
        call->error = *error;
    if (begun->tell != NULL) {
        mupy_notice_post(&begun->notice);
        return;
    }
    (void)pthread_mutex_lock(&begun->lock);
    begun->over = true;
    left = begun->left;
    (void)pthread_cond_signal(&begun->changed);
    (void)pthread_mutex_unlock(&begun->lock);
    if (!left)
        return;
    begun_free(begun);
    forget_later(call);
}

/* True when it has ended; false when one piece of the wait has passed. Without the GIL.
 */
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

bool mupy_call_begin(struct mupy_call *call, int *ret_rv)
{
    struct mupy_begun *begun = begun_new(call);
    bool over = false;
    int rv;

    if (begun == NULL)
        return false;
    Py_BEGIN_ALLOW_THREADS
    rv = call->begin(call, begun);
    if (rv == 0)
        over = wait_begun(begun);
    Py_END_ALLOW_THREADS
    *ret_rv = 0;
    while (rv == 0 && !over) {
        if (PyErr_CheckSignals() != 0) {
            *ret_rv = -1;
            if (!leave_begun(begun))
                return true;
            mupy_call_drop(call);
            break;
        }
        Py_BEGIN_ALLOW_THREADS
        over = wait_begun(begun);
        Py_END_ALLOW_THREADS
    }
    begun_free(begun);
    return rv == 0;
}

/* ---- without waiting ---- */

/* The exception of its end, None without one: a new reference. */
static PyObject *get_outcome(const struct mupy_call *call)
{
    PyObject *exception = call->rv == 0 ? Py_None : mupy_exception(&call->error, NULL);
    PyObject *type;
    PyObject *traceback;

    if (exception == Py_None)
        Py_INCREF(exception);
    if (exception != NULL)
        return exception;
    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return exception;
}

/* Frees the call first: who is told may look at what it has kept. */
static struct mupy_notice *tell_end(struct mupy_notice *notice)
{
    struct mupy_begun *begun = (struct mupy_begun *)(void *)notice;
    struct mupy_notice *next = notice->next;
    PyObject *outcome = get_outcome(begun->call);
    PyObject *result;

    mupy_call_free(begun->call);
    result = PyObject_CallFunctionObjArgs(begun->tell, outcome, NULL);
    if (result == NULL)
        PyErr_WriteUnraisable(begun->tell);
    Py_XDECREF(result);
    Py_XDECREF(outcome);
    Py_DECREF(begun->tell);
    begun_free(begun);
    return next;
}

static struct mupy_begun *begun_telling(struct mupy_call *call, PyObject *tell)
{
    struct mupy_begun *begun;

    if (mupy_notice_start() != 0)
        return NULL;
    begun = begun_new(call);
    if (begun == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    begun->notice.deliver = tell_end;
    begun->tell = tell;
    Py_INCREF(tell);
    return begun;
}

static PyObject *refuse_call(struct mupy_begun *begun)
{
    mupy_call_free(begun->call);
    Py_DECREF(begun->tell);
    begun_free(begun);
    return mupy_fail(-MU_EAGAIN, "too many calls are under way: wait for some of them");
}

PyObject *mupy_call_start(struct mupy_call *call, PyObject *tell)
{
    struct mupy_begun *begun = begun_telling(call, tell);
    int rv;

    if (begun == NULL) {
        mupy_call_free(call);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    rv = call->begin(call, begun);
    Py_END_ALLOW_THREADS
    if (rv == -MU_EAGAIN)
        return refuse_call(begun);
    if (rv != 0) {
        /* The one that waits has the words for it. */
        mupy_call_run_here(call);
        (void)tell_end(&begun->notice);
    }
    Py_RETURN_NONE;
}
