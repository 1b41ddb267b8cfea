/* Tables read from checkpoints; muster/checkpoint.py has the class. */
#include "variables/variable.h"

#include "muster/table_reader.h"

#include <stdlib.h>

struct table_reader {
    PyObject_HEAD
    struct mupy_handle handle; /* of a mu_table_reader */
};

static struct table_reader *as_reader(PyObject *object)
{
    return (struct table_reader *)object;
}

static void close_reader_handle(void *reader)
{
    mu_table_reader_close(reader);
}

static mu_table_reader *begin_reader_use(PyObject *object)
{
    mu_table_reader *reader = mupy_handle_begin(&as_reader(object)->handle);

    if (reader == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the reader was closed");
    return reader;
}

/* BaseTableReader(paths, table) */
static int reader_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    mu_table_reader *reader = NULL;
    PyObject *list;
    const char *table;
    const char **paths;
    size_t count;
    mu_error error;
    int rv;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!s:BaseTableReader", &PyList_Type, &list, &table))
        return -1;
    if (mupy_handle_is_open(&as_reader(object)->handle)) {
        (void)mupy_fail(-MU_EEXISTS, "the reader is open already");
        return -1;
    }
    paths = mupy_texts_of(list);
    if (paths == NULL)
        return -1;
    count = (size_t)PyList_Size(list);
    Py_BEGIN_ALLOW_THREADS
    rv = mu_table_reader_open(paths, count, table, &error, &reader);
    Py_END_ALLOW_THREADS
    free(paths);
    if (rv == 0)
        mupy_handle_open(&as_reader(object)->handle, reader, close_reader_handle);
    else
        (void)mupy_raise(&error, NULL);
    return rv == 0 ? 0 : -1;
}

static PyObject *reader_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (mupy_handle_shut(&as_reader(object)->handle))
        mupy_handle_end(&as_reader(object)->handle);
    Py_RETURN_NONE;
}

static void reader_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(reader_close(object, NULL));
    release(object);
    Py_DECREF(type);
}

/* describe() -> (dim, rows, step) */
static PyObject *reader_describe(PyObject *object, PyObject *unused)
{
    const mu_table_reader *reader = begin_reader_use(object);
    PyObject *about;

    (void)unused;
    if (reader == NULL)
        return NULL;
    about = Py_BuildValue("IKK", mu_table_reader_dim(reader),
                          (unsigned long long)mu_table_reader_rows(reader),
                          (unsigned long long)mu_table_reader_step(reader));
    mupy_handle_end(&as_reader(object)->handle);
    return about;
}

static int look_up(const mu_table_reader *reader, const struct mupy_array *ids,
                   const struct mupy_array *rows)
{
    size_t count = ids->bytes / sizeof(uint64_t);
    mu_error error;
    int rv;

    if (rows->bytes != count * mu_table_reader_dim(reader) * sizeof(float)) {
        PyErr_SetString(PyExc_ValueError, "rows have another size than the ids' rows");
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    rv = mu_table_reader_lookup(reader, ids->data, count, (float *)(uintptr_t)rows->data,
                                &error);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        (void)mupy_raise(&error, NULL);
    return rv;
}

/* lookup_into(ids, rows): rows is an array that is written to. */
static PyObject *reader_lookup_into(PyObject *object, PyObject *args)
{
    const mu_table_reader *reader;
    struct mupy_array ids = {.keep = NULL};
    struct mupy_array rows = {.keep = NULL};
    PyObject *of_ids;
    PyObject *of_rows;
    int rv;

    if (!PyArg_ParseTuple(args, "OO:lookup_into", &of_ids, &of_rows))
        return NULL;
    reader = begin_reader_use(object);
    if (reader == NULL)
        return NULL;
    rv = mupy_array_of(of_ids, MU_U64, &ids);
    if (rv == 0)
        rv = mupy_array_of(of_rows, MU_F32, &rows);
    if (rv == 0)
        rv = look_up(reader, &ids, &rows);
    mupy_handle_end(&as_reader(object)->handle);
    Py_CLEAR(ids.keep);
    Py_CLEAR(rows.keep);
    if (rv != 0)
        return NULL;
    Py_RETURN_NONE;
}

int mupy_table_reader_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"describe", reader_describe, METH_NOARGS,
         "describe()\n--\n\nNumbers of a row, rows, and the last step."},
        {"lookup_into", reader_lookup_into, METH_VARARGS,
         "lookup_into(ids, rows)\n--\n\nRead the rows of ids into an array."},
        {"close", reader_close, METH_NOARGS, "close()\n--\n\nUnmap the files."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, reader_init},
        {Py_tp_dealloc, reader_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "BaseTableReader(paths, table)\n--\n\nA table in checkpoints."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.BaseTableReader",
                               sizeof(struct table_reader), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return mupy_add_type(module, &spec) == NULL ? -1 : 0;
}
