/* The coordinator: schedules functions on the cluster's workers and returns their
 * results. It works on the chief, and on any other task through the chief.
 *
 * Calls that wait return -MU_EPRECONDITION on a loop's thread: fetching a result that is
 * not ready, or is pinned on a worker; join, explain, drain and forget; opening a
 * per-worker value. These never wait: scheduling with `timeout_ms` 0,
 * mu_remote_value_cancel, mu_coordinator_take_errors, making references, and closing or
 * freeing anything. Timeouts are in milliseconds; negative: no timeout.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_COORDINATOR_H
#define MUSTER_COORDINATOR_H

#include "node.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_coordinator mu_coordinator;

/* The future of a closure's result. Reference counted; any thread. */
typedef struct mu_remote_value mu_remote_value;

enum mu_remote_value_state {
    MU_REMOTE_NOT_READY,
    MU_REMOTE_ABORTED, /* lost with the chief, or cancelled after an error of another
                          closure */
    MU_REMOTE_READY    /* a result or an error */
};

/* Open the node's coordinator; a node has one (-MU_EEXISTS). Waits until the chief is
 * connected; at the timeout the error names it. On a loop's thread only with timeout 0,
 * which does not wait: closures scheduled before the chief is connected end with
 * -MU_EUNAVAILABLE. */
MU_EXPORT int mu_coordinator_open(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                                  mu_coordinator **ret_coordinator);

/* Wait until the chief is connected, after it was lost, say: then the closures that it
 * had were aborted (MU_ERROR_CHIEF). -MU_EDEADLINE names the chief. */
MU_EXPORT int mu_coordinator_wait_for_chief(mu_coordinator *coordinator,
                                            int64_t timeout_ms, mu_error *ret_error);

/* Close and free the coordinator, before or after its node is closed. Closures still
 * outstanding are cancelled, and waited for at most five seconds; not on a loop's thread.
 * No other thread may be inside a call on it. NULL is fine. */
MU_EXPORT void mu_coordinator_close(mu_coordinator *coordinator);

/* Queue a closure: `function` with `args` (NULL: nil), to run at least once on any
 * worker. Returns at once, unless `queue_max` closures, or `queue_bytes_max` bytes of
 * arguments, are outstanding (a larger closure is taken when it is the only one). Then it
 * waits for room at most `timeout_ms`, in the order in which threads called;
 * -MU_EDEADLINE, with the text of join's, or with timeout 0 -MU_EAGAIN, says that nothing
 * was queued. When the chief's own queue is full, closures wait at their client and do
 * not fail. A process that does not read its results (it is stopped, or slower than the
 * workers) loses none: the chief keeps them, and from 64 MiB on begins none of its
 * closures until it reads again, or is silent for `silence_ms` and so is lost.
 *
 * The first error of an earlier closure is returned by this call, by join or by done,
 * after all queued closures were cancelled and none is in flight. Nothing was queued then
 * either, and the coordinator can be used again. Every call that waits at that moment, in
 * whichever thread, returns the error, since closures of each thread may have been
 * cancelled; no later call does.
 *
 * `ret_value` NULL: the result is not needed. Otherwise the caller frees *ret_value,
 * which is NULL when nothing was queued. `args` stays the caller's. On a loop's thread
 * only with timeout 0: while the other closures are being cancelled after an error it
 * returns -MU_EAGAIN, and the error afterwards. */
MU_EXPORT int mu_coordinator_schedule(mu_coordinator *coordinator, const char *function,
                                      const mu_value *args, int64_t timeout_ms,
                                      mu_error *ret_error, mu_remote_value **ret_value);

/* ---- Options of a closure, cancellation, references ---- */

enum mu_closure_flag {
    MU_CLOSURE_EFFECT_ONCE = 1, /* writes with mu_run_add(), mu_run_assign() and
                                   mu_run_apply() are applied once, however often the
                                   closure runs */
    MU_CLOSURE_PIN_RESULT = 2,  /* the result stays on the worker until it is fetched or
                                   used; computed again when that worker is lost. The
                                   result of a named closure goes to the journal instead,
                                   if there is one */
    MU_CLOSURE_NO_BACKUP = 4,   /* no second attempt when it is a straggler */
    MU_CLOSURE_RAISE_ON_FETCH = 16 /* its error is returned only by fetching its value:
                                      not by other calls, nor by
                                      mu_coordinator_take_errors, and no other closure is
                                      cancelled for it. Scheduling it does not return
                                      errors of other closures; while closures are being
                                      cancelled after such an error, it is cancelled,
                                      too */
};

enum mu_priority {
    MU_PRIORITY_HIGHEST = 0,
    MU_PRIORITY_DEFAULT = 4,
    MU_PRIORITY_LOWEST = 7
};

typedef struct mu_closure_options {
    size_t size;             /* set by mu_closure_options_init */
    const char *name;        /* for logs, `muster explain` and the journal: at most 127
                                bytes; NULL: none. With a journal, a closure whose name
                                has finished is not run again, and one whose name is
                                outstanding gets the result of that one. After a restart
                                of the chief it is run even if the program does not
                                schedule it again, unless its arguments refer to pinned
                                results or per-worker values */
    unsigned flags;          /* enum mu_closure_flag */
    int priority;            /* enum mu_priority: lower numbers run first */
    int64_t deadline_ms;     /* from now; a closure not resolved by then ends with
                                -MU_EDEADLINE; 0: none */
    int64_t run_timeout_ms;  /* of one run, from when it is sent to a worker: then the run
                                counts as stuck, and the closure runs elsewhere; 0:
                                none */
    unsigned attempts_max;   /* runs, for any reason, before it is given up; 0: the
                                chief's retries_max, and its attempts_max for runs that
                                were stuck */
    int worker;              /* run on this worker (task index) only; -1: on any */
    int not_worker;          /* never on this worker; -1: no exclusion */
    const char *worker_type; /* run on tasks of this type only, one of the chief's
                                worker_types (node.h); with any other the closure ends
                                with -MU_EINVALID. `worker` and `not_worker` are indices
                                of this type, or of "worker" when it is NULL. NULL, the
                                default: any task that runs closures */
    void (*on_ready)(mu_remote_value *value, void *user);
    /* as set by mu_remote_value_on_ready(), but cheaper; needs
       `ret_value`. Always called on the node's loop thread, maybe
       before the call that schedules the closure returns; not
       called when that fails. NULL: none */
    void *user; /* for on_ready */
} mu_closure_options;

/* Fill in the defaults. */
MU_EXPORT void mu_closure_options_init_sized(mu_closure_options *options, size_t size);
#define mu_closure_options_init(options) \
    mu_closure_options_init_sized(options, sizeof(mu_closure_options))

/* mu_coordinator_schedule with options (NULL: the defaults). */
MU_EXPORT int mu_coordinator_schedule_with(mu_coordinator *coordinator,
                                           const char *function, const mu_value *args,
                                           const mu_closure_options *options,
                                           int64_t timeout_ms, mu_error *ret_error,
                                           mu_remote_value **ret_value);

/* Cancel the closure of a value, without waiting. A queued closure ends at once; a
 * running one is asked to stop (mu_run_cancelled), and its result is discarded. The value
 * becomes -MU_ECANCELLED, which the coordinator does not raise as an error. No effect on
 * a resolved closure. -MU_ECLOSED when the node is closed. */
MU_EXPORT int mu_remote_value_cancel(mu_remote_value *value);

/* A reference to a remote value, for the arguments of a later closure, at any depth; one
 * closure may refer to 65,535 values. That closure runs once the value is ready, and gets
 * the value in place of the reference. When the value is an error, or was aborted, the
 * closure ends with an input error (MU_ERROR_INPUT). The caller frees the reference like
 * any value. */
MU_EXPORT mu_value *mu_value_remote(mu_remote_value *value);

/* ---- Per-worker values ---- */

/* One value for each worker: a closure with a reference to it among its arguments gets
 * the value of the worker that it runs on. */
typedef struct mu_per_worker mu_per_worker;

/* Have each worker, present or future, create its value with `function`: once, and again
 * when a lost worker comes back, before it gets closures. The result of the function, or
 * an object that it sets with mu_run_return_object (an iterator over a dataset, say),
 * stays on the worker. Its error becomes the input error of closures that use the value
 * there. When `attempts_max` workers were lost while it ran, it is not tried again on
 * them: there the error is -MU_EABORTED, until the program opens another per-worker
 * value. While the function runs, closures that do not use the value run on the worker's
 * other threads. Waits for the chief's answer only. */
MU_EXPORT int mu_per_worker_open(mu_coordinator *coordinator, const char *function,
                                 const mu_value *args, int64_t timeout_ms,
                                 mu_error *ret_error, mu_per_worker **ret_per_worker);

/* The same for a value that is identified by its content: opening one with the same
 * function and equal arguments gives the same value. With a journal it is recorded with
 * the first named closure that uses it, so that such closures continue when the chief is
 * restarted. The journal keeps 4,096 values of closures under way, with 256 MiB of
 * arguments together: a named closure that needs one more ends with -MU_EEXHAUSTED. */
MU_EXPORT int mu_per_worker_open_shared(mu_coordinator *coordinator, const char *function,
                                        const mu_value *args, int64_t timeout_ms,
                                        mu_error *ret_error,
                                        mu_per_worker **ret_per_worker);

/* Make a per-worker value from given values: item i of the list is for worker i; on a
 * worker without an item, closures that use it end with an input error. When tasks of
 * other types run closures, too: a map with such a list for each type, {"gpu": [...]}. */
MU_EXPORT int mu_per_worker_open_values(mu_coordinator *coordinator,
                                        const mu_value *values, int64_t timeout_ms,
                                        mu_error *ret_error,
                                        mu_per_worker **ret_per_worker);

/* A reference for the arguments of closures. The caller frees it. */
MU_EXPORT mu_value *mu_value_per_worker(mu_per_worker *per_worker);

/* Whether closures may use it: -MU_EUNAVAILABLE when it was opened for a chief that has
 * been lost since. The program opens another one for the next chief. Local: sends no
 * request. */
MU_EXPORT int mu_per_worker_check(const mu_coordinator *coordinator,
                                  const mu_per_worker *per_worker, mu_error *ret_error);

/* Free it, once no closure that uses it is outstanding. NULL is fine. */
MU_EXPORT void mu_per_worker_close(mu_per_worker *per_worker);

/* ---- Errors, explanations, draining, waiting ---- */

/* The bytes that the function attached to its error (mu_run_set_error_data): a new
 * reference to a value of bytes. NULL: none, or no longer kept. A node keeps the last
 * 1,024 of them, of 64 MiB in all. `error` was returned by a call of this node, for one
 * of its closures or for one that had its result as an input. */
MU_EXPORT mu_value *mu_coordinator_error_data(mu_coordinator *coordinator,
                                              const mu_error *error);

/* The same for the error of a value, also after its node was closed. */
MU_EXPORT mu_value *mu_remote_value_error_data(const mu_remote_value *value);

/* All errors since the last call, the oldest first: the one that was raised, and those of
 * closures that failed while the rest was being cancelled. The oldest 1,024 are kept;
 * ret_lost (may be NULL) receives how many more there were. Moves up to `max` errors to
 * `errors`; returns how many. */
MU_EXPORT size_t mu_coordinator_take_errors(mu_coordinator *coordinator, mu_error *errors,
                                            size_t max, uint64_t *ret_lost);

/* Why a closure has not run: the map of mu_node_explain, with its state, attempts, task,
 * and what it waits for. The closure is given by its value, or (value NULL) by its
 * name. */
MU_EXPORT int mu_coordinator_explain(mu_coordinator *coordinator,
                                     const mu_remote_value *value, const char *name,
                                     int64_t timeout_ms, mu_error *ret_error,
                                     mu_value **ret_reasons);

/* Let a worker finish its closures, then leave; its task ends with exit code 0.
 * Returns when it has left; -MU_ENOTFOUND when there is no such worker. At the timeout
 * -MU_EDEADLINE, after a check, for two seconds at most, whether the chief still answers;
 * the worker leaves all the same. A new worker of the same index may join later. */
MU_EXPORT int mu_coordinator_drain(mu_coordinator *coordinator, int worker,
                                   int64_t timeout_ms, mu_error *ret_error);

/* The same for a task of any type that runs closures (node.h, worker_types); or for a
 * parameter server, of type "ps": it gives its partitions to the others, copies of them
 * first, and gets nothing more until another process of its task comes. Returns when it
 * has none, by views that are recorded; its process goes on. At the timeout the message
 * says what it still has. */
MU_EXPORT int mu_coordinator_drain_task(mu_coordinator *coordinator, const char *type,
                                        int index, int64_t timeout_ms,
                                        mu_error *ret_error);

/* Remove the named closures that have finished from the journal, once the program has
 * saved their results. */
MU_EXPORT int mu_coordinator_forget(mu_coordinator *coordinator, int64_t timeout_ms,
                                    mu_error *ret_error);

/* Wait until every closure scheduled so far is resolved. Returns the first error, as
 * mu_coordinator_schedule does. At the timeout -MU_EDEADLINE: the message lists what is
 * in flight where (requested from the chief, for two seconds at most), or says that an
 * error is about to be returned; also that functions occupy all threads of all workers
 * and wait for closures of their own, for which no thread is left. */
MU_EXPORT int mu_coordinator_join(mu_coordinator *coordinator, int64_t timeout_ms,
                                  mu_error *ret_error);

/* Whether no closure is queued or in flight. Does not wait, except to return an error, as
 * mu_coordinator_schedule does: then until the rest is cancelled, a minute at most
 * (-MU_EDEADLINE). */
MU_EXPORT int mu_coordinator_done(mu_coordinator *coordinator, mu_error *ret_error,
                                  int *ret_done);

/* Counts of this coordinator since it was opened. Always scheduled = finished + failed +
 * cancelled + outstanding: no closure is lost. */
typedef struct mu_coordinator_stats {
    uint64_t scheduled;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t outstanding; /* queued or in flight */
    uint64_t retried;     /* attempts beyond each closure's first */
} mu_coordinator_stats;

/* Read the counts. */
MU_EXPORT void mu_coordinator_get_stats(mu_coordinator *coordinator,
                                        mu_coordinator_stats *ret_counts);

/* Wait for the result. Returns 0 with *ret_result, which the caller frees (ret_result
 * NULL: only wait, and leave a pinned result on its worker); the closure's own error;
 * -MU_ECANCELLED when the value was aborted; -MU_EDEADLINE, whose message says where the
 * closure is (requested from the chief, for two seconds at most). */
MU_EXPORT int mu_remote_value_fetch(mu_remote_value *value, int64_t timeout_ms,
                                    mu_error *ret_error, mu_value **ret_result);

/* Fetch many at once: `results` (may be NULL) has `count` elements. Returns the first
 * error in the order of `values`; the other results are filled in all the same, with NULL
 * for values without a result. */
MU_EXPORT int mu_remote_value_fetch_all(mu_remote_value *const *values, size_t count,
                                        int64_t timeout_ms, mu_error *ret_error,
                                        mu_value **results);

/* A copy of `structure`, each reference to a remote value replaced by its content;
 * references to per-worker values stay. */
MU_EXPORT int mu_coordinator_fetch(mu_coordinator *coordinator, const mu_value *structure,
                                   int64_t timeout_ms, mu_error *ret_error,
                                   mu_value **ret_value);

/* MU_REMOTE_ABORTED for NULL. */
MU_EXPORT enum mu_remote_value_state mu_remote_value_state(const mu_remote_value *value);

/* Call `notify` once, on the node's loop thread, as soon as the value is ready or
 * aborted; at once, on the calling thread, when it already is. It must not block, and may
 * schedule with timeout 0. Holds a reference to the value until then. -MU_ECLOSED when
 * the node is closed. */
MU_EXPORT int mu_remote_value_on_ready(mu_remote_value *value,
                                       void (*notify)(mu_remote_value *value, void *user),
                                       void *user);

/* What mu_remote_value_fetch does before it sleeps, for threads that then sleep by means
 * of their own, until mu_remote_value_on_ready says so: look for a short time (spin_us of
 * mu_node_options), and only where that pays, whether the value gets ready or is aborted.
 * 0: it is, or `value` is NULL. Else sleep, and afterwards give what was returned to
 * mu_remote_value_slept, from which the next one learns whether it pays. Any thread. */
MU_EXPORT uint64_t mu_remote_value_spin(mu_remote_value *value);
MU_EXPORT void mu_remote_value_slept(mu_remote_value *value, uint64_t since);

/* Release the caller's reference; the closure runs on. NULL is fine. */
MU_EXPORT void mu_remote_value_free(mu_remote_value *value);

#ifdef __cplusplus
}
#endif

#endif
