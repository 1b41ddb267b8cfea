/* Scheduling: converts the arguments of schedule() for the library. */
#include "coordinator/schedule.h"

#include <string.h>

static PyObject *function_type; /* types.FunctionType */
static PyObject *empty_tuple;

static struct mupy_coordinator *as_scheduler(PyObject *self)
{
    return (struct mupy_coordinator *)self;
}

/* ---- options of one closure ---- */

enum key {
    /* clang-format off */
    KEY_FN, KEY_ARGS, KEY_KWARGS, KEY_NAME, KEY_PRIORITY, KEY_DEADLINE, KEY_RUN_TIMEOUT,
    KEY_ATTEMPTS, KEY_WORKER, KEY_NOT_WORKER, KEY_WORKER_TYPE, KEY_EFFECT_ONCE, KEY_KEEP,
    KEY_NO_BACKUP, KEY_OWN_ERROR, KEY_TIMEOUT, KEY_RESULT, KEYS
    /* clang-format on */
};

static const char *const key_names[KEYS] = {
    "fn",          "args",        "kwargs",     "name",      "priority",
    "deadline",    "run_timeout", "attempts",   "worker",    "not_worker",
    "worker_type", "effect_once", "pin_result", "no_backup", "raise_on_fetch",
    "timeout",     "result",
};
static PyObject *key_objects[KEYS];

static int find_option_key(PyObject *name)
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

    if (number == -1 && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))
        (void)PyErr_Format(PyExc_TypeError, "%s is %R, expected an int", key, value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number >= INT32_MIN && number <= INT32_MAX) {
        *ret_number = (int)number;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s is %R, which is out of range", key, value);
    return -1;
}

/* Convert seconds to at least 1 millisecond, since 0 means none to the library. */
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

static int set_schedule_option(struct parsed *parsed, int key, PyObject *value)
{
    mu_closure_options *o = &parsed->options;
    int number = 0;
    int rv;

    parsed->has_options = true;
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
        return to_time(value, &o->run_timeout_ms);
    case KEY_EFFECT_ONCE:
        return to_flag(value, MU_CLOSURE_EFFECT_ONCE, &o->flags);
    case KEY_KEEP:
        return to_flag(value, MU_CLOSURE_PIN_RESULT, &o->flags);
    case KEY_OWN_ERROR:
        return to_flag(value, MU_CLOSURE_RAISE_ON_FETCH, &o->flags);
    default:
        return to_flag(value, MU_CLOSURE_NO_BACKUP, &o->flags);
    }
}

static int set_key(struct parsed *parsed, int key, PyObject *value)
{
    PyObject **objects[] = {&parsed->function, &parsed->args, &parsed->kwargs};
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
        parsed->returns_value = truth != 0;
        return truth < 0 ? -1 : 0;
    }
    if (value == Py_None)
        return 0;
    if (key == KEY_TIMEOUT)
        return mupy_timeout(value, &parsed->timeout_ms);
    return set_schedule_option(parsed, key, value);
}

static int set_keywords(struct parsed *parsed, PyObject *const *values, PyObject *names)
{
    Py_ssize_t count = names == NULL ? 0 : PyTuple_Size(names);

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int key = find_option_key(name);

        if (key < 0) {
            PyErr_Format(PyExc_TypeError,
                         "schedule() got an unexpected keyword argument %R", name);
            return -1;
        }
        if (set_key(parsed, key, values[i]) != 0)
            return -1;
    }
    return 0;
}

int mupy_schedule_parse(PyObject *const *args, Py_ssize_t count, PyObject *names,
                        struct parsed *parsed)
{
    memset(parsed, 0, sizeof *parsed);
    parsed->timeout_ms = -1;
    parsed->returns_value = true;
    if (count > 3) {
        PyErr_Format(PyExc_TypeError,
                     "schedule() takes fn, args and kwargs; options are "
                     "keywords; got %zd positional arguments",
                     count);
        return -1;
    }
    if (names != NULL && PyTuple_Size(names) > 0)
        mu_closure_options_init(&parsed->options);
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_key(parsed, (int)i, args[i]) != 0)
            return -1;
    if (set_keywords(parsed, args + count, names) != 0)
        return -1;
    if (parsed->function != NULL)
        return 0;
    PyErr_SetString(PyExc_TypeError, "schedule() has no fn: expected a function, or the "
                                     "name of one");
    return -1;
}

/* ---- functions ---- */

/* What is known of a function that was scheduled before, (entry, Content), when nothing
 * of it has changed and the chief has it: a new reference; NULL, perhaps with an
 * exception. */
static PyObject *known_function(struct mupy_coordinator *self, PyObject *callable)
{
    PyObject *known = NULL;

    if ((PyObject *)Py_TYPE(callable) != function_type)
        return NULL;
    MUPY_LOCK(self)
    if (callable == self->last_callable) {
        known = self->last_known;
        Py_INCREF(known);
    }
    MUPY_UNLOCK()
    if (known == NULL) {
        known = mupy_dict_find(self->functions, callable);
        if (known != NULL)
            mupy_coordinator_remember(self, callable, known);
    }
    if (known != NULL &&
        (mupy_function_is_lost(PyTuple_GetItem(known, 0), self->handle.object) ||
         !mupy_content_holds(PyTuple_GetItem(known, 1))))
        Py_CLEAR(known);
    return known;
}

/* The mupy_function of a callable: a new reference, or NULL with an exception. */
static PyObject *find_function(struct mupy_coordinator *self, PyObject *callable)
{
    static PyObject *make;
    PyObject *known = known_function(self, callable);
    PyObject *entry;

    if (known != NULL) {
        entry = PyTuple_GetItem(known, 0);
        Py_INCREF(entry);
        Py_DECREF(known);
        return entry;
    }
    if (PyErr_Occurred() || mupy_import(&make, "muster._functions", "entry_of") == NULL)
        return NULL;
    mupy_coordinator_remember(self, NULL, NULL);
    return PyObject_CallFunctionObjArgs(make, self, self->functions, self->by_hash,
                                        callable, NULL);
}

/* ---- arguments ---- */

static mu_value *named_args(const struct parsed *parsed)
{
    if (parsed->kwargs != NULL && parsed->kwargs != Py_None) {
        if (parsed->args != NULL && parsed->args != Py_None) {
            PyErr_SetString(PyExc_TypeError, "a function by name has args or kwargs, not "
                                             "both");
            return NULL;
        }
        return mupy_to_value(parsed->kwargs, MUPY_REFERENCES);
    }
    return mupy_to_value(parsed->args == NULL ? Py_None : parsed->args, MUPY_REFERENCES);
}

static mu_value *call_args(struct mupy_coordinator *self, const struct parsed *parsed,
                           struct mupy_function *function)
{
    PyObject *kwargs = parsed->kwargs == Py_None ? NULL : parsed->kwargs;
    PyObject *args = parsed->args;
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
        PyErr_Format(PyExc_TypeError,
                     "args is %R, expected a tuple or a list of the function's arguments",
                     args);
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

static int post_schedule(const struct posted *posted, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_schedule_with(posted->coordinator, posted->function,
                                        posted->args, posted->options, timeout_ms, error,
                                        posted->ret_value);
}

static int post_schedule_piece(void *posted, int64_t timeout_ms, mu_error *error)
{
    return post_schedule(posted, timeout_ms < 1 ? 1 : timeout_ms, error);
}

static PyObject *schedule_value(struct mupy_coordinator *self, struct parsed *parsed,
                                PyObject *function, const char *name, mu_value *args)
{
    mu_remote_value *value = NULL;
    struct posted posted = {self->handle.object, name, args,
                            parsed->has_options ? &parsed->options : NULL,
                            parsed->returns_value ? &value : NULL};
    mu_error error = {0};
    int rv;

    rv = post_schedule(&posted, 0, &error);
    /* The queue is full, or closures are being cancelled before an error is raised:
     * wait. */
    if (rv == -MU_EAGAIN && parsed->timeout_ms != 0)
        rv = mupy_pieces_wait(post_schedule_piece, &posted, parsed->timeout_ms, &error);
    mu_value_free(args);
    if (rv == 1)
        return NULL;
    if (rv != 0)
        return mupy_coordinator_raise(self, &error, NULL);
    if (!parsed->returns_value)
        Py_RETURN_NONE;
    return mupy_remote_value_new(value, (PyObject *)self, function,
                                 parsed->options.flags);
}

mu_value *mupy_schedule_args(PyObject *coordinator, const struct parsed *parsed,
                             const char **ret_name, PyObject **ret_function)
{
    struct mupy_coordinator *self = as_scheduler(coordinator);
    mu_value *args = NULL;

    *ret_function = NULL;
    if (PyUnicode_Check(parsed->function)) {
        *ret_name = PyUnicode_AsUTF8AndSize(parsed->function, NULL);
        if (*ret_name != NULL)
            args = named_args(parsed);
        Py_INCREF(parsed->function);
        *ret_function = parsed->function;
        return args;
    }
    if (!PyCallable_Check(parsed->function)) {
        PyErr_Format(PyExc_TypeError, "fn is %R, expected a function, or the name of one",
                     parsed->function);
        return NULL;
    }
    *ret_function = find_function(self, parsed->function);
    if (*ret_function != NULL) {
        const struct mupy_function *function = (struct mupy_function *)*ret_function;

        *ret_name = (parsed->options.flags & MU_CLOSURE_RAISE_ON_FETCH) != 0
                        ? function->try_name
                        : function->call_name;
        args = call_args(self, parsed, (struct mupy_function *)*ret_function);
    }
    if (args == NULL || mupy_handle_is_open(&self->handle))
        return args;
    mu_value_free(args);
    (void)mupy_fail(-MU_ECLOSED, "the coordinator was closed");
    return NULL;
}

PyObject *mupy_schedule(PyObject *object, PyObject *const *args, Py_ssize_t count,
                        PyObject *names)
{
    struct mupy_coordinator *self = as_scheduler(object);
    const char *name = NULL;
    PyObject *function;
    PyObject *result = NULL;
    struct parsed parsed;
    mu_value *value;

    if (mupy_schedule_parse(args, count, names, &parsed) != 0)
        return NULL;
    if (mupy_coordinator_begin(object) == NULL)
        return NULL;
    value = mupy_schedule_args(object, &parsed, &name, &function);
    if (value != NULL)
        result = schedule_value(self, &parsed, function, name, value);
    Py_XDECREF(function);
    mupy_coordinator_end(object);
    return result;
}

mu_value *mupy_schedule_pack(PyObject *object, PyObject *const *call,
                             PyObject **ret_function)
{
    struct mupy_coordinator *self = as_scheduler(object);
    struct parsed parsed = {.args = call[1], .kwargs = call[2]};
    mu_value *packed = NULL;

    *ret_function = NULL;
    if (mupy_coordinator_begin(object) == NULL)
        return NULL;
    *ret_function = find_function(self, call[0]);
    if (*ret_function != NULL)
        packed = call_args(self, &parsed, (struct mupy_function *)*ret_function);
    mupy_coordinator_end(object);
    return packed;
}

int mupy_schedule_packed(PyObject *object, const mu_value *packed, PyObject *function,
                         PyObject *const *options, PyObject *names,
                         void (*notify)(mu_remote_value *value, void *user), void *user,
                         mu_remote_value **ret_value)
{
    struct parsed parsed = {0};
    mu_coordinator *coordinator;
    mu_error error = {0};
    int rv;

    mu_closure_options_init(&parsed.options);
    if (set_keywords(&parsed, options, names) != 0)
        return -1;
    parsed.options.flags |= MU_CLOSURE_RAISE_ON_FETCH;
    parsed.options.on_ready = notify;
    parsed.options.user = user;
    coordinator = mupy_coordinator_begin(object);
    if (coordinator == NULL)
        return -1;
    rv = mu_coordinator_schedule_with(coordinator,
                                      ((struct mupy_function *)function)->try_name,
                                      packed, &parsed.options, 0, &error, ret_value);
    mupy_coordinator_end(object);
    if (rv != 0)
        (void)mupy_coordinator_raise(as_scheduler(object), &error, NULL);
    return rv == 0 ? 0 : -1;
}

int mupy_schedule_init(PyObject *module)
{
    PyObject *types = PyImport_ImportModule("types");

    (void)module;
    if (types != NULL)
        function_type = PyObject_GetAttrString(types, "FunctionType");
    Py_XDECREF(types);
    empty_tuple = PyTuple_New(0);
    for (int i = 0; i < KEYS; i++)
        key_objects[i] = PyUnicode_InternFromString(key_names[i]);
    return function_type == NULL || empty_tuple == NULL ? -1 : 0;
}
