/* Nodes: one task of a cluster, inside this process. */
#include "services.h"

#include <structmember.h>

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *mupy_node_type;

/* How often this process was forked off since the start of the first of its line. */
static unsigned forks;

/* No code of Python runs under the lock. */
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mupy_node *nodes;

static struct mupy_node *self_of(PyObject *self)
{
    return (struct mupy_node *)self;
}

mu_node *mupy_node_of(PyObject *object)
{
    mu_node *node;

    if (!PyObject_TypeCheck(object, mupy_node_type)) {
        PyErr_Format(PyExc_TypeError, "a Node was expected, got %R", object);
        return NULL;
    }
    node = __atomic_load_n(&self_of(object)->node, __ATOMIC_ACQUIRE);
    if (node == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the node was closed");
    return mupy_node_is_forked(object) ? NULL : node;
}

/* In the child, on its only thread. */
static void count_fork(void)
{
    forks++;
    (void)pthread_mutex_init(&nodes_lock, NULL);
}

bool mupy_node_is_forked(PyObject *object)
{
    struct mupy_node *self = self_of(object);

    if (object == NULL || self->node == NULL || self->forks == forks)
        return false;
    (void)mupy_fail(-MU_ECLOSED, "this process was forked after %s was opened: the node "
                    "is that of its parent alone", mu_node_task(self->node));
    return true;
}

/* What was open until now; NULL: another thread was faster, or it was never open. */
static mu_node *take_node(struct mupy_node *self)
{
    return __atomic_exchange_n(&self->node, NULL, __ATOMIC_ACQ_REL);
}

static int list_node(struct mupy_node *self)
{
    self->weak = PyWeakref_NewRef((PyObject *)self, NULL);
    if (self->weak == NULL)
        return -1;
    (void)pthread_mutex_lock(&nodes_lock);
    self->next = nodes;
    nodes = self;
    (void)pthread_mutex_unlock(&nodes_lock);
    return 0;
}

static void unlist_node(struct mupy_node *self)
{
    struct mupy_node **at = &nodes;

    (void)pthread_mutex_lock(&nodes_lock);
    while (*at != NULL && *at != self)
        at = &(*at)->next;
    if (*at != NULL)
        *at = self->next;
    (void)pthread_mutex_unlock(&nodes_lock);
    Py_CLEAR(self->weak);
}

void mupy_node_forget(void)
{
    (void)pthread_mutex_lock(&nodes_lock);
    for (struct mupy_node *self = nodes; self != NULL; self = self->next)
        if (!self->owned)
            (void)take_node(self);
    (void)pthread_mutex_unlock(&nodes_lock);
}

static PyObject *object_of(PyObject *weak)
{
    PyObject *object = NULL;

#ifdef Py_GIL_DISABLED
    (void)PyWeakref_GetRef(weak, &object);
#else
    object = PyWeakref_GetObject(weak);
    if (object == Py_None)
        object = NULL;
    Py_XINCREF(object);
#endif
    return object;
}

/* A new reference; NULL when there is none. */
static PyObject *find_node(const mu_node *node)
{
    struct mupy_node *self;
    PyObject *weak = NULL;
    PyObject *object = NULL;

    (void)pthread_mutex_lock(&nodes_lock);
    for (self = nodes; self != NULL && self->node != node; self = self->next)
        ;
    if (self != NULL) {
        weak = self->weak;
        Py_INCREF(weak);
    }
    (void)pthread_mutex_unlock(&nodes_lock);
    if (weak != NULL)
        object = object_of(weak);
    Py_XDECREF(weak);
    return object;
}

/* ---- the cluster ---- */

/* JSON text, a dict, or an object with as_dict() (a ClusterSpec). */
static mu_cluster *cluster_of(PyObject *object)
{
    static PyObject *to_json;
    PyObject *text;
    mu_cluster *cluster = NULL;
    const char *json;
    Py_ssize_t size;
    mu_error error;

    if (mupy_import(&to_json, "muster._functions", "cluster_json") == NULL)
        return NULL;
    text = PyObject_CallFunctionObjArgs(to_json, object, NULL);
    json = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
    if (json != NULL &&
        mu_cluster_parse(json, (size_t)size, "cluster", &error, &cluster) != 0)
        (void)mupy_raise(&error, NULL);
    Py_XDECREF(text);
    return cluster;
}

/* ---- life ---- */

static void run_open(struct mupy_call *call)
{
    struct mupy_setup *setup = call->other;
    mu_node *node = NULL;

    call->rv = mu_node_open(&setup->options, &call->error, &node);
    call->made = node;
    mu_cluster_free(setup->cluster);
    free(setup);
}

static void drop_opened(struct mupy_call *call)
{
    mu_node *node = call->made;

    Py_BEGIN_ALLOW_THREADS
    (void)mu_node_close(node, 0, NULL);
    Py_END_ALLOW_THREADS
}

static int set_resolver(struct mupy_setup *setup, PyObject *kwargs)
{
    PyObject *resolver = PyDict_GetItemString(kwargs, "resolver");

    if (resolver == NULL || resolver == Py_None)
        return 0;
    return mupy_resolver_of(resolver, &setup->options.resolver, &setup->resolver);
}

/* processes=N, or MUSTER_PROCESSES: as many threads, each with a process. */
static int set_processes(struct mupy_setup *setup, PyObject *kwargs)
{
    PyObject *given = kwargs == NULL ? NULL : PyDict_GetItemString(kwargs, "processes");
    PyObject *threads = kwargs == NULL ? NULL : PyDict_GetItemString(kwargs, "threads");
    const char *text = getenv("MUSTER_PROCESSES");
    PyObject *number;
    long count;

    if (text == NULL || text[0] == '\0')
        text = "0";
    if (given == NULL || given == Py_None)
        number = PyLong_FromString(text, NULL, 10);
    else
        number = PyNumber_Long(given);
    count = number == NULL ? -1 : PyLong_AsLong(number);
    Py_XDECREF(number);
    if (PyErr_Occurred())
        return -1;
    if (count < 0 || count > 1024) {
        PyErr_Format(PyExc_ValueError, "processes is %ld, expected 0 to 1024", count);
        return -1;
    }
    if (count > 0 && given != NULL && threads != NULL && threads != Py_None) {
        PyErr_SetString(PyExc_ValueError, "threads and processes were given: a worker "
                        "has one thread for each of its processes");
        return -1;
    }
    setup->processes = (unsigned)count;
    if (count > 0)
        setup->options.threads = (unsigned)count;
    return 0;
}

int mupy_setup_apply(unsigned processes, mu_node *node)
{
    char text[16];

    if (processes == 0)
        return 0;
    (void)snprintf(text, sizeof text, "%u", processes);
    if (mu_node_set_setting(node, "python.processes", text) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

struct mupy_setup *mupy_setup_new(PyObject *cluster, PyObject *kwargs)
{
    struct mupy_setup *setup = calloc(1, sizeof *setup);
    mu_error error;

    if (setup == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    mu_node_options_init(&setup->options);
    setup->options.log_level = MU_LOG_WARN;
    setup->options.log = mupy_notice_log;
    if (mu_node_options_from_environment(&setup->options, &error) != 0)
        (void)mupy_raise(&error, NULL);
    if (!PyErr_Occurred() && cluster != Py_None)
        setup->cluster = cluster_of(cluster);
    setup->options.cluster = setup->cluster;
    if (!PyErr_Occurred() && kwargs != NULL &&
        mupy_node_options(&setup->options, kwargs) == 0)
        (void)set_resolver(setup, kwargs);
    if (!PyErr_Occurred())
        (void)set_processes(setup, kwargs);
    if (!PyErr_Occurred() && mupy_notice_start() == 0)
        return setup;
    mupy_setup_free(setup);
    return NULL;
}

void mupy_setup_free(struct mupy_setup *setup)
{
    mu_cluster_free(setup->cluster);
    Py_XDECREF(setup->resolver);
    free(setup);
}

static int open_it(struct mupy_node *self, PyObject *cluster, PyObject *kwargs)
{
    struct mupy_setup *setup = mupy_setup_new(cluster, kwargs);
    struct mupy_call *call = setup == NULL ? NULL : mupy_call_new(run_open);
    unsigned processes;
    int rv;

    if (call == NULL)
        return -1;
    processes = setup->processes;
    call->drop = drop_opened;
    call->other = setup;
    mupy_call_keep(call, (PyObject *)self);
    mupy_call_keep(call, cluster);
    if (kwargs != NULL)
        mupy_call_keep(call, kwargs);
    if (setup->resolver != NULL) {
        mupy_call_keep(call, setup->resolver);
        self->resolver = setup->resolver;
    }
    if (mupy_call_run(call) != 0)
        return -1;
    rv = call->rv;
    if (rv == 0) {
        self->node = call->made;
        self->held = mu_node_ref(self->node);
        self->owned = true;
        self->forks = forks;
        self->functions = PyList_New(0);
        rv = list_node(self);
        if (rv == 0)
            rv = mupy_setup_apply(processes, self->node);
        if (rv == 0)
            rv = mupy_run_register(self->node);
    } else {
        (void)mupy_raise(&call->error, NULL);
    }
    mupy_call_free(call);
    return rv == 0 ? 0 : -1;
}

/* What the environment says of a node that was given neither cluster nor resolver. Takes
 * both references, and gives two. */
static int find_spec(PyObject **cluster, PyObject **kwargs)
{
    static PyObject *find;
    PyObject *options = *kwargs == NULL ? PyDict_New() : PyDict_Copy(*kwargs);
    PyObject *resolver = options == NULL ? NULL
                                         : PyDict_GetItemString(options, "resolver");
    PyObject *place = NULL;

    if (options != NULL && resolver != NULL && resolver != Py_None) {
        Py_DECREF(options);
        return 0;
    }
    if (options != NULL && mupy_import(&find, "muster._functions", "place_of") != NULL)
        place = PyObject_CallFunctionObjArgs(find, options, NULL);
    Py_XDECREF(options);
    if (place == NULL)
        return -1;
    Py_DECREF(*cluster);
    Py_XDECREF(*kwargs);
    *cluster = PyTuple_GetItem(place, 0);
    *kwargs = PyTuple_GetItem(place, 1);
    Py_INCREF(*cluster);
    Py_INCREF(*kwargs);
    Py_DECREF(place);
    return 0;
}

/* Node(cluster, **options) */
static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static PyObject *opened;
    PyObject *cluster = Py_None;
    PyObject *result;

    if (!PyArg_ParseTuple(args, "|O:Node", &cluster))
        return -1;
    if (self_of(object)->node != NULL) {
        (void)mupy_fail(-MU_EEXISTS, "the node is open already");
        return -1;
    }
    if (kwargs != NULL && PyDict_GetItemString(kwargs, "cluster") != NULL) {
        kwargs = PyDict_Copy(kwargs);
        if (kwargs == NULL)
            return -1;
        cluster = PyDict_GetItemString(kwargs, "cluster");
        Py_INCREF(cluster);
        (void)PyDict_DelItemString(kwargs, "cluster");
    } else {
        Py_INCREF(cluster);
        Py_XINCREF(kwargs);
    }
    if (cluster != Py_None || find_spec(&cluster, &kwargs) == 0)
        (void)open_it(self_of(object), cluster, kwargs);
    Py_DECREF(cluster);
    Py_XDECREF(kwargs);
    if (PyErr_Occurred() ||
        mupy_import(&opened, "muster._functions", "node_opened") == NULL)
        return -1;
    result = PyObject_CallFunctionObjArgs(opened, object, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static PyObject *wrap_new(mu_node *node)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(mupy_node_type, Py_tp_alloc);
    struct mupy_node *self = (struct mupy_node *)alloc(mupy_node_type, 0);

    if (self == NULL)
        return NULL;
    self->node = node;
    self->held = mu_node_ref(node);
    self->owned = false;
    self->forks = forks;
    self->functions = PyList_New(0);
    if (list_node(self) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    Py_INCREF(self);    /* as long as the process lives */
    return (PyObject *)self;
}

PyObject *mupy_node_wrap(mu_node *node)
{
    PyObject *object;

    MUPY_LOCK((PyObject *)mupy_node_type)
    object = find_node(node);
    if (object == NULL)
        object = wrap_new(node);
    MUPY_UNLOCK()
    return object;
}

void mupy_node_unwrap(PyObject *node)
{
    if (node != NULL && take_node(self_of(node)) != NULL)
        Py_DECREF(node);    /* what mupy_node_wrap has for the life of the process */
}

static void run_close(struct mupy_call *call)
{
    call->rv = mu_node_close(call->object, call->timeout_ms, &call->error);
}

static PyObject *close_it(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    struct mupy_node *self = self_of(object);
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms = 5000;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:close", names, &timeout))
        return NULL;
    if (timeout != NULL && mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    if (self->node == NULL)
        Py_RETURN_NONE;
    if (mupy_node_is_forked(object))
        return NULL;
    if (!self->owned)
        return mupy_fail(-MU_EPRECONDITION, "the node belongs to the program that runs "
                         "it: it is closed when that ends");
    call = mupy_call_new(run_close);
    if (call == NULL)
        return NULL;
    call->object = take_node(self);
    if (call->object == NULL) {
        mupy_call_free(call);
        Py_RETURN_NONE;
    }
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(self_of(object)->functions);
    return 0;
}

static void dealloc(PyObject *object)
{
    struct mupy_node *self = self_of(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mu_node *node;

    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    unlist_node(self);
    node = take_node(self);
    if (node != NULL && self->owned) {
        Py_BEGIN_ALLOW_THREADS
        (void)mu_node_close(node, 1000, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_CLEAR(self->functions);
    Py_CLEAR(self->resolver);   /* the node has used it until now */
    mu_node_unref(self->held);
    release(object);
    Py_DECREF(type);
}

static PyObject *enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (mupy_node_of(self) == NULL)
        return NULL;
    Py_INCREF(self);
    return self;
}

static PyObject *leave(PyObject *self, PyObject *args)
{
    PyObject *none;
    PyObject *result;

    (void)args;
    if (mupy_node_is_forked(self)) {
        PyErr_Clear();      /* a child that unwinds its parent's stack */
        Py_RETURN_NONE;
    }
    none = PyTuple_New(0);
    result = none == NULL ? NULL : close_it(self, none, NULL);
    Py_XDECREF(none);
    return result;
}

/* ---- calls that wait ---- */

static struct mupy_call *call_of(PyObject *self, PyObject *timeout,
                                 void (*run)(struct mupy_call *call))
{
    mu_node *node = mupy_node_of(self);
    struct mupy_call *call;
    int64_t timeout_ms;

    if (node == NULL || mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    call->object = node;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, self);
    return call;
}

static struct mupy_call *timed_call(PyObject *self, PyObject *args, PyObject *kwargs,
                                    void (*run)(struct mupy_call *call))
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout))
        return NULL;
    return call_of(self, timeout, run);
}

static void run_status(struct mupy_call *call)
{
    mu_value *status = NULL;

    call->rv = mu_node_status(call->object, call->timeout_ms, &call->error, &status);
    call->made = status;
}

static PyObject *status(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct mupy_call *call = timed_call(self, args, kwargs, run_status);

    if (call == NULL)
        return NULL;
    return mupy_call_value(call);
}

static void run_explain(struct mupy_call *call)
{
    mu_value *reasons = NULL;

    call->rv = mu_node_explain(call->object, call->number,
                               call->text[0] == '\0' ? NULL : call->text,
                               call->timeout_ms, &call->error, &reasons);
    call->made = reasons;
}

static PyObject *explain(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"closure", "timeout", NULL};
    PyObject *timeout = NULL;
    PyObject *closure;
    struct mupy_call *call;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:explain", names, &closure,
                                     &timeout))
        return NULL;
    call = call_of(self, timeout, run_explain);
    if (call == NULL)
        return NULL;
    if (PyUnicode_Check(closure)) {
        const char *text = PyUnicode_AsUTF8AndSize(closure, NULL);

        if (text != NULL)
            (void)strncpy(call->text, text, sizeof call->text - 1);
    } else {
        call->number = PyLong_AsUnsignedLongLong(closure);
    }
    if (!PyErr_Occurred())
        return mupy_call_value(call);
    mupy_call_free(call);
    return NULL;
}

static void run_wait_job(struct mupy_call *call)
{
    call->rv = mu_node_wait_job(call->object, call->timeout_ms, &call->error);
    if (call->rv == 0 && call->error.code != 0)
        call->rv = call->error.code;
}

static PyObject *wait_job(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct mupy_call *call = timed_call(self, args, kwargs, run_wait_job);

    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_drain(struct mupy_call *call)
{
    call->rv = mu_node_drain(call->object, call->timeout_ms, &call->error);
}

static PyObject *drain(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct mupy_call *call = timed_call(self, args, kwargs, run_drain);

    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_main(struct mupy_call *call)
{
    call->rv = mu_node_main(call->object, &call->error);
}

static PyObject *main_of(PyObject *self, PyObject *unused)
{
    struct mupy_call *call = call_of(self, NULL, run_main);

    (void)unused;
    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_job_done(struct mupy_call *call)
{
    call->rv = mu_node_finish_job(call->object, (int)call->real, call->text,
                                call->timeout_ms, &call->error);
}

static PyObject *job_done(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "message", "timeout", NULL};
    const char *message = "";
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int code = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|isO:job_done", names, &code,
                                     &message, &timeout))
        return NULL;
    call = call_of(self, timeout, run_job_done);
    if (call == NULL)
        return NULL;
    call->real = code > 0 ? -code : code;
    (void)strncpy(call->text, message, sizeof call->text - 1);
    return mupy_call_finish(call);
}

static void run_load(struct mupy_call *call)
{
    call->rv = mu_node_load_plugin(call->object, call->data, &call->error);
}

static PyObject *load(PyObject *self, PyObject *path)
{
    const char *text = PyUnicode_Check(path) ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
    struct mupy_call *call;

    if (text == NULL)
        return PyErr_Format(PyExc_TypeError, "the path of a plugin is a str, got %R",
                            path);
    call = call_of(self, NULL, run_load);
    if (call == NULL)
        return NULL;
    call->data = text;
    mupy_call_keep(call, path);
    return mupy_call_finish(call);
}

/* ---- calls that do not ---- */

static PyObject *report(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "number", "step", NULL};
    mu_node *node = mupy_node_of(self);
    unsigned long long step = 0;
    const char *name;
    double number;
    int rv;

    if (node == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "sd|K:report", names,
                                                     &name, &number, &step))
        return NULL;
    rv = mu_node_report_metric(node, name, number, step);
    if (rv != 0)
        return mupy_fail(rv, "\"%.60s\" cannot be reported: %s", name, mu_strerror(rv));
    Py_RETURN_NONE;
}

static PyObject *metric(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *name;
    double number;
    uint64_t step;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "s:metric", &name))
        return NULL;
    rv = mu_node_get_metric(node, name, &number, &step);
    if (rv != 0)
        return mupy_fail(rv, "no number was reported as \"%.60s\"", name);
    return Py_BuildValue("dK", number, (unsigned long long)step);
}

static PyObject *task_count(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *type;

    if (node == NULL || !PyArg_ParseTuple(args, "s:task_count", &type))
        return NULL;
    return PyLong_FromSize_t(mu_node_task_count(node, type));
}

static PyObject *set(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *key;
    const char *value;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "ss:set", &key, &value))
        return NULL;
    rv = mu_node_set_setting(node, key, value);
    if (rv != 0)
        return mupy_fail(rv, "the setting \"%.60s\" was not set: %s", key,
                         mu_strerror(rv));
    Py_RETURN_NONE;
}

static PyObject *setting(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    const char *key;
    const char *value;

    if (node == NULL || !PyArg_ParseTuple(args, "s:setting", &key))
        return NULL;
    value = mu_node_get_setting(node, key);
    if (value == NULL)
        Py_RETURN_NONE;
    return PyUnicode_FromString(value);
}

static PyObject *serve(PyObject *self, PyObject *unused)
{
    mu_node *node = mupy_node_of(self);
    int rv;

    (void)unused;
    if (node == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_node_serve(node);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_fail(rv, "the node cannot serve: %s", mu_strerror(rv));
    Py_RETURN_NONE;
}

static PyObject *register_function(PyObject *self, PyObject *args)
{
    mu_node *node = mupy_node_of(self);
    PyObject *function;
    const char *name;
    int rv;

    if (node == NULL || !PyArg_ParseTuple(args, "sO:register", &name, &function))
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "a function is callable, got %R", function);
    if (PyList_Append(self_of(self)->functions, function) != 0)
        return NULL;
    Py_INCREF(function);    /* the library has it as long as the process lives */
    rv = mupy_run_register_function(node, name, function);
    if (rv == 0)
        Py_RETURN_NONE;
    Py_DECREF(function);
    return mupy_fail(rv, "the function \"%.60s\" cannot be registered: %s", name,
                     rv == -MU_EEXISTS ? "there is one of that name" : mu_strerror(rv));
}

/* ---- what it is ---- */

static PyObject *address(PyObject *self, void *closure)
{
    mu_node *node = mupy_node_of(self);

    (void)closure;
    return node == NULL ? NULL : PyUnicode_FromString(mu_node_address(node));
}

static PyObject *task(PyObject *self, void *closure)
{
    mu_node *node = mupy_node_of(self);

    (void)closure;
    return node == NULL ? NULL : PyUnicode_FromString(mu_node_task(node));
}

static PyObject *closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self_of(self)->node == NULL);
}

static PyObject *repr(PyObject *self)
{
    mu_node *node = self_of(self)->node;

    if (node == NULL)
        return PyUnicode_FromString("<muster.Node: closed>");
    return PyUnicode_FromFormat("<muster.Node %s at %s>", mu_node_task(node),
                                mu_node_address(node));
}

static PyMethodDef methods[] = {
    {"close", MUPY_METHOD(close_it), METH_VARARGS | METH_KEYWORDS,
     "close(timeout=5.0)\n--\n\n"
     "Stop the node; waits at most timeout seconds for functions that run. Calls of\n"
     "other threads raise ClosedError. DeadlineExceededError names a function that did\n"
     "not end."},
    {"__enter__", enter, METH_NOARGS, "The node itself."},
    {"__exit__", leave, METH_VARARGS, "Closes the node."},
    {"status", MUPY_METHOD(status), METH_VARARGS | METH_KEYWORDS,
     "status(timeout=None)\n--\n\n"
     "The cluster as the chief sees it: a dict: tasks, closures, variables, metrics."},
    {"explain", MUPY_METHOD(explain), METH_VARARGS | METH_KEYWORDS,
     "explain(closure, timeout=None)\n--\n\n"
     "Why a closure has not run; closure is its number or its name."},
    {"wait_job", MUPY_METHOD(wait_job), METH_VARARGS | METH_KEYWORDS,
     "wait_job(timeout=None)\n--\n\n"
     "Serve until the chief says that the job is done. Raises the job's own error."},
    {"job_done", MUPY_METHOD(job_done), METH_VARARGS | METH_KEYWORDS,
     "job_done(code=0, message=\"\", timeout=None)\n--\n\n"
     "Chief: tell all tasks that the job is done."},
    {"drain", MUPY_METHOD(drain), METH_VARARGS | METH_KEYWORDS,
     "drain(timeout=None)\n--\n\nWorker: finish what there is, and get nothing more."},
    {"main", main_of, METH_NOARGS,
     "main()\n--\n\nRun the task's program, or else serve until the job is done."},
    {"serve", serve, METH_NOARGS,
     "serve()\n--\n\nWorker: functions are registered; offer it to the chief."},
    {"register", register_function, METH_VARARGS,
     "register(name, function)\n--\n\n"
     "Make a function known under a name of at most 63 bytes, for Python and C. It gets\n"
     "the closure's arguments as plain values. Before the node serves."},
    {"program", mupy_node_program, METH_VARARGS,
     "program(task_type, function)\n--\n\n"
     "Set what main() runs on tasks of a type: function(node)."},
    {"load", load, METH_O,
     "load(path)\n--\n\nLoad a plugin, a shared object with functions in C."},
    {"report", MUPY_METHOD(report), METH_VARARGS | METH_KEYWORDS,
     "report(name, number, step=0)\n--\n\nSend a number to the chief's status."},
    {"metric", metric, METH_VARARGS,
     "metric(name)\n--\n\nChief: the last (number, step) reported under a name."},
    {"task_count", task_count, METH_VARARGS,
     "task_count(type)\n--\n\nNumber of tasks of a type."},
    {"set", set, METH_VARARGS, "set(key, value)\n--\n\nA setting for plugins."},
    {"setting", setting, METH_VARARGS,
     "setting(key)\n--\n\nA setting, None when it is absent."},
    {NULL, NULL, 0, NULL},
};

int mupy_node_init(PyObject *module)
{
    static PyGetSetDef getset[] = {
        {"address", address, NULL, "Where the node listens.", NULL},
        {"task", task, NULL, "\"/job:worker/task:1\".", NULL},
        {"closed", closed, NULL, "Whether it was closed.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, offsetof(struct mupy_node, weak_list),
         READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_members, members},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, init},
        {Py_tp_dealloc, dealloc},
        {Py_tp_traverse, traverse},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_repr, repr},
        {Py_tp_doc, "Node(cluster=None, **options)\n--\n\n"
                    "One task of a cluster, inside this process.\n\n"
                    "cluster: a dict {\"worker\": [\"host:port\"]}, JSON, or a "
                    "ClusterSpec; None: that of\nTF_CONFIG, which says the task, too, "
                    "unless task_type does.\noptions: those of the C structure "
                    "mu_node_options, "
                    "with times in seconds and without\nthe ending _ms: task_type, "
                    "task_index, threads, heartbeat and so on;\nprocesses: "
                    "run functions of Python in so many processes, in place of threads;\n"
                    "and resolver: a ClusterResolver, in place of a cluster.\n\n"
                    "InvalidArgumentError: options or cluster. AlreadyExistsError: the "
                    "address is in use."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.Node", sizeof(struct mupy_node), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    PyObject *names = mupy_node_option_names();

    (void)pthread_atfork(NULL, NULL, count_fork);
    mupy_node_type = mupy_add_type(module, &spec);
    if (mupy_node_type == NULL || names == NULL)
        return -1;
    return PyModule_AddObject(module, "NODE_OPTIONS", names);
}
