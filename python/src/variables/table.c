/* Embedding tables; muster/table.py has the class. */
#include "variables/variable.h"

#include "services/services.h"

#include <string.h>

struct table {
    PyObject_HEAD
    struct mupy_handle handle; /* of a mu_table */
    unsigned dim;
};

static struct table *as_table(PyObject *object)
{
    return (struct table *)object;
}

static void close_table_handle(void *table)
{
    mu_table_close(table);
}

static PyTypeObject *table_type;

static mu_table *begin_table_use(PyObject *object)
{
    mu_table *table = mupy_handle_begin(&as_table(object)->handle);

    if (table == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the table was closed");
    return table;
}

mu_table *mupy_table_begin(PyObject *object)
{
    if (PyObject_TypeCheck(object, table_type))
        return begin_table_use(object);
    PyErr_Format(PyExc_TypeError, "%R is no table", object);
    return NULL;
}

void mupy_table_end(PyObject *object)
{
    mupy_handle_end(&as_table(object)->handle);
}

struct mupy_call *mupy_table_call(PyObject *object, PyObject *timeout,
                                  void (*run)(struct mupy_call *call))
{
    struct mupy_call *call;
    int64_t timeout_ms;
    mu_table *table;

    if (mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    table = begin_table_use(object);
    call = table == NULL ? NULL : mupy_call_new(run);
    if (call == NULL) {
        if (table != NULL)
            mupy_handle_end(&as_table(object)->handle);
        return NULL;
    }
    call->object = table;
    call->used = &as_table(object)->handle;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return call;
}

/* ---- opening ---- */

unsigned mupy_table_dim(PyObject *object)
{
    return as_table(object)->dim;
}

/* What an open needs while it runs. */
struct table_opening {
    mu_table_spec spec;
    mu_initializer initializer;
    mu_optimizer optimizer;
};

_Static_assert(sizeof(struct table_opening) <= sizeof((struct mupy_call *)NULL)->text,
               "an opening is in the text of its call");

static void run_table_open(struct mupy_call *call)
{
    struct table_opening opening;
    mu_table *table = NULL;

    memcpy(&opening, call->text, sizeof opening);
    opening.spec.initializer = &opening.initializer;
    opening.spec.optimizer = &opening.optimizer;
    call->rv = mu_table_open(call->object, &opening.spec, call->timeout_ms, &call->error,
                             &table);
    call->made = table;
}

static void drop_opened_table(struct mupy_call *call)
{
    mu_table_close(call->made);
}

static int run_opening(PyObject *object, struct mupy_call *call)
{
    int rv;

    if (mupy_call_run(call) != 0)
        return -1;
    rv = call->rv;
    if (rv == 0)
        mupy_handle_open(&as_table(object)->handle, call->made, close_table_handle);
    else
        (void)mupy_raise(&call->error, NULL);
    mupy_call_free(call);
    return rv == 0 ? 0 : -1;
}

static int table_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node",  "name",    "dim",      "initializer", "optimizer",
                            "flags", "timeout", "policies", NULL};
    struct table_opening opening = {.spec = {.name = NULL}};
    unsigned long long candidates = 0;
    unsigned long long ttl = 0;
    unsigned long long capacity = 0;
    PyObject *timeout = NULL;
    PyObject *initializer;
    PyObject *optimizer;
    PyObject *node;
    struct mupy_call *call;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OsIOOI|O(IKdKKii):BaseTable", names, &node, &opening.spec.name,
            &opening.spec.dim, &initializer, &optimizer, &opening.spec.flags, &timeout,
            &opening.spec.admit_after, &candidates, &opening.spec.admit_probability, &ttl,
            &capacity, &opening.spec.eviction, &opening.spec.dtype) ||
        mupy_initializer_of(initializer, &opening.initializer) != 0 ||
        mupy_optimizer(optimizer, 0, &opening.optimizer) != 0)
        return -1;
    if (mupy_handle_is_open(&as_table(object)->handle)) {
        (void)mupy_fail(-MU_EEXISTS, "the table is open already");
        return -1;
    }
    call = mupy_node_call(node, timeout, run_table_open);
    if (call == NULL)
        return -1;
    opening.spec.candidates = candidates;
    opening.spec.ttl = ttl;
    opening.spec.capacity = capacity;
    as_table(object)->dim = opening.spec.dim;
    memcpy(call->text, &opening, sizeof opening);
    call->drop = drop_opened_table;
    mupy_call_keep(call, args);
    if (kwargs != NULL)
        mupy_call_keep(call, kwargs);
    return run_opening(object, call);
}

static PyObject *table_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (mupy_handle_shut(&as_table(object)->handle))
        mupy_handle_end(&as_table(object)->handle);
    Py_RETURN_NONE;
}

static void table_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(table_close(object, NULL));
    release(object);
    Py_DECREF(type);
}

/* ---- ids and rows ---- */

/* Ids, and rows of as many times `dim` numbers of a dtype (MU_DTYPE_NONE: any); Py_None:
 * none. -1 with an exception. */
struct table_arrays {
    struct mupy_array ids;
    struct mupy_array rows;
    size_t count;
};

static void release_arrays(struct table_arrays *arrays)
{
    Py_CLEAR(arrays->ids.keep);
    Py_CLEAR(arrays->rows.keep);
}

static int read_arrays(PyObject *object, PyObject *ids, PyObject *rows, int dtype,
                       struct table_arrays *ret_arrays)
{
    unsigned dim = as_table(object)->dim;

    ret_arrays->ids.keep = ret_arrays->rows.keep = NULL;
    if (mupy_array_of(ids, MU_U64, &ret_arrays->ids) != 0)
        return -1;
    ret_arrays->count = ret_arrays->ids.bytes / sizeof(uint64_t);
    if (rows == Py_None)
        return 0;
    if (mupy_array_of(rows, dtype, &ret_arrays->rows) == 0 &&
        ret_arrays->rows.bytes ==
            ret_arrays->count * dim * mu_dtype_bytes(ret_arrays->rows.dtype))
        return 0;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "%zu numbers for %zu ids: expected rows of %u for each",
                     ret_arrays->rows.bytes / mu_dtype_bytes(ret_arrays->rows.dtype),
                     ret_arrays->count, dim);
    release_arrays(ret_arrays);
    return -1;
}

/* The memory that `call` uses stays until it has ended. */
static void use_arrays(struct mupy_call *call, struct table_arrays *arrays)
{
    call->data = arrays->ids.data;
    call->size = arrays->count;
    call->other = (void *)(uintptr_t)arrays->rows.data;
    mupy_call_keep(call, arrays->ids.keep);
    if (arrays->rows.keep != NULL)
        mupy_call_keep(call, arrays->rows.keep);
    release_arrays(arrays);
}

/* ---- look-ups, pushes, deletes ---- */

static void run_lookup(struct mupy_call *call)
{
    call->rv = mu_table_lookup_as(call->object, (int)call->number, call->data, call->size,
                                  call->other, call->timeout_ms, &call->error);
}

static int begin_lookup(struct mupy_call *call, void *user)
{
    return mu_table_lookup_as_async(call->object, (int)call->number, call->data,
                                    call->size, call->other, call->timeout_ms,
                                    mupy_begun_ended, user);
}

/* What a push says besides its ids and gradients. */
struct pushing {
    mu_optimizer optimizer;
    bool has_optimizer;
    uint64_t time;
};

static void run_push(struct mupy_call *call)
{
    struct pushing how;

    memcpy(&how, call->text, sizeof how);
    call->rv = mu_table_apply_at(call->object, how.time, call->data, call->other,
                                 call->size, how.has_optimizer ? &how.optimizer : NULL,
                                 call->timeout_ms, &call->error);
}

static int begin_push(struct mupy_call *call, void *user)
{
    struct pushing how;

    memcpy(&how, call->text, sizeof how);
    return mu_table_apply_at_async(call->object, how.time, call->data, call->other,
                                   call->size, how.has_optimizer ? &how.optimizer : NULL,
                                   call->timeout_ms, mupy_begun_ended, user);
}

static void run_expire(struct mupy_call *call)
{
    call->rv =
        mu_table_expire(call->object, call->number, call->timeout_ms, &call->error);
}

static void run_delete(struct mupy_call *call)
{
    call->rv = mu_table_delete(call->object, call->data, call->size, call->timeout_ms,
                               &call->error);
}

/* lookup_into(ids, rows, timeout, tell): rows is an array that is written to; with `tell`
 * nobody waits. */
static PyObject *table_lookup_into(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *tell = Py_None;
    PyObject *ids;
    PyObject *rows;
    struct table_arrays arrays;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "OO|OO", &ids, &rows, &timeout, &tell) ||
        read_arrays(object, ids, rows, MU_DTYPE_NONE, &arrays) != 0)
        return NULL;
    call = mupy_table_call(object, timeout, run_lookup);
    if (call == NULL) {
        release_arrays(&arrays);
        return NULL;
    }
    call->number = (uint64_t)arrays.rows.dtype;
    use_arrays(call, &arrays);
    call->begin = begin_lookup;
    return mupy_call_end(call, tell);
}

/* How a push says that is made in a run. */
static PyObject *push_in_current_run(mu_run *run, PyObject *object,
                                     struct table_arrays *arrays,
                                     const struct pushing *how, bool deletes)
{
    mu_table *table = begin_table_use(object);
    int rv = -MU_ECLOSED;

    if (table != NULL)
        rv = deletes ? mu_run_table_delete(run, table, arrays->ids.data, arrays->count)
                     : mu_run_table_apply_at(run, table, how->time, arrays->ids.data,
                                             arrays->rows.data, arrays->count,
                                             how->has_optimizer ? &how->optimizer : NULL);
    if (table != NULL)
        mupy_handle_end(&as_table(object)->handle);
    release_arrays(arrays);
    return table == NULL ? NULL : mupy_run_wrote(rv, "table");
}

/* apply(ids, gradients, optimizer, run, timeout, time, tell): with None for gradients: a
 * delete; for the optimizer: the table's; for the run: at once; with `tell`, which no
 * delete and no run has, nobody waits. */
static PyObject *table_apply(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *tell = Py_None;
    PyObject *ids;
    PyObject *gradients;
    PyObject *optimizer;
    PyObject *in_run;
    unsigned long long time = 0;
    struct pushing how = {.has_optimizer = false};
    mu_run *run = NULL;
    struct table_arrays arrays;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "OOOO|OKO", &ids, &gradients, &optimizer, &in_run,
                          &timeout, &time, &tell) ||
        (optimizer != Py_None && mupy_optimizer(optimizer, 0, &how.optimizer) != 0) ||
        (in_run != Py_None && (run = mupy_run_of(in_run)) == NULL) ||
        read_arrays(object, ids, gradients, MU_F32, &arrays) != 0)
        return NULL;
    how.has_optimizer = optimizer != Py_None;
    how.time = time;
    if (run != NULL)
        return push_in_current_run(run, object, &arrays, &how, gradients == Py_None);
    call = mupy_table_call(object, timeout, gradients == Py_None ? run_delete : run_push);
    if (call == NULL) {
        release_arrays(&arrays);
        return NULL;
    }
    memcpy(call->text, &how, sizeof how);
    use_arrays(call, &arrays);
    if (gradients != Py_None)
        call->begin = begin_push;
    return mupy_call_end(call, tell);
}

static PyObject *table_expire(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    unsigned long long before;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "K|O", &before, &timeout))
        return NULL;
    call = mupy_table_call(object, timeout, run_expire);
    if (call == NULL)
        return NULL;
    call->number = before;
    return mupy_call_finish(call);
}

/* ---- inserts, statistics, export ---- */

static void run_insert(struct mupy_call *call)
{
    call->rv = mu_table_insert(call->object, call->data, call->other, call->size,
                               call->timeout_ms, &call->error);
}

static PyObject *insert_in_current_run(mu_run *run, PyObject *object,
                                       struct table_arrays *arrays)
{
    mu_table *table = begin_table_use(object);
    int rv = table == NULL ? -MU_ECLOSED
                           : mu_run_table_insert(run, table, arrays->ids.data,
                                                 arrays->rows.data, arrays->count);

    if (table != NULL)
        mupy_table_end(object);
    release_arrays(arrays);
    return table == NULL ? NULL : mupy_run_wrote(rv, "table");
}

/* set_rows(ids, rows, run, timeout): for the run None: at once. */
static PyObject *table_set_rows(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *ids;
    PyObject *rows;
    PyObject *in_run;
    mu_run *run = NULL;
    struct table_arrays arrays;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "OOO|O", &ids, &rows, &in_run, &timeout) ||
        (in_run != Py_None && (run = mupy_run_of(in_run)) == NULL) ||
        read_arrays(object, ids, rows, MU_F32, &arrays) != 0)
        return NULL;
    if (run != NULL)
        return insert_in_current_run(run, object, &arrays);
    call = mupy_table_call(object, timeout, run_insert);
    if (call == NULL) {
        release_arrays(&arrays);
        return NULL;
    }
    use_arrays(call, &arrays);
    return mupy_call_finish(call);
}

static void run_stats(struct mupy_call *call)
{
    mu_table_stats stats = {.rows = 0};

    call->rv = mu_table_get_stats(call->object, call->timeout_ms, &call->error, &stats);
    memcpy(call->text, &stats, sizeof stats);
}

/* get_stats(timeout) -> (rows, bytes, dropped, refused, expired, evicted) */
static PyObject *table_get_stats(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *found = NULL;
    mu_table_stats stats;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "|O", &timeout))
        return NULL;
    call = mupy_table_call(object, timeout, run_stats);
    if (call == NULL || mupy_call_run(call) != 0)
        return NULL;
    memcpy(&stats, call->text, sizeof stats);
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        found = Py_BuildValue(
            "KKKKKK", (unsigned long long)stats.rows, (unsigned long long)stats.bytes,
            (unsigned long long)stats.dropped, (unsigned long long)stats.refused,
            (unsigned long long)stats.expired, (unsigned long long)stats.evicted);
    mupy_call_free(call);
    return found;
}

/* Give rows to `function`, as bytes; 1: it wants no more, or has failed. */
static int give_rows(void *user, const uint64_t *ids, const float *rows, size_t count)
{
    const struct mupy_call *call = user;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_ssize_t bytes = (Py_ssize_t)(count * sizeof *ids);
    Py_ssize_t row_bytes =
        (Py_ssize_t)(count * mu_table_dim(call->object) * sizeof *rows);
    PyObject *more = PyObject_CallFunction(call->other, "y#y#", (const char *)ids, bytes,
                                           (const char *)rows, row_bytes);
    bool goes_on = more == Py_True;

    if (more == NULL)
        PyErr_WriteUnraisable(call->other);
    Py_XDECREF(more);
    PyGILState_Release(state);
    return !goes_on;
}

static void run_export(struct mupy_call *call)
{
    call->rv =
        mu_table_export(call->object, give_rows, call, call->timeout_ms, &call->error);
    if (call->rv > 0)
        call->rv = 0;
}

/* export_to(function, timeout): function(ids, rows) gets bytes, and returns True for
 * more. */
static PyObject *table_export_to(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *function;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "O|O", &function, &timeout))
        return NULL;
    call = mupy_table_call(object, timeout, run_export);
    if (call == NULL)
        return NULL;
    call->other = function;
    mupy_call_keep(call, function);
    return mupy_call_finish(call);
}

int mupy_table_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"lookup_into", table_lookup_into, METH_VARARGS,
         "lookup_into(ids, rows, timeout=None, tell=None)\n--\n\nRead the rows of ids "
         "into an array; tell: is called with None or an exception at the end, for "
         "which nobody waits."},
        {"lookup_bags_into", mupy_table_lookup_bags, METH_VARARGS,
         "lookup_bags_into(ids, offsets, weights, combiner, rows, timeout=None)\n"
         "--\n\nRead a row for each bag of ids into an array; weights: or None."},
        {"lookup_several", mupy_table_lookup_several, METH_VARARGS | METH_STATIC,
         "lookup_several(lookups, type, timeout=None)\n--\n\nRead rows of several "
         "tables at once: of (table, ids, rows), with arrays for the rows."},
        {"apply", table_apply, METH_VARARGS,
         "apply(ids, gradients, optimizer, run, timeout=None, time=0, tell=None)\n"
         "--\n\nPush gradients, or delete rows; tell: as that of lookup_into()."},
        {"expire", table_expire, METH_VARARGS,
         "expire(before, timeout=None)\n--\n\nRemove rows by their score."},
        {"set_rows", table_set_rows, METH_VARARGS,
         "set_rows(ids, rows, run, timeout=None)\n--\n\nSet rows."},
        {"get_stats", table_get_stats, METH_VARARGS,
         "get_stats(timeout=None)\n--\n\nRows, bytes of memory, and counts."},
        {"export_to", table_export_to, METH_VARARGS,
         "export_to(function, timeout=None)\n--\n\nGive all rows to a function."},
        {"close", table_close, METH_NOARGS,
         "close()\n--\n\nFree the handle; the table stays on its servers."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, table_init},
        {Py_tp_dealloc, table_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "BaseTable(node, name, dim, initializer, optimizer, flags, "
                    "timeout=None, policies=(0, 0, 0.0, 0, 0, 0, 0))\n--\n\nAn "
                    "embedding table on the parameter servers."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.BaseTable", sizeof(struct table), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    table_type = mupy_add_type(module, &spec);
    return table_type == NULL ? -1 : 0;
}
