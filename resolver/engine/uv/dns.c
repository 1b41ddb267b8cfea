/* Addresses and services from DNS servers, by c-ares in the requester's loop.
 *
 * A channel of c-ares is opened for each server that requests name, and for the
 * system's, and closed when no request needs it any more: so the system's configuration
 * is read anew for each burst of requests. At most ACTIVE_MAX requests of a channel are
 * in flight; the others wait in order. A server that is silent is tried again after 1,
 * 2, 4 … s, until the request's timeout; the queries of a request that is cancelled
 * stay with c-ares, which drops them with the channel. */
#define CARES_NO_DEPRECATED /* 1.34 deprecates what 1.18 has nothing else for */

#include "resolver/engine/dns_records.h"
#include "resolver/engine/request.h"
#include "resolver/engine/uv/internal.h"
#include "runtime/base/text.h"

#include <sys/select.h> /* before ares.h of 1.18, which needs it */

#include <ares.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum {
    PORT = 53,
    FIRST_TRY_MS = 1000,
    TRIES = 6,
    ACTIVE_MAX = 32,
    QUERIES = 2 /* of one request: A and AAAA */
};

/* A socket of c-ares. */
struct watched_socket {
    uv_poll_t poll; /* first: handles cast */
    struct mu__dns_channel *channel;
    ares_socket_t fd;
    struct mu__list_node node;
};

struct mu__dns_channel {
    uv_timer_t timer; /* first: handles cast; c-ares's next timeout */
    struct mu__requester_uv *requester;
    ares_channel ares;
    char *server; /* NULL: the system's */
    bool is_busy; /* exchanges are being answered: do not close it */
    unsigned active;
    struct mu__list look_ups; /* in order; those with an exchange */
    struct mu__list sockets;
    struct mu__list_node node;
};

struct dns_query {
    struct dns_look_up *look_up;
    int type;
    int status; /* of c-ares */
};

/* One request. Freed when c-ares has answered all of its queries and the timer is
 * closed. */
struct dns_look_up {
    uv_timer_t deadline;             /* first: handles cast */
    struct mu__requester_uv *requester;
    struct mu__dns_channel *channel; /* NULL: timed out, cancelled or answered */
    struct mu__exchange *exchange;   /* NULL when `channel` is */
    bool is_active;
    struct dns_query queries[QUERIES];
    unsigned queries_count;
    unsigned waiting; /* queries without an answer */
    unsigned refs;
    struct mu__dns_records records;
    struct mu__list_node node;
};

static void turn(struct mu__dns_channel *channel);

/* ---- Look-ups ---- */

static void unref(struct dns_look_up *look_up)
{
    if (--look_up->refs > 0)
        return;
    mu__dns_records_done(&look_up->records);
    free(look_up);
}

static void on_deadline_closed(uv_handle_t *handle)
{
    struct dns_look_up *look_up = (struct dns_look_up *)handle;
    struct mu__requester_uv *requester = look_up->requester;

    unref(look_up);
    mu__requester_release(requester);
}

/* Take a look-up from its channel; the exchange is the caller's, to be answered or
 * not. */
static struct mu__exchange *detach(struct dns_look_up *look_up)
{
    struct mu__dns_channel *channel = look_up->channel;
    struct mu__exchange *exchange = look_up->exchange;

    mu__list_remove(&channel->look_ups, &look_up->node);
    channel->active -= look_up->is_active;
    look_up->channel = NULL;
    look_up->exchange = NULL;
    exchange->own = NULL;
    uv_close((uv_handle_t *)&look_up->deadline, on_deadline_closed);
    return exchange;
}

static void fail(struct mu__exchange *exchange, int code, const char *words)
{
    exchange->answer.code = mu_error_set(&exchange->answer.error, code, "%.256s: %s",
                                         exchange->request.name, words);
    mu__exchange_answer(exchange);
}

static void on_deadline(uv_timer_t *timer)
{
    struct dns_look_up *look_up = (struct dns_look_up *)timer;
    struct mu__dns_channel *channel = look_up->channel;
    const struct mu__request *request = &look_up->exchange->request;
    char words[160];

    (void)snprintf(words, sizeof words, "no answer%s%.64s within %u ms",
                   request->dns_server == NULL ? "" : " from DNS server ",
                   request->dns_server == NULL ? "" : request->dns_server,
                   mu__request_timeout_ms(request));
    channel->is_busy = true;
    fail(detach(look_up), -MU_EDEADLINE, words);
    channel->is_busy = false;
    turn(channel);
}

/* ---- Answers ---- */

static int read_addresses(const struct hostent *host, int type,
                          struct mu__dns_records *records)
{
    int rv = 0;

    for (char **at = host->h_addr_list; *at != NULL && rv == 0; at++)
        rv = mu__dns_records_add(records, type, (const uint8_t *)*at);
    return rv;
}

static int read_services(const struct ares_srv_reply *service,
                         struct mu__dns_records *records)
{
    int rv = 0;

    for (; service != NULL && rv == 0; service = service->next)
        rv = mu__dns_records_add_service(records, service->priority, service->weight,
                                         service->port, service->host);
    return rv;
}

/* Returns a status of c-ares. */
static int read_records(int type, const unsigned char *bytes, int size,
                        struct mu__dns_records *records)
{
    struct ares_srv_reply *services = NULL;
    struct hostent *host = NULL;
    int status;
    int rv = 0;

    if (type == MU__DNS_SRV)
        status = ares_parse_srv_reply(bytes, size, &services);
    else if (type == MU__DNS_A)
        status = ares_parse_a_reply(bytes, size, &host, NULL, NULL);
    else
        status = ares_parse_aaaa_reply(bytes, size, &host, NULL, NULL);
    if (status == ARES_SUCCESS)
        rv = type == MU__DNS_SRV ? read_services(services, records)
                                 : read_addresses(host, type, records);
    if (services != NULL)
        ares_free_data(services);
    if (host != NULL)
        ares_free_hostent(host);
    if (rv != 0)
        status = rv == -MU_ENOMEM ? ARES_ENOMEM : ARES_EBADRESP;
    return status;
}

static bool is_response(const unsigned char *bytes, int size)
{
    return bytes == NULL || (size > 2 && (bytes[2] & 0x80) != 0);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *bytes, int size)
{
    struct dns_query *query = arg;
    struct dns_look_up *look_up = query->look_up;

    (void)timeouts;
    if (!is_response(bytes, size))
        status = ARES_EBADRESP;
    if (status == ARES_SUCCESS && look_up->exchange != NULL)
        status = read_records(query->type, bytes, size, &look_up->records);
    query->status = status;
    look_up->waiting--;
    unref(look_up);
}

/* ---- Results ---- */

static bool is_answered(int status)
{
    return status == ARES_SUCCESS || status == ARES_ENODATA || status == ARES_ENOTFOUND;
}

static void describe_servers(const struct mu__dns_channel *channel, char *out,
                             size_t size)
{
    struct ares_addr_node *servers = NULL;
    char address[INET6_ADDRSTRLEN] = "";

    if (ares_get_servers(channel->ares, &servers) == ARES_SUCCESS && servers != NULL)
        (void)uv_inet_ntop(servers->family, &servers->addr, address, sizeof address);
    (void)snprintf(out, size, "DNS server %s%s", address,
                   servers != NULL && servers->next != NULL ? " and others" : "");
    ares_free_data(servers);
}

/* Answer with the error of a failed query; `server` describes the servers. */
static void fail_status(struct mu__exchange *exchange, int status, const char *server)
{
    static const struct {
        int status;
        int code;
        const char *words;
    } rows[] = {
        {ARES_EFORMERR, -MU_EUNAVAILABLE, " says FORMERR"},
        {ARES_ESERVFAIL, -MU_EUNAVAILABLE, " says SERVFAIL"},
        {ARES_ENOTIMP, -MU_EUNAVAILABLE, " says NOTIMP"},
        {ARES_EREFUSED, -MU_EUNAVAILABLE, " says REFUSED"},
        {ARES_ECONNREFUSED, -MU_EUNAVAILABLE, ": connection refused"},
        {ARES_EBADRESP, -MU_EINVALID, ": its answer is malformed"},
        {ARES_ETIMEOUT, -MU_EDEADLINE, ": no answer"},
        {ARES_ENOMEM, -MU_ENOMEM, ": out of memory"},
    };
    char words[256];
    int code = -MU_EUNAVAILABLE;
    const char *what = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status) {
            code = rows[i].code;
            what = rows[i].words;
        }
    (void)snprintf(words, sizeof words, "%s%s%s", server, what == NULL ? ": " : what,
                   what == NULL ? ares_strerror(status) : "");
    fail(exchange, code, words);
}

/* RFC 2782: a single "." says that there decidedly is no such service. */
static bool has_none(const struct mu__dns_records *records)
{
    return records->count == 0 ||
           (records->count == 1 && records->items[0].target != NULL &&
            strcmp(records->items[0].target, ".") == 0);
}

static void fail_not_found(struct mu__exchange *exchange, bool exists, const char *server)
{
    char words[160];

    (void)snprintf(words, sizeof words, "%s knows %s", server,
                   !exists ? "no such name"
                   : exchange->request.kind == MU__REQUEST_SERVICES
                       ? "no services (SRV) of it"
                       : "no addresses of it");
    fail(exchange, -MU_ENOTFOUND, words);
}

static void answer_records(struct mu__exchange *exchange, struct mu__dns_records *records)
{
    size_t bytes_max = mu__request_bytes_max(&exchange->request);
    size_t size = 0;
    char words[96];
    char *text = mu__dns_records_text(records, &size);

    if (text == NULL || size <= bytes_max) {
        mu__requester_answer(exchange, text, size);
        return;
    }
    free(text);
    (void)snprintf(words, sizeof words, "expected at most %zu bytes of records, got %zu",
                   bytes_max, size);
    fail(exchange, -MU_EEXHAUSTED, words);
}

/* Answer a look-up when all of its queries have ended. If there are IPv4 addresses, the
 * AAAA query may have failed: some servers fail where there is none. */
static void conclude(struct mu__dns_channel *channel, struct dns_look_up *look_up)
{
    struct mu__exchange *exchange = detach(look_up);
    bool exists = false;
    char server[96];

    describe_servers(channel, server, sizeof server);
    for (unsigned i = 0; i < look_up->queries_count; i++) {
        int status = look_up->queries[i].status;

        exists |= status == ARES_SUCCESS || status == ARES_ENODATA;
        if (!is_answered(status) && (i == 0 || look_up->records.count == 0 ||
                                     status == ARES_ENOMEM)) {
            fail_status(exchange, status, server);
            return;
        }
    }
    if (has_none(&look_up->records))
        fail_not_found(exchange, exists, server);
    else
        answer_records(exchange, &look_up->records);
}

/* ---- Channels ---- */

static void on_socket_closed(uv_handle_t *handle)
{
    struct watched_socket *watched = (struct watched_socket *)handle;
    struct mu__requester_uv *requester = watched->poll.data;

    free(watched);
    mu__requester_release(requester);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct watched_socket *watched = (struct watched_socket *)poll;
    struct mu__dns_channel *channel = watched->channel;
    ares_socket_t fd = watched->fd;
    bool reads = status < 0 || (events & UV_READABLE) != 0;
    bool writes = status < 0 || (events & UV_WRITABLE) != 0;

    ares_process_fd(channel->ares, reads ? fd : ARES_SOCKET_BAD,
                    writes ? fd : ARES_SOCKET_BAD);
    turn(channel);
}

static struct watched_socket *watch(struct mu__dns_channel *channel, ares_socket_t fd)
{
    struct watched_socket *watched = calloc(1, sizeof *watched);

    if (watched == NULL)
        return NULL;
    if (uv_poll_init_socket(channel->requester->loop, &watched->poll, fd) != 0) {
        free(watched);
        return NULL;
    }
    watched->poll.data = channel->requester;
    channel->requester->holds++;
    watched->channel = channel;
    watched->fd = fd;
    mu__list_prepend(&channel->sockets, &watched->node);
    return watched;
}

/* c-ares closes the socket after this. One that cannot be watched is silent: its queries
 * end by their timeouts. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct mu__dns_channel *channel = arg;
    struct watched_socket *watched =
        MU__LIST_FIRST(&channel->sockets, struct watched_socket, node);

    while (watched != NULL && watched->fd != fd)
        watched = MU__LIST_NEXT(watched, struct watched_socket, node);
    if (readable || writable) {
        if (watched == NULL)
            watched = watch(channel, fd);
        if (watched != NULL)
            (void)uv_poll_start(&watched->poll,
                                (readable ? UV_READABLE : 0) |
                                    (writable ? UV_WRITABLE : 0),
                                on_socket);
    } else if (watched != NULL) {
        mu__list_remove(&channel->sockets, &watched->node);
        uv_close((uv_handle_t *)&watched->poll, on_socket_closed);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct mu__dns_channel *channel = (struct mu__dns_channel *)timer;

    ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    turn(channel);
}

static void on_channel_closed(uv_handle_t *handle)
{
    struct mu__dns_channel *channel = (struct mu__dns_channel *)handle;
    struct mu__requester_uv *requester = channel->requester;

    free(channel->server);
    free(channel);
    mu__requester_release(requester);
}

static void channel_close(struct mu__dns_channel *channel)
{
    mu__list_remove(&channel->requester->dns, &channel->node);
    ares_destroy(channel->ares);
    uv_close((uv_handle_t *)&channel->timer, on_channel_closed);
}

static int open_ares(struct mu__dns_channel *channel, int flags)
{
    struct ares_options options = {.flags = flags,
                                   .timeout = FIRST_TRY_MS,
                                   .tries = TRIES,
                                   .sock_state_cb = on_socket_state,
                                   .sock_state_cb_data = channel};
    int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
              ARES_OPT_SOCK_STATE_CB;

#ifdef ARES_OPT_QUERY_CACHE
    set |= ARES_OPT_QUERY_CACHE; /* for 0 s: each request gets what is true now */
#endif
    return ares_init_options(&channel->ares, &options, set);
}

/* When there is one server, its refusals are reported; of several the next one is
 * tried. */
static int open_system(struct mu__dns_channel *channel)
{
    struct ares_addr_node *servers = NULL;
    bool is_one;
    int status = open_ares(channel, 0);

    if (status != ARES_SUCCESS)
        return status;
    is_one = ares_get_servers(channel->ares, &servers) == ARES_SUCCESS &&
             servers != NULL && servers->next == NULL;
    ares_free_data(servers);
    if (!is_one)
        return ARES_SUCCESS;
    ares_destroy(channel->ares);
    return open_ares(channel, ARES_FLAG_NOCHECKRESP);
}

/* "53" up to 65535; 0 for what is no port. */
static int read_port(const char *text)
{
    int64_t port = mu__decimal(text, strlen(text), 65535);

    return port < 0 ? 0 : (int)port;
}

/* "127.0.0.1", "127.0.0.1:5353", "::1" or "[::1]:5353". */
static bool read_server(const char *text, struct ares_addr_port_node *ret_server)
{
    const char *colon = strrchr(text, ':');
    bool has_brackets = text[0] == '[';
    bool has_port =
        colon != NULL && (has_brackets ? colon[-1] == ']' : strchr(text, ':') == colon);
    size_t size = has_port ? (size_t)(colon - text) : strlen(text);
    int port = has_port ? read_port(colon + 1) : PORT;
    char host[64] = "";

    if (has_brackets && size >= 2 && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    if (size < sizeof host)
        (void)snprintf(host, sizeof host, "%.*s", (int)size, text);
    *ret_server = (struct ares_addr_port_node){
        .family = strchr(host, ':') == NULL ? AF_INET : AF_INET6,
        .udp_port = port,
        .tcp_port = port};
    return port != 0 && uv_inet_pton(ret_server->family, host, &ret_server->addr) == 0;
}

static int open_server(struct mu__dns_channel *channel,
                       struct ares_addr_port_node *server)
{
    int status = open_ares(channel, ARES_FLAG_NOCHECKRESP | ARES_FLAG_NOSEARCH);

    return status == ARES_SUCCESS ? ares_set_servers_ports(channel->ares, server)
                                  : status;
}

/* NULL when out of memory. */
static struct mu__dns_channel *channel_new(struct mu__requester_uv *requester,
                                           const char *name,
                                           struct ares_addr_port_node *server)
{
    struct mu__dns_channel *channel = calloc(1, sizeof *channel);

    if (channel == NULL)
        return NULL;
    channel->requester = requester;
    channel->server = name == NULL ? NULL : strdup(name);
    if ((name != NULL && channel->server == NULL) ||
        (name == NULL ? open_system(channel) : open_server(channel, server)) !=
            ARES_SUCCESS) {
        if (channel->ares != NULL)
            ares_destroy(channel->ares);
        free(channel->server);
        free(channel);
        return NULL;
    }
    (void)uv_timer_init(requester->loop, &channel->timer);
    requester->holds++;
    mu__list_prepend(&requester->dns, &channel->node);
    return channel;
}

static struct mu__dns_channel *channel_find(struct mu__requester_uv *requester,
                                            const char *server)
{
    struct mu__dns_channel *at =
        MU__LIST_FIRST(&requester->dns, struct mu__dns_channel, node);

    while (at != NULL && (server == NULL || at->server == NULL
                              ? server != at->server
                              : strcmp(server, at->server) != 0))
        at = MU__LIST_NEXT(at, struct mu__dns_channel, node);
    return at;
}

/* ---- Turns ---- */

static void start(struct mu__dns_channel *channel, struct dns_look_up *look_up)
{
    bool is_service = look_up->exchange->request.kind == MU__REQUEST_SERVICES;
    const int types[QUERIES] = {is_service ? MU__DNS_SRV : MU__DNS_A, MU__DNS_AAAA};

    look_up->is_active = true;
    channel->active++;
    look_up->queries_count = is_service ? 1 : 2;
    look_up->waiting = look_up->queries_count;
    look_up->refs += look_up->queries_count;
    for (unsigned i = 0; i < look_up->queries_count; i++) {
        look_up->queries[i] = (struct dns_query){.look_up = look_up, .type = types[i]};
        ares_search(channel->ares, look_up->exchange->request.name, ns_c_in, types[i],
                    on_answer, &look_up->queries[i]);
    }
}

/* Start waiting look-ups, up to ACTIVE_MAX; return the first that is complete, or
 * NULL. */
static struct dns_look_up *next_answered(struct mu__dns_channel *channel)
{
    struct dns_look_up *at;
    struct dns_look_up *next;

    for (at = MU__LIST_FIRST(&channel->look_ups, struct dns_look_up, node); at != NULL;
         at = next) {
        next = MU__LIST_NEXT(at, struct dns_look_up, node);
        if (!at->is_active && channel->active == ACTIVE_MAX)
            return NULL;
        if (!at->is_active)
            start(channel, at);
        if (at->waiting == 0)
            return at;
    }
    return NULL;
}

/* Called after each call of c-ares, and never within its callbacks. */
static void turn(struct mu__dns_channel *channel)
{
    struct dns_look_up *look_up;
    struct timeval left;

    if (channel->is_busy)
        return;
    channel->is_busy = true;
    while ((look_up = next_answered(channel)) != NULL)
        conclude(channel, look_up);
    channel->is_busy = false;
    if (mu__list_is_empty(&channel->look_ups)) {
        channel_close(channel);
        return;
    }
    uv_update_time(channel->requester->loop);
    if (ares_timeout(channel->ares, NULL, &left) != NULL)
        (void)uv_timer_start(&channel->timer, on_timer,
                             (uint64_t)left.tv_sec * 1000 +
                                 (uint64_t)left.tv_usec / 1000 + 1,
                             0);
}

/* ---- Requests ---- */

static void enqueue(struct mu__dns_channel *channel, struct dns_look_up *look_up,
                    struct mu__exchange *exchange)
{
    struct mu__requester_uv *requester = channel->requester;

    *look_up = (struct dns_look_up){.requester = requester,
                                    .channel = channel,
                                    .exchange = exchange,
                                    .waiting = QUERIES,
                                    .refs = 1};
    mu__list_append(&channel->look_ups, &look_up->node);
    exchange->own = look_up;
    requester->holds++;
    uv_update_time(requester->loop);
    (void)uv_timer_init(requester->loop, &look_up->deadline);
    (void)uv_timer_start(&look_up->deadline, on_deadline,
                         mu__request_timeout_ms(&exchange->request), 0);
    turn(channel);
}

static int check(const struct mu__request *request, struct ares_addr_port_node *server,
                 mu_error *ret_error)
{
    if (request->name[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected a name to look up, got none");
    if (request->dns_server != NULL && !read_server(request->dns_server, server))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "DNS server \"%.100s\": expected ADDRESS or ADDRESS:PORT, as "
                            "in \"127.0.0.1:53\"",
                            request->dns_server);
    return mu__dns_name_check(request->name, ret_error);
}

void mu__requester_send_dns(struct mu__requester_uv *requester,
                            struct mu__exchange *exchange)
{
    const struct mu__request *request = &exchange->request;
    struct ares_addr_port_node server;
    struct mu__dns_channel *channel;
    struct dns_look_up *look_up;
    int rv = check(request, &server, &exchange->answer.error);

    if (rv != 0) {
        exchange->answer.code = rv;
        mu__exchange_answer(exchange);
        return;
    }
    look_up = malloc(sizeof *look_up);
    channel = look_up == NULL ? NULL : channel_find(requester, request->dns_server);
    if (look_up != NULL && channel == NULL)
        channel = channel_new(requester, request->dns_server, &server);
    if (channel == NULL) {
        free(look_up);
        mu__requester_fail(exchange, -MU_ENOMEM, "out of memory");
        return;
    }
    enqueue(channel, look_up, exchange);
}

void mu__requester_cancel_dns(struct mu__exchange *exchange)
{
    struct dns_look_up *look_up = exchange->own;
    struct mu__dns_channel *channel = look_up->channel;

    (void)detach(look_up);
    turn(channel);
}
