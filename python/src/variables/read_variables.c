/* Several variables, read at one time. */
#include "variables/variable.h"

#include <stdlib.h>

struct reading {
    mu_variable **variables;
    void **buffers;
    size_t count;
};

static void free_reading(struct reading *reading)
{
    if (reading != NULL) {
        free(reading->variables);
        free(reading->buffers);
    }
    free(reading);
}

static struct reading *new_reading(size_t count)
{
    struct reading *reading = calloc(1, sizeof *reading);

    if (reading == NULL)
        return NULL;
    reading->variables = calloc(count + 1, sizeof *reading->variables);
    reading->buffers = calloc(count + 1, sizeof *reading->buffers);
    if (reading->variables != NULL && reading->buffers != NULL)
        return reading;
    free_reading(reading);
    return NULL;
}

static void run_read_variables(struct mupy_call *call)
{
    struct reading *reading = call->other;

    call->rv = mu_variables_read(reading->variables, reading->buffers, reading->count,
                                 call->timeout_ms, &call->error);
    free_reading(reading);
}

/* The next variable, and an array for it. */
static int add_to_reading(struct reading *reading, PyObject *object, PyObject *arrays)
{
    struct mupy_variable *variable = mupy_variable_of(object);
    PyObject *made = variable == NULL ? NULL
                                      : mupy_array_new(variable->dtype, variable->rank,
                                                       variable->dims);
    struct mupy_array array;
    int rv = made == NULL ? -1 : mupy_array_of(made, MU_DTYPE_NONE, &array);

    if (rv == 0) {
        reading->variables[reading->count] = variable->variable;
        reading->buffers[reading->count++] = (void *)(uintptr_t)array.data;
        Py_DECREF(array.keep);
        rv = PyList_Append(arrays, made);
    }
    Py_XDECREF(made);
    return rv;
}

static struct mupy_call *begin_reading(PyObject *variables, PyObject *timeout,
                                       PyObject *arrays)
{
    Py_ssize_t count = PyList_Size(variables);
    struct reading *reading = new_reading((size_t)count);
    struct mupy_call *call = NULL;
    int64_t timeout_ms = 0;
    int rv = mupy_timeout(timeout, &timeout_ms);

    if (reading == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; rv == 0 && i < count; i++)
        rv = add_to_reading(reading, PyList_GetItem(variables, i), arrays);
    if (rv == 0)
        call = mupy_call_new(run_read_variables);
    if (call == NULL) {
        free_reading(reading);
        return NULL;
    }
    call->other = reading;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, variables);
    mupy_call_keep(call, arrays);
    return call;
}

/* read_variables(variables, timeout=None) -> list of arrays */
static PyObject *read_variables(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"variables", "timeout", NULL};
    PyObject *variables;
    PyObject *timeout = NULL;
    PyObject *list;
    PyObject *arrays;
    struct mupy_call *call;
    PyObject *result;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:read_variables", names,
                                     &variables, &timeout))
        return NULL;
    list = PySequence_List(variables); /* nobody else changes this one */
    arrays = list == NULL ? NULL : PyList_New(0);
    call = arrays == NULL ? NULL : begin_reading(list, timeout, arrays);
    result = call == NULL ? NULL : mupy_call_finish(call);
    if (result == NULL)
        Py_CLEAR(arrays);
    Py_XDECREF(result);
    Py_XDECREF(list);
    return arrays;
}

int mupy_read_variables_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"read_variables", MUPY_METHOD(read_variables), METH_VARARGS | METH_KEYWORDS,
         "read_variables(variables, timeout=None) -> list of arrays\n\n"
         "All as they were at one time on each part of the servers: what one function\n"
         "has written to a part is read as a whole, or not at all."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods);
}
