/* Notices of library threads for Python: ready values, log lines, and references to
 * release. They go through a queue, so that the library's threads never take the GIL; one
 * Python thread of the process drains it, many at a time. */
#include "extension.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_LINES_MAX = 10000 };

struct callback {
    struct mupy_notice notice;
    PyObject *function;
    PyObject *argument;
};

struct line {
    struct mupy_notice notice;
    int level;
    char text[]; /* task, who and line, each ended by a zero byte */
};

struct dropped {
    struct dropped *next;
    PyObject *object;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct mupy_notice *first;
static struct mupy_notice *last;
static unsigned log_lines;   /* in the queue */
static unsigned log_lost;    /* dropped since the queue was full */
static unsigned lost_before; /* dropped before the line that is passed on; guarded by
                                the GIL */
static struct dropped *dropped;
static bool stopping;
static PyObject *log_function; /* muster._notices.log */

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
    /* Outside of the lock, on which the woken thread would wait. */
    if (alone)
        (void)pthread_cond_signal(&posted);
}

/* ---- callbacks ---- */

static struct mupy_notice *call_notice_function(struct mupy_notice *notice)
{
    struct callback *callback = (struct callback *)notice;
    struct mupy_notice *next = notice->next;
    PyObject *result =
        PyObject_CallFunctionObjArgs(callback->function, callback->argument, NULL);

    if (result == NULL)
        PyErr_WriteUnraisable(callback->function);
    Py_XDECREF(result);
    mupy_notice_free(notice);
    return next;
}

struct mupy_notice *mupy_notice_new(PyObject *function, PyObject *argument)
{
    struct callback *callback = malloc(sizeof *callback);

    if (callback == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(function);
    Py_INCREF(argument);
    *callback = (struct callback){{NULL, call_notice_function}, function, argument};
    return &callback->notice;
}

void mupy_notice_free(struct mupy_notice *notice)
{
    struct callback *callback = (struct callback *)notice;

    Py_DECREF(callback->function);
    Py_DECREF(callback->argument);
    free(callback);
}

/* ---- log lines ---- */

static bool reserve_log_line(void)
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

static PyObject *decode_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static struct mupy_notice *log_notice_line(struct mupy_notice *notice)
{
    struct line *line = (struct line *)notice;
    struct mupy_notice *next = notice->next;
    const char *who = line->text + strlen(line->text) + 1;
    PyObject *result = NULL;

    if (mupy_import(&log_function, "muster._notices", "log") != NULL)
        result = PyObject_CallFunction(log_function, "iNNNI", line->level,
                                       decode_text(line->text), decode_text(who),
                                       decode_text(who + strlen(who) + 1), lost_before);
    if (result == NULL)
        PyErr_WriteUnraisable(log_function);
    lost_before = 0;
    Py_XDECREF(result);
    free(line);
    return next;
}

void mupy_notice_log(void *user, int level, const char *task, const char *who,
                     const char *words)
{
    size_t sizes[3] = {strlen(task) + 1, strlen(who) + 1, strlen(words) + 1};
    struct line *line;

    (void)user;
    if (!reserve_log_line())
        return;
    line = malloc(sizeof *line + sizes[0] + sizes[1] + sizes[2]);
    if (line == NULL)
        return;
    *line = (struct line){{NULL, log_notice_line}, level};
    memcpy(line->text, task, sizes[0]);
    memcpy(line->text + sizes[0], who, sizes[1]);
    memcpy(line->text + sizes[0] + sizes[1], words, sizes[2]);
    mupy_notice_post(&line->notice);
}

/* ---- the thread that drains notices ---- */

static struct mupy_notice *take_notices(unsigned *ret_lost, bool *ret_stopping)
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

/* drain_notices(): returns False after stop_notices(). */
static PyObject *drain_notices(PyObject *module, PyObject *unused)
{
    struct mupy_notice *notices;
    unsigned lost;
    bool stops;

    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    notices = take_notices(&lost, &stops);
    Py_END_ALLOW_THREADS
    mupy_drop_now();
    lost_before += lost;
    while (notices != NULL)
        notices = notices->deliver(notices);
    return PyBool_FromLong(!stops);
}

static PyObject *stop_notices(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    (void)pthread_mutex_lock(&lock);
    stopping = true;
    (void)pthread_cond_broadcast(&posted);
    (void)pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

/* In a forked child: the parent's threads may have held the lock, and the queued notices
 * are the parent's. */
static PyObject *reset_notices(PyObject *module, PyObject *unused)
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
        {"drain_notices", drain_notices, METH_NOARGS,
         "Wait for notices, and run their callbacks."},
        {"stop_notices", stop_notices, METH_NOARGS, "Make drain_notices() return False."},
        {"notices_after_fork", reset_notices, METH_NOARGS, "Drop the parent's notices."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods);
}
