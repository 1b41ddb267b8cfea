/* One outgoing connection, dialled again after each loss until hangup.
 *
 * Each attempt is a round of dialling (dialling.h). Between two rounds an out waits,
 * with a back-off, and each round looks the name up anew.
 *
 * Memory. A connection outlives its out until its handle is closed; requests under way
 * (a round that was cancelled, writes) hold the memory that they need. After calling an
 * event, neither the out nor the connection is accessed. */
#include "transport/wire/uv/dialling.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 2000,
    STABLE_MS = 1000,           /* after being up so long it is dialled again at once */
    ERROR_BYTES = 1024,
    WAITING_BYTES_MAX = 4 << 20, /* with more not taken by the system: -MU_EAGAIN */
    WAITING_BYTES_LOW = 1 << 20, /* `writable` comes when so many are left */
    OUTPUT_BYTES = 512 << 10    /* of TLS, given to the system at a time */
};

struct out {
    struct mu__wire_uv *wire;
    uint32_t number;
    struct mu__url url;
    enum mu__right shown;       /* whose key is shown */
    const struct mu__dial_tried *tried; /* addresses to try last; borrowed; NULL: none */
    uint32_t address_number;    /* while up: of the address that it is connected to */
    unsigned addresses_count;   /* while up: of the name */
    bool blocked;               /* `writable` follows */
    struct mu__connection *connection;  /* NULL: not up */
    struct mu__dialling *dialling;      /* NULL: up, or waiting */
    uv_timer_t timer;           /* until the next attempt */
    unsigned backoff_ms;
    uint64_t up_since_ms;
    char *last_error;           /* owned; NULL: nothing is known */
};

/* A frame that the system did not take at once. */
struct write {
    uv_write_t request;         /* first: the request casts */
    struct mu__connection *connection;
    struct mu__buf *frame;
};

/* ---- connections ---- */

static void on_connection_closed(uv_handle_t *handle)
{
    struct mu__wire_uv *wire = handle->data;

    mu__connection_free((struct mu__connection *)handle);
    mu__wire_uv_drop_hold(wire);
}

static void close_connection(struct out *out)
{
    if (out->connection == NULL)
        return;
    out->connection->owner = NULL;
    uv_close(&out->connection->stream.handle, on_connection_closed);
    out->connection = NULL;
}

/* ---- failing ---- */

static void attempt(struct out *out);

static void on_retry(uv_timer_t *timer)
{
    attempt(timer->data);
}

/* A connection that was stable is dialled again at once; others after a growing delay, so
 * that a peer that refuses us is not flooded. */
static void retry_later(struct out *out, bool was_stable)
{
    unsigned delay_ms = was_stable ? 0 : out->backoff_ms;

    out->backoff_ms = delay_ms == 0 ? BACKOFF_MIN_MS : delay_ms * 2;
    if (out->backoff_ms > BACKOFF_MAX_MS)
        out->backoff_ms = BACKOFF_MAX_MS;
    (void)uv_timer_start(&out->timer, on_retry, delay_ms, 0);
}

static void set_last_error(struct out *out, const char *words)
{
    free(out->last_error);
    out->last_error = words == NULL ? NULL : strdup(words);
}

/* The attempt failed, or the connection is lost. */
static void fail(struct out *out, const char *reason)
{
    struct mu__wire_uv *wire = out->wire;
    bool was_up = out->connection != NULL;
    bool was_stable = was_up && uv_now(wire->loop) - out->up_since_ms >= STABLE_MS;

    close_connection(out);
    out->blocked = false;
    set_last_error(out, reason);
    retry_later(out, was_stable);
    if (!was_up)
        return;
    wire->news = true;
    wire->events.out_down(wire->owner, out->number, reason);
}

/* ---- attempts ---- */

/* After its greeting the peer sends nothing: reading only detects its end. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct mu__wire_uv *wire = handle->data;
    bool is_plain = ((struct mu__connection *)handle)->tls == NULL;

    (void)suggested;
    *buf = uv_buf_init((char *)wire->scratch, is_plain ? 1 : sizeof wire->scratch);
}

/* Sessions have something to say to each other now and then; NULL: that was all. */
static const char *hear_session(struct mu__connection *connection, const void *data,
                                size_t size)
{
    char heard;
    int rv;

    if (!mu__tls_receive(connection->tls, data, size))
        return "out of memory";
    rv = mu__tls_read(connection->tls, &heard, 1);
    if (rv > 0)
        return "it speaks where it should listen";
    if (rv < 0)
        return rv == -MU_ECANCELLED ? "connection lost" : mu__tls_why(connection->tls);
    if (mu__tls_flush(connection->tls, &connection->stream.stream) != 0 ||
        !mu__tls_keep_input(connection->tls))
        return "out of memory";
    return NULL;
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct mu__connection *connection = (struct mu__connection *)stream;
    struct out *out = connection->owner;
    const char *reason =
        size < 0 ? "connection lost" : "it speaks where it should listen";

    if (out == NULL || size == 0)
        return;
    if (size > 0 && connection->tls != NULL)
        reason = hear_session(connection, buf->base, (size_t)size);
    if (reason != NULL)
        fail(out, reason);
}

static void on_won(void *owner, const struct mu__dialling *dialling,
                   struct mu__connection *connection)
{
    struct out *out = owner;
    struct mu__wire_uv *wire = out->wire;
    const struct mu__dial_try *tries =
        mu__dialling_tries(dialling, &out->addresses_count);

    out->address_number = mu__dial_address_number(&tries[connection->which]);
    out->dialling = NULL;
    out->connection = connection;
    out->up_since_ms = uv_now(wire->loop);
    connection->owner = out;
    connection->stream.handle.data = wire;
    mu__wire_uv_hold(wire);
    (void)uv_read_start(&connection->stream.stream, on_alloc, on_read);
    set_last_error(out, NULL);
    wire->news = true;
    wire->events.out_up(wire->owner, out->number);
}

/* The reasons of several addresses, each with its address. */
static void words_of(const struct mu__dialling *dialling, char *out)
{
    struct mu__dial_failure rows[MU__DIAL_ADDRESSES_MAX];
    char names[MU__DIAL_ADDRESSES_MAX][INET6_ADDRSTRLEN];
    unsigned count;
    const struct mu__dial_try *tries = mu__dialling_tries(dialling, &count);

    for (unsigned i = 0; i < count; i++) {
        mu__dial_name(&tries[i], names[i], sizeof names[i]);
        rows[i] = (struct mu__dial_failure){names[i], tries[i].why};
    }
    mu__dial_words(rows, count, out, ERROR_BYTES);
}

static void on_lost(void *owner, const struct mu__dialling *dialling)
{
    struct out *out = owner;
    char words[ERROR_BYTES];
    unsigned count;
    const struct mu__dial_try *tries = mu__dialling_tries(dialling, &count);

    out->dialling = NULL;
    if (count > 1)
        words_of(dialling, words);
    else if (count == 0)
        (void)snprintf(words, sizeof words, "no such host (%s)",
                       mu__dialling_no_name(dialling));
    fail(out, count == 1 ? tries[0].why : words);
}

static void on_closed(void *wire)
{
    mu__wire_uv_drop_hold(wire);
}

static void attempt(struct out *out)
{
    static const struct mu__dialling_events events = {on_won, on_lost, on_closed};
    const struct mu__dial_request request = {
        .loop = out->wire->loop,
        .blocking_jobs = out->wire->blocking_jobs,
        .url = &out->url,
        .tls = out->wire->tls,
        .shown = out->shown,
        .tried = out->tried,
        .timeout_ms = MU__DIAL_TIMEOUT_MS,
        .events = &events,
        .owner = out,
        .arg = out->wire,
    };

    if (mu__dialling_start(&request, &out->dialling) != 0)
        fail(out, "out of memory");
    else
        mu__wire_uv_hold(out->wire);
}

int mu__out_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct mu__url parsed;
    struct out *out;

    if (mu__map_get(&wire->outs, number) != NULL)
        return -MU_EEXISTS;
    if (mu__url_parse(url, false, &parsed) != NULL)
        return -MU_EINVALID;
    out = calloc(1, sizeof *out);
    if (out == NULL || mu__map_set(&wire->outs, number, out) != 0) {
        free(out);
        return -MU_ENOMEM;
    }
    out->wire = wire;
    out->number = number;
    out->url = parsed;
    out->shown = MU__RIGHT_ALL;
    out->backoff_ms = BACKOFF_MIN_MS;
    (void)uv_timer_init(wire->loop, &out->timer);
    out->timer.data = out;
    mu__wire_uv_hold(wire);
    (void)uv_timer_start(&out->timer, on_retry, 0, 0);
    return 0;
}

void mu__out_avoid(struct mu__wire *door, uint32_t number,
                   const struct mu__dial_tried *tried)
{
    struct out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);

    if (out != NULL)
        out->tried = tried;
}

void mu__out_show(struct mu__wire *door, uint32_t number, enum mu__right right)
{
    struct out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);

    if (out != NULL)
        out->shown = right;
}

enum mu__right mu__out_own_right(struct mu__wire *door, uint32_t number)
{
    const struct out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);

    if (out == NULL || out->connection == NULL || out->connection->tls == NULL)
        return MU__RIGHT_ALL;
    return mu__tls_own_right(out->connection->tls);
}

uint32_t mu__out_address(struct mu__wire *door, uint32_t number, unsigned *ret_count)
{
    const struct out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);

    if (out == NULL || out->connection == NULL)
        return 0;
    *ret_count = out->addresses_count;
    return out->address_number;
}

static void on_out_closed(uv_handle_t *handle)
{
    struct out *out = handle->data;
    struct mu__wire_uv *wire = out->wire;

    free(out->last_error);
    free(out);
    mu__wire_uv_drop_hold(wire);
}

void mu__out_hangup(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct out *out = mu__map_remove(&wire->outs, number);

    if (out == NULL)
        return;
    close_connection(out);
    if (out->dialling != NULL)
        mu__dialling_cancel(out->dialling);
    uv_close((uv_handle_t *)&out->timer, on_out_closed);
}

void mu__out_hangup_all(struct mu__wire_uv *wire)
{
    for (size_t i = 0; wire->outs.count > 0; i = (i + 1) % wire->outs.capacity)
        if (wire->outs.entries[i].key != 0)
            mu__out_hangup(&wire->door, (uint32_t)wire->outs.entries[i].key);
}

const char *mu__out_last_error(struct mu__wire *door, uint32_t number)
{
    const struct out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);

    return out == NULL ? NULL : out->last_error;
}

/* ---- sending ---- */

static void on_written(uv_write_t *request, int status)
{
    struct write *write = (struct write *)request;
    struct mu__connection *connection = write->connection;
    struct out *out = connection->owner;

    mu__buf_unref(write->frame);
    free(write);
    if (out == NULL || status != 0)
        return;     /* the reading side sees a broken connection too */
    if (!out->blocked ||
        uv_stream_get_write_queue_size(&connection->stream.stream) > WAITING_BYTES_LOW)
        return;
    out->blocked = false;
    out->wire->news = true;
    out->wire->events.writable(out->wire->owner, out->number);
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
    gathered->bufs[gathered->count++] = uv_buf_init((void *)(uintptr_t)data,
                                                    (unsigned)size);
    gathered->bytes += size;
}

/* `data` is the frame's data, or its header right before them. */
static void gather(const struct mu__buf *frame, const uint8_t *data,
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

/* Write the header into the headroom, right before the frame's bytes. */
static const uint8_t *write_header(const struct out *out, struct mu__buf *frame)
{
    size_t header = out->url.ipc ? MU__SP_HEADER_MAX : MU__SP_HEADER_MAX - 1;
    uint8_t *at = frame->data - header;
    uint64_t size = mu__buf_total(frame);

    if (out->url.ipc)
        *at++ = 1;
    for (int i = 7; i >= 0; i--) {
        at[i] = (uint8_t)size;
        size >>= 8;
    }
    return frame->data - header;
}

static void on_out_of_memory(uv_timer_t *timer)
{
    fail(timer->data, "out of memory");
}

static int write_rest(struct mu__connection *connection, struct mu__buf *frame,
                      const struct gathered *rest)
{
    struct write *write = malloc(sizeof *write);

    if (write == NULL)
        return -MU_ENOMEM;
    write->connection = connection;
    write->frame = frame;
    if (uv_write(&write->request, &connection->stream.stream, rest->bufs, rest->count,
                 on_written) == 0)
        return 0;
    free(write);
    return -MU_ENOMEM;
}

/* Bytes that the system does not take at once are written later, in order. Takes
 * `owner`, whose bytes these are, when 0 is returned. */
static int write_gathered(struct out *out, struct mu__buf *owner,
                          struct gathered *gathered)
{
    int written = uv_try_write(&out->connection->stream.stream, gathered->bufs,
                               gathered->count);

    if (written < 0)
        written = 0;    /* full, or broken, which the reading side will see */
    if ((size_t)written == gathered->bytes) {
        mu__buf_unref(owner);
        return 0;
    }
    gather_skip(gathered, (size_t)written);
    if (write_rest(out->connection, owner, gathered) == 0)
        return 0;
    /* A part of the frame may have been sent: the connection cannot be used any more. */
    (void)uv_timer_start(&out->timer, on_out_of_memory, 0, 0);
    return -MU_ENOMEM;
}

static int write_output(struct out *out)
{
    struct mu__buf *output = mu__tls_output(out->connection->tls);
    struct gathered gathered = {.count = 0};
    int rv;

    if (output == NULL)
        return 0;
    gather_add(&gathered, output->data, output->size);
    rv = write_gathered(out, output, &gathered);
    if (rv != 0)
        mu__buf_unref(output);
    return rv;
}

/* Through the session, and to the system some records at a time. */
static int write_secured(struct out *out, const struct gathered *gathered)
{
    struct mu__tls *tls = out->connection->tls;

    for (unsigned i = 0; i < gathered->count; i++)
        for (size_t at = 0; at < gathered->bufs[i].len; at += OUTPUT_BYTES) {
            size_t left = gathered->bufs[i].len - at;
            int rv = mu__tls_write(tls, gathered->bufs[i].base + at,
                                   left < OUTPUT_BYTES ? left : OUTPUT_BYTES);

            if (rv == 0 && mu__tls_output_bytes(tls) >= OUTPUT_BYTES)
                rv = write_output(out);
            if (rv != 0)
                return rv;
        }
    return write_output(out);
}

/* Takes `frame` when 0 is returned. */
static int write_frame(struct out *out, struct mu__buf *frame)
{
    struct gathered gathered;

    gather(frame, write_header(out, frame), &gathered);
    if (out->connection->tls == NULL)
        return write_gathered(out, frame, &gathered);
    if (write_secured(out, &gathered) != 0) {
        (void)uv_timer_start(&out->timer, on_out_of_memory, 0, 0);
        return -MU_ENOMEM;
    }
    mu__buf_unref(frame);
    return 0;
}

int mu__out_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);
    struct mu__buf *sent;
    int rv;

    assert(mu__buf_total(frame) <= MU__FRAME_BYTES_MAX);
    if (out == NULL || out->connection == NULL)
        return -MU_EUNAVAILABLE;
    if (uv_stream_get_write_queue_size(&out->connection->stream.stream) >
        WAITING_BYTES_MAX) {
        out->blocked = true;
        return -MU_EAGAIN;
    }
    sent = mu__frame_with_headroom(frame);
    if (sent == NULL)
        return -MU_ENOMEM;
    rv = write_frame(out, sent);
    if (sent != frame)
        mu__buf_unref(rv == 0 ? frame : sent);
    return rv;
}
