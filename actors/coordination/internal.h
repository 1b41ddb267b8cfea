/* What the parts of the coordination service share.
 *
 *   coordination.c            handlers, the store, what is said when; the tick
 *   coordination_tasks.c      registering, heartbeats, failures, resets
 *   coordination_leave.c      leaving, alone or together
 *   coordination_questions.c  questions about tasks (but for those alive), and all that
 *                             waits for tasks
 *   coordination_states.c     what is told about tasks
 *   coordination_keys.c       key-values: changes, leases
 *   coordination_reads.c      key-values: gets, lists, watches
 *   coordination_barriers.c   barriers, tasks alive
 *   coordination_preempt.c    preemption: notices and rounds
 *   coordination_cluster.c    tasks that come to the coordinated jobs, or leave them
 *   coordination/transactions.c   changes of several keys at one moment
 *   coordination/runs.h       runs of the job: what belongs to one, when another begins
 *   coordination/own_keys.c   the service's own keys
 *
 * Below them, as plain data: roster.h (tasks), key_values.h, barriers.h, task_set.h,
 * asked.h (results of what agents asked).
 *
 * What is said may depend on what was written to the store a moment ago; so everything is
 * said through mu__coord_send, which waits until that is safe. */
#ifndef MU_ACTORS_COORDINATION_INTERNAL_H
#define MU_ACTORS_COORDINATION_INTERNAL_H

#include "actors/coordination/coordination.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/roster.h"
#include "actors/messages.h"
#include "actors/task_set.h"

struct coord_tasks;     /* of coordination_tasks.c */
struct coord_requests; /* of coordination_questions.c */
struct coord_keys;      /* of coordination_keys.c */
struct coord_barriers;  /* of coordination_barriers.c */
struct coord_preempt;   /* of coordination_preempt.c */
struct coord_runs;      /* of coordination/runs.c */

/* Messages that wait for the store. Of changes of keys, and reads, no more are taken when
 * there are so many, and a watch that would add one is over; above the most they are
 * dropped, as when there is no memory. */
enum {
    COORD_LATER_REQUESTS = 1 << 17,
    COORD_LATER_EVENTS = 3 << 16,
    COORD_LATER_MAX = 1 << 18
};

/* A message that waits for the store. */
struct coord_later {
    struct coord_later *next;
    uint64_t sequence;          /* of the commit that it waits for */
    uint32_t node;
    struct mu__msg *msg;
};

struct coordination {
    struct mu__coordination_config config;
    struct mu__store *store;
    bool leads;                 /* the store is held */
    uint64_t epoch;
    uint64_t number;            /* of the store's content */
    char reason[256];           /* why it does not lead */

    uint64_t revision;          /* of the last change */
    bool dirty;                 /* something was written and not committed */
    uint64_t commit_timer;
    uint64_t sequence;          /* of the last commit */
    uint64_t safe;              /* of the last commit that is safe */
    struct coord_later *later;  /* what waits, in order */
    struct coord_later **later_end;
    uint64_t records;           /* that a rewrite of the store would have */

    uint64_t tick_timer;
    uint64_t tick_due_ms;       /* by the world's clock */
    uint64_t next_ms;         /* while it ticks: when the next tick is wanted */
    bool ticking;
    uint64_t paused_ms;         /* by how much this host was too late in all, so that
                                   nobody is declared dead for it: see mu__coord_clock */

    struct mu__roster *roster;
    struct coord_keys *keys;
    struct coord_barriers *barriers;
    struct coord_preempt *preempt;
    struct coord_runs *runs;

    struct coord_tasks *tasks;
    struct {
        uint32_t leavers;       /* tasks that leave together */
        uint32_t left;          /* of these, that have left already */
        uint32_t leaving;       /* how many of them wait for the others */
        uint64_t due_ms;        /* for so long; valid while some do */
    } leave;
    struct coord_requests *questions;
    struct mu__map peers;       /* node + 1 -> struct coord_peer, of all that are up; this
                                   node, which has an agent, too, is one */
    struct mu__ctx *calling;    /* while a function of the store runs */
    uint32_t later_count;
    bool retires;               /* it lets the store go, in this tick */
    bool broken;                /* a write failed: nothing may be said, `lost` follows */
};

/* Who is at the other end of a link that is up; or this node itself. */
struct coord_peer {
    uint32_t node;
    char type[16];
    uint32_t index;
    uint64_t incarnation;
};

/* ---- coordination.c ---- */

/* Say something to the agent of a node, once what was written before is safe. Takes msg;
 * NULL is fine (no memory: the agent asks again when its limit allows). */
void mu__coord_send(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                   struct mu__msg *msg);

/* The same at once: for what does not depend on the store. */
void mu__coord_send_now(struct mu__ctx *ctx, uint32_t node, struct mu__msg *msg);

/* Answer with TASKS_ANSWER; `error` NULL: 0. */
void mu__coord_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                      uint64_t token, const mu_error *error);

/* The same with content, which it takes. */
void mu__coord_answer_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            uint64_t token, uint64_t version, mu_value *content);

/* The same, packed, in a buffer that stays the caller's; NULL: out of memory, which is
 * answered, as is content that is larger than a message may have. */
void mu__coord_answer_packed(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                             const struct mu__tasks_answer *answer, struct mu__buf *buf);

/* Write a record (STORE_CHANGE, STORE_RESULT) into the present batch, which is committed
 * in the next turn. Takes msg, NULL is -MU_ENOMEM. After a failure the service does not
 * lead any more. */
int mu__coord_write(struct mu__ctx *ctx, struct coordination *c, struct mu__msg *record);

/* The same, and the record stays the caller's. */
int mu__coord_write_record(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__msg *record);

/* This host's time, without the time that it was itself paused for. What is measured
 * against limits of tasks is measured by it. */
uint64_t mu__coord_clock(struct mu__ctx *ctx, const struct coordination *c);

/* Tick (all mu__coord_..._tick) at `due_ms` of mu__coord_clock, or as soon as possible
 * when that is past: exactly then, where a part waits for a limit. Otherwise ticks come
 * once a second, and more often while the store is busy. It holds for the next tick
 * only: a part that still waits says so again from within its own tick. */
void mu__coord_wake_at(struct mu__ctx *ctx, struct coordination *c, uint64_t due_ms);

/* NULL: no link to that node is up. */
const struct coord_peer *mu__coord_peer(const struct coordination *c, uint32_t node);

/* A buffer for a message's backing with copies of some views, which point into it then;
 * false when out of memory. A message that has a backing keeps it: views are copied only
 * into one that has none. */
bool mu__coord_back(struct mu__msg *msg, struct mu__view *const *views, size_t count);

/* ---- coordination_tasks.c ---- */

/* Each part has init, and done, which also undoes an init that failed or was not
 * called. */
int mu__coord_tasks_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_done(struct coordination *c);
void mu__coord_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_heartbeat(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_reset(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_tasks_node_up(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__node_up *news);
void mu__coord_tasks_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               const char *reason);
void mu__coord_tasks_tick(struct mu__ctx *ctx, struct coordination *c);

/* It leads from now on: nobody has registered yet. Or it does no more. */
void mu__coord_tasks_lead(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_lost(struct mu__ctx *ctx, struct coordination *c);

/* The service ends while it leads: questions that wait are answered, unless another host
 * may take over and answer them. */
void mu__coord_tasks_stop(struct mu__ctx *ctx, struct coordination *c);

/* The task at the other end of a link; NULL when that one has not registered here. What
 * its message asks is answered, when it has a token, with FAILED_PRECONDITION or with the
 * task's error, and NULL returned, unless it is CONNECTED. */
struct mu__roster_task *mu__coord_requester(struct mu__ctx *ctx, struct coordination *c,
                                        uint32_t node, uint64_t token);

/* The task fails: it is in ERROR with that error, which the other parts are told, and all
 * other tasks when it shares its fate; and its own agent, unless that knows or will. */
enum coord_failure {
    COORD_FAILED,       /* its agent is told */
    COORD_FAILED_OWN,   /* it said so itself */
    COORD_FAILED_LOST   /* it is not there; a recoverable one may come back */
};

void mu__coord_fail(struct mu__ctx *ctx, struct coordination *c,
                    struct mu__roster_task *task, const mu_error *error,
                    enum coord_failure how);

/* The same, in words that follow its name. And: it goes without a failure. */
void mu__coord_fail_with(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, int code, const char *what);
void mu__coord_disconnect(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task);

/* From ERROR, its own or that of others, to DISCONNECTED. */
void mu__coord_reset(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task);

/* A process leaves, or resets its task, at a host where it is not registered: another one
 * had registered it, and its leases are those of then. `task` may be NULL. */
void mu__coord_end_former_leases(struct mu__ctx *ctx, struct coordination *c,
                                 const struct coord_peer *peer,
                                 const struct mu__roster_task *task);

/* Whether its failures are those of all others, too. */
static inline bool mu__coord_shares_fate(const struct mu__roster_task *task)
{
    return task->coordinated && !task->recoverable;
}

/* ---- coordination_leave.c ---- */

void mu__coord_leave_init(struct coordination *c);

/* A task that shared the others' fate, or did not, is one of the coordinated jobs now, or
 * is not any more: those who leave may be all. */
void mu__coord_leave_cluster(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, bool shared);
void mu__coord_leave_tick(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_on_leave(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Whether it has left by its own wish, and has not come again. */
void mu__coord_leave_left(struct coordination *c, struct mu__roster_task *task,
                          bool left);

/* It does not wait for others any more; or only if it has asked to. */
void mu__coord_leave_drop(struct coordination *c, struct mu__roster_task *task);
void mu__coord_leave_update(struct coordination *c, struct mu__roster_task *task);

/* Something has happened to it, without which tasks cannot leave together. */
void mu__coord_leave_fail(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__roster_task *task, const char *what);

/* ---- coordination_questions.c ---- */

enum coord_request_kind {
    COORD_REQUEST_REGISTER,    /* to register with all others */
    COORD_REQUEST_WAIT,
    COORD_REQUEST_WATCH,
    COORD_REQUEST_LEAVE        /* with all others */
};

struct coord_request {
    enum coord_request_kind kind;
    uint32_t node;
    uint64_t token;
    uint64_t version;           /* WATCH: the one that is known */
    uint64_t timeout_ms;          /* from now; 0: none */
    struct mu__view tasks;      /* a set; "": all */
};

int mu__coord_requests_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_requests_done(struct coordination *c);
void mu__coord_requests_tick(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_on_tasks_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A question that waits, of a task; with a token that it has asked already, it is that
 * question. On failure it is answered with the reason. */
void mu__coord_request_add(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task, const struct coord_request *get);

/* Whether a task waits with a question of a kind; answer all of those that it has of a
 * kind, or (`kind` negative) all, with an error or 0. */
bool mu__coord_request_waits(const struct coordination *c,
                              const struct mu__roster_task *task,
                              enum coord_request_kind kind);
void mu__coord_requests_answer(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task, int kind,
                                const mu_error *error);

/* Forget what a task asked over a link: it will be asked again. And everything. */
void mu__coord_requests_drop(struct coordination *c, const struct mu__roster_task *task,
                              uint32_t node);
void mu__coord_requests_forget(struct coordination *c);

/* Answer everything that waits. */
void mu__coord_requests_stop(struct mu__ctx *ctx, struct coordination *c,
                              const mu_error *error);

/* STATES, DEVICES (of those that are connected), or WAIT, which is both, of the tasks of
 * a set; NULL: of all that are known. The caller's; NULL: out of memory. In
 * coordination_states.c. */
mu_value *mu__coord_states(struct mu__ctx *ctx, const struct coordination *c,
                           const struct mu__task_set *set, enum mu__tasks_what what);

/* A task is one of the coordinated jobs, or is not any more. -MU_ENOMEM: nothing has
 * changed. */
int mu__coord_requests_cluster(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task);

/* A task was removed from the cluster: nobody waits any longer until it is connected. */
void mu__coord_requests_removed(struct mu__ctx *ctx, struct coordination *c,
                                 const struct mu__roster_task *task);

/* The coordinated jobs. */
const struct mu__task_set *mu__coord_requests_all(const struct coordination *c);

/* The state of a task has changed, after it was connected or not. */
void mu__coord_requests_changed(struct mu__ctx *ctx, struct coordination *c,
                                 const struct mu__roster_task *task, bool was_connected);

/* ---- what the other parts are told about tasks, by coordination_tasks.c ---- */

/* `task` is not CONNECTED any more: it failed (its error says how), left or was reset. */
void mu__coord_barriers_task_left(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task, bool failed);
void mu__coord_barriers_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task);
void mu__coord_preempt_task_left(struct mu__ctx *ctx, struct coordination *c,
                                 struct mu__roster_task *task);
void mu__coord_preempt_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                 struct mu__roster_task *task);

/* The incarnation has registered; its results are kept while it is here. Or has ended:
 * its leases do, too. And: nothing comes from the node now (barriers stay as they are: a
 * task whose link is down is still there). */
void mu__coord_keys_task_joined(struct coordination *c, uint64_t incarnation);
void mu__coord_keys_task_ended(struct mu__ctx *ctx, struct coordination *c,
                               uint64_t incarnation);
void mu__coord_keys_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node);

/* ---- coordination_keys.c ---- */

int mu__coord_keys_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_keys_done(struct coordination *c);
void mu__coord_on_key_put(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_increment(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_delete(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_txn(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_list(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_watch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* One record of the store, while it is read; and: everything of before is forgotten,
 * because it will be read again. */
int mu__coord_keys_visit(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__msg *record);
void mu__coord_keys_forget(struct coordination *c);

/* Write all that counts into a store that is being rewritten. */
int mu__coord_keys_rewrite(struct mu__ctx *ctx, struct coordination *c);

/* Leases of tasks that did not register within dead_ms after it began to lead. */
void mu__coord_keys_tick(struct mu__ctx *ctx, struct coordination *c);

/* The service's own keys, below MU__KEYS_OWN, which programs may read and not change. */
#define MU__KEYS_OWN "_muster"
int mu__coord_keys_put_own(struct mu__ctx *ctx, struct coordination *c, const char *key,
                           const void *value, size_t size);
bool mu__coord_keys_get_own(struct coordination *c, const char *key,
                            struct mu__key_value *ret_entry);
int mu__coord_keys_delete_own(struct mu__ctx *ctx, struct coordination *c,
                              const char *key);

/* Under the revision of the last change, which it does not count as. */
int mu__coord_keys_put_quietly(struct mu__ctx *ctx, struct coordination *c,
                               const char *key, const void *value, size_t size);

/* Delete a key and all below it; and all that are not the service's own: how many. */
uint64_t mu__coord_keys_drop(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view directory);
uint64_t mu__coord_keys_drop_others(struct mu__ctx *ctx, struct coordination *c);

/* Before any task has registered: the results of what agents asked, and the leases. */
void mu__coord_keys_drop_agents(struct mu__ctx *ctx, struct coordination *c);

/* What is below a directory, "" for all; and how many results of agents are kept. */
void mu__coord_keys_measure(const struct coordination *c, struct mu__view directory,
                            uint64_t *ret_count, uint64_t *ret_bytes);
uint64_t mu__coord_keys_results(const struct coordination *c);

/* The revision of the next change: whatever changes from now on has this or a later one,
 * also at other hosts of a store that lasts. */
uint64_t mu__coord_next_revision(const struct coordination *c);

/* The next key of all behind `from`, in their order; valid until one is changed. */
bool mu__coord_keys_next_own(const struct coordination *c, struct mu__view from,
                             struct mu__key_value *ret_entry);

/* A key that starts a preemption round when a program puts it: coordination_preempt.c is
 * told. */
#define MU__KEY_PREEMPTION "RECEIVED_PREEMPTION_NOTICE"
void mu__coord_preempt_key(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           struct mu__view value);

/* ---- coordination_barriers.c ---- */

int mu__coord_barriers_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_barriers_done(struct coordination *c);
void mu__coord_on_arrive(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_barrier_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_barriers_tick(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_barriers_lost(struct mu__ctx *ctx, struct coordination *c);

/* What it is made of, for tests. */
struct mu__barriers;
const struct mu__barriers *mu__coord_barriers_table(const struct coordination *c);

/* TASKS_GET with MU__TASKS_ALIVE. */
void mu__coord_alive(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task, const struct mu__tasks_get *get);

/* A task is one of the coordinated jobs from now on, or is not any more: barriers of all
 * that run wait for it, or not; those that name it, and it has gone, are over. */
void mu__coord_barriers_cluster(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task);

/* ---- coordination_cluster.c ---- */

void mu__coord_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- coordination_preempt.c ---- */

int mu__coord_preempt_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_preempt_done(struct coordination *c);
void mu__coord_on_preempt_notice(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_preempt_step(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_preempt_tick(struct mu__ctx *ctx, struct coordination *c);

/* The last round, when its step is agreed on; for tests. */
bool mu__coord_preempt_agreed(const struct coordination *c, uint64_t *ret_round);
void mu__coord_preempt_lost(struct mu__ctx *ctx, struct coordination *c);

#endif
