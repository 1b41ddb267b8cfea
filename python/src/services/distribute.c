/* The distribute coordinator: runs one program on every task of a cluster.
 * muster/distribute.py has the Python side: threads of functions, and results. */
#include "services/services.h"

#include "muster/distribute.h"

#include <stdlib.h>
#include <string.h>

enum { FILTERS_MAX = 64 };

/* ---- the context of one call ---- */

struct context {
    PyObject_HEAD
    mu_context *context; /* NULL once the call has ended */
};

static PyTypeObject *context_type;

static mu_context *get_live_context(PyObject *object)
{
    mu_context *context = ((struct context *)object)->context;

    if (context == NULL)
        (void)mupy_fail(-MU_EPRECONDITION, "the call of this context has ended");
    return context;
}

static void context_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_Free(object);
    Py_DECREF(type);
}

enum flag {
    IS_CHIEF,
    DISTRIBUTED,
    EVALUATES,
    SHOULD_INIT,
    SHOULD_CHECKPOINT,
    SHOULD_SAVE_SUMMARY,
    HAS_BARRIER,
    FLAGS
};

static PyObject *get_flag(PyObject *object, void *closure)
{
    static int (*const rows[FLAGS])(const mu_context *context) = {
        [IS_CHIEF] = mu_context_is_chief,
        [DISTRIBUTED] = mu_context_distributed_mode,
        [EVALUATES] = mu_context_is_evaluation,
        [SHOULD_INIT] = mu_context_should_init,
        [SHOULD_CHECKPOINT] = mu_context_should_checkpoint,
        [SHOULD_SAVE_SUMMARY] = mu_context_should_save_summary,
        [HAS_BARRIER] = mu_context_has_barrier,
    };
    mu_context *context = get_live_context(object);

    if (context == NULL)
        return NULL;
    return PyBool_FromLong(rows[(intptr_t)closure](context));
}

static PyObject *get_task_type(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);

    (void)closure;
    return context == NULL ? NULL : mupy_str(mu_context_task_type(context));
}

static PyObject *get_task_id(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);
    int index;

    (void)closure;
    if (context == NULL)
        return NULL;
    index = mu_context_task_index(context);
    return index < 0 ? mupy_str(NULL) : PyLong_FromLong(index);
}

static PyObject *get_task(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);

    (void)closure;
    return context == NULL ? NULL : PyUnicode_FromString(mu_context_task(context));
}

static PyObject *get_cluster(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);
    mu_cluster *copy;

    (void)closure;
    if (context == NULL)
        return NULL;
    if (mu_context_cluster(context) == NULL)
        return mupy_str(NULL);
    copy = mu_cluster_copy(mu_context_cluster(context));
    return copy == NULL ? PyErr_NoMemory() : mupy_cluster_wrap(copy);
}

static PyObject *get_num_workers(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);

    (void)closure;
    return context == NULL ? NULL : PyLong_FromSize_t(mu_context_num_workers(context));
}

static PyObject *get_target(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);

    (void)closure;
    if (context == NULL)
        return NULL;
    return PyUnicode_FromString(mu_context_master_target(context));
}

static PyObject *get_config(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);
    const mu_session_config *config;
    PyObject *filters;

    (void)closure;
    if (context == NULL)
        return NULL;
    config = mu_context_session_config(context);
    filters = PyList_New(0);
    for (size_t i = 0; filters != NULL && i < config->device_filters_count; i++) {
        PyObject *text = PyUnicode_FromString(config->device_filters[i]);

        if (text == NULL || PyList_Append(filters, text) != 0)
            Py_CLEAR(filters);
        Py_XDECREF(text);
    }
    if (filters == NULL)
        return NULL;
    return Py_BuildValue("IIN", config->inter_op_threads, config->intra_op_threads,
                         filters);
}

static void run_context_wait(struct mupy_call *call)
{
    call->rv = mu_context_wait_for_others(call->object, call->timeout_ms, &call->error);
}

static PyObject *wait_for_others(PyObject *object, PyObject *args)
{
    mu_context *context = get_live_context(object);
    PyObject *timeout = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (context == NULL || !PyArg_ParseTuple(args, "|O:wait_for_others", &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run_context_wait);
    if (call == NULL)
        return NULL;
    call->object = context;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, object);
    return mupy_call_finish(call);
}

static PyObject *context_cancelled(PyObject *object, PyObject *unused)
{
    mu_context *context = get_live_context(object);

    (void)unused;
    return context == NULL ? NULL : PyBool_FromLong(mu_context_cancelled(context));
}

/* end_waits(words): any thread, while the call lasts. */
static PyObject *context_end_waits(PyObject *object, PyObject *args)
{
    mu_context *context = get_live_context(object);
    mu_error error = {.code = -MU_EUNKNOWN};
    const char *words;

    if (context == NULL || !PyArg_ParseTuple(args, "s:end_waits", &words))
        return NULL;
    (void)strncpy(error.message, words, sizeof error.message - 1);
    (void)mu_context_abort_waits(context, &error);
    Py_RETURN_NONE;
}

static PyObject *context_node(PyObject *object, PyObject *unused)
{
    mu_context *context = get_live_context(object);
    mu_node *opened = NULL;
    mu_error error;
    int rv;

    (void)unused;
    if (context == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_context_node(context, &error, &opened);
    Py_END_ALLOW_THREADS
    return rv != 0 ? mupy_raise(&error, NULL) : mupy_node_wrap(opened);
}

/* ---- calls of the program's functions ---- */

/* Takes ownership of `result`: (0, object), or (code, message, task). */
static int finish_call(mu_context *context, PyObject *result)
{
    mu_error error = {.code = -MU_EUNKNOWN};
    const char *words = "";
    const char *task = "";
    PyObject *object = NULL;
    mu_value *value = NULL;

    if (result == NULL ||
        !PyArg_ParseTuple(result, "iOss", &error.code, &object, &words, &task)) {
        PyErr_WriteUnraisable(NULL);
        error.code = -MU_EUNKNOWN;
        words = "the function could not be called";
    }
    if (error.code == 0) {
        value = mupy_encode_result(object);
        if (value == NULL)
            PyErr_Clear(); /* a result that cannot be pickled stays in its process */
        mu_context_return(context, value == NULL ? mu_value_nil() : value);
        Py_XDECREF(result);
        return 0;
    }
    (void)strncpy(error.message, words, sizeof error.message - 1);
    (void)strncpy(error.task, task, sizeof error.task - 1);
    Py_XDECREF(result);
    return mu_context_fail_with(context, &error);
}

/* The worker or eval function, on any thread: calls the Python object `user` with the
 * context. */
static int call_context_function(mu_context *from, void *user)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct context *context = PyObject_New(struct context, context_type);
    PyObject *result = NULL;
    int rv;

    if (context != NULL) {
        context->context = from;
        result = PyObject_CallFunctionObjArgs(user, (PyObject *)context, NULL);
    }
    rv = finish_call(from, result);
    if (context != NULL) {
        context->context = NULL;
        Py_DECREF(context);
    }
    PyGILState_Release(state);
    return rv;
}

/* Convert the current exception to an error of the library. */
static int set_exception_error(const char *what, mu_error *ret_error)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyObject *text;
    const char *words = NULL;
    int rv;

    PyErr_Fetch(&type, &value, &traceback);
    text = value == NULL ? NULL : PyObject_Str(value);
    if (text != NULL)
        words = PyUnicode_AsUTF8AndSize(text, NULL);
    rv =
        mu_error_set(ret_error, -MU_EINVALID, "%s: %s", what, words == NULL ? "" : words);
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return rv;
}

/* Called with each node of the run: registers Python functions, and calls the object
 * `user` with the node. */
static int register_run_functions(mu_node *node, void *user, mu_error *ret_error)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *wrapped = mupy_node_wrap(node);
    PyObject *result = NULL;
    int rv = 0;

    if (wrapped != NULL && mupy_run_register(node) == 0)
        result = PyObject_CallFunctionObjArgs(user, wrapped, NULL);
    if (result == NULL)
        rv = set_exception_error("it has no functions of Python", ret_error);
    Py_XDECREF(result);
    Py_XDECREF(wrapped);
    PyGILState_Release(state);
    return rv;
}

/* ---- strategies ---- */

/* A strategy's copy for a task, with its configuration. */
struct copy {
    PyObject *object; /* (copy, inter, intra, filters, init, ...) */
    int should_init;
    int should_checkpoint;
    int should_save_summary;
    mu_session_config config;
    const char *filters[FILTERS_MAX];
};

static int read_copy(PyObject *object, struct copy *copy)
{
    PyObject *filters;
    PyObject *own;

    mu_session_config_init(&copy->config);
    if (!PyArg_ParseTuple(object, "OIIO!ppp", &own, &copy->config.inter_op_threads,
                          &copy->config.intra_op_threads, &PyTuple_Type, &filters,
                          &copy->should_init, &copy->should_checkpoint,
                          &copy->should_save_summary))
        return -1;
    copy->config.device_filters = copy->filters;
    for (Py_ssize_t i = 0; i < PyTuple_Size(filters) && i < FILTERS_MAX; i++) {
        copy->filters[i] =
            mupy_text_needed(PyTuple_GetItem(filters, i), "a device filter");
        if (copy->filters[i] == NULL)
            return -1;
        copy->config.device_filters_count++;
    }
    return 0;
}

static PyObject *task_object(PyObject *adapter, const mu_strategy_task *task)
{
    mu_cluster *cluster = task->cluster == NULL ? NULL : mu_cluster_copy(task->cluster);
    PyObject *spec = cluster == NULL ? mupy_str(NULL) : mupy_cluster_wrap(cluster);

    return PyObject_CallMethod(adapter, "configure", "NNii", spec, mupy_str(task->type),
                               task->index, task->is_chief);
}

static int configure_strategy(void *user, const mu_strategy_task *task,
                              mu_error *ret_error, void **ret_copy)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct copy *copy = calloc(1, sizeof *copy);
    int rv = 0;

    if (copy != NULL)
        copy->object = task_object(user, task);
    if (copy == NULL) {
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    } else if (copy->object == NULL || read_copy(copy->object, copy) != 0) {
        rv = set_exception_error("the strategy cannot be configured", ret_error);
        Py_XDECREF(copy->object);
        free(copy);
    } else {
        *ret_copy = copy;
    }
    PyGILState_Release(state);
    return rv;
}

static void session_config(void *copy, mu_session_config *config)
{
    *config = ((const struct copy *)copy)->config;
}

static int should_init(void *copy)
{
    return ((const struct copy *)copy)->should_init;
}

static int should_checkpoint(void *copy)
{
    return ((const struct copy *)copy)->should_checkpoint;
}

static int should_save_summary(void *copy)
{
    return ((const struct copy *)copy)->should_save_summary;
}

static void drop_copy(void *from)
{
    struct copy *copy = from;
    PyGILState_STATE state = PyGILState_Ensure();

    Py_DECREF(copy->object);
    PyGILState_Release(state);
    free(copy);
}

/* The strategy's copy that its adapter has made for this call. */
static PyObject *get_strategy(PyObject *object, void *closure)
{
    mu_context *context = get_live_context(object);
    const struct copy *copy;
    PyObject *own;

    (void)closure;
    if (context == NULL)
        return NULL;
    copy = mu_context_strategy(context);
    if (copy == NULL)
        return mupy_str(NULL);
    own = PyTuple_GetItem(copy->object, 0);
    Py_XINCREF(own);
    return own;
}

static void fill_strategy(mu_strategy *strategy, PyObject *adapter, int between_graph,
                          const char *name)
{
    *strategy = (mu_strategy){
        .name = name,
        .between_graph = between_graph,
        .user = adapter,
        .configure = configure_strategy,
        .session_config = session_config,
        .should_init = should_init,
        .should_checkpoint = should_checkpoint,
        .should_save_summary = should_save_summary,
        .drop = drop_copy,
    };
}

/* ---- running ---- */

struct run {
    mu_distribute_options options;
    mu_strategy strategy;
    mu_strategy eval_strategy;
    mu_cluster *cluster;
    struct mupy_setup *setup;
    PyObject *worker;
    PyObject *eval;
    PyObject *opened;
    PyObject *node;
};

/* (adapter, between_graph, name) or None */
static int read_strategy(PyObject *object, mu_strategy *strategy,
                         const mu_strategy **ret_strategy)
{
    int between_graph;
    const char *name;
    PyObject *adapter;

    if (object == Py_None)
        return 0;
    if (!PyArg_ParseTuple(object, "Ops", &adapter, &between_graph, &name))
        return -1;
    fill_strategy(strategy, adapter, between_graph, name);
    *ret_strategy = strategy;
    return 0;
}

static int read_node(struct run *run)
{
    if (run->node == Py_None)
        return 0;
    run->options.node = mupy_node_of(run->node);
    return run->options.node == NULL ? -1 : 0;
}

/* (mode, worker, eval, opened, strategy, eval strategy, cluster, type, index, rpc layer,
 * environment, ignore environment, node, options, optional barrier, join timeout,
 * end timeout) */
static int read_run(PyObject *args, struct run *run)
{
    mu_distribute_options *options = &run->options;
    PyObject *strategy;
    PyObject *eval_strategy;
    PyObject *cluster;
    PyObject *node_options;
    PyObject *join;
    PyObject *end;
    int ignores;
    int optional;

    mu_distribute_options_init(options);
    if (!PyArg_ParseTuple(args, "iOOOOOOzizzpOO!pOO:distribute_run", &options->mode,
                          &run->worker, &run->eval, &run->opened, &strategy,
                          &eval_strategy, &cluster, &options->task_type,
                          &options->task_index, &options->rpc_layer,
                          &options->environment, &ignores, &run->node, &PyDict_Type,
                          &node_options, &optional, &join, &end) ||
        read_strategy(strategy, &run->strategy, &options->strategy) != 0 ||
        read_strategy(eval_strategy, &run->eval_strategy, &options->eval_strategy) != 0 ||
        mupy_cluster_of(cluster, &run->cluster) != 0 || read_node(run) != 0 ||
        mupy_timeout(join, &options->join_timeout_ms) != 0 ||
        mupy_timeout(end, &options->end_timeout_ms) != 0)
        return -1;
    run->setup = mupy_setup_new(Py_None, node_options);
    if (run->setup == NULL)
        return -1;
    options->ignore_environment = ignores;
    options->barrier_optional = optional;
    options->cluster = run->cluster;
    options->worker = call_context_function;
    options->worker_user = run->worker;
    options->eval = run->eval == Py_None ? NULL : call_context_function;
    options->eval_user = run->eval;
    options->opened = register_run_functions;
    options->opened_user = run->opened;
    options->resolver = run->setup->options.resolver;
    run->setup->options.resolver = NULL;
    options->node_options = &run->setup->options;
    return 0;
}

/* {task: (code, value, error, message, task of origin)} */
static PyObject *results_object(const mu_value *results)
{
    PyObject *all = PyDict_New();

    for (size_t i = 0; all != NULL && i < mu_value_count(results); i++) {
        const mu_value *one = mu_value_at(results, i);
        const mu_value *value = mu_value_find(one, "value");
        const char *words = "";
        const char *task = "";
        PyObject *row;
        int64_t code = 0;
        size_t size;

        (void)mu_value_get_int(mu_value_find(one, "code"), &code);
        (void)mu_value_get_string(mu_value_find(one, "message"), &words, &size);
        (void)mu_value_get_string(mu_value_find(one, "task"), &task, &size);
        row = Py_BuildValue("iNss", (int)code,
                            value == NULL ? mupy_str(NULL)
                                          : mupy_decode_result(value, true, NULL),
                            words, task);
        if (row == NULL || PyDict_SetItemString(all, mu_value_key(results, i), row) != 0)
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    return all;
}

/* -> (exception or None, results). Blocks this thread: see muster/distribute.py. */
static PyObject *distribute_run(PyObject *module, PyObject *args)
{
    struct run *run = calloc(1, sizeof *run);
    mu_value *results = NULL;
    PyObject *exception = NULL;
    PyObject *object = NULL;
    mu_error error;
    int rv;

    (void)module;
    if (run == NULL)
        return PyErr_NoMemory();
    if (read_run(args, run) == 0) {
        Py_BEGIN_ALLOW_THREADS
        rv = mu_distribute_run(&run->options, &error, &results);
        Py_END_ALLOW_THREADS
        exception = rv != 0 ? mupy_exception(&error, NULL) : mupy_str(NULL);
        object = exception == NULL ? NULL : results_object(results);
    }
    mu_value_free(results);
    mu_cluster_free(run->cluster);
    if (run->setup != NULL)
        mupy_setup_free(run->setup);
    free(run);
    if (object == NULL) {
        Py_XDECREF(exception);
        return NULL;
    }
    return Py_BuildValue("NN", exception, object);
}

/* node_unwrap(node): mark the wrapper of a run's node as closed. */
static PyObject *node_unwrap(PyObject *module, PyObject *object)
{
    (void)module;
    if (!PyObject_TypeCheck(object, mupy_node_type))
        return PyErr_Format(PyExc_TypeError, "a Node was expected, got %R", object);
    if (!((struct mupy_node *)object)->owned)
        mupy_node_unwrap(object);
    Py_RETURN_NONE;
}

static PyGetSetDef context_getset[] = {
    {"task_type", get_task_type, NULL, "\"worker\", or None.", NULL},
    {"task_id", get_task_id, NULL, "Its index, or None.", NULL},
    {"task", get_task, NULL, "\"/job:worker/task:1\", or \"\".", NULL},
    {"cluster", get_cluster, NULL, "The cluster, without its evaluator.", NULL},
    {"num_workers", get_num_workers, NULL, "How many tasks train.", NULL},
    {"master_target", get_target, NULL, "What a session connects to.", NULL},
    {"session_config", get_config, NULL, "(inter, intra, filters).", NULL},
    {"strategy", get_strategy, NULL, "The strategy's copy for this task.", NULL},
    {"is_chief", get_flag, NULL, NULL, (void *)IS_CHIEF},
    {"distributed_mode", get_flag, NULL, NULL, (void *)DISTRIBUTED},
    {"evaluates", get_flag, NULL, NULL, (void *)EVALUATES},
    {"should_init", get_flag, NULL, NULL, (void *)SHOULD_INIT},
    {"should_checkpoint", get_flag, NULL, NULL, (void *)SHOULD_CHECKPOINT},
    {"should_save_summary", get_flag, NULL, NULL, (void *)SHOULD_SAVE_SUMMARY},
    {"has_barrier", get_flag, NULL, NULL, (void *)HAS_BARRIER},
    {NULL, NULL, NULL, NULL, NULL},
};

int mupy_distribute_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"distribute_run", distribute_run, METH_VARARGS,
         "distribute_run(...)\n--\n\n(exception or None, results)."},
        {"node_unwrap", node_unwrap, METH_O,
         "node_unwrap(node)\n--\n\nMark the wrapper of a run's node as closed."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"wait_for_others", wait_for_others, METH_VARARGS,
         "wait_for_others(timeout=None)\n--\n\nWait for the chief and all workers."},
        {"end_waits", context_end_waits, METH_VARARGS,
         "end_waits(words)\n--\n\nEnd all waits of this process."},
        {"cancelled", context_cancelled, METH_NOARGS,
         "cancelled()\n--\n\nWhether the call may stop early."},
        {"node", context_node, METH_NOARGS,
         "node()\n--\n\nThe node that the call runs on."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, context_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, context_getset},
        {Py_tp_doc, "The context of one call of a program's function."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Context", sizeof(struct context), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    context_type = mupy_add_type(module, &spec);
    return context_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
