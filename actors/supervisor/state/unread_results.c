#include "actors/supervisor/state/unread_results.h"

/* Results that came in one frame share its memory. */
static uint64_t get_unread_bytes(const struct mu__msg *msg)
{
    const struct mu__resolved *resolved = (const void *)msg->body;
    const struct mu__fetched *fetched = (const void *)msg->body;
    uint64_t own = sizeof *msg + sizeof *resolved;

    if (msg->kind == MU__FETCHED)
        return own + fetched->content.head_size + fetched->content.tail_size;
    return own + resolved->result.head_size + resolved->result.tail_size +
           resolved->error_data.size;
}

void mu__unread_add(struct mu__unread_results *unread, struct mu__msg *msg)
{
    msg->next = NULL;
    if (unread->first == NULL)
        unread->first = msg;
    else
        unread->last->next = msg;
    unread->last = msg;
    unread->bytes += get_unread_bytes(msg);
    if (unread->bytes >= MU__UNREAD_BYTES)
        unread->is_full = true;
}

struct mu__msg *mu__unread_pop(struct mu__unread_results *unread)
{
    struct mu__msg *msg = unread->first;

    unread->first = msg->next;
    unread->bytes -= get_unread_bytes(msg);
    if (unread->bytes <= MU__UNREAD_BYTES / 2)
        unread->is_full = false;
    return msg;
}
