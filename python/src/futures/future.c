/* The C part of muster.Future: its state, and how it becomes done.
 *
 * A closure that was sent for a future holds a reference to it. On the loop's thread
 * `arrived` chooses the thread that settles it: one that waits for it, or else the thread
 * that drains notices, which settles many at once. `link` has the waiter of the former;
 * the thread that takes the waiter out of `link` notifies it. Every change of the state
 * is one call here, with the GIL, or mupy_futures_lock, held throughout. */
#include "futures/future.h"

#include <stddef.h>
#include <structmember.h>

static const char *const state_names[MUPY_FUTURE_STATES] = {
    "PENDING", "RUNNING", "FINISHED", "CANCELLED_AND_NOTIFIED", "CANCELLED",
};
static PyObject *states[MUPY_FUTURE_STATES];
static PyTypeObject *future_type;
PyObject *mupy_futures_lock;
static char ready_mark;

/* A thread that waits for a future of a sender with more than this in flight is notified
 * by the thread that drains notices. */
enum { DIRECT_MAX = 16 };

/* The numbers sent to a waiter: the result has arrived and must be settled; it is
 * done. */
enum { ARRIVED = 1, DONE };

#define READY ((struct mupy_waiter *)(void *)&ready_mark)

static struct mupy_future *as_future(PyObject *self)
{
    return (struct mupy_future *)self;
}

static struct mupy_future *future_of(struct mupy_notice *notice)
{
    return (void *)((char *)notice - offsetof(struct mupy_future, notice));
}

static bool is_future_done(const struct mupy_future *self)
{
    return self->state != states[MUPY_PENDING] && self->state != states[MUPY_RUNNING];
}

/* ---- states ---- */

/* The state of a name; -1 with an exception. */
static int get_state_index(PyObject *name)
{
    for (int i = 0; i < MUPY_FUTURE_STATES; i++)
        if (states[i] == name)
            return i;
    for (int i = 0; i < MUPY_FUTURE_STATES; i++)
        if (PyUnicode_Check(name) && PyUnicode_Compare(states[i], name) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "%R is no state of a future", name);
    return -1;
}

/* Track the future in the garbage collector; most futures cannot be in a cycle and are
 * not tracked. */
static void track_in_gc(struct mupy_future *self)
{
    if (!PyObject_GC_IsTracked((PyObject *)self))
        PyObject_GC_Track(self);
}

static void notify_future_waiters(struct mupy_future *self)
{
    struct mupy_waiter *waiter = atomic_load(&self->link);

    if (self->sleeper != NULL)
        mupy_waiter_post(self->sleeper, DONE);
    self->sleeper = NULL;
    if (waiter != NULL && waiter != READY &&
        atomic_compare_exchange_strong(&self->link, &waiter, NULL))
        mupy_waiter_post(waiter, DONE);
}

/* Takes ownership of `result` and `exception`, which may be NULL. */
static void make_done(struct mupy_future *self, enum mupy_future_state state,
                      PyObject *result, PyObject *exception)
{
    PyObject *old[] = {self->result, self->exception, self->source};
    mu_value *packed = self->packed;

    self->result = result;
    self->exception = exception;
    self->source = NULL;
    self->packed = NULL;
    self->state = states[state];
    if (exception != NULL || (result != NULL && !mupy_is_constant(result)))
        track_in_gc(self);
    notify_future_waiters(self);
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        Py_XDECREF(old[i]);
    mu_value_free(packed);
}

/* _move(state, new): False when it is not in that state. */
static PyObject *future_move(PyObject *object, PyObject *args)
{
    struct mupy_future *self = as_future(object);
    PyObject *names[2];
    int from;
    int to;
    bool may;

    if (!PyArg_ParseTuple(args, "OO:_move", &names[0], &names[1]))
        return NULL;
    from = get_state_index(names[0]);
    to = from < 0 ? -1 : get_state_index(names[1]);
    if (to < 0)
        return NULL;
    may = self->state == states[from];
    if (may)
        self->state = states[to];
    return PyBool_FromLong(may);
}

/* _finish(state, result, exception, if_running, if_shared): False when it is done
 * already, or not in the expected condition. */
static PyObject *future_finish(PyObject *object, PyObject *args)
{
    struct mupy_future *self = as_future(object);
    PyObject *name;
    PyObject *result;
    PyObject *exception;
    int if_running;
    int if_shared;
    int state;
    bool may;

    if (!PyArg_ParseTuple(args, "OOOpp:_finish", &name, &result, &exception, &if_running,
                          &if_shared))
        return NULL;
    state = get_state_index(name);
    if (state < 0)
        return NULL;
    may = self->state == states[MUPY_PENDING] ||
          (if_running && self->state == states[MUPY_RUNNING]);
    if (!may || (self->is_shared && !if_shared))
        Py_RETURN_FALSE;
    Py_INCREF(result);
    Py_INCREF(exception);
    make_done(self, (enum mupy_future_state)state, result, exception);
    Py_RETURN_TRUE;
}

static PyObject *future_share(PyObject *object, PyObject *unused)
{
    (void)unused;
    as_future(object)->is_shared = 1;
    track_in_gc(as_future(object));
    Py_RETURN_NONE;
}

/* ---- settling ---- */

/* The result: a new reference; or NULL, and *ret_exception is a new reference. */
static PyObject *get_remote_outcome(
    mu_remote_value *remote, const struct mupy_future *self, PyObject **ret_exception)
{
    mu_value *value = NULL;
    PyObject *result;
    mu_error error;

    *ret_exception = NULL;
    if (mu_remote_value_fetch(remote, 0, &error, &value) != 0) {
        *ret_exception = mupy_exception_with(&error, mupy_function_text(self->function),
                                             mu_remote_value_error_data(remote));
        return NULL;
    }
    result = mupy_decode_result(value, true, NULL);
    mu_value_free(value);
    if (result == NULL)
        return NULL;
    *ret_exception = mupy_exception_in(result);
    if (*ret_exception == NULL && !PyErr_Occurred())
        return result;
    Py_DECREF(result);
    return NULL;
}

/* Take the current exception, without its traceback. */
static PyObject *taken_exception(void)
{
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;

    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return exception;
}

/* Settle a future on which other threads wait, or which failed, in muster.futures.
 * Returns whether its closure has ended, and was not sent again. */
static bool settle_slowly(struct mupy_future *self, PyObject *result, PyObject *exception,
                          bool is_aborted)
{
    PyObject *answer;
    bool has_landed;

    if (result != NULL)
        answer = PyObject_CallMethod((PyObject *)self, "_settle", "OOO",
                                     states[MUPY_FINISHED], result, Py_None);
    else
        answer = PyObject_CallMethod(self->owner, "failed", "OOO", self, exception,
                                     is_aborted ? Py_True : Py_False);
    has_landed = result != NULL || answer != Py_False;
    if (answer == NULL)
        PyErr_WriteUnraisable((PyObject *)self);
    Py_XDECREF(answer);
    return has_landed;
}

/* The closure has ended: settle the future. Returns false when the closure was sent
 * again. */
static bool settle_future(struct mupy_future *self)
{
    mu_remote_value *remote = self->remote;
    PyObject *exception = NULL;
    PyObject *result;
    bool is_aborted;
    bool has_landed = true;

    self->remote = NULL;
    mupy_sender_touched_down(self);
    if (remote == NULL || self->state != states[MUPY_RUNNING]) {
        mu_remote_value_free(remote);
        return true;
    }
    is_aborted = mu_remote_value_state(remote) == MU_REMOTE_ABORTED;
    result = get_remote_outcome(remote, self, &exception);
    mu_remote_value_free(remote);
    if (result == NULL && exception == NULL)
        exception = taken_exception();
    if (result != NULL && self->state == states[MUPY_RUNNING] && !self->is_shared) {
        make_done(self, MUPY_FINISHED, result, NULL);
        return true;
    }
    if (result != NULL || exception != NULL)
        has_landed = settle_slowly(self, result, exception, is_aborted);
    Py_XDECREF(result);
    Py_XDECREF(exception);
    return has_landed;
}

static struct mupy_notice *settle_many(struct mupy_notice *notice);

/* Settle this future and the following ones of the same owner. */
static struct mupy_notice *settle_same_owner(struct mupy_notice *notice)
{
    PyObject *owner = future_of(notice)->owner;
    Py_ssize_t landed = 0;

    Py_INCREF(owner);
    while (notice != NULL && notice->deliver == settle_many &&
           future_of(notice)->owner == owner) {
        struct mupy_future *self = future_of(notice);

        notice = notice->next;
        landed += settle_future(self);
        Py_DECREF(self);
    }
    mupy_sender_landed(owner, landed);
    Py_DECREF(owner);
    return notice;
}

static struct mupy_notice *settle_many(struct mupy_notice *notice)
{
    struct mupy_notice *next;

    MUPY_LOCK(mupy_futures_lock)
    next = settle_same_owner(notice);
    MUPY_UNLOCK()
    return next;
}

/* ---- sending ---- */

/* On the loop's thread. */
static void on_future_arrived(mu_remote_value *value, void *user)
{
    struct mupy_future *self = user;
    struct mupy_waiter *waiter = atomic_exchange(&self->link, READY);

    (void)value;
    if (waiter != NULL)
        mupy_waiter_post(waiter, ARRIVED);
    else
        mupy_notice_post(&self->notice);
}

int mupy_future_pack(struct mupy_future *self, PyObject *coordinator,
                     PyObject *const *call)
{
    self->packed = mupy_schedule_pack(coordinator, call, &self->function);
    return self->packed == NULL ? -1 : 0;
}

int mupy_future_send(struct mupy_future *self, PyObject *coordinator,
                     PyObject *const *options, PyObject *names)
{
    struct mupy_waiter *ready = READY;
    mu_remote_value *remote = NULL;

    (void)atomic_compare_exchange_strong(&self->link, &ready, NULL);
    self->notice.deliver = settle_many;
    Py_INCREF(self);
    if (mupy_schedule_packed(coordinator, self->packed, self->function, options, names,
                             on_future_arrived, self, &remote) != 0) {
        Py_DECREF(self);
        return -1;
    }
    self->remote = remote;
    mupy_sender_took_off(self);
    if (self->state != states[MUPY_RUNNING])
        (void)mu_remote_value_cancel(remote);
    return 0;
}

bool mupy_future_begin(struct mupy_future *self)
{
    if (self->state != states[MUPY_PENDING])
        return false;
    self->state = states[MUPY_RUNNING];
    return true;
}

/* _recall(): cancel the closure that was sent. */
static PyObject *future_recall(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (as_future(object)->remote != NULL)
        (void)mu_remote_value_cancel(as_future(object)->remote);
    Py_RETURN_NONE;
}

/* ---- waiting ---- */

/* After any end of a wait: settle the future if that was passed to this thread. */
static void end_wait(struct mupy_future *self, struct mupy_waiter *waiter)
{
    struct mupy_waiter *expected = waiter;
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    bool is_given;

    if (self->sleeper == waiter)
        self->sleeper = NULL;
    else if (!atomic_compare_exchange_strong(&self->link, &expected, NULL))
        expected = NULL;
    if (expected != NULL) {
        mupy_waiter_unref(waiter);
        mupy_waiter_unref(waiter);
        return;
    }
    is_given = mupy_waiter_outcome(waiter) == ARRIVED;
    mupy_waiter_unref(waiter);
    if (!is_given)
        return;
    PyErr_Fetch(&type, &exception, &traceback);
    mupy_sender_landed(self->owner, settle_future(self));
    Py_DECREF(self);
    PyErr_Restore(type, exception, traceback);
}

/* Choose how this thread waits: while many closures are in flight, the thread that drains
 * notices settles them and wakes this one; the last few are settled by this thread
 * itself. */
static bool begin_wait(struct mupy_future *self, struct mupy_waiter *waiter)
{
    struct mupy_waiter *nobody = NULL;

    if (mupy_sender_in_flight(self->owner) <= DIRECT_MAX)
        return atomic_compare_exchange_strong(&self->link, &nobody, waiter);
    self->sleeper = waiter;
    return true;
}

/* Settle a result that came before this thread waited, and that the thread that drains
 * notices has not handled yet: settled here, counted there. Aborted closures are left to
 * that thread. */
static bool settle_early(struct mupy_future *self)
{
    if (self->remote == NULL || atomic_load(&self->link) != READY ||
        mu_remote_value_state(self->remote) != MU_REMOTE_READY)
        return false;
    (void)settle_future(self);
    return true;
}

/* _wait(timeout): wait until it is done, or the timeout has passed; False at once when
 * another thread waits this way. */
static PyObject *future_wait(PyObject *object, PyObject *timeout)
{
    struct mupy_future *self = as_future(object);
    struct mupy_pieces pieces;
    int64_t timeout_ms;

    if (mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    mupy_pieces_begin(&pieces, timeout_ms);
    while (!is_future_done(self)) {
        struct mupy_waiter *waiter;
        int waited;

        if (settle_early(self))
            break;
        if (timeout_ms == 0)
            break;
        if (atomic_load(&self->link) != NULL || self->sleeper != NULL)
            Py_RETURN_FALSE;
        waiter = mupy_waiter_new();
        if (waiter == NULL)
            return NULL;
        if (!begin_wait(self, waiter)) {
            mupy_waiter_unref(waiter);
            mupy_waiter_unref(waiter);
            continue;
        }
        waited = mupy_waiter_wait(waiter, &pieces);
        end_wait(self, waiter);
        if (waited < 0)
            return NULL;
        if (waited > 0)
            break;
    }
    Py_RETURN_TRUE;
}

/* ---- the object ---- */

static PyObject *incref_future_part(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}

struct mupy_future *mupy_future_new(PyObject *type, PyObject *owner, PyObject *source,
                                    enum mupy_future_state state)
{
    struct mupy_future *self =
        (struct mupy_future *)PyType_GenericAlloc((PyTypeObject *)type, 0);

    if (self == NULL)
        return NULL;
    PyObject_GC_UnTrack(self);
    self->state = states[state];
    self->owner = incref_future_part(owner);
    self->source = incref_future_part(source);
    return self;
}

static PyObject *future_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static PyObject *nobody;

    (void)args;
    (void)kwargs;
    if (mupy_import(&nobody, "muster.futures", "NOBODY") == NULL)
        return NULL;
    return (PyObject *)mupy_future_new((PyObject *)type, nobody, NULL, MUPY_PENDING);
}

/* new_future(class, owner, source): make a running future. */
static PyObject *new_future(PyObject *module, PyObject *args)
{
    PyObject *type;
    PyObject *owner;
    PyObject *source;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO:new_future", &PyType_Type, &type, &owner, &source))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, future_type))
        return PyErr_Format(PyExc_TypeError, "%R is no class of futures", type);
    return (PyObject *)mupy_future_new(type, owner, source, MUPY_RUNNING);
}

static int set_attribute(PyObject *object, PyObject *name, PyObject *value)
{
    track_in_gc(as_future(object));
    return PyObject_GenericSetAttr(object, name, value);
}

static int future_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct mupy_future *self = as_future(object);

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->result);
    Py_VISIT(self->exception);
    Py_VISIT(self->source);
    Py_VISIT(self->owner);
    Py_VISIT(self->function);
    return 0;
}

static int future_clear(PyObject *object)
{
    struct mupy_future *self = as_future(object);

    Py_CLEAR(self->result);
    Py_CLEAR(self->exception);
    Py_CLEAR(self->source);
    Py_CLEAR(self->function);
    return 0;
}

static void future_dealloc(PyObject *object)
{
    struct mupy_future *self = as_future(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    mupy_sender_touched_down(self);
    (void)future_clear(object);
    mu_value_free(self->packed);
    Py_XDECREF(self->owner);
    mu_remote_value_free(self->remote);
    release(self);
    Py_DECREF(type);
}

static PyObject *get_state(PyObject *object, void *closure)
{
    (void)closure;
    return incref_future_part(as_future(object)->state);
}

/* The attribute `_state`, which the base class allows to set. */
static int future_set_state(PyObject *object, PyObject *name, void *closure)
{
    int state = get_state_index(name == NULL ? Py_None : name);

    (void)closure;
    if (state < 0)
        return -1;
    as_future(object)->state = states[state];
    if (is_future_done(as_future(object)))
        notify_future_waiters(as_future(object));
    return 0;
}

static int set_state_alone(PyObject *object, PyObject *name, void *closure)
{
    int rv;

    MUPY_LOCK(mupy_futures_lock)
    rv = future_set_state(object, name, closure);
    MUPY_UNLOCK()
    return rv;
}

MUPY_ALONE(future_move)
MUPY_ALONE(future_finish)
MUPY_ALONE(future_share)
MUPY_ALONE(future_recall)
MUPY_ALONE(future_wait)

static PyObject *input_count(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(mupy_count_inputs(as_future(object)->packed));
}

static PyGetSetDef getset[] = {
    {"_inputs", input_count, NULL,
     "The number of remote and per-worker values among the arguments of its closure.",
     NULL},
    {"_state", get_state, set_state_alone, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"_result", T_OBJECT, offsetof(struct mupy_future, result), 0, NULL},
    {"_exception", T_OBJECT, offsetof(struct mupy_future, exception), 0, NULL},
    {"_source", T_OBJECT, offsetof(struct mupy_future, source), READONLY, NULL},
    {"_owner", T_OBJECT, offsetof(struct mupy_future, owner), READONLY, NULL},
    {"_is_shared", T_BOOL, offsetof(struct mupy_future, is_shared), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

int mupy_future_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"_move", future_move_alone, METH_VARARGS, "Change the state."},
        {"_finish", future_finish_alone, METH_VARARGS, "Make it done."},
        {"_share", future_share_alone, METH_NOARGS,
         "Mark it as shared with other threads."},
        {"_recall", future_recall_alone, METH_NOARGS,
         "Cancel the closure that was sent for it."},
        {"_wait", future_wait_alone, METH_O, "Wait for it on this thread."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef functions[] = {
        {"new_future", new_future, METH_VARARGS, "A future that is running."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, future_new},
        {Py_tp_dealloc, future_dealloc},
        {Py_tp_traverse, future_traverse},
        {Py_tp_clear, future_clear},
        {Py_tp_setattro, set_attribute},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_doc, "The state of a muster.Future."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.FutureState", sizeof(struct mupy_future), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

    for (int i = 0; i < MUPY_FUTURE_STATES; i++) {
        states[i] = PyUnicode_InternFromString(state_names[i]);
        if (states[i] == NULL)
            return -1;
    }
    future_type = mupy_add_type(module, &spec);
    mupy_futures_lock = (PyObject *)future_type;
    return future_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
