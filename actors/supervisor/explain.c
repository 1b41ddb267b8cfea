/* Why a closure has not run; and the watchdog, which logs when no closure is resolved. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/journaling.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    WATCHDOG_LOOKS = 10, /* checks within watchdog_ms */
    SHOWN_MAX = 4        /* entries that a text lists */
};

/* ---- What is missing ---- */

mu_value *mu__sup_missing_value(const struct supervisor *s, uint64_t now_ms)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 1; i < s->members.workers_size && i < s->worker_states.size; i++) {
        const struct mu__member_worker *worker = &s->members.workers[i];
        mu_value *map;

        if (!worker->known || worker->present)
            continue;
        map = mu_value_map();
        (void)mu_value_set(map, "task", mu_value_string(mu__sup_task(s, worker).text));
        (void)mu_value_set(
            map, "for_ms",
            mu_value_int((int64_t)(now_ms - s->worker_states.items[i].lost_ms)));
        (void)mu_value_append(list, map);
    }
    return list;
}

/* The worker of a number, of a role or of MU__ROLE_ANY; NULL: there is none. */
static const struct mu__member_worker *find_known_worker(const struct supervisor *s,
                                                         uint32_t number, uint32_t role)
{
    const struct mu__member_worker *worker = &s->members.workers[number];

    return worker->known && (role == MU__ROLE_ANY || role == worker->role) ? worker
                                                                           : NULL;
}

/* ", 1 leaving": how many workers are held back, for each reason. */
static void describe_holds(const struct supervisor *s, uint32_t role, char *out,
                           size_t size)
{
    static const struct {
        unsigned hold;
        const char *text;
    } rows[] = {
        {MU__HOLD_BUILD, "building per-worker values"},
        {MU__HOLD_DRAIN, "leaving"},
        {MU__HOLD_START, "yet to be started"},
        {MU__HOLD_EXCLUSIVE, "reserved for a quarantined closure"},
        {MU__HOLD_STUCK, "busy with runs that do not end"},
    };

    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        size_t used = strlen(out);
        unsigned count = 0;

        for (uint32_t i = 1; i < s->members.workers_size; i++) {
            const struct mu__member_worker *worker = find_known_worker(s, i, role);

            count += worker != NULL && worker->present &&
                     (worker->holds & rows[row].hold) != 0;
        }
        if (count > 0)
            (void)snprintf(out + used, size - used, ", %u %s", count, rows[row].text);
    }
}

/* How many workers are up, and how many of these have room. */
static uint32_t count_present_workers(const struct supervisor *s, uint32_t role,
                                      uint32_t *ret_room)
{
    uint32_t count = 0;

    *ret_room = 0;
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = find_known_worker(s, i, role);

        count += worker != NULL && worker->present;
        *ret_room += worker != NULL && mu__membership_has_room(worker);
    }
    return count;
}

/* "none of 2 workers has room; /job:worker/task:1 is missing for 1200 ms"; of a role, or
 * of MU__ROLE_ANY. */
static void describe_workers(const struct supervisor *s, uint32_t role, uint64_t now_ms,
                             char *out, size_t size)
{
    uint32_t room;
    uint32_t count = count_present_workers(s, role, &room);
    size_t used;
    unsigned shown = 0;

    if (count == 0)
        (void)snprintf(out, size, "no worker is up");
    else if (room > 0)
        (void)snprintf(out, size, "%" PRIu32 " of %" PRIu32 " workers have room", room,
                       count);
    else if (count == 1)
        (void)snprintf(out, size, "the only worker has no room");
    else
        (void)snprintf(out, size, "none of %" PRIu32 " workers has room", count);
    describe_holds(s, role, out, size);
    for (uint32_t i = 1; i < s->members.workers_size && i < s->worker_states.size; i++) {
        const struct mu__member_worker *worker = find_known_worker(s, i, role);

        used = strlen(out);
        if (worker != NULL && !worker->present && shown++ < SHOWN_MAX)
            (void)snprintf(out + used, size - used, "; %s is missing for %" PRIu64 " ms",
                           mu__sup_task(s, worker).text,
                           now_ms - s->worker_states.items[i].lost_ms);
    }
}

/* ---- One closure ---- */

static uint32_t queue_position(const struct supervisor *s,
                               const struct mu__closure *closure)
{
    uint32_t position = 0;
    const struct mu__closure *at = mu__closures_first(&s->closures, closure->list);

    for (; at != NULL && at != closure; at = mu__closures_next(&s->closures, at))
        position++;
    for (uint32_t list = closure->list - mu__list_priority(closure->list);
         list < closure->list; list++)
        position += mu__closures_count(&s->closures, list);
    return position;
}

static void describe_held(const struct supervisor *s, const struct closure_extra *extra,
                          uint64_t now_ms, char *out, size_t size)
{
    uint64_t left_ms = extra->held_until_ms > now_ms ? extra->held_until_ms - now_ms : 0;

    if (extra->inputs.missing > 0)
        (void)snprintf(out, size, "for %" PRIu16 " of its %" PRIu16 " inputs",
                       extra->inputs.missing, extra->inputs.count);
    else if (extra->failed_code == 0 && s->journal.error[0] != '\0')
        (void)snprintf(out, size, "for the journal, which cannot be written: %s",
                       s->journal.error);
    else if (extra->failed_code == 0)
        (void)snprintf(out, size, "for the writes of closures before it to be done");
    else
        (void)snprintf(out, size, "%" PRIu64 " ms more before it is tried again",
                       left_ms);
}

/* "a worker", "a task of type gpu". */
static void name_workers(const struct supervisor *s, uint32_t role, char *out,
                         size_t size)
{
    if (role == MU__ROLE_ANY)
        (void)snprintf(out, size, "a worker");
    else
        (void)snprintf(out, size, "a task of type %s", mu__sup_role_name(s, role));
}

/* Why a constrained closure waits. */
static void describe_constrained(const struct supervisor *s,
                                 const struct mu__closure *closure,
                                 const struct closure_extra *extra, char *out,
                                 size_t size)
{
    char noun[64];

    name_workers(s, mu__sup_role(extra), noun, sizeof noun);
    if (closure->crashes >= QUARANTINE_CRASHES)
        (void)snprintf(out, size,
                       "for %s of its own, since %u workers were lost under it", noun,
                       closure->crashes);
    else if (extra->options.not_worker == 0)
        (void)snprintf(out, size, "for %s that has its inputs", noun);
    else
        (void)snprintf(out, size, "for another worker than %s",
                       mu__sup_task_of(s, mu__sup_named_worker(
                                              s, extra, extra->options.not_worker - 1))
                           .text);
}

static void describe_affine(const struct supervisor *s, const struct mu__closure *closure,
                            char *out, size_t size)
{
    const struct mu__member_worker *worker =
        &s->members.workers[(closure->list - MU__LIST_WORKERS) / 2];
    const char *is = worker->present ? "busy" : "missing";

    if (worker->present && (worker->holds & MU__HOLD_DRAIN) != 0)
        is = "leaving";
    (void)snprintf(out, size, "for %s, which is %s", mu__sup_task(s, worker).text, is);
}

static void describe_queued(const struct supervisor *s, const struct mu__closure *closure,
                            uint64_t now_ms, char *out, size_t size)
{
    uint32_t position = queue_position(s, closure);
    uint32_t role = mu__sup_role(mu__sup_extra(s, closure));
    char noun[64];
    char workers[256];

    name_workers(s, role, noun, sizeof noun);
    describe_workers(s, role, now_ms, workers, sizeof workers);
    if (position == 0)
        (void)snprintf(out, size, "for %s, as the next: %s", noun, workers);
    else
        (void)snprintf(out, size, "for %s, behind %" PRIu32 " other%s: %s", noun,
                       position, position == 1 ? "" : "s", workers);
}

/* "f runs since 3200 ms" of the one that a worker has run for the longest time. */
static void describe_in_front(const struct supervisor *s, uint32_t number,
                              uint64_t now_ms, char *out, size_t size)
{
    const struct mu__closure *at =
        mu__closures_first(&s->closures, mu__list_in_flight(number));
    const struct mu__closure *oldest = NULL;
    struct mu__view name;

    for (; at != NULL; at = mu__closures_next(&s->closures, at))
        if ((at->marks & MU__MARK_BEGUN) != 0 &&
            (oldest == NULL ||
             (uint32_t)now_ms - at->started_ms > (uint32_t)now_ms - oldest->started_ms))
            oldest = at;
    if (oldest == NULL)
        return;
    name = mu__names_view(&s->functions, oldest->function);
    (void)snprintf(out, size, "; in front of it \"%.*s\" runs since %" PRIu32 " ms",
                   (int)name.size, (const char *)name.data,
                   (uint32_t)now_ms - oldest->started_ms);
}

/* What a closure in flight waits for. */
static void describe_sent(const struct supervisor *s, const struct mu__closure *closure,
                          uint64_t now_ms, char *out, size_t size)
{
    uint32_t number = mu__list_worker(closure->list);
    size_t used;

    if ((closure->marks & MU__MARK_BEGUN) != 0) {
        (void)snprintf(out, size, "for its function to return");
        return;
    }
    (void)snprintf(out, size,
                   "for a thread of %s: it was sent there %" PRIu32 " ms ago, "
                   "and is not known to have begun",
                   mu__sup_task(s, &s->members.workers[number]).text,
                   (uint32_t)now_ms - closure->started_ms);
    used = strlen(out);
    describe_in_front(s, number, now_ms, out + used, size - used);
}

/* Its client does not read. */
static void describe_unread(const struct supervisor *s, const struct mu__closure *closure,
                            char *out, size_t size)
{
    (void)snprintf(out, size,
                   "for its client to read: %" PRIu64 " bytes of results wait for it",
                   s->clients.items[closure->client].unread.bytes);
}

static void describe_closure_wait(const struct supervisor *s,
                                  const struct mu__closure *closure, uint64_t now_ms,
                                  char *out, size_t size)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    if (mu__list_worker(closure->list) != 0)
        describe_sent(s, closure, now_ms, out, size);
    else if (closure->list == MU__LIST_PINNED)
        (void)snprintf(out, size, "for nothing: it is done, and its result is kept");
    else if (closure->list == MU__LIST_HELD)
        describe_held(s, extra, now_ms, out, size);
    else if (closure->list == MU__LIST_CONSTRAINED)
        describe_constrained(s, closure, extra, out, size);
    else if (closure->list == MU__LIST_UNREAD)
        describe_unread(s, closure, out, size);
    else if (closure->list > MU__LIST_WORKERS)
        describe_affine(s, closure, out, size);
    else
        describe_queued(s, closure, now_ms, out, size);
}

static const char *get_closure_state(const struct mu__closure *closure)
{
    if (mu__list_worker(closure->list) != 0)
        return (closure->marks & MU__MARK_BEGUN) != 0 ? "running" : "sent";
    if (closure->list == MU__LIST_PINNED)
        return "done";
    return closure->list == MU__LIST_HELD ? "held" : "queued";
}

/* The error of the last attempt that failed, and the backup attempt. */
static void describe_extra(const struct supervisor *s, const struct closure_extra *extra,
                           mu_value *map)
{
    const struct mu__member_worker *backup =
        mu__membership_get(&s->members, extra->backup.worker);
    char text[256];

    if (extra->failed_code != 0) {
        (void)snprintf(text, sizeof text, "%s%s%s", mu_strerror(-(int)extra->failed_code),
                       extra->failed_task == NULL ? "" : " from ",
                       extra->failed_task == NULL ? "" : extra->failed_task);
        (void)mu_value_set(map, "last_error", mu_value_string(text));
    }
    if (backup != NULL) {
        (void)mu_value_set(map, "backup_task",
                           mu_value_string(mu__sup_task(s, backup).text));
    }
}

static mu_value *make_explanation(const struct supervisor *s,
                                  const struct mu__closure *closure, uint64_t now_ms)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, mu__list_worker(closure->list));
    mu_value *map = mu_value_map();
    char text[384];

    (void)mu_value_set(map, "closure", mu_value_int((int64_t)mu__closure_id(closure)));
    (void)mu_value_set(
        map, "name",
        mu_value_string(extra == NULL || extra->name == NULL ? "" : extra->name));
    mu__view_copy(mu__names_view(&s->functions, closure->function), text, sizeof text);
    (void)mu_value_set(map, "function", mu_value_string(text));
    (void)mu_value_set(map, "state", mu_value_string(get_closure_state(closure)));
    (void)mu_value_set(map, "attempt", mu_value_int(mu__sup_runs(s, closure)));
    (void)mu_value_set(map, "crashes", mu_value_int(closure->crashes));
    (void)mu_value_set(
        map, "task", mu_value_string(worker == NULL ? "" : mu__sup_task(s, worker).text));
    (void)mu_value_set(
        map, "for_ms",
        mu_value_int(worker == NULL ? 0 : (uint32_t)now_ms - closure->started_ms));
    describe_closure_wait(s, closure, now_ms, text, sizeof text);
    (void)mu_value_set(map, "waits_for", mu_value_string(text));
    if (extra != NULL)
        describe_extra(s, extra, map);
    return map;
}

/* Of a closure that is not there: resolved, or never scheduled. */
static mu_value *explanation_of_none(const struct supervisor *s, struct mu__view name)
{
    mu_value *map = mu_value_map();
    uint32_t function = mu__sup_journal_finished(s, name);
    char text[MU__CLOSURE_NAME_MAX + 1];

    if (function == MU__NAME_NONE) {
        (void)mu_value_set(map, "state", mu_value_string("unknown"));
        (void)mu_value_set(map, "waits_for",
                           mu_value_string("for nothing: the chief has no such closure "
                                           "(it may be resolved)"));
        return map;
    }
    mu__view_copy(name, text, sizeof text);
    (void)mu_value_set(map, "name", mu_value_string(text));
    mu__view_copy(mu__names_view(&s->functions, function), text, sizeof text);
    (void)mu_value_set(map, "function", mu_value_string(text));
    (void)mu_value_set(map, "state", mu_value_string("done"));
    (void)mu_value_set(map, "waits_for",
                       mu_value_string("for nothing: it has finished, and the journal "
                                       "has its result"));
    return map;
}

static const struct mu__closure *closure_named(const struct supervisor *s,
                                               struct mu__view name)
{
    for (uint32_t i = 0; i < mu__closure_extras_count(&s->extras); i++) {
        const struct closure_extra *extra = mu__closure_extras_at(&s->extras, i);

        if (extra->closure != 0 && extra->name != NULL && mu__view_is(name, extra->name))
            return mu__closures_find(&s->closures, extra->closure);
    }
    return NULL;
}

/* By its number, as the status shows it, or by the client's token for it. */
static const struct mu__closure *requested_closure(
    struct supervisor *s, const struct mu__msg *msg, const struct mu__status_get *body)
{
    if (body->name.size > 0)
        return closure_named(s, body->name);
    if (body->slot != 0)
        return mu__sup_closure_at(s, msg->from, body->slot);
    return mu__closures_find(&s->closures, body->closure);
}

void mu__sup_explain(struct mu__ctx *ctx, struct supervisor *s, struct mu__msg *msg)
{
    const struct mu__status_get *body = mu__body(msg);
    const struct mu__closure *closure = requested_closure(s, msg, body);

    mu__sup_send_status(ctx, msg->from, body->token,
                        closure == NULL ? explanation_of_none(s, body->name)
                                        : make_explanation(s, closure, mu__now_ms(ctx)));
}

/* ---- Watchdog ---- */

static void describe_in_flight(const struct supervisor *s, uint32_t now_ms, char *out,
                               size_t size)
{
    unsigned shown = 0;

    out[0] = '\0';
    for (uint32_t i = 1; i < s->worker_states.size && shown < SHOWN_MAX; i++) {
        const struct mu__closure *closure =
            mu__closures_first(&s->closures, mu__list_in_flight(i));
        struct mu__view name;
        size_t used = strlen(out);

        if (closure == NULL)
            continue;
        name = mu__names_view(&s->functions, closure->function);
        (void)snprintf(out + used, size - used,
                       "; closure %" PRIu64 " \"%.*s\" %s %s for %" PRIu32 " ms",
                       mu__closure_id(closure), (int)name.size, (const char *)name.data,
                       (closure->marks & MU__MARK_BEGUN) != 0 ? "on" : "sent to",
                       mu__sup_task(s, &s->members.workers[i]).text,
                       now_ms - closure->started_ms);
        shown++;
    }
}

/* "; 3 wait for a task of type gpu, of which none is up". */
static void describe_roles(const struct supervisor *s, char *out, size_t size)
{
    out[0] = '\0';
    for (uint32_t role = 0; role < s->config.types.count; role++) {
        uint32_t queued = mu__sup_role_queued(s, role);
        size_t used = strlen(out);
        uint32_t room;
        uint32_t up = count_present_workers(s, role, &room);

        if (queued > 0 && up == 0)
            (void)snprintf(out + used, size - used,
                           "; %" PRIu32 " wait%s for a task of "
                           "type %s, of which none is up",
                           queued, queued == 1 ? "s" : "", mu__sup_role_name(s, role));
        else if (queued > 0)
            (void)snprintf(out + used, size - used,
                           "; %" PRIu32 " wait%s for a task of "
                           "type %s, of which %" PRIu32 " of %" PRIu32 " have room",
                           queued, queued == 1 ? "s" : "", mu__sup_role_name(s, role),
                           room, up);
    }
}

void mu__sup_watchdog_watch(struct mu__ctx *ctx, struct supervisor *s)
{
    uint64_t tick_ms = s->config.watchdog_ms / WATCHDOG_LOOKS;

    if (s->config.watchdog_ms == 0)
        return;
    s->watchdog.progress_ms = mu__now_ms(ctx);
    s->watchdog.timer =
        mu__timer_set(ctx, tick_ms == 0 ? 1 : tick_ms, timer_token(TIMER_WATCHDOG, 0));
}

void mu__sup_watchdog(struct mu__ctx *ctx, struct supervisor *s)
{
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t still_ms = now_ms - s->watchdog.progress_ms;
    uint64_t progress_ms = s->watchdog.progress_ms;
    uint32_t waiting = mu__sup_waiting(s);
    uint32_t in_flight_count = mu__sup_in_flight(s);
    uint32_t running = mu__sup_running(s);
    uint32_t blocked = mu__sup_blocked_workers(s);
    char in_flight[384];
    char workers[256];
    char roles[256];

    s->watchdog.timer = 0;
    if (waiting == 0 && in_flight_count == 0)
        return;
    mu__sup_watchdog_watch(ctx, s);
    s->watchdog.progress_ms = progress_ms;
    if (still_ms < s->config.watchdog_ms)
        return;
    s->watchdog.progress_ms = now_ms;
    s->watchdog.stalls++;
    describe_in_flight(s, (uint32_t)now_ms, in_flight, sizeof in_flight);
    describe_workers(s, MU__ROLE_ANY, now_ms, workers, sizeof workers);
    describe_roles(s, roles, sizeof roles);
    if (blocked > 0)
        (void)snprintf(workers, sizeof workers, MU__BLOCKED_WORKERS, (int64_t)blocked);
    mu__log(ctx, MU__LOG_WARN,
            "no closure was resolved for %" PRIu64 " ms; %" PRIu32 " are queued, %" PRIu32
            " sent to workers, %" PRIu32 " running%s%s; %s",
            still_ms, waiting, in_flight_count - running, running, in_flight, roles,
            workers);
}
