/* Coordination of the tasks of a cluster: who is there, key-values, barriers, preemption.
 *
 * One task hosts the service (option service_hosts; usually the chief). Every node has an
 * agent, which registers with it by itself as soon as the node runs and keeps trying; all
 * calls here go to the agent. When the host is lost, the agent asks another host, or the
 * same one once it is back, everything that was not answered again; what changes
 * something is applied once all the same. A host whose store was lost with it
 * (store "memory") has forgotten keys and barriers: the agent of a program that had used
 * any is then in error (-MU_EABORTED) until it is reset.
 *
 * Any thread, but none of the calls that wait on a loop's thread. Limits in milliseconds,
 * negative: none. Errors of all calls: -MU_EDEADLINE (says what is missing, and since
 * when), -MU_ECLOSED, -MU_EINVALID (arguments), -MU_EPRECONDITION (this task is not
 * registered), and in error state that error.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_COORDINATION_H
#define MUSTER_COORDINATION_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tasks ---- */

/* States of the agent of this node. */
enum mu_agent_state {
    MU_AGENT_UNINITIALIZED, /* the node has no service: no task may host one */
    MU_AGENT_DISCONNECTED,  /* not registered: the host is not there yet, or the task has
                               left or was reset */
    MU_AGENT_CONNECTED,
    MU_AGENT_ERROR          /* every call fails with that error, until a reset */
};

/* The state, and in ret_error (may be NULL) the error of MU_AGENT_ERROR. At once. */
MU_EXPORT int mu_agent_state(mu_node *node, mu_error *ret_error);

/* What this node knows of the service, at once: a map with task (of the host that it
 * follows; "": none leads), and then epoch (ascends with each host that leads), store
 * (the number of its content, hexadecimal), and registered. The caller frees
 * *ret_service. */
MU_EXPORT int mu_agent_service(mu_node *node, mu_error *ret_error,
                               mu_value **ret_service);

/* Wait until this task is registered; after mu_agent_leave or mu_agent_reset, register
 * again. `barrier` 1: until every task of the coordinated jobs is; a limit without which
 * names those missing. -MU_EABORTED: a task of this name with another incarnation is
 * registered, or this one is in error. */
MU_EXPORT int mu_agent_register(mu_node *node, int barrier, int64_t timeout_ms,
                                mu_error *ret_error);

/* Called on the loop's thread when the agent goes into MU_AGENT_ERROR: another task
 * failed that is not recoverable (`error->task`), or this one did. One for each node;
 * NULL takes it away. Must not block. */
typedef void (*mu_agent_error_fn)(void *user, const mu_error *error);
MU_EXPORT int mu_agent_on_error(mu_node *node, mu_agent_error_fn on_error, void *user);

/* This task has failed with `code` (negative) and words: it is in error, the barriers
 * that need it fail with this error, and unless its job is recoverable, so do all other
 * tasks. -MU_EPRECONDITION when it is not connected. */
MU_EXPORT int mu_agent_report_error(mu_node *node, int code, const char *message,
                                    int64_t timeout_ms, mu_error *ret_error);

/* Fail every call from now on with this error, here only: nobody is told. */
MU_EXPORT int mu_agent_set_error(mu_node *node, int code, const char *message);

/* From MU_AGENT_ERROR to MU_AGENT_DISCONNECTED; barriers that wait for this task fail.
 * Works without a host, too. -MU_EPRECONDITION when it is not in error. */
MU_EXPORT int mu_agent_reset(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* Leave: this task's failure and end mean nothing to others from now on. With option
 * leave_ms all tasks that are not recoverable leave together, or at its end with
 * -MU_EINTERNAL, naming those that did not come. -MU_EPRECONDITION in error, with that
 * error. After all of these, and -MU_EDEADLINE, it has left all the same.
 * -MU_EPRECONDITION, too, when it has left already. A node that is closed leaves by
 * itself. */
MU_EXPORT int mu_agent_leave(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* The program is alive and has got further: with option stuck_ms, a task that does not
 * say so for so long is in error, although its node lives. Cheap: an atomic count. */
MU_EXPORT void mu_agent_progress(mu_node *node);

/* A list of maps: task, type, index, state ("connected", "suspect", "disconnected",
 * "error"), incarnation (text, hexadecimal), heard_ms ago, since_ms ago, coordinated,
 * recoverable, progress, error (a map: code, name, message, task). `tasks` is a set
 * ("worker:0-3,ps:0"); NULL: all. A task that is not known gives -MU_ENOTFOUND. The
 * caller frees *ret_tasks. */
MU_EXPORT int mu_tasks_states(mu_node *node, const char *tasks, int64_t timeout_ms,
                              mu_error *ret_error, mu_value **ret_tasks);

/* The same, once all of them are connected; each with `devices`. Sorted by type,
 * index. */
MU_EXPORT int mu_tasks_wait(mu_node *node, const char *tasks, int64_t timeout_ms,
                            mu_error *ret_error, mu_value **ret_tasks);

/* The same as soon as their version is not `version` (0: at once): any change of a state
 * of one of them gives it the next one. */
MU_EXPORT int mu_tasks_watch(mu_node *node, const char *tasks, uint64_t version,
                             int64_t timeout_ms, mu_error *ret_error,
                             uint64_t *ret_version, mu_value **ret_tasks);

/* What the machines have: a list of maps: task, host, cores, memory_bytes, gpus and tpus
 * (lists of maps: name, memory_bytes; 0: not known), of the tasks that are connected. A
 * TPU's chip stands there once for each device that a program sees: twice for v2, v3
 * and 7x. */
MU_EXPORT int mu_tasks_devices(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                               mu_value **ret_devices);

/* Another task has failed (`task` is "worker:1"): it is in error as if it had called
 * mu_agent_report_error itself, and what follows from that does, too. Its error names it,
 * and in its words who has reported it. -MU_ENOTFOUND: the service does not know it,
 * -MU_EPRECONDITION: it is not connected. */
MU_EXPORT int mu_tasks_report_error(mu_node *node, const char *task, int code,
                                    const char *message, int64_t timeout_ms,
                                    mu_error *ret_error);

/* Another task, which is in error by its own failure or that of others, is not any more:
 * its calls that wait fail with -MU_EABORTED, it registers again by itself, and where it
 * is gone for good, one that is started in its place may. -MU_ENOTFOUND: the service does
 * not know it, -MU_EPRECONDITION: it is not in error. */
MU_EXPORT int mu_tasks_reset(mu_node *node, const char *task, int64_t timeout_ms,
                             mu_error *ret_error);

/* Which of `tasks` are alive: called by each member of the set, with the same set;
 * answers all of them with the same list (maps: task, incarnation) once each one has
 * called or is not connected. -MU_EINVALID when this task is not in the set. */
MU_EXPORT int mu_tasks_alive(mu_node *node, const char *tasks, int64_t timeout_ms,
                             mu_error *ret_error, mu_value **ret_alive);

/* ---- Key-values ----
 *
 * A key is a path: outer and repeated slashes are dropped, "/a//b/" is "a/b"; at most
 * 1,023 bytes. A value is at most 1 MiB of bytes, the store at most a million keys and
 * 1 GiB (-MU_EEXHAUSTED). All of it is linearizable. Keys below "_muster" are the
 * service's own (-MU_EPERMISSION). */

enum mu_kv_flag {
    MU_KV_OVERWRITE = 1,    /* without it a key that is there gives -MU_EEXISTS */
    MU_KV_COMPARE = 2,      /* only if the key's revision is the given one (0: the key is
                               not there); else -MU_EPRECONDITION */
    MU_KV_LEASE = 4         /* the key goes when this task ends, or leaves */
};

/* What a get brings; freed with mu_kv_item_clear. */
typedef struct mu_kv_item {
    char *value;            /* with a zero behind it that size does not count */
    size_t size;
    uint64_t revision;      /* of the change that made it so */
} mu_kv_item;

MU_EXPORT void mu_kv_item_clear(mu_kv_item *item);

/* ret_revision may be NULL. */
MU_EXPORT int mu_kv_put(mu_node *node, const char *key, const void *value, size_t size,
                        unsigned flags, uint64_t revision, int64_t timeout_ms,
                        mu_error *ret_error, uint64_t *ret_revision);

/* Wait until the key is there. */
MU_EXPORT int mu_kv_get(mu_node *node, const char *key, int64_t timeout_ms,
                        mu_error *ret_error, mu_kv_item *ret_item);

/* As it is now: -MU_ENOTFOUND when it is not there. */
MU_EXPORT int mu_kv_try_get(mu_node *node, const char *key, int64_t timeout_ms,
                            mu_error *ret_error, mu_kv_item *ret_item);

/* Add to a key whose value is a decimal number of 64 bits; one that is not there counts
 * as 0. -MU_EPRECONDITION when it is no number, -MU_ERANGE when the sum is too large. */
MU_EXPORT int mu_kv_increment(mu_node *node, const char *key, int64_t by,
                              int64_t timeout_ms, mu_error *ret_error,
                              int64_t *ret_number);

/* The key and all below it; none is fine. ret_count (may be NULL): how many. */
MU_EXPORT int mu_kv_delete(mu_node *node, const char *key, int64_t timeout_ms,
                           mu_error *ret_error, uint64_t *ret_count);

/* All that is below a key ("": everything), in order: a list of maps: key, value (bytes),
 * revision. Large directories come in pages; one page is one moment, the whole is not. */
MU_EXPORT int mu_kv_list(mu_node *node, const char *directory, int64_t timeout_ms,
                         mu_error *ret_error, mu_value **ret_items);

/* The same calls without waiting. `operation` says which; the call's response comes as
 * `done`, on the loop's thread, always and once: it must not block, and may begin further
 * requests. Key and value are copied. */
enum mu_kv_operation {
    MU_KV_PUT,
    MU_KV_GET,          /* waits until the key is there */
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
    int code;               /* 0, or negative with `error` */
    const mu_error *error;  /* valid during the call, as `value` */
    const char *value;
    size_t size;
    uint64_t revision;
    int64_t number;         /* INCREMENT: the sum; DELETE: how many */
} mu_kv_response;

typedef void (*mu_kv_done_fn)(void *user, const mu_kv_response *response);

/* ret_request_id (may be NULL) is for mu_kv_cancel; it is valid for ever, and means
 * nothing once the response has come. At most 65536 are under way, those that wait for
 * their response included, and 256 MiB of values (but for those of 1 KiB and less); then
 * -MU_EAGAIN. Any thread, the loop's too. */
MU_EXPORT int mu_kv_request_async(mu_node *node, const mu_kv_request *request,
                                  mu_kv_done_fn done, void *user,
                                  uint64_t *ret_request_id);

/* Answer it with -MU_ECANCELLED, unless it has been answered. What changes something may
 * have been applied. */
MU_EXPORT int mu_kv_cancel(mu_node *node, uint64_t request);

/* ---- Transactions ----
 *
 * Changes of several keys that are made at one moment, all or none, and only if all
 * comparisons hold. What is applied is applied once, as with the other calls. At most
 * MU_KV_TRANSACTION_MAX comparisons and as many changes, and
 * MU_KV_TRANSACTION_BYTES_MAX of keys and values together (-MU_EEXHAUSTED). */
#define MU_KV_TRANSACTION_MAX 128
#define MU_KV_TRANSACTION_BYTES_MAX (2 * 1024 * 1024)

enum mu_kv_check_type {
    MU_KV_IF_REVISION,      /* the key's revision is `revision`; 0: it is not there */
    MU_KV_IF_ABSENT,        /* it is not there */
    MU_KV_IF_PRESENT,
    MU_KV_IF_VALUE          /* it has exactly these bytes */
};

typedef struct mu_kv_check {
    int type;
    const char *key;
    uint64_t revision;
    const void *value;
    size_t size;
} mu_kv_check;

/* MU_KV_PUT overwrites, and may have the flag MU_KV_LEASE. MU_KV_INCREMENT adds `by`.
 * MU_KV_DELETE is of the key and all below it; none is fine. A key may be changed once,
 * and nothing below one that is deleted (-MU_EINVALID). */
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
    const mu_kv_change *changes;    /* none: it is only compared */
    size_t changes_count;
} mu_kv_transaction;

typedef struct mu_kv_transaction_result {
    uint64_t revision;      /* of the last change in the store once it was applied */
    int64_t number;         /* the sum of its first increment */
    int failed;             /* with -MU_EPRECONDITION the comparison that did not hold,
                               from 0; -1: none, the words say what it was */
} mu_kv_transaction_result;

/* ret_result may be NULL. -MU_EPRECONDITION: a comparison does not hold, or a key that
 * is to be incremented has no number; -MU_ERANGE: its sum is too large. Then nothing was
 * changed. */
MU_EXPORT int mu_kv_transact(mu_node *node, const mu_kv_transaction *transaction,
                             int64_t timeout_ms, mu_error *ret_error,
                             mu_kv_transaction_result *ret_result);

/* The same without waiting, as mu_kv_request_async, whose bounds it shares. The response
 * has revision and number; with -MU_EPRECONDITION, number is
 * mu_kv_transaction_result.failed + 1. */
MU_EXPORT int mu_kv_transact_async(mu_node *node, const mu_kv_transaction *transaction,
                                   int64_t timeout_ms, mu_kv_done_fn done, void *user,
                                   mu_error *ret_error, uint64_t *ret_request_id);

/* A watch: all changes of a key, or of what is below a directory. What is there at the
 * begin comes first, then MU_KV_EVENT_SYNCED once. Changes of one key that were not
 * read yet are one: the last state counts. */
typedef struct mu_kv_watch mu_kv_watch;

enum mu_kv_event_type { MU_KV_EVENT_PUT, MU_KV_EVENT_DELETED, MU_KV_EVENT_SYNCED };

typedef struct mu_kv_event {
    int type;
    char *key; /* NULL for MU_KV_EVENT_SYNCED; freed with mu_kv_event_clear */
    mu_kv_item item;        /* MU_KV_EVENT_PUT */
} mu_kv_event;

MU_EXPORT void mu_kv_event_clear(mu_kv_event *event);

MU_EXPORT int mu_kv_watch_open(mu_node *node, const char *key, int below,
                               int64_t timeout_ms, mu_error *ret_error,
                               mu_kv_watch **ret_watch);

/* The next event, waiting for it. -MU_EEXHAUSTED: more than 65,536 keys had changed and
 * were not read; the watch begins anew with what is there then. */
MU_EXPORT int mu_kv_watch_next(mu_kv_watch *watch, int64_t timeout_ms,
                               mu_error *ret_error, mu_kv_event *ret_event);

/* Before or after the node is closed. NULL is fine. */
MU_EXPORT void mu_kv_watch_close(mu_kv_watch *watch);

/* ---- Locks ----
 *
 * A lock is held by one at a time; those who wait get it in the order in which they came.
 * Each of them has a place in its queue: a key below MU_LOCK_DIRECTORY and the lock's
 * name, which is a lease, so it goes when its task ends, leaves or is lost, and the next
 * one is woken, nobody else. Who has waited longest holds the lock.
 *
 * A holder that stands still, or is cut off, may be taken for lost and not know it yet.
 * What must never be done by two is guarded with the lock's fencing token, which is
 * larger each time the lock is held (for as long as the store's content lasts): by
 * whoever is written to, or in a transaction by MU_KV_IF_REVISION of mu_lock_key. */
#define MU_LOCK_DIRECTORY "lock"

typedef struct mu_lock mu_lock;

/* Wait until it is held. `name` is a key. The threads of a process compete with
 * each other as processes do: one that holds it and takes it again waits for ever.
 * -MU_EDEADLINE says who holds it, and how many wait before this one; so does the log
 * while it takes long. */
MU_EXPORT int mu_lock_acquire(mu_node *node, const char *name, int64_t timeout_ms,
                              mu_error *ret_error, mu_lock **ret_lock);

/* Its fencing token, and the key that is there under that revision while it is held.
 * Valid until it is released. */
MU_EXPORT uint64_t mu_lock_fencing_token(const mu_lock *lock);
MU_EXPORT const char *mu_lock_key(const mu_lock *lock);

/* Wait until it is lost: 0 says that it is. -MU_EDEADLINE: it was held until then. By one
 * thread at a time, and not while it is released. */
MU_EXPORT int mu_lock_wait_lost(mu_lock *lock, int64_t timeout_ms, mu_error *ret_error);

/* Let go of it, and free it, whatever is returned. -MU_EABORTED: it was lost before.
 * After -MU_EDEADLINE it is released as soon as the service is reached. NULL is fine. */
MU_EXPORT int mu_lock_release(mu_lock *lock, int64_t timeout_ms, mu_error *ret_error);

/* ---- Barriers ---- */

typedef struct mu_barrier_options {
    const char *tasks;      /* a set of tasks; NULL: all of the coordinated jobs */
    unsigned threads;       /* of this process meet first, each calling with the same
                               number; default 1 */
    int64_t timeout_ms;       /* of all; the first who arrives says it. Default: none */
} mu_barrier_options;

MU_EXPORT void mu_barrier_options_init(mu_barrier_options *options);

/* Wait until all have arrived. A name can be used again and again; each time is one
 * generation, and all participants go through the same ones in order.
 *
 * Everybody gets the same answer, but for whose own limit ends while no host is reached:
 * that one alone gets -MU_EDEADLINE, with words that say so. -MU_EDEADLINE: how many of
 * how many arrived, who is missing, and when they were heard last; -MU_EINTERNAL: a
 * participant that is not recoverable was lost, left, or was reset; the participant's own
 * error with its task when it reported one; -MU_ECANCELLED; -MU_EINVALID: participants
 * that differ, are unknown, or are without this task, or more threads than were told;
 * -MU_EPRECONDITION: this node is at this barrier already. */
MU_EXPORT int mu_barrier_wait(mu_node *node, const char *name,
                              const mu_barrier_options *options, mu_error *ret_error);

/* The same without waiting: `done` is called on the loop's thread, once. */
typedef void (*mu_barrier_done_fn)(void *user, int code, const mu_error *error);
MU_EXPORT int mu_barrier_wait_async(mu_node *node, const char *name,
                               const mu_barrier_options *options, mu_barrier_done_fn done,
                               void *user);

/* End the barrier that this node has arrived at, for everybody, with -MU_ECANCELLED.
 * -MU_EPRECONDITION when it has not, or all went through. */
MU_EXPORT int mu_barrier_cancel(mu_node *node, const char *name, int64_t timeout_ms,
                                mu_error *ret_error);

/* ---- Preemption ---- */

/* This task, or its machine, will be gone in `grace_ms`: all tasks agree on a step to
 * stop at, one more than the largest that any of them has reached. Returns once all know
 * of it; with a longer grace than MU_PREEMPTION_EARLY_MS at once, and they agree that
 * long before its end. A put of the key RECEIVED_PREEMPTION_NOTICE does the same.
 * -MU_EDEADLINE: who has not answered; the others agree all the same, later.
 * -MU_EINVALID: a negative grace. */
#define MU_PREEMPTION_EARLY_MS (15 * 60 * 1000)

MU_EXPORT int mu_preemption_notify(mu_node *node, const char *reason, int64_t grace_ms,
                                int64_t timeout_ms, mu_error *ret_error);

/* The program has reached `step`: *ret_stop is 1 exactly when that is the step to stop
 * at, for all tasks the same. Waits while the tasks agree. Steps ascend. Without a notice
 * a few nanoseconds. */
MU_EXPORT int mu_preemption_reached(mu_node *node, uint64_t step, mu_error *ret_error,
                                 int *ret_stop);

typedef struct mu_preemption {
    uint64_t round;         /* how many there were; 0: none */
    char task[64];          /* that will be gone */
    char reason[512];
    int64_t left_ms;        /* of its grace */
    uint64_t step;          /* to stop at; valid when `agreed` */
    int agreed;
} mu_preemption;

/* Wait for a round after `round`: its notice, and with `agreed` its step. For tasks that
 * have no steps of their own, parameter servers say. */
MU_EXPORT int mu_preemption_wait(mu_node *node, uint64_t round, int agreed,
                              int64_t timeout_ms, mu_error *ret_error,
                              mu_preemption *ret_preemption);

#ifdef __cplusplus
}
#endif

#endif
