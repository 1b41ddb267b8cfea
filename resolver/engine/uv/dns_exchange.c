#include "resolver/engine/uv/dns_exchange.h"

#include <uv.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PORT = 53,
    SLICE_MS = 50,       /* how soon a cancelled one ends */
    FIRST_TRY_MS = 1000, /* each further round waits twice as long */
    NS_PER_MS = 1000000
};

/* One server is asked: its words begin with it. */
struct attempt {
    const struct mu__dns_exchange *exchange;
    const struct sockaddr_storage *server;
    char server_name[64];
    uint64_t until_ns;
    uint8_t query[MU__DNS_QUERY_BYTES];
    size_t query_size;
    uint8_t *bytes; /* the answer: MU__DNS_BYTES_MAX */
    size_t size;
    mu_error *error;
};

/* ---- Servers ---- */

static bool read_server(const char *host, unsigned port, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memset(ret, 0, sizeof *ret);
    if (uv_ip4_addr(host, (int)port, &v4) == 0) {
        memcpy(ret, &v4, sizeof v4);
        return true;
    }
    if (uv_ip6_addr(host, (int)port, &v6) != 0)
        return false;
    memcpy(ret, &v6, sizeof v6);
    return true;
}

/* "53" up to 65535; 0 for what is no port. */
static unsigned read_port(const char *text)
{
    unsigned port = 0;

    if (strlen(text) > 5 || text[strspn(text, "0123456789")] != '\0')
        return 0;
    for (; *text != '\0'; text++)
        port = port * 10 + (unsigned)(*text - '0');
    return port <= 65535 ? port : 0;
}

int mu__dns_server_parse(const char *text, mu_error *ret_error,
                         struct mu__dns_servers *ret_servers)
{
    const char *colon = strrchr(text, ':');
    bool has_brackets = text[0] == '[';
    bool has_port =
        colon != NULL && (has_brackets ? colon[-1] == ']' : strchr(text, ':') == colon);
    size_t size = has_port ? (size_t)(colon - text) : strlen(text);
    unsigned port = has_port ? read_port(colon + 1) : PORT;
    struct mu__dns_servers servers = {.count = 1};
    char host[64] = "";

    if (has_brackets && size >= 2 && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    if (size < sizeof host)
        (void)snprintf(host, sizeof host, "%.*s", (int)size, text);
    if (port == 0 || !read_server(host, port, &servers.items[0]))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "DNS server \"%.100s\": expected ADDRESS or ADDRESS:PORT, as "
                            "in \"127.0.0.1:53\"",
                            text);
    *ret_servers = servers;
    return 0;
}

static void name_server(const struct sockaddr_storage *server, char *out, size_t size)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)server;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)server;
    char address[48] = "";

    if (server->ss_family == AF_INET) {
        (void)uv_ip4_name(v4, address, sizeof address);
        (void)snprintf(out, size, "%s:%u", address, ntohs(v4->sin_port));
    } else {
        (void)uv_ip6_name(v6, address, sizeof address);
        (void)snprintf(out, size, "[%s]:%u", address, ntohs(v6->sin6_port));
    }
}

static socklen_t size_of(const struct sockaddr_storage *server)
{
    return server->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                        : sizeof(struct sockaddr_in6);
}

/* ---- Waiting ---- */

static int unreachable(const struct attempt *attempt, int number)
{
    return mu_error_set(attempt->error, -MU_EUNAVAILABLE, "DNS server %s: %s",
                        attempt->server_name,
                        uv_strerror(uv_translate_sys_error(number)));
}

/* Until there is something to do with the socket. */
static int wait_for(const struct attempt *attempt, int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    for (;;) {
        uint64_t now_ns = uv_hrtime();
        uint64_t left_ms;
        int slice_ms;
        int rv;

        if (atomic_load(attempt->exchange->cancelled))
            return mu_error_set(attempt->error, -MU_ECANCELLED, "cancelled");
        if (now_ns >= attempt->until_ns)
            return mu_error_set(attempt->error, -MU_EDEADLINE,
                                "DNS server %s does not answer", attempt->server_name);
        left_ms = (attempt->until_ns - now_ns) / NS_PER_MS + 1;
        slice_ms = left_ms < SLICE_MS ? (int)left_ms : SLICE_MS;
        rv = poll(&poll_fd, 1, slice_ms);
        if (rv > 0)
            return 0;
        if (rv < 0 && errno != EINTR)
            return unreachable(attempt, errno);
    }
}

/* A socket to the server; the caller closes it. */
static int open_socket(const struct attempt *attempt, int type, int *ret_fd)
{
    int fd = socket(attempt->server->ss_family, type, 0);
    int number = errno;

    if (fd < 0)
        return unreachable(attempt, number);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        (connect(fd, (const struct sockaddr *)attempt->server,
                 size_of(attempt->server)) == 0 ||
         errno == EINPROGRESS)) {
        *ret_fd = fd;
        return 0;
    }
    number = errno;
    (void)close(fd);
    return unreachable(attempt, number);
}

static bool is_passing(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

/* Send or receive `size` bytes of a stream. */
static int transfer(const struct attempt *attempt, int fd, bool out, uint8_t *bytes,
                    size_t size)
{
    while (size > 0) {
        int rv = wait_for(attempt, fd, out ? POLLOUT : POLLIN);
        ssize_t done;

        if (rv != 0)
            return rv;
        done = out ? send(fd, bytes, size, MSG_NOSIGNAL) : recv(fd, bytes, size, 0);
        if (done == 0)
            return unreachable(attempt, ECONNRESET);
        if (done < 0 && !is_passing(errno))
            return unreachable(attempt, errno);
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        }
    }
    return 0;
}

/* ---- One server ---- */

static bool is_answer(const struct attempt *attempt)
{
    return mu__dns_is_answer(attempt->bytes, attempt->size, attempt->query,
                             attempt->query_size);
}

static int talk_tcp(struct attempt *attempt, int fd)
{
    uint8_t message[2 + MU__DNS_QUERY_BYTES];
    int rv;

    message[0] = (uint8_t)(attempt->query_size >> 8);
    message[1] = (uint8_t)attempt->query_size;
    memcpy(message + 2, attempt->query, attempt->query_size);
    rv = transfer(attempt, fd, true, message, attempt->query_size + 2);
    if (rv == 0)
        rv = transfer(attempt, fd, false, message, 2);
    if (rv != 0)
        return rv;
    attempt->size = (size_t)(message[0] << 8 | message[1]);
    rv = transfer(attempt, fd, false, attempt->bytes, attempt->size);
    if (rv == 0 && !is_answer(attempt))
        return mu_error_set(attempt->error, -MU_EUNAVAILABLE,
                            "DNS server %s answers something else over TCP",
                            attempt->server_name);
    return rv;
}

/* What is no answer to the request is from somebody else, and ignored. */
static int talk_udp(struct attempt *attempt, int fd)
{
    for (;;) {
        ssize_t size;
        int rv = wait_for(attempt, fd, POLLIN);

        if (rv != 0)
            return rv;
        size = recv(fd, attempt->bytes, MU__DNS_BYTES_MAX, 0);
        if (size < 0 && !is_passing(errno))
            return unreachable(attempt, errno);
        attempt->size = size < 0 ? 0 : (size_t)size;
        if (is_answer(attempt))
            return 0;
    }
}

static int over_udp(struct attempt *attempt)
{
    int fd;
    int rv = open_socket(attempt, SOCK_DGRAM, &fd);

    if (rv != 0)
        return rv;
    if (send(fd, attempt->query, attempt->query_size, 0) < 0)
        rv = unreachable(attempt, errno);
    if (rv == 0)
        rv = talk_udp(attempt, fd);
    (void)close(fd);
    return rv;
}

static int over_tcp(struct attempt *attempt)
{
    int fd;
    int rv = open_socket(attempt, SOCK_STREAM, &fd);

    if (rv != 0)
        return rv;
    rv = talk_tcp(attempt, fd);
    (void)close(fd);
    return rv;
}

static int request_server(struct attempt *attempt, struct mu__dns_records *records,
                          int *ret_code)
{
    mu_error inner;
    int code;
    int rv = over_udp(attempt);

    if (rv == 0 && mu__dns_is_cut(attempt->bytes)) {
        attempt->until_ns = attempt->exchange->due_ns;
        rv = over_tcp(attempt);
    }
    if (rv != 0)
        return rv;
    code = mu__dns_code(attempt->bytes);
    if (code != MU__DNS_FINE && code != MU__DNS_NO_SUCH_NAME)
        return mu_error_set(attempt->error, -MU_EUNAVAILABLE, "DNS server %s says %s",
                            attempt->server_name, mu__dns_code_name(code));
    *ret_code = code;
    if (code == MU__DNS_NO_SUCH_NAME)
        return 0;
    rv = mu__dns_answer_read(attempt->bytes, attempt->size, attempt->exchange->type,
                             &inner, records);
    return rv == 0 ? 0
                   : mu_error_set(attempt->error, rv, "DNS server %s: %s",
                                  attempt->server_name, inner.message);
}

/* ---- All servers ---- */

/* The number of a request cannot be guessed by whoever would answer in the server's
 * place. */
static int begin(struct attempt *attempt, unsigned server, uint64_t try_ms)
{
    const struct mu__dns_exchange *exchange = attempt->exchange;
    uint64_t until_ns = uv_hrtime() + try_ms * NS_PER_MS;
    uint16_t id = 0;

    attempt->server = &exchange->servers->items[server];
    attempt->until_ns = until_ns < exchange->due_ns ? until_ns : exchange->due_ns;
    name_server(attempt->server, attempt->server_name, sizeof attempt->server_name);
    (void)uv_random(NULL, NULL, &id, sizeof id, 0, NULL);
    return mu__dns_query_write(exchange->name, exchange->type, id, attempt->error,
                               attempt->query, &attempt->query_size);
}

static bool is_final(int rv)
{
    return rv == 0 || rv == -MU_ECANCELLED || rv == -MU_ENOMEM;
}

/* Each server once. What one of them that was silent might say outweighs the others'
 * refusals: it is asked again. */
static int request_round(struct attempt *attempt, uint64_t try_ms,
                         struct mu__dns_records *records, int *ret_code)
{
    mu_error *out = attempt->error;
    mu_error error;
    int worst = 0;

    attempt->error = &error;
    for (unsigned i = 0; i < attempt->exchange->servers->count; i++) {
        int rv = begin(attempt, i, try_ms);

        if (rv == 0)
            rv = request_server(attempt, records, ret_code);
        if (rv != 0 && worst != -MU_EDEADLINE)
            *out = error;
        if (is_final(rv)) {
            worst = rv;
            break;
        }
        worst = worst == -MU_EDEADLINE ? worst : rv;
    }
    attempt->error = out;
    return worst;
}

int mu__dns_exchange(const struct mu__dns_exchange *exchange, mu_error *ret_error,
                     struct mu__dns_records *records, int *ret_code)
{
    mu_error error = {0};
    struct attempt attempt = {.exchange = exchange, .error = &error};
    uint64_t try_ms = FIRST_TRY_MS;
    int rv;

    if (exchange->servers->count == 0)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "no DNS server is configured");
    attempt.bytes = malloc(MU__DNS_BYTES_MAX);
    if (attempt.bytes == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    do {
        rv = request_round(&attempt, try_ms, records, ret_code);
        try_ms *= 2;
    } while (rv == -MU_EDEADLINE && uv_hrtime() < exchange->due_ns);
    free(attempt.bytes);
    if (rv != 0 && ret_error != NULL)
        *ret_error = error;
    return rv;
}
