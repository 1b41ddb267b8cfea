/* Streams: calls that are answered by many items. The half of who gives it is a mu_stream
 * (producers.c), that of who reads it a consumer (consumers.c), which takes the place of
 * the call once the stream has begun. Between two nodes they speak with messages, on
 * one node they call each other.
 *
 * Items are under way from when they are given until they were handled: their number and
 * their bytes are bounded. Who has handled half of what may be under way says so. A
 * stream lives as long as the link: a cut ends both halves. */
#ifndef MU_ACTORS_USER_STREAM_ACTIONS_H
#define MU_ACTORS_USER_STREAM_ACTIONS_H

#include "runtime/kernel/kernel.h"

#include "muster/actor.h"

struct consumer;
struct mail;
struct mu__actors_call;
struct office;
struct peer;
struct pending_call;

/* ---- producers.c ---- */

/* What the actor has of them, made when it is needed; NULL: out of memory. */
struct actor_streams *mu__streams_get(mu_actor *actor);

/* What turns do. */
void mu__producer_do_begin(struct office *office, struct mail *mail);
void mu__producer_do_item(struct office *office, struct mail *mail);
void mu__producer_do_end(struct office *office, struct mail *mail);
void mu__producer_undo_item(struct office *office, struct mail *mail);
void mu__producer_undo_end(struct office *office, struct mail *mail);

/* The method that it was to answer has failed: it never began. */
void mu__producer_drop(mu_stream *stream);

/* Handled at the consumer's. */
void mu__producer_credit(struct office *office, mu_stream *stream, uint32_t items,
                         uint64_t bytes);

/* Nobody wants more of it; `why` NULL: it was closed. */
void mu__producer_cancel(struct office *office, mu_stream *stream, const mu_error *why);

/* A MAIL_STREAM, which it takes, is to be handled; NULL: the stream is over. */
struct mail *mu__producer_take(struct office *office, struct mail *mail);

/* The actor, or what it knows of its streams, is gone: its consumers get an error. */
void mu__producer_actor_ended(mu_actor *actor);

/* The node was lost, with the streams of both sides. */
void mu__streams_peer_lost(struct office *office, struct peer *peer,
                           const mu_error *error);

/* ---- consumers.c ---- */

/* The call (NULL: nobody waits for it), by the number that it was sent with, is answered
 * by a stream, of `peer` (NULL: of this node). False: nobody wants it. */
bool mu__consumer_begin(struct office *office, struct pending_call *pending,
                        uint64_t number, struct peer *peer, uint64_t stream,
                        uint32_t ahead);
struct consumer *mu__consumer_find(const struct office *office, uint64_t number);

/* Takes the mail, a MAIL_ITEM. */
void mu__consumer_item(struct office *office, struct consumer *consumer,
                       struct mail *mail);
void mu__consumer_end(struct office *office, struct consumer *consumer,
                      const mu_error *error);

/* No more of it is wanted: the producer is told. */
void mu__consumer_close(struct office *office, struct consumer *consumer);

/* The next one that `actor` is to handle, for a MAIL_ITEM of its mailbox, which it takes:
 * as a notice. NULL: none now. `ret_call`: what was handled after the turn; 0:
 * nothing. */
struct mail *mu__consumer_take(mu_actor *actor, struct mail *mail, uint64_t *ret_call);
void mu__consumer_handled(struct office *office, uint64_t call, uint32_t bytes);

/* What a turn does: mu_actor_read_stream. */
void mu__consumer_do_read(struct office *office, struct mail *mail);

void mu__consumer_actor_ended(mu_actor *actor);

/* For a reader: the next ones, until it has as many as it takes. */
void mu__consumer_fill(struct office *office, uint64_t call, mu_stream_reader *reader);

void mu__consumer_peer_lost(struct office *office, struct peer *peer,
                            const mu_error *error);

/* It ends with an error of this side. */
void mu__consumer_fail(struct office *office, struct consumer *consumer, int code,
                       const char *words);

/* Whether an item has the number that follows. */
bool mu__consumer_is_next(const struct consumer *consumer, uint64_t number);

/* Whether it still comes from this peer. */
bool mu__consumer_is_of(const struct consumer *consumer, const struct peer *peer);

/* ---- answers.c ---- */

/* The call of this node that an answer with this number is to; NULL: there is none. */
struct pending_call *mu__call_answered(const struct office *office, uint64_t number);

/* ---- remote.c ---- */

/* A call that was sent to the node of a message; NULL: there is none. */
struct pending_call *mu__remote_find_call(const struct office *office, uint64_t id,
                                          const struct mu__msg *msg);

/* ---- remote_streams.c: what other offices say ---- */

void mu__streams_on_begin(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__streams_on_item(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__streams_on_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__streams_on_taken(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__streams_on_close(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- stream_readers.c ---- */

/* Calls of threads: OPEN, NEXT and CLOSE. */
void mu__reader_on_call(struct office *office, struct mu__actors_call *call);
void mu__reader_on_timer(struct office *office);

/* There are items. */
void mu__reader_feed(struct office *office, mu_stream_reader *reader);

void mu__reader_end(mu_stream_reader *reader, const mu_error *error);

/* The call is answered without a stream: by what is the only item then, or an error.
 * Takes `value`. */
void mu__reader_answer(struct office *office, mu_stream_reader *reader, mu_value *value,
                       const mu_error *error);
void mu__readers_end(struct office *office);

#endif
