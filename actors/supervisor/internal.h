/* What the supervisor is made of; for actors/supervisor*.c only.
 *
 *     supervisor.c            its handlers: who says what to it
 *     supervisor_clients.c    who schedules; a closure from SCHEDULE to its queue
 *     supervisor_dispatch.c   which closure goes to which worker
 *     supervisor/recall.c     what was sent and has not begun is taken back
 *     supervisor/roles.c      closures for tasks of one type alone
 *     supervisor_retry.c      what becomes of an attempt: result, retry, limit, backup
 *     supervisor_workers.c    workers that come, are lost, are waited for, leave
 *     supervisor_inputs.c     kept results and per-worker values
 *     supervisor/builds.c     how per-worker values are built
 *     supervisor_journal.c    named closures over a restart
 *     supervisor_status.c     what it tells about itself
 *     supervisor_explain.c    why a closure has not run; a word when nothing moves */
#ifndef MU_ACTORS_SUPERVISOR_INNER_H
#define MU_ACTORS_SUPERVISOR_INNER_H

#include "actors/coordination/store/journal.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/ps/server_failures.h"
#include "actors/supervisor/admission.h"
#include "actors/supervisor/closures.h"
#include "actors/supervisor/function_times.h"
#include "actors/supervisor/membership.h"
#include "actors/supervisor/names.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/supervisor.h"
#include "runtime/base/histogram.h"
#include "runtime/base/id_window.h"
#include "runtime/base/map.h"

enum {
    CLIENTS_MAX = 4096,
    METRICS_MAX = 256,
    METRICS_OF_NODE_MAX = 64, /* of one node, when there are METRICS_MAX */
    METRIC_NAME_MAX = 63,
    STATUS_REQUESTS_MAX = 64, /* status questions under way */
    COPY_SLACK_BYTES = 512,
    QUARANTINE_CRASHES = 2, /* after so many a closure runs with nothing beside it */
    EXTRAS_CHUNK = 256,
    DRAIN_REQUESTERS_MAX = 4,
    SAME_TROUBLE_MS = 1000 /* one reporter's words about a server count once in it */
};

/* Who schedules. A place is used again when its client has gone and none of its closures
 * is left. */
struct client {
    mu__pid pid;
    bool present;
    uint32_t closures;
    uint64_t scheduled;
    uint32_t *slots;            /* by token - 1: index + 1 of the closure */
    uint32_t slots_count;
    struct mu__map tokens;      /* the same, for tokens beyond these */
    struct mu__client_room room;
};

struct metric {
    double number;
    uint64_t step;
    uint64_t at_ms;
    uint32_t node;              /* that reported it last */
    char name[METRIC_NAME_MAX + 1];
};

/* Someone who wants the status, and what the servers have answered so far. */
struct status_request {
    bool open;
    mu__pid requester;
    uint64_t token;
    uint64_t number;
    uint64_t timer;
    uint32_t missing;
    mu_value *variables;
};

/* Every node that is up. */
struct peer {
    uint32_t node;
    uint32_t index;
    uint64_t since_ms;
    char type[16];
    char address[256];
    bool is_refused;            /* as a worker, and was told */
};

/* An attempt that nobody waits for, but that a worker has not answered: it takes one of
 * its places until then. */
struct abandoned_attempt {
    uint64_t closure;
    uint32_t attempt;
    uint64_t bytes;
    uint16_t cost_us;           /* as long as it is not known to have begun */
    bool begun;
};

/* Who waits for an answer; token 0: nobody. */
struct requester {
    mu__pid pid;
    uint64_t token;
};

/* What there is to know about a worker besides its membership; by the same number. */
struct worker_state {
    uint64_t timer;             /* present: staggered start; away: limit of recovery */
    uint64_t lost_ms;           /* away: since when */
    bool was_here;
    uint64_t estimate_us;       /* of the time that a function takes here; for people */
    bool has_estimate;
    uint64_t recalled_ms;       /* when something was asked for that did not come; or 0 */
    uint64_t build_timer;       /* for builds that take long */
    struct abandoned_attempt *abandoned;
    uint32_t abandoned_count;
    uint32_t abandoned_size;
    bool drained_by_itself;
    struct requester
        drain_requesters[DRAIN_REQUESTERS_MAX]; /* who waits for it to leave */
};

/* What a closure has that is not as usual: inputs, options, a failed attempt. Each one
 * with a function of Python has an input, so it is kept small. */
struct closure_extra {
    uint32_t index;
    uint32_t next_free;         /* index + 1; 0 ends it */
    uint64_t closure;           /* its id; 0: free */
    uint64_t timer;             /* for the next of the times below; 0: none */
    uint64_t deadline_ms;       /* our clock; 0: none */
    uint64_t held_until_ms;     /* our clock; 0: not held for a time */
    uint64_t effect;            /* 0: none yet */
    uint64_t number;            /* in the journal; 0: not there */
    union {
        uint64_t one;
        uint64_t *many;
    } inputs;                   /* their numbers: mu__closure_extra_inputs */
    char *name;                 /* NULL: none */
    char *failed_task;          /* of the attempt that failed last; NULL: none */
    uint32_t flags;             /* enum mu__closure_flag */
    uint32_t run_timeout_ms;      /* of one attempt; 0: none */
    uint32_t worker;            /* wanted: task index + 1 */
    uint32_t not_worker;
    uint32_t backup_worker;     /* number; 0: there is no backup attempt */
    uint32_t backup_started_ms;
    uint16_t returns;           /* attempts that a worker gave back */
    uint16_t processes_lost;    /* of workers that live, under its runs */
    uint16_t backup_attempt;
    uint16_t attempts_max;      /* 0: the cluster's */
    uint16_t inputs_count;
    uint16_t inputs_missing;    /* held until they are there */
    uint8_t failed_code;        /* why it was tried again last, for those who ask */
    uint8_t priority;
    uint8_t role;               /* that it is for, + 1; 0: any */
    bool backup_begun : 1;
    bool has_many : 1;          /* inputs: an array */
};

_Static_assert(sizeof(struct closure_extra) <= 120, "a queued closure of Python has one");
_Static_assert(MU__INPUTS_MAX <= UINT16_MAX, "inputs are counted in 16 bits");

/* The numbers of what it uses, as many as inputs_count. */
static inline const uint64_t *mu__closure_extra_inputs(const struct closure_extra *extra)
{
    return extra->has_many ? extra->inputs.many : &extra->inputs.one;
}

/* What a message or a record asks for; 24 days at most. */
static inline uint32_t mu__run_limit(uint64_t timeout_ms)
{
    return timeout_ms < INT32_MAX ? (uint32_t)timeout_ms : INT32_MAX;
}

struct pinned_result;
struct per_worker;
struct named;

struct supervisor {
    struct mu__supervisor_config config;
    struct mu__closures closures;
    struct mu__membership members;
    struct mu__names functions;
    struct client *clients;
    uint32_t clients_count;
    uint32_t client_last;       /* most closures in a row come from one client */
    struct mu__admission admission;
    struct peer *peers;
    uint32_t peers_count;
    uint32_t peers_size;
    struct mu__map peer_index; /* node to index in `peers` + 1 */
    struct worker_state *worker_states;
    uint32_t worker_states_size;
    struct closure_extra **extras;        /* chunks that never move */
    uint32_t extras_chunks;
    uint32_t extras_free;        /* index + 1 */
    struct metric metrics[METRICS_MAX];
    uint32_t metrics_count;
    struct status_request status_requests[STATUS_REQUESTS_MAX];
    uint64_t status_request_next;

    uint64_t args_bytes;        /* of closures that are not done */
    uint32_t exclusive_worker; /* number of the worker reserved for a quarantined closure;
                                   0: none */
    struct mu__server_failures *server_failures;
    struct mu__server_failures *timeouts;
    struct mu__function_times times;
    struct mu__recalls recalls;
    struct mu__roles roles;
    uint64_t backup_timer;
    uint64_t *backups;          /* closures with a backup attempt */
    uint32_t backups_count;
    uint32_t backups_size;
    uint64_t watchdog_timer;
    uint64_t progress_ms;       /* when a closure was resolved last, or began to wait */

    uint64_t origin;            /* by which servers know whose effects they apply */
    uint64_t epoch;
    uint64_t effect_last;
    struct mu__id_window effects;

    struct mu__map pinned_results;  /* number -> struct pinned_result */
    struct mu__map per_worker;      /* number -> struct per_worker */
    struct per_worker *per_worker_first;    /* in the order in which they were made */
    struct per_worker *per_worker_last;
    uint64_t per_worker_next;
    uint32_t slow_builds;           /* on all workers */
    struct pinned_result *leaving;           /* those that go, while one does */
    uint32_t walks;                 /* over lists and maps, now; none goes meanwhile */

    struct mu__journal *journal;
    struct named **named;           /* by name: a table of chains */
    uint32_t named_size;
    uint32_t named_count;
    uint64_t number_next;
    struct mu__map numbers;         /* number in the journal -> struct named */
    uint64_t effects_end;           /* numbers of effects below are reserved there */
    uint64_t journal_rewrite_bytes; /* it is rewritten when it has grown so large */
    uint64_t journal_timer;         /* for what was scheduled in this turn */
    bool journal_dirty;             /* something was appended, and not flushed */
    char journal_why[256];          /* why it cannot be written, as its clients were
                                       told; "": it can */
    bool journal_behind;            /* it lacks a record: it is to be written anew, */
    uint64_t journal_retry_ms;      /* but not before this, since it may be long */

    uint64_t scheduled;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t retried;
    uint64_t forgotten;         /* of clients that went away */
    uint64_t stale;             /* results of attempts that nobody waits for */
    uint64_t workers_lost;
    uint64_t backups_run;
    uint64_t stuck;
    uint64_t stalls;
    struct mu__histogram execution;
    struct mu__histogram recovery;
};

/* What timers are for; the upper byte of their token. */
enum timer_purpose {
    TIMER_STATUS,     /* rest: the question's number */
    TIMER_CLOSURE,      /* rest: index of its `more` */
    TIMER_WORKER,      /* rest: number of the worker */
    TIMER_BUILD,        /* the same */
    TIMER_WATCHDOG,
    TIMER_BACKUP,
    TIMER_JOURNAL,
    TIMER_ROOM,
    TIMER_RECALL
};

static inline uint64_t timer_token(enum timer_purpose purpose, uint64_t rest)
{
    return (uint64_t)purpose << 56 | rest;
}

/* What a closure came to. Strings may be empty; `result` borrows from `backing`. */
struct outcome {
    int code;           /* negative, or 0 */
    uint32_t kind;      /* enum mu_error_kind */
    struct mu__packed result;
    struct mu__buf *backing;
    struct mu__view message;
    struct mu__view task;
    struct mu__view detail;
    bool pinned;
};

/* ---- supervisor.c ---- */

/* The closure ends here, whatever becomes of the answer. */
void mu__sup_resolve(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, const struct outcome *outcome);

/* The same with the supervisor's own words. */
void mu__sup_resolve_error(struct mu__ctx *ctx, struct supervisor *s,
                           struct mu__closure *closure, int code, uint32_t kind,
                           const char *text);

/* It is gone, and its function may be forgotten. */
void mu__sup_remove(struct supervisor *s, struct mu__closure *closure);

/* NULL when it is none. */
struct peer *mu__sup_peer(const struct supervisor *s, uint32_t node);

/* ---- supervisor_clients.c ---- */

struct client *mu__sup_client(struct supervisor *s, mu__pid pid);
void mu__sup_forget_client(struct mu__ctx *ctx, struct supervisor *s,
                           struct client *client);
void mu__sup_on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cancel_all(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cancel_closure(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* The closure that a client knows by a token; NULL when there is none (any more). */
struct mu__closure *mu__sup_closure_at(struct supervisor *s, mu__pid pid,
                                       uint64_t token);

/* A closure is its client's no more: nor is its token. */
void mu__sup_forget_token(struct client *client, const struct mu__closure *closure);

/* A closure that nobody waited for is this client's from now on. */
void mu__sup_adopt(struct supervisor *s, struct client *client,
                   struct mu__closure *closure, uint64_t token);

static inline struct closure_extra *mu__sup_extra_at(const struct supervisor *s,
                                                     uint32_t index)
{
    return index / EXTRAS_CHUNK < s->extras_chunks
               ? &s->extras[index / EXTRAS_CHUNK][index % EXTRAS_CHUNK]
               : NULL;
}

/* NULL when the closure has none. */
static inline struct closure_extra *mu__sup_extra(const struct supervisor *s,
                                        const struct mu__closure *closure)
{
    return closure->extra == 0 ? NULL : mu__sup_extra_at(s, closure->extra - 1);
}

struct closure_extra *mu__sup_need_extra(struct supervisor *s,
                                         struct mu__closure *closure);
void mu__sup_drop_extra(struct mu__ctx *ctx, struct supervisor *s,
                       struct mu__closure *closure);

/* Whether anybody wants it to be run. */
bool mu__sup_is_wanted(const struct supervisor *s, const struct mu__closure *closure);

/* Tell every client of an error that is of no closure. */
void mu__sup_fault(struct mu__ctx *ctx, struct supervisor *s, int code, uint32_t kind,
                   const char *task, const char *text);

/* ---- supervisor_dispatch.c ---- */

/* Give out closures while there are any and a worker has room. */
void mu__sup_dispatch(struct mu__ctx *ctx, struct supervisor *s);

/* The worker with that number may have got room: for those that wait for it alone. */
void mu__sup_dispatch_affine(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* The queue where a closure belongs; MU__LIST_NONE: out of memory. */
uint32_t mu__sup_queue_of(struct supervisor *s, const struct mu__closure *closure);

/* Put a closure to the front or the end of its queue. */
void mu__sup_queue_first(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure);
void mu__sup_queue_last(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure);

/* Move to a list where nobody takes it from by himself. */
void mu__sup_hold(struct supervisor *s, struct mu__closure *closure);

/* A place at a worker is free again: one attempt fewer is there. */
void mu__sup_unload(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                    const struct abandoned_attempt *was);

/* What the worker that it is in flight at is charged for it. */
static inline struct abandoned_attempt mu__sup_charge(const struct mu__closure *closure)
{
    bool begun = (closure->marks & MU__MARK_BEGUN) != 0;

    return (struct abandoned_attempt){
        .closure = mu__closure_id(closure),
        .attempt = closure->attempt,
        .bytes = mu__closure_bytes(closure),
        .cost_us = begun ? 0 : closure->cost_us,
        .begun = begun,
    };
}

struct abandoned_attempt mu__sup_backup_charge(const struct mu__closure *closure,
                                    const struct closure_extra *extra);

int mu__sup_send_run(struct mu__ctx *ctx, struct supervisor *s,
                     const struct mu__member_worker *worker,
                     const struct mu__closure *closure, uint32_t attempt);
void mu__sup_send_cancel(struct mu__ctx *ctx, uint32_t node, uint64_t closure,
                         uint32_t attempt);

/* Windows are the supervisor's to find, not those of the configuration. */
static inline bool mu__sup_is_adaptive(const struct supervisor *s)
{
    return s->config.window == 0;
}

/* How many of what ran there last a worker may have in flight, for people. */
uint32_t mu__sup_window(const struct supervisor *s,
                        const struct mu__member_worker *worker);

/* ---- supervisor_retry.c ---- */

void mu__sup_on_result(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* How a worker goes. */
enum mu__loss {
    MU__LOSS,           /* its link is down */
    MU__LOSS_DRAINED,   /* the same, and it was to leave */
    MU__LOSS_REMOVED    /* it is not in the cluster any more */
};

/* A closure whose worker was lost: cancelled, given up, or back to the front. That a
 * worker was removed is not held against its closures. */
void mu__sup_take_back(struct mu__ctx *ctx, struct supervisor *s,
                       struct mu__closure *closure, struct mu__worker_id worker,
                       enum mu__loss loss);

/* A backup attempt goes on as the attempt; false: there is none. */
bool mu__sup_promote_backup(struct supervisor *s, struct mu__closure *closure);

/* An attempt that was abandoned at a worker will not run there, if `returned`, or has
 * begun. False: there is none such. */
bool mu__sup_abandoned_reported(struct mu__ctx *ctx, struct supervisor *s,
                                uint32_t number, uint64_t closure, uint32_t attempt,
                                bool returned);

/* The next of a closure's times: to be called when one of them has changed. */
void mu__sup_arm(struct mu__ctx *ctx, struct supervisor *s, struct mu__closure *closure);
void mu__sup_closure_timer(struct mu__ctx *ctx, struct supervisor *s,
                           struct closure_extra *extra);

/* Backup attempts: one was lost with its worker; the tick; begin ticking if need be. */
void mu__sup_backups_lost(struct supervisor *s, uint32_t number);
void mu__sup_backup_tick(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_backup_watch(struct mu__ctx *ctx, struct supervisor *s);

/* Nobody waits for what is under way of a closure: ask its workers to stop. */
void mu__sup_abandon(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure);

/* ---- supervisor_workers.c ---- */

void mu__sup_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_drain(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_lose_worker(struct mu__ctx *ctx, struct supervisor *s,
                         const struct mu__member_worker *worker);
void mu__sup_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_worker_timer(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* Those that the cluster lists are missed from the start. False: out of memory. */
bool mu__sup_expect_workers(struct mu__ctx *ctx, struct supervisor *s);

/* Room for what is known of workers up to a number; false when out of memory. */
bool mu__sup_need_worker_state(struct supervisor *s, uint32_t number);

/* A worker that is away is waited for from now on, if it was not. */
void mu__sup_await_worker(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* One that is to leave has nothing left: let it. */
void mu__sup_leave_if_idle(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);
void mu__sup_answer_drain(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                          const char *text);
void mu__sup_fence(struct mu__ctx *ctx, const struct supervisor *s, uint32_t node);

/* ---- supervisor_inputs.c ---- */

void mu__sup_on_per_worker_make(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_fetch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_pulled(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- supervisor/builds.c ---- */

/* A worker has built a per-worker value, or failed to. */
void mu__sup_built(struct mu__ctx *ctx, struct supervisor *s, const struct mu__msg *msg);

/* A worker has joined: it builds what there is before it gets closures. It was lost. */
void mu__sup_builds_begin(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);
void mu__sup_builds_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                         enum mu__loss loss);
void mu__sup_builds_timer(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* False: on this worker a closure would wait long for one of its inputs. */
bool mu__sup_builds_suit(const struct supervisor *s, const struct closure_extra *extra,
                         const struct mu__member_worker *worker);

/* ---- supervisor_inputs.c ---- */

/* A new closure that names inputs. 0, or why it cannot run (with words). */
int mu__sup_take_inputs(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, struct mu__view inputs,
                        mu_error *ret_error);
void mu__sup_drop_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct closure_extra *extra);

/* Before a closure with inputs goes to a worker: 0 when all of them are there or on their
 * way; -MU_EAGAIN when it must wait for some, and was put where those wait. */
int mu__sup_bring_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure, struct mu__member_worker *worker);

/* The worker that has most of a closure's inputs; 0: no preference. */
uint32_t mu__sup_inputs_worker(const struct supervisor *s,
                               const struct closure_extra *extra);

/* The result of a closure stays on a worker. False when out of memory. */
bool mu__sup_pin_result(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, uint32_t number);

/* A kept result is being computed again, and this closure is its: it has come (code 0) or
 * cannot. True when it was one, and has been seen to. */
bool mu__sup_recomputed(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, const struct outcome *outcome,
                        uint32_t number);
/* A result that nobody waits for has come from a node: should it have been kept there, it
 * goes. */
void mu__sup_drop_stale(struct mu__ctx *ctx, struct supervisor *s, uint32_t node,
                        uint64_t number);
void mu__sup_inputs_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);
void mu__sup_inputs_client_lost(struct mu__ctx *ctx, struct supervisor *s,
                                mu__pid client);

/* Around a walk over a list of closures or what is kept: what nobody needs any more goes
 * when the last walk has ended, so that what comes next is still there. */
void mu__sup_inputs_pause(struct supervisor *s);
void mu__sup_inputs_resume(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_inputs_done(struct supervisor *s);
mu_value *mu__sup_inputs_value(const struct supervisor *s);

/* ---- supervisor_journal.c ---- */

int mu__sup_journal_open(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_journal_close(struct supervisor *s);

/* A closure with a name is being scheduled. True when it was seen to: answered because it
 * has finished, or joined with the one that is under way. */
bool mu__sup_journal_known(struct mu__ctx *ctx, struct supervisor *s,
                           struct client *client, const struct mu__schedule *body);

/* The time has come to write what was scheduled. */
void mu__sup_journal_tick(struct mu__ctx *ctx, struct supervisor *s);

/* Write a new closure down; 0, or why it cannot be (with words). One that has inputs is
 * written down when it has finished: the next chief would not know them. The result of a
 * closure of the journal is there, and is not kept by its worker. */
int mu__sup_journal_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, bool has_inputs,
                              mu_error *ret_error);

/* What was appended survives from here on; complains when it does not. */
void mu__sup_journal_secure(struct mu__ctx *ctx, struct supervisor *s);

/* One more number of an effect may be given out, as far as those go that are out; and as
 * far as the journal goes: else -MU_EEXHAUSTED (it is full) or -MU_EUNAVAILABLE, and
 * `journal_why` has words. */
bool mu__sup_has_effect_number(const struct supervisor *s);
int mu__sup_journal_reserve(struct mu__ctx *ctx, struct supervisor *s);

/* A closure of the journal is resolved: write that down, answer those who joined it.
 * False when it could not be written: then its effect is not finished with, since the
 * next chief may run it again, and what it writes then must count if nothing else did. */
bool mu__sup_journal_resolved(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, const struct outcome *outcome);
void mu__sup_on_forget(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* The function of a named closure that the journal knows to have finished; MU__NAME_NONE
 * when there is none. */
uint32_t mu__sup_journal_finished(const struct supervisor *s, struct mu__view name);

/* ---- supervisor_status.c ---- */

void mu__sup_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__sup_status_timer(struct mu__ctx *ctx, struct supervisor *s, uint64_t number);

uint32_t mu__sup_in_flight(const struct supervisor *s);

/* Of these, how many are known to have begun. */
uint32_t mu__sup_running(const struct supervisor *s);
uint32_t mu__sup_waiting(const struct supervisor *s);

/* A closure in flight, as the status shows it. */
mu_value *mu__sup_running_value(const struct supervisor *s,
                                const struct mu__closure *closure, uint64_t now_ms);

/* ---- supervisor_explain.c ---- */

/* Answer a STATUS_GET that asks about one closure. */
void mu__sup_explain(struct mu__ctx *ctx, struct supervisor *s, struct mu__msg *msg);

/* The workers that were there and are away. */
mu_value *mu__sup_missing_value(const struct supervisor *s, uint64_t now_ms);

/* The tick; begin ticking if need be. */
void mu__sup_watchdog(struct mu__ctx *ctx, struct supervisor *s);
void mu__sup_watchdog_watch(struct mu__ctx *ctx, struct supervisor *s);

#endif
