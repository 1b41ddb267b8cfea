/* Any bytes, in any pieces, on a new connection to the libuv wire: exactly the frames
 * that they spell are delivered, however they are cut, and then the connection ends.
 *
 * The first byte says whether the wire speaks TLS, whether its owner lets the connection
 * in at its first frame, and whether it asks for pauses; then pieces, a byte for the size
 * of each before it (0: 256 bytes). */
#include "tests/fuzz/tls_fuzzing.h"
#include "transport/wire/uv/internal.h"

#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAM_BYTES_MAX = 1 << 16, TURNS_MAX = 1 << 16 };

struct listener {
    struct mu__wire_uv *wire;
    bool lets_in;
    bool pauses;
    unsigned frames;
    uint64_t bytes;
};

static bool on_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    struct listener *listener = owner;
    struct mu__wire *wire = mu__wire_uv_wire(listener->wire);

    if (listener->lets_in && listener->frames == 0)
        wire->ops->member(wire, connection);
    listener->frames++;
    listener->bytes += frame->size;
    return !listener->pauses;
}

static void on_down(void *owner, uint32_t connection, const char *reason)
{
    (void)owner;
    (void)connection;
    must(reason[0] != '\0', "a reason");
}

static void on_burst_end(void *owner)
{
    (void)owner;
}

static struct mu__tls_identity *identity_now(void *owner)
{
    (void)owner;
    return identities[OF_KEY];
}

static uv_loop_t loop;

/* Once each. They stay until the process ends. */
static void make_listener(struct listener *listener, bool is_secured)
{
    static const struct mu__tls_source source = {identity_now, NULL};
    static const struct mu__wire_events events = {
        .frame = on_frame, .down = on_down, .burst_end = on_burst_end};

    if (listener->wire != NULL)
        return;
    must(mu__wire_uv_open(&loop, "tcp://127.0.0.1:0", &events, listener, NULL,
                          &listener->wire) == 0,
         "a wire");
    if (is_secured)
        mu__wire_uv_secure(listener->wire, &source);
}

/* ---- what the bytes spell ---- */

struct stream {
    uint8_t bytes[STREAM_BYTES_MAX];
    size_t size;
};

static void spell(const struct stream *stream, bool lets_in, struct listener *ret_all)
{
    uint64_t most = MU__UNPROVEN_BYTES_MAX;
    size_t at = MU__SP_GREETING_BYTES;

    *ret_all = (struct listener){.frames = 0};
    if (stream->size < at || !mu__sp_is_greeting(stream->bytes, MU__SP_DIALS))
        return;
    while (stream->size - at >= 8 + MU__SP_PREFACE_BYTES) {
        struct mu__sp_preface preface;
        uint64_t size = 0;

        for (int i = 0; i < 8; i++)
            size = size << 8 | stream->bytes[at++];
        if (size < MU__SP_PREFACE_BYTES || !mu__sp_read(stream->bytes + at, &preface))
            return;
        at += MU__SP_PREFACE_BYTES;
        size -= MU__SP_PREFACE_BYTES;
        if (preface.is_note && size == 0)
            continue;
        if (preface.is_note || size > most || size > stream->size - at)
            return;
        at += (size_t)size;
        ret_all->frames++;
        ret_all->bytes += size;
        if (lets_in)
            most = MU__FRAME_BYTES_MAX;
    }
}

/* ---- one connection ---- */

static void run_until_over(const struct listener *listener)
{
    for (int turn = 0; listener->wire->connections.count > 0; turn++) {
        must(turn < TURNS_MAX, "the connection ends");
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

/* Pieces that nobody reads any more are left out. */
static void say(int fd, const struct listener *listener, const uint8_t *data, size_t size)
{
    if (listener->wire->connections.count > 0)
        (void)send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct listener listeners[2];
    static struct stream stream;
    const struct mu__source near = {.is_limited = false};
    bool is_secured = size > 0 && (data[0] & 1) != 0;
    struct listener *listener = &listeners[is_secured];
    struct listener all;
    int ends[2];

    make_identities();
    if (loop.data == NULL)
        must(uv_loop_init(&loop) == 0, "a loop");
    loop.data = listeners;
    make_listener(listener, is_secured);
    if (size == 0)
        return 0;
    listener->lets_in = (data[0] & 2) != 0;
    listener->pauses = (data[0] & 4) != 0;
    listener->frames = 0;
    listener->bytes = 0;
    stream.size = 0;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
         "a connection");
    mu__connection_accept(listener->wire, ends[0], &near);
    for (size_t at = 1; at < size;) {
        size_t part = data[at] == 0 ? 256 : data[at];

        if (part > size - at - 1)
            part = size - at - 1;
        if (part > sizeof stream.bytes - stream.size)
            break;
        memcpy(stream.bytes + stream.size, data + at + 1, part);
        stream.size += part;
        say(ends[1], listener, data + at + 1, part);
        at += 1 + part;
    }
    (void)shutdown(ends[1], SHUT_WR);
    run_until_over(listener);
    (void)close(ends[1]);
    spell(&stream, listener->lets_in, &all);
    if (!is_secured)
        must(listener->frames == all.frames && listener->bytes == all.bytes,
             "the frames that were sent");
    else
        must(listener->frames == 0, "nobody is heard without a proof");
    return 0;
}
