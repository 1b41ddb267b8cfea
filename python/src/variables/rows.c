/* Rows of variables: what muster._variable.rows is made of, and the writes of runs. */
#include "variables/variable.h"

#include <string.h>

/* Rows that are read or written, and the list's owner; NULL: a range. */
struct row_numbers {
    mu_rows rows;
    PyObject *keep;
};

static int read_row_numbers(PyObject *numbers, uint64_t first, uint64_t count,
                            struct row_numbers *ret_numbers)
{
    struct mupy_array array;

    *ret_numbers = (struct row_numbers){.rows = {.first = first, .count = count}};
    if (numbers == Py_None)
        return 0;
    if (mupy_array_of(numbers, MU_I64, &array) != 0)
        return -1;
    ret_numbers->rows.list = array.data;
    ret_numbers->keep = array.keep;
    if (array.rank == 1 && array.dims[0] == count)
        return 0;
    Py_CLEAR(ret_numbers->keep);
    PyErr_SetString(PyExc_ValueError, "as many numbers as rows were expected");
    return -1;
}

/* Takes the reference in `array`. */
static struct mupy_call *new_row_call(struct mupy_variable *self, int operation,
                                      struct mupy_array *array,
                                      const struct row_numbers *numbers,
                                      PyObject *timeout)
{
    struct mupy_call *call = mupy_variable_call(self, operation, array, &numbers->rows,
                                                numbers->keep, timeout);

    Py_DECREF(array->keep);
    return call;
}

/* An array for rows of a variable: `out`, or a new one. */
static PyObject *new_row_array(const struct mupy_variable *self, uint64_t count,
                               PyObject *out)
{
    uint64_t dims[MU_TENSOR_RANK_MAX];

    if (self->rank == 0) {
        PyErr_Format(PyExc_ValueError, "variable %R is a number, and has no rows",
                     self->name);
        return NULL;
    }
    memcpy(dims, self->dims, sizeof dims);
    dims[0] = count;
    return mupy_variable_target(self, dims, out);
}

PyObject *mupy_variable_read_rows(PyObject *object, PyObject *args)
{
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *list;
    PyObject *timeout = NULL;
    PyObject *out = Py_None;
    PyObject *tell = NULL;
    struct row_numbers numbers;
    struct mupy_array array;
    unsigned long long first;
    unsigned long long count;
    struct mupy_call *call;
    PyObject *made;
    PyObject *result;

    if (self == NULL ||
        !PyArg_ParseTuple(args, "KKO|OOO:_read_rows", &first, &count, &list, &timeout,
                          &out, &tell) ||
        (made = new_row_array(self, count, out)) == NULL)
        return NULL;
    if (read_row_numbers(list, first, count, &numbers) != 0) {
        Py_DECREF(made);
        return NULL;
    }
    call = mupy_array_of(made, MU_DTYPE_NONE, &array) != 0
               ? NULL
               : new_row_call(self, MU_VARIABLE_READ, &array, &numbers, timeout);
    Py_XDECREF(numbers.keep);
    result = call == NULL ? NULL : mupy_call_end(call, tell);
    if (result == NULL)
        Py_CLEAR(made);
    Py_XDECREF(result);
    return made == NULL ? NULL : mupy_variable_given(made, out);
}

/* How rows are written: muster._variable.rows has these numbers, too. The others are
 * those of enum mu_row_update. */
enum { ROWS_ASSIGN = -1, ROWS_ADD = 0 };

static int operation_of_rows(int how)
{
    if (how == ROWS_ASSIGN)
        return MU_VARIABLE_ASSIGN;
    return how == ROWS_ADD ? MU_VARIABLE_ADD : MU_VARIABLE_UPDATE;
}

PyObject *mupy_variable_write_rows(PyObject *object, PyObject *args)
{
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *list;
    PyObject *values;
    PyObject *timeout = NULL;
    PyObject *tell = NULL;
    struct row_numbers numbers;
    struct mupy_array array;
    unsigned long long first;
    struct mupy_call *call;
    int how;

    if (self == NULL ||
        !PyArg_ParseTuple(args, "iKOO|OO:_write_rows", &how, &first, &list, &values,
                          &timeout, &tell) ||
        mupy_array_of(values, self->dtype, &array) != 0)
        return NULL;
    if (read_row_numbers(list, first, array.rank == 0 ? 0 : array.dims[0], &numbers) !=
        0) {
        Py_DECREF(array.keep);
        return NULL;
    }
    call = new_row_call(self, operation_of_rows(how), &array, &numbers, timeout);
    Py_XDECREF(numbers.keep);
    if (call == NULL)
        return NULL;
    mupy_asked_of(call)->request.update = how;
    return mupy_call_end(call, tell);
}

/* ---- Writes of runs ---- */

typedef int (*write_rows_fn)(mu_run *run, mu_variable *variable, const mu_rows *rows,
                             const void *data, size_t bytes);

/* Of one variable. -1: with an exception. */
static int write_prepared(mu_run *run, const struct mupy_variable *variable,
                          PyObject *where, PyObject *values, write_rows_fn write)
{
    bool is_range = PyLong_Check(where);
    uint64_t first = is_range ? PyLong_AsUnsignedLongLong(where) : 0;
    struct row_numbers numbers;
    struct mupy_array array;
    int rv = -1;

    if (PyErr_Occurred() || mupy_array_of(values, variable->dtype, &array) != 0)
        return -1;
    if (read_row_numbers(is_range ? Py_None : where, first,
                         array.rank == 0 ? 0 : array.dims[0], &numbers) == 0) {
        rv = write(run, variable->variable, &numbers.rows, array.data, array.bytes);
        Py_XDECREF(numbers.keep);
        rv = mupy_run_written(rv, variable) ? 0 : -1;
    }
    Py_DECREF(array.keep);
    return rv;
}

/* (variable, where, values=None): `prepare` is a function of muster._variable.rows. */
static PyObject *write_run_rows(PyObject *object, PyObject *args, PyObject *prepare,
                                write_rows_fn write)
{
    mu_run *run = mupy_run_of(object);
    struct mupy_variable *variable;
    PyObject *target;
    PyObject *where;
    PyObject *values = Py_None;
    PyObject *prepared;
    int rv;

    if (run == NULL || prepare == NULL ||
        !PyArg_ParseTuple(args, "OO|O", &target, &where, &values) ||
        (variable = mupy_variable_of(target)) == NULL)
        return NULL;
    prepared = PyObject_CallFunctionObjArgs(prepare, target, where, values, NULL);
    if (prepared == NULL)
        return NULL;
    rv = write_prepared(run, variable, PyTuple_GetItem(prepared, 0),
                        PyTuple_GetItem(prepared, 1), write);
    Py_DECREF(prepared);
    if (rv != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *prepare_list(void)
{
    static PyObject *listed;

    return mupy_import(&listed, "muster._variable.rows", "listed");
}

static PyObject *prepare_range(void)
{
    static PyObject *ranged;

    return mupy_import(&ranged, "muster._variable.rows", "ranged");
}

static PyObject *run_scatter_add(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_list(), mu_run_add_rows);
}

static PyObject *run_scatter_update(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_list(), mu_run_assign_rows);
}

static int write_min(mu_run *run, mu_variable *variable, const mu_rows *rows,
                     const void *data, size_t bytes)
{
    return mu_run_update_rows(run, variable, MU_ROWS_MIN, rows, data, bytes);
}

static int write_max(mu_run *run, mu_variable *variable, const mu_rows *rows,
                     const void *data, size_t bytes)
{
    return mu_run_update_rows(run, variable, MU_ROWS_MAX, rows, data, bytes);
}

static int write_mul(mu_run *run, mu_variable *variable, const mu_rows *rows,
                     const void *data, size_t bytes)
{
    return mu_run_update_rows(run, variable, MU_ROWS_MUL, rows, data, bytes);
}

static int write_div(mu_run *run, mu_variable *variable, const mu_rows *rows,
                     const void *data, size_t bytes)
{
    return mu_run_update_rows(run, variable, MU_ROWS_DIV, rows, data, bytes);
}

static PyObject *run_scatter_min(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_list(), write_min);
}

static PyObject *run_scatter_max(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_list(), write_max);
}

static PyObject *run_scatter_mul(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_list(), write_mul);
}

static PyObject *run_scatter_div(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_list(), write_div);
}

static PyObject *run_add_row_range(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_range(), mu_run_add_rows);
}

static PyObject *run_assign_row_range(PyObject *object, PyObject *args)
{
    return write_run_rows(object, args, prepare_range(), mu_run_assign_rows);
}

int mupy_run_add_row_methods(PyTypeObject *type)
{
    static PyMethodDef methods[] = {
        {"scatter_add", run_scatter_add, METH_VARARGS,
         "scatter_add(variable, sparse_delta, values=None)\n--\n\n"
         "Add to rows of a variable (see Variable.scatter_add), like add()."},
        {"scatter_update", run_scatter_update, METH_VARARGS,
         "scatter_update(variable, sparse_delta, values=None)\n--\n\n"
         "Replace rows of a variable, like add()."},
        {"scatter_min", run_scatter_min, METH_VARARGS,
         "scatter_min(variable, sparse_delta, values=None)\n--\n\n"
         "Lower rows of a variable to the smaller of both, like add()."},
        {"scatter_max", run_scatter_max, METH_VARARGS,
         "scatter_max(variable, sparse_delta, values=None)\n--\n\n"
         "Raise rows of a variable to the larger of both, like add()."},
        {"scatter_mul", run_scatter_mul, METH_VARARGS,
         "scatter_mul(variable, sparse_delta, values=None)\n--\n\n"
         "Multiply rows of a variable, like add()."},
        {"scatter_div", run_scatter_div, METH_VARARGS,
         "scatter_div(variable, sparse_delta, values=None)\n--\n\n"
         "Divide rows of a variable, like add()."},
        {"add_rows", run_add_row_range, METH_VARARGS,
         "add_rows(variable, first, values)\n--\n\n"
         "Add to the rows from `first` on, like add()."},
        {"assign_rows", run_assign_row_range, METH_VARARGS,
         "assign_rows(variable, first, values)\n--\n\n"
         "Replace the rows from `first` on, like add()."},
    };

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        PyObject *method = PyDescr_NewMethod(type, &methods[i]);
        int rv = method == NULL ? -1
                                : PyObject_SetAttrString((PyObject *)type,
                                                         methods[i].ml_name, method);

        Py_XDECREF(method);
        if (rv != 0)
            return -1;
    }
    return 0;
}
