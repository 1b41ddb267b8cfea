/* Objects that several threads use at the same time, which on a free-threaded interpreter
 * the GIL does not serialize. */
#include "extension.h"

PyObject *mupy_keep_first(PyObject **cache, PyObject *made)
{
    PyObject *first = NULL;

    if (made == NULL || __atomic_compare_exchange_n(cache, &first, made, false,
                                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    Py_DECREF(made);
    return first;
}

PyObject *mupy_kept(PyObject **cache)
{
    return __atomic_load_n(cache, __ATOMIC_ACQUIRE);
}

PyObject *mupy_snapshot(PyObject *object)
{
#ifdef Py_GIL_DISABLED
    if (PyDict_Check(object))
        return PyDict_Copy(object);
    if (PyList_Check(object))
        return PyList_GetSlice(object, 0, PY_SSIZE_T_MAX);
#endif
    Py_INCREF(object);
    return object;
}

PyObject *mupy_dict_find(PyObject *dict, PyObject *key)
{
    PyObject *item = NULL;

#ifdef Py_GIL_DISABLED
    (void)PyDict_GetItemRef(dict, key, &item);
#else
    item = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(item);
#endif
    return item;
}

bool mupy_is_only_holder(PyObject *object, Py_ssize_t references)
{
#ifdef Py_GIL_DISABLED
    /* The reference count of another thread's object is two numbers that cannot be read
     * at once. */
    if (object->ob_tid != _Py_ThreadId())
        return false;
#endif
    return Py_REFCNT(object) == references;
}

/* ---- handles ---- */

void mupy_handle_open(struct mupy_handle *handle, void *object,
                      void (*close)(void *object))
{
    handle->object = object;
    handle->close = close;
    __atomic_store_n(&handle->uses, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&handle->is_open, true, __ATOMIC_RELEASE);
}

bool mupy_handle_is_open(const struct mupy_handle *handle)
{
    return __atomic_load_n(&handle->is_open, __ATOMIC_ACQUIRE);
}

void *mupy_handle_begin(struct mupy_handle *handle)
{
    unsigned uses = __atomic_load_n(&handle->uses, __ATOMIC_ACQUIRE);

    while (uses > 0 && mupy_handle_is_open(handle))
        if (__atomic_compare_exchange_n(&handle->uses, &uses, uses + 1, true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return handle->object;
    return NULL;
}

static bool is_last_use(struct mupy_handle *handle)
{
    return __atomic_fetch_sub(&handle->uses, 1, __ATOMIC_ACQ_REL) == 1;
}

void mupy_handle_end(struct mupy_handle *handle)
{
    if (!is_last_use(handle))
        return;
    Py_BEGIN_ALLOW_THREADS
    handle->close(handle->object);
    Py_END_ALLOW_THREADS
}

bool mupy_handle_shut(struct mupy_handle *handle)
{
    return __atomic_exchange_n(&handle->is_open, false, __ATOMIC_ACQ_REL);
}

void mupy_handle_drop(struct mupy_handle *handle)
{
    if (is_last_use(handle))
        handle->close(handle->object);
}
