/* Running one call of an actor. */
#include "hosting/hosting.h"
#include "process/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lane whose method this thread runs. The thread of the event loop runs methods of
 * many. */
static _Thread_local const struct mupy_lane *running;
static _Thread_local bool is_event_loop;

bool mupy_actor_runs(void)
{
    return running != NULL || is_event_loop;
}

static PyObject *make_run(const struct mupy_lane *lane)
{
    static PyObject *make;
    PyObject *node;
    PyObject *run = NULL;

    if (mupy_import(&make, "muster.actors.hosting", "ActorRun") == NULL)
        return NULL;
    node = mupy_node_wrap(lane->node);
    if (node != NULL)
        run = PyObject_CallFunction(make, "Os", node, lane->name);
    Py_XDECREF(node);
    return run;
}

PyObject *mupy_actor_run(void)
{
    static PyObject *current;

    if (running != NULL)
        return make_run(running);
    if (mupy_import(&current, "muster.actors.hosting", "current") == NULL)
        return NULL;
    return PyObject_CallFunctionObjArgs(current, NULL);
}

/* ---- the end of a job ---- */

/* The error with which the job ends. */
static mu_error *job_error(struct mupy_job *job)
{
    static mu_error dropped; /* out of memory: the answer is nil */

    job->error = calloc(1, sizeof *job->error);
    return job->error == NULL ? &dropped : job->error;
}

static bool is_one_way(const struct mupy_job *job)
{
    int64_t flags = 0;

    (void)mu_value_get_int(mu_value_at(job->args, MUPY_CALL_FLAGS), &flags);
    return (flags & MUPY_CALL_ONE_WAY) != 0 || (job->is_start && job->reply == NULL);
}

/* What the current exception says, "ValueError: no"; it stays set. */
static void copy_words(char *out, size_t size)
{
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    PyObject *words = NULL;
    static PyObject *words_of;
    const char *text = NULL;

    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    if (mupy_import(&words_of, "muster.actors.hosting", "words_of") != NULL)
        words = PyObject_CallFunctionObjArgs(words_of, exception, NULL);
    if (words != NULL)
        text = PyUnicode_AsUTF8AndSize(words, NULL);
    (void)snprintf(out, size, "%s", text == NULL ? "an exception" : text);
    PyErr_Clear();
    Py_XDECREF(words);
    PyErr_Restore(type, exception, traceback);
}

/* Whether the current exception is that of muster.die(). */
static bool is_death(void)
{
    static PyObject *died;
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;

    PyErr_Fetch(&type, &exception, &traceback);
    if (mupy_import(&died, "muster.actors.hosting", "Died") == NULL)
        PyErr_Clear();
    PyErr_Restore(type, exception, traceback);
    return died != NULL && PyErr_ExceptionMatches(died);
}

/* enum mu_ran: what it says of the method. */
static int ran_of_death(void)
{
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    PyObject *number;
    long ran;

    PyErr_Fetch(&type, &exception, &traceback);
    number = PyObject_GetAttrString(type, "ran");
    ran = number == NULL ? MU_RAN_MAYBE : PyLong_AsLong(number);
    Py_XDECREF(number);
    PyErr_Restore(type, exception, traceback);
    return (int)ran;
}

/* muster.die() was called, or its process was lost: the actor ends, and says why. What
 * was not begun then hears what all that waits hears. */
static bool ends_by_itself(struct mupy_lane *lane, struct mupy_job *job)
{
    mu_error why;
    char words[300];
    int ran;

    if (!is_death())
        return false;
    ran = ran_of_death();
    copy_words(words, sizeof words);
    PyErr_Clear();
    mupy_lane_error(lane, &why, -MU_EABORTED, ran, "%s has ended: %s", lane->name, words);
    mupy_lane_die(lane, &why);
    job->is_unbegun = ran == MU_RAN_NO;
    if (!job->is_unbegun)
        *job_error(job) = why;
    return true;
}

/* Log the current exception, which stays set. */
static void tell_exception(const struct mupy_lane *lane, const char *what)
{
    static PyObject *tell;
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    char words[300];

    copy_words(words, sizeof words);
    PyErr_Fetch(&type, &exception, &traceback);
    if (mupy_import(&tell, "muster.actors.hosting", "tell_exception") != NULL)
        Py_XDECREF(PyObject_CallFunction(tell, "sss", lane->name, what, words));
    PyErr_Clear();
    PyErr_Restore(type, exception, traceback);
}

/* The current exception is the answer. That of a constructor is logged, too: perhaps
 * nobody uses the handle. */
static void fail_job(struct mupy_lane *lane, struct mupy_job *job)
{
    char words[300];

    if (ends_by_itself(lane, job))
        return;
    if (job->is_start)
        tell_exception(lane, "was not made");
    if (is_one_way(job)) {
        if (!job->is_start)
            tell_exception(lane, "nobody waits for the error of a call");
        PyErr_Clear();
        job->result = mu_value_nil();
        return;
    }
    job->result = mupy_run_failed();
    if (job->result != NULL)
        return;
    copy_words(words, sizeof words);
    PyErr_Clear();
    mupy_lane_error(lane, job_error(job), -MU_EUNKNOWN, MU_RAN_YES, "%s", words);
}

/* What a call has changed of a kept actor's state. An exception stays set. */
static void take_changes(const struct mupy_lane *lane, struct mupy_job *job)
{
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    PyObject *changes;

    if (!lane->is_kept || lane->object == NULL)
        return;
    PyErr_Fetch(&type, &exception, &traceback);
    changes = PyObject_CallMethod(lane->object, "muster_changes", NULL);
    if (changes != NULL && changes != Py_None)
        job->changes = mupy_to_value(changes, MUPY_PLAIN);
    Py_XDECREF(changes);
    PyErr_Clear();
    PyErr_Restore(type, exception, traceback);
}

/* Takes the object; NULL: with an exception. */
static void finish_job(struct mupy_lane *lane, struct mupy_job *job, PyObject *object)
{
    take_changes(lane, job);
    if (object != NULL)
        job->result = is_one_way(job) ? mu_value_nil() : mupy_encode_result(object);
    Py_XDECREF(object);
    if (job->result == NULL && job->error == NULL)
        fail_job(lane, job);
    mupy_lane_done(lane, job);
}

static void finish_late(struct mupy_lane *lane, struct mupy_job *job)
{
    mupy_lane_error(lane, job_error(job), -MU_EDEADLINE, MU_RAN_NO,
                    "the time of the call was over before it began");
    mupy_lane_done(lane, job);
}

/* ---- the object ---- */

static PyObject *saved_of(const struct mupy_lane *lane)
{
    if (lane->saved != NULL)
        return mupy_from_value(lane->saved, false);
    Py_RETURN_NONE;
}

static PyObject *make_object(const struct mupy_lane *lane)
{
    static PyObject *make;
    static PyObject *make_kept;
    const mu_value *start = lane->start;
    PyObject *maker = lane->is_kept
                          ? mupy_import(&make_kept, "muster.actors.hosting", "make_kept")
                          : mupy_import(&make, "muster.actors.hosting", "make");
    PyObject *pickle = mupy_from_value(mu_value_at(start, MUPY_START_CLASS), false);
    PyObject *how = lane->is_kept
                        ? saved_of(lane)
                        : mupy_from_value(mu_value_at(start, MUPY_START_WHERE), false);
    PyObject *args = NULL;
    PyObject *kwargs = NULL;
    PyObject *object = NULL;

    if (maker != NULL && pickle != NULL && how != NULL &&
        mupy_decode_call(start, MUPY_START_FORM, NULL, &args, &kwargs) == 0)
        object = PyObject_CallFunctionObjArgs(maker, pickle, how, args,
                                              kwargs == NULL ? Py_None : kwargs, NULL);
    Py_XDECREF(pickle);
    Py_XDECREF(how);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return object;
}

/* Of an object that is in a process of its own. */
static pid_t process_of(PyObject *object, const struct mupy_lane *lane)
{
    const char *where = "";
    PyObject *number;
    size_t size;
    long pid = 0;

    (void)mu_value_get_string(mu_value_at(lane->start, MUPY_START_WHERE), &where, &size);
    if (strcmp(where, "process") != 0)
        return 0;
    number = PyObject_GetAttrString(object, "muster_pid");
    if (number != NULL)
        pid = PyLong_AsLong(number);
    Py_XDECREF(number);
    PyErr_Clear();
    return (pid_t)pid;
}

/* By the first call. -1 with the exception of the constructor: then the actor ends. */
static int ensure_object(struct mupy_lane *lane)
{
    mu_error why;
    char words[300];

    if (lane->object != NULL)
        return 0;
    if (lane->streams == NULL)
        lane->streams = PyDict_New();
    lane->object = lane->streams == NULL ? NULL : make_object(lane);
    if (lane->object != NULL) {
        lane->pid = process_of(lane->object, lane);
        mu_value_free(lane->start);
        lane->start = NULL;
        mu_value_free(lane->saved);
        lane->saved = NULL;
        mupy_lane_made(lane);
        return 0;
    }
    copy_words(words, sizeof words);
    mupy_lane_error(lane, &why, -MU_EABORTED, MU_RAN_NO, "%s was not made: %s",
                    lane->name, words);
    mupy_lane_die(lane, &why);
    return -1;
}

static PyObject *address_of(const struct mupy_lane *lane)
{
    mu_value *text = mu_value_actor(&lane->address);
    PyObject *address = text == NULL ? PyErr_NoMemory() : mupy_from_value(text, false);

    mu_value_free(text);
    return address;
}

/* ---- calls ---- */

/* The method of a name. NULL: the job has its error, or with an exception. */
static PyObject *find_method(const struct mupy_lane *lane, struct mupy_job *job,
                             const char *name)
{
    PyObject *method = PyObject_GetAttrString(lane->object, name);

    if (method != NULL && PyCallable_Check(method))
        return method;
    if (method == NULL && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    Py_XDECREF(method);
    PyErr_Clear();
    mupy_lane_error(lane, job_error(job), -MU_ENOTFOUND, MU_RAN_NO, "%s has no method %s",
                    lane->name, name);
    return NULL;
}

/* What the package itself asks of an actor: "muster.next". */
static PyObject *call_own(struct mupy_lane *lane, const char *name, PyObject *args)
{
    static PyObject *call;

    if (strcmp(name, "muster.stop") == 0) {
        mupy_lane_end(lane);
        Py_RETURN_NONE;
    }
    if (mupy_import(&call, "muster.actors.hosting", "call_own") == NULL)
        return NULL;
    return PyObject_CallFunction(call, "OOsO", lane->streams, lane->object, name, args);
}

static PyObject *call_method(struct mupy_lane *lane, struct mupy_job *job,
                             const char *name)
{
    PyObject *args = NULL;
    PyObject *kwargs = NULL;
    PyObject *method = NULL;
    PyObject *result = NULL;

    if (mupy_decode_call(job->args, MUPY_CALL_FORM, NULL, &args, &kwargs) == 0) {
        if (strncmp(name, "muster.", 7) == 0)
            result = call_own(lane, name, args);
        else
            method = find_method(lane, job, name);
        if (method != NULL)
            result = PyObject_Call(method, args, kwargs);
    }
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

/* ---- asynchronous methods ---- */

struct awaited {
    struct mupy_lane *lane;
    struct mupy_job *job;
};

/* finish(is_fine, value or exception), on the thread of the event loop; once. */
static PyObject *finish_awaited(PyObject *capsule, PyObject *args)
{
    struct awaited *awaited = PyCapsule_GetPointer(capsule, NULL);
    PyObject *value;
    int is_fine;

    if (awaited == NULL || !PyArg_ParseTuple(args, "pO", &is_fine, &value))
        return NULL;
    if (awaited->job == NULL)
        Py_RETURN_NONE;
    Py_INCREF(value);
    if (!is_fine) {
        PyErr_SetObject((PyObject *)Py_TYPE(value), value);
        Py_CLEAR(value);
    }
    finish_job(awaited->lane, awaited->job, value);
    awaited->job = NULL;
    Py_RETURN_NONE;
}

static void free_awaited(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

static PyObject *make_finish(struct mupy_lane *lane, struct mupy_job *job)
{
    static PyMethodDef definition = {"finish", finish_awaited, METH_VARARGS, NULL};
    struct awaited *awaited = malloc(sizeof *awaited);
    PyObject *capsule;
    PyObject *function;

    if (awaited == NULL)
        return PyErr_NoMemory();
    *awaited = (struct awaited){lane, job};
    capsule = PyCapsule_New(awaited, NULL, free_awaited);
    if (capsule == NULL) {
        free(awaited);
        return NULL;
    }
    function = PyCFunction_NewEx(&definition, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}

/* Takes the coroutine. */
static void await_job(struct mupy_lane *lane, struct mupy_job *job, PyObject *coroutine)
{
    static PyObject *start;
    PyObject *finish = make_finish(lane, job);
    PyObject *run = finish == NULL ? NULL : make_run(lane);
    PyObject *begun = NULL;

    if (run != NULL &&
        mupy_import(&start, "muster.actors.hosting", "start_async") != NULL)
        begun = PyObject_CallFunctionObjArgs(start, coroutine, run, finish, NULL);
    Py_DECREF(coroutine);
    Py_XDECREF(run);
    Py_XDECREF(finish);
    if (begun == NULL)
        finish_job(lane, job, NULL);
    Py_XDECREF(begun);
}

static bool is_coroutine(PyObject *object)
{
    static PyObject *type;

    return mupy_import(&type, "types", "CoroutineType") == (PyObject *)Py_TYPE(object);
}

/* Convert what a method for a stream returned to the number of a stream. */
static PyObject *open_stream(const struct mupy_lane *lane, PyObject *result)
{
    static PyObject *open;
    PyObject *number = NULL;

    if (mupy_import(&open, "muster.actors.hosting", "open_stream") != NULL)
        number = PyObject_CallFunctionObjArgs(open, lane->streams, result, NULL);
    Py_DECREF(result);
    return number;
}

/* Whether its time is over: then it is done. */
static bool is_late(struct mupy_lane *lane, struct mupy_job *job)
{
    if (job->due_ms == 0 || job->due_ms > mupy_now_ms())
        return false;
    finish_late(lane, job);
    return true;
}

void mupy_job_run(struct mupy_lane *lane, struct mupy_job *job)
{
    const struct mupy_lane *outer = running;
    const char *name = "";
    size_t size = 0;
    int64_t flags = 0;
    PyObject *result = NULL;

    if (is_late(lane, job))
        return;
    running = lane;
    (void)mu_value_get_string(mu_value_at(job->args, MUPY_CALL_METHOD), &name, &size);
    (void)mu_value_get_int(mu_value_at(job->args, MUPY_CALL_FLAGS), &flags);
    if (ensure_object(lane) == 0)
        result = job->is_start ? address_of(lane) : call_method(lane, job, name);
    if (result != NULL && (flags & MUPY_CALL_STREAM) != 0)
        result = open_stream(lane, result);
    running = outer;
    if (result != NULL && is_coroutine(result))
        await_job(lane, job, result);
    else
        finish_job(lane, job, result);
}

/* ---- those of a process ---- */

/* As in muster/actors/children.py: what became of a call. */
enum { HAS_VALUE, HAS_RAISED, IS_LATE, IS_UNBEGUN };

bool mupy_job_goes_ahead(const struct mupy_job *job)
{
    const char *name = "";
    size_t size = 0;
    int64_t flags = 0;

    (void)mu_value_get_string(mu_value_at(job->args, MUPY_CALL_METHOD), &name, &size);
    (void)mu_value_get_int(mu_value_at(job->args, MUPY_CALL_FLAGS), &flags);
    return !job->is_start && name[0] != '_' && strncmp(name, "muster.", 7) != 0 &&
           (flags & MUPY_CALL_STREAM) == 0;
}

/* (name, args, kwargs, due); NULL with an exception. */
static PyObject *call_of(const struct mupy_job *job)
{
    PyObject *args = NULL;
    PyObject *kwargs = NULL;
    PyObject *call = NULL;
    const char *name = "";
    size_t size = 0;

    (void)mu_value_get_string(mu_value_at(job->args, MUPY_CALL_METHOD), &name, &size);
    if (mupy_decode_call(job->args, MUPY_CALL_FORM, NULL, &args, &kwargs) == 0)
        call = Py_BuildValue("(sOOK)", name, args, kwargs == NULL ? Py_None : kwargs,
                             (unsigned long long)job->due_ms);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return call;
}

/* The calls of those that can be made, which stay in `jobs`; NULL: no memory. */
static PyObject *calls_of(struct mupy_lane *lane, struct mupy_jobs *jobs)
{
    PyObject *calls = PyList_New(0);
    struct mupy_jobs all = *jobs;
    struct mupy_job *job;

    *jobs = (struct mupy_jobs){0};
    while ((job = mupy_job_pop(&all)) != NULL) {
        PyObject *call;

        if (is_late(lane, job))
            continue;
        call = calls == NULL ? NULL : call_of(job);
        if (call != NULL && PyList_Append(calls, call) == 0) {
            mupy_job_push(jobs, job);
        } else {
            if (!PyErr_Occurred())
                (void)PyErr_NoMemory();
            finish_job(lane, job, NULL);
        }
        Py_XDECREF(call);
    }
    return calls;
}

static void raise_again(PyObject *exception)
{
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
}

/* Those that were not begun, from the last one on: they get to the front of the queue. */
static void finish_unbegun(struct mupy_lane *lane, struct mupy_jobs *jobs,
                           PyObject *exception)
{
    struct mupy_job *last_first = NULL;
    struct mupy_job *job;

    while ((job = mupy_job_pop(jobs)) != NULL) {
        job->next = last_first;
        last_first = job;
    }
    while ((job = last_first) != NULL) {
        last_first = job->next;
        raise_again(exception);
        finish_job(lane, job, NULL);
    }
}

/* One by one, as the process answers. */
static void take_answers(struct mupy_lane *lane, struct mupy_jobs *jobs,
                         PyObject *answers)
{
    while (jobs->first != NULL) {
        PyObject *answer = answers == NULL ? NULL : PyIter_Next(answers);
        PyObject *value = NULL;
        int kind = HAS_RAISED;

        if (answer != NULL && PyArg_ParseTuple(answer, "iO", &kind, &value) &&
            kind == IS_UNBEGUN) {
            finish_unbegun(lane, jobs, value);
        } else if (answer != NULL && value != NULL && kind == IS_LATE) {
            finish_late(lane, mupy_job_pop(jobs));
        } else if (answer != NULL && value != NULL && kind == HAS_VALUE) {
            Py_INCREF(value);
            finish_job(lane, mupy_job_pop(jobs), value);
        } else {
            if (value != NULL)
                raise_again(value);
            else if (!PyErr_Occurred())
                PyErr_SetString(PyExc_RuntimeError, "the call has no answer");
            finish_job(lane, mupy_job_pop(jobs), NULL);
        }
        Py_XDECREF(answer);
    }
}

void mupy_jobs_run_ahead(struct mupy_lane *lane, struct mupy_jobs *jobs)
{
    const struct mupy_lane *outer = running;
    PyObject *answers = NULL;
    PyObject *calls;

    running = lane;
    calls = calls_of(lane, jobs);
    if (calls != NULL && jobs->first != NULL)
        answers = PyObject_CallMethod(lane->object, "muster_calls", "O", calls);
    take_answers(lane, jobs, answers);
    PyErr_Clear();
    Py_XDECREF(answers);
    Py_XDECREF(calls);
    running = outer;
}

/* actor_loop_thread(): this thread runs the event loop of actors. */
static PyObject *actor_loop_thread(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    is_event_loop = true;
    Py_RETURN_NONE;
}

int mupy_job_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"actor_loop_thread", actor_loop_thread, METH_NOARGS,
         "actor_loop_thread()\n--\n\nThis thread runs the event loop of actors."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, functions);
}
