/* What schedule() was given, for the calls that take the same. */
#ifndef MUSTER_PYTHON_SCHEDULE_H
#define MUSTER_PYTHON_SCHEDULE_H

#include "extension.h"

/* Borrowed from the caller's arguments. */
struct asked {
    PyObject *function;
    PyObject *args;
    PyObject *kwargs;
    mu_closure_options options;
    bool has_options;
    int64_t timeout_ms;
    bool wants_result;
};

/* -1 with an exception. */
int mupy_schedule_parse(PyObject *const *args, Py_ssize_t count, PyObject *names,
                        struct asked *ret_asked);

/* Of a coordinator that is in use: the function that is to be named, and its arguments,
 * for a callable or a name. *ret_function is a new reference to the entry or the str;
 * NULL with an exception. */
mu_value *mupy_schedule_args(PyObject *coordinator, const struct asked *asked,
                             const char **ret_name, PyObject **ret_function);

#endif
