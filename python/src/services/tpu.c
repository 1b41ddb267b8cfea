/* Cloud TPUs: their state and health. A Tpu is used by one caller. */
#include "services/services.h"

#include "muster/compat/tpu.h"

#include <string.h>

struct tpu {
    PyObject_HEAD
    mu_tpu *tpu;
};

static mu_tpu *as_tpu(PyObject *object)
{
    return ((struct tpu *)object)->tpu;
}

static PyObject *tpu_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    mu_tpu *tpu = NULL;
    mu_error error;
    struct tpu *self;

    if (kwargs != NULL || PyTuple_Size(args) != 0)
        return PyErr_Format(PyExc_TypeError, "Tpu() takes no arguments");
    if (mu_tpu_new(&error, &tpu) != 0)
        return mupy_raise(&error, NULL);
    self = (struct tpu *)alloc(type, 0);
    if (self == NULL)
        mu_tpu_free(tpu);
    else
        self->tpu = tpu;
    return (PyObject *)self;
}

static void tpu_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    mu_tpu_free(as_tpu(object));
    release(object);
    Py_DECREF(type);
}

static PyObject *tpu_set(PyObject *self, PyObject *args)
{
    const char *value = NULL;
    const char *setting;
    mu_error error;

    if (!PyArg_ParseTuple(args, "sz:set", &setting, &value))
        return NULL;
    if (mu_tpu_set(as_tpu(self), setting, value, &error) != 0)
        return mupy_raise(&error, NULL);
    Py_RETURN_NONE;
}

static void log_tpu_progress(void *user, const char *line)
{
    (void)user;
    mupy_notice_log(NULL, MU_LOG_INFO, "", "tpu", line);
}

static struct mupy_call *tpu_call(PyObject *self, PyObject *timeout,
                                  void (*run)(struct mupy_call *call))
{
    struct mupy_call *call;
    int64_t timeout_ms;

    if (mupy_timeout(timeout, &timeout_ms) != 0 || mupy_notice_start() != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    mu_tpu_on_progress(as_tpu(self), log_tpu_progress, NULL);
    call->object = as_tpu(self);
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, self);
    return call;
}

struct describe_request {
    struct mupy_request request;
    size_t count;
    mu_tpu_state states[MU_TPU_NODES_MAX];
};

static void run_describe_call(struct mupy_call *call)
{
    struct describe_request *request = call->other;

    call->rv = mu_tpu_describe(call->object, call->timeout_ms, &call->error,
                               request->states, MU_TPU_NODES_MAX, &request->count);
}

static PyObject *state_object(const mu_tpu_state *state)
{
    return Py_BuildValue("{sssssssssssssssssssisNss}", "name", state->name, "project",
                         state->project, "zone", state->zone, "state", state->state,
                         "health", state->health, "health_description",
                         state->health_description, "accelerator_type",
                         state->accelerator_type, "runtime_version",
                         state->runtime_version, "topology", state->topology, "endpoints",
                         state->endpoints, "recoverable",
                         PyBool_FromLong(state->recoverable), "why", state->why);
}

static PyObject *tpu_describe(PyObject *self, PyObject *args)
{
    PyObject *timeout = NULL;
    struct describe_request *request;
    struct mupy_call *call;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "|O:describe", &timeout))
        return NULL;
    call = tpu_call(self, timeout, run_describe_call);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, NULL);
    if (request == NULL || mupy_request_run(call) != 0)
        return NULL;
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < request->count; i++) {
        PyObject *state = state_object(&request->states[i]);

        if (state == NULL || PyList_Append(list, state) != 0)
            Py_CLEAR(list);
        Py_XDECREF(state);
    }
    mupy_request_end(call);
    return list;
}

struct recoverable_request {
    struct mupy_request request;
    int recoverable;
    char why[512];
};

static void run_recoverable(struct mupy_call *call)
{
    struct recoverable_request *request = call->other;

    call->rv = mu_tpu_recoverable(call->object, call->timeout_ms, &call->error,
                                  &request->recoverable, request->why);
}

static PyObject *tpu_recoverable(PyObject *self, PyObject *args)
{
    PyObject *timeout = NULL;
    struct recoverable_request *request;
    struct mupy_call *call;
    PyObject *object;

    if (!PyArg_ParseTuple(args, "|O:recoverable", &timeout))
        return NULL;
    call = tpu_call(self, timeout, run_recoverable);
    if (call == NULL)
        return NULL;
    request = mupy_request_new(call, sizeof *request, NULL);
    if (request == NULL || mupy_request_run(call) != 0)
        return NULL;
    object = Py_BuildValue("Ns", PyBool_FromLong(request->recoverable), request->why);
    mupy_request_end(call);
    return object;
}

static void run_tpu_wait(struct mupy_call *call)
{
    call->rv = mu_tpu_wait_healthy(call->object, call->timeout_ms, (int64_t)call->number,
                                   &call->error);
}

static PyObject *wait_healthy(PyObject *self, PyObject *args)
{
    struct mupy_call *call;
    PyObject *timeout;
    double interval;

    if (!PyArg_ParseTuple(args, "Od:wait_healthy", &timeout, &interval))
        return NULL;
    if (!(interval > 0 && interval < 1e9))
        return mupy_fail(-MU_EINVALID, "interval is a number of seconds above 0");
    call = tpu_call(self, timeout, run_tpu_wait);
    if (call == NULL)
        return NULL;
    if (call->timeout_ms == 0)
        call->timeout_ms = 1; /* 0 would mean the default */
    call->number = (uint64_t)(interval * 1000 + 0.999);
    return mupy_call_finish(call);
}

static void run_request_version(struct mupy_call *call)
{
    call->rv = mu_tpu_request_version(call->object, call->data, call->text,
                                      call->timeout_ms, &call->error);
}

static PyObject *request_version(PyObject *self, PyObject *args)
{
    struct mupy_call *call;
    PyObject *timeout;
    const char *restart_type;
    const char *version;

    if (!PyArg_ParseTuple(args, "ssO:request_version", &version, &restart_type, &timeout))
        return NULL;
    call = tpu_call(self, timeout, run_request_version);
    if (call == NULL)
        return NULL;
    call->data = version;
    (void)strncpy(call->text, restart_type, sizeof call->text - 1);
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

static PyObject *tpu_leader(PyObject *self, PyObject *unused)
{
    char task[64];
    mu_error error;

    (void)unused;
    if (mu_tpu_leader(as_tpu(self), &error, task) != 0)
        return mupy_raise(&error, NULL);
    return PyUnicode_FromString(task);
}

int mupy_tpu_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"set", tpu_set, METH_VARARGS, "set(setting, value)\n--\n\nSet a setting."},
        {"describe", tpu_describe, METH_VARARGS,
         "describe(timeout=None)\n--\n\nTheir states."},
        {"recoverable", tpu_recoverable, METH_VARARGS,
         "recoverable(timeout=None)\n--\n\n(whether they are recoverable, why not)."},
        {"wait_healthy", wait_healthy, METH_VARARGS,
         "wait_healthy(timeout, interval)\n--\n\nWait until all are healthy."},
        {"request_version", request_version, METH_VARARGS,
         "request_version(version, restart_type, timeout)\n--\n\nSwitch the software's "
         "version."},
        {"leader", tpu_leader, METH_NOARGS,
         "leader()\n--\n\nThe coordination service's task."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, tpu_new},
        {Py_tp_dealloc, tpu_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "Tpu()\n--\n\nCloud TPUs, for one caller."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Tpu", sizeof(struct tpu), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    return mupy_add_type(module, &spec) == NULL ? -1 : 0;
}
