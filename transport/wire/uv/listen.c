#include "transport/wire/uv/listen.h"

#include "runtime/uv/look_up.h"
#include "transport/wire/dial_plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

/* A peer that comes while this is full waits a second: many tasks may begin at once. */
enum { BACKLOG = 4096 };

/* The system's refusals, with an explanation where one helps. For a name with several
 * addresses, the refusal that comes first here is reported. */
static const struct refusal {
    int status;
    int code;
    const char *words;
} refusals[] = {
    {UV_EADDRINUSE, -MU_EEXISTS, "another process (or node) listens there"},
    {UV_EACCES, -MU_EPERMISSION,
     "expected a port of 1024 or more, or a folder that may be written"},
    {UV_EPERM, -MU_EPERMISSION, NULL},
    {UV_EADDRNOTAVAIL, -MU_EINVALID,
     "expected an address of this machine, whose interface is up"},
    {UV_ENOMEM, -MU_ENOMEM, NULL},
    {UV_ENOENT, -MU_EINVALID, NULL},
    {UV_ENOTDIR, -MU_EINVALID, NULL},
};

enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

/* The row of a status; REFUSALS: it has none. */
static size_t find_refusal_row(int status)
{
    size_t row = 0;

    while (row < REFUSALS && refusals[row].status != status)
        row++;
    return row;
}

/* `reason` is the text of the status, whose row has the code and the explanation. */
static int refuse_listen(const char *url, const char *reason, int status,
                         mu_error *ret_error)
{
    static const struct refusal other = {0, -MU_EUNAVAILABLE, NULL};
    size_t row = find_refusal_row(status);
    const struct refusal *refusal = row < REFUSALS ? &refusals[row] : &other;
    bool is_plain = refusal->words == NULL;

    return mu_error_set(ret_error, refusal->code, "cannot listen at %s: %s%s%s", url,
                        reason, is_plain ? "" : "; ", is_plain ? "" : refusal->words);
}

int mu__listen_refused(const char *url, int status, mu_error *ret_error)
{
    return refuse_listen(url, uv_strerror(status), status, ret_error);
}

/* ---- tcp ---- */

static int refuse_name(const char *url, const mu_error *why, mu_error *ret_error)
{
    int code = why->code == -MU_ENOTFOUND ? -MU_EINVALID
               : why->code == -MU_ENOMEM  ? -MU_ENOMEM
                                          : -MU_EUNAVAILABLE;

    return mu_error_set(ret_error, code,
                        "cannot listen at %s: its host %s: %s; expected one that this "
                        "machine can look up, or a number, as in --bind "
                        "tcp://0.0.0.0:7000",
                        url,
                        code == -MU_EINVALID ? "is not found" : "cannot be looked up",
                        why->message);
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

/* The failures of a name's addresses. */
struct attempts {
    unsigned count;
    int status; /* the one to report: the first in `refusals` */
    struct mu__dial_failure rows[MU__ADDRESSES_MAX];
    char names[MU__ADDRESSES_MAX][INET6_ADDRSTRLEN];
};

static void note_listen_attempt(struct attempts *attempts, const struct sockaddr *address,
                                int status)
{
    char *name = attempts->names[attempts->count];

    (void)uv_ip_name(address, name, sizeof attempts->names[0]);
    if (attempts->count == 0 ||
        find_refusal_row(status) < find_refusal_row(attempts->status))
        attempts->status = status;
    attempts->rows[attempts->count++] =
        (struct mu__dial_failure){name, uv_strerror(status)};
}

static int refuse_all(const char *url, const struct attempts *attempts,
                      mu_error *ret_error)
{
    char words[1024];

    mu__dial_words(attempts->rows, attempts->count, words, sizeof words);
    return refuse_listen(url, words, attempts->status, ret_error);
}

/* Addresses of other machines are skipped. One that is in use ends the search: tasks that
 * dial the name would reach this node or the one that listens there, by chance. */
static int listen_at_any(const struct mu__addresses *addresses, int *ret_fd,
                         struct attempts *attempts)
{
    int rv = UV_EADDRNOTAVAIL;

    for (unsigned i = 0; i < addresses->count && rv != 0 && rv != UV_EADDRINUSE; i++) {
        const struct sockaddr *address = &addresses->items[i].any;

        rv = open_socket(address,
                         address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                        : sizeof(struct sockaddr_in),
                         ret_fd);
        if (rv != 0)
            note_listen_attempt(attempts, address, rv);
    }
    return rv;
}

static int listen_tcp(const char *url, unsigned timeout_ms, mu_error *ret_error,
                      struct mu__listening *listening)
{
    const char *said = listening->url.host;
    const char *host = strcmp(said, "*") == 0 ? "0.0.0.0" : said;
    struct attempts attempts = {.count = 0};
    struct mu__addresses addresses;
    mu_error why;

    if (mu__look_up(host, listening->url.port, timeout_ms, &why, &addresses) != 0)
        return refuse_name(url, &why, ret_error);
    if (listen_at_any(&addresses, &listening->fd, &attempts) == 0) {
        write_tcp_url(listening->fd, listening);
        return 0;
    }
    if (strcmp(attempts.names[0], host) == 0)
        return mu__listen_refused(url, attempts.status, ret_error);
    return refuse_all(url, &attempts, ret_error);
}

/* ---- ipc ---- */

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

/* Whether a socket file, which prevents another bind, is left by a process that has
 * ended. */
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

static int listen_ipc(const char *url, mu_error *ret_error,
                      struct mu__listening *listening)
{
    const char *path = listening->url.path;
    const struct sockaddr_un address = address_of(path);
    const struct sockaddr *any = (const struct sockaddr *)&address;
    int rv = open_socket(any, sizeof address, &listening->fd);

    if (rv == UV_EADDRINUSE && is_stale(path) && unlink(path) == 0)
        rv = open_socket(any, sizeof address, &listening->fd);
    (void)snprintf(listening->text, sizeof listening->text, "ipc://%s", path);
    return rv == 0 ? 0 : mu__listen_refused(url, rv, ret_error);
}

/* ---- both ---- */

int mu__listen_within(const char *bind_url, unsigned timeout_ms, mu_error *ret_error,
                      struct mu__listening *ret_listening)
{
    struct mu__listening listening = {.fd = -1};
    const char *fault = mu__url_parse(bind_url, true, &listening.url);
    int rv;

    if (fault != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "cannot listen at \"%s\": %s",
                            bind_url, fault);
    rv = listening.url.ipc ? listen_ipc(bind_url, ret_error, &listening)
                           : listen_tcp(bind_url, timeout_ms, ret_error, &listening);
    if (rv == 0)
        *ret_listening = listening;
    return rv;
}

int mu__listen(const char *bind_url, mu_error *ret_error,
               struct mu__listening *ret_listening)
{
    return mu__listen_within(bind_url, MU__LISTEN_LOOK_UP_MS, ret_error, ret_listening);
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
