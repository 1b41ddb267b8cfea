/* Variables among the arguments of functions by name: maps that functions in C can read,
 * and programs in C can pass. */
#include "variables/variable.h"

const char mupy_variable_key[] = "muster.variable";

static const char dtype_key[] = "dtype";
static const char shape_key[] = "shape";
static const char same_key[] = "same"; /* left out when it is false */

static mu_value *make_dims_value(const struct mupy_variable *variable)
{
    mu_value *shape = mu_value_list();

    for (unsigned i = 0; shape != NULL && i < variable->rank; i++)
        if (mu_value_append(shape, mu_value_int((int64_t)variable->dims[i])) != 0) {
            mu_value_free(shape);
            return NULL;
        }
    return shape;
}

mu_value *mupy_variable_value(PyObject *object)
{
    const struct mupy_variable *variable = (struct mupy_variable *)object;
    mu_value *map;

    if (!PyObject_TypeCheck(object, mupy_variable_type))
        return NULL;
    if (mupy_variable_of(object) == NULL)
        return NULL;
    map = mu_value_map();
    if (map != NULL &&
        mu_value_set(map, mupy_variable_key, mupy_to_exact(variable->name)) == 0 &&
        mu_value_set(map, dtype_key, mu_value_string(mu_dtype_name(variable->dtype))) ==
            0 &&
        mu_value_set(map, shape_key, make_dims_value(variable)) == 0 &&
        (!variable->same || mu_value_set(map, same_key, mu_value_bool(1)) == 0))
        return map;
    mu_value_free(map);
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return NULL;
}

/* `parts`: the map as a dict. */
static PyObject *reopen_variable(PyObject *parts)
{
    static PyObject *open_variable;
    PyObject *name = PyDict_GetItemString(parts, mupy_variable_key);
    PyObject *dtype = PyDict_GetItemString(parts, dtype_key);
    PyObject *shape = PyDict_GetItemString(parts, shape_key);
    PyObject *same = PyDict_GetItemString(parts, same_key);
    PyObject *variable = NULL;

    if (name == NULL || dtype == NULL || shape == NULL)
        return mupy_fail(-MU_EINVALID, "a variable among arguments has a name, a dtype "
                                       "and a shape");
    shape = PySequence_Tuple(shape);
    if (shape != NULL &&
        mupy_import(&open_variable, "muster._worker", "open_variable") != NULL)
        variable = PyObject_CallFunctionObjArgs(open_variable, name, dtype, shape,
                                                same == NULL ? Py_False : same, NULL);
    Py_XDECREF(shape);
    return variable;
}

PyObject *mupy_variable_from(const mu_value *map)
{
    PyObject *parts = mupy_from_value(map, false);
    PyObject *variable = parts == NULL ? NULL : reopen_variable(parts);

    Py_XDECREF(parts);
    return variable;
}

PyObject *mupy_shape_tuple(unsigned rank, const uint64_t *dims)
{
    PyObject *shape = PyTuple_New(rank);

    for (unsigned i = 0; shape != NULL && i < rank; i++) {
        PyObject *size = PyLong_FromUnsignedLongLong(dims[i]);

        if (size == NULL || PyTuple_SetItem(shape, i, size) != 0)
            Py_CLEAR(shape);
    }
    return shape;
}

PyObject *mupy_variable_target(const struct mupy_variable *self, const uint64_t *dims,
                               PyObject *out)
{
    static PyObject *check;
    PyObject *shape;
    PyObject *array = NULL;

    if (out == Py_None)
        return mupy_array_new(self->dtype, self->rank, dims);
    shape = mupy_shape_tuple(self->rank, dims);
    if (shape != NULL && mupy_import(&check, "muster._variable.arrays", "out_of") != NULL)
        array =
            PyObject_CallFunction(check, "OOs", out, shape, mu_dtype_name(self->dtype));
    Py_XDECREF(shape);
    return array;
}

PyObject *mupy_variable_given(PyObject *target, PyObject *out)
{
    if (out == Py_None)
        return target;
    Py_DECREF(target);
    Py_INCREF(out);
    return out;
}
