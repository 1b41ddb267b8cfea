/* The incoming side of a connection: the greeting, then frames.
 *
 * Small frames are read into the wire's scratch memory, many at a time, and copied out;
 * the rest of a large frame is read directly into its own memory. After a large frame
 * another one is expected: little more than its header is read into scratch, so that
 * little is copied; the first small frame ends that.
 *
 * Until the links have accepted its HELLO little is read of a connection at a time, and
 * frames are small. With TLS the session of one that was accepted begins when the whole
 * ClientHello is there; until then `left` has what came. */
#include "transport/wire/uv/internal.h"

#include "transport/wire/client_hello.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DIRECT_BYTES_MIN = 16 << 10, /* with more missing, a frame is read into its memory */
    LARGE_BYTES_MIN = 48 << 10,  /* after a frame of this size another one is expected */
    PEEK_BYTES = 1 << 10         /* read of a frame that is expected to be large */
};

/* ---- pauses ---- */

static void forget_pause(struct mu__connection *c)
{
    if (!c->in.paused)
        return;
    mu__list_remove(&c->wire->paused, &c->in.node);
    c->in.paused = false;
}

void mu__reading_forget(struct mu__connection *c)
{
    if (c->wire != NULL)
        forget_pause(c);
}

void mu__reading_pause(struct mu__connection *c)
{
    if (c->in.paused)
        return;
    c->in.paused = true;
    mu__list_append(&c->wire->paused, &c->in.node);
    (void)uv_read_stop(&c->stream.stream);
    mu__wire_uv_resume_later(c->wire);
}

/* ---- frames ---- */

/* Deliver a whole frame; false: the connection is paused or closing. */
static bool deliver_frame(struct mu__connection *c)
{
    struct mu__wire_uv *wire = c->wire;
    struct mu__buf *frame = c->in.frame;
    bool more;

    c->in.frame = NULL;
    c->in.head_size = 0;
    wire->news = true;
    mu__sp_take(&c->in.taken, &c->in.preface, frame->size);
    more = wire->events.frame(wire->owner, c->number, frame);
    mu__buf_unref(frame);
    if (c->is_closing)
        return false;
    if (mu__sp_owes_note(&c->in.taken))
        mu__writing_note(c);
    if (!more)
        mu__reading_pause(c);
    return more;
}

static size_t header_bytes(const struct mu__connection *c)
{
    return c->is_ipc ? MU__SP_HEADER_MAX : MU__SP_HEADER_MAX - 1;
}

/* The size of the frame after a header; false: it is none. */
static bool read_frame_header(struct mu__connection *c, uint64_t *ret_size)
{
    const uint8_t *at = c->in.head;
    uint64_t size = 0;

    if (c->is_ipc && *at++ != 1)
        return false;
    for (int i = 0; i < 8; i++)
        size = size << 8 | *at++;
    if (size < MU__SP_PREFACE_BYTES || !mu__sp_read(at, &c->in.preface))
        return false;
    *ret_size = size - MU__SP_PREFACE_BYTES;
    return !c->in.preface.is_note || *ret_size == 0;
}

/* A header is complete: check it, and allocate the frame. */
static bool begin_frame(struct mu__connection *c)
{
    uint64_t size;

    if (!read_frame_header(c, &size)) {
        mu__connection_lose(c, "it sent bytes that are no message");
        return false;
    }
    if (size > (c->is_member ? MU__FRAME_BYTES_MAX : MU__UNPROVEN_BYTES_MAX)) {
        mu__connection_lose(c, c->is_member
                                   ? "it sent a frame larger than the limit"
                                   : "it sent a large frame before it had proven itself");
        return false;
    }
    if (c->in.preface.is_note) {
        c->in.head_size = 0; /* here nothing is counted */
        return true;
    }
    c->in.frame = mu__buf_new((size_t)size);
    if (c->in.frame == NULL) {
        mu__connection_lose(c, "out of memory for its frame");
        return false;
    }
    c->in.frame_size = (uint32_t)size;
    c->in.expects_large = size >= LARGE_BYTES_MIN;
    return true;
}

static bool check_greeting(struct mu__connection *c)
{
    if (!mu__sp_is_greeting(c->in.head, MU__SP_DIALS)) {
        mu__connection_lose(c, "no muster node");
        return false;
    }
    c->in.greeted = true;
    c->in.head_size = 0;
    return true;
}

/* Copy bytes that a greeting or a header still lacks; returns how many. */
static size_t fill_head(struct mu__connection *c, const uint8_t *data, size_t size,
                        size_t needed)
{
    size_t taken = needed - c->in.head_size;

    if (taken > size)
        taken = size;
    memcpy(c->in.head + c->in.head_size, data, taken);
    c->in.head_size += (unsigned)taken;
    return taken;
}

static size_t fill_frame(struct mu__connection *c, const uint8_t *data, size_t size)
{
    size_t taken = c->in.frame_size - c->in.frame->size;

    if (taken > size)
        taken = size;
    memcpy(c->in.frame->data + c->in.frame->size, data, taken);
    c->in.frame->size += (uint32_t)taken;
    return taken;
}

/* Returns how many bytes were used: all, unless the connection is paused or closing. */
static size_t consume_bytes(struct mu__connection *c, const uint8_t *data, size_t size)
{
    size_t used = 0;

    for (;;) {
        size_t needed = c->in.greeted ? header_bytes(c) : MU__SP_GREETING_BYTES;

        if (c->in.frame != NULL && c->in.frame->size == c->in.frame_size &&
            !deliver_frame(c))
            return used;
        if (used == size && c->in.frame == NULL)
            return used;
        if (c->in.frame != NULL) {
            used += fill_frame(c, data + used, size - used);
            if (c->in.frame->size < c->in.frame_size)
                return used;
            continue;
        }
        used += fill_head(c, data + used, size - used, needed);
        if (c->in.head_size < needed)
            return used;
        if (c->in.greeted ? !begin_frame(c) : !check_greeting(c))
            return used;
    }
}

static void keep_left(struct mu__connection *c, const uint8_t *data, size_t size)
{
    uint8_t *left;

    if (c->is_closing || size == 0)
        return;
    left = malloc(size);
    if (left == NULL) {
        mu__connection_lose(c, "out of memory");
        return;
    }
    memcpy(left, data, size);
    free(c->in.left);
    c->in.left = left;
    c->in.left_size = size;
}

/* Whether a frame lacks enough to be read straight into it. */
static bool is_direct(const struct mu__connection *c)
{
    return c->in.frame != NULL &&
           c->in.frame_size - c->in.frame->size >= DIRECT_BYTES_MIN;
}

/* How much is read into scratch memory at a time. */
static size_t get_read_size(const struct mu__connection *c)
{
    if (!c->is_member)
        return MU__UNPROVEN_BYTES_MAX - c->in.left_size;
    return c->tls == NULL && c->in.expects_large ? PEEK_BYTES : MU__WIRE_SCRATCH_BYTES;
}

static void on_connection_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct mu__connection *c = (struct mu__connection *)handle;
    struct mu__buf *frame = c->in.frame;

    (void)suggested;
    if (c->tls == NULL && is_direct(c))
        *buf = uv_buf_init((char *)frame->data + frame->size,
                           c->in.frame_size - frame->size);
    else
        *buf = uv_buf_init((char *)c->wire->scratch, (unsigned)get_read_size(c));
}

/* ---- TLS ---- */

/* With TLS the greeting follows when the peer has proven itself. */
static void send_greeting(struct mu__connection *c);

/* The next bytes that the peer has said in its session; false: there are none for now,
 * none are wanted, or the connection has ended. */
static bool take_record(struct mu__connection *c)
{
    bool direct = is_direct(c);
    uint8_t *at = direct ? c->in.frame->data + c->in.frame->size : c->wire->plain;
    int size = mu__tls_read(c->tls, at,
                            direct         ? c->in.frame_size - c->in.frame->size
                            : c->is_member ? sizeof c->wire->plain
                                           : MU__UNPROVEN_BYTES_MAX);
    size_t used;

    if (size < 0)
        mu__connection_lose(c, size == -MU_ECANCELLED ? mu__connection_closed_words
                                                      : mu__tls_why(c->tls));
    if (size <= 0)
        return false;
    if (direct) {
        c->in.frame->size += (uint32_t)size;
        (void)consume_bytes(c, at, 0);
    } else {
        used = consume_bytes(c, at, (size_t)size);
        keep_left(c, at + used, (size_t)size - used);
    }
    return !c->is_closing && !c->in.paused;
}

/* The processor time of this thread. */
static uint64_t processor_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A connection that has ended still sends what is to be said: why. */
static void take_open_records(struct mu__connection *c)
{
    bool was_open = mu__tls_is_open(c->tls);

    while (take_record(c))
        continue;
    if (!was_open && mu__tls_is_open(c->tls) && !c->is_closing)
        send_greeting(c);
    if (c->is_closing)
        return;
    if (mu__tls_flush(c->tls, &c->stream.stream) != 0 || !mu__tls_keep_input(c->tls))
        mu__connection_lose(c, "out of memory");
}

static void take_records(struct mu__connection *c)
{
    uint64_t began_us;

    if (c->is_member || !mu__wire_is_accepted(c->number)) {
        take_open_records(c);
        return;
    }
    began_us = processor_us();
    take_open_records(c);
    if (!c->is_member)
        mu__unproven_spend(&c->wire->accepting.unproven, &c->unproven,
                           processor_us() - began_us);
}

/* `data` behind what was kept of the ClientHello; false: the connection has ended. */
static bool join_left(struct mu__connection *c, const uint8_t *data, size_t size)
{
    uint8_t *joined = realloc(c->in.left, c->in.left_size + size);

    if (joined == NULL) {
        mu__connection_lose(c, "out of memory");
        return false;
    }
    memcpy(joined + c->in.left_size, data, size);
    c->in.left = joined;
    c->in.left_size += size;
    return true;
}

static void begin_tls_session(struct mu__connection *c, const uint8_t *data, size_t size)
{
    struct mu__wire_uv *wire = c->wire;

    if (!mu__unproven_has_time(&wire->accepting.unproven, uv_now(wire->loop))) {
        mu__connection_lose(c, "the TLS handshakes of others that had not proven "
                               "themselves have taken too much time");
        return;
    }
    mu__accepting_begin_session(wire, &c->unproven);
    c->tls = mu__tls_new(wire->tls->now(wire->tls->owner), true);
    if (c->tls != NULL && mu__tls_receive(c->tls, data, size))
        take_records(c);
    else
        mu__connection_lose(c, "out of memory");
}

static void take_client_hello(struct mu__connection *c, const uint8_t *data, size_t size)
{
    uint8_t *left;

    if (c->in.left_size == 0 && mu__client_hello_is_decided(data, size)) {
        begin_tls_session(c, data, size);
        return;
    }
    if (!join_left(c, data, size))
        return;
    if (mu__client_hello_is_decided(c->in.left, c->in.left_size)) {
        left = c->in.left;
        size = c->in.left_size;
        c->in.left = NULL;
        c->in.left_size = 0;
        begin_tls_session(c, left, size);
        free(left);
    } else if (c->in.left_size == MU__UNPROVEN_BYTES_MAX) {
        mu__connection_lose(c, "its TLS ClientHello is too large");
    }
}

/* A peer that goes before it has read our answer resets the connection. */
static const char *words_of_end(const struct mu__connection *c, int status)
{
    bool is_closed = status == UV_EOF || (status == UV_ECONNRESET && !c->is_member);

    return is_closed ? mu__connection_closed_words : uv_strerror(status);
}

static void on_connection_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct mu__connection *c = (struct mu__connection *)stream;
    const uint8_t *data = (const uint8_t *)buf->base;
    size_t used;

    if (size == 0)
        return;
    if (size < 0) {
        mu__connection_lose(c, words_of_end(c, (int)size));
        return;
    }
    if (c->is_secured && c->tls == NULL) {
        take_client_hello(c, data, (size_t)size);
        return;
    }
    if (c->tls != NULL) {
        if (mu__tls_receive(c->tls, data, (size_t)size))
            take_records(c);
        else
            mu__connection_lose(c, "out of memory");
        return;
    }
    if (data == c->wire->scratch) {
        used = consume_bytes(c, data, (size_t)size);
        keep_left(c, data + used, (size_t)size - used);
        return;
    }
    c->in.frame->size += (uint32_t)size;
    (void)consume_bytes(c, data, 0);
}

/* ---- going on ---- */

static void resume_reading(struct mu__connection *c)
{
    uint8_t *left = c->in.left;
    size_t size = c->in.left_size;
    size_t used;

    c->in.left = NULL;
    c->in.left_size = 0;
    used = consume_bytes(c, left, size);
    keep_left(c, left + used, size - used);
    free(left);
    if (c->tls != NULL && !c->is_closing && !c->in.paused)
        take_records(c);
    if (!c->is_closing && !c->in.paused)
        (void)uv_read_start(&c->stream.stream, on_connection_alloc, on_connection_read);
}

void mu__reading_resume(struct mu__wire_uv *wire)
{
    struct mu__connection *c;
    unsigned count = 0;

    for (struct mu__list_node *node = wire->paused.first; node != NULL; node = node->next)
        count++;
    while (count-- > 0 &&
           (c = MU__LIST_FIRST(&wire->paused, struct mu__connection, in.node)) != NULL) {
        forget_pause(c);
        if (c->is_broken)
            mu__connection_lose(c, "out of memory");
        else if (!c->in.held)
            resume_reading(c);
    }
}

/* A connection that is not held any more goes on like one that has paused. */
void mu__reading_hold(struct mu__wire *door, uint32_t number, bool is_held)
{
    struct mu__connection *c = mu__connection_of(door, number);

    if (c == NULL || c->in.held == is_held)
        return;
    c->in.held = is_held;
    if (is_held)
        (void)uv_read_stop(&c->stream.stream);
    else
        mu__reading_pause(c);
}

/* ---- the begin ---- */

static void on_reply_greeting_written(uv_write_t *request, int status)
{
    (void)request;
    (void)status; /* the reading side sees a broken connection too */
}

static void send_greeting(struct mu__connection *c)
{
    uv_buf_t buf = uv_buf_init((char *)c->greeting, sizeof c->greeting);
    int rv;

    mu__sp_greeting(c->greeting, MU__SP_ACCEPTS);
    if (c->tls != NULL)
        rv = mu__tls_write(c->tls, c->greeting, sizeof c->greeting);
    else
        rv = uv_write(&c->greeting_request, &c->stream.stream, &buf, 1,
                      on_reply_greeting_written);
    if (rv != 0)
        mu__connection_close(c);
}

int mu__reading_begin(struct mu__connection *c)
{
    if (mu__wire_is_accepted(c->number) && !c->is_secured)
        send_greeting(c);
    return c->is_closing ? -MU_ECLOSED
                         : uv_read_start(&c->stream.stream, on_connection_alloc,
                                         on_connection_read);
}
