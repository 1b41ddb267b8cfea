/* Datasets that are dealt out in shards. */
#include "schedule.h"

#include "muster/deal.h"

#include <string.h>

struct dataset {
    PyObject_HEAD
    mu_deal *deal;          /* NULL once it is closed */
    PyObject *coordinator;
};

static struct dataset *self_of(PyObject *self)
{
    return (struct dataset *)self;
}

static mu_deal *deal_of(PyObject *self)
{
    if (self_of(self)->deal == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the dataset was closed");
    else if (mupy_coordinator_of(self_of(self)->coordinator) != NULL)
        return self_of(self)->deal;
    return NULL;
}

static int take(struct dataset *self, PyObject *coordinator, int rv,
                const mu_error *error, mu_deal *deal)
{
    if (rv != 0) {
        (void)mupy_raise(error, NULL);
        return -1;
    }
    self->deal = deal;
    self->coordinator = coordinator;
    Py_INCREF(coordinator);
    return 0;
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"coordinator", "shards", "epochs", "seed", "records",
                            "path", NULL};
    PyObject *coordinator;
    mu_deal_options options;
    unsigned long long seed = 0;
    const char *path = NULL;
    mu_coordinator *owner;
    mu_deal *deal = NULL;
    mu_error error;
    int rv;

    mu_deal_options_init(&options);
    options.epochs = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|IIKIz:ShardedDataset", names,
                                     &coordinator, &options.shards, &options.epochs,
                                     &seed, &options.records, &path))
        return -1;
    owner = mupy_coordinator_of(coordinator);
    if (owner == NULL)
        return -1;
    if (self_of(object)->deal != NULL) {
        (void)mupy_fail(-MU_EEXISTS, "the dataset is open already");
        return -1;
    }
    options.seed = seed;
    rv = path != NULL ? mu_deal_load(owner, path, &error, &deal)
                      : mu_deal_open(owner, &options, &error, &deal);
    return take(self_of(object), coordinator, rv, &error, deal);
}

static PyObject *close_it(PyObject *self, PyObject *unused)
{
    mu_deal *deal = self_of(self)->deal;

    (void)unused;
    self_of(self)->deal = NULL;
    mu_deal_close(deal);
    Py_RETURN_NONE;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(self_of(object)->coordinator);
    return 0;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    mu_deal_close(self_of(object)->deal);
    Py_CLEAR(self_of(object)->coordinator);
    release(object);
    Py_DECREF(type);
}

struct dealt {
    mu_deal *deal;
    const struct asked *asked;
    const char *name;
    const mu_value *args;
};

static int deal_in(void *what, int64_t timeout_ms, mu_error *error)
{
    const struct dealt *dealt = what;

    return mu_deal_schedule(dealt->deal, dealt->name, dealt->args,
                            dealt->asked->has_options ? &dealt->asked->options : NULL,
                            timeout_ms < 1 ? 1 : timeout_ms, error);
}

static PyObject *schedule(PyObject *object, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    mu_deal *deal = deal_of(object);
    PyObject *coordinator = self_of(object)->coordinator;
    const char *name = NULL;
    PyObject *function;
    struct asked asked;
    mu_error error = {0};
    mu_value *value;
    struct dealt dealt;
    int rv;

    if (deal == NULL || mupy_schedule_parse(args, count, names, &asked) != 0)
        return NULL;
    value = mupy_schedule_args(coordinator, &asked, &name, &function);
    if (value == NULL) {
        Py_XDECREF(function);
        return NULL;
    }
    dealt = (struct dealt){deal, &asked, name, value};
    rv = mupy_pieces_wait(deal_in, &dealt, asked.timeout_ms, &error);
    mu_value_free(value);
    Py_DECREF(function);
    if (rv == 1)
        return NULL;
    if (rv == -MU_ERANGE && error.closure == 0)
        Py_RETURN_FALSE;
    if (rv != 0)
        return mupy_coordinator_raise((struct mupy_coordinator *)coordinator, &error,
                                      NULL);
    Py_RETURN_TRUE;
}

static int join_in(void *deal, int64_t timeout_ms, mu_error *error)
{
    return mu_deal_join(deal, timeout_ms, error);
}

static PyObject *join(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    mu_deal *deal = deal_of(object);
    PyObject *timeout = NULL;
    int64_t timeout_ms;
    mu_error error = {0};
    int rv;

    if (deal == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:join", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    rv = mupy_pieces_wait(join_in, deal, timeout_ms, &error);
    if (rv == 0)
        Py_RETURN_NONE;
    return rv < 0 ? mupy_raise(&error, NULL) : NULL;
}

static PyObject *record(PyObject *object, PyObject *unused)
{
    mu_deal *deal = deal_of(object);
    mu_value *value = deal == NULL ? NULL : mu_deal_record(deal);
    PyObject *map;

    (void)unused;
    if (deal == NULL)
        return NULL;
    if (value == NULL)
        return PyErr_NoMemory();
    map = mupy_from_value(value, true);
    mu_value_free(value);
    return map;
}

static PyObject *save(PyObject *object, PyObject *path)
{
    mu_deal *deal = deal_of(object);
    PyObject *bytes = NULL;
    mu_error error;
    const char *text;
    int rv;

    if (deal == NULL || !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    text = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS
    rv = mu_deal_save(deal, text, &error);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    if (rv != 0)
        return mupy_raise(&error, NULL);
    Py_RETURN_NONE;
}

int mupy_dataset_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"schedule", MUPY_METHOD(schedule), METH_FASTCALL | METH_KEYWORDS,
         "schedule(fn, args=None, kwargs=None, **options)\n--\n\n"
         "Deal the next shard to a new closure fn(shard, *args, **kwargs); options as\n"
         "of ClusterCoordinator.schedule(). Waits while all shards of the epoch are\n"
         "out.\n\n"
         "True; False: every shard of every epoch is consumed. Raises the first error\n"
         "of an earlier closure, once; its shard is dealt again."},
        {"join", MUPY_METHOD(join), METH_VARARGS | METH_KEYWORDS,
         "join(timeout=None)\n--\n\nWait until no shard is out."},
        {"record", record, METH_NOARGS,
         "record()\n--\n\nWhere it stands, and which closure consumed what, as a dict."},
        {"save", save, METH_O,
         "save(path)\n--\n\nSave it, to go on after a restart with path=."},
        {"close", close_it, METH_NOARGS, "close()\n--\n\nIts closures run on."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, init},
        {Py_tp_dealloc, dealloc},
        {Py_tp_traverse, traverse},
        {Py_tp_methods, methods},
        {Py_tp_doc, "ShardedDataset(coordinator, shards=0, epochs=1, seed=0, records=2, "
                    "path=None)\n--\n\n"
                    "A dataset whose shards are each visited once per epoch, although "
                    "workers die.\n\nshards: numbered from 0; epochs: 0 is without end; "
                    "seed: of another order in each\nepoch, 0: in order; records: epochs "
                    "of which is kept who consumed what; path: go on\nfrom a file of "
                    "save()."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.ShardedDataset", sizeof(struct dataset), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    return mupy_add_type(module, &spec) == NULL ? -1 : 0;
}
