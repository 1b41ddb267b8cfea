/* Sharded datasets. */
#include "coordinator/schedule.h"

#include "muster/dataset.h"

#include <string.h>

struct dataset {
    PyObject_HEAD
    struct mupy_handle handle; /* of a mu_dataset */
    PyObject *coordinator;
};

static struct dataset *as_dataset(PyObject *self)
{
    return (struct dataset *)self;
}

/* Use the dataset and its coordinator until end_dataset_use(). NULL with an exception. */
static mu_dataset *begin_dataset_use(PyObject *self)
{
    mu_dataset *dataset = mupy_handle_begin(&as_dataset(self)->handle);

    if (dataset == NULL)
        return (void)mupy_fail(-MU_ECLOSED, "the dataset was closed"), NULL;
    if (mupy_coordinator_begin(as_dataset(self)->coordinator) != NULL)
        return dataset;
    mupy_handle_end(&as_dataset(self)->handle);
    return NULL;
}

static void end_dataset_use(PyObject *self)
{
    mupy_coordinator_end(as_dataset(self)->coordinator);
    mupy_handle_end(&as_dataset(self)->handle);
}

static void close_dataset_handle(void *dataset)
{
    mu_dataset_close(dataset);
}

static int set_dataset(struct dataset *self, PyObject *coordinator, int rv,
                       const mu_error *error, mu_dataset *dataset)
{
    if (rv != 0) {
        (void)mupy_raise(error, NULL);
        return -1;
    }
    Py_INCREF(coordinator);
    Py_XDECREF(self->coordinator);
    self->coordinator = coordinator;
    mupy_handle_open(&self->handle, dataset, close_dataset_handle);
    return 0;
}

static int dataset_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"coordinator", "shards", "epochs", "seed",
                            "records",     "path",   NULL};
    PyObject *coordinator;
    mu_dataset_options options;
    unsigned long long seed = 0;
    const char *path = NULL;
    mu_coordinator *owner;
    mu_dataset *dataset = NULL;
    mu_error error;
    int rv;

    mu_dataset_options_init(&options);
    options.epochs = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|IIKIz:ShardedDataset", names,
                                     &coordinator, &options.shards, &options.epochs,
                                     &seed, &options.records, &path))
        return -1;
    if (mupy_handle_is_open(&as_dataset(object)->handle)) {
        (void)mupy_fail(-MU_EEXISTS, "the dataset is open already");
        return -1;
    }
    owner = mupy_coordinator_begin(coordinator);
    if (owner == NULL)
        return -1;
    options.seed = seed;
    rv = path != NULL ? mu_dataset_load(owner, path, &error, &dataset)
                      : mu_dataset_open(owner, &options, &error, &dataset);
    mupy_coordinator_end(coordinator);
    return set_dataset(as_dataset(object), coordinator, rv, &error, dataset);
}

static PyObject *dataset_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (mupy_handle_shut(&as_dataset(self)->handle))
        mupy_handle_end(&as_dataset(self)->handle);
    Py_RETURN_NONE;
}

static int dataset_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(as_dataset(object)->coordinator);
    return 0;
}

static void dataset_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    (void)dataset_close(object, NULL);
    Py_CLEAR(as_dataset(object)->coordinator);
    release(object);
    Py_DECREF(type);
}

struct dispensed {
    mu_dataset *dataset;
    const struct parsed *parsed;
    const char *name;
    const mu_value *args;
};

static int schedule_dataset_piece(void *what, int64_t timeout_ms, mu_error *error)
{
    const struct dispensed *dispensed = what;

    return mu_dataset_schedule(
        dispensed->dataset, dispensed->name, dispensed->args,
        dispensed->parsed->has_options ? &dispensed->parsed->options : NULL,
        timeout_ms < 1 ? 1 : timeout_ms, error);
}

/* Returns 0, a negative code, or 1 with an exception. */
static int schedule_on_dataset(PyObject *object, const struct parsed *parsed,
                               mu_error *error)
{
    mu_dataset *dataset = begin_dataset_use(object);
    struct dispensed dispensed = {dataset, parsed, NULL, NULL};
    PyObject *function;
    mu_value *value;
    int rv = 1;

    if (dataset == NULL)
        return rv;
    value = mupy_schedule_args(as_dataset(object)->coordinator, parsed, &dispensed.name,
                               &function);
    dispensed.args = value;
    if (value != NULL)
        rv = mupy_pieces_wait(schedule_dataset_piece, &dispensed, parsed->timeout_ms,
                              error);
    mu_value_free(value);
    Py_XDECREF(function);
    end_dataset_use(object);
    return rv;
}

static PyObject *dataset_schedule(PyObject *object, PyObject *const *args,
                                  Py_ssize_t count, PyObject *names)
{
    PyObject *coordinator = as_dataset(object)->coordinator;
    struct parsed parsed;
    mu_error error = {0};
    int rv;

    if (mupy_schedule_parse(args, count, names, &parsed) != 0)
        return NULL;
    rv = schedule_on_dataset(object, &parsed, &error);
    if (rv == 1)
        return NULL;
    if (rv == -MU_ERANGE && error.closure == 0)
        Py_RETURN_FALSE;
    if (rv != 0)
        return mupy_coordinator_raise((struct mupy_coordinator *)coordinator, &error,
                                      NULL);
    Py_RETURN_TRUE;
}

static int join_dataset_piece(void *dataset, int64_t timeout_ms, mu_error *error)
{
    return mu_dataset_join(dataset, timeout_ms, error);
}

static PyObject *dataset_join(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    mu_dataset *dataset;
    PyObject *timeout = NULL;
    int64_t timeout_ms;
    mu_error error = {0};
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:join", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0 ||
        (dataset = begin_dataset_use(object)) == NULL)
        return NULL;
    rv = mupy_pieces_wait(join_dataset_piece, dataset, timeout_ms, &error);
    end_dataset_use(object);
    if (rv == 0)
        Py_RETURN_NONE;
    return rv < 0 ? mupy_raise(&error, NULL) : NULL;
}

static PyObject *dataset_record(PyObject *object, PyObject *unused)
{
    mu_dataset *dataset = begin_dataset_use(object);
    mu_value *value;
    PyObject *map;

    (void)unused;
    if (dataset == NULL)
        return NULL;
    value = mu_dataset_record(dataset);
    end_dataset_use(object);
    if (value == NULL)
        return PyErr_NoMemory();
    map = mupy_from_value(value, true);
    mu_value_free(value);
    return map;
}

static PyObject *dataset_save(PyObject *object, PyObject *path)
{
    mu_dataset *dataset = begin_dataset_use(object);
    PyObject *bytes = NULL;
    mu_error error = {0};
    int rv = 1;

    if (dataset == NULL)
        return NULL;
    if (PyUnicode_FSConverter(path, &bytes)) {
        const char *text = PyBytes_AsString(bytes);

        Py_BEGIN_ALLOW_THREADS
        rv = mu_dataset_save(dataset, text, &error);
        Py_END_ALLOW_THREADS
    }
    end_dataset_use(object);
    Py_XDECREF(bytes);
    if (rv == 1)
        return NULL;
    if (rv != 0)
        return mupy_raise(&error, NULL);
    Py_RETURN_NONE;
}

int mupy_dataset_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"schedule", MUPY_METHOD(dataset_schedule), METH_FASTCALL | METH_KEYWORDS,
         "schedule(fn, args=None, kwargs=None, **options)\n--\n\n"
         "Schedule a closure fn(shard, *args, **kwargs) for the next shard; options as\n"
         "of ClusterCoordinator.schedule(). Waits while all shards of the epoch are\n"
         "handed out.\n\n"
         "Returns False when all shards of all epochs are consumed. Raises the first "
         "error\n"
         "of an earlier closure, once; its shard is handed out again."},
        {"join", MUPY_METHOD(dataset_join), METH_VARARGS | METH_KEYWORDS,
         "join(timeout=None)\n--\n\nWait until each shard is consumed or given back."},
        {"record", dataset_record, METH_NOARGS,
         "record()\n--\n\nIts progress, and which closure consumed which shard, as a "
         "dict."},
        {"save", dataset_save, METH_O,
         "save(path)\n--\n\nSave its progress, to continue with path= after a restart."},
        {"close", dataset_close, METH_NOARGS,
         "close()\n--\n\nClose it; its closures run on."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, dataset_init},
        {Py_tp_dealloc, dataset_dealloc},
        {Py_tp_traverse, dataset_traverse},
        {Py_tp_methods, methods},
        {Py_tp_doc,
         "ShardedDataset(coordinator, shards=0, epochs=1, seed=0, records=2, "
         "path=None)\n--\n\n"
         "A dataset whose shards are each visited once per epoch, although "
         "workers die.\n\nshards: their number; epochs: 0 is without end; seed: "
         "shuffles the shards, differently\nin each epoch; 0: in order; "
         "records: epochs for which record() says which closure\nconsumed "
         "which shard; path: continue from a file of save()."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.ShardedDataset", sizeof(struct dataset), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    return mupy_add_type(module, &spec) == NULL ? -1 : 0;
}
