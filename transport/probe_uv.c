#include "transport/probe_uv.h"

#include "transport/inner_uv.h"

#include "muster/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All of one call. */
struct run {
    uv_loop_t loop;
    struct mu__probe *probes;
    size_t count;
    size_t next;            /* the first that has not begun */
    size_t under_way;
    bool filling;
    unsigned limit_ms;
};

/* One attempt. Its memory goes when its handles are closed and its look-up is over. */
struct attempt {
    struct run *run;
    struct mu__probe *probe;
    struct mu__url url;
    union mu__stream stream;
    uv_timer_t limit;
    uv_getaddrinfo_t look_up;
    uv_connect_t connect;
    uv_write_t write;
    uint8_t said[MU__SP_GREETING_BYTES];
    uint8_t heard[MU__SP_GREETING_BYTES + 1];
    unsigned heard_size;
    uint64_t began_ms;
    bool has_stream;
    bool is_connected;
    bool is_over;
    unsigned holds;
};

static void fill(struct run *run);

static void drop(struct attempt *attempt)
{
    if (--attempt->holds == 0)
        free(attempt);
}

static void on_closed(uv_handle_t *handle)
{
    drop(handle->data);
}

/* The first outcome counts. Another attempt takes the place of this one. */
static void conclude(struct attempt *attempt, enum mu__probe_state state, const char *why)
{
    struct run *run = attempt->run;

    if (attempt->is_over)
        return;
    attempt->is_over = true;
    attempt->probe->state = state;
    (void)snprintf(attempt->probe->why, sizeof attempt->probe->why, "%s", why);
    attempt->probe->took_ms = (uint32_t)(uv_now(&run->loop) - attempt->began_ms);
    uv_close((uv_handle_t *)&attempt->limit, on_closed);
    if (attempt->has_stream)
        uv_close(&attempt->stream.handle, on_closed);
    if (attempt->look_up.data != NULL)
        (void)uv_cancel((uv_req_t *)&attempt->look_up);
    run->under_way--;
    fill(run);
}

static void on_limit(uv_timer_t *timer)
{
    struct attempt *attempt = timer->data;

    if (attempt->is_connected)
        conclude(attempt, MU__PROBE_MUTE, "");
    else if (attempt->has_stream)
        conclude(attempt, MU__PROBE_SILENT, "");
    else
        conclude(attempt, MU__PROBE_NO_NAME, "the name server does not answer");
}

/* ---- the greeting ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct attempt *attempt = handle->data;

    (void)suggested;
    *buf = uv_buf_init((char *)attempt->heard + attempt->heard_size,
                       (unsigned)sizeof attempt->heard - attempt->heard_size);
}

/* What it is by its first bytes, where these are known. */
static const char *why_other(const struct attempt *attempt)
{
    static const struct {
        const char *bytes;
        const char *why;
    } others[] = {
        {"HTTP/", "it speaks HTTP"},
        {"SSH-", "it speaks SSH"},
        {"\x15\x03", "it speaks TLS"},
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t size = strlen(others[i].bytes);

        if (attempt->heard_size >= size &&
            memcmp(attempt->heard, others[i].bytes, size) == 0)
            return others[i].why;
    }
    return "its greeting is not muster's";
}

static void conclude_greeting(struct attempt *attempt)
{
    if (mu__greeting_is(attempt->heard, MU__SP_PULL))
        conclude(attempt, MU__PROBE_GREETS, "");
    else
        conclude(attempt, MU__PROBE_OTHER, why_other(attempt));
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct attempt *attempt = stream->data;

    (void)buf;
    if (size == 0)
        return;
    if (size < 0) {
        conclude(attempt, MU__PROBE_OTHER, "it hangs up instead of a greeting");
        return;
    }
    attempt->heard_size += (unsigned)size;
    if (attempt->heard_size >= MU__SP_GREETING_BYTES)
        conclude_greeting(attempt);
    else if (attempt->heard[0] != 0)
        conclude(attempt, MU__PROBE_OTHER, why_other(attempt));
}

static void on_written(uv_write_t *request, int status)
{
    (void)request;
    (void)status;   /* reading sees a broken connection, too */
}

/* ---- the connection ---- */

static enum mu__probe_state state_of(int status)
{
    if (status == UV_ECONNREFUSED || status == UV_ENOENT)
        return MU__PROBE_REFUSED;
    return status == UV_ETIMEDOUT ? MU__PROBE_SILENT : MU__PROBE_NO_WAY;
}

static void on_connected(uv_connect_t *request, int status)
{
    struct attempt *attempt = request->data;
    uv_buf_t buf = uv_buf_init((char *)attempt->said, sizeof attempt->said);

    if (attempt->is_over)
        return;
    if (status != 0) {
        conclude(attempt, state_of(status), uv_strerror(status));
        return;
    }
    attempt->is_connected = true;
    mu__greeting_write(attempt->said, MU__SP_PUSH);
    if (uv_write(&attempt->write, &attempt->stream.stream, &buf, 1, on_written) != 0 ||
        uv_read_start(&attempt->stream.stream, on_alloc, on_read) != 0)
        conclude(attempt, MU__PROBE_NO_WAY, "out of memory");
}

static int open_stream(struct attempt *attempt)
{
    uv_loop_t *loop = &attempt->run->loop;
    int rv = attempt->url.ipc ? uv_pipe_init(loop, &attempt->stream.pipe, 0)
                              : uv_tcp_init(loop, &attempt->stream.tcp);

    if (rv != 0)
        return rv;
    attempt->stream.handle.data = attempt;
    attempt->has_stream = true;
    attempt->holds++;
    return 0;
}

static void connect_to(struct attempt *attempt, const struct sockaddr *address)
{
    int rv = open_stream(attempt);

    attempt->connect.data = attempt;
    if (rv == 0 && attempt->url.ipc)
        uv_pipe_connect(&attempt->connect, &attempt->stream.pipe, attempt->url.path,
                        on_connected);
    else if (rv == 0)
        rv = uv_tcp_connect(&attempt->connect, &attempt->stream.tcp, address,
                            on_connected);
    if (rv != 0)
        conclude(attempt, state_of(rv), uv_strerror(rv));
}

/* ---- the name ---- */

static void note_address(struct mu__probe *probe, const struct addrinfo *info,
                         unsigned port)
{
    size_t used = strlen(probe->found);
    char name[64] = "";

    if (info->ai_family == AF_INET6)
        (void)uv_ip6_name((const struct sockaddr_in6 *)info->ai_addr, name, sizeof name);
    else
        (void)uv_ip4_name((const struct sockaddr_in *)info->ai_addr, name, sizeof name);
    if (used == 0)
        (void)snprintf(probe->first, sizeof probe->first,
                       info->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", name, port);
    (void)snprintf(probe->found + used, sizeof probe->found - used, "%s%s",
                   used == 0 ? "" : ", ", name);
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct attempt *attempt = request->data;

    if (!attempt->is_over && status == 0) {
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
            note_address(attempt->probe, at, attempt->url.port);
        connect_to(attempt, found->ai_addr);
    } else if (!attempt->is_over) {
        conclude(attempt, MU__PROBE_NO_NAME, uv_strerror(status));
    }
    uv_freeaddrinfo(found);
    drop(attempt);
}

static void look_up(struct attempt *attempt)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    int rv;

    (void)snprintf(port, sizeof port, "%u", attempt->url.port);
    attempt->look_up.data = attempt;
    attempt->holds++;
    rv = uv_getaddrinfo(&attempt->run->loop, &attempt->look_up, on_looked_up,
                        attempt->url.host, port, &hints);
    if (rv == 0)
        return;
    attempt->holds--;
    conclude(attempt, MU__PROBE_NO_NAME, uv_strerror(rv));
}

/* ---- all of it ---- */

static void begin(struct run *run, struct mu__probe *probe)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    const char *wrong;

    if (attempt == NULL)
        return;
    run->under_way++;
    attempt->run = run;
    attempt->probe = probe;
    attempt->began_ms = uv_now(&run->loop);
    attempt->holds = 1;     /* the timer's */
    (void)uv_timer_init(&run->loop, &attempt->limit);
    attempt->limit.data = attempt;
    (void)uv_timer_start(&attempt->limit, on_limit, run->limit_ms, 0);
    wrong = mu__url_parse(probe->url, false, &attempt->url);
    if (wrong != NULL) {
        conclude(attempt, MU__PROBE_NO_WAY, wrong);
    } else if (attempt->url.ipc) {
        (void)snprintf(probe->first, sizeof probe->first, "%.79s", attempt->url.path);
        connect_to(attempt, NULL);
    } else {
        look_up(attempt);
    }
}

/* What ends at once makes room at once: that is a loop here, not a recursion. */
static void fill(struct run *run)
{
    if (run->filling)
        return;
    run->filling = true;
    while (run->under_way < MU__PROBES_AT_ONCE && run->next < run->count)
        begin(run, &run->probes[run->next++]);
    run->filling = false;
}

/* Until something is known of it. */
static void clear(struct mu__probe *probe)
{
    *probe = (struct mu__probe){.url = probe->url, .state = MU__PROBE_NO_WAY};
    (void)snprintf(probe->why, sizeof probe->why, "out of memory");
}

int mu__probe_all(struct mu__probe *probes, size_t count, unsigned limit_ms)
{
    struct run run = {.probes = probes, .count = count, .limit_ms = limit_ms};

    if (uv_loop_init(&run.loop) != 0)
        return -MU_ENOMEM;
    for (size_t i = 0; i < count; i++)
        clear(&probes[i]);
    fill(&run);
    (void)uv_run(&run.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&run.loop);
    return 0;
}
