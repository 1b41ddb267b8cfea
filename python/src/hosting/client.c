/* Calling actors: from programs, closures, and methods of other actors. */
#include "hosting/hosting.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

enum {
    MARKS = 6,               /* of calls that were not answered when they were made */
    MARK_CALLS = 64,         /* calls from one mark to the next */
    MARK_BYTES = 256 * 1024, /* or bytes of arguments */
    AHEAD_BYTES = 3 << 20    /* of arguments that were not answered */
};

/* One call of many that waits for its answer. The caller of a lot waits for the oldest:
 * what a node may send ahead to an actor has bounds, 1,024 calls and 8 MiB, of which the
 * other end may keep half for itself. */
struct mark {
    PyObject *value;
    size_t bytes; /* with those of the calls before it */
};

/* An actor, as one caller sees it. */
struct mupy_actor {
    PyObject_HEAD
    PyObject *node;
    PyObject *coordinator; /* None: of a function on a worker */
    PyObject *text;        /* of the address */
    mu_address address;
    struct mark marks[MARKS]; /* the oldest first; these are guarded by MUPY_LOCK() */
    unsigned marks_count;
    unsigned calls_unmarked;
    size_t bytes_unmarked;
    size_t bytes_marked;
};

PyTypeObject *mupy_actor_type;
static PyTypeObject *method_type;

static struct mupy_actor *as_actor(PyObject *self)
{
    return (struct mupy_actor *)self;
}

/* Actor(node, coordinator, address) */
static PyObject *actor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *node;
    PyObject *coordinator;
    PyObject *text;
    struct mupy_actor *self;
    const char *words;
    mu_value *value;
    mu_address address;
    int rv;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!OU:Actor", mupy_node_type, &node, &coordinator, &text))
        return NULL;
    words = PyUnicode_AsUTF8AndSize(text, NULL);
    value = words == NULL ? NULL : mu_value_string(words);
    rv = value == NULL ? -MU_ENOMEM : mu_value_get_actor(value, &address);
    mu_value_free(value);
    if (rv != 0)
        return mupy_fail(rv, "\"%.80s\" is no address of an actor",
                         words == NULL ? "" : words);
    self = (struct mupy_actor *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL)
        return NULL;
    Py_INCREF(node);
    Py_INCREF(coordinator);
    Py_INCREF(text);
    self->node = node;
    self->coordinator = coordinator;
    self->text = text;
    self->address = address;
    return (PyObject *)self;
}

static void actor_dealloc(PyObject *object)
{
    struct mupy_actor *self = as_actor(object);
    PyTypeObject *type = Py_TYPE(object);

    for (unsigned i = 0; i < self->marks_count; i++)
        Py_DECREF(self->marks[i].value);
    Py_XDECREF(self->node);
    Py_XDECREF(self->coordinator);
    Py_XDECREF(self->text);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *mupy_actor_node(PyObject *actor)
{
    return as_actor(actor)->node;
}

void mupy_actor_name(PyObject *exception, PyObject *actor)
{
    static PyObject *type;

    if (mupy_import(&type, "muster.errors", "ActorError") == NULL ||
        (PyObject_TypeCheck(exception, (PyTypeObject *)type) &&
         PyObject_SetAttrString(exception, "actor", as_actor(actor)->text) != 0))
        PyErr_Clear();
}

/* ---- calls ahead ---- */

/* The oldest mark, when one call more would be too many: a new reference. */
static PyObject *take_late_mark(struct mupy_actor *self)
{
    PyObject *value = NULL;

    MUPY_LOCK((PyObject *)self)
    if (self->marks_count > 0 &&
        (self->marks_count == MARKS ||
         self->bytes_marked + self->bytes_unmarked >= AHEAD_BYTES)) {
        value = self->marks[0].value;
        self->bytes_marked -= self->marks[0].bytes;
        self->marks_count--;
        memmove(self->marks, self->marks + 1, self->marks_count * sizeof *self->marks);
    }
    MUPY_UNLOCK()
    return value;
}

/* Wait until a call can be made. -1 with an exception. */
static int wait_for_way(struct mupy_actor *self, int64_t timeout_ms)
{
    PyObject *value;
    PyObject *late;
    int rv = 0;

    while (rv == 0 && (value = take_late_mark(self)) != NULL) {
        rv = mupy_remote_values_wait(&value, 1, timeout_ms, &late);
        Py_DECREF(value);
    }
    if (rv == 1)
        (void)mupy_fail(-MU_EDEADLINE,
                        "%s: the calls before this one were not answered within %lld ms",
                        PyUnicode_AsUTF8AndSize(self->text, NULL), (long long)timeout_ms);
    return rv == 0 ? 0 : -1;
}

static void mark_call(struct mupy_actor *self, PyObject *value, size_t bytes)
{
    MUPY_LOCK((PyObject *)self)
    self->calls_unmarked++;
    self->bytes_unmarked += bytes;
    if (self->marks_count < MARKS &&
        (self->calls_unmarked >= MARK_CALLS || self->bytes_unmarked >= MARK_BYTES)) {
        Py_INCREF(value);
        self->marks[self->marks_count++] = (struct mark){value, self->bytes_unmarked};
        self->bytes_marked += self->bytes_unmarked;
        self->calls_unmarked = 0;
        self->bytes_unmarked = 0;
    }
    MUPY_UNLOCK()
}

/* ---- arguments ---- */

static size_t bytes_of(const mu_value *value)
{
    const void *data;
    const char *text;
    size_t size = 0;
    mu_tensor tensor;

    switch (mu_value_type(value)) {
    case MU_VALUE_BYTES:
        (void)mu_value_get_bytes(value, &data, &size);
        return size;
    case MU_VALUE_STRING:
        (void)mu_value_get_string(value, &text, &size);
        return size;
    case MU_VALUE_TENSOR:
        return mu_value_get_tensor(value, &tensor) == 0 ? tensor.bytes : 0;
    case MU_VALUE_LIST:
        for (size_t i = 0; i < mu_value_count(value); i++)
            size += bytes_of(mu_value_at(value, i));
        return size;
    default:
        return 8;
    }
}

static int append_plain(mu_value *list, PyObject *args)
{
    Py_ssize_t count = PyTuple_Size(args);

    if (mu_value_append(list, mu_value_int(0)) != 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        mu_value *value = mupy_to_exact(PyTuple_GetItem(args, i));

        if (value == NULL || mu_value_append(list, value) != 0)
            return -1;
    }
    return 0;
}

/* Append the form and the arguments to copies of `head`. NULL with an exception. */
static mu_value *encode_args(mu_value *(*head)(const void *of), const void *of,
                             PyObject *args, PyObject *kwargs)
{
    mu_value *list = head(of);
    PyObject *both;
    int rv = -1;

    if (kwargs != NULL && (kwargs == Py_None || PyDict_Size(kwargs) == 0))
        kwargs = NULL;
    if (list != NULL && kwargs == NULL && append_plain(list, args) == 0)
        return list;
    mu_value_free(list);
    if (PyErr_Occurred())
        return NULL;
    list = head(of);
    both = PyTuple_Pack(2, args, kwargs == NULL ? Py_None : kwargs);
    if (list != NULL && both != NULL)
        rv = mupy_encode_for_actor(list, both);
    Py_XDECREF(both);
    if (rv == 0)
        return list;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    mu_value_free(list);
    return NULL;
}

/* ---- methods ---- */

/* A method of an actor, with the options of its calls. */
struct method {
    PyObject_HEAD
    PyObject *actor;
    PyObject *name;  /* "add" */
    PyObject *label; /* "Counter.add" */
    PyObject *doc;
    int64_t timeout_ms; /* 0: none */
    unsigned flags;
};

/* ActorMethod(actor, name, label, doc, timeout, flags) */
static PyObject *method_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct method own = {.flags = 0};
    PyObject *timeout;
    struct method *self;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!UUOOI:ActorMethod", mupy_actor_type, &own.actor,
                          &own.name, &own.label, &own.doc, &timeout, &own.flags) ||
        mupy_timeout(timeout, &own.timeout_ms) != 0)
        return NULL;
    self = (struct method *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL)
        return NULL;
    self->actor = own.actor;
    self->name = own.name;
    self->label = own.label;
    self->doc = own.doc;
    Py_INCREF(own.actor);
    Py_INCREF(own.name);
    Py_INCREF(own.label);
    Py_INCREF(own.doc);
    self->timeout_ms = own.timeout_ms < 0 ? 0 : own.timeout_ms == 0 ? 1 : own.timeout_ms;
    if (self->timeout_ms > MU_ACTOR_TIMEOUT_MAX)
        self->timeout_ms = MU_ACTOR_TIMEOUT_MAX;
    self->flags = own.flags;
    return (PyObject *)self;
}

static void method_dealloc(PyObject *object)
{
    struct method *self = (struct method *)object;
    PyTypeObject *type = Py_TYPE(object);

    Py_XDECREF(self->actor);
    Py_XDECREF(self->name);
    Py_XDECREF(self->label);
    Py_XDECREF(self->doc);
    PyObject_Free(self);
    Py_DECREF(type);
}

static mu_value *method_head(const void *of)
{
    const struct method *self = of;
    const char *name = PyUnicode_AsUTF8AndSize(self->name, NULL);
    mu_value *list = name == NULL ? NULL : mu_value_list();

    if (list == NULL)
        return NULL;
    if (mu_value_append(list, mu_value_string(name)) == 0 &&
        mu_value_append(list, mu_value_int(self->flags)) == 0 &&
        mu_value_append(list, mu_value_int(self->timeout_ms)) == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

static PyObject *method_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const struct method *self = (struct method *)object;
    struct mupy_actor *actor = as_actor(self->actor);
    int64_t timeout_ms = self->timeout_ms == 0 ? MU_ACTOR_TIMEOUT_MAX : self->timeout_ms;
    mu_value *values = encode_args(method_head, self, args, kwargs);
    size_t bytes = values == NULL ? 0 : bytes_of(values);
    mu_remote_value *value = NULL;
    mu_node *node = NULL;
    mu_error error;
    PyObject *result;
    int rv = -1;

    if (values != NULL && wait_for_way(actor, timeout_ms) == 0)
        node = mupy_node_of(actor->node);
    if (node != NULL) {
        rv = mu_actor_request(node, &actor->address, "call", values, timeout_ms, &error,
                              &value);
        if (rv != 0)
            (void)mupy_raise(&error, NULL);
    }
    mu_value_free(values);
    if (rv != 0)
        return NULL;
    result = mupy_remote_value_new(value, (PyObject *)actor, self->label,
                                   MU_CLOSURE_RAISE_ON_FETCH);
    if (result != NULL)
        mark_call(actor, result, bytes);
    if (result == NULL || (self->flags & MUPY_CALL_ONE_WAY) == 0)
        return result;
    Py_DECREF(result);
    Py_RETURN_NONE;
}

static PyObject *method_repr(PyObject *object)
{
    const struct method *self = (struct method *)object;

    return PyUnicode_FromFormat("<muster method %U of %U>", self->label,
                                as_actor(self->actor)->text);
}

/* ---- making and ending actors ---- */

struct start {
    PyObject *pickle;
    PyObject *name;
    PyObject *where;
    long lanes;
    int grade; /* enum mupy_grade */
    int64_t within_ms;
};

static mu_value *start_head(const void *of)
{
    const struct start *start = of;
    const char *name = PyUnicode_AsUTF8AndSize(start->name, NULL);
    const char *where = PyUnicode_AsUTF8AndSize(start->where, NULL);
    mu_value *list = mu_value_list();

    if (name != NULL && where != NULL && list != NULL &&
        mu_value_append(list, mu_value_bytes(PyBytes_AsString(start->pickle),
                                             (size_t)PyBytes_Size(start->pickle))) == 0 &&
        mu_value_append(list, mu_value_string(name)) == 0 &&
        mu_value_append(list, mu_value_string(where)) == 0 &&
        mu_value_append(list, mu_value_int(start->lanes)) == 0 &&
        mu_value_append(list, mu_value_int(start->grade)) == 0 &&
        mu_value_append(list, mu_value_int(start->within_ms)) == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

/* (name or None, enum mu_actor_restart, restarts, within so many milliseconds, flags) */
static int read_named(PyObject *named, mu_actor_options *options)
{
    if (!PyArg_ParseTuple(named, "ziIII:named", &options->name, &options->restart,
                          &options->restarts, &options->restarts_within_ms,
                          &options->flags))
        return -1;
    options->flags |= MU_ACTOR_DETACHED;
    return 0;
}

static int grade_of(const mu_actor_options *options)
{
    if (options->name == NULL)
        return MUPY_GRADE_PLAIN;
    return (options->flags & MU_ACTOR_KEPT) != 0 ? MUPY_GRADE_KEPT : MUPY_GRADE_NAMED;
}

/* actor_spawn(node, coordinator, task type, index, named, pickle, name, where,
 * concurrency, args, kwargs, timeout) -> RemoteValue of the address */
static PyObject *actor_spawn(PyObject *module, PyObject *args)
{
    struct start start = {.grade = MUPY_GRADE_PLAIN};
    mu_actor_options options;
    PyObject *node;
    PyObject *coordinator;
    PyObject *named;
    PyObject *positional;
    PyObject *keywords;
    PyObject *timeout;
    int64_t timeout_ms;
    mu_value *values = NULL;
    mu_remote_value *value;
    mu_node *handle;
    mu_error error;
    int rv;

    (void)module;
    mu_actor_options_init(&options);
    if (!PyArg_ParseTuple(args, "OOsiO!SUUlO!OO:actor_spawn", &node, &coordinator,
                          &options.task_type, &options.task_index, &PyTuple_Type, &named,
                          &start.pickle, &start.name, &start.where, &start.lanes,
                          &PyTuple_Type, &positional, &keywords, &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0 || read_named(named, &options) != 0)
        return NULL;
    start.grade = grade_of(&options);
    if (timeout_ms < 1 || timeout_ms > MU_ACTOR_TIMEOUT_MAX)
        timeout_ms = timeout_ms == 0 ? 1 : MU_ACTOR_TIMEOUT_MAX;
    start.within_ms = timeout_ms;
    handle = mupy_node_of(node);
    if (handle != NULL)
        values = encode_args(start_head, &start, positional, keywords);
    if (values == NULL)
        return NULL;
    rv = mu_actor_request_spawn(handle, MUPY_ACTOR_TYPE, values, &options, timeout_ms,
                                &error, &value);
    mu_value_free(values);
    return rv != 0 ? mupy_raise(&error, NULL)
                   : mupy_remote_value_new(value, coordinator, start.name,
                                           MU_CLOSURE_RAISE_ON_FETCH);
}

/* end(): at once; callers of what waits get an error. */
static PyObject *actor_end(PyObject *object, PyObject *unused)
{
    mu_node *node = mupy_node_of(as_actor(object)->node);
    int rv;

    (void)unused;
    if (node == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_node_stop_actor(node, &as_actor(object)->address, MU_STOP_NOW);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_fail(rv, "the actor cannot be stopped: %s", mu_strerror(rv));
    Py_RETURN_NONE;
}

static int add_method_type(PyObject *module)
{
    static PyMemberDef members[] = {
        {"__name__", T_OBJECT, offsetof(struct method, name), READONLY, NULL},
        {"__qualname__", T_OBJECT, offsetof(struct method, label), READONLY, NULL},
        {"__doc__", T_OBJECT, offsetof(struct method, doc), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, method_new},   {Py_tp_dealloc, method_dealloc},
        {Py_tp_call, method_call}, {Py_tp_repr, method_repr},
        {Py_tp_members, members},  {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.ActorMethod", sizeof(struct method), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    method_type = mupy_add_type(module, &spec);
    return method_type == NULL ? -1 : 0;
}

int mupy_actor_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"actor_spawn", actor_spawn, METH_VARARGS,
         "actor_spawn(node, coordinator, type, index, named, pickle, name, where, "
         "concurrency, args, kwargs, timeout)\n--\n\nMake an actor; the RemoteValue of "
         "its address."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"end", actor_end, METH_NOARGS, "end()\n--\n\nStop it now."},
        {NULL, NULL, 0, NULL},
    };
    static PyMemberDef members[] = {
        {"address", T_OBJECT, offsetof(struct mupy_actor, text), READONLY, NULL},
        {"node", T_OBJECT, offsetof(struct mupy_actor, node), READONLY, NULL},
        {"coordinator", T_OBJECT, offsetof(struct mupy_actor, coordinator), READONLY,
         NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, actor_new},
        {Py_tp_dealloc, actor_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_tp_doc, "An actor, as one caller sees it."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Actor", sizeof(struct mupy_actor), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    mupy_actor_type = mupy_add_type(module, &spec);
    if (mupy_actor_type == NULL || PyModule_AddFunctions(module, functions) != 0)
        return -1;
    return add_method_type(module);
}
