/* The wire itself: what belongs to no one connection, and functions for all of them.
 *
 * Events are passed on where libuv calls; burst_end comes once for all events of an
 * iteration of the loop, so that the messages of many peers are answered together: right
 * after the poll, and right before the next one for the events of timers and
 * connections. */
#include "transport/wire/uv/internal.h"

#include "runtime/message/block_pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mu__wire *mu__wire_uv_wire(struct mu__wire_uv *wire)
{
    return &wire->door;
}

const char *mu__wire_uv_url(const struct mu__wire_uv *wire)
{
    return wire->text;
}

void mu__wire_uv_secure(struct mu__wire_uv *wire, const struct mu__tls_source *source)
{
    wire->tls = source;
}

/* ---- holds ---- */

void mu__wire_uv_hold(struct mu__wire_uv *wire)
{
    wire->holds++;
}

void mu__wire_uv_drop_hold(struct mu__wire_uv *wire)
{
    void (*closed)(void *arg) = wire->closed;
    void *arg = wire->closed_arg;

    assert(wire->holds > 0);
    if (--wire->holds > 0)
        return;
    mu__map_done(&wire->connections);
    mu__map_done(&wire->dials);
    free(wire);
    if (closed != NULL)
        closed(arg);
}

static void on_wire_handle_closed(uv_handle_t *handle)
{
    mu__wire_uv_drop_hold(handle->data);
}

static void on_wire_blocking_closed(void *arg)
{
    mu__wire_uv_drop_hold(arg);
}

/* ---- bursts ---- */

static void end_uv_burst(struct mu__wire_uv *wire)
{
    if (!wire->news || wire->closing)
        return;
    wire->news = false;
    /* As in runtime/uv/loop_world.c: the turn judges by a time after these events. */
    uv_update_time(wire->loop);
    wire->events.burst_end(wire->owner);
}

static void on_uv_before_poll(uv_prepare_t *prepare)
{
    end_uv_burst(prepare->data);
}

static void on_uv_after_poll(uv_check_t *check)
{
    end_uv_burst(check->data);
}

static void on_resume(uv_idle_t *idle)
{
    struct mu__wire_uv *wire = idle->data;

    (void)uv_idle_stop(idle);
    mu__reading_resume(wire);
}

void mu__wire_uv_resume_later(struct mu__wire_uv *wire)
{
    (void)uv_idle_start(&wire->resume, on_resume);
}

/* ---- streams and frames ---- */

int mu__stream_init(uv_loop_t *loop, bool ipc, union mu__stream *stream)
{
    return ipc ? uv_pipe_init(loop, &stream->pipe, 0) : uv_tcp_init(loop, &stream->tcp);
}

static void release_uv_frame(struct mu__buf *buf)
{
    mu__buf_cut_splices(buf, 0);
    mu__block_put(buf);
}

struct frame {
    struct mu__buf buf; /* first: released by it */
    struct mu__splices splices;
};

/* One block: the structs, the headroom, the bytes. */
struct mu__buf *mu__frame_buffer(struct mu__wire *door, size_t capacity)
{
    const size_t offset = (sizeof(struct frame) + 15) / 16 * 16 + MU__SP_HEADROOM;
    struct frame *frame;

    (void)door;
    if (capacity > MU__FRAME_BYTES_MAX)
        return NULL;
    frame = mu__block_get(offset + capacity);
    if (frame == NULL)
        return NULL;
    frame->splices.count = 0;
    frame->splices.bytes = 0;
    frame->splices.bytes_max = 0;
    frame->buf = (struct mu__buf){
        .data = (uint8_t *)frame + offset,
        .capacity = (uint32_t)capacity,
        .refs = 1,
        .splices = &frame->splices,
        .release = release_uv_frame,
    };
    return &frame->buf;
}

struct mu__buf *mu__frame_with_headroom(struct mu__buf *frame)
{
    struct mu__buf *copy;

    if (frame->release == release_uv_frame)
        return frame;
    copy = mu__frame_buffer(NULL, frame->size);
    if (copy == NULL)
        return NULL;
    memcpy(copy->data, frame->data, frame->size);
    copy->size = frame->size;
    return copy;
}

/* ---- opening and closing ---- */

static void hangup_uv(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct mu__connection *connection = mu__connection_of(door, number);

    if (!mu__dials_end(wire, number) && connection != NULL)
        mu__connection_close(connection);
}

static const struct mu__wire_ops ops = {
    .splices = true,
    .buffer = mu__frame_buffer,
    .dial = mu__dials_begin,
    .avoid = mu__dials_avoid,
    .address_number = mu__connection_address,
    .hangup = hangup_uv,
    .send = mu__writing_send,
    .hold = mu__reading_hold,
    .member = mu__connection_member,
    .proof = mu__connection_proof,
    .own_right = mu__connection_own_right,
    .peer = mu__connection_peer,
    .last_error = mu__dials_last_error,
};

static void init_handles(struct mu__wire_uv *wire)
{
    (void)uv_prepare_init(wire->loop, &wire->before_poll);
    (void)uv_check_init(wire->loop, &wire->after_poll);
    (void)uv_idle_init(wire->loop, &wire->resume);
    wire->before_poll.data = wire;
    wire->after_poll.data = wire;
    wire->resume.data = wire;
    wire->holds += 4; /* these three, the blocking jobs */
}

static struct mu__wire_uv *uv_wire_new(uv_loop_t *loop,
                                       const struct mu__listening *listening,
                                       const struct mu__wire_events *events, void *owner)
{
    struct mu__wire_uv *wire = calloc(1, sizeof *wire);

    if (wire == NULL)
        return NULL;
    wire->door.ops = &ops;
    wire->loop = loop;
    wire->events = *events;
    wire->owner = owner;
    if (listening != NULL) {
        wire->url = listening->url;
        (void)snprintf(wire->text, sizeof wire->text, "%s", listening->text);
    }
    if (mu__blocking_open(loop, &wire->blocking_jobs) != 0) {
        free(wire);
        return NULL;
    }
    return wire;
}

static void start_uv_wire(struct mu__wire_uv *wire)
{
    init_handles(wire);
    (void)uv_prepare_start(&wire->before_poll, on_uv_before_poll);
    (void)uv_check_start(&wire->after_poll, on_uv_after_poll);
}

int mu__wire_uv_adopt(uv_loop_t *loop, struct mu__listening *listening,
                      const struct mu__wire_events *events, void *owner,
                      mu_error *ret_error, struct mu__wire_uv **ret_wire)
{
    struct mu__wire_uv *wire = uv_wire_new(loop, listening, events, owner);
    int rv;

    if (wire == NULL) {
        mu__listening_close(listening);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a wire");
    }
    rv = mu__accepting_open(wire, listening->fd);
    if (rv != 0) {
        mu__listening_close(listening);
        mu__blocking_close(wire->blocking_jobs, free, wire);
        return mu__listen_refused(listening->text, rv, ret_error);
    }
    listening->fd = -1;
    start_uv_wire(wire);
    *ret_wire = wire;
    return 0;
}

int mu__wire_uv_open_deaf(uv_loop_t *loop, const struct mu__wire_events *events,
                          void *owner, mu_error *ret_error, struct mu__wire_uv **ret_wire)
{
    struct mu__wire_uv *wire = uv_wire_new(loop, NULL, events, owner);

    if (wire != NULL && mu__accepting_open(wire, -1) != 0) {
        mu__blocking_close(wire->blocking_jobs, free, wire);
        wire = NULL;
    }
    if (wire == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a wire");
    start_uv_wire(wire);
    *ret_wire = wire;
    return 0;
}

int mu__wire_uv_open(uv_loop_t *loop, const char *bind_url,
                     const struct mu__wire_events *events, void *owner,
                     mu_error *ret_error, struct mu__wire_uv **ret_wire)
{
    struct mu__listening listening;
    int rv = mu__listen(bind_url, ret_error, &listening);

    return rv != 0
               ? rv
               : mu__wire_uv_adopt(loop, &listening, events, owner, ret_error, ret_wire);
}

void mu__wire_uv_close(struct mu__wire_uv *wire, void (*closed)(void *arg), void *arg)
{
    assert(!wire->closing);
    wire->closing = true;
    wire->closed = closed;
    wire->closed_arg = arg;
    mu__connection_close_all(wire);
    mu__dials_end_all(wire);
    mu__blocking_close(wire->blocking_jobs, on_wire_blocking_closed, wire);
    if (wire->accepting.fd >= 0 && wire->url.ipc)
        (void)unlink(wire->url.path);
    mu__accepting_close(wire);
    uv_close((uv_handle_t *)&wire->before_poll, on_wire_handle_closed);
    uv_close((uv_handle_t *)&wire->after_poll, on_wire_handle_closed);
    uv_close((uv_handle_t *)&wire->resume, on_wire_handle_closed);
}
