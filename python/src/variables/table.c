/* Embedding tables; muster/table.py has the class. */
#include "variables/variable.h"

#include "services/services.h"

#include "muster/table.h"

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

static mu_table *begin_table_use(PyObject *object)
{
    mu_table *table = mupy_handle_begin(&as_table(object)->handle);

    if (table == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the table was closed");
    return table;
}

/* A call on the open table; NULL with an exception. */
static struct mupy_call *new_table_call(PyObject *object, PyObject *timeout,
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

mu_table *mupy_table_begin(PyObject *object)
{
    return begin_table_use(object);
}

void mupy_table_end(PyObject *object)
{
    mupy_handle_end(&as_table(object)->handle);
}

unsigned mupy_table_dim(PyObject *object)
{
    return as_table(object)->dim;
}

struct mupy_call *mupy_table_call(PyObject *object, PyObject *timeout,
                                  void (*run)(struct mupy_call *call))
{
    return new_table_call(object, timeout, run);
}

/* What an open needs while it runs. */
struct table_opening {
    mu_table_spec spec;
    mu_optimizer optimizer;
};

_Static_assert(sizeof(struct table_opening) <= sizeof((struct mupy_call *)NULL)->text,
               "an opening is in the text of its call");

static void run_table_open(struct mupy_call *call)
{
    struct table_opening opening;
    mu_table *table = NULL;

    memcpy(&opening, call->text, sizeof opening);
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
    static char *names[] = {"node",      "name",  "dim",     "initializer", "seed",
                            "optimizer", "flags", "timeout", NULL};
    struct table_opening opening = {.spec = {.name = NULL}};
    unsigned long long seed = 0;
    PyObject *timeout = NULL;
    PyObject *optimizer;
    PyObject *node;
    struct mupy_call *call;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OsI(iff)KOI|O:BaseTable", names, &node, &opening.spec.name,
            &opening.spec.dim, &opening.spec.initializer, &opening.spec.initial_a,
            &opening.spec.initial_b, &seed, &optimizer, &opening.spec.flags, &timeout) ||
        mupy_optimizer(optimizer, 0, &opening.optimizer) != 0)
        return -1;
    if (mupy_handle_is_open(&as_table(object)->handle)) {
        (void)mupy_fail(-MU_EEXISTS, "the table is open already");
        return -1;
    }
    call = mupy_node_call(node, timeout, run_table_open);
    if (call == NULL)
        return -1;
    opening.spec.seed = seed;
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

/* Ids, and rows of as many times `dim` numbers; Py_None: none. -1 with an exception. */
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

static int read_arrays(PyObject *object, PyObject *ids, PyObject *rows,
                       struct table_arrays *ret_arrays)
{
    unsigned dim = as_table(object)->dim;

    ret_arrays->ids.keep = ret_arrays->rows.keep = NULL;
    if (mupy_array_of(ids, MU_U64, &ret_arrays->ids) != 0)
        return -1;
    ret_arrays->count = ret_arrays->ids.bytes / sizeof(uint64_t);
    if (rows == Py_None)
        return 0;
    if (mupy_array_of(rows, MU_F32, &ret_arrays->rows) == 0 &&
        ret_arrays->rows.bytes == ret_arrays->count * dim * sizeof(float))
        return 0;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "%zu numbers for %zu ids: expected rows of %u for each",
                     ret_arrays->rows.bytes / sizeof(float), ret_arrays->count, dim);
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
    call->rv = mu_table_lookup(call->object, call->data, call->size, call->other,
                               call->timeout_ms, &call->error);
}

static void run_push(struct mupy_call *call)
{
    mu_optimizer optimizer;

    memcpy(&optimizer, call->text, sizeof optimizer);
    call->rv = mu_table_apply(call->object, call->data, call->other, call->size,
                              call->number != 0 ? &optimizer : NULL, call->timeout_ms,
                              &call->error);
}

static void run_delete(struct mupy_call *call)
{
    call->rv = mu_table_delete(call->object, call->data, call->size, call->timeout_ms,
                               &call->error);
}

/* lookup_into(ids, rows, timeout): rows is an array that is written to. */
static PyObject *table_lookup_into(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *ids;
    PyObject *rows;
    struct table_arrays arrays;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "OO|O", &ids, &rows, &timeout) ||
        read_arrays(object, ids, rows, &arrays) != 0)
        return NULL;
    call = new_table_call(object, timeout, run_lookup);
    if (call == NULL) {
        release_arrays(&arrays);
        return NULL;
    }
    use_arrays(call, &arrays);
    return mupy_call_finish(call);
}

/* How a push says that is made in a run. */
static PyObject *push_in_current_run(mu_run *run, PyObject *object,
                                     struct table_arrays *arrays,
                                     const mu_optimizer *optimizer, bool deletes)
{
    mu_table *table = begin_table_use(object);
    int rv = -MU_ECLOSED;

    if (table != NULL)
        rv = deletes ? mu_run_table_delete(run, table, arrays->ids.data, arrays->count)
                     : mu_run_table_apply(run, table, arrays->ids.data, arrays->rows.data,
                                          arrays->count, optimizer);
    if (table != NULL)
        mupy_handle_end(&as_table(object)->handle);
    release_arrays(arrays);
    return table == NULL ? NULL : mupy_run_wrote(rv, "table");
}

/* apply(ids, gradients, optimizer, run, timeout): with None for gradients: a delete; for
 * the optimizer: the table's; for the run: at once. */
static PyObject *table_apply(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *ids;
    PyObject *gradients;
    PyObject *how;
    PyObject *in_run;
    mu_optimizer optimizer;
    mu_run *run = NULL;
    struct table_arrays arrays;
    struct mupy_call *call;

    if (!PyArg_ParseTuple(args, "OOOO|O", &ids, &gradients, &how, &in_run, &timeout) ||
        (how != Py_None && mupy_optimizer(how, 0, &optimizer) != 0) ||
        (in_run != Py_None && (run = mupy_run_of(in_run)) == NULL) ||
        read_arrays(object, ids, gradients, &arrays) != 0)
        return NULL;
    if (run != NULL)
        return push_in_current_run(run, object, &arrays,
                                   how == Py_None ? NULL : &optimizer,
                                   gradients == Py_None);
    call = new_table_call(object, timeout, gradients == Py_None ? run_delete : run_push);
    if (call == NULL) {
        release_arrays(&arrays);
        return NULL;
    }
    call->number = how != Py_None;
    if (how != Py_None)
        memcpy(call->text, &optimizer, sizeof optimizer);
    use_arrays(call, &arrays);
    return mupy_call_finish(call);
}

int mupy_table_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"lookup_into", table_lookup_into, METH_VARARGS,
         "lookup_into(ids, rows, timeout=None)\n--\n\nRead the rows of ids into an "
         "array."},
        {"lookup_bags_into", mupy_table_lookup_bags, METH_VARARGS,
         "lookup_bags_into(ids, offsets, weights, combiner, rows, timeout=None)\n"
         "--\n\nRead a row for each bag of ids into an array; weights: or None."},
        {"lookup_several", mupy_table_lookup_several, METH_VARARGS | METH_STATIC,
         "lookup_several(lookups, type, timeout=None)\n--\n\nRead rows of several "
         "tables at once: of (table, ids, rows), with arrays for the rows."},
        {"apply", table_apply, METH_VARARGS,
         "apply(ids, gradients, optimizer, run, timeout=None)\n--\n\nPush gradients, or "
         "delete rows."},
        {"close", table_close, METH_NOARGS,
         "close()\n--\n\nFree the handle; the table stays on its servers."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, table_init},
        {Py_tp_dealloc, table_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "BaseTable(node, name, dim, initializer, seed, optimizer, flags, "
                    "timeout=None)\n--\n\nAn embedding table on the parameter servers."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.BaseTable", sizeof(struct table), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return mupy_add_type(module, &spec) == NULL ? -1 : 0;
}
