/* Runs Python functions on a worker: the C functions registered with the library. */
#include "hosting/hosting.h"
#include "process/process.h"
#include "variables/variable.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- the current run ---- */

struct mupy_run {
    PyObject_HEAD
    mu_run *run; /* NULL once it has ended */
};

static PyTypeObject *run_type;
static _Thread_local mu_run *current;
static _Thread_local struct mupy_run *current_object;
static _Thread_local bool has_written; /* to variables; only a failure discards these
                                          writes */

struct mupy_outer mupy_run_begin(mu_run *run)
{
    struct mupy_outer outer = {current, current_object, has_written};

    current = run;
    current_object = NULL;
    has_written = false;
    return outer;
}

void mupy_run_end(struct mupy_outer outer)
{
    if (current_object != NULL) {
        current_object->run = NULL;
        Py_DECREF(current_object);
    }
    current = outer.run;
    current_object = outer.object;
    has_written = outer.has_written;
}

/* find_run(): None without one. */
static PyObject *find_run(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (current == NULL && mupy_actor_runs())
        return mupy_actor_run();
    if (current == NULL && mupy_process_runs())
        return mupy_process_run();
    if (current == NULL)
        Py_RETURN_NONE;
    if (current_object == NULL) {
        current_object = PyObject_New(struct mupy_run, run_type);
        if (current_object == NULL)
            return NULL;
        current_object->run = current;
    }
    Py_INCREF(current_object);
    return (PyObject *)current_object;
}

static PyObject *current_run(PyObject *module, PyObject *unused)
{
    PyObject *run = find_run(module, unused);

    if (run != Py_None)
        return run;
    Py_DECREF(run);
    return mupy_fail(-MU_EPRECONDITION,
                     "there is no run: current_run() is for "
                     "functions that a worker runs, on the thread that runs them");
}

/* ---- failing ---- */

static int fail_with_exception(mu_run *run)
{
    mu_error error;
    mu_value *data;
    int rv;

    mupy_run_exception(&error, &data);
    rv = mupy_run_fail(run, &error, data);
    mu_value_free(data);
    return rv;
}

/* Return the result of a run, or fail it with the exception. Takes ownership of
 * `result`. */
static int finish_python_run(mu_run *run, PyObject *result, bool plain)
{
    mu_value *value = NULL;

    if (result != NULL)
        value = plain ? mupy_to_value(result, MUPY_PLAIN) : mupy_encode_result(result);
    Py_XDECREF(result);
    if (value == NULL)
        return fail_with_exception(run);
    mu_run_return(run, value);
    return 0;
}

static int finish_object(mu_run *run, PyObject *object)
{
    void *held = object == NULL ? NULL : mupy_hold(object, NULL);

    Py_XDECREF(object);
    if (held == NULL)
        return fail_with_exception(run);
    mu_run_return_object(run, held, mupy_let_go);
    return 0;
}

/* ---- the registered functions ---- */

/* Insert the shard of a dataset before the other arguments. */
static PyObject *with_shard(const mu_value *shard_args, PyObject *args)
{
    static PyObject *make;
    PyObject *shard = NULL;
    PyObject *first = NULL;
    PyObject *whole = NULL;
    int64_t numbers[3] = {0, 0, 0};

    (void)mu_value_get_int(mu_value_find(shard_args, "shard"), &numbers[0]);
    (void)mu_value_get_int(mu_value_find(shard_args, "shards"), &numbers[1]);
    (void)mu_value_get_int(mu_value_find(shard_args, "epoch"), &numbers[2]);
    if (mupy_import(&make, "muster._worker", "Shard") != NULL)
        shard = PyObject_CallFunction(make, "LLL", (long long)numbers[0],
                                      (long long)numbers[1], (long long)numbers[2]);
    if (shard != NULL)
        first = PyTuple_Pack(1, shard);
    if (first != NULL)
        whole = PySequence_Concat(first, args);
    Py_XDECREF(shard);
    Py_XDECREF(first);
    Py_DECREF(args);
    return whole;
}

PyObject *mupy_run_call(mu_run *run, PyObject *function, const mu_value *list,
                        const mu_value *shard_args)
{
    PyObject *args;
    PyObject *kwargs;
    PyObject *result = NULL;

    if (mupy_decode_call(list, 1, run, &args, &kwargs) != 0)
        return NULL;
    if (shard_args != NULL)
        args = with_shard(shard_args, args);
    if (args != NULL)
        result = PyObject_Call(function, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

mu_value *mupy_run_failed(void)
{
    static PyObject *make;
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    PyObject *failed = NULL;
    mu_value *value = NULL;

    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    if (traceback != NULL && exception != NULL)
        (void)PyException_SetTraceback(exception, traceback);
    if (exception != NULL && mupy_import(&make, "muster._worker", "failed") != NULL)
        failed = PyObject_CallFunctionObjArgs(make, exception, NULL);
    if (failed != NULL)
        value = mupy_encode_result(failed);
    Py_XDECREF(failed);
    if (value == NULL) {
        PyErr_Clear();
        PyErr_Restore(type, exception, traceback);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(exception);
    Py_XDECREF(traceback);
    return value;
}

static int finish_try(mu_run *run, PyObject *result)
{
    mu_value *value = result == NULL ? NULL : mupy_encode_result(result);

    Py_XDECREF(result);
    if (value == NULL && !has_written)
        value = mupy_run_failed();
    if (value == NULL)
        return fail_with_exception(run);
    mu_run_return(run, value);
    return 0;
}

const mu_value *mupy_run_split(const mu_value *args, const mu_value **ret_shard_args)
{
    *ret_shard_args = NULL;
    if (args == NULL || mu_value_type(args) != MU_VALUE_MAP)
        return args;
    *ret_shard_args = args;
    return mu_value_find(args, "args");
}

/* "python.call": [function, form, ...], or a map of a shard with this as "args".
 * "python.try" (with `user` not NULL) returns exceptions as results. */
static int run_python_call(mu_run *run, void *user)
{
    const mu_value *shard_args;
    const mu_value *list = mupy_run_split(mu_run_args(run), &shard_args);
    struct mupy_outer outer;
    PyObject *function;
    PyObject *result = NULL;
    int rv;

    mupy_enter();
    mupy_drop_now();
    outer = mupy_run_begin(run);
    function = mupy_held_object(run, mu_value_at(list, 0));
    if (function != NULL)
        result = mupy_run_call(run, function, list, shard_args);
    else
        (void)mupy_fail(-MU_EINVALID, "the first argument of python.call is a function "
                                      "that python.load has made");
    rv = user != NULL ? finish_try(run, result) : finish_python_run(run, result, false);
    mupy_run_end(outer);
    mupy_leave();
    return rv;
}

static PyObject *get_pickle_bytes(const mu_value *value)
{
    const void *data = NULL;
    size_t size = 0;

    if (value == NULL || mu_value_get_bytes(value, &data, &size) != 0)
        return mupy_fail(-MU_EINVALID, "a pickled function was expected");
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

static PyObject *load_function(mu_run *run)
{
    static PyObject *load;
    const mu_value *args = mu_run_args(run);
    PyObject *pickle = get_pickle_bytes(mu_value_at(args, 0));
    PyObject *name = mupy_from_value(mu_value_at(args, 1), false);
    PyObject *function = NULL;

    if (pickle != NULL && name != NULL &&
        mupy_import(&load, "muster._worker", "load_function") != NULL)
        function = PyObject_CallFunctionObjArgs(load, pickle, name, NULL);
    Py_XDECREF(pickle);
    Py_XDECREF(name);
    return function;
}

/* Run `make`; the object that it returns stays on this worker. */
static int run_making(mu_run *run, PyObject *(*make)(mu_run *run))
{
    struct mupy_outer outer;
    int rv;

    mupy_enter();
    outer = mupy_run_begin(run);
    rv = finish_object(run, make(run));
    mupy_run_end(outer);
    mupy_leave();
    return rv;
}

/* "python.load": [pickle, name] */
static int run_python_load(mu_run *run, void *user)
{
    (void)user;
    return run_making(run, load_function);
}

/* "python.build": [pickle of (function, args, kwargs), name, "value" or "iterator"] */
static PyObject *build_held_object(mu_run *run)
{
    static PyObject *make;
    const mu_value *args = mu_run_args(run);
    PyObject *pickle = get_pickle_bytes(mu_value_at(args, 0));
    PyObject *name = mupy_from_value(mu_value_at(args, 1), false);
    PyObject *mode = mupy_from_value(mu_value_at(args, 2), false);
    PyObject *object = NULL;

    if (pickle != NULL && name != NULL && mode != NULL &&
        mupy_import(&make, "muster._worker", "build") != NULL)
        object = PyObject_CallFunctionObjArgs(make, pickle, name, mode, NULL);
    Py_XDECREF(pickle);
    Py_XDECREF(name);
    Py_XDECREF(mode);
    return object;
}

int mupy_run_build(mu_run *run, void *user)
{
    (void)user;
    return run_making(run, build_held_object);
}

PyObject *mupy_run_call_registered(mu_run *run, PyObject *function, const mu_value *value)
{
    PyObject *object = mupy_decode_named(value, run);
    PyObject *args = NULL;
    PyObject *result = NULL;
    bool is_map = object != NULL && PyDict_Check(object);

    if (object == NULL)
        return NULL;
    if (PyList_Check(object))
        args = PyList_AsTuple(object);
    else if (is_map || object == Py_None)
        args = PyTuple_New(0);
    else
        args = PyTuple_Pack(1, object);
    if (args != NULL)
        result = PyObject_Call(function, args, is_map ? object : NULL);
    Py_XDECREF(args);
    Py_DECREF(object);
    return result;
}

int mupy_run_registered(mu_run *run, PyObject *function)
{
    struct mupy_outer outer;
    int rv;

    mupy_enter();
    mupy_drop_now();
    outer = mupy_run_begin(run);
    rv = finish_python_run(run, mupy_run_call_registered(run, function, mu_run_args(run)),
                           true);
    mupy_run_end(outer);
    mupy_leave();
    return rv;
}

static int run_registered(mu_run *run, void *user)
{
    return mupy_run_registered(run, user);
}

int mupy_run_register_function(mu_node *node, const char *name, PyObject *function)
{
    if (mupy_process_count(node) > 0)
        return mupy_process_register_function(node, name, function);
    return mu_node_register_function(node, name, run_registered, function, 0);
}

int mupy_run_register(mu_node *node)
{
    static const struct mupy_functions in_threads = {run_python_call, run_python_load,
                                                     mupy_run_build};
    const struct mupy_functions *functions =
        mupy_process_count(node) > 0 ? &mupy_in_processes : &in_threads;
    const struct {
        const char *name;
        mu_function_fn function;
        void *user;
    } rows[] = {
        {"python.call", functions->call, NULL},
        {"python.try", functions->call, (void *)1},
        {"python.load", functions->load, NULL},
        {"python.build", functions->build, NULL},
    };

    int rv = mupy_actors_register(node);

    if (rv != 0) {
        (void)mupy_fail(rv, "actors cannot be registered: %s", mu_strerror(rv));
        return -1;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rv = mu_node_register_function(node, rows[i].name, rows[i].function, rows[i].user,
                                       0);

        if (rv != 0) {
            (void)mupy_fail(rv, "%s cannot be registered: %s", rows[i].name,
                            mu_strerror(rv));
            return -1;
        }
    }
    return 0;
}

/* ---- methods of a run ---- */

static mu_run *run_of(PyObject *object)
{
    mu_run *run = ((struct mupy_run *)object)->run;

    if (run == NULL)
        (void)mupy_fail(-MU_EPRECONDITION, "the run has ended");
    else if (run != current)
        (void)mupy_fail(-MU_EPRECONDITION, "a run is for the thread that runs its "
                                           "function");
    return run == current ? run : NULL;
}

mu_run *mupy_run_of(PyObject *object)
{
    if (run_type != NULL && PyObject_TypeCheck(object, run_type))
        return run_of(object);
    PyErr_SetString(PyExc_TypeError, "expected the run of a function");
    return NULL;
}

static void run_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_Free(object);
    Py_DECREF(type);
}

enum number { WORKER, ATTEMPT, CLOSURE };

static PyObject *get_number(PyObject *object, void *closure)
{
    mu_run *run = mupy_run_of(object);

    if (run == NULL)
        return NULL;
    switch ((enum number)(intptr_t)closure) {
    case WORKER:
        return PyLong_FromLong(mu_run_worker(run));
    case ATTEMPT:
        return PyLong_FromUnsignedLong(mu_run_attempt(run));
    default:
        return PyLong_FromUnsignedLongLong(mu_run_closure_id(run));
    }
}

static PyObject *run_object_text(PyObject *object, void *closure)
{
    mu_run *run = mupy_run_of(object);

    if (run == NULL)
        return NULL;
    return PyUnicode_FromString(closure == NULL ? mu_run_closure_name(run)
                                                : mu_run_worker_type(run));
}

static PyObject *run_object_node(PyObject *object, void *closure)
{
    mu_run *run = mupy_run_of(object);

    (void)closure;
    return run == NULL ? NULL : mupy_node_wrap(mu_run_node(run));
}

static PyObject *run_object_cancelled(PyObject *object, PyObject *unused)
{
    mu_run *run = mupy_run_of(object);

    (void)unused;
    return run == NULL ? NULL : PyBool_FromLong(mu_run_cancelled(run));
}

static PyObject *run_object_log(PyObject *object, PyObject *line)
{
    mu_run *run = mupy_run_of(object);
    PyObject *text = run == NULL ? NULL : PyObject_Str(line);
    const char *words = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);

    if (words != NULL)
        mu_run_log(run, "%s", words);
    Py_XDECREF(text);
    if (words == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *run_object_report(PyObject *object, PyObject *args)
{
    mu_run *run = mupy_run_of(object);
    unsigned long long step = 0;
    const char *name;
    double number;
    int rv;

    if (run == NULL || !PyArg_ParseTuple(args, "sd|K:report", &name, &number, &step))
        return NULL;
    rv = mu_node_report_metric(mu_run_node(run), name, number, step);
    if (rv != 0)
        return mupy_fail(rv, "\"%.60s\" cannot be reported: %s", name, mu_strerror(rv));
    Py_RETURN_NONE;
}

bool mupy_run_written(int rv, const struct mupy_variable *variable)
{
    const char *name = PyUnicode_AsUTF8AndSize(variable->name, NULL);

    if (rv != 0)
        (void)mupy_fail(rv, "the run cannot write to variable \"%.100s\": %s",
                        name == NULL ? "" : name, mu_strerror(rv));
    has_written = has_written || rv == 0;
    return rv == 0;
}

static PyObject *mark_written(int rv, const struct mupy_variable *variable)
{
    if (!mupy_run_written(rv, variable))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *mupy_run_wrote(int rv, const char *what)
{
    if (rv != 0)
        return mupy_fail(rv, "the run cannot write to a %s: %s", what, mu_strerror(rv));
    has_written = true;
    Py_RETURN_NONE;
}

static PyObject *write_from_run(PyObject *object, PyObject *args,
                                int (*write)(mu_run *run, mu_variable *variable,
                                             const void *buffer, size_t bytes))
{
    mu_run *run = mupy_run_of(object);
    struct mupy_variable *variable;
    struct mupy_array array;
    PyObject *target;
    PyObject *value;
    int rv;

    if (run == NULL || !PyArg_ParseTuple(args, "OO", &target, &value) ||
        (variable = mupy_variable_of(target)) == NULL ||
        mupy_variable_array(variable, value, &array) != 0)
        return NULL;
    rv = write(run, variable->variable, array.data, array.bytes);
    Py_DECREF(array.keep);
    return mark_written(rv, variable);
}

static PyObject *run_object_add(PyObject *object, PyObject *args)
{
    return write_from_run(object, args, mu_run_add);
}

static PyObject *run_object_assign(PyObject *object, PyObject *args)
{
    return write_from_run(object, args, mu_run_assign);
}

static PyObject *run_object_apply_gradient(PyObject *object, PyObject *args,
                                           PyObject *kwargs)
{
    static char *names[] = {"variable", "gradient", "rate", "momentum", NULL};
    mu_run *run = mupy_run_of(object);
    mu_optimizer optimizer;
    double momentum = 0;
    PyObject *how;
    struct mupy_variable *variable;
    struct mupy_array array;
    PyObject *target;
    PyObject *value;
    int rv;

    if (run == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|d:apply_gradient", names, &target,
                                     &value, &how, &momentum) ||
        mupy_optimizer(how, momentum, &optimizer) != 0 ||
        (variable = mupy_variable_of(target)) == NULL ||
        mupy_variable_array(variable, value, &array) != 0)
        return NULL;
    rv = mu_run_apply(run, variable->variable, array.data, array.bytes, &optimizer);
    Py_DECREF(array.keep);
    return mark_written(rv, variable);
}

int mupy_run_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"find_run", find_run, METH_NOARGS, "current_run(), or None without one."},
        {"current_run", current_run, METH_NOARGS,
         "current_run()\n--\n\n"
         "The run of the current function: its worker, attempt, cancellation, writes.\n\n"
         "FailedPreconditionError outside of a function that a worker runs."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"cancelled", run_object_cancelled, METH_NOARGS,
         "cancelled()\n--\n\nWhether the result is not needed any more: stop early."},
        {"log", run_object_log, METH_O,
         "log(line)\n--\n\nWrite a line, of at most 511 bytes, to the node's log."},
        {"report_metric", run_object_report, METH_VARARGS,
         "report_metric(name, number, step=0)\n--\n\n"
         "Send a number to the chief, for its status and Node.get_metric()."},
        {"add", run_object_add, METH_VARARGS,
         "add(variable, value)\n--\n\n"
         "Add to a variable once the function has returned; discarded when it fails. "
         "With\neffect_once it is applied once, however often the closure runs."},
        {"assign", run_object_assign, METH_VARARGS,
         "assign(variable, value)\n--\n\nReplace a variable's content, like add()."},
        {"apply_gradient", MUPY_METHOD(run_object_apply_gradient),
         METH_VARARGS | METH_KEYWORDS,
         "apply_gradient(variable, gradient, rate, momentum=0.0)\n--\n\n"
         "Apply a gradient, like add(). rate may be an optimizer of muster.optimizers."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"worker", get_number, NULL, "Task index of the worker.", (void *)WORKER},
        {"attempt", get_number, NULL, "The number of this run, from 1.", (void *)ATTEMPT},
        {"closure", get_number, NULL, "The closure's number.", (void *)CLOSURE},
        {"name", run_object_text, NULL, "The closure's name, \"\" when it has none.",
         NULL},
        {"worker_type", run_object_text, NULL, "The worker's task type.", (void *)1},
        {"node", run_object_node, NULL, "The node that it runs on.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, run_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "One run of a function on a worker; see current_run()."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Run", sizeof(struct mupy_run), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    run_type = mupy_add_type(module, &spec);
    if (run_type == NULL || mupy_run_add_row_methods(run_type) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
