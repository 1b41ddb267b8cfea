/* A node: one runtime that plays one task of a cluster, inside this process.
 *
 * Several nodes may live in one process. A node runs on a loop thread of its own, or on
 * the program's uv_loop_t. Functions here may be called on any thread, unless said
 * otherwise; those that wait must not be called on a loop thread (they return
 * -MU_EPRECONDITION there). Limits are in milliseconds; negative means no limit.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_NODE_H
#define MUSTER_NODE_H

#include "cluster.h"
#include "value.h"

struct uv_loop_s;
struct mu_resolver;

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_node mu_node;

enum mu_log_level { MU_LOG_ERROR, MU_LOG_WARN, MU_LOG_INFO, MU_LOG_DEBUG };

/* Called for each log line, on the loop thread; must not block for long. `task` is
 * "/job:worker/task:1", `who` the part that speaks; both valid during the call only. */
typedef void (*mu_log_fn)(void *user, int level, const char *task, const char *who,
                          const char *line);

/* A tenth of the workers that the cluster has, rounded down: none below ten. */
#define MU_TIMEOUTS_OF_WORKERS ((unsigned)-1)

/* TLS 1.3 over tcp, with a key or with certificates; all 0: tcp is spoken plain. All
 * nodes of a cluster have to have the same key, or certificates of the same CA. Files are
 * read again when they change, for the connections from then on. Unix sockets do without:
 * who may reach one is said by the mode of its folder. */
typedef struct mu_tls_options {
    const char *key_file;       /* file of the cluster's key, or of a key derived from it
                                   (`muster key`), which others may not be able to read */
    const char *ca;             /* instead of it, each the name of a file in PEM, or the
                                   PEM text itself: the certificate of the CA, */
    const char *certificate;    /* that of this node and those between, */
    const char *private_key;    /* and its private key; NULL: it stands with the
                                   certificate */
    unsigned any_task;          /* 1: a peer's certificate that names no task (by a URI
                                   "muster:/job:TYPE/task:N" among its names) may be any
                                   task; default 0: it is refused */
} mu_tls_options;

typedef struct mu_node_options {
    const mu_cluster *cluster;  /* copied; required where there is no resolver */
    const char *cluster_name;   /* nodes of another name are refused; default "muster" */
    const char *task_type;      /* "chief", "worker", "ps", "evaluator", "client"; NULL:
                                   the resolver says type and index */
    int task_index;             /* with a type and a resolver that can choose: -1: one
                                   that is free */
    const char *bind_address;   /* where to listen; default: the task's own address in the
                                   cluster, or a free port on loopback if it has none. A
                                   worker that the cluster does not list may join it, and
                                   has to say this ("tcp://host:0": on a free port) */
    const char *advertise_address; /* where peers reach this node; default: the task's own
                                   address in the cluster, or else where it listens.
                                   "HOST" and "HOST:0": there, with the port that was
                                   chosen */
    struct mu_resolver *resolver; /* where `cluster` is NULL: finds out cluster and task
                                   (a type and index above win; resolver.h), is told where
                                   this task listens if it can pass that on, and goes on
                                   being asked for changes. The node uses it until it is
                                   closed, and the caller frees it then. Default NULL */
    unsigned resolve_ms;        /* to be known to the others and to know them all at
                                   start; default 300000 */
    struct uv_loop_s *loop;     /* run here; default NULL: a loop thread of its own */
    unsigned threads;           /* executor threads; default 1 */
    unsigned window;            /* chief: closures given to one worker at a time; 0, the
                                   default: as many as keep it busy, by the time that
                                   functions take */
    unsigned queue_max;         /* chief, client: closures scheduled and not resolved
                                   before schedule blocks; default 262144 */
    unsigned attempts_max;      /* chief: workers that may die under one closure before
                                   it is given up; default 10 */
    uint64_t queue_bytes_max;   /* chief, client: and bytes of their arguments; default
                                   1 GiB */
    unsigned retries_max;       /* chief: runs of one closure, whatever ended them, before
                                   it is given up; default 1000 */
    unsigned recovery_ms;       /* chief: a worker that does not come back for so long is
                                   an error; default 3600000, 0: never */
    unsigned start_delay_ms;    /* chief: worker i gets its first closure i times this
                                   after it joined, */
    unsigned start_delay_max_ms; /* but at most this; 0: no cap */
    unsigned server_failures;   /* chief: reports of a failing parameter server that are
                                   taken for passing, each a while after the other;
                                   default 3, 0: none */
    unsigned server_failures_ms; /* chief: for how long a report counts; default 600000 */
    unsigned server_lost_ms;    /* a parameter server that was up and is away for so long
                                   is lost: each call that needs it fails with
                                   -MU_EUNAVAILABLE, MU_ERROR_SERVER and its name in
                                   `task`, and new ones do so at once, until it is back;
                                   one that was never up is waited for. Default 10000,
                                   0: never */
    unsigned effect_wait_ms;    /* worker: how long the writes of a run wait for a server
                                   that does not answer, or was never up; default
                                   60000 */
    unsigned timeouts;          /* chief: -MU_EDEADLINE results that are retried; default
                                   MU_TIMEOUTS_OF_WORKERS */
    unsigned unknown_is_worker; /* chief: 1: a function's -MU_EUNKNOWN counts as the
                                   worker's failure, and the closure runs elsewhere */
    unsigned backup_percent;    /* chief: an idle worker runs a closure too when it takes
                                   longer than so many percent of its function's mean run
                                   time (at least 100 ms); default 0: never */
    unsigned watchdog_ms;       /* chief: no closure finishing for so long, while some are
                                   under way, is told in the log; default 60000, 0: off */
    unsigned measure;           /* 1: collect timers for the status; default 0 */
    const char *journal;        /* chief: file that keeps named closures over a restart of
                                   the chief; a damaged one is refused (-MU_EDATALOSS,
                                   `muster journal repair`); default NULL: none */
    unsigned journal_sync;      /* 1: the journal survives a power cut, too; default 0 */
    unsigned heartbeat_ms;      /* default 1000 */
    unsigned silence_ms;        /* a peer not heard for so long is lost; default 5000.
                                   A second process of a task that is there is refused:
                                   after twice this and 2 s its calls give -MU_EEXISTS */
    const char *service_hosts;  /* a set of tasks, "chief:0" or "ps:0-1": who may host the
                                   coordination service (coordination.h), the same on
                                   all nodes; "none": there is no service. Default NULL:
                                   chief 0, or else ps 0, or else worker 0 of the
                                   cluster */
    const char *store;          /* host: where the service keeps what must outlive its
                                   host: "memory", the default, for nothing,
                                   "journal:PATH" for a file, or "etcd:URL,URL", which
                                   several hosts may share */
    unsigned store_sync;        /* host: 1, the default: what the service says was kept
                                   survives a power cut, too */
    const char *run;            /* the run of the job: what barriers, notices, results and
                                   errors belong to; keys outlive it. A host continues the
                                   run of this name, or begins it; any other task is taken
                                   by that one alone. 1 to 63 letters, digits, '.', '_'
                                   and '-'. Default NULL: a host goes on with the run that
                                   its store is in, or begins another when that one has
                                   ended */
    const char *coordinated_jobs; /* task types with commas between, whose tasks are those
                                   that barriers and registering wait for; the same on
                                   all nodes; default "chief,worker,ps" */
    const char *recoverable;    /* host: task types with commas between: when a task of
                                   theirs fails, the others are not in error; "all", the
                                   default, or "none" */
    unsigned suspect_ms;        /* host: a task that it has not heard for so long is
                                   suspect; default 5000 */
    unsigned dead_ms;           /* and for so long, has failed; default 10000 */
    unsigned reconnect_ms;      /* host: so has one whose link is down for so long;
                                   default 1000 */
    unsigned stuck_ms;          /* host: and one that does not call mu_agent_progress for
                                   so long; default 0: never */
    unsigned leave_ms;          /* host: tasks that are not recoverable leave together, or
                                   after so long; default 0: each when it likes */
    unsigned lease_ms;          /* host: one of several that is not heard for so long is
                                   replaced; default 5000 */
    unsigned plugin_timeout_ms; /* a plugin that is not loaded for so long ends the
                                   process; default 300000, 0: never */
    const char *worker_types;   /* task types with commas between, whose tasks run
                                   closures: "worker", the default, and types of your
                                   own, as "worker,gpu"; not chief, ps, evaluator or
                                   client. The same on all nodes: the chief decides, and
                                   a task whose type it does not list gets none, which
                                   both log. Without "worker" in it tasks of that type
                                   run no closures */
    mu_tls_options tls;         /* how nodes prove themselves to each other over tcp */
    mu_log_fn log;              /* default NULL: text on standard error */
    void *log_user;
    int log_level;              /* default MU_LOG_INFO */
} mu_node_options;

/* Fill in the defaults. */
MU_EXPORT void mu_node_options_init(mu_node_options *options);

/* Take over what the environment says, MUSTER_... before TensorFlow's names: queue_max,
 * start_delay_ms, server_failures and so on; docs/environment.md has the table. An empty
 * variable counts as absent. One that is no whole number, or out of its range, gives
 * -MU_EINVALID, naming it, its text and what was expected; `options` is then as before.
 * Texts (cluster_name, journal, store and so on) point into the environment. */
MU_EXPORT int mu_node_options_from_environment(mu_node_options *options,
                                               mu_error *ret_error);

/* The exit code by which a cluster manager knows that the chief wants to be restarted: if
 * `error` says that a parameter server is unavailable (-MU_EUNAVAILABLE, MU_ERROR_SERVER)
 * and MUSTER_RESTART_EXIT_CODE (or TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE) is set to a
 * number of 0 to 255, that code; else -1. An error of mu_node_main is such a one when the
 * program returned the code that a call about a server gave it. */
MU_EXPORT int mu_restart_exit_code(const mu_error *error);

/* Start a node: checks the options, binds, starts its threads, begins to connect.
 * Does not wait for other tasks: they may start in any order. With a resolver it blocks
 * until that one knows the cluster, for resolve_ms at most (-MU_EDEADLINE, with who or
 * what is missing), and says in the log every few seconds what is waited for. With
 * `options->loop` this must be called on that loop's thread (or before it runs, on the
 * thread that will run it); SIGPIPE is then blocked in that thread. A resolver blocks
 * that thread, too, and nothing else of the loop runs meanwhile: where that must not be,
 * open the node before the loop runs or without `loop`; or, if the resolver is not one by
 * which tasks tell each other where they are, ask it on another thread
 * (mu_resolver_resolve) and give the node the cluster. On success the caller
 * closes the node with mu_node_close. Errors: -MU_EINVALID (options, cluster),
 * -MU_EEXISTS (address in use; the task lives elsewhere), -MU_ENOMEM, and a resolver's
 * own, each with what and where in ret_error. */
MU_EXPORT int mu_node_open(const mu_node_options *options, mu_error *ret_error,
                           mu_node **ret_node);

/* Stop a node with a thread of its own and free it: tells its peers, completes waiting
 * calls with -MU_ECLOSED, waits at most `timeout_ms` for functions that run (those that
 * were not begun run elsewhere). Returns -MU_EDEADLINE, naming the function, when one did
 * not end: its thread and the node's memory are then left behind for the process to end
 * with. NULL is fine.
 *
 * Other threads, and functions, may be inside calls meanwhile: the calls return
 * -MU_ECLOSED, and so do those that begin later. Once this has returned, nobody may use
 * the node any more. Its coordinator and its variables may be used: their calls return
 * -MU_ECLOSED until they are closed themselves.
 *
 * A child that the process forks has none of the node's threads. The node stays the
 * parent's: in the child calls on it, its coordinator and its variables return
 * -MU_ECLOSED at once, with words, and this one -MU_EPRECONDITION; nobody but the child
 * notices. The child may open nodes of its own. */
MU_EXPORT int mu_node_close(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* Keep the handle of a node valid over its close: calls on it return -MU_ECLOSED then,
 * until the last holder lets go of it. For a program whose threads may call while another
 * one closes the node. Returns `node`; NULL is fine. Any thread. */
MU_EXPORT mu_node *mu_node_ref(mu_node *node);
MU_EXPORT void mu_node_unref(mu_node *node);

/* Stop a node that runs on the program's loop; `closed` (may be NULL) is called on that
 * loop when the node is gone. On the loop's thread only. */
MU_EXPORT void mu_node_close_async(mu_node *node, void (*closed)(void *user), void *user);

/* Where the node listens ("tcp://127.0.0.1:40123"), valid until it is closed. */
MU_EXPORT const char *mu_node_address(const mu_node *node);

/* "/job:worker/task:1", valid until the node is closed. */
MU_EXPORT const char *mu_node_task(const mu_node *node);

/* Number of tasks of a type (NULL: of all) in the node's cluster, as it is now. Any
 * thread. */
MU_EXPORT size_t mu_node_task_count(const mu_node *node, const char *type);

/* ---- A cluster that changes while the node runs ---- */

enum mu_cluster_event {
    MU_CLUSTER_TASK_ADDED = 0,
    MU_CLUSTER_TASK_REMOVED = 1,
    MU_CLUSTER_TASK_MOVED = 2       /* the task is at another address */
};

/* One task; valid during the callback. */
typedef struct mu_cluster_change {
    int event;              /* enum mu_cluster_event */
    const char *type;
    int index;
    const char *address;    /* the new one; of a task that was removed the last one */
    int is_own;             /* 1: it is this node's task */
} mu_cluster_change;

typedef void (*mu_cluster_change_fn)(mu_node *node, const mu_cluster_change *change,
                                     void *user);

/* Have `callback` called on the loop thread for each change of the cluster that the node
 * has taken from its resolver, a watched file say; mu_node_task_count counts the task
 * then already, or no more. It must not block, nor close the node. One at a time: the
 * last one counts, NULL is none; a call of the former one may still be under way. Changes
 * of before are not told. Any thread.
 *
 * What a node takes: workers, clients and the evaluator may come, go and move; the chief
 * and parameter servers only move. Other changes are refused with a line in the log, and
 * not told. What is removed is hung up on and refused until it is listed again; a worker
 * that finds itself removed finishes what it has, and then its job is done. */
MU_EXPORT void mu_node_on_cluster_change(mu_node *node, mu_cluster_change_fn callback,
                                  void *user);

/* Wait until the job is done: the chief has said so with mu_node_finish_job (0
 * returned), or the node is being closed (-MU_ECLOSED). What tasks that only serve
 * wait in. ret_error holds the job's own error, if it ended with one, and 0 is
 * returned. */
MU_EXPORT int mu_node_wait_job(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* Chief (worker 0 in a cluster without one): tell every connected task that the job is
 * done, so that it may exit; `code` 0 or a negative code with `message`. Returns once
 * every task was told and has hung up, or at the limit (-MU_EDEADLINE, naming the tasks
 * left). -MU_EPRECONDITION on every other task. */
MU_EXPORT int mu_node_finish_job(mu_node *node, int code, const char *message,
                               int64_t timeout_ms, mu_error *ret_error);

/* Send a number to the chief, where it shows in the status and is read with
 * mu_node_get_metric: progress of an evaluator, say. The last one of a name counts. */
MU_EXPORT int mu_node_report_metric(mu_node *node, const char *name, double number,
                             uint64_t step);

/* Chief: the last number reported under a name, -MU_ENOTFOUND when none was. */
MU_EXPORT int mu_node_get_metric(mu_node *node, const char *name, double *ret_number,
                             uint64_t *ret_step);

/* The cluster as the chief sees it (asked over the network on other tasks): a map with
 * tasks and their state, closures, variables, metrics. The caller frees *ret_status. */
MU_EXPORT int mu_node_status(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                             mu_value **ret_status);

/* Why a closure has not run, from the chief: by its number, as the status, the log and
 * errors show it, or (closure 0) by its name. A map: closure, name, function, state
 * ("queued", "held", "running", "done"), attempt, crashes, task, for_ms, waits_for and,
 * where there are some, last_error, backup_task. -MU_ENOTFOUND when the chief has no such
 * closure: it is resolved, say. The caller frees *ret_reasons. */
MU_EXPORT int mu_node_explain(mu_node *node, uint64_t closure, const char *name,
                              int64_t timeout_ms, mu_error *ret_error,
                              mu_value **ret_reasons);

/* This task, a worker, wants to leave: the chief gives it nothing more; returns when all
 * that it had is finished. Does not wait for a chief that is not connected
 * (-MU_EUNAVAILABLE): that one has given it nothing. At the limit -MU_EDEADLINE; the
 * chief is asked whether it is there, for two seconds at most. */
MU_EXPORT int mu_node_drain(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* ---- Functions that workers run ---- */

/* One run of a function, valid during that run. */
typedef struct mu_run mu_run;

/* The program's code: 0, or a negative code with words set by mu_run_fail. Runs on an
 * executor thread (several at once when there are several), may block, and may use every
 * call of the node. At-least-once: it may run again on another worker. Of one that nobody
 * wants any more before it was called, the function is not called. */
typedef int (*mu_function_fn)(mu_run *run, void *user);

enum mu_function_flag {
    /* Runs on the loop thread itself: for functions of a few microseconds that never
     * block. Saves two thread switches for each closure. */
    MU_FUNCTION_INLINE = 1
};

/* Make a function known under a name of at most 63 bytes. `user` is passed to each run.
 * Before the node serves; -MU_EEXISTS when the name is taken. A closure whose function is
 * "train:mnist" runs "train" on a worker that knows no function of the whole name: logs,
 * errors, the status and the times by which closures are given out are those of the whole
 * name. */
MU_EXPORT int mu_node_register_function(mu_node *node, const char *name,
                                        mu_function_fn function, void *user,
                                        unsigned flags);

/* Worker: the functions are registered, offer this worker to the chief. No closure comes
 * before. mu_node_main and mu_node_wait_job do this too. Nothing on other tasks. */
MU_EXPORT int mu_node_serve(mu_node *node);

/* The arguments; owned by the run. A list when several were passed. Where the closure had
 * a reference to a remote value or to a per-worker value, there stands that value itself
 * (the same one in all places, shared with other runs), or for an object a reference that
 * mu_run_object and mu_run_iterator_next know. */
MU_EXPORT const mu_value *mu_run_args(mu_run *run);

/* The node that the function runs on. */
MU_EXPORT mu_node *mu_run_node(mu_run *run);

/* Set the result. Takes `value`; the last call counts; without one the result is nil. */
MU_EXPORT void mu_run_return(mu_run *run, mu_value *value);

/* Set the words of an error; returns `code` (negative) for the function to return. */
MU_EXPORT int mu_run_fail(mu_run *run, int code, const char *format, ...) MU_PRINTF(3, 4);

/* 1 when nobody wants this run's result any more: a long function may stop early. */
MU_EXPORT int mu_run_cancelled(mu_run *run);

/* Pass on an error of a call that was made in a function (of a variable, say), with the
 * task that it came from: the coordinator tells failing servers from failing functions by
 * that. -MU_EABORTED of kind MU_ERROR_WORKER without a task says that a process which the
 * function ran in was lost: the closure runs again, as after the loss of its worker and
 * as often at most (attempts_max); nothing else is run again for it. Returns the error's
 * code for the function to return; without one it is -MU_EUNKNOWN. */
MU_EXPORT int mu_run_fail_with(mu_run *run, const mu_error *error);

/* Words of a stack trace, which travel with the error; copied, cut at 1,023 bytes. */
MU_EXPORT void mu_run_set_stack_trace(mu_run *run, const char *text);

/* A line for the node's log, of at most 511 bytes; written there by the loop thread a
 * moment later, while the function may still run. When a function logs faster than that,
 * some lines are left out, and the log says how many; so are those of a node that is
 * closing. The last lines (1,023 bytes) travel with the error when there is no stack. */
MU_EXPORT void mu_run_log(mu_run *run, const char *format, ...) MU_PRINTF(2, 3);

/* The closure's name ("" when it has none), its id, the number of this run, from 1. */
MU_EXPORT const char *mu_run_closure_name(const mu_run *run);
MU_EXPORT uint64_t mu_run_closure_id(const mu_run *run);
MU_EXPORT uint32_t mu_run_attempt(const mu_run *run);

/* Task index of the worker, and its type: "worker", or another one of worker_types. The
 * text is valid as long as the node. */
MU_EXPORT int mu_run_worker(const mu_run *run);
MU_EXPORT const char *mu_run_worker_type(const mu_run *run);

/* Keep `object` on this worker as what a per-worker value is here, or the kept result of
 * a closure: in other runs the function fails with -MU_EPRECONDITION. Takes `object`, as
 * mu_run_return does. `drop` (may be NULL) is called when nobody needs it any more: on an
 * executor thread or the loop thread, so it must not block. */
MU_EXPORT void mu_run_return_object(mu_run *run, void *object,
                                    void (*drop)(void *object));

/* The object behind a reference among the arguments; NULL when it is none. Several runs
 * may have it at the same time. It is there until the run ends, or for as long as the
 * function's program holds `argument` with mu_value_ref. */
MU_EXPORT void *mu_run_object(mu_run *run, const mu_value *argument);

/* An iterator over a dataset, as what a per-worker value is here. `next` is called by one
 * thread at a time: 0 with the element, -MU_ERANGE at the end, after which it is not
 * called any more. `drop` (may be NULL) frees `state`, as for mu_run_return_object.
 * -MU_EINVALID without `next`, -MU_ENOMEM: `state` was dropped, and the run fails even if
 * its function returns 0. */
MU_EXPORT int mu_run_return_iterator(mu_run *run,
                                     int (*next)(void *state, mu_value **ret_element),
                                     void (*drop)(void *state), void *state);

/* The next element of an iterator among the arguments; the caller frees it. Waits while
 * another run takes its own. -MU_EINVALID when the argument is no iterator, -MU_ERANGE at
 * the end and from then on, whatever else `next` returned (after which it may be asked
 * again). */
MU_EXPORT int mu_run_iterator_next(mu_run *run, const mu_value *iterator,
                                   mu_value **ret_element);

/* ---- Plugins: functions and programs from a shared object ---- */

/* A program is what the task itself does: the chief's schedules closures, the
 * evaluator's watches the parameters. Tasks without one serve until the job is done.
 * Runs on a thread of its own; what it returns (0 or a negative code) ends the task. */
typedef int (*mu_program_fn)(mu_node *node, void *user);

/* Set the program of a task type; before mu_node_main. */
MU_EXPORT int mu_node_register_program(mu_node *node, const char *task_type,
                                       mu_program_fn program, void *user);

/* Say why the program ends with an error: words for the code (negative) that it is going
 * to return. Returns `code`. mu_node_main gives them to its caller; with `muster node`
 * they are in the task's log, and if it is the chief's program, in the error of the job
 * that all other tasks are told and at the end of `muster run`. The last call counts;
 * without one, it is the last error of a call on the program's thread with the code that
 * the program returns. */
MU_EXPORT int mu_node_fail(mu_node *node, int code, const char *format, ...)
    MU_PRINTF(3, 4);

/* The same with the error of a call, whose kind and task it keeps (mu_restart_exit_code
 * wants them). Returns its code for the program to return; without one it is
 * -MU_EUNKNOWN. */
MU_EXPORT int mu_node_fail_with(mu_node *node, const mu_error *error);

/* Do what this node's task is there for, on the calling thread: run its program if
 * it has one, else serve until the job is done (or the node is being closed:
 * -MU_ECLOSED). Returns what the program or the job came to, with the reason in
 * ret_error: see mu_node_fail. */
MU_EXPORT int mu_node_main(mu_node *node, mu_error *ret_error);

/* Settings for plugins (`muster node --set key=value`). Set before plugins are loaded;
 * copies. A setting that is absent is NULL; valid until close. */
MU_EXPORT int mu_node_set_setting(mu_node *node, const char *key, const char *value);
MU_EXPORT const char *mu_node_get_setting(const mu_node *node, const char *key);

/* A plugin is a shared object that exports `int mu_plugin_open(mu_node *node)`, where it
 * registers its functions and programs; 0 or a negative code. It says once, outside of
 * functions, `MU_PLUGIN;`: for which version of this interface it was compiled. One that
 * does not is taken for version 1. */
typedef int (*mu_plugin_open_fn)(mu_node *node);

#define MU_PLUGIN_API_VERSION 1

#ifdef __cplusplus
#define MU_PLUGIN                                                           \
    extern "C" MU_EXPORT const unsigned mu_plugin_api_version;              \
    const unsigned mu_plugin_api_version = MU_PLUGIN_API_VERSION
#else
#define MU_PLUGIN                                                           \
    extern MU_EXPORT const unsigned mu_plugin_api_version;                  \
    const unsigned mu_plugin_api_version = MU_PLUGIN_API_VERSION
#endif

/* Load a plugin into a node. A path without a slash is a file of the current folder, or
 * else a library as dlopen() finds it. -MU_ENOTFOUND (no such file, no such symbol),
 * -MU_EPRECONDITION (made for another version; mu_plugin_open is no function) and
 * whatever the plugin returns, with the reason in ret_error. A plugin that calls exit()
 * meanwhile ends the process with exit code 2, one that crashes ends it too, both with a
 * line on standard error that names it; one that takes long is told in the log (see
 * plugin_timeout_ms). One plugin is loaded at a time. */
MU_EXPORT int mu_node_load_plugin(mu_node *node, const char *path, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
