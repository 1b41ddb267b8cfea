/* Backup attempts: a closure that runs much longer than its function does on average (a
 * straggler) is sent to an idle worker too, while nothing is queued. The first result
 * counts. */
#include "actors/supervisor/stragglers.h"
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"

#include <inttypes.h>

enum { BACKUP_TICK_MS = 50 };

void mu__sup_forget_backup(struct supervisor *s, struct closure_extra *extra)
{
    extra->backup.worker = 0;
    mu__backups_remove(&s->backups, extra->closure);
}

bool mu__sup_promote_backup(struct supervisor *s, struct mu__closure *closure)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t number;

    if (extra == NULL || extra->backup.worker == 0)
        return false;
    number = extra->backup.worker;
    closure->attempt = (uint16_t)extra->backup.attempt;
    closure->started_ms = extra->backup.started_ms;
    closure->cost = 0;
    closure->marks &= (uint8_t)~MU__MARKS_RUNNING;
    if (extra->backup.begun)
        closure->marks |= MU__MARKS_RUNNING;
    mu__sup_forget_backup(s, extra);
    mu__closures_move_last(&s->closures, closure, mu__list_in_flight(number));
    return true;
}

void mu__sup_backups_lost(struct supervisor *s, uint32_t number)
{
    uint32_t i = 0;

    while (i < s->backups.count) {
        struct mu__closure *closure =
            mu__closures_find(&s->closures, s->backups.closures[i]);
        struct closure_extra *extra = mu__sup_extra(s, closure);

        if (extra->backup.worker == number)
            mu__sup_forget_backup(s, extra);
        else
            i++;
    }
}

struct straggler {
    const struct supervisor *supervisor;
    uint32_t number; /* where it runs */
    const struct closure_extra *extra;
};

static bool can_run_backup(const struct mu__member_worker *worker, const void *arg)
{
    const struct straggler *straggler = arg;

    return worker->number != straggler->number &&
           worker->load < mu__member_threads(worker) &&
           mu__sup_role_suits(straggler->supervisor, straggler->extra, worker);
}

static bool is_closure_straggling(const struct supervisor *s,
                                  const struct mu__closure *closure, uint32_t now_ms)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t ran_ms = now_ms - closure->started_ms;

    return (closure->marks & ~MU__MARK_LONG) == MU__MARK_BEGUN &&
           closure->crashes < QUARANTINE_CRASHES &&
           mu__is_straggler(mu__function_times_find(&s->times, closure->function), ran_ms,
                            s->config.backup_percent) &&
           (extra == NULL || (extra->backup.worker == 0 && extra->options.worker == 0 &&
                              extra->inputs.count == 0 &&
                              (extra->options.flags & MU__CLOSURE_NO_BACKUP) == 0));
}

static void run_backup(struct mu__ctx *ctx, struct supervisor *s,
                       struct mu__closure *closure)
{
    struct closure_extra *extra = mu__closure_extras_take(&s->extras, closure);
    struct straggler straggler = {s, mu__list_worker(closure->list), extra};
    uint32_t number = extra == NULL
                          ? 0
                          : mu__membership_pick_fitting(&s->members, mu__sup_role(extra),
                                                        can_run_backup, &straggler);
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    if (worker == NULL || mu__sup_last_attempt(s, closure) >= s->config.retries_max ||
        !mu__backups_add(&s->backups, extra->closure))
        return;
    extra->backup.worker = number;
    extra->backup.attempt = (uint16_t)(mu__sup_last_attempt(s, closure) + 1U);
    extra->backup.started_ms = (uint32_t)mu__now_ms(ctx);
    extra->backup.begun = false;
    mu__membership_load(&s->members, number, mu__closure_bytes(closure), 0);
    if (mu__sup_send_run(ctx, s, worker, closure, extra->backup.attempt) != 0) {
        mu__membership_unload(&s->members, number, mu__closure_bytes(closure),
                              (struct mu__charge){0});
        mu__sup_forget_backup(s, extra);
        return;
    }
    s->backups.runs++;
    mu__log(ctx, MU__LOG_INFO, "closure %" PRIu64 " takes long: it also runs on %s",
            extra->closure, mu__sup_task(s, worker).text);
}

void mu__sup_backup_watch(struct mu__ctx *ctx, struct supervisor *s)
{
    s->backups.timer = mu__timer_set(ctx, BACKUP_TICK_MS, timer_token(TIMER_BACKUP, 0));
}

void mu__sup_backup_tick(struct mu__ctx *ctx, struct supervisor *s)
{
    uint32_t now_ms = (uint32_t)mu__now_ms(ctx);

    s->backups.timer = 0;
    if (mu__sup_in_flight(s) == 0)
        return;
    for (uint32_t i = 1; i < s->worker_states.size; i++) {
        struct mu__closure *closure =
            mu__closures_first(&s->closures, mu__list_in_flight(i));

        for (; closure != NULL; closure = mu__closures_next(&s->closures, closure))
            if (mu__closures_first_queued(&s->closures) == NULL &&
                is_closure_straggling(s, closure, now_ms))
                run_backup(ctx, s, closure);
    }
    mu__sup_backup_watch(ctx, s);
}
