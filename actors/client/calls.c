/* Calls of the program that the client actor holds, and their limits. */
#include "actors/client/internal.h"

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

void mu__client_complete(struct mu__ctx *ctx, struct client *c, struct mu__call *call,
                         int code)
{
    if (call->timer != 0) {
        mu__timer_cancel(ctx, call->timer);
        (void)mu__map_remove(&c->limits, call->timer);
    }
    mu__call_complete(call, code);
}

bool mu__client_limit(struct mu__ctx *ctx, struct client *c, struct mu__call *call,
                      int64_t timeout_ms)
{
    call->timer = 0;
    if (timeout_ms < 0)
        return true;
    call->timer = mu__timer_set(ctx, (uint64_t)timeout_ms, 0);
    if (call->timer != 0 && mu__map_set(&c->limits, call->timer, call) == 0)
        return true;
    mu__timer_cancel(ctx, call->timer);
    mu__call_complete(call, mu_error_set(&call->error, -MU_ENOMEM,
                                         "no memory for the limit of a wait"));
    return false;
}

void mu__client_hold(struct mu__ctx *ctx, struct client *c, struct mu__call **list,
                     struct mu__call *call)
{
    if (!mu__client_limit(ctx, c, call, call->timeout_ms))
        return;
    call->next = *list;
    *list = call;
}

void mu__client_close_calls(struct mu__ctx *ctx, struct client *c, struct mu__call **list)
{
    while (*list != NULL) {
        struct mu__call *call = *list;

        *list = call->next;
        mu__client_complete(ctx, c, call,
                            mu_error_set(&call->error, -MU_ECLOSED,
                                         "the node is being closed"));
    }
}

/* ---- limits ---- */

static void say_chief_missing(struct mu__ctx *ctx, struct client *c,
                              struct mu__call *call)
{
    (void)mu_error_set(&call->error, -MU_EDEADLINE,
                       "%s was not reached within %" PRId64 " ms%s%s", c->config.chief,
                       call->timeout_ms, c->trouble[0] == '\0' ? "" : ": ", c->trouble);
    call->error.kind = MU_ERROR_LIMIT;
    mu__client_complete(ctx, c, call, -MU_EDEADLINE);
}

bool mu__client_over_limit(struct mu__ctx *ctx, struct client *c, uint64_t timer)
{
    struct mu__call *call = mu__map_remove(&c->limits, timer);

    if (call == NULL)
        return false;
    call->timer = 0;
    if (call->operation == MU__CLIENT_FETCH && !mu__client_unlist(&c->asking, call)) {
        mu__client_fetch_late(ctx, c, (struct mu__client_call *)call);
    } else if (mu__client_unlist(&c->waiting, call) ||
               mu__client_room_unlist(c, call)) {
        if (call->operation == MU__CLIENT_OPEN)
            c->session = NULL;
        if (c->has_chief)
            mu__client_ask_why(ctx, c, (struct mu__client_call *)call);
        else
            say_chief_missing(ctx, c, call);
    } else {
        (void)mu__client_unlist(&c->asking, call);
        mu__client_no_answer(ctx, c, call);
    }
    return true;
}
