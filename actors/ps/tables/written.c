#include "actors/ps/tables/written.h"

#include "actors/keep.h"
#include "runtime/base/byte_order.h"

/* Take the tokens for the client of answer `first`; returns their bytes. */
static uint32_t take_tokens(struct written_answers *written, uint32_t first,
                            uint8_t *ret_tokens)
{
    mu__pid to = written->answers[first].to;
    uint32_t bytes = 0;

    for (uint32_t i = first; i < written->count; i++) {
        if (!mu__pid_equal(written->answers[i].to, to))
            continue;
        mu__store_little64(ret_tokens + bytes, written->answers[i].token);
        written->answers[i].to.actor = 0;
        bytes += 8;
    }
    return bytes;
}

static void send_written_body(struct mu__ctx *ctx, mu__pid to, uint16_t kind,
                              const void *body, size_t size)
{
    int rv = mu__send_body(ctx, to, kind, body, size);

    if (rv != 0)
        mu__log(ctx, MU__LOG_WARN, "answers to node %u were lost: %s", to.node,
                mu_strerror(rv));
}

static void send_written(struct mu__ctx *ctx, struct written_answers *written,
                         uint32_t first)
{
    uint8_t tokens[MU__FRAME_WRITES_MAX * 8];
    const struct written answer = written->answers[first];
    const struct mu__effect_written one = {.token = answer.token};
    const struct mu__effects_written several = {
        .tokens = {tokens, take_tokens(written, first, tokens)}};

    if (several.tokens.size == 8)
        send_written_body(ctx, answer.to, MU__EFFECT_WRITTEN, &one, sizeof one);
    else
        send_written_body(ctx, answer.to, MU__EFFECTS_WRITTEN, &several, sizeof several);
}

void mu__written_flush(struct mu__ctx *ctx, struct written_answers *written)
{
    for (uint32_t i = 0; i < written->count; i++)
        if (written->answers[i].to.actor != 0)
            send_written(ctx, written, i);
    written->count = 0;
}

void mu__written_add(struct mu__ctx *ctx, struct written_answers *written, mu__pid to,
                     uint64_t token)
{
    if (written->count == MU__FRAME_WRITES_MAX)
        mu__written_flush(ctx, written);
    written->answers[written->count++] = (struct written){to, token};
}
