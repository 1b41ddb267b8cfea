/* The socket that listens, and functions for both kinds of connections.
 *
 * Events are passed on where libuv calls; burst_end comes once for all events of an
 * iteration of the loop, as on the libuv wire. Of frames the loop is told by the receive
 * descriptor, of connections by the news: nng's threads touch nothing of the wire. */
#include "transport/wire/nng/internal.h"

#include "transport/wire/uv/listen.h"

#include <arpa/inet.h>
#include <assert.h>
#include <nng/protocol/reqrep0/rep.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_TRIES = 5 };

struct mu__wire *mu__wire_nng_wire(struct mu__wire_nng *wire)
{
    return &wire->door;
}

const char *mu__wire_nng_url(const struct mu__wire_nng *wire)
{
    return wire->text;
}

/* ---- holds ---- */

void mu__wire_nng_hold(struct mu__wire_nng *wire)
{
    wire->holds++;
}

void mu__wire_nng_drop_hold(struct mu__wire_nng *wire)
{
    void (*closed)(void *arg) = wire->closed;
    void *arg = wire->closed_arg;

    assert(wire->holds > 0);
    if (--wire->holds > 0)
        return;
    mu__map_done(&wire->in.ins);
    mu__map_done(&wire->in.pipes);
    mu__map_done(&wire->out.outs);
    mu__nng_news_drop(wire->news_of);
    mu__nng_tls_free(wire->tls);
    free(wire);
    if (closed != NULL)
        closed(arg);
}

static void on_nng_handle_closed(uv_handle_t *handle)
{
    mu__wire_nng_drop_hold(handle->data);
}

/* ---- events ---- */

static void end_nng_burst(struct mu__wire_nng *wire)
{
    if (!wire->news || wire->closing)
        return;
    wire->news = false;
    uv_update_time(wire->loop);
    wire->events.burst_end(wire->owner);
}

static void on_nng_before_poll(uv_prepare_t *prepare)
{
    end_nng_burst(prepare->data);
}

static void on_nng_after_poll(uv_check_t *check)
{
    end_nng_burst(check->data);
}

static void on_nng_readable(uv_poll_t *poll, int status, int happened)
{
    (void)status;
    (void)happened;
    mu__nng_receive(poll->data);
}

static void on_nng_wake(uv_async_t *wake)
{
    struct mu__wire_nng *wire = wake->data;
    struct mu__nng_event event;

    while (!wire->closing && mu__nng_news_next(wire->news_of, &event)) {
        if (event.end->owner == NULL)
            mu__nng_in_event(wire, &event);
        else
            mu__nng_out_event(wire, &event);
    }
}

static void on_rest(uv_timer_t *rest)
{
    bool dialers = mu__nng_dialers_rested(rest->data);
    bool ins = mu__nng_ins_rested(rest->data);

    if (dialers && ins)
        (void)uv_timer_stop(rest);
}

void mu__wire_nng_rest(struct mu__wire_nng *wire)
{
    if (!wire->closing && !uv_is_active((uv_handle_t *)&wire->rest))
        (void)uv_timer_start(&wire->rest, on_rest, MU__NNG_REST_MS, MU__NNG_REST_MS);
}

/* ---- listening ---- */

static int refuse_nng_listen(const char *url, int status, mu_error *ret_error)
{
    static const struct {
        int status;
        int uv;
    } rows[] = {
        {NNG_EADDRINUSE, UV_EADDRINUSE},
        {NNG_EPERM, UV_EACCES},
        {NNG_EADDRINVAL, UV_EADDRNOTAVAIL},
        {NNG_ENOMEM, UV_ENOMEM},
        {NNG_ENOENT, UV_ENOENT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return mu__listen_refused(url, rows[i].uv, ret_error);
    return mu_error_set(ret_error, -MU_EUNAVAILABLE, "cannot listen at %s: %s", url,
                        nng_strerror(status));
}

/* The address to listen at, as nng takes it, and as others are told. */
struct listen_address {
    char url[MU__NNG_URL_BYTES];
    char text[MU__NNG_URL_BYTES];
};

static void write_address(const struct mu__listening *listening, enum mu__scheme scheme,
                          struct listen_address *address)
{
    const char *name = mu__scheme_name(scheme);
    const char *rest = strstr(listening->text, "://");
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char host[INET6_ADDRSTRLEN] = "";

    (void)snprintf(address->text, sizeof address->text, "%s%s", name, rest);
    (void)snprintf(address->url, sizeof address->url, "%s", address->text);
    if (listening->url.ipc ||
        getsockname(listening->fd, (struct sockaddr *)&bound, &size) != 0 ||
        uv_ip_name((struct sockaddr *)&bound, host, sizeof host) != 0)
        return;
    (void)snprintf(address->url, sizeof address->url,
                   bound.ss_family == AF_INET6 ? "%s://[%s]%s" : "%s://%s%s", name, host,
                   strrchr(rest, ':'));
}

/* nng looks up no names, and tells of no port that it took for all schemes. */
static bool needs_search(const struct mu__url *url)
{
    struct in6_addr number;

    if (url->host[0] == '\0' || strcmp(url->host, "*") == 0)
        return url->host[0] == '*' && url->port == 0;
    return url->port == 0 || (inet_pton(AF_INET, url->host, &number) != 1 &&
                              inet_pton(AF_INET6, url->host, &number) != 1);
}

/* A socket of our own listens there first, for a moment: so names are looked up, a free
 * port is found, and refusals are worded as on the libuv wire. Not for an address that
 * peers may know already, for they would connect to it. */
static int find_listen_address(const char *bind_url, const struct mu__url *url,
                               mu_error *ret_error, struct listen_address *address)
{
    struct mu__listening listening;
    char plain[MU__NNG_URL_BYTES];
    int rv;

    if (!needs_search(url)) {
        (void)snprintf(address->url, sizeof address->url, "%s", bind_url);
        (void)snprintf(address->text, sizeof address->text, "%s", bind_url);
        return 0;
    }
    (void)snprintf(plain, sizeof plain, "%s%s", url->ipc ? "ipc" : "tcp",
                   strstr(bind_url, "://"));
    rv = mu__listen(plain, ret_error, &listening);
    if (rv != 0)
        return rv;
    write_address(&listening, url->scheme, address);
    mu__listening_close(&listening);
    return 0;
}

static int listen_at(struct mu__wire_nng *wire, const struct listen_address *address)
{
    nng_listener listener;
    char at[MU__NNG_URL_BYTES];
    int rv;

    if (!mu__nng_tls_url(wire->tls, address->url, at, sizeof at))
        return NNG_ENOTSUP;
    wire->is_secured = mu__nng_tls_is(at);
    rv = nng_listener_create(&listener, wire->in.socket, at);
    if (rv == 0)
        rv = mu__nng_tls_listen(wire->tls, at, listener);
    if (rv != 0)
        return rv;
    if (strncmp(at, "ipc:", 4) == 0)
        rv = nng_listener_set_int(listener, NNG_OPT_IPC_PERMISSIONS, 0600);
    if (rv != 0)
        return rv;
    rv = nng_listener_set_size(listener, NNG_OPT_RECVMAXSZ, MU__NNG_MESSAGE_MAX);
    return rv == 0 || rv == NNG_ENOTSUP ? nng_listener_start(listener, 0) : rv;
}

/* Somebody else may take the port between the two sockets; where any will do, another one
 * is tried. */
static int listen_somewhere(struct mu__wire_nng *wire, const char *bind_url,
                            mu_error *ret_error)
{
    struct listen_address address;
    struct mu__url url;
    const char *fault = mu__url_parse_any(bind_url, true, &url);
    int rv = NNG_EADDRINUSE;

    if (fault != NULL || strlen(bind_url) > MU__NNG_URL_BYTES - 20)
        return mu_error_set(ret_error, -MU_EINVALID, "cannot listen at \"%s\": %s",
                            bind_url, fault == NULL ? "it is too long" : fault);
    if (wire->tls == NULL && mu__nng_tls_is(bind_url))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "cannot listen at %s: it needs certificates: tls_ca, "
                            "tls_certificate and tls_private_key",
                            bind_url);
    for (int i = 0; i < LISTEN_TRIES && rv == NNG_EADDRINUSE; i++) {
        int code = find_listen_address(bind_url, &url, ret_error, &address);

        if (code != 0)
            return code;
        rv = listen_at(wire, &address);
    }
    if (rv != 0)
        return refuse_nng_listen(bind_url, rv, ret_error);
    (void)snprintf(wire->text, sizeof wire->text, "%s", address.text);
    if (url.ipc)
        (void)snprintf(wire->path, sizeof wire->path, "%s", url.path);
    return 0;
}

/* ---- opening ---- */

static void hangup_nng(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;

    if (mu__wire_is_accepted(number))
        mu__nng_in_hangup(wire, number);
    else
        mu__nng_out_hangup(wire, number);
}

static int send_frame(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;

    return mu__wire_is_accepted(number) ? mu__nng_in_send(wire, number, frame)
                                        : mu__nng_out_send(wire, number, frame);
}

static void note_nng_member(struct mu__wire *door, uint32_t number)
{
    if (mu__wire_is_accepted(number))
        mu__nng_in_member((struct mu__wire_nng *)door, number);
}

/* nng has checked that the CA has signed its certificate, and says no more of it. */
static void get_nng_proof(struct mu__wire *door, uint32_t number,
                          struct mu__proof *ret_proof)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;
    bool is_secured = mu__wire_is_accepted(number) ? wire->is_secured
                                                   : mu__nng_out_is_secured(wire, number);

    *ret_proof = (struct mu__proof){.right = is_secured ? MU__RIGHT_TASK : MU__RIGHT_ALL};
}

static void get_nng_peer(struct mu__wire *door, uint32_t number, char *ret_address,
                         size_t size)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;
    const nng_pipe pipe = {mu__wire_is_accepted(number) ? mu__nng_in_pipe(wire, number)
                                                        : mu__nng_out_pipe(wire, number)};
    char host[INET6_ADDRSTRLEN] = "";
    nng_sockaddr address;

    (void)snprintf(ret_address, size, "%s", "");
    if (pipe.id == 0 || nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &address) != 0)
        return;
    if (address.s_family == NNG_AF_IPC)
        (void)snprintf(ret_address, size, "unix");
    else if (address.s_family == NNG_AF_INPROC)
        (void)snprintf(ret_address, size, "inproc");
    else if (address.s_family == NNG_AF_INET &&
             inet_ntop(AF_INET, &address.s_in.sa_addr, host, sizeof host) != NULL)
        (void)snprintf(ret_address, size, "%s:%u", host,
                       (unsigned)ntohs(address.s_in.sa_port));
    else if (address.s_family == NNG_AF_INET6 &&
             inet_ntop(AF_INET6, address.s_in6.sa_addr, host, sizeof host) != NULL)
        (void)snprintf(ret_address, size, "[%s]:%u", host,
                       (unsigned)ntohs(address.s_in6.sa_port));
}

static const struct mu__wire_ops ops = {
    .splices = true,
    .buffer = mu__nng_frame_buffer,
    .dial = mu__nng_dial,
    .hangup = hangup_nng,
    .send = send_frame,
    .member = note_nng_member,
    .proof = get_nng_proof,
    .peer = get_nng_peer,
    .last_error = mu__nng_last_error,
};

/* nng starts its threads with the first socket of the process: they take no signals. */
int mu__nng_open(int (*open)(nng_socket *socket), nng_socket *ret_socket)
{
    sigset_t all;
    sigset_t before;
    int rv;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rv = open(ret_socket);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rv;
}

static struct mu__wire_nng *nng_wire_new(
    uv_loop_t *loop, const struct mu__wire_events *events, void *owner)
{
    struct mu__wire_nng *wire = calloc(1, sizeof *wire);

    if (wire == NULL)
        return NULL;
    wire->door.ops = &ops;
    wire->loop = loop;
    wire->events = *events;
    wire->owner = owner;
    wire->news_of = mu__nng_news_new(&wire->wake);
    if (wire->news_of == NULL || uv_async_init(loop, &wire->wake, on_nng_wake) != 0) {
        if (wire->news_of != NULL)
            mu__nng_news_drop(wire->news_of);
        free(wire);
        return NULL;
    }
    (void)uv_prepare_init(loop, &wire->before_poll);
    (void)uv_check_init(loop, &wire->after_poll);
    (void)uv_timer_init(loop, &wire->rest);
    (void)uv_timer_init(loop, &wire->in.sweep);
    mu__unproven_init(&wire->in.unproven, (uintptr_t)wire);
    wire->wake.data = wire;
    wire->before_poll.data = wire;
    wire->after_poll.data = wire;
    wire->rest.data = wire;
    wire->in.sweep.data = wire;
    wire->holds = 5;
    return wire;
}

/* nng has no queue of what arrives, and one of what goes, for the moment until its thread
 * has found the connection that a message is for. */
static int poll_socket(struct mu__wire_nng *wire)
{
    enum { QUEUE = 128 };
    int fds[2];

    if (nng_socket_set_int(wire->in.socket, NNG_OPT_RECVBUF, 0) != 0 ||
        nng_socket_set_int(wire->in.socket, NNG_OPT_SENDBUF, QUEUE) != 0 ||
        nng_socket_get_int(wire->in.socket, NNG_OPT_RECVFD, &fds[0]) != 0 ||
        nng_socket_get_int(wire->in.socket, NNG_OPT_SENDFD, &fds[1]) != 0 ||
        uv_poll_init(wire->loop, &wire->in.readable, fds[0]) != 0)
        return -MU_ENOMEM;
    wire->in.readable.data = wire;
    if (uv_poll_init(wire->loop, &wire->in.writable, fds[1]) != 0) {
        mu__wire_nng_hold(wire);
        uv_close((uv_handle_t *)&wire->in.readable, on_nng_handle_closed);
        return -MU_ENOMEM;
    }
    wire->in.writable.data = wire;
    wire->in.has_polls = true;
    wire->holds += 2;
    return 0;
}

/* A failure leaves what is there for the close. */
static int begin_listening(struct mu__wire_nng *wire, const char *bind_url,
                           mu_error *ret_error)
{
    struct mu__nng_end *end = mu__nng_end_new(wire->news_of, NULL);
    int rv;

    if (end == NULL || mu__nng_open(nng_rep0_open_raw, &wire->in.socket) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a wire");
    wire->in.has_socket = true;
    mu__nng_end_open(end, true);
    if (mu__nng_end_watch(end, wire->in.socket) != 0 || poll_socket(wire) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a wire");
    rv = listen_somewhere(wire, bind_url, ret_error);
    if (rv == 0)
        (void)uv_poll_start(&wire->in.readable, UV_READABLE, on_nng_readable);
    return rv;
}

static int begin_nng_wire(struct mu__wire_nng *wire, const char *bind_url,
                          mu_error *ret_error)
{
    int rv = bind_url == NULL ? 0 : begin_listening(wire, bind_url, ret_error);

    if (rv != 0)
        return rv;
    (void)uv_prepare_start(&wire->before_poll, on_nng_before_poll);
    (void)uv_check_start(&wire->after_poll, on_nng_after_poll);
    return 0;
}

int mu__wire_nng_open(uv_loop_t *loop, const char *bind_url,
                      const struct mu__tls_pem *pem, const struct mu__wire_events *events,
                      void *owner, mu_error *ret_error, struct mu__wire_nng **ret_wire)
{
    struct mu__wire_nng *wire = nng_wire_new(loop, events, owner);
    int rv;

    if (wire == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a wire");
    rv = pem == NULL ? 0 : mu__nng_tls_new(pem, ret_error, &wire->tls);
    if (rv == 0)
        rv = begin_nng_wire(wire, bind_url, ret_error);
    if (rv != 0)
        mu__wire_nng_close(wire, NULL, NULL);
    else
        *ret_wire = wire;
    return rv;
}

/* ---- closing ---- */

/* nng removes the file itself when it closes the socket. */
static void on_sockets_closed(void *owner, bool is_closed)
{
    struct mu__wire_nng *wire = owner;

    if (!is_closed && wire->path[0] != '\0')
        (void)unlink(wire->path);
    mu__wire_nng_drop_hold(wire);
}

void mu__wire_nng_close(struct mu__wire_nng *wire, void (*closed)(void *arg), void *arg)
{
    struct mu__nng_closer *closer =
        mu__nng_closer_new(wire->news_of, wire->out.count + 2);

    assert(!wire->closing);
    wire->closing = true;
    wire->closed = closed;
    wire->closed_arg = arg;
    mu__nng_news_close(wire->news_of);
    if (closer != NULL && wire->in.has_socket)
        mu__nng_closer_add(closer, wire->in.socket);
    mu__nng_in_free_all(wire);
    mu__nng_out_hangup_all(wire);
    mu__nng_dialers_close(wire, closer);
    if (wire->in.has_polls) {
        uv_close((uv_handle_t *)&wire->in.readable, on_nng_handle_closed);
        uv_close((uv_handle_t *)&wire->in.writable, on_nng_handle_closed);
    }
    uv_close((uv_handle_t *)&wire->wake, on_nng_handle_closed);
    uv_close((uv_handle_t *)&wire->before_poll, on_nng_handle_closed);
    uv_close((uv_handle_t *)&wire->after_poll, on_nng_handle_closed);
    uv_close((uv_handle_t *)&wire->rest, on_nng_handle_closed);
    uv_close((uv_handle_t *)&wire->in.sweep, on_nng_handle_closed);
    mu__wire_nng_hold(wire);
    if (closer == NULL || !mu__nng_closer_start(closer, wire->loop, MU__NNG_CLOSE_MS,
                                                on_sockets_closed, wire))
        on_sockets_closed(wire, false);
}
