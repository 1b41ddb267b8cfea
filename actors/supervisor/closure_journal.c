/* Named closures over a restart of the chief.
 *
 * The journal says of each named closure that it was scheduled, and that it has finished
 * (with its result) or is gone. What it says is read when the chief starts: closures that
 * have not finished are queued again, for nobody at first; when the program schedules a
 * name again it gets the result that is there, or joins the closure that is under way.
 *
 * What was appended is flushed before a RUN of it can leave, and before its client hears
 * of its end. Numbers of effects are reserved in blocks, so that none is given twice. */
#include "actors/supervisor/internal.h"

#include "runtime/base/sip_hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum {
    NAMED_FIRST = 1024,
    EFFECTS_BLOCK = 1 << 16,
    BODY_MAX = 256,
    RETRY_MS = 1000             /* between two attempts at what could not be written */
};

/* Among the flags of a SCHEDULED record: it is of a closure that no other chief can run,
 * and counts only together with its FINISHED record. */
#define JOURNAL_LATE (UINT32_C(1) << 31)

/* A smaller journal is not worth the disk's time. */
enum { REWRITE_BYTES_MIN = 64 << 20 };

/* Someone who scheduled a name that was under way for another. */
struct joined {
    struct joined *next;
    mu__pid pid;
    uint64_t token;
};

struct named {
    struct named *next;
    uint64_t number;
    uint64_t closure;           /* its id; 0: it has finished */
    uint32_t function;
    uint32_t hash;
    bool is_late;               /* written down when it has finished, and not before */
    struct mu__buf *backing;    /* of the result; NULL: nil */
    struct mu__packed result;
    struct joined *joined;
    uint32_t name_size;
    char name[MU__CLOSURE_NAME_MAX + 1];
};

/* ---- Names ---- */

static uint32_t hash_of(const struct supervisor *s, struct mu__view name)
{
    return (uint32_t)mu__sip_hash(s->functions.secret, name.data, name.size);
}

static struct named *named_find(const struct supervisor *s, struct mu__view name)
{
    uint32_t hash = hash_of(s, name);
    struct named *at = s->named_size == 0 ? NULL : s->named[hash % s->named_size];

    while (at != NULL && (at->hash != hash || !mu__view_is(name, at->name)))
        at = at->next;
    return at;
}

static struct named *named_numbered(const struct supervisor *s, uint64_t number)
{
    return mu__map_get(&s->numbers, number);
}

static void link_named(struct supervisor *s, struct named *named)
{
    struct named **bucket = &s->named[named->hash % s->named_size];

    named->next = *bucket;
    *bucket = named;
}

static bool grow_named(struct supervisor *s)
{
    uint32_t size = s->named_size == 0 ? NAMED_FIRST : s->named_size * 2;
    struct named **old = s->named;
    uint32_t old_size = s->named_size;
    struct named **table = NULL;

    if (!mu__grow_array((void **)&table, size, sizeof(struct named *)))
        return false;
    for (uint32_t i = 0; i < size; i++)
        table[i] = NULL;
    s->named = table;
    s->named_size = size;
    for (uint32_t i = 0; i < old_size; i++)
        while (old[i] != NULL) {
            struct named *named = old[i];

            old[i] = named->next;
            link_named(s, named);
        }
    mu__free_array(old);
    return true;
}

static struct named *named_new(struct supervisor *s, struct mu__view name,
                               uint64_t number)
{
    struct named *named = NULL;

    if (s->named_count >= s->named_size && !grow_named(s))
        return NULL;
    if (!mu__grow_array((void **)&named, 1, sizeof *named))
        return NULL;
    *named = (struct named){
        .number = number,
        .hash = hash_of(s, name),
        .name_size = name.size,
        .function = MU__NAME_NONE,
    };
    mu__view_copy(name, named->name, sizeof named->name);
    if (mu__map_set(&s->numbers, number, named) != 0) {
        mu__free_array(named);
        return NULL;
    }
    link_named(s, named);
    s->named_count++;
    return named;
}

static void named_free(struct named *named)
{
    while (named->joined != NULL) {
        struct joined *next = named->joined->next;

        mu__free_array(named->joined);
        named->joined = next;
    }
    mu__buf_unref(named->backing);
    mu__free_array(named);
}

static void named_remove(struct supervisor *s, struct named *named)
{
    struct named **at = &s->named[named->hash % s->named_size];

    while (*at != named)
        at = &(*at)->next;
    *at = named->next;
    s->named_count--;
    (void)mu__map_remove(&s->numbers, named->number);
    mu__names_release(&s->functions, named->function);
    named_free(named);
}

/* ---- Writing ---- */

/* One record; `body` is of the kind's type. */
static int append(struct supervisor *s, uint16_t kind, const void *body, size_t size,
                  mu_error *ret_error)
{
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) + BODY_MAX] = {0};
    struct mu__msg *msg = (void *)memory;
    int rv;

    assert(size <= BODY_MAX);
    msg->kind = kind;
    memcpy(msg->body, body, size);
    rv = mu__journal_append(s->journal, msg, ret_error);
    if (rv == 0)
        s->journal_dirty = true;
    return rv;
}

static int flush(struct supervisor *s, mu_error *ret_error)
{
    int rv;

    if (!s->journal_dirty)
        return 0;
    rv = mu__journal_flush(s->journal, ret_error);
    if (rv == 0)
        s->journal_dirty = false;
    if (rv == 0)
        s->journal_why[0] = '\0';
    return rv;
}

static int write_begin(struct supervisor *s, mu_error *ret_error)
{
    struct mu__journal_begin record = {
        .origin = s->origin,
        .epoch = s->epoch,
        .effect_next = s->effects_end,
    };

    return append(s, MU__JOURNAL_BEGIN, &record, sizeof record, ret_error);
}

/* Of one that has finished only the name counts. */
static int write_scheduled(struct supervisor *s, const struct named *named,
                           mu_error *ret_error)
{
    const struct mu__closure *closure = mu__closures_find(&s->closures, named->closure);
    struct mu__journal_scheduled record = {
        .number = named->number,
        .name = {named->name, named->name_size},
        .function = mu__names_view(&s->functions, named->function),
        .flags = named->is_late ? JOURNAL_LATE : 0,
    };

    if (closure != NULL) {
        const struct closure_extra *extra = mu__sup_extra(s, closure);

        record.args = mu__closure_args(closure);
        record.effect = extra->effect;
        record.flags = extra->flags;
        record.priority = extra->priority + 1U;
        record.run_timeout_ms = extra->run_timeout_ms;
        record.attempts_max = extra->attempts_max;
        record.worker = extra->worker;
        record.not_worker = extra->not_worker;
        record.worker_type = mu__sup_role_view(s, extra);
    }
    return append(s, MU__JOURNAL_SCHEDULED, &record, sizeof record, ret_error);
}

static int write_finished(struct supervisor *s, const struct named *named,
                          mu_error *ret_error)
{
    struct mu__journal_finished record = {
        .number = named->number,
        .result = named->result,
    };

    return append(s, MU__JOURNAL_FINISHED, &record, sizeof record, ret_error);
}

static int write_removed(struct supervisor *s, uint64_t number, mu_error *ret_error)
{
    struct mu__journal_removed record = {.number = number};

    return append(s, MU__JOURNAL_REMOVED, &record, sizeof record, ret_error);
}

/* Only what counts now. */
static int rewrite(struct supervisor *s, mu_error *ret_error)
{
    int rv;

    mu__journal_rewrite_begin(s->journal);
    rv = write_begin(s, ret_error);
    for (uint32_t i = 0; rv == 0 && i < s->named_size; i++)
        for (const struct named *at = s->named[i]; rv == 0 && at != NULL; at = at->next) {
            if (at->is_late)
                continue;
            rv = write_scheduled(s, at, ret_error);
            if (rv == 0 && at->closure == 0)
                rv = write_finished(s, at, ret_error);
        }
    if (rv == 0)
        rv = mu__journal_rewrite_commit(s->journal, ret_error);
    if (rv == 0)
        s->journal_dirty = false;
    s->journal_rewrite_bytes = 2 * mu__journal_bytes(s->journal);
    if (s->journal_rewrite_bytes < REWRITE_BYTES_MIN)
        s->journal_rewrite_bytes = REWRITE_BYTES_MIN;
    return rv;
}

/* Effects of closures that are still to be run may come; all others have had their
 * time. */
static int settle_effects(struct supervisor *s)
{
    struct mu__id_window pending;
    uint64_t lowest = s->effect_last + 1;
    int rv = 0;

    for (uint32_t i = 0; i < s->extras_chunks * EXTRAS_CHUNK; i++) {
        const struct closure_extra *extra = mu__sup_extra_at(s, i);

        if (extra->closure != 0 && extra->effect != 0 && extra->effect < lowest)
            lowest = extra->effect;
    }
    mu__id_window_init(&pending, lowest);
    for (uint32_t i = 0; rv == 0 && i < s->extras_chunks * EXTRAS_CHUNK; i++) {
        const struct closure_extra *extra = mu__sup_extra_at(s, i);

        if (extra->closure != 0 && extra->effect != 0)
            rv = mu__id_window_add(&pending, extra->effect);
    }
    mu__id_window_raise(&s->effects, lowest);
    for (uint64_t id = lowest; rv == 0 && id <= s->effect_last; id++)
        if (!mu__id_window_has(&pending, id) && !mu__id_window_has(&s->effects, id))
            rv = mu__id_window_add(&s->effects, id);
    (void)mu__id_window_settle(&s->effects);
    mu__id_window_done(&pending);
    return rv;
}

/* The journal says what is, on the disk. What could not be appended is made good by
 * writing everything anew; effects of closures that were resolved meanwhile are finished
 * with from then on. */
static int catch_up(struct mu__ctx *ctx, struct supervisor *s, mu_error *ret_error)
{
    int rv;

    if (!s->journal_behind || mu__now_ms(ctx) < s->journal_retry_ms)
        return flush(s, ret_error);
    s->journal_retry_ms = mu__now_ms(ctx) + RETRY_MS;
    rv = rewrite(s, ret_error);
    if (rv != 0)
        return rv;
    mu__log(ctx, MU__LOG_INFO, "the journal is complete again");
    s->journal_behind = false;
    if (settle_effects(s) != 0)
        mu__log(ctx, MU__LOG_WARN, "out of memory: effects are not finished with");
    return 0;
}

/* A chief that cannot write goes on, and says so. */
static void report_failure(struct mu__ctx *ctx, struct supervisor *s,
                           const mu_error *error)
{
    char text[MU__ERROR_TEXT_MAX + 1];
    bool is_known = s->journal_why[0] != '\0';

    (void)snprintf(s->journal_why, sizeof s->journal_why, "%.255s",
                   error->message[0] == '\0' ? mu_strerror(error->code) : error->message);
    if (is_known)
        return;
    (void)snprintf(text, sizeof text, "the journal cannot be written: %.400s; after a "
                   "restart closures may run again", error->message);
    mu__log(ctx, MU__LOG_ERROR, "%s", text);
    mu__sup_fault(ctx, s, error->code == -MU_EEXHAUSTED ? -MU_EEXHAUSTED : -MU_EDATALOSS,
                  MU_ERROR_CHIEF, "/job:chief/task:0", text);
}

void mu__sup_journal_secure(struct mu__ctx *ctx, struct supervisor *s)
{
    mu_error error;

    if (catch_up(ctx, s, &error) != 0)
        report_failure(ctx, s, &error);
}

int mu__sup_journal_reserve(struct mu__ctx *ctx, struct supervisor *s)
{
    uint64_t end = s->effects_end;
    mu_error error = {.code = -MU_EUNAVAILABLE};

    if (s->journal == NULL || s->effect_last + 1 < end)
        return 0;
    s->effects_end = s->effect_last + EFFECTS_BLOCK;
    if (write_begin(s, &error) == 0 && flush(s, &error) == 0)
        return 0;
    s->effects_end = end;
    report_failure(ctx, s, &error);
    return error.code == -MU_EEXHAUSTED ? -MU_EEXHAUSTED : -MU_EUNAVAILABLE;
}

/* ---- Scheduling ---- */

/* An effect that is applied once needs its number in the journal. */
static int number_effect(struct mu__ctx *ctx, struct supervisor *s,
                         struct closure_extra *extra, mu_error *ret_error)
{
    int rv;

    if ((extra->flags & MU__CLOSURE_ONCE) == 0)
        return 0;
    if (!mu__sup_has_effect_number(s))
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "too many closures with effects "
                            "are out beside one that does not end");
    rv = mu__sup_journal_reserve(ctx, s);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "the journal cannot be written, so the "
                            "closure's effects could count twice: %s", s->journal_why);
    extra->effect = ++s->effect_last;
    return 0;
}

/* Where the file takes nothing more the closure runs all the same: it is written when
 * everything is written anew. What is wrong with the closure itself refuses it. */
static int note_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                          const struct named *named, mu_error *ret_error)
{
    mu_error error;
    int rv = s->journal_behind ? 0 : write_scheduled(s, named, &error);

    if (rv == -MU_EINVALID || rv == -MU_ERANGE || rv == -MU_ENOMEM) {
        *ret_error = error;
        return rv;
    }
    if (rv != 0) {
        s->journal_behind = true;
        report_failure(ctx, s, &error);
    }
    return 0;
}

int mu__sup_journal_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, bool has_inputs,
                              mu_error *ret_error)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    struct named *named;
    int rv;

    if (has_inputs && (extra->flags & MU__CLOSURE_ONCE) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "with a journal, a named closure that has inputs cannot have "
                            "its effects once: the next chief would not know its number");
    named = named_new(s, mu__view_str(extra->name), s->number_next + 1);
    if (named == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    s->number_next++;
    named->closure = mu__closure_id(closure);
    named->function = closure->function;
    mu__names_hold(&s->functions, named->function);
    named->is_late = has_inputs;
    extra->flags &= ~(uint32_t)MU__CLOSURE_KEEP;
    rv = number_effect(ctx, s, extra, ret_error);
    if (rv == 0 && !has_inputs)
        rv = note_scheduled(ctx, s, named, ret_error);
    if (rv != 0) {
        named_remove(s, named);
        return rv;
    }
    extra->number = named->number;
    if (s->journal_timer == 0)
        s->journal_timer = mu__timer_set(ctx, 0, timer_token(TIMER_JOURNAL, 0));
    return 0;
}

/* What was scheduled in one turn is written together, also while no worker is there. */
void mu__sup_journal_tick(struct mu__ctx *ctx, struct supervisor *s)
{
    s->journal_timer = 0;
    mu__sup_journal_secure(ctx, s);
}

static void answer_finished(struct mu__ctx *ctx, mu__pid to, uint64_t token,
                            const struct named *named)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESOLVED);

    if (msg != NULL) {
        struct mu__resolved *body = mu__body(msg);

        body->token = token;
        body->attempt = 1;
        body->result = named->result;
        if (named->backing != NULL)
            msg->backing = mu__buf_ref(named->backing);
    }
    (void)mu__send(ctx, to, msg);
}

static void refuse(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                   const char *text)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESOLVED);

    if (msg != NULL) {
        struct mu__resolved *body = mu__body(msg);

        body->token = token;
        body->code = (uint32_t)-code;
        body->message = mu__view_str(text);
    }
    (void)mu__send(ctx, to, msg);
}

static void join(struct mu__ctx *ctx, struct supervisor *s, struct client *client,
                 const struct mu__schedule *body, struct named *named)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, named->closure);
    struct joined *joined = NULL;

    if (closure->client == 0) {
        mu__sup_disown(ctx, s, closure);
        mu__sup_adopt(s, client, closure, body->token);
        if (body->drop_result)
            closure->marks |= MU__MARK_DROP_RESULT;
        return;
    }
    if (!mu__grow_array((void **)&joined, 1, sizeof *joined)) {
        refuse(ctx, client->pid, body->token, -MU_ENOMEM, "out of memory");
        return;
    }
    *joined = (struct joined){named->joined, client->pid, body->token};
    named->joined = joined;
}

bool mu__sup_journal_known(struct mu__ctx *ctx, struct supervisor *s,
                           struct client *client, const struct mu__schedule *body)
{
    struct named *named = named_find(s, body->name);
    struct mu__view function;

    if (named == NULL)
        return false;
    function = mu__names_view(&s->functions, named->function);
    if (function.size != body->function.size ||
        memcmp(function.data, body->function.data, function.size) != 0)
        refuse(ctx, client->pid, body->token, -MU_EEXISTS,
               "the journal has a closure of that name with another function");
    else if (named->closure != 0)
        join(ctx, s, client, body, named);
    else {
        s->scheduled++;
        s->finished++;
        client->scheduled++;
        answer_finished(ctx, client->pid, body->token, named);
    }
    return true;
}

/* ---- Resolving ---- */

static void answer_joined(struct mu__ctx *ctx, struct supervisor *s, struct named *named,
                          const struct outcome *outcome)
{
    for (struct joined *at = named->joined; at != NULL; at = at->next) {
        s->scheduled++;
        if (outcome->code == 0) {
            s->finished++;
            answer_finished(ctx, at->pid, at->token, named);
            continue;
        }
        if (outcome->code == -MU_ECANCELLED)
            s->cancelled++;
        else
            s->failed++;
        refuse(ctx, at->pid, at->token, outcome->code,
               "the closure of that name, which another one had scheduled, failed");
    }
}

static bool keep_result(struct named *named, const struct outcome *outcome)
{
    if (outcome->result.head_size == 0 && outcome->result.tail_size == 0)
        return true;
    named->backing = mu__pack_copy(&outcome->result, &named->result);
    return named->backing != NULL;
}

static int write_end(struct supervisor *s, struct named *named, bool has_finished,
                     mu_error *ret_error)
{
    int rv = 0;

    if (named->is_late && has_finished)
        rv = write_scheduled(s, named, ret_error);
    if (rv == 0 && has_finished)
        rv = write_finished(s, named, ret_error);
    else if (rv == 0 && !named->is_late)
        rv = write_removed(s, named->number, ret_error);
    named->is_late = false;
    return rv;
}

bool mu__sup_journal_resolved(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, const struct outcome *outcome)
{
    struct named *named = named_numbered(s, mu__sup_extra(s, closure)->number);
    mu_error error;
    int rv;

    named->closure = 0;
    rv = write_end(s, named, outcome->code == 0 && keep_result(named, outcome), &error);
    if (rv == 0)
        rv = outcome->code == 0 &&
                     mu__journal_bytes(s->journal) >= s->journal_rewrite_bytes
                 ? rewrite(s, &error)
                 : flush(s, &error);
    if (rv != 0) {
        s->journal_behind = true;
        report_failure(ctx, s, &error);
    }
    answer_joined(ctx, s, named, outcome);
    while (named->joined != NULL) {
        struct joined *next = named->joined->next;

        mu__free_array(named->joined);
        named->joined = next;
    }
    if (outcome->code != 0)
        named_remove(s, named);
    if (s->journal_behind)
        mu__sup_journal_secure(ctx, s);
    return rv == 0 || !s->journal_behind;
}

void mu__sup_on_forget(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__forget *body = mu__body(msg);
    mu_error error;
    int rv;

    for (uint32_t i = 0; i < s->named_size; i++) {
        struct named *at = s->named[i];

        while (at != NULL) {
            struct named *next = at->next;

            if (at->closure == 0)
                named_remove(s, at);
            at = next;
        }
    }
    rv = s->journal == NULL ? 0 : rewrite(s, &error);
    mu__sup_answer_drain(ctx, msg->from, body->token, rv, rv == 0 ? "" : error.message);
}

/* ---- Reading ---- */

static int read_scheduled(struct supervisor *s, const struct mu__journal_scheduled *body)
{
    uint32_t function = mu__names_take(&s->functions, body->function);
    struct named *named = named_new(s, body->name, body->number);
    struct mu__closure *closure = mu__closures_add(&s->closures);
    struct closure_extra *extra = closure == NULL ? NULL : mu__sup_need_extra(s, closure);
    struct mu__packed args;
    struct mu__buf *backing = NULL;

    if (named == NULL || extra == NULL || function == MU__NAME_NONE)
        return -MU_ENOMEM;
    if (body->args.head_size > 0) {
        backing = mu__pack_copy(&body->args, &args);
        if (backing == NULL)
            return -MU_ENOMEM;
        mu__closure_set_args(closure, &args, backing);
        mu__buf_unref(backing);
    }
    if (!mu__grow_array((void **)&extra->name, body->name.size + 1, 1))
        return -MU_ENOMEM;
    mu__view_copy(body->name, extra->name, body->name.size + 1);
    closure->function = function;
    mu__sup_own(s, &s->clients[0], closure);
    s->args_bytes += mu__closure_bytes(closure);
    s->scheduled++;
    *extra = (struct closure_extra){
        .index = extra->index,
        .closure = extra->closure,
        .name = extra->name,
        .number = body->number,
        .effect = body->effect,
        .flags = body->flags,
        .priority = body->priority == 0 ? MU__PRIORITY_DEFAULT
                                        : (uint8_t)(body->priority - 1),
        .run_timeout_ms = mu__run_limit(body->run_timeout_ms),
        .attempts_max = (uint16_t)body->attempts_max,
        .worker = body->worker,
        .not_worker = body->not_worker,
    };
    mu__sup_take_role(s, extra, body->worker_type);
    named->closure = extra->closure;
    named->function = function;
    mu__names_hold(&s->functions, function);
    if (body->number > s->number_next)
        s->number_next = body->number;
    if (body->effect > s->effect_last)
        s->effect_last = body->effect;
    return 0;
}

/* No closure of it is queued: what it would need has gone with the former chief. */
static int read_late(struct supervisor *s, const struct mu__journal_scheduled *body)
{
    struct named *named = named_new(s, body->name, body->number);

    if (named == NULL)
        return -MU_ENOMEM;
    named->is_late = true;
    named->function = mu__names_take(&s->functions, body->function);
    if (body->number > s->number_next)
        s->number_next = body->number;
    return named->function == MU__NAME_NONE ? -MU_ENOMEM : 0;
}

static void drop_late(struct supervisor *s)
{
    for (uint32_t i = 0; i < s->named_size; i++) {
        struct named *at = s->named[i];

        while (at != NULL) {
            struct named *next = at->next;

            if (at->is_late)
                named_remove(s, at);
            at = next;
        }
    }
}

/* Take the closure of a name out again: it needs no further run. */
static void unqueue(struct mu__ctx *ctx, struct supervisor *s, struct named *named)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, named->closure);

    named->closure = 0;
    if (closure == NULL)
        return;
    s->args_bytes -= mu__closure_bytes(closure);
    mu__sup_disown(ctx, s, closure);
    s->scheduled--;
    mu__sup_drop_extra(ctx, s, closure);
    mu__sup_remove(s, closure);
}

struct reading {
    struct mu__ctx *ctx;
    struct supervisor *s;
};

static int read_record(void *owner, struct mu__msg *msg)
{
    const struct reading *reading = owner;
    struct supervisor *s = reading->s;
    struct named *named;

    switch (msg->kind) {
    case MU__JOURNAL_BEGIN: {
        const struct mu__journal_begin *body = mu__body(msg);

        s->origin = body->origin;
        s->epoch = body->epoch;
        if (body->effect_next > s->effect_last)
            s->effect_last = body->effect_next;
        return 0;
    }
    case MU__JOURNAL_SCHEDULED: {
        const struct mu__journal_scheduled *body = mu__body(msg);

        /* Its end could not be written, but it had come: else the name was not free. */
        named = named_find(s, body->name);
        if (named != NULL) {
            unqueue(reading->ctx, s, named);
            named_remove(s, named);
        }
        return (body->flags & JOURNAL_LATE) != 0 ? read_late(s, body)
                                                 : read_scheduled(s, body);
    }
    case MU__JOURNAL_FINISHED: {
        const struct mu__journal_finished *body = mu__body(msg);
        const struct outcome outcome = {.result = body->result};

        named = named_numbered(s, body->number);
        if (named == NULL)
            return 0;
        unqueue(reading->ctx, s, named);
        named->is_late = false;
        return keep_result(named, &outcome) ? 0 : -MU_ENOMEM;
    }
    case MU__JOURNAL_REMOVED: {
        const struct mu__journal_removed *body = mu__body(msg);

        named = named_numbered(s, body->number);
        if (named == NULL)
            return 0;
        unqueue(reading->ctx, s, named);
        named_remove(s, named);
        return 0;
    }
    default:
        return -MU_EDATALOSS;   /* of another journal */
    }
}

/* Under other worker_types there may be nobody for a closure, which is not dropped for
 * that: the chief does not begin. */
static int check_roles(const struct supervisor *s, mu_error *ret_error)
{
    const struct mu__closure *closure = mu__closures_first(&s->closures, MU__LIST_QUEUE);
    mu_error error;

    for (; closure != NULL; closure = mu__closures_next(&s->closures, closure)) {
        const struct closure_extra *extra = mu__sup_extra(s, closure);

        if (mu__sup_check_role(s, extra, &error) != 0)
            return mu_error_set(ret_error, -MU_EPRECONDITION, "it has closure \"%s\", "
                                "which is still to be run, and %s", extra->name,
                                error.message);
    }
    return 0;
}

static void queue_all(struct mu__ctx *ctx, struct supervisor *s)
{
    struct mu__closure *closure = mu__closures_first(&s->closures, MU__LIST_QUEUE);
    uint32_t left = mu__closures_count(&s->closures, MU__LIST_QUEUE);

    while (left-- > 0) {
        struct mu__closure *next = mu__closures_next(&s->closures, closure);

        mu__sup_queue_last(ctx, s, closure);
        closure = next;
    }
    if (s->closures.count > 0)
        mu__sup_watchdog_watch(ctx, s);
}

int mu__sup_journal_open(struct mu__ctx *ctx, struct supervisor *s)
{
    struct reading reading = {ctx, s};
    mu_error error = {.code = 0};
    uint64_t cut = 0;
    int rv;

    if (s->config.journal == NULL)
        return 0;
    rv = mu__journal_open(s->config.journal, mu__kernel_schema(ctx->kernel),
                          mu__kernel_pool(ctx->kernel), read_record, &reading, &error,
                          &cut, &s->journal);
    drop_late(s);
    if (rv == 0)
        rv = check_roles(s, &error);
    if (rv == 0)
        rv = settle_effects(s);
    if (rv == 0) {
        s->epoch++;
        s->effects_end = s->effect_last + EFFECTS_BLOCK;
        rv = rewrite(s, &error);
    }
    if (rv != 0) {
        mu__log(ctx, MU__LOG_ERROR, "the journal: %s", error.message);
        return rv;
    }
    if (cut > 0)
        mu__log(ctx, MU__LOG_WARN, "the journal ended in the middle of a record: %" PRIu64
                " bytes were cut off", cut);
    mu__log(ctx, MU__LOG_INFO, "the journal: %" PRIu32 " named closures, %" PRIu32
            " of them to be run", s->named_count, s->closures.count);
    queue_all(ctx, s);
    return 0;
}

void mu__sup_journal_close(struct supervisor *s)
{
    mu_error error;

    if (s->journal != NULL)
        (void)flush(s, &error);
    for (uint32_t i = 0; i < s->named_size; i++)
        while (s->named[i] != NULL) {
            struct named *next = s->named[i]->next;

            named_free(s->named[i]);
            s->named[i] = next;
        }
    mu__free_array(s->named);
    mu__map_done(&s->numbers);
    mu__journal_close(s->journal);
}

uint32_t mu__sup_journal_finished(const struct supervisor *s, struct mu__view name)
{
    const struct named *named = name.size == 0 ? NULL : named_find(s, name);

    return named == NULL || named->closure != 0 ? MU__NAME_NONE : named->function;
}
