/* The journal is read when the chief starts: closures that have not finished are queued
 * again, at first without a client.
 *
 * A large one takes many turns, of TURN_RECORDS each, so that the node answers heartbeats
 * and the status meanwhile. Until the end nothing is known for sure of any closure: its
 * result may stand further behind. So what clients and workers ask for is held back. */
#include "actors/supervisor/journaling.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/roles.h"

#include <inttypes.h>

#ifdef MUSTER_TINY
enum { TURN_RECORDS = 200 };
#else
enum { TURN_RECORDS = 2000 }; /* in one turn: 2 to 5 ms */
#endif

enum { TURN_BYTES = 1 << 20, TURN_EACH_MS = 1, SAID_EACH_MS = 10000 };

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
        .options =
            {
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
static bool is_closure_runnable(struct mu__ctx *ctx, const struct supervisor *s,
                                const struct mu__journal_scheduled *body)
{
    if (mu__sup_inputs_are_there(s, body->inputs))
        return (body->flags & MU__JOURNAL_LATE) == 0 || body->inputs.size > 0;
    mu__log(ctx, MU__LOG_WARN,
            "closure \"%.*s\" is not run again: the journal has lost "
            "its function; its program may schedule it again",
            (int)body->name.size, (const char *)body->name.data);
    return false;
}

/* Remove the closure that was queued for a name: it needs no further run. */
static void unqueue_named_closure(struct mu__ctx *ctx, struct supervisor *s,
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

static int read_journal_record(void *owner, struct mu__msg *msg)
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
            unqueue_named_closure(reading->ctx, s, named);
            mu__named_closures_remove(&s->journal.named, named);
        }
        finished = mu__finished_find(&s->journal.finished, body->name);
        if (finished != NULL)
            mu__finished_remove(&s->journal.finished, finished);
        return is_closure_runnable(reading->ctx, s, body)
                   ? read_scheduled(reading->ctx, s, body)
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
        unqueue_named_closure(reading->ctx, s, named);
        rv = mu__sup_journal_keep(reading->ctx, s, named, &body->result);
        mu__named_closures_remove(&s->journal.named, named);
        return rv;
    }
    case MU__JOURNAL_REMOVED: {
        const struct mu__journal_removed *body = mu__body(msg);

        named = mu__named_closures_numbered(&s->journal.named, body->number);
        if (named == NULL)
            return 0;
        unqueue_named_closure(reading->ctx, s, named);
        mu__named_closures_remove(&s->journal.named, named);
        return 0;
    }
    default:
        return -MU_EDATALOSS; /* the file is another kind of journal */
    }
}

/* ---- The phases of a start ----
 *
 * Each takes its part of what is left of a turn's records. 0: it is over;
 * MU__STORAGE_NOT_YET: it goes on in the next turn; or an error. */

static int read_journal_part(struct mu__ctx *ctx, struct supervisor *s, size_t *left,
                             mu_error *ret_error)
{
    struct journal_opening *opening = &s->opening;
    struct reading reading = {ctx, s};
    const struct mu__journal_step step = {read_journal_record, &reading, *left,
                                          TURN_BYTES};
    uint64_t before = opening->progress.records;
    struct mu__journal_reading *file = opening->reading;
    int rv =
        mu__journal_read_step(file, &step, ret_error, &opening->cut, &s->journal.file);

    if (rv == MU__STORAGE_NOT_YET) {
        opening->progress = mu__journal_read_progress(file);
        *left -= (size_t)(opening->progress.records - before);
        return rv;
    }
    opening->reading = NULL;
    if (rv != 0)
        return rv;
    opening->progress.bytes = opening->progress.bytes_all;
    opening->named = MU__LIST_FIRST(&s->journal.named.all, struct named_closure, node);
    mu__sup_per_worker_restored(ctx, s);
    return 0;
}

static int drop_late(struct mu__ctx *ctx, struct supervisor *s, size_t *left,
                     mu_error *ret_error)
{
    struct journal_opening *opening = &s->opening;

    (void)ctx;
    (void)ret_error;
    for (; opening->named != NULL && *left > 0; (*left)--) {
        struct named_closure *named = opening->named;

        opening->named = MU__LIST_NEXT(named, struct named_closure, node);
        if (named->is_late)
            mu__named_closures_remove(&s->journal.named, named);
    }
    if (opening->named != NULL)
        return MU__STORAGE_NOT_YET;
    opening->closure = mu__closures_first(&s->closures, MU__LIST_QUEUE);
    opening->closures_left = mu__closures_count(&s->closures, MU__LIST_QUEUE);
    return 0;
}

/* With another option worker_types a closure may have no worker. It is not dropped: the
 * chief does not start. */
static int check_role(const struct supervisor *s, const struct mu__closure *closure,
                      mu_error *ret_error)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    mu_error error;

    if (mu__sup_check_role(s, extra, &error) == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "it has closure \"%s\", which is still to be run, and %s",
                        extra->name, error.message);
}

static int queue_some(struct mu__ctx *ctx, struct supervisor *s, size_t *left,
                      mu_error *ret_error)
{
    struct journal_opening *opening = &s->opening;
    int rv = 0;

    for (; opening->closures_left > 0 && *left > 0 && rv == 0; (*left)--) {
        struct mu__closure *closure = opening->closure;

        opening->closures_left--;
        opening->closure = mu__closures_next(&s->closures, closure);
        rv = check_role(s, closure, ret_error);
        if (rv == 0)
            mu__sup_queue_last(ctx, s, closure);
    }
    if (rv != 0)
        return rv;
    return opening->closures_left > 0 ? MU__STORAGE_NOT_YET : 0;
}

static int begin_journal_epoch(struct mu__ctx *ctx, struct supervisor *s, size_t *left,
                               mu_error *ret_error)
{
    int rv = mu__sup_journal_settle(s);

    (void)left;
    if (rv == 0)
        rv = mu__closure_journal_begin(&s->journal, ret_error);
    if (rv != 0)
        return rv;
    if (s->opening.cut > 0)
        mu__log(ctx, MU__LOG_WARN,
                "the journal ended in the middle of a record: %" PRIu64
                " bytes were cut off",
                s->opening.cut);
    mu__log(ctx, MU__LOG_INFO,
            "the journal: %" PRIu64 " named closures, %" PRIu32 " of them to be run",
            s->journal.finished.count + s->journal.named.count, s->closures.count);
    if (s->closures.count > 0)
        mu__sup_watchdog_watch(ctx, s);
    s->journal.compaction.is_requested = true;
    mu__sup_journal_plan(ctx, s);
    return 0;
}

static int (*const phases[])(struct mu__ctx *ctx, struct supervisor *s, size_t *left,
                             mu_error *ret_error) = {
    [JOURNAL_READ] = read_journal_part,
    [JOURNAL_DROP_LATE] = drop_late,
    [JOURNAL_QUEUE] = queue_some,
    [JOURNAL_BEGIN] = begin_journal_epoch,
};

static int fail_journal_reading(struct mu__ctx *ctx, struct supervisor *s, int rv,
                                const mu_error *error)
{
    mu_error *own = &s->opening.error;

    s->opening.phase = JOURNAL_FAILED;
    *own = *error;
    if (own->code == 0)
        (void)mu_error_set(own, rv, "%s", mu_strerror(rv));
    mu__log(ctx, MU__LOG_ERROR, "the journal: %s", own->message);
    return rv;
}

/* One turn of it. */
static int open_some(struct mu__ctx *ctx, struct supervisor *s)
{
    struct journal_opening *opening = &s->opening;
    mu_error error = {.code = 0};
    size_t left = TURN_RECORDS;
    int rv = 0;

    while (rv == 0 && opening->phase != JOURNAL_OPEN) {
        rv = phases[opening->phase](ctx, s, &left, &error);
        if (rv == 0)
            opening->phase++;
    }
    return rv == 0 || rv == MU__STORAGE_NOT_YET
               ? rv
               : fail_journal_reading(ctx, s, rv, &error);
}

/* ---- Over many turns ---- */

static unsigned get_progress_percent(const struct mu__journal_progress *progress)
{
    return progress->bytes_all == 0
               ? 100
               : (unsigned)(progress->bytes * 100 / progress->bytes_all);
}

static void report_progress(struct mu__ctx *ctx, struct supervisor *s,
                            const mu_error *error)
{
    struct journal_opening *opening = &s->opening;
    const struct mu__journal_progress *progress = &opening->progress;
    uint64_t now_ms = mu__now_ms(ctx);

    if (s->config.journal_news != NULL)
        s->config.journal_news(s->config.journal_owner, progress->bytes,
                               progress->bytes_all, error);
    if (error != NULL || now_ms - opening->said_ms < SAID_EACH_MS)
        return;
    mu__log(ctx, MU__LOG_INFO,
            "the journal is being read, %u %% of %" PRIu64 " bytes: "
            "closures wait until it is",
            get_progress_percent(progress), progress->bytes_all);
    opening->said_ms = now_ms;
}

/* NOT_YET becomes an error when there is no next turn. */
static int plan_turn(struct mu__ctx *ctx, struct supervisor *s)
{
    if (mu__timer_set(ctx, TURN_EACH_MS, timer_token(TIMER_OPENING, 0)) != 0)
        return MU__STORAGE_NOT_YET;
    return fail_journal_reading(ctx, s, -MU_ENOMEM, &(mu_error){.code = 0});
}

void mu__sup_journal_opening(struct mu__ctx *ctx, struct supervisor *s)
{
    const mu_error none = {.code = 0};
    int rv = open_some(ctx, s);

    if (rv == MU__STORAGE_NOT_YET)
        rv = plan_turn(ctx, s);
    if (rv == MU__STORAGE_NOT_YET) {
        report_progress(ctx, s, NULL);
    } else if (rv != 0) {
        report_progress(ctx, s, &s->opening.error);
    } else {
        mu__sup_opened(ctx, s);
        report_progress(ctx, s, &none);
    }
}

int mu__sup_journal_open(struct mu__ctx *ctx, struct supervisor *s)
{
    struct journal_opening *opening = &s->opening;
    mu_error error;
    int rv;

    opening->phase = JOURNAL_OPEN;
    if (s->config.journal == NULL)
        return 0;
    rv = mu__journal_read_begin(s->config.journal, mu__kernel_schema(ctx->kernel),
                                mu__kernel_pool(ctx->kernel), &error, &opening->reading);
    if (rv != 0) {
        mu__log(ctx, MU__LOG_ERROR, "the journal: %s", error.message);
        return rv;
    }
    opening->phase = JOURNAL_READ;
    opening->progress = mu__journal_read_progress(opening->reading);
    rv = open_some(ctx, s);
    if (rv != MU__STORAGE_NOT_YET)
        return rv;
    opening->is_late = true;
    opening->said_ms = mu__now_ms(ctx) - SAID_EACH_MS;
    report_progress(ctx, s, NULL);
    rv = plan_turn(ctx, s);
    return rv == MU__STORAGE_NOT_YET ? 0 : rv;
}

mu_value *mu__sup_journal_value(const struct supervisor *s)
{
    const struct journal_opening *opening = &s->opening;
    mu_value *map;

    if (mu__sup_journal_is_open(s))
        return NULL;
    map = mu_value_map();
    (void)mu_value_set(map, "read_bytes", mu_value_int((int64_t)opening->progress.bytes));
    (void)mu_value_set(map, "bytes", mu_value_int((int64_t)opening->progress.bytes_all));
    (void)mu_value_set(map, "error", mu_value_string(opening->error.message));
    return map;
}
