/* The coordinator: schedules functions, and fetches what they return. */
#include "extension.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *mupy_coordinator_type;

static struct mupy_coordinator *as_coordinator(PyObject *self)
{
    return (struct mupy_coordinator *)self;
}

mu_coordinator *mupy_coordinator_begin(PyObject *object)
{
    mu_coordinator *coordinator;

    if (!PyObject_TypeCheck(object, mupy_coordinator_type)) {
        PyErr_Format(PyExc_TypeError, "a ClusterCoordinator was expected, got %R",
                     object);
        return NULL;
    }
    coordinator = mupy_handle_begin(&as_coordinator(object)->handle);
    if (coordinator == NULL) {
        (void)mupy_fail(-MU_ECLOSED, "the coordinator was closed");
    } else if (mupy_node_is_forked(as_coordinator(object)->node)) {
        mupy_handle_end(&as_coordinator(object)->handle);
        coordinator = NULL;
    }
    return coordinator;
}

void mupy_coordinator_end(PyObject *object)
{
    mupy_handle_end(&as_coordinator(object)->handle);
}

struct mupy_call *mupy_coordinator_call(PyObject *object,
                                        void (*run)(struct mupy_call *call))
{
    mu_coordinator *coordinator = mupy_coordinator_begin(object);
    struct mupy_call *call = coordinator == NULL ? NULL : mupy_call_new(run);

    if (call == NULL) {
        if (coordinator != NULL)
            mupy_coordinator_end(object);
        return NULL;
    }
    call->object = coordinator;
    call->used = &as_coordinator(object)->handle;
    mupy_call_keep(call, object);
    return call;
}

void mupy_coordinator_remember(struct mupy_coordinator *self, PyObject *callable,
                               PyObject *known)
{
    PyObject *former_callable;
    PyObject *former_known;

    Py_XINCREF(callable);
    Py_XINCREF(known);
    MUPY_LOCK(self)
    former_callable = self->last_callable;
    former_known = self->last_known;
    self->last_callable = callable;
    self->last_known = known;
    MUPY_UNLOCK()
    Py_XDECREF(former_callable);
    Py_XDECREF(former_known);
}

static void forget_functions(struct mupy_coordinator *self)
{
    mupy_coordinator_remember(self, NULL, NULL);
    if (self->functions != NULL)
        PyDict_Clear(self->functions);
    if (self->by_hash != NULL)
        PyDict_Clear(self->by_hash);
}

static mu_value *error_data(struct mupy_coordinator *self, const mu_error *error)
{
    mu_coordinator *coordinator = mupy_coordinator_begin((PyObject *)self);
    mu_value *data = NULL;

    if (coordinator == NULL) {
        PyErr_Clear();
        return NULL;
    }
    data = mu_coordinator_error_data(coordinator, error);
    mupy_coordinator_end((PyObject *)self);
    return data;
}

/* After the loss of the chief, functions must be sent to the workers again. */
PyObject *mupy_coordinator_raise(struct mupy_coordinator *self, const mu_error *error,
                                 const char *function)
{
    if (error->kind == MU_ERROR_CHIEF)
        forget_functions(self);
    return mupy_raise_with(error, function,
                           error->data == 0 ? NULL : error_data(self, error));
}

/* ---- open and close ---- */

static void run_coordinator_open(struct mupy_call *call)
{
    mu_coordinator *coordinator = NULL;

    call->rv =
        mu_coordinator_open(call->object, call->timeout_ms, &call->error, &coordinator);
    call->made = coordinator;
}

static void close_coordinator_handle(void *coordinator)
{
    mu_coordinator_close(coordinator);
}

static void run_coordinator_close(struct mupy_call *call)
{
    mupy_handle_drop(call->other);
}

static void drop_opened_coordinator(struct mupy_call *call)
{
    mu_coordinator *coordinator = call->made;

    Py_BEGIN_ALLOW_THREADS
    mu_coordinator_close(coordinator);
    Py_END_ALLOW_THREADS
}

static int fill_coordinator(struct mupy_coordinator *self, PyObject *node,
                            mu_coordinator *coordinator)
{
    Py_INCREF(node);
    Py_XDECREF(self->node);
    self->node = node;
    Py_XDECREF(self->functions);
    self->functions = PyDict_New();
    Py_XDECREF(self->by_hash);
    self->by_hash = PyDict_New();
    mupy_handle_open(&self->handle, coordinator, close_coordinator_handle);
    return self->by_hash != NULL && self->functions != NULL ? 0 : -1;
}

/* Coordinator(node, timeout=None) */
static int coordinator_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "timeout", NULL};
    struct mupy_coordinator *self = as_coordinator(object);
    PyObject *timeout = NULL;
    PyObject *node;
    struct mupy_call *call;
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Coordinator", names, &node,
                                     &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0 || mupy_node_of(node) == NULL)
        return -1;
    if (mupy_handle_is_open(&self->handle)) {
        (void)mupy_fail(-MU_EEXISTS, "the coordinator is open already");
        return -1;
    }
    call = mupy_call_new(run_coordinator_open);
    if (call == NULL)
        return -1;
    call->drop = drop_opened_coordinator;
    call->object = mupy_node_of(node);
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, node);
    if (mupy_call_run(call) != 0)
        return -1;
    rv = call->rv;
    if (rv == 0)
        rv = fill_coordinator(self, node, call->made);
    else
        (void)mupy_raise(&call->error, NULL);
    mupy_call_free(call);
    return rv == 0 ? 0 : -1;
}

static void close_coordinator_now(struct mupy_coordinator *self)
{
    forget_functions(self);
    if (mupy_handle_shut(&self->handle))
        mupy_handle_end(&self->handle);
}

static PyObject *coordinator_close(PyObject *object, PyObject *unused)
{
    struct mupy_coordinator *self = as_coordinator(object);
    struct mupy_call *call;

    (void)unused;
    call = mupy_call_new(run_coordinator_close);
    if (call == NULL)
        return NULL;
    if (!mupy_handle_shut(&self->handle)) {
        mupy_call_free(call);
        Py_RETURN_NONE;
    }
    call->other = &self->handle;
    forget_functions(self);
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static int coordinator_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct mupy_coordinator *self = as_coordinator(object);

    Py_VISIT(self->node);
    Py_VISIT(self->functions);
    Py_VISIT(self->by_hash);
    Py_VISIT(self->last_callable);
    Py_VISIT(self->last_known);
    return 0;
}

static int coordinator_clear(PyObject *object)
{
    struct mupy_coordinator *self = as_coordinator(object);

    mupy_coordinator_remember(self, NULL, NULL);
    Py_CLEAR(self->functions);
    Py_CLEAR(self->by_hash);
    return 0;
}

static void coordinator_dealloc(PyObject *object)
{
    struct mupy_coordinator *self = as_coordinator(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    close_coordinator_now(self);
    Py_CLEAR(self->functions);
    Py_CLEAR(self->by_hash);
    Py_CLEAR(self->node);
    release(object);
    Py_DECREF(type);
}

static PyObject *coordinator_forget_last(PyObject *object, PyObject *unused)
{
    (void)unused;
    mupy_coordinator_remember(as_coordinator(object), NULL, NULL);
    Py_RETURN_NONE;
}

/* ---- joining ---- */

static int join_coordinator_piece(void *what, int64_t timeout_ms, mu_error *error)
{
    const struct mupy_handle *handle = what;

    if (!mupy_handle_is_open(handle))
        return mu_error_set(error, -MU_ECLOSED, "the coordinator was closed");
    return mu_coordinator_join(handle->object, timeout_ms, error);
}

static PyObject *coordinator_join(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    int64_t timeout_ms;
    mu_error error = {0};
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:join", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0 || mupy_coordinator_begin(object) == NULL)
        return NULL;
    rv = mupy_pieces_wait(join_coordinator_piece, &as_coordinator(object)->handle,
                          timeout_ms, &error);
    mupy_coordinator_end(object);
    if (rv == 0)
        Py_RETURN_NONE;
    mupy_error_waited(&error, timeout_ms);
    return rv < 0 ? mupy_coordinator_raise(as_coordinator(object), &error, NULL) : NULL;
}

static PyObject *coordinator_done(PyObject *object, PyObject *unused)
{
    mu_coordinator *coordinator = mupy_coordinator_begin(object);
    mu_error error;
    int is_done = 0;
    int rv;

    (void)unused;
    if (coordinator == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_coordinator_done(coordinator, &error, &is_done);
    Py_END_ALLOW_THREADS
    mupy_coordinator_end(object);
    return rv != 0 ? mupy_coordinator_raise(as_coordinator(object), &error, NULL)
                   : PyBool_FromLong(is_done);
}

/* ---- errors, counts, explanations ---- */

static PyObject *coordinator_errors(PyObject *object, PyObject *unused)
{
    mu_coordinator *coordinator = mupy_coordinator_begin(object);
    PyObject *list = PyList_New(0);
    mu_error *found = PyMem_Malloc(sizeof *found * 64);
    size_t count = 64;

    (void)unused;
    if (found == NULL)
        PyErr_NoMemory();
    while (coordinator != NULL && list != NULL && found != NULL && count == 64) {
        count = mu_coordinator_take_errors(coordinator, found, 64, NULL);
        for (size_t i = 0; list != NULL && i < count; i++) {
            PyObject *exception = mupy_exception_with(
                &found[i], NULL, mu_coordinator_error_data(coordinator, &found[i]));

            if (exception == NULL || PyList_Append(list, exception) != 0)
                Py_CLEAR(list);
            Py_XDECREF(exception);
        }
    }
    PyMem_Free(found);
    if (coordinator != NULL)
        mupy_coordinator_end(object);
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *coordinator_counts(PyObject *object, PyObject *unused)
{
    mu_coordinator *coordinator = mupy_coordinator_begin(object);
    mu_coordinator_stats c;

    (void)unused;
    if (coordinator == NULL)
        return NULL;
    mu_coordinator_get_stats(coordinator, &c);
    mupy_coordinator_end(object);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "scheduled",
                         (unsigned long long)c.scheduled, "finished",
                         (unsigned long long)c.finished, "failed",
                         (unsigned long long)c.failed, "cancelled",
                         (unsigned long long)c.cancelled, "outstanding",
                         (unsigned long long)c.outstanding, "retried",
                         (unsigned long long)c.retried);
}

static void run_coordinator_explain(struct mupy_call *call)
{
    mu_value *reasons = NULL;

    call->rv = mu_coordinator_explain(call->object, call->other, call->data,
                                      call->timeout_ms, &call->error, &reasons);
    call->made = reasons;
}

static PyObject *coordinator_explain(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "timeout", NULL};
    PyObject *value;
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:explain", names, &value,
                                     &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_coordinator_call(object, run_coordinator_explain);
    if (call == NULL)
        return NULL;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, value);
    if (PyUnicode_Check(value))
        call->data = PyUnicode_AsUTF8AndSize(value, NULL);
    else if (PyObject_TypeCheck(value, mupy_remote_value_type))
        call->other = ((struct mupy_remote_value *)value)->value;
    else
        PyErr_Format(PyExc_TypeError,
                     "explain() takes a RemoteValue or the name of a closure, got %R",
                     value);
    if (PyErr_Occurred()) {
        mupy_call_free(call);
        return NULL;
    }
    return mupy_call_value(call);
}

static void run_coordinator_drain(struct mupy_call *call)
{
    call->rv = mu_coordinator_drain_task(call->object, call->text, (int)call->number,
                                         call->timeout_ms, &call->error);
}

static PyObject *coordinator_drain(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"worker", "timeout", "worker_type", NULL};
    const char *type = "worker";
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;
    int worker;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|Os:drain", names, &worker, &timeout,
                                     &type) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_coordinator_call(object, run_coordinator_drain);
    if (call == NULL)
        return NULL;
    call->number = (uint64_t)(int64_t)worker;
    call->timeout_ms = timeout_ms;
    (void)strncpy(call->text, type, sizeof call->text - 1);
    return mupy_call_finish(call);
}

static void run_forget(struct mupy_call *call)
{
    call->rv = mu_coordinator_forget(call->object, call->timeout_ms, &call->error);
}

static void run_wait_for_chief(struct mupy_call *call)
{
    call->rv =
        mu_coordinator_wait_for_chief(call->object, call->timeout_ms, &call->error);
}

static PyObject *call_coordinator_timed(PyObject *object, PyObject *args,
                                        PyObject *kwargs,
                                        void (*run)(struct mupy_call *call))
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_coordinator_call(object, run);
    if (call == NULL)
        return NULL;
    call->timeout_ms = timeout_ms;
    return mupy_call_finish(call);
}

static PyObject *coordinator_forget(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return call_coordinator_timed(object, args, kwargs, run_forget);
}

static PyObject *coordinator_wait_for_chief(PyObject *object, PyObject *args,
                                            PyObject *kwargs)
{
    return call_coordinator_timed(object, args, kwargs, run_wait_for_chief);
}

static PyObject *coordinator_node(PyObject *object, void *closure)
{
    PyObject *node = as_coordinator(object)->node;

    (void)closure;
    if (node == NULL)
        node = Py_None;
    Py_INCREF(node);
    return node;
}

static PyMethodDef methods[] = {
    {"schedule", MUPY_METHOD(mupy_schedule), METH_FASTCALL | METH_KEYWORDS,
     "schedule(fn, args=None, kwargs=None, *, name=None, priority=None, "
     "deadline=None, run_timeout=None, attempts=None, worker=None, not_worker=None, "
     "worker_type=None, effect_once=False, pin_result=False, no_backup=False, "
     "raise_on_fetch=False, timeout=None, result=True)\n--\n\n"
     "Queue fn(*args, **kwargs) to run at least once on any worker; returns its\n"
     "RemoteValue at once. fn is a function, or the name of one that workers have "
     "registered,\nwhich gets args or kwargs: plain values, arrays, RemoteValues, "
     "per-worker values,\nVariables.\n\n"
     "name: of the closure, for logs and explain(). With a journal, one that has "
     "finished is\nnot run again: scheduled again, it gives the same result.\n"
     "priority: 0 (first) to 7 (last); 4 is the default.\n"
     "deadline: seconds from now; a closure not resolved by then fails.\n"
     "run_timeout: seconds of one run; then it counts as stuck and runs elsewhere.\n"
     "attempts: runs, after losses of workers, before it is given up; an exception is "
     "final.\n"
     "worker, not_worker: task index of the only worker that may run it, or of one "
     "that may not.\n"
     "worker_type: only tasks of this type run it.\n"
     "effect_once: writes with Run.add(), assign() and apply_gradient() are applied "
     "once.\n"
     "pin_result: the result stays on the worker until it is fetched or used.\n"
     "no_backup: no second attempt when it is a straggler.\n"
     "raise_on_fetch: only its value raises its error: no other call does, and nothing\n"
     "  is cancelled for it; and this call raises no error of earlier closures.\n"
     "timeout: seconds to wait for room in the queue; None: no timeout.\n"
     "result: False: the result is not needed; None is returned.\n\n"
     "Raises the first error of an earlier closure, once, after everything that was "
     "queued\nis cancelled; then nothing was queued. DeadlineExceededError when "
     "there is no room."},
    {"join", MUPY_METHOD(coordinator_join), METH_VARARGS | METH_KEYWORDS,
     "join(timeout=None)\n--\n\n"
     "Wait until all closures scheduled so far are done, at most timeout seconds.\n\n"
     "Raises their first error, once. DeadlineExceededError lists what is in flight "
     "where."},
    {"done", coordinator_done, METH_NOARGS,
     "done()\n--\n\nWhether nothing is queued or in flight. Raises as join() does."},
    {"fetch", MUPY_METHOD(mupy_fetch), METH_VARARGS | METH_KEYWORDS,
     "fetch(val, timeout=None)\n--\n\n"
     "A copy of val (a RemoteValue, or lists, tuples and dicts of them at any "
     "depth) with\nthe results in their place. Waits at most timeout seconds for all. "
     "Raises as\nRemoteValue.fetch() does, for the first one in order."},
    {"errors", coordinator_errors, METH_NOARGS,
     "errors()\n--\n\n"
     "All errors since the last call, the oldest first, as exceptions."},
    {"counts", coordinator_counts, METH_NOARGS,
     "counts()\n--\n\n"
     "How many closures were scheduled, finished, failed, cancelled, retried, and "
     "are\noutstanding, as a dict."},
    {"explain", MUPY_METHOD(coordinator_explain), METH_VARARGS | METH_KEYWORDS,
     "explain(value, timeout=None)\n--\n\n"
     "Why a closure has not run: a dict with its state, attempts, where it is and "
     "what it\nwaits for. value is its RemoteValue or its name. NotFoundError when it "
     "is resolved."},
    {"drain", MUPY_METHOD(coordinator_drain), METH_VARARGS | METH_KEYWORDS,
     "drain(worker, timeout=None, worker_type=\"worker\")\n--\n\n"
     "Let a worker finish its closures, then leave; with worker_type=\"ps\" let a\n"
     "parameter server give all that it has to others."},
    {"forget", MUPY_METHOD(coordinator_forget), METH_VARARGS | METH_KEYWORDS,
     "forget(timeout=None)\n--\n\n"
     "Remove the named closures that have finished from the journal."},
    {"wait_for_chief", MUPY_METHOD(coordinator_wait_for_chief),
     METH_VARARGS | METH_KEYWORDS,
     "wait_for_chief(timeout=None)\n--\n\nWait until the chief is connected."},
    {"close", coordinator_close, METH_NOARGS,
     "close()\n--\n\nCancel outstanding closures, and close the coordinator."},
    {"_forget_last", coordinator_forget_last, METH_NOARGS,
     "Called before functions are dropped."},
    {NULL, NULL, 0, NULL},
};

int mupy_coordinator_init(PyObject *module)
{
    static PyGetSetDef getset[] = {
        {"node", coordinator_node, NULL, "Its node.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, coordinator_init},
        {Py_tp_dealloc, coordinator_dealloc},
        {Py_tp_traverse, coordinator_traverse},
        {Py_tp_clear, coordinator_clear},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "Coordinator(node, timeout=None)\n--\n\n"
                    "Schedules functions on the cluster's workers. One for each node."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.Coordinator", sizeof(struct mupy_coordinator), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

    mupy_coordinator_type = mupy_add_type(module, &spec);
    return mupy_coordinator_type == NULL ? -1 : 0;
}
