/* Converts values of the library to Python objects, and back. Arrays are shared without
 * copies: numpy reads the __array_interface__ of an owner object, which holds the
 * value. */
#include "process/frame.h"

#include <string.h>

struct owner {
    PyObject_HEAD
    mu_value *value;
    bool writable;
};

static PyTypeObject *owner_type;
static PyObject *ndarray_type; /* NULL until numpy was imported by the program */
static PyObject *numpy_name;
static PyObject *interface_name; /* "__array_interface__" */
static PyObject *typestr_name;
static PyObject *shape_name;
static PyObject *data_name;
static PyObject *strides_name;

/* ---- numpy ---- */

static PyObject *get_numpy_attribute(const char *name)
{
    static PyObject *cache;
    PyObject *module = mupy_kept(&cache);

    if (module == NULL)
        module = mupy_keep_first(&cache, PyImport_ImportModule("numpy"));
    return module == NULL ? NULL : PyObject_GetAttrString(module, name);
}

/* Whether the type of an object is exactly numpy.ndarray. */
static bool is_numpy_array(PyObject *object)
{
    PyObject *type = mupy_kept(&ndarray_type);

    if (type == NULL) {
        PyObject *module = PyImport_GetModule(numpy_name);

        if (module != NULL)
            type =
                mupy_keep_first(&ndarray_type, PyObject_GetAttrString(module, "ndarray"));
        Py_XDECREF(module);
        PyErr_Clear(); /* numpy is just being imported */
    }
    return (PyObject *)Py_TYPE(object) == type;
}

/* Returns 0; 1: not in row-major order, or another dtype; -1 with an exception. */
static int read_interface(PyObject *array, struct mupy_array *ret_array)
{
    PyObject *interface = PyObject_GetAttr(array, interface_name);
    PyObject *strides;
    PyObject *shape;
    PyObject *data;
    int rv = 1;

    if (interface == NULL)
        return -1;
    strides = PyDict_GetItem(interface, strides_name);
    shape = PyDict_GetItem(interface, shape_name);
    data = PyDict_GetItem(interface, data_name);
    ret_array->dtype = mupy_dtype_of_typestr(PyDict_GetItem(interface, typestr_name));
    if ((strides == NULL || strides == Py_None) && shape != NULL && data != NULL &&
        ret_array->dtype != MU_DTYPE_NONE && PyTuple_Size(shape) <= MU_TENSOR_RANK_MAX) {
        rv = mupy_shape_of(shape, ret_array->dims, &ret_array->rank);
        ret_array->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
        ret_array->bytes = mu_dtype_bytes(ret_array->dtype);
        for (unsigned i = 0; i < ret_array->rank; i++)
            ret_array->bytes *= ret_array->dims[i];
    }
    Py_DECREF(interface);
    return rv;
}

int mupy_array_of(PyObject *object, int dtype, struct mupy_array *ret_array)
{
    PyObject *convert = NULL;
    PyObject *wanted;
    int rv = 1;

    ret_array->keep = NULL;
    if (is_numpy_array(object)) {
        rv = read_interface(object, ret_array);
        if (rv == 0 && dtype != MU_DTYPE_NONE && ret_array->dtype != dtype)
            rv = 1;
    }
    if (rv == 0) {
        Py_INCREF(object);
        ret_array->keep = object;
    }
    if (rv <= 0)
        return rv;
    convert = get_numpy_attribute("require");
    wanted = mupy_numpy_dtype(dtype);
    if (convert != NULL && wanted != NULL)
        ret_array->keep = PyObject_CallFunction(convert, "OOs", object, wanted, "CAE");
    Py_XDECREF(convert);
    Py_XDECREF(wanted);
    if (ret_array->keep == NULL)
        return -1;
    rv = read_interface(ret_array->keep, ret_array);
    if (rv == 1)
        PyErr_Format(
            PyExc_TypeError,
            "an array of this dtype or rank cannot be converted: expected %s, and at "
            "most %d dimensions",
            MUPY_DTYPE_NAMES, (int)MU_TENSOR_RANK_MAX);
    if (rv != 0)
        Py_CLEAR(ret_array->keep);
    return rv == 0 ? 0 : -1;
}

/* ---- tensors ---- */

static mu_value *not_null(mu_value *value)
{
    if (value == NULL)
        PyErr_NoMemory();
    return value;
}

static mu_value *tensor_of(const struct mupy_array *array)
{
    mu_value *tensor = mupy_frame_take(array);

    if (tensor != NULL || PyErr_Occurred())
        return tensor;
    if (array->bytes < 1 << 16) {
        tensor = mu_value_tensor(array->dtype, array->rank, array->dims, array->data);
    } else {
        Py_BEGIN_ALLOW_THREADS
        tensor = mu_value_tensor(array->dtype, array->rank, array->dims, array->data);
        Py_END_ALLOW_THREADS
    }
    return not_null(tensor);
}

static mu_value *array_to_value(PyObject *object)
{
    struct mupy_array array;
    mu_value *tensor;

    if (mupy_array_of(object, MU_DTYPE_NONE, &array) != 0)
        return NULL;
    tensor = tensor_of(&array);
    Py_DECREF(array.keep);
    return tensor;
}

mu_value *mupy_buffer_to_value(PyObject *buffer)
{
    PyObject *from = get_numpy_attribute("frombuffer");
    PyObject *view = PyMemoryView_FromObject(buffer);
    PyObject *bytes = NULL;
    mu_value *value = NULL;
    uint64_t none = 0;

    if (from != NULL && view != NULL) {
        Py_ssize_t size = -1;
        PyObject *count = PyObject_GetAttrString(view, "nbytes");

        if (count != NULL)
            size = PyLong_AsSsize_t(count);
        Py_XDECREF(count);
        if (size == 0)
            value = not_null(mu_value_tensor(MU_U8, 1, &none, NULL));
        else if (size > 0)
            bytes = PyObject_CallFunction(from, "Os", view, "u1");
    }
    if (bytes != NULL)
        value = array_to_value(bytes);
    Py_XDECREF(bytes);
    Py_XDECREF(view);
    Py_XDECREF(from);
    return value;
}

static void owner_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    mu_value_free(((struct owner *)self)->value);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *mupy_array_interface(int dtype, unsigned rank, const uint64_t *dims,
                               const void *data, bool writable)
{
    PyObject *shape = PyTuple_New(rank);

    for (unsigned i = 0; shape != NULL && i < rank; i++) {
        PyObject *size = PyLong_FromUnsignedLongLong(dims[i]);

        if (size == NULL || PyTuple_SetItem(shape, i, size) != 0)
            Py_CLEAR(shape);
    }
    if (shape == NULL)
        return NULL;
    return Py_BuildValue("{s:i,s:s,s:N,s:(NO)}", "version", 3, "typestr",
                         mupy_typestr_of(dtype), "shape", shape, "data",
                         PyLong_FromVoidPtr((void *)(uintptr_t)data),
                         writable ? Py_False : Py_True);
}

static PyObject *owner_interface(PyObject *self, void *closure)
{
    struct owner *owner = (struct owner *)self;
    mu_tensor tensor;

    (void)closure;
    if (mu_value_get_tensor(owner->value, &tensor) != 0)
        return mupy_fail(-MU_EINTERNAL, "the owner of an array has no tensor");
    return mupy_array_interface(tensor.dtype, tensor.rank, tensor.dims, tensor.data,
                                owner->writable);
}

PyObject *mupy_tensor_owner(const mu_value *tensor, bool writable)
{
    struct owner *owner = PyObject_New(struct owner, owner_type);

    if (owner == NULL)
        return NULL;
    owner->value = mu_value_ref(tensor);
    owner->writable = writable;
    return (PyObject *)owner;
}

static PyObject *array_from(const mu_value *tensor, bool writable)
{
    static PyObject *convert;
    PyObject *owner = mupy_tensor_owner(tensor, writable);
    PyObject *array = NULL;
    mu_tensor parts;

    if (owner == NULL)
        return NULL;
    if (mupy_import(&convert, "numpy", "asarray") != NULL)
        array = PyObject_CallFunctionObjArgs(convert, owner, NULL);
    Py_DECREF(owner);
    if (array == NULL || mu_value_get_tensor(tensor, &parts) != 0)
        return array;
    return mupy_view_as(array, parts.dtype);
}

PyObject *mupy_array_new(int dtype, unsigned rank, const uint64_t *dims)
{
    mu_value *tensor = mu_value_tensor(dtype, rank, dims, NULL);
    PyObject *array;

    if (tensor == NULL)
        return PyErr_NoMemory();
    array = array_from(tensor, true);
    mu_value_free(tensor);
    return array;
}

/* ---- exact types ---- */

/* A str with a zero byte or a lone surrogate cannot be a string value. */
static mu_value *exact_string(PyObject *object)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(object, &size);

    if (text == NULL) {
        PyErr_Clear();
        return NULL;
    }
    if (strlen(text) != (size_t)size)
        return NULL;
    return not_null(mu_value_string(text));
}

static mu_value *exact_int(PyObject *object)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);

    return overflow != 0 ? NULL : not_null(mu_value_int(number));
}

static mu_value *exact_array(PyObject *object)
{
    struct mupy_array array;
    int rv = read_interface(object, &array);

    if (rv == 0)
        return tensor_of(&array);
    if (rv < 0)
        PyErr_Clear();
    return NULL;
}

mu_value *mupy_to_exact(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    if (object == Py_None)
        return not_null(mu_value_nil());
    if (type == &PyLong_Type)
        return exact_int(object);
    if (type == &PyFloat_Type)
        return not_null(mu_value_float(PyFloat_AsDouble(object)));
    if (type == &PyUnicode_Type)
        return exact_string(object);
    if (type == &PyBool_Type)
        return not_null(mu_value_bool(object == Py_True));
    if (type == &PyBytes_Type)
        return not_null(mu_value_bytes(PyBytes_AsString(object),
                                       (size_t)PyBytes_Size(object)));
    return is_numpy_array(object) ? exact_array(object) : NULL;
}

static bool is_same_tensor(const mu_tensor *tensor, const struct mupy_array *array)
{
    return tensor->data == array->data && tensor->bytes == array->bytes &&
           tensor->dtype == array->dtype && tensor->rank == array->rank &&
           memcmp(tensor->dims, array->dims, array->rank * sizeof array->dims[0]) == 0;
}

/* The caller has the only reference to the array, and the array the only one to its
 * memory: nothing else can change it. */
mu_value *mupy_take_tensor(PyObject *object)
{
    struct mupy_array array;
    mu_value *value = NULL;
    PyObject *base;
    mu_tensor tensor;

    if (!is_numpy_array(object) || !mupy_is_only_holder(object, 1))
        return NULL;
    base = PyObject_GetAttrString(object, "base");
    if (base != NULL && Py_TYPE(base) == owner_type && mupy_is_only_holder(base, 2) &&
        read_interface(object, &array) == 0 &&
        mu_value_get_tensor(((struct owner *)base)->value, &tensor) == 0 &&
        is_same_tensor(&tensor, &array))
        value = mu_value_ref(((struct owner *)base)->value);
    Py_XDECREF(base);
    PyErr_Clear();
    return value;
}

/* ---- all convertible types ---- */

static mu_value *to_value(PyObject *object, unsigned flags, int depth);

static mu_value *refuse_type(PyObject *object)
{
    PyErr_Format(PyExc_TypeError,
                 "a value of type %R cannot be passed to a function by "
                 "name: expected None, bool, int, float, str, bytes, list, tuple, dict "
                 "with str keys, or a numpy array",
                 Py_TYPE(object));
    return NULL;
}

static mu_value *list_to_value(PyObject *object, unsigned flags, int depth)
{
    PyObject *items = mupy_snapshot(object);
    Py_ssize_t count = items == NULL ? -1 : PySequence_Size(items);
    mu_value *list = items == NULL ? NULL : not_null(mu_value_list());

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = PySequence_GetItem(items, i);
        mu_value *value = item == NULL ? NULL : to_value(item, flags, depth + 1);

        Py_XDECREF(item);
        if (value == NULL || mu_value_append(list, value) != 0) {
            if (value != NULL)
                PyErr_NoMemory();
            mu_value_free(list);
            list = NULL;
        }
    }
    Py_XDECREF(items);
    return list;
}

static int add_map_item(mu_value *map, PyObject *key, PyObject *item, unsigned flags,
                        int depth)
{
    Py_ssize_t size = 0;
    const char *text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : NULL;
    mu_value *value;

    if (text == NULL || strlen(text) != (size_t)size) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError,
                         "a dict's key is %R, expected a str without a zero character",
                         key);
        return -1;
    }
    value = to_value(item, flags, depth + 1);
    if (value == NULL)
        return -1;
    if (mu_value_set(map, text, value) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static mu_value *dict_to_value(PyObject *object, unsigned flags, int depth)
{
    PyObject *items = mupy_snapshot(object);
    mu_value *map = items == NULL ? NULL : not_null(mu_value_map());
    PyObject *key;
    PyObject *item;
    Py_ssize_t at = 0;

    while (map != NULL && PyDict_Next(items, &at, &key, &item))
        if (add_map_item(map, key, item, flags, depth) != 0) {
            mu_value_free(map);
            map = NULL;
        }
    Py_XDECREF(items);
    return map;
}

static mu_value *reference_to_value(PyObject *object)
{
    if (PyObject_TypeCheck(object, mupy_remote_value_type))
        return not_null(mu_value_remote(((struct mupy_remote_value *)object)->value));
    if (PyObject_TypeCheck(object, mupy_per_worker_type)) {
        struct mupy_per_worker *per_worker = (struct mupy_per_worker *)object;
        mu_value *value = NULL;
        bool is_open;

        MUPY_LOCK(object)
        is_open = per_worker->per_worker != NULL;
        if (is_open)
            value = mu_value_per_worker(per_worker->per_worker);
        MUPY_UNLOCK()
        if (is_open)
            return not_null(value);
        (void)mupy_fail(-MU_ECLOSED, "the per-worker value was closed");
    }
    return mupy_variable_value(object);
}

static mu_value *int_to_value(PyObject *object)
{
    mu_value *value = exact_int(object);

    if (value == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_OverflowError, "an int has at most 64 bits here, got one of "
                                          "more");
    return value;
}

static mu_value *string_to_value(PyObject *object)
{
    mu_value *value = exact_string(object);

    if (value == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "a str with a zero character or an unpaired "
                     "surrogate cannot be passed: %.60R",
                     object);
    return value;
}

static mu_value *other_to_value(PyObject *object, unsigned flags)
{
    mu_value *value = NULL;

    if ((flags & MUPY_REFERENCES) != 0)
        value = reference_to_value(object);
    if (value != NULL || PyErr_Occurred())
        return value;
    if (PyByteArray_Check(object))
        return not_null(mu_value_bytes(PyByteArray_AsString(object),
                                       (size_t)PyByteArray_Size(object)));
    return refuse_type(object);
}

static mu_value *to_value(PyObject *object, unsigned flags, int depth)
{
    mu_value *value;

    if (depth > MU_VALUE_DEPTH_MAX - 2) {
        PyErr_Format(PyExc_ValueError,
                     "lists and dicts are nested more than %d deep, or "
                     "contain themselves",
                     (int)MU_VALUE_DEPTH_MAX - 2);
        return NULL;
    }
    if (PyList_Check(object) || PyTuple_Check(object))
        return list_to_value(object, flags, depth);
    if (PyDict_Check(object))
        return dict_to_value(object, flags, depth);
    value = mupy_to_exact(object);
    if (value != NULL || PyErr_Occurred())
        return value;
    if (is_numpy_array(object) || PyObject_HasAttrString(object, "__array_interface__"))
        return array_to_value(object);
    if (PyLong_Check(object))
        return int_to_value(object);
    if (PyFloat_Check(object))
        return not_null(mu_value_float(PyFloat_AsDouble(object)));
    if (PyUnicode_Check(object))
        return string_to_value(object);
    return other_to_value(object, flags);
}

mu_value *mupy_to_value(PyObject *object, unsigned flags)
{
    return to_value(object, flags, 0);
}

/* ---- values to objects ---- */

static PyObject *list_from(const mu_value *value, mupy_part_fn part, void *arg)
{
    Py_ssize_t count = (Py_ssize_t)mu_value_count(value);
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = part(mu_value_at(value, (size_t)i), arg);

        if (item == NULL || PyList_SetItem(list, i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *mupy_from_parts(const mu_value *value, mupy_part_fn part, void *arg)
{
    size_t count = mu_value_count(value);
    PyObject *dict;

    if (mu_value_type(value) == MU_VALUE_LIST)
        return list_from(value, part, arg);
    dict = mupy_frame_object(value);
    if (dict != NULL || PyErr_Occurred())
        return dict;
    dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < count; i++) {
        PyObject *item = part(mu_value_at(value, i), arg);

        if (item == NULL || PyDict_SetItemString(dict, mu_value_key(value, i), item) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return dict;
}

static PyObject *plain_part(const mu_value *value, void *writable)
{
    return mupy_from_value(value, writable != NULL);
}

static PyObject *scalar_from(const mu_value *value)
{
    int64_t integer = 0;
    double real = 0;
    int truth = 0;

    switch (mu_value_type(value)) {
    case MU_VALUE_BOOL:
        (void)mu_value_get_bool(value, &truth);
        return PyBool_FromLong(truth);
    case MU_VALUE_INT:
        (void)mu_value_get_int(value, &integer);
        return PyLong_FromLongLong(integer);
    case MU_VALUE_FLOAT:
        (void)mu_value_get_float(value, &real);
        return PyFloat_FromDouble(real);
    default:
        Py_RETURN_NONE;
    }
}

PyObject *mupy_from_value(const mu_value *value, bool writable)
{
    const char *text = "";
    const void *data = "";
    size_t size = 0;

    if (value == NULL)
        Py_RETURN_NONE;
    switch (mu_value_type(value)) {
    case MU_VALUE_STRING:
        (void)mu_value_get_string(value, &text, &size);
        return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
    case MU_VALUE_BYTES:
        (void)mu_value_get_bytes(value, &data, &size);
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    case MU_VALUE_LIST:
    case MU_VALUE_MAP:
        return mupy_from_parts(value, plain_part, writable ? &writable : NULL);
    case MU_VALUE_TENSOR:
        return array_from(value, writable);
    default:
        return scalar_from(value);
    }
}

int mupy_value_init(PyObject *module)
{
    static PyGetSetDef getset[] = {
        {"__array_interface__", owner_interface, NULL,
         "Where the elements are: numpy's protocol.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, owner_dealloc},
        {Py_tp_getset, getset},
        {Py_tp_doc, "The memory of an array that came from a task of the cluster."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.TensorOwner", sizeof(struct owner), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    numpy_name = PyUnicode_InternFromString("numpy");
    interface_name = PyUnicode_InternFromString("__array_interface__");
    typestr_name = PyUnicode_InternFromString("typestr");
    shape_name = PyUnicode_InternFromString("shape");
    data_name = PyUnicode_InternFromString("data");
    strides_name = PyUnicode_InternFromString("strides");
    owner_type = mupy_add_type(module, &spec);
    return owner_type == NULL ? -1 : 0;
}
