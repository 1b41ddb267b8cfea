/* The coordinator: schedules functions, and fetches what they return. */
#include "extension.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *mupy_coordinator_type;

static PyObject *function_type;     /* types.FunctionType: found by identity */
static PyObject *empty_tuple;

static struct mupy_coordinator *self_of(PyObject *self)
{
    return (struct mupy_coordinator *)self;
}

mu_coordinator *mupy_coordinator_of(PyObject *object)
{
    struct mupy_coordinator *self = self_of(object);

    if (!PyObject_TypeCheck(object, mupy_coordinator_type)) {
        PyErr_Format(PyExc_TypeError, "a ClusterCoordinator was expected, got %R", object);
        return NULL;
    }
    if (self->coordinator == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the coordinator was closed");
    return self->coordinator;
}

static void forget_functions(struct mupy_coordinator *self)
{
    self->last_callable = NULL;
    self->last_function = NULL;
    if (self->functions != NULL)
        PyDict_Clear(self->functions);
    if (self->by_hash != NULL)
        PyDict_Clear(self->by_hash);
}

/* What workers had of a chief that was lost is to be made again. */
static PyObject *raise_error(struct mupy_coordinator *self, const mu_error *error,
                             const char *function)
{
    if (error->kind == MU_ERROR_CHIEF)
        forget_functions(self);
    return mupy_raise(error, function);
}

/* ---- life ---- */

static void run_open(struct mupy_call *call)
{
    mu_coordinator *coordinator = NULL;

    call->rv = mu_coordinator_open(call->object, call->timeout_ms, &call->error,
                                   &coordinator);
    call->made = coordinator;
}

static void run_close(struct mupy_call *call)
{
    mu_coordinator_close(call->object);
}

static void drop_opened(struct mupy_call *call)
{
    mu_coordinator *coordinator = call->made;

    Py_BEGIN_ALLOW_THREADS
    mu_coordinator_close(coordinator);
    Py_END_ALLOW_THREADS
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    (void)args;
    (void)kwargs;
    return alloc(type, 0);
}

/* Coordinator(node, timeout=None) */
static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"node", "timeout", NULL};
    struct mupy_coordinator *self = self_of(object);
    PyObject *timeout = NULL;
    PyObject *node;
    struct mupy_call *call;
    int64_t timeout_ms;
    int rv;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Coordinator", names, &node,
                                     &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0 || mupy_node_of(node) == NULL)
        return -1;
    if (self->coordinator != NULL) {
        (void)mupy_fail(-MU_EEXISTS, "the coordinator is open already");
        return -1;
    }
    call = mupy_call_new(run_open);
    if (call == NULL)
        return -1;
    call->drop = drop_opened;
    call->object = mupy_node_of(node);
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, node);
    if (mupy_call_run(call) != 0)
        return -1;
    rv = call->rv;
    if (rv == 0) {
        self->coordinator = call->made;
        Py_INCREF(node);
        self->node = node;
        self->functions = PyDict_New();
        self->by_hash = PyDict_New();
    } else {
        (void)mupy_raise(&call->error, NULL);
    }
    mupy_call_free(call);
    return rv == 0 && self->by_hash != NULL && self->functions != NULL ? 0 : -1;
}

static void close_now(struct mupy_coordinator *self)
{
    mu_coordinator *coordinator = self->coordinator;

    self->coordinator = NULL;
    forget_functions(self);
    if (coordinator == NULL)
        return;
    Py_BEGIN_ALLOW_THREADS
    mu_coordinator_close(coordinator);
    Py_END_ALLOW_THREADS
}

static PyObject *close_it(PyObject *object, PyObject *unused)
{
    struct mupy_coordinator *self = self_of(object);
    struct mupy_call *call;

    (void)unused;
    if (self->coordinator == NULL)
        Py_RETURN_NONE;
    call = mupy_call_new(run_close);
    if (call == NULL)
        return NULL;
    call->object = self->coordinator;
    self->coordinator = NULL;
    forget_functions(self);
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    struct mupy_coordinator *self = self_of(object);

    Py_VISIT(self->node);
    Py_VISIT(self->functions);
    Py_VISIT(self->by_hash);
    return 0;
}

static int clear(PyObject *object)
{
    struct mupy_coordinator *self = self_of(object);

    self->last_callable = NULL;
    self->last_function = NULL;
    Py_CLEAR(self->functions);
    Py_CLEAR(self->by_hash);
    return 0;
}

static void dealloc(PyObject *object)
{
    struct mupy_coordinator *self = self_of(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    close_now(self);
    Py_CLEAR(self->functions);
    Py_CLEAR(self->by_hash);
    Py_CLEAR(self->node);
    release(object);
    Py_DECREF(type);
}

/* ---- options of one closure ---- */

struct asked {
    PyObject *function;
    PyObject *args;
    PyObject *kwargs;
    mu_closure_options options;
    bool has_options;
    PyObject *callback;     /* of _notify; NULL: none */
    PyObject *token;
    int64_t timeout_ms;
    bool wants_result;
};

enum key {
    KEY_FN, KEY_ARGS, KEY_KWARGS, KEY_NAME, KEY_PRIORITY, KEY_DEADLINE, KEY_RUN_TIMEOUT,
    KEY_ATTEMPTS, KEY_WORKER, KEY_NOT_WORKER, KEY_WORKER_TYPE, KEY_EFFECT_ONCE, KEY_KEEP,
    KEY_NO_BACKUP, KEY_OWN_ERROR, KEY_TIMEOUT, KEY_RESULT, KEY_NOTIFY, KEYS
};

static const char *const key_names[KEYS] = {
    "fn", "args", "kwargs", "name", "priority", "deadline", "run_timeout", "attempts",
    "worker", "not_worker", "worker_type", "effect_once", "keep", "no_backup",
    "own_error", "timeout", "result", "_notify",
};
static PyObject *key_objects[KEYS];

static int key_of(PyObject *name)
{
    for (int i = 0; i < KEYS; i++)
        if (key_objects[i] == name)
            return i;
    for (int i = 0; i < KEYS; i++)
        if (PyUnicode_CompareWithASCIIString(name, key_names[i]) == 0)
            return i;
    return -1;
}

static int to_number(PyObject *value, const char *key, int *ret_number)
{
    long number = PyLong_AsLong(value);

    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number >= INT32_MIN && number <= INT32_MAX) {
        *ret_number = (int)number;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s is %R, which is out of range", key, value);
    return -1;
}

/* Seconds; 0 stands for none in the library, so that less than a millisecond is one. */
static int to_time(PyObject *value, int64_t *ret_ms)
{
    if (mupy_timeout(value, ret_ms) != 0)
        return -1;
    if (*ret_ms < 0)
        *ret_ms = 0;
    else if (*ret_ms == 0)
        *ret_ms = 1;
    return 0;
}

static int to_text(PyObject *value, const char *key, const char **ret_text)
{
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s is %R, expected a str", key, value);
        return -1;
    }
    *ret_text = PyUnicode_AsUTF8AndSize(value, NULL);
    return *ret_text == NULL ? -1 : 0;
}

static int to_flag(PyObject *value, unsigned flag, unsigned *flags)
{
    int truth = PyObject_IsTrue(value);

    if (truth < 0)
        return -1;
    *flags = truth ? *flags | flag : *flags & ~flag;
    return 0;
}

static int set_option(struct asked *asked, int key, PyObject *value)
{
    mu_closure_options *o = &asked->options;
    int number = 0;
    int rv;

    asked->has_options = true;
    switch (key) {
    case KEY_NAME:
        return to_text(value, "name", &o->name);
    case KEY_WORKER_TYPE:
        return to_text(value, "worker_type", &o->worker_type);
    case KEY_PRIORITY:
        return to_number(value, "priority", &o->priority);
    case KEY_WORKER:
        return to_number(value, "worker", &o->worker);
    case KEY_NOT_WORKER:
        return to_number(value, "not_worker", &o->not_worker);
    case KEY_ATTEMPTS:
        rv = to_number(value, "attempts", &number);
        o->attempts_max = number < 0 ? 65535 : (unsigned)number;
        return rv;
    case KEY_DEADLINE:
        return to_time(value, &o->deadline_ms);
    case KEY_RUN_TIMEOUT:
        return to_time(value, &o->run_limit_ms);
    case KEY_EFFECT_ONCE:
        return to_flag(value, MU_CLOSURE_EFFECT_ONCE, &o->flags);
    case KEY_KEEP:
        return to_flag(value, MU_CLOSURE_KEEP, &o->flags);
    case KEY_OWN_ERROR:
        return to_flag(value, MU_CLOSURE_OWN_ERROR, &o->flags);
    default:
        return to_flag(value, MU_CLOSURE_NO_BACKUP, &o->flags);
    }
}

/* A pair: callback gets a list of (token, value) once values are ready. */
static int set_notify(struct asked *asked, PyObject *pair)
{
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "_notify is a pair of a callback and a token");
        return -1;
    }
    asked->callback = PyTuple_GetItem(pair, 0);
    asked->token = PyTuple_GetItem(pair, 1);
    asked->has_options = true;
    return mupy_notice_start();
}

static int set_key(struct asked *asked, int key, PyObject *value)
{
    PyObject **objects[] = {&asked->function, &asked->args, &asked->kwargs};
    int truth;

    if (key <= KEY_KWARGS && *objects[key] != NULL) {
        PyErr_Format(PyExc_TypeError, "schedule() got two values for %s", key_names[key]);
        return -1;
    }
    if (key <= KEY_KWARGS) {
        *objects[key] = value;
        return 0;
    }
    if (key == KEY_RESULT) {
        truth = PyObject_IsTrue(value);
        asked->wants_result = truth != 0;
        return truth < 0 ? -1 : 0;
    }
    if (value == Py_None)
        return 0;
    if (key == KEY_NOTIFY)
        return set_notify(asked, value);
    if (key == KEY_TIMEOUT)
        return mupy_timeout(value, &asked->timeout_ms);
    return set_option(asked, key, value);
}

static int parse(PyObject *const *args, Py_ssize_t count, PyObject *names,
                 struct asked *asked)
{
    Py_ssize_t keywords = names == NULL ? 0 : PyTuple_Size(names);

    memset(asked, 0, sizeof *asked);
    asked->timeout_ms = -1;
    asked->wants_result = true;
    if (count > 3) {
        PyErr_Format(PyExc_TypeError, "schedule() takes fn, args and kwargs; options are "
                     "keywords; got %zd positional arguments", count);
        return -1;
    }
    if (keywords > 0)
        mu_closure_options_init(&asked->options);
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_key(asked, (int)i, args[i]) != 0)
            return -1;
    for (Py_ssize_t i = 0; i < keywords; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int key = key_of(name);

        if (key < 0) {
            PyErr_Format(PyExc_TypeError, "schedule() got an unexpected keyword argument "
                         "%R", name);
            return -1;
        }
        if (set_key(asked, key, args[count + i]) != 0)
            return -1;
    }
    if (asked->function != NULL)
        return 0;
    PyErr_SetString(PyExc_TypeError, "schedule() has no fn: expected a function, or the "
                    "name of one");
    return -1;
}

/* ---- functions ---- */

/* New reference. */
static PyObject *find_function(struct mupy_coordinator *self, PyObject *callable)
{
    static PyObject *make;
    PyObject *entry = NULL;

    if (callable == self->last_callable) {
        Py_INCREF(self->last_function);
        return (PyObject *)self->last_function;
    }
    if ((PyObject *)Py_TYPE(callable) == function_type)
        entry = PyDict_GetItemWithError(self->functions, callable);
    if (entry != NULL) {
        Py_INCREF(entry);
    } else {
        if (PyErr_Occurred() ||
            mupy_import(&make, "muster._functions", "entry_of") == NULL)
            return NULL;
        entry = PyObject_CallFunctionObjArgs(make, self, self->functions, self->by_hash,
                                             callable, NULL);
        if (entry == NULL)
            return NULL;
    }
    /* Borrowed: `functions` has both as long as they are remembered here. */
    self->last_callable = NULL;
    if ((PyObject *)Py_TYPE(callable) == function_type && self->functions != NULL &&
        PyDict_GetItem(self->functions, callable) == entry) {
        self->last_callable = callable;
        self->last_function = (struct mupy_function *)entry;
    }
    return entry;
}

static PyObject *forget_last(PyObject *object, PyObject *unused)
{
    (void)unused;
    self_of(object)->last_callable = NULL;
    self_of(object)->last_function = NULL;
    Py_RETURN_NONE;
}

/* ---- arguments ---- */

static mu_value *named_args(const struct asked *asked)
{
    if (asked->kwargs != NULL && asked->kwargs != Py_None) {
        if (asked->args != NULL && asked->args != Py_None) {
            PyErr_SetString(PyExc_TypeError, "a function by name has args or kwargs, not "
                            "both");
            return NULL;
        }
        return mupy_to_value(asked->kwargs, MUPY_REFERENCES);
    }
    return mupy_to_value(asked->args == NULL ? Py_None : asked->args, MUPY_REFERENCES);
}

static mu_value *call_args(struct mupy_coordinator *self, const struct asked *asked,
                           struct mupy_function *function)
{
    PyObject *kwargs = asked->kwargs == Py_None ? NULL : asked->kwargs;
    PyObject *args = asked->args;
    mu_value *value;

    if (kwargs != NULL && !PyDict_Check(kwargs)) {
        PyErr_Format(PyExc_TypeError, "kwargs is %R, expected a dict", kwargs);
        return NULL;
    }
    if (args == NULL || args == Py_None)
        args = empty_tuple;
    if (PyTuple_Check(args))
        return mupy_encode_call(function, args, kwargs, (PyObject *)self);
    if (!PyList_Check(args)) {
        PyErr_Format(PyExc_TypeError, "args is %R, expected a tuple or a list of the "
                     "function's arguments", args);
        return NULL;
    }
    args = PySequence_Tuple(args);
    if (args == NULL)
        return NULL;
    value = mupy_encode_call(function, args, kwargs, (PyObject *)self);
    Py_DECREF(args);
    return value;
}

/* ---- scheduling ---- */

struct posted {
    mu_coordinator *coordinator;
    const char *function;
    const mu_value *args;
    const mu_closure_options *options;
    mu_remote_value **ret_value;
};

static int post(const struct posted *posted, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_schedule_with(posted->coordinator, posted->function,
                                        posted->args, posted->options, timeout_ms, error,
                                        posted->ret_value);
}

/* There is no room, or an error is to be raised once the rest was cancelled. */
static int post_and_wait(const struct posted *posted, int64_t timeout_ms,
                         mu_error *error)
{
    struct mupy_pieces pieces;
    int rv;

    mupy_pieces_begin(&pieces, timeout_ms);
    do {
        int64_t piece_ms = mupy_pieces_next(&pieces);

        Py_BEGIN_ALLOW_THREADS
        rv = post(posted, piece_ms < 1 ? 1 : piece_ms, error);
        Py_END_ALLOW_THREADS
        if (rv != -MU_EDEADLINE || error->closure != 0)
            return rv;
        if (PyErr_CheckSignals() != 0)
            return 1;
    } while (!mupy_pieces_over(&pieces));
    return rv;
}

/* On the loop's thread, maybe before the value is known to the one who schedules. */
static void on_ready(mu_remote_value *value, void *user)
{
    mupy_remote_value_set(mupy_notice_argument(user), value);
    mupy_notice_post(user);
}

/* The object is made first: the callback may get it while this returns. */
static PyObject *schedule_notified(struct mupy_coordinator *self, struct asked *asked,
                                   PyObject *function, const char *name, mu_value *args)
{
    PyObject *object = mupy_remote_value_new(NULL, (PyObject *)self, function,
                                             asked->options.flags);
    struct mupy_notice *notice =
        object == NULL ? NULL
                       : mupy_notice_new_batched(asked->callback, asked->token, object);
    mu_remote_value *value = NULL;
    const struct posted posted = {self->coordinator, name, args, &asked->options, &value};
    mu_error error = {0};
    int rv = -MU_ENOMEM;

    if (notice != NULL) {
        asked->options.notify = on_ready;
        asked->options.user = notice;
        rv = post(&posted, 0, &error);
        if (rv == -MU_EAGAIN && asked->timeout_ms != 0)
            rv = post_and_wait(&posted, asked->timeout_ms, &error);
    }
    mu_value_free(args);
    if (rv == 0) {
        mupy_remote_value_set(object, value);
        return object;
    }
    if (notice != NULL)
        mupy_notice_free(notice);
    Py_XDECREF(object);
    if (notice != NULL && rv != 1)
        (void)raise_error(self, &error, NULL);
    return NULL;
}

static PyObject *schedule_value(struct mupy_coordinator *self, struct asked *asked,
                                PyObject *function, const char *name, mu_value *args)
{
    mu_remote_value *value = NULL;
    const struct posted posted = {self->coordinator, name, args,
                                  asked->has_options ? &asked->options : NULL,
                                  asked->wants_result ? &value : NULL};
    mu_error error = {0};
    int rv;

    if (asked->callback != NULL)
        return schedule_notified(self, asked, function, name, args);
    rv = post(&posted, 0, &error);
    if (rv == -MU_EAGAIN && asked->timeout_ms != 0)
        rv = post_and_wait(&posted, asked->timeout_ms, &error);
    mu_value_free(args);
    if (rv == 1)
        return NULL;
    if (rv != 0)
        return raise_error(self, &error, NULL);
    if (!asked->wants_result)
        Py_RETURN_NONE;
    return mupy_remote_value_new(value, (PyObject *)self, function, asked->options.flags);
}

static PyObject *schedule_named(struct mupy_coordinator *self, struct asked *asked)
{
    const char *name = PyUnicode_AsUTF8AndSize(asked->function, NULL);
    mu_value *args = name == NULL ? NULL : named_args(asked);

    return args == NULL ? NULL
                        : schedule_value(self, asked, asked->function, name, args);
}

static PyObject *schedule_callable(struct mupy_coordinator *self, struct asked *asked)
{
    PyObject *function = find_function(self, asked->function);
    PyObject *result = NULL;
    mu_value *args;

    if (function == NULL)
        return NULL;
    args = call_args(self, asked, (struct mupy_function *)function);
    if (args != NULL && self->coordinator == NULL) {
        mu_value_free(args);
        args = NULL;
        (void)mupy_fail(-MU_ECLOSED, "the coordinator was closed");
    }
    if (args != NULL)
        result = schedule_value(self, asked, function,
                                (asked->options.flags & MU_CLOSURE_OWN_ERROR) != 0
                                    ? "python.try"
                                    : "python.call",
                                args);
    Py_DECREF(function);
    return result;
}

static PyObject *schedule(PyObject *object, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    struct mupy_coordinator *self = self_of(object);
    struct asked asked;

    if (parse(args, count, names, &asked) != 0)
        return NULL;
    if (self->coordinator == NULL)
        return mupy_fail(-MU_ECLOSED, "the coordinator was closed");
    if (PyUnicode_Check(asked.function))
        return schedule_named(self, &asked);
    if (!PyCallable_Check(asked.function))
        return PyErr_Format(PyExc_TypeError, "fn is %R, expected a function, or the name "
                            "of one", asked.function);
    return schedule_callable(self, &asked);
}

/* ---- joining ---- */

static PyObject *join(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    struct mupy_coordinator *self = self_of(object);
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    PyObject *timeout = NULL;
    struct mupy_pieces pieces;
    int64_t timeout_ms;
    mu_error error;
    int rv;

    if (coordinator == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:join", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    mupy_pieces_begin(&pieces, timeout_ms);
    do {
        int64_t piece_ms = mupy_pieces_next(&pieces);

        Py_BEGIN_ALLOW_THREADS
        rv = mu_coordinator_join(coordinator, piece_ms, &error);
        Py_END_ALLOW_THREADS
        if (rv == 0)
            Py_RETURN_NONE;
        if (rv != -MU_EDEADLINE || error.closure != 0)
            break;
        if (PyErr_CheckSignals() != 0)
            return NULL;
    } while (!mupy_pieces_over(&pieces));
    return raise_error(self, &error, NULL);
}

static PyObject *done(PyObject *object, PyObject *unused)
{
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    mu_error error;
    int is_done = 0;
    int rv;

    (void)unused;
    if (coordinator == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_coordinator_done(coordinator, &error, &is_done);
    Py_END_ALLOW_THREADS
    return rv != 0 ? raise_error(self_of(object), &error, NULL)
                   : PyBool_FromLong(is_done);
}

/* ---- fetching structures ---- */

/* Collects the remote values of lists, tuples and dicts (of exactly these types), at any
 * depth; 0, or -1 with an exception. */
static int collect(PyObject *structure, PyObject *found, int depth)
{
    if (Py_TYPE(structure) == mupy_remote_value_type)
        return PyList_Append(found, structure);
    if (PyList_Check(structure) || PyTuple_Check(structure)) {
        Py_ssize_t count = PySequence_Size(structure);
        bool is_list = PyList_Check(structure);

        if (depth > 200) {
            PyErr_SetString(PyExc_RecursionError, "a structure to fetch is nested more "
                            "than 200 deep, or contains itself");
            return -1;
        }
        for (Py_ssize_t i = 0; i < count; i++)
            if (collect(is_list ? PyList_GetItem(structure, i)
                                : PyTuple_GetItem(structure, i), found, depth + 1) != 0)
                return -1;
    } else if (PyDict_Check(structure)) {
        PyObject *key;
        PyObject *item;
        Py_ssize_t at = 0;

        while (PyDict_Next(structure, &at, &key, &item))
            if (collect(item, found, depth + 1) != 0)
                return -1;
    }
    return 0;
}

static PyObject *resolved(PyObject *structure);

static PyObject *resolved_list(PyObject *structure)
{
    Py_ssize_t count = PyList_Size(structure);
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = resolved(PyList_GetItem(structure, i));

        if (item == NULL || PyList_SetItem(list, i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A named tuple is made by its class. */
static PyObject *resolved_tuple(PyObject *structure)
{
    Py_ssize_t count = PyTuple_Size(structure);
    PyObject *tuple = PyTuple_New(count);
    PyObject *made;

    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = resolved(PyTuple_GetItem(structure, i));

        if (item == NULL || PyTuple_SetItem(tuple, i, item) != 0)
            Py_CLEAR(tuple);
    }
    if (tuple == NULL || Py_TYPE(structure) == &PyTuple_Type)
        return tuple;
    if (PyObject_HasAttrString(structure, "_fields"))
        made = PyObject_CallObject((PyObject *)Py_TYPE(structure), tuple);
    else
        made = PyObject_CallFunctionObjArgs((PyObject *)Py_TYPE(structure), tuple, NULL);
    Py_DECREF(tuple);
    return made;
}

static PyObject *resolved_dict(PyObject *structure)
{
    PyObject *dict = PyDict_New();
    PyObject *key;
    PyObject *item;
    Py_ssize_t at = 0;

    while (dict != NULL && PyDict_Next(structure, &at, &key, &item)) {
        PyObject *value = resolved(item);

        if (value == NULL || PyDict_SetItem(dict, key, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *resolved(PyObject *structure)
{
    if (Py_TYPE(structure) == mupy_remote_value_type)
        return mupy_remote_value_take(structure);
    if (PyList_Check(structure))
        return resolved_list(structure);
    if (PyTuple_Check(structure))
        return resolved_tuple(structure);
    if (PyDict_Check(structure))
        return resolved_dict(structure);
    Py_INCREF(structure);
    return structure;
}

static int wait_for_found(PyObject *found, int64_t timeout_ms)
{
    Py_ssize_t count = PyList_Size(found);
    PyObject **values = PyMem_Malloc((size_t)(count + 1) * sizeof *values);
    PyObject *late = NULL;
    int rv;

    if (values == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = PyList_GetItem(found, i);
    rv = mupy_remote_values_wait(values, (size_t)count, timeout_ms, &late);
    PyMem_Free(values);
    if (rv == 1) {
        PyObject *result = PyObject_CallMethod(late, "fetch", "i", 0);

        Py_XDECREF(result);
        return result == NULL ? -1 : 0;
    }
    return rv;
}

static PyObject *fetch(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"val", "timeout", NULL};
    PyObject *structure;
    PyObject *timeout = NULL;
    PyObject *found;
    int64_t timeout_ms;
    int rv = -1;

    (void)object;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:fetch", names, &structure,
                                     &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    found = PyList_New(0);
    if (found != NULL && collect(structure, found, 0) == 0)
        rv = wait_for_found(found, timeout_ms);
    Py_XDECREF(found);
    return rv == 0 ? resolved(structure) : NULL;
}

/* ---- what is to be known ---- */

static PyObject *errors(PyObject *object, PyObject *unused)
{
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    PyObject *list = PyList_New(0);
    mu_error *found = PyMem_Malloc(sizeof *found * 64);
    size_t count = 64;

    (void)unused;
    if (found == NULL)
        PyErr_NoMemory();
    while (coordinator != NULL && list != NULL && found != NULL && count == 64) {
        count = mu_coordinator_errors(coordinator, found, 64, NULL);
        for (size_t i = 0; list != NULL && i < count; i++) {
            PyObject *exception = mupy_exception(&found[i], NULL);

            if (exception == NULL || PyList_Append(list, exception) != 0)
                Py_CLEAR(list);
            Py_XDECREF(exception);
        }
    }
    PyMem_Free(found);
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *counts(PyObject *object, PyObject *unused)
{
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    mu_coordinator_counts c;

    (void)unused;
    if (coordinator == NULL)
        return NULL;
    mu_coordinator_count(coordinator, &c);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "scheduled",
                         (unsigned long long)c.scheduled, "finished",
                         (unsigned long long)c.finished, "failed",
                         (unsigned long long)c.failed, "cancelled",
                         (unsigned long long)c.cancelled, "outstanding",
                         (unsigned long long)c.outstanding, "retried",
                         (unsigned long long)c.retried);
}

static void run_explain(struct mupy_call *call)
{
    mu_value *reasons = NULL;

    call->rv = mu_coordinator_explain(call->object, call->other, call->data,
                                      call->timeout_ms, &call->error, &reasons);
    call->made = reasons;
}

static void drop_value(struct mupy_call *call)
{
    mu_value_free(call->made);
}

static PyObject *explain(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "timeout", NULL};
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    PyObject *value;
    PyObject *timeout = NULL;
    PyObject *reasons = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (coordinator == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:explain", names, &value,
                                     &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run_explain);
    if (call == NULL)
        return NULL;
    call->drop = drop_value;
    call->object = coordinator;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    mupy_call_keep(call, value);
    if (PyUnicode_Check(value))
        call->data = PyUnicode_AsUTF8AndSize(value, NULL);
    else if (PyObject_TypeCheck(value, mupy_remote_value_type))
        call->other = ((struct mupy_remote_value *)value)->value;
    else
        PyErr_Format(PyExc_TypeError, "explain() takes a RemoteValue or the name of a "
                     "closure, got %R", value);
    if (PyErr_Occurred()) {
        mupy_call_free(call);
        return NULL;
    }
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        reasons = mupy_from_value(call->made, true);
    mu_value_free(call->made);
    mupy_call_free(call);
    return reasons;
}

static void run_drain(struct mupy_call *call)
{
    call->rv = mu_coordinator_drain_task(call->object, call->text, (int)call->number,
                                         call->timeout_ms, &call->error);
}

static PyObject *drain(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"worker", "timeout", "worker_type", NULL};
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    const char *type = "worker";
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;
    int worker;

    if (coordinator == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "i|Os:drain", names, &worker, &timeout,
                                     &type) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run_drain);
    if (call == NULL)
        return NULL;
    call->object = coordinator;
    call->number = (uint64_t)(int64_t)worker;
    call->timeout_ms = timeout_ms;
    (void)strncpy(call->text, type, sizeof call->text - 1);
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static void run_forget(struct mupy_call *call)
{
    call->rv = mu_coordinator_forget(call->object, call->timeout_ms, &call->error);
}

static void run_wait_for_chief(struct mupy_call *call)
{
    call->rv = mu_coordinator_wait_for_chief(call->object, call->timeout_ms,
                                             &call->error);
}

static PyObject *timed(PyObject *object, PyObject *args, PyObject *kwargs,
                       void (*run)(struct mupy_call *call))
{
    static char *names[] = {"timeout", NULL};
    mu_coordinator *coordinator = mupy_coordinator_of(object);
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (coordinator == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    call->object = coordinator;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static PyObject *forget(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return timed(object, args, kwargs, run_forget);
}

static PyObject *wait_for_chief(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return timed(object, args, kwargs, run_wait_for_chief);
}

static PyObject *node(PyObject *object, void *closure)
{
    PyObject *node = self_of(object)->node;

    (void)closure;
    if (node == NULL)
        node = Py_None;
    Py_INCREF(node);
    return node;
}

int mupy_coordinator_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"schedule", MUPY_METHOD(schedule), METH_FASTCALL | METH_KEYWORDS,
         "schedule(fn, args=None, kwargs=None, *, name=None, priority=None, "
         "deadline=None, run_timeout=None, attempts=None, worker=None, not_worker=None, "
         "worker_type=None, effect_once=False, keep=False, no_backup=False, "
         "own_error=False, timeout=None, result=True)\n--\n\n"
         "Queue fn(*args, **kwargs) to run at least once on any worker; returns its\n"
         "RemoteValue at once. fn is a function, or the name of one that workers have "
         "registered,\nwhich gets args (or kwargs) as a plain value.\n\n"
         "name: of the closure, for logs, explain() and the journal.\n"
         "priority: 0 (first) to 7 (last); 4 is the default.\n"
         "deadline: seconds from now until it is resolved.\n"
         "run_timeout: seconds of one run; a longer one counts as stuck.\n"
         "attempts: runs before it is given up.\n"
         "worker, not_worker: task index of the only worker, or of one that never runs "
         "it.\n"
         "worker_type: only tasks of this type run it.\n"
         "effect_once: what its run writes with Run.add() and the like counts once.\n"
         "keep: the result stays on the worker until it is fetched or used.\n"
         "no_backup: never run twice at the same time.\n"
         "own_error: an error of it is that of its value alone: no other call raises it, "
         "nothing\n  is cancelled for it; and this call raises no error of earlier ones.\n"
         "timeout: seconds to wait for room in the queue; None: no limit.\n"
         "result: False: nobody wants the result; None is returned.\n\n"
         "Raises the first error of an earlier closure, once, after everything that was "
         "queued\nis cancelled; then nothing was queued. DeadlineExceededError when "
         "there is no room."},
        {"join", MUPY_METHOD(join), METH_VARARGS | METH_KEYWORDS,
         "join(timeout=None)\n--\n\n"
         "Wait until all closures scheduled so far are done, at most timeout seconds.\n\n"
         "Raises their first error, once. DeadlineExceededError says what is in flight "
         "where."},
        {"done", done, METH_NOARGS,
         "done()\n--\n\nWhether nothing is queued or in flight. Raises as join() does."},
        {"fetch", MUPY_METHOD(fetch), METH_VARARGS | METH_KEYWORDS,
         "fetch(val, timeout=None)\n--\n\n"
         "A copy of val (a RemoteValue, or lists, tuples and dicts of them at any "
         "depth) with\nthe results in their place. Waits at most timeout seconds for all. "
         "Raises as\nRemoteValue.fetch() does, for the first one in order."},
        {"errors", errors, METH_NOARGS,
         "errors()\n--\n\n"
         "All errors since the last call, the oldest first, as exceptions."},
        {"counts", counts, METH_NOARGS,
         "counts()\n--\n\n"
         "How many closures were scheduled, finished, failed, cancelled, retried, and "
         "are\noutstanding, as a dict."},
        {"explain", MUPY_METHOD(explain), METH_VARARGS | METH_KEYWORDS,
         "explain(value, timeout=None)\n--\n\n"
         "Why a closure has not run: a dict with its state, attempts, where it is and "
         "what it\nwaits for. value is its RemoteValue or its name. NotFoundError when it "
         "is resolved."},
        {"drain", MUPY_METHOD(drain), METH_VARARGS | METH_KEYWORDS,
         "drain(worker, timeout=None, worker_type=\"worker\")\n--\n\n"
         "Let a worker finish what it has, then leave."},
        {"forget", MUPY_METHOD(forget), METH_VARARGS | METH_KEYWORDS,
         "forget(timeout=None)\n--\n\n"
         "The journal forgets the named closures that have finished."},
        {"wait_for_chief", MUPY_METHOD(wait_for_chief), METH_VARARGS | METH_KEYWORDS,
         "wait_for_chief(timeout=None)\n--\n\nWait until the chief is connected."},
        {"close", close_it, METH_NOARGS,
         "close()\n--\n\nCancel what is under way, and let go of the coordinator."},
        {"_forget_last", forget_last, METH_NOARGS, "Before functions are dropped."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"node", node, NULL, "Its node.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, new},
        {Py_tp_init, init},
        {Py_tp_dealloc, dealloc},
        {Py_tp_traverse, traverse},
        {Py_tp_clear, clear},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "Coordinator(node, timeout=None)\n--\n\n"
                    "Schedules functions on the cluster's workers. One for each node."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.Coordinator", sizeof(struct mupy_coordinator), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    PyObject *types = PyImport_ImportModule("types");

    if (types != NULL)
        function_type = PyObject_GetAttrString(types, "FunctionType");
    Py_XDECREF(types);
    empty_tuple = PyTuple_New(0);
    for (int i = 0; i < KEYS; i++)
        key_objects[i] = PyUnicode_InternFromString(key_names[i]);
    mupy_coordinator_type = mupy_add_type(module, &spec);
    return mupy_coordinator_type == NULL || function_type == NULL ? -1 : 0;
}
