/* Whether a function is still what it was when it was sent to the workers: a list of
 * checks that muster._content has made for it, each cheap. None of the program's Python
 * code is run. */
#include "extension.h"

#include <dlfcn.h>
#include <string.h>

enum kind {
    CHECK_FUNCTION,  /* a function has what the tuple `expected` has: its code,
                        defaults, defaults of keywords and __dict__ */
    CHECK_CELL,      /* a cell has this content; expected NULL: it is empty */
    CHECK_ATTRIBUTE, /* `holder` has this attribute; expected NULL: it has not */
    CHECK_ITEM,      /* the dict `holder` has this item; expected NULL: it has not */
    CHECK_LIST,      /* the list has the items of the tuple `expected` */
    CHECK_DICT,      /* the dict has the keys and values of the tuple `expected` */
    CHECK_SET,       /* the set has the items of the tuple `expected` */
    CHECK_ARRAY,     /* the array, at the address and of the type that the dict
                        `expected` tells, has these bytes */
    CHECK_KINDS
};

struct check {
    enum kind kind;
    bool is_weak;     /* `expected` is a weak reference to what is expected */
    PyObject *holder; /* of an array: a weak reference */
    PyObject *key;
    PyObject *expected;
    uint64_t hash; /* of the bytes of an array */
};

struct content {
    PyObject_HEAD
    Py_ssize_t count;
    struct check *checks;
};

enum { FUNCTION_PARTS = 4 };

static const char *const part_names[FUNCTION_PARTS] = {"__code__", "__defaults__",
                                                       "__kwdefaults__", "__dict__"};
static PyTypeObject *content_type;
static PyObject *function_type; /* types.FunctionType, types.CellType */
static PyObject *cell_type;
static PyObject *interface_name;
static PyObject *contents_name;
static PyObject *part_keys[FUNCTION_PARTS];

/* Of every CPython since 3.0, but not in its stable ABI: found when the module is loaded.
 * NULL: the attribute is read instead, which takes ten times as long. */
static PyObject *(*get_part[FUNCTION_PARTS - 1])(PyObject *function); /* borrowed */
static PyObject *(*get_dict)(PyObject *object, void *context);
static PyObject *(*get_cell)(PyObject *cell);

static struct content *as_content(PyObject *self)
{
    return (struct content *)self;
}

/* ---- arrays ---- */

static uint64_t rotate_hash(uint64_t number)
{
    return number << 31 | number >> 33;
}

/* A hash of bytes that any change of one word changes; not one against an attacker. */
static uint64_t hash_bytes(const unsigned char *bytes, size_t size)
{
    const uint64_t factor = 0x9e3779b97f4a7c15U;
    uint64_t lanes[4] = {size, 1, 2, 3};
    uint64_t words[4] = {0};
    size_t at = 0;

    for (; at + sizeof words <= size; at += sizeof words) {
        memcpy(words, bytes + at, sizeof words);
        for (int i = 0; i < 4; i++)
            lanes[i] = rotate_hash((lanes[i] ^ words[i]) * factor);
    }
    memset(words, 0, sizeof words);
    if (size > at)
        memcpy(words, bytes + at, size - at);
    for (int i = 0; i < 4; i++)
        lanes[i] = rotate_hash((lanes[i] ^ words[i]) * factor);
    for (int i = 1; i < 4; i++)
        lanes[0] = rotate_hash((lanes[0] ^ lanes[i]) * factor);
    return lanes[0];
}

/* The hash of an array without gaps, with this __array_interface__. -1 with an
 * exception. */
static int hash_array(PyObject *array, PyObject *interface, uint64_t *ret_hash)
{
    PyObject *data = PyDict_GetItemString(interface, "data");
    PyObject *size = PyObject_GetAttrString(array, "nbytes");
    size_t bytes = size == NULL ? 0 : PyLong_AsSize_t(size);
    const void *address = data == NULL || !PyTuple_Check(data)
                              ? NULL
                              : PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));

    Py_XDECREF(size);
    if (PyErr_Occurred())
        return -1;
    *ret_hash = hash_bytes(address, address == NULL ? 0 : bytes);
    return 0;
}

/* 1: the array is the same; 0: it is not; -1 with an exception. */
static int array_holds(const struct check *check)
{
    PyObject *array = PyObject_CallFunctionObjArgs(check->holder, NULL);
    PyObject *interface = NULL;
    uint64_t hash = 0;
    int same = -1;

    if (array == Py_None)
        same = 0;
    else if (array != NULL)
        interface = PyObject_GetAttr(array, interface_name);
    if (interface != NULL)
        same = PyObject_RichCompareBool(interface, check->expected, Py_EQ);
    if (same == 1 && PyDict_Check(interface))
        same = hash_array(array, interface, &hash) != 0 ? -1 : hash == check->hash;
    Py_XDECREF(interface);
    Py_XDECREF(array);
    return same;
}

/* ---- the other checks ---- */

/* Takes the reference to `value`, which may be NULL. */
static int is_expected_value(const struct check *check, PyObject *value)
{
    PyObject *expected = check->expected;
    bool same;

    if (check->is_weak) {
        expected = PyObject_CallFunctionObjArgs(expected, NULL);
        Py_XDECREF(expected); /* compared by its address alone */
    }
    same = value == expected && !(check->is_weak && expected == Py_None);
    Py_XDECREF(value);
    return same;
}

/* A part of a function: a new reference, or NULL. */
static PyObject *get_function_part(PyObject *function, int part)
{
    PyObject *value;

    if (part < FUNCTION_PARTS - 1 && get_part[part] != NULL) {
        value = get_part[part](function);
        value = value == NULL ? Py_None : value;
        Py_INCREF(value);
        return value;
    }
    if (part == FUNCTION_PARTS - 1 && get_dict != NULL)
        return get_dict(function, NULL);
    return PyObject_GenericGetAttr(function, part_keys[part]);
}

static int function_holds(const struct check *check)
{
    int same = 1;

    for (int i = 0; same && i < FUNCTION_PARTS; i++) {
        PyObject *part = get_function_part(check->holder, i);

        same = part == PyTuple_GetItem(check->expected, i);
        Py_XDECREF(part);
    }
    return PyErr_Occurred() ? -1 : same;
}

static int cell_holds(const struct check *check)
{
    PyObject *value = get_cell != NULL
                          ? get_cell(check->holder)
                          : PyObject_GenericGetAttr(check->holder, contents_name);

    if (value == NULL)
        PyErr_Clear(); /* it is empty */
    return is_expected_value(check, value);
}

static int attribute_holds(const struct check *check)
{
    PyObject *value = PyObject_GenericGetAttr(check->holder, check->key);

    if (value == NULL)
        PyErr_Clear();
    return is_expected_value(check, value);
}

static int item_holds(const struct check *check)
{
    PyObject *value = mupy_dict_find(check->holder, check->key);

    if (value == NULL && PyErr_Occurred())
        return -1;
    return is_expected_value(check, value);
}

static int list_holds(PyObject *list, PyObject *expected)
{
    Py_ssize_t count = PyTuple_Size(expected);

    if (PyList_Size(list) != count)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyList_GetItem(list, i) != PyTuple_GetItem(expected, i))
            return 0;
    return 1;
}

static int dict_holds(PyObject *dict, PyObject *expected)
{
    Py_ssize_t count = PyTuple_Size(expected) / 2;
    Py_ssize_t at = 0;
    PyObject *key;
    PyObject *value;

    if (PyDict_Size(dict) != count)
        return 0;
    for (Py_ssize_t i = 0; i < count && PyDict_Next(dict, &at, &key, &value); i++)
        if (key != PyTuple_GetItem(expected, 2 * i) ||
            value != PyTuple_GetItem(expected, 2 * i + 1))
            return 0;
    return 1;
}

/* An unchanged set has its items in the same order. */
static int set_holds(PyObject *set, PyObject *expected)
{
    Py_ssize_t count = PyTuple_Size(expected), i = 0;
    PyObject *items, *item;

    if (PySet_Size(set) != count)
        return 0;
    items = PyObject_GetIter(set);
    if (items == NULL)
        return -1;
    while (i < count && (item = PyIter_Next(items)) != NULL) {
        Py_DECREF(item); /* only compared as an address, which the set owns */
        if (item != PyTuple_GetItem(expected, i))
            break;
        i++;
    }
    Py_DECREF(items);
    if (PyErr_Occurred() != NULL)
        return -1;
    return i == count;
}

static int container_holds(const struct check *check)
{
    PyObject *now = mupy_snapshot(check->holder);
    int same = -1;

    if (now != NULL && check->kind == CHECK_LIST)
        same = list_holds(now, check->expected);
    else if (now != NULL)
        same = dict_holds(now, check->expected);
    Py_XDECREF(now);
    return same;
}

static int check_holds(const struct check *check)
{
    switch (check->kind) {
    case CHECK_FUNCTION:
        return function_holds(check);
    case CHECK_CELL:
        return cell_holds(check);
    case CHECK_ATTRIBUTE:
        return attribute_holds(check);
    case CHECK_ITEM:
        return item_holds(check);
    case CHECK_SET:
        return set_holds(check->holder, check->expected);
    case CHECK_ARRAY:
        return array_holds(check);
    default:
        return container_holds(check);
    }
}

bool mupy_content_holds(PyObject *object)
{
    const struct content *self = as_content(object);

    for (Py_ssize_t i = 0; i < self->count; i++) {
        int same = check_holds(&self->checks[i]);

        if (same < 0)
            PyErr_Clear(); /* what cannot be looked at has changed */
        if (same != 1)
            return false;
    }
    return true;
}

/* ---- the object ---- */

static bool is_valid_check(const struct check *check)
{
    switch (check->kind) {
    case CHECK_FUNCTION:
        return (PyObject *)Py_TYPE(check->holder) == function_type &&
               check->expected != NULL && PyTuple_Check(check->expected) &&
               PyTuple_Size(check->expected) == FUNCTION_PARTS;
    case CHECK_CELL:
        return (PyObject *)Py_TYPE(check->holder) == cell_type;
    case CHECK_ATTRIBUTE:
        return PyUnicode_Check(check->key);
    case CHECK_ITEM:
        return PyDict_Check(check->holder) && PyUnicode_Check(check->key);
    case CHECK_LIST:
        return PyList_Check(check->holder) && check->expected != NULL &&
               PyTuple_Check(check->expected);
    case CHECK_DICT:
        return PyDict_Check(check->holder) && check->expected != NULL &&
               PyTuple_Check(check->expected);
    case CHECK_SET:
        return PyAnySet_Check(check->holder) && check->expected != NULL &&
               PyTuple_Check(check->expected);
    default:
        return check->kind == CHECK_ARRAY && check->expected != NULL &&
               PyDict_Check(check->expected);
    }
}

static PyObject *incref_check_part(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}

/* A check from (kind, holder, key, (expected,) or (), is_weak). -1 with an exception. */
static int read_content_check(PyObject *row, struct check *check)
{
    PyObject *expected;
    PyObject *array;
    int kind;
    int is_weak;
    int rv = 0;

    if (!PyArg_ParseTuple(row, "iOOO!p", &kind, &check->holder, &check->key,
                          &PyTuple_Type, &expected, &is_weak))
        return -1;
    check->kind = kind < 0 || kind >= CHECK_KINDS ? CHECK_KINDS : (enum kind)kind;
    check->is_weak = is_weak != 0;
    check->expected = PyTuple_Size(expected) == 0 ? NULL : PyTuple_GetItem(expected, 0);
    if (!is_valid_check(check)) {
        PyErr_Format(PyExc_TypeError, "%R is no check", row);
        return -1;
    }
    if (check->kind == CHECK_ARRAY) {
        array = PyObject_CallFunctionObjArgs(check->holder, NULL);
        rv = array == NULL ? -1 : hash_array(array, check->expected, &check->hash);
        Py_XDECREF(array);
    }
    return rv;
}

static int fill_checks(struct content *self, PyObject *rows)
{
    Py_ssize_t count = PyList_Size(rows);

    self->checks = PyMem_Calloc((size_t)count + 1, sizeof *self->checks);
    if (self->checks == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        struct check check = {0};

        if (read_content_check(PyList_GetItem(rows, i), &check) != 0)
            return -1;
        check.holder = incref_check_part(check.holder);
        check.key = incref_check_part(check.key);
        check.expected = incref_check_part(check.expected);
        self->checks[self->count++] = check;
    }
    return 0;
}

/* Content(checks) */
static PyObject *content_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *rows;
    struct content *self;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!:Content", &PyList_Type, &rows))
        return NULL;
    self = (struct content *)PyType_GenericAlloc(type, 0);
    if (self != NULL && fill_checks(self, rows) != 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int content_traverse(PyObject *object, visitproc visit, void *arg)
{
    const struct content *self = as_content(object);

    Py_VISIT(Py_TYPE(object));
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Py_VISIT(self->checks[i].holder);
        Py_VISIT(self->checks[i].key);
        Py_VISIT(self->checks[i].expected);
    }
    return 0;
}

static int content_clear(PyObject *object)
{
    struct content *self = as_content(object);
    Py_ssize_t count = self->count;
    struct check *checks = self->checks;

    self->count = 0;
    self->checks = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(checks[i].holder);
        Py_XDECREF(checks[i].key);
        Py_XDECREF(checks[i].expected);
    }
    PyMem_Free(checks);
    return 0;
}

static void content_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    (void)content_clear(object);
    release(object);
    Py_DECREF(type);
}

static PyObject *content_holds(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(mupy_content_holds(object));
}

static void find_functions(void)
{
    static const char *const names[FUNCTION_PARTS - 1] = {
        "PyFunction_GetCode", "PyFunction_GetDefaults", "PyFunction_GetKwDefaults"};

    for (int i = 0; i < FUNCTION_PARTS - 1; i++)
        *(void **)&get_part[i] = dlsym(RTLD_DEFAULT, names[i]);
    *(void **)&get_dict = dlsym(RTLD_DEFAULT, "PyObject_GenericGetDict");
    *(void **)&get_cell = dlsym(RTLD_DEFAULT, "PyCell_Get");
}

static int make_names(void)
{
    PyObject *types = PyImport_ImportModule("types");

    if (types == NULL)
        return -1;
    function_type = PyObject_GetAttrString(types, "FunctionType");
    cell_type = PyObject_GetAttrString(types, "CellType");
    Py_DECREF(types);
    for (int i = 0; i < FUNCTION_PARTS; i++)
        part_keys[i] = PyUnicode_InternFromString(part_names[i]);
    contents_name = PyUnicode_InternFromString("cell_contents");
    interface_name = PyUnicode_InternFromString("__array_interface__");
    return PyErr_Occurred() ? -1 : 0;
}

int mupy_content_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"holds", content_holds, METH_NOARGS, "Whether nothing has changed."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, content_new},
        {Py_tp_dealloc, content_dealloc},
        {Py_tp_traverse, content_traverse},
        {Py_tp_clear, content_clear},
        {Py_tp_methods, methods},
        {Py_tp_doc, "What a function consisted of when it was sent to workers."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Content", sizeof(struct content), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    find_functions();
    content_type = mupy_add_type(module, &spec);
    return content_type == NULL ? -1 : make_names();
}
