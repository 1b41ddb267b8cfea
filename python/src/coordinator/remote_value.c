/* Remote values: futures of closures. */
#include "hosting/hosting.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *mupy_remote_value_type;

static struct mupy_remote_value *as_remote_value(PyObject *self)
{
    return (struct mupy_remote_value *)self;
}

PyObject *mupy_remote_value_new(mu_remote_value *value, PyObject *coordinator,
                                PyObject *function, unsigned flags)
{
    struct mupy_remote_value *self =
        PyObject_New(struct mupy_remote_value, mupy_remote_value_type);

    if (self == NULL) {
        mu_remote_value_free(value);
        return NULL;
    }
    self->value = value;
    self->coordinator = coordinator;
    self->function = function;
    self->kept = (flags & MU_CLOSURE_PIN_RESULT) != 0;
    self->raise_on_fetch = (flags & MU_CLOSURE_RAISE_ON_FETCH) != 0;
    self->result = NULL;
    self->future = NULL;
    Py_INCREF(coordinator);
    Py_XINCREF(function);
    return (PyObject *)self;
}

static void remote_value_dealloc(PyObject *object)
{
    struct mupy_remote_value *self = as_remote_value(object);
    PyTypeObject *type = Py_TYPE(object);

    mu_remote_value_free(self->value);
    Py_XDECREF(self->result);
    Py_XDECREF(self->future);
    Py_XDECREF(self->function);
    Py_XDECREF(self->coordinator);
    PyObject_Free(self);
    Py_DECREF(type);
}

const char *mupy_function_text(PyObject *name)
{
    const char *text;

    if (name != NULL && Py_TYPE(name) == mupy_function_type)
        name = ((struct mupy_function *)name)->name;
    text = name == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
    if (text == NULL)
        PyErr_Clear();
    return text;
}

static const char *function_name(const struct mupy_remote_value *self)
{
    return mupy_function_text(self->function);
}

/* The exception of the value; NULL with another one. */
static PyObject *make_remote_error(const struct mupy_remote_value *self,
                                   const mu_error *error)
{
    PyObject *exception = mupy_exception_with(error, function_name(self),
                                              mu_remote_value_error_data(self->value));

    if (exception != NULL && Py_TYPE(self->coordinator) == mupy_actor_type)
        mupy_actor_name(exception, self->coordinator);
    return exception;
}

static PyObject *raise_remote_error(const struct mupy_remote_value *self,
                                    const mu_error *error)
{
    PyObject *exception = make_remote_error(self, error);

    if (exception != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

static bool is_remote_ready(PyObject *object)
{
    return mu_remote_value_state(as_remote_value(object)->value) != MU_REMOTE_NOT_READY;
}

/* ---- waiting ---- */

static void notify_waiter(mu_remote_value *value, void *user)
{
    (void)value;
    mupy_waiter_post(user, 1);
}

/* Returns 0, 1 at the timeout, -1 with an exception. */
static int wait_for_remote_value(PyObject *object, struct mupy_pieces *pieces)
{
    struct mupy_remote_value *self = as_remote_value(object);
    struct mupy_waiter *waiter;
    uint64_t since;
    int rv;

    if (pieces->left_ms == 0)
        return 1;
    Py_BEGIN_ALLOW_THREADS
    since = mu_remote_value_spin(self->value);
    Py_END_ALLOW_THREADS
    if (since == 0)
        return 0;
    waiter = mupy_waiter_new();
    if (waiter == NULL)
        return -1;
    rv = mu_remote_value_on_ready(self->value, notify_waiter, waiter);
    if (rv != 0) {
        mu_error error = {.code = rv};

        mupy_waiter_unref(waiter);
        mupy_waiter_unref(waiter);
        rv = mu_remote_value_fetch(self->value, 0, &error, NULL);
        if (rv == 0)
            return 0;
        (void)raise_remote_error(self, &error);
        return -1;
    }
    rv = mupy_waiter_wait(waiter, pieces);
    mu_remote_value_slept(self->value, since);
    mupy_waiter_unref(waiter);
    return rv;
}

/* Waits for the last value first: the others are usually ready by then. */
int mupy_remote_values_wait(PyObject *const *values, size_t count, int64_t timeout_ms,
                            PyObject **ret_late)
{
    struct mupy_pieces pieces;

    mupy_pieces_begin(&pieces, timeout_ms);
    for (size_t i = count; i > 0; i--) {
        int rv;

        if (is_remote_ready(values[i - 1]))
            continue;
        rv = wait_for_remote_value(values[i - 1], &pieces);
        if (rv != 0) {
            *ret_late = values[i - 1];
            return rv;
        }
    }
    return 0;
}

/* ---- results ---- */

static void run_fetch(struct mupy_call *call)
{
    mu_value *result = NULL;

    call->rv =
        mu_remote_value_fetch(call->object, call->timeout_ms, &call->error, &result);
    call->made = result;
}

static void drop_fetched(struct mupy_call *call)
{
    mu_value_free(call->made);
}

/* Fetch from the library: a result that is pinned on a worker, or the error after a
 * timeout. `waited_ms`: how long the caller waited already, for the message (-1: not at
 * all). */
static mu_value *fetch_far(struct mupy_remote_value *self, int64_t timeout_ms,
                           int64_t waited_ms)
{
    struct mupy_call *call = mupy_call_new(run_fetch);
    mu_value *result;

    if (call == NULL)
        return NULL;
    call->drop = drop_fetched;
    call->object = self->value;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, (PyObject *)self);
    if (mupy_call_run(call) != 0)
        return NULL;
    result = call->made;
    mupy_error_waited(&call->error, waited_ms);
    if (call->rv != 0)
        (void)raise_remote_error(self, &call->error);
    mupy_call_free(call);
    return result;
}

static mu_value *fetch_near(struct mupy_remote_value *self)
{
    mu_value *result = NULL;
    mu_error error;

    if (mu_remote_value_fetch(self->value, 0, &error, &result) != 0)
        (void)raise_remote_error(self, &error);
    return result;
}

/* muster._worker.Failed */
static PyObject *failed_type(void)
{
    static PyObject *type;

    return mupy_import(&type, "muster._worker", "Failed");
}

PyObject *mupy_exception_in(PyObject *result)
{
    PyObject *type = failed_type();

    if (type == NULL || (PyObject *)Py_TYPE(result) != type)
        return NULL;
    return PyObject_CallMethod(result, "exception", NULL);
}

static PyObject *raise_result(PyObject *result)
{
    PyObject *exception = mupy_exception_in(result);

    if (exception == NULL && !PyErr_Occurred())
        return result;
    Py_DECREF(result);
    if (exception != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

/* This thread decodes what a closure or a method of an actor has returned. */
static _Thread_local bool is_decoding;

static PyObject *decode_fetched(mu_value *result, bool writable)
{
    bool outer = is_decoding;
    PyObject *decoded;

    is_decoding = true;
    decoded = mupy_decode_result(result, writable, NULL);
    is_decoding = outer;
    mu_value_free(result);
    return decoded;
}

/* is_fetching() */
static PyObject *is_fetching(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(is_decoding);
}

bool mupy_is_constant(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    return object == Py_None || type == &PyLong_Type || type == &PyFloat_Type ||
           type == &PyBool_Type || type == &PyUnicode_Type || type == &PyBytes_Type;
}

/* Every fetch returns the same object, as a future's result() does. An array uses the
 * value's memory, so that a change is seen by all who fetched it. */
PyObject *mupy_remote_value_take(PyObject *object)
{
    struct mupy_remote_value *self = as_remote_value(object);
    mu_value *result;
    PyObject *decoded = mupy_kept(&self->result);

    if (decoded != NULL) {
        Py_INCREF(decoded);
        return decoded;
    }
    result = self->kept ? fetch_far(self, -1, -1) : fetch_near(self);
    if (result == NULL)
        return NULL;
    decoded = decode_fetched(result, true);
    if (decoded != NULL && self->raise_on_fetch)
        decoded = raise_result(decoded);
    if (decoded != NULL && !mupy_is_constant(decoded)) {
        decoded = mupy_keep_first(&self->result, decoded);
        Py_INCREF(decoded);
    }
    return decoded;
}

PyObject *mupy_remote_value_late(PyObject *self, int64_t timeout_ms)
{
    mu_value *result = fetch_far(as_remote_value(self), 0, timeout_ms);

    if (result == NULL)
        return NULL;
    mu_value_free(result);
    return mupy_remote_value_take(self);
}

static PyObject *fetch_within(PyObject *self, int64_t timeout_ms)
{
    PyObject *late;
    int rv = mupy_remote_values_wait(&self, 1, timeout_ms, &late);

    if (rv < 0)
        return NULL;
    return rv == 0 ? mupy_remote_value_take(self)
                   : mupy_remote_value_late(self, timeout_ms);
}

static PyObject *remote_value_fetch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    int64_t timeout_ms;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:fetch", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    return fetch_within(self, timeout_ms);
}

static PyObject *remote_value_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    PyObject *late;
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    rv = mupy_remote_values_wait(&self, 1, timeout_ms, &late);
    return rv < 0 ? NULL : PyBool_FromLong(rv == 0);
}

/* The error of a ready value as an object, None when it has a result. */
static PyObject *get_remote_error(PyObject *object)
{
    struct mupy_remote_value *self = as_remote_value(object);
    PyObject *exception;
    PyObject *result;
    mu_value *value;
    mu_error error;

    if (mu_remote_value_fetch(self->value, 0, &error, NULL) != 0)
        return make_remote_error(self, &error);
    if (!self->raise_on_fetch)
        Py_RETURN_NONE;
    value = self->kept ? fetch_far(self, -1, -1) : fetch_near(self);
    result = value == NULL ? NULL : decode_fetched(value, false);
    if (result == NULL)
        return NULL;
    exception = mupy_exception_in(result);
    Py_DECREF(result);
    if (exception != NULL || PyErr_Occurred())
        return exception;
    Py_RETURN_NONE;
}

static PyObject *remote_value_exception(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    PyObject *late;
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:exception", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    rv = mupy_remote_values_wait(&self, 1, timeout_ms, &late);
    if (rv < 0)
        return NULL;
    if (rv == 0)
        return get_remote_error(self);
    return mupy_fail(-MU_EDEADLINE, "the value is not ready within the timeout");
}

/* ---- other methods ---- */

static PyObject *remote_value_done(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_remote_ready(self));
}

/* Whether the value belongs to a parent process; then with an exception. */
static bool is_of_parent_process(PyObject *self)
{
    PyObject *coordinator = as_remote_value(self)->coordinator;

    if (coordinator != NULL && Py_TYPE(coordinator) == mupy_actor_type)
        return mupy_node_is_forked(mupy_actor_node(coordinator));
    return coordinator != NULL &&
           PyObject_TypeCheck(coordinator, mupy_coordinator_type) &&
           mupy_node_is_forked(((struct mupy_coordinator *)coordinator)->node);
}

static PyObject *remote_value_cancel(PyObject *self, PyObject *unused)
{
    int rv;

    (void)unused;
    if (is_of_parent_process(self))
        return NULL;
    rv = mu_remote_value_cancel(as_remote_value(self)->value);
    if (rv != 0)
        return mupy_fail(rv, "the value cannot be cancelled: its node is closed");
    Py_RETURN_NONE;
}

static PyObject *remote_value_state(PyObject *self, void *closure)
{
    (void)closure;
    switch (mu_remote_value_state(as_remote_value(self)->value)) {
    case MU_REMOTE_NOT_READY:
        return PyUnicode_FromString("not_ready");
    case MU_REMOTE_ABORTED:
        return PyUnicode_FromString("aborted");
    default:
        return PyUnicode_FromString("ready");
    }
}

static PyObject *remote_value_function(PyObject *self, void *closure)
{
    const char *name = function_name(as_remote_value(self));

    (void)closure;
    return PyUnicode_FromString(name == NULL ? "" : name);
}

static PyObject *remote_value_coordinator(PyObject *self, void *closure)
{
    PyObject *coordinator = as_remote_value(self)->coordinator;

    (void)closure;
    if (Py_TYPE(coordinator) == mupy_actor_type)
        return PyObject_GetAttrString(coordinator, "coordinator");
    Py_INCREF(coordinator);
    return coordinator;
}

/* On the loop's thread: posts a notice, which holds the references. */
static void on_ready(mu_remote_value *value, void *user)
{
    (void)value;
    mupy_notice_post(user);
}

static PyObject *add_done_callback(PyObject *self, PyObject *callback)
{
    struct mupy_notice *notice;
    int rv;

    if (!PyCallable_Check(callback))
        return PyErr_Format(PyExc_TypeError, "a callback is callable, got %R", callback);
    if (is_of_parent_process(self))
        return NULL;
    if (mupy_notice_start() != 0)
        return NULL;
    notice = mupy_notice_new(callback, self);
    if (notice == NULL)
        return NULL;
    rv = mu_remote_value_on_ready(as_remote_value(self)->value, on_ready, notice);
    if (rv == 0)
        Py_RETURN_NONE;
    mupy_notice_free(notice);
    return mupy_fail(rv, "the value's node is closed");
}

static PyObject *remote_value_await(PyObject *self)
{
    static PyObject *await_value;

    if (mupy_import(&await_value, "muster._notices", "await_value") == NULL)
        return NULL;
    return PyObject_CallFunctionObjArgs(await_value, self, NULL);
}

static PyObject *remote_value_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return mupy_reduce(self);
}

static PyObject *remote_value_repr(PyObject *self)
{
    const char *name = function_name(as_remote_value(self));
    const char *words =
        mu_remote_value_state(as_remote_value(self)->value) == MU_REMOTE_NOT_READY
            ? "not ready"
        : mu_remote_value_state(as_remote_value(self)->value) == MU_REMOTE_ABORTED
            ? "aborted"
            : "ready";

    return PyUnicode_FromFormat("<muster.RemoteValue of %s: %s>",
                                name == NULL ? "a closure" : name, words);
}

static PyMethodDef of_module[] = {
    {"is_fetching", is_fetching, METH_NOARGS,
     "is_fetching()\n--\n\nWhether this thread unpickles what is fetched."},
    {NULL, NULL, 0, NULL},
};

int mupy_remote_value_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS,
         "RemoteValue[int]: its result is an int."},
        {"fetch", MUPY_METHOD(remote_value_fetch), METH_VARARGS | METH_KEYWORDS,
         "fetch(timeout=None)\n--\n\n"
         "Wait for the result, at most timeout seconds (None: no timeout), and return "
         "it.\n"
         "\nRaises the function's own exception, with the worker's traceback as its\n"
         "cause, InputError when an input of it failed, CancelledError when it was\n"
         "cancelled, DeadlineExceededError at the timeout: it says where the closure\n"
         "is."},
        {"get", MUPY_METHOD(remote_value_fetch), METH_VARARGS | METH_KEYWORDS,
         "get(timeout=None)\n--\n\nThe same as fetch()."},
        {"wait", MUPY_METHOD(remote_value_wait), METH_VARARGS | METH_KEYWORDS,
         "wait(timeout=None)\n--\n\n"
         "Wait until it is ready, at most timeout seconds; returns whether it is."},
        {"exception", MUPY_METHOD(remote_value_exception), METH_VARARGS | METH_KEYWORDS,
         "exception(timeout=None)\n--\n\n"
         "The exception that fetch() would raise, or None."},
        {"done", remote_value_done, METH_NOARGS,
         "done()\n--\n\nWhether it is ready or was aborted. Never waits."},
        {"cancel", remote_value_cancel, METH_NOARGS,
         "cancel()\n--\n\n"
         "Cancel its closure: at once when it is queued; a running one is asked to "
         "stop,\n"
         "see Run.cancelled(). No effect when it is done."},
        {"add_done_callback", add_done_callback, METH_O,
         "add_done_callback(callback)\n--\n\n"
         "Have callback(value) called once it is done, on a thread of muster."},
        {"__reduce__", remote_value_reduce, METH_NOARGS,
         "Only for arguments of closures."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"state", remote_value_state, NULL, "\"not_ready\", \"ready\" or \"aborted\".",
         NULL},
        {"function", remote_value_function, NULL, "The name of its function.", NULL},
        {"coordinator", remote_value_coordinator, NULL,
         "The coordinator that scheduled it.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMemberDef members[] = {
        {"_future", T_OBJECT, offsetof(struct mupy_remote_value, future), 0, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, remote_value_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_members, members},
        {Py_tp_repr, remote_value_repr},
        {Py_am_await, remote_value_await},
        {Py_tp_doc, "The future of a closure's result.\n\n"
                    "It can be fetched, awaited in asyncio, and passed among the "
                    "arguments of later\nclosures, at any depth."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.RemoteValue",
                               sizeof(struct mupy_remote_value), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    mupy_remote_value_type = mupy_add_type(module, &spec);
    if (mupy_remote_value_type == NULL)
        return -1;
    return PyModule_AddFunctions(module, of_module);
}
