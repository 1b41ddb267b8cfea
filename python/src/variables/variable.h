/* A variable, for the files that write to it. */
#ifndef MUSTER_PYTHON_VARIABLE_H
#define MUSTER_PYTHON_VARIABLE_H

#include "extension.h"

struct mupy_variable {
    PyObject_HEAD
    mu_variable *variable;  /* as long as this object: another thread may use it while
                               it is closed */
    bool closed;
    PyObject *node;
    PyObject *name;
    int dtype;
    unsigned rank;
    unsigned shards;
    uint64_t dims[MU_TENSOR_RANK_MAX];
};

extern PyTypeObject *mupy_variable_type;

/* The open variable of an object; NULL with an exception. */
struct mupy_variable *mupy_variable_of(PyObject *object);

/* The elements of `value`, converted to the variable's dtype and of its shape; a scalar
 * stands for an array full of it. -1 with an exception. */
int mupy_variable_array(const struct mupy_variable *variable, PyObject *value,
                        struct mupy_array *ret_array);

#endif
