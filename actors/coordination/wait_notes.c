#include "actors/coordination/replies.h"
#include "actors/coordination/wait_notes.h"

#include <string.h>

uint64_t mu__coord_note_next(uint64_t since_ms, uint64_t now_ms)
{
    uint64_t waited_ms = now_ms - since_ms;

    if (waited_ms < COORD_NOTE_FIRST_MS)
        return since_ms + COORD_NOTE_FIRST_MS;
    return now_ms +
           (waited_ms < COORD_NOTE_STEP_MAX_MS ? waited_ms : COORD_NOTE_STEP_MAX_MS);
}

void mu__coord_note(struct mu__ctx *ctx, uint32_t node, uint64_t token, const char *text)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__WAIT_NOTE);
    struct mu__wait_note *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->message = mu__view_str(text);
    if (!mu__coord_back(msg, (struct mu__view *[]){&body->message}, 1))
        body->message.size = 0;
    mu__coord_send_now(ctx, node, msg);
}
