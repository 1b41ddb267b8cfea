/* Barriers: who arrives, who is waited for, and what everybody is told.
 *
 * An outcome is said to nobody before it is safe in a store that lasts, as a key of the
 * service's own. The next host reads it there, so those who have not heard of it, and ask
 * again, get the same: but no process that came to the service when it was over already.
 * What had not ended begins anew there, as the agents ask again. */
#include "actors/coordination/alive.h"
#include "actors/coordination/barrier_table.h"
#include "actors/coordination/wait_notes.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/sets.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MISSING_NAMED_MAX = 3,
    RUNNING_WARN = 20       /* barriers at once: more may be some that nobody ends */
};

/* Generations and limits of more are nonsense. */
#define NUMBER_MAX (UINT64_C(1) << 62)

struct coord_barriers {
    struct mu__barriers table;
    char *all;              /* the canonical set of the coordinated jobs, */
    bool all_is_old;        /* before the cluster changed */
    bool is_read;           /* what the store has of former hosts */
    uint32_t warn_at;
    struct coord_alive *alive;
    struct mu__ctx *calling;    /* while names may be dropped */
    struct coordination *owner;
};

/* ---- outcomes in the store ---- */

static const char hex[] = "0123456789ABCDEF";

static bool is_plain(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-' || byte == '.' ||
           byte == ':';
}

/* A name has any bytes, a key has not: "a/b" is "a%2Fb" there. */
static void key_of(const struct coordination *c, struct mu__view name, char out[1024])
{
    const unsigned char *at = name.data;
    size_t used = mu__coord_run_key(c, "barrier/", out);

    for (uint32_t i = 0; i < name.size; i++) {
        if (is_plain(at[i])) {
            out[used++] = (char)at[i];
            continue;
        }
        out[used++] = '%';
        out[used++] = hex[at[i] >> 4];
        out[used++] = hex[at[i] & 15];
    }
    out[used] = '\0';
}

static bool take_hex(const char *at, const char *end, unsigned char *ret_byte)
{
    const char *high = end - at < 2 ? NULL : memchr(hex, at[0], 16);
    const char *low = end - at < 2 ? NULL : memchr(hex, at[1], 16);

    if (high == NULL || low == NULL)
        return false;
    *ret_byte = (unsigned char)((high - hex) << 4 | (low - hex));
    return true;
}

/* The name behind a key, which has `skip` bytes before it; false: it is none of ours. */
static bool name_of(struct mu__view key, size_t skip, char out[MU__BARRIER_NAME_MAX],
                    struct mu__view *ret_name)
{
    const char *at = key.data;
    const char *end = at + key.size;
    uint32_t used = 0;

    if (key.size <= skip)
        return false;
    at += skip;
    for (; at < end && used < MU__BARRIER_NAME_MAX; used++) {
        unsigned char byte = (unsigned char)*at++;

        if (byte == '%') {
            if (!take_hex(at, end, &byte))
                return false;
            at += 2;
        }
        out[used] = (char)byte;
    }
    *ret_name = (struct mu__view){.data = out, .size = used};
    return at == end;
}

static struct mu__view view_of(const struct mu__barrier *barrier)
{
    return (struct mu__view){.data = barrier->name, .size = barrier->name_size};
}

static void write_outcome(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__barrier *barrier)
{
    char key[1024];
    char text[MU__BARRIER_TEXT_MAX];
    int rv;

    if (!c->config.store->lasting)
        return;
    key_of(c, view_of(barrier), key);
    rv = mu__coord_keys_put_own(ctx, c, key, text, mu__barrier_write(barrier, text));
    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR, "barrier \"%s\": its outcome cannot be stored: %s",
                barrier->name, mu_strerror(rv));
}

static void on_dropped(void *user, const struct mu__barrier *barrier)
{
    struct coord_barriers *barriers = user;
    char key[1024];

    if (!barriers->owner->config.store->lasting)
        return;
    key_of(barriers->owner, view_of(barrier), key);
    (void)mu__coord_keys_delete_own(barriers->calling, barriers->owner, key);
}

/* What former hosts ended, once for each time that this one leads. */
static void read_outcomes(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_barriers *barriers = c->barriers;
    char name[MU__BARRIER_NAME_MAX];
    char key[MU__RUN_KEY_MAX];
    struct mu__view directory = {key, (uint32_t)mu__coord_run_key(c, "barrier", key)};
    struct mu__key_value entry = {.key = directory};

    if (barriers->is_read || !c->leads)
        return;
    barriers->is_read = true;
    barriers->table.quiet_revision = mu__coord_run(c)->quiet_revision;
    while (mu__coord_keys_next_own(c, entry.key, &entry)) {
        struct mu__view found;
        int rv = -MU_EINVALID;

        if (!mu__key_is_below(entry.key, directory))
            return;
        if (name_of(entry.key, directory.size + 1, name, &found))
            rv = mu__barriers_read(&barriers->table, found, entry.value,
                                   mu__coord_clock(ctx, c));
        if (rv != 0)
            mu__log(ctx, MU__LOG_WARN, "outcomes of barriers: key \"%.*s\" is passed "
                    "over: %s", (int)entry.key.size, (const char *)entry.key.data,
                    mu_strerror(rv));
    }
}

/* ---- answers ---- */

/* One arrival's: which generation it was for, and what came of it. */
struct barrier_answer {
    uint64_t token;
    uint64_t generation;
    bool stays;
    int code;
    int kind;
    struct mu__view message;
    struct mu__view task;
    struct mu__buf *backing;    /* of both; NULL: they are copied */
};

static void say(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                const struct barrier_answer *answer)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__BARRIER_PASSED);
    struct mu__barrier_passed *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = answer->token;
    body->generation = answer->generation;
    body->stays = answer->stays;
    body->code = (uint32_t)-answer->code;
    body->error_kind = (uint32_t)answer->kind;
    body->message = answer->message;
    body->task = answer->task;
    if (answer->backing != NULL)
        msg->backing = mu__buf_ref(answer->backing);
    else if (answer->code != 0 &&
             !mu__coord_back(msg, (struct mu__view *[]){&body->message, &body->task}, 2))
        body->message.size = body->task.size = 0;
    mu__coord_send(ctx, c, node, msg);
}

static struct barrier_answer answer_of(const struct mu__barrier_outcome *outcome,
                                       uint64_t token)
{
    return (struct barrier_answer){
        .token = token,
        .generation = outcome->generation,
        .code = outcome->code,
        .kind = outcome->kind,
        .message = mu__view_str(outcome->message == NULL ? "" : outcome->message),
        .task = mu__view_str(outcome->task),
    };
}

/* To all who have arrived, with one copy of the words. One whose link is down asks again
 * when it is back. */
static void send_to_all(struct mu__ctx *ctx, struct coordination *c,
                       const struct mu__barrier *barrier,
                       const struct mu__barrier_outcome *outcome)
{
    struct barrier_answer answer = answer_of(outcome, 0);

    if (outcome->code != 0) {
        answer.backing = mu__buf_new((size_t)answer.message.size + answer.task.size + 1);
        if (answer.backing != NULL)
            (void)mu__pack_view(mu__pack_view(answer.backing->data, &answer.message),
                                &answer.task);
    }
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        const struct mu__barrier_seat *seat = &barrier->seats[i];
        const struct mu__roster_task *task = c->roster->tasks[seat->slot];

        if (!seat->arrived || !task->up || task->incarnation != seat->incarnation)
            continue;
        answer.token = seat->token;
        say(ctx, c, task->node, &answer);
    }
    mu__buf_unref(answer.backing);
}

/* ---- the end of a generation ---- */

static const struct mu__barrier_outcome *finish(struct mu__ctx *ctx,
                                                struct coordination *c,
                                                struct mu__barrier *barrier,
                                                const mu_error *error)
{
    const struct mu__barrier_outcome *outcome = mu__barriers_end(
        &c->barriers->table, barrier, error, mu__coord_next_revision(c),
        mu__coord_clock(ctx, c));

    if (error == NULL)
        mu__log(ctx, MU__LOG_DEBUG, "barrier \"%s\" %" PRIu64 ": all %" PRIu32
                " are there", barrier->name, outcome->generation, barrier->expected);
    else
        mu__log(ctx, MU__LOG_INFO, "%s", error->message);
    write_outcome(ctx, c, barrier);
    send_to_all(ctx, c, barrier, outcome);
    return outcome;
}

static bool is_missing(void *user, const struct mu__roster_task *task)
{
    const struct mu__barrier_seat *seat = mu__barrier_seat(user, task->slot);

    return seat != NULL && !seat->arrived;
}

static void explain_missing(struct mu__ctx *ctx, const struct coordination *c,
                            struct mu__barrier *barrier, uint64_t after_ms,
                            mu_error *ret_error)
{
    char missing[256];
    char first[96] = "";

    (void)mu__roster_describe(c->roster, mu__coord_clock(ctx, c), is_missing, barrier,
                           MISSING_NAMED_MAX, missing, sizeof missing);
    if (barrier->arrived > 0)
        (void)snprintf(first, sizeof first, ", %s first",
                       c->roster->tasks[barrier->first]->name);
    (void)mu_error_set(ret_error, -MU_EDEADLINE,
                       "barrier \"%.120s\": %" PRIu32 " of %" PRIu32 " tasks arrived in %"
                       PRIu64 " ms%s; missing: %s", barrier->name, barrier->arrived,
                       barrier->expected, after_ms, first, missing);
    ret_error->kind = MU_ERROR_LIMIT;
}

static void time_out(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__barrier *barrier)
{
    mu_error error;

    explain_missing(ctx, c, barrier, barrier->timeout_ms, &error);
    (void)finish(ctx, c, barrier, &error);
}

/* For the logs of those who are here. */
static void note_waiting(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__barrier *barrier, uint64_t now_ms)
{
    mu_error error;

    explain_missing(ctx, c, barrier, now_ms - barrier->since_ms, &error);
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        const struct mu__barrier_seat *seat = &barrier->seats[i];
        const struct mu__roster_task *task = c->roster->tasks[seat->slot];

        if (seat->arrived && task->up && task->incarnation == seat->incarnation)
            mu__coord_note(ctx, task->node, seat->token, error.message);
    }
}

/* Why a barrier cannot go on without a task. What that one says of itself counts as it
 * is; otherwise nobody but it knows what it was. */
static void explain_gone(const struct mu__barrier *barrier,
                         const struct mu__roster_task *task, bool failed,
                         mu_error *ret_error)
{
    int code = failed && task->self_reported ? task->error.code : -MU_EINTERNAL;

    if (failed)
        (void)mu_error_set(ret_error, code, "barrier \"%.120s\" needs %s, which is in "
                           "error: %s", barrier->name, task->name, task->error.message);
    else
        (void)mu_error_set(ret_error, code, "barrier \"%.120s\" needs %s, which has left "
                           "or was reset", barrier->name, task->name);
    ret_error->kind = failed && task->self_reported ? task->error.kind : MU_ERROR_WORKER;
    (void)snprintf(ret_error->task, sizeof ret_error->task, "%s",
                   failed && task->self_reported && task->error.task[0] != '\0'
                       ? task->error.task
                       : task->name);
}

/* One that is not recoverable, or says itself that it has failed, is not waited for. */
static bool is_fatal(const struct mu__roster_task *task)
{
    return !task->recoverable || (task->state == MU__TASK_FAILED && task->self_reported);
}

static struct mu__roster_task *find_failed(const struct coordination *c,
                                           const struct mu__barrier *barrier)
{
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        struct mu__roster_task *task = c->roster->tasks[barrier->seats[i].slot];

        if ((barrier->seats[i].past & 1) != 0 && task->state == MU__TASK_FAILED &&
            is_fatal(task))
            return task;
    }
    return NULL;
}

void mu__coord_barriers_task_left(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task, bool failed)
{
    struct mu__barrier *next;
    mu_error error;

    for (struct mu__barrier *at = c->barriers->table.running.first; at != NULL;
         at = next) {
        next = at->next;
        if (mu__barrier_seat(at, task->slot) == NULL)
            continue;
        if (!is_fatal(task)) {
            (void)mu__barrier_uncount(at, task->slot);
            continue;
        }
        explain_gone(at, task, failed, &error);
        (void)finish(ctx, c, at, &error);
    }
    mu__coord_alive_left(ctx, c, c->barriers->alive, task);
}

void mu__coord_barriers_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task)
{
    (void)ctx;
    mu__coord_alive_joined(c->barriers->alive, task);
}

/* ---- arriving ---- */

struct arriving {
    struct coordination *c;
    struct mu__roster_task *task;
    uint32_t node;
    uint64_t timeout_ms;          /* 0: none */
    struct mu__view tasks;
    struct coord_set set;       /* read when it is needed */
    struct mu__barrier_arrival arrival;
};

/* Something is wrong with an arrival. Unless it is wrong for itself alone, what runs ends
 * for everybody with the same error; that is this arrival's outcome, too, if it was for
 * that generation. Otherwise its generation is to come, and it is told which one is. */
static void refuse(struct mu__ctx *ctx, struct arriving *a, int code, bool alone,
                   const char *message)
{
    struct mu__barrier *barrier = mu__barriers_find(&a->c->barriers->table,
                                                    a->arrival.name);
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
        (void)finish(ctx, a->c, barrier, &error);
    if (barrier != NULL && answer.stays)
        answer.generation = barrier->generation;
    answer.message = mu__view_str(error.message);
    answer.task = mu__view_str(error.task);
    say(ctx, a->c, a->node, &answer);
}

static void refuse_order(struct mu__ctx *ctx, struct arriving *a, bool is_slow)
{
    const struct mu__barrier *barrier = mu__barriers_find(&a->c->barriers->table,
                                                          a->arrival.name);
    char message[256];

    (void)snprintf(message, sizeof message,
                   "%s is too %s: it arrives for generation %" PRIu64 ", and %" PRIu64
                   " %s",
                   a->task->name, is_slow ? "slow, or was restarted" : "quick",
                   a->arrival.generation, barrier->generation,
                   barrier->running ? "runs" : "is next");
    refuse(ctx, a, -MU_EINTERNAL, false, message);
}

static void refuse_set(struct mu__ctx *ctx, struct arriving *a)
{
    const struct mu__barrier *barrier = mu__barriers_find(&a->c->barriers->table,
                                                          a->arrival.name);
    char message[400];

    (void)snprintf(message, sizeof message,
                   "%s names other tasks (%.100s) than the first "
                   "who came (%.100s)",
                   a->task->name, a->arrival.set,
                   barrier->of_all ? a->c->barriers->all : barrier->set);
    refuse(ctx, a, -MU_EINVALID, false, message);
}

/* Ten thousand tasks may come or go at once: their text is made when it is wanted. */
static int renew_all(struct coordination *c, mu_error *ret_error)
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

/* Whether it names the same tasks as those who have come to what runs. */
static bool names_the_same(const struct arriving *a, const struct mu__barrier *barrier)
{
    if (barrier == NULL || !barrier->running ||
        mu__barrier_seat(barrier, a->task->slot) == NULL)
        return false;
    return barrier->of_all
               ? a->arrival.of_all
               : !a->arrival.of_all && mu__view_is(a->tasks, barrier->set);
}

/* The tasks that it names. What the first has named already is not read again. */
static int read_set(struct arriving *a, mu_error *ret_error)
{
    const struct coord_barriers *barriers = a->c->barriers;
    const struct mu__barrier *barrier = mu__barriers_find(&barriers->table,
                                                          a->arrival.name);
    int rv = renew_all(a->c, ret_error);

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
    mu__log(ctx, MU__LOG_WARN, "%" PRIu32 " barriers run at once: does everybody come to "
            "all of them?", count);
}

/* The first one comes: who takes part, and until when. False: it was answered. */
static bool begin(struct mu__ctx *ctx, struct arriving *a)
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
        refuse(ctx, a, rv, true, error.message);
        return false;
    }
    if (a->timeout_ms != 0)
        mu__coord_wake_at(ctx, c, now_ms + a->timeout_ms);
    warn_of_many(ctx, c->barriers);
    return true;
}

/* An earlier call of the same task: another one waits in its place. */
static void send_replaced(struct mu__ctx *ctx, struct arriving *a, uint64_t token)
{
    const struct mu__barrier *barrier = mu__barriers_find(&a->c->barriers->table,
                                                          a->arrival.name);

    say(ctx, a->c, a->node, &(struct barrier_answer){
        .token = token,
        .generation = barrier->generation,
        .stays = true,
        .code = -MU_ECANCELLED,
        .message = mu__view_str("this task has called the same barrier again"),
        .task = mu__view_str(a->task->name),
    });
}

/* It is there. Whoever cannot come is found when the first has. */
static void count_in(struct mu__ctx *ctx, struct arriving *a, bool is_first, bool is_last)
{
    struct mu__barrier *barrier = mu__barriers_find(&a->c->barriers->table,
                                                    a->arrival.name);
    const struct mu__roster_task *failed =
        is_first ? find_failed(a->c, barrier) : NULL;
    mu_error error;

    if (failed != NULL) {
        explain_gone(barrier, failed, true, &error);
        (void)finish(ctx, a->c, barrier, &error);
    } else if (is_last) {
        (void)finish(ctx, a->c, barrier, NULL);
    }
}

static void arrive(struct mu__ctx *ctx, struct arriving *a)
{
    struct mu__barriers *table = &a->c->barriers->table;
    const struct mu__barrier_outcome *outcome = NULL;
    uint64_t replaced = 0;
    enum mu__arrived how = mu__barriers_arrive(table, &a->arrival, &outcome, &replaced);
    bool is_first = how == MU__ARRIVED_FIRST;
    struct barrier_answer answer;

    if (is_first) {
        if (!begin(ctx, a))
            return;
        how = mu__barriers_arrive(table, &a->arrival, &outcome, &replaced);
    }
    if (replaced != 0)
        send_replaced(ctx, a, replaced);
    if (how == MU__ARRIVED_AGAIN) {
        answer = answer_of(outcome, a->arrival.token);
        say(ctx, a->c, a->node, &answer);
    } else if (how == MU__ARRIVED_DIFFERENT) {
        refuse_set(ctx, a);
    } else if (how == MU__ARRIVED_SLOW || how == MU__ARRIVED_QUICK) {
        refuse_order(ctx, a, how == MU__ARRIVED_SLOW);
    } else {
        count_in(ctx, a, is_first, how == MU__ARRIVED_LAST);
    }
}

/* Names end up in messages and logs. */
static bool is_name(struct mu__view name)
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
    if (!is_name(body->name) || body->generation > NUMBER_MAX) {
        refuse(ctx, &a, -MU_EINVALID, true, "a name of 1 to 255 bytes, none below 32, "
                                            "and "
               "a generation below 2^62 are expected");
        return;
    }
    read_outcomes(ctx, c);
    rv = read_set(&a, &error);
    if (rv == 0)
        arrive(ctx, &a);
    else
        refuse(ctx, &a, rv, rv == -MU_ENOMEM, error.message);
    mu__coord_set_done(&a.set);
}

/* ---- cancelling ---- */

static void cancel(struct mu__ctx *ctx, struct coordination *c,
                   struct mu__barrier *barrier, const struct mu__roster_task *task)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_ECANCELLED, "barrier \"%.120s\": cancelled by %s",
                       barrier->name, task->name);
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    (void)finish(ctx, c, barrier, &error);
}

/* Why there is nothing that this task could cancel. */
static void explain_no_cancel(const struct mu__barrier *barrier, uint64_t generation,
                              mu_error *ret_error)
{
    if (barrier == NULL)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION, "nobody has come to a barrier "
                           "of this name");
    else if (!barrier->running || barrier->generation > generation)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "barrier \"%.120s\": generation %" PRIu64 " is over",
                           barrier->name, generation);
    else
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "barrier \"%.120s\": this task has not come to generation %"
                           PRIu64, barrier->name, generation);
}

/* One that is asked again, because its answer was lost, finds what it did. */
static bool was_cancelled(const struct mu__barrier *barrier, uint64_t generation,
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
    read_outcomes(ctx, c);
    barrier = mu__barriers_find(&c->barriers->table, body->name);
    if (barrier != NULL && mu__barrier_may_cancel(barrier, task->slot, task->incarnation,
                                                  body->generation))
        cancel(ctx, c, barrier, task);
    else if (!was_cancelled(barrier, body->generation, task)) {
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
    struct mu__barrier *next;

    for (struct mu__barrier *at = c->barriers->table.running.first; at != NULL;
         at = next) {
        next = at->next;
        if (at->timeout_ms != 0 && now_ms - at->since_ms >= at->timeout_ms) {
            time_out(ctx, c, at);
            continue;
        }
        if (at->note_ms != 0 && now_ms >= at->note_ms)
            note_waiting(ctx, c, at, now_ms);
        if (at->note_ms <= now_ms)
            at->note_ms = mu__coord_note_next(at->since_ms, now_ms);
        mu__coord_wake_at(ctx, c, at->note_ms);
        if (at->timeout_ms != 0)
            mu__coord_wake_at(ctx, c, at->since_ms + at->timeout_ms);
    }
    mu__coord_alive_tick(ctx, c, c->barriers->alive);
}

uint64_t mu__coord_barriers_forget_over(struct mu__ctx *ctx, struct coordination *c)
{
    read_outcomes(ctx, c);
    c->barriers->calling = ctx;
    return mu__barriers_forget_over(&c->barriers->table);
}

/* ---- the service's begin and end ---- */

/* Nobody is answered: agents ask the next host, which may be this one, again. */
void mu__coord_barriers_lost(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    mu__barriers_done(&c->barriers->table);
    c->barriers->is_read = false;
    c->barriers->warn_at = RUNNING_WARN;
    mu__coord_alive_forget(c->barriers->alive);
}

static char *canonical(const char *tasks)
{
    struct mu__task_set set;
    char *text;

    if (mu__task_set_parse(mu__view_str(tasks), NULL, &set) != 0)
        return NULL;
    text = mu__task_set_text(&set);
    mu__task_set_done(&set);
    return text;
}

/* It is of all. */
static int follow(struct mu__ctx *ctx, struct coordination *c,
                  struct mu__barrier *barrier, const struct mu__roster_task *task)
{
    int rv = 0;

    if (task->coordinated)
        rv = mu__barrier_join(&c->barriers->table, barrier, task->slot);
    else
        mu__barrier_part(barrier, task->slot);
    if (rv == 0 && mu__barrier_is_full(barrier))
        (void)finish(ctx, c, barrier, NULL);
    return rv;
}

static void explain_removed(const struct mu__barrier *barrier,
                            const struct mu__roster_task *task, mu_error *ret_error)
{
    (void)mu_error_set(ret_error, -MU_EUNAVAILABLE, "barrier \"%.120s\" names %s, which "
                       "was removed from the cluster", barrier->name, task->name);
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
    for (struct mu__barrier *at = barriers->table.running.first; at != NULL; at = next) {
        next = at->next;
        if (at->of_all) {
            rv = follow(ctx, c, at, task);
            if (rv == 0)
                continue;
            (void)mu_error_set(&error, rv, "barrier \"%.120s\": no memory to note that "
                               "the cluster has changed", at->name);
        } else if (!task->coordinated && mu__barrier_seat(at, task->slot) != NULL) {
            explain_removed(at, task, &error);
        } else {
            continue;
        }
        (void)finish(ctx, c, at, &error);
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
    barriers->table.dropped = on_dropped;
    barriers->table.user = barriers;
    barriers->all = canonical(c->config.tasks);
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

    if (renew_all(c, &error) != 0) {
        mu__coord_answer(ctx, c, task->node, get->token, &error);
        return;
    }
    if (named.tasks.size == 0)
        named.tasks = mu__view_str(c->barriers->all);
    mu__coord_alive_request(ctx, c, c->barriers->alive, task, &named);
}
