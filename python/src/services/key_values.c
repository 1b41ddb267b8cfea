/* Key-values of the coordination service: waiting and asynchronous calls. The public
 * classes are in muster/_key_values.py. */
#include "services/services.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls that wait ---- */

struct kv_request {
    struct mupy_request request;
    const char *key;
    const char *value;
    Py_ssize_t size;
    unsigned flags;
    unsigned long long revision;
    long long by;
    uint64_t changed;
    int64_t number;
    mu_kv_item item;
};

static void clean_kv_request(struct mupy_request *request)
{
    mu_kv_item_clear(&((struct kv_request *)request)->item);
}

/* Make a call of arguments (node, ..., timeout); it holds a reference to `args`. */
static struct mupy_call *kv_call(PyObject *args, PyObject *node, PyObject *timeout,
                                 void (*run)(struct mupy_call *call),
                                 const struct kv_request *fields)
{
    struct mupy_call *call = mupy_node_call(node, timeout, run);
    struct kv_request *request;

    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, clean_kv_request);
    if (request == NULL)
        return NULL;
    *request = *fields;
    request->request.clean = clean_kv_request;
    mupy_call_keep(call, args);
    return call;
}

static void run_put(struct mupy_call *call)
{
    struct kv_request *request = call->other;

    call->rv = mu_kv_put(call->object, request->key, request->value,
                         (size_t)request->size, request->flags, request->revision,
                         call->timeout_ms, &call->error, &request->changed);
}

/* kv_put(node, key, value, flags, revision, timeout) -> revision */
static PyObject *kv_put(PyObject *module, PyObject *args)
{
    struct kv_request fields = {.flags = 0};
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *result;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "Osy#IKO:kv_put", &node, &fields.key, &fields.value,
                          &fields.size, &fields.flags, &fields.revision, &timeout))
        return NULL;
    call = kv_call(args, node, timeout, run_put, &fields);
    if (call == NULL || mupy_request_run(call) != 0)
        return NULL;
    result = PyLong_FromUnsignedLongLong(((struct kv_request *)call->other)->changed);
    mupy_request_end(call);
    return result;
}

static void run_get(struct mupy_call *call)
{
    struct kv_request *request = call->other;

    call->rv = mu_kv_get(call->object, request->key, call->timeout_ms, &call->error,
                         &request->item);
}

static void run_try_get(struct mupy_call *call)
{
    struct kv_request *request = call->other;

    call->rv = mu_kv_try_get(call->object, request->key, call->timeout_ms, &call->error,
                             &request->item);
}

static PyObject *get_with(PyObject *args, void (*run)(struct mupy_call *call))
{
    struct kv_request fields = {.flags = 0};
    const struct kv_request *request;
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *result;
    PyObject *node;

    if (!PyArg_ParseTuple(args, "OsO:kv_get", &node, &fields.key, &timeout))
        return NULL;
    call = kv_call(args, node, timeout, run, &fields);
    if (call == NULL || mupy_request_run(call) != 0)
        return NULL;
    request = call->other;
    result = Py_BuildValue("y#K", request->item.value, (Py_ssize_t)request->item.size,
                           (unsigned long long)request->item.revision);
    mupy_request_end(call);
    return result;
}

/* kv_get(node, key, timeout) -> (value, revision) */
static PyObject *kv_get(PyObject *module, PyObject *args)
{
    (void)module;
    return get_with(args, run_get);
}

static PyObject *try_get(PyObject *module, PyObject *args)
{
    (void)module;
    return get_with(args, run_try_get);
}

static void run_increment(struct mupy_call *call)
{
    struct kv_request *request = call->other;

    call->rv = mu_kv_increment(call->object, request->key, request->by, call->timeout_ms,
                               &call->error, &request->number);
}

/* kv_increment(node, key, by, timeout) -> sum */
static PyObject *kv_increment(PyObject *module, PyObject *args)
{
    struct kv_request fields = {.flags = 0};
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *result;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsLO:kv_increment", &node, &fields.key, &fields.by,
                          &timeout))
        return NULL;
    call = kv_call(args, node, timeout, run_increment, &fields);
    if (call == NULL || mupy_request_run(call) != 0)
        return NULL;
    result = PyLong_FromLongLong(((struct kv_request *)call->other)->number);
    mupy_request_end(call);
    return result;
}

static void run_delete(struct mupy_call *call)
{
    struct kv_request *request = call->other;

    call->rv = mu_kv_delete(call->object, request->key, call->timeout_ms, &call->error,
                            &request->changed);
}

/* kv_delete(node, key, timeout) -> how many */
static PyObject *kv_delete(PyObject *module, PyObject *args)
{
    struct kv_request fields = {.flags = 0};
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *result;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsO:kv_delete", &node, &fields.key, &timeout))
        return NULL;
    call = kv_call(args, node, timeout, run_delete, &fields);
    if (call == NULL || mupy_request_run(call) != 0)
        return NULL;
    result = PyLong_FromUnsignedLongLong(((struct kv_request *)call->other)->changed);
    mupy_request_end(call);
    return result;
}

static void run_list(struct mupy_call *call)
{
    mu_value *items = NULL;

    call->rv =
        mu_kv_list(call->object, call->data, call->timeout_ms, &call->error, &items);
    call->made = items;
}

/* kv_list(node, directory, timeout) -> [{key, value, revision}] */
static PyObject *kv_list(PyObject *module, PyObject *args)
{
    const char *directory;
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsO:kv_list", &node, &directory, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_list);
    if (call == NULL)
        return NULL;
    call->data = directory;
    mupy_call_keep(call, args);
    return mupy_call_value(call);
}

/* ---- asynchronous calls ---- */

struct answer {
    PyObject_HEAD
    bool came; /* set before the notice is posted */
    int code;
    mu_error error;
    char *value;
    size_t size;
    uint64_t revision;
    int64_t number;
};

static PyTypeObject *answer_type;

static void answer_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    free(((struct answer *)object)->value);
    PyObject_Free(object);
    Py_DECREF(type);
}

static struct answer *answer_new(void)
{
    struct answer *answer = PyObject_New(struct answer, answer_type);

    if (answer == NULL)
        return NULL;
    answer->came = false;
    answer->code = 0;
    answer->value = NULL;
    answer->size = 0;
    answer->revision = 0;
    answer->number = 0;
    return answer;
}

/* kv_get() -> (value or None, revision, number); raises its error. */
static PyObject *answer_get(PyObject *object, PyObject *unused)
{
    const struct answer *answer = (struct answer *)object;

    (void)unused;
    if (!answer->came)
        return mupy_fail(-MU_EPRECONDITION, "there is no answer yet");
    if (answer->code != 0)
        return mupy_raise(&answer->error, NULL);
    return Py_BuildValue("y#KL", answer->value == NULL ? "" : answer->value,
                         (Py_ssize_t)answer->size, (unsigned long long)answer->revision,
                         (long long)answer->number);
}

static PyObject *kv_answer_number(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(((struct answer *)object)->number);
}

struct pending {
    struct mupy_notice *notice; /* its argument is the answer */
    struct answer *answer;
};

/* On the loop's thread. */
static void on_kv_answer(void *user, const mu_kv_response *from)
{
    struct pending *pending = user;
    struct answer *answer = pending->answer;

    answer->code = from->code;
    if (from->error != NULL && from->code != 0)
        answer->error = *from->error;
    answer->error.code = from->code;
    answer->revision = from->revision;
    answer->number = from->number;
    if (from->code == 0 && from->value != NULL) {
        answer->value = malloc(from->size + 1);
        answer->size = from->size;
        if (answer->value != NULL)
            memcpy(answer->value, from->value, from->size);
        else
            answer->code = mu_error_set(&answer->error, -MU_ENOMEM, "out of memory");
    }
    answer->came = true;
    mupy_notice_post(pending->notice);
    free(pending);
}

/* Make a pending request, whose notice calls `callback` with the answer. */
static struct pending *pending_kv_new(PyObject *callback)
{
    struct pending *pending;
    struct answer *answer;

    if (mupy_notice_start() != 0)
        return NULL;
    answer = answer_new();
    if (answer == NULL)
        return NULL;
    pending = calloc(1, sizeof *pending);
    if (pending == NULL)
        PyErr_NoMemory();
    else
        pending->notice = mupy_notice_new(callback, (PyObject *)answer);
    Py_DECREF(answer);
    if (pending == NULL || pending->notice == NULL) {
        free(pending);
        return NULL;
    }
    pending->answer = answer;
    return pending;
}

static PyObject *finish_kv_begin(struct pending *pending, int rv, const mu_error *error,
                                 uint64_t number)
{
    if (rv == 0)
        return PyLong_FromUnsignedLongLong(number);
    mupy_notice_free(pending->notice);
    free(pending);
    return mupy_raise(error, NULL);
}

/* kv_begin(node, operation, key, value, flags, revision, by, timeout, callback) ->
 * request */
static PyObject *kv_begin(PyObject *module, PyObject *args)
{
    mu_kv_request ask = {.timeout_ms = -1};
    unsigned long long revision;
    struct pending *pending;
    PyObject *callback;
    PyObject *timeout;
    PyObject *node;
    mu_node *opened;
    Py_ssize_t size;
    uint64_t number = 0;
    const char *value;
    long long by;
    mu_error error;
    int rv;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oisy#IKLOO:kv_begin", &node, &ask.operation, &ask.key,
                          &value, &size, &ask.flags, &revision, &by, &timeout,
                          &callback) ||
        (opened = mupy_node_of(node)) == NULL ||
        mupy_timeout(timeout, &ask.timeout_ms) != 0)
        return NULL;
    ask.value = value;
    ask.size = (size_t)size;
    ask.revision = revision;
    ask.by = by;
    pending = pending_kv_new(callback);
    if (pending == NULL)
        return NULL;
    rv = mu_kv_request_async(opened, &ask, on_kv_answer, pending, &number);
    (void)mu_error_set(&error, rv, "the request for key \"%.100s\" was not begun: %s",
                       ask.key,
                       rv == -MU_EAGAIN ? "too many are under way" : mu_strerror(rv));
    return finish_kv_begin(pending, rv, &error, number);
}

/* kv_cancel(node, request) */
static PyObject *kv_cancel(PyObject *module, PyObject *args)
{
    unsigned long long number;
    PyObject *node;
    mu_node *opened;

    (void)module;
    if (!PyArg_ParseTuple(args, "OK:kv_cancel", &node, &number) ||
        (opened = mupy_node_of(node)) == NULL)
        return NULL;
    (void)mu_kv_cancel(opened, number);
    Py_RETURN_NONE;
}

/* ---- transactions ---- */

struct transaction {
    mu_kv_transaction whole;
    mu_kv_check checks[MU_KV_TRANSACTION_MAX];
    mu_kv_change changes[MU_KV_TRANSACTION_MAX];
};

/* (type, key, revision, value) each */
static int read_checks(PyObject *list, struct transaction *transaction)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(list); i++) {
        mu_kv_check *check = &transaction->checks[i];
        unsigned long long revision;
        const char *value;
        Py_ssize_t size;

        if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "isKy#", &check->type,
                              &check->key, &revision, &value, &size))
            return -1;
        check->revision = revision;
        check->value = value;
        check->size = (size_t)size;
    }
    transaction->whole.checks = transaction->checks;
    transaction->whole.checks_count = (size_t)PyTuple_Size(list);
    return 0;
}

/* (operation, flags, key, value, by) each */
static int read_changes(PyObject *list, struct transaction *transaction)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(list); i++) {
        mu_kv_change *change = &transaction->changes[i];
        const char *value;
        Py_ssize_t size;
        long long by;

        if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "iIsy#L", &change->operation,
                              &change->flags, &change->key, &value, &size, &by))
            return -1;
        change->value = value;
        change->size = (size_t)size;
        change->by = by;
    }
    transaction->whole.changes = transaction->changes;
    transaction->whole.changes_count = (size_t)PyTuple_Size(list);
    return 0;
}

static int read_transaction(PyObject *checks, PyObject *changes,
                            struct transaction *transaction)
{
    if (PyTuple_Size(checks) > MU_KV_TRANSACTION_MAX ||
        PyTuple_Size(changes) > MU_KV_TRANSACTION_MAX) {
        (void)mupy_fail(-MU_EEXHAUSTED,
                        "a transaction of %zd comparisons and %zd "
                        "changes: at most %d of each",
                        PyTuple_Size(checks), PyTuple_Size(changes),
                        MU_KV_TRANSACTION_MAX);
        return -1;
    }
    if (read_checks(checks, transaction) != 0)
        return -1;
    return read_changes(changes, transaction);
}

struct transact_request {
    struct mupy_request request;
    struct transaction transaction;
    mu_kv_transaction_result outcome;
};

static void run_transact(struct mupy_call *call)
{
    struct transact_request *request = call->other;

    request->outcome.failed = -1;
    call->rv = mu_kv_transact(call->object, &request->transaction.whole, call->timeout_ms,
                              &call->error, &request->outcome);
}

/* Raise the error, with the index of the comparison that did not hold as its `failed`. */
static PyObject *transact_failed(struct mupy_call *call)
{
    const struct transact_request *request = call->other;
    PyObject *exception = mupy_exception(&call->error, NULL);
    PyObject *failed = PyLong_FromLong(request->outcome.failed);

    if (exception != NULL && failed != NULL &&
        (call->rv != -MU_EPRECONDITION ||
         PyObject_SetAttrString(exception, "failed", failed) == 0))
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(failed);
    Py_XDECREF(exception);
    mupy_request_end(call);
    return NULL;
}

/* kv_transact(node, checks, changes, timeout) -> (revision, number) */
static PyObject *kv_transact(PyObject *module, PyObject *args)
{
    struct transact_request *request;
    struct mupy_call *call;
    PyObject *checks;
    PyObject *changes;
    PyObject *timeout;
    PyObject *result;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O!O:kv_transact", &node, &PyTuple_Type, &checks,
                          &PyTuple_Type, &changes, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_transact);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, NULL);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    if (read_transaction(checks, changes, &request->transaction) != 0) {
        mupy_request_end(call);
        return NULL;
    }
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        return transact_failed(call);
    result = Py_BuildValue("KL", (unsigned long long)request->outcome.revision,
                           (long long)request->outcome.number);
    mupy_request_end(call);
    return result;
}

/* kv_transact_begin(node, checks, changes, timeout, callback) -> request */
static PyObject *transact_begin(PyObject *module, PyObject *args)
{
    struct transaction *transaction;
    struct pending *pending = NULL;
    PyObject *callback;
    PyObject *checks;
    PyObject *changes;
    PyObject *timeout;
    PyObject *result = NULL;
    PyObject *node;
    mu_node *opened;
    uint64_t number = 0;
    int64_t timeout_ms;
    mu_error error;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O!OO:kv_transact_begin", &node, &PyTuple_Type,
                          &checks, &PyTuple_Type, &changes, &timeout, &callback) ||
        (opened = mupy_node_of(node)) == NULL || mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    transaction = calloc(1, sizeof *transaction);
    if (transaction == NULL)
        return PyErr_NoMemory();
    if (read_transaction(checks, changes, transaction) == 0)
        pending = pending_kv_new(callback);
    if (pending != NULL)
        result =
            finish_kv_begin(pending,
                            mu_kv_transact_async(opened, &transaction->whole, timeout_ms,
                                                 on_kv_answer, pending, &error, &number),
                            &error, number);
    free(transaction);
    return result;
}

static int add_numbers(PyObject *module)
{
    static const struct {
        const char *name;
        long number;
    } rows[] = {
        {"KV_OVERWRITE", MU_KV_OVERWRITE},
        {"KV_COMPARE", MU_KV_COMPARE},
        {"KV_LEASE", MU_KV_LEASE},
        {"KV_PUT", MU_KV_PUT},
        {"KV_GET", MU_KV_GET},
        {"KV_TRY_GET", MU_KV_TRY_GET},
        {"KV_INCREMENT", MU_KV_INCREMENT},
        {"KV_DELETE", MU_KV_DELETE},
        {"KV_IF_REVISION", MU_KV_IF_REVISION},
        {"KV_IF_ABSENT", MU_KV_IF_ABSENT},
        {"KV_IF_PRESENT", MU_KV_IF_PRESENT},
        {"KV_IF_VALUE", MU_KV_IF_VALUE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (PyModule_AddIntConstant(module, rows[i].name, rows[i].number) != 0)
            return -1;
    return 0;
}

int mupy_key_values_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"kv_put", kv_put, METH_VARARGS,
         "kv_put(node, key, value, flags, revision, timeout)\n--\n\nThe new revision."},
        {"kv_get", kv_get, METH_VARARGS,
         "kv_get(node, key, timeout)\n--\n\n(value, revision), once the key exists."},
        {"kv_try_get", try_get, METH_VARARGS,
         "kv_try_get(node, key, timeout)\n--\n\n(value, revision), as it is now."},
        {"kv_increment", kv_increment, METH_VARARGS,
         "kv_increment(node, key, by, timeout)\n--\n\nThe sum."},
        {"kv_delete", kv_delete, METH_VARARGS,
         "kv_delete(node, key, timeout)\n--\n\nHow many keys were deleted."},
        {"kv_list", kv_list, METH_VARARGS,
         "kv_list(node, directory, timeout)\n--\n\nAll keys below a key."},
        {"kv_begin", kv_begin, METH_VARARGS,
         "kv_begin(node, operation, key, value, flags, revision, by, timeout, callback)\n"
         "--\n\nBegin a request; callback(answer) is called once."},
        {"kv_cancel", kv_cancel, METH_VARARGS,
         "kv_cancel(node, request)\n--\n\nCancel it."},
        {"kv_transact", kv_transact, METH_VARARGS,
         "kv_transact(node, checks, changes, timeout)\n--\n\n(revision, number)."},
        {"kv_transact_begin", transact_begin, METH_VARARGS,
         "kv_transact_begin(node, checks, changes, timeout, callback)\n--\n\n"
         "The same without waiting."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"get", answer_get, METH_NOARGS, "get()\n--\n\n(value, revision, number)."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"number", kv_answer_number, NULL, "Its number, also of one with an error.",
         NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, answer_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "The answer to a request of key-values."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.KeyValueAnswer", sizeof(struct answer), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    answer_type = mupy_add_type(module, &spec);
    if (answer_type == NULL || add_numbers(module) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
