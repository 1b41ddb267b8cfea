/* Named closures over a restart of the chief.
 *
 * The journal says of each named closure that it was scheduled, and that it has finished
 * (with its result) or was removed. It is read when the chief starts: closures that have
 * not finished are queued again, at first without a client; when the program schedules a
 * name again it gets the result that is there, or joins the closure that is under way.
 *
 * What was appended is flushed before a RUN of it can leave, and before its client hears
 * of its end. Numbers of effects are reserved in blocks, so that none is given twice. */
#include "actors/supervisor/journaling.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Settle all effect numbers but those of closures that are still to be run. */
static int settle_effects(struct supervisor *s)
{
    struct mu__id_window pending;
    uint64_t lowest = s->effects.last + 1;
    int rv = 0;

    for (uint32_t i = 0; i < mu__closure_extras_count(&s->extras); i++) {
        const struct closure_extra *extra = mu__closure_extras_at(&s->extras, i);

        if (extra->closure != 0 && extra->effect != 0 && extra->effect < lowest)
            lowest = extra->effect;
    }
    mu__id_window_init(&pending, lowest);
    for (uint32_t i = 0; rv == 0 && i < mu__closure_extras_count(&s->extras); i++) {
        const struct closure_extra *extra = mu__closure_extras_at(&s->extras, i);

        if (extra->closure != 0 && extra->effect != 0)
            rv = mu__id_window_add(&pending, extra->effect);
    }
    mu__id_window_raise(&s->effects.window, lowest);
    for (uint64_t id = lowest; rv == 0 && id <= s->effects.last; id++)
        if (!mu__id_window_has(&pending, id) &&
            !mu__id_window_has(&s->effects.window, id))
            rv = mu__id_window_add(&s->effects.window, id);
    (void)mu__id_window_settle(&s->effects.window);
    mu__id_window_done(&pending);
    return rv;
}

/* A mu__journal_describe_fn; `owner` is the supervisor. */
static void describe(void *owner, uint64_t id, struct mu__journal_scheduled *record)
{
    const struct supervisor *s = owner;
    const struct mu__closure *closure = mu__closures_find(&s->closures, id);
    const struct closure_extra *extra;

    if (closure == NULL)
        return;
    extra = mu__sup_extra(s, closure);
    record->args = mu__closure_args(closure);
    record->effect = extra->effect;
    record->flags = extra->options.flags;
    record->priority = extra->options.priority + 1U;
    record->run_timeout_ms = extra->options.run_timeout_ms;
    record->attempts_max = extra->options.attempts_max;
    record->worker = extra->options.worker;
    record->not_worker = extra->options.not_worker;
    record->worker_type = mu__sup_role_view(s, extra);
}

/* Log, and tell clients once, that the journal cannot be written. The chief goes on. */
static void report_failure(struct mu__ctx *ctx, struct supervisor *s,
                           const mu_error *error)
{
    char text[MU__ERROR_TEXT_MAX + 1];
    bool is_known = s->journal.error[0] != '\0';

    (void)snprintf(s->journal.error, sizeof s->journal.error, "%.255s",
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
    bool is_rewritten;
    mu_error error;

    if (mu__closure_journal_catch_up(&s->journal, mu__now_ms(ctx), &is_rewritten,
                                     &error) != 0) {
        report_failure(ctx, s, &error);
        return;
    }
    if (!is_rewritten)
        return;
    mu__log(ctx, MU__LOG_INFO, "the journal is complete again");
    /* Effects of closures that were resolved while it was behind are settled now. */
    if (settle_effects(s) != 0)
        mu__log(ctx, MU__LOG_WARN, "out of memory: effects are not finished with");
}

int mu__sup_journal_reserve(struct mu__ctx *ctx, struct supervisor *s)
{
    mu_error error = {.code = -MU_EUNAVAILABLE};

    if (mu__closure_journal_reserve(&s->journal, &error) == 0)
        return 0;
    report_failure(ctx, s, &error);
    return error.code == -MU_EEXHAUSTED ? -MU_EEXHAUSTED : -MU_EUNAVAILABLE;
}

/* ---- Scheduling ---- */

/* An effect that is applied once needs its number in the journal. */
static int number_effect(struct mu__ctx *ctx, struct supervisor *s,
                         struct closure_extra *extra, mu_error *ret_error)
{
    int rv;

    if ((extra->options.flags & MU__CLOSURE_ONCE) == 0)
        return 0;
    if (!mu__sup_has_effect_number(s))
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "too many closures with effects "
                            "are out beside one that does not end");
    rv = mu__sup_journal_reserve(ctx, s);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "the journal cannot be written, so the "
                            "closure's effects could count twice: %s", s->journal.error);
    extra->effect = ++s->effects.last;
    return 0;
}

/* If the file takes nothing more, the closure runs all the same: its record comes with
 * the next rewrite. An error of the closure itself is returned. */
static int note_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                          const struct named_closure *named, mu_error *ret_error)
{
    mu_error error;
    int rv = s->journal.is_behind
                 ? 0
                 : mu__closure_journal_scheduled(&s->journal, named, &error);

    if (rv == -MU_EINVALID || rv == -MU_ERANGE || rv == -MU_ENOMEM) {
        *ret_error = error;
        return rv;
    }
    if (rv != 0) {
        s->journal.is_behind = true;
        report_failure(ctx, s, &error);
    }
    return 0;
}

int mu__sup_journal_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, bool has_inputs,
                              mu_error *ret_error)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    struct named_closure *named;
    int rv;

    if (has_inputs && (extra->options.flags & MU__CLOSURE_ONCE) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "with a journal, a named closure that has inputs cannot have "
                            "its effects once: the next chief would not know its number");
    named = mu__named_closures_add(&s->journal.named, mu__view_str(extra->name),
                                   s->journal.number_last + 1);
    if (named == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    s->journal.number_last++;
    named->closure = mu__closure_id(closure);
    named->function = closure->function;
    mu__names_hold(&s->functions, named->function);
    named->is_late = has_inputs;
    extra->options.flags &= ~(uint32_t)MU__CLOSURE_KEEP;
    rv = number_effect(ctx, s, extra, ret_error);
    if (rv == 0 && !has_inputs)
        rv = note_scheduled(ctx, s, named, ret_error);
    if (rv != 0) {
        mu__named_closures_remove(&s->journal.named, named);
        return rv;
    }
    extra->number = named->number;
    if (s->journal.timer == 0)
        s->journal.timer = mu__timer_set(ctx, 0, timer_token(TIMER_JOURNAL, 0));
    return 0;
}

/* Writes together what was scheduled in one turn, also while there is no worker. */
void mu__sup_journal_tick(struct mu__ctx *ctx, struct supervisor *s)
{
    s->journal.timer = 0;
    mu__sup_journal_secure(ctx, s);
}

static void answer_finished(struct mu__ctx *ctx, mu__pid to, uint64_t token,
                            const struct named_closure *named)
{
    const struct mu__resolved body = {
        .token = token, .attempt = 1, .result = named->result};

    (void)mu__send_backed(ctx, to, MU__RESOLVED, &body, sizeof body, named->backing);
}

static void join(struct mu__ctx *ctx, struct supervisor *s,
                 struct supervisor_client *client, const struct mu__schedule *body,
                 struct named_closure *named)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, named->closure);

    if (closure->client == 0) {
        mu__sup_disown(ctx, s, closure);
        mu__sup_adopt(s, client, closure, body->token);
        if (body->drop_result)
            closure->marks |= MU__MARK_DROP_RESULT;
        return;
    }
    if (!mu__named_closure_join(named, client->pid, body->token))
        mu__sup_refuse(ctx, client->pid, body->token, -MU_ENOMEM, MU_ERROR_OTHER,
                       "out of memory");
}

bool mu__sup_journal_known(struct mu__ctx *ctx, struct supervisor *s,
                           struct supervisor_client *client,
                           const struct mu__schedule *body)
{
    struct named_closure *named = mu__named_closures_find(&s->journal.named, body->name);
    struct mu__view function;

    if (named == NULL)
        return false;
    function = mu__names_view(&s->functions, named->function);
    if (function.size != body->function.size ||
        memcmp(function.data, body->function.data, function.size) != 0)
        mu__sup_refuse(ctx, client->pid, body->token, -MU_EEXISTS, MU_ERROR_OTHER,
                       "the journal has a closure of that name with another function");
    else if (named->closure != 0)
        join(ctx, s, client, body, named);
    else {
        s->counts.scheduled++;
        s->counts.finished++;
        client->scheduled++;
        answer_finished(ctx, client->pid, body->token, named);
    }
    return true;
}

/* ---- Resolving ---- */

static void answer_joined(struct mu__ctx *ctx, struct supervisor *s,
                          struct named_closure *named,
                          const struct closure_outcome *outcome)
{
    for (struct joined_client *at = named->joined; at != NULL; at = at->next) {
        s->counts.scheduled++;
        mu__sup_count_outcome(s, outcome->code);
        if (outcome->code == 0)
            answer_finished(ctx, at->pid, at->token, named);
        else
            mu__sup_refuse(ctx, at->pid, at->token, outcome->code, MU_ERROR_OTHER,
                           "the closure of that name, which another one had scheduled, "
                           "failed");
    }
}

static bool keep_result(struct named_closure *named,
                        const struct closure_outcome *outcome)
{
    if (outcome->result.head_size == 0 && outcome->result.tail_size == 0)
        return true;
    named->backing = mu__pack_copy(&outcome->result, &named->result);
    return named->backing != NULL;
}

bool mu__sup_journal_resolved(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure,
                              const struct closure_outcome *outcome)
{
    struct named_closure *named =
        mu__named_closures_numbered(&s->journal.named, mu__sup_extra(s, closure)->number);
    mu_error error;
    int rv;

    named->closure = 0;
    rv = mu__closure_journal_ended(&s->journal, named,
                                   outcome->code == 0 && keep_result(named, outcome),
                                   &error);
    if (rv != 0) {
        s->journal.is_behind = true;
        report_failure(ctx, s, &error);
    }
    answer_joined(ctx, s, named, outcome);
    mu__named_closure_forget_joined(named);
    if (outcome->code != 0)
        mu__named_closures_remove(&s->journal.named, named);
    if (s->journal.is_behind)
        mu__sup_journal_secure(ctx, s);
    return rv == 0 || !s->journal.is_behind;
}

static bool has_ended(const struct named_closure *named)
{
    return named->closure == 0;
}

void mu__sup_on_forget(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__forget *body = mu__body(msg);
    mu_error error;
    int rv;

    mu__named_closures_remove_if(&s->journal.named, has_ended);
    rv = s->journal.file == NULL ? 0 : mu__closure_journal_rewrite(&s->journal, &error);
    mu__sup_answer_drain(ctx, msg->from, body->token, rv, rv == 0 ? "" : error.message);
}

/* ---- Reading ---- */

static int read_scheduled(struct supervisor *s, const struct mu__journal_scheduled *body)
{
    uint32_t function = mu__names_take(&s->functions, body->function);
    struct named_closure *named =
        mu__named_closures_add(&s->journal.named, body->name, body->number);
    struct mu__closure *closure = mu__closures_add(&s->closures);
    struct closure_extra *extra =
        closure == NULL ? NULL : mu__closure_extras_take(&s->extras, closure);
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
    extra->name = mu__view_dup(body->name);
    if (extra->name == NULL)
        return -MU_ENOMEM;
    closure->function = function;
    mu__sup_own(s, &s->clients.items[0], closure);
    s->counts.args_bytes += mu__closure_bytes(closure);
    s->counts.scheduled++;
    *extra = (struct closure_extra){
        .closure = extra->closure,
        .name = extra->name,
        .number = body->number,
        .effect = body->effect,
        .options = {
            .flags = body->flags,
            .priority = body->priority == 0 ? MU__PRIORITY_DEFAULT
                                            : (uint8_t)(body->priority - 1),
            .run_timeout_ms = mu__run_timeout(body->run_timeout_ms),
            .attempts_max = (uint16_t)body->attempts_max,
            .worker = body->worker,
            .not_worker = body->not_worker,
        },
    };
    mu__sup_take_role(s, extra, body->worker_type);
    named->closure = extra->closure;
    named->function = function;
    mu__names_hold(&s->functions, function);
    if (body->number > s->journal.number_last)
        s->journal.number_last = body->number;
    if (body->effect > s->effects.last)
        s->effects.last = body->effect;
    return 0;
}

/* No closure is queued for it: its inputs went with the former chief. */
static int read_late(struct supervisor *s, const struct mu__journal_scheduled *body)
{
    struct named_closure *named =
        mu__named_closures_add(&s->journal.named, body->name, body->number);

    if (named == NULL)
        return -MU_ENOMEM;
    named->is_late = true;
    named->function = mu__names_take(&s->functions, body->function);
    if (body->number > s->journal.number_last)
        s->journal.number_last = body->number;
    return named->function == MU__NAME_NONE ? -MU_ENOMEM : 0;
}

static bool is_late(const struct named_closure *named)
{
    return named->is_late;
}

/* Remove the closure that was queued for a name: it needs no further run. */
static void unqueue(struct mu__ctx *ctx, struct supervisor *s,
                    struct named_closure *named)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, named->closure);

    named->closure = 0;
    if (closure == NULL)
        return;
    s->counts.args_bytes -= mu__closure_bytes(closure);
    mu__sup_disown(ctx, s, closure);
    s->counts.scheduled--;
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
    struct named_closure *named;

    switch (msg->kind) {
    case MU__JOURNAL_BEGIN: {
        const struct mu__journal_begin *body = mu__body(msg);

        s->effects.origin = body->origin;
        s->effects.epoch = body->epoch;
        if (body->effect_next > s->effects.last)
            s->effects.last = body->effect_next;
        return 0;
    }
    case MU__JOURNAL_SCHEDULED: {
        const struct mu__journal_scheduled *body = mu__body(msg);

        /* The earlier closure has ended, since its name was free; that could not be
         * written. */
        named = mu__named_closures_find(&s->journal.named, body->name);
        if (named != NULL) {
            unqueue(reading->ctx, s, named);
            mu__named_closures_remove(&s->journal.named, named);
        }
        return (body->flags & MU__JOURNAL_LATE) != 0 ? read_late(s, body)
                                                 : read_scheduled(s, body);
    }
    case MU__JOURNAL_FINISHED: {
        const struct mu__journal_finished *body = mu__body(msg);
        const struct closure_outcome outcome = {.result = body->result};

        named = mu__named_closures_numbered(&s->journal.named, body->number);
        if (named == NULL)
            return 0;
        unqueue(reading->ctx, s, named);
        named->is_late = false;
        return keep_result(named, &outcome) ? 0 : -MU_ENOMEM;
    }
    case MU__JOURNAL_REMOVED: {
        const struct mu__journal_removed *body = mu__body(msg);

        named = mu__named_closures_numbered(&s->journal.named, body->number);
        if (named == NULL)
            return 0;
        unqueue(reading->ctx, s, named);
        mu__named_closures_remove(&s->journal.named, named);
        return 0;
    }
    default:
        return -MU_EDATALOSS;   /* the file is another kind of journal */
    }
}

/* With another option worker_types a closure may have no worker. It is not dropped: the
 * chief does not start. */
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

void mu__sup_journal_init(struct supervisor *s)
{
    s->journal.named.functions = &s->functions;
    s->journal.effects = &s->effects;
    s->journal.describe = describe;
    s->journal.owner = s;
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
                          &cut, &s->journal.file);
    mu__named_closures_remove_if(&s->journal.named, is_late);
    if (rv == 0)
        rv = check_roles(s, &error);
    if (rv == 0)
        rv = settle_effects(s);
    if (rv == 0)
        rv = mu__closure_journal_begin(&s->journal, &error);
    if (rv != 0) {
        mu__log(ctx, MU__LOG_ERROR, "the journal: %s", error.message);
        return rv;
    }
    if (cut > 0)
        mu__log(ctx, MU__LOG_WARN, "the journal ended in the middle of a record: %" PRIu64
                " bytes were cut off", cut);
    mu__log(ctx, MU__LOG_INFO, "the journal: %" PRIu32 " named closures, %" PRIu32
            " of them to be run", s->journal.named.count, s->closures.count);
    queue_all(ctx, s);
    return 0;
}

uint32_t mu__sup_journal_finished(const struct supervisor *s, struct mu__view name)
{
    const struct named_closure *named =
        name.size == 0 ? NULL : mu__named_closures_find(&s->journal.named, name);

    return named == NULL || named->closure != 0 ? MU__NAME_NONE : named->function;
}
