/* Lists, tuples and dicts of remote values: replaces these by their results. */
#include "extension.h"

/* Collects the remote values of lists, tuples and dicts (of exactly these types), at any
 * depth; 0, or -1 with an exception. */
static int collect_remote_values(PyObject *structure, PyObject *found, int depth);

static int collect_items(PyObject *items, PyObject *found, int depth)
{
    bool is_list = PyList_Check(items);
    Py_ssize_t count = is_list ? PyList_Size(items) : PyTuple_Size(items);

    if (depth > 200) {
        PyErr_SetString(PyExc_RecursionError, "a structure to fetch is nested more than "
                                              "200 deep, or contains itself");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (collect_remote_values(is_list ? PyList_GetItem(items, i)
                                          : PyTuple_GetItem(items, i),
                                  found, depth + 1) != 0)
            return -1;
    return 0;
}

static int collect_values(PyObject *dict, PyObject *found, int depth)
{
    PyObject *key;
    PyObject *item;
    Py_ssize_t at = 0;

    while (PyDict_Next(dict, &at, &key, &item))
        if (collect_remote_values(item, found, depth + 1) != 0)
            return -1;
    return 0;
}

static int collect_remote_values(PyObject *structure, PyObject *found, int depth)
{
    bool is_dict = PyDict_Check(structure);
    PyObject *items;
    int rv = -1;

    if (Py_TYPE(structure) == mupy_remote_value_type)
        return PyList_Append(found, structure);
    if (!is_dict && !PyList_Check(structure) && !PyTuple_Check(structure))
        return 0;
    items = mupy_snapshot(structure);
    if (items != NULL)
        rv = is_dict ? collect_values(items, found, depth)
                     : collect_items(items, found, depth);
    Py_XDECREF(items);
    return rv;
}

static PyObject *resolve_structure(PyObject *structure);

/* Iterates over a copy, which other code cannot change meanwhile. */
static PyObject *resolve_list_items(PyObject *structure)
{
    PyObject *list = PyList_GetSlice(structure, 0, PY_SSIZE_T_MAX);
    Py_ssize_t count = list == NULL ? 0 : PyList_Size(list);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = resolve_structure(PyList_GetItem(list, i));

        if (item == NULL || PyList_SetItem(list, i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A named tuple is constructed by its class. */
static PyObject *resolve_tuple_items(PyObject *structure)
{
    Py_ssize_t count = PyTuple_Size(structure);
    PyObject *tuple = PyTuple_New(count);
    PyObject *made;

    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = resolve_structure(PyTuple_GetItem(structure, i));

        if (item == NULL || PyTuple_SetItem(tuple, i, item) != 0)
            Py_CLEAR(tuple);
    }
    if (tuple == NULL || Py_TYPE(structure) == &PyTuple_Type)
        return tuple;
    if (PyObject_HasAttrString(structure, "_fields"))
        made = PyObject_CallObject((PyObject *)Py_TYPE(structure), tuple);
    else
        made = PyObject_CallFunctionObjArgs((PyObject *)Py_TYPE(structure), tuple, NULL);
    Py_DECREF(tuple);
    return made;
}

static PyObject *resolve_dict_items(PyObject *structure)
{
    PyObject *items = PyDict_Copy(structure);
    PyObject *dict = PyDict_New();
    PyObject *key;
    PyObject *item;
    Py_ssize_t at = 0;

    while (items != NULL && dict != NULL && PyDict_Next(items, &at, &key, &item)) {
        PyObject *value = resolve_structure(item);

        if (value == NULL || PyDict_SetItem(dict, key, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    if (items == NULL)
        Py_CLEAR(dict);
    Py_XDECREF(items);
    return dict;
}

static PyObject *resolve_structure(PyObject *structure)
{
    if (Py_TYPE(structure) == mupy_remote_value_type)
        return mupy_remote_value_take(structure);
    if (PyList_Check(structure))
        return resolve_list_items(structure);
    if (PyTuple_Check(structure))
        return resolve_tuple_items(structure);
    if (PyDict_Check(structure))
        return resolve_dict_items(structure);
    Py_INCREF(structure);
    return structure;
}

static int wait_for_found(PyObject *found, int64_t timeout_ms)
{
    Py_ssize_t count = PyList_Size(found);
    PyObject **values = PyMem_Malloc((size_t)(count + 1) * sizeof *values);
    PyObject *late = NULL;
    int rv;

    if (values == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = PyList_GetItem(found, i);
    rv = mupy_remote_values_wait(values, (size_t)count, timeout_ms, &late);
    PyMem_Free(values);
    if (rv == 1) {
        PyObject *result = mupy_remote_value_late(late, timeout_ms);

        Py_XDECREF(result);
        return result == NULL ? -1 : 0;
    }
    return rv;
}

PyObject *mupy_fetch(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"val", "timeout", NULL};
    PyObject *structure;
    PyObject *timeout = NULL;
    PyObject *found;
    int64_t timeout_ms;
    int rv = -1;

    (void)object;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:fetch", names, &structure,
                                     &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    found = PyList_New(0);
    if (found != NULL && collect_remote_values(structure, found, 0) == 0)
        rv = wait_for_found(found, timeout_ms);
    Py_XDECREF(found);
    return rv == 0 ? resolve_structure(structure) : NULL;
}
