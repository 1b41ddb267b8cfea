/* Coordination of the tasks of a cluster: their states, key-values, locks, barriers,
 * preemption.
 *
 * One task hosts the service (option service_hosts; usually the chief). Every node has an
 * agent, which registers with the service as soon as the node runs, and retries until it
 * succeeds; all calls here go through the agent. When the host is lost, the agent repeats
 * every unanswered request at another host, or at the same one once it is back; a
 * repeated change is applied once. A host that lost its store (store "memory") has lost
 * keys and barriers: agents whose program had used any are then in error (-MU_EABORTED)
 * until they are reset.
 *
 * Any thread; calls that wait not on a loop's thread. Timeouts in milliseconds; negative:
 * no timeout. Errors of all calls: -MU_EDEADLINE (names what is missing, and since when),
 * -MU_ECLOSED, -MU_EINVALID (arguments), -MU_EPRECONDITION (this task is not registered),
 * and in MU_AGENT_ERROR the agent's error.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_COORDINATION_H
#define MUSTER_COORDINATION_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tasks ---- */

/* States of a node's agent. */
enum mu_agent_state {
    MU_AGENT_UNINITIALIZED, /* the node has no service: service_hosts is "none" */
    MU_AGENT_DISCONNECTED,  /* not registered: no host is reachable yet, or the task has
                               left or was reset */
    MU_AGENT_CONNECTED,
    MU_AGENT_ERROR /* every call fails with the agent's error, until a reset */
};

/* The agent's state (enum mu_agent_state), and in ret_error (may be NULL) the error of
 * MU_AGENT_ERROR. Does not wait. */
MU_EXPORT int mu_agent_state(mu_node *node, mu_error *ret_error);

/* This node's view of the service, without waiting: a map with task (of the leading
 * host; "": none leads), epoch (grows with each new leader), store (the store's random
 * number, hexadecimal), and registered. The caller frees *ret_service. */
MU_EXPORT int mu_agent_service(mu_node *node, mu_error *ret_error,
                               mu_value **ret_service);

/* Wait until this task is registered; after mu_agent_leave or mu_agent_reset, register
 * again. `barrier` 1: until every task of the coordinated jobs is registered;
 * -MU_EDEADLINE then names the missing ones. -MU_EABORTED: a task of this name with
 * another incarnation is registered, or this one is in error. */
MU_EXPORT int mu_agent_register(mu_node *node, int barrier, int64_t timeout_ms,
                                mu_error *ret_error);

/* Set the function that is called on the loop's thread when the agent enters
 * MU_AGENT_ERROR: a task that is not recoverable failed (`error->task`), or this task
 * did. It must not block. A node has one; NULL removes it. */
typedef void (*mu_agent_error_fn)(void *user, const mu_error *error);
MU_EXPORT int mu_agent_on_error(mu_node *node, mu_agent_error_fn on_error, void *user);

/* Report that this task has failed, with `code` (negative) and `message`: it enters
 * MU_AGENT_ERROR, barriers that need it fail with this error, and unless its job is
 * recoverable, all other tasks enter MU_AGENT_ERROR, too. -MU_EPRECONDITION when it is
 * not connected. */
MU_EXPORT int mu_agent_report_error(mu_node *node, int code, const char *message,
                                    int64_t timeout_ms, mu_error *ret_error);

/* Put this node's agent into MU_AGENT_ERROR with this error, without reporting it. */
MU_EXPORT int mu_agent_set_error(mu_node *node, int code, const char *message);

/* Go from MU_AGENT_ERROR to MU_AGENT_DISCONNECTED; barriers that wait for this task fail.
 * Works without a host, too. -MU_EPRECONDITION when the agent is not in error. */
MU_EXPORT int mu_agent_reset(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* Leave the service: other tasks are no longer affected when this one fails or ends. With
 * option leave_ms tasks that are not recoverable wait for each other here; after leave_ms
 * -MU_EINTERNAL names those that did not call. -MU_EPRECONDITION with the agent's error
 * when it is in error. Also after these errors, and after -MU_EDEADLINE, the task has
 * left. -MU_EPRECONDITION when it had left before. A node that is closed leaves by
 * itself. */
MU_EXPORT int mu_agent_leave(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* Report that the program makes progress: with option stuck_ms, a task that does not call
 * this for that long has failed, although its node runs. Increments an atomic counter. */
MU_EXPORT void mu_agent_progress(mu_node *node);

/* One range of a set of tasks: "worker:0-3" in "worker:0-3,ps:0". */
typedef struct mu_task_range {
    char type[16];
    int first;
    int last;
} mu_task_range;

/* The i-th range of a set of tasks, by type (alphabetically), then index; ranges neither
 * overlap nor touch. -MU_ENOTFOUND past the end; -MU_EINVALID and -MU_ERANGE: the text is
 * no set of tasks. */
MU_EXPORT int mu_tasks_range_at(const char *tasks, size_t i, mu_error *ret_error,
                                mu_task_range *ret_range);

/* The states of tasks, as a list of maps: task, type, index, state ("connected",
 * "suspect", "disconnected", "error"), incarnation (text, hexadecimal), heard_ms ago,
 * since_ms ago, coordinated, recoverable, progress, error (a map: code, name, message,
 * task). `tasks` is a set ("worker:0-3,ps:0"); NULL: all. A task that is not known gives
 * -MU_ENOTFOUND. The caller frees *ret_tasks. */
MU_EXPORT int mu_tasks_states(mu_node *node, const char *tasks, int64_t timeout_ms,
                              mu_error *ret_error, mu_value **ret_tasks);

/* The same, once all of them are connected; each map also has `devices` (see
 * mu_tasks_devices). Sorted by type and index. */
MU_EXPORT int mu_tasks_wait(mu_node *node, const char *tasks, int64_t timeout_ms,
                            mu_error *ret_error, mu_value **ret_tasks);

/* The same, once a state has changed since `version`, which an earlier call returned in
 * *ret_version (0: at once). */
MU_EXPORT int mu_tasks_watch(mu_node *node, const char *tasks, uint64_t version,
                             int64_t timeout_ms, mu_error *ret_error,
                             uint64_t *ret_version, mu_value **ret_tasks);

/* The devices of the connected tasks: a list of maps: task, host, cores, memory_bytes,
 * gpus and tpus (lists of maps: name, memory_bytes; 0: not known). A TPU chip is listed
 * once for each device that a program sees: twice for v2, v3 and 7x. */
MU_EXPORT int mu_tasks_devices(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                               mu_value **ret_devices);

/* Report that another task has failed (`task` is "worker:1"), with the same consequences
 * as when it calls mu_agent_report_error itself. The error names the failed task, and its
 * message the reporting one. -MU_ENOTFOUND: the service does not know it,
 * -MU_EPRECONDITION: it is not connected. */
MU_EXPORT int mu_tasks_report_error(mu_node *node, const char *task, int code,
                                    const char *message, int64_t timeout_ms,
                                    mu_error *ret_error);

/* Reset another task that is in error: its waiting calls fail with -MU_EABORTED, and it
 * registers again by itself; if its process has ended, a new process of the task may
 * register. -MU_ENOTFOUND: the service does not know it, -MU_EPRECONDITION: it is not in
 * error. */
MU_EXPORT int mu_tasks_reset(mu_node *node, const char *task, int64_t timeout_ms,
                             mu_error *ret_error);

/* Agree on which of `tasks` are alive: called by each member of the set, with the same
 * set. All get the same list (maps: task, incarnation) once each one has called or is not
 * connected. -MU_EINVALID when this task is not in the set. */
MU_EXPORT int mu_tasks_alive(mu_node *node, const char *tasks, int64_t timeout_ms,
                             mu_error *ret_error, mu_value **ret_alive);

/* ---- Key-values ----
 *
 * A key is a path: outer and repeated slashes are dropped, "/a//b/" is "a/b"; at most
 * 1,023 bytes. A value is at most 1 MiB of bytes, the store at most a million keys and 1
 * GiB (-MU_EEXHAUSTED). All operations are linearizable. Keys below "_muster" are the
 * service's own (-MU_EPERMISSION). */

enum mu_kv_flag {
    MU_KV_OVERWRITE = 1, /* replace an existing key; without it -MU_EEXISTS */
    MU_KV_COMPARE = 2,   /* only if the key has the given revision (0: the key is
                            absent); else -MU_EPRECONDITION */
    MU_KV_LEASE = 4      /* a lease: the key is deleted when this task ends or
                            leaves */
};

/* The value of a key; freed with mu_kv_item_clear. */
typedef struct mu_kv_item {
    char *value; /* followed by a zero byte that size does not count */
    size_t size;
    uint64_t revision; /* of the change that set the value */
} mu_kv_item;

/* Free the content of an item. */
MU_EXPORT void mu_kv_item_clear(mu_kv_item *item);

/* Set a key. `flags`: enum mu_kv_flag; `revision` is used with MU_KV_COMPARE.
 * ret_revision may be NULL. */
MU_EXPORT int mu_kv_put(mu_node *node, const char *key, const void *value, size_t size,
                        unsigned flags, uint64_t revision, int64_t timeout_ms,
                        mu_error *ret_error, uint64_t *ret_revision);

/* Read a key, waiting until it exists. */
MU_EXPORT int mu_kv_get(mu_node *node, const char *key, int64_t timeout_ms,
                        mu_error *ret_error, mu_kv_item *ret_item);

/* Read a key as it is now; -MU_ENOTFOUND when it is absent. */
MU_EXPORT int mu_kv_try_get(mu_node *node, const char *key, int64_t timeout_ms,
                            mu_error *ret_error, mu_kv_item *ret_item);

/* Add to a key whose value is a decimal 64 bit number; an absent key counts as 0.
 * -MU_EPRECONDITION when it is not a number, -MU_ERANGE when the sum is too large. */
MU_EXPORT int mu_kv_increment(mu_node *node, const char *key, int64_t by,
                              int64_t timeout_ms, mu_error *ret_error,
                              int64_t *ret_number);

/* Delete the key and all keys below it; there may be none. ret_count (may be NULL)
 * receives how many. */
MU_EXPORT int mu_kv_delete(mu_node *node, const char *key, int64_t timeout_ms,
                           mu_error *ret_error, uint64_t *ret_count);

/* List all keys below a key ("": all), in order: a list of maps: key, value (bytes),
 * revision. Large directories are read in pages; only each page is a consistent
 * snapshot. */
MU_EXPORT int mu_kv_list(mu_node *node, const char *directory, int64_t timeout_ms,
                         mu_error *ret_error, mu_value **ret_items);

/* The same calls without waiting. `operation` selects the call; `done` gets the response,
 * on the loop's thread, exactly once. It must not block, and may begin further requests.
 * Key and value are copied. */
enum mu_kv_operation {
    MU_KV_PUT,
    MU_KV_GET, /* waits until the key exists */
    MU_KV_TRY_GET,
    MU_KV_INCREMENT,
    MU_KV_DELETE
};

typedef struct mu_kv_request {
    int operation;
    unsigned flags;
    const char *key;
    const void *value;
    size_t size;
    uint64_t revision;
    int64_t by;
    int64_t timeout_ms;
} mu_kv_request;

typedef struct mu_kv_response {
    int code;              /* 0, or negative with `error` set */
    const mu_error *error; /* valid during the callback, as is `value` */
    const char *value;
    size_t size;
    uint64_t revision;
    int64_t number; /* INCREMENT: the sum; DELETE: number of deleted keys */
} mu_kv_response;

typedef void (*mu_kv_done_fn)(void *user, const mu_kv_response *response);

/* Begin a request. ret_request_id (may be NULL) receives its id for mu_kv_cancel, which
 * is ignored once the response has come. At most 65536 requests may be outstanding, with
 * 256 MiB of values together (values of up to 1 KiB do not count); then -MU_EAGAIN. Any
 * thread, also a loop's. */
MU_EXPORT int mu_kv_request_async(mu_node *node, const mu_kv_request *request,
                                  mu_kv_done_fn done, void *user,
                                  uint64_t *ret_request_id);

/* Cancel a request: its response is -MU_ECANCELLED, unless it had one before. A change
 * may have been applied all the same. */
MU_EXPORT int mu_kv_cancel(mu_node *node, uint64_t request);

/* ---- Transactions ----
 *
 * Changes of several keys that are applied atomically, if all comparisons hold. As with
 * the other calls, a transaction is applied once even if the agent repeats the request.
 * At most MU_KV_TRANSACTION_MAX comparisons and as many changes, and
 * MU_KV_TRANSACTION_BYTES_MAX of keys and values together (-MU_EEXHAUSTED). */
#define MU_KV_TRANSACTION_MAX 128
#define MU_KV_TRANSACTION_BYTES_MAX (2 * 1024 * 1024)

enum mu_kv_check_type {
    MU_KV_IF_REVISION, /* the key's revision is `revision`; 0: it is absent */
    MU_KV_IF_ABSENT,
    MU_KV_IF_PRESENT,
    MU_KV_IF_VALUE /* it has exactly the bytes of `value` */
};

typedef struct mu_kv_check {
    int type;
    const char *key;
    uint64_t revision;
    const void *value;
    size_t size;
} mu_kv_check;

/* MU_KV_PUT overwrites, and may have the flag MU_KV_LEASE. MU_KV_INCREMENT adds `by`.
 * MU_KV_DELETE deletes the key and all keys below it, if any. A transaction may change a
 * key once, and no key below one that it deletes (-MU_EINVALID). */
typedef struct mu_kv_change {
    int operation;
    unsigned flags;
    const char *key;
    const void *value;
    size_t size;
    int64_t by;
} mu_kv_change;

typedef struct mu_kv_transaction {
    const mu_kv_check *checks;
    size_t checks_count;
    const mu_kv_change *changes; /* none: comparisons only */
    size_t changes_count;
} mu_kv_transaction;

typedef struct mu_kv_transaction_result {
    uint64_t revision; /* the store's revision after the transaction */
    int64_t number;    /* the sum of its first increment */
    int failed;        /* with -MU_EPRECONDITION the index of the comparison that did
                          not hold; -1: none, see the error's message */
} mu_kv_transaction_result;

/* Apply a transaction. ret_result may be NULL. -MU_EPRECONDITION: a comparison does not
 * hold, or a key to be incremented is not a number; -MU_ERANGE: the sum is too large.
 * Then nothing was changed. */
MU_EXPORT int mu_kv_transact(mu_node *node, const mu_kv_transaction *transaction,
                             int64_t timeout_ms, mu_error *ret_error,
                             mu_kv_transaction_result *ret_result);

/* The same without waiting, like mu_kv_request_async and within its bounds. The response
 * has revision and number; with -MU_EPRECONDITION, number is
 * mu_kv_transaction_result.failed + 1. */
MU_EXPORT int mu_kv_transact_async(mu_node *node, const mu_kv_transaction *transaction,
                                   int64_t timeout_ms, mu_kv_done_fn done, void *user,
                                   mu_error *ret_error, uint64_t *ret_request_id);

/* A watch reports all changes of a key, or of the keys below it. The existing keys come
 * first, then MU_KV_EVENT_SYNCED once. Unread changes of one key are merged: only its
 * last state is reported. */
typedef struct mu_kv_watch mu_kv_watch;

enum mu_kv_event_type { MU_KV_EVENT_PUT, MU_KV_EVENT_DELETED, MU_KV_EVENT_SYNCED };

typedef struct mu_kv_event {
    int type;
    char *key;       /* NULL for MU_KV_EVENT_SYNCED; freed with mu_kv_event_clear */
    mu_kv_item item; /* MU_KV_EVENT_PUT */
} mu_kv_event;

/* Free the content of an event. */
MU_EXPORT void mu_kv_event_clear(mu_kv_event *event);

/* Open a watch of a key; `below` 1: of all keys below it. */
MU_EXPORT int mu_kv_watch_open(mu_node *node, const char *key, int below,
                               int64_t timeout_ms, mu_error *ret_error,
                               mu_kv_watch **ret_watch);

/* Wait for the next event. -MU_EEXHAUSTED: more than 65,536 changed keys were not read;
 * the watch then starts again with the existing keys. */
MU_EXPORT int mu_kv_watch_next(mu_kv_watch *watch, int64_t timeout_ms,
                               mu_error *ret_error, mu_kv_event *ret_event);

/* Close and free a watch, before or after its node is closed. NULL is fine. */
MU_EXPORT void mu_kv_watch_close(mu_kv_watch *watch);

/* ---- Locks ----
 *
 * A lock has one holder at a time; waiting callers get it in the order of their calls.
 * Holder and waiting callers each have a key below MU_LOCK_DIRECTORY and the lock's name,
 * the oldest of which is the holder's. The key is a lease: it is deleted when its task
 * ends, leaves or is lost, and only the next caller is woken.
 *
 * A holder that is suspended or disconnected may have lost the lock without knowing it
 * yet. To exclude a second writer strictly, use the lock's fencing token, which is larger
 * for each later holder (as long as the store keeps its content): the storage that is
 * written to compares it, or a transaction checks MU_KV_IF_REVISION of mu_lock_key. */
#define MU_LOCK_DIRECTORY "lock"

typedef struct mu_lock mu_lock;

/* Wait until this caller holds the lock. `name` is a key. Threads of a process compete
 * with each other as processes do, and the lock is not recursive: acquiring it again
 * waits for ever. -MU_EDEADLINE names the holder, and the number of callers that wait
 * before this one; so does the log during a long wait. */
MU_EXPORT int mu_lock_acquire(mu_node *node, const char *name, int64_t timeout_ms,
                              mu_error *ret_error, mu_lock **ret_lock);

/* The lock's fencing token, and its key, which has that revision while the lock is held.
 * The text is valid until the lock is released. */
MU_EXPORT uint64_t mu_lock_fencing_token(const mu_lock *lock);
MU_EXPORT const char *mu_lock_key(const mu_lock *lock);

/* Wait until the lock is lost: then 0. -MU_EDEADLINE: it is still held. One thread at a
 * time, and not during mu_lock_release. */
MU_EXPORT int mu_lock_wait_lost(mu_lock *lock, int64_t timeout_ms, mu_error *ret_error);

/* Release the lock, and free the handle in any case. -MU_EABORTED: it was lost before.
 * After -MU_EDEADLINE it is released as soon as the service is reached. NULL is fine. */
MU_EXPORT int mu_lock_release(mu_lock *lock, int64_t timeout_ms, mu_error *ret_error);

/* ---- Barriers ---- */

typedef struct mu_barrier_options {
    size_t size;        /* set by mu_barrier_options_init */
    const char *tasks;  /* a set of tasks; NULL: all of the coordinated jobs */
    unsigned threads;   /* of this process that must call, each with the same number,
                           before the process counts as arrived; default 1 */
    int64_t timeout_ms; /* of the barrier; that of the first to arrive counts.
                           Default: none */
} mu_barrier_options;

/* Fill in the defaults. */
MU_EXPORT void mu_barrier_options_init_sized(mu_barrier_options *options, size_t size);
#define mu_barrier_options_init(options) \
    mu_barrier_options_init_sized(options, sizeof(mu_barrier_options))

/* Wait until all participants have arrived. A name can be used repeatedly; each time is
 * one generation, and all participants pass the generations in the same order. The
 * service remembers a name for a minute after its last use, and 65,536 names at most; a
 * further one gets -MU_EEXHAUSTED. So reuse names rather than number them.
 *
 * A process that was restarted, and comes to a name that was used once, gets its result;
 * to one that was used more often, it joins the generation that runs. If the host was
 * restarted, too, with a store that lasts, and nobody is left who passed then, it gets
 * that success once all have come again; or when it shows that they will not: they wait
 * elsewhere, have left, or do not come within five minutes; or after its timeout.
 *
 * All participants get the same result, except one whose timeout passes while no host is
 * reachable: it alone gets -MU_EDEADLINE, and the message says so. Errors: -MU_EDEADLINE
 * says how many of how many arrived, which tasks are missing, and when each last sent
 * anything; -MU_EINTERNAL: a participant that is not recoverable was lost, left, or was
 * reset; a participant's own error, with its task, when it reported one; -MU_ECANCELLED;
 * -MU_EINVALID: callers name different participants, unknown ones, or not this task, or
 * more than `threads` threads called; -MU_EPRECONDITION: this node is at this barrier
 * already. */
MU_EXPORT int mu_barrier_wait(mu_node *node, const char *name,
                              const mu_barrier_options *options, mu_error *ret_error);

/* The same without waiting: `done` is called on the loop's thread, once. */
typedef void (*mu_barrier_done_fn)(void *user, int code, const mu_error *error);
MU_EXPORT int mu_barrier_wait_async(mu_node *node, const char *name,
                                    const mu_barrier_options *options,
                                    mu_barrier_done_fn done, void *user);

/* Cancel the barrier at which this node waits: all participants get -MU_ECANCELLED.
 * -MU_EPRECONDITION when this node does not wait there, or all have passed. */
MU_EXPORT int mu_barrier_cancel(mu_node *node, const char *name, int64_t timeout_ms,
                                mu_error *ret_error);

/* ---- Preemption ---- */

/* Announce that this task, or its machine, will be terminated in `grace_ms`: all tasks
 * then agree on a step to stop at, one more than the largest that any of them has
 * reached. Returns once all tasks know it. When the grace period is longer than
 * MU_PREEMPTION_EARLY_MS it returns at once, and they agree that long before its end.
 * Putting the key RECEIVED_PREEMPTION_NOTICE does the same. -MU_EDEADLINE names the tasks
 * that have not answered; the others agree later all the same. -MU_EINVALID: a negative
 * grace. */
#define MU_PREEMPTION_EARLY_MS (15 * 60 * 1000)

MU_EXPORT int mu_preemption_notify(mu_node *node, const char *reason, int64_t grace_ms,
                                   int64_t timeout_ms, mu_error *ret_error);

/* Report that the program has reached `step`; steps must ascend. *ret_stop is 1 exactly
 * when that is the step to stop at, the same for all tasks. Waits while the tasks agree.
 * Takes a few nanoseconds as long as there is no notice. */
MU_EXPORT int mu_preemption_reached(mu_node *node, uint64_t step, mu_error *ret_error,
                                    int *ret_stop);

typedef struct mu_preemption {
    uint64_t round; /* number of preemptions so far; 0: none */
    char task[64];  /* the task that will be terminated */
    char reason[512];
    int64_t left_ms; /* rest of the grace period */
    uint64_t step;   /* to stop at; valid when `agreed` */
    int agreed;
} mu_preemption;

/* Wait for a preemption after number `round`: for its notice, or with `agreed` 1 until
 * its step is agreed. For tasks without steps of their own, such as parameter servers. */
MU_EXPORT int mu_preemption_wait(mu_node *node, uint64_t round, int agreed,
                                 int64_t timeout_ms, mu_error *ret_error,
                                 mu_preemption *ret_preemption);

#ifdef __cplusplus
}
#endif

#endif
