/* One incoming connection: greeting, then frames.
 *
 * Small frames are read into the wire's scratch memory, many at a time, and copied out;
 * the rest of a large frame is read directly into its own memory. After a large frame
 * another one is expected: little more than its header is read into scratch, so that
 * little is copied; the first small frame ends that.
 *
 * Until the links have accepted its HELLO a connection is unproven: little is read at a
 * time, and frames are small. With TLS its session begins when the whole ClientHello is
 * there; until then `left` has what came. */
#include "transport/wire/uv/internal.h"

#include "transport/wire/client_hello.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DIRECT_BYTES_MIN = 16 << 10, /* with more missing, a frame is read into its memory */
    LARGE_BYTES_MIN = 48 << 10, /* after a frame of this size another one is expected */
    PEEK_BYTES = 1 << 10        /* read of a frame that is expected to be large */
};

struct in {
    union mu__stream stream;    /* first: handles cast */
    struct mu__wire_uv *wire;
    struct mu__unproven_entry unproven;
    struct mu__tls *tls;        /* NULL: plain, or its ClientHello has not come */
    struct mu__list_node paused_node;   /* in paused_ins, while `paused` */
    uint32_t number;
    bool secured;               /* it speaks TLS */
    bool member;                /* it has proven itself */
    bool greeted;
    bool paused;
    bool held;                  /* by the links: nothing is read */
    bool expects_large;         /* the last frame was large */
    bool closing;               /* no event comes any more */
    uint8_t head[MU__SP_HEADER_MAX];
    unsigned head_size;
    struct mu__buf *frame;      /* being filled */
    uint32_t frame_size;        /* when it is complete */
    uint8_t *left;              /* read, but not delivered because of a pause */
    size_t left_size;
    uv_write_t greeting_request;
    uint8_t greeting[MU__SP_GREETING_BYTES];
};

static const char closed_words[] = "connection closed";

/* ---- ends ---- */

static void on_in_closed(uv_handle_t *handle)
{
    struct in *in = handle->data;
    struct mu__wire_uv *wire = in->wire;

    mu__tls_free(in->tls);
    mu__buf_unref(in->frame);
    free(in->left);
    free(in);
    mu__wire_uv_drop_hold(wire);
}

static void forget_paused(struct in *in)
{
    if (!in->paused)
        return;
    mu__list_remove(&in->wire->paused_ins, &in->paused_node);
    in->paused = false;
}

static void in_close(struct in *in)
{
    if (in->closing)
        return;
    in->closing = true;
    (void)mu__map_remove(&in->wire->ins, in->number);
    mu__unproven_remove(&in->wire->accepting.unproven, &in->unproven);
    forget_paused(in);
    uv_close(&in->stream.handle, on_in_closed);
}

/* Who only came and went is not worth a word: a health check, say. */
static void report_refused(const struct in *in, const char *reason)
{
    struct mu__wire_uv *wire = in->wire;
    char address[MU__PEER_BYTES];

    if (wire->events.refused == NULL || reason == closed_words)
        return;
    mu__in_peer(&wire->door, in->number, address, sizeof address);
    wire->events.refused(wire->owner, address, reason);
}

/* The connection broke, or is closed because of the bytes that came over it. */
static void in_lost(struct in *in, const char *reason)
{
    struct mu__wire_uv *wire = in->wire;
    uint32_t number = in->number;
    bool greeted = in->greeted;

    if (in->closing)
        return;
    if (in->tls != NULL)
        (void)mu__tls_flush(in->tls, &in->stream.stream);
    if (!in->member)
        report_refused(in, reason);
    in_close(in);
    if (!greeted)
        return;
    wire->news = true;
    wire->events.in_down(wire->owner, number, reason);
}

void mu__in_end(struct mu__unproven_entry *entry, const char *reason)
{
    in_lost(MU__LIST_ENTRY(entry, struct in, unproven), reason);
}

void mu__in_member(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct in *in = mu__map_get(&wire->ins, number);

    if (in == NULL)
        return;
    in->member = true;
    mu__unproven_prove(&wire->accepting.unproven, &in->unproven);
}

void mu__in_drop(struct mu__wire *door, uint32_t number)
{
    struct in *in = mu__map_get(&((struct mu__wire_uv *)door)->ins, number);

    if (in != NULL)
        in_close(in);
}

/* Who was let in over a unix socket or plain tcp may do everything. */
void mu__in_proof(struct mu__wire *door, uint32_t number, struct mu__proof *ret_proof)
{
    const struct in *in = mu__map_get(&((struct mu__wire_uv *)door)->ins, number);

    *ret_proof = (struct mu__proof){.right = MU__RIGHT_ALL};
    if (in != NULL && in->tls != NULL)
        mu__tls_proof(in->tls, ret_proof);
}

void mu__in_peer(struct mu__wire *door, uint32_t number, char *ret_address, size_t size)
{
    struct in *in = mu__map_get(&((struct mu__wire_uv *)door)->ins, number);
    struct sockaddr_storage name = {.ss_family = AF_UNIX};
    int name_size = sizeof name;

    ret_address[0] = '\0';
    if (in == NULL)
        return;
    if (in->stream.handle.type == UV_TCP &&
        uv_tcp_getpeername(&in->stream.tcp, (struct sockaddr *)&name, &name_size) != 0)
        mu__source_words(&in->unproven.source, ret_address, size);  /* it has gone */
    else
        mu__address_words((struct sockaddr *)&name, ret_address, size);
}

static void address_of(const struct sockaddr_storage *name, char *ret_host, size_t size)
{
    if (uv_ip_name((const struct sockaddr *)name, ret_host, size) != 0)
        ret_host[0] = '\0';
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "::ffff:127.", 11) == 0;
}

/* Loopback, or the same address at both ends. */
bool mu__in_is_near(struct mu__wire *door, uint32_t number)
{
    struct in *in = mu__map_get(&((struct mu__wire_uv *)door)->ins, number);
    struct sockaddr_storage theirs = {0};
    struct sockaddr_storage ours = {0};
    int sizes[2] = {sizeof theirs, sizeof ours};
    char names[2][INET6_ADDRSTRLEN];

    if (in == NULL || in->stream.handle.type != UV_TCP)
        return in != NULL;
    if (uv_tcp_getpeername((uv_tcp_t *)&in->stream.handle, (struct sockaddr *)&theirs,
                           &sizes[0]) != 0 ||
        uv_tcp_getsockname((uv_tcp_t *)&in->stream.handle, (struct sockaddr *)&ours,
                           &sizes[1]) != 0)
        return false;
    address_of(&theirs, names[0], sizeof names[0]);
    address_of(&ours, names[1], sizeof names[1]);
    return names[0][0] != '\0' &&
           (is_loopback(names[0]) || strcmp(names[0], names[1]) == 0);
}

void mu__in_drop_all(struct mu__wire_uv *wire)
{
    for (size_t i = 0; wire->ins.count > 0; i = (i + 1) % wire->ins.capacity)
        if (wire->ins.entries[i].key != 0)
            in_close(wire->ins.entries[i].value);
}

/* ---- reading ---- */

static void pause_in(struct in *in)
{
    if (in->paused)
        return;
    in->paused = true;
    mu__list_append(&in->wire->paused_ins, &in->paused_node);
    (void)uv_read_stop(&in->stream.stream);
    mu__wire_uv_resume_later(in->wire);
}

/* Deliver a whole frame; false: the connection is paused or closing. */
static bool deliver_frame(struct in *in)
{
    struct mu__wire_uv *wire = in->wire;
    struct mu__buf *frame = in->frame;
    bool more;

    in->frame = NULL;
    in->head_size = 0;
    wire->news = true;
    more = wire->events.frame(wire->owner, in->number, frame);
    mu__buf_unref(frame);
    if (in->closing)
        return false;
    if (!more)
        pause_in(in);
    return more;
}

static size_t header_bytes(const struct in *in)
{
    return in->wire->url.ipc ? MU__SP_HEADER_MAX : MU__SP_HEADER_MAX - 1;
}

/* A header is complete: check it, and allocate the frame. */
static bool begin_frame(struct in *in)
{
    const uint8_t *at = in->head;
    uint64_t size = 0;

    if (in->wire->url.ipc && *at++ != 1) {
        in_lost(in, "it sent bytes that are no message");
        return false;
    }
    for (int i = 0; i < 8; i++)
        size = size << 8 | at[i];
    if (size > (in->member ? MU__FRAME_BYTES_MAX : MU__UNPROVEN_BYTES_MAX)) {
        in_lost(in, in->member ? "it sent a frame larger than the limit"
                               : "it sent a large frame before it had proven itself");
        return false;
    }
    in->frame = mu__buf_new((size_t)size);
    if (in->frame == NULL) {
        in_lost(in, "out of memory for its frame");
        return false;
    }
    in->frame_size = (uint32_t)size;
    in->expects_large = size >= LARGE_BYTES_MIN;
    return true;
}

static bool check_greeting(struct in *in)
{
    if (!mu__greeting_is(in->head, MU__SP_PUSH)) {
        in_lost(in, "no muster node");
        return false;
    }
    in->greeted = true;
    in->head_size = 0;
    return true;
}

/* Copy bytes that a greeting or a header still lacks; returns how many. */
static size_t fill_head(struct in *in, const uint8_t *data, size_t size,
                        size_t needed)
{
    size_t taken = needed - in->head_size;

    if (taken > size)
        taken = size;
    memcpy(in->head + in->head_size, data, taken);
    in->head_size += (unsigned)taken;
    return taken;
}

static size_t fill_frame(struct in *in, const uint8_t *data, size_t size)
{
    size_t taken = in->frame_size - in->frame->size;

    if (taken > size)
        taken = size;
    memcpy(in->frame->data + in->frame->size, data, taken);
    in->frame->size += (uint32_t)taken;
    return taken;
}

/* Returns how many bytes were used: all, unless the connection is paused or closing. */
static size_t consume(struct in *in, const uint8_t *data, size_t size)
{
    size_t used = 0;

    for (;;) {
        size_t needed = in->greeted ? header_bytes(in) : MU__SP_GREETING_BYTES;

        if (in->frame != NULL && in->frame->size == in->frame_size && !deliver_frame(in))
            return used;
        if (used == size && in->frame == NULL)
            return used;
        if (in->frame != NULL) {
            used += fill_frame(in, data + used, size - used);
            if (in->frame->size < in->frame_size)
                return used;
            continue;
        }
        used += fill_head(in, data + used, size - used, needed);
        if (in->head_size < needed)
            return used;
        if (in->greeted ? !begin_frame(in) : !check_greeting(in))
            return used;
    }
}

static void keep_left(struct in *in, const uint8_t *data, size_t size)
{
    uint8_t *left;

    if (in->closing || size == 0)
        return;
    left = malloc(size);
    if (left == NULL) {
        in_lost(in, "out of memory");
        return;
    }
    memcpy(left, data, size);
    free(in->left);
    in->left = left;
    in->left_size = size;
}

/* What a frame lacks is enough to be read straight into it. */
static bool is_direct(const struct in *in)
{
    return in->frame != NULL && in->frame_size - in->frame->size >= DIRECT_BYTES_MIN;
}

/* How much is read into scratch memory at a time. */
static size_t read_bytes(const struct in *in)
{
    if (!in->member)
        return MU__UNPROVEN_BYTES_MAX - in->left_size;
    return in->tls == NULL && in->expects_large ? PEEK_BYTES : MU__WIRE_SCRATCH_BYTES;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct in *in = (struct in *)handle;
    struct mu__buf *frame = in->frame;

    (void)suggested;
    if (in->tls == NULL && is_direct(in))
        *buf = uv_buf_init((char *)frame->data + frame->size,
                           in->frame_size - frame->size);
    else
        *buf = uv_buf_init((char *)in->wire->scratch, (unsigned)read_bytes(in));
}

/* ---- TLS ---- */

static void send_greeting(struct in *in);

/* The next bytes that the peer has said in its session; false: there are none for now,
 * none are wanted, or the connection has ended. */
static bool take_record(struct in *in)
{
    bool direct = is_direct(in);
    uint8_t *at = direct ? in->frame->data + in->frame->size : in->wire->plain;
    int size = mu__tls_read(in->tls, at,
                            direct ? in->frame_size - in->frame->size
                            : in->member ? sizeof in->wire->plain
                                         : MU__UNPROVEN_BYTES_MAX);
    size_t used;

    if (size < 0)
        in_lost(in, size == -MU_ECANCELLED ? closed_words : mu__tls_why(in->tls));
    if (size <= 0)
        return false;
    if (direct) {
        in->frame->size += (uint32_t)size;
        (void)consume(in, at, 0);
    } else {
        used = consume(in, at, (size_t)size);
        keep_left(in, at + used, (size_t)size - used);
    }
    return !in->closing && !in->paused;
}

/* Of this thread. */
static uint64_t processor_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Of a connection that has ended, too, what is to be said goes out: why. */
static void take_open_records(struct in *in)
{
    bool was_open = mu__tls_is_open(in->tls);

    while (take_record(in))
        continue;
    if (!was_open && mu__tls_is_open(in->tls) && !in->closing)
        send_greeting(in);
    if (in->closing)
        return;
    if (mu__tls_flush(in->tls, &in->stream.stream) != 0 ||
        !mu__tls_keep_input(in->tls))
        in_lost(in, "out of memory");
}

static void take_records(struct in *in)
{
    uint64_t began_us;

    if (in->member) {
        take_open_records(in);
        return;
    }
    began_us = processor_us();
    take_open_records(in);
    if (!in->member)
        mu__unproven_spend(&in->wire->accepting.unproven, &in->unproven,
                           processor_us() - began_us);
}

/* `data` behind what was kept of the ClientHello; false: the connection has ended. */
static bool join_left(struct in *in, const uint8_t *data, size_t size)
{
    uint8_t *joined = realloc(in->left, in->left_size + size);

    if (joined == NULL) {
        in_lost(in, "out of memory");
        return false;
    }
    memcpy(joined + in->left_size, data, size);
    in->left = joined;
    in->left_size += size;
    return true;
}

static void begin_session(struct in *in, const uint8_t *data, size_t size)
{
    struct mu__wire_uv *wire = in->wire;

    if (!mu__unproven_has_time(&wire->accepting.unproven, uv_now(wire->loop))) {
        in_lost(in, "the TLS handshakes of others that had not proven themselves have "
                    "taken too much time");
        return;
    }
    mu__accepting_begin_session(wire, &in->unproven);
    in->tls = mu__tls_new(wire->tls->now(wire->tls->owner), true, MU__RIGHT_ALL);
    if (in->tls != NULL && mu__tls_receive(in->tls, data, size))
        take_records(in);
    else
        in_lost(in, "out of memory");
}

static void take_client_hello(struct in *in, const uint8_t *data, size_t size)
{
    uint8_t *left;

    if (in->left_size == 0 && mu__client_hello_is_decided(data, size)) {
        begin_session(in, data, size);
        return;
    }
    if (!join_left(in, data, size))
        return;
    if (mu__client_hello_is_decided(in->left, in->left_size)) {
        left = in->left;
        size = in->left_size;
        in->left = NULL;
        in->left_size = 0;
        begin_session(in, left, size);
        free(left);
    } else if (in->left_size == MU__UNPROVEN_BYTES_MAX) {
        in_lost(in, "its TLS ClientHello is too large");
    }
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct in *in = (struct in *)stream;
    const uint8_t *data = (const uint8_t *)buf->base;
    size_t used;

    if (size == 0)
        return;
    if (size < 0) {
        in_lost(in, size == UV_EOF ? closed_words : uv_strerror((int)size));
        return;
    }
    if (in->secured && in->tls == NULL) {
        take_client_hello(in, data, (size_t)size);
        return;
    }
    if (in->tls != NULL) {
        if (mu__tls_receive(in->tls, data, (size_t)size))
            take_records(in);
        else
            in_lost(in, "out of memory");
        return;
    }
    if (data == in->wire->scratch) {
        used = consume(in, data, (size_t)size);
        keep_left(in, data + used, (size_t)size - used);
        return;
    }
    in->frame->size += (uint32_t)size;
    (void)consume(in, data, 0);
}

/* ---- pauses ---- */

static void in_resume(struct in *in)
{
    uint8_t *left = in->left;
    size_t size = in->left_size;
    size_t used;

    in->left = NULL;
    in->left_size = 0;
    used = consume(in, left, size);
    keep_left(in, left + used, size - used);
    free(left);
    if (in->tls != NULL && !in->closing && !in->paused)
        take_records(in);
    if (!in->closing && !in->paused)
        (void)uv_read_start(&in->stream.stream, on_alloc, on_read);
}

void mu__in_resume_paused(struct mu__wire_uv *wire)
{
    struct in *in;
    unsigned count = 0;

    for (struct mu__list_node *node = wire->paused_ins.first; node != NULL;
         node = node->next)
        count++;
    while (count-- > 0 &&
           (in = MU__LIST_FIRST(&wire->paused_ins, struct in, paused_node)) != NULL) {
        forget_paused(in);
        if (!in->held)
            in_resume(in);
    }
}

/* A connection that is not held any more goes on like one that has paused. */
void mu__in_hold(struct mu__wire *door, uint32_t number, bool is_held)
{
    struct in *in = mu__map_get(&((struct mu__wire_uv *)door)->ins, number);

    if (in == NULL || in->held == is_held)
        return;
    in->held = is_held;
    if (is_held)
        (void)uv_read_stop(&in->stream.stream);
    else
        pause_in(in);
}

/* ---- accepting ---- */

static void on_greeting_written(uv_write_t *request, int status)
{
    (void)request;
    (void)status;   /* the reading side sees a broken connection too */
}

static void send_greeting(struct in *in)
{
    uv_buf_t buf = uv_buf_init((char *)in->greeting, sizeof in->greeting);
    int rv;

    mu__greeting_write(in->greeting, MU__SP_PULL);
    if (in->tls != NULL)
        rv = mu__tls_write(in->tls, in->greeting, sizeof in->greeting);
    else
        rv = uv_write(&in->greeting_request, &in->stream.stream, &buf, 1,
                      on_greeting_written);
    if (rv != 0)
        in_close(in);
}

/* With TLS the greeting follows when the peer has proven itself. */
static void greet(struct in *in)
{
    char why[MU__PEER_USER_BYTES];

    if (in->wire->url.ipc && in->wire->tls != NULL &&
        !mu__peer_is_user(&in->stream, why, sizeof why)) {
        in_lost(in, why);
        return;
    }
    if (!in->wire->url.ipc)
        (void)uv_tcp_nodelay(&in->stream.tcp, 1);
    if (!in->secured)
        send_greeting(in);
    if (!in->closing && uv_read_start(&in->stream.stream, on_alloc, on_read) != 0)
        in_close(in);
}

void mu__in_accept(struct mu__wire_uv *wire, int fd, const struct mu__source *source)
{
    bool is_ipc = wire->url.ipc;
    struct in *in = calloc(1, sizeof *in);

    if (in == NULL || mu__stream_init(wire->loop, is_ipc, &in->stream) != 0) {
        (void)close(fd);
        free(in);
        return;
    }
    in->wire = wire;
    in->number = ++wire->in_next;
    in->secured = !is_ipc && wire->tls != NULL;
    in->stream.handle.data = in;
    mu__wire_uv_hold(wire);
    mu__accepting_wait(wire, &in->unproven, source);
    if ((is_ipc ? uv_pipe_open(&in->stream.pipe, fd)
                : uv_tcp_open(&in->stream.tcp, fd)) != 0) {
        (void)close(fd);
        in_close(in);
    } else if (mu__map_set(&wire->ins, in->number, in) != 0) {
        in_close(in);
    } else {
        greet(in);
    }
}
