/* Arguments of schedule(), also for other calls that take the same. */
#ifndef MUSTER_PYTHON_SCHEDULE_H
#define MUSTER_PYTHON_SCHEDULE_H

#include "extension.h"

/* Borrowed from the caller's arguments. */
struct parsed {
    PyObject *function;
    PyObject *args;
    PyObject *kwargs;
    mu_closure_options options;
    bool has_options;
    int64_t timeout_ms;
    bool returns_value;
};

/* Parse the arguments. -1 with an exception. */
int mupy_schedule_parse(PyObject *const *args, Py_ssize_t count, PyObject *names,
                        struct parsed *ret_parsed);

/* Make name and arguments of the function to schedule, for a callable or a name; the
 * coordinator must be in use. *ret_function is a new reference to the mupy_function or
 * the str. NULL with an exception. */
mu_value *mupy_schedule_args(PyObject *coordinator, const struct parsed *parsed,
                             const char **ret_name, PyObject **ret_function);

#endif
