/* A node: the runtime of one task of a cluster, inside this process.
 *
 * Several nodes may live in one process. A node runs on a loop thread of its own, or on
 * the program's uv_loop_t. Functions here may be called on any thread, unless said
 * otherwise; functions that wait return -MU_EPRECONDITION on a loop thread. Registering
 * functions and mu_node_serve do not wait, and may be called there, too, but not inside
 * callbacks and inline functions of the node. Timeouts are in milliseconds; negative: no
 * timeout.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
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
 * "/job:worker/task:1", `who` the part of muster that logs; all texts are valid during
 * the call only. */
typedef void (*mu_log_fn)(void *user, int level, const char *task, const char *who,
                          const char *line);

/* Value of option `timeouts`: a tenth of the number of workers, rounded down. */
#define MU_TIMEOUTS_OF_WORKERS ((unsigned)-1)

/* spin_us: 100 where the process may use two cores or more, and 0 elsewhere. */
#define MU_SPIN_BY_CORES ((unsigned)-1)

typedef struct mu_node_options {
    size_t size;               /* set by mu_node_options_init */
    const mu_cluster *cluster; /* copied; required without a resolver */
    const char *cluster_name;  /* nodes with another cluster name are refused; default
                                  "muster", or the resolver's
                                  mu_resolution.cluster_name */
    const char *task_type;     /* "chief", "worker", "ps", "evaluator", "client"; NULL:
                                  the resolver provides type and index */
    int task_index;            /* -1, with a task_type and a resolver that can choose: a
                                  free index */
    const char *bind_address;  /* where to listen; default: the task's own address in the
                                  cluster; if it has none (a client), nowhere: the node
                                  only dials. "none": nowhere, though it has one.
                                  Required for a worker that joins without being listed
                                  in the cluster ("tcp://host:0": a free port; "none") */
    const char *advertise_address; /* where peers dial this node, if it listens; default:
                                      the task's own address in the cluster, or else where
                                      it listens. "HOST" and "HOST:0": that host, with the
                                      port it listens on */
    struct mu_resolver *resolver;  /* used when `cluster` is NULL: finds the cluster and
                                      this task (task_type and task_index above take
                                      precedence; resolver.h), announces this task's
                                      address if it can, and is polled or watched for
                                      changes. The node uses it until it is closed; the
                                      caller frees it afterwards. Default NULL */
    unsigned resolve_ms;      /* timeout of mu_node_open for the resolver: to announce
                                 this task and find all others; default 300000 */
    struct uv_loop_s *loop;   /* run here; default NULL: a loop thread of its own */
    unsigned threads;         /* executor threads; default 1 */
    unsigned window;          /* chief: closures sent ahead to one worker; 0, the
                                 default: computed from run times and round trips, so
                                 that the worker stays busy */
    unsigned spin_us;         /* how long a thread polls before it sleeps, up to 10000;
                                 0: never. It polls only while most waits end that soon
                                 and no other thread wants the core. Default
                                 MU_SPIN_BY_CORES; on a `loop` of the program's own,
                                 0 */
    unsigned queue_max;       /* chief, client: closures scheduled and not resolved
                                 before schedule blocks; default 262144 */
    unsigned attempts_max;    /* chief: workers that may die under one closure, and runs
                                 of it that may take too long (run_timeout_ms), before
                                 it is given up; default 10 */
    uint64_t queue_bytes_max; /* chief, client: bytes of their arguments before schedule
                                 blocks; default 1 GiB */
    unsigned retries_max;     /* chief: runs of one closure, for any reason, before it
                                 is given up; default 1000 */
    unsigned recovery_ms;     /* chief: when no worker has been there for this long,
                                 closures that wait for one end with -MU_EUNAVAILABLE,
                                 and so do new ones until one comes. While others work,
                                 a lost worker is waited for without end; only closures
                                 for it alone end after this time. Default 3600000, 0:
                                 never */
    unsigned start_delay_ms;  /* chief: worker i gets its first closure i times this
                                 after it joined, */
    unsigned start_delay_max_ms; /* but at most this after; 0: no cap */
    unsigned server_failures;    /* chief: errors of a parameter server, some time apart,
                                    that count as transient and are retried; default 3, 0:
                                    none */
    unsigned server_failures_ms; /* chief: after this time such an error no longer counts;
                                    default 600000 */
    unsigned server_lost_ms;    /* a parameter server that was connected and has been away
                                   for this long is lost: each call that needs it fails
                                   with -MU_EUNAVAILABLE, MU_ERROR_SERVER and its name in
                                   `task`, and new calls fail at once, until it is back. A
                                   server that was never connected is waited for. Default
                                   10000, 0: never */
    unsigned backups;           /* chief: copies of what each parameter server has, on
                                   others, which take its place when it is lost: 0, or
                                   1 (the default), which is 0 as long as there is one
                                   server alone */
    unsigned strict;            /* chief: 1: with `backups`, writes to what has lost its
                                   copy wait until it has another, and reads that would
                                   show more than was on two servers; default 0 */
    unsigned effect_wait_ms;    /* worker: how long the writes of a run wait for a server
                                   that does not answer, or was never connected; default
                                   60000 */
    unsigned timeouts;          /* chief: how many -MU_EDEADLINE results of functions are
                                   retried; default MU_TIMEOUTS_OF_WORKERS */
    unsigned unknown_is_worker; /* chief: 1: -MU_EUNKNOWN from a function counts as a
                                   failure of the worker, and the closure runs
                                   elsewhere */
    unsigned backup_percent;    /* chief: a closure that takes longer than this percentage
                                   of its function's mean run time (at least 100 ms) gets
                                   a second attempt on an idle worker; default 0: never */
    unsigned watchdog_ms;       /* chief: logs when closures are outstanding and none has
                                   finished for this long; default 60000, 0: off */
    unsigned measure;           /* 1: collect timers for the status; default 0 */
    const char *journal;        /* chief: file in which named closures survive a restart
                                   of the chief; a damaged file is refused (-MU_EDATALOSS;
                                   see `muster journal repair`); default NULL: none. While
                                   a large one is read the node answers peers and
                                   `muster status`. mu_node_open waits for it; with `loop`
                                   it does not: calls wait, and when the file cannot be
                                   used they fail and say why */
    unsigned journal_sync;      /* 1: flush each write to the disk, so that the journals
                                   survive a power cut; default 0 */
    const char *ps_journal;   /* server: existing folder, where it writes what changes its
                                 variables to ps-N.journal (N: its index). When it is
                                 started again it has all that it had acknowledged. A
                                 file that is damaged (-MU_EDATALOSS) or of another job
                                 or task (-MU_EPRECONDITION) is refused. Default NULL:
                                 none. Flushed as journal_sync says */
    unsigned journal_keep;    /* number of finished closures that are known by name, the
                                 youngest; older ones are forgotten, as by
                                 mu_coordinator_forget. Default 0: all */
    unsigned journal_keep_ms; /* age at which a finished closure is forgotten; this
                                 happens when others finish, an eighth later at most.
                                 Ages start again after a restart of the chief. Default
                                 0: never */
    unsigned orphan_ms;       /* a task that has had no link to the chief, or to a host
                                 of the coordination service, for this long takes the
                                 job to have ended: mu_node_wait_job gives
                                 -MU_EUNAVAILABLE with what is missing. Default 600000,
                                 0: never */
    unsigned heartbeat_ms;    /* interval of heartbeats; default 1000 */
    unsigned silence_ms;      /* a peer from which nothing came for this long is lost;
                                 default 5000. A second process for a task that is
                                 running is refused: after twice this time plus 2 s its
                                 calls return -MU_EEXISTS */
    const char *service_hosts; /* a set of tasks, "chief:0" or "ps:0-1", that may host
                                  the coordination service (coordination.h); the same on
                                  all nodes. "none": no service. Default NULL: chief 0,
                                  else ps 0, else worker 0 of the cluster */
    const char *store;         /* host: where the service keeps its state: "memory"
                                  (default; lost with the host), "journal:PATH" (a file),
                                  or "etcd:URL,URL", which several hosts may share. A
                                  journal has the file PATH.kept beside it, of kept
                                  actors (mu_actor_record) */
    unsigned store_sync;       /* host: 1, the default: a change is acknowledged once it
                                  would survive a power cut */
    const char *run;           /* name of the job's run, which barriers, preemption
                                  notices, results and errors belong to; keys outlive it.
                                  A host continues the run of this name, or begins it;
                                  another task is accepted in that run only. 1 to 63
                                  letters, digits, '.', '_' and '-'. Default NULL: a host
                                  continues the run in its store, or begins another when
                                  that one has ended */
    const char *coordinated_jobs; /* task types, separated by commas, whose tasks barriers
                                     and registration wait for; the same on all nodes;
                                     default "chief,worker,ps" */
    const char *recoverable;      /* host: task types, separated by commas, whose failure
                                     does not put the other tasks into the error state;
                                     "all", the default, or "none" */
    unsigned suspect_ms;          /* host: a task that sent nothing for this long is
                                     suspect; default 5000 */
    unsigned dead_ms;             /* host: a task that sent nothing for this long has
                                     failed; default 10000 */
    unsigned reconnect_ms;        /* host: a task whose link is down for this long has
                                     failed; default 1000 */
    unsigned stuck_ms;          /* host: a task that has not called mu_agent_progress for
                                   this long has failed; default 0: never */
    unsigned leave_ms;          /* host: tasks that are not recoverable wait for each
                                   other when they leave, at most this long; default 0:
                                   they do not wait */
    unsigned lease_ms;          /* host: of several hosts, a leader that sent nothing for
                                   this long is replaced; default 5000 */
    unsigned plugin_timeout_ms; /* a plugin whose loading takes longer than this ends the
                                   process; default 300000, 0: never */
    const char *worker_types;   /* task types, separated by commas, whose tasks run
                                   closures: "worker", the default, and types of the
                                   program, as in "worker,gpu"; not chief, ps, evaluator
                                   or client. The same on all nodes: the chief's list
                                   counts, and a task whose type is not in it gets no
                                   closures, which both log. If "worker" is left out,
                                   tasks of that type run no closures */

    /* How nodes authenticate each other. Tcp is always TLS 1.3, with a key or with
     * certificates; by default with the key of this process's user,
     * $XDG_CONFIG_HOME/muster/key or ~/.config/muster/key, which is created when it is
     * first needed. All nodes of a cluster need the same key, or certificates of the same
     * CA. Files are read again when they change, for later connections. Unix sockets are
     * not encrypted, and only for processes of the same user and root. */
    const char *key_file;        /* file of the cluster's key, or of a key derived from it
                                    (`muster key`); other users must not be able to read
                                    it */
    const char *tls_ca;          /* instead of a key: the certificate of the CA. This and
                                    the next two are names of PEM files, or PEM text */
    const char *tls_certificate; /* the certificate of this node, and intermediate ones */
    const char *tls_private_key; /* its private key; NULL: it is in `tls_certificate` */
    unsigned tls_any_task;       /* 1: a peer's certificate that names no task (by a URI
                                    "muster:/job:TYPE/task:N" among its names) may be any
                                    task; default 0: it is refused */
    unsigned insecure;           /* 1, without a key file and certificates: plain tcp;
                                    whoever reaches a socket of this node may do
                                    everything; default 0 */

    const char *wire; /* the transport between nodes: "uv", libuv's streams, or
                         "nng", nng's sockets; both speak the same protocol.
                         Default NULL: "nng" where the node's or another task's
                         address begins with ws://, wss://, tls+tcp:// or
                         inproc://, else "uv" */
    int log_level;    /* default MU_LOG_INFO */
    mu_log_fn log;    /* default NULL: text on standard error */
    void *log_user;
} mu_node_options;

/* Fill in the defaults. */
MU_EXPORT void mu_node_options_init_sized(mu_node_options *options, size_t size);
#define mu_node_options_init(options) \
    mu_node_options_init_sized(options, sizeof(mu_node_options))

/* Set options from environment variables: MUSTER_... , and for some options TensorFlow's
 * name, where the MUSTER_... variable is absent; docs/environment.md has the table. An
 * empty variable counts as absent. One that is not a whole number, or out of range, gives
 * -MU_EINVALID with its name, its text and what was expected; `options` is then
 * unchanged. Texts (cluster_name, journal, store and so on) point into the
 * environment. */
MU_EXPORT int mu_node_options_from_environment(mu_node_options *options,
                                               mu_error *ret_error);

/* The exit code that asks the cluster manager to restart the chief: if `error` says that
 * a parameter server is unavailable (-MU_EUNAVAILABLE, MU_ERROR_SERVER) and
 * MUSTER_RESTART_EXIT_CODE (or TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE) is a number of 0 to
 * 255, that number; else -1. The error of mu_node_main is such an error when the program
 * returned the code of a failed call to a parameter server. */
MU_EXPORT int mu_restart_exit_code(const mu_error *error);

/* Start a node: checks the options, binds, starts its threads, begins to connect. Does
 * not wait for other tasks: they may start in any order. With a resolver it blocks until
 * the cluster is found, for resolve_ms at most (-MU_EDEADLINE, with what is missing), and
 * logs every few seconds what it waits for. With `options->loop` this must be called on
 * that loop's thread (or before the loop runs, on the thread that will run it); SIGPIPE
 * is then blocked in that thread. A resolver blocks that thread too: nothing else of the
 * loop runs meanwhile. To avoid that, open the node before the loop runs or without
 * `loop`; or, unless tasks announce themselves to each other through this resolver, call
 * mu_resolver_resolve on another thread and open the node with the resulting cluster. On
 * success the caller closes the node with mu_node_close. Errors: -MU_EINVALID (options,
 * cluster), -MU_EEXISTS (address in use; the task runs elsewhere), -MU_ENOMEM, and those
 * of the resolver, with the details in ret_error. */
MU_EXPORT int mu_node_open(const mu_node_options *options, mu_error *ret_error,
                           mu_node **ret_node);

/* The same for a client that knows one address, of any task of the cluster: it dials
 * that (a text as for mu_cluster_add), and no other. `cluster` and `resolver` are not
 * used. It has the coordination service if the task there hosts it, unless service_hosts
 * is "none". */
MU_EXPORT int mu_node_open_at(const mu_node_options *options, const char *address,
                              mu_error *ret_error, mu_node **ret_node);

/* Stop a node that has its own loop thread, and free it: notifies its peers, completes
 * waiting calls with -MU_ECLOSED, and waits at most `timeout_ms` for running functions
 * (closures that have not begun run elsewhere). Returns -MU_EDEADLINE, naming the
 * function, when one did not end: its thread and the node's memory then remain until the
 * process ends. NULL is fine.
 *
 * Other threads, and functions, may be inside calls meanwhile: these calls return
 * -MU_ECLOSED, and so do calls that begin later. Once this has returned, the node must
 * not be used any more (but see mu_node_ref). Its coordinator and its variables stay
 * valid until they are closed themselves: their calls return -MU_ECLOSED.
 *
 * After fork() the child has none of the node's threads, and the node remains the
 * parent's: in the child, calls on it, its coordinator and its variables return
 * -MU_ECLOSED at once, with a message, and mu_node_close returns -MU_EPRECONDITION. The
 * parent's node is not affected, and the child may open nodes of its own. */
MU_EXPORT int mu_node_close(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* Take and release a reference, which keeps the handle valid after the node was closed:
 * calls then return -MU_ECLOSED. For programs in which one thread may close the node
 * while others use it. mu_node_ref returns `node`; NULL is fine. Any thread. */
MU_EXPORT mu_node *mu_node_ref(mu_node *node);
MU_EXPORT void mu_node_unref(mu_node *node);

/* Stop a node that runs on the program's loop; `closed` (may be NULL) is called on that
 * loop once the node is freed. On the loop's thread only. */
MU_EXPORT void mu_node_close_async(mu_node *node, void (*closed)(void *user), void *user);

/* Where peers dial the node ("tcp://127.0.0.1:40123"), valid until it is closed; "": it
 * listens nowhere. */
MU_EXPORT const char *mu_node_address(const mu_node *node);

/* "/job:worker/task:1", valid until the node is closed. */
MU_EXPORT const char *mu_node_task(const mu_node *node);

/* Number of tasks of a type (NULL: of all types) in the node's cluster at present. Any
 * thread. */
MU_EXPORT size_t mu_node_task_count(const mu_node *node, const char *type);

/* ---- A cluster that changes while the node runs ---- */

enum mu_cluster_event {
    MU_CLUSTER_TASK_ADDED = 0,
    MU_CLUSTER_TASK_REMOVED = 1,
    MU_CLUSTER_TASK_MOVED = 2 /* the task has another address */
};

/* One task; valid during the callback. */
typedef struct mu_cluster_change {
    int event; /* enum mu_cluster_event */
    const char *type;
    int index;
    const char *address; /* the new address; of a removed task its last one */
    int is_own;          /* 1: the change concerns this node's own task */
} mu_cluster_change;

typedef void (*mu_cluster_change_fn)(mu_node *node, const mu_cluster_change *change,
                                     void *user);

/* Set the function that is called on the loop thread for each change of the cluster that
 * the node accepted from its resolver (a watched file, say). mu_node_task_count is up to
 * date when it is called. It must not block, nor close the node. A node has one such
 * function: setting another one, or NULL, replaces it, while a call of the former may
 * still be running. Earlier changes are not reported. Any thread.
 *
 * Changes that a node accepts: workers, clients and the evaluator may be added, removed
 * and moved; parameter servers added, if there was one before, and moved; the chief only
 * moved. Other changes are refused with a line in the log, and not reported. The link to
 * a removed task is closed, and its connections are refused until it is listed again; a
 * worker that finds itself removed finishes its closures, and then its job is done. */
MU_EXPORT void mu_node_on_cluster_change(mu_node *node, mu_cluster_change_fn callback,
                                         void *user);

/* Wait until the chief has ended the job with mu_node_finish_job. Tasks that only serve
 * call this. Returns 0 when the job has ended, also with an error, which ret_error then
 * holds; -MU_ECLOSED when the node is being closed. */
MU_EXPORT int mu_node_wait_job(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* On the chief (worker 0 in a cluster without a chief): end the job. Every connected task
 * is notified, so that it may exit; `code` is 0, or a negative code with `message`.
 * Returns once every task has closed its connection; at the timeout -MU_EDEADLINE names
 * the tasks that have not. -MU_EPRECONDITION on every other task. */
MU_EXPORT int mu_node_finish_job(mu_node *node, int code, const char *message,
                                 int64_t timeout_ms, mu_error *ret_error);

/* Send a number to the chief, for its status and for mu_node_get_metric: an evaluator's
 * accuracy, say. A later number of the same name replaces it. */
MU_EXPORT int mu_node_report_metric(mu_node *node, const char *name, double number,
                                    uint64_t step);

/* On the chief: the last number reported under a name; -MU_ENOTFOUND without one. */
MU_EXPORT int mu_node_get_metric(mu_node *node, const char *name, double *ret_number,
                                 uint64_t *ret_step);

/* The chief's view of the cluster (other tasks request it over the network): a map with
 * tasks and their state, closures, variables, partitions, metrics. The caller frees
 * *ret_status. */
MU_EXPORT int mu_node_status(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                             mu_value **ret_status);

/* Why a closure has not run, from the chief. The closure is given by its id, as the
 * status, the log and errors show it, or (closure 0) by its name. A map: closure, name,
 * function, state ("queued", "held", "running", "done"), attempt, crashes, task, for_ms,
 * waits_for and, if any, last_error, backup_task. -MU_ENOTFOUND when the
 * chief has no such closure, for instance because it is resolved. The caller frees
 * *ret_reasons. */
MU_EXPORT int mu_node_explain(mu_node *node, uint64_t closure, const char *name,
                              int64_t timeout_ms, mu_error *ret_error,
                              mu_value **ret_reasons);

/* On a worker: leave the job. The chief sends it no more closures; returns when its
 * closures have finished. -MU_EUNAVAILABLE at once when the chief is not connected: then
 * there are none. -MU_EDEADLINE at the timeout, after a check, for two seconds at most,
 * whether the chief still answers. */
MU_EXPORT int mu_node_drain(mu_node *node, int64_t timeout_ms, mu_error *ret_error);

/* ---- Functions that workers run ---- */

/* One run of a function, valid during that run. */
typedef struct mu_run mu_run;

/* The program's code. Returns 0, or a negative code after mu_run_fail. Called on an
 * executor thread, on several at once when the node has several; may block, and may call
 * every function of the node. At-least-once: it may run again on another worker. It is
 * not called for a closure that was cancelled before it began. One that ends its thread
 * (pthread_exit) has failed with -MU_EINTERNAL; the thread is replaced. */
typedef int (*mu_function_fn)(mu_run *run, void *user);

enum mu_function_flag {
    /* Runs on the loop thread itself: for functions of a few microseconds that never
     * block. Saves two thread switches for each closure. One that ends this thread
     * (pthread_exit) ends the process, as abort does; on a loop of the program's own it
     * ends the program's thread, and peers lose the node after their silence_ms. */
    MU_FUNCTION_INLINE = 1
};

/* Register a function under a name of at most 63 bytes. `user` is passed to each run.
 * Before the node serves; -MU_EEXISTS when the name is taken. A closure whose function is
 * "train:mnist" runs "train" on a worker that has no function of the full name; logs,
 * errors, the status and run time statistics use the full name. */
MU_EXPORT int mu_node_register_function(
    mu_node *node, const char *name, mu_function_fn function, void *user, unsigned flags);

/* On a worker: announce to the chief that its functions are registered. It gets no
 * closures before. mu_node_main and mu_node_wait_job do this too. Does nothing on other
 * tasks. */
MU_EXPORT int mu_node_serve(mu_node *node);

/* The arguments, owned by the run; a list when several were passed. A reference to a
 * remote value or to a per-worker value is replaced by that value (the same one at each
 * occurrence, and shared with other runs), or, when it is an object, by a reference for
 * mu_run_object and mu_run_iterator_next. */
MU_EXPORT const mu_value *mu_run_args(mu_run *run);

/* The node that the function runs on. */
MU_EXPORT mu_node *mu_run_node(mu_run *run);

/* Set the result. Takes ownership of `value`; the last call counts; without a call the
 * result is nil. */
MU_EXPORT void mu_run_return(mu_run *run, mu_value *value);

/* Set the message of the run's error; returns `code` (negative) for the function to
 * return. */
MU_EXPORT int mu_run_fail(mu_run *run, int code, const char *format, ...) MU_PRINTF(3, 4);

/* 1 when the result of this run is not needed any more: a long function may stop
 * early. */
MU_EXPORT int mu_run_cancelled(mu_run *run);

/* Fail with the error of a call that the function made (to a variable, say), keeping the
 * task that it came from: by that the coordinator distinguishes failing servers from
 * failing functions. -MU_EABORTED of kind MU_ERROR_WORKER without a task means that a
 * process in which the function ran was lost: the closure runs again, as after the loss
 * of its worker and at most as often (attempts_max), and no other closure is retried.
 * Returns the error's code for the function to return; -MU_EUNKNOWN when it has none. */
MU_EXPORT int mu_run_fail_with(mu_run *run, const mu_error *error);

/* A stack trace that is sent with the error; copied, cut at 1,023 bytes. */
MU_EXPORT void mu_run_set_stack_trace(mu_run *run, const char *text);

enum { MU_ERROR_DATA_MAX = (1 << 20) + (1 << 12) };

/* Bytes that are sent with the error, if the function fails: a program's own form of it,
 * which the receiver of the error reads with mu_coordinator_error_data(). Copied.
 * -MU_EEXHAUSTED: more than MU_ERROR_DATA_MAX bytes; -MU_ENOMEM. */
MU_EXPORT int mu_run_set_error_data(mu_run *run, const void *data, size_t size);

/* Write a line of at most 511 bytes to the node's log. The loop thread writes it a little
 * later, while the function runs on. Lines that come too fast are dropped, and the log
 * says how many; a node that is closing drops them too. Without a stack trace the last
 * lines (1,023 bytes) are sent with the error. */
MU_EXPORT void mu_run_log(mu_run *run, const char *format, ...) MU_PRINTF(2, 3);

/* The closure's name ("" without one), its id, and the number of this run, from 1. */
MU_EXPORT const char *mu_run_closure_name(const mu_run *run);
MU_EXPORT uint64_t mu_run_closure_id(const mu_run *run);
MU_EXPORT uint32_t mu_run_attempt(const mu_run *run);

/* Task index and task type ("worker", or another of worker_types) of the worker. The text
 * is valid until the node is closed. */
MU_EXPORT int mu_run_worker(const mu_run *run);
MU_EXPORT const char *mu_run_worker_type(const mu_run *run);

/* Return a C object, which stays on this worker: as its per-worker value, or as the
 * pinned result of a closure; any other run then fails with -MU_EPRECONDITION. Takes
 * ownership of `object`, as mu_run_return does. `drop` (may be NULL) frees it after its
 * last use, on an executor thread or the loop thread: it must not block. */
MU_EXPORT void mu_run_return_object(mu_run *run, void *object,
                                    void (*drop)(void *object));

/* The object that a reference among the arguments stands for; NULL when `argument` is not
 * such a reference. Several runs may use it at the same time. It is valid until the run
 * ends, or as long as the program holds a reference to `argument` (mu_value_ref). */
MU_EXPORT void *mu_run_object(mu_run *run, const mu_value *argument);

/* Return an iterator over a dataset, which stays on this worker as its per-worker value.
 * `next` is called by one thread at a time: it returns 0 with the element, or -MU_ERANGE
 * at the end and is then not called any more. `drop` (may be NULL) frees `state`, as for
 * mu_run_return_object. On failure (-MU_EINVALID without `next`, -MU_ENOMEM) `state` is
 * dropped, and the run fails even if its function returns 0. */
MU_EXPORT int mu_run_return_iterator(mu_run *run,
                                     int (*next)(void *state, mu_value **ret_element),
                                     void (*drop)(void *state), void *state);

/* The next element of an iterator among the arguments; the caller frees it. Waits while
 * another run gets an element. -MU_EINVALID when the argument is not an iterator;
 * -MU_ERANGE at the end and ever after; else the error of `next`, after which the call
 * may be repeated. */
MU_EXPORT int mu_run_iterator_next(mu_run *run, const mu_value *iterator,
                                   mu_value **ret_element);

/* ---- Plugins: functions and programs from a shared object ---- */

/* A program is a task's main function: on the chief it schedules closures, on the
 * evaluator it watches the parameters. Tasks without a program serve until the job is
 * done. Runs on the thread of mu_node_main; its return value (0 or a negative code) ends
 * the task. */
typedef int (*mu_program_fn)(mu_node *node, void *user);

/* Set the program of a task type; before mu_node_main. */
MU_EXPORT int mu_node_register_program(mu_node *node, const char *task_type,
                                       mu_program_fn program, void *user);

/* Set the message of the error with which the program will end. Returns `code`
 * (negative) for the program to return. mu_node_main passes the message to its caller;
 * `muster node` logs it, and when it is the chief's program, it becomes the job's error,
 * which all other tasks get and `muster run` prints at its end. The last call counts.
 * Without a call, the message is that of the last failed call on the program's thread
 * that returned the same code. */
MU_EXPORT int mu_node_fail(mu_node *node, int code, const char *format, ...)
    MU_PRINTF(3, 4);

/* The same with the error of a failed call, keeping its kind and task (for
 * mu_restart_exit_code). Returns the error's code for the program to return; -MU_EUNKNOWN
 * when it has none. */
MU_EXPORT int mu_node_fail_with(mu_node *node, const mu_error *error);

/* Run this node's task on the calling thread: its program if it has one, else serve until
 * the job is done (or the node is being closed: -MU_ECLOSED). Returns the result of the
 * program or of the job, with the error in ret_error: see mu_node_fail. */
MU_EXPORT int mu_node_main(mu_node *node, mu_error *ret_error);

/* Settings for plugins (`muster node --set key=value`), to be set before plugins are
 * loaded; copied. mu_node_get_setting returns NULL for an absent one; its text is valid
 * until the node is closed. */
MU_EXPORT int mu_node_set_setting(mu_node *node, const char *key, const char *value);
MU_EXPORT const char *mu_node_get_setting(const mu_node *node, const char *key);

/* A plugin is a shared object that exports `int mu_plugin_open(mu_node *node)`, which
 * registers its functions and programs and returns 0 or a negative code. One of its files
 * has `MU_PLUGIN;` outside of functions, which exports the version of this interface that
 * it was compiled for; a plugin without it counts as version 1. */
typedef int (*mu_plugin_open_fn)(mu_node *node);

#define MU_PLUGIN_API_VERSION 1

#ifdef __cplusplus
#define MU_PLUGIN                                              \
    extern "C" MU_EXPORT const unsigned mu_plugin_api_version; \
    const unsigned mu_plugin_api_version = MU_PLUGIN_API_VERSION
#else
#define MU_PLUGIN                                          \
    extern MU_EXPORT const unsigned mu_plugin_api_version; \
    const unsigned mu_plugin_api_version = MU_PLUGIN_API_VERSION
#endif

/* Load a plugin into a node. A path without a slash is a file in the current directory,
 * or else a library that dlopen() finds. -MU_ENOTFOUND (no such file, no such symbol),
 * -MU_EPRECONDITION (compiled for another version; mu_plugin_open is not a function), and
 * the code that mu_plugin_open returns, with the reason in ret_error. A plugin that calls
 * exit() while it is loaded ends the process with exit code 2, and one that crashes ends
 * it too, both with a line on standard error that names it; a slow one is logged (see
 * plugin_timeout_ms). One plugin is loaded at a time. */
MU_EXPORT int mu_node_load_plugin(mu_node *node, const char *path, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
