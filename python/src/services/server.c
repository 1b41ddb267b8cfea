/* Servers: nodes that serve one task until the job is done, or they are stopped. */
#include "services/services.h"

#include "muster/compat/server.h"

#include <stdlib.h>
#include <string.h>

struct server {
    PyObject_HEAD
    mu_server *server;  /* NULL: not started */
    PyObject *node;     /* a Node, or NULL with environment "google" */
    PyObject *resolver; /* used by the node until it has stopped; NULL: none */
};

static PyTypeObject *server_type;

static struct server *as_server(PyObject *self)
{
    return (struct server *)self;
}

static mu_server *get_started_server(PyObject *object)
{
    if (as_server(object)->server == NULL)
        (void)mupy_fail(-MU_EPRECONDITION, "the server was not started");
    return as_server(object)->server;
}

/* ---- config ---- */

enum { FILTERS_MAX = 1024 };

/* (inter_op_threads, intra_op_threads, tuple of device filters); the texts belong to
 * `object`. `filters` has FILTERS_MAX. */
static int read_session_config(PyObject *object, const char **filters,
                               mu_session_config *config)
{
    PyObject *names;

    mu_session_config_init(config);
    if (!PyArg_ParseTuple(object, "IIO!", &config->inter_op_threads,
                          &config->intra_op_threads, &PyTuple_Type, &names))
        return -1;
    if (PyTuple_Size(names) > FILTERS_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd device filters, at most %d are possible",
                     PyTuple_Size(names), (int)FILTERS_MAX);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        filters[i] = mupy_text_needed(PyTuple_GetItem(names, i), "a device filter");
        if (filters[i] == NULL)
            return -1;
    }
    config->device_filters = filters;
    config->device_filters_count = (size_t)PyTuple_Size(names);
    return 0;
}

/* ---- starting ---- */

struct start_request {
    struct mupy_request request;
    struct mupy_setup *setup;
    mu_server_options options;
    mu_session_config config;
    const char *filters[FILTERS_MAX];
    bool from_environment;
};

/* Free the content of a start request; with the GIL. */
static void clean_start(struct mupy_request *request)
{
    mupy_setup_free(((struct start_request *)request)->setup);
}

static void run_start(struct mupy_call *call)
{
    struct start_request *request = call->other;
    mu_server *server = NULL;

    if (request->from_environment)
        call->rv =
            mu_server_start_from_environment(&request->options, &call->error, &server);
    else
        call->rv = mu_server_start(&request->options, &call->error, &server);
    call->made = server;
}

static void drop_started(struct mupy_call *call)
{
    mu_server *server = call->made;

    Py_BEGIN_ALLOW_THREADS
    mu_server_free(server);
    Py_END_ALLOW_THREADS
    clean_start(call->other);
    free(call->other);
}

/* Register the functions that run Python, and those of the program. */
static int fill_node(struct server *self, unsigned processes)
{
    static PyObject *opened;
    mu_node *node = mu_server_node(self->server);
    PyObject *result;

    if (node == NULL)
        return 0;
    self->node = mupy_node_wrap(node);
    if (self->node == NULL || mupy_setup_apply(processes, node) != 0 ||
        mupy_run_register(node) != 0 ||
        mupy_import(&opened, "muster._functions", "node_opened") == NULL)
        return -1;
    result = PyObject_CallFunctionObjArgs(opened, self->node, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static struct mupy_call *start_call(PyObject *object, PyObject *cluster,
                                    PyObject *options)
{
    struct start_request *request;
    struct mupy_setup *setup = mupy_setup_new(cluster, options);
    struct mupy_call *call = setup == NULL ? NULL : mupy_call_new(run_start);

    if (call == NULL) {
        if (setup != NULL)
            mupy_setup_free(setup);
        return NULL;
    }
    request = mupy_request_new(call, sizeof *request, clean_start);
    if (request == NULL) {
        mupy_setup_free(setup);
        return NULL;
    }
    call->drop = drop_started;
    request->setup = setup;
    mu_server_options_init(&request->options);
    request->options.node = &setup->options;
    request->options.config = &request->config;
    if (PyDict_GetItemString(options, "task_index") == NULL)
        setup->options.task_index = -1;
    mupy_call_keep(call, object);
    return call;
}

/* start(cluster, options, rpc_layer, environment, config, from_environment, timeout) */
static PyObject *server_start(PyObject *object, PyObject *args)
{
    struct server *self = as_server(object);
    struct start_request *request;
    struct mupy_call *call;
    const char *rpc_layer;
    const char *environment;
    PyObject *cluster;
    PyObject *options;
    PyObject *config;
    PyObject *timeout;
    int from_environment;
    bool failed;

    if (!PyArg_ParseTuple(args, "OO!zzOpO:start", &cluster, &PyDict_Type, &options,
                          &rpc_layer, &environment, &config, &from_environment, &timeout))
        return NULL;
    if (self->server != NULL)
        return mupy_fail(-MU_EEXISTS, "the server was started already");
    call = start_call(object, cluster, options);
    if (call == NULL)
        return NULL;
    mupy_call_keep(call, args);
    request = call->other;
    request->from_environment = from_environment != 0;
    if (rpc_layer != NULL)
        request->options.rpc_layer = rpc_layer;
    if (environment != NULL)
        request->options.environment = environment;
    failed = read_session_config(config, request->filters, &request->config) != 0 ||
             mupy_timeout(timeout, &request->options.timeout_ms) != 0;
    if (failed) {
        mupy_request_end(call);
        return NULL;
    }
    Py_XINCREF(request->setup->resolver);
    Py_XDECREF(self->resolver);
    self->resolver = request->setup->resolver;
    if (mupy_call_run(call) != 0)
        return NULL;
    self->server = call->made;
    failed = call->rv != 0;
    if (failed)
        (void)mupy_raise(&call->error, NULL);
    else
        failed = fill_node(self, request->setup->processes) != 0;
    clean_start(call->other);
    free(call->other);
    mupy_call_free(call);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static int server_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(as_server(object)->node);
    return 0;
}

static void server_dealloc(PyObject *object)
{
    struct server *self = as_server(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mu_server *server = self->server;

    PyObject_GC_UnTrack(object);
    if (server != NULL) {
        mupy_node_unwrap(self->node);
        Py_BEGIN_ALLOW_THREADS
        mu_server_free(server);
        Py_END_ALLOW_THREADS
    }
    Py_CLEAR(self->node);
    Py_CLEAR(self->resolver);
    release(object);
    Py_DECREF(type);
}

/* ---- serving ---- */

static void run_join(struct mupy_call *call)
{
    call->rv = mu_server_join(call->object, call->timeout_ms, &call->error);
    if (call->rv == 0 && call->error.code != 0)
        call->rv = call->error.code;
}

static void run_stop(struct mupy_call *call)
{
    call->rv = mu_server_stop(call->object, call->timeout_ms, &call->error);
}

static PyObject *call_server_timed(PyObject *self, PyObject *args,
                                   void (*run)(struct mupy_call *))
{
    mu_server *server = get_started_server(self);
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (server == NULL || !PyArg_ParseTuple(args, "|O", &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    call->object = server;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, self);
    return mupy_call_finish(call);
}

static PyObject *server_join(PyObject *self, PyObject *args)
{
    return call_server_timed(self, args, run_join);
}

static PyObject *server_stop(PyObject *self, PyObject *args)
{
    PyObject *result = call_server_timed(self, args, run_stop);

    if (result != NULL)
        mupy_node_unwrap(as_server(self)->node);
    return result;
}

/* ---- attributes ---- */

static PyObject *server_node(PyObject *self, void *closure)
{
    PyObject *object = as_server(self)->node;

    (void)closure;
    if (get_started_server(self) == NULL)
        return NULL;
    if (object == NULL)
        return mupy_str(NULL);
    Py_INCREF(object);
    return object;
}

static PyObject *server_target(PyObject *self, void *closure)
{
    mu_server *server = get_started_server(self);

    (void)closure;
    return server == NULL ? NULL : PyUnicode_FromString(mu_server_target(server));
}

static PyObject *server_task(PyObject *self, void *closure)
{
    mu_server *server = get_started_server(self);

    (void)closure;
    return server == NULL ? NULL : PyUnicode_FromString(mu_server_task(server));
}

static PyObject *server_cluster(PyObject *self, void *closure)
{
    mu_server *server = get_started_server(self);
    mu_cluster *copy;

    (void)closure;
    if (server == NULL)
        return NULL;
    copy = mu_cluster_copy(mu_server_cluster(server));
    return copy == NULL ? PyErr_NoMemory() : mupy_cluster_wrap(copy);
}

static PyObject *server_started(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(as_server(self)->server != NULL);
}

/* ---- other servers ---- */

static void run_stop_remote(struct mupy_call *call)
{
    call->rv = mu_server_stop_remote(call->object, call->text, call->data,
                                     call->timeout_ms, &call->error);
}

/* stop_remote(node, task, reason, timeout) */
static PyObject *stop_remote(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    const char *reason;
    const char *name;
    PyObject *timeout;
    PyObject *from;

    (void)module;
    if (!PyArg_ParseTuple(args, "OssO:stop_remote", &from, &name, &reason, &timeout))
        return NULL;
    call = mupy_node_call(from, timeout, run_stop_remote);
    if (call == NULL)
        return NULL;
    (void)strncpy(call->text, name, sizeof call->text - 1);
    call->data = reason;
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

struct offer_request {
    struct mupy_request request;
    mu_cluster *cluster;
    mu_server_options offer;
    mu_node_options node;
    mu_session_config config;
    const char *filters[FILTERS_MAX];
};

static void clean_offer(struct mupy_request *request)
{
    mu_cluster_free(((struct offer_request *)request)->cluster);
}

static void run_offer(struct mupy_call *call)
{
    struct offer_request *request = call->other;

    call->rv = mu_server_assign_cluster(&request->offer, call->timeout_ms, &call->error);
}

static int read_cluster_offer(PyObject *args, PyObject **ret_timeout,
                              struct offer_request *request)
{
    const char *cluster_name;
    mu_error error;
    PyObject *spec;
    PyObject *config;

    mu_server_options_init(&request->offer);
    request->offer.node = &request->node;
    request->offer.config = &request->config;
    mu_node_options_init(&request->node);
    if (mu_node_options_from_environment(&request->node, &error) != 0) {
        (void)mupy_raise(&error, NULL);
        return -1;
    }
    if (!PyArg_ParseTuple(args, "OsizOO:offer_cluster", &spec, &request->node.task_type,
                          &request->node.task_index, &cluster_name, &config,
                          ret_timeout) ||
        mupy_cluster_of(spec, &request->cluster) != 0)
        return -1;
    request->node.cluster = request->cluster;
    request->node.log = mupy_notice_log;
    request->node.log_level = MU_LOG_WARN;
    if (cluster_name != NULL)
        request->node.cluster_name = cluster_name;
    return read_session_config(config, request->filters, &request->config);
}

/* offer_cluster(cluster, type, index, cluster name, config, timeout) */
static PyObject *offer_cluster(PyObject *module, PyObject *args)
{
    struct mupy_call *call = mupy_call_new(run_offer);
    struct offer_request *request;
    PyObject *timeout = NULL;

    (void)module;
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, clean_offer);
    if (request == NULL)
        return NULL;
    mupy_call_keep(call, args);
    if (read_cluster_offer(args, &timeout, request) != 0 ||
        mupy_timeout(timeout, &call->timeout_ms) != 0 || mupy_notice_start() != 0) {
        mupy_request_end(call);
        return NULL;
    }
    if (mupy_request_run(call) != 0)
        return NULL;
    mupy_request_end(call);
    Py_RETURN_NONE;
}

int mupy_server_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"stop_remote", stop_remote, METH_VARARGS,
         "stop_remote(node, task, reason, timeout)\n--\n\nStop another task's server."},
        {"offer_cluster", offer_cluster, METH_VARARGS,
         "offer_cluster(cluster, type, index, name, config, timeout)\n"
         "--\n\nAssign a cluster to a waiting server."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"_start", server_start, METH_VARARGS,
         "_start(cluster, options, rpc_layer, environment, config, from_environment, "
         "timeout)\n--\n\nStart it."},
        {"_join", server_join, METH_VARARGS, "_join(timeout=None)\n--\n\nServe."},
        {"_stop", server_stop, METH_VARARGS, "_stop(timeout=None)\n--\n\nStop."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"node", server_node, NULL, "Its node; None with environment \"google\".", NULL},
        {"target", server_target, NULL, "The target of sessions: \"grpc://host:port\".",
         NULL},
        {"task", server_task, NULL, "\"/job:worker/task:1\".", NULL},
        {"_cluster", server_cluster, NULL, "The cluster that it serves.", NULL},
        {"started", server_started, NULL, "Whether it was started.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_dealloc, server_dealloc},
        {Py_tp_traverse, server_traverse},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_doc, "A server of the library."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.BaseServer", sizeof(struct server), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

    server_type = mupy_add_type(module, &spec);
    return server_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
