/* Programs of tasks: what a node's main() runs. */
#include "extension.h"

#include <string.h>

static int run_python_program(mu_node *node, void *user)
{
    static PyObject *run;
    PyObject *wrapped;
    PyObject *result = NULL;
    int code = -MU_EUNKNOWN;
    char words[512] = "the program cannot be run";

    mupy_enter();
    wrapped = mupy_node_wrap(node);
    if (wrapped != NULL && mupy_import(&run, "muster._functions", "run_program") != NULL)
        result = PyObject_CallFunctionObjArgs(run, user, wrapped, NULL);
    if (result != NULL && PyTuple_Check(result)) {
        const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(result, 1), NULL);

        code = (int)PyLong_AsLong(PyTuple_GetItem(result, 0));
        (void)strncpy(words, text == NULL ? "" : text, sizeof words - 1);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(user);
    Py_XDECREF(result);
    Py_XDECREF(wrapped);
    mupy_leave();
    return code == 0 ? 0 : mu_node_fail(node, code, "%s", words);
}

PyObject *mupy_node_program(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    PyObject *function;
    const char *type;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "sO:program", &type, &function))
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "a program is callable, got %R", function);
    rv = mu_node_register_program(node, type, run_python_program, function);
    if (rv != 0)
        return mupy_fail(rv, "no program can be set for \"%.60s\": %s", type,
                         mu_strerror(rv));
    Py_INCREF(function); /* never released */
    Py_RETURN_NONE;
}
