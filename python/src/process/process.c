/* Executor processes, on the worker's side. */
#define _GNU_SOURCE
#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 100,    /* interval of checks whether a run is cancelled */
    CANCEL_MS = 5000, /* for a cancelled function to end */
    LEAVE_MS = 1000,  /* for a process to end by itself */
    MAKE_ATTEMPTS = 3,
    CHILD_SOCKET = 3 /* descriptor number in the process */
};

/* The process of an executor thread that has run Python functions. */
struct child {
    struct child *next;
    pid_t pid; /* 0: there is none */
    int socket;
    unsigned long tasks; /* functions that it has run */
    int64_t *dropped;    /* numbers of dropped objects to be sent; guarded by
                            children_lock */
    size_t dropped_count;
    size_t dropped_room;
};

static pthread_mutex_t children_lock = PTHREAD_MUTEX_INITIALIZER;
static struct child *children;
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static _Thread_local struct child *own;

unsigned mupy_process_count(mu_node *node)
{
    const char *text = mu_node_get_setting(node, "python.processes");

    return text == NULL ? 0 : (unsigned)strtoul(text, NULL, 10);
}

/* ---- dropped objects ---- */

static void note_dropped_object(struct child *child, int64_t number)
{
    if (child->dropped_count == child->dropped_room) {
        size_t room = 2 * child->dropped_room + 64;
        int64_t *numbers = realloc(child->dropped, room * sizeof *numbers);

        if (numbers == NULL)
            return; /* out of memory: the process keeps the object */
        child->dropped = numbers;
        child->dropped_room = room;
    }
    child->dropped[child->dropped_count++] = number;
}

void mupy_process_dropped(int64_t number)
{
    (void)pthread_mutex_lock(&children_lock);
    for (struct child *child = children; child != NULL; child = child->next)
        if (child->pid != 0)
            note_dropped_object(child, number);
    (void)pthread_mutex_unlock(&children_lock);
}

static void put_dropped(struct mupy_frame *frame, struct child *child)
{
    (void)pthread_mutex_lock(&children_lock);
    mupy_frame_list(frame, child->dropped_count);
    for (size_t i = 0; i < child->dropped_count; i++)
        mupy_frame_int(frame, child->dropped[i]);
    child->dropped_count = 0;
    (void)pthread_mutex_unlock(&children_lock);
}

/* ---- the process ---- */

/* The command line of a process, from muster._processes.command(); the caller frees
 * it. */
static char **make_words(void)
{
    static PyObject *command;
    PyObject *list = NULL;
    char **words = NULL;

    mupy_enter();
    if (mupy_import(&command, "muster._processes", "command") != NULL)
        list = PyObject_CallFunctionObjArgs(command, NULL);
    if (list != NULL)
        words = calloc((size_t)PyList_Size(list) + 1, sizeof *words);
    for (Py_ssize_t i = 0; words != NULL && i < PyList_Size(list); i++) {
        const char *text = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);

        words[i] = strdup(text == NULL ? "" : text);
    }
    Py_XDECREF(list);
    if (PyErr_Occurred())
        PyErr_Print();
    mupy_leave();
    return words;
}

static void free_words(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        free(words[i]);
    free(words);
}

/* Start a process with default signal handling, except for signals that end a worker,
 * which the process handles itself (_process.py). Returns 0 or an errno. */
static int spawn_child(char **words, int socket, pid_t *ret_pid)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t blocked;
    sigset_t all;
    int rv;

    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGINT);
    (void)sigaddset(&blocked, SIGTERM);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, socket, CHILD_SOCKET);
    (void)posix_spawnattr_setsigmask(&attributes, &blocked);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes,
                                   POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    rv = posix_spawn(ret_pid, words[0], &files, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return rv;
}

/* 0 or an errno. */
static int start_child_process(struct child *child)
{
    const struct timeval look = {.tv_usec = LOOK_MS * 1000};
    char **words = make_words();
    pid_t pid = 0;
    int ends[2];
    int rv;

    if (words == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free_words(words);
        return words == NULL ? ENOMEM : errno;
    }
    rv = spawn_child(words, ends[1], &pid);
    free_words(words);
    (void)close(ends[1]);
    if (rv != 0) {
        (void)close(ends[0]);
        return rv;
    }
    (void)setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look);
    (void)pthread_mutex_lock(&children_lock);
    child->pid = pid;
    child->socket = ends[0];
    child->tasks = 0;
    child->dropped_count = 0;
    (void)pthread_mutex_unlock(&children_lock);
    return 0;
}

static bool has_child_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == pid;
}

/* Wait `patience_ms` for a process to end, then kill it. Returns the status of
 * waitpid(). */
static int reap_child(struct child *child, unsigned patience_ms)
{
    const uint64_t until_ms = mupy_now_ms() + patience_ms;
    pid_t pid = child->pid;
    int status = -1;

    (void)close(child->socket);
    while (!has_child_ended(pid) && mupy_now_ms() < until_ms)
        (void)nanosleep(&(struct timespec){0, 2000000}, NULL);
    if (!has_child_ended(pid))
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)pthread_mutex_lock(&children_lock);
    child->pid = 0;
    (void)pthread_mutex_unlock(&children_lock);
    return status;
}

/* At the end of a thread, end its process. */
static void end_thread_child(void *arg)
{
    struct child *child = arg;
    struct child **at = &children;

    if (child->pid != 0)
        (void)reap_child(child, LEAVE_MS);
    (void)pthread_mutex_lock(&children_lock);
    while (*at != child)
        at = &(*at)->next;
    *at = child->next;
    (void)pthread_mutex_unlock(&children_lock);
    free(child->dropped);
    free(child);
}

static void make_child_key(void)
{
    (void)pthread_key_create(&own_key, end_thread_child);
}

/* Whether a process has run as many functions as it may (the environment says how many;
 * without it any number): then the next one gets a new process. */
static bool is_used_up(const struct child *child)
{
    const char *text = getenv(MUPY_TASKS_VARIABLE);
    unsigned long most = text == NULL ? 0 : strtoul(text, NULL, 10);

    return child->pid != 0 && most > 0 && child->tasks >= most;
}

/* Find or start the process of this thread. Returns 0 or an errno. */
static int own_child(void)
{
    if (own == NULL) {
        own = calloc(1, sizeof *own);
        if (own == NULL)
            return ENOMEM;
        (void)pthread_once(&own_once, make_child_key);
        (void)pthread_setspecific(own_key, own);
        (void)pthread_mutex_lock(&children_lock);
        own->next = children;
        children = own;
        (void)pthread_mutex_unlock(&children_lock);
    }
    if (is_used_up(own))
        (void)reap_child(own, LEAVE_MS);
    return own->pid != 0 ? 0 : start_child_process(own);
}

/* ---- requests of functions ---- */

static int answer_child_request(mu_run *run, const mu_value *request,
                                const struct mupy_patience *patience)
{
    static PyObject *serve;
    struct mupy_outer outer;
    struct mupy_frame frame;
    struct mupy_frame *before;
    PyObject *args = NULL;
    PyObject *kwargs = NULL;
    PyObject *result = NULL;
    mu_value *value = NULL;

    mupy_frame_begin(&frame);
    mupy_enter();
    outer = mupy_run_begin(run);
    before = mupy_frame_share(&frame);
    if (mupy_import(&serve, "muster._processes", "serve") != NULL &&
        mupy_decode_call(request, 1, run, &args, &kwargs) == 0)
        result = PyObject_Call(serve, args, kwargs);
    if (result != NULL)
        value = mupy_encode_result(result);
    if (value == NULL)
        PyErr_Print();
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(result);
    (void)mupy_frame_share(before);
    mupy_run_end(outer);
    mupy_leave();
    mupy_frame_list(&frame, 1);
    mupy_frame_value(&frame, value, NULL);
    mu_value_free(value);
    return mupy_frame_send(&frame, own->socket, patience);
}

/* ---- one run ---- */

/* Log a message through muster._processes.died(), by default on the worker's standard
 * error. */
static void log_child_death(mu_run *run, pid_t pid, const char *words)
{
    static PyObject *died;
    PyObject *result = NULL;

    mupy_enter();
    if (mupy_import(&died, "muster._processes", "died") != NULL)
        result = PyObject_CallFunction(died, "isK", (int)pid, words,
                                       (unsigned long long)mu_run_closure_id(run));
    if (result == NULL)
        PyErr_Print();
    Py_XDECREF(result);
    mupy_leave();
}

/* Fail the run: its process died, or was killed because the cancelled function did not
 * end. */
static int fail_lost_child(mu_run *run, pid_t pid, int status, bool killed)
{
    mu_error error = {.code = -MU_EABORTED, .kind = MU_ERROR_WORKER};

    if (killed)
        (void)snprintf(error.message, sizeof error.message,
                       "its process was killed: it was cancelled and did not end within "
                       "%d s",
                       CANCEL_MS / 1000);
    else if (status >= 0 && WIFSIGNALED(status))
        (void)snprintf(error.message, sizeof error.message,
                       "its process was killed by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(error.message, sizeof error.message,
                       "its process ended with exit code %d",
                       status >= 0 ? WEXITSTATUS(status) : -1);
    log_child_death(run, pid, error.message);
    return mu_run_fail_with(run, &error);
}

static int not_started(mu_run *run, int number)
{
    mu_error error = {.code = -MU_EABORTED, .kind = MU_ERROR_WORKER};

    (void)snprintf(error.message, sizeof error.message,
                   "its process cannot be started: %s", strerror(number));
    return mu_run_fail_with(run, &error);
}

/* The wait for this thread's process. */
struct watched {
    mu_run *run;
    uint64_t cancelled_ms; /* when the cancellation was noticed; 0: not yet */
    bool killed;
};

/* Whether to wait on after a pause on the socket: not when the process has ended, nor
 * CANCEL_MS after the run was cancelled. */
static bool is_child_awaited(void *user)
{
    struct watched *watched = user;

    if (has_child_ended(own->pid)) /* a child that it forked may hold its socket */
        return false;
    if (!mu_run_cancelled(watched->run))
        return true;
    if (watched->cancelled_ms == 0)
        watched->cancelled_ms = mupy_now_ms();
    if (mupy_now_ms() - watched->cancelled_ms >= CANCEL_MS) {
        watched->killed = true;
        (void)kill(own->pid, SIGKILL);
    }
    return true;
}

/* Send a frame (takes ownership) and answer requests until the result comes. Returns 0
 * with the reply; else the process is lost: returns the code with which the run
 * failed. */
static int exchange_with_child(mu_run *run, struct mupy_frame *frame,
                               mu_value **ret_reply)
{
    struct watched watched = {.run = run};
    const struct mupy_patience patience = {is_child_awaited, &watched};
    pid_t pid = own->pid;
    mu_value *message = NULL;
    int64_t kind = -1;
    int rv = mupy_frame_send(frame, own->socket, &patience);

    while (rv == 0) {
        rv = mupy_frame_receive(own->socket, &patience, &message, NULL);
        if (rv != 0)
            break;
        (void)mu_value_get_int(mu_value_at(message, 0), &kind);
        if (kind != MUPY_PROCESS_ASK)
            break;
        rv = answer_child_request(run, message, &patience);
        mu_value_free(message);
    }
    if (rv == 0) {
        *ret_reply = message;
        return 0;
    }
    rv = reap_child(own, rv == -EPIPE || rv == -ECONNRESET ? LEAVE_MS : 0);
    return fail_lost_child(run, pid, rv, watched.killed);
}

static void fill_error(const mu_value *reply, mu_error *ret_error)
{
    char *texts[] = {ret_error->message, ret_error->detail, ret_error->task};
    size_t rooms[] = {sizeof ret_error->message, sizeof ret_error->detail,
                      sizeof ret_error->task};
    int64_t numbers[2] = {-MU_EUNKNOWN, MU_ERROR_FUNCTION};

    for (size_t i = 0; i < 2; i++)
        (void)mu_value_get_int(mu_value_at(reply, 1 + i), &numbers[i]);
    ret_error->code = (int)numbers[0];
    ret_error->kind = (int)numbers[1];
    for (size_t i = 0; i < 3; i++) {
        const void *text = "";
        size_t size = 0;

        (void)mu_value_get_bytes(mu_value_at(reply, 3 + i), &text, &size);
        (void)snprintf(texts[i], rooms[i], "%.*s", (int)size, (const char *)text);
    }
}

/* Finish the run. Takes ownership of the reply. */
static int finish_child_run(mu_run *run, mu_value *reply)
{
    mu_error error = {0};
    int64_t kind = -1;
    int rv = 0;

    (void)mu_value_get_int(mu_value_at(reply, 0), &kind);
    if (kind == MUPY_PROCESS_RESULT) {
        mu_run_return(run, mu_value_ref(mu_value_at(reply, 1)));
    } else {
        fill_error(reply, &error);
        rv = mupy_run_fail(run, &error, mu_value_at(reply, 6));
    }
    mu_value_free(reply);
    return rv;
}

/* Run a message [kind, dropped, number (0: none), value (NULL: none)] in the process. */
static int run_in_process(mu_run *run, enum mupy_process_kind kind, int64_t number,
                          const mu_value *value)
{
    struct mupy_frame frame;
    mu_value *reply = NULL;
    int rv = own_child();

    if (rv != 0)
        return not_started(run, rv);
    if (mu_run_cancelled(run))
        return mu_run_fail(run, -MU_ECANCELLED, "cancelled before it ran");
    mupy_frame_begin(&frame);
    mupy_frame_list(&frame, 4);
    mupy_frame_int(&frame, kind);
    put_dropped(&frame, own);
    mupy_frame_int(&frame, number);
    mupy_frame_value(&frame, value, run);
    if (frame.failed) {
        mupy_frame_free(&frame);
        return mu_run_fail(run, -MU_ENOMEM, "no memory for the arguments");
    }
    own->tasks += kind != MUPY_PROCESS_MAKE;
    rv = exchange_with_child(run, &frame, &reply);
    return rv != 0 ? rv : finish_child_run(run, reply);
}

/* ---- the registered functions ---- */

static int process_call(mu_run *run, void *user)
{
    return run_in_process(run, user == NULL ? MUPY_PROCESS_CALL : MUPY_PROCESS_TRY, 0,
                          mu_run_args(run));
}

/* Keep a muster._processes.Source(kind, pickle, name). */
static void *hold_source(const char *kind, PyObject *pickle, PyObject *name,
                         int64_t *ret_number)
{
    static PyObject *make;
    PyObject *source = NULL;
    void *held = NULL;

    if (mupy_import(&make, "muster._processes", "Source") != NULL)
        source = PyObject_CallFunction(make, "sOO", kind, pickle, name);
    if (source != NULL)
        held = mupy_hold(source, ret_number);
    Py_XDECREF(source);
    return held;
}

/* "python.load" and "python.build", with [pickle, name, ...]: keep the pickle, from which
 * each process makes the object. This thread's process makes it now, to report errors. */
static int make_in_child(mu_run *run, const char *kind)
{
    const mu_value *args = mu_run_args(run);
    int64_t number = 0;
    PyObject *pickle;
    PyObject *name;
    void *held;
    int rv = -MU_EABORTED;

    mupy_enter();
    mupy_drop_now();
    pickle = mupy_from_value(mu_value_at(args, 0), false);
    name = mupy_from_value(mu_value_at(args, 1), false);
    held =
        pickle == NULL || name == NULL ? NULL : hold_source(kind, pickle, name, &number);
    Py_XDECREF(pickle);
    Py_XDECREF(name);
    PyErr_Clear();
    mupy_leave();
    if (held == NULL)
        return mu_run_fail(run, -MU_ENOMEM, "no memory for what was sent");
    for (int i = 0; i < MAKE_ATTEMPTS && rv == -MU_EABORTED; i++)
        rv = run_in_process(run, MUPY_PROCESS_MAKE, number, NULL);
    if (rv == 0)
        mu_run_return_object(run, held, mupy_let_go);
    else
        mupy_let_go(held);
    return rv;
}

static int process_load(mu_run *run, void *user)
{
    (void)user;
    return make_in_child(run, "function");
}

static int process_build(mu_run *run, void *user)
{
    const char *mode = "";
    size_t size;

    (void)mu_value_get_string(mu_value_at(mu_run_args(run), 2), &mode, &size);
    return strcmp(mode, "iterator") == 0 ? mupy_run_build(run, user)
                                         : make_in_child(run, "value");
}

/* A registered function; never freed, since the library refers to it. */
struct registered {
    PyObject *function;
    PyObject *name;
    int64_t number; /* guarded by the GIL; 0: before its first run; -1: it cannot
                       be pickled, and runs in the worker's threads */
};

static int64_t get_registered_number(struct registered *registered)
{
    static PyObject *pickle_of;
    PyObject *pickle = NULL;

    mupy_enter();
    if (registered->number == 0) {
        registered->number = -1;
        if (mupy_import(&pickle_of, "muster._processes", "pickle_of") != NULL)
            pickle = PyObject_CallFunctionObjArgs(pickle_of, registered->function,
                                                  registered->name, NULL);
        if (pickle != NULL && pickle != Py_None &&
            hold_source("function", pickle, registered->name, &registered->number) ==
                NULL)
            registered->number = -1;
        Py_XDECREF(pickle);
        PyErr_Clear();
    }
    mupy_leave();
    return registered->number;
}

static int process_registered(mu_run *run, void *user)
{
    struct registered *registered = user;
    int64_t number = get_registered_number(registered);

    if (number < 0)
        return mupy_run_registered(run, registered->function);
    return run_in_process(run, MUPY_PROCESS_REGISTERED, number, mu_run_args(run));
}

int mupy_process_register_function(mu_node *node, const char *name, PyObject *function)
{
    struct registered *registered = calloc(1, sizeof *registered);
    int rv;

    if (registered == NULL)
        return -MU_ENOMEM;
    registered->function = function;
    registered->name = PyUnicode_FromString(name);
    rv = mu_node_register_function(node, name, process_registered, registered, 0);
    if (rv != 0) {
        Py_XDECREF(registered->name);
        free(registered);
    }
    return rv;
}

const struct mupy_functions mupy_in_processes = {process_call, process_load,
                                                 process_build};

/* held(number): the object of a number; None: it was dropped. */
static PyObject *get_held_object(PyObject *module, PyObject *number)
{
    long long value = PyLong_AsLongLong(number);
    PyObject *object;

    (void)module;
    if (value == -1 && PyErr_Occurred())
        return NULL;
    object = mupy_held_find(value);
    if (object != NULL)
        return object;
    Py_RETURN_NONE;
}

int mupy_process_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"held", get_held_object, METH_O,
         "held(number)\n--\n\nAn object that the worker keeps."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods);
}
