/* The end of a generation of a barrier: its outcome in the store, and the answers. */
#include "actors/coordination/barriers/alive.h"
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/barriers/barrier_table.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- outcomes in the store ---- */

static const char hex[] = "0123456789ABCDEF";

static bool is_unescaped_byte(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-' || byte == '.' ||
           byte == ':';
}

/* A name may have bytes that a key may not: "a/b" is "a%2Fb" in a key. */
static void make_outcome_key(const struct coordination *c, struct mu__view name,
                             char out[1024])
{
    const unsigned char *at = name.data;
    size_t used = mu__coord_run_key(c, "barrier/", out);

    for (uint32_t i = 0; i < name.size; i++) {
        if (is_unescaped_byte(at[i])) {
            out[used++] = (char)at[i];
            continue;
        }
        out[used++] = '%';
        out[used++] = hex[at[i] >> 4];
        out[used++] = hex[at[i] & 15];
    }
    out[used] = '\0';
}

static bool parse_hex_byte(const char *at, const char *end, unsigned char *ret_byte)
{
    const char *high = end - at < 2 ? NULL : memchr(hex, at[0], 16);
    const char *low = end - at < 2 ? NULL : memchr(hex, at[1], 16);

    if (high == NULL || low == NULL)
        return false;
    *ret_byte = (unsigned char)((high - hex) << 4 | (low - hex));
    return true;
}

/* The name in a key, behind `skip` bytes; false: the key is of another form. */
static bool parse_barrier_name(struct mu__view key, size_t skip,
                               char out[MU__BARRIER_NAME_MAX], struct mu__view *ret_name)
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
            if (!parse_hex_byte(at, end, &byte))
                return false;
            at += 2;
        }
        out[used] = (char)byte;
    }
    *ret_name = (struct mu__view){.data = out, .size = used};
    return at == end;
}

static void write_outcome(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__barrier *barrier)
{
    char key[1024];
    char text[MU__BARRIER_TEXT_MAX];
    int rv;

    if (!c->config.store->lasting)
        return;
    make_outcome_key(c, mu__barrier_name(barrier), key);
    rv = mu__coord_keys_put_own(ctx, c, key, text, mu__barrier_write(barrier, text));
    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR, "barrier \"%s\": its outcome cannot be stored: %s",
                barrier->name, mu_strerror(rv));
}

void mu__coord_barrier_on_dropped(void *user, const struct mu__barrier *barrier)
{
    struct coord_barriers *barriers = user;
    char key[1024];

    if (!barriers->owner->config.store->lasting)
        return;
    make_outcome_key(barriers->owner, mu__barrier_name(barrier), key);
    (void)mu__coord_keys_delete_own(barriers->calling, barriers->owner, key);
}

void mu__coord_barrier_read_outcomes(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_barriers *barriers = c->barriers;
    char name[MU__BARRIER_NAME_MAX];
    char key[MU__RUN_KEY_MAX];
    struct mu__view directory = {key, (uint32_t)mu__coord_run_key(c, "barrier", key)};
    struct mu__key_value entry = {.key = directory};

    if (barriers->is_read || !c->leads)
        return;
    barriers->is_read = true;
    barriers->read_ms = mu__coord_clock(ctx, c);
    barriers->table.quiet_revision = mu__coord_run(c)->quiet_revision;
    while (mu__coord_keys_next_own(c, entry.key, &entry)) {
        struct mu__view found;
        int rv = -MU_EINVALID;

        if (!mu__key_is_below(entry.key, directory))
            return;
        if (parse_barrier_name(entry.key, directory.size + 1, name, &found))
            rv = mu__barriers_read(&barriers->table, found, entry.value,
                                   mu__coord_clock(ctx, c));
        if (rv == 0)
            barriers->has_former = true;
        else
            mu__log(ctx, MU__LOG_WARN,
                    "outcomes of barriers: key \"%.*s\" is passed over: %s",
                    (int)entry.key.size, (const char *)entry.key.data, mu_strerror(rv));
    }
}

/* ---- answers ---- */

void mu__coord_barrier_say(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
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
    else if (answer->code != 0)
        mu__coord_back(msg, &body->message, &body->task);
    mu__coord_send(ctx, c, node, msg);
}

struct barrier_answer mu__coord_barrier_answer_of(
    const struct mu__barrier_outcome *outcome, uint64_t token)
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

/* Answer all arrivals, with one copy of the texts. A task whose link is down repeats its
 * arrival when the link is back. */
static void send_to_all(struct mu__ctx *ctx, struct coordination *c,
                        const struct mu__barrier *barrier,
                        const struct mu__barrier_outcome *outcome)
{
    struct barrier_answer answer = mu__coord_barrier_answer_of(outcome, 0);

    if (outcome->code != 0)
        answer.backing = mu__pack_two(&answer.message, &answer.task);
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        const struct mu__barrier_seat *seat = &barrier->seats[i];
        const struct mu__roster_task *task = c->roster->tasks[seat->slot];

        if (!seat->arrived || !task->link.up || task->incarnation != seat->incarnation)
            continue;
        answer.token = seat->token;
        mu__coord_barrier_say(ctx, c, task->link.node, &answer);
    }
    mu__buf_unref(answer.backing);
}

/* ---- the end of a generation ---- */

const struct mu__barrier_outcome *mu__coord_barrier_finish(struct mu__ctx *ctx,
                                                           struct coordination *c,
                                                           struct mu__barrier *barrier,
                                                           const mu_error *error)
{
    bool was_held = barrier->held;
    const struct mu__barrier_outcome *outcome =
        mu__barriers_end(&c->barriers->table, barrier, error, mu__coord_next_revision(c),
                         mu__coord_clock(ctx, c));

    if (was_held)
        mu__log(ctx, MU__LOG_INFO,
                "barrier \"%s\" was passed before the host changed: %" PRIu32
                " of %" PRIu32 " tasks came again, and are told",
                barrier->name, barrier->arrived, barrier->expected);
    else if (error == NULL)
        mu__log(ctx, MU__LOG_DEBUG,
                "barrier \"%s\" %" PRIu64 ": all %" PRIu32 " are there", barrier->name,
                outcome->generation, barrier->expected);
    else
        mu__log(ctx, MU__LOG_INFO, "%s", error->message);
    write_outcome(ctx, c, barrier);
    send_to_all(ctx, c, barrier, outcome);
    return outcome;
}

void mu__coord_barrier_renew(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__barrier *barrier)
{
    mu__barrier_renew(barrier, mu__coord_next_revision(c));
    write_outcome(ctx, c, barrier);
}

static bool has_not_arrived(void *user, const struct mu__roster_task *task)
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

    (void)mu__roster_describe(c->roster, mu__coord_clock(ctx, c), has_not_arrived,
                              barrier, BARRIER_NAMED_MAX, missing, sizeof missing);
    if (barrier->arrived > 0)
        (void)snprintf(first, sizeof first, ", %s first",
                       c->roster->tasks[barrier->first]->name);
    (void)mu_error_set(ret_error, -MU_EDEADLINE,
                       "barrier \"%.120s\": %" PRIu32 " of %" PRIu32
                       " tasks arrived in %" PRIu64 " ms%s; missing: %s",
                       barrier->name, barrier->arrived, barrier->expected, after_ms,
                       first, missing);
    ret_error->kind = MU_ERROR_LIMIT;
}

void mu__coord_barrier_time_out(struct mu__ctx *ctx, struct coordination *c,
                                struct mu__barrier *barrier)
{
    mu_error error;

    explain_missing(ctx, c, barrier, barrier->timeout_ms, &error);
    (void)mu__coord_barrier_finish(ctx, c, barrier, &error);
}

void mu__coord_barrier_note_waiting(struct mu__ctx *ctx, struct coordination *c,
                                    struct mu__barrier *barrier, uint64_t now_ms)
{
    mu_error error;

    explain_missing(ctx, c, barrier, now_ms - barrier->since_ms, &error);
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        const struct mu__barrier_seat *seat = &barrier->seats[i];
        const struct mu__roster_task *task = c->roster->tasks[seat->slot];

        if (seat->arrived && task->link.up && task->incarnation == seat->incarnation)
            mu__coord_note(ctx, task->link.node, seat->token, error.message);
    }
}

void mu__coord_barrier_explain_removed(const struct mu__barrier *barrier,
                                       const struct mu__roster_task *task, bool failed,
                                       mu_error *ret_error)
{
    const mu_error *error = &task->failure.error;
    bool is_own = failed && task->failure.self_reported;
    int code = is_own ? error->code : -MU_EINTERNAL;

    if (failed)
        (void)mu_error_set(ret_error, code,
                           "barrier \"%.120s\" needs %s, which is in error: %s",
                           barrier->name, task->name, error->message);
    else
        (void)mu_error_set(ret_error, code,
                           "barrier \"%.120s\" needs %s, which has left or was reset",
                           barrier->name, task->name);
    ret_error->kind = is_own ? error->kind : MU_ERROR_WORKER;
    (void)snprintf(ret_error->task, sizeof ret_error->task, "%s",
                   is_own && error->task[0] != '\0' ? error->task : task->name);
}

/* Whether barriers fail without this task: it is not recoverable, or has itself reported
 * a failure. */
static bool is_fatal_to_barriers(const struct mu__roster_task *task)
{
    return !task->recoverable ||
           (task->state == MU__TASK_FAILED && task->failure.self_reported);
}

struct mu__roster_task *mu__coord_barrier_find_failed(const struct coordination *c,
                                                      const struct mu__barrier *barrier)
{
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        struct mu__roster_task *task = c->roster->tasks[barrier->seats[i].slot];

        if ((barrier->seats[i].past & 1) != 0 && task->state == MU__TASK_FAILED &&
            is_fatal_to_barriers(task))
            return task;
    }
    return NULL;
}

void mu__coord_barriers_task_left(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task, bool failed)
{
    struct mu__barrier *next;
    mu_error error;

    for (struct mu__barrier *at = mu__barrier_first(&c->barriers->table.running);
         at != NULL; at = next) {
        next = mu__barrier_next(at);
        if (mu__barrier_seat(at, task->slot) == NULL)
            continue;
        if (!is_fatal_to_barriers(task)) {
            (void)mu__barrier_uncount(at, task->slot);
            continue;
        }
        mu__coord_barrier_explain_removed(at, task, failed, &error);
        (void)mu__coord_barrier_finish(ctx, c, at, &error);
    }
    mu__coord_alive_left(ctx, c, c->barriers->alive, task);
}

void mu__coord_barriers_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                    struct mu__roster_task *task)
{
    (void)ctx;
    mu__coord_alive_joined(c->barriers->alive, task);
}
