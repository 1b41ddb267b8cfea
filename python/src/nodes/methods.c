/* Methods of a node: calls that wait, and calls that do not. */
#include "nodes/node.h"

#include "services/services.h"

#include <string.h>

/* ---- calls that wait ---- */

static struct mupy_call *make_node_call(PyObject *self, PyObject *timeout,
                                        void (*run)(struct mupy_call *call))
{
    mu_node *node = mupy_node_of(self);
    struct mupy_call *call;
    int64_t timeout_ms;

    if (node == NULL || mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    call->object = node;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, self);
    return call;
}

static struct mupy_call *timed_call(PyObject *self, PyObject *args, PyObject *kwargs,
                                    void (*run)(struct mupy_call *call))
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout))
        return NULL;
    return make_node_call(self, timeout, run);
}

static void run_status(struct mupy_call *call)
{
    mu_value *status = NULL;

    call->rv = mu_node_status(call->object, call->timeout_ms, &call->error, &status);
    call->made = status;
}

static PyObject *node_status(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct mupy_call *call = timed_call(self, args, kwargs, run_status);

    if (call == NULL)
        return NULL;
    return mupy_call_value(call);
}

static void run_node_explain(struct mupy_call *call)
{
    mu_value *reasons = NULL;

    call->rv = mu_node_explain(call->object, call->number,
                               call->text[0] == '\0' ? NULL : call->text,
                               call->timeout_ms, &call->error, &reasons);
    call->made = reasons;
}

static PyObject *node_explain(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"closure", "timeout", NULL};
    PyObject *timeout = NULL;
    PyObject *closure;
    struct mupy_call *call;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:explain", names, &closure,
                                     &timeout))
        return NULL;
    call = make_node_call(self, timeout, run_node_explain);
    if (call == NULL)
        return NULL;
    if (PyUnicode_Check(closure)) {
        const char *text = PyUnicode_AsUTF8AndSize(closure, NULL);

        if (text != NULL)
            (void)strncpy(call->text, text, sizeof call->text - 1);
    } else {
        call->number = PyLong_AsUnsignedLongLong(closure);
    }
    if (!PyErr_Occurred())
        return mupy_call_value(call);
    mupy_call_free(call);
    return NULL;
}

static void run_wait_job(struct mupy_call *call)
{
    call->rv = mu_node_wait_job(call->object, call->timeout_ms, &call->error);
    if (call->rv == 0 && call->error.code != 0)
        call->rv = call->error.code;
}

static PyObject *node_wait_job(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct mupy_call *call = timed_call(self, args, kwargs, run_wait_job);

    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_node_drain(struct mupy_call *call)
{
    call->rv = mu_node_drain(call->object, call->timeout_ms, &call->error);
}

static PyObject *node_drain(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct mupy_call *call = timed_call(self, args, kwargs, run_node_drain);

    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_main_call(struct mupy_call *call)
{
    call->rv = mu_node_main(call->object, &call->error);
}

static PyObject *node_main(PyObject *self, PyObject *unused)
{
    struct mupy_call *call = make_node_call(self, NULL, run_main_call);

    (void)unused;
    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_finish_job(struct mupy_call *call)
{
    call->rv = mu_node_finish_job(call->object, (int)call->real, call->text,
                                  call->timeout_ms, &call->error);
}

static PyObject *finish_job(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "message", "timeout", NULL};
    const char *message = "";
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int code = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|isO:finish_job", names, &code,
                                     &message, &timeout))
        return NULL;
    call = make_node_call(self, timeout, run_finish_job);
    if (call == NULL)
        return NULL;
    call->real = code > 0 ? -code : code;
    (void)strncpy(call->text, message, sizeof call->text - 1);
    return mupy_call_finish(call);
}

static void run_plugin_load(struct mupy_call *call)
{
    call->rv = mu_node_load_plugin(call->object, call->data, &call->error);
}

static PyObject *node_load_plugin(PyObject *self, PyObject *path)
{
    const char *text = PyUnicode_Check(path) ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
    struct mupy_call *call;

    if (text == NULL)
        return PyErr_Format(PyExc_TypeError, "the path of a plugin is a str, got %R",
                            path);
    call = make_node_call(self, NULL, run_plugin_load);
    if (call == NULL)
        return NULL;
    call->data = text;
    mupy_call_keep(call, path);
    return mupy_call_finish(call);
}

/* ---- calls that do not ---- */

static PyObject *node_report(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "number", "step", NULL};
    mu_node *node = mupy_node_of(self);
    unsigned long long step = 0;
    const char *name;
    double number;
    int rv;

    if (node == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "sd|K:report", names,
                                                     &name, &number, &step))
        return NULL;
    rv = mu_node_report_metric(node, name, number, step);
    if (rv != 0)
        return mupy_fail(rv, "\"%.60s\" cannot be reported: %s", name, mu_strerror(rv));
    Py_RETURN_NONE;
}

static PyObject *node_metric(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *name;
    double number;
    uint64_t step;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "s:metric", &name))
        return NULL;
    rv = mu_node_get_metric(node, name, &number, &step);
    if (rv != 0)
        return mupy_fail(rv, "no number was reported as \"%.60s\"", name);
    return Py_BuildValue("dK", number, (unsigned long long)step);
}

static PyObject *task_count(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *type;

    if (node == NULL || !PyArg_ParseTuple(args, "s:task_count", &type))
        return NULL;
    return PyLong_FromSize_t(mu_node_task_count(node, type));
}

static PyObject *node_set(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *key;
    const char *value;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "ss:set", &key, &value))
        return NULL;
    rv = mu_node_set_setting(node, key, value);
    if (rv != 0)
        return mupy_fail(rv, "the setting \"%.60s\" was not set: %s", key,
                         mu_strerror(rv));
    Py_RETURN_NONE;
}

static PyObject *node_setting(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *key;
    const char *value;

    if (node == NULL || !PyArg_ParseTuple(args, "s:setting", &key))
        return NULL;
    value = mu_node_get_setting(node, key);
    if (value == NULL)
        Py_RETURN_NONE;
    return PyUnicode_FromString(value);
}

static PyObject *node_serve(PyObject *self, PyObject *unused)
{
    mu_node *node = mupy_node_of(self);
    int rv;

    (void)unused;
    if (node == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_node_serve(node);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_fail(rv, "the node cannot serve: %s", mu_strerror(rv));
    Py_RETURN_NONE;
}

static PyObject *register_function(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    PyObject *function;
    const char *name;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "sO:register", &name, &function))
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "a function is callable, got %R", function);
    if (PyList_Append(((struct mupy_node *)self)->functions, function) != 0)
        return NULL;
    Py_INCREF(function); /* never released: the library refers to it */
    rv = mupy_run_register_function(node, name, function);
    if (rv == 0)
        Py_RETURN_NONE;
    Py_DECREF(function);
    return mupy_fail(rv, "the function \"%.60s\" cannot be registered: %s", name,
                     rv == -MU_EEXISTS ? "there is one of that name" : mu_strerror(rv));
}

PyMethodDef mupy_node_methods[] = {
    {"close", MUPY_METHOD(mupy_node_close), METH_VARARGS | METH_KEYWORDS,
     "close(timeout=5.0)\n--\n\n"
     "Stop the node; waits at most timeout seconds for running functions. Calls of\n"
     "other threads raise ClosedError. DeadlineExceededError names a function that did\n"
     "not end."},
    {"__enter__", mupy_node_enter, METH_NOARGS, "The node itself."},
    {"__exit__", mupy_node_leave, METH_VARARGS, "Closes the node."},
    {"status", MUPY_METHOD(node_status), METH_VARARGS | METH_KEYWORDS,
     "status(timeout=None)\n--\n\n"
     "The chief's view of the cluster: a dict with tasks, closures, variables, metrics."},
    {"explain", MUPY_METHOD(node_explain), METH_VARARGS | METH_KEYWORDS,
     "explain(closure, timeout=None)\n--\n\n"
     "Why a closure has not run; closure is its id or its name."},
    {"wait_job", MUPY_METHOD(node_wait_job), METH_VARARGS | METH_KEYWORDS,
     "wait_job(timeout=None)\n--\n\n"
     "Serve until the chief has ended the job. Raises the job's own error."},
    {"finish_job", MUPY_METHOD(finish_job), METH_VARARGS | METH_KEYWORDS,
     "finish_job(code=0, message=\"\", timeout=None)\n--\n\n"
     "Chief: end the job, and notify all tasks."},
    {"drain", MUPY_METHOD(node_drain), METH_VARARGS | METH_KEYWORDS,
     "drain(timeout=None)\n--\n\nWorker: finish its closures, and get no more."},
    {"main", node_main, METH_NOARGS,
     "main()\n--\n\nRun the task's program, or else serve until the job is done."},
    {"serve", node_serve, METH_NOARGS,
     "serve()\n--\n\nWorker: all functions are registered; get closures from now on."},
    {"register_function", register_function, METH_VARARGS,
     "register_function(name, function)\n--\n\n"
     "Register a function under a name of at most 63 bytes, for Python and C. It gets\n"
     "the closure's arguments as plain values. Before the node serves."},
    {"register_program", mupy_node_program, METH_VARARGS,
     "register_program(task_type, function)\n--\n\n"
     "Set what main() runs on tasks of a type: function(node)."},
    {"load_plugin", node_load_plugin, METH_O,
     "load_plugin(path)\n--\n\nLoad a plugin, a shared object with functions in C."},
    {"report_metric", MUPY_METHOD(node_report), METH_VARARGS | METH_KEYWORDS,
     "report_metric(name, number, step=0)\n--\n\nSend a number to the chief's status."},
    {"get_metric", node_metric, METH_VARARGS,
     "get_metric(name)\n--\n\nChief: the last (number, step) reported under a name."},
    {"task_count", task_count, METH_VARARGS,
     "task_count(type)\n--\n\nNumber of tasks of a type."},
    {"set_setting", node_set, METH_VARARGS,
     "set_setting(key, value)\n--\n\nChange a setting for plugins."},
    {"get_setting", node_setting, METH_VARARGS,
     "get_setting(key)\n--\n\nA setting, None when it is absent."},
    {NULL, NULL, 0, NULL},
};
