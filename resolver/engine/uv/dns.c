/* Addresses and services from DNS servers, by c-ares, on a thread that waits for them.
 *
 * Each request has a channel of c-ares of its own, so the system's configuration is read
 * anew. A server that is silent is tried again after 1, 2, 4 … s, until the request's
 * timeout. */
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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum {
    PORT = 53,
    FIRST_TRY_MS = 1000,
    TRIES = 6,
    TICK_MS = 100,   /* how often the look-up's end is checked */
    QUERIES_MAX = 2, /* of one request: A and AAAA */
    NS_PER_MS = 1000000
};

struct dns_query {
    struct dns_look_up *look_up;
    int type;
    int status; /* of c-ares */
};

struct dns_look_up {
    struct mu__request_work *work;
    ares_channel ares;
    struct dns_query queries[QUERIES_MAX];
    unsigned queries_count;
    unsigned waiting; /* queries without an answer */
    bool has_ended;   /* later answers are not wanted */
    struct mu__dns_records records;
};

static int fail_dns(const struct dns_look_up *look_up, int code, const char *words)
{
    return mu_error_set(&look_up->work->answer.error, code, "%.256s: %s",
                        look_up->work->request.name, words);
}

/* ---- Answers ---- */

static int read_dns_addresses(const struct hostent *host, int type,
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
static int read_dns_records(int type, const unsigned char *bytes, int size,
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
                                 : read_dns_addresses(host, type, records);
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

static void on_dns_answer(void *arg, int status, int timeouts, unsigned char *bytes,
                          int size)
{
    struct dns_query *query = arg;
    struct dns_look_up *look_up = query->look_up;

    (void)timeouts;
    if (look_up->has_ended)
        return;
    if (!is_response(bytes, size))
        status = ARES_EBADRESP;
    if (status == ARES_SUCCESS)
        status = read_dns_records(query->type, bytes, size, &look_up->records);
    query->status = status;
    look_up->waiting--;
}

/* ---- Results ---- */

static bool is_answered(int status)
{
    return status == ARES_SUCCESS || status == ARES_ENODATA || status == ARES_ENOTFOUND;
}

static void describe_servers(const struct dns_look_up *look_up, char *out, size_t size)
{
    struct ares_addr_node *servers = NULL;
    char address[INET6_ADDRSTRLEN] = "";

    if (ares_get_servers(look_up->ares, &servers) == ARES_SUCCESS && servers != NULL)
        (void)uv_inet_ntop(servers->family, &servers->addr, address, sizeof address);
    (void)snprintf(out, size, "DNS server %s%s", address,
                   servers != NULL && servers->next != NULL ? " and others" : "");
    ares_free_data(servers);
}

/* The error of a failed query; `server` describes the servers. */
static int fail_status(const struct dns_look_up *look_up, int status, const char *server)
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
    return fail_dns(look_up, code, words);
}

/* RFC 2782: a single "." says that there decidedly is no such service. */
static bool has_none(const struct mu__dns_records *records)
{
    return records->count == 0 ||
           (records->count == 1 && records->items[0].target != NULL &&
            strcmp(records->items[0].target, ".") == 0);
}

static int fail_not_found(const struct dns_look_up *look_up, bool exists,
                          const char *server)
{
    char words[160];

    (void)snprintf(words, sizeof words, "%s knows %s", server,
                   !exists ? "no such name"
                   : look_up->work->request.kind == MU__REQUEST_SERVICES
                       ? "no services (SRV) of it"
                       : "no addresses of it");
    return fail_dns(look_up, -MU_ENOTFOUND, words);
}

static int take_dns_text(struct dns_look_up *look_up)
{
    size_t bytes_max = mu__request_bytes_max(&look_up->work->request);
    size_t size = 0;
    char words[96];
    char *text = mu__dns_records_text(&look_up->records, &size);

    if (text == NULL)
        return mu_error_set(&look_up->work->answer.error, -MU_ENOMEM, "out of memory");
    if (size <= bytes_max) {
        look_up->work->answer.data = text;
        look_up->work->answer.size = size;
        return 0;
    }
    free(text);
    (void)snprintf(words, sizeof words, "expected at most %zu bytes of records, got %zu",
                   bytes_max, size);
    return fail_dns(look_up, -MU_EEXHAUSTED, words);
}

/* All queries have ended. If there are IPv4 addresses, the AAAA query may have failed:
 * some servers fail where there is none. */
static int conclude_dns_look_up(struct dns_look_up *look_up)
{
    bool exists = false;
    char server[96];

    describe_servers(look_up, server, sizeof server);
    for (unsigned i = 0; i < look_up->queries_count; i++) {
        int status = look_up->queries[i].status;

        exists |= status == ARES_SUCCESS || status == ARES_ENODATA;
        if (!is_answered(status) &&
            (i == 0 || look_up->records.count == 0 || status == ARES_ENOMEM))
            return fail_status(look_up, status, server);
    }
    return has_none(&look_up->records) ? fail_not_found(look_up, exists, server)
                                       : take_dns_text(look_up);
}

static int fail_dns_deadline(const struct dns_look_up *look_up)
{
    const struct mu__request *request = &look_up->work->request;
    char words[160];

    (void)snprintf(words, sizeof words, "no answer%s%.64s within %u ms",
                   request->dns_server == NULL ? "" : " from DNS server ",
                   request->dns_server == NULL ? "" : request->dns_server,
                   mu__request_timeout_ms(request));
    return fail_dns(look_up, -MU_EDEADLINE, words);
}

/* ---- Servers ---- */

static int open_ares(struct dns_look_up *look_up, int flags)
{
    struct ares_options options = {
        .flags = flags, .timeout = FIRST_TRY_MS, .tries = TRIES};
    int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;

#ifdef ARES_OPT_QUERY_CACHE
    set |= ARES_OPT_QUERY_CACHE; /* for 0 s: each request gets what is true now */
#endif
    return ares_init_options(&look_up->ares, &options, set);
}

/* When there is one server, its refusals are reported; of several the next one is
 * tried. */
static int open_system(struct dns_look_up *look_up)
{
    struct ares_addr_node *servers = NULL;
    bool is_one;
    int status = open_ares(look_up, 0);

    if (status != ARES_SUCCESS)
        return status;
    is_one = ares_get_servers(look_up->ares, &servers) == ARES_SUCCESS &&
             servers != NULL && servers->next == NULL;
    ares_free_data(servers);
    if (!is_one)
        return ARES_SUCCESS;
    ares_destroy(look_up->ares);
    look_up->ares = NULL;
    return open_ares(look_up, ARES_FLAG_NOCHECKRESP);
}

/* "53" up to 65535; 0 for what is no port. */
static int read_dns_port(const char *text)
{
    int64_t port = mu__decimal(text, strlen(text), 65535);

    return port < 0 ? 0 : (int)port;
}

/* "127.0.0.1", "127.0.0.1:5353", "::1" or "[::1]:5353". */
static bool read_dns_server(const char *text, struct ares_addr_port_node *ret_server)
{
    const char *colon = strrchr(text, ':');
    bool has_brackets = text[0] == '[';
    bool has_port =
        colon != NULL && (has_brackets ? colon[-1] == ']' : strchr(text, ':') == colon);
    size_t size = has_port ? (size_t)(colon - text) : strlen(text);
    int port = has_port ? read_dns_port(colon + 1) : PORT;
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

static int open_server(struct dns_look_up *look_up, struct ares_addr_port_node *server)
{
    int status = open_ares(look_up, ARES_FLAG_NOCHECKRESP | ARES_FLAG_NOSEARCH);

    return status == ARES_SUCCESS ? ares_set_servers_ports(look_up->ares, server)
                                  : status;
}

/* ---- The job ---- */

static void start_dns_queries(struct dns_look_up *look_up)
{
    const struct mu__request *request = &look_up->work->request;
    bool is_service = request->kind == MU__REQUEST_SERVICES;
    const int types[QUERIES_MAX] = {is_service ? MU__DNS_SRV : MU__DNS_A, MU__DNS_AAAA};

    look_up->queries_count = is_service ? 1 : 2;
    look_up->waiting = look_up->queries_count;
    for (unsigned i = 0; i < look_up->queries_count; i++) {
        look_up->queries[i] = (struct dns_query){.look_up = look_up, .type = types[i]};
        ares_search(look_up->ares, request->name, ns_c_in, types[i], on_dns_answer,
                    &look_up->queries[i]);
    }
}

/* How long c-ares may wait for its sockets, ms. */
static int get_dns_tick_ms(const struct dns_look_up *look_up)
{
    struct timeval most = {.tv_usec = TICK_MS * 1000};
    struct timeval left;
    const struct timeval *wait = ares_timeout(look_up->ares, &most, &left);

    return wait == NULL ? TICK_MS : (int)(wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1);
}

static void process_dns_sockets(struct dns_look_up *look_up)
{
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    struct pollfd fds[ARES_GETSOCK_MAXNUM];
    unsigned mask = (unsigned)ares_getsock(look_up->ares, sockets, ARES_GETSOCK_MAXNUM);
    nfds_t count = 0;

    for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
        /* not ARES_GETSOCK_WRITABLE, which shifts a 1 into the sign */
        int events = ((mask >> i & 1) != 0 ? POLLIN : 0) |
                     ((mask >> (i + ARES_GETSOCK_MAXNUM) & 1) != 0 ? POLLOUT : 0);

        if (events != 0)
            fds[count++] = (struct pollfd){.fd = sockets[i], .events = (short)events};
    }
    (void)poll(fds, count, get_dns_tick_ms(look_up));
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].revents != 0)
            ares_process_fd(
                look_up->ares,
                (fds[i].revents & ~POLLOUT) != 0 ? fds[i].fd : ARES_SOCKET_BAD,
                (fds[i].revents & POLLOUT) != 0 ? fds[i].fd : ARES_SOCKET_BAD);
    ares_process_fd(look_up->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* timeouts */
}

static int wait_for_dns(struct dns_look_up *look_up)
{
    struct mu__request_work *work = look_up->work;
    uint64_t begin_ms = uv_hrtime() / NS_PER_MS;
    uint64_t end_ms = begin_ms + mu__request_timeout_ms(&work->request);

    start_dns_queries(look_up);
    while (look_up->waiting > 0 && uv_hrtime() / NS_PER_MS < end_ms &&
           !atomic_load(&work->is_cancelled))
        process_dns_sockets(look_up);
    return look_up->waiting > 0 ? fail_dns_deadline(look_up)
                                : conclude_dns_look_up(look_up);
}

static int check_dns_request(const struct mu__request *request,
                             struct ares_addr_port_node *server, mu_error *ret_error)
{
    if (request->name[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected a name to look up, got none");
    if (request->dns_server != NULL && !read_dns_server(request->dns_server, server))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "DNS server \"%.100s\": expected ADDRESS or ADDRESS:PORT, as "
                            "in \"127.0.0.1:53\"",
                            request->dns_server);
    return mu__dns_name_check(request->name, ret_error);
}

int mu__work_dns(struct mu__request_work *work)
{
    const struct mu__request *request = &work->request;
    struct dns_look_up look_up = {.work = work};
    struct ares_addr_port_node server;
    int rv = check_dns_request(request, &server, &work->answer.error);

    if (rv != 0)
        return rv;
    if ((request->dns_server == NULL ? open_system(&look_up)
                                     : open_server(&look_up, &server)) == ARES_SUCCESS)
        rv = wait_for_dns(&look_up);
    else
        rv = mu_error_set(&work->answer.error, -MU_ENOMEM, "%.256s: out of memory",
                          request->name);
    look_up.has_ended = true;
    if (look_up.ares != NULL)
        ares_destroy(look_up.ares);
    mu__dns_records_done(&look_up.records);
    return rv;
}
