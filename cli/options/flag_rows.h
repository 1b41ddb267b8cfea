/* The flags, one row for each, in the order of the help; it ends with the help's text.
 * Included by flags.h, for the numbers, and by flag_table.c, for the table. OPTION rows
 * are options of the node: name, variable, range and default are in MU_NODE_OPTIONS. */
TEXT(CLUSTER, "cluster", "MUSTER_CLUSTER", CLUSTER_VERBS, "SPEC", NULL,
     "the cluster as JSON, {\"worker\": [\"host:port\"]}, or the file it is in (FILE or "
     "@FILE); without it a resolver says it")
TEXT(TASK, "task", "MUSTER_TASK", CMD_NODE | CMD_RESOLVE | CMD_CHECK, "TYPE:INDEX", NULL,
     "which task this is, \"worker:1\"; without it a resolver says it")
TEXT(TYPE, "type", "MUSTER_TYPE", CMD_NODE | CMD_RESOLVE | CMD_CHECK, "TYPE", NULL,
     "the task's type alone: chief, worker, ps, evaluator or client")
NUMBER(INDEX, "index", "MUSTER_INDEX", CMD_NODE | CMD_RESOLVE | CMD_CHECK, "N", "0", 0,
       999999,
       "the task's index, beside --type; without it a resolver says it, or that "
       "one is taken which is free")
LIST(RESOLVER, "resolver", "MUSTER_RESOLVER", CLUSTER_VERBS, "NAME", "auto",
     "who says what the cluster is, and which task this is, where --cluster and --task "
     "do not: `muster resolve --list` has their names; auto: the first one that "
     "recognises this place, TF_CONFIG before all others; may be repeated: their union")
LIST(RESOLVER_SET, "resolver-set", "MUSTER_RESOLVER_SET", CLUSTER_VERBS, "SETTING=VALUE",
     NULL,
     "a setting of the resolver, \"port=8888\"; NAME.SETTING=VALUE where there are "
     "several, or auto; may be repeated")
OPTION(RESOLVE_MS, CLUSTER_VERBS | CMD_RUN,
       "how long to wait for what a resolver asks, and for tasks that are not known yet; "
       "0: each is asked once. Verbs other than node wait 10000 at most unless it is "
       "given")
OPTION_TEXT(CLUSTER_NAME, PEERS, "NAME",
            "nodes of a cluster with another name are refused")
OPTION_TEXT(KEY_FILE, PEERS | CMD_KEY, "FILE",
            "the file of the cluster's key, or of one derived from it (`muster key`), "
            "the same key for all nodes; without it the key is the user's own, which is "
            "made at first use")
OPTION_TEXT(TLS_CA, PEERS, "FILE",
            "TLS with certificates instead of a key: the CA's certificate, in PEM")
OPTION_TEXT(TLS_CERTIFICATE, PEERS, "FILE", "this node's certificate, signed by the CA")
OPTION_TEXT(TLS_PRIVATE_KEY, PEERS, "FILE",
            "this node's private key; without it, it stands with the certificate")
OPTION(TLS_ANY_TASK, PEERS,
       "whether a peer whose certificate names no task may be any task")
OPTION_SWITCH(INSECURE, PEERS,
              "speak tcp plain: whoever reaches a socket of this node may do everything")
OPTION_TEXT(WIRE, PEERS, "uv|nng",
            "what connects nodes: libuv's streams, or nng's sockets, which speak the "
            "same protocol; nng by itself at addresses of ws://, wss://, tls+tcp:// and "
            "inproc://")
TEXT(BIND, "bind", "MUSTER_BIND", CMD_NODE, "URL", NULL,
     "where to listen, \"tcp://0.0.0.0:4000\"; without it the task's own address; "
     "\"none\": nowhere, this task only dials")
TEXT(ADVERTISE, "advertise", "MUSTER_ADVERTISE", CMD_NODE, "URL", NULL,
     "where the others dial this task, if that is not its own address")
OPTION(THREADS, NODES, "functions that a worker runs at the same time")
NUMBER(PROCESSES, "processes", "MUSTER_PROCESSES", NODES, "N", "0", 0, 1024,
       "processes in which a worker runs functions of Python, each one at a time, in "
       "place of --threads; 0: they run in its threads")
OPTION(WINDOW, NODES,
       "chief: closures given to one worker at a time; 0: as many as keep it busy, by "
       "the time that functions take")
OPTION(SPIN_US, NODES,
       "how long a thread looks for news before it sleeps, while most waits end that "
       "soon and no other thread wants the core; 0: never")
OPTION(QUEUE_MAX, NODES, "closures scheduled and not resolved before scheduling blocks")
OPTION(QUEUE_BYTES_MAX, NODES, "bytes of their arguments before scheduling blocks")
OPTION(ATTEMPTS_MAX, NODES,
       "chief: workers that may die under one closure before it is given up")
OPTION(RETRIES_MAX, NODES,
       "chief: runs of one closure, whatever ended them, before it is given up")
OPTION(RECOVERY_MS, NODES,
       "chief: a worker that does not come back for so long is an error; 0: never")
OPTION(START_DELAY_MS, NODES,
       "chief: worker i gets its first closure i times this after it joined")
OPTION(START_DELAY_MAX_MS, NODES, "chief: the longest such delay; 0: no cap")
OPTION(SERVER_FAILURES, NODES,
       "chief: reports of a failing parameter server that count as transient")
OPTION(SERVER_FAILURES_MS, NODES, "chief: for how long such a report counts")
OPTION(SERVER_LOST_MS, NODES,
       "a parameter server that was up and is away for so long is unavailable to every "
       "call, until it is back; 0: calls wait for it")
OPTION(BACKUPS, NODES,
       "chief: copies of what each parameter server has, on other ones, which take its "
       "place when it is lost; with one server there are none")
OPTION(STRICT, NODES,
       "chief: whether writes to what has lost its backup wait until it has another")
OPTION(EFFECT_WAIT_MS, NODES,
       "worker: how long what a run wrote waits for a parameter server that does not "
       "answer")
OPTION(TIMEOUTS, NODES, "chief: results that say deadline exceeded and are retried")
OPTION(UNKNOWN_IS_WORKER, NODES,
       "chief: whether a result that says unknown error counts as the worker's failure, "
       "so that the closure runs elsewhere")
OPTION(BACKUP_PERCENT, NODES,
       "chief: an idle worker runs a closure too when it takes longer than so many "
       "percent of its function's mean run time; 0: never")
OPTION(WATCHDOG_MS, NODES,
       "chief: no closure finishing for so long, while some are under way, is logged; 0: "
       "off")
OPTION(MEASURE, NODES, "whether timers are collected for the status")
OPTION_TEXT(JOURNAL, NODES, "FILE",
            "chief: file that keeps named closures over a restart of the chief")
OPTION(JOURNAL_SYNC, NODES, "whether the journals survive a power cut, too")
OPTION_TEXT(PS_JOURNAL, NODES, "DIR",
            "server: folder of the file that keeps its variables over a restart of it")
OPTION(JOURNAL_KEEP, NODES,
       "how many finished closures the journal knows by name, the youngest; 0: all")
OPTION(JOURNAL_KEEP_MS, NODES, "how long it knows a finished closure; 0: for ever")
OPTION(ORPHAN_MS, NODES,
       "a task that has had no link to the chief, or to a host of the coordination "
       "service, for so long ends; 0: never")
OPTION(RESTART_EXIT_CODE, NODES,
       "chief: how it ends when its program ends with unavailable, to be started again; "
       "the other tasks are then left as they are")
OPTION(HEARTBEAT_MS, NODES, "how often a silent link says that it lives")
OPTION(SILENCE_MS, NODES,
       "a task not heard for so long is lost; at least twice --heartbeat-ms")
OPTION_TEXT(SERVICE_HOSTS, NODES | SERVICE_CLIENTS | CMD_CHECK, "TASKS",
            "who may host the coordination service, \"chief:0\" or \"ps:0-1\", the same "
            "for all tasks; none: there is no service; without it chief 0, or else ps 0, "
            "or else worker 0")
OPTION_TEXT(STORE, NODES | STORE_VERBS, "STORE",
            "host: where the service keeps keys and barriers: memory, journal:PATH (a "
            "file), or etcd:URL,URL, which several hosts may share")
OPTION(STORE_SYNC, NODES,
       "host: whether what the service says was kept survives a power cut, too")
OPTION_TEXT(RUN, NODES | CMD_STORE_CLEAR, "NAME",
            "the run of the job that this is, to be continued or begun; without it a "
            "host of the service goes on with the run that its store is in, or begins "
            "another when that one has ended, and `muster run` begins one of a new name. "
            "`muster store clear`: the run to forget")
SWITCH(ENDED, "ended", "MUSTER_STORE_CLEAR_ENDED", CMD_STORE_CLEAR,
       "forget the runs before the present one")
SWITCH(PRESENT, "present", "MUSTER_STORE_CLEAR_PRESENT", CMD_STORE_CLEAR,
       "forget what the present run has come to: outcomes of barriers, notices of "
       "preemption, results and errors of functions")
SWITCH(KEYS, "keys", "MUSTER_STORE_CLEAR_KEYS", CMD_STORE_CLEAR,
       "delete the keys of programs")
OPTION_TEXT(COORDINATED_JOBS, NODES, "TYPES",
            "task types whose tasks barriers and registering wait for, the same for all "
            "tasks")
OPTION_TEXT(WORKER_TYPES, NODES | CMD_CHECK, "TYPES",
            "task types whose tasks run closures, the same for all tasks: worker, and "
            "types of your own")
OPTION_TEXT(RECOVERABLE, NODES, "TYPES",
            "host: task types that may fail without an error for the others; all, none")
OPTION(SUSPECT_MS, NODES,
       "host: a task that it has not heard for so long is suspect; less than --dead-ms")
OPTION(DEAD_MS, NODES, "host: a task that it has not heard for so long has failed")
OPTION(RECONNECT_MS, NODES, "host: and so has one whose link is down for so long")
OPTION(STUCK_MS, NODES,
       "host: and one that lives, and whose program says nothing about its progress for "
       "so long; 0: never")
OPTION(LEAVE_MS, NODES,
       "host: tasks that are not recoverable leave together, or after so long; 0: each "
       "when it likes")
OPTION(LEASE_MS, NODES, "host: one of several that is not heard for so long is replaced")
NUMBER(PREEMPT_ON_SIGTERM, "preempt-on-sigterm", "MUSTER_PREEMPT_ON_SIGTERM", NODES,
       "0|1", "0", 0, 1,
       "whether the first SIGTERM is a preemption notice, so that all "
       "tasks agree on a step to stop at, instead of the end")
LIST(PLUGIN, "plugin", "MUSTER_PLUGIN", NODES, "FILE", NULL,
     "shared object with functions and programs; may be repeated")
OPTION(PLUGIN_TIMEOUT_MS, NODES,
       "a plugin that is not loaded for so long ends the task; 0: never")
LIST(PYTHON, "python", "MUSTER_PYTHON_MODULE", NODES, "MODULE", NULL,
     "Python module with functions and programs, imported by an interpreter inside the "
     "node; may be repeated. \"\": the interpreter alone")
LIST(SET, "set", "MUSTER_SET", NODES, "KEY=VALUE", NULL,
     "a setting for the plugins; may be repeated")
NUMBER(GRACE_MS, "grace-ms", "MUSTER_GRACE_MS", NODES | CMD_PREEMPT, "MS", "5000", 0,
       3600000,
       "how long functions that run may take to end when the task is stopped; "
       "`muster preempt`: how long until the machine is gone")
NUMBER(WORKERS, "workers", "MUSTER_WORKERS", CMD_RUN, "N", "2", 0, 1000,
       "how many workers")
NUMBER(PS, "ps", "MUSTER_PS", CMD_RUN, "N", "1", 0, 200, "how many parameter servers")
TEXT(COUNTS, "counts", "MUSTER_COUNTS", CMD_RUN, "TYPE=N,...", NULL,
     "how many tasks of types of your own, as gpu=2,cpu=3; with --worker-types those "
     "that run closures")
NUMBER(EVALUATOR, "evaluator", "MUSTER_EVALUATOR", CMD_RUN, "0|1", "0", 0, 1,
       "whether there is an evaluator")
NUMBER(CHIEF, "chief", "MUSTER_RUN_CHIEF", CMD_RUN, "0|1", "1", 0, 1,
       "whether there is a chief; the cluster ends with it")
CHOICE(TRANSPORT, "transport", "MUSTER_TRANSPORT", CMD_RUN, "KIND", "ipc", "ipc|tcp",
       "unix sockets in a fresh directory, or free ports of 127.0.0.1")
TEXT(RESTART, "restart", "MUSTER_RESTART", CMD_RUN, "POLICY", "never",
     "never, on-failure, always or fail-job; or for each type, "
     "\"worker=always,ps=never\". The chief is never started again")
NUMBER(RESTART_MAX, "restart-max", "MUSTER_RESTART_MAX", CMD_RUN, "N", "10", 0, 1000000,
       "restarts of one task in a row; one that has run for a minute begins again")
SWITCH(CONTROL, "control", "MUSTER_RUN_CONTROL", CMD_RUN,
       "for a program that is the chief itself and starts the other tasks: commands come "
       "by standard input, events go to standard output, as lines of JSON")
TEXT(STATUS_FILE, "status-file", "MUSTER_STATUS_FILE", CMD_RUN, "FILE", NULL,
     "keep a file of JSON up to date: pid, address, state of each task")
CHOICE(COLOR, "color", "MUSTER_COLOR", CMD_RUN, "WHEN", "auto", "auto|always|never",
       "colours for the names of tasks; auto: on a terminal, unless NO_COLOR is set")
TEXT(ADDRESS, "address", "MUSTER_CHIEF", CLIENTS, "URL", NULL,
     "the chief's address, \"tcp://host:port\"; or, for verbs that ask the coordination "
     "service, its host's; without it --cluster or TF_CONFIG says it")
SWITCH(WAIT, "wait", "MUSTER_WAIT", CMD_KV_GET | CMD_TASKS,
       "wait until the key is there, or all the tasks are connected")
SWITCH(PREFIX, "prefix", "MUSTER_KV_PREFIX", CMD_KV_GET | CMD_KV_WATCH,
       "all keys below KEY, as if it ended with \"/\"")
SWITCH(IF_ABSENT, "if-absent", "MUSTER_KV_IF_ABSENT", CMD_KV_PUT | CMD_KV_HOLD,
       "only if the key is not there yet")
TEXT(IF_REVISION, "if-revision", "MUSTER_KV_IF_REVISION",
     CMD_KV_PUT | CMD_KV_RM | CMD_KV_HOLD, "REVISION", NULL,
     "only if that is the key's revision; 0: if it is not there")
TEXT(IF_VALUE, "if-value", "MUSTER_KV_IF_VALUE", CMD_KV_PUT | CMD_KV_RM | CMD_KV_HOLD,
     "VALUE", NULL, "only if that is the key's value")
FLAG(LONG, "long", "MUSTER_KV_LONG", SWITCH, CMD_KV_LS, "0|1", "0", .letter = 'l',
     .high = 1, .help = "with sizes and revisions")
NUMBER(COUNT, "count", "MUSTER_KV_COUNT", CMD_KV_WATCH, "N", "0", 0, 1000000000,
       "end after so many changes; 0: never")
TEXT(TASKS, "tasks", "MUSTER_TASKS", CMD_BARRIER | CMD_TASKS | CMD_ASSIGN, "TASKS", NULL,
     "which tasks, \"client:0-1,worker:0\"; `muster tasks` and `muster assign`: without "
     "it all")
TEXT(AS, "as", "MUSTER_BARRIER_AS", CMD_BARRIER, "client:N", NULL,
     "which of --tasks this process is; not needed when they have one client")
TEXT(CODE, "code", "MUSTER_TASK_CODE", CMD_TASK_REPORT, "CODE", "ABORTED",
     "the error's code: its name, as DATALOSS, or its number")
SWITCH(WATCH, "watch", "MUSTER_TASKS_WATCH", CMD_TASKS, "go on, and print each change")
SWITCH(STATUS_WATCH, "watch", "MUSTER_STATUS_WATCH", CMD_STATUS,
       "go on, and print the status anew each second")
SWITCH(PARTITIONS, "partitions", "MUSTER_VARS_PARTITIONS", CMD_VARS,
       "list all partitions, in place of the variables")
TEXT(ROWS, "rows", "MUSTER_VARS_ROWS", CMD_VARS_DUMP, "FIRST:END", NULL,
     "of a variable: its rows from FIRST on, before END; both may be left out")
TEXT(IDS, "ids", "MUSTER_VARS_IDS", CMD_VARS_DUMP, "ID,ID,...", NULL,
     "of a table: the rows of these ids; without it, some that are there")
NUMBER(LIMIT, "limit", "MUSTER_VARS_LIMIT", CMD_VARS_DUMP, "N", "100", 0, 2000000000,
       "how many rows are printed at most; 0: all")
TEXT(ACTOR_TYPE, "type", "MUSTER_ACTORS_TYPE", CMD_ACTORS, "TYPE", NULL,
     "of `muster actors`: list the actors of this type alone")
SWITCH(LIST, "list", "MUSTER_RESOLVE_LIST", CMD_RESOLVE,
       "only list the resolvers and their settings")
SWITCH(EXPLAIN, "explain", "MUSTER_RESOLVE_EXPLAIN", CMD_RESOLVE,
       "say which sources were tried, what they were asked, with what result")
SWITCH(RESOLVE_WATCH, "watch", "MUSTER_RESOLVE_WATCH", CMD_RESOLVE,
       "go on, and print each change as a line")
FLAG(RESOLVE_OUTPUT, "output", "MUSTER_OUTPUT", CHOICE, CMD_RESOLVE, "FORMAT", "text",
     .letter = 'o', .choices = "text|json|TF_CONFIG",
     .help = "what is printed: text, JSON, or what TF_CONFIG would be, in one line")
NUMBER(WAIT_MS, "wait-ms", "MUSTER_CHECK_WAIT_MS", CMD_CHECK, "MS", "5000", 1, 3600000,
       "how long each task has to answer")
NUMBER(TIMEOUT_MS, "timeout-ms", "MUSTER_TIMEOUT_MS", CLIENTS | CMD_ASSIGN, "MS", "5000",
       1, 86400000,
       "how long to wait for the chief or the service; and, when it is "
       "given, for what drain, stop, kv get --wait, kv watch, barrier and tasks wait "
       "for, which else may take as long as it takes")
CHOICE(LOG_LEVEL, "log-level", "MUSTER_LOG_LEVEL", PEERS, "LEVEL", "info",
       "error|warn|info|debug",
       "the least grave lines to log; unless they are told, "
       "verbs that ask log errors alone, and `muster run` warn without --log-file")
CHOICE(LOG_FORMAT, "log-format", "MUSTER_LOG_FORMAT", PEERS, "FORMAT", "text",
       "text|json", "lines for people, or one JSON object a line")
TEXT(LOG_FILE, "log-file", "MUSTER_LOG_FILE", PEERS, "FILE", NULL,
     "append the log to a file; without it to standard error")
FLAG(OUTPUT, "output", "MUSTER_OUTPUT", CHOICE,
     CMD_STATUS | CMD_EXPLAIN | VARS_VERBS | CMD_STOP | CMD_VERSION | CMD_CHECK |
         JOURNALS | SERVICE_CLIENTS | CMD_ASSIGN | CMD_KEY,
     "FORMAT", "text", .letter = 'o', .choices = "text|json",
     .help = "what is printed: text or JSON")
CHOICE(MODE, "mode", "MUSTER_MODE", NODES, "MODE", "independent",
       "independent|standalone|local|client-worker",
       "who calls the worker function of a plugin: each task its own, a client for all, "
       "this process alone, or the leading task for all")
SWITCH(WAIT_CLUSTER, "wait-cluster", "MUSTER_WAIT_CLUSTER", CMD_NODE,
       "wait at --bind for a client that says which cluster this is, and which task; "
       "TF_CONFIG is not looked at")
