/* Look-ups of bags of ids, and of several tables at once. */
#include "variables/variable.h"

#include "muster/table.h"

#include <stdlib.h>
#include <string.h>

/* ---- bags ---- */

_Static_assert(sizeof(mu_table_bags) <= sizeof((struct mupy_call *)NULL)->text,
               "bags are in the text of their call");

static void run_lookup_bags(struct mupy_call *call)
{
    mu_table_bags bags;

    memcpy(&bags, call->text, sizeof bags);
    call->rv = mu_table_lookup_bags(call->object, &bags, call->other, call->timeout_ms,
                                    &call->error);
}

static int begin_lookup_bags(struct mupy_call *call, void *user)
{
    mu_table_bags bags;

    memcpy(&bags, call->text, sizeof bags);
    return mu_table_lookup_bags_async(call->object, &bags, call->other, call->timeout_ms,
                                      mupy_begun_ended, user);
}

/* What the arguments are, as arrays. */
struct bags_arrays {
    struct mupy_array ids;
    struct mupy_array offsets;
    struct mupy_array weights;
    struct mupy_array rows;
};

static void release_bags(struct bags_arrays *arrays)
{
    Py_CLEAR(arrays->ids.keep);
    Py_CLEAR(arrays->offsets.keep);
    Py_CLEAR(arrays->weights.keep);
    Py_CLEAR(arrays->rows.keep);
}

/* -1 with an exception. */
static int check_bags(PyObject *object, const struct bags_arrays *arrays)
{
    size_t count = arrays->ids.bytes / sizeof(uint64_t);
    size_t bags = arrays->offsets.bytes / sizeof(uint64_t);

    if (arrays->weights.keep != NULL && arrays->weights.bytes != count * sizeof(float))
        PyErr_Format(PyExc_ValueError, "%zu weights for %zu ids",
                     arrays->weights.bytes / sizeof(float), count);
    else if (arrays->rows.bytes != bags * mupy_table_dim(object) * sizeof(float))
        PyErr_Format(PyExc_ValueError, "%zu numbers for %zu bags: expected rows of %u",
                     arrays->rows.bytes / sizeof(float), bags, mupy_table_dim(object));
    return PyErr_Occurred() ? -1 : 0;
}

static int read_bags(PyObject *object, PyObject *const objects[4],
                     struct bags_arrays *ret_arrays)
{
    memset(ret_arrays, 0, sizeof *ret_arrays);
    if (mupy_array_of(objects[0], MU_U64, &ret_arrays->ids) == 0 &&
        mupy_array_of(objects[1], MU_U64, &ret_arrays->offsets) == 0 &&
        (objects[2] == Py_None ||
         mupy_array_of(objects[2], MU_F32, &ret_arrays->weights) == 0) &&
        mupy_array_of(objects[3], MU_F32, &ret_arrays->rows) == 0 &&
        check_bags(object, ret_arrays) == 0)
        return 0;
    release_bags(ret_arrays);
    return -1;
}

/* The memory that `call` uses stays until it has ended. */
static int use_bags(struct mupy_call *call, struct bags_arrays *arrays, int combiner)
{
    const mu_table_bags bags = {
        .ids = arrays->ids.data,
        .weights = arrays->weights.keep == NULL ? NULL : arrays->weights.data,
        .count = arrays->ids.bytes / sizeof(uint64_t),
        .offsets = arrays->offsets.data,
        .bags = arrays->offsets.bytes / sizeof(uint64_t),
        .combiner = combiner};
    PyObject *kept =
        PyTuple_Pack(4, arrays->ids.keep, arrays->offsets.keep,
                     arrays->weights.keep == NULL ? Py_None : arrays->weights.keep,
                     arrays->rows.keep);

    if (kept == NULL)
        return -1;
    memcpy(call->text, &bags, sizeof bags);
    call->other = (void *)(uintptr_t)arrays->rows.data;
    mupy_call_keep(call, kept);
    Py_DECREF(kept);
    return 0;
}

PyObject *mupy_table_lookup_bags(PyObject *object, PyObject *args)
{
    PyObject *objects[4];
    PyObject *timeout = NULL;
    PyObject *tell = NULL;
    struct bags_arrays arrays;
    struct mupy_call *call;
    int combiner;

    if (!PyArg_ParseTuple(args, "OOOiO|OO", &objects[0], &objects[1], &objects[2],
                          &combiner, &objects[3], &timeout, &tell) ||
        read_bags(object, objects, &arrays) != 0)
        return NULL;
    call = mupy_table_call(object, timeout, run_lookup_bags);
    if (call != NULL && use_bags(call, &arrays, combiner) != 0) {
        mupy_call_free(call);
        call = NULL;
    }
    release_bags(&arrays);
    if (call == NULL)
        return NULL;
    call->begin = begin_lookup_bags;
    return mupy_call_end(call, tell);
}

/* ---- several tables ---- */

/* One of them, in use, and what its memory is kept by. */
struct one_of_several {
    PyObject *table;
    struct mupy_array ids;
    struct mupy_array rows;
};

struct several {
    size_t count;
    mu_table_ids *lookups;
    struct one_of_several ones[];
};

static void free_several(struct several *several)
{
    for (size_t i = 0; i < several->count; i++) {
        mupy_table_end(several->ones[i].table);
        Py_DECREF(several->ones[i].table);
        Py_CLEAR(several->ones[i].ids.keep);
        Py_CLEAR(several->ones[i].rows.keep);
    }
    free(several->lookups);
    free(several);
}

static void drop_several(struct mupy_call *call)
{
    free_several(call->made);
}

static void run_lookup_several(struct mupy_call *call)
{
    const struct several *several = call->made;

    call->rv = mu_tables_lookup(several->lookups, several->count, call->timeout_ms,
                                &call->error);
}

/* -1 with an exception. */
static int check_one(PyObject *table, const struct one_of_several *one)
{
    size_t count = one->ids.bytes / sizeof(uint64_t);

    if (one->rows.bytes == count * mupy_table_dim(table) * sizeof(float))
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%zu numbers for %zu ids: expected rows of %u for each",
                 one->rows.bytes / sizeof(float), count, mupy_table_dim(table));
    return -1;
}

/* Add (table, ids, rows). -1 with an exception. */
static int add_one(struct several *several, PyObject *item, PyObject *type)
{
    struct one_of_several one = {.table = NULL};
    PyObject *ids;
    PyObject *rows;
    mu_table *table = NULL;

    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "OOO", &one.table, &ids, &rows))
        return -1;
    if (PyObject_IsInstance(one.table, type) != 1) {
        PyErr_SetString(PyExc_TypeError, "expected (table, ids, rows)");
        return -1;
    }
    if (mupy_array_of(ids, MU_U64, &one.ids) != 0 ||
        mupy_array_of(rows, MU_F32, &one.rows) != 0 || check_one(one.table, &one) != 0 ||
        (table = mupy_table_begin(one.table)) == NULL) {
        Py_CLEAR(one.ids.keep);
        Py_CLEAR(one.rows.keep);
        return -1;
    }
    several->lookups[several->count] =
        (mu_table_ids){table, one.ids.data, one.ids.bytes / sizeof(uint64_t),
                       (float *)(uintptr_t)one.rows.data};
    several->ones[several->count++] = one;
    Py_INCREF(one.table);
    return 0;
}

/* NULL with an exception. */
static struct several *make_several(PyObject *list, PyObject *type)
{
    size_t count = (size_t)PyList_Size(list);
    struct several *several =
        calloc(1, sizeof *several + count * sizeof several->ones[0]);
    mu_table_ids *lookups = calloc(count + 1, sizeof *lookups);

    if (several == NULL || lookups == NULL) {
        free(several);
        free(lookups);
        (void)PyErr_NoMemory();
        return NULL;
    }
    several->lookups = lookups;
    for (size_t i = 0; i < count; i++)
        if (add_one(several, PyList_GetItem(list, (Py_ssize_t)i), type) != 0) {
            free_several(several);
            return NULL;
        }
    return several;
}

PyObject *mupy_table_lookup_several(PyObject *unused, PyObject *args)
{
    PyObject *timeout = NULL;
    PyObject *list;
    PyObject *type;
    struct mupy_call *call;
    PyObject *result;

    (void)unused;
    if (!PyArg_ParseTuple(args, "O!O!|O", &PyList_Type, &list, &PyType_Type, &type,
                          &timeout))
        return NULL;
    call = mupy_call_new(run_lookup_several);
    if (call == NULL)
        return NULL;
    if (mupy_timeout(timeout, &call->timeout_ms) != 0 ||
        (call->made = make_several(list, type)) == NULL) {
        mupy_call_free(call);
        return NULL;
    }
    call->drop = drop_several;
    if (mupy_call_run(call) != 0)
        return NULL;
    result = call->rv == 0 ? Py_NewRef(Py_None) : mupy_raise(&call->error, NULL);
    free_several(call->made);
    mupy_call_free(call);
    return result;
}
