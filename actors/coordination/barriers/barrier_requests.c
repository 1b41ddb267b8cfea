/* Barriers: arrivals, cancels, timeouts, and changes of the cluster.
 *
 * No outcome is sent before it is safe in a persistent store, as a key of the service's
 * own. The next host reads it there, so that repeated arrivals get the same outcome;
 * processes that registered after the end, too, some of them later: barrier_holds.c. A
 * generation that had not ended begins anew there, since the agents repeat their
 * arrivals. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/barriers/alive.h"
#include "actors/coordination/barriers/barrier_table.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest generation and timeout. */
#define NUMBER_MAX (UINT64_C(1) << 62)

/* ---- arriving ---- */

struct arriving {
    struct coordination *c;
    struct mu__roster_task *task;
    uint32_t node;
    uint64_t timeout_ms; /* 0: none */
    struct mu__view tasks;
    struct coord_set set; /* of `tasks`, if it was read */
    struct mu__barrier_arrival arrival;
};

/* Refuse an arrival. Unless `alone`, the generation that runs ends for all with the same
 * error, which is this arrival's outcome, too, if it was for that generation. Otherwise
 * the answer tells which generation is to come. */
static void refuse_arrival(struct mu__ctx *ctx, struct arriving *a, int code, bool alone,
                           const char *message)
{
    struct mu__barrier *barrier =
        mu__barriers_find(&a->c->barriers->table, a->arrival.name);
    bool ends = !alone && barrier != NULL && barrier->running;
    struct barrier_answer answer = {
        .token = a->arrival.token,
        .generation = a->arrival.generation,
        .stays = !ends || barrier->generation != a->arrival.generation,
        .code = code,
    };
    char name[128];
    mu_error error;

    mu__view_copy(a->arrival.name, name, sizeof name);
    (void)mu_error_set(&error, code, "barrier \"%s\": %s", name, message);
    (void)snprintf(error.task, sizeof error.task, "%s", a->task->name);
    if (ends)
        (void)mu__coord_barrier_finish(ctx, a->c, barrier, &error);
    if (barrier != NULL && answer.stays)
        answer.generation = barrier->generation;
    answer.message = mu__view_str(error.message);
    answer.task = mu__view_str(error.task);
    mu__coord_barrier_say(ctx, a->c, a->node, &answer);
}

static void refuse_order(struct mu__ctx *ctx, struct arriving *a, bool is_slow)
{
    const struct mu__barrier *barrier =
        mu__barriers_find(&a->c->barriers->table, a->arrival.name);
    char message[256];

    (void)snprintf(message, sizeof message,
                   "%s is too %s: it arrives for generation %" PRIu64 ", and %" PRIu64
                   " %s",
                   a->task->name, is_slow ? "slow, or was restarted" : "quick",
                   a->arrival.generation, barrier->generation,
                   barrier->running ? "runs" : "is next");
    refuse_arrival(ctx, a, -MU_EINTERNAL, false, message);
}

static void refuse_set(struct mu__ctx *ctx, struct arriving *a)
{
    const struct mu__barrier *barrier =
        mu__barriers_find(&a->c->barriers->table, a->arrival.name);
    char message[400];

    (void)snprintf(message, sizeof message,
                   "%s names other tasks (%.100s) than the first participant (%.100s)",
                   a->task->name, a->arrival.set,
                   barrier->of_all ? a->c->barriers->all : barrier->set);
    refuse_arrival(ctx, a, -MU_EINVALID, false, message);
}

/* Many tasks may be added or removed at once: their text is made when it is needed. */
static int renew_all_tasks_text(struct coordination *c, mu_error *ret_error)
{
    struct coord_barriers *barriers = c->barriers;
    char *all;

    if (!barriers->all_is_old)
        return 0;
    all = mu__task_set_text(mu__coord_requests_all(c));
    if (all == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a set of tasks");
    free(barriers->all);
    barriers->all = all;
    barriers->all_is_old = false;
    return 0;
}

/* Whether the arrival names the same tasks as the generation that runs. */
static bool names_the_same(const struct arriving *a, const struct mu__barrier *barrier)
{
    if (barrier == NULL || !barrier->running ||
        mu__barrier_seat(barrier, a->task->slot) == NULL)
        return false;
    return barrier->of_all ? a->arrival.of_all
                           : !a->arrival.of_all && mu__view_is(a->tasks, barrier->set);
}

/* The set of the arrival. A text that equals the first arrival's is not read again. */
static int read_set(struct arriving *a, mu_error *ret_error)
{
    const struct coord_barriers *barriers = a->c->barriers;
    const struct mu__barrier *barrier =
        mu__barriers_find(&barriers->table, a->arrival.name);
    int rv = renew_all_tasks_text(a->c, ret_error);

    if (rv != 0)
        return rv;
    a->arrival.of_all = a->tasks.size == 0;
    a->arrival.all = barriers->all;
    if (names_the_same(a, barrier)) {
        a->arrival.set = barrier->set;
        return 0;
    }
    rv = mu__coord_set_read(a->arrival.of_all ? mu__view_str(barriers->all) : a->tasks,
                            a->task, ret_error, &a->set);
    if (rv != 0)
        return rv;
    a->arrival.set = a->set.text;
    return 0;
}

static void warn_of_many(struct mu__ctx *ctx, struct coord_barriers *barriers)
{
    uint32_t count = barriers->table.running.count;

    if (count <= barriers->warn_at)
        return;
    barriers->warn_at *= 2;
    mu__log(ctx, MU__LOG_WARN,
            "%" PRIu32 " barriers run at once: do all tasks arrive at all of them?",
            count);
}

/* Begin a generation with its first arrival. False: the arrival was refused. */
static bool begin_generation(struct mu__ctx *ctx, struct arriving *a)
{
    struct coordination *c = a->c;
    struct mu__barrier *barrier;
    uint64_t now_ms = mu__coord_clock(ctx, c);
    uint32_t *slots;
    uint32_t count;
    mu_error error;
    int rv = mu__coord_set_slots(c, &a->set, &error, &slots, &count);

    if (rv == 0) {
        c->barriers->calling = ctx;
        rv = mu__barriers_begin(&c->barriers->table, &a->arrival, slots, count,
                                a->timeout_ms, now_ms, &error, &barrier);
        free(slots);
    }
    if (rv != 0) {
        refuse_arrival(ctx, a, rv, true, error.message);
        return false;
    }
    if (a->timeout_ms != 0)
        c->barriers->due_ms =
            mu__coord_earlier(c->barriers->due_ms, now_ms + a->timeout_ms);
    warn_of_many(ctx, c->barriers);
    return true;
}

/* Answer an earlier call of the same task, which this arrival replaces. */
static void send_replaced(struct mu__ctx *ctx, struct arriving *a, uint64_t token)
{
    const struct mu__barrier *barrier =
        mu__barriers_find(&a->c->barriers->table, a->arrival.name);

    mu__coord_barrier_say(
        ctx, a->c, a->node,
        &(struct barrier_answer){
            .token = token,
            .generation = barrier->generation,
            .stays = true,
            .code = -MU_ECANCELLED,
            .message = mu__view_str("this task has called the same barrier again"),
            .task = mu__view_str(a->task->name),
        });
}

/* The arrival has counted. With the first one, a failed participant ends the barrier. */
static void count_arrival(struct mu__ctx *ctx, struct arriving *a, bool is_first,
                          bool is_last)
{
    struct mu__barrier *barrier =
        mu__barriers_find(&a->c->barriers->table, a->arrival.name);
    const struct mu__roster_task *failed =
        is_first ? mu__coord_barrier_find_failed(a->c, barrier) : NULL;
    mu_error error;

    if (failed != NULL) {
        mu__coord_barrier_explain_removed(barrier, failed, true, &error);
        (void)mu__coord_barrier_finish(ctx, a->c, barrier, &error);
    } else if (is_last) {
        (void)mu__coord_barrier_finish(ctx, a->c, barrier, NULL);
    }
}

/* Who comes for a later generation has passed what is held. */
static void end_hold_of_others(struct mu__ctx *ctx, struct arriving *a)
{
    struct mu__barrier *barrier =
        mu__barriers_find(&a->c->barriers->table, a->arrival.name);

    if (barrier != NULL && barrier->held && a->arrival.generation > barrier->generation)
        (void)mu__coord_barrier_finish(ctx, a->c, barrier, NULL);
}

static void handle_arrival(struct mu__ctx *ctx, struct arriving *a)
{
    struct mu__barriers *table = &a->c->barriers->table;
    const struct mu__barrier_outcome *outcome = NULL;
    uint64_t replaced = 0;
    enum mu__arrived how = mu__barriers_arrive(table, &a->arrival, &outcome, &replaced);
    bool is_first = how == MU__ARRIVED_FIRST;
    struct barrier_answer answer;

    if (is_first) {
        if (!begin_generation(ctx, a))
            return;
        how = mu__barriers_arrive(table, &a->arrival, &outcome, &replaced);
    }
    if (replaced != 0)
        send_replaced(ctx, a, replaced);
    if (how == MU__ARRIVED_AGAIN) {
        if (outcome->revision < a->arrival.since)
            mu__coord_barrier_renew(ctx, a->c, mu__barriers_find(table, a->arrival.name));
        answer = mu__coord_barrier_answer_of(outcome, a->arrival.token);
        mu__coord_barrier_say(ctx, a->c, a->node, &answer);
    } else if (how == MU__ARRIVED_DIFFERENT) {
        refuse_set(ctx, a);
    } else if (how == MU__ARRIVED_SLOW || how == MU__ARRIVED_QUICK) {
        refuse_order(ctx, a, how == MU__ARRIVED_SLOW);
    } else {
        count_arrival(ctx, a, is_first, how == MU__ARRIVED_LAST);
    }
}

/* Names are shown in messages and logs: no control characters. */
static bool is_printable_name(struct mu__view name)
{
    const unsigned char *at = name.data;

    for (uint32_t i = 0; i < name.size; i++)
        if (at[i] < ' ')
            return false;
    return name.size > 0;
}

void mu__coord_on_arrive(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__barrier_arrive *body = mu__body(msg);
    struct mu__roster_task *task =
        mu__coord_requester(ctx, c, msg->from.node, body->token);
    struct arriving a = {
        .c = c,
        .task = task,
        .node = msg->from.node,
        .timeout_ms = body->timeout_ms > NUMBER_MAX ? 0 : body->timeout_ms,
        .tasks = body->tasks,
        .arrival = {.name = body->name,
                    .generation = body->generation,
                    .token = body->token},
    };
    mu_error error;
    int rv;

    if (task == NULL)
        return;
    a.arrival.slot = task->slot;
    a.arrival.recoverable = task->recoverable;
    a.arrival.anew = strcmp(task->type, "client") == 0;
    a.arrival.since = task->since;
    a.arrival.incarnation = task->incarnation;
    if (!is_printable_name(body->name) || body->generation > NUMBER_MAX) {
        refuse_arrival(ctx, &a, -MU_EINVALID, true,
                       "a name of 1 to 255 bytes, none below 32, "
                       "and a generation below 2^62 are expected");
        return;
    }
    mu__coord_barrier_read_outcomes(ctx, c);
    if (c->barriers->has_former)
        end_hold_of_others(ctx, &a);
    rv = read_set(&a, &error);
    a.arrival.is_held = rv == 0 && mu__coord_barrier_holds(c, &a.arrival, &a.set.set);
    if (rv == 0)
        handle_arrival(ctx, &a);
    else
        refuse_arrival(ctx, &a, rv, rv == -MU_ENOMEM, error.message);
    mu__coord_set_done(&a.set);
}

/* ---- cancelling ---- */

static void cancel_barrier(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__barrier *barrier,
                           const struct mu__roster_task *task)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_ECANCELLED, "barrier \"%.120s\": cancelled by %s",
                       barrier->name, task->name);
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    (void)mu__coord_barrier_finish(ctx, c, barrier, &error);
}

/* Why this task cannot cancel. */
static void explain_no_cancel(const struct mu__barrier *barrier, uint64_t generation,
                              mu_error *ret_error)
{
    if (barrier == NULL)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "no task has arrived at a barrier of this name");
    else if (!barrier->running || barrier->generation > generation)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "barrier \"%.120s\": generation %" PRIu64 " is over",
                           barrier->name, generation);
    else
        (void)mu_error_set(
            ret_error, -MU_EPRECONDITION,
            "barrier \"%.120s\": this task has not come to generation %" PRIu64,
            barrier->name, generation);
}

/* Whether this is a repeated request, whose answer was lost. */
static bool was_cancelled_by(const struct mu__barrier *barrier, uint64_t generation,
                             const struct mu__roster_task *task)
{
    const struct mu__barrier_outcome *outcome =
        barrier == NULL ? NULL : mu__barrier_outcome(barrier, generation);

    return outcome != NULL && outcome->code == -MU_ECANCELLED &&
           strcmp(outcome->task, task->name) == 0;
}

void mu__coord_on_barrier_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__barrier_cancel *body = mu__body(msg);
    const struct mu__roster_task *task =
        mu__coord_requester(ctx, c, msg->from.node, body->token);
    struct mu__barrier *barrier;
    mu_error error;

    if (task == NULL)
        return;
    mu__coord_barrier_read_outcomes(ctx, c);
    barrier = mu__barriers_find(&c->barriers->table, body->name);
    if (barrier != NULL && barrier->held)
        (void)mu__coord_barrier_finish(ctx, c, barrier, NULL);
    if (barrier != NULL &&
        mu__barrier_may_cancel(barrier, task->slot, task->incarnation, body->generation))
        cancel_barrier(ctx, c, barrier, task);
    else if (!was_cancelled_by(barrier, body->generation, task)) {
        explain_no_cancel(barrier, body->generation, &error);
        mu__coord_answer(ctx, c, msg->from.node, body->token, &error);
        return;
    }
    mu__coord_answer(ctx, c, msg->from.node, body->token, NULL);
}

/* ---- time ---- */

void mu__coord_barriers_tick(struct mu__ctx *ctx, struct coordination *c)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    uint32_t looks = HOLD_LOOKS_MAX;
    struct coord_barriers *b = c->barriers;
    struct mu__barrier *next;

    b->due_ms = UINT64_MAX;
    for (struct mu__barrier *at = mu__barrier_first(&b->table.running); at != NULL;
         at = next) {
        next = mu__barrier_next(at);
        if (at->held && mu__coord_barrier_hold_is_over(c, at, now_ms, &looks)) {
            (void)mu__coord_barrier_finish(ctx, c, at, NULL);
            continue;
        }
        if (at->timeout_ms != 0 && now_ms - at->since_ms >= at->timeout_ms) {
            mu__coord_barrier_time_out(ctx, c, at);
            continue;
        }
        if (at->note_ms != 0 && now_ms >= at->note_ms)
            mu__coord_barrier_note_waiting(ctx, c, at, now_ms);
        if (at->note_ms <= now_ms)
            at->note_ms = mu__coord_note_next(at->since_ms, now_ms);
        b->due_ms = mu__coord_earlier(b->due_ms, at->note_ms);
        if (at->timeout_ms != 0)
            b->due_ms = mu__coord_earlier(b->due_ms, at->since_ms + at->timeout_ms);
    }
    mu__coord_alive_tick(ctx, c, b->alive);
}

uint64_t mu__coord_barriers_due_ms(const struct coordination *c)
{
    return mu__coord_earlier(c->barriers->due_ms,
                             mu__coord_alive_due_ms(c->barriers->alive));
}

uint64_t mu__coord_barriers_forget_over(struct mu__ctx *ctx, struct coordination *c)
{
    mu__coord_barrier_read_outcomes(ctx, c);
    c->barriers->calling = ctx;
    return mu__barriers_forget_over(&c->barriers->table);
}

/* ---- the service's begin and end ---- */

/* Nothing is answered: agents repeat their requests at the next host, which may be this
 * one. */
void mu__coord_barriers_lost(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    mu__barriers_done(&c->barriers->table);
    c->barriers->is_read = c->barriers->has_former = false;
    c->barriers->warn_at = RUNNING_WARN;
    mu__coord_alive_forget(c->barriers->alive);
}

static char *normalize_task_set(const char *tasks)
{
    struct mu__task_set set;
    char *text;

    if (mu__task_set_parse(mu__view_str(tasks), NULL, &set) != 0)
        return NULL;
    text = mu__task_set_text(&set);
    mu__task_set_done(&set);
    return text;
}

/* A barrier of all gets a participant more or less. */
static int update_participant(struct mu__ctx *ctx, struct coordination *c,
                              struct mu__barrier *barrier,
                              const struct mu__roster_task *task)
{
    int rv = 0;

    if (task->coordinated)
        rv = mu__barrier_join(&c->barriers->table, barrier, task->slot);
    else
        mu__barrier_part(barrier, task->slot);
    if (rv == 0 && mu__barrier_is_full(barrier))
        (void)mu__coord_barrier_finish(ctx, c, barrier, NULL);
    return rv;
}

static void explain_removed(const struct mu__barrier *barrier,
                            const struct mu__roster_task *task, mu_error *ret_error)
{
    (void)mu_error_set(ret_error, -MU_EUNAVAILABLE,
                       "barrier \"%.120s\" names %s, which was removed from the cluster",
                       barrier->name, task->name);
    ret_error->kind = MU_ERROR_WORKER;
    (void)snprintf(ret_error->task, sizeof ret_error->task, "%s", task->name);
}

void mu__coord_barriers_cluster(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task)
{
    struct coord_barriers *barriers = c->barriers;
    struct mu__barrier *next;
    mu_error error;
    int rv;

    barriers->all_is_old = true;
    for (struct mu__barrier *at = mu__barrier_first(&barriers->table.running); at != NULL;
         at = next) {
        next = mu__barrier_next(at);
        if (at->of_all) {
            rv = update_participant(ctx, c, at, task);
            if (rv == 0)
                continue;
            (void)mu_error_set(&error, rv,
                               "barrier \"%.120s\": no memory to note that "
                               "the cluster has changed",
                               at->name);
        } else if (!task->coordinated && mu__barrier_seat(at, task->slot) != NULL) {
            explain_removed(at, task, &error);
        } else {
            continue;
        }
        (void)mu__coord_barrier_finish(ctx, c, at, &error);
    }
}

int mu__coord_barriers_init(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_barriers *barriers = calloc(1, sizeof *barriers);

    if (barriers == NULL)
        return -MU_ENOMEM;
    barriers->table.secret = mu__secret(ctx);
    barriers->owner = c;
    barriers->warn_at = RUNNING_WARN;
    barriers->table.dropped = mu__coord_barrier_on_dropped;
    barriers->table.user = barriers;
    barriers->all = normalize_task_set(c->config.tasks);
    barriers->alive = mu__coord_alive_new();
    c->barriers = barriers;
    return barriers->all == NULL || barriers->alive == NULL ? -MU_ENOMEM : 0;
}

void mu__coord_barriers_done(struct coordination *c)
{
    struct coord_barriers *barriers = c->barriers;

    if (barriers == NULL)
        return;
    mu__barriers_done(&barriers->table);
    mu__coord_alive_free(barriers->alive);
    free(barriers->all);
    free(barriers);
    c->barriers = NULL;
}

const struct mu__barriers *mu__coord_barriers_table(const struct coordination *c)
{
    return &c->barriers->table;
}

void mu__coord_alive(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task, const struct mu__tasks_get *get)
{
    struct mu__tasks_get named = *get;
    mu_error error;

    if (renew_all_tasks_text(c, &error) != 0) {
        mu__coord_answer(ctx, c, task->link.node, get->token, &error);
        return;
    }
    if (named.tasks.size == 0)
        named.tasks = mu__view_str(c->barriers->all);
    mu__coord_alive_request(ctx, c, c->barriers->alive, task, &named);
}
