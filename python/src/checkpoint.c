/* Checkpoints: files with the content of variables. */
#include "services.h"
#include "variable.h"

#include "muster/checkpoint.h"

#include <stdlib.h>

struct save_request {
    struct mupy_request request;
    mu_checkpoint_options options;
    uint64_t step;
    mu_variable **variables;
    size_t count;
    mu_value *values;
    char *path;
};

static void clean_save(struct mupy_request *from)
{
    struct save_request *request = (struct save_request *)from;

    free(request->variables);
    mu_value_free(request->values);
    free(request->path);
}

static void run_save(struct mupy_call *call)
{
    struct save_request *request = call->other;

    call->rv = mu_checkpoint_save(&request->options, request->step, request->variables,
                                  request->count, request->values, &call->error,
                                  &request->path);
}

static int read_variables(PyObject *list, struct save_request *request)
{
    request->count = (size_t)PyTuple_Size(list);
    request->variables = calloc(request->count + 1, sizeof(mu_variable *));
    if (request->variables == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct mupy_variable *variable =
            mupy_variable_of(PyTuple_GetItem(list, (Py_ssize_t)i));

        if (variable == NULL)
            return -1;
        request->variables[i] = variable->variable;
    }
    return 0;
}

/* checkpoint_save(directory, name, keep, step, variables, values, timeout) -> path */
static PyObject *save(PyObject *module, PyObject *args)
{
    struct mupy_call *call = mupy_call_new(run_save);
    struct save_request *request;
    unsigned long long step;
    PyObject *variables;
    PyObject *timeout;
    PyObject *values;
    PyObject *path;

    (void)module;
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, clean_save);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    mu_checkpoint_options_init(&request->options);
    if (!PyArg_ParseTuple(args, "ssIKO!OO:checkpoint_save", &request->options.directory,
                          &request->options.name, &request->options.keep, &step,
                          &PyTuple_Type, &variables, &values, &timeout) ||
        mupy_timeout(timeout, &request->options.limit_ms) != 0 ||
        read_variables(variables, request) != 0 ||
        (request->values = mupy_to_value(values, MUPY_PLAIN)) == NULL) {
        mupy_request_end(call);
        return NULL;
    }
    request->step = step;
    if (mupy_request_run(call) != 0)
        return NULL;
    path = PyUnicode_DecodeFSDefault(request->path);
    mupy_request_end(call);
    return path;
}

static void run_latest(struct mupy_call *call)
{
    struct save_request *request = call->other;

    call->rv = mu_checkpoint_latest(request->options.directory, request->options.name,
                                    &call->error, &request->path, &request->step);
}

/* checkpoint_latest(directory, name) -> (path, step) */
static PyObject *latest(PyObject *module, PyObject *args)
{
    struct mupy_call *call = mupy_call_new(run_latest);
    struct save_request *request;
    PyObject *result;

    (void)module;
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, clean_save);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    if (!PyArg_ParseTuple(args, "ss:checkpoint_latest", &request->options.directory,
                          &request->options.name)) {
        mupy_request_end(call);
        return NULL;
    }
    if (mupy_request_run(call) != 0)
        return NULL;
    result = Py_BuildValue("NK", PyUnicode_DecodeFSDefault(request->path),
                           (unsigned long long)request->step);
    mupy_request_end(call);
    return result;
}

static void run_read(struct mupy_call *call)
{
    mu_value *content = NULL;

    call->rv = mu_checkpoint_read(call->data, &call->error, &content);
    call->made = content;
}

/* checkpoint_read(path) -> {step, values, variables} */
static PyObject *read_content(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    const char *path;

    (void)module;
    if (!PyArg_ParseTuple(args, "s:checkpoint_read", &path))
        return NULL;
    call = mupy_call_new(run_read);
    if (call == NULL)
        return NULL;
    call->data = path;
    mupy_call_keep(call, args);
    return mupy_call_value(call);
}

struct restore_request {
    struct mupy_request request;
    const char *path;
    const char **names;
    size_t count;
};

static void clean_restore(struct mupy_request *request)
{
    free(((struct restore_request *)request)->names);
}

static void run_restore(struct mupy_call *call)
{
    struct restore_request *request = call->other;

    call->rv = mu_checkpoint_restore(call->object, request->path, request->names,
                                     request->count, call->timeout_ms, &call->error);
}

static int read_names(PyObject *names, struct restore_request *request)
{
    if (names == Py_None)
        return 0;
    if (!PyTuple_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "the names of variables are a tuple, or None");
        return -1;
    }
    request->count = (size_t)PyTuple_Size(names);
    request->names = calloc(request->count + 1, sizeof(char *));
    for (size_t i = 0; request->names != NULL && i < request->count; i++) {
        request->names[i] = mupy_text_needed(PyTuple_GetItem(names, (Py_ssize_t)i),
                                             "the name of a variable");
        if (request->names[i] == NULL)
            return -1;
    }
    if (request->names == NULL)
        PyErr_NoMemory();
    return request->names == NULL ? -1 : 0;
}

/* checkpoint_restore(node, path, names or None, timeout) */
static PyObject *restore(PyObject *module, PyObject *args)
{
    struct restore_request *request;
    struct mupy_call *call;
    PyObject *timeout;
    const char *path;
    PyObject *names;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsOO:checkpoint_restore", &node, &path, &names, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_restore);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, clean_restore);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    request->path = path;
    if (read_names(names, request) != 0) {
        mupy_request_end(call);
        return NULL;
    }
    if (mupy_request_run(call) != 0)
        return NULL;
    mupy_request_end(call);
    Py_RETURN_NONE;
}

int mupy_checkpoint_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"checkpoint_save", save, METH_VARARGS,
         "checkpoint_save(directory, name, keep, step, variables, values, timeout)\n--\n\n"
         "Write one; its path."},
        {"checkpoint_latest", latest, METH_VARARGS,
         "checkpoint_latest(directory, name)\n--\n\n(path, step) of the newest."},
        {"checkpoint_read", read_content, METH_VARARGS,
         "checkpoint_read(path)\n--\n\nWhat is in it."},
        {"checkpoint_restore", restore, METH_VARARGS,
         "checkpoint_restore(node, path, names, timeout)\n--\n\nRestore variables."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, functions);
}
