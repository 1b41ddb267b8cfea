/* Watches of key-values, and locks. Their waits are cut into pieces, so that Ctrl-C, or a
 * close on another thread, ends them without losing an event. */
#include "services/services.h"

#include <pthread.h>
#include <string.h>

struct watch {
    PyObject_HEAD
    mu_kv_watch *watch; /* guarded by `lock`; so is that of a held lock below */
    mu_lock *held;
    PyObject *node;
    pthread_mutex_t lock;
    bool is_made;
};

static PyTypeObject *watch_type;
static PyTypeObject *lock_type;

static struct watch *as_watch(PyObject *self)
{
    return (struct watch *)self;
}

static PyObject *watch_object_new(PyTypeObject *type, PyObject *node)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct watch *self = (struct watch *)alloc(type, 0);

    if (self == NULL)
        return NULL;
    (void)pthread_mutex_init(&self->lock, NULL);
    self->is_made = true;
    Py_INCREF(node);
    self->node = node;
    return (PyObject *)self;
}

static void object_free(PyObject *object)
{
    struct watch *self = as_watch(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    if (self->is_made)
        (void)pthread_mutex_destroy(&self->lock);
    Py_XDECREF(self->node);
    release(object);
    Py_DECREF(type);
}

/* ---- watches ---- */

static void run_watch_open(struct mupy_call *call)
{
    mu_kv_watch *watch = NULL;

    call->rv = mu_kv_watch_open(call->object, call->data, (int)call->number,
                                call->timeout_ms, &call->error, &watch);
    call->made = watch;
}

static void drop_opened_watch(struct mupy_call *call)
{
    mu_kv_watch_close(call->made);
}

/* open(node, key, below, timeout) */
static PyObject *open_watch(PyObject *type, PyObject *args)
{
    struct mupy_call *call;
    PyObject *self = NULL;
    PyObject *timeout;
    const char *key;
    PyObject *node;
    int below;

    if (!PyArg_ParseTuple(args, "OspO:open", &node, &key, &below, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_watch_open);
    if (call == NULL)
        return NULL;
    call->data = key;
    call->number = below != 0;
    call->drop = drop_opened_watch;
    mupy_call_keep(call, args);
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        self = watch_object_new((PyTypeObject *)type, node);
    if (self != NULL)
        as_watch(self)->watch = call->made;
    else
        mu_kv_watch_close(call->made);
    mupy_call_free(call);
    return self;
}

static void close_watch_handle(struct watch *self)
{
    mu_kv_watch *watch;

    (void)pthread_mutex_lock(&self->lock);
    watch = self->watch;
    self->watch = NULL;
    (void)pthread_mutex_unlock(&self->lock);
    mu_kv_watch_close(watch);
}

static PyObject *close_watch(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (as_watch(object)->is_made) {
        Py_BEGIN_ALLOW_THREADS
        close_watch_handle(as_watch(object));
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static void watch_dealloc(PyObject *object)
{
    mu_kv_watch *watch = as_watch(object)->watch;

    Py_BEGIN_ALLOW_THREADS
    mu_kv_watch_close(watch);
    Py_END_ALLOW_THREADS
    object_free(object);
}

struct next {
    struct watch *watch;
    mu_kv_event event;
};

static int next_event_piece(void *what, int64_t piece_ms, mu_error *error)
{
    struct next *next = what;
    struct watch *self = next->watch;
    int rv;

    (void)pthread_mutex_lock(&self->lock);
    if (self->watch == NULL)
        rv = mu_error_set(error, -MU_ECLOSED, "the watch was closed");
    else
        rv = mu_kv_watch_next(self->watch, piece_ms, error, &next->event);
    (void)pthread_mutex_unlock(&self->lock);
    return rv;
}

static PyObject *event_object(mu_kv_event *event)
{
    PyObject *object;

    if (event->type == MU_KV_EVENT_PUT)
        object = Py_BuildValue("isy#K", event->type, event->key, event->item.value,
                               (Py_ssize_t)event->item.size,
                               (unsigned long long)event->item.revision);
    else
        object = Py_BuildValue("izOi", event->type, event->key, Py_None, 0);
    mu_kv_event_clear(event);
    return object;
}

/* next(timeout) -> (type, key, value, revision) */
static PyObject *next_event(PyObject *object, PyObject *args)
{
    struct next next = {.watch = as_watch(object)};
    PyObject *timeout = NULL;
    mu_error error = {0};
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTuple(args, "|O:next", &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    if (!next.watch->is_made)
        return mupy_fail(-MU_ECLOSED, "the watch was not opened");
    if (mupy_node_is_forked(next.watch->node))
        return NULL;
    rv = mupy_pieces_wait(next_event_piece, &next, timeout_ms, &error);
    if (rv == 0)
        return event_object(&next.event);
    return rv < 0 ? mupy_raise(&error, NULL) : NULL;
}

static PyObject *watch_closed(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(as_watch(object)->watch == NULL);
}

/* ---- locks ---- */

static void run_acquire(struct mupy_call *call)
{
    mu_lock *lock = NULL;

    call->rv =
        mu_lock_acquire(call->object, call->data, call->timeout_ms, &call->error, &lock);
    call->made = lock;
}

/* The call was interrupted: release the lock that it acquired. */
static void drop_acquired(struct mupy_call *call)
{
    mu_lock *lock = call->made;

    Py_BEGIN_ALLOW_THREADS(void)
    mu_lock_release(lock, 0, NULL);
    Py_END_ALLOW_THREADS
}

/* acquire(node, name, timeout) */
static PyObject *lock_acquire(PyObject *type, PyObject *args)
{
    struct mupy_call *call;
    PyObject *self = NULL;
    PyObject *timeout;
    const char *name;
    PyObject *node;

    if (!PyArg_ParseTuple(args, "OsO:acquire", &node, &name, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_acquire);
    if (call == NULL)
        return NULL;
    call->data = name;
    call->drop = drop_acquired;
    mupy_call_keep(call, args);
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        self = watch_object_new((PyTypeObject *)type, node);
    if (self != NULL)
        as_watch(self)->held = call->made;
    else if (call->made != NULL)
        drop_acquired(call);
    mupy_call_free(call);
    return self;
}

static mu_lock *detach_lock(struct watch *self)
{
    mu_lock *lock;

    (void)pthread_mutex_lock(&self->lock);
    lock = self->held;
    self->held = NULL;
    (void)pthread_mutex_unlock(&self->lock);
    return lock;
}

static void run_release(struct mupy_call *call)
{
    mu_lock *lock = detach_lock(call->object);

    if (lock == NULL)
        call->rv = mu_error_set(&call->error, -MU_EPRECONDITION,
                                "the lock was released already");
    else
        call->rv = mu_lock_release(lock, call->timeout_ms, &call->error);
}

/* release(timeout) */
static PyObject *release_lock(PyObject *object, PyObject *args)
{
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (!PyArg_ParseTuple(args, "|O:release", &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    if (!as_watch(object)->is_made)
        return mupy_fail(-MU_EPRECONDITION, "the lock was not acquired");
    if (mupy_node_is_forked(as_watch(object)->node))
        return NULL;
    call = mupy_call_new(run_release);
    if (call == NULL)
        return NULL;
    call->object = object;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static void lock_dealloc(PyObject *object)
{
    mu_lock *lock = as_watch(object)->held;

    if (lock != NULL) {
        Py_BEGIN_ALLOW_THREADS(void)
        mu_lock_release(lock, 0, NULL);
        Py_END_ALLOW_THREADS
    }
    object_free(object);
}

static int wait_lost_in(void *lock, int64_t piece_ms, mu_error *error)
{
    struct watch *self = lock;
    int rv;

    (void)pthread_mutex_lock(&self->lock);
    if (self->held == NULL)
        rv = mu_error_set(error, -MU_EPRECONDITION, "the lock was released");
    else
        rv = mu_lock_wait_lost(self->held, piece_ms, error);
    (void)pthread_mutex_unlock(&self->lock);
    return rv;
}

/* wait_lost(timeout) -> whether it was lost */
static PyObject *wait_lost(PyObject *object, PyObject *args)
{
    struct watch *self = as_watch(object);
    PyObject *timeout = NULL;
    mu_error error = {0};
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTuple(args, "|O:wait_lost", &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    if (!self->is_made)
        return mupy_fail(-MU_EPRECONDITION, "the lock was not acquired");
    if (mupy_node_is_forked(self->node))
        return NULL;
    rv = mupy_pieces_wait(wait_lost_in, self, timeout_ms, &error);
    if (rv == 1)
        return NULL;
    if (rv != 0 && rv != -MU_EDEADLINE)
        return mupy_raise(&error, NULL);
    return PyBool_FromLong(rv == 0);
}

static PyObject *lock_number(PyObject *object, void *closure)
{
    const mu_lock *lock = as_watch(object)->held;

    (void)closure;
    if (lock == NULL)
        return mupy_fail(-MU_EPRECONDITION, "the lock was released");
    return PyLong_FromUnsignedLongLong(mu_lock_fencing_token(lock));
}

static PyObject *lock_key(PyObject *object, void *closure)
{
    const mu_lock *lock = as_watch(object)->held;

    (void)closure;
    if (lock == NULL)
        return mupy_fail(-MU_EPRECONDITION, "the lock was released");
    return PyUnicode_FromString(mu_lock_key(lock));
}

static int add_lock_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"acquire", lock_acquire, METH_VARARGS | METH_CLASS,
         "acquire(node, name, timeout)\n--\n\nWait until the lock is held."},
        {"release", release_lock, METH_VARARGS,
         "release(timeout=None)\n--\n\nRelease it."},
        {"wait_lost", wait_lost, METH_VARARGS,
         "wait_lost(timeout=None)\n--\n\nWait until it is lost; returns whether."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"number", lock_number, NULL, "The fencing token.", NULL},
        {"key", lock_key, NULL, "The lock's key.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, lock_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "A held lock of the coordination service."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.HeldLock", sizeof(struct watch), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    lock_type = mupy_add_type(module, &spec);
    return lock_type == NULL ? -1 : 0;
}

int mupy_watch_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"open", open_watch, METH_VARARGS | METH_CLASS,
         "open(node, key, below, timeout)\n--\n\nOpen a watch."},
        {"next", next_event, METH_VARARGS,
         "next(timeout=None)\n--\n\nThe next event: (type, key, value, revision)."},
        {"close", close_watch, METH_NOARGS, "close()\n--\n\nClose it; any thread."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"closed", watch_closed, NULL, "Whether it was closed.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, watch_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "A watch of key-values."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.KeyValueWatch", sizeof(struct watch), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    watch_type = mupy_add_type(module, &spec);
    if (watch_type == NULL || add_lock_type(module) != 0)
        return -1;
    if (PyModule_AddIntConstant(module, "KV_EVENT_PUT", MU_KV_EVENT_PUT) != 0 ||
        PyModule_AddIntConstant(module, "KV_EVENT_DELETED", MU_KV_EVENT_DELETED) != 0)
        return -1;
    return PyModule_AddIntConstant(module, "KV_EVENT_SYNCED", MU_KV_EVENT_SYNCED);
}
