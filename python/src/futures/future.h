/* Futures, and what sends the closures of an executor's. */
#ifndef MUSTER_PYTHON_FUTURE_H
#define MUSTER_PYTHON_FUTURE_H

#include "extension.h"

#include <stdatomic.h>

enum mupy_future_state {
    MUPY_PENDING, MUPY_RUNNING, MUPY_FINISHED, MUPY_CANCELLED_AND_NOTIFIED,
    MUPY_CANCELLED, MUPY_FUTURE_STATES
};

struct mupy_future {
    PyObject_HEAD
    PyObject *state;            /* a str */
    PyObject *result;
    PyObject *exception;
    PyObject *fn;               /* what it is of, until it is done; NULL */
    PyObject *args;
    PyObject *kwargs;
    PyObject *owner;            /* muster.futures.Owner */
    PyObject *function;         /* for the words of an error: see mupy_function_text */
    mu_remote_value *remote;    /* of the closure that was sent for it; NULL */
    _Atomic(struct mupy_waiter *) link; /* who is to settle it; `READY`: it has come */
    struct mupy_waiter *sleeper;        /* who is told when it is done; NULL */
    struct mupy_notice notice;
    struct mupy_future *next;   /* among those that wait to be sent */
    char is_shared;             /* others look at it: it has a condition */
};

/* What futures and senders do is written for one thread at a time. The GIL sees to that;
 * without it one critical section of all does, which ends, as the GIL does, where a
 * thread waits. A method `name` of two arguments becomes `name_alone`. */
extern PyObject *mupy_futures_lock;

#define MUPY_ALONE(name)                                                                 \
    static PyObject *name##_alone(PyObject *object, PyObject *argument)                  \
    {                                                                                    \
        PyObject *result;                                                                \
                                                                                         \
        MUPY_LOCK(mupy_futures_lock)                                                     \
        result = name(object, argument);                                                 \
        MUPY_UNLOCK()                                                                    \
        return result;                                                                   \
    }

/* A new reference. NULL with an exception. */
struct mupy_future *mupy_future_new(PyObject *type, PyObject *owner, PyObject *fn,
                                    PyObject *args, PyObject *kwargs,
                                    enum mupy_future_state state);

/* From pending to running; false when it is not pending any more. */
bool mupy_future_begin(struct mupy_future *self);

/* Schedule a call for one that is running; `args` are fn, args, kwargs and the options
 * named by `names`. -1 with an exception. */
int mupy_future_send(struct mupy_future *self, PyObject *coordinator,
                     PyObject *const *args, PyObject *names);

/* ---- sender.c ---- */

/* So many closures of its futures are over; nothing when `owner` is no sender. */
void mupy_sender_landed(PyObject *owner, Py_ssize_t count);

/* How many it has sent that are not over. */
Py_ssize_t mupy_sender_in_flight(PyObject *owner);

#endif
