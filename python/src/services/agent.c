/* The agent of a node: its state, states of tasks, preemption. */
#include "services/services.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- state ---- */

static const char *const state_names[] = {"uninitialized", "disconnected", "connected",
                                          "error"};

/* agent_state(node) -> (state, exception or None) */
static PyObject *agent_state(PyObject *module, PyObject *node)
{
    mu_node *opened = mupy_node_of(node);
    PyObject *exception = Py_None;
    mu_error error;
    int number;

    (void)module;
    if (opened == NULL)
        return NULL;
    number = mu_agent_state(opened, &error);
    if (number < 0)
        return mupy_raise(&error, NULL);
    if (number == MU_AGENT_ERROR)
        exception = mupy_exception(&error, NULL);
    else
        Py_INCREF(exception);
    if (exception == NULL)
        return NULL;
    return Py_BuildValue("sN", number <= MU_AGENT_ERROR ? state_names[number] : "",
                         exception);
}

static PyObject *agent_service(PyObject *module, PyObject *node)
{
    mu_node *opened = mupy_node_of(node);
    mu_value *value = NULL;
    PyObject *object;
    mu_error error;

    (void)module;
    if (opened == NULL)
        return NULL;
    if (mu_agent_service(opened, &error, &value) != 0)
        return mupy_raise(&error, NULL);
    object = mupy_from_value(value, true);
    mu_value_free(value);
    return object;
}

static PyObject *agent_progress(PyObject *module, PyObject *node)
{
    mu_node *opened = mupy_node_of(node);

    (void)module;
    if (opened == NULL)
        return NULL;
    mu_agent_progress(opened);
    Py_RETURN_NONE;
}

/* agent_set_error(node, code, message) */
static PyObject *agent_set_error(PyObject *module, PyObject *args)
{
    const char *message;
    PyObject *node;
    mu_node *opened;
    int code;
    int rv;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ois:agent_set_error", &node, &code, &message) ||
        (opened = mupy_node_of(node)) == NULL)
        return NULL;
    rv = mu_agent_set_error(opened, code, message);
    if (rv != 0)
        return mupy_fail(rv, "the error was not set: %s", mu_strerror(rv));
    Py_RETURN_NONE;
}

/* ---- calls that wait ---- */

static void run_register(struct mupy_call *call)
{
    call->rv = mu_agent_register(call->object, (int)call->number, call->timeout_ms,
                                 &call->error);
}

/* agent_register(node, barrier, timeout) */
static PyObject *register_task(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *node;
    int barrier;

    (void)module;
    if (!PyArg_ParseTuple(args, "OpO:agent_register", &node, &barrier, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_register);
    if (call == NULL)
        return NULL;
    call->number = barrier != 0;
    return mupy_call_finish(call);
}

static PyObject *call_agent(PyObject *args, void (*run)(struct mupy_call *call))
{
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *node;

    if (!PyArg_ParseTuple(args, "OO", &node, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run);
    return call == NULL ? NULL : mupy_call_finish(call);
}

static void run_reset(struct mupy_call *call)
{
    call->rv = mu_agent_reset(call->object, call->timeout_ms, &call->error);
}

static PyObject *agent_reset(PyObject *module, PyObject *args)
{
    (void)module;
    return call_agent(args, run_reset);
}

static void run_leave(struct mupy_call *call)
{
    call->rv = mu_agent_leave(call->object, call->timeout_ms, &call->error);
}

static PyObject *agent_leave(PyObject *module, PyObject *args)
{
    (void)module;
    return call_agent(args, run_leave);
}

/* call->text is the failed task; "": this one. */
static void run_report(struct mupy_call *call)
{
    if (call->text[0] == '\0')
        call->rv = mu_agent_report_error(call->object, (int)call->real, call->data,
                                         call->timeout_ms, &call->error);
    else
        call->rv = mu_tasks_report_error(call->object, call->text, (int)call->real,
                                         call->data, call->timeout_ms, &call->error);
}

/* agent_report_error(node, task, code, message, timeout) */
static PyObject *report_error(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    const char *message;
    PyObject *timeout;
    const char *task;
    PyObject *node;
    int code;

    (void)module;
    if (!PyArg_ParseTuple(args, "OzisO:agent_report_error", &node, &task, &code, &message,
                          &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_report);
    if (call == NULL)
        return NULL;
    if (task != NULL)
        (void)strncpy(call->text, task, sizeof call->text - 1);
    call->real = code;
    call->data = message;
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

/* ---- notification of errors ---- */

/* Never freed, since the loop thread may be calling it. */
struct agent_error {
    PyObject_HEAD
    _Atomic(struct mupy_notice *) notice;
    mu_error error;
};

static PyTypeObject *agent_error_type;

/* On the loop's thread. */
static void on_error(void *user, const mu_error *error)
{
    struct agent_error *agent_error = user;
    struct mupy_notice *notice = atomic_exchange(&agent_error->notice, NULL);

    if (notice == NULL)
        return;
    agent_error->error = *error;
    mupy_notice_post(notice);
}

/* agent_on_error(node, callback): callback(told) is called once. */
static PyObject *agent_on_error(PyObject *module, PyObject *args)
{
    struct mupy_notice *notice;
    PyObject *callback;
    struct agent_error *agent_error;
    PyObject *node;
    mu_node *opened;
    int rv;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:agent_on_error", &node, &callback) ||
        (opened = mupy_node_of(node)) == NULL)
        return NULL;
    if (callback == Py_None) {
        (void)mu_agent_on_error(opened, NULL, NULL);
        Py_RETURN_NONE;
    }
    if (mupy_notice_start() != 0)
        return NULL;
    agent_error = PyObject_New(struct agent_error, agent_error_type);
    notice =
        agent_error == NULL ? NULL : mupy_notice_new(callback, (PyObject *)agent_error);
    if (notice == NULL)
        return NULL;
    atomic_init(&agent_error->notice, notice);
    rv = mu_agent_on_error(opened, on_error, agent_error);
    if (rv == 0)
        Py_RETURN_NONE;
    mupy_notice_free(notice);
    return mupy_fail(rv, "errors cannot be reported: %s", mu_strerror(rv));
}

static PyObject *agent_error_exception(PyObject *object, PyObject *unused)
{
    (void)unused;
    return mupy_exception(&((struct agent_error *)object)->error, NULL);
}

static void agent_error_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_Free(object);
    Py_DECREF(type);
}

/* ---- tasks ---- */

enum question { STATES, WAIT, ALIVE, DEVICES };

static void run_tasks(struct mupy_call *call)
{
    mu_value *value = NULL;

    switch ((enum question)call->number) {
    case STATES:
        call->rv = mu_tasks_states(call->object, call->data, call->timeout_ms,
                                   &call->error, &value);
        break;
    case WAIT:
        call->rv = mu_tasks_wait(call->object, call->data, call->timeout_ms, &call->error,
                                 &value);
        break;
    case ALIVE:
        call->rv = mu_tasks_alive(call->object, call->data, call->timeout_ms,
                                  &call->error, &value);
        break;
    case DEVICES:
        call->rv = mu_tasks_devices(call->object, call->timeout_ms, &call->error, &value);
        break;
    }
    call->made = value;
}

static PyObject *call_tasks(PyObject *args, enum question question)
{
    struct mupy_call *call;
    PyObject *timeout;
    const char *tasks;
    PyObject *node;

    if (!PyArg_ParseTuple(args, "OzO", &node, &tasks, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_tasks);
    if (call == NULL)
        return NULL;
    call->data = tasks;
    call->number = question;
    mupy_call_keep(call, args);
    return mupy_call_value(call);
}

static PyObject *tasks_states(PyObject *module, PyObject *args)
{
    (void)module;
    return call_tasks(args, STATES);
}

static PyObject *tasks_wait(PyObject *module, PyObject *args)
{
    (void)module;
    return call_tasks(args, WAIT);
}

static PyObject *tasks_alive(PyObject *module, PyObject *args)
{
    (void)module;
    return call_tasks(args, ALIVE);
}

static PyObject *tasks_devices(PyObject *module, PyObject *args)
{
    (void)module;
    return call_tasks(args, DEVICES);
}

static void run_watch(struct mupy_call *call)
{
    mu_value *value = NULL;

    call->rv = mu_tasks_watch(call->object, call->data, call->number, call->timeout_ms,
                              &call->error, &call->number, &value);
    call->made = value;
}

static void drop_tasks_value(struct mupy_call *call)
{
    mu_value_free(call->made);
}

/* tasks_watch(node, tasks, version, timeout) -> (version, tasks) */
static PyObject *tasks_watch(PyObject *module, PyObject *args)
{
    unsigned long long version;
    struct mupy_call *call;
    PyObject *result = NULL;
    PyObject *timeout;
    const char *tasks;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OzKO:tasks_watch", &node, &tasks, &version, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_watch);
    if (call == NULL)
        return NULL;
    call->data = tasks;
    call->number = version;
    call->drop = drop_tasks_value;
    mupy_call_keep(call, args);
    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        result = Py_BuildValue("KN", (unsigned long long)call->number,
                               mupy_from_value(call->made, true));
    mu_value_free(call->made);
    mupy_call_free(call);
    return result;
}

static void run_reset_task(struct mupy_call *call)
{
    call->rv = mu_tasks_reset(call->object, call->data, call->timeout_ms, &call->error);
}

/* tasks_reset(node, task, timeout) */
static PyObject *reset_task(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    PyObject *timeout;
    const char *task;
    PyObject *node;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsO:tasks_reset", &node, &task, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_reset_task);
    if (call == NULL)
        return NULL;
    call->data = task;
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

/* ---- preemption ---- */

static void run_notice(struct mupy_call *call)
{
    call->rv = mu_preemption_notify(call->object, call->data, (int64_t)call->number,
                                    call->timeout_ms, &call->error);
}

/* preempt_notice(node, reason, grace, timeout) */
static PyObject *preempt_notice(PyObject *module, PyObject *args)
{
    struct mupy_call *call;
    const char *reason;
    PyObject *timeout;
    PyObject *node;
    double grace;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsdO:preempt_notice", &node, &reason, &grace, &timeout))
        return NULL;
    if (!(grace >= 0 && grace < 1e12))
        return mupy_fail(-MU_EINVALID, "grace is a number of seconds, not below 0");
    call = mupy_node_call(node, timeout, run_notice);
    if (call == NULL)
        return NULL;
    call->data = reason;
    call->number = (uint64_t)(grace * 1000 + 0.5);
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

static void run_reached(struct mupy_call *call)
{
    int stop = 0;

    call->rv = mu_preemption_reached(call->object, call->number, &call->error, &stop);
    call->size = stop != 0;
}

/* preempt_reached(node, step) -> whether it is the step to stop at */
static PyObject *preempt_reached(PyObject *module, PyObject *args)
{
    unsigned long long step;
    struct mupy_call *call;
    PyObject *node;
    bool stop;

    (void)module;
    if (!PyArg_ParseTuple(args, "OK:preempt_reached", &node, &step))
        return NULL;
    call = mupy_node_call(node, NULL, run_reached);
    if (call == NULL)
        return NULL;
    call->number = step;
    if (mupy_call_run(call) != 0)
        return NULL;
    stop = call->size != 0;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    mupy_call_free(call);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(stop);
}

struct preempt_request {
    struct mupy_request request;
    uint64_t round;
    int agreed;
    mu_preemption preemption;
};

static void run_preempt_wait(struct mupy_call *call)
{
    struct preempt_request *request = call->other;

    call->rv = mu_preemption_wait(call->object, request->round, request->agreed,
                                  call->timeout_ms, &call->error, &request->preemption);
}

/* preempt_wait(node, round, agreed, timeout) ->
 * (round, task, reason, seconds left, step, agreed) */
static PyObject *preempt_wait(PyObject *module, PyObject *args)
{
    struct preempt_request *request;
    unsigned long long round;
    struct mupy_call *call;
    PyObject *timeout;
    PyObject *object;
    PyObject *node;
    int agreed;

    (void)module;
    if (!PyArg_ParseTuple(args, "OKpO:preempt_wait", &node, &round, &agreed, &timeout))
        return NULL;
    call = mupy_node_call(node, timeout, run_preempt_wait);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, NULL);
    if (request == NULL)
        return NULL;
    request->round = round;
    request->agreed = agreed;
    if (mupy_request_run(call) != 0)
        return NULL;
    object = Py_BuildValue("KssdKN", (unsigned long long)request->preemption.round,
                           request->preemption.task, request->preemption.reason,
                           (double)request->preemption.left_ms / 1000,
                           (unsigned long long)request->preemption.step,
                           PyBool_FromLong(request->preemption.agreed));
    mupy_request_end(call);
    return object;
}

static PyMethodDef functions[] = {
    {"agent_state", agent_state, METH_O,
     "agent_state(node)\n--\n\n(state, exception or None)."},
    {"agent_service", agent_service, METH_O,
     "agent_service(node)\n--\n\nThe service's host."},
    {"agent_progress", agent_progress, METH_O,
     "agent_progress(node)\n--\n\nReport progress."},
    {"agent_set_error", agent_set_error, METH_VARARGS,
     "agent_set_error(node, code, message)\n--\n\nFail every call from now on."},
    {"agent_register", register_task, METH_VARARGS,
     "agent_register(node, barrier, timeout)\n--\n\nWait until it is registered."},
    {"agent_reset", agent_reset, METH_VARARGS,
     "agent_reset(node, timeout)\n--\n\nLeave the error state."},
    {"agent_leave", agent_leave, METH_VARARGS,
     "agent_leave(node, timeout)\n--\n\nLeave."},
    {"agent_report_error", report_error, METH_VARARGS,
     "agent_report_error(node, task, code, message, timeout)\n--\n\nReport a failed "
     "task."},
    {"agent_on_error", agent_on_error, METH_VARARGS,
     "agent_on_error(node, callback)\n--\n\nCall back on the next error."},
    {"tasks_states", tasks_states, METH_VARARGS,
     "tasks_states(node, tasks, timeout)\n--\n\nThe states of tasks."},
    {"tasks_wait", tasks_wait, METH_VARARGS,
     "tasks_wait(node, tasks, timeout)\n--\n\nThe same, once all are connected."},
    {"tasks_alive", tasks_alive, METH_VARARGS,
     "tasks_alive(node, tasks, timeout)\n--\n\nWhich of them are alive."},
    {"tasks_devices", tasks_devices, METH_VARARGS,
     "tasks_devices(node, None, timeout)\n--\n\nDevices of the tasks."},
    {"tasks_watch", tasks_watch, METH_VARARGS,
     "tasks_watch(node, tasks, version, timeout)\n--\n\n(version, states)."},
    {"tasks_reset", reset_task, METH_VARARGS,
     "tasks_reset(node, task, timeout)\n--\n\nReset a task in error."},
    {"preempt_notice", preempt_notice, METH_VARARGS,
     "preempt_notice(node, reason, grace, timeout)\n--\n\nAnnounce a termination."},
    {"preempt_reached", preempt_reached, METH_VARARGS,
     "preempt_reached(node, step)\n--\n\nWhether this is the step to stop at."},
    {"preempt_wait", preempt_wait, METH_VARARGS,
     "preempt_wait(node, round, agreed, timeout)\n--\n\nThe next round."},
    {NULL, NULL, 0, NULL},
};

int mupy_agent_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"exception", agent_error_exception, METH_NOARGS,
         "exception()\n--\n\nThe error."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, agent_error_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "An error of a node's agent."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.AgentError", sizeof(struct agent_error), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    agent_error_type = mupy_add_type(module, &spec);
    return agent_error_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
