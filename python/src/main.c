/* The command `muster` in this interpreter. */
#include "extension.h"

#include "muster.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* --python MODULE: muster._functions.load_module(node, module) -> None or an error's
 * text. */
static int load_module(mu_node *node, const char *module, void *user, mu_error *ret_error)
{
    static PyObject *load;
    PyObject *wrapped;
    PyObject *words = NULL;
    const char *text = NULL;
    int rv = 0;

    (void)user;
    mupy_enter();
    wrapped = mupy_node_wrap(node);
    if (wrapped != NULL && (module[0] != '\0' || mupy_run_register(node) == 0) &&
        mupy_import(&load, "muster._functions", "load_module") != NULL)
        words = PyObject_CallFunction(load, "Os", wrapped, module);
    if (words == NULL) {
        PyErr_Print();
        rv = mu_error_set(ret_error, -MU_EUNKNOWN,
                          "the Python module \"%.100s\" cannot be imported", module);
    } else if (words != Py_None) {
        text = PyUnicode_AsUTF8AndSize(words, NULL);
        rv = mu_error_set(ret_error, -MU_EINVALID, "%s", text == NULL ? "" : text);
    }
    Py_XDECREF(words);
    Py_XDECREF(wrapped);
    mupy_leave();
    return rv;
}

static char **make_argument_words(PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    char **words = calloc((size_t)count + 1, sizeof *words);

    for (Py_ssize_t i = 0; words != NULL && i < count; i++) {
        const char *text = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);

        words[i] = text == NULL ? NULL : strdup(text);
        if (words[i] == NULL)
            return NULL;
    }
    if (words == NULL)
        PyErr_NoMemory();
    return words;
}

/* run_command(command, arguments) -> exit code. Both lists are never freed. */
static PyObject *run_command(PyObject *module, PyObject *args)
{
    static mu_main_options options;
    PyObject *command;
    PyObject *arguments;
    char **words;
    char **command_words;
    int count;
    int code;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:run_command", &PyList_Type, &command, &PyList_Type,
                          &arguments))
        return NULL;
    command_words = make_argument_words(command);
    words = command_words == NULL ? NULL : make_argument_words(arguments);
    if (words == NULL)
        return NULL;
    mu_main_options_init(&options);
    options.load = load_module;
    options.command = (const char *const *)(void *)command_words;
    count = (int)PyList_Size(arguments);
    Py_BEGIN_ALLOW_THREADS
    code = mu_main_with(&options, count, words);
    Py_END_ALLOW_THREADS
    mupy_node_forget();
    return PyLong_FromLong(code);
}

/* die_with_parent(pid): have the kernel send SIGKILL when the parent ends; at once if it
 * has ended. */
static PyObject *die_with_parent(PyObject *module, PyObject *pid)
{
    long parent = PyLong_AsLong(pid);

    (void)module;
    if (parent == -1 && PyErr_Occurred())
        return NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)parent)
        _exit(1);
    Py_RETURN_NONE;
}

int mupy_main_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"run_command", run_command, METH_VARARGS,
         "run_command(command, arguments)\n--\n\nDo what the command `muster` does."},
        {"die_with_parent", die_with_parent, METH_O,
         "die_with_parent(pid)\n--\n\nEnd when the process that started this one ends."},
        {NULL, NULL, 0, NULL},
    };

    if (PyModule_AddStringConstant(module, "VERSION", mu_version()) != 0)
        return -1;
    return PyModule_AddFunctions(module, methods);
}
