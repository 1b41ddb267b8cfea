/* The listener, and what both kinds of connection stand on.
 *
 * Events are told where libuv tells them; burst_end once for all that one turn of the
 * loop brought, so that messages of many peers are answered in one go: right after
 * the poll, and right before the next for what timers and connections brought. */
#include "transport/inner_uv.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 512 };

struct mu__wire *mu__wire_uv_wire(struct mu__wire_uv *wire)
{
    return &wire->door;
}

const char *mu__wire_uv_url(const struct mu__wire_uv *wire)
{
    return wire->text;
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
    mu__map_done(&wire->ins);
    mu__map_done(&wire->outs);
    free(wire);
    if (closed != NULL)
        closed(arg);
}

static void on_closed(uv_handle_t *handle)
{
    mu__wire_uv_drop_hold(handle->data);
}

/* ---- bursts ---- */

static void end_burst(struct mu__wire_uv *wire)
{
    if (!wire->news || wire->closing)
        return;
    wire->news = false;
    uv_update_time(wire->loop);     /* as in world_uv.c: the turn is after what came */
    wire->events.burst_end(wire->owner);
}

static void on_before_poll(uv_prepare_t *prepare)
{
    end_burst(prepare->data);
}

static void on_after_poll(uv_check_t *check)
{
    end_burst(check->data);
}

static void on_resume(uv_idle_t *idle)
{
    struct mu__wire_uv *wire = idle->data;

    (void)uv_idle_stop(idle);
    mu__in_resume_paused(wire);
}

void mu__wire_uv_resume_later(struct mu__wire_uv *wire)
{
    (void)uv_idle_start(&wire->resume, on_resume);
}

/* ---- streams and greetings ---- */

int mu__stream_init(struct mu__wire_uv *wire, bool ipc, union mu__stream *stream)
{
    return ipc ? uv_pipe_init(wire->loop, &stream->pipe, 0)
               : uv_tcp_init(wire->loop, &stream->tcp);
}

void mu__greeting_write(uint8_t *out, uint8_t protocol)
{
    const uint8_t greeting[MU__SP_GREETING_BYTES] = {0, 'S', 'P', 0, 0, protocol, 0, 0};

    memcpy(out, greeting, sizeof greeting);
}

bool mu__greeting_is(const uint8_t *greeting, uint8_t protocol)
{
    uint8_t expected[MU__SP_GREETING_BYTES];

    mu__greeting_write(expected, protocol);
    return memcmp(greeting, expected, sizeof expected) == 0;
}

static void release_frame(struct mu__buf *buf)
{
    free(buf);
}

/* One malloc: the struct, the headroom, the bytes. */
struct mu__buf *mu__frame_buffer(struct mu__wire *door, size_t capacity)
{
    const size_t offset = (sizeof(struct mu__buf) + 15) / 16 * 16 + MU__SP_HEADROOM;
    struct mu__buf *buf;

    (void)door;
    if (capacity > MU__FRAME_BYTES_MAX)
        return NULL;
    buf = malloc(offset + capacity);
    if (buf == NULL)
        return NULL;
    *buf = (struct mu__buf){
        .data = (uint8_t *)buf + offset,
        .capacity = (uint32_t)capacity,
        .refs = 1,
        .release = release_frame,
    };
    return buf;
}

struct mu__buf *mu__frame_with_headroom(struct mu__buf *frame)
{
    struct mu__buf *copy;

    if (frame->release == release_frame)
        return frame;
    copy = mu__frame_buffer(NULL, frame->size);
    if (copy == NULL)
        return NULL;
    memcpy(copy->data, frame->data, frame->size);
    copy->size = frame->size;
    return copy;
}

/* ---- listening ---- */

static void on_connection(uv_stream_t *listener, int status)
{
    struct mu__wire_uv *wire = listener->data;

    if (status == 0 && !wire->closing)
        mu__in_accept(wire);
}

static const struct {
    int status;
    int code;
} refusals[] = {
    {UV_EADDRINUSE, -MU_EEXISTS},       {UV_EADDRNOTAVAIL, -MU_EINVALID},
    {UV_EACCES, -MU_EPERMISSION},       {UV_EPERM, -MU_EPERMISSION},
    {UV_ENOMEM, -MU_ENOMEM},            {UV_ENOENT, -MU_EINVALID},
    {UV_EAI_NONAME, -MU_EINVALID},      {UV_EAI_NODATA, -MU_EINVALID},
    {UV_ENOTDIR, -MU_EINVALID},
};

static int refused(const char *url, int status, mu_error *ret_error)
{
    int code = -MU_EUNAVAILABLE;

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].status == status)
            code = refusals[i].code;
    return mu_error_set(ret_error, code, "cannot listen at %s: %s", url,
                        uv_strerror(status));
}

/* Looked up at once: a node that does not know where it is cannot start. */
static int look_up(struct mu__wire_uv *wire, struct sockaddr_storage *ret_address)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE,
    };
    const char *host = strcmp(wire->url.host, "*") == 0 ? "0.0.0.0" : wire->url.host;
    uv_getaddrinfo_t request;
    char port[8];
    int rv;

    (void)snprintf(port, sizeof port, "%u", wire->url.port);
    rv = uv_getaddrinfo(wire->loop, &request, NULL, host, port, &hints);
    if (rv != 0)
        return rv;
    memset(ret_address, 0, sizeof *ret_address);
    memcpy(ret_address, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    uv_freeaddrinfo(request.addrinfo);
    return 0;
}

static void write_tcp_url(struct mu__wire_uv *wire)
{
    struct sockaddr_storage address;
    int size = sizeof address;
    unsigned port = wire->url.port;
    bool v6 = strchr(wire->url.host, ':') != NULL;

    if (uv_tcp_getsockname(&wire->listener.tcp, (struct sockaddr *)&address, &size) ==
        0) {
        const uint8_t *bytes = (const uint8_t *)&address;

        /* The port stands in the same place in both families. */
        port = (unsigned)bytes[2] << 8 | bytes[3];
    }
    (void)snprintf(wire->text, sizeof wire->text, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u",
                   wire->url.host, port);
}

static int listen_tcp(struct mu__wire_uv *wire)
{
    struct sockaddr_storage address;
    int rv = look_up(wire, &address);

    if (rv == 0)
        rv = uv_tcp_bind(&wire->listener.tcp, (const struct sockaddr *)&address, 0);
    if (rv == 0)
        rv = uv_listen(&wire->listener.stream, BACKLOG, on_connection);
    if (rv == 0)
        write_tcp_url(wire);
    return rv;
}

/* A socket file that nobody listens at any more is in the way of its successor. */
static bool is_stale(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bool stale;

    if (fd < 0)
        return false;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    stale = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
            uv_translate_sys_error(errno) == UV_ECONNREFUSED;
    (void)close(fd);
    return stale;
}

/* libuv says EACCES for this too. */
static bool has_directory(const char *path)
{
    char directory[MU__URL_PATH_MAX + 1];

    (void)snprintf(directory, sizeof directory, "%s", path);
    *(strrchr(directory, '/') + 1) = '\0';
    return access(directory, F_OK) == 0;
}

static int listen_ipc(struct mu__wire_uv *wire)
{
    const char *path = wire->url.path;
    int rv = has_directory(path) ? uv_pipe_bind(&wire->listener.pipe, path) : UV_ENOENT;

    if (rv == UV_EADDRINUSE && is_stale(path) && unlink(path) == 0)
        rv = uv_pipe_bind(&wire->listener.pipe, path);
    if (rv == 0)
        rv = uv_listen(&wire->listener.stream, BACKLOG, on_connection);
    (void)snprintf(wire->text, sizeof wire->text, "ipc://%s", path);
    return rv;
}

/* ---- life ---- */

static const struct mu__wire_ops ops = {
    .buffer = mu__frame_buffer,
    .dial = mu__out_dial,
    .hangup = mu__out_hangup,
    .send = mu__out_send,
    .drop = mu__in_drop,
    .last_error = mu__out_last_error,
};

static void init_handles(struct mu__wire_uv *wire)
{
    (void)uv_prepare_init(wire->loop, &wire->before_poll);
    (void)uv_check_init(wire->loop, &wire->after_poll);
    (void)uv_idle_init(wire->loop, &wire->resume);
    wire->listener.handle.data = wire;
    wire->before_poll.data = wire;
    wire->after_poll.data = wire;
    wire->resume.data = wire;
    wire->holds = 4;
}

int mu__wire_uv_open(uv_loop_t *loop, const char *bind_url,
                     const struct mu__wire_events *events, void *owner,
                     mu_error *ret_error, struct mu__wire_uv **ret_wire)
{
    struct mu__wire_uv *wire;
    struct mu__url url;
    const char *fault = mu__url_parse(bind_url, true, &url);
    int rv;

    if (fault != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "cannot listen at \"%s\": %s",
                            bind_url, fault);
    wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a wire");
    wire->door.ops = &ops;
    wire->loop = loop;
    wire->events = *events;
    wire->owner = owner;
    wire->url = url;
    rv = mu__stream_init(wire, url.ipc, &wire->listener);
    if (rv != 0) {
        free(wire);
        return refused(bind_url, rv, ret_error);
    }
    init_handles(wire);
    rv = url.ipc ? listen_ipc(wire) : listen_tcp(wire);
    if (rv != 0) {
        mu__wire_uv_close(wire, NULL, NULL);
        return refused(bind_url, rv, ret_error);
    }
    (void)uv_prepare_start(&wire->before_poll, on_before_poll);
    (void)uv_check_start(&wire->after_poll, on_after_poll);
    *ret_wire = wire;
    return 0;
}

void mu__wire_uv_close(struct mu__wire_uv *wire, void (*closed)(void *arg), void *arg)
{
    assert(!wire->closing);
    wire->closing = true;
    wire->closed = closed;
    wire->closed_arg = arg;
    mu__in_drop_all(wire);
    mu__out_hangup_all(wire);
    uv_close(&wire->listener.handle, on_closed);
    uv_close((uv_handle_t *)&wire->before_poll, on_closed);
    uv_close((uv_handle_t *)&wire->after_poll, on_closed);
    uv_close((uv_handle_t *)&wire->resume, on_closed);
}
