/* Clocks of members that may be so many steps apart; muster/clock.py has the class. */
#include "services/services.h"

#include "muster/clock.h"

struct clock {
    PyObject_HEAD
    struct mupy_handle handle; /* of a mu_clock */
};

static struct clock *as_clock(PyObject *object)
{
    return (struct clock *)object;
}

static void close_clock_handle(void *clock)
{
    mu_clock_close(clock);
}

/* A call on the open clock; NULL with an exception. */
static struct mupy_call *new_clock_call(PyObject *object, PyObject *timeout,
                                        void (*run)(struct mupy_call *call))
{
    struct mupy_call *call;
    int64_t timeout_ms;
    mu_clock *clock;

    if (mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    clock = mupy_handle_begin(&as_clock(object)->handle);
    if (clock == NULL) {
        (void)mupy_fail(-MU_ECLOSED, "the clock was closed");
        return NULL;
    }
    call = mupy_call_new(run);
    if (call == NULL) {
        mupy_handle_end(&as_clock(object)->handle);
        return NULL;
    }
    call->object = clock;
    call->used = &as_clock(object)->handle;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return call;
}

/* ---- opening ---- */

static void run_clock_open(struct mupy_call *call)
{
    mu_clock *clock = NULL;

    call->rv = mu_clock_open(call->object, call->data, call->number, call->timeout_ms,
                             &call->error, &clock);
    call->made = clock;
}

static void drop_opened_clock(struct mupy_call *call)
{
    mu_clock_close(call->made);
}

/* -1 with an exception. */
static int read_staleness(PyObject *object, uint64_t *ret_staleness)
{
    if (object == Py_None) {
        *ret_staleness = MU_CLOCK_UNLIMITED;
        return 0;
    }
    *ret_staleness = PyLong_AsUnsignedLongLong(object);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

static int clock_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "name", "staleness", "timeout", NULL};
    PyObject *timeout = NULL;
    PyObject *staleness;
    PyObject *node;
    const char *name;
    struct mupy_call *call;
    uint64_t steps;
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsO|O:Clock", names, &node, &name,
                                     &staleness, &timeout) ||
        read_staleness(staleness, &steps) != 0)
        return -1;
    if (mupy_handle_is_open(&as_clock(object)->handle)) {
        (void)mupy_fail(-MU_EEXISTS, "the clock is open already");
        return -1;
    }
    call = mupy_node_call(node, timeout, run_clock_open);
    if (call == NULL)
        return -1;
    call->drop = drop_opened_clock;
    call->data = name;
    call->number = steps;
    mupy_call_keep(call, args);
    if (kwargs != NULL)
        mupy_call_keep(call, kwargs);
    if (mupy_call_run(call) != 0)
        return -1;
    rv = call->rv;
    if (rv == 0)
        mupy_handle_open(&as_clock(object)->handle, call->made, close_clock_handle);
    else
        (void)mupy_raise(&call->error, NULL);
    mupy_call_free(call);
    return rv == 0 ? 0 : -1;
}

static PyObject *clock_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (mupy_handle_shut(&as_clock(object)->handle))
        mupy_handle_end(&as_clock(object)->handle);
    Py_RETURN_NONE;
}

static void clock_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(clock_close(object, NULL));
    release(object);
    Py_DECREF(type);
}

/* ---- ticking ---- */

static void run_tick(struct mupy_call *call)
{
    call->rv = mu_clock_tick(call->object, call->timeout_ms, &call->error, &call->number);
}

static void run_minimum(struct mupy_call *call)
{
    call->rv =
        mu_clock_minimum(call->object, call->timeout_ms, &call->error, &call->number);
}

static PyObject *run_for_number(PyObject *object, PyObject *args, PyObject *kwargs,
                                void (*run)(struct mupy_call *call))
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    PyObject *number = NULL;
    struct mupy_call *call;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:tick", names, &timeout))
        return NULL;
    call = new_clock_call(object, timeout, run);
    if (call == NULL || mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        number = PyLong_FromUnsignedLongLong(call->number);
    mupy_call_free(call);
    return number;
}

static PyObject *clock_tick(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return run_for_number(object, args, kwargs, run_tick);
}

static PyObject *clock_minimum(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return run_for_number(object, args, kwargs, run_minimum);
}

int mupy_clock_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"tick", MUPY_METHOD(clock_tick), METH_VARARGS | METH_KEYWORDS,
         "tick(timeout=None)\n--\n\nThe next step is done: wait until the slowest member "
         "is at most\n`staleness` steps behind, and return the number of steps."},
        {"minimum", MUPY_METHOD(clock_minimum), METH_VARARGS | METH_KEYWORDS,
         "minimum(timeout=None)\n--\n\nThe steps that the slowest member has done."},
        {"close", clock_close, METH_NOARGS,
         "close()\n--\n\nLeave it: nobody waits for this member any more."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, clock_init},
        {Py_tp_dealloc, clock_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "BaseClock(node, name, staleness, timeout=None)\n--\n\n"
                    "A member of a clock on the parameter servers."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.BaseClock", sizeof(struct clock), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return mupy_add_type(module, &spec) == NULL ? -1 : 0;
}
