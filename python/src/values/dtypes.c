/* Element types: those of NumPy, and bfloat16. */
#include "extension.h"

static const struct {
    int dtype;
    const char *typestr;
} dtypes[] = {
    {MU_F32, "<f4"}, {MU_F64, "<f8"}, {MU_I8, "|i1"},   {MU_I16, "<i2"}, {MU_I32, "<i4"},
    {MU_I64, "<i8"}, {MU_U8, "|u1"},  {MU_BOOL, "|b1"}, {MU_F16, "<f2"}, {MU_U16, "<u2"},
    {MU_U32, "<u4"}, {MU_U64, "<u8"}, {MU_BF16, "<V2"},
};

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *mupy_typestr_of(int dtype)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].typestr;
    return "|u1";
}

/* MU_DTYPE_NONE for a type that muster does not have. */
int mupy_dtype_of_typestr(PyObject *typestr)
{
    for (size_t i = 0; typestr != NULL && i < DTYPES; i++)
        if (PyUnicode_CompareWithASCIIString(typestr, dtypes[i].typestr) == 0)
            return dtypes[i].dtype;
    return MU_DTYPE_NONE;
}

int mupy_dtype_of(PyObject *object)
{
    static PyObject *make;
    PyObject *dtype = mupy_import(&make, "muster._variable.dtypes", "dtype_of") == NULL
                          ? NULL
                          : PyObject_CallFunctionObjArgs(make, object, NULL);
    PyObject *typestr = dtype == NULL ? NULL : PyObject_GetAttrString(dtype, "str");
    int number = mupy_dtype_of_typestr(typestr);

    if (typestr != NULL && number == MU_DTYPE_NONE)
        PyErr_Format(PyExc_TypeError, "dtype is %S, expected " MUPY_DTYPE_NAMES, dtype);
    Py_XDECREF(dtype);
    Py_XDECREF(typestr);
    return number == MU_DTYPE_NONE ? -1 : number;
}

int mupy_shape_of(PyObject *object, uint64_t *ret_dims, unsigned *ret_rank)
{
    PyObject *shape =
        PyLong_Check(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    Py_ssize_t rank = shape == NULL ? -1 : PyTuple_Size(shape);

    if (rank > MU_TENSOR_RANK_MAX) {
        PyErr_Format(PyExc_ValueError,
                     "shape %R has %zd dimensions, at most %d are supported", shape, rank,
                     (int)MU_TENSOR_RANK_MAX);
        rank = -1;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        PyObject *item = PyTuple_GetItem(shape, i);
        long long size = PyLong_AsLongLong(item);

        if (size < 0 && !PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "shape %R has a negative dimension", shape);
        if (size < 0) {
            rank = -1;
            break;
        }
        ret_dims[i] = (uint64_t)size;
    }
    Py_XDECREF(shape);
    *ret_rank = rank < 0 ? 0 : (unsigned)rank;
    return rank < 0 ? -1 : 0;
}

/* What NumPy converts to; None for MU_DTYPE_NONE. */
PyObject *mupy_numpy_dtype(int dtype)
{
    static PyObject *make;

    if (dtype == MU_DTYPE_NONE)
        Py_RETURN_NONE;
    if (mupy_import(&make, "muster._variable.dtypes", "dtype_of") == NULL)
        return NULL;
    return PyObject_CallFunction(
        make, "s", dtype == MU_BF16 ? mu_dtype_name(dtype) : mupy_typestr_of(dtype));
}

/* NumPy takes bfloat16 for two bytes without a type. Takes `array`. */
PyObject *mupy_view_as(PyObject *array, int dtype)
{
    PyObject *viewed;
    PyObject *view = NULL;

    if (dtype != MU_BF16)
        return array;
    viewed = mupy_numpy_dtype(dtype);
    if (viewed != NULL)
        view = PyObject_CallMethod(array, "view", "O", viewed);
    Py_XDECREF(viewed);
    Py_DECREF(array);
    return view;
}
