/* Pending calls of the program, and their timeouts. */
#include "actors/client/actions.h"

#include <inttypes.h>

bool mu__client_unlist(struct mu__call **list, struct mu__call *call)
{
    while (*list != NULL && *list != call)
        list = &(*list)->next;
    if (*list == NULL)
        return false;
    *list = call->next;
    return true;
}

void mu__client_complete(struct mu__ctx *ctx, struct client_actor *c,
                         struct mu__call *call, int code)
{
    if (call->timer != 0) {
        mu__timer_cancel(ctx, call->timer);
        (void)mu__map_remove(&c->calls.timeouts, call->timer);
    }
    mu__call_complete(call, code);
}

uint64_t mu__client_start_timer(struct mu__ctx *ctx, struct mu__map *timers,
                                uint64_t delay_ms, void *value)
{
    uint64_t timer = mu__timer_set(ctx, delay_ms, 0);

    if (timer == 0 || mu__map_set(timers, timer, value) == 0)
        return timer;
    mu__timer_cancel(ctx, timer);
    return 0;
}

bool mu__client_start_timeout(struct mu__ctx *ctx, struct client_actor *c,
                              struct mu__call *call, int64_t timeout_ms)
{
    call->timer = 0;
    if (timeout_ms < 0)
        return true;
    call->timer =
        mu__client_start_timer(ctx, &c->calls.timeouts, (uint64_t)timeout_ms, call);
    if (call->timer != 0)
        return true;
    mu__call_complete(call, mu_error_set(&call->error, -MU_ENOMEM,
                                         "no memory for the timeout of a wait"));
    return false;
}

void mu__client_call_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__call **list, struct mu__call *call,
                          int64_t timeout_ms)
{
    if (!mu__client_start_timeout(ctx, c, call, timeout_ms))
        return;
    call->next = *list;
    *list = call;
}

void mu__client_fail_calls(struct mu__ctx *ctx, struct client_actor *c,
                           struct mu__call **list, const mu_error *error)
{
    while (*list != NULL) {
        struct mu__call *call = *list;

        *list = call->next;
        if (call->operation == MU__CLIENT_OPEN)
            c->session.shared = NULL;
        call->error = *error;
        mu__client_complete(ctx, c, call, error->code);
    }
}

/* ---- timeouts ---- */

static void fail_unreachable(struct mu__ctx *ctx, struct client_actor *c,
                             struct mu__call *call)
{
    (void)mu_error_set(&call->error, -MU_EDEADLINE,
                       "%s was not reached within %" PRId64 " ms%s%s", c->config.chief,
                       call->timeout_ms, c->chief.reported_error[0] == '\0' ? "" : ": ",
                       c->chief.reported_error);
    call->error.kind = MU_ERROR_LIMIT;
    mu__client_complete(ctx, c, call, -MU_EDEADLINE);
}

bool mu__client_timeout_passed(struct mu__ctx *ctx, struct client_actor *c,
                               uint64_t timer)
{
    struct mu__call *call = mu__map_remove(&c->calls.timeouts, timer);

    if (call == NULL)
        return false;
    call->timer = 0;
    if (call->operation == MU__CLIENT_FETCH &&
        !mu__client_unlist(&c->calls.requested, call)) {
        mu__client_fetch_late(ctx, c, (struct mu__client_call *)call);
    } else if (mu__client_unlist(&c->calls.waiting, call) ||
               mu__client_room_unlist(c, call)) {
        if (call->operation == MU__CLIENT_OPEN)
            c->session.shared = NULL;
        if (c->chief.connected)
            mu__client_explain_timeout(ctx, c, (struct mu__client_call *)call);
        else
            fail_unreachable(ctx, c, call);
    } else {
        (void)mu__client_unlist(&c->calls.requested, call);
        mu__client_no_answer(ctx, c, call);
    }
    return true;
}
