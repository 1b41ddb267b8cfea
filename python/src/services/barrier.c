/* Barriers of the coordination service. */
#include "services/services.h"

#include <stdlib.h>

struct barrier_request {
    struct mupy_request request;
    const char *name;
    mu_barrier_options options;
};

static void run_barrier_wait(struct mupy_call *call)
{
    struct barrier_request *request = call->other;

    call->rv =
        mu_barrier_wait(call->object, request->name, &request->options, &call->error);
}

static int read_barrier_options(unsigned threads, mu_barrier_options *options)
{
    if (threads == 0) {
        (void)mupy_fail(-MU_EINVALID, "threads is 0: expected at least 1");
        return -1;
    }
    options->threads = threads;
    return 0;
}

/* barrier_wait(node, name, tasks, threads, timeout) */
static PyObject *barrier_wait(PyObject *module, PyObject *args)
{
    struct barrier_request *request;
    struct mupy_call *call;
    PyObject *timeout;
    const char *tasks;
    const char *name;
    unsigned threads;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OszIO:barrier_wait", &node, &name, &tasks, &threads,
                          &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_barrier_wait);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, NULL);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    mu_barrier_options_init(&request->options);
    request->name = name;
    request->options.tasks = tasks;
    request->options.timeout_ms = call->timeout_ms;
    if (read_barrier_options(threads, &request->options) != 0) {
        mupy_request_end(call);
        return NULL;
    }
    if (mupy_request_run(call) != 0)
        return NULL;
    mupy_request_end(call);
    Py_RETURN_NONE;
}

/* ---- without waiting ---- */

struct passed {
    PyObject_HEAD
    int code;
    mu_error error;
};

static PyTypeObject *passed_type;

struct pending {
    struct mupy_notice *notice; /* its argument is `passed` */
    struct passed *passed;
};

/* On the loop's thread. */
static void on_barrier_done(void *user, int code, const mu_error *error)
{
    struct pending *pending = user;

    pending->passed->code = code;
    if (code != 0 && error != NULL)
        pending->passed->error = *error;
    pending->passed->error.code = code;
    mupy_notice_post(pending->notice);
    free(pending);
}

static struct pending *pending_barrier_new(PyObject *callback)
{
    struct pending *pending = calloc(1, sizeof *pending);
    struct passed *passed;

    if (pending == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    passed = PyObject_New(struct passed, passed_type);
    if (passed != NULL)
        pending->notice = mupy_notice_new(callback, (PyObject *)passed);
    Py_XDECREF(passed);
    pending->passed = passed;
    if (pending->notice != NULL)
        return pending;
    free(pending);
    return NULL;
}

/* barrier_begin(node, name, tasks, threads, timeout, callback) */
static PyObject *barrier_begin(PyObject *module, PyObject *args)
{
    mu_barrier_options options;
    struct pending *pending;
    PyObject *callback;
    PyObject *timeout;
    const char *tasks;
    const char *name;
    unsigned threads;
    mu_node *opened;
    PyObject *node;
    int rv;

    (void)module;
    mu_barrier_options_init(&options);
    if (!PyArg_ParseTuple(args, "OszIOO:barrier_begin", &node, &name, &tasks, &threads,
                          &timeout, &callback) ||
        (opened = mupy_node_of(node)) == NULL ||
        mupy_timeout(timeout, &options.timeout_ms) != 0 ||
        read_barrier_options(threads, &options) != 0 || mupy_notice_start() != 0)
        return NULL;
    options.tasks = tasks;
    pending = pending_barrier_new(callback);
    if (pending == NULL)
        return NULL;
    rv = mu_barrier_wait_async(opened, name, &options, on_barrier_done, pending);
    if (rv == 0)
        Py_RETURN_NONE;
    mupy_notice_free(pending->notice);
    free(pending);
    return mupy_fail(rv, "the barrier \"%.100s\" was not begun: %s", name,
                     mu_strerror(rv));
}

static PyObject *passed_get(PyObject *object, PyObject *unused)
{
    const struct passed *passed = (struct passed *)object;

    (void)unused;
    if (passed->code != 0)
        return mupy_raise(&passed->error, NULL);
    Py_RETURN_NONE;
}

static void passed_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_Free(object);
    Py_DECREF(type);
}

static void run_cancel(struct mupy_call *call)
{
    call->rv =
        mu_barrier_cancel(call->object, call->data, call->timeout_ms, &call->error);
}

/* barrier_cancel(node, name, timeout) */
static PyObject *barrier_cancel(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    PyObject *timeout;
    const char *name;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsO:barrier_cancel", &node, &name, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_cancel);
    if (call == NULL)
        return NULL;
    call->data = name;
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

int mupy_barrier_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"barrier_wait", barrier_wait, METH_VARARGS,
         "barrier_wait(node, name, tasks, threads, timeout)\n--\n\nWait for all."},
        {"barrier_begin", barrier_begin, METH_VARARGS,
         "barrier_begin(node, name, tasks, threads, timeout, callback)\n--\n\n"
         "The same without waiting; callback(passed) is called once."},
        {"barrier_cancel", barrier_cancel, METH_VARARGS,
         "barrier_cancel(node, name, timeout)\n--\n\nCancel it for all."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"get", passed_get, METH_NOARGS, "get()\n--\n\nNone, or raises its error."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, passed_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "The result of a barrier."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.BarrierPassed", sizeof(struct passed), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    passed_type = mupy_add_type(module, &spec);
    return passed_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
