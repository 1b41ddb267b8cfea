/* Waits without the GIL that Ctrl-C interrupts.
 *
 * Python handles signals on the main thread only. A waiting call of the main thread
 * therefore runs on a helper thread, while the main thread handles signals. */
#include "extension.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct helper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mupy_call *call; /* the call that it runs; NULL: it has returned */
    bool left;              /* the caller was interrupted */
    struct helper *next;    /* in the list of idle helpers */
};

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct helper *idle;
static unsigned long main_thread;
static pid_t helpers_of; /* the process that started the idle helpers */

uint64_t mupy_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- calls ---- */

struct mupy_call *mupy_call_new(void (*run)(struct mupy_call *call))
{
    struct mupy_call *call = PyMem_Calloc(1, sizeof *call);

    if (call == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    call->run = run;
    return call;
}

void mupy_call_keep(struct mupy_call *call, PyObject *object)
{
    size_t i = 0;

    while (call->keep[i] != NULL)
        i++;
    Py_INCREF(object);
    call->keep[i] = object;
}

void mupy_call_free(struct mupy_call *call)
{
    if (call->used != NULL)
        mupy_handle_end(call->used);
    for (size_t i = 0; i < sizeof call->keep / sizeof call->keep[0]; i++)
        Py_XDECREF(call->keep[i]);
    PyMem_Free(call);
}

void mupy_call_run_here(struct mupy_call *call)
{
    Py_BEGIN_ALLOW_THREADS
    call->run(call);
    Py_END_ALLOW_THREADS
}

/* ---- helper threads ---- */

void mupy_call_drop(struct mupy_call *call)
{
    if (call->drop != NULL)
        call->drop(call);
    mupy_call_free(call);
}

void mupy_call_forget(struct mupy_call *call)
{
    PyGILState_STATE state = PyGILState_Ensure();

    mupy_call_drop(call);
    PyGILState_Release(state);
}

/* A helper ends when its caller was interrupted, else it is reused. */
static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    bool left = false;

    while (!left) {
        struct mupy_call *call;

        (void)pthread_mutex_lock(&helper->lock);
        while (helper->call == NULL)
            (void)pthread_cond_wait(&helper->changed, &helper->lock);
        call = helper->call;
        (void)pthread_mutex_unlock(&helper->lock);
        call->run(call);
        (void)pthread_mutex_lock(&helper->lock);
        left = helper->left;
        helper->call = NULL;
        (void)pthread_cond_broadcast(&helper->changed);
        (void)pthread_mutex_unlock(&helper->lock);
        if (left)
            mupy_call_forget(call);
    }
    (void)pthread_cond_destroy(&helper->changed);
    (void)pthread_mutex_destroy(&helper->lock);
    free(helper);
    return NULL;
}

static struct helper *helper_new(void)
{
    struct helper *helper = calloc(1, sizeof *helper);
    pthread_condattr_t clock;
    pthread_attr_t attr;
    pthread_t thread;

    if (helper == NULL)
        return NULL;
    (void)pthread_mutex_init(&helper->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&helper->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, helper_main, helper) != 0) {
        free(helper);
        helper = NULL;
    }
    (void)pthread_attr_destroy(&attr);
    return helper;
}

/* A forked child does not have its parent's helpers. */
static struct helper *take_idle_helper(void)
{
    struct helper *helper;

    (void)pthread_mutex_lock(&idle_lock);
    if (helpers_of != getpid()) {
        idle = NULL;
        helpers_of = getpid();
    }
    helper = idle;
    if (helper != NULL)
        idle = helper->next;
    (void)pthread_mutex_unlock(&idle_lock);
    return helper != NULL ? helper : helper_new();
}

static void give_helper_back(struct helper *helper)
{
    (void)pthread_mutex_lock(&idle_lock);
    helper->next = idle;
    idle = helper;
    (void)pthread_mutex_unlock(&idle_lock);
}

struct timespec mupy_in_piece(void)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += MUPY_PIECE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    return until;
}

/* True when the call has returned; false when one piece of the wait has passed. */
static bool wait_piece(struct helper *helper)
{
    struct timespec until = mupy_in_piece();
    int rv = 0;
    bool over;

    (void)pthread_mutex_lock(&helper->lock);
    while (helper->call != NULL && rv == 0)
        rv = pthread_cond_timedwait(&helper->changed, &helper->lock, &until);
    over = helper->call == NULL;
    (void)pthread_mutex_unlock(&helper->lock);
    return over;
}

/* Abandon the call to its helper. True when it has just returned: then it is still the
 * caller's. */
static bool leave_to_helper(struct helper *helper)
{
    bool over;

    (void)pthread_mutex_lock(&helper->lock);
    over = helper->call == NULL;
    helper->left = !over;
    (void)pthread_mutex_unlock(&helper->lock);
    return over;
}

static int run_on_helper(struct mupy_call *call, struct helper *helper)
{
    bool over = false;

    (void)pthread_mutex_lock(&helper->lock);
    helper->call = call;
    (void)pthread_cond_broadcast(&helper->changed);
    (void)pthread_mutex_unlock(&helper->lock);
    while (!over) {
        Py_BEGIN_ALLOW_THREADS
        over = wait_piece(helper);
        Py_END_ALLOW_THREADS
        if (!over && PyErr_CheckSignals() != 0) {
            if (!leave_to_helper(helper))
                return -1;
            give_helper_back(helper);
            mupy_call_drop(call);
            return -1;
        }
    }
    give_helper_back(helper);
    return 0;
}

int mupy_call_run(struct mupy_call *call)
{
    bool is_main = PyThread_get_thread_ident() == main_thread;
    struct helper *helper;
    int rv;

    if (is_main && call->begin != NULL && mupy_call_begin(call, &rv))
        return rv;
    helper = is_main ? take_idle_helper() : NULL;
    if (helper != NULL)
        return run_on_helper(call, helper);
    mupy_call_run_here(call);
    return 0;
}

PyObject *mupy_call_finish(struct mupy_call *call)
{
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv < 0)
        (void)mupy_raise(&call->error, NULL);
    else
        Py_INCREF(Py_None);
    {
        bool failed = call->rv < 0;

        mupy_call_free(call);
        return failed ? NULL : Py_None;
    }
}

static void drop_call_value(struct mupy_call *call)
{
    mu_value_free(call->made);
}

PyObject *mupy_call_value(struct mupy_call *call)
{
    PyObject *object = NULL;

    call->drop = drop_call_value;
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else if (call->made != NULL)
        object = mupy_from_value(call->made, true);
    else
        object = Py_BuildValue("");
    mu_value_free(call->made);
    mupy_call_free(call);
    return object;
}

/* ---- pieces ---- */

void mupy_pieces_begin(struct mupy_pieces *pieces, int64_t timeout_ms)
{
    pieces->left_ms = timeout_ms;
    pieces->until_ms = timeout_ms < 0 ? 0 : mupy_now_ms() + (uint64_t)timeout_ms;
}

int64_t mupy_pieces_next(struct mupy_pieces *pieces)
{
    uint64_t now;

    if (pieces->left_ms < 0)
        return MUPY_PIECE_MS;
    now = mupy_now_ms();
    pieces->left_ms = now >= pieces->until_ms ? 0 : (int64_t)(pieces->until_ms - now);
    return pieces->left_ms < MUPY_PIECE_MS ? pieces->left_ms : MUPY_PIECE_MS;
}

bool mupy_pieces_over(struct mupy_pieces *pieces)
{
    return pieces->left_ms >= 0 && mupy_now_ms() >= pieces->until_ms;
}

/* ---- times ---- */

int mupy_timeout(PyObject *seconds, int64_t *ret_ms)
{
    double number;

    *ret_ms = -1;
    if (seconds == NULL || seconds == Py_None)
        return 0;
    number = PyFloat_AsDouble(seconds);
    if (number == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            (void)PyErr_Format(PyExc_TypeError,
                               "a timeout is a number of seconds or None, got %R",
                               seconds);
        return -1;
    }
    if (number != number) {
        PyErr_SetString(PyExc_ValueError, "a timeout is a number of seconds, got nan");
        return -1;
    }
    if (number < 0)
        number = 0;
    if (number < 1e12)
        *ret_ms = (int64_t)(number * 1000 + 0.999);
    return 0;
}

int mupy_wait_init(PyObject *module)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *thread =
        threading == NULL ? NULL : PyObject_CallMethod(threading, "main_thread", NULL);
    PyObject *ident = thread == NULL ? NULL : PyObject_GetAttrString(thread, "ident");

    (void)module;
    if (ident != NULL)
        main_thread = PyLong_AsUnsignedLong(ident);
    Py_XDECREF(ident);
    Py_XDECREF(thread);
    Py_XDECREF(threading);
    return PyErr_Occurred() ? -1 : 0;
}

int mupy_pieces_wait(int (*wait)(void *what, int64_t piece_ms, mu_error *error),
                     void *what, int64_t timeout_ms, mu_error *error)
{
    struct mupy_pieces pieces;
    int rv;

    mupy_pieces_begin(&pieces, timeout_ms);
    do {
        int64_t piece_ms = mupy_pieces_next(&pieces);

        Py_BEGIN_ALLOW_THREADS
        rv = wait(what, piece_ms, error);
        Py_END_ALLOW_THREADS
        if (rv != -MU_EDEADLINE || error->closure != 0)
            return rv;
        if (PyErr_CheckSignals() != 0)
            return 1;
    } while (!mupy_pieces_over(&pieces));
    return rv;
}
