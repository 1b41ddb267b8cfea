/* Variables on the parameter servers. */
#include "variables/variable.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *mupy_variable_type;

static struct mupy_variable *as_variable(PyObject *self)
{
    return (struct mupy_variable *)self;
}

struct mupy_variable *mupy_variable_of(PyObject *object)
{
    if (!PyObject_TypeCheck(object, mupy_variable_type)) {
        PyErr_Format(PyExc_TypeError, "a Variable was expected, got %R", object);
        return NULL;
    }
    if (as_variable(object)->variable != NULL &&
        !__atomic_load_n(&as_variable(object)->closed, __ATOMIC_ACQUIRE))
        return as_variable(object);
    (void)mupy_fail(-MU_ECLOSED, "the variable was closed");
    return NULL;
}

static PyObject *shape_of(const struct mupy_variable *self)
{
    return mupy_shape_tuple(self->rank, self->dims);
}

/* Broadcast a value to the shape, for a scalar, say. */
static PyObject *broadcast_to_variable(const struct mupy_variable *self, PyObject *value)
{
    static PyObject *to_shape;
    PyObject *shape = shape_of(self);
    PyObject *array = NULL;

    if (shape != NULL && mupy_import(&to_shape, "numpy", "broadcast_to") != NULL)
        array = PyObject_CallFunctionObjArgs(to_shape, value, shape, NULL);
    Py_XDECREF(shape);
    return array;
}

static void refuse_array_shape(const struct mupy_variable *self, PyObject *given)
{
    PyObject *own = shape_of(self);
    PyObject *other = PyObject_GetAttrString(given, "shape");

    if (own != NULL && other != NULL)
        PyErr_Format(PyExc_ValueError,
                     "variable %R has the shape %R, got an array of shape %R", self->name,
                     own, other);
    Py_XDECREF(own);
    Py_XDECREF(other);
}

/* muster.variable._converted(value, dtype, name, initial) */
static int read_converted(const struct mupy_variable *self, PyObject *value, bool initial,
                          struct mupy_array *ret_array)
{
    static PyObject *convert;
    PyObject *array = NULL;
    int rv;

    if (mupy_import(&convert, "muster.variable", "_converted") != NULL)
        array = PyObject_CallFunction(convert, "OsOi", value, mu_dtype_name(self->dtype),
                                      self->name, (int)initial);
    rv = array == NULL ? -1 : mupy_array_of(array, self->dtype, ret_array);
    Py_XDECREF(array);
    return rv;
}

static int read_array(const struct mupy_variable *self, PyObject *value, bool initial,
                      struct mupy_array *ret_array)
{
    bool same;
    PyObject *whole;
    int rv;

    if (value == Py_None) { /* NumPy would convert it to NaN */
        (void)PyErr_Format(PyExc_TypeError, "variable %R: None is no value", self->name);
        return -1;
    }
    if (read_converted(self, value, initial, ret_array) != 0)
        return -1;
    same = ret_array->rank == self->rank &&
           memcmp(ret_array->dims, self->dims, self->rank * sizeof self->dims[0]) == 0;
    if (same)
        return 0;
    whole = ret_array->rank == 0 ? broadcast_to_variable(self, ret_array->keep) : NULL;
    if (whole == NULL && !PyErr_Occurred())
        refuse_array_shape(self, ret_array->keep);
    Py_CLEAR(ret_array->keep);
    if (whole == NULL)
        return -1;
    rv = mupy_array_of(whole, self->dtype, ret_array);
    Py_DECREF(whole);
    return rv;
}

int mupy_variable_array(const struct mupy_variable *self, PyObject *value,
                        struct mupy_array *ret_array)
{
    return read_array(self, value, false, ret_array);
}

/* ---- opening ---- */

static void run_variable_open(struct mupy_call *call)
{
    mu_variable *variable = NULL;

    call->rv = mu_variable_open(call->object, call->other, call->timeout_ms, &call->error,
                                &variable);
    call->made = variable;
    free(call->other);
}

static void drop_opened_variable(struct mupy_call *call)
{
    mu_variable_close(call->made);
}

/* A spec, and what it points to. */
struct whole_spec {
    mu_variable_spec spec; /* first */
    uint64_t dims[MU_TENSOR_RANK_MAX];
    mu_initializer initializer;
};

static mu_variable_spec *spec_of(const struct mupy_variable *self, const char *name,
                                 unsigned flags, const void *initial,
                                 const mu_initializer *initializer)
{
    struct whole_spec *whole = malloc(sizeof *whole);

    if (whole == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(whole->dims, self->dims, sizeof self->dims);
    whole->initializer = *initializer;
    whole->spec = (mu_variable_spec){
        .name = name,
        .dtype = self->dtype,
        .rank = self->rank,
        .dims = whole->dims,
        .shards = self->shards,
        .initial = initial,
        .flags = flags,
        .initializer = initializer->kind == 0 ? NULL : &whole->initializer,
    };
    return &whole->spec;
}

static int open_variable_object(struct mupy_variable *self, PyObject *node,
                                unsigned flags, const struct mupy_array *initial,
                                const mu_initializer *initializer, int64_t timeout_ms)
{
    const char *name = PyUnicode_AsUTF8AndSize(self->name, NULL);
    mu_variable_spec *spec =
        name == NULL ? NULL
                     : spec_of(self, name, flags,
                               initial->keep == NULL ? NULL : initial->data, initializer);
    struct mupy_call *call = spec == NULL ? NULL : mupy_call_new(run_variable_open);
    int rv;

    if (call == NULL) {
        free(spec);
        return -1;
    }
    call->drop = drop_opened_variable;
    call->object = mupy_node_of(node);
    call->other = spec;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, node);
    mupy_call_keep(call, (PyObject *)self);
    if (initial->keep != NULL)
        mupy_call_keep(call, initial->keep);
    if (mupy_call_run(call) != 0)
        return -1;
    rv = call->rv;
    if (rv == 0)
        self->variable = call->made;
    else
        (void)mupy_raise(&call->error, NULL);
    mupy_call_free(call);
    return rv == 0 ? 0 : -1;
}

/* Determine dtype and shape from the arguments, or from the initial value. */
static int describe_variable(struct mupy_variable *self, PyObject *initial,
                             PyObject *shape, PyObject *dtype,
                             struct mupy_array *ret_array)
{
    ret_array->keep = NULL;
    if (dtype != Py_None && (self->dtype = mupy_dtype_of(dtype)) < 0)
        return -1;
    if (initial != Py_None &&
        (dtype == Py_None ? mupy_array_of(initial, MU_DTYPE_NONE, ret_array)
                          : read_converted(self, initial, true, ret_array)) != 0)
        return -1;
    if (dtype == Py_None)
        self->dtype = initial == Py_None ? MU_F32 : ret_array->dtype;
    if (shape != Py_None && mupy_shape_of(shape, self->dims, &self->rank) != 0)
        return -1;
    if (initial != Py_None && shape == Py_None) {
        self->rank = ret_array->rank;
        memcpy(self->dims, ret_array->dims, sizeof self->dims);
    }
    if (initial == Py_None && shape == Py_None) {
        PyErr_SetString(PyExc_TypeError, "a variable has an initial value or a shape");
        return -1;
    }
    if (initial == Py_None || shape == Py_None)
        return 0;
    Py_CLEAR(ret_array->keep);
    return read_array(self, initial, true, ret_array);
}

static int variable_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node",  "name",    "initial_value", "shape",
                            "dtype", "shards",  "existing",      "recreate",
                            "same",  "timeout", "initializer",   NULL};
    struct mupy_variable *self = as_variable(object);
    PyObject *node;
    PyObject *name;
    PyObject *initial = Py_None;
    PyObject *shape = Py_None;
    PyObject *dtype = Py_None;
    PyObject *timeout = NULL;
    unsigned shards = 0;
    int existing = 0;
    int recreate = 0;
    int same = 0;
    struct mupy_array array = {NULL, NULL, 0, 0, {0}, 0};
    PyObject *parameters = Py_None;
    mu_initializer initializer;
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OU|OOOIpppOO:Variable", names, &node,
                                     &name, &initial, &shape, &dtype, &shards, &existing,
                                     &recreate, &same, &timeout, &parameters) ||
        mupy_initializer_of(parameters, &initializer) != 0 ||
        mupy_timeout(timeout, &timeout_ms) != 0 || mupy_node_of(node) == NULL)
        return -1;
    if (self->variable != NULL) {
        (void)mupy_fail(-MU_EEXISTS, "the variable is open already");
        return -1;
    }
    self->shards = shards;
    self->same = same != 0;
    Py_XDECREF(self->name);
    Py_XDECREF(self->node);
    self->name = name;
    self->node = node;
    Py_INCREF(name);
    Py_INCREF(node);
    rv = describe_variable(self, initial, shape, dtype, &array);
    if (rv == 0)
        rv = open_variable_object(self, node,
                                  (existing ? MU_VARIABLE_EXISTING : 0u) |
                                      (recreate ? MU_VARIABLE_RECREATE : 0u) |
                                      (same ? MU_VARIABLE_SAME : 0u),
                                  &array, &initializer, timeout_ms);
    Py_XDECREF(array.keep);
    return rv;
}

static PyObject *variable_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    __atomic_store_n(&as_variable(object)->closed, true, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

static int variable_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(as_variable(object)->node);
    return 0;
}

static void variable_dealloc(PyObject *object)
{
    struct mupy_variable *self = as_variable(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    mu_variable_close(self->variable);
    Py_CLEAR(self->name);
    Py_CLEAR(self->node);
    release(object);
    Py_DECREF(type);
}

/* ---- content ---- */

static void run_version(struct mupy_call *call)
{
    call->rv =
        mu_variable_version(call->object, call->timeout_ms, &call->error, &call->number);
}

static PyObject *array_protocol(PyObject *object, PyObject *args, PyObject *kwargs)
{
    PyObject *none = PyTuple_New(0);
    PyObject *array = none == NULL ? NULL : mupy_variable_read(object, none, NULL);
    PyObject *dtype = NULL;
    PyObject *converted;

    (void)kwargs;
    Py_XDECREF(none);
    if (array == NULL || !PyArg_ParseTuple(args, "|O", &dtype) || dtype == NULL ||
        dtype == Py_None)
        return array;
    converted = PyObject_CallMethod(array, "astype", "O", dtype);
    Py_DECREF(array);
    return converted;
}

static PyObject *variable_version(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *timeout = NULL;
    PyObject *result = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:version", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run_version);
    if (call == NULL)
        return NULL;
    call->object = self->variable;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        result = PyLong_FromUnsignedLongLong(call->number);
    mupy_call_free(call);
    return result;
}

/* ---- attributes ---- */

static PyObject *get_name(PyObject *object, void *closure)
{
    (void)closure;
    Py_INCREF(as_variable(object)->name);
    return as_variable(object)->name;
}

static PyObject *get_shape(PyObject *object, void *closure)
{
    (void)closure;
    return shape_of(as_variable(object));
}

static PyObject *get_dtype(PyObject *object, void *closure)
{
    static PyObject *make;

    (void)closure;
    if (mupy_import(&make, "muster._variable.dtypes", "dtype_of") == NULL)
        return NULL;
    return PyObject_CallFunction(make, "s", mu_dtype_name(as_variable(object)->dtype));
}

static PyObject *get_nbytes(PyObject *object, void *closure)
{
    struct mupy_variable *self = mupy_variable_of(object);

    (void)closure;
    return self == NULL ? NULL : PyLong_FromSize_t(mu_variable_bytes(self->variable));
}

static PyObject *get_shards(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(as_variable(object)->shards);
}

static PyObject *get_variable_node(PyObject *object, void *closure)
{
    (void)closure;
    Py_INCREF(as_variable(object)->node);
    return as_variable(object)->node;
}

static PyObject *get_same(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(as_variable(object)->same);
}

/* __reduce__: unpickling opens the variable on the run's node. */
static PyObject *variable_reduce(PyObject *object, PyObject *unused)
{
    static PyObject *open_again;
    struct mupy_variable *self = as_variable(object);
    PyObject *shape;

    (void)unused;
    if (mupy_import(&open_again, "muster._worker", "open_variable") == NULL)
        return NULL;
    shape = shape_of(self);
    if (shape == NULL)
        return NULL;
    return Py_BuildValue("O(OsNO)", open_again, self->name, mu_dtype_name(self->dtype),
                         shape, self->same ? Py_True : Py_False);
}

static PyObject *variable_repr(PyObject *object)
{
    struct mupy_variable *self = as_variable(object);
    PyObject *shape = self->name == NULL ? NULL : shape_of(self);
    PyObject *text;

    if (shape == NULL)
        return PyUnicode_FromString("<muster.Variable: not open>");
    text = PyUnicode_FromFormat("<muster.Variable %R shape=%R dtype=%s>", self->name,
                                shape, mu_dtype_name(self->dtype));
    Py_DECREF(shape);
    return text;
}

static PyMethodDef variable_methods[] = {
    {"read", MUPY_METHOD(mupy_variable_read), METH_VARARGS | METH_KEYWORDS,
     "read(timeout=None, max_age=None, out=None)\n--\n\nThe whole variable, as a new "
     "array, or in `out`. With max_age it may be what\nwas read with one at most so "
     "many seconds ago, but not from before\na write of this handle."},
    {"numpy", MUPY_METHOD(mupy_variable_read), METH_VARARGS | METH_KEYWORDS,
     "numpy(timeout=None, max_age=None, out=None)\n--\n\nThe same as read()."},
    {"read_value", MUPY_METHOD(mupy_variable_read), METH_VARARGS | METH_KEYWORDS,
     "read_value(timeout=None, max_age=None, out=None)\n--\n\nThe same as read()."},
    {"__array__", MUPY_METHOD(array_protocol), METH_VARARGS | METH_KEYWORDS,
     "The same as read(), for numpy."},
    {"assign", MUPY_METHOD(mupy_variable_assign), METH_VARARGS | METH_KEYWORDS,
     "assign(value, timeout=None)\n--\n\nReplace the content. Immediately, also "
     "in a function: see Run.assign()."},
    {"assign_add", MUPY_METHOD(mupy_variable_assign_add), METH_VARARGS | METH_KEYWORDS,
     "assign_add(value, timeout=None)\n--\n\n"
     "Add element by element; a scalar is added to all. UnavailableError: a server "
     "was lost,\nand it is unknown whether it added. Immediately, also in a "
     "function: see Run.add()."},
    {"assign_sub", MUPY_METHOD(mupy_variable_assign_sub), METH_VARARGS | METH_KEYWORDS,
     "assign_sub(value, timeout=None)\n--\n\nSubtract, like assign_add()."},
    {"apply_gradient", MUPY_METHOD(mupy_variable_apply_gradient),
     METH_VARARGS | METH_KEYWORDS,
     "apply_gradient(gradient, rate, momentum=0.0, timeout=None)\n--\n\n"
     "On the servers: v = momentum * v + gradient; x = x - rate * v. With an "
     "optimizer of\nmuster.optimizers in place of the rate: by its rule. float32 "
     "and float64. Immediately,\nalso in a function: see Run.apply_gradient()."},
    {"version", MUPY_METHOD(variable_version), METH_VARARGS | METH_KEYWORDS,
     "version(timeout=None)\n--\n\nNumber of writes that were applied to it."},
    {"_read_into", mupy_variable_read_into, METH_VARARGS, NULL},
    {"_write", mupy_variable_write, METH_VARARGS, NULL},
    {"_read_rows", mupy_variable_read_rows, METH_VARARGS, NULL},
    {"_write_rows", mupy_variable_write_rows, METH_VARARGS, NULL},
    {"close", variable_close, METH_NOARGS,
     "close()\n--\n\nFree the handle; the variable stays on its servers."},
    {"__reduce__", variable_reduce, METH_NOARGS, "Opens it again, on a worker."},
    {NULL, NULL, 0, NULL},
};

int mupy_variable_init(PyObject *module)
{
    static PyGetSetDef getset[] = {
        {"name", get_name, NULL, "Its name.", NULL},
        {"shape", get_shape, NULL, "Its dimensions, a tuple.", NULL},
        {"dtype", get_dtype, NULL, "Its numpy.dtype.", NULL},
        {"nbytes", get_nbytes, NULL, "Bytes of the content.", NULL},
        {"node", get_variable_node, NULL, "The node that it is opened on.", NULL},
        {"shards", get_shards, NULL, "The requested number; 0: by its size.", NULL},
        {"same", get_same, NULL, "Whether it is for the content it was opened with.",
         NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, variable_init},
        {Py_tp_dealloc, variable_dealloc},
        {Py_tp_traverse, variable_traverse},
        {Py_tp_methods, variable_methods},
        {Py_tp_getset, getset},
        {Py_tp_repr, variable_repr},
        {Py_tp_doc, "Variable(node, name, initial_value=None, shape=None, dtype=None, "
                    "shards=0, existing=False, recreate=False, same=False, "
                    "timeout=None)\n--\n\n"
                    "A dense variable on the parameter servers, created unless one of "
                    "that name exists."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.BaseVariable", sizeof(struct mupy_variable), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

    mupy_variable_type = mupy_add_type(module, &spec);
    return mupy_variable_type == NULL ? -1 : mupy_initializers_init(module);
}
