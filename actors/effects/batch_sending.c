/* Sending batches, piece by piece, into the windows of their servers. */
#include "actors/keep.h"
#include "actors/effects/internal.h"
#include "actors/ps/variable_store.h"
#include "actors/variables/variables.h"
#include "actors/worker/function_run.h"

static uint32_t piece_size(const struct write_batch *batch)
{
    uint64_t left = batch->at->size - batch->offset;

    return left < MU__PIECE_BYTES_MAX ? (uint32_t)left : MU__PIECE_BYTES_MAX;
}

static void fill_piece(const struct write_batch *batch, struct mu__effect_write *body)
{
    const struct mu__effects *effects = &batch->sending->run->effects;
    const struct mu__effect *at = batch->at;
    uint32_t size = piece_size(batch);

    body->token = batch->token;
    body->batch = batch->token;
    body->variable = at->variable;
    body->operation = at->operation;
    body->offset = batch->offset;
    body->data = (struct mu__view){at->data + batch->offset, size};
    body->last = batch->writes_left == 1 && batch->offset + size == at->size;
    body->effect = effects->effect;
    if (body->effect != 0) {
        body->origin = effects->origin;
        body->effects_done = effects->effects_done;
    }
    body->rate = at->rate;
    body->momentum = at->momentum;
    body->before = batch->pieces;
}

/* Go behind the piece that was sent; false when it was the last. */
static bool move_on(struct effects *e, struct write_batch *batch)
{
    uint32_t size = piece_size(batch);
    uint64_t weight = mu__effect_weight(size);

    batch->pieces++;
    batch->sent += weight;
    e->servers[batch->server]->under_way[batch->size] += weight;
    batch->offset += size;
    if (batch->offset < batch->at->size)
        return true;
    batch->offset = 0;
    batch->at = batch->at->next;
    return --batch->writes_left > 0;
}

static int send_piece(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__EFFECT_WRITE);

    if (msg == NULL)
        return -MU_ENOMEM;
    if (batch->pieces == 0)
        batch->token = ++e->tries << SLOT_BITS | batch->slot;
    fill_piece(batch, mu__body(msg));
    return mu__send_borrowed(ctx, mu__effects_pid_of(e, batch->server), msg);
}

/* Let the server drop the pieces of an abandoned batch. */
static int send_abandon(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    const struct mu__effect_write body = {
        .token = batch->token, .batch = batch->token, .operation = MU__WRITE_ABANDON};

    return mu__send_body(ctx, mu__effects_pid_of(e, batch->server), MU__EFFECT_WRITE,
                         &body, sizeof body);
}

/* Send the next piece of a batch, or that it is abandoned. */
static int send_next(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct effect_server *server = e->servers[batch->server];
    int rv;

    if (batch->sending == NULL) {
        rv = send_abandon(ctx, e, batch);
        if (rv == 0)
            mu__effects_batch_free(e, batch);
        return rv;
    }
    rv = send_piece(ctx, e, batch);
    if (rv == 0)
        mu__effects_put_last(move_on(e, batch) ? &server->active : &server->flying,
                             batch);
    return rv;
}

/* The batch that is next; NULL: none, or the window is full. */
static struct write_batch *next_of(struct effect_server *server, enum size size)
{
    uint32_t count = 0;

    if (server->under_way[size] >= MU__WINDOW_BYTES)
        return NULL;
    if (size == SINGLE)
        return mu__effects_first(&server->waiting[SINGLE]);
    for (struct mu__list_node *at = server->active.first; at != NULL; at = at->next)
        count++;
    if (count < ACTIVE_MAX && !mu__list_is_empty(&server->waiting[LARGE]))
        mu__effects_put_first(&server->active,
                              mu__effects_first(&server->waiting[LARGE]));
    return mu__effects_first(&server->active);
}

void mu__effects_pump(struct mu__ctx *ctx, struct effects *e, uint32_t index)
{
    struct effect_server *server = e->servers[index];
    enum size size = SINGLE;
    unsigned idle = 0;

    while (server->up && idle < SIZES) {
        struct write_batch *batch = next_of(server, size);
        int rv = batch == NULL ? 0 : send_next(ctx, e, batch);

        idle = batch == NULL ? idle + 1 : 0;
        size = size == SINGLE ? LARGE : SINGLE;
        if (rv == 0)
            continue;
        if (mu__send_is_transient(rv)) {
            mu__effects_arm(ctx, e, RETRY, RETRY_MS);
            return;
        }
        if (batch->sending == NULL)
            mu__effects_batch_free(e, batch);
        else
            mu__effects_fail(ctx, e, batch, rv, "was not sent a message");
    }
}

void mu__effects_pump_all(struct mu__ctx *ctx, struct effects *e)
{
    for (uint32_t i = 0; i < e->servers_count; i++)
        mu__effects_pump(ctx, e, i);
}
