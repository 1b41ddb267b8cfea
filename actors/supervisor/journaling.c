/* Named closures over a restart of the chief.
 *
 * The journal says of each named closure that it was scheduled, and that it has finished
 * (with its result) or was removed. When the program schedules a name again it gets the
 * result that is there, or joins the closure that is under way. The next chief reads it
 * (journal_reading.c).
 *
 * What was appended is flushed before a RUN of it can leave, and before its client hears
 * of its end. Numbers of effects are reserved in blocks, so that none is given twice. */
#include "actors/supervisor/journaling.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/unread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    STEP_EACH_MS = 1,
    COMPACT_EACH_MS = 1000,
    SWEEP_EACH = 4, /* forgotten closures that are freed when one finishes */
    SWEEP_STEP = 5000
};

int mu__sup_journal_settle(struct supervisor *s)
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
static void describe_journaled_closure(void *owner, uint64_t id,
                                       struct mu__journal_scheduled *record)
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
    record->inputs =
        (struct mu__view){mu__closure_extra_inputs(extra), 8U * extra->inputs.count};
}

/* Log, and tell clients once, that the journal cannot be written. The chief goes on. */
static void report_journal_failure(struct mu__ctx *ctx, struct supervisor *s,
                                   const mu_error *error)
{
    char text[MU__ERROR_TEXT_MAX + 1];
    bool is_known = s->journal.error[0] != '\0';

    (void)snprintf(s->journal.error, sizeof s->journal.error, "%.255s",
                   error->message[0] == '\0' ? mu_strerror(error->code) : error->message);
    if (is_known)
        return;
    (void)snprintf(text, sizeof text,
                   "the journal cannot be written: %.400s; after a "
                   "restart closures may run again",
                   error->message);
    mu__log(ctx, MU__LOG_ERROR, "%s", text);
    mu__sup_fault(ctx, s, error->code == -MU_EEXHAUSTED ? -MU_EEXHAUSTED : -MU_EDATALOSS,
                  MU_ERROR_CHIEF, "/job:chief/task:0", text);
}

void mu__sup_journal_secure(struct mu__ctx *ctx, struct supervisor *s)
{
    mu_error error;

    if (mu__closure_journal_flush(&s->journal, &error) != 0)
        report_journal_failure(ctx, s, &error);
    mu__sup_journal_plan(ctx, s);
}

int mu__sup_journal_reserve(struct mu__ctx *ctx, struct supervisor *s)
{
    mu_error error = {.code = -MU_EUNAVAILABLE};

    if (mu__closure_journal_reserve(&s->journal, &error) == 0)
        return 0;
    report_journal_failure(ctx, s, &error);
    return error.code == -MU_EEXHAUSTED ? -MU_EEXHAUSTED : -MU_EUNAVAILABLE;
}

/* ---- Scheduling ---- */

/* An effect that is applied once needs its number in the journal. */
static int number_journaled_effect(struct mu__ctx *ctx, struct supervisor *s,
                                   struct closure_extra *extra, mu_error *ret_error)
{
    int rv;

    if ((extra->options.flags & MU__CLOSURE_ONCE) == 0)
        return 0;
    if (!mu__sup_has_effect_number(s))
        return mu_error_set(
            ret_error, -MU_EEXHAUSTED,
            "effect window full: one closure with effects has been running too long");
    rv = mu__sup_journal_reserve(ctx, s);
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "the journal cannot be written, so the "
                            "closure's effects could count twice: %s",
                            s->journal.error);
    extra->effect = ++s->effects.last;
    return 0;
}

/* If the file takes nothing more, the closure runs all the same: its record comes with
 * the next compaction. An error of the closure itself is returned. */
static int note_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                          struct named_closure *named, mu_error *ret_error)
{
    mu_error error;
    int rv = mu__closure_journal_scheduled(&s->journal, named, &error);

    if (rv == -MU_EINVALID || rv == -MU_ERANGE || rv == -MU_ENOMEM) {
        *ret_error = error;
        return rv;
    }
    if (rv != 0) {
        s->journal.is_behind = true;
        report_journal_failure(ctx, s, &error);
    }
    return 0;
}

/* Whether the journal can keep what the closure uses. */
static int check_inputs(struct supervisor *s, const struct closure_extra *extra,
                        bool is_late, mu_error *ret_error)
{
    if (is_late && (extra->options.flags & MU__CLOSURE_ONCE) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "with a journal, a named closure whose inputs only workers "
                            "keep (results, per-worker values) cannot have its effects "
                            "once: the next chief would not know its number");
    if (is_late || mu__sup_inputs_have_room(s, extra))
        return 0;
    (void)mu_error_set(ret_error, -MU_EEXHAUSTED,
                       "the journal keeps at most %d functions and shared values of "
                       "closures under way, with %" PRIu64 " bytes together: there is no "
                       "room for one more until closures have finished",
                       (int)MU__SENT_BODIES_MAX, MU__SENT_BODIES_BYTES_MAX);
    ret_error->kind = MU_ERROR_LIMIT;
    return ret_error->code;
}

int mu__sup_journal_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, mu_error *ret_error)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    bool is_late = !mu__sup_inputs_outlive(s, extra);
    struct named_closure *named;
    int rv = check_inputs(s, extra, is_late, ret_error);

    if (rv != 0)
        return rv;
    named = mu__named_closures_add(&s->journal.named, mu__view_str(extra->name),
                                   s->journal.number_last + 1);
    if (named == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    s->journal.number_last++;
    named->closure = mu__closure_id(closure);
    named->function = closure->function;
    mu__names_hold(&s->functions, named->function);
    named->is_late = is_late;
    extra->options.flags &= ~(uint32_t)MU__CLOSURE_KEEP;
    rv = number_journaled_effect(ctx, s, extra, ret_error);
    if (rv == 0 && !is_late)
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

static void answer_from_journal(struct mu__ctx *ctx, struct supervisor *s, mu__pid to,
                                uint64_t token, const struct mu__packed *result,
                                struct mu__buf *backing)
{
    const struct mu__resolved body = {.token = token, .attempt = 1, .result = *result};

    (void)mu__sup_send_result(
        ctx, s, to, mu__msg_backed(ctx, MU__RESOLVED, &body, sizeof body, backing));
}

/* A result as it can be sent; *ret_buf, which the caller drops, has it. NULL: it is nil.
 * False: out of memory. */
static bool copy_result(const struct mu__packed *result, struct mu__packed *ret_copy,
                        struct mu__buf **ret_buf)
{
    *ret_copy = (struct mu__packed){.head = NULL};
    *ret_buf = NULL;
    if (result->head_size == 0 && result->tail_size == 0)
        return true;
    *ret_buf = mu__pack_copy(result, ret_copy);
    return *ret_buf != NULL;
}

static void answer_finished(struct mu__ctx *ctx, struct supervisor *s,
                            struct supervisor_client *client, uint64_t token,
                            const struct finished_closure *finished)
{
    struct mu__buf *large;
    const struct mu__packed known = mu__finished_result(finished, &large);
    struct mu__packed result = known;
    struct mu__buf *copy = NULL;

    if (large == NULL && !copy_result(&known, &result, &copy)) {
        mu__sup_refuse(ctx, client->pid, token, -MU_ENOMEM, MU_ERROR_OTHER,
                       "out of memory");
        return;
    }
    s->counts.scheduled++;
    s->counts.finished++;
    client->scheduled++;
    answer_from_journal(ctx, s, client->pid, token, &result,
                        large == NULL ? copy : large);
    mu__buf_unref(copy);
}

static void join_named_closure(struct mu__ctx *ctx, struct supervisor *s,
                               struct supervisor_client *client,
                               const struct mu__schedule *body,
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
    struct closure_journal *journal = &s->journal;
    struct named_closure *named = mu__named_closures_find(&journal->named, body->name);
    const struct finished_closure *finished =
        named == NULL ? mu__finished_find(&journal->finished, body->name) : NULL;
    struct mu__view function;

    if (named == NULL && finished == NULL)
        return false;
    function = mu__names_view(&s->functions,
                              named != NULL ? named->function : finished->function);
    if (function.size != body->function.size ||
        memcmp(function.data, body->function.data, function.size) != 0)
        mu__sup_refuse(ctx, client->pid, body->token, -MU_EEXISTS, MU_ERROR_OTHER,
                       "the journal has a closure of that name with another function");
    else if (named != NULL)
        join_named_closure(ctx, s, client, body, named);
    else
        answer_finished(ctx, s, client, body->token, finished);
    return true;
}

/* ---- Resolving ---- */

static void answer_joined(struct mu__ctx *ctx, struct supervisor *s,
                          const struct mu__closure *closure,
                          const struct named_closure *named,
                          const struct closure_outcome *outcome)
{
    for (struct joined_client *at = named->joined; at != NULL; at = at->next) {
        s->counts.scheduled++;
        mu__sup_count_outcome(s, outcome->code);
        mu__sup_answer(ctx, s, closure, at->pid, at->token, outcome, true);
    }
}

bool mu__sup_journal_resolved(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure,
                              const struct closure_outcome *outcome)
{
    struct named_closure *named =
        mu__named_closures_numbered(&s->journal.named, mu__sup_extra(s, closure)->number);
    bool has_finished =
        outcome->code == 0 && mu__sup_journal_keep(ctx, s, named, &outcome->result) == 0;
    mu_error error;
    int rv;

    named->closure = 0;
    rv = mu__closure_journal_ended(&s->journal, named,
                                   has_finished ? &outcome->result : NULL, &error);
    if (rv != 0) {
        s->journal.is_behind = true;
        report_journal_failure(ctx, s, &error);
    }
    answer_joined(ctx, s, closure, named, outcome);
    mu__named_closures_remove(&s->journal.named, named);
    mu__sup_journal_plan(ctx, s);
    return rv == 0;
}

/* What the configuration says of old ones. */
static void forget_old_finished(struct mu__ctx *ctx, struct supervisor *s)
{
    struct finished_closures *finished = &s->journal.finished;

    if (s->config.journal_keep > 0)
        mu__finished_keep(finished, s->config.journal_keep);
    if (s->config.journal_keep_ms > 0)
        mu__finished_forget_old(finished, mu__now_ms(ctx), s->config.journal_keep_ms);
    mu__finished_sweep(finished, SWEEP_EACH);
}

int mu__sup_journal_keep(struct mu__ctx *ctx, struct supervisor *s,
                         const struct named_closure *named,
                         const struct mu__packed *result)
{
    struct mu__view name = {named->name, named->name_size};
    int rv = mu__finished_add(&s->journal.finished, named->number, named->function, name,
                              result, mu__now_ms(ctx));

    forget_old_finished(ctx, s);
    return rv;
}

void mu__sup_on_forget(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__forget *body = mu__body(msg);
    mu_error error;
    int rv;

    mu__finished_forget_all(&s->journal.finished);
    rv = s->journal.file == NULL ? 0 : mu__closure_journal_forget(&s->journal, &error);
    mu__sup_answer_drain(ctx, msg->from, body->token, rv, rv == 0 ? "" : error.message);
    if (s->journal.file != NULL)
        mu__sup_journal_plan(ctx, s);
}

/* ---- Compaction ---- */

/* It begins in a turn of its own, and not again within COMPACT_EACH_MS. */
void mu__sup_journal_plan(struct mu__ctx *ctx, struct supervisor *s)
{
    struct compaction *compaction = &s->journal.compaction;
    uint64_t since_ms = mu__now_ms(ctx) - compaction->begun_ms;
    uint64_t delay_ms = 0;

    if (compaction->timer != 0)
        return;
    if (compaction->runs || mu__finished_has_forgotten(&s->journal.finished))
        delay_ms = STEP_EACH_MS;
    else if (!mu__closure_journal_is_due(&s->journal))
        return;
    else if (compaction->begun_ms != 0 && since_ms < COMPACT_EACH_MS)
        delay_ms = COMPACT_EACH_MS - since_ms;
    compaction->timer = mu__timer_set(ctx, delay_ms, timer_token(TIMER_COMPACTION, 0));
}

static void end_journal_compaction(struct mu__ctx *ctx, struct supervisor *s, int rv,
                                   bool was_behind, const mu_error *error)
{
    if (rv != 0 && was_behind) {
        report_journal_failure(ctx, s, error);
    } else if (rv != 0) {
        mu__log(ctx, MU__LOG_WARN, "the journal could not be compacted: %s",
                error->message);
    } else if (was_behind) {
        mu__log(ctx, MU__LOG_INFO, "the journal is complete again");
        /* Effects of closures that were resolved while it was behind are settled now. */
        if (mu__sup_journal_settle(s) != 0)
            mu__log(ctx, MU__LOG_WARN, "out of memory: effects are not finished with");
    }
}

void mu__sup_journal_step(struct mu__ctx *ctx, struct supervisor *s)
{
    struct closure_journal *journal = &s->journal;
    bool was_behind = journal->is_behind;
    mu_error error = {.code = 0};
    int rv;

    journal->compaction.timer = 0;
    mu__finished_sweep(&journal->finished, SWEEP_STEP);
    if (journal->compaction.runs) {
        rv = mu__closure_journal_compact_step(journal, &error);
    } else if (mu__closure_journal_is_due(journal)) {
        journal->compaction.begun_ms = mu__now_ms(ctx);
        rv = mu__closure_journal_compact(journal, &error);
    } else {
        rv = MU__STORAGE_NOT_YET;
    }
    if (rv != MU__STORAGE_NOT_YET)
        end_journal_compaction(ctx, s, rv, was_behind, &error);
    mu__sup_journal_plan(ctx, s);
}

void mu__sup_journal_init(struct supervisor *s)
{
    s->journal.named.functions = &s->functions;
    s->journal.finished.functions = &s->functions;
    s->journal.effects = &s->effects;
    s->journal.describe = describe_journaled_closure;
    s->journal.content = mu__sup_per_worker_content;
    s->journal.owner = s;
}

uint32_t mu__sup_journal_finished(const struct supervisor *s, struct mu__view name)
{
    const struct finished_closure *finished =
        name.size == 0 ? NULL : mu__finished_find(&s->journal.finished, name);

    return finished == NULL ? MU__NAME_NONE : finished->function;
}
