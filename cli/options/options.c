#include "cli/options/options.h"

#include "cli/verbs.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES (CMD_NODE | CMD_RUN)
#define CHIEF_ASKERS (CMD_STATUS | CMD_EXPLAIN | CMD_DRAIN | CMD_STOP)
#define KV                                                                            \
    (CMD_KV_GET | CMD_KV_PUT | CMD_KV_WATCH | CMD_KV_LS | CMD_KV_RM | CMD_KV_INCR |   \
     CMD_KV_TXN | CMD_KV_HOLD)
#define STORE (CMD_STORE_LS | CMD_STORE_CLEAR)
#define TASK (CMD_TASK_REPORT | CMD_TASK_RESET)
#define SERVICE_ASKERS                                                                \
    (STORE | KV | TASK | CMD_BARRIER | CMD_TASKS | CMD_DEVICES | CMD_PREEMPT | CMD_LOCK)
#define ASKERS (CHIEF_ASKERS | SERVICE_ASKERS)
#define JOURNALS (CMD_JOURNAL_CHECK | CMD_JOURNAL_REPAIR)
#define FINDERS (CMD_NODE | ASKERS | CMD_OFFER | CMD_RESOLVE | CMD_CHECK)
#define OPTION(name) &mu__options[MU__OPTION_##name]

const struct cmd_flag_spec cmd_flags[CMD_FLAGS_COUNT] = {
    [CMD_FLAG_CLUSTER] = {
        .name = "cluster", .variable = "MUSTER_CLUSTER", .kind = CMD_TEXT,
        .verbs = FINDERS, .word = "SPEC",
        .help = "the cluster as JSON, {\"worker\": [\"host:port\"]}, or the file it is "
                "in (FILE or @FILE); without it a resolver says it",
    },
    [CMD_FLAG_TASK] = {
        .name = "task", .variable = "MUSTER_TASK", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CMD_RESOLVE | CMD_CHECK, .word = "TYPE:INDEX",
        .help = "which task this is, \"worker:1\"; without it a resolver says it",
    },
    [CMD_FLAG_TYPE] = {
        .name = "type", .variable = "MUSTER_TYPE", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CMD_RESOLVE | CMD_CHECK, .word = "TYPE",
        .help = "the task's type alone: chief, worker, ps, evaluator or client",
    },
    [CMD_FLAG_INDEX] = {
        .name = "index", .variable = "MUSTER_INDEX", .kind = CMD_NUMBER,
        .verbs = CMD_NODE | CMD_RESOLVE | CMD_CHECK, .word = "N", .initial = "0",
        .high = 999999,
        .help = "the task's index, beside --type; without it a resolver says it, or "
                "that one is taken which is free",
    },
    [CMD_FLAG_RESOLVER] = {
        .name = "resolver", .variable = "MUSTER_RESOLVER", .kind = CMD_LIST,
        .verbs = FINDERS, .word = "NAME", .initial = "auto",
        .help = "who says what the cluster is, and which task this is, where --cluster "
                "and --task do not: `muster resolve --list` has their names; auto: the "
                "first one that recognises this place, TF_CONFIG before all others; may "
                "be repeated: their union",
    },
    [CMD_FLAG_RESOLVER_SET] = {
        .name = "resolver-set", .variable = "MUSTER_RESOLVER_SET", .kind = CMD_LIST,
        .verbs = FINDERS, .word = "SETTING=VALUE",
        .help = "a setting of the resolver, \"port=8888\"; NAME.SETTING=VALUE where "
                "there are several, or auto; may be repeated",
    },
    [CMD_FLAG_RESOLVE_MS] = {
        .name = "resolve-ms", .option = OPTION(RESOLVE_MS), .kind = CMD_NUMBER,
        .verbs = FINDERS, .word = "MS",
        .help = "how long to wait for what a resolver asks, and for tasks that are not "
                "known yet; 0: each is asked once. Verbs other than node wait 10000 at "
                "most unless it is given",
    },
    [CMD_FLAG_CLUSTER_NAME] = {
        .name = "cluster-name", .option = OPTION(CLUSTER_NAME), .kind = CMD_TEXT,
        .verbs = NODES | ASKERS | CMD_OFFER | CMD_CHECK, .word = "NAME",
        .help = "nodes of a cluster with another name are refused",
    },
    [CMD_FLAG_BIND] = {
        .name = "bind", .variable = "MUSTER_BIND", .kind = CMD_TEXT,
        .verbs = CMD_NODE | ASKERS | CMD_OFFER | CMD_CHECK, .word = "URL",
        .help = "where to listen, \"tcp://0.0.0.0:4000\"; without it the task's own "
                "address",
    },
    [CMD_FLAG_ADVERTISE] = {
        .name = "advertise", .variable = "MUSTER_ADVERTISE", .kind = CMD_TEXT,
        .verbs = CMD_NODE | ASKERS | CMD_CHECK, .word = "URL",
        .help = "where the others reach this task, if that is not its own address",
    },
    [CMD_FLAG_THREADS] = {
        .name = "threads", .option = OPTION(THREADS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "functions that a worker runs at the same time",
    },
    [CMD_FLAG_PROCESSES] = {
        .name = "processes", .variable = "MUSTER_PROCESSES", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N", .initial = "0", .high = 1024,
        .help = "processes in which a worker runs functions of Python, each one at a "
                "time, in place of --threads; 0: they run in its threads",
    },
    [CMD_FLAG_WINDOW] = {
        .name = "window", .option = OPTION(WINDOW), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "chief: closures given to one worker at a time; 0: as many as keep it "
                "busy, by the time that functions take",
    },
    [CMD_FLAG_QUEUE_MAX] = {
        .name = "queue-max", .option = OPTION(QUEUE_MAX), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "closures scheduled and not resolved before scheduling blocks",
    },
    [CMD_FLAG_QUEUE_BYTES_MAX] = {
        .name = "queue-bytes-max", .option = OPTION(QUEUE_BYTES_MAX), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "bytes of their arguments before scheduling blocks",
    },
    [CMD_FLAG_ATTEMPTS_MAX] = {
        .name = "attempts-max", .option = OPTION(ATTEMPTS_MAX), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "chief: workers that may die under one closure before it is given up",
    },
    [CMD_FLAG_RETRIES_MAX] = {
        .name = "retries-max", .option = OPTION(RETRIES_MAX), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "chief: runs of one closure, whatever ended them, before it is "
                "given up",
    },
    [CMD_FLAG_RECOVERY_MS] = {
        .name = "recovery-ms", .option = OPTION(RECOVERY_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "chief: a worker that does not come back for so long is an "
                "error; 0: never",
    },
    [CMD_FLAG_START_DELAY_MS] = {
        .name = "start-delay-ms", .option = OPTION(START_DELAY_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "chief: worker i gets its first closure i times this after it "
                "joined",
    },
    [CMD_FLAG_START_DELAY_MAX_MS] = {
        .name = "start-delay-max-ms", .option = OPTION(START_DELAY_MAX_MS),
        .kind = CMD_NUMBER, .verbs = NODES, .word = "MS",
        .help = "chief: the longest such delay; 0: no cap",
    },
    [CMD_FLAG_SERVER_FAILURES] = {
        .name = "server-failures", .option = OPTION(SERVER_FAILURES), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "chief: reports of a failing parameter server that are taken "
                "for passing",
    },
    [CMD_FLAG_SERVER_FAILURES_MS] = {
        .name = "server-failures-ms", .option = OPTION(SERVER_FAILURES_MS),
        .kind = CMD_NUMBER, .verbs = NODES, .word = "MS",
        .help = "chief: for how long such a report counts",
    },
    [CMD_FLAG_SERVER_LOST_MS] = {
        .name = "server-lost-ms", .option = OPTION(SERVER_LOST_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "a parameter server that was up and is away for so long is unavailable "
                "to every call, until it is back; 0: calls wait for it",
    },
    [CMD_FLAG_EFFECT_WAIT_MS] = {
        .name = "effect-wait-ms", .option = OPTION(EFFECT_WAIT_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "worker: how long what a run wrote waits for a parameter server that "
                "does not answer",
    },
    [CMD_FLAG_TIMEOUTS] = {
        .name = "timeouts", .option = OPTION(TIMEOUTS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "chief: results that say deadline exceeded and are retried",
    },
    [CMD_FLAG_UNKNOWN_IS_WORKER] = {
        .name = "unknown-is-worker", .option = OPTION(UNKNOWN_IS_WORKER),
        .kind = CMD_NUMBER, .verbs = NODES, .word = "0|1",
        .help = "chief: whether a result that says unknown error counts as the "
                "worker's failure, so that the closure runs elsewhere",
    },
    [CMD_FLAG_BACKUP_PERCENT] = {
        .name = "backup-percent", .option = OPTION(BACKUP_PERCENT), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N",
        .help = "chief: an idle worker runs a closure too when it takes longer "
                "than so many percent of its function's mean run time; 0: never",
    },
    [CMD_FLAG_WATCHDOG_MS] = {
        .name = "watchdog-ms", .option = OPTION(WATCHDOG_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "chief: no closure finishing for so long, while some are under "
                "way, is logged; 0: off",
    },
    [CMD_FLAG_MEASURE] = {
        .name = "measure", .option = OPTION(MEASURE), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "0|1",
        .help = "whether timers are collected for the status",
    },
    [CMD_FLAG_JOURNAL] = {
        .name = "journal", .option = OPTION(JOURNAL), .kind = CMD_TEXT,
        .verbs = NODES, .word = "FILE",
        .help = "chief: file that keeps named closures over a restart of the "
                "chief",
    },
    [CMD_FLAG_JOURNAL_SYNC] = {
        .name = "journal-sync", .option = OPTION(JOURNAL_SYNC), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "0|1",
        .help = "whether the journal survives a power cut, too",
    },
    [CMD_FLAG_RESTART_EXIT_CODE] = {
        .name = "restart-exit-code", .option = OPTION(RESTART_EXIT_CODE),
        .kind = CMD_NUMBER, .verbs = NODES, .word = "N",
        .help = "chief: how it ends when its program ends with unavailable, to "
                "be started again; the other tasks are then left as they are",
    },
    [CMD_FLAG_HEARTBEAT_MS] = {
        .name = "heartbeat-ms", .option = OPTION(HEARTBEAT_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "how often a silent link says that it lives",
    },
    [CMD_FLAG_SILENCE_MS] = {
        .name = "silence-ms", .option = OPTION(SILENCE_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "a task not heard for so long is lost; at least twice --heartbeat-ms",
    },
    [CMD_FLAG_SERVICE_HOSTS] = {
        .name = "service-hosts", .option = OPTION(SERVICE_HOSTS), .kind = CMD_TEXT,
        .verbs = NODES | SERVICE_ASKERS | CMD_CHECK, .word = "TASKS",
        .help = "who may host the coordination service, \"chief:0\" or \"ps:0-1\", the "
                "same for all tasks; none: there is no service; without it chief 0, or "
                "else ps 0, or else worker 0",
    },
    [CMD_FLAG_STORE] = {
        .name = "store", .option = OPTION(STORE), .kind = CMD_TEXT,
        .verbs = NODES | STORE,
        .word = "STORE",
        .help = "host: where the service keeps keys and barriers: memory, journal:PATH "
                "(a file), or etcd:URL,URL, which several hosts may share",
    },
    [CMD_FLAG_STORE_SYNC] = {
        .name = "store-sync", .option = OPTION(STORE_SYNC), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "0|1",
        .help = "host: whether what the service says was kept survives a power cut, too",
    },
    [CMD_FLAG_JOB_RUN] = {
        .name = "run", .option = OPTION(RUN), .kind = CMD_TEXT,
        .verbs = NODES | CMD_STORE_CLEAR, .word = "NAME",
        .help = "the run of the job that this is, to be continued or begun; without it a "
                "host of the service goes on with the run that its store is in, or "
                "begins another when that one has ended, and `muster run` begins one of "
                "a new name. `muster store clear`: the run to forget",
    },
    [CMD_FLAG_ENDED] = {
        .name = "ended", .variable = "MUSTER_STORE_CLEAR_ENDED", .kind = CMD_SWITCH,
        .verbs = CMD_STORE_CLEAR, .initial = "0", .high = 1,
        .help = "forget the runs before the present one",
    },
    [CMD_FLAG_PRESENT] = {
        .name = "present", .variable = "MUSTER_STORE_CLEAR_PRESENT", .kind = CMD_SWITCH,
        .verbs = CMD_STORE_CLEAR, .initial = "0", .high = 1,
        .help = "forget what the present run has come to: outcomes of barriers, notices "
                "of preemption, results and errors of functions",
    },
    [CMD_FLAG_KEYS] = {
        .name = "keys", .variable = "MUSTER_STORE_CLEAR_KEYS", .kind = CMD_SWITCH,
        .verbs = CMD_STORE_CLEAR, .initial = "0", .high = 1,
        .help = "delete the keys of programs",
    },
    [CMD_FLAG_COORDINATED_JOBS] = {
        .name = "coordinated-jobs", .option = OPTION(COORDINATED_JOBS), .kind = CMD_TEXT,
        .verbs = NODES, .word = "TYPES",
        .help = "task types whose tasks barriers and registering wait for, the same for "
                "all tasks",
    },
    [CMD_FLAG_WORKER_TYPES] = {
        .name = "worker-types", .option = OPTION(WORKER_TYPES), .kind = CMD_TEXT,
        .verbs = NODES | CMD_CHECK, .word = "TYPES",
        .help = "task types whose tasks run closures, the same for all tasks: worker, "
                "and types of your own",
    },
    [CMD_FLAG_RECOVERABLE] = {
        .name = "recoverable", .option = OPTION(RECOVERABLE), .kind = CMD_TEXT,
        .verbs = NODES, .word = "TYPES",
        .help = "host: task types that may fail without an error for the others; all, "
                "none",
    },
    [CMD_FLAG_SUSPECT_MS] = {
        .name = "suspect-ms", .option = OPTION(SUSPECT_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "host: a task that it has not heard for so long is suspect; less than "
                "--dead-ms",
    },
    [CMD_FLAG_DEAD_MS] = {
        .name = "dead-ms", .option = OPTION(DEAD_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "host: a task that it has not heard for so long has failed",
    },
    [CMD_FLAG_RECONNECT_MS] = {
        .name = "reconnect-ms", .option = OPTION(RECONNECT_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "host: and so has one whose link is down for so long",
    },
    [CMD_FLAG_STUCK_MS] = {
        .name = "stuck-ms", .option = OPTION(STUCK_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "host: and one that lives, and whose program says nothing about its "
                "progress for so long; 0: never",
    },
    [CMD_FLAG_LEAVE_MS] = {
        .name = "leave-ms", .option = OPTION(LEAVE_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "host: tasks that are not recoverable leave together, or after so long; "
                "0: each when it likes",
    },
    [CMD_FLAG_LEASE_MS] = {
        .name = "lease-ms", .option = OPTION(LEASE_MS), .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS",
        .help = "host: one of several that is not heard for so long is replaced",
    },
    [CMD_FLAG_PREEMPT_ON_SIGTERM] = {
        .name = "preempt-on-sigterm", .variable = "MUSTER_PREEMPT_ON_SIGTERM",
        .kind = CMD_NUMBER, .verbs = NODES, .word = "0|1", .initial = "0", .high = 1,
        .help = "whether the first SIGTERM is a preemption notice, so that all tasks "
                "agree on a step to stop at, instead of the end",
    },
    [CMD_FLAG_PLUGIN] = {
        .name = "plugin", .variable = "MUSTER_PLUGIN", .kind = CMD_LIST, .verbs = NODES,
        .word = "FILE",
        .help = "shared object with functions and programs; may be repeated",
    },
    [CMD_FLAG_PLUGIN_TIMEOUT_MS] = {
        .name = "plugin-timeout-ms", .option = OPTION(PLUGIN_TIMEOUT_MS),
        .kind = CMD_NUMBER, .verbs = NODES, .word = "MS",
        .help = "a plugin that is not loaded for so long ends the task; 0: never",
    },
    [CMD_FLAG_PYTHON] = {
        .name = "python", .variable = "MUSTER_PYTHON_MODULE", .kind = CMD_LIST,
        .verbs = NODES, .word = "MODULE",
        .help = "Python module with functions and programs, imported by an interpreter "
                "inside the node; may be repeated. \"\": the interpreter alone",
    },
    [CMD_FLAG_SET] = {
        .name = "set", .variable = "MUSTER_SET", .kind = CMD_LIST, .verbs = NODES,
        .word = "KEY=VALUE", .help = "a setting for the plugins; may be repeated",
    },
    [CMD_FLAG_GRACE_MS] = {
        .name = "grace-ms", .variable = "MUSTER_GRACE_MS", .kind = CMD_NUMBER,
        .verbs = NODES | CMD_PREEMPT, .word = "MS", .initial = "5000", .high = 3600000,
        .help = "how long functions that run may take to end when the task is stopped; "
                "`muster preempt`: how long until the machine is gone",
    },
    [CMD_FLAG_WORKERS] = {
        .name = "workers", .variable = "MUSTER_WORKERS", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "N", .initial = "2", .high = 1000,
        .help = "how many workers",
    },
    [CMD_FLAG_PS] = {
        .name = "ps", .variable = "MUSTER_PS", .kind = CMD_NUMBER, .verbs = CMD_RUN,
        .word = "N", .initial = "1", .high = 200, .help = "how many parameter servers",
    },
    [CMD_FLAG_COUNTS] = {
        .name = "counts", .variable = "MUSTER_COUNTS", .kind = CMD_TEXT,
        .verbs = CMD_RUN, .word = "TYPE=N,...",
        .help = "how many tasks of types of your own, as gpu=2,cpu=3; with "
                "--worker-types those that run closures",
    },
    [CMD_FLAG_EVALUATOR] = {
        .name = "evaluator", .variable = "MUSTER_EVALUATOR", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "0|1", .initial = "0", .high = 1,
        .help = "whether there is an evaluator",
    },
    [CMD_FLAG_CHIEF] = {
        .name = "chief", .variable = "MUSTER_RUN_CHIEF", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "0|1", .initial = "1", .high = 1,
        .help = "whether there is a chief; the cluster ends with it",
    },
    [CMD_FLAG_TRANSPORT] = {
        .name = "transport", .variable = "MUSTER_TRANSPORT", .kind = CMD_CHOICE,
        .verbs = CMD_RUN, .word = "KIND", .initial = "tcp", .choices = "tcp|ipc",
        .help = "free ports of 127.0.0.1, or sockets in a fresh directory",
    },
    [CMD_FLAG_RESTART] = {
        .name = "restart", .variable = "MUSTER_RESTART", .kind = CMD_TEXT,
        .verbs = CMD_RUN, .word = "POLICY", .initial = "never",
        .help = "never, on-failure or always; or for each type, "
                "\"worker=always,ps=never\". The chief is never started again",
    },
    [CMD_FLAG_RESTART_MAX] = {
        .name = "restart-max", .variable = "MUSTER_RESTART_MAX", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "N", .initial = "10", .high = 1000000,
        .help = "restarts of one task in a row; one that has run for a minute begins "
                "again",
    },
    [CMD_FLAG_STATUS_FILE] = {
        .name = "status-file", .variable = "MUSTER_STATUS_FILE", .kind = CMD_TEXT,
        .verbs = CMD_RUN, .word = "FILE",
        .help = "keep a file of JSON up to date: pid, address, state of each task",
    },
    [CMD_FLAG_COLOR] = {
        .name = "color", .variable = "MUSTER_COLOR", .kind = CMD_CHOICE,
        .verbs = CMD_RUN, .word = "WHEN", .initial = "auto",
        .choices = "auto|always|never",
        .help = "colours for the names of tasks; auto: on a terminal, unless NO_COLOR is "
                "set",
    },
    [CMD_FLAG_ADDRESS] = {
        .name = "address", .variable = "MUSTER_CHIEF", .kind = CMD_TEXT,
        .verbs = ASKERS, .word = "URL",
        .help = "the chief's address, \"tcp://host:port\"; or, for verbs that ask the "
                "coordination service, its host's; without it --cluster or TF_CONFIG "
                "says it",
    },
    [CMD_FLAG_WAIT] = {
        .name = "wait", .variable = "MUSTER_WAIT", .kind = CMD_SWITCH,
        .verbs = CMD_KV_GET | CMD_TASKS, .word = "0|1", .initial = "0", .high = 1,
        .help = "wait until the key is there, or all the tasks are connected",
    },
    [CMD_FLAG_PREFIX] = {
        .name = "prefix", .variable = "MUSTER_KV_PREFIX", .kind = CMD_SWITCH,
        .verbs = CMD_KV_GET | CMD_KV_WATCH, .word = "0|1", .initial = "0", .high = 1,
        .help = "all keys below KEY, as if it ended with \"/\"",
    },
    [CMD_FLAG_IF_ABSENT] = {
        .name = "if-absent", .variable = "MUSTER_KV_IF_ABSENT", .kind = CMD_SWITCH,
        .verbs = CMD_KV_PUT | CMD_KV_HOLD, .word = "0|1", .initial = "0", .high = 1,
        .help = "only if the key is not there yet",
    },
    [CMD_FLAG_IF_REVISION] = {
        .name = "if-revision", .variable = "MUSTER_KV_IF_REVISION", .kind = CMD_TEXT,
        .verbs = CMD_KV_PUT | CMD_KV_RM | CMD_KV_HOLD, .word = "REVISION",
        .help = "only if that is the key's revision; 0: if it is not there",
    },
    [CMD_FLAG_IF_VALUE] = {
        .name = "if-value", .variable = "MUSTER_KV_IF_VALUE", .kind = CMD_TEXT,
        .verbs = CMD_KV_PUT | CMD_KV_RM | CMD_KV_HOLD, .word = "VALUE",
        .help = "only if that is the key's value",
    },
    [CMD_FLAG_LONG] = {
        .name = "long", .variable = "MUSTER_KV_LONG", .letter = 'l', .kind = CMD_SWITCH,
        .verbs = CMD_KV_LS, .word = "0|1", .initial = "0", .high = 1,
        .help = "with sizes and revisions",
    },
    [CMD_FLAG_COUNT] = {
        .name = "count", .variable = "MUSTER_KV_COUNT", .kind = CMD_NUMBER,
        .verbs = CMD_KV_WATCH, .word = "N", .initial = "0", .high = 1000000000,
        .help = "end after so many changes; 0: never",
    },
    [CMD_FLAG_TASKS] = {
        .name = "tasks", .variable = "MUSTER_TASKS", .kind = CMD_TEXT,
        .verbs = CMD_BARRIER | CMD_TASKS | CMD_OFFER, .word = "TASKS",
        .help = "which tasks, \"client:0-1,worker:0\"; `muster tasks` and `muster "
                "offer`: without it all",
    },
    [CMD_FLAG_AS] = {
        .name = "as", .variable = "MUSTER_BARRIER_AS", .kind = CMD_TEXT,
        .verbs = CMD_BARRIER, .word = "client:N",
        .help = "which of --tasks this process is; not needed when they have one client",
    },
    [CMD_FLAG_CODE] = {
        .name = "code", .variable = "MUSTER_TASK_CODE", .kind = CMD_TEXT,
        .verbs = CMD_TASK_REPORT, .word = "CODE", .initial = "ABORTED",
        .help = "the error's code: its name, as DATALOSS, or its number",
    },
    [CMD_FLAG_WATCH] = {
        .name = "watch", .variable = "MUSTER_TASKS_WATCH", .kind = CMD_SWITCH,
        .verbs = CMD_TASKS, .word = "0|1", .initial = "0", .high = 1,
        .help = "go on, and print each change",
    },
    [CMD_FLAG_LIST] = {
        .name = "list", .variable = "MUSTER_RESOLVE_LIST", .kind = CMD_SWITCH,
        .verbs = CMD_RESOLVE, .word = "0|1", .initial = "0", .high = 1,
        .help = "only list the resolvers and their settings",
    },
    [CMD_FLAG_EXPLAIN] = {
        .name = "explain", .variable = "MUSTER_RESOLVE_EXPLAIN", .kind = CMD_SWITCH,
        .verbs = CMD_RESOLVE, .word = "0|1", .initial = "0", .high = 1,
        .help = "say which sources were tried, what they were asked, with what result",
    },
    [CMD_FLAG_RESOLVE_WATCH] = {
        .name = "watch", .variable = "MUSTER_RESOLVE_WATCH", .kind = CMD_SWITCH,
        .verbs = CMD_RESOLVE, .word = "0|1", .initial = "0", .high = 1,
        .help = "go on, and print each change as a line",
    },
    [CMD_FLAG_RESOLVE_OUTPUT] = {
        .name = "output", .variable = "MUSTER_OUTPUT", .letter = 'o', .kind = CMD_CHOICE,
        .verbs = CMD_RESOLVE, .word = "FORMAT", .initial = "text",
        .choices = "text|json|TF_CONFIG",
        .help = "what is printed: text, JSON, or what TF_CONFIG would be, in one line",
    },
    [CMD_FLAG_WAIT_MS] = {
        .name = "wait-ms", .variable = "MUSTER_CHECK_WAIT_MS", .kind = CMD_NUMBER,
        .verbs = CMD_CHECK, .word = "MS", .initial = "5000", .low = 1, .high = 3600000,
        .help = "how long each task has to answer",
    },
    [CMD_FLAG_TIMEOUT_MS] = {
        .name = "timeout-ms", .variable = "MUSTER_TIMEOUT_MS", .kind = CMD_NUMBER,
        .verbs = ASKERS | CMD_OFFER, .word = "MS", .initial = "5000",
        .low = 1, .high = 86400000,
        .help = "how long to wait for the chief or the service; and, when it is given, "
                "for what drain, stop, kv get --wait, kv watch, barrier and tasks wait "
                "for, which else may take as long as it takes",
    },
    [CMD_FLAG_LOG_LEVEL] = {
        .name = "log-level", .variable = "MUSTER_LOG_LEVEL", .kind = CMD_CHOICE,
        .verbs = NODES | ASKERS | CMD_OFFER | CMD_CHECK, .word = "LEVEL",
        .initial = "info",
        .choices = "error|warn|info|debug",
        .help = "the least grave lines to log; unless they are told, verbs that ask log "
                "errors alone, and `muster run` warn without --log-file",
    },
    [CMD_FLAG_LOG_FORMAT] = {
        .name = "log-format", .variable = "MUSTER_LOG_FORMAT", .kind = CMD_CHOICE,
        .verbs = NODES | ASKERS | CMD_OFFER | CMD_CHECK, .word = "FORMAT",
        .initial = "text",
        .choices = "text|json", .help = "lines for people, or one JSON object a line",
    },
    [CMD_FLAG_LOG_FILE] = {
        .name = "log-file", .variable = "MUSTER_LOG_FILE", .kind = CMD_TEXT,
        .verbs = NODES | ASKERS | CMD_OFFER | CMD_CHECK, .word = "FILE",
        .help = "append the log to a file; without it to standard error",
    },
    [CMD_FLAG_OUTPUT] = {
        .name = "output", .variable = "MUSTER_OUTPUT", .letter = 'o', .kind = CMD_CHOICE,
        .verbs = CMD_STATUS | CMD_EXPLAIN | CMD_STOP | CMD_VERSION | CMD_CHECK |
                 JOURNALS | SERVICE_ASKERS | CMD_OFFER,
        .word = "FORMAT",
        .initial = "text", .choices = "text|json",
        .help = "what is printed: text or JSON",
    },
    [CMD_FLAG_MODE] = {
        .name = "mode", .variable = "MUSTER_MODE", .kind = CMD_CHOICE, .verbs = NODES,
        .word = "MODE", .initial = "independent",
        .choices = "independent|standalone|local|client-worker",
        .help = "who calls the worker function of a plugin: each task its own, a client "
                "for all, this process alone, or the leading task for all",
    },
    [CMD_FLAG_WAIT_CLUSTER] = {
        .name = "wait-cluster", .variable = "MUSTER_WAIT_CLUSTER", .kind = CMD_SWITCH,
        .verbs = CMD_NODE, .word = "0|1", .initial = "0", .high = 1,
        .help = "wait at --bind for a client that says which cluster this is, and which "
                "task; TF_CONFIG is not looked at",
    },
};

/* ---- values ---- */

const char *cmd_text(const struct cmd_options *options, enum cmd_flag flag)
{
    return options->values[flag].text;
}

unsigned cmd_number(const struct cmd_options *options, enum cmd_flag flag)
{
    return (unsigned)options->values[flag].number;
}

const char *cmd_variable(enum cmd_flag flag)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];

    return spec->option == NULL ? spec->variable : spec->option->variable;
}

const char *cmd_initial(enum cmd_flag flag, char *out, size_t size)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];

    if (spec->option == NULL)
        return spec->initial == NULL ? "" : spec->initial;
    if (spec->option->initial_words != NULL)
        return spec->option->initial_words;
    if (spec->option->kind == MU__OPTION_TEXT)
        return "";
    (void)snprintf(out, size, "%" PRIu64, spec->option->initial);
    return out;
}

void cmd_node_options(const struct cmd_options *options, mu_node_options *node_options)
{
    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_value *value = &options->values[flag];
        const struct mu__option_value given = {
            .text = value->text,
            .number = value->number,
        };

        if (cmd_flags[flag].option != NULL && value->source != CMD_FROM_DEFAULT)
            mu__option_store(cmd_flags[flag].option, &given, node_options);
    }
}

const char *cmd_origin(const struct cmd_options *options, enum cmd_flag flag, char *out,
                       size_t size)
{
    const char *variable = options->values[flag].variable;

    (void)snprintf(out, size, "%s%s", variable == NULL ? "--" : "",
                   variable == NULL ? cmd_flags[flag].name : variable);
    return out;
}

static int refuse(const struct cmd_options *options, enum cmd_flag flag,
                  const char *expected, mu_error *error)
{
    char origin[CMD_ORIGIN_BYTES];
    char got[MU__QUOTE_BYTES];
    const char *text = options->values[flag].text;

    mu__quote(got, sizeof got, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID, "%s: expected %s, got %s",
                        cmd_origin(options, flag, origin, sizeof origin), expected, got);
}

static int read_number(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];
    struct cmd_value *value = &options->values[flag];
    char expected[80];
    unsigned long number;
    char *end;

    errno = 0;
    number = strtoul(value->text, &end, 10);
    if (value->text[0] >= '0' && value->text[0] <= '9' && *end == '\0' && errno == 0 &&
        number >= spec->low && number <= spec->high) {
        value->number = (unsigned)number;
        return 0;
    }
    (void)snprintf(expected, sizeof expected, "a whole number of %u to %u", spec->low,
                   spec->high);
    return refuse(options, flag, expected, error);
}

static int read_choice(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    struct cmd_value *value = &options->values[flag];
    const char *at = cmd_flags[flag].choices;
    char expected[96];

    for (unsigned i = 0; at != NULL; i++) {
        const char *bar = strchr(at, '|');
        size_t length = bar == NULL ? strlen(at) : (size_t)(bar - at);

        if (strlen(value->text) == length && strncmp(value->text, at, length) == 0) {
            value->number = i;
            return 0;
        }
        at = bar == NULL ? NULL : bar + 1;
    }
    (void)snprintf(expected, sizeof expected, "one of %s", cmd_flags[flag].choices);
    return refuse(options, flag, expected, error);
}

static int add_item(struct cmd_value *value, const char *text, size_t length)
{
    char **items = realloc(value->items, (value->items_count + 1) * sizeof *items);
    char *item;

    if (items == NULL)
        return -MU_ENOMEM;
    value->items = items;
    item = strndup(text, length);
    if (item == NULL)
        return -MU_ENOMEM;
    items[value->items_count++] = item;
    return 0;
}

static int read_list(struct cmd_value *value)
{
    const char *at = value->text;
    int rv = 0;

    while (rv == 0 && at != NULL) {
        size_t length = strcspn(at, ";");

        if (length > 0)
            rv = add_item(value, at, length);
        at = at[length] == ';' ? at + length + 1 : NULL;
    }
    return rv;
}

/* An option of the node, as the command line says it. */
static int read_option(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    struct cmd_value *value = &options->values[flag];
    struct mu__option_value read = {0};
    char origin[CMD_ORIGIN_BYTES];
    int rv = mu__option_read(cmd_flags[flag].option,
                             cmd_origin(options, flag, origin, sizeof origin),
                             value->text, error, &read);

    value->number = read.number;
    return rv;
}

static int read_value(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    if (cmd_flags[flag].option != NULL)
        return read_option(options, flag, error);
    switch (cmd_flags[flag].kind) {
    case CMD_NUMBER:
    case CMD_SWITCH:
        return read_number(options, flag, error);
    case CMD_CHOICE:
        return read_choice(options, flag, error);
    default:
        return 0;
    }
}

static void drop_items(struct cmd_value *value)
{
    for (size_t i = 0; i < value->items_count; i++)
        free(value->items[i]);
    free(value->items);
    value->items = NULL;
    value->items_count = 0;
}

/* ---- the environment, then the command line ---- */

/* Of an option of the node. */
static int read_rest_option(const struct mu__option *option, struct cmd_value *value,
                            mu_error *error)
{
    struct mu__option_value found;
    int rv = mu__option_environment(option, error, &found);

    if (rv != 0)
        return rv;
    *value = found.text == NULL
                 ? (struct cmd_value){
                       .text = option->initial_words,
                       .number = option->initial,
                   }
                 : (struct cmd_value){
                       .source = CMD_FROM_VARIABLE,
                       .text = found.text,
                       .variable = found.origin,
                       .number = found.number,
                   };
    return 0;
}

static int read_rest_flag(struct cmd_options *options, enum cmd_flag flag,
                          mu_error *error)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];
    struct cmd_value *value = &options->values[flag];
    const char *text;

    if (spec->option != NULL)
        return read_rest_option(spec->option, value, error);
    text = getenv(spec->variable);
    *value = (struct cmd_value){.text = spec->initial};
    if (text != NULL && text[0] != '\0')
        *value = (struct cmd_value){
            .source = CMD_FROM_VARIABLE,
            .text = text,
            .variable = spec->variable,
        };
    if (value->text == NULL)
        return 0;
    if (spec->kind == CMD_LIST && read_list(value) != 0)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    return read_value(options, flag, error);
}

static int read_rest(struct cmd_options *options, mu_error *error)
{
    int rv = 0;

    for (int flag = 0; rv == 0 && flag < CMD_FLAGS_COUNT; flag++)
        if ((cmd_flags[flag].verbs & options->verb->bit) != 0 &&
            options->values[flag].source != CMD_FROM_LINE)
            rv = read_rest_flag(options, (enum cmd_flag)flag, error);
    return rv;
}

static int unknown_flag(const struct cmd_options *options, const char *name,
                        size_t length, mu_error *error)
{
    const char *words[CMD_FLAGS_COUNT + 2] = {"help"};
    char shown[MU__QUOTE_BYTES];
    char asked[64];
    const char *near;
    size_t count = 1;

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++)
        if ((cmd_flags[flag].verbs & options->verb->bit) != 0)
            words[count++] = cmd_flags[flag].name;
    (void)snprintf(asked, sizeof asked, "%.*s", (int)(length < 60 ? length : 60), name);
    near = cmd_nearest(asked, words);
    mu__quote(shown, sizeof shown, name, length);
    return mu_error_set(error, -MU_EINVALID,
                        "no flag %s%s%s%s; `muster %s --help` lists them", shown,
                        near == NULL ? "" : "; did you mean --", near == NULL ? "" : near,
                        near == NULL ? "" : "?", options->verb->name);
}

/* Which flag an argument is, "--name", "--name=value" or "-o"; ret_value is what stands
 * behind its "=", or NULL. */
static int find_flag(const struct cmd_options *options, const char *argument,
                     mu_error *error, int *ret_flag, const char **ret_value)
{
    bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    size_t length = strcspn(name, "=");

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_flag_spec *spec = &cmd_flags[flag];

        if ((spec->verbs & options->verb->bit) == 0)
            continue;
        if (is_long ? strlen(spec->name) != length ||
                          strncmp(spec->name, name, length) != 0
                    : spec->letter == 0 || length != 1 || name[0] != spec->letter)
            continue;
        *ret_flag = flag;
        *ret_value = name[length] == '=' ? name + length + 1 : NULL;
        return 0;
    }
    return unknown_flag(options, name, length, error);
}

/* In a verb's operands: a command stands behind, which is none of them. */
#define COMMAND_BEGIN "[-- "

static bool takes_command(const struct cmd_verb *verb)
{
    return verb->operands != NULL && strstr(verb->operands, COMMAND_BEGIN) != NULL;
}

/* How many operands a verb takes: at most, and at least. */
static size_t operands_max(const struct cmd_verb *verb, size_t *ret_least)
{
    const char *at = verb->operands == NULL ? "" : verb->operands;
    size_t most = 0;

    *ret_least = 0;
    while (*at != '\0' && strncmp(at, COMMAND_BEGIN, strlen(COMMAND_BEGIN)) != 0) {
        *ret_least += at[0] != '[';
        most++;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return most;
}

static int read_operand(struct cmd_options *options, const char *text, mu_error *error)
{
    char shown[MU__QUOTE_BYTES];
    size_t least;
    size_t most = operands_max(options->verb, &least);

    mu__quote(shown, sizeof shown, text, strlen(text));
    if (most == 0)
        return mu_error_set(error, -MU_EINVALID, "%s: expected a flag", shown);
    if (options->operands_count == most)
        return mu_error_set(error, -MU_EINVALID, "%s: expected %s, and had it", shown,
                            options->verb->operands);
    options->operands[options->operands_count++] = text;
    return 0;
}

static int check_operands(const struct cmd_options *options, mu_error *error)
{
    size_t least;

    (void)operands_max(options->verb, &least);
    if (options->operands_count >= least)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "expected %s; `muster %s --help` says more",
                        options->verb->operands, options->verb->name);
}

/* "-" and numbers below 0 are no flags, and nothing is behind "--". */
static bool is_flag(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && (text[1] < '0' || text[1] > '9');
}

/* One argument, and maybe its value behind it; ret_used says how many. */
static int read_argument(struct cmd_options *options, char **arguments, mu_error *error,
                         size_t *ret_used)
{
    const char *text = NULL;
    struct cmd_value *value;
    int flag = 0;
    int rv;

    *ret_used = 1;
    if (!is_flag(arguments[0]))
        return read_operand(options, arguments[0], error);
    rv = find_flag(options, arguments[0], error, &flag, &text);
    if (rv != 0)
        return rv;
    if (text == NULL && cmd_flags[flag].kind == CMD_SWITCH)
        text = "1";
    if (text == NULL) {
        *ret_used = 2;
        text = arguments[1];
    }
    if (text == NULL)
        return mu_error_set(error, -MU_EINVALID, "--%s: expected %s behind it",
                            cmd_flags[flag].name, cmd_flags[flag].word);
    value = &options->values[flag];
    value->source = CMD_FROM_LINE;
    value->text = text;
    if (cmd_flags[flag].kind != CMD_LIST)
        return read_value(options, (enum cmd_flag)flag, error);
    return add_item(value, text, strlen(text)) == 0
               ? 0
               : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

static int read_arguments(struct cmd_options *options, char **arguments, mu_error *error)
{
    size_t used = 0;
    int rv = 0;

    for (; rv == 0 && *arguments != NULL && strcmp(*arguments, "--") != 0;
         arguments += used)
        rv = read_argument(options, arguments, error, &used);
    if (rv == 0 && *arguments != NULL)
        arguments++;
    if (rv == 0 && takes_command(options->verb)) {
        options->command = *arguments == NULL ? NULL : arguments;
        return 0;
    }
    for (; rv == 0 && *arguments != NULL; arguments++)
        rv = read_operand(options, *arguments, error);
    return rv;
}

static bool asks_help(char **arguments)
{
    for (size_t i = 0; arguments[i] != NULL && strcmp(arguments[i], "--") != 0; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
            return true;
    return false;
}

int cmd_options_parse(const struct cmd_verb *verb, char **arguments, mu_error *ret_error,
                      struct cmd_options *ret_options)
{
    int rv;

    *ret_options = (struct cmd_options){.verb = verb};
    if (asks_help(arguments)) {
        ret_options->help = true;
        return 0;
    }
    rv = read_arguments(ret_options, arguments, ret_error);
    if (rv == 0)
        rv = check_operands(ret_options, ret_error);
    if (rv == 0)
        rv = read_rest(ret_options, ret_error);
    if (rv != 0)
        cmd_options_done(ret_options);
    return rv;
}

void cmd_options_done(struct cmd_options *options)
{
    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++)
        drop_items(&options->values[flag]);
}
