/* Initial values by name, as muster.initializers describes them. */
#include "variables/variable.h"

int mupy_initializer_of(PyObject *parameters, mu_initializer *ret_initializer)
{
    unsigned long long seed;

    *ret_initializer = (mu_initializer){.kind = 0};
    if (parameters == Py_None)
        return 0;
    if (!PyTuple_Check(parameters) ||
        !PyArg_ParseTuple(parameters, "iKdd", &ret_initializer->kind, &seed,
                          &ret_initializer->a, &ret_initializer->b)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "an initializer has four parameters");
        return -1;
    }
    ret_initializer->seed = seed;
    return 0;
}

/* Fill an array, which has the spec's shape. */
static int fill_array(PyObject *array, const mu_initializer *initializer,
                      const mu_variable_spec *spec)
{
    struct mupy_array elements;
    mu_error error = {0};
    int rv;

    if (mupy_array_of(array, MU_DTYPE_NONE, &elements) != 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_initializer_values(initializer, spec, 0, (void *)(uintptr_t)elements.data,
                               elements.bytes, &error);
    Py_END_ALLOW_THREADS
    Py_DECREF(elements.keep);
    if (rv != 0)
        (void)mupy_raise(&error, NULL);
    return rv == 0 ? 0 : -1;
}

static PyObject *initializer_values(PyObject *module, PyObject *args)
{
    mu_variable_spec spec = {.shards = 1};
    uint64_t dims[MU_TENSOR_RANK_MAX];
    mu_initializer initializer;
    PyObject *parameters;
    PyObject *shape;
    PyObject *dtype;
    PyObject *array;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsOO:initializer_values", &parameters, &spec.name,
                          &shape, &dtype) ||
        mupy_initializer_of(parameters, &initializer) != 0 ||
        (spec.dtype = mupy_dtype_of(dtype)) < 0 ||
        mupy_shape_of(shape, dims, &spec.rank) != 0)
        return NULL;
    spec.dims = dims;
    array = mupy_array_new(spec.dtype, spec.rank, dims);
    if (array != NULL && fill_array(array, &initializer, &spec) != 0)
        Py_CLEAR(array);
    return array;
}

int mupy_initializers_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"initializer_values", initializer_values, METH_VARARGS,
         "initializer_values((kind, seed, a, b), name, shape, dtype)\n--\n\n"
         "See muster.initializers."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, functions);
}
