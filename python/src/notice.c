/* What threads of the library have for Python: values that are ready, log lines, and
 * references to drop. They put it into a queue and never take the GIL; one Python thread
 * of the process takes it out, many at once. */
#include "extension.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_LINES_MAX = 10000 };

struct mupy_notice {
    struct mupy_notice *next;
    PyObject *callback;     /* NULL: a log line */
    PyObject *argument;
    PyObject *token;        /* not NULL: called with a list of (token, argument), many at
                               once */
    int level;
    char text[];            /* task, who and line, each with its zero byte */
};

struct dropped {
    struct dropped *next;
    PyObject *object;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct mupy_notice *first;
static struct mupy_notice *last;
static unsigned log_lines;      /* in the queue */
static unsigned log_lost;       /* since the queue was full */
static struct dropped *dropped;
static bool stopping;
static PyObject *log_function;  /* muster._notices.log */

/* ---- references ---- */

void mupy_drop_later(PyObject *object)
{
    struct dropped *entry = malloc(sizeof *entry);

    if (entry == NULL)
        return;
    entry->object = object;
    (void)pthread_mutex_lock(&lock);
    entry->next = dropped;
    dropped = entry;
    (void)pthread_mutex_unlock(&lock);
}

void mupy_drop_now(void)
{
    struct dropped *entry;

    if (__atomic_load_n(&dropped, __ATOMIC_RELAXED) == NULL)
        return;
    (void)pthread_mutex_lock(&lock);
    entry = dropped;
    dropped = NULL;
    (void)pthread_mutex_unlock(&lock);
    while (entry != NULL) {
        struct dropped *next = entry->next;

        Py_DECREF(entry->object);
        free(entry);
        entry = next;
    }
}

/* ---- notices ---- */

struct mupy_notice *mupy_notice_new(PyObject *callback, PyObject *argument)
{
    struct mupy_notice *notice = malloc(sizeof *notice);

    if (notice == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(callback);
    Py_INCREF(argument);
    *notice = (struct mupy_notice){.callback = callback, .argument = argument};
    return notice;
}

struct mupy_notice *mupy_notice_new_batched(PyObject *callback, PyObject *token,
                                            PyObject *argument)
{
    struct mupy_notice *notice = mupy_notice_new(callback, argument);

    if (notice != NULL) {
        Py_INCREF(token);
        notice->token = token;
    }
    return notice;
}

PyObject *mupy_notice_argument(const struct mupy_notice *notice)
{
    return notice->argument;
}

void mupy_notice_free(struct mupy_notice *notice)
{
    Py_XDECREF(notice->token);
    Py_XDECREF(notice->callback);
    Py_XDECREF(notice->argument);
    free(notice);
}

void mupy_notice_post(struct mupy_notice *notice)
{
    bool alone;

    notice->next = NULL;
    (void)pthread_mutex_lock(&lock);
    alone = first == NULL;
    if (alone)
        first = notice;
    else
        last->next = notice;
    last = notice;
    (void)pthread_mutex_unlock(&lock);
    /* Outside of the lock, which the other thread would only wait for. */
    if (alone)
        (void)pthread_cond_signal(&posted);
}

/* ---- log lines ---- */

static bool may_log(void)
{
    bool may;

    (void)pthread_mutex_lock(&lock);
    may = log_lines < LOG_LINES_MAX && !stopping;
    if (may)
        log_lines++;
    else
        log_lost++;
    (void)pthread_mutex_unlock(&lock);
    return may;
}

void mupy_notice_log(void *user, int level, const char *task, const char *who,
                     const char *line)
{
    size_t sizes[3] = {strlen(task) + 1, strlen(who) + 1, strlen(line) + 1};
    struct mupy_notice *notice;

    (void)user;
    if (!may_log())
        return;
    notice = malloc(sizeof *notice + sizes[0] + sizes[1] + sizes[2]);
    if (notice == NULL)
        return;
    *notice = (struct mupy_notice){.level = level};
    memcpy(notice->text, task, sizes[0]);
    memcpy(notice->text + sizes[0], who, sizes[1]);
    memcpy(notice->text + sizes[0] + sizes[1], line, sizes[2]);
    mupy_notice_post(notice);
}

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *tell_line(const struct mupy_notice *notice, unsigned lost)
{
    const char *who = notice->text + strlen(notice->text) + 1;
    const char *line = who + strlen(who) + 1;

    if (mupy_import(&log_function, "muster._notices", "log") == NULL)
        return NULL;
    return PyObject_CallFunction(log_function, "iNNNI", notice->level,
                                 text_of(notice->text), text_of(who), text_of(line),
                                 lost);
}

/* ---- the thread that takes them out ---- */

static void tell(struct mupy_notice *notice, unsigned lost)
{
    PyObject *result;

    if (notice->callback == NULL)
        result = tell_line(notice, lost);
    else
        result = PyObject_CallFunctionObjArgs(notice->callback, notice->argument, NULL);
    if (result == NULL)
        PyErr_WriteUnraisable(notice->callback);
    Py_XDECREF(result);
    mupy_notice_free(notice);
}

/* Those from `notice` on that have the same callback: the one behind them. */
static struct mupy_notice *tell_batch(struct mupy_notice *notice)
{
    PyObject *callback = notice->callback;
    PyObject *list = PyList_New(0);
    PyObject *result = NULL;

    Py_INCREF(callback);
    while (notice != NULL && notice->token != NULL && notice->callback == callback) {
        struct mupy_notice *next = notice->next;
        PyObject *pair = list == NULL ? NULL
                                      : PyTuple_Pack(2, notice->token, notice->argument);

        if (pair == NULL || PyList_Append(list, pair) != 0)
            PyErr_WriteUnraisable(callback);
        Py_XDECREF(pair);
        mupy_notice_free(notice);
        notice = next;
    }
    if (list != NULL)
        result = PyObject_CallFunctionObjArgs(callback, list, NULL);
    if (result == NULL)
        PyErr_WriteUnraisable(callback);
    Py_XDECREF(result);
    Py_XDECREF(list);
    Py_DECREF(callback);
    return notice;
}

static struct mupy_notice *take_all(unsigned *ret_lost, bool *ret_stopping)
{
    struct mupy_notice *notices;

    (void)pthread_mutex_lock(&lock);
    while (first == NULL && !stopping)
        (void)pthread_cond_wait(&posted, &lock);
    notices = first;
    first = NULL;
    last = NULL;
    *ret_lost = log_lost;
    log_lost = 0;
    log_lines = 0;
    *ret_stopping = stopping;
    (void)pthread_mutex_unlock(&lock);
    return notices;
}

/* Returns False once there will be no more. */
static PyObject *drain(PyObject *module, PyObject *unused)
{
    struct mupy_notice *notices;
    unsigned lost;
    bool stops;

    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    notices = take_all(&lost, &stops);
    Py_END_ALLOW_THREADS
    mupy_drop_now();
    while (notices != NULL) {
        struct mupy_notice *next = notices->next;

        if (notices->token != NULL) {
            notices = tell_batch(notices);
            continue;
        }
        tell(notices, lost);
        lost = 0;
        notices = next;
    }
    return PyBool_FromLong(!stops);
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    (void)pthread_mutex_lock(&lock);
    stopping = true;
    (void)pthread_cond_broadcast(&posted);
    (void)pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

/* In a child that was forked: its parent's threads may have held the lock. What was
 * queued is the parent's to tell. */
static PyObject *after_fork(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    (void)pthread_mutex_init(&lock, NULL);
    (void)pthread_cond_init(&posted, NULL);
    first = NULL;
    last = NULL;
    dropped = NULL;
    log_lines = 0;
    Py_RETURN_NONE;
}

int mupy_notice_start(void)
{
    static PyObject *start;
    PyObject *result;

    if (mupy_import(&start, "muster._notices", "start") == NULL)
        return -1;
    result = PyObject_CallFunctionObjArgs(start, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

int mupy_notice_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"drain_notices", drain, METH_NOARGS,
         "Wait for what other threads have for Python, and call it."},
        {"stop_notices", stop, METH_NOARGS, "Make drain_notices() return False."},
        {"notices_after_fork", after_fork, METH_NOARGS,
         "Forget what the parent's threads have."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods);
}
