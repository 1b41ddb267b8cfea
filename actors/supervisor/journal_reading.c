/* The journal is read when the chief starts: closures that have not finished are queued
 * again, at first without a client. */
#include "actors/supervisor/journaling.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/roles.h"

#include <inttypes.h>

static int read_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                          const struct mu__journal_scheduled *body)
{
    uint32_t function = mu__names_take(&s->functions, body->function);
    struct named_closure *named =
        mu__named_closures_add(&s->journal.named, body->name, body->number);
    struct mu__closure *closure = mu__closures_add(&s->closures);
    struct closure_extra *extra =
        closure == NULL ? NULL : mu__closure_extras_take(&s->extras, closure);
    struct mu__packed args;
    struct mu__buf *backing = NULL;
    mu_error error;

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
            .flags = body->flags & ~MU__JOURNAL_LATE,
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
    return mu__sup_take_inputs(ctx, s, closure, body->inputs, &error);
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

/* Whether the chief can run it. The values that it uses stand before it, unless they were
 * damaged, and a person has had the file repaired. */
static bool is_whole(struct mu__ctx *ctx, const struct supervisor *s,
                     const struct mu__journal_scheduled *body)
{
    if (mu__sup_inputs_are_there(s, body->inputs))
        return (body->flags & MU__JOURNAL_LATE) == 0 || body->inputs.size > 0;
    mu__log(ctx, MU__LOG_WARN, "closure \"%.*s\" is not run again: the journal has lost "
            "its function; its program may schedule it again", (int)body->name.size,
            (const char *)body->name.data);
    return false;
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
    const struct finished_closure *finished;
    struct named_closure *named;

    switch (msg->kind) {
    case MU__JOURNAL_BEGIN: {
        const struct mu__journal_begin *body = mu__body(msg);

        if (body->forgets)
            mu__finished_forget_all(&s->journal.finished);
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
        finished = mu__finished_find(&s->journal.finished, body->name);
        if (finished != NULL)
            mu__finished_remove(&s->journal.finished, finished);
        return is_whole(reading->ctx, s, body) ? read_scheduled(reading->ctx, s, body)
                                               : read_late(s, body);
    }
    case MU__JOURNAL_BODY:
        return mu__sup_per_worker_restore(s, mu__body(msg));
    case MU__JOURNAL_FINISHED: {
        const struct mu__journal_finished *body = mu__body(msg);
        int rv;

        named = mu__named_closures_numbered(&s->journal.named, body->number);
        if (named == NULL)
            return 0;
        unqueue(reading->ctx, s, named);
        rv = mu__sup_journal_keep(reading->ctx, s, named, &body->result);
        mu__named_closures_remove(&s->journal.named, named);
        return rv;
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
    mu__sup_per_worker_restored(ctx, s);
    if (rv == 0)
        rv = check_roles(s, &error);
    if (rv == 0)
        rv = mu__sup_journal_settle(s);
    if (rv == 0)
        rv = mu__closure_journal_begin(&s->journal, &error);
    if (rv != 0) {
        mu__log(ctx, MU__LOG_ERROR, "the journal: %s", error.message);
        return rv;
    }
    if (cut > 0)
        mu__log(ctx, MU__LOG_WARN, "the journal ended in the middle of a record: %" PRIu64
                " bytes were cut off", cut);
    mu__log(ctx, MU__LOG_INFO, "the journal: %" PRIu64 " named closures, %" PRIu32
            " of them to be run", s->journal.finished.count + s->journal.named.count,
            s->closures.count);
    queue_all(ctx, s);
    s->journal.compaction.is_requested = true;
    mu__sup_journal_plan(ctx, s);
    return 0;
}
