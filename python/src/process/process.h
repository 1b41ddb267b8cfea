/* Executor processes: child processes of a worker that run its Python functions.
 *
 * Each executor thread of the library has one (process.c): it sends a call, and answers
 * the function's requests to its run, until the result comes. In the child (child.c)
 * functions run on the main thread. The worker's thread needs its GIL only to answer
 * requests.
 *
 * worker to process: [mupy_process_kind, [numbers that were dropped], ...]
 *     CALL, TRY: the arguments of "python.call"; REGISTERED: number, arguments;
 *     MAKE: number
 * process to worker: [RESULT, value], [FAILED, code, kind, message, detail, task,
 *     data of the error or nil], [ASK, 1, pickle of (args, kwargs) of
 *     muster._processes.serve, buffers, references]; to that the worker answers
 *     [value] */
#ifndef MUSTER_PYTHON_PROCESS_H
#define MUSTER_PYTHON_PROCESS_H

#include "process/frame.h"

/* The variable with the most functions that a process runs. */
#define MUPY_TASKS_VARIABLE "MUSTER_PYTHON_TASKS_PER_CHILD"

enum mupy_process_kind {
    MUPY_PROCESS_CALL = 0,
    MUPY_PROCESS_TRY = 1,
    MUPY_PROCESS_REGISTERED = 2,
    MUPY_PROCESS_MAKE = 3
};

enum mupy_process_reply {
    MUPY_PROCESS_RESULT = 0,
    MUPY_PROCESS_FAILED = 1,
    MUPY_PROCESS_ASK = 2
};

/* ---- process.c ---- */

/* The node's setting "python.processes"; 0: functions run in the worker's threads. */
unsigned mupy_process_count(mu_node *node);

/* The C functions that a node registers to run Python functions: "python.call" (also
 * "python.try", with `user` not NULL), "python.load", "python.build". */
struct mupy_functions {
    mu_function_fn call;
    mu_function_fn load;
    mu_function_fn build;
};

extern const struct mupy_functions mupy_in_processes;

/* Like mupy_run_register_function(), for a node with executor processes. */
int mupy_process_register_function(mu_node *node, const char *name, PyObject *function);

/* The object with this number was dropped: notify the processes. Any thread, without the
 * GIL. */
void mupy_process_dropped(int64_t number);

/* ---- child.c ---- */

/* Whether this thread runs a function in an executor process; and its run, a new
 * reference or NULL with an exception. */
bool mupy_process_runs(void);
PyObject *mupy_process_run(void);

/* This process's object for a number of the worker: a new reference. */
PyObject *mupy_process_object(int64_t number);

/* ---- coordinator/run.c ---- */

/* Set the run of this thread, for current_run(); end it with the value that begin
 * returned. */
struct mupy_outer {
    mu_run *run;
    struct mupy_run *object;
    bool has_written;
};

struct mupy_outer mupy_run_begin(mu_run *run);
void mupy_run_end(struct mupy_outer outer);

/* The list [function, form, ...] in the arguments of "python.call"; `ret_shard_args`: the
 * map with the shard of a dataset, NULL without one. */
const mu_value *mupy_run_split(const mu_value *args, const mu_value **ret_shard_args);

/* Call a function with such a list; `run` (may be NULL) is the run that its references
 * belong to. */
PyObject *mupy_run_call(mu_run *run, PyObject *function, const mu_value *list,
                        const mu_value *shard_args);

/* Call a function that was registered under a name: a list has its arguments, a map its
 * keyword arguments, nil none; any other value is its only argument. */
PyObject *mupy_run_call_registered(mu_run *run, PyObject *function,
                                   const mu_value *value);
int mupy_run_registered(mu_run *run, PyObject *function);

/* "python.build" in a worker's thread. */
int mupy_run_build(mu_run *run, void *user);

/* Convert the current exception to an error and the whole of it as bytes (the caller's;
 * may be NULL), and clear it. Fail a run with these: returns the code for its function to
 * return. */
void mupy_run_exception(mu_error *ret_error, mu_value **ret_data);
int mupy_run_fail(mu_run *run, const mu_error *error, const mu_value *data);

/* Convert the current exception to a result, muster._worker.Failed. NULL: not possible;
 * the exception stays set, and the closure fails. Not for a run that has written to
 * variables, since only a failure discards its writes. */
mu_value *mupy_run_failed(void);

#endif
