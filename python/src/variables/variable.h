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

/* ---- requests.c ---- */

/* A request, and what it may point to, as the text of its call. */
struct mupy_asked {
    mu_variable_request request;
    mu_rows rows;
    mu_optimizer optimizer;
};

/* The call that makes one of all of the variable, or of some of its rows (else NULL), to
 * or from an array, which it holds; `numbers`, which may be NULL, too. NULL with an
 * exception. */
struct mupy_call *mupy_variable_call(struct mupy_variable *self, int operation,
                                     const struct mupy_array *array, const mu_rows *rows,
                                     PyObject *numbers, PyObject *timeout);
struct mupy_asked *mupy_asked_of(struct mupy_call *call);

/* Run a call, and free it; or, with `tell` (not NULL or None), begin it (extension.h). */
PyObject *mupy_call_end(struct mupy_call *call, PyObject *tell);

/* Methods: read(timeout=None, max_age=None, out=None); _read_into(array, timeout,
 * max_age, tell), _write(operation, value, timeout, tell, rate=None, momentum=0.0): an
 * operation of the library. */
PyObject *mupy_variable_read(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *mupy_variable_read_into(PyObject *object, PyObject *args);
PyObject *mupy_variable_write(PyObject *object, PyObject *args);
PyObject *mupy_variable_assign(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *mupy_variable_assign_add(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *mupy_variable_assign_sub(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *mupy_variable_apply_gradient(PyObject *object, PyObject *args,
                                       PyObject *kwargs);

/* Methods in rows.c: _read_rows(first, count, numbers, timeout=None, out=None, tell=None)
 * and _write_rows(how, first, numbers, values, timeout=None, tell=None); numbers: None,
 * or an array of int64. */
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
