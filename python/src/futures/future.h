/* Futures of an executor, and the sender of their closures. */
#ifndef MUSTER_PYTHON_FUTURE_H
#define MUSTER_PYTHON_FUTURE_H

#include "extension.h"

#include <stdatomic.h>

enum mupy_future_state {
    MUPY_PENDING,
    MUPY_RUNNING,
    MUPY_FINISHED,
    MUPY_CANCELLED_AND_NOTIFIED,
    MUPY_CANCELLED,
    MUPY_FUTURE_STATES
};

struct mupy_future {
    PyObject_HEAD
    PyObject *state; /* a str */
    PyObject *result;
    PyObject *exception;
    PyObject *source;        /* the value it stands for, until it is done; NULL */
    mu_value *packed;        /* arguments of its closure, until it is done; NULL */
    PyObject *owner;         /* muster.futures.Owner */
    PyObject *function;      /* the mupy_function of its closure; NULL */
    mu_remote_value *remote; /* of the closure that was sent; NULL */
    _Atomic(struct mupy_waiter *) link; /* the waiter of the thread that settles it;
                                           `READY`: the result has come */
    struct mupy_waiter *sleeper;        /* the waiter that is notified when it is done;
                                           NULL */
    struct mupy_notice notice;
    struct mupy_future *next;      /* in the queue of its sender */
    struct mupy_future *flight[2]; /* before and after it in the list of the futures
                                      whose closures are on their way */
    char is_shared; /* it has a condition, which other threads may wait on */
};

/* Futures and senders are used by one thread at a time: by the GIL, or without it in one
 * critical section for all of them, which, like the GIL, is released while a thread
 * waits. MUPY_ALONE makes `name_alone` of a method `name` of two arguments. */
extern PyObject *mupy_futures_lock;

#define MUPY_ALONE(name)                                                \
    static PyObject *name##_alone(PyObject *object, PyObject *argument) \
    {                                                                   \
        PyObject *result;                                               \
                                                                        \
        MUPY_LOCK(mupy_futures_lock)                                    \
        result = name(object, argument);                                \
        MUPY_UNLOCK()                                                   \
        return result;                                                  \
    }

/* Make a future: a new reference. NULL with an exception. */
struct mupy_future *mupy_future_new(PyObject *type, PyObject *owner, PyObject *source,
                                    enum mupy_future_state state);

/* Go from pending to running; false when it is not pending any more. */
bool mupy_future_begin(struct mupy_future *self);

/* Make the closure of a new future of the call (fn, args, kwargs) as it is now. -1 with
 * an exception. */
int mupy_future_pack(struct mupy_future *self, PyObject *coordinator,
                     PyObject *const *call);

/* Schedule the closure of a running future, with the options named by `names`. -1 with an
 * exception. */
int mupy_future_send(struct mupy_future *self, PyObject *coordinator,
                     PyObject *const *options, PyObject *names);

/* ---- sender.c ---- */

/* `count` closures of its futures have ended; no effect when `owner` is not a sender. */
void mupy_sender_landed(PyObject *owner, Py_ssize_t count);

/* Add a future to those whose closures are on their way, and remove it. The sender holds
 * no references to them: their closures do. */
void mupy_sender_took_off(struct mupy_future *future);
void mupy_sender_touched_down(struct mupy_future *future);

/* Number of closures sent that have not ended. */
Py_ssize_t mupy_sender_in_flight(PyObject *owner);

#endif
