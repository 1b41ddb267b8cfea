/* Nodes: one task of a cluster, inside this process. */
#include "nodes/node.h"

#include "hosting/hosting.h"
#include "services/services.h"

#include <structmember.h>

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

PyTypeObject *mupy_node_type;

/* Fork count: how many forks separate this process from the first one. */
static unsigned forks;

/* No Python code runs while this is held. */
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mupy_node *nodes;

static struct mupy_node *as_node(PyObject *self)
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
    node = __atomic_load_n(&as_node(object)->node, __ATOMIC_ACQUIRE);
    if (node == NULL)
        (void)mupy_fail(-MU_ECLOSED, "the node was closed");
    return mupy_node_is_forked(object) ? NULL : node;
}

/* After fork(), in the child. */
static void count_fork(void)
{
    forks++;
    (void)pthread_mutex_init(&nodes_lock, NULL);
}

bool mupy_node_is_forked(PyObject *object)
{
    struct mupy_node *self = as_node(object);

    if (object == NULL || self->node == NULL || self->forks == forks)
        return false;
    (void)mupy_fail(-MU_ECLOSED,
                    "this process was forked after %s was opened: the node "
                    "is that of its parent alone",
                    mu_node_task(self->node));
    return true;
}

/* Take the node out of an object that is being closed; NULL: another thread was faster,
 * or it was never open. */
static mu_node *detach_node(struct mupy_node *self)
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
            (void)detach_node(self);
    (void)pthread_mutex_unlock(&nodes_lock);
}

static PyObject *get_weak_object(PyObject *weak)
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

/* The Node of a node: a new reference, or NULL. */
static PyObject *find_node_object(const mu_node *node)
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
        object = get_weak_object(weak);
    Py_XDECREF(weak);
    return object;
}

/* ---- open and close ---- */

static void run_node_open(struct mupy_call *call)
{
    struct mupy_setup *setup = call->other;
    mu_node *node = NULL;

    call->rv = mu_node_open(&setup->options, &call->error, &node);
    call->made = node;
    mu_cluster_free(setup->cluster);
    free(setup);
}

static void drop_opened_node(struct mupy_call *call)
{
    mu_node *node = call->made;

    Py_BEGIN_ALLOW_THREADS(void)
    mu_node_close(node, 0, NULL);
    Py_END_ALLOW_THREADS
}

static int open_node_object(struct mupy_node *self, PyObject *cluster, PyObject *kwargs)
{
    struct mupy_setup *setup = mupy_setup_new(cluster, kwargs);
    struct mupy_call *call = setup == NULL ? NULL : mupy_call_new(run_node_open);
    unsigned processes;
    int rv;

    if (call == NULL)
        return -1;
    processes = setup->processes;
    call->drop = drop_opened_node;
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

/* Find cluster and options in the environment, for a node without cluster and resolver.
 * Replaces both references. */
static int find_node_spec(PyObject **cluster, PyObject **kwargs)
{
    static PyObject *find;
    PyObject *options = *kwargs == NULL ? PyDict_New() : PyDict_Copy(*kwargs);
    PyObject *resolver =
        options == NULL ? NULL : PyDict_GetItemString(options, "resolver");
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
static int node_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static PyObject *opened;
    PyObject *cluster = Py_None;
    PyObject *result;

    if (!PyArg_ParseTuple(args, "|O:Node", &cluster))
        return -1;
    if (as_node(object)->node != NULL) {
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
    if (cluster != Py_None || find_node_spec(&cluster, &kwargs) == 0)
        (void)open_node_object(as_node(object), cluster, kwargs);
    Py_DECREF(cluster);
    Py_XDECREF(kwargs);
    if (PyErr_Occurred() ||
        mupy_import(&opened, "muster._functions", "node_opened") == NULL)
        return -1;
    result = PyObject_CallFunctionObjArgs(opened, object, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static PyObject *wrap_new_node(mu_node *node)
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
    Py_INCREF(self); /* never released */
    return (PyObject *)self;
}

PyObject *mupy_node_wrap(mu_node *node)
{
    PyObject *object;

    MUPY_LOCK((PyObject *)mupy_node_type)
    object = find_node_object(node);
    if (object == NULL)
        object = wrap_new_node(node);
    MUPY_UNLOCK()
    return object;
}

void mupy_node_unwrap(PyObject *node)
{
    if (node != NULL && detach_node(as_node(node)) != NULL)
        Py_DECREF(node); /* the reference that mupy_node_wrap keeps */
}

static void run_node_close(struct mupy_call *call)
{
    call->rv = mu_node_close(call->object, call->timeout_ms, &call->error);
}

PyObject *mupy_node_close(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    struct mupy_node *self = as_node(object);
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
    call = mupy_call_new(run_node_close);
    if (call == NULL)
        return NULL;
    call->object = detach_node(self);
    if (call->object == NULL) {
        mupy_call_free(call);
        Py_RETURN_NONE;
    }
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static int node_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(as_node(object)->functions);
    return 0;
}

static void node_dealloc(PyObject *object)
{
    struct mupy_node *self = as_node(object);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    mu_node *node;

    PyObject_GC_UnTrack(object);
    PyObject_ClearWeakRefs(object);
    unlist_node(self);
    node = detach_node(self);
    if (node != NULL && self->owned) {
        Py_BEGIN_ALLOW_THREADS(void)
        mu_node_close(node, 1000, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_CLEAR(self->functions);
    Py_CLEAR(self->resolver); /* after the node, which used it */
    mupy_actors_forget(self->held);
    mu_node_unref(self->held);
    release(object);
    Py_DECREF(type);
}

PyObject *mupy_node_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (mupy_node_of(self) == NULL)
        return NULL;
    Py_INCREF(self);
    return self;
}

PyObject *mupy_node_leave(PyObject *self, PyObject *args)
{
    PyObject *none;
    PyObject *result;

    (void)args;
    if (mupy_node_is_forked(self)) {
        PyErr_Clear(); /* in a forked child that unwinds its parent's stack */
        Py_RETURN_NONE;
    }
    none = PyTuple_New(0);
    result = none == NULL ? NULL : mupy_node_close(self, none, NULL);
    Py_XDECREF(none);
    return result;
}

/* ---- attributes ---- */

static PyObject *node_address(PyObject *self, void *closure)
{
    mu_node *node = mupy_node_of(self);

    (void)closure;
    return node == NULL ? NULL : PyUnicode_FromString(mu_node_address(node));
}

static PyObject *node_task(PyObject *self, void *closure)
{
    mu_node *node = mupy_node_of(self);

    (void)closure;
    return node == NULL ? NULL : PyUnicode_FromString(mu_node_task(node));
}

static PyObject *node_closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(as_node(self)->node == NULL);
}

static PyObject *node_repr(PyObject *self)
{
    mu_node *node = as_node(self)->node;

    if (node == NULL)
        return PyUnicode_FromString("<muster.Node: closed>");
    return PyUnicode_FromFormat("<muster.Node %s at %s>", mu_node_task(node),
                                mu_node_address(node));
}

int mupy_node_init(PyObject *module)
{
    static PyGetSetDef getset[] = {
        {"address", node_address, NULL, "Where the node listens.", NULL},
        {"task", node_task, NULL, "\"/job:worker/task:1\".", NULL},
        {"closed", node_closed, NULL, "Whether it was closed.", NULL},
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
        {Py_tp_init, node_init},
        {Py_tp_dealloc, node_dealloc},
        {Py_tp_traverse, node_traverse},
        {Py_tp_methods, mupy_node_methods},
        {Py_tp_getset, getset},
        {Py_tp_repr, node_repr},
        {Py_tp_doc,
         "Node(cluster=None, **options)\n--\n\n"
         "One task of a cluster, inside this process.\n\n"
         "cluster: a dict {\"worker\": [\"host:port\"]}, JSON, or a "
         "ClusterSpec; None: that of\nTF_CONFIG, with its task unless task_type "
         "is given.\noptions: those of the C structure mu_node_options, "
         "with times in seconds and without\nthe ending _ms: task_type, "
         "task_index, threads, heartbeat and so on;\nprocesses: "
         "run Python functions in this many processes, instead of threads;\n"
         "and resolver: a ClusterResolver, instead of a cluster.\n\n"
         "InvalidArgumentError: options or cluster. AlreadyExistsError: the "
         "address is in use."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "muster._muster.Node", sizeof(struct mupy_node), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    PyObject *table = mupy_node_option_table();

    (void)pthread_atfork(NULL, NULL, count_fork);
    mupy_node_type = mupy_add_type(module, &spec);
    if (mupy_node_type == NULL || table == NULL)
        return -1;
    return PyModule_AddObject(module, "NODE_OPTIONS", table);
}
