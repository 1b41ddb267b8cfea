/* The coordinator: schedules functions on the cluster's workers and tells what became of
 * them. It works on the chief, and on any other task through the chief.
 *
 * On a loop's thread, what has to wait for an answer returns -MU_EPRECONDITION: to fetch
 * what is not there yet, or is kept by a worker; to join, explain, drain or forget;
 * to open a per-worker value. Scheduling with limit 0, mu_remote_value_cancel,
 * mu_coordinator_take_errors, references, and letting go of anything never wait.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_COORDINATOR_H
#define MUSTER_COORDINATOR_H

#include "node.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_coordinator mu_coordinator;

/* The future of a closure. Counted; any thread. */
typedef struct mu_remote_value mu_remote_value;

enum mu_remote_value_state {
    MU_REMOTE_NOT_READY,
    MU_REMOTE_ABORTED,  /* lost with the chief, or thrown away after another's error */
    MU_REMOTE_READY     /* a result or an error */
};

/* Take the node's coordinator; one for each node (-MU_EEXISTS). Waits until the chief is
 * reached; at the limit the error names it. On a loop's thread only with limit 0, which
 * does not wait: what is scheduled before the chief is reached ends with
 * -MU_EUNAVAILABLE. */
MU_EXPORT int mu_coordinator_open(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                                  mu_coordinator **ret_coordinator);

/* Wait until the chief is connected: it may be away for a while, and what it had was
 * aborted then (MU_ERROR_CHIEF). 0 at once when it is there; at the limit -MU_EDEADLINE,
 * which names it. */
MU_EXPORT int mu_coordinator_wait_for_chief(mu_coordinator *coordinator,
                                            int64_t timeout_ms, mu_error *ret_error);

/* Let go of the coordinator, before or after its node is closed. Closures still under way
 * are cancelled, and waited for, five seconds at most; on a loop's thread nothing is
 * waited for. Calls of other threads that wait for it return -MU_ECLOSED; they must have
 * returned before. NULL is fine. */
MU_EXPORT void mu_coordinator_close(mu_coordinator *coordinator);

/* Queue a closure: `function` with `args` (NULL: nil), to run at least once on any
 * worker. Returns at once, unless `queue_max` closures are scheduled and not resolved, or
 * `queue_bytes_max` bytes of their arguments (one that is larger goes when it is alone):
 * then it waits for room, behind the threads that wait already, at most `timeout_ms`
 * (-MU_EDEADLINE, as join's; with limit 0 -MU_EAGAIN), and nothing was queued. A chief
 * that is full fails nothing: what it has no room for waits at its client. The first
 * error of an earlier closure is returned here, by join or by done, once, after
 * everything queued was cancelled and nothing is in flight; then too nothing was queued,
 * and the coordinator is usable again.
 *
 * `ret_value` NULL says that nobody wants the result. Otherwise the caller frees it; it
 * is NULL when nothing was queued.
 * `args` stays the caller's. On a loop's thread only with limit 0: there an error is
 * returned once the rest was cancelled, and -MU_EAGAIN before. */
MU_EXPORT int mu_coordinator_schedule(mu_coordinator *coordinator, const char *function,
                                      const mu_value *args, int64_t timeout_ms,
                                      mu_error *ret_error, mu_remote_value **ret_value);

/* ---- More about one closure ---- */

enum mu_closure_flag {
    MU_CLOSURE_EFFECT_ONCE = 1, /* what its run writes with mu_run_add() and its like is
                                   applied once, however often the closure is run */
    MU_CLOSURE_PIN_RESULT = 2,  /* the result stays on the worker until it is fetched or
                                   used; computed again when that worker is lost. Of a
                                   closure with a name it goes to the journal instead, if
                                   there is one */
    MU_CLOSURE_NO_BACKUP = 4,   /* never run twice at the same time as a straggler */
    MU_CLOSURE_RAISE_ON_FETCH = 16  /* only fetching its value raises its error: no other
                                   call does, mu_coordinator_take_errors does not have
                                   it, and nothing is cancelled for it. To schedule one
                                   raises no error of other closures: while the rest is
                                   being cancelled for one, it is cancelled, too */
};

enum mu_priority {
    MU_PRIORITY_HIGHEST = 0,
    MU_PRIORITY_DEFAULT = 4,
    MU_PRIORITY_LOWEST = 7
};

typedef struct mu_closure_options {
    const char *name;       /* for logs, `muster explain` and the journal: at most 127
                               bytes; NULL: none. With a journal, a name that has finished
                               is not run again, and one that is under way is joined.
                               After a restart of the chief it is run, even if nobody
                               schedules it again, unless its arguments refer to what
                               workers keep */
    unsigned flags;         /* enum mu_closure_flag */
    int priority;           /* enum mu_priority: a lower one runs first */
    int64_t deadline_ms;    /* from now until it is resolved, or it ends with
                               -MU_EDEADLINE; 0: none */
    int64_t run_timeout_ms;   /* of one run, from when a worker is given it: a longer one
                               counts as stuck, and the closure runs elsewhere; 0:
                               none */
    unsigned attempts_max;  /* runs before it is given up; 0: the cluster's */
    int worker;             /* run on this worker (task index) only; -1: on any */
    int not_worker;         /* never on this one; -1 */
    unsigned size;          /* mu_closure_options_init's. Zeroed memory stands for the
                               defaults: as long as this is 0, a priority of 0 is the
                               usual one, and a worker of 0 none at all */
    const char *worker_type; /* run on tasks of this type only, one of the chief's
                               worker_types (node.h): with another one the closure ends
                               with -MU_EINVALID. `worker` and `not_worker` are indices
                               of this type; without it, of type "worker". NULL, the
                               default: on any task that runs closures */
    void (*on_ready)(mu_remote_value *value, void *user);
                            /* as mu_remote_value_on_ready(), without a message of its
                               own; only when the value is wanted. Always on the node's
                               loop thread, and maybe before the call that schedules it
                               returns; never when that fails. NULL: none */
    void *user;             /* for on_ready */
} mu_closure_options;

/* Fill in the defaults. Needed to name worker 0, or the highest priority. */
MU_EXPORT void mu_closure_options_init(mu_closure_options *options);

/* mu_coordinator_schedule with options (NULL: the defaults). */
MU_EXPORT int mu_coordinator_schedule_with(mu_coordinator *coordinator,
                                           const char *function, const mu_value *args,
                                           const mu_closure_options *options,
                                           int64_t timeout_ms, mu_error *ret_error,
                                           mu_remote_value **ret_value);

/* Cancel the closure of a value, and do not wait for that: it ends at once while it is
 * queued; a run that is under way is asked to stop (mu_run_cancelled), and its result is
 * not looked at. Resolved with -MU_ECANCELLED, which is no error of the coordinator.
 * Nothing when it is resolved. -MU_ECLOSED when the node is closed. */
MU_EXPORT int mu_remote_value_cancel(mu_remote_value *value);

/* A reference to a remote value, to be put among the arguments of a later closure, at any
 * depth; the arguments of one closure may refer to 1,024 values. That closure runs once
 * the value is ready, and gets the value in its place. When the value is an error, or was
 * aborted, the closure ends with an input error (MU_ERROR_INPUT). The caller frees the
 * reference like any value. */
MU_EXPORT mu_value *mu_value_remote(mu_remote_value *value);

/* ---- Per-worker values ---- */

/* One value for each worker: a closure that has a reference to it among its arguments
 * gets the one of the worker that it runs on. */
typedef struct mu_per_worker mu_per_worker;

/* `function` runs once on each worker that there is or will be, and again on one that
 * comes back, before that worker gets closures. What it returns, or keeps with
 * mu_run_return_object (an iterator over a dataset, say), stays on the worker. An
 * error of it is the input error of the closures that use the value there. So is
 * -MU_EABORTED on a worker that was lost while it ran, once `attempts_max` of all workers
 * were: there it is not tried again until the program opens another one. While it takes
 * long, closures that do not use the value run on the worker's other threads. Returns at
 * once but for the question to the chief. */
MU_EXPORT int mu_per_worker_open(mu_coordinator *coordinator, const char *function,
                                 const mu_value *args, int64_t timeout_ms,
                                 mu_error *ret_error, mu_per_worker **ret_per_worker);

/* From values that are there: item i of the list is for the worker of index i; on one
 * without an item a closure that uses it ends with an input error. Where tasks of other
 * types run closures, too: a map with such a list for each type, {"gpu": [...]}. */
MU_EXPORT int mu_per_worker_open_values(mu_coordinator *coordinator,
                                        const mu_value *values, int64_t timeout_ms,
                                        mu_error *ret_error,
                                        mu_per_worker **ret_per_worker);

/* For the arguments of closures. The caller frees it. */
MU_EXPORT mu_value *mu_value_per_worker(mu_per_worker *per_worker);

/* Let go of it, once no closure that uses it is under way. NULL is fine. */
MU_EXPORT void mu_per_worker_close(mu_per_worker *per_worker);

/* ---- Errors, and what else is to be known ---- */

/* All errors since the last call, the oldest first: the one that was raised, and all that
 * came while the rest was being cancelled. At most 1,024 are kept, the oldest ones;
 * ret_lost (may be NULL) says how many came on top of that. Fills in up to `max` and
 * takes those out; returns how many. */
MU_EXPORT size_t mu_coordinator_take_errors(mu_coordinator *coordinator, mu_error *errors,
                                       size_t max, uint64_t *ret_lost);

/* Why a closure has not run: a map with its state, attempts, where it is, what it waits
 * for, as mu_node_explain gives it. By the value, or (value NULL) by name. */
MU_EXPORT int mu_coordinator_explain(mu_coordinator *coordinator,
                                     const mu_remote_value *value, const char *name,
                                     int64_t timeout_ms, mu_error *ret_error,
                                     mu_value **ret_reasons);

/* Let a worker finish what it has, then leave; its task ends with exit code 0. Returns
 * when it has left; -MU_ENOTFOUND when there is no such worker; at the limit
 * -MU_EDEADLINE, and it leaves all the same. A worker that comes back under that index is
 * welcome. At the limit the chief is asked whether it is there, for two seconds at
 * most. */
MU_EXPORT int mu_coordinator_drain(mu_coordinator *coordinator, int worker,
                                   int64_t timeout_ms, mu_error *ret_error);

/* The same of a task of any type that runs closures (node.h, worker_types). */
MU_EXPORT int mu_coordinator_drain_task(mu_coordinator *coordinator, const char *type,
                                        int index, int64_t timeout_ms,
                                        mu_error *ret_error);

/* The journal forgets the named closures that have finished: what they did was saved. */
MU_EXPORT int mu_coordinator_forget(mu_coordinator *coordinator, int64_t timeout_ms,
                                    mu_error *ret_error);

/* Wait until every closure scheduled so far is resolved. Returns the first error, as
 * above; of several threads that wait for the same closures each gets it. At the limit
 * -MU_EDEADLINE: the message tells what is in flight where, or that an error is still to
 * be raised; the chief is asked for that, for two seconds at most. */
MU_EXPORT int mu_coordinator_join(mu_coordinator *coordinator, int64_t timeout_ms,
                                  mu_error *ret_error);

/* Whether nothing is queued or in flight. Waits for closures only to raise an error, as
 * above, and then for a minute at most (-MU_EDEADLINE). */
MU_EXPORT int mu_coordinator_done(mu_coordinator *coordinator, mu_error *ret_error,
                                  int *ret_done);

/* Counts of this coordinator since it was opened. scheduled = finished + failed +
 * cancelled + outstanding, always: a closure that is in none of them would be lost. */
typedef struct mu_coordinator_stats {
    uint64_t scheduled;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t outstanding;   /* queued or in flight */
    uint64_t retried;       /* attempts beyond each closure's first */
} mu_coordinator_stats;

MU_EXPORT void mu_coordinator_get_stats(mu_coordinator *coordinator,
                                    mu_coordinator_stats *ret_counts);

/* Wait for the result. 0 with *ret_result (the caller frees it; NULL: only wait, and
 * leave what a worker keeps there); the closure's own error; -MU_ECANCELLED when the
 * value was aborted; -MU_EDEADLINE, telling where the closure is: the chief is asked for
 * that, for two seconds at most. */
MU_EXPORT int mu_remote_value_fetch(mu_remote_value *value, int64_t timeout_ms,
                                    mu_error *ret_error, mu_value **ret_result);

/* Many at once: `results` (may be NULL) has `count` places. The first error there is, in
 * the order of `values`, is returned; results of others are filled in all the same, NULL
 * for those that have none. */
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
 * aborted; at once, on this thread, when that is so already. Must not block; may
 * schedule with limit 0. The value is held until then. -MU_ECLOSED when the node is
 * closed. */
MU_EXPORT int mu_remote_value_on_ready(mu_remote_value *value,
                                     void (*notify)(mu_remote_value *value, void *user),
                                     void *user);

/* Drop the caller's hold; the closure runs on. NULL is fine. */
MU_EXPORT void mu_remote_value_free(mu_remote_value *value);

#ifdef __cplusplus
}
#endif

#endif
