/* Declarations shared by the files of the extension module. It uses only the limited API
 * of CPython 3.9 and muster's public headers. */
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

/* In the stable ABI since 3.10; 3.9 has them with the same value and type. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030a0000
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *ret_size);
#endif
#ifndef PyBUF_READ
#define PyBUF_READ 0x100 /* the same, since 3.11 */
#endif

/* Cast of a method's function of any type for PyMethodDef. */
#define MUPY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* ---- module.c ---- */

/* Initialization of each part, called once when the module is created; -1 with an
 * exception. */
int mupy_error_init(PyObject *module);
int mupy_value_init(PyObject *module);
int mupy_wait_init(PyObject *module);
int mupy_notice_init(PyObject *module);
int mupy_node_init(PyObject *module);
int mupy_remote_value_init(PyObject *module);
int mupy_future_init(PyObject *module);
int mupy_sender_init(PyObject *module);
int mupy_per_worker_init(PyObject *module);
int mupy_content_init(PyObject *module);
int mupy_function_init(PyObject *module);
int mupy_coordinator_init(PyObject *module);
int mupy_schedule_init(PyObject *module);
int mupy_dataset_init(PyObject *module);
int mupy_checkpoint_init(PyObject *module);
int mupy_variable_init(PyObject *module);
int mupy_table_init(PyObject *module);
int mupy_table_reader_init(PyObject *module);
int mupy_read_variables_init(PyObject *module);
int mupy_library_thread_init(PyObject *module);
int mupy_run_init(PyObject *module);
int mupy_frame_init(PyObject *module);
int mupy_process_init(PyObject *module);
int mupy_process_child_init(PyObject *module);
int mupy_main_init(PyObject *module);
int mupy_actor_init(PyObject *module);
int mupy_job_init(PyObject *module);

/* Make a type and add it to the module under the last part of its name; the caller owns
 * one reference. NULL with an exception. */
PyTypeObject *mupy_add_type(PyObject *module, PyType_Spec *spec);

/* An attribute of a Python module of the package, "muster.errors" and "from_fields";
 * cached in *cache, whose reference is never released. Borrowed; NULL with an
 * exception. */
PyObject *mupy_import(PyObject **cache, const char *module, const char *name);

/* ---- error.c ---- */

/* Raise the exception of an error; `function` (NULL: the error's own) is the name of the
 * Python function that it is about. Returns NULL. */
PyObject *mupy_raise(const mu_error *error, const char *function);

/* The same with the bytes that the function gave with the error (NULL: none), which are
 * taken. */
PyObject *mupy_raise_with(const mu_error *error, const char *function, mu_value *data);
PyObject *mupy_exception_with(const mu_error *error, const char *function,
                              mu_value *data);

/* Correct the message of a wait that was cut into pieces: it names the timeout of the
 * last piece, and the caller waited `waited_ms` (-1: leave it unchanged). */
void mupy_error_waited(mu_error *error, int64_t waited_ms);

/* The exception of an error as an object, not raised. NULL with an exception. */
PyObject *mupy_exception(const mu_error *error, const char *function);

/* Raise the exception class of a code (negative) with a formatted message. Returns
 * NULL. */
PyObject *mupy_fail(int code, const char *format, ...) MU_PRINTF(2, 3);

/* ---- values/value.c ---- */

enum mupy_convert {
    MUPY_PLAIN = 0,
    MUPY_REFERENCES = 1 /* remote values, per-worker values, variables may occur */
};

/* A value from a Python object: None, bool, int, float, str, bytes, bytearray, list,
 * tuple (as a list), dict, numpy array or scalar. NULL with a TypeError, OverflowError or
 * ValueError that says where in the object. */
mu_value *mupy_to_value(PyObject *object, unsigned flags);

/* A value from an object of exactly one of the types None, bool, int of 64 bits, float,
 * str, bytes, or a numpy array of a dtype that muster has. NULL without an exception: it
 * has another type; with one: out of memory. */
mu_value *mupy_to_exact(PyObject *object);

/* Take over the tensor that an array is a view of, when nothing else refers to either;
 * NULL without an exception: the array must be copied. */
mu_value *mupy_take_tensor(PyObject *object);

/* The Python object of a value. Arrays use the value's memory, and are writable with
 * `writable`, when no other value shares it. NULL with an exception. */
PyObject *mupy_from_value(const mu_value *value, bool writable);

/* A list or dict whose items are converted by `part`, from a list or a map. */
typedef PyObject *(*mupy_part_fn)(const mu_value *value, void *arg);
PyObject *mupy_from_parts(const mu_value *value, mupy_part_fn part, void *arg);

/* An object with __array_interface__ that keeps the value, a tensor, alive. */
PyObject *mupy_tensor_owner(const mu_value *tensor, bool writable);

/* The __array_interface__ dict of such an object. NULL with an exception. */
PyObject *mupy_array_interface(int dtype, unsigned rank, const uint64_t *dims,
                               const void *data, bool writable);

/* A new array with memory of its own. */
PyObject *mupy_array_new(int dtype, unsigned rank, const uint64_t *dims);

/* A tensor of bytes (uint8) from anything with the buffer protocol. */
mu_value *mupy_buffer_to_value(PyObject *buffer);

/* The elements of an array. `keep` is a new reference to the owner of their memory: the
 * array, or a copy of it in row-major order. */
struct mupy_array {
    PyObject *keep;
    const void *data;
    int dtype;
    unsigned rank;
    uint64_t dims[MU_TENSOR_RANK_MAX];
    size_t bytes;
};

/* Read an array, converted to `dtype` (MU_DTYPE_NONE: not converted). -1 with an
 * exception. */
int mupy_array_of(PyObject *object, int dtype, struct mupy_array *ret_array);

/* ---- values/dtypes.c ---- */

#define MUPY_DTYPE_NAMES \
    "float16 to float64, bfloat16, int8 to int64, uint8 to uint64 or bool"

/* "<f4" for MU_F32; and back: MU_DTYPE_NONE for a type that muster does not have. */
const char *mupy_typestr_of(int dtype);
int mupy_dtype_of_typestr(PyObject *typestr);

/* What NumPy converts to; None for MU_DTYPE_NONE. NULL with an exception. */
PyObject *mupy_numpy_dtype(int dtype);

/* An array that NumPy has made by mupy_typestr_of; takes it. It takes bfloat16 for two
 * bytes without a type. */
PyObject *mupy_view_as(PyObject *array, int dtype);

/* The dtype of "float32", numpy.float32 and so on. -1 with an exception. */
int mupy_dtype_of(PyObject *object);

/* Read a sequence of dimensions. -1 with an exception. */
int mupy_shape_of(PyObject *object, uint64_t *ret_dims, unsigned *ret_rank);

/* ---- shared.c: objects that several threads use at the same time ---- */

/* Py_BEGIN_CRITICAL_SECTION; nothing with the GIL. */
#ifdef Py_GIL_DISABLED
#define MUPY_LOCK(object) Py_BEGIN_CRITICAL_SECTION(object);
#define MUPY_UNLOCK() Py_END_CRITICAL_SECTION();
#else
#define MUPY_LOCK(object) {
#define MUPY_UNLOCK() }
#endif

/* Set an object that is created on first use: *cache becomes `made`, whose reference is
 * taken, unless another thread was faster. Returns *cache, borrowed; NULL when `made`
 * is. */
PyObject *mupy_keep_first(PyObject **cache, PyObject *made);
PyObject *mupy_kept(PyObject **cache); /* the object; NULL: not created yet */

/* A list or dict that no other thread changes: with the GIL the object itself, as long as
 * no Python code runs, else a copy. Other objects are returned unchanged. New
 * reference. */
PyObject *mupy_snapshot(PyObject *object);

/* Look up a key: a new reference; NULL: absent, or with an exception. */
PyObject *mupy_dict_find(PyObject *dict, PyObject *key);

/* Whether an object has no other references than these of the caller. */
bool mupy_is_only_holder(PyObject *object, Py_ssize_t references);

/* A handle of the library that one thread may close while others use it: then the last
 * user closes it. Zeroed: not opened. */
struct mupy_handle {
    void *object;
    void (*close)(void *object); /* called without the GIL */
    unsigned uses;               /* users, and one while it is open */
    bool is_open;
};

void mupy_handle_open(struct mupy_handle *handle, void *object,
                      void (*close)(void *object));
bool mupy_handle_is_open(const struct mupy_handle *handle);

/* Begin and end a use. NULL, without an exception: it is not open. */
void *mupy_handle_begin(struct mupy_handle *handle);
void mupy_handle_end(struct mupy_handle *handle);

/* Refuse further uses. True for the first call, whose caller then releases the handle:
 * with mupy_handle_drop(), without the GIL, or mupy_handle_end(). */
bool mupy_handle_shut(struct mupy_handle *handle);
void mupy_handle_drop(struct mupy_handle *handle);

/* ---- wait.c ---- */

/* A waiting call of the library, run without the GIL. For the main thread it runs on a
 * helper thread, so that Ctrl-C ends the wait: the call then continues there, and its
 * resources are released when it has returned. With `begin`, which begins what `run`
 * waits for, and then mupy_begun_ended(user, ...) is called once, from any thread, the
 * main thread waits itself; not 0: it was not begun, and is run. */
struct mupy_call {
    void (*run)(struct mupy_call *call);              /* without the GIL, as is */
    int (*begin)(struct mupy_call *call, void *user); /* NULL: there is no such form */
    void (*drop)(struct mupy_call *call); /* frees the result of an interrupted call,
                                             with the GIL; may be NULL */
    PyObject *keep[4];                    /* references held while it runs */
    struct mupy_handle *used;             /* a handle in use while it runs; NULL:
                                             none */
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

/* Hold a reference to `object` until the call is freed. */
void mupy_call_keep(struct mupy_call *call, PyObject *object);

/* Run it. Returns 0 when it has returned call->rv: then the caller frees it with
 * mupy_call_free. -1 with the exception of a signal handler: the call is not the caller's
 * any more. */
int mupy_call_run(struct mupy_call *call);

void mupy_begun_ended(void *user, int code, const mu_error *error);

/* A part of it: begin the call and wait; false: it was not begun. */
bool mupy_call_begin(struct mupy_call *call, int *ret_rv);

/* Begin a call that has `begin`, and free it at its end: then tell(None), or with its
 * exception, is called, on the thread that drains notices. None; NULL with an exception,
 * of -MU_EAGAIN too: it was not begun. */
PyObject *mupy_call_start(struct mupy_call *call, PyObject *tell);

/* A moment of the monotonic clock by which signals are looked at again. */
struct timespec mupy_in_piece(void);

/* Free a call and its result; the latter takes the GIL. */
void mupy_call_drop(struct mupy_call *call);
void mupy_call_forget(struct mupy_call *call);

/* Like mupy_call_run without a helper thread, for a thread that no signal interrupts. */
void mupy_call_run_here(struct mupy_call *call);

void mupy_call_free(struct mupy_call *call);

/* Run a call and free it. Returns None, or NULL with its error as the exception. */
PyObject *mupy_call_finish(struct mupy_call *call);

/* The same for a call whose result is a mu_value: returns its object, or None without
 * one. */
PyObject *mupy_call_value(struct mupy_call *call);

/* Convert seconds (None: no timeout) to milliseconds (-1: no timeout). -1 with an
 * exception. */
int mupy_timeout(PyObject *seconds, int64_t *ret_ms);

/* A wait that is cut into pieces, with signals handled between them. */
struct mupy_pieces {
    int64_t left_ms; /* negative: no timeout */
    uint64_t until_ms;
};

enum { MUPY_PIECE_MS = 100 };

/* Call `wait` in pieces until it returns another code than -MU_EDEADLINE, or an error of
 * a closure, or the timeout has passed; returns its code, or 1 with the exception of a
 * signal handler. `wait` runs without the GIL. */
int mupy_pieces_wait(int (*wait)(void *what, int64_t piece_ms, mu_error *error),
                     void *what, int64_t timeout_ms, mu_error *error);

void mupy_pieces_begin(struct mupy_pieces *pieces, int64_t timeout_ms);
int64_t mupy_pieces_next(struct mupy_pieces *pieces); /* length of the next piece */
bool mupy_pieces_over(struct mupy_pieces *pieces);
uint64_t mupy_now_ms(void);

/* ---- waiter.c ---- */

/* A one-shot channel: one thread waits for a positive number that another thread sends.
 * Both hold a reference. */
struct mupy_waiter;
struct mupy_waiter *mupy_waiter_new(void); /* NULL with an exception */
void mupy_waiter_unref(struct mupy_waiter *waiter);

/* Send the number, and release the sender's reference. Any thread, once. */
void mupy_waiter_post(struct mupy_waiter *waiter, int what);

/* The number that was sent; waits for it when another thread is about to send it. */
int mupy_waiter_outcome(struct mupy_waiter *waiter);

/* Wait: 0: the number was sent; 1: the timeout has passed; -1 with the exception of a
 * signal handler. */
int mupy_waiter_wait(struct mupy_waiter *waiter, struct mupy_pieces *pieces);

/* ---- notice.c: notices of other threads for Python ---- */

/* Release a reference later, on a thread that has the GIL. Any thread, without the
 * GIL. */
void mupy_drop_later(PyObject *object);

/* Release these references now; with the GIL. */
void mupy_drop_now(void);

/* A notice in the queue of the thread that drains notices, which calls `deliver`
 * with the GIL. `deliver` may handle following notices, too: it returns the first one
 * that it did not handle. */
struct mupy_notice {
    struct mupy_notice *next;
    struct mupy_notice *(*deliver)(struct mupy_notice *notice);
};

/* Put a notice into the queue; any thread. */
void mupy_notice_post(struct mupy_notice *notice);

/* A notice that calls `callback` with `argument`, and holds references to both. */
struct mupy_notice *mupy_notice_new(PyObject *callback, PyObject *argument);
void mupy_notice_free(struct mupy_notice *notice); /* frees one that was not posted */

/* A log line of a node; any thread. */
void mupy_notice_log(void *user, int level, const char *task, const char *who,
                     const char *line);

/* Start the thread that drains notices, unless it is running. -1 with an exception. */
int mupy_notice_start(void);

/* ---- nodes/node.c ---- */

struct mupy_node {
    PyObject_HEAD
    mu_node *node;          /* NULL after it is closed */
    mu_node *held;          /* the same node, by mu_node_ref valid as long as this
                               object */
    bool owned;             /* closed by this object; not for nodes that a program owns */
    unsigned forks;         /* fork count of the process when it was opened */
    struct mupy_node *next; /* in the list of all open nodes */
    PyObject *weak;         /* a weak reference to this object, for lookups in that
                               list */
    PyObject *weak_list;    /* list of weak references, for the interpreter */
    PyObject *functions;    /* list: holds the registered functions */
    PyObject *resolver;     /* used by the node until it is closed; NULL: none */
};

extern PyTypeObject *mupy_node_type;

/* The node of a Node. NULL with an exception when the object is not a Node, was closed,
 * or belongs to a parent process. */
mu_node *mupy_node_of(PyObject *object);

/* Whether a Node (NULL: none) belongs to a parent process; then with a ClosedError. */
bool mupy_node_is_forked(PyObject *object);

/* The Node of a node: the one that opened it, or, for a node that a program owns, a
 * wrapper that is valid until mupy_node_forget(). */
PyObject *mupy_node_wrap(mu_node *node);

/* Mark the wrappers of the program's nodes as closed. */
void mupy_node_forget(void);

/* nodes/options.c: convert keyword arguments to options; -1 with an exception. Texts are
 * borrowed from the objects. */
int mupy_node_options(mu_node_options *out, PyObject *kwargs);
/* name: (type, field): "heartbeat": ("float", "heartbeat_ms"). */
PyObject *mupy_node_option_table(void);

/* nodes/program.c: Node.register_program(task_type, function) */
PyObject *mupy_node_program(PyObject *self, PyObject *args);

/* ---- coordinator/remote_value.c ---- */

struct mupy_remote_value {
    PyObject_HEAD
    mu_remote_value *value;
    PyObject *coordinator;
    PyObject *function;  /* str, or a mupy_function; NULL */
    bool kept;           /* the result is pinned on a worker */
    bool raise_on_fetch; /* the result may be an exception (muster._worker.Failed) */
    PyObject *result;    /* the fetched result, if it is mutable; NULL */
    PyObject *future;    /* its muster.Future, if one was asked for; NULL */
};

extern PyTypeObject *mupy_remote_value_type;

PyObject *mupy_remote_value_new(mu_remote_value *value, PyObject *coordinator,
                                PyObject *function, unsigned flags);

/* Wait until all values are ready, handling signals. -1 with an exception; 1: the timeout
 * has passed, and *ret_late (borrowed) is a value that is not ready. */
int mupy_remote_values_wait(PyObject *const *values, size_t count, int64_t timeout_ms,
                            PyObject **ret_late);

/* The result of fetch() after its timeout: the result, if it has come by now, or NULL
 * with the exception that says where the closure is. */
PyObject *mupy_remote_value_late(PyObject *value, int64_t timeout_ms);

/* The result of a value that is ready, or pinned on a worker. NULL with its exception. */
PyObject *mupy_remote_value_take(PyObject *value);

/* Whether an object is immutable and contains no other objects. */
bool mupy_is_constant(PyObject *object);

/* The exception in a result that is a Failed, as a new reference; NULL without an
 * exception: it is not; with one: the check failed. */
PyObject *mupy_exception_in(PyObject *result);

/* The name of a scheduled function (a str or a mupy_function), borrowed from it. NULL
 * when it is unknown. */
const char *mupy_function_text(PyObject *function);

/* ---- variables/argument.c ---- */

/* The first key of the map that stands for a variable among the arguments of a function
 * by name: {"muster.variable": its name, "dtype": "float32", "shape": [2, 3]}. */
extern const char mupy_variable_key[];

/* Make such a map: NULL without an exception for an object that is no variable. Open the
 * variable of one on the run's node: NULL with an exception. */
mu_value *mupy_variable_value(PyObject *object);
PyObject *mupy_variable_from(const mu_value *map);

/* ---- coordinator/per_worker.c ---- */

struct mupy_per_worker {
    PyObject_HEAD
    mu_per_worker *per_worker;
    PyObject *coordinator;
    PyObject *source; /* its constructor's arguments, for making iterators; may be
                         NULL */
};

extern PyTypeObject *mupy_per_worker_type;

/* ---- coordinator/function.c: Python functions in closures ---- */

struct mupy_function {
    PyObject_HEAD
    mu_per_worker *per_worker;
    mu_value *reference;
    mu_value *no_args;  /* the arguments of a call without arguments */
    PyObject *name;     /* str */
    char call_name[64]; /* "python.call:NAME" */
    char try_name[64];  /* "python.try:NAME" */
    size_t size;        /* bytes of its pickle */
};

extern PyTypeObject *mupy_function_type;

/* Whether it was sent to a chief that is lost. */
bool mupy_function_is_lost(PyObject *function, const mu_coordinator *coordinator);

/* Write "python.call:NAME", with only the end of a NAME that is too long. */
void mupy_function_name(const char *registered, const char *name, char *out, size_t size);

/* Make the arguments of "python.call". NULL with an exception. */
mu_value *mupy_encode_call(struct mupy_function *function, PyObject *args,
                           PyObject *kwargs, PyObject *coordinator);

/* The number of remote and per-worker values among the arguments (NULL: none). */
size_t mupy_count_inputs(const mu_value *call);

/* Append 1, the pickle, [buffers] and [references] of any object to `list`. */
int mupy_encode_any(mu_value *list, PyObject *object, PyObject *coordinator);

/* The same for the arguments of an actor's call: a remote value among them is fetched,
 * and its content is sent. */
int mupy_encode_for_actor(mu_value *list, PyObject *object);

/* Convert the result of a function to a value, and back. `run` is the run that references
 * belong to (NULL: there are no references). */
mu_value *mupy_encode_result(PyObject *object);
PyObject *mupy_decode_result(const mu_value *value, bool writable, mu_run *run);

/* The arguments of a function by name, with what references, results and variables stand
 * for. NULL with an exception. */
PyObject *mupy_decode_named(const mu_value *value, mu_run *run);

/* Decode the arguments of "python.call" and "python.build", from item `first` on: a
 * tuple, and a dict or NULL. -1 with an exception. */
int mupy_decode_call(const mu_value *args, size_t first, mu_run *run, PyObject **ret_args,
                     PyObject **ret_kwargs);

/* __reduce__ of an object that is sent as a reference: adds it to the references of the
 * current pickle. Returns a new reference; NULL with an exception when no closure is
 * being pickled. */
PyObject *mupy_reduce(PyObject *object);

/* ---- coordinator/content.c ---- */

/* Whether what a Content describes is unchanged. */
bool mupy_content_holds(PyObject *content);

/* ---- coordinator/coordinator.c ---- */

struct mupy_coordinator {
    PyObject_HEAD
    struct mupy_handle handle; /* of a mu_coordinator; see mupy_coordinator_begin */
    PyObject *node;
    PyObject *functions;     /* dict: function -> (entry, Content), the newest
                                last */
    PyObject *by_hash;       /* dict: content hash -> entry */
    PyObject *last_callable; /* the function that was scheduled last; NULL; this
                                and the next field are guarded by MUPY_LOCK() */
    PyObject *last_known;    /* its item of `functions` */
};

extern PyTypeObject *mupy_coordinator_type;

/* The open coordinator of an object, to be used until mupy_coordinator_end(); NULL with
 * an exception. */
mu_coordinator *mupy_coordinator_begin(PyObject *object);
void mupy_coordinator_end(PyObject *object);

/* A call on a coordinator: call->object is its mu_coordinator. NULL with an exception. */
struct mupy_call *mupy_coordinator_call(PyObject *object,
                                        void (*run)(struct mupy_call *call));

/* Remember the function that was scheduled last (NULL: none), and its item of
 * `functions`; takes new references. */
void mupy_coordinator_remember(struct mupy_coordinator *self, PyObject *callable,
                               PyObject *known);

/* Raise an error of one of its calls. Returns NULL. */
PyObject *mupy_coordinator_raise(struct mupy_coordinator *self, const mu_error *error,
                                 const char *function);

/* Methods in coordinator/schedule.c and values/structure.c. */
PyObject *mupy_schedule(PyObject *object, PyObject *const *args, Py_ssize_t count,
                        PyObject *names);
PyObject *mupy_fetch(PyObject *object, PyObject *args, PyObject *kwargs);

/* coordinator/schedule.c, for futures: schedule() in two steps. Pack the call (fn, args,
 * kwargs) as it is now; *ret_function is a new reference to its mupy_function. NULL with
 * an exception. */
mu_value *mupy_schedule_pack(PyObject *object, PyObject *const *call,
                             PyObject **ret_function);

/* Then schedule it with raise_on_fetch=True and timeout=0, and with `notify` as on_ready
 * of mu_closure_options. `names` are those of the options; NULL: none. -1 with an
 * exception. */
int mupy_schedule_packed(PyObject *object, const mu_value *packed, PyObject *function,
                         PyObject *const *options, PyObject *names,
                         void (*notify)(mu_remote_value *value, void *user), void *user,
                         mu_remote_value **ret_value);

/* ---- process/held.c: Python objects that stay on a worker ---- */

/* Keep an object for a per-worker value, with a new reference; each gets a number, from
 * 1. Returns the handle for mu_run_return_object. NULL with an exception. */
void *mupy_hold(PyObject *object, int64_t *ret_number);

/* Drop such a handle; called by the library on any thread. */
void mupy_let_go(void *held);

/* The Python object that a reference among the arguments of a run stands for, borrowed
 * until the run ends. NULL without an exception: it is not a Python object. */
PyObject *mupy_held_object(mu_run *run, const mu_value *reference);

/* The number of such an object, 0 when it is not a Python object; without the GIL. The
 * object of a number: a new reference, or NULL without an exception. */
int64_t mupy_held_number(mu_run *run, const mu_value *reference);
PyObject *mupy_held_find(int64_t number);

/* ---- coordinator/run.c ---- */

/* Register "python.call" and so on; -1 with an exception. */
int mupy_run_register(mu_node *node);

/* Register a Python function under a name, for C and Python callers. The caller keeps a
 * reference to it. Returns 0 or a negative code, without an exception. */
int mupy_run_register_function(mu_node *node, const char *name, PyObject *function);

/* The run of an object that a function has; NULL with an exception. */
mu_run *mupy_run_of(PyObject *object);

/* A run's write to a variable has returned `rv`; false: with an exception. */
struct mupy_variable;
bool mupy_run_written(int rv, const struct mupy_variable *variable);

/* Give the type of runs what writes rows (variables/rows.c). -1 with an exception. */
int mupy_run_add_row_methods(PyTypeObject *type);

/* ---- library_thread.c ---- */

/* Acquire and release the GIL on a thread of the library, which has a thread state of its
 * own. */
void mupy_enter(void);
void mupy_leave(void);

#endif
