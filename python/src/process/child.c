/* An executor process: runs what its worker sends. */
#include "process/process.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The state of the thread that runs functions. */
static _Thread_local int worker = -1; /* the socket */
static _Thread_local bool runs;
static pid_t pid; /* of this process, to recognise forked
                     children */
static _Thread_local PyObject *run_object;

bool mupy_process_runs(void)
{
    return runs && getpid() == pid;
}

PyObject *mupy_process_run(void)
{
    static PyObject *make;

    if (run_object == NULL && mupy_import(&make, "muster._process", "Run") != NULL)
        run_object = PyObject_CallFunctionObjArgs(make, NULL);
    Py_XINCREF(run_object);
    return run_object;
}

PyObject *mupy_process_object(int64_t number)
{
    static PyObject *object_of;

    if (number == 0)
        return mupy_fail(-MU_EINVALID, "a per-worker value was made by a function in C: "
                                       "Python functions cannot read it");
    if (mupy_import(&object_of, "muster._process", "object_of") == NULL)
        return NULL;
    return PyObject_CallFunction(object_of, "L", (long long)number);
}

static int receive_message(mu_value **ret_message, int *ret_shared)
{
    int rv;

    Py_BEGIN_ALLOW_THREADS
    rv = mupy_frame_receive(worker, NULL, ret_message, ret_shared);
    Py_END_ALLOW_THREADS
    return rv;
}

static int send_child_frame(struct mupy_frame *frame)
{
    int rv;

    Py_BEGIN_ALLOW_THREADS
    rv = mupy_frame_send(frame, worker, NULL);
    Py_END_ALLOW_THREADS
    return rv;
}

/* The worker has ended: end this process. */
static PyObject *exit_orphaned(void)
{
    PyErr_SetNone(PyExc_SystemExit);
    return NULL;
}

/* ---- requests to the worker ---- */

static int send_worker_request(PyObject *args, PyObject *kwargs)
{
    struct mupy_frame frame;
    struct mupy_frame *before;
    PyObject *both = PyTuple_Pack(2, args, kwargs == NULL ? Py_None : kwargs);
    mu_value *list = mu_value_list();
    int rv = -1;

    mupy_frame_begin(&frame);
    before = mupy_frame_share(&frame);
    if (both != NULL && list != NULL)
        rv = mupy_encode_any(list, both, NULL);
    (void)mupy_frame_share(before);
    if (rv == 0) {
        mupy_frame_list(&frame, 1 + mu_value_count(list));
        mupy_frame_int(&frame, MUPY_PROCESS_ASK);
        for (size_t i = 0; i < mu_value_count(list); i++)
            mupy_frame_value(&frame, mu_value_at(list, i), NULL);
        if (send_child_frame(&frame) != 0) {
            (void)exit_orphaned();
            rv = -1;
        }
    }
    mupy_frame_free(&frame);
    mu_value_free(list);
    Py_XDECREF(both);
    return rv;
}

/* ask(*args, **kwargs): call muster._processes.serve(*args, **kwargs) in the worker. */
static PyObject *request_from_worker(PyObject *module, PyObject *args, PyObject *kwargs)
{
    mu_value *message = NULL;
    PyObject *object;
    int shared = -1;
    int before;

    (void)module;
    if (!mupy_process_runs())
        return mupy_fail(-MU_EPRECONDITION, "a run is for the thread that runs its "
                                            "function, until it ends");
    if (send_worker_request(args, kwargs) != 0)
        return NULL;
    if (receive_message(&message, &shared) != 0)
        return exit_orphaned();
    before = mupy_frame_open(shared);
    object = mupy_decode_result(mu_value_at(message, 0), true, NULL);
    (void)mupy_frame_open(before);
    if (shared >= 0)
        (void)close(shared);
    mu_value_free(message);
    return object;
}

/* ---- running ---- */

static bool has_run_written(void)
{
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    PyObject *written = NULL;
    bool truth;

    if (run_object == NULL)
        return false;
    PyErr_Fetch(&type, &exception, &traceback);
    written = PyObject_GetAttrString(run_object, "has_written");
    truth = written != NULL && PyObject_IsTrue(written) == 1;
    Py_XDECREF(written);
    PyErr_Restore(type, exception, traceback);
    return truth;
}

static int64_t int_at(const mu_value *list, size_t i)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_at(list, i), &number);
    return number;
}

/* Run a message [kind, dropped, number, value]; returns a new reference, or NULL with an
 * exception. */
static PyObject *run_message(const mu_value *message)
{
    int64_t kind = int_at(message, 0);
    const mu_value *value = mu_value_at(message, 3);
    const mu_value *shard_args = NULL;
    const mu_value *list = value;
    static PyObject *make;
    PyObject *function;
    PyObject *result = NULL;

    if (kind == MUPY_PROCESS_CALL || kind == MUPY_PROCESS_TRY) {
        list = mupy_run_split(value, &shard_args);
        function = mupy_from_value(mu_value_at(list, 0), false);
        if (function != NULL)
            result = mupy_run_call(NULL, function, list, shard_args);
    } else if (kind == MUPY_PROCESS_REGISTERED) {
        function = mupy_process_object(int_at(message, 2));
        if (function != NULL)
            result = mupy_run_call_registered(NULL, function, value);
    } else {
        function = mupy_import(&make, "muster._process", "make");
        if (function != NULL)
            result = PyObject_CallFunction(function, "L", (long long)int_at(message, 2));
        Py_XINCREF(function);
    }
    Py_XDECREF(function);
    return result;
}

/* Convert the result of a run to a value, with large arrays in the frame; takes ownership
 * of `result`. NULL with an exception. */
static mu_value *encode_run_result(PyObject *result, int64_t kind,
                                   struct mupy_frame *frame)
{
    struct mupy_frame *before = mupy_frame_share(frame);
    mu_value *value = NULL;

    if (result != NULL && kind == MUPY_PROCESS_REGISTERED)
        value = mupy_to_value(result, MUPY_PLAIN);
    else if (result != NULL)
        value = mupy_encode_result(result);
    Py_XDECREF(result);
    if (value == NULL && kind == MUPY_PROCESS_TRY && !has_run_written())
        value = mupy_run_failed();
    (void)mupy_frame_share(before);
    return value;
}

static void put_failure(struct mupy_frame *frame)
{
    mu_error error;
    mu_value *data;
    const char *texts[] = {error.message, error.detail, error.task};

    mupy_run_exception(&error, &data);
    mupy_frame_free(frame);
    mupy_frame_list(frame, 7);
    mupy_frame_int(frame, MUPY_PROCESS_FAILED);
    mupy_frame_int(frame, error.code);
    mupy_frame_int(frame, error.kind);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        mu_value *text = mu_value_bytes(texts[i], strlen(texts[i]));

        mupy_frame_value(frame, text, NULL);
        mu_value_free(text);
    }
    if (data == NULL)
        data = mu_value_nil();
    mupy_frame_value(frame, data, NULL);
    mu_value_free(data);
}

static int serve_message(mu_value *message, int shared)
{
    int64_t kind = int_at(message, 0);
    struct mupy_frame frame;
    mu_value *value;

    mupy_frame_begin(&frame);
    runs = true;
    (void)mupy_frame_open(shared);
    value = encode_run_result(run_message(message), kind, &frame);
    if (value != NULL) {
        mupy_frame_list(&frame, 2);
        mupy_frame_int(&frame, MUPY_PROCESS_RESULT);
        mupy_frame_value(&frame, value, NULL);
        if (frame.failed) {
            mupy_frame_free(&frame);
            PyErr_NoMemory();
        }
    }
    if (PyErr_Occurred())
        put_failure(&frame);
    (void)mupy_frame_open(MUPY_NOT_SHARED);
    runs = false;
    Py_CLEAR(run_object);
    mu_value_free(value);
    if (shared >= 0)
        (void)close(shared);
    return send_child_frame(&frame);
}

static int forget_dropped(const mu_value *numbers)
{
    static PyObject *forget;
    PyObject *result;

    if (mupy_import(&forget, "muster._process", "forget") == NULL)
        return -1;
    for (size_t i = 0; i < mu_value_count(numbers); i++) {
        result = PyObject_CallFunction(forget, "L", (long long)int_at(numbers, i));
        if (result == NULL)
            return -1;
        Py_DECREF(result);
    }
    return 0;
}

/* process_serve(socket): run calls until the worker closes the connection. */
static PyObject *process_serve(PyObject *module, PyObject *socket)
{
    mu_value *message = NULL;
    int shared = -1;
    int rv = 0;

    (void)module;
    worker = (int)PyLong_AsLong(socket);
    if (worker == -1 && PyErr_Occurred())
        return NULL;
    pid = getpid();
    while (rv == 0 && receive_message(&message, &shared) == 0) {
        rv = forget_dropped(mu_value_at(message, 1));
        if (rv == 0)
            rv = serve_message(message, shared);
        mu_value_free(message);
    }
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

int mupy_process_child_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"process_serve", process_serve, METH_O,
         "process_serve(socket)\n--\n\nRun what a worker sends, until it ends."},
        {"process_ask", MUPY_METHOD(request_from_worker), METH_VARARGS | METH_KEYWORDS,
         "process_ask(*args, **kwargs)\n--\n\n"
         "In an executor process: call muster._processes.serve() in the worker."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods);
}
