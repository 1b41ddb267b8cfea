/* The table of all flags. */
#include "cli/options/flags.h"
#include "cli/verbs.h"

#define NODES (CMD_NODE | CMD_RUN)
#define CHIEF_CLIENTS (CMD_STATUS | CMD_EXPLAIN | CMD_DRAIN | CMD_STOP)
#define KV                                                                            \
    (CMD_KV_GET | CMD_KV_PUT | CMD_KV_WATCH | CMD_KV_LS | CMD_KV_RM | CMD_KV_INCR |   \
     CMD_KV_TXN | CMD_KV_HOLD)
#define STORE (CMD_STORE_LS | CMD_STORE_CLEAR)
#define TASK (CMD_TASK_REPORT | CMD_TASK_RESET)
#define SERVICE_CLIENTS                                                                \
    (STORE | KV | TASK | CMD_BARRIER | CMD_TASKS | CMD_DEVICES | CMD_PREEMPT | CMD_LOCK)
#define CLIENTS (CHIEF_CLIENTS | SERVICE_CLIENTS)
#define JOURNALS (CMD_JOURNAL_CHECK | CMD_JOURNAL_REPAIR)
#define CLUSTER_VERBS (CMD_NODE | CLIENTS | CMD_ASSIGN | CMD_RESOLVE | CMD_CHECK)
#define OPTION(name) &mu__options[MU__OPTION_##name]

const struct cmd_flag_spec cmd_flags[CMD_FLAGS_COUNT] = {
    [CMD_FLAG_CLUSTER] = {
        .name = "cluster", .variable = "MUSTER_CLUSTER", .kind = CMD_TEXT,
        .verbs = CLUSTER_VERBS, .word = "SPEC",
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
        .verbs = CLUSTER_VERBS, .word = "NAME", .initial = "auto",
        .help = "who says what the cluster is, and which task this is, where --cluster "
                "and --task do not: `muster resolve --list` has their names; auto: the "
                "first one that recognises this place, TF_CONFIG before all others; may "
                "be repeated: their union",
    },
    [CMD_FLAG_RESOLVER_SET] = {
        .name = "resolver-set", .variable = "MUSTER_RESOLVER_SET", .kind = CMD_LIST,
        .verbs = CLUSTER_VERBS, .word = "SETTING=VALUE",
        .help = "a setting of the resolver, \"port=8888\"; NAME.SETTING=VALUE where "
                "there are several, or auto; may be repeated",
    },
    [CMD_FLAG_RESOLVE_MS] = {
        .name = "resolve-ms", .option = OPTION(RESOLVE_MS), .kind = CMD_NUMBER,
        .verbs = CLUSTER_VERBS, .word = "MS",
        .help = "how long to wait for what a resolver asks, and for tasks that are not "
                "known yet; 0: each is asked once. Verbs other than node wait 10000 at "
                "most unless it is given",
    },
    [CMD_FLAG_CLUSTER_NAME] = {
        .name = "cluster-name", .option = OPTION(CLUSTER_NAME), .kind = CMD_TEXT,
        .verbs = NODES | CLIENTS | CMD_ASSIGN | CMD_CHECK, .word = "NAME",
        .help = "nodes of a cluster with another name are refused",
    },
    [CMD_FLAG_BIND] = {
        .name = "bind", .variable = "MUSTER_BIND", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CLIENTS | CMD_ASSIGN | CMD_CHECK, .word = "URL",
        .help = "where to listen, \"tcp://0.0.0.0:4000\"; without it the task's own "
                "address",
    },
    [CMD_FLAG_ADVERTISE] = {
        .name = "advertise", .variable = "MUSTER_ADVERTISE", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CLIENTS | CMD_CHECK, .word = "URL",
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
        .verbs = NODES | SERVICE_CLIENTS | CMD_CHECK, .word = "TASKS",
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
        .verbs = CLIENTS, .word = "URL",
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
        .verbs = CMD_BARRIER | CMD_TASKS | CMD_ASSIGN, .word = "TASKS",
        .help = "which tasks, \"client:0-1,worker:0\"; `muster tasks` and `muster "
                "assign`: without it all",
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
        .verbs = CLIENTS | CMD_ASSIGN, .word = "MS", .initial = "5000",
        .low = 1, .high = 86400000,
        .help = "how long to wait for the chief or the service; and, when it is given, "
                "for what drain, stop, kv get --wait, kv watch, barrier and tasks wait "
                "for, which else may take as long as it takes",
    },
    [CMD_FLAG_LOG_LEVEL] = {
        .name = "log-level", .variable = "MUSTER_LOG_LEVEL", .kind = CMD_CHOICE,
        .verbs = NODES | CLIENTS | CMD_ASSIGN | CMD_CHECK, .word = "LEVEL",
        .initial = "info",
        .choices = "error|warn|info|debug",
        .help = "the least grave lines to log; unless they are told, verbs that ask log "
                "errors alone, and `muster run` warn without --log-file",
    },
    [CMD_FLAG_LOG_FORMAT] = {
        .name = "log-format", .variable = "MUSTER_LOG_FORMAT", .kind = CMD_CHOICE,
        .verbs = NODES | CLIENTS | CMD_ASSIGN | CMD_CHECK, .word = "FORMAT",
        .initial = "text",
        .choices = "text|json", .help = "lines for people, or one JSON object a line",
    },
    [CMD_FLAG_LOG_FILE] = {
        .name = "log-file", .variable = "MUSTER_LOG_FILE", .kind = CMD_TEXT,
        .verbs = NODES | CLIENTS | CMD_ASSIGN | CMD_CHECK, .word = "FILE",
        .help = "append the log to a file; without it to standard error",
    },
    [CMD_FLAG_OUTPUT] = {
        .name = "output", .variable = "MUSTER_OUTPUT", .letter = 'o', .kind = CMD_CHOICE,
        .verbs = CMD_STATUS | CMD_EXPLAIN | CMD_STOP | CMD_VERSION | CMD_CHECK |
                 JOURNALS | SERVICE_CLIENTS | CMD_ASSIGN,
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
