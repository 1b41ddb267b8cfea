#include "actors/supervisor/unread.h"

#include "actors/supervisor/actions.h"

enum {
    LOOK_MS = 2,             /* until it is checked again whether a client reads */
    LOOK_BYTES_MAX = 4 << 20 /* sent to one client at a time */
};

/* ---- Keeping and sending ---- */

/* False: there are too many timers, so that nothing may be kept. */
static bool arm_unread_timer(struct mu__ctx *ctx, struct supervisor *s)
{
    if (s->clients.unread_timer == 0)
        s->clients.unread_timer =
            mu__timer_set(ctx, LOOK_MS, timer_token(TIMER_UNREAD, 0));
    return s->clients.unread_timer != 0;
}

int mu__sup_send_result(struct mu__ctx *ctx, struct supervisor *s, mu__pid to,
                        struct mu__msg *msg)
{
    struct supervisor_client *client = NULL;
    bool is_behind;

    if (to.node == MU__NODE_SELF)
        return mu__send(ctx, to, msg); /* it is never behind */
    is_behind = mu__is_behind(ctx, to.node);
    /* While nobody is behind, the client need not be found. */
    if (is_behind || s->clients.unread_timer != 0)
        client = mu__sup_find_client(s, to);
    if (msg == NULL || client == NULL || (client->unread.first == NULL && !is_behind) ||
        !arm_unread_timer(ctx, s))
        return mu__send(ctx, to, msg);
    mu__unread_add(&client->unread, msg);
    return 0;
}

/* A link that cannot be sent on is down, and the client is forgotten with it. */
static void send_unread(struct mu__ctx *ctx, struct supervisor *s,
                        struct supervisor_client *client)
{
    struct mu__unread_results *unread = &client->unread;
    uint64_t end = unread->bytes < LOOK_BYTES_MAX ? 0 : unread->bytes - LOOK_BYTES_MAX;

    while (unread->first != NULL && unread->bytes > end &&
           !mu__is_behind(ctx, client->pid.node))
        (void)mu__send(ctx, client->pid, mu__unread_pop(unread));
    if (unread->first == NULL || arm_unread_timer(ctx, s))
        return;
    while (unread->first != NULL)
        (void)mu__send(ctx, client->pid, mu__unread_pop(unread));
}

void mu__sup_unread_tick(struct mu__ctx *ctx, struct supervisor *s)
{
    bool read_again = false;

    s->clients.unread_timer = 0;
    for (uint32_t i = 0; i < s->clients.count; i++) {
        struct mu__unread_results *unread = &s->clients.items[i].unread;
        bool was_full = unread->is_full;

        if (unread->first == NULL)
            continue;
        send_unread(ctx, s, &s->clients.items[i]);
        read_again = read_again || (was_full && !unread->is_full);
    }
    if (read_again)
        mu__sup_queue_read(ctx, s);
}

/* ---- Clients ---- */

bool mu__sup_wait_for_reader(struct supervisor *s, struct mu__closure *closure)
{
    if (!s->clients.items[closure->client].unread.is_full ||
        (closure->marks & MU__MARK_RESOLVED) != 0)
        return false;
    mu__closures_move_last(&s->closures, closure, MU__LIST_UNREAD);
    return true;
}

void mu__sup_unread_free(struct mu__ctx *ctx, struct mu__unread_results *unread)
{
    while (unread->first != NULL)
        mu__msg_free(ctx, mu__unread_pop(unread));
}

void mu__sup_unread_drop(struct mu__ctx *ctx, struct supervisor *s,
                         struct supervisor_client *client)
{
    bool was_full = client->unread.is_full;

    mu__sup_unread_free(ctx, &client->unread);
    if (was_full)
        mu__sup_queue_read(ctx, s);
}

uint64_t mu__sup_unread_bytes(const struct supervisor *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->clients.count; i++)
        bytes += s->clients.items[i].unread.bytes;
    return bytes;
}
