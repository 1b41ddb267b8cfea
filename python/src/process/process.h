/* Executor processes: the children of a worker that run its functions of Python.
 *
 * Each executor thread of the library has one (process.c): it sends what is to be run and
 * answers what the function asks of its run, until the result comes. In the child
 * (child.c) functions run on its main thread. Without the GIL of the worker, but for what
 * a function asks.
 *
 * worker to process: [mupy_process_kind, [numbers that were dropped], ...]
 *     CALL, TRY: the arguments of "python.call"; REGISTERED: number, arguments;
 *     MAKE: number
 * process to worker: [RESULT, value], [FAILED, code, kind, message, detail, task],
 *     [ASK, 1, pickle of (args, kwargs) of muster._processes.serve, buffers, references];
 *     to that the worker answers [value]
 */
#ifndef MUSTER_PYTHON_PROCESS_H
#define MUSTER_PYTHON_PROCESS_H

#include "process/frame.h"

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

/* The node's setting "python.processes"; 0: functions run in its threads. */
unsigned mupy_process_count(mu_node *node);

/* What a node registers for functions of Python: "python.call" ("python.try" has
 * something as `user`), "python.load", "python.build". */
struct mupy_functions {
    mu_function_fn call;
    mu_function_fn load;
    mu_function_fn build;
};

extern const struct mupy_functions mupy_in_processes;

/* As mupy_run_register_function() for such a node. */
int mupy_process_register_function(mu_node *node, const char *name, PyObject *function);

/* The object of this number has gone; any thread, without the GIL. */
void mupy_process_dropped(int64_t number);

/* ---- child.c ---- */

/* Whether this thread runs a function in an executor process; its run, a new reference or
 * NULL with an exception. */
bool mupy_process_runs(void);
PyObject *mupy_process_run(void);

/* What the worker keeps under a number, as it is in this process: a new reference. */
PyObject *mupy_process_object(int64_t number);

/* ---- coordinator/run.c ---- */

/* The run of this thread, for current_run(); ended with what begin returned. */
struct mupy_outer {
    mu_run *run;
    struct mupy_run *object;
    bool has_written;
};

struct mupy_outer mupy_run_begin(mu_run *run);
void mupy_run_end(struct mupy_outer outer);

/* The list [function, form, ...] of "python.call"; `ret_dealt`: the map that a shard is
 * in, NULL when there is none. */
const mu_value *mupy_run_split(const mu_value *args, const mu_value **ret_dealt);

/* Call a function with such a list; `run` (may be NULL) is the one of its references. */
PyObject *mupy_run_call(mu_run *run, PyObject *function, const mu_value *list,
                        const mu_value *dealt);

/* The same of a function that was registered under a name: a list is its arguments, a map
 * its keyword arguments, nil nothing, all else its only argument. */
PyObject *mupy_run_call_registered(mu_run *run, PyObject *function,
                                   const mu_value *value);
int mupy_run_registered(mu_run *run, PyObject *function);

/* "python.build", in a thread. */
int mupy_run_build(mu_run *run, void *user);

/* The exception that is set, as an error; it is cleared. And an error as that of a run:
 * the code for its function to return. */
void mupy_run_exception(mu_error *ret_error);
int mupy_run_fail(mu_run *run, const mu_error *error);

/* The exception that is set as a result, muster._worker.Failed. NULL: it cannot be one,
 * and is set still: the closure fails as ever. Not for a run that has written to
 * variables: only a failure forgets what it wrote. */
mu_value *mupy_run_failed(void);

#endif
