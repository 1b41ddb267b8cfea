/* Resolvers: find the cluster, and which task of it this process is. A Resolver is used
 * by one caller: each call in muster/resolvers.py makes a new one. */
#include "services/services.h"

#include <stdlib.h>
#include <string.h>

struct resolver {
    PyObject_HEAD
    mu_resolver *resolver; /* NULL once a union, or a node, has taken it */
    PyObject *keep;        /* tuple of objects that it needs, or NULL */
    struct source *source; /* of a resolver written in Python; NULL */
};

/* A resolver written in Python, for the library. It is never freed: its function may be
 * called after the resolver was freed, and then finds `object` NULL. */
struct source {
    PyObject *object; /* guarded by the GIL */
};

static PyTypeObject *resolver_type;

static struct resolver *as_resolver(PyObject *self)
{
    return (struct resolver *)self;
}

static mu_resolver *get_resolver(PyObject *object)
{
    if (as_resolver(object)->resolver == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the resolver was handed on");
    return as_resolver(object)->resolver;
}

/* Takes ownership of `resolver`. */
static PyObject *wrap_resolver(mu_resolver *resolver)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(resolver_type, Py_tp_alloc);
    struct resolver *self = (struct resolver *)alloc(resolver_type, 0);

    if (self == NULL)
        mu_resolver_free(resolver);
    else
        self->resolver = resolver;
    return (PyObject *)self;
}

static void resolver_dealloc(PyObject *object)
{
    struct resolver *self = as_resolver(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mu_resolver *resolver = self->resolver;

    Py_BEGIN_ALLOW_THREADS
    mu_resolver_free(resolver);
    Py_END_ALLOW_THREADS
    if (self->source != NULL)
        Py_CLEAR(self->source->object);
    Py_XDECREF(self->keep);
    release(object);
    Py_DECREF(type);
}

/* ---- construction ---- */

static PyObject *resolver_named(PyObject *type, PyObject *args)
{
    mu_resolver *resolver = NULL;
    const char *name = NULL;
    mu_error error;

    (void)type;
    if (!PyArg_ParseTuple(args, "|z:named", &name))
        return NULL;
    if (mu_resolver_new(name, &error, &resolver) != 0)
        return mupy_raise(&error, NULL);
    return wrap_resolver(resolver);
}

static PyObject *resolver_fixed(PyObject *type, PyObject *args)
{
    mu_resolver *resolver = NULL;
    mu_cluster *cluster = NULL;
    PyObject *spec;
    const char *master = NULL;
    const char *task_type = NULL;
    int task_index = -1;
    mu_error error;
    int rv;

    (void)type;
    if (!PyArg_ParseTuple(args, "O|zzi:fixed", &spec, &master, &task_type, &task_index) ||
        mupy_cluster_of(spec, &cluster) != 0)
        return NULL;
    rv =
        mu_resolver_new_static(cluster, master, task_type, task_index, &error, &resolver);
    mu_cluster_free(cluster);
    return rv != 0 ? mupy_raise(&error, NULL) : wrap_resolver(resolver);
}

static bool are_resolvers(PyObject *members)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(members); i++) {
        PyObject *member = PyTuple_GetItem(members, i);

        if (!PyObject_TypeCheck(member, resolver_type)) {
            PyErr_Format(PyExc_TypeError, "a Resolver was expected, got %R", member);
            return false;
        }
        if (get_resolver(member) == NULL)
            return false;
    }
    return true;
}

/* union(members): takes ownership of the resolvers of a tuple. */
static PyObject *union_of(PyObject *type, PyObject *args)
{
    mu_resolver **handles;
    mu_resolver *resolver = NULL;
    PyObject *members;
    PyObject *object;
    mu_error error;
    size_t count;
    int rv;

    (void)type;
    if (!PyArg_ParseTuple(args, "O!:union", &PyTuple_Type, &members) ||
        !are_resolvers(members))
        return NULL;
    count = (size_t)PyTuple_Size(members);
    handles = calloc(count + 1, sizeof(mu_resolver *));
    if (handles == NULL)
        return PyErr_NoMemory();
    for (size_t i = 0; i < count; i++)
        handles[i] = as_resolver(PyTuple_GetItem(members, (Py_ssize_t)i))->resolver;
    rv = mu_resolver_new_union(handles, count, &error, &resolver);
    free(handles);
    if (rv != 0)
        return mupy_raise(&error, NULL);
    for (size_t i = 0; i < count; i++)
        as_resolver(PyTuple_GetItem(members, (Py_ssize_t)i))->resolver = NULL;
    object = wrap_resolver(resolver);
    if (object != NULL) {
        Py_INCREF(members);
        as_resolver(object)->keep = members;
    }
    return object;
}

/* ---- resolvers written in Python ---- */

/* The object of a source, as a new reference; with the GIL. */
static PyObject *get_source_object(struct source *source)
{
    Py_XINCREF(source->object);
    return source->object;
}

static void copy_resolution_text(char *to, size_t size, PyObject *fields,
                                 const char *name)
{
    PyObject *value = PyDict_GetItemString(fields, name);
    const char *text = NULL;

    if (value != NULL && PyUnicode_Check(value))
        text = PyUnicode_AsUTF8AndSize(value, NULL);
    if (text == NULL)
        return;
    (void)strncpy(to, text, size - 1);
    to[size - 1] = '\0';
}

static int get_field_number(PyObject *fields, const char *name, int missing)
{
    PyObject *value = PyDict_GetItemString(fields, name);

    return value == NULL || !PyLong_Check(value) ? missing : (int)PyLong_AsLong(value);
}

/* Read the dict of muster.resolvers._told(). -1 with an exception. */
static int fill_resolution(PyObject *fields, mu_resolution *resolution)
{
    if (mupy_cluster_of(PyDict_GetItemString(fields, "cluster"), &resolution->cluster) !=
        0)
        return -1;
    copy_resolution_text(resolution->task_type, sizeof resolution->task_type, fields,
                         "task_type");
    copy_resolution_text(resolution->rpc_layer, sizeof resolution->rpc_layer, fields,
                         "rpc_layer");
    copy_resolution_text(resolution->environment, sizeof resolution->environment, fields,
                         "environment");
    copy_resolution_text(resolution->master, sizeof resolution->master, fields, "master");
    copy_resolution_text(resolution->bind_address, sizeof resolution->bind_address,
                         fields, "bind_address");
    copy_resolution_text(resolution->accelerator, sizeof resolution->accelerator, fields,
                         "accelerator");
    resolution->task_index = get_field_number(fields, "task_index", -1);
    resolution->accelerators = get_field_number(fields, "accelerators", -1);
    return PyErr_Occurred() ? -1 : 0;
}

/* Convert the current exception to an error of the library. */
static int convert_exception(mu_error *ret_error)
{
    static PyObject *describe_error;
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyObject *described = NULL;
    const char *words = "it has raised an exception";
    int code = -MU_EUNKNOWN;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (mupy_import(&describe_error, "muster.resolvers", "_told_error") != NULL)
        described = PyObject_CallFunctionObjArgs(describe_error, value, NULL);
    if (described == NULL || !PyArg_ParseTuple(described, "is", &code, &words))
        PyErr_Clear();
    code = mu_error_set(ret_error, code, "%s", words);
    Py_XDECREF(described);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return code;
}

static int resolve_object(PyObject *object, int64_t timeout_ms, mu_error *ret_error,
                          mu_resolution *ret_resolution)
{
    static PyObject *described;
    PyObject *fields = NULL;
    int rv = 0;

    if (mupy_import(&described, "muster.resolvers", "_told") != NULL)
        fields = PyObject_CallFunction(described, "Od", object,
                                       timeout_ms < 0 ? -1.0 : (double)timeout_ms / 1000);
    if (fields == NULL || fill_resolution(fields, ret_resolution) != 0)
        rv = convert_exception(ret_error);
    Py_XDECREF(fields);
    return rv;
}

/* On a thread of the library. */
static int resolve_source(void *user, int64_t timeout_ms, mu_error *ret_error,
                          mu_resolution *ret_resolution)
{
    PyGILState_STATE state;
    PyObject *object;
    int rv;

    if (!Py_IsInitialized())
        return mu_error_set(ret_error, -MU_ECLOSED, "the interpreter has ended");
    state = PyGILState_Ensure();
    object = get_source_object(user);
    if (object == NULL)
        rv = mu_error_set(ret_error, -MU_ECLOSED, "the resolver is not there any more");
    else
        rv = resolve_object(object, timeout_ms, ret_error, ret_resolution);
    Py_XDECREF(object);
    PyGILState_Release(state);
    return rv;
}

/* Make a resolver, registered under a name of its own only meanwhile, since at most
 * MU_RESOLVER_KINDS_MAX names can be registered. */
static mu_resolver *new_of_source(struct source *source, const char *class_name)
{
    static unsigned long made;
    mu_resolver *resolver = NULL;
    mu_resolver_kind kind = {
        .summary = "written in Python", .user = source, .resolve = resolve_source};
    char name[64];
    mu_error error;

    (void)snprintf(name, sizeof name, "%.40s-%lu", class_name, ++made);
    kind.name = name;
    if (mu_resolver_register(&kind, &error) != 0) {
        (void)mupy_raise(&error, NULL);
        return NULL;
    }
    if (mu_resolver_new(name, &error, &resolver) != 0)
        (void)mupy_raise(&error, NULL);
    (void)mu_resolver_unregister(name, NULL);
    return resolver;
}

/* of_python(object, name) */
static PyObject *of_python(PyObject *type, PyObject *args)
{
    struct source *source;
    mu_resolver *resolver;
    PyObject *object;
    PyObject *self;
    const char *name;

    (void)type;
    if (!PyArg_ParseTuple(args, "Os:of_python", &object, &name))
        return NULL;
    source = calloc(1, sizeof *source);
    if (source == NULL)
        return PyErr_NoMemory();
    resolver = new_of_source(source, name);
    self = resolver == NULL ? NULL : wrap_resolver(resolver);
    if (self == NULL) {
        free(source);
        return NULL;
    }
    Py_INCREF(object);
    source->object = object;
    as_resolver(self)->source = source;
    return self;
}

/* ---- settings ---- */

static PyObject *raise_or_none(int rv, const mu_error *error)
{
    if (rv != 0)
        return mupy_raise(error, NULL);
    Py_RETURN_NONE;
}

static PyObject *resolver_set(PyObject *object, PyObject *args)
{
    mu_resolver *resolver = get_resolver(object);
    const char *value = NULL;
    const char *setting;
    mu_error error;

    if (resolver == NULL || !PyArg_ParseTuple(args, "sz:set", &setting, &value))
        return NULL;
    return raise_or_none(mu_resolver_set(resolver, setting, value, &error), &error);
}

/* override(what, value): takes precedence over the source. */
static PyObject *resolver_override(PyObject *object, PyObject *args)
{
    static const struct {
        const char *name;
        int (*set)(mu_resolver *resolver, const char *text, mu_error *ret_error);
    } rows[] = {
        {"task_type", mu_resolver_set_task_type},
        {"rpc_layer", mu_resolver_set_rpc_layer},
        {"environment", mu_resolver_set_environment},
    };
    mu_resolver *resolver = get_resolver(object);
    const char *name;
    const char *text;
    mu_error error;

    if (resolver == NULL || !PyArg_ParseTuple(args, "sz:override", &name, &text))
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return raise_or_none(rows[i].set(resolver, text, &error), &error);
    return mupy_fail(-MU_EINVALID, "\"%.60s\" cannot be overridden", name);
}

static PyObject *set_task_index(PyObject *object, PyObject *args)
{
    mu_resolver *resolver = get_resolver(object);
    mu_error error;
    int index;

    if (resolver == NULL || !PyArg_ParseTuple(args, "i:set_task_index", &index))
        return NULL;
    return raise_or_none(mu_resolver_set_task_index(resolver, index, &error), &error);
}

static PyObject *set_accelerators(PyObject *object, PyObject *args)
{
    mu_resolver *resolver = get_resolver(object);
    const char *kind;
    mu_error error;
    int count;

    if (resolver == NULL || !PyArg_ParseTuple(args, "si:set_accelerators", &kind, &count))
        return NULL;
    return raise_or_none(mu_resolver_set_accelerators(resolver, kind, count, &error),
                         &error);
}

/* ---- queries ---- */

static void log_resolver_progress(void *user, const char *line)
{
    (void)user;
    mupy_notice_log(NULL, MU_LOG_INFO, "", "resolver", line);
}

/* Make a call on a resolver, with a mupy_request of `size` bytes. */
static struct mupy_call *resolver_call(PyObject *self, PyObject *timeout,
                                       void (*run)(struct mupy_call *call))
{
    mu_resolver *resolver = get_resolver(self);
    struct mupy_call *call;
    int64_t timeout_ms;

    if (resolver == NULL || mupy_timeout(timeout, &timeout_ms) != 0 ||
        mupy_notice_start() != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    mu_resolver_on_progress(resolver, log_resolver_progress, NULL);
    call->object = resolver;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, self);
    return call;
}

struct resolve_request {
    struct mupy_request request;
    mu_resolution resolution;
};

static void clean_resolve(struct mupy_request *request)
{
    mu_cluster_free(((struct resolve_request *)request)->resolution.cluster);
}

static void run_resolve(struct mupy_call *call)
{
    struct resolve_request *request = call->other;

    call->rv = mu_resolver_resolve(call->object, call->timeout_ms, &call->error,
                                   &request->resolution);
    if (call->rv != 0)
        request->resolution.cluster = NULL;
}

static PyObject *kinds_of(const mu_resolution *resolution)
{
    PyObject *kinds = PyDict_New();
    int rv = 0;

    for (int i = 0; kinds != NULL && rv == 0 && i < resolution->accelerators_set_count;
         i++) {
        PyObject *count = PyLong_FromLong(resolution->accelerators_set[i].count);

        rv = count == NULL
                 ? -1
                 : PyDict_SetItemString(kinds, resolution->accelerators_set[i].kind,
                                        count);
        Py_XDECREF(count);
    }
    if (kinds != NULL && rv == 0 && resolution->accelerator[0] != '\0' &&
        PyDict_Size(kinds) == 0 && resolution->accelerators >= 0) {
        PyObject *count = PyLong_FromLong(resolution->accelerators);

        rv = count == NULL ? -1
                           : PyDict_SetItemString(kinds, resolution->accelerator, count);
        Py_XDECREF(count);
    }
    if (rv != 0)
        Py_CLEAR(kinds);
    return kinds;
}

static PyObject *resolution_object(mu_resolution *resolution)
{
    PyObject *cluster = resolution->cluster == NULL
                            ? mupy_str(NULL)
                            : mupy_cluster_wrap(resolution->cluster);

    resolution->cluster = NULL;
    if (cluster == NULL)
        return NULL;
    return Py_BuildValue("{sNsssisssssssssssisNssss}", "cluster", cluster, "task_type",
                         resolution->task_type, "task_index", resolution->task_index,
                         "rpc_layer", resolution->rpc_layer, "environment",
                         resolution->environment, "master", resolution->master,
                         "bind_address", resolution->bind_address, "visible_devices",
                         resolution->visible_devices, "partition", resolution->partition,
                         "accelerators", kinds_of(resolution), "source",
                         resolution->source, "cluster_name", resolution->cluster_name);
}

static PyObject *resolver_resolve(PyObject *self, PyObject *args)
{
    PyObject *timeout = NULL;
    struct resolve_request *request;
    struct mupy_call *call;
    PyObject *object;

    if (!PyArg_ParseTuple(args, "|O:resolve", &timeout))
        return NULL;
    call = resolver_call(self, timeout, run_resolve);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, clean_resolve);
    if (request == NULL || mupy_request_run(call) != 0)
        return NULL;
    object = resolution_object(&request->resolution);
    mupy_request_end(call);
    return object;
}

struct master_request {
    struct mupy_request request;
    const char *type;
    const char *rpc_layer;
    int index;
    char master[MU_MASTER_BYTES];
};

static void run_master(struct mupy_call *call)
{
    struct master_request *request = call->other;

    call->rv = mu_resolver_master(call->object, request->type, request->index,
                                  request->rpc_layer, call->timeout_ms, &call->error,
                                  request->master);
}

/* master(type, index, rpc_layer, timeout) */
static PyObject *resolver_master(PyObject *self, PyObject *args)
{
    PyObject *type;
    PyObject *rpc_layer;
    PyObject *timeout;
    PyObject *object;
    struct master_request *request;
    struct mupy_call *call;
    int index;

    if (!PyArg_ParseTuple(args, "OiOO:master", &type, &index, &rpc_layer, &timeout))
        return NULL;
    call = resolver_call(self, timeout, run_master);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, NULL);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    request->index = index;
    if (mupy_text(type, "task_type", &request->type) != 0 ||
        mupy_text(rpc_layer, "rpc_layer", &request->rpc_layer) != 0) {
        mupy_request_end(call);
        return NULL;
    }
    if (mupy_request_run(call) != 0)
        return NULL;
    object = PyUnicode_FromString(request->master);
    mupy_request_end(call);
    return object;
}

/* The node is call->data. */
static void run_accelerators(struct mupy_call *call)
{
    mu_value *counts = NULL;

    call->rv = mu_resolver_accelerators(call->object, (mu_node *)(uintptr_t)call->data,
                                        call->text[0] == '\0' ? NULL : call->text,
                                        (int)call->real, call->timeout_ms, &call->error,
                                        &counts);
    call->made = counts;
}

/* accelerators(node, type, index, timeout) */
static PyObject *resolver_accelerators(PyObject *self, PyObject *args)
{
    PyObject *node;
    PyObject *timeout;
    const char *type;
    struct mupy_call *call;
    int index;

    if (!PyArg_ParseTuple(args, "OziO:accelerators", &node, &type, &index, &timeout) ||
        (node != Py_None && mupy_node_of(node) == NULL))
        return NULL;
    call = resolver_call(self, timeout, run_accelerators);
    if (call == NULL)
        return NULL;
    if (node != Py_None)
        call->data = mupy_node_of(node);
    mupy_call_keep(call, node);
    if (type != NULL)
        (void)strncpy(call->text, type, sizeof call->text - 1);
    call->real = index;
    return mupy_call_value(call);
}

static PyObject *resolver_explain(PyObject *self, PyObject *unused)
{
    mu_resolver *resolver = get_resolver(self);
    mu_value *tried;
    PyObject *object;

    (void)unused;
    if (resolver == NULL)
        return NULL;
    tried = mu_resolver_explain(resolver);
    if (tried == NULL)
        return PyErr_NoMemory();
    object = mupy_from_value(tried, true);
    mu_value_free(tried);
    return object;
}

static PyObject *resolver_names(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const char *name;

    (void)module;
    (void)unused;
    for (size_t i = 0; list != NULL && (name = mu_resolver_name_at(i)) != NULL; i++) {
        PyObject *text = PyUnicode_FromString(name);

        if (text == NULL || PyList_Append(list, text) != 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

/* ---- for nodes ---- */

int mupy_resolver_of(PyObject *object, mu_resolver **ret_resolver, PyObject **ret_keep)
{
    static PyObject *to_handle;
    PyObject *made;

    if (mupy_import(&to_handle, "muster.resolvers", "_to_handle") == NULL)
        return -1;
    made = PyObject_CallFunctionObjArgs(to_handle, object, NULL);
    if (made == NULL)
        return -1;
    if (!PyObject_TypeCheck(made, resolver_type)) {
        PyErr_Format(PyExc_TypeError, "a ClusterResolver was expected, got %R", object);
        Py_DECREF(made);
        return -1;
    }
    *ret_resolver = get_resolver(made);
    *ret_keep = made;
    if (*ret_resolver == NULL)
        Py_CLEAR(*ret_keep);
    return *ret_resolver == NULL ? -1 : 0;
}

int mupy_resolver_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"resolver_names", resolver_names, METH_NOARGS,
         "resolver_names()\n--\n\nAll resolvers, in the order of auto-detection."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"named", resolver_named, METH_VARARGS | METH_CLASS,
         "named(name=None)\n--\n\nOne by its name; None: auto-detection."},
        {"fixed", resolver_fixed, METH_VARARGS | METH_CLASS,
         "fixed(cluster, master=None, task_type=None, task_index=-1)\n--\n\n"
         "One with a fixed cluster."},
        {"union", union_of, METH_VARARGS | METH_CLASS,
         "union(members)\n--\n\nThe union of several, which it owns."},
        {"of_python", of_python, METH_VARARGS | METH_CLASS,
         "of_python(object, name)\n--\n\nOne that is written in Python."},
        {"set", resolver_set, METH_VARARGS, "set(setting, value)\n--\n\nSet a setting."},
        {"override", resolver_override, METH_VARARGS,
         "override(what, value)\n--\n\nReplace what the source says."},
        {"set_task_index", set_task_index, METH_VARARGS,
         "set_task_index(index)\n--\n\nSet the task index; -1 unsets it."},
        {"set_accelerators", set_accelerators, METH_VARARGS,
         "set_accelerators(kind, count)\n--\n\nAccelerators of each task."},
        {"resolve", resolver_resolve, METH_VARARGS,
         "resolve(timeout=None)\n--\n\nAll results."},
        {"master", resolver_master, METH_VARARGS,
         "master(type, index, rpc_layer, timeout)\n--\n\nThe target of sessions."},
        {"accelerators", resolver_accelerators, METH_VARARGS,
         "accelerators(node, type, index, timeout)\n--\n\nCounts by kind."},
        {"explain", resolver_explain, METH_NOARGS,
         "explain()\n--\n\nWhat the last query tried."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, resolver_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "A resolver of the library, for one caller."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Resolver", sizeof(struct resolver), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    resolver_type = mupy_add_type(module, &spec);
    return resolver_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
