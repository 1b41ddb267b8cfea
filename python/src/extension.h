/* What the files of the extension share. It uses the limited API of CPython 3.9 and the
 * public headers of muster alone. */
#ifndef MUSTER_PYTHON_EXTENSION_H
#define MUSTER_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "muster/coordinator.h"
#include "muster/node.h"
#include "muster/value.h"
#include "muster/variable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the stable ABI since 3.10, and in 3.9 with the same number, meaning and type. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030a0000
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *ret_size);
#endif
#ifndef PyBUF_READ
#define PyBUF_READ 0x100    /* the same, since 3.11 */
#endif

/* What the module has a method as, whatever its real type is. */
#define MUPY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* ---- module.c ---- */

/* One row for each object: called once, when the module is made; -1 with an exception. */
int mupy_error_init(PyObject *module);
int mupy_value_init(PyObject *module);
int mupy_wait_init(PyObject *module);
int mupy_notice_init(PyObject *module);
int mupy_node_init(PyObject *module);
int mupy_remote_value_init(PyObject *module);
int mupy_future_init(PyObject *module);
int mupy_sender_init(PyObject *module);
int mupy_per_worker_init(PyObject *module);
int mupy_function_init(PyObject *module);
int mupy_coordinator_init(PyObject *module);
int mupy_schedule_init(PyObject *module);
int mupy_dataset_init(PyObject *module);
int mupy_checkpoint_init(PyObject *module);
int mupy_variable_init(PyObject *module);
int mupy_run_init(PyObject *module);
int mupy_frame_init(PyObject *module);
int mupy_process_init(PyObject *module);
int mupy_process_child_init(PyObject *module);
int mupy_main_init(PyObject *module);

/* Make a type and add it to the module under the last part of its name; the caller owns
 * one reference. NULL with an exception. */
PyTypeObject *mupy_add_type(PyObject *module, PyType_Spec *spec);

/* An attribute of a Python module of the package, "muster.errors" and "from_fields"; kept
 * in *cache, whose reference is never given back. Borrowed; NULL with an exception. */
PyObject *mupy_import(PyObject **cache, const char *module, const char *name);

/* ---- error.c ---- */

/* Raise the exception of an error; `function` (NULL: the error's own) is the name of the
 * Python function that it is about. Returns NULL. */
PyObject *mupy_raise(const mu_error *error, const char *function);

/* Of a wait that was cut into pieces: its words name the last one's time, and the caller
 * has waited so long (-1: leave them). */
void mupy_error_waited(mu_error *error, int64_t waited_ms);

/* The same as an object, not raised. NULL with an exception. */
PyObject *mupy_exception(const mu_error *error, const char *function);

/* Raise the exception class of a code (negative) with words of ours. Returns NULL. */
PyObject *mupy_fail(int code, const char *format, ...) MU_PRINTF(2, 3);

/* ---- values/value.c ---- */

enum mupy_convert {
    MUPY_PLAIN = 0,
    MUPY_REFERENCES = 1     /* remote values and per-worker values may occur */
};

/* A value from a Python object: None, bool, int, float, str, bytes, bytearray, list,
 * tuple (as a list), dict, numpy array or scalar. NULL with a TypeError, OverflowError or
 * ValueError that names the place. */
mu_value *mupy_to_value(PyObject *object, unsigned flags);

/* A value from an object of exactly one of the types None, bool, int of 64 bits, float,
 * str, bytes, or a numpy array of a dtype that muster has. NULL without an exception: it
 * is none of them; with one: out of memory. */
mu_value *mupy_to_exact(PyObject *object);

/* The tensor that an array is a view of, when nobody else can see either; NULL without an
 * exception: it is to be copied. */
mu_value *mupy_take_tensor(PyObject *object);

/* The Python object of a value. Arrays use the value's memory: `writable` says whether
 * that is the caller's own. NULL with an exception. */
PyObject *mupy_from_value(const mu_value *value, bool writable);

/* An object with __array_interface__ that keeps the value, a tensor, alive. */
PyObject *mupy_tensor_owner(const mu_value *tensor, bool writable);

/* What numpy asks such an object for. NULL with an exception. */
PyObject *mupy_array_interface(int dtype, unsigned rank, const uint64_t *dims,
                               const void *data, bool writable);

/* A new array that has a copy of a tensor's elements, in memory of its own. */
PyObject *mupy_array_new(int dtype, unsigned rank, const uint64_t *dims);

/* A tensor of bytes (uint8) from anything with the buffer protocol. */
mu_value *mupy_buffer_to_value(PyObject *buffer);

/* Where the elements of an array are, and what they are. The array must be kept while it
 * is used: *ret_keep is a new reference to what has the memory (the array, or a copy of
 * it with rows first). -1 with an exception. */
struct mupy_array {
    PyObject *keep;
    const void *data;
    int dtype;
    unsigned rank;
    uint64_t dims[MU_TENSOR_RANK_MAX];
    size_t bytes;
};

/* `dtype` is what the elements are converted to; MU_DTYPE_NONE: as they are. */
int mupy_array_of(PyObject *object, int dtype, struct mupy_array *ret_array);

/* "float32", numpy.float32 and so on. -1 with an exception. */
int mupy_dtype_of(PyObject *object);

/* Sequence of dimensions. -1 with an exception. */
int mupy_shape_of(PyObject *object, uint64_t *ret_dims, unsigned *ret_rank);

/* ---- shared.c: what several threads use at the same time ---- */

/* Py_BEGIN_CRITICAL_SECTION, which the GIL makes needless. */
#ifdef Py_GIL_DISABLED
#define MUPY_LOCK(object) Py_BEGIN_CRITICAL_SECTION(object);
#define MUPY_UNLOCK() Py_END_CRITICAL_SECTION();
#else
#define MUPY_LOCK(object) {
#define MUPY_UNLOCK() }
#endif

/* What is made when it is first needed: *cache is `made`, whose reference is taken,
 * unless another thread was faster. Borrowed; NULL when `made` is. */
PyObject *mupy_keep_first(PyObject **cache, PyObject *made);
PyObject *mupy_kept(PyObject **cache);      /* NULL: not made yet */

/* A list or dict that no other thread changes: itself with the GIL, as long as no code of
 * Python runs, a copy without it. Anything else is returned as it is. New reference. */
PyObject *mupy_snapshot(PyObject *object);

/* New reference; NULL: not there, or with an exception. */
PyObject *mupy_dict_find(PyObject *dict, PyObject *key);

/* Whether these references, which are the caller's, are all that there are. */
bool mupy_is_only_holder(PyObject *object, Py_ssize_t references);

/* A handle of the library that one thread may close while others are in calls with it:
 * then the last of those closes it. Zeroed: it was not opened. */
struct mupy_handle {
    void *object;
    void (*close)(void *object);    /* called without the GIL */
    unsigned uses;                  /* one is that it is open */
    bool is_open;
};

void mupy_handle_open(struct mupy_handle *handle, void *object,
                      void (*close)(void *object));
bool mupy_handle_is_open(const struct mupy_handle *handle);

/* Use it until mupy_handle_end(). NULL, without an exception: it is not open. */
void *mupy_handle_begin(struct mupy_handle *handle);
void mupy_handle_end(struct mupy_handle *handle);

/* Nobody begins to use it any more. True for the first, who then drops it, without the
 * GIL, or ends it. */
bool mupy_handle_shut(struct mupy_handle *handle);
void mupy_handle_drop(struct mupy_handle *handle);

/* ---- wait.c ---- */

/* A call of the library that waits. It runs without the GIL; on the main thread beside a
 * helper thread, so that Ctrl-C ends the wait: the call then goes on by itself, and what
 * it holds is dropped when it has ended. */
struct mupy_call {
    void (*run)(struct mupy_call *call);    /* without the GIL */
    void (*drop)(struct mupy_call *call);   /* with the GIL: what `run` made, when nobody
                                               takes it any more; may be NULL */
    PyObject *keep[4];                      /* references held while it runs */
    struct mupy_handle *used;               /* in use while it runs; NULL */
    void *object;
    void *other;
    const void *data;
    void *made;
    size_t size;
    int64_t timeout_ms;
    uint64_t number;
    double real;
    char text[256];
    mu_error error;
    int rv;
};

/* A zeroed call; NULL with an exception. */
struct mupy_call *mupy_call_new(void (*run)(struct mupy_call *call));

/* Hold a reference to `object` as long as the call is there. */
void mupy_call_keep(struct mupy_call *call, PyObject *object);

/* Run it. 0: it has returned, call->rv says what, and the caller frees it with
 * mupy_call_free; -1: an exception was raised by a signal, and the call is not the
 * caller's any more. */
int mupy_call_run(struct mupy_call *call);

/* For a thread that cannot be interrupted in any case: as mupy_call_run, without the
 * helper thread. */
void mupy_call_run_here(struct mupy_call *call);

void mupy_call_free(struct mupy_call *call);

/* Run it, free it, and raise its error if it has one: None, or NULL with an
 * exception. */
PyObject *mupy_call_finish(struct mupy_call *call);

/* The same of one that makes a mu_value: that as an object, None when it made none. */
PyObject *mupy_call_value(struct mupy_call *call);

/* Seconds (None: no limit) to milliseconds (-1: no limit). -1 with an exception. */
int mupy_timeout(PyObject *seconds, int64_t *ret_ms);

/* Repeat a wait in pieces, with signals looked at between them. */
struct mupy_pieces {
    int64_t left_ms;        /* negative: no limit */
    uint64_t until_ms;
};

enum { MUPY_PIECE_MS = 100 };

/* Call `wait` in pieces until it returns something else than -MU_EDEADLINE, or an error
 * of a closure, or the time is over: what it returned; 1 with an exception of a signal.
 * `wait` runs without the GIL. */
int mupy_pieces_wait(int (*wait)(void *what, int64_t piece_ms, mu_error *error),
                     void *what, int64_t timeout_ms, mu_error *error);

void mupy_pieces_begin(struct mupy_pieces *pieces, int64_t timeout_ms);
int64_t mupy_pieces_next(struct mupy_pieces *pieces);   /* how long the next one is */
bool mupy_pieces_over(struct mupy_pieces *pieces);
uint64_t mupy_now_ms(void);

/* ---- waiter.c ---- */

/* One thread that waits, and one that tells it something, a positive number; both hold
 * it. */
struct mupy_waiter;
struct mupy_waiter *mupy_waiter_new(void);      /* NULL with an exception */
void mupy_waiter_unref(struct mupy_waiter *waiter);

/* Any thread, once; gives its hold back. */
void mupy_waiter_tell(struct mupy_waiter *waiter, int what);

/* What it was told; waits for that when another thread is about to tell. */
int mupy_waiter_said(struct mupy_waiter *waiter);

/* 0: it was told; 1: the time is over; -1 with an exception of a signal. */
int mupy_waiter_wait(struct mupy_waiter *waiter, struct mupy_pieces *pieces);

/* ---- notice.c: what other threads have for Python ---- */

/* A reference that is to be dropped by whoever has the GIL next; any thread, without the
 * GIL. */
void mupy_drop_later(PyObject *object);

/* Drop those; with the GIL. */
void mupy_drop_now(void);

/* Something for the thread that drains notices, which calls `tell` with the GIL. It may
 * tell those behind it, too: it returns the first that it did not. */
struct mupy_notice {
    struct mupy_notice *next;
    struct mupy_notice *(*tell)(struct mupy_notice *notice);
};

/* Any thread. */
void mupy_notice_post(struct mupy_notice *notice);

/* One that calls `callback` with `argument`, of which it takes references. */
struct mupy_notice *mupy_notice_new(PyObject *callback, PyObject *argument);
void mupy_notice_free(struct mupy_notice *notice);  /* one that was not posted */

/* A log line of a node; any thread. */
void mupy_notice_log(void *user, int level, const char *task, const char *who,
                     const char *line);

/* Start the thread that drains notices, if it is not there. -1 with an exception. */
int mupy_notice_start(void);

/* ---- nodes/node.c ---- */

struct mupy_node {
    PyObject_HEAD
    mu_node *node;          /* NULL once it is closed */
    mu_node *held;          /* the same, valid as long as this object: see mu_node_ref */
    bool owned;             /* closed by us: not the node of a program */
    unsigned forks;         /* of this process when it was opened */
    struct mupy_node *next; /* of all nodes that are open */
    PyObject *weak;         /* a weak reference to this object, for who finds it there */
    PyObject *weak_list;    /* all of them */
    PyObject *functions;    /* list: what was registered is held here */
    PyObject *resolver;     /* which it uses until it is closed; NULL */
};

extern PyTypeObject *mupy_node_type;

/* The node of an object, NULL with an exception when it is none, was closed, or is that
 * of the process that this one was forked by. */
mu_node *mupy_node_of(PyObject *object);

/* Whether a Node (NULL: none) is that of the process that this one was forked by; then
 * with a ClosedError that says so. */
bool mupy_node_is_forked(PyObject *object);

/* The Node of a node: the one that has opened it, or one that stands for a node which is
 * the program's, until mupy_node_forget(). */
PyObject *mupy_node_wrap(mu_node *node);

/* The program's nodes are closed. */
void mupy_node_forget(void);

/* nodes/options.c: keyword arguments as options; -1 with an exception. Texts are those of
 * the objects. */
int mupy_node_options(mu_node_options *out, PyObject *kwargs);
PyObject *mupy_node_option_names(void);

/* nodes/program.c: Node.program(task_type, function) */
PyObject *mupy_node_program(PyObject *self, PyObject *args);

/* ---- coordinator/remote_value.c ---- */

struct mupy_remote_value {
    PyObject_HEAD
    mu_remote_value *value;
    PyObject *coordinator;
    PyObject *function;     /* str, or the entry of a Python function; NULL */
    bool kept;              /* its result stays on a worker */
    bool own_error;         /* its result may be an exception, packed */
    PyObject *result;       /* what was fetched, if it can be changed; NULL */
};

extern PyTypeObject *mupy_remote_value_type;

PyObject *mupy_remote_value_new(mu_remote_value *value, PyObject *coordinator,
                                PyObject *function, unsigned flags);

/* Wait until all are ready, and signals are looked at. -1 with an exception; 1: the time
 * is over, and *ret_late (borrowed) is one that is not ready. */
int mupy_remote_values_wait(PyObject *const *values, size_t count, int64_t timeout_ms,
                            PyObject **ret_late);

/* What fetch() gives at the end of a wait: the words of its error, NULL, or its result,
 * which may have come by now. */
PyObject *mupy_remote_value_late(PyObject *value, int64_t timeout_ms);

/* The result of one that is ready (or is kept by a worker). NULL with its exception. */
PyObject *mupy_remote_value_take(PyObject *value);

/* Whether an object cannot be changed, and has no other objects in it. */
bool mupy_is_constant(PyObject *object);

/* The exception in a result of a closure with an error of its own, as a new reference;
 * NULL: it is none, or, with an exception, that cannot be known. */
PyObject *mupy_exception_in(PyObject *result);

/* The name of what was scheduled, a str or the entry of a Python function; borrowed from
 * it. NULL when nobody knows. */
const char *mupy_function_text(PyObject *function);

/* ---- coordinator/per_worker.c ---- */

struct mupy_per_worker {
    PyObject_HEAD
    mu_per_worker *per_worker;
    PyObject *coordinator;
    PyObject *source;       /* what it is made from, for another one like it; may be
                               NULL */
};

extern PyTypeObject *mupy_per_worker_type;

/* ---- coordinator/function.c: Python functions as closures see them ---- */

struct mupy_function {
    PyObject_HEAD
    mu_per_worker *per_worker;
    mu_value *reference;
    mu_value *no_args;      /* the arguments of a closure that has none */
    PyObject *name;         /* str */
    char call_name[64];     /* "python.call:NAME" */
    char try_name[64];      /* "python.try:NAME" */
    size_t size;            /* bytes of its pickle */
};

extern PyTypeObject *mupy_function_type;

/* "python.call:NAME", the end of a name that is too long. */
void mupy_function_name(const char *registered, const char *name, char *out, size_t size);

/* The arguments of "python.call". NULL with an exception. */
mu_value *mupy_encode_call(struct mupy_function *function, PyObject *args,
                           PyObject *kwargs, PyObject *coordinator);

/* [1, pickle, [buffers], [references]] of any object, appended to `list`. */
int mupy_encode_any(mu_value *list, PyObject *object, PyObject *coordinator);

/* What a function returned, and back. `run` is the run that references are of (NULL:
 * none can be there). */
mu_value *mupy_encode_result(PyObject *object);
PyObject *mupy_decode_result(const mu_value *value, bool writable, mu_run *run);

/* Arguments of "python.call" and "python.build", from item `first` on: a tuple, and a
 * dict or NULL. -1 with an exception. */
int mupy_decode_call(const mu_value *args, size_t first, mu_run *run,
                     PyObject **ret_args, PyObject **ret_kwargs);

/* While an object is pickled: stands for it among the references. Borrowed coordinator,
 * NULL when nothing is being pickled. A new reference to what the pickle has. */
PyObject *mupy_reduce(PyObject *object);

/* ---- coordinator/coordinator.c ---- */

struct mupy_coordinator {
    PyObject_HEAD
    struct mupy_handle handle;      /* of a mu_coordinator */
    PyObject *node;
    PyObject *functions;            /* dict: function -> entry, the newest last */
    PyObject *by_hash;              /* dict: content hash -> entry */
    PyObject *last_callable;        /* the function that was scheduled last; NULL; this
                                       and the next under MUPY_LOCK() */
    struct mupy_function *last_function;
};

extern PyTypeObject *mupy_coordinator_type;

/* The open coordinator of an object, to be used until mupy_coordinator_end(); NULL with
 * an exception. */
mu_coordinator *mupy_coordinator_begin(PyObject *object);
void mupy_coordinator_end(PyObject *object);

/* A call on one: call->object is its mu_coordinator. NULL with an exception. */
struct mupy_call *mupy_coordinator_call(PyObject *object,
                                        void (*run)(struct mupy_call *call));

/* Remember what was scheduled last (NULL: nothing); references are taken of its own. */
void mupy_coordinator_remember(struct mupy_coordinator *self, PyObject *callable,
                               PyObject *function);

/* Raise an error that one of its calls gave: NULL. */
PyObject *mupy_coordinator_raise(struct mupy_coordinator *self, const mu_error *error,
                                 const char *function);

/* coordinator/schedule.c and values/structure.c: methods of it. */
PyObject *mupy_schedule(PyObject *object, PyObject *const *args, Py_ssize_t count,
                        PyObject *names);
PyObject *mupy_fetch(PyObject *object, PyObject *args, PyObject *kwargs);

/* coordinator/schedule.c for futures: as schedule(fn, args, kwargs, own_error=True,
 * timeout=0), and `notify` as on_ready of mu_closure_options. *ret_function is a new
 * reference. -1 with an exception. `names` are those of the options at `args[3]` and so
 * on, NULL: none. */
int mupy_schedule_future(PyObject *object, PyObject *const *args, PyObject *names,
                         void (*notify)(mu_remote_value *value, void *user), void *user,
                         mu_remote_value **ret_value, PyObject **ret_function);

/* ---- process/held.c: Python objects that stay on a worker ---- */

/* Keep an object (a reference is taken) as what the library has as the object of a
 * per-worker value; every one has a number of its own, from 1. NULL with an exception. */
void *mupy_hold(PyObject *object, int64_t *ret_number);

/* The library drops it, on any thread. */
void mupy_let_go(void *held);

/* The Python object behind a reference among the arguments of a run, borrowed: it is
 * there until the run ends. NULL without an exception: it is none of ours. */
PyObject *mupy_held_object(mu_run *run, const mu_value *reference);

/* Its number, 0 of none of ours; without the GIL. And back: a new reference, NULL without
 * an exception. */
int64_t mupy_held_number(mu_run *run, const mu_value *reference);
PyObject *mupy_held_find(int64_t number);

/* ---- coordinator/run.c ---- */

/* Register "python.call" and the like; -1 with an exception. */
int mupy_run_register(mu_node *node);

/* Register a Python function under a name, for C and Python callers. The reference is
 * the caller's to keep. A negative code, without an exception. */
int mupy_run_register_function(mu_node *node, const char *name, PyObject *function);

/* A thread of the library takes the GIL with a state of its own, and gives it back. */
void mupy_enter(void);
void mupy_leave(void);

#endif
