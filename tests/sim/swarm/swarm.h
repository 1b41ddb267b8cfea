/* A swarm: a simulated cluster with a coordination service, and programs on its tasks;
 * what they did and were told, and what must be. All of it follows from a seed. These are
 * the parts of test_coordination_swarm_seeds.c, which says what is looked for.
 *
 *   swarm.c            calls that end, or are waited for
 *   swarm_begin.c      what the seed decides: the cluster, its programs, its changes
 *   swarm_faults.c     the store, and the faults that it and its holder have
 *   swarm_programs.c   what programs do, in one process after another
 *   swarm_keys.c       what they ask about keys and leases: histories
 *   swarm_txns.c       transactions: keys that are changed, and looked at, together
 *   swarm_locks.c      locks that they take, and what they write under them
 *   swarm_barriers.c   how they meet: generations, outcomes
 *   swarm_watches.c    what they watch
 *   swarm_steps.c      where they stop
 *   swarm_runs.c       the run of the job, and the next one
 *   swarm_look.c       what must be after every event
 *   swarm_end.c        all is well again: what must be then */
#ifndef MU_TESTS_SWARM_H
#define MU_TESTS_SWARM_H

#include "actors/agent/internal.h"
#include "actors/coordination/internal.h"
#include "actors/coordination/keys/lock_queue.h"
#include "actors/coordination/keys/txn.h"
#include "sim/world/inner.h"
#include "sim/world/storage.h"
#include "tests/sim/changing.h"
#include "tests/sim/cluster.h"
#include "tests/sim/etcd.h"
#include "tests/sim/mending.h"
#include "tests/sim/twins.h"
#include "tests/support/linear/linear.h"

#include <inttypes.h>
#include <string.h>

enum {
    GPUS_MAX = 3,
    TASKS_MAX = 23 + GPUS_MAX,
    FIXED = 3, /* workers that stay: those that may be hosts */
    KEYS = 10,
    TXN_KEYS = 4, /* behind them: those of transactions */
    ALL_KEYS = KEYS + TXN_KEYS,
    OPEN_MAX = 3, /* requests about keys that a program has under way */
    LEASES = 2,   /* of a program */
    LOCKS = 2,
    SWARM_LOCK_BYTES = 64, /* of a key of one */
    NAMES = 4,             /* of barriers */
    THREADS_MAX = 3,
    CHAOS_MS = 12 * 1000, /* these: virtual time */
    FINAL_MS = 30 * 1000  /* for a call when all is well */
};

/* Rare places: how often runs came there. */
enum swarm_reached {
    ANSWERED, /* requests about keys */
    UNKNOWN,  /* of these, that may have been applied or not */
    LEADERS,
    STORES_LOST,
    PASSED, /* arrivals at barriers, */
    FAILED, /* or what else came of them */
    ROUNDS,
    STOPPED,
    ERRORS,  /* agents that went into error */
    WATCHED, /* events of watches */
    LEASES_KEPT,
    LIVES,
    OWN_TYPES, /* of these, lives of tasks of a type of one's own */
    ADDED,
    REMOVED,
    MOVED,          /* workers, as chiefs learned of it */
    REFUSED,        /* damaged files that a host did not start over */
    TIGHT,          /* times that its disk had no room, over restarts too */
    TRANSACTED,     /* transactions that were made, */
    NOT_TRANSACTED, /* or of which a comparison did not hold */
    LISTED,
    LOCKED,
    LOCK_WAITS, /* looks at a queue with others before */
    HOLDERS_DEAD,
    FENCED,     /* writes of those that had lost their lock */
    TWINS_TOLD, /* second processes that heard that they are */
    SKIPPED,    /* histories with too much that is unknown */
    REACHED
};

/* A request about a key. */
struct swarm_record {
    struct linear_op op;
    uint64_t store;       /* the number of the content; 0: not known */
    uint64_t floor;       /* revisions of changes that had ended before it began, */
    uint64_t floor_store; /* in this store */
};

/* An arrival. */
struct swarm_visit {
    unsigned name;
    unsigned task; /* the number of the program that plays it at home */
    unsigned by;
    unsigned life;
    uint64_t life_ms; /* when that began */
    uint64_t begin_ms;
    uint64_t store; /* valid with an outcome */
    uint64_t generation;
    int code;
    bool has_outcome; /* of that generation */
    bool used;        /* stands for one that may have arrived */
    uint64_t end_ms;
};

/* What a round of preemption has come to. */
struct swarm_round {
    uint64_t store;
    uint64_t number;
    uint64_t step; /* valid once an agent has heard of it: what a host has
                      not written may be another one */
    bool has_step;
    uint64_t agreed_ms; /* when it was seen first that there is one */
};

struct swarm_leader {
    uint64_t epoch;
    uint64_t store;
    const struct cluster_task *task;
    unsigned life;
    uint64_t since_ms;
};

/* What a program does about a lock. */
enum swarm_lock_step {
    LOCK_AWAY,
    LOCK_COMING,  /* its place is put */
    LOCK_LOOKING, /* at the queue */
    LOCK_WAITING, /* until it looks again */
    LOCK_HELD,
    LOCK_WRITING,
    LOCK_RELEASING
};

struct swarm_lock {
    enum swarm_lock_step step;
    struct cluster_call *call;
    unsigned number;            /* of the lock */
    unsigned comes;             /* places that this process has had */
    char key[SWARM_LOCK_BYTES]; /* of the place */
    char directory[SWARM_LOCK_BYTES];
    uint64_t revision; /* of the place: the holder's number */
    bool holds;        /* as far as it knows */
    size_t write;      /* among all writes */
};

/* A write under a lock; the revision is 0 where it was not heard of. */
struct swarm_write {
    unsigned lock;
    uint64_t number; /* of the holder */
    uint64_t revision;
    uint64_t store;
};

enum swarm_request { NO_REQUEST, REGISTER, RESET, LEAVE, NOTICE, REPORT, OTHER };

struct swarm;
struct coordination;

/* What a program does; all but the first five are of its present process. */
struct swarm_program {
    struct swarm *run;
    struct cluster_task *task;
    unsigned number;
    unsigned plays; /* the same, or that of its task's program at home */
    bool is_host;
    struct sim_random random;
    unsigned life;      /* 0: its process does not run */
    uint64_t life_ms;   /* when it did anything first */
    uint64_t paused_ms; /* when it stood still last */
    uint64_t store;     /* with which the agent was registered last */
    uint64_t used;      /* the store that has answered it; 0: none has since the
                           last error */
    int state;          /* of the agent */
    struct cluster_call *keys[OPEN_MAX];
    size_t records[OPEN_MAX];
    bool is_lease[OPEN_MAX];
    bool is_doubtful[OPEN_MAX]; /* a lease that may have ended before it is answered */
    struct cluster_call *threads[THREADS_MAX];
    size_t visit;     /* valid while there are threads */
    unsigned meeting; /* threads that are to come */
    int64_t meeting_ms;
    struct cluster_call *listing; /* of the keys of transactions */
    size_t listed;                /* its record */
    struct swarm_lock lock;
    struct cluster_call *request;
    enum swarm_request request_kind;
    struct cluster_call *reaching;
    uint64_t step;          /* the next */
    uint64_t rounds;        /* whose end was looked at */
    uint64_t asked;         /* and their begin, */
    uint32_t asked_session; /* when the agent was in this one */
    uint64_t asked_ms;
    struct mu__agent_watch *watch;
    struct cluster_call *opening;
    struct cluster_call *next;
    bool next_may_fail;  /* when it ended the agent was in error, or had left */
    bool below;          /* of all keys, or of the last one */
    int64_t seen[KEYS];  /* as the watch says; -1: not there */
    bool leases[LEASES]; /* certainly there */
};

/* What the seed decides. */
struct swarm_plan {
    const struct mu__store_kind *store;
    unsigned hosts;
    bool full_disk;
    bool etcd_faults;
    bool long_pauses; /* of leaders */
    bool barriers;
    bool steps;
    bool trouble; /* reports, leaves, errors of programs themselves */
    bool watches;
    bool leases;
    bool txns;
    bool locks;
    unsigned gpus;         /* tasks of a type of one's own, which runs closures */
    unsigned pace_ms;      /* between what a program does */
    bool changes;          /* of the cluster */
    unsigned hurt_percent; /* of the host's crashes that damage its journal */
    bool tight;            /* there is no room on its disk now and then */
    unsigned twins;        /* second processes of tasks */
};

/* A host has learned in one of its lives that a worker was removed. */
struct swarm_removal {
    unsigned life; /* 0: it was not, or was added since */
    uint64_t learned_ms;
};

struct swarm {
    struct cluster *cluster;
    struct swarm_plan plan;
    struct cluster_changing changing;
    struct cluster_mending mending;
    struct cluster_twins twins;
    struct swarm_removal removals[TASKS_MAX][TASKS_MAX]; /* by host's program, and
                                                            worker */
    struct sim_etcd *etcd;
    struct sim_storage *storage;
    struct sim_random random;
    char hosts[64];
    char sets[NAMES][128];
    bool takes_part[NAMES][TASKS_MAX];
    unsigned threads[NAMES];
    struct swarm_program programs[TASKS_MAX];
    unsigned programs_count;
    bool calm;       /* nothing new is begun */
    uint64_t number; /* of the run of the job */

    struct swarm_record *records;
    size_t records_count;
    size_t records_capacity;
    uint64_t moment;
    int64_t value;     /* the last that was put: all differ */
    uint64_t revision; /* the highest of changes that have ended */
    uint64_t revision_store;
    uint64_t revisions[ALL_KEYS]; /* some that were seen, */
    int64_t values[ALL_KEYS];     /* and values of keys of transactions */

    struct swarm_write *writes;
    size_t writes_count;
    size_t writes_capacity;
    struct swarm_visit *visits;
    size_t visits_count;
    size_t visits_capacity;
    struct swarm_round *rounds;
    size_t rounds_count;
    size_t rounds_capacity;
    struct swarm_leader *leaders;
    size_t leaders_count;
    size_t leaders_capacity;
    uint64_t *reached;
};

#define CALL(...) (&(struct mu__agent_call){__VA_ARGS__})
#define CALL_OF(kind, limit) .call = {.operation = (kind), .timeout_ms = (limit)}

static inline uint64_t now_ms(const struct swarm *run)
{
    return sim_now_ms(run->cluster->sim);
}

static inline bool is_broken(const struct swarm *run)
{
    return run->cluster->broken[0] != '\0';
}

static inline struct agent *agent_of(const struct swarm_program *program)
{
    return mu__actor_state(program->task->member.kernel, (mu__pid){0, MU__AGENT});
}

static inline bool runs(const struct swarm_program *program)
{
    return program->task->runs && sim_alive(program->task->node) &&
           sim_lives(program->task->node) == program->life;
}

static inline uint64_t draw(struct swarm_program *program, uint64_t min, uint64_t max)
{
    return sim_between(&program->random, min, max);
}

static inline bool has_words(const struct cluster_call *call, const char *words)
{
    return strstr(call->of.call.error.message, words) != NULL;
}

/* Whether its task comes and goes. */
static inline bool is_changing(const struct swarm_program *program)
{
    return program->run->plan.changes && strcmp(program->task->type, "worker") == 0 &&
           program->task->index >= FIXED;
}

/* ---- swarm.c ---- */

/* Room for one more in an array; realloc()ed when it is full. */
void *swarm_grown(void *array, size_t count, size_t *capacity, size_t size);

/* For complete() of a call of an agent whose `user` is the swarm: it is done. Its
 * program. */
struct swarm_program *swarm_call_ended(struct cluster_call *call);

/* Until nobody has anything under way; `what` for when that lasts too long. */
void swarm_wait(struct swarm *run, const char *what, uint64_t timeout_ms);

/* ---- swarm_begin.c ---- */

/* All of it, and some virtual time. `reached` (zeroed, REACHED of them) outlives it. */
struct swarm *swarm_new(uint64_t seed, uint64_t *reached);
void swarm_free(struct swarm *run);

/* ---- swarm_faults.c ---- */

void swarm_give_store(struct swarm *run, uint64_t seed);

/* What comes of streams of their own: types of tasks; damaged files, second processes. */
void swarm_draw_types(struct swarm_plan *plan, uint64_t seed);
void swarm_draw_trouble(struct swarm_plan *plan, uint64_t seed);
void swarm_begin_trouble(struct swarm *run, uint64_t seed);
void swarm_plan_faults(struct swarm *run);
void swarm_end_faults(struct swarm *run);

/* ---- swarm_programs.c ---- */

/* What a program does next: for sim_at(), with the program. */
void swarm_step(struct sim *sim, void *arg);

/* It has another process; or that one is gone, with all that it had under way. */
void swarm_begin_process(struct swarm_program *program);
void swarm_forget_process(struct swarm_program *program);

/* Its request was answered. */
void swarm_end_request(struct swarm_program *program);

/* ---- swarm_keys.c ---- */

extern const char *const swarm_key_names[ALL_KEYS];

void swarm_ask_key(struct swarm_program *program);

/* If the program has not too much under way. `waits`: a get until the key is there. */
void swarm_ask_op(struct swarm_program *program, const struct linear_op *op, bool waits);

/* Something begins: its number among the records. */
size_t swarm_new_record(struct swarm *run, const struct linear_op *op);
void swarm_ask_lease(struct swarm_program *program);

/* What was asked in a slot was answered. */
void swarm_end_key(struct swarm_program *program, unsigned slot);
void swarm_end_lease(struct swarm_program *program, unsigned slot);

/* The service has answered something: the program relies on this store now. */
void swarm_note_use(struct swarm_program *program);

/* Of what it holds, and asks for, nothing must be there. */
void swarm_doubt_leases(struct swarm_program *program);

/* As the store has them, -1: not there; also what ends the histories. */
void swarm_read_keys(struct swarm *run, int64_t ret_numbers[ALL_KEYS]);
void swarm_check_leases(struct swarm *run);
void swarm_check_histories(struct swarm *run, const int64_t numbers[ALL_KEYS]);

/* ---- swarm_txns.c ---- */

void swarm_ask_txn(struct swarm_program *program);
struct cluster_call *swarm_begin_txn(struct swarm_program *program,
                                     const struct linear_op *op, int64_t timeout_ms);
struct cluster_call *swarm_send_txn(struct swarm_program *program,
                                    const struct mu__txn *txn, const char *key,
                                    int64_t timeout_ms);
void swarm_end_list(struct swarm_program *program);

/* ---- swarm_locks.c ---- */

void swarm_go_on_locking(struct swarm_program *program);
void swarm_end_lock(struct swarm_program *program);

/* It lets go of what it has, also of a place in a queue. */
void swarm_end_locking(struct swarm_program *program);
void swarm_forget_lock(struct swarm_program *program);

/* As the last leader has them: one holder each. At the end: none, and what was written
 * was written by one holder after the other. */
void swarm_look_at_locks(struct swarm *run, const struct coordination *c);
void swarm_check_locks(struct swarm *run);

/* ---- swarm_runs.c ---- */

/* Of a host that leads. */
void swarm_look_at_run(struct swarm *run, const struct coordination *c);

/* When all is well: the job is done, and is run again. */
void swarm_run_again(struct swarm *run);

/* ---- swarm_barriers.c ---- */

extern const char *const swarm_barrier_names[NAMES];

void swarm_meet(struct swarm_program *program);

/* A thread has ended: with the last one the visit has. */
void swarm_end_visit(struct swarm_program *program);
void swarm_check_barriers(struct swarm *run);

/* ---- swarm_watches.c ---- */

void swarm_go_on_watching(struct swarm_program *program);
void swarm_end_opening(struct swarm_program *program);
void swarm_end_next(struct swarm_program *program);

/* It is told something, which is freed. */
void swarm_note_event(struct swarm_program *program, const mu_kv_event *event);
void swarm_end_watch(struct swarm_program *program);

/* What they know is what is there. They are closed then. */
void swarm_check_watches(struct swarm *run, const int64_t numbers[ALL_KEYS]);

/* ---- swarm_steps.c ---- */

/* It reaches its next step; and was answered whether it is to stop there. */
void swarm_reach(struct swarm_program *program);
void swarm_end_reaching(struct swarm_program *program);

/* A round that is agreed on somewhere; new ones are noted now. */
struct swarm_round *swarm_note_round(struct swarm *run, uint64_t store, uint64_t number);

/* Who has said its step before it is agreed on, and is registered without an error
 * since, has not passed the step to stop at. Others may have, and are told all the
 * same. */
void swarm_check_gate(struct swarm_program *program);

/* ---- swarm_look.c ---- */

/* For sim_set_check(), with the swarm. */
void swarm_look(struct sim *sim, void *arg);

/* ---- swarm_end.c ---- */

/* All that is unwell ends, and what is under way is answered. */
void swarm_calm_down(struct swarm *run);
void swarm_check_end(struct swarm *run);

#endif
