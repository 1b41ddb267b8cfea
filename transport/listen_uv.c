#include "transport/listen_uv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

enum { BACKLOG = 512 };

/* What the system says, and what it means where that is not plain. */
static const struct {
    int status;
    int code;
    const char *words;
} refusals[] = {
    {UV_EADDRINUSE, -MU_EEXISTS, "another process (or node) listens there"},
    {UV_EADDRNOTAVAIL, -MU_EINVALID,
     "expected an address of this machine, whose interface is up"},
    {UV_EACCES, -MU_EPERMISSION,
     "expected a port of 1024 or more, or a folder that may be written"},
    {UV_EPERM, -MU_EPERMISSION, NULL},
    {UV_ENOMEM, -MU_ENOMEM, NULL},
    {UV_ENOENT, -MU_EINVALID, NULL},
    {UV_EAI_NONAME, -MU_EINVALID, NULL},
    {UV_EAI_NODATA, -MU_EINVALID, NULL},
    {UV_ENOTDIR, -MU_EINVALID, NULL},
};

int mu__listen_refused(const char *url, int status, mu_error *ret_error)
{
    int code = -MU_EUNAVAILABLE;
    const char *words = NULL;

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].status == status) {
            code = refusals[i].code;
            words = refusals[i].words;
        }
    return mu_error_set(ret_error, code, "cannot listen at %s: %s%s%s", url,
                        uv_strerror(status), words == NULL ? "" : "; ",
                        words == NULL ? "" : words);
}

/* ---- tcp ---- */

/* Looked up at once: a node that does not know where it is cannot start. A libuv call
 * needs a loop, also where it waits. */
static int look_up_name(const char *host, struct sockaddr_storage *ret_address)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE,
    };
    uv_getaddrinfo_t request;
    uv_loop_t loop;
    int rv = uv_loop_init(&loop);

    if (rv != 0)
        return rv;
    rv = uv_getaddrinfo(&loop, &request, NULL, host, NULL, &hints);
    if (rv == 0) {
        memcpy(ret_address, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
        uv_freeaddrinfo(request.addrinfo);
    }
    (void)uv_loop_close(&loop);
    return rv;
}

static int look_up(const struct mu__url *url, struct sockaddr_storage *ret_address)
{
    const char *host = strcmp(url->host, "*") == 0 ? "0.0.0.0" : url->host;
    uint8_t *bytes = (uint8_t *)ret_address;
    int rv = 0;

    memset(ret_address, 0, sizeof *ret_address);
    if (uv_ip4_addr(host, 0, (struct sockaddr_in *)ret_address) != 0 &&
        uv_ip6_addr(host, 0, (struct sockaddr_in6 *)ret_address) != 0)
        rv = look_up_name(host, ret_address);
    /* The port stands in the same place in both families. */
    bytes[2] = (uint8_t)(url->port >> 8);
    bytes[3] = (uint8_t)url->port;
    return rv;
}

static void write_tcp_url(int fd, struct mu__listening *listening)
{
    bool v6 = strchr(listening->url.host, ':') != NULL;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    const uint8_t *bytes = (const uint8_t *)&address;
    unsigned port = listening->url.port;

    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        port = (unsigned)bytes[2] << 8 | bytes[3];
    (void)snprintf(listening->text, sizeof listening->text,
                   v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", listening->url.host, port);
}

static int bind_and_listen(int fd, const struct sockaddr *address, size_t size)
{
    const int on = 1;
    const int off = 0;

    if (address->sa_family != AF_UNIX &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        return uv_translate_sys_error(errno);
    if (address->sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0)
        return uv_translate_sys_error(errno);
    if (bind(fd, address, (socklen_t)size) != 0 || listen(fd, BACKLOG) != 0)
        return uv_translate_sys_error(errno);
    return 0;
}

/* A socket of the address's family that listens there, in *ret_fd. */
static int open_socket(const struct sockaddr *address, size_t size, int *ret_fd)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rv;

    if (fd < 0)
        return uv_translate_sys_error(errno);
    rv = bind_and_listen(fd, address, size);
    if (rv != 0) {
        (void)close(fd);
        return rv;
    }
    *ret_fd = fd;
    return 0;
}

static int listen_tcp(struct mu__listening *listening)
{
    struct sockaddr_storage address;
    int rv = look_up(&listening->url, &address);

    if (rv == 0)
        rv = open_socket((const struct sockaddr *)&address,
                         address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                       : sizeof(struct sockaddr_in),
                         &listening->fd);
    if (rv == 0)
        write_tcp_url(listening->fd, listening);
    return rv;
}

/* ---- ipc ---- */

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

/* A socket file that nobody listens at any more is in the way of its successor. */
static bool is_stale(const char *path)
{
    const struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bool stale;

    if (fd < 0)
        return false;
    stale = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
            uv_translate_sys_error(errno) == UV_ECONNREFUSED;
    (void)close(fd);
    return stale;
}

static int listen_ipc(struct mu__listening *listening)
{
    const char *path = listening->url.path;
    const struct sockaddr_un address = address_of(path);
    const struct sockaddr *any = (const struct sockaddr *)&address;
    int rv = open_socket(any, sizeof address, &listening->fd);

    if (rv == UV_EADDRINUSE && is_stale(path) && unlink(path) == 0)
        rv = open_socket(any, sizeof address, &listening->fd);
    (void)snprintf(listening->text, sizeof listening->text, "ipc://%s", path);
    return rv;
}

/* ---- both ---- */

int mu__listen(const char *bind_url, mu_error *ret_error,
               struct mu__listening *ret_listening)
{
    struct mu__listening listening = {.fd = -1};
    const char *fault = mu__url_parse(bind_url, true, &listening.url);
    int rv;

    if (fault != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "cannot listen at \"%s\": %s",
                            bind_url, fault);
    rv = listening.url.ipc ? listen_ipc(&listening) : listen_tcp(&listening);
    if (rv != 0)
        return mu__listen_refused(bind_url, rv, ret_error);
    *ret_listening = listening;
    return 0;
}

void mu__listening_close(struct mu__listening *listening)
{
    if (listening->fd < 0)
        return;
    if (listening->url.ipc)
        (void)unlink(listening->url.path);
    (void)close(listening->fd);
    listening->fd = -1;
}
