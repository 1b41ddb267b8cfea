/* What the offices of other nodes say of streams. Nothing of it is believed: a stream is
 * heard of from its own peer alone, its items have numbers that follow each other, and
 * its end says how many there were. */
#include "actors/user/actions.h"
#include "actors/user/streams/producers.h"
#include "actors/user/streams/stream_actions.h"

#include "actors/keep.h"
#include "runtime/message/codec.h"

/* ---- of who gives ---- */

static void say_unwanted(struct office *office, uint32_t node, uint64_t stream)
{
    const struct mu__stream_close body = {.stream = stream};

    (void)mu__send_body(&office->ctx, (mu__pid){node, MU__ACTORS}, MU__STREAM_CLOSE,
                        &body, sizeof body);
}

void mu__streams_on_begin(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__stream_begin *body = mu__body(msg);
    struct office *office = state;
    struct peer *peer = mu__peer_of_node(office, msg->from.node);
    uint32_t ahead =
        body->ahead < MU__STREAM_AHEAD_MAX ? body->ahead : MU__STREAM_AHEAD_MAX;

    (void)ctx;
    if (peer == NULL)
        return;
    if (!mu__consumer_begin(office, mu__remote_find_call(office, body->call, msg),
                            body->call, peer, body->stream, ahead))
        say_unwanted(office, msg->from.node, body->stream);
}

/* One that the node of a message gives. */
static struct consumer *find_consumer(const struct office *office, uint64_t call,
                                      const struct mu__msg *msg)
{
    const struct peer *peer = mu__peer_of_node(office, msg->from.node);
    struct consumer *consumer = mu__consumer_find(office, call);

    return consumer != NULL && peer != NULL && mu__consumer_is_of(consumer, peer)
               ? consumer
               : NULL;
}

void mu__streams_on_item(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__stream_item *body = mu__body(msg);
    struct office *office = state;
    struct consumer *consumer = find_consumer(office, body->call, msg);
    mu_value *value = NULL;
    struct mail *mail;
    char why[128] = "out of memory";

    (void)ctx;
    if (consumer == NULL)
        return;
    if (!mu__consumer_is_next(consumer, body->number)) {
        mu__consumer_fail(office, consumer, -MU_EDATALOSS,
                          "an item of the stream is missing");
        return;
    }
    if (body->item.head_size > 0 &&
        mu__value_unpack(&body->item, why, sizeof why, &value) != 0) {
        mu__consumer_fail(office, consumer, -MU_EDATALOSS, why);
        return;
    }
    mail = mu__mail_new(office, MAIL_ITEM);
    if (mail == NULL) {
        mu_value_free(value);
        mu__consumer_fail(office, consumer, -MU_ENOMEM,
                          "no memory for an item of the stream");
        return;
    }
    mail->value = value;
    mail->bytes = body->item.head_size + body->item.tail_size;
    mu__consumer_item(office, consumer, mail);
}

void mu__streams_on_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__stream_end *body = mu__body(msg);
    struct office *office = state;
    struct consumer *consumer = find_consumer(office, body->call, msg);
    mu_error error = {
        .code = -(int)body->code, .kind = (int)body->error_kind, .ran = (int)body->ran};

    (void)ctx;
    if (consumer == NULL)
        return;
    if (!mu__consumer_is_next(consumer, body->items + 1)) {
        mu__consumer_fail(office, consumer, -MU_EDATALOSS,
                          "items at the end of the stream are missing");
        return;
    }
    mu__view_copy(body->task, error.task, sizeof error.task);
    mu__view_copy(body->function, error.function, sizeof error.function);
    mu__view_copy(body->message, error.message, sizeof error.message);
    mu__consumer_end(office, consumer, error.code == 0 ? NULL : &error);
}

/* ---- of who reads ---- */

static mu_stream *find_producer(const struct office *office, uint64_t id,
                                const struct mu__msg *msg)
{
    mu_stream *stream = id == 0 ? NULL : mu__map_get(&office->streams.producers, id);

    return stream != NULL && stream->peer != NULL &&
                   stream->peer->number == msg->from.node
               ? stream
               : NULL;
}

void mu__streams_on_taken(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__stream_taken *body = mu__body(msg);
    mu_stream *stream = find_producer(state, body->stream, msg);

    (void)ctx;
    if (stream != NULL)
        mu__producer_credit(state, stream, body->items, body->bytes);
}

void mu__streams_on_close(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__stream_close *body = mu__body(msg);
    mu_stream *stream = find_producer(state, body->stream, msg);

    (void)ctx;
    if (stream != NULL)
        mu__producer_cancel(state, stream, NULL);
}
