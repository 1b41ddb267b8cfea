/* Threads of the library that run Python. */
#include "extension.h"

#include <pthread.h>
#include <signal.h>

/* The Python thread state of a library thread, kept until the thread ends. */
struct thread {
    PyThreadState *state;
    PyGILState_STATE before;
    bool is_python; /* a thread of the interpreter, which has its own state */
};

static _Thread_local struct thread own;
static pthread_key_t ends;
static pthread_once_t ends_once = PTHREAD_ONCE_INIT;
static sigset_t process_mask; /* of the thread that imported the module */

static int is_python_finalizing(void)
{
    return !Py_IsInitialized();
}

/* Called when Python's thread-specific data is freed already, so PyGILState_Release()
 * cannot be used. */
static void end_python_thread(void *arg)
{
    PyThreadState *state = own.state;

    (void)arg;
    if (state == NULL || is_python_finalizing())
        return;
    own.state = NULL;
    PyEval_RestoreThread(state);
    PyThreadState_Clear(state);
    (void)PyEval_SaveThread();
    PyThreadState_Delete(state);
}

static void make_thread_key(void)
{
    (void)pthread_key_create(&ends, end_python_thread);
}

/* Threads of the library block all signals. Threads that run Python get the signal mask
 * of other threads, which processes started by a function inherit. */
static void unblock_signals(void)
{
    (void)pthread_sigmask(SIG_SETMASK, &process_mask, NULL);
}

void mupy_enter(void)
{
    if (own.state != NULL) {
        PyEval_RestoreThread(own.state);
        return;
    }
    own.is_python = PyGILState_GetThisThreadState() != NULL;
    own.before = PyGILState_Ensure();
    if (own.is_python)
        return;
    (void)pthread_once(&ends_once, make_thread_key);
    (void)pthread_setspecific(ends, &own);
    unblock_signals();
}

void mupy_leave(void)
{
    if (own.is_python) {
        PyGILState_Release(own.before);
        return;
    }
    own.state = PyEval_SaveThread();
}

int mupy_library_thread_init(PyObject *module)
{
    (void)module;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &process_mask);
    return 0;
}
