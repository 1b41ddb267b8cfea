/* Datasets that are dealt out: each shard is visited once per epoch. */
#include "services.h"

#include "muster/deal.h"

#include <stdlib.h>

struct deal {
    PyObject_HEAD
    mu_deal *deal;          /* NULL once it is closed */
    PyObject *coordinator;
};

static PyTypeObject *deal_type;

static struct deal *self_of(PyObject *self)
{
    return (struct deal *)self;
}

static mu_deal *handle_of(PyObject *object)
{
    if (self_of(object)->deal == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the dispenser was closed");
    return self_of(object)->deal;
}

/* Takes `deal`. */
static PyObject *wrap(PyTypeObject *type, mu_deal *deal, PyObject *coordinator)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct deal *self = (struct deal *)alloc(type, 0);

    if (self == NULL) {
        mu_deal_close(deal);
        return NULL;
    }
    self->deal = deal;
    Py_INCREF(coordinator);
    self->coordinator = coordinator;
    return (PyObject *)self;
}

/* open(coordinator, shards, epochs, seed, records) */
static PyObject *open_deal(PyObject *type, PyObject *args)
{
    mu_deal_options options;
    mu_coordinator *opened;
    unsigned long long seed;
    mu_deal *deal = NULL;
    PyObject *coordinator;
    mu_error error;
    int rv;

    mu_deal_options_init(&options);
    if (!PyArg_ParseTuple(args, "OIIKI:open", &coordinator, &options.shards,
                          &options.epochs, &seed, &options.records) ||
        (opened = mupy_coordinator_of(coordinator)) == NULL)
        return NULL;
    options.seed = seed;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_deal_open(opened, &options, &error, &deal);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_raise(&error, NULL);
    return wrap((PyTypeObject *)type, deal, coordinator);
}

/* load(coordinator, path) */
static PyObject *load(PyObject *type, PyObject *args)
{
    mu_coordinator *opened;
    mu_deal *deal = NULL;
    PyObject *coordinator;
    const char *path;
    mu_error error;
    int rv;

    if (!PyArg_ParseTuple(args, "Os:load", &coordinator, &path) ||
        (opened = mupy_coordinator_of(coordinator)) == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_deal_load(opened, path, &error, &deal);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_raise(&error, NULL);
    return wrap((PyTypeObject *)type, deal, coordinator);
}

static void close_handle(struct deal *self)
{
    mu_deal *deal = self->deal;

    self->deal = NULL;
    Py_BEGIN_ALLOW_THREADS
    mu_deal_close(deal);
    Py_END_ALLOW_THREADS
}

static PyObject *close_it(PyObject *self, PyObject *unused)
{
    (void)unused;
    close_handle(self_of(self));
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
    close_handle(self_of(object));
    Py_CLEAR(self_of(object)->coordinator);
    release(object);
    Py_DECREF(type);
}

/* schedule(fn, args, kwargs, **options) */
static PyObject *schedule(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    if (handle_of(self) == NULL)
        return NULL;
    return mupy_schedule_dealt(self_of(self)->coordinator, handle_of(self), args, count,
                               names);
}

static void run_join(struct mupy_call *call)
{
    call->rv = mu_deal_join(call->object, call->timeout_ms, &call->error);
}

static PyObject *join(PyObject *self, PyObject *args)
{
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (handle_of(self) == NULL || !PyArg_ParseTuple(args, "|O:join", &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run_join);
    if (call == NULL)
        return NULL;
    call->object = handle_of(self);
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, self);
    return mupy_call_finish(call);
}

static PyObject *record(PyObject *self, PyObject *unused)
{
    mu_deal *deal = handle_of(self);
    mu_value *value;
    PyObject *object;

    (void)unused;
    if (deal == NULL)
        return NULL;
    value = mu_deal_record(deal);
    if (value == NULL)
        return PyErr_NoMemory();
    object = mupy_from_value(value, true);
    mu_value_free(value);
    return object;
}

static PyObject *save(PyObject *self, PyObject *args)
{
    mu_deal *deal = handle_of(self);
    const char *path;
    mu_error error;
    int rv;

    if (deal == NULL || !PyArg_ParseTuple(args, "s:save", &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_deal_save(deal, path, &error);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_raise(&error, NULL);
    Py_RETURN_NONE;
}

int mupy_deal_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"open", open_deal, METH_VARARGS | METH_CLASS,
         "open(coordinator, shards, epochs, seed, records)\n--\n\nThe first epoch."},
        {"load", load, METH_VARARGS | METH_CLASS,
         "load(coordinator, path)\n--\n\nGo on from a file."},
        {"schedule", MUPY_METHOD(schedule), METH_FASTCALL | METH_KEYWORDS,
         "schedule(fn, args=(), kwargs=None, **options)\n--\n\nDeal the next shard."},
        {"join", join, METH_VARARGS, "join(timeout=None)\n--\n\nUntil no shard is out."},
        {"record", record, METH_NOARGS, "record()\n--\n\nWhere it stands."},
        {"save", save, METH_VARARGS, "save(path)\n--\n\nSave it."},
        {"close", close_it, METH_NOARGS, "close()\n--\n\nLet go of it."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, dealloc},
        {Py_tp_traverse, traverse},
        {Py_tp_methods, methods},
        {Py_tp_doc, "A dataset that is dealt out in shards."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Deal", sizeof(struct deal), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    deal_type = mupy_add_type(module, &spec);
    return deal_type == NULL ? -1 : 0;
}
