/* Connections that peers have dialled. All of them share one raw REP socket, whose
 * descriptors the loop polls. nng takes one message of a connection at a time, and reads
 * no further until it is fetched: so a peer that is not read is pushed back, and its end
 * is told after its last message. On the way out nng throws away what a peer does not
 * take; so no more is sent than the window allows (transport/wire/sp.h). */
#include "transport/wire/nng/internal.h"

#include <stdlib.h>

struct mu__nng_in {
    uint32_t number;
    uint32_t pipe;
    struct mu__unproven_entry unproven; /* until it is a member's */
    struct mu__sp_taken taken;
    struct mu__sp_window window;
    bool is_blocked;            /* `writable` follows */
    nng_msg *pending;           /* the socket did not take it; NULL: none */
    struct mu__list_node waits; /* in wire->in.waiting, while it has one */
    bool is_dropped;            /* and in the list of those, */
    struct mu__list_node node;
    uint64_t dropped_ms; /* since then */
    uint64_t heard_ms;   /* its last frame after that */
};

static void wait_for_proof(struct mu__wire_nng *wire, struct mu__nng_in *in);

static struct mu__nng_in *in_new(struct mu__wire_nng *wire, uint32_t pipe)
{
    struct mu__nng_in *in = calloc(1, sizeof *in);

    if (in == NULL)
        return NULL;
    wire->in.next = (wire->in.next + 1) & (MU__WIRE_ACCEPTED - 1);
    in->number = MU__WIRE_ACCEPTED | wire->in.next;
    in->pipe = pipe;
    if (mu__map_set(&wire->in.ins, in->number, in) != 0) {
        free(in);
        return NULL;
    }
    if (mu__map_set(&wire->in.pipes, pipe, in) != 0) {
        (void)mu__map_remove(&wire->in.ins, in->number);
        free(in);
        return NULL;
    }
    wait_for_proof(wire, in);
    return in;
}

static void forget_pending(struct mu__wire_nng *wire, struct mu__nng_in *in)
{
    if (in->pending == NULL)
        return;
    mu__list_remove(&wire->in.waiting, &in->waits);
    in->pending = NULL;
}

static void drop_pending(struct mu__wire_nng *wire, struct mu__nng_in *in)
{
    nng_msg *message = in->pending;

    forget_pending(wire, in);
    if (message != NULL)
        nng_msg_free(message);
}

static void in_free(struct mu__wire_nng *wire, struct mu__nng_in *in)
{
    drop_pending(wire, in);
    (void)mu__map_remove(&wire->in.ins, in->number);
    (void)mu__map_remove(&wire->in.pipes, in->pipe);
    mu__unproven_remove(&wire->in.unproven, &in->unproven);
    if (in->is_dropped)
        mu__list_remove(&wire->in.dropped, &in->node);
    free(in);
}

/* nng may stop for ever when it closes a connection in the middle of a message: what
 * comes is thrown away, and when nothing comes for a moment it is closed. */
static void in_drop(struct mu__wire_nng *wire, struct mu__nng_in *in)
{
    (void)mu__map_remove(&wire->in.ins, in->number);
    mu__unproven_remove(&wire->in.unproven, &in->unproven);
    drop_pending(wire, in);
    in->is_dropped = true;
    in->dropped_ms = uv_now(wire->loop);
    in->heard_ms = in->dropped_ms;
    mu__list_append(&wire->in.dropped, &in->node);
    mu__wire_nng_rest(wire);
}

bool mu__nng_ins_rested(struct mu__wire_nng *wire)
{
    uint64_t now_ms = uv_now(wire->loop);
    struct mu__nng_in *next;

    for (struct mu__nng_in *in =
             MU__LIST_FIRST(&wire->in.dropped, struct mu__nng_in, node);
         in != NULL; in = next) {
        next = MU__LIST_NEXT(in, struct mu__nng_in, node);
        if (now_ms - in->heard_ms < MU__NNG_REST_MS &&
            now_ms - in->dropped_ms < MU__NNG_REST_LONG_MS)
            continue;
        mu__nng_pipe_end(wire->news_of, in->pipe);
        in_free(wire, in);
    }
    return mu__list_is_empty(&wire->in.dropped);
}

void mu__nng_in_hangup(struct mu__wire_nng *wire, uint32_t number)
{
    struct mu__nng_in *in = mu__map_get(&wire->in.ins, number);

    if (in != NULL)
        in_drop(wire, in);
}

void mu__nng_in_free_all(struct mu__wire_nng *wire)
{
    for (size_t i = 0; wire->in.pipes.count > 0; i = (i + 1) % wire->in.pipes.capacity)
        if (wire->in.pipes.entries[i].key != 0)
            in_free(wire, wire->in.pipes.entries[i].value);
}

static void in_lost(struct mu__wire_nng *wire, struct mu__nng_in *in, const char *reason)
{
    uint32_t number = in->number;
    bool is_dropped = in->is_dropped;

    in_free(wire, in);
    if (is_dropped)
        return;
    wire->news = true;
    wire->events.down(wire->owner, number, reason);
}

static void in_refuse(struct mu__wire_nng *wire, struct mu__nng_in *in,
                      const char *reason)
{
    uint32_t number = in->number;

    in_drop(wire, in);
    wire->news = true;
    wire->events.down(wire->owner, number, reason);
}

/* ---- those that are no member's yet ---- */

static void end_unproven(struct mu__wire_nng *wire, struct mu__unproven_entry *entry,
                         const char *reason)
{
    struct mu__nng_in *in = MU__LIST_ENTRY(entry, struct mu__nng_in, unproven);
    char address[MU__NNG_PEER_BYTES];

    wire->door.ops->peer(&wire->door, in->number, address, sizeof address);
    if (wire->events.refused != NULL)
        wire->events.refused(wire->owner, address, reason);
    in_refuse(wire, in, reason);
}

static void on_nng_sweep(uv_timer_t *timer);

static void schedule_nng_sweep(struct mu__wire_nng *wire)
{
    const struct mu__unproven_entry *oldest = mu__unproven_oldest(&wire->in.unproven);
    uint64_t now_ms = uv_now(wire->loop);
    uint64_t due_ms;

    if (oldest == NULL || wire->closing || uv_is_active((uv_handle_t *)&wire->in.sweep))
        return;
    due_ms = oldest->since_ms + MU__UNPROVEN_MS;
    (void)uv_timer_start(&wire->in.sweep, on_nng_sweep,
                         due_ms > now_ms ? due_ms - now_ms : 1, 0);
}

static void on_nng_sweep(uv_timer_t *timer)
{
    struct mu__wire_nng *wire = timer->data;
    struct mu__unproven_entry *entry;

    while ((entry = mu__unproven_overdue(&wire->in.unproven, uv_now(wire->loop))) != NULL)
        end_unproven(wire, entry, "it has not proven itself in time");
    schedule_nng_sweep(wire);
}

/* Addresses are not limited one by one: nng has accepted before it tells. */
static void wait_for_proof(struct mu__wire_nng *wire, struct mu__nng_in *in)
{
    static const struct mu__source any = {.is_limited = false};
    struct mu__unproven_entry *oldest =
        mu__unproven_add(&wire->in.unproven, &in->unproven, &any, uv_now(wire->loop));

    if (oldest != NULL)
        end_unproven(wire, oldest,
                     "too many others came that had not proven themselves either");
    schedule_nng_sweep(wire);
}

void mu__nng_in_member(struct mu__wire_nng *wire, uint32_t number)
{
    struct mu__nng_in *in = mu__map_get(&wire->in.ins, number);

    if (in != NULL)
        mu__unproven_prove(&wire->in.unproven, &in->unproven);
}

/* ---- news and frames ---- */

/* A connection whose first frame came before the news of it is known already. */
void mu__nng_in_event(struct mu__wire_nng *wire, const struct mu__nng_event *event)
{
    struct mu__nng_in *in = mu__map_get(&wire->in.pipes, event->pipe);

    if (in == NULL && event->begun && !event->ended) {
        in = in_new(wire, event->pipe);
        if (in == NULL)
            mu__nng_pipe_end(wire->news_of, event->pipe);
    }
    if (in == NULL && event->ended && !event->is_dropped)
        in = in_new(wire, event->pipe); /* it has ended at once */
    if (in != NULL && event->ended)
        in_lost(wire, in, "connection closed by the peer");
}

/* NULL: of a connection that was dropped. */
static struct mu__nng_in *in_of(struct mu__wire_nng *wire, uint32_t pipe)
{
    struct mu__nng_in *in = mu__map_get(&wire->in.pipes, pipe);

    if (in != NULL)
        return in;
    return mu__nng_news_has(wire->news_of, pipe) ? in_new(wire, pipe) : NULL;
}

/* The frame that a message brings; NULL: none, and the message is freed. */
static struct mu__buf *take_frame(struct mu__wire_nng *wire, struct mu__nng_in *in,
                                  nng_msg *message)
{
    struct mu__sp_preface preface;
    struct mu__buf *frame;
    bool is_good = mu__nng_take_preface(message, &preface) &&
                   mu__sp_was_taken(&in->window, &preface);

    if (!is_good || preface.is_note || nng_msg_len(message) > MU__FRAME_BYTES_MAX) {
        bool is_large = is_good && !preface.is_note;

        nng_msg_free(message);
        if (!is_good)
            in_refuse(wire, in, "it sent bytes that are no message");
        else if (is_large)
            in_refuse(wire, in, "it sent a frame larger than the limit");
        return NULL;
    }
    mu__sp_take(&in->taken, &preface, nng_msg_len(message));
    frame = mu__nng_frame_of(message);
    if (frame == NULL)
        in_refuse(wire, in, "out of memory for its frame");
    return frame;
}

static void note_room(struct mu__wire_nng *wire, struct mu__nng_in *in)
{
    if (!in->is_blocked || in->is_dropped || in->pending != NULL ||
        !mu__sp_may_send(&in->window))
        return;
    in->is_blocked = false;
    wire->news = true;
    wire->events.writable(wire->owner, in->number);
}

/* False: a pause is wanted. */
static bool deliver_accepted(struct mu__wire_nng *wire, nng_msg *message)
{
    uint32_t pipe = (uint32_t)nng_pipe_id(nng_msg_get_pipe(message));
    struct mu__nng_in *in = in_of(wire, pipe);
    struct mu__buf *frame;
    bool more = true;

    if (in == NULL || in->is_dropped) {
        nng_msg_free(message);
        if (in != NULL)
            in->heard_ms = uv_now(wire->loop);
        return true;
    }
    frame = take_frame(wire, in, message);
    if (frame != NULL) {
        wire->news = true;
        more = wire->events.frame(wire->owner, in->number, frame);
        mu__buf_unref(frame);
    }
    in = wire->closing ? NULL : mu__map_get(&wire->in.pipes, pipe);
    if (in != NULL)
        note_room(wire, in);
    return more;
}

void mu__nng_receive(struct mu__wire_nng *wire)
{
    for (unsigned i = 0; i < MU__NNG_FRAMES_MAX && !wire->closing; i++) {
        nng_msg *message;

        if (nng_recvmsg(wire->in.socket, &message, NNG_FLAG_NONBLOCK) != 0)
            return;
        if (!deliver_accepted(wire, message))
            return; /* the descriptor tells of the rest in the next iteration */
    }
}

/* ---- sending ---- */

static int send_to_accepted(struct mu__wire_nng *wire, nng_msg *message)
{
    return nng_sendmsg(wire->in.socket, message, NNG_FLAG_NONBLOCK);
}

static void on_accepted_writable(uv_poll_t *poll, int status, int happened)
{
    (void)status;
    (void)happened;
    mu__nng_send_waiting(poll->data);
}

void mu__nng_send_waiting(struct mu__wire_nng *wire)
{
    struct mu__nng_in *in;

    while ((in = MU__LIST_FIRST(&wire->in.waiting, struct mu__nng_in, waits)) != NULL) {
        if (send_to_accepted(wire, in->pending) != 0)
            return;
        forget_pending(wire, in);
        note_room(wire, in);
        if (wire->closing)
            return;
    }
    (void)uv_poll_stop(&wire->in.writable);
}

static void keep_pending(struct mu__wire_nng *wire, struct mu__nng_in *in,
                         nng_msg *message)
{
    in->pending = message;
    mu__list_append(&wire->in.waiting, &in->waits);
    (void)uv_poll_start(&wire->in.writable, UV_READABLE, on_accepted_writable);
}

int mu__nng_in_send(struct mu__wire_nng *wire, uint32_t number, struct mu__buf *frame)
{
    struct mu__nng_in *in = mu__map_get(&wire->in.ins, number);
    struct mu__sp_preface preface = {.counts = true};
    nng_msg *message;

    if (in == NULL)
        return -MU_EUNAVAILABLE;
    if (in->pending != NULL || !mu__sp_may_send(&in->window)) {
        in->is_blocked = true;
        return -MU_EAGAIN;
    }
    mu__sp_say(&in->taken, &preface);
    message = mu__nng_message_of(frame, &preface);
    if (message == NULL)
        return -MU_ENOMEM;
    if (nng_msg_header_append_u32(message, in->pipe) != 0) {
        nng_msg_free(message);
        return -MU_ENOMEM;
    }
    mu__sp_sent(&in->window, mu__buf_total(frame));
    if (send_to_accepted(wire, message) != 0)
        keep_pending(wire, in, message);
    mu__buf_unref(frame);
    return 0;
}

uint32_t mu__nng_in_pipe(struct mu__wire_nng *wire, uint32_t number)
{
    const struct mu__nng_in *in = mu__map_get(&wire->in.ins, number);

    return in == NULL ? 0 : in->pipe;
}
