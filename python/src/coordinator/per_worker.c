/* Per-worker values: one value for each worker. */
#include "extension.h"

PyTypeObject *mupy_per_worker_type;

static struct mupy_per_worker *as_per_worker(PyObject *self)
{
    return (struct mupy_per_worker *)self;
}

static void run_per_worker_open(struct mupy_call *call)
{
    mu_per_worker *made = NULL;

    if (call->text[0] == '\0')
        call->rv = mu_per_worker_open_values(call->object, call->data, call->timeout_ms,
                                             &call->error, &made);
    else
        call->rv = mu_per_worker_open(call->object, call->text, call->data,
                                      call->timeout_ms, &call->error, &made);
    call->made = made;
    mu_value_free((mu_value *)(uintptr_t)call->data);
}

static void drop_made(struct mupy_call *call)
{
    mu_per_worker_close(call->made);
}

/* Takes ownership of `args`. */
static PyObject *open_with(PyTypeObject *type, PyObject *coordinator,
                           const char *function, mu_value *args, PyObject *source,
                           int64_t timeout_ms)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct mupy_call *call = mupy_coordinator_call(coordinator, run_per_worker_open);
    struct mupy_per_worker *self = NULL;

    if (call == NULL) {
        mu_value_free(args);
        return NULL;
    }
    call->drop = drop_made;
    call->data = args;
    call->timeout_ms = timeout_ms;
    for (size_t i = 0; function != NULL && function[i] != '\0' && i < 80; i++)
        call->text[i] = function[i];
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        self = (struct mupy_per_worker *)alloc(type, 0);
    if (self == NULL) {
        mu_per_worker_close(call->made);
    } else {
        self->per_worker = call->made;
        self->coordinator = coordinator;
        self->source = source;
        Py_INCREF(coordinator);
        Py_XINCREF(source);
    }
    mupy_call_free(call);
    return (PyObject *)self;
}

/* open(coordinator, function, args, source, timeout): made by a registered function, in C
 * or Python. */
static PyObject *open_named(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"coordinator", "function", "args", "source", "timeout", NULL};
    PyObject *coordinator;
    PyObject *arguments = Py_None;
    PyObject *source = NULL;
    PyObject *timeout = NULL;
    const char *function;
    int64_t timeout_ms;
    mu_value *value;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|OOO:open", names, &coordinator,
                                     &function, &arguments, &source, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    if (function[0] == '\0')
        return mupy_fail(-MU_EINVALID, "no function was named");
    value = mupy_to_value(arguments, MUPY_PLAIN);
    if (value == NULL)
        return NULL;
    return open_with((PyTypeObject *)type, coordinator, function, value, source,
                     timeout_ms);
}

/* from_values(coordinator, values): item i is for worker i. */
static PyObject *from_values(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"coordinator", "values", "timeout", NULL};
    PyObject *coordinator;
    PyObject *values;
    PyObject *timeout = NULL;
    int64_t timeout_ms;
    mu_value *value;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:from_values", names,
                                     &coordinator, &values, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    value = mupy_to_value(values, MUPY_PLAIN);
    if (value == NULL)
        return NULL;
    return open_with((PyTypeObject *)type, coordinator, NULL, value, NULL, timeout_ms);
}

static PyObject *per_worker_close(PyObject *object, PyObject *unused)
{
    struct mupy_per_worker *self = as_per_worker(object);
    mu_per_worker *per_worker;

    (void)unused;
    MUPY_LOCK(object)
    per_worker = self->per_worker;
    self->per_worker = NULL;
    MUPY_UNLOCK()
    mu_per_worker_close(per_worker);
    Py_RETURN_NONE;
}

static int per_worker_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(as_per_worker(object)->coordinator);
    Py_VISIT(as_per_worker(object)->source);
    return 0;
}

static int per_worker_clear(PyObject *object)
{
    Py_CLEAR(as_per_worker(object)->source);
    return 0;
}

static void per_worker_dealloc(PyObject *object)
{
    struct mupy_per_worker *self = as_per_worker(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    mu_per_worker_close(self->per_worker);
    Py_CLEAR(self->source);
    Py_CLEAR(self->coordinator);
    release(object);
    Py_DECREF(type);
}

static PyObject *per_worker_iterate(PyObject *object)
{
    static PyObject *iterator_of;

    if (mupy_import(&iterator_of, "muster._functions", "per_worker_iterator") == NULL)
        return NULL;
    return PyObject_CallFunctionObjArgs(
        iterator_of, object, as_per_worker(object)->coordinator,
        as_per_worker(object)->source == NULL ? Py_None : as_per_worker(object)->source,
        NULL);
}

/* __next__, which Python requires of an iterator: not usable outside of a closure. */
static PyObject *next_here(PyObject *object)
{
    (void)object;
    return PyErr_Format(PyExc_TypeError,
                        "an iterator over per-worker values is for "
                        "closures: pass it among the arguments of schedule(), where "
                        "next() takes an element");
}

static PyObject *per_worker_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return mupy_reduce(self);
}

int mupy_per_worker_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"open", MUPY_METHOD(open_named), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
         "open(coordinator, function, args=None, source=None, timeout=None)\n--\n\n"
         "A value that a registered function makes on each worker."},
        {"from_values", MUPY_METHOD(from_values),
         METH_VARARGS | METH_KEYWORDS | METH_CLASS,
         "from_values(coordinator, values, timeout=None)\n--\n\n"
         "Item i of the list is for the worker of index i."},
        {"close", per_worker_close, METH_NOARGS,
         "close()\n--\n\nClose it, once no closure that uses it is outstanding."},
        {"__reduce__", per_worker_reduce, METH_NOARGS, "Only for arguments of closures."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, per_worker_dealloc},
        {Py_tp_traverse, per_worker_traverse},
        {Py_tp_clear, per_worker_clear},
        {Py_tp_methods, methods},
        {Py_tp_iter, per_worker_iterate},
        {Py_tp_iternext, next_here},
        {Py_tp_doc, "One value for each worker: a closure that has it among its "
                    "arguments gets the value\nof the worker that it runs on."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.PerWorkerValues",
                               sizeof(struct mupy_per_worker), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    mupy_per_worker_type = mupy_add_type(module, &spec);
    return mupy_per_worker_type == NULL ? -1 : 0;
}
