/* A whole cluster in the simulator: real members (kernel, links, actors) on simulated
 * nodes, the functions that their workers run, and programs that schedule closures.
 *
 * A program here does what the public coordinator does on the program's thread: it posts
 * SCHEDULE and CALL messages and looks at futures. It keeps a record of each closure, so
 * that cluster_broken() can tell at any moment whether something happened that must never
 * happen. Records outlive the process that made them. */
#ifndef MU_TESTS_SIM_CLUSTER_H
#define MU_TESTS_SIM_CLUSTER_H

#include "actors/agent/agent.h"
#include "actors/client/client.h"
#include "actors/client/future.h"
#include "actors/coordination/coordination.h"
#include "actors/job/job.h"
#include "actors/supervisor/supervisor.h"
#include "actors/variables/effects.h"
#include "actors/variables/table_calls.h"
#include "actors/variables/variables.h"
#include "actors/worker/worker.h"
#include "node/member/member.h"
#include "sim/world/sim.h"

enum {
    CLUSTER_TASKS_MAX = 80,
    CLUSTER_SERVERS_MAX = 16,
    CLUSTER_KEYS_MAX = 1 << 16,
    CLUSTER_ITEMS_MAX = 1 << 10, /* of the variable that counts writes */
    CLUSTER_FUNCTIONS_COUNT = 9,
    CLUSTER_OWN_MAX = 12, /* functions of the test */
    CLUSTER_INPUTS_MAX = 3,
    CLUSTER_FOREVER_MS = 3600 * 1000 /* virtual: for waits that should end */
};

/* A function of the test. `user` is the struct cluster_task that it runs on. */
struct cluster_function {
    const char *name;
    mu_function_fn function;
    unsigned flags;
};

/* Zero takes the default. */
struct cluster_options {
    unsigned workers;
    unsigned gpus; /* tasks of type "gpu"; with some, they run closures, too */
    unsigned servers;
    unsigned clients;
    bool evaluator;
    unsigned threads;      /* 1 */
    unsigned window;       /* by the threads: what stories count on */
    bool adaptive;         /* a window of 0 stays 0: the supervisor finds it */
    unsigned queue_max;    /* 4096 */
    unsigned attempts_max; /* 10 */
    unsigned heartbeat_ms; /* 100 */
    unsigned silence_ms;   /* 500 */
    bool allocs_fail;      /* closures may fail because a process has no memory */

    /* Of every member, but for what is above. */
    mu_node_options node;

    /* The coordination service: who may host it, a task set; NULL: there is none, and
     * nothing of the following is used. Of the configuration what the member does not
     * fill in by itself; `tasks` NULL: all of the spec but the evaluator. Defaults: all
     * jobs are recoverable, suspect_ms 500, dead_ms 1000, reconnect_ms 200, a store that
     * keeps nothing. */
    const char *hosts;
    struct mu__coordination_config coordination;

    /* mu__effects_add: workers know "write". NULL: they do not. */
    int (*effects_add)(struct mu__effects *effects, const struct mu__effect *write,
                       const void *data);

    /* What workers know besides; the test's. */
    const struct cluster_function *functions;
    unsigned functions_count;

    /* How long a run of a function takes; 0: as the settings say. NULL: all do. */
    uint64_t (*work_us)(const char *function);
};

/* How a closure is to be run, as SCHEDULE says it. All zero: as any. */
struct cluster_ask {
    const char *name;   /* copied */
    const int64_t *key; /* of one that is scheduled again; NULL: a new one */
    unsigned flags;     /* enum mu__closure_flag */
    unsigned priority;  /* p + 1; 0: the usual one */
    uint64_t deadline_ms;
    uint64_t run_timeout_ms;
    unsigned attempts_max;
    unsigned worker;         /* task index + 1; 0: any */
    unsigned not_worker;     /* the same; 0: none */
    const char *worker_type; /* "worker" or "gpu"; NULL: any */
};

/* What workers know. An int argument is a key that stands for one closure; the run is
 * recorded under it.
 *   square   key -> cluster_square(key)
 *   quick    the same, inline
 *   patient  the same, but gives up when it was cancelled
 *   fail     key -> error INVALID "bad <key>"
 *   weigh    bytes -> their number
 *   make     number -> that many bytes
 *   mine     -> what only this worker's present process has: a per-worker value
 *   sum      cluster_sum()'s -> as square, if its inputs are what they should be
 *   write    cluster_write()'s -> as square, and adds 1 to the item of its key */
int64_t cluster_square(int64_t key);

/* What "sum" gets besides its key: a result that is kept, which is `expected`, or a
 * per-worker value of "mine", for which CLUSTER_MINE stands. */
#define CLUSTER_MINE INT64_MIN

/* The name of the variable that counts writes. */
#define CLUSTER_COUNTER "count"
struct cluster_input {
    uint64_t number;
    int64_t expected;
};

/* What a program holds at the supervisor. Whoever lets go of it last has its client actor
 * told; when the process dies before that hears of it, the memory is the cluster's. */
struct cluster_holding {
    struct mu__future_owner home;
    struct cluster_task *task;
    struct mu__held *given; /* on its way to the client actor */
};

/* A per-worker value of "mine". */
struct cluster_per_worker {
    struct cluster_holding holding;
    struct cluster_per_worker *next;
    mu_per_worker *value; /* NULL: released */
    unsigned life;        /* of the task's node in which it was made */
};

/* What a chief writes its journal to. It outlives the chief's processes: all that is
 * about it is the test's. All zero: there is none. */
struct cluster_journal {
    struct mu__storage *storage;

    /* The process is dying: from now on nothing it says is written. Then it is gone, and
     * what was not flushed is lost; the next one may begin. Either may be NULL. */
    void (*dies)(struct mu__storage *storage);
    void (*is_gone)(struct mu__storage *storage);

    /* No process may begin with what is there now; or a chief may say that it cannot,
     * for want of room. NULL: neither is ever so. */
    bool (*is_damaged)(struct mu__storage *storage);
    bool (*is_tight)(struct mu__storage *storage);
};

struct cluster;
struct cluster_session;
struct sim_etcd;

/* One task of the cluster: a node of the simulator and what runs there. */
struct cluster_task {
    struct cluster *cluster;
    struct sim_node *node;
    struct mu__member member; /* while it is alive */
    bool runs;                /* and can be told something */
    const char *type;
    uint32_t index;
    uint32_t plays_index;     /* what it says in the handshake; may be changed */
    const char *cluster_name; /* the same */
    char name[24];
    char address[40];
    const char *advertises;         /* what it says instead; the test's, NULL: nothing */
    unsigned taken;                 /* how often it was to end, because another process
                                       plays its task */
    struct cluster_journal journal; /* of a chief or server; the test's, set before a
                                       start, as is */
    uint64_t journal_spare_bytes;   /* see actors/ps/ps.h */
    struct cluster_journal store;   /* of a host, the same; its kind is an option */
    unsigned refused;               /* how often it did not start over a damaged file, */
    unsigned refused_tight;         /* or on a disk without room */
    const char *run;                /* of the job, for its next process; the test's */
    const char *worker_types;       /* the option, the same; NULL: the cluster's */
    struct mu__http *door;          /* to the cluster's etcd, of its process */
    struct mu__function_call functions[CLUSTER_FUNCTIONS_COUNT + CLUSTER_OWN_MAX];
    const mu_cluster *spec; /* what it starts with; NULL: the cluster's */
    const char *only;       /* of a server that waits for its spec, and of who */
    const char *only_why;   /* offers one; the test's, set before a start */
    const char *dials_any;
    mu__offer_check_fn offer_check;
    void *offer_owner;
    bool takes_offer;
    struct mu__future_owner home;    /* of what its programs hold */
    struct cluster_session *session; /* the present one of its program, or NULL */
};

/* A closure that a program scheduled. */
struct cluster_closure {
    struct cluster_task *task;
    const char *function;
    int64_t key;             /* negative: its argument is no key */
    mu_remote_value *future; /* NULL: nobody wants the result */
    int state;               /* as it was seen last */
    struct cluster_ask ask;  /* `name` is the closure's own copy */
    bool refused;            /* by a journal that cannot be written */
    bool finished;           /* seen resolved, without an error */
    bool content_seen;       /* of one whose result was kept, too */
    bool cancelled;          /* by itself */
    struct cluster_holding holding;
    struct cluster_session *session;
    uint8_t inputs[8 * CLUSTER_INPUTS_MAX];
    uint32_t inputs_size;
};

/* One variable over all servers, an item for each key: where "write" adds. */
struct cluster_counter {
    struct mu__shape shape;
    uint64_t ids[CLUSTER_SERVERS_MAX];
    int64_t items[CLUSTER_ITEMS_MAX]; /* as they were read last */
};

/* What a program remembers from OPEN on, until its process dies. */
struct cluster_session {
    struct cluster_session *next;
    struct mu__session shared;
    struct cluster_closure **closures;
    size_t closures_count;
    size_t closures_capacity;
    bool over;     /* its process has died, or it was closed */
    bool closing;  /* it has been asked to close */
    bool troubled; /* an error was there: closures may be cancelled */
};

/* What a request about a key brought. */
struct cluster_key_answer {
    struct mu__call call; /* code, error */
    char value[64];       /* the begin of it, with a zero behind */
    size_t size;
    uint64_t revision;
    int64_t number;
    uint64_t id; /* to cancel it by */
};

/* A call to an actor, kept until the cluster is freed. */
struct cluster_call {
    union {
        struct mu__call call;
        struct mu__client_call client;
        struct mu__job_call job;
        struct mu__metric_call metric;
        struct mu__variable_call variable;
        struct mu__clock_call clock;
        struct mu__table_call table;
        struct mu__function_call function;
        struct mu__agent_call agent;
        struct mu__peers_call peers;
        struct cluster_key_answer key;
    } of;
    struct cluster_call *next;
    struct cluster_task *task;
    unsigned life; /* of the task's node when it was posted */
    bool asks;     /* `of.client` has a request, until it is sent */
    bool writes;   /* `of.table` has effects, which are freed with it */
    bool done;     /* completed; or its process has died (-MU_ECLOSED) */
    uint64_t done_ms;
};

struct cluster {
    struct sim *sim;
    struct sim_etcd *etcd; /* the test's, set before a start; freed after it */
    struct cluster_options options;
    mu_cluster *spec;
    char coordinated[256]; /* the tasks that a barrier of all waits for */
    struct cluster_task tasks[CLUSTER_TASKS_MAX];
    unsigned tasks_count;
    struct cluster_task *chief;
    struct cluster_task *workers[CLUSTER_TASKS_MAX];
    struct cluster_task *gpus[CLUSTER_TASKS_MAX];
    struct cluster_task *servers[CLUSTER_TASKS_MAX];
    struct cluster_task *clients[CLUSTER_TASKS_MAX];
    struct cluster_task *evaluator;
    struct cluster_task *programs[CLUSTER_TASKS_MAX]; /* that have had a session */
    unsigned programs_count;
    struct cluster_session *sessions;
    struct cluster_call *calls;
    struct cluster_per_worker *per_workers;
    struct cluster_counter counter;
    int64_t key_next;
    uint16_t runs[CLUSTER_KEYS_MAX]; /* by key: how often it was run to its end */
    uint64_t runs_count;
    uint8_t only_on[CLUSTER_KEYS_MAX];     /* by key: task index + 1; 0: anywhere */
    uint8_t never_on[CLUSTER_KEYS_MAX];    /* the same; 0: nowhere */
    const char *type_of[CLUSTER_KEYS_MAX]; /* by key: that of the two; NULL: any */
    bool loose[CLUSTER_KEYS_MAX]; /* by key: its writes may count more than once */
    uint64_t backups;             /* that chiefs ran, */
    uint64_t stuck;               /* runs that they gave up, */
    uint64_t recalled;            /* closures that workers gave back to them, */
    uint64_t recomputed;    /* and kept results that were seen to be computed anew */
    uint64_t waited;        /* looks at a client that found closures without room */
    uint64_t idle_since_ms; /* on the chief's clock: a worker has nothing to do */
    uint64_t checks;
    char broken[256]; /* what went wrong first, "" when nothing did */
};

/* Nodes are added, none is started. A cluster whose test is over is freed with all that
 * its programs hold. */
struct cluster *cluster_new(uint64_t seed, const struct cluster_options *options);
void cluster_free(struct cluster *cluster);

/* One more process that plays a task, with an address of its own; not in the spec. */
struct cluster_task *cluster_add(struct cluster *cluster, const char *type,
                                 uint32_t index, const char *name);

void cluster_start(struct cluster_task *task);

/* The task learns of another cluster: it starts with that from now on, and takes it at
 * once if it runs. `spec` is the test's, until the cluster is freed. What
 * mu__member_set_cluster returns; 0 for a task that does not run. */
int cluster_learn(struct cluster_task *task, const mu_cluster *spec, mu_error *ret_error);
void cluster_start_all(struct cluster *cluster);

/* Run until the chief and every other task are linked, and what they say to each other
 * then has been said: false when that takes longer than a virtual minute. */
bool cluster_settle(struct cluster *cluster);

/* How many links of a task are up. */
uint32_t cluster_links(const struct cluster_task *task);

/* ---- Programs. Called outside of events, or in calls of sim_at. ---- */

/* Begin a session; one at a time for each task. */
struct cluster_call *cluster_open(struct cluster_task *task, int64_t timeout_ms);
struct cluster_call *cluster_ask(struct cluster_task *task,
                                 enum mu__client_operation operation, int64_t timeout_ms);
struct cluster_call *cluster_fetch(struct cluster_closure *closure, int64_t timeout_ms);
struct cluster_call *cluster_job(struct cluster_task *task,
                                 enum mu__job_operation operation, int code,
                                 const char *message, int64_t timeout_ms);
/* `wanted` has operation, limit, and what is asked; its strings are the test's. */
struct cluster_call *cluster_job_ask(struct cluster_task *task,
                                     const struct mu__job_call *wanted);

/* Ask a task whom it reaches, or all that it reaches the same. The caller frees what was
 * found. */
struct cluster_call *cluster_peers(
    struct cluster_task *task, enum mu__peers_operation operation, int64_t timeout_ms);
struct cluster_call *cluster_metric(struct cluster_task *task, const char *name);
void cluster_report(struct cluster_task *task, const char *name, double number,
                    uint64_t step);

/* `name`, `shape` and `ids` and the buffers are the test's. */
struct cluster_call *cluster_variable(struct cluster_task *task,
                                      const struct mu__variable_call *call);

struct cluster_call *cluster_clock(struct cluster_task *task,
                                   const struct mu__clock_call *call);

/* `ids` and `rows` of a look-up are the test's, effects of a write the call's. */
struct cluster_call *cluster_table(struct cluster_task *task,
                                   const struct mu__table_call *call);

/* To the task's agent. Strings and the watch are the test's until it is completed, what
 * it brings is the test's then. */
struct cluster_call *cluster_agent(struct cluster_task *task,
                                   const struct mu__agent_call *call);

/* As mu_kv_request_async does it; `ask->key` is normalized. And as mu_kv_cancel. */
struct cluster_call *cluster_key(struct cluster_task *task, const mu_kv_request *ask);
void cluster_key_cancel(struct cluster_call *call);

/* Run until the call is completed: its code. Fails the cluster when it never is. */
int cluster_wait(struct cluster_call *call);

/* A new closure with a key of its own. */
struct cluster_closure *cluster_schedule(struct cluster_task *task, const char *function);

/* The same without a future, and with other arguments. Takes args. */
void cluster_schedule_dropped(struct cluster_task *task, const char *function);
struct cluster_closure *cluster_schedule_value(struct cluster_task *task,
                                               const char *function, mu_value *args);

/* As one of several threads does it: ask for room, wait with the others until there is
 * some (`of.client.admitted`), and schedule what was admitted. The future is there; takes
 * args. */
uint64_t cluster_args_bytes(const mu_value *args);
struct cluster_call *cluster_admit(struct cluster_task *task, uint64_t bytes,
                                   int64_t timeout_ms);
struct cluster_closure *cluster_schedule_admitted(struct cluster_task *task,
                                                  const char *function, mu_value *args);

/* cluster_schedule with wishes. */
struct cluster_closure *cluster_schedule_with(
    struct cluster_task *task, const char *function, const struct cluster_ask *ask);

/* The same of "write", which needs options.effects_add, and the counter opened. */
struct cluster_closure *cluster_write(struct cluster_task *task,
                                      const struct cluster_ask *ask);

/* "sum" with inputs that are known to the present chief. */
struct cluster_closure *cluster_sum(struct cluster_task *task,
                                    const struct cluster_ask *ask,
                                    const struct cluster_input *inputs, size_t count);

/* Whether the result of a closure is kept by a worker, and under what number. */
uint64_t cluster_kept(const struct cluster_closure *closure);

/* Ask for a per-worker value of "mine"; when the call is done with 0, note the value.
 * Let go of it. */
struct cluster_call *cluster_ask_mine(struct cluster_task *task, int64_t timeout_ms);
struct cluster_per_worker *cluster_note_mine(const struct cluster_call *call);
void cluster_release_mine(struct cluster_per_worker *per_worker);

/* Open the counter, `items` zeros over all servers; read it. Keys below `items` may
 * write. Before the keys are given out there must be no more than that. */
struct cluster_call *cluster_counter_open(struct cluster_task *task, unsigned items,
                                          int64_t timeout_ms);
struct cluster_call *cluster_counter_read(struct cluster_task *task, int64_t timeout_ms);

/* The result of a closure whose function returns an int; INT64_MIN when there is none. */
int64_t cluster_result(const struct cluster_closure *closure);

/* ---- Inputs, wishes, questions ---- */

/* cluster_schedule_with and any arguments, which may have references. Takes args. */
struct cluster_closure *cluster_schedule_args(struct cluster_task *task,
                                              const char *function, mu_value *args,
                                              const struct cluster_ask *ask);

/* For the arguments of a closure; the caller's. */
mu_value *cluster_reference(struct cluster_closure *closure);

/* mu_remote_value_cancel, and mu_remote_value_free. */
void cluster_cancel(struct cluster_closure *closure);
void cluster_let_go(struct cluster_closure *closure);

/* A per-worker value by function, or (NULL) by values; or one that is shared. Takes args.
 * Once the call is done, cluster_per_worker_made gives what mu_value_per_worker makes
 * references from; it is let go of with mu__held_unref. */
struct cluster_call *cluster_per_worker(struct cluster_task *task, const char *function,
                                        mu_value *args, int64_t timeout_ms);
struct cluster_call *cluster_per_worker_shared(
    struct cluster_task *task, const char *function, mu_value *args, int64_t timeout_ms);
struct mu__held *cluster_per_worker_made(struct cluster_call *call);

/* Why a closure has not run: `of.client.status` is the caller's. By name: NULL. */
struct cluster_call *cluster_explain(struct cluster_task *task,
                                     struct cluster_closure *closure, const char *name);

/* A negative worker is the task itself. */
struct cluster_call *cluster_drain(struct cluster_task *task, int worker,
                                   int64_t timeout_ms);
struct cluster_call *cluster_drain_task(struct cluster_task *task, const char *type,
                                        int index, int64_t timeout_ms);
struct cluster_call *cluster_forget(struct cluster_task *task, int64_t timeout_ms);

/* ---- What must be ---- */

uint64_t cluster_count(const atomic_uint_fast64_t *counter);

/* Say that something is wrong; the first one counts. */
void cluster_break(struct cluster *cluster, const char *format, ...) MU_PRINTF(2, 3);

/* "" or what was wrong first: a future resolved twice, a wrong result, one reported
 * without having been run, counts that do not add up. Looked for after every event, and
 * in full from time to time; cluster_check looks in full now. */
const char *cluster_check(struct cluster *cluster);

/* What the simulator calls after every event. `arg` is the cluster. */
void cluster_check_event(struct sim *sim, void *arg);

/* What the supervisor's parts say of each other. With `rest` nothing is under way. */
void cluster_check_supervisor(struct cluster *cluster, bool rest);

/* Who has how much of the chief's queue: after every event. */
void cluster_check_room(struct cluster *cluster);

/* What a client actor counts. */
void cluster_check_client(struct cluster *cluster, const struct cluster_task *task);

/* Whether so much more of a running task's program goes to the chief without waiting. */
bool cluster_has_room(const struct cluster_task *task, uint64_t closures, uint64_t bytes);

/* Whether a closure that has not ended was sent to the chief; false, too, if nobody wants
 * its result. */
bool cluster_was_sent(const struct cluster_closure *closure);

/* How many closures of its program are at the chief, as the client knows. */
uint64_t cluster_sent(const struct cluster_task *task);

/* Add up what a chief has done, before it dies. */
void cluster_note_supervisor(struct cluster *cluster);

/* The same, when nothing may be under way any more: no message is left anywhere, no
 * closure is held by the supervisor. */
const char *cluster_check_rest(struct cluster *cluster);

/* The same, of the counter as it was read last, when nothing is under way: an item is 1
 * when its closure has finished, and 0 when it never ran. One that ran and was not
 * reported as finished may have written, once. With `once` false a closure that ran
 * several times may have written as often. */
void cluster_check_writes(struct cluster *cluster, bool once);

/* The same, of a status that the chief gave. */
void cluster_check_status(struct cluster *cluster, const mu_value *status);

#endif
