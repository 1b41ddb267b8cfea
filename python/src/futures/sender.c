/* Sends the closures of an executor: at most a window of them at a time. The rest of the
 * executor's engine is in Python, and is called in rare cases only. */
#include "futures/future.h"

#include <stddef.h>
#include <structmember.h>

enum {
    OPTIONS_MAX = 16,
    WINDOW_MAX = 16384,
    WINDOW_MS = 20,    /* the window is what the cluster runs in this time */
    MEASURE_COUNT = 32 /* least number of closures to compute a rate */
};

struct sender {
    PyObject_HEAD
    PyObject *coordinator;
    PyObject *type;  /* class of its futures */
    PyObject *plain; /* a function that is scheduled without a wrapper; NULL */
    PyObject *names; /* tuple: names of the options of its closures; NULL */
    PyObject *options[OPTIONS_MAX];
    struct mupy_future *first; /* queue of futures to be sent; holds a reference to
                                  each */
    struct mupy_future *last;
    struct mupy_future *flying; /* the futures whose closures are on their way */
    Py_ssize_t in_flight;
    Py_ssize_t window;
    Py_ssize_t capacity;
    Py_ssize_t landed; /* ended since `measured_ms` */
    uint64_t measured_ms;
    char is_fixed; /* the window is the capacity */
    char is_held;  /* sending is paused */
    char is_shut;  /* new futures are refused */
    char is_pumping;
};

static PyTypeObject *sender_type;

static struct sender *as_sender(PyObject *self)
{
    return (struct sender *)self;
}

static bool is_sender_idle(const struct sender *self)
{
    return self->in_flight == 0 && self->first == NULL;
}

/* ---- calls of the Python part ---- */

static void call_rare(struct sender *self, const char *name, PyObject *first,
                      PyObject *second)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)self, name);
    PyObject *result =
        method == NULL ? NULL : PyObject_CallFunctionObjArgs(method, first, second, NULL);

    if (result == NULL)
        PyErr_WriteUnraisable((PyObject *)self);
    Py_XDECREF(result);
    Py_XDECREF(method);
}

static void report_not_sent(struct sender *self, struct mupy_future *future)
{
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;

    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    call_rare(self, "_not_sent", (PyObject *)future, exception);
    Py_XDECREF(type);
    Py_XDECREF(exception);
    Py_XDECREF(traceback);
}

/* ---- sending ---- */

/* The function and arguments to schedule for a call: (fn, args, kwargs), or None when
 * these are the call's own. A new reference. */
static PyObject *wrap_call(struct sender *self, PyObject *const *call)
{
    PyObject *instead = Py_None;
    PyObject *before;

    if (call[0] == self->plain) {
        Py_INCREF(instead);
        return instead;
    }
    instead =
        PyObject_CallMethod((PyObject *)self, "_wrap", "OOO", call[0], call[1], call[2]);
    if (instead == Py_None) {
        before = self->plain;
        Py_INCREF(call[0]);
        self->plain = call[0];
        Py_XDECREF(before);
    }
    return instead;
}

/* Make the closure of a future of a call: function and arguments are as they are now,
 * whenever it is sent. */
static int pack_future(struct sender *self, struct mupy_future *future,
                       PyObject *const *call)
{
    PyObject *actual[3] = {call[0], call[1], call[2]};
    PyObject *instead = wrap_call(self, call);
    int rv = -1;

    for (int i = 0; i < 3 && instead != NULL && instead != Py_None; i++)
        actual[i] = PyTuple_GetItem(instead, i);
    if (instead != NULL && actual[2] != NULL)
        rv = mupy_future_pack(future, self->coordinator, actual);
    Py_XDECREF(instead);
    return rv;
}

/* Send a running future, which is counted in flight already. */
static void send_future(struct sender *self, struct mupy_future *future)
{
    if (mupy_future_send(future, self->coordinator, self->options, self->names) != 0)
        report_not_sent(self, future);
}

/* Append to the queue; takes the reference. */
static void append_future(struct sender *self, struct mupy_future *future)
{
    future->next = NULL;
    if (self->first == NULL)
        self->first = future;
    else
        self->last->next = future;
    self->last = future;
}

static struct mupy_future *pop_first_future(struct sender *self)
{
    struct mupy_future *future = self->first;

    self->first = future->next;
    future->next = NULL;
    return future;
}

static void pump_queue(struct sender *self)
{
    if (self->is_pumping)
        return;
    self->is_pumping = 1;
    while (self->first != NULL && self->in_flight < self->window && !self->is_held) {
        struct mupy_future *future = pop_first_future(self);

        self->in_flight++;
        if (mupy_future_begin(future))
            send_future(self, future);
        else
            self->in_flight--;
        Py_DECREF(future);
    }
    self->is_pumping = 0;
    if (self->is_shut && is_sender_idle(self))
        call_rare(self, "_emptied", NULL, NULL);
}

/* Restart the measurement of the rate, after a pause. */
static void begin_anew(struct sender *self)
{
    self->window = self->is_fixed ? self->capacity : self->capacity + 2;
    self->landed = 0;
    self->measured_ms = mupy_now_ms();
}

static PyObject *submit_future(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    struct sender *self = as_sender(object);
    struct mupy_future *future;
    bool is_packed;

    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "submit() takes fn, args and kwargs");
    if (self->is_shut)
        return PyObject_CallMethod(object, "_refuse", NULL);
    future = mupy_future_new(self->type, object, NULL, MUPY_PENDING);
    if (future == NULL)
        return NULL;
    is_packed = pack_future(self, future, args) == 0;
    if (!is_packed && !PyErr_ExceptionMatches(PyExc_Exception)) { /* Ctrl-C */
        Py_DECREF(future);
        return NULL;
    }
    if (is_packed && self->is_shut) { /* by another thread, or by a pickled object */
        Py_DECREF(future);
        return PyObject_CallMethod(object, "_refuse", NULL);
    }
    if (self->in_flight == 0)
        begin_anew(self);
    if (is_packed &&
        (self->first != NULL || self->is_held || self->in_flight >= self->window)) {
        Py_INCREF(future);
        append_future(self, future);
        return (PyObject *)future;
    }
    (void)mupy_future_begin(future);
    self->in_flight++;
    if (is_packed)
        send_future(self, future);
    else
        report_not_sent(self, future);
    return (PyObject *)future;
}

static PyObject *sender_submit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    PyObject *future;

    MUPY_LOCK(mupy_futures_lock)
    future = submit_future(object, args, count);
    MUPY_UNLOCK()
    return future;
}

/* ---- results ---- */

/* Set the window to what the cluster runs in WINDOW_MS at the measured rate. */
static void measure_rate(struct sender *self)
{
    uint64_t now = mupy_now_ms();
    uint64_t passed_ms = now > self->measured_ms ? now - self->measured_ms : 1;
    Py_ssize_t window =
        self->capacity + 2 + (Py_ssize_t)((uint64_t)self->landed * WINDOW_MS / passed_ms);

    self->landed = 0;
    self->measured_ms = now;
    if (window < self->window / 2)
        window = self->window / 2;
    self->window = window < WINDOW_MAX ? window : WINDOW_MAX;
}

void mupy_sender_landed(PyObject *owner, Py_ssize_t count)
{
    struct sender *self = as_sender(owner);

    if (count == 0 || !PyObject_TypeCheck(owner, sender_type))
        return;
    self->in_flight -= count;
    self->landed += count;
    if (self->landed >= MEASURE_COUNT && !self->is_fixed)
        measure_rate(self);
    pump_queue(self);
}

void mupy_sender_took_off(struct mupy_future *future)
{
    struct sender *self = as_sender(future->owner);

    if (!PyObject_TypeCheck(future->owner, sender_type))
        return;
    future->flight[0] = NULL;
    future->flight[1] = self->flying;
    if (self->flying != NULL)
        self->flying->flight[0] = future;
    self->flying = future;
}

void mupy_sender_touched_down(struct mupy_future *future)
{
    struct sender *self = as_sender(future->owner);
    struct mupy_future *before = future->flight[0];
    struct mupy_future *after = future->flight[1];

    if (!PyObject_TypeCheck(future->owner, sender_type) ||
        (before == NULL && self->flying != future))
        return;
    if (before == NULL)
        self->flying = after;
    else
        before->flight[1] = after;
    if (after != NULL)
        after->flight[0] = before;
    future->flight[0] = NULL;
    future->flight[1] = NULL;
}

Py_ssize_t mupy_sender_in_flight(PyObject *owner)
{
    return PyObject_TypeCheck(owner, sender_type) ? as_sender(owner)->in_flight : 0;
}

/* ---- methods for the part in Python ---- */

static PyObject *sender_landed(PyObject *object, PyObject *count)
{
    Py_ssize_t number = PyLong_AsSsize_t(count);

    if (number == -1 && PyErr_Occurred())
        return NULL;
    mupy_sender_landed(object, number);
    Py_RETURN_NONE;
}

static PyObject *call_pump(PyObject *object, PyObject *unused)
{
    (void)unused;
    pump_queue(as_sender(object));
    Py_RETURN_NONE;
}

/* _again(future): put a future whose closure did not run at the front of the queue. */
static PyObject *sender_again(PyObject *object, PyObject *future)
{
    struct sender *self = as_sender(object);
    struct mupy_future *first = (struct mupy_future *)future;

    if (!PyObject_TypeCheck(future, (PyTypeObject *)self->type))
        return PyErr_Format(PyExc_TypeError, "%R is no future of this executor", future);
    Py_INCREF(future);
    first->next = self->first;
    if (self->first == NULL)
        self->last = first;
    self->first = first;
    self->in_flight--;
    Py_RETURN_NONE;
}

/* _take_all(): empty the queue; returns its futures. */
static PyObject *sender_take_all(PyObject *object, PyObject *unused)
{
    struct sender *self = as_sender(object);
    PyObject *all = PyList_New(0);

    (void)unused;
    while (all != NULL && self->first != NULL) {
        struct mupy_future *future = pop_first_future(self);

        if (PyList_Append(all, (PyObject *)future) != 0)
            Py_CLEAR(all);
        Py_DECREF(future);
    }
    return all;
}

/* _flying(): the futures whose closures are on their way, as a list. */
static PyObject *sender_flying(PyObject *object, PyObject *unused)
{
    PyObject *all = PyList_New(0);

    (void)unused;
    for (struct mupy_future *future = as_sender(object)->flying;
         all != NULL && future != NULL; future = future->flight[1])
        if (PyList_Append(all, (PyObject *)future) != 0)
            Py_CLEAR(all);
    return all;
}

static PyObject *get_is_idle(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(is_sender_idle(as_sender(object)));
}

MUPY_ALONE(sender_landed)
MUPY_ALONE(call_pump)
MUPY_ALONE(sender_again)
MUPY_ALONE(sender_take_all)
MUPY_ALONE(sender_flying)

/* ---- the object ---- */

static int set_options(struct sender *self, PyObject *options)
{
    Py_ssize_t at = 0;
    Py_ssize_t count = PyDict_Size(options);
    PyObject *key;
    PyObject *value;

    if (count == 0)
        return 0;
    if (count > OPTIONS_MAX) {
        PyErr_SetString(PyExc_TypeError, "there are not so many options");
        return -1;
    }
    self->names = PyTuple_New(count);
    for (Py_ssize_t i = 0; self->names != NULL && i < count; i++) {
        (void)PyDict_Next(options, &at, &key, &value);
        Py_INCREF(key);
        Py_INCREF(value);
        (void)PyTuple_SetItem(self->names, i, key);
        self->options[i] = value;
    }
    return self->names == NULL ? -1 : 0;
}

/* Sender(coordinator, class of futures, capacity, fixed, options) */
static PyObject *sender_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct sender *self;
    PyObject *coordinator;
    PyObject *future_type;
    PyObject *options;
    Py_ssize_t capacity;
    int is_fixed;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!O!npO!:Sender", mupy_coordinator_type, &coordinator,
                          &PyType_Type, &future_type, &capacity, &is_fixed, &PyDict_Type,
                          &options) ||
        mupy_notice_start() != 0)
        return NULL;
    self = (struct sender *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    Py_INCREF(coordinator);
    self->coordinator = coordinator;
    Py_INCREF(future_type);
    self->type = future_type;
    self->capacity = capacity;
    self->is_fixed = (char)is_fixed;
    begin_anew(self);
    if (set_options(self, options) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static int sender_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct sender *self = as_sender(object);

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->coordinator);
    Py_VISIT(self->type);
    Py_VISIT(self->plain);
    for (int i = 0; i < OPTIONS_MAX; i++)
        Py_VISIT(self->options[i]);
    for (struct mupy_future *future = self->first; future != NULL; future = future->next)
        Py_VISIT((PyObject *)future);
    return 0;
}

static int sender_clear(PyObject *object)
{
    struct sender *self = as_sender(object);

    Py_CLEAR(self->plain);
    Py_CLEAR(self->names);
    for (int i = 0; i < OPTIONS_MAX; i++)
        Py_CLEAR(self->options[i]);
    while (self->first != NULL) {
        struct mupy_future *future = pop_first_future(self);

        Py_DECREF(future);
    }
    return 0;
}

static void sender_dealloc(PyObject *object)
{
    struct sender *self = as_sender(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    (void)sender_clear(object);
    Py_XDECREF(self->coordinator);
    Py_XDECREF(self->type);
    release(self);
    Py_DECREF(type);
}

int mupy_sender_init(PyObject *module)
{
    static PyMemberDef members[] = {
        {"coordinator", T_OBJECT, offsetof(struct sender, coordinator), READONLY, NULL},
        {"in_flight", T_PYSSIZET, offsetof(struct sender, in_flight), READONLY, NULL},
        {"capacity", T_PYSSIZET, offsetof(struct sender, capacity), READONLY, NULL},
        {"is_held", T_BOOL, offsetof(struct sender, is_held), 0, NULL},
        {"is_shut", T_BOOL, offsetof(struct sender, is_shut), 0, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"is_idle", get_is_idle, NULL, "Whether nothing is in flight or queued.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        {"submit", MUPY_METHOD(sender_submit), METH_FASTCALL,
         "Make a future for a call."},
        {"_landed", sender_landed_alone, METH_O, "A number of closures have ended."},
        {"_pump", call_pump_alone, METH_NOARGS,
         "Send futures while the window has room."},
        {"_again", sender_again_alone, METH_O, "Put a future back to be sent again."},
        {"_take_all", sender_take_all_alone, METH_NOARGS,
         "Empty the queue; return its futures."},
        {"_flying", sender_flying_alone, METH_NOARGS,
         "The futures whose closures are on their way."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, sender_new},
        {Py_tp_dealloc, sender_dealloc},
        {Py_tp_traverse, sender_traverse},
        {Py_tp_clear, sender_clear},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_doc, "Sends the closures of an executor."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.Sender", sizeof(struct sender), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

    sender_type = mupy_add_type(module, &spec);
    return sender_type == NULL ? -1 : 0;
}
