/* Streams, at who gives them. */
#include "actors/user/streams/producers.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include "actors/keep.h"
#include "actors/packing.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- making one ---- */

struct actor_streams *mu__streams_get(mu_actor *actor)
{
    if (actor->streams == NULL)
        actor->streams = calloc(1, sizeof *actor->streams);
    return actor->streams;
}

static void free_stream(mu_stream *stream)
{
    struct office *office = stream->actor->office;

    (void)mu__map_remove(&office->streams.producers, stream->id);
    mu__list_remove(&stream->actor->streams->producers, &stream->node);
    stream->actor->streams->producers_count--;
    if (stream->peer != NULL)
        mu__list_remove(&stream->peer->streams, &stream->of_peer);
    if (stream->end != NULL)
        mu__msg_free(&office->ctx, stream->end);
    if (stream->notice != NULL)
        mu__mail_free(office, stream->notice);
    free(stream);
}

static mu_stream *stream_new(struct turn *turn, unsigned ahead, uint64_t token)
{
    struct office *office = turn->actor->office;
    mu_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL)
        return NULL;
    stream->actor = turn->actor;
    stream->method = turn->mail->method;
    stream->answer = turn->mail->answer;
    stream->token = token;
    stream->ahead = ahead == 0                      ? MU__STREAM_AHEAD
                    : ahead <= MU__STREAM_AHEAD_MAX ? ahead
                                                    : MU__STREAM_AHEAD_MAX;
    stream->id = ++office->number_next;
    if (mu__map_set(&office->streams.producers, stream->id, stream) != 0) {
        free(stream);
        return NULL;
    }
    mu__list_append(&turn->actor->streams->producers, &stream->node);
    turn->actor->streams->producers_count++;
    stream->notice = mu__mail_new(office, MAIL_STREAM);
    if (stream->answer.node != MU__NODE_SELF)
        stream->end = mu__msg_new(&office->ctx, MU__STREAM_END);
    if (stream->notice != NULL &&
        (stream->end != NULL || stream->answer.node == MU__NODE_SELF))
        return stream;
    free_stream(stream);
    return NULL;
}

mu_stream *mu_actor_stream(mu_actor *self, unsigned ahead, uint64_t token)
{
    MU__REQUIRE_OR(NULL, self);

    struct turn *turn = mu__turn_of(self);
    mu_stream *stream;
    struct mail *mail;

    if (turn == NULL || turn->mail == NULL || turn->mail->kind != MAIL_MESSAGE ||
        turn->later != NULL || turn->stream != NULL || mu__streams_get(self) == NULL ||
        self->streams->producers_count >= MU__ACTOR_STREAMS_MAX)
        return turn == NULL ? NULL : turn->stream;
    stream = stream_new(turn, ahead, token);
    mail = stream == NULL ? NULL : mu__turn_add(turn, OUT_STREAM);
    if (mail == NULL) {
        if (stream != NULL)
            free_stream(stream);
        return NULL;
    }
    mail->of.stream = stream;
    turn->stream = stream;
    return stream;
}

void mu__producer_drop(mu_stream *stream)
{
    free_stream(stream);
}

/* ---- it begins ---- */

/* A notice is there from before it is needed, so that it is said without memory, too. */
static void notify_producer(struct office *office, mu_stream *stream, int notice,
                            const mu_error *why)
{
    struct mail *mail = stream->notice;

    if (mail == NULL)
        mail = mu__mail_new(office, MAIL_STREAM);
    stream->notice = NULL;
    if (mail == NULL)
        return;
    mail->notice = (uint16_t)notice;
    mail->token = stream->token;
    mail->address = (mu_address){.number = 0};
    mail->of.number = stream->id;
    if (why != NULL) {
        mail->error = mu__error_copy(why);
        mail->code = why->code;
    }
    mu__mail_put(stream->actor, mail);
    stream->notice = mu__mail_new(office, MAIL_STREAM);
}

struct mail *mu__producer_take(struct office *office, struct mail *mail)
{
    const mu_stream *stream = mu__map_get(&office->streams.producers, mail->of.number);

    if (stream != NULL && !stream->is_ended &&
        (mail->notice == MU_NOTICE_STREAM_CLOSED || !stream->is_cancelled))
        return mail;
    mu__mail_free(office, mail);
    return NULL;
}

void mu__producer_cancel(struct office *office, mu_stream *stream, const mu_error *why)
{
    if (stream->is_cancelled)
        return;
    stream->is_cancelled = true;
    stream->waits = false;
    if (stream->peer != NULL)
        mu__list_remove(&stream->peer->streams, &stream->of_peer);
    stream->peer = NULL;
    if (!stream->is_ended)
        notify_producer(office, stream, MU_NOTICE_STREAM_CLOSED, why);
}

/* Half of what may be under way is free, so that the producer gives many for one notice.
 */
static void review_stream(struct office *office, mu_stream *stream)
{
    if (!stream->waits || !stream->has_begun || stream->under_way > stream->ahead / 2 ||
        stream->bytes > MU__STREAM_BYTES / 2)
        return;
    stream->waits = false;
    notify_producer(office, stream, MU_NOTICE_STREAM_ROOM, NULL);
}

static bool begin_remote(struct office *office, mu_stream *stream)
{
    struct peer *peer = mu__peer_of_node(office, stream->answer.node);
    const struct mu__stream_begin body = {
        .call = stream->answer.call, .stream = stream->id, .ahead = stream->ahead};

    if (peer == NULL || mu__send_body(&office->ctx, (mu__pid){peer->number, MU__ACTORS},
                                      MU__STREAM_BEGIN, &body, sizeof body) != 0)
        return false;
    stream->peer = peer;
    mu__list_append(&peer->streams, &stream->of_peer);
    return true;
}

/* What is answered to a send is wanted by nobody. */
void mu__producer_do_begin(struct office *office, struct mail *mail)
{
    mu_stream *stream = mail->of.stream;
    bool is_needed;

    mu__mail_free(office, mail);
    if (stream->answer.call == 0)
        is_needed = false;
    else if (stream->answer.node == MU__NODE_SELF)
        is_needed =
            mu__consumer_begin(office, mu__call_answered(office, stream->answer.call),
                               stream->answer.call, NULL, stream->id, stream->ahead);
    else
        is_needed = begin_remote(office, stream);
    stream->has_begun = true;
    if (!is_needed)
        mu__producer_cancel(office, stream, NULL);
    else
        review_stream(office, stream);
}

/* ---- items ---- */

static bool has_stream_room(const mu_stream *stream)
{
    return stream->under_way < stream->ahead && stream->bytes < MU__STREAM_BYTES;
}

static struct mu__msg *pack_item(struct office *office, const mu_stream *stream,
                                 const mu_value *value)
{
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__STREAM_ITEM);
    struct mu__stream_item *body;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->call = stream->answer.call;
    if (value == NULL)
        return msg;
    msg->backing = mu__pack_to_send(value, true, &body->item);
    if (msg->backing != NULL)
        return msg;
    mu__msg_free(&office->ctx, msg);
    return NULL;
}

static struct mail *make_item(struct turn *turn, mu_stream *stream, const mu_value *value)
{
    struct office *office = stream->actor->office;
    struct mail *mail = mu__mail_new(office, OUT_ITEM);

    if (mail == NULL)
        return NULL;
    if (stream->answer.node == MU__NODE_SELF)
        mail->value = value == NULL ? NULL : mu_value_ref(value);
    else
        mail->msg = pack_item(office, stream, value);
    if (stream->answer.node != MU__NODE_SELF && mail->msg == NULL) {
        mu__mail_free(office, mail);
        return NULL;
    }
    mu__list_append(&turn->out, &mail->node);
    return mail;
}

int mu_stream_give(mu_stream *stream, const mu_value *value)
{
    MU__REQUIRE(NULL, stream);

    struct turn *turn = mu__turn_of(stream->actor);
    uint32_t bytes = 0;
    struct mail *mail;
    int rv;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (stream->is_ended || stream->is_cancelled)
        return stream->is_ended ? -MU_EINVALID : -MU_ECANCELLED;
    rv = value == NULL ? 0 : mu__mail_measure(value, &bytes);
    if (rv != 0)
        return rv;
    if (!has_stream_room(stream)) {
        stream->waits = true;
        return -MU_EAGAIN;
    }
    mail = make_item(turn, stream, value);
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->of.stream = stream;
    mail->bytes = bytes;
    stream->under_way++;
    stream->bytes += bytes;
    return 0;
}

static void send_item(struct office *office, mu_stream *stream, struct mail *mail)
{
    struct mu__msg *msg = mail->msg;

    mail->msg = NULL;
    ((struct mu__stream_item *)mu__body(msg))->number = ++stream->given;
    (void)mu__send(&office->ctx, (mu__pid){stream->peer->number, MU__ACTORS}, msg);
    mu__mail_free(office, mail);
}

void mu__producer_do_item(struct office *office, struct mail *mail)
{
    mu_stream *stream = mail->of.stream;

    struct consumer *consumer;

    if (!stream->is_cancelled && stream->peer != NULL) {
        send_item(office, stream, mail);
        return;
    }
    consumer =
        stream->is_cancelled ? NULL : mu__consumer_find(office, stream->answer.call);
    if (consumer == NULL)
        mu__mail_free(office, mail);
    else
        mu__consumer_item(office, consumer, mail);
}

void mu__producer_undo_item(struct office *office, struct mail *mail)
{
    mu__producer_credit(office, mail->of.stream, 1, mail->bytes);
}

void mu__producer_credit(struct office *office, mu_stream *stream, uint32_t items,
                         uint64_t bytes)
{
    stream->under_way -= items < stream->under_way ? items : stream->under_way;
    stream->bytes -= bytes < stream->bytes ? bytes : stream->bytes;
    review_stream(office, stream);
}

/* ---- its end ---- */

int mu_stream_end(mu_stream *stream, const mu_error *error)
{
    MU__REQUIRE(NULL, stream);

    struct turn *turn = mu__turn_of(stream->actor);
    struct mail *mail;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (stream->is_ended)
        return -MU_EINVALID;
    mail = mu__turn_add(turn, OUT_END);
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->of.stream = stream;
    stream->is_ended = true;
    if (error == NULL)
        return 0;
    mail->code = error->code < 0 ? error->code : -MU_EUNKNOWN;
    mail->error = mu__error_copy(error);
    if (mail->error == NULL)
        return 0;
    mail->error->code = mail->code;
    if (error->ran == MU_RAN_UNKNOWN)
        mu__answer_error(stream->actor->office, stream->actor->type, stream->method->name,
                         MU_RAN_YES, mail->error);
    return 0;
}

/* The message was made with the stream: the end is said without memory, too. */
static void send_stream_end(struct office *office, mu_stream *stream,
                            const mu_error *error)
{
    struct mu__msg *msg = stream->end;
    struct mu__stream_end *body = mu__body(msg);

    stream->end = NULL;
    body->call = stream->answer.call;
    body->items = stream->given;
    if (error != NULL) {
        body->code = (uint32_t)-error->code;
        body->error_kind = (uint32_t)error->kind;
        body->ran = (uint32_t)error->ran;
        body->task = mu__view_str(error->task);
        body->function = mu__view_str(error->function);
        body->message = mu__view_str(error->message);
    }
    (void)mu__send(&office->ctx, (mu__pid){stream->peer->number, MU__ACTORS}, msg);
}

static void say_end(struct office *office, mu_stream *stream, const mu_error *error)
{
    struct consumer *consumer;

    if (stream->is_cancelled)
        return;
    if (stream->peer != NULL) {
        send_stream_end(office, stream, error);
        return;
    }
    consumer = mu__consumer_find(office, stream->answer.call);
    if (consumer != NULL)
        mu__consumer_end(office, consumer, error);
}

void mu__producer_do_end(struct office *office, struct mail *mail)
{
    mu_stream *stream = mail->of.stream;
    mu_error lost;

    if (mail->code != 0 && mail->error == NULL) {
        (void)mu_error_set(&lost, mail->code, "an error, for which there was no memory");
        mu__answer_error(office, stream->actor->type, stream->method->name, MU_RAN_YES,
                         &lost);
    }
    say_end(office, stream,
            mail->code == 0       ? NULL
            : mail->error == NULL ? &lost
                                  : mail->error);
    mu__mail_free(office, mail);
    free_stream(stream);
}

void mu__producer_undo_end(struct office *office, struct mail *mail)
{
    (void)office;
    mail->of.stream->is_ended = false;
}

void mu__producer_actor_ended(mu_actor *actor)
{
    mu_error error;

    while (actor->streams != NULL && !mu__list_is_empty(&actor->streams->producers)) {
        mu_stream *stream =
            MU__LIST_ENTRY(actor->streams->producers.first, mu_stream, node);

        (void)mu_error_set(&error, -MU_EABORTED,
                           "the actor has ended, or its state was loaded anew, before "
                           "its stream had ended%s%.300s",
                           actor->why == NULL ? "" : ": ",
                           actor->why == NULL ? "" : actor->why->message);
        mu__answer_error(actor->office, actor->type, stream->method->name, MU_RAN_MAYBE,
                         &error);
        say_end(actor->office, stream, &error);
        free_stream(stream);
    }
}

void mu__streams_peer_lost(struct office *office, struct peer *peer,
                           const mu_error *error)
{
    mu__consumer_peer_lost(office, peer, error);
    while (!mu__list_is_empty(&peer->streams))
        mu__producer_cancel(
            office, MU__LIST_ENTRY(peer->streams.first, mu_stream, of_peer), error);
}
