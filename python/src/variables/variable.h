/* The Python object of a variable. */
#ifndef MUSTER_PYTHON_VARIABLE_H
#define MUSTER_PYTHON_VARIABLE_H

#include "extension.h"

#include "muster/table.h"

struct mupy_variable {
    PyObject_HEAD
    mu_variable *variable; /* freed with this object, since another thread may use it
                              while it is closed */
    bool closed;
    bool same; /* MU_VARIABLE_SAME */
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

/* Read the elements of `value`, converted to the variable's dtype and shape; a scalar is
 * broadcast. -1 with an exception. */
int mupy_variable_array(const struct mupy_variable *variable, PyObject *value,
                        struct mupy_array *ret_array);

/* Methods in rows.c: _read_rows(first, count, numbers, timeout=None) and _write_rows(add,
 * first, numbers, values, timeout=None); numbers: None, or an array of int64. */
PyObject *mupy_variable_read_rows(PyObject *object, PyObject *args);
PyObject *mupy_variable_write_rows(PyObject *object, PyObject *args);

/* Dimensions as a tuple. */
PyObject *mupy_shape_tuple(unsigned rank, const uint64_t *dims);

/* An array of these dimensions for what is read: a new one, or if `out` is not None its
 * memory. And what the reader then gives, for a reference to that. */
PyObject *mupy_variable_target(const struct mupy_variable *self, const uint64_t *dims,
                               PyObject *out);
PyObject *mupy_variable_given(PyObject *target, PyObject *out);

/* checkpoint.c: the texts of a list, borrowed; the caller frees the array. NULL with an
 * exception. */
const char **mupy_texts_of(PyObject *list);

/* How a gradient is applied. `rate`: an optimizer of muster.optimizers, which has a
 * method rule(); what that returns; or a number, of descent with that momentum. -1 with
 * an exception. */
int mupy_optimizer(PyObject *rate, double momentum, mu_optimizer *ret_optimizer);

/* initializers.c: of (kind, seed, a, b); None gives kind 0. -1 with an exception. */
int mupy_initializer_of(PyObject *parameters, mu_initializer *ret_initializer);
int mupy_initializers_init(PyObject *module);

/* ---- coordinator/run.c ---- */

/* What a write of that run returns: None, or NULL with an exception that says to
 * `what`. */
PyObject *mupy_run_wrote(int rv, const char *what);

/* ---- table.c ---- */

/* The open table of an object, to be used until mupy_table_end(); NULL with an
 * exception. */
mu_table *mupy_table_begin(PyObject *object);
void mupy_table_end(PyObject *object);
unsigned mupy_table_dim(PyObject *object);

/* A call on the open table; NULL with an exception. */
struct mupy_call *mupy_table_call(PyObject *object, PyObject *timeout,
                                  void (*run)(struct mupy_call *call));

/* ---- table_lookups.c: methods ---- */

PyObject *mupy_table_lookup_bags(PyObject *object, PyObject *args);
PyObject *mupy_table_lookup_several(PyObject *unused, PyObject *args);

#endif
