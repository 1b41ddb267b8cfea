/* The outgoing side of a connection: frames, each behind its header, as they are where
 * the system takes them at once, and later where it does not. With TLS through its
 * session. */
#include "transport/wire/uv/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAITING_BYTES_MAX = 4 << 20, /* with more not taken by the system: -MU_EAGAIN */
    WAITING_BYTES_LOW = 1 << 20, /* `writable` comes when so many are left */
    OUTPUT_BYTES = 512 << 10     /* of TLS, given to the system at a time */
};

/* A frame that the system did not take at once. */
struct write {
    uv_write_t request; /* first: the request casts */
    struct mu__connection *connection;
    struct mu__buf *frame;
};

static void on_frame_written(uv_write_t *request, int status)
{
    struct write *write = (struct write *)request;
    struct mu__connection *c = write->connection;

    mu__buf_unref(write->frame);
    free(write);
    if (c->is_closing || status != 0)
        return; /* the reading side sees a broken connection too */
    if (!c->is_blocked ||
        uv_stream_get_write_queue_size(&c->stream.stream) > WAITING_BYTES_LOW)
        return;
    c->is_blocked = false;
    c->wire->news = true;
    c->wire->events.writable(c->wire->owner, c->number);
}

/* A frame for the system's gathering write: its own bytes and its splices, in order. */
struct gathered {
    uv_buf_t bufs[2 * MU__SPLICES_MAX + 1];
    unsigned count;
    size_t bytes;
};

static void gather_add(struct gathered *gathered, const void *data, size_t size)
{
    if (size == 0)
        return;
    gathered->bufs[gathered->count++] =
        uv_buf_init((void *)(uintptr_t)data, (unsigned)size);
    gathered->bytes += size;
}

/* `data` is the frame's data, or its header right before them. */
static void gather_frame(const struct mu__buf *frame, const uint8_t *data,
                         struct gathered *gathered)
{
    const struct mu__splices *splices = frame->splices;

    gathered->count = 0;
    gathered->bytes = 0;
    for (uint32_t i = 0; i < splices->count; i++) {
        const struct mu__splice *splice = &splices->items[i];

        gather_add(gathered, data, (size_t)(frame->data + splice->at - data));
        gather_add(gathered, splice->data, splice->size);
        data = frame->data + splice->at;
    }
    gather_add(gathered, data, (size_t)(frame->data + frame->size - data));
}

/* Remove the first `bytes`. */
static void gather_skip(struct gathered *gathered, size_t bytes)
{
    unsigned first = 0;

    gathered->bytes -= bytes;
    while (first < gathered->count && bytes >= gathered->bufs[first].len)
        bytes -= gathered->bufs[first++].len;
    gathered->count -= first;
    memmove(gathered->bufs, gathered->bufs + first,
            gathered->count * sizeof gathered->bufs[0]);
    if (gathered->count == 0)
        return;
    gathered->bufs[0].base += bytes;
    gathered->bufs[0].len -= bytes;
}

size_t mu__sp_header(struct mu__connection *c, bool is_note, uint64_t size,
                     uint8_t out[MU__SP_HEADER_MAX])
{
    struct mu__sp_preface preface = {.is_note = is_note};
    uint8_t *at = out;

    size += MU__SP_PREFACE_BYTES;
    if (c->is_ipc)
        *at++ = 1;
    for (int i = 7; i >= 0; i--) {
        at[i] = (uint8_t)size;
        size >>= 8;
    }
    mu__sp_say(&c->in.taken, &preface);
    mu__sp_write(at + 8, &preface);
    return (size_t)(at - out) + 8 + MU__SP_PREFACE_BYTES;
}

/* Write the header into the headroom, right before the frame's bytes. */
static const uint8_t *write_header(struct mu__connection *c, struct mu__buf *frame)
{
    size_t size = c->is_ipc ? MU__SP_HEADER_MAX : MU__SP_HEADER_MAX - 1;

    (void)mu__sp_header(c, false, mu__buf_total(frame), frame->data - size);
    return frame->data - size;
}

/* A part of a frame may have been sent: the connection cannot be used any more. */
static int break_connection(struct mu__connection *c)
{
    c->is_broken = true;
    mu__reading_pause(c);
    return -MU_ENOMEM;
}

static int write_frame_rest(struct mu__connection *connection, struct mu__buf *frame,
                            const struct gathered *rest)
{
    struct write *write = malloc(sizeof *write);

    if (write == NULL)
        return -MU_ENOMEM;
    write->connection = connection;
    write->frame = frame;
    if (uv_write(&write->request, &connection->stream.stream, rest->bufs, rest->count,
                 on_frame_written) == 0)
        return 0;
    free(write);
    return -MU_ENOMEM;
}

/* Bytes that the system does not take at once are written later, in order. Takes
 * `owner`, whose bytes these are, when 0 is returned. */
static int write_gathered(struct mu__connection *c, struct mu__buf *owner,
                          struct gathered *gathered)
{
    int written = uv_try_write(&c->stream.stream, gathered->bufs, gathered->count);

    if (written < 0)
        written = 0; /* full, or broken, which the reading side will see */
    if ((size_t)written == gathered->bytes) {
        mu__buf_unref(owner);
        return 0;
    }
    gather_skip(gathered, (size_t)written);
    if (write_frame_rest(c, owner, gathered) == 0)
        return 0;
    return break_connection(c);
}

static int write_output(struct mu__connection *c)
{
    struct mu__buf *output = mu__tls_output(c->tls);
    struct gathered gathered = {.count = 0};
    int rv;

    if (output == NULL)
        return 0;
    gather_add(&gathered, output->data, output->size);
    rv = write_gathered(c, output, &gathered);
    if (rv != 0)
        mu__buf_unref(output);
    return rv;
}

/* Through the session, and to the system some records at a time. */
static int write_secured(struct mu__connection *c, const struct gathered *gathered)
{
    struct mu__tls *tls = c->tls;

    for (unsigned i = 0; i < gathered->count; i++)
        for (size_t at = 0; at < gathered->bufs[i].len; at += OUTPUT_BYTES) {
            size_t left = gathered->bufs[i].len - at;
            int rv = mu__tls_write(tls, gathered->bufs[i].base + at,
                                   left < OUTPUT_BYTES ? left : OUTPUT_BYTES);

            if (rv == 0 && mu__tls_output_bytes(tls) >= OUTPUT_BYTES)
                rv = write_output(c);
            if (rv != 0)
                return rv;
        }
    return write_output(c);
}

/* Takes `frame` when 0 is returned. */
static int write_frame(struct mu__connection *c, struct mu__buf *frame)
{
    struct gathered gathered;

    gather_frame(frame, write_header(c, frame), &gathered);
    if (c->tls == NULL)
        return write_gathered(c, frame, &gathered);
    if (write_secured(c, &gathered) != 0)
        return break_connection(c);
    mu__buf_unref(frame);
    return 0;
}

int mu__writing_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct mu__connection *c = mu__connection_of(door, number);
    struct mu__buf *sent;
    int rv;

    assert(mu__buf_total(frame) <= MU__FRAME_BYTES_MAX);
    if (c == NULL || c->is_broken)
        return -MU_EUNAVAILABLE;
    if (uv_stream_get_write_queue_size(&c->stream.stream) > WAITING_BYTES_MAX) {
        c->is_blocked = true;
        return -MU_EAGAIN;
    }
    sent = mu__frame_with_headroom(frame);
    if (sent == NULL)
        return -MU_ENOMEM;
    rv = write_frame(c, sent);
    if (sent != frame)
        mu__buf_unref(rv == 0 ? frame : sent);
    return rv;
}

void mu__writing_note(struct mu__connection *c)
{
    uint8_t header[MU__SP_HEADER_MAX];
    size_t size = mu__sp_header(c, true, 0, header);
    struct mu__buf *note = c->is_broken ? NULL : mu__buf_new(size);
    struct gathered gathered = {.count = 0};
    int rv;

    if (note == NULL) {
        (void)break_connection(c);
        return;
    }
    memcpy(note->data, header, size);
    note->size = (uint32_t)size;
    gather_add(&gathered, note->data, size);
    if (c->tls == NULL) {
        rv = write_gathered(c, note, &gathered);
    } else {
        rv = write_secured(c, &gathered);
        mu__buf_unref(note);
    }
    if (rv != 0)
        (void)break_connection(c);
}
