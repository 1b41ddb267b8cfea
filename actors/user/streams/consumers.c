/* Streams, at who reads them: an actor, or a thread's reader. Of an actor's stream
 * one item at a time is in the mailbox, and the next one follows behind what has come
 * meanwhile; so a stream holds up nothing else, and can be paused. */
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"
#include "actors/user/streams/stream_readers.h"

#include "actors/keep.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct consumer {
    uint64_t call;   /* its number here, */
    uint64_t stream; /* and at the producer's */
    mu_actor *owner; /* or: */
    mu_stream_reader *reader;
    struct mu__list_node of_owner;
    struct peer *peer; /* NULL: the producer is here, or it has ended */
    struct mu__list_node of_peer;
    uint64_t token;
    mu_address to;
    struct chain *chain;
    uint64_t came; /* items */
    uint32_t ahead;
    uint32_t under_way; /* items that the producer has no credit for again */
    uint64_t bytes;
    uint32_t handled; /* of these; not said yet */
    uint64_t handled_bytes;
    struct mu__list items; /* struct mail */
    struct mail *end;      /* the last one; NULL: it is among them, or was */
    struct mu__msg *close; /* to a peer: is said without memory, too */
    bool is_posted;        /* one is in the mailbox */
    bool is_paused;
    char method[64];
};

struct consumer *mu__consumer_find(const struct office *office, uint64_t number)
{
    return number == 0 ? NULL : mu__map_get(&office->streams.consumers, number);
}

/* ---- its life ---- */

static void leave_producer(struct office *office, struct consumer *consumer)
{
    if (consumer->peer != NULL)
        mu__list_remove(&consumer->peer->consumers, &consumer->of_peer);
    consumer->peer = NULL;
    if (consumer->close != NULL)
        mu__msg_free(&office->ctx, consumer->close);
    consumer->close = NULL;
}

static void drop_items_of(struct office *office, struct consumer *consumer)
{
    while (!mu__list_is_empty(&consumer->items))
        mu__mail_free(office,
                      MU__LIST_ENTRY(mu__list_pop(&consumer->items), struct mail, node));
    if (consumer->end != NULL)
        mu__mail_free(office, consumer->end);
}

static void free_consumer(struct office *office, struct consumer *consumer)
{
    (void)mu__map_remove(&office->streams.consumers, consumer->call);
    leave_producer(office, consumer);
    drop_items_of(office, consumer);
    if (consumer->owner != NULL) {
        mu__list_remove(&consumer->owner->streams->consumers, &consumer->of_owner);
        consumer->owner->calls_count--;
    }
    mu__chain_unref(consumer->chain);
    free(consumer);
}

static struct consumer *consumer_new(struct office *office, uint64_t number,
                                     const struct pending_call *call, bool is_remote)
{
    struct consumer *consumer =
        call->owner == NULL || mu__streams_get(call->owner) != NULL
            ? calloc(1, sizeof *consumer)
            : NULL;

    if (consumer == NULL)
        return NULL;
    consumer->end = mu__mail_new(office, MAIL_ITEM);
    if (is_remote)
        consumer->close = mu__msg_new(&office->ctx, MU__STREAM_CLOSE);
    if (consumer->end != NULL && (!is_remote || consumer->close != NULL) &&
        mu__map_set(&office->streams.consumers, number, consumer) == 0)
        return consumer;
    if (consumer->end != NULL)
        mu__mail_free(office, consumer->end);
    if (consumer->close != NULL)
        mu__msg_free(&office->ctx, consumer->close);
    free(consumer);
    return NULL;
}

static void refuse_stream(struct office *office, struct pending_call *call, int code,
                          const char *words)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(office, NULL, call->method, MU_RAN_YES, &error);
    mu__call_end(office, call, NULL, &error);
}

/* The call is over, and its stream is the caller's instead. */
static void take_call(struct office *office, struct consumer *consumer, uint64_t number,
                      struct pending_call *call)
{
    consumer->call = number;
    consumer->owner = call->owner;
    consumer->reader = call->reader;
    consumer->token = call->token;
    consumer->to = call->to;
    consumer->chain = mu__chain_ref(call->chain);
    memcpy(consumer->method, call->method, sizeof consumer->method);
    mu__call_unlist(office, call);
    mu__call_free(office, call);
    if (consumer->reader != NULL)
        consumer->reader->call = number;
    if (consumer->owner == NULL)
        return;
    consumer->owner->calls_count++;
    mu__list_append(&consumer->owner->streams->consumers, &consumer->of_owner);
}

bool mu__consumer_begin(struct office *office, struct pending_call *pending,
                        uint64_t number, struct peer *peer, uint64_t stream,
                        uint32_t ahead)
{
    struct consumer *consumer;

    if (pending == NULL)
        return false;
    if (pending->owner == NULL && pending->reader == NULL) {
        refuse_stream(office, pending, -MU_EPRECONDITION,
                      "the method answers with a stream: mu_actor_open_stream");
        return false;
    }
    consumer = consumer_new(office, number, pending, peer != NULL);
    if (consumer == NULL) {
        refuse_stream(office, pending, -MU_ENOMEM, "no memory for a stream");
        return false;
    }
    take_call(office, consumer, number, pending);
    consumer->stream = stream;
    consumer->ahead = ahead;
    consumer->peer = peer;
    if (peer != NULL)
        mu__list_append(&peer->consumers, &consumer->of_peer);
    return true;
}

/* ---- what comes ---- */

static void post_item(struct consumer *consumer)
{
    if (consumer->is_posted || consumer->is_paused || mu__list_is_empty(&consumer->items))
        return;
    consumer->is_posted = true;
    mu__mail_put(consumer->owner,
                 MU__LIST_ENTRY(mu__list_pop(&consumer->items), struct mail, node));
}

static void add_consumer_item(struct office *office, struct consumer *consumer,
                              struct mail *mail)
{
    mail->of.number = consumer->call;
    mail->token = consumer->token;
    mail->address = consumer->to;
    mail->chain = mu__chain_ref(consumer->chain);
    mu__list_append(&consumer->items, &mail->node);
    if (consumer->owner != NULL)
        post_item(consumer);
    else
        mu__reader_feed(office, consumer->reader);
}

void mu__consumer_end(struct office *office, struct consumer *consumer,
                      const mu_error *error)
{
    struct mail *mail = consumer->end;

    if (mail == NULL)
        return;
    consumer->end = NULL;
    mail->notice = MU_NOTICE_ANSWER;
    if (error != NULL) {
        mail->code = error->code;
        mail->error = mu__error_copy(error);
    }
    leave_producer(office, consumer);
    add_consumer_item(office, consumer, mail);
}

/* Tell the producer that nothing more is wanted. */
static void cancel_producer(struct office *office, struct consumer *consumer)
{
    mu_stream *stream;
    struct mu__msg *close = consumer->close;

    if (consumer->end == NULL)
        return;
    if (consumer->peer == NULL) {
        stream = mu__map_get(&office->streams.producers, consumer->stream);
        if (stream != NULL)
            mu__producer_cancel(office, stream, NULL);
        return;
    }
    consumer->close = NULL;
    ((struct mu__stream_close *)mu__body(close))->stream = consumer->stream;
    (void)mu__send(&office->ctx, (mu__pid){consumer->peer->number, MU__ACTORS}, close);
}

void mu__consumer_fail(struct office *office, struct consumer *consumer, int code,
                       const char *words)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(office, NULL, consumer->method, MU_RAN_MAYBE, &error);
    cancel_producer(office, consumer);
    mu__consumer_end(office, consumer, &error);
}

void mu__consumer_item(struct office *office, struct consumer *consumer,
                       struct mail *mail)
{
    mail->kind = MAIL_ITEM;
    mail->notice = MU_NOTICE_ITEM;
    if (consumer->end == NULL) {
        mu__mail_free(office, mail);
        return;
    }
    if (consumer->under_way >= consumer->ahead || consumer->bytes >= MU__STREAM_BYTES) {
        mu__mail_free(office, mail);
        mu__consumer_fail(office, consumer, -MU_EEXHAUSTED,
                          "more items than there was room for");
        return;
    }
    consumer->came++;
    consumer->under_way++;
    consumer->bytes += mail->bytes;
    add_consumer_item(office, consumer, mail);
}

bool mu__consumer_is_next(const struct consumer *consumer, uint64_t number)
{
    return number == consumer->came + 1;
}

bool mu__consumer_is_of(const struct consumer *consumer, const struct peer *peer)
{
    return consumer->end != NULL && consumer->peer == peer;
}

/* ---- what was handled ---- */

static void say_taken(struct office *office, struct consumer *consumer)
{
    const struct mu__stream_taken body = {consumer->stream, consumer->handled,
                                          consumer->handled_bytes};
    mu_stream *stream;
    int rv = 0;

    consumer->under_way -= consumer->handled;
    consumer->bytes -= consumer->handled_bytes;
    consumer->handled = 0;
    consumer->handled_bytes = 0;
    if (consumer->peer == NULL) {
        stream = mu__map_get(&office->streams.producers, consumer->stream);
        if (stream != NULL)
            mu__producer_credit(office, stream, body.items, body.bytes);
        return;
    }
    rv = mu__send_body(&office->ctx, (mu__pid){consumer->peer->number, MU__ACTORS},
                       MU__STREAM_TAKEN, &body, sizeof body);
    if (rv == -MU_ENOMEM)
        mu__consumer_fail(office, consumer, rv, "no memory to go on with a stream");
}

static void count_handled(struct office *office, struct consumer *consumer,
                          uint32_t bytes)
{
    if (consumer->end == NULL)
        return;
    consumer->handled++;
    consumer->handled_bytes += bytes;
    if (consumer->handled >= (consumer->ahead + 1) / 2 ||
        consumer->handled_bytes >= MU__STREAM_BYTES / 2)
        say_taken(office, consumer);
}

struct mail *mu__consumer_take(mu_actor *actor, struct mail *mail, uint64_t *ret_call)
{
    struct office *office = actor->office;
    struct consumer *consumer = mu__consumer_find(office, mail->of.number);

    *ret_call = 0;
    if (consumer == NULL) {
        mu__mail_free(office, mail);
        return NULL;
    }
    if (consumer->is_paused) {
        consumer->is_posted = false;
        mu__list_prepend(&consumer->items, &mail->node);
        return NULL;
    }
    if (mail->notice == MU_NOTICE_ANSWER)
        free_consumer(office, consumer);
    else
        *ret_call = consumer->call;
    return mail;
}

void mu__consumer_handled(struct office *office, uint64_t call, uint32_t bytes)
{
    struct consumer *consumer = mu__consumer_find(office, call);

    if (consumer == NULL)
        return;
    count_handled(office, consumer, bytes);
    if (consumer->owner == NULL)
        return;
    consumer->is_posted = false;
    post_item(consumer);
}

static void end_reader(mu_stream_reader *reader, const struct mail *mail)
{
    mu_error lost;

    if (mail->code != 0 && mail->error == NULL)
        (void)mu_error_set(&lost, mail->code, "an error, for which there was no memory");
    mu__reader_end(reader, mail->code == 0       ? NULL
                           : mail->error == NULL ? &lost
                                                 : mail->error);
}

void mu__consumer_fill(struct office *office, uint64_t call, mu_stream_reader *reader)
{
    struct consumer *consumer = mu__consumer_find(office, call);
    uint32_t most = consumer == NULL ? 0 : (consumer->ahead + 1) / 2;

    while (consumer != NULL && reader->count < most && reader->count < MU__READER_BATCH &&
           !mu__list_is_empty(&consumer->items)) {
        struct mail *mail =
            MU__LIST_ENTRY(mu__list_pop(&consumer->items), struct mail, node);

        if (mail->notice == MU_NOTICE_ANSWER) {
            free_consumer(office, consumer);
            consumer = NULL;
            end_reader(reader, mail);
        } else {
            reader->bytes[reader->count] = mail->bytes;
            reader->items[reader->count++] = mail->value;
            mail->value = NULL;
        }
        mu__mail_free(office, mail);
    }
}

/* ---- what the consumer wants ---- */

void mu__consumer_close(struct office *office, struct consumer *consumer)
{
    cancel_producer(office, consumer);
    free_consumer(office, consumer);
}

static void read_stream(struct office *office, struct consumer *consumer, int how)
{
    if (how == MU_READ_CLOSE) {
        mu__consumer_close(office, consumer);
        return;
    }
    consumer->is_paused = how == MU_READ_PAUSE;
    post_item(consumer);
}

int mu_actor_read_stream(mu_actor *self, uint64_t token, int how)
{
    MU__REQUIRE(NULL, self);

    struct turn *turn = mu__turn_of(self);
    struct mail *mail;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (how < MU_READ_GO_ON || how > MU_READ_CLOSE)
        return -MU_EINVALID;
    mail = mu__turn_add(turn, OUT_READ);
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->actor = self->number;
    mail->token = token;
    mail->code = how;
    return 0;
}

static void read_streams(mu_actor *actor, uint64_t token, int how)
{
    struct consumer *next;

    for (struct consumer *consumer =
             actor->streams == NULL
                 ? NULL
                 : MU__LIST_FIRST(&actor->streams->consumers, struct consumer, of_owner);
         consumer != NULL; consumer = next) {
        next = MU__LIST_NEXT(consumer, struct consumer, of_owner);
        if (consumer->token == token)
            read_stream(actor->office, consumer, how);
    }
}

/* Those of which nothing has come yet. */
static void forget_calls(mu_actor *actor, uint64_t token)
{
    struct pending_call *next;

    for (struct pending_call *call =
             MU__LIST_FIRST(&mu__actor_ties(actor)->calls, struct pending_call, of_owner);
         call != NULL; call = next) {
        next = MU__LIST_NEXT(call, struct pending_call, of_owner);
        if (call->token == token)
            mu__call_forget(actor->office, call);
    }
}

void mu__consumer_do_read(struct office *office, struct mail *mail)
{
    mu_actor *actor = mu__actor_find(office, mail->actor);

    if (actor != NULL)
        read_streams(actor, mail->token, mail->code);
    if (actor != NULL && mail->code == MU_READ_CLOSE)
        forget_calls(actor, mail->token);
    mu__mail_free(office, mail);
}

void mu__consumer_actor_ended(mu_actor *actor)
{
    while (actor->streams != NULL && !mu__list_is_empty(&actor->streams->consumers))
        mu__consumer_close(actor->office, MU__LIST_ENTRY(actor->streams->consumers.first,
                                                         struct consumer, of_owner));
    free(actor->streams);
    actor->streams = NULL;
}

void mu__consumer_peer_lost(struct office *office, struct peer *peer,
                            const mu_error *error)
{
    mu_error own = *error;

    own.ran = MU_RAN_MAYBE;
    while (!mu__list_is_empty(&peer->consumers)) {
        struct consumer *consumer =
            MU__LIST_ENTRY(peer->consumers.first, struct consumer, of_peer);

        (void)snprintf(own.function, sizeof own.function, "%s", consumer->method);
        mu__consumer_end(office, consumer, &own);
    }
}
