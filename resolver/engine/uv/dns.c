/* Addresses and services, looked up on a thread: by the system, or by asking DNS servers.
 * A system's look-up cannot be ended; servers are asked until the request's limit. */
#define _GNU_SOURCE /* resolv.h, EAI_NODATA */

#include "resolver/engine/request.h"
#include "resolver/engine/uv/dns_exchange.h"
#include "resolver/engine/uv/requester_internal.h"
#include "runtime/uv/look_up.h"

#include <locale.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_MAX = MAXDNSRCH + 2 };

struct look_up {
    struct mu__request_work *task;
    const char *name;
    enum mu__request_kind kind;
    struct mu__dns_servers servers; /* what the request says; none: the system's */
    struct mu__dns_records records; /* what was found */
};

static int fails(struct look_up *look_up, int code, const char *words)
{
    return mu_error_set(&look_up->task->error, code, "%.260s: %s", look_up->name, words);
}

static int out_of_memory(struct look_up *look_up)
{
    return mu__work_fail(look_up->task, -MU_ENOMEM, "out of memory");
}

/* ---- The system's look-up ---- */

static int fail_system(struct look_up *look_up, int status)
{
    return fails(look_up, mu__look_up_code(status), gai_strerror(status));
}

static int add_found(struct look_up *look_up, const struct addrinfo *found)
{
    int rv = 0;

    for (; found != NULL && rv == 0; found = found->ai_next) {
        const void *address = found->ai_addr;

        if (found->ai_family == AF_INET)
            rv = mu__dns_records_add(
                &look_up->records, MU__DNS_A,
                (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr);
        else if (found->ai_family == AF_INET6)
            rv = mu__dns_records_add(
                &look_up->records, MU__DNS_AAAA,
                (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr);
    }
    return rv == 0 ? 0 : out_of_memory(look_up);
}

static int get_addresses(const char *name, int flags, struct addrinfo **ret_found)
{
    const struct addrinfo hints = {
        .ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    return getaddrinfo(name, NULL, &hints, ret_found);
}

#ifdef AI_IDN
static bool is_ascii(const char *name)
{
    while (*name != '\0' && (*name & 0x80) == 0)
        name++;
    return *name == '\0';
}

/* As DNS has them ("xn--..."). The system takes names for the locale's, which a program
 * that has set none does not have: ours are UTF-8, on this thread alone. */
static int get_addresses_of_letters(const char *name, struct addrinfo **ret_found)
{
    locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before;
    int rv;

    if (letters == (locale_t)0)
        return EAI_IDN_ENCODE;
    before = uselocale(letters);
    rv = get_addresses(name, AI_IDN, ret_found);
    (void)uselocale(before);
    freelocale(letters);
    return rv;
}

/* Where they cannot be written so, or nobody knows them so, the name is asked for as it
 * stands. */
static int get_addresses_of_name(const char *name, struct addrinfo **ret_found)
{
    int rv = is_ascii(name) ? EAI_IDN_ENCODE : get_addresses_of_letters(name, ret_found);

    return rv == EAI_IDN_ENCODE || rv == EAI_NONAME ? get_addresses(name, 0, ret_found)
                                                    : rv;
}
#else
static int get_addresses_of_name(const char *name, struct addrinfo **ret_found)
{
    return get_addresses(name, 0, ret_found);
}
#endif

static int request_system(struct look_up *look_up)
{
    struct addrinfo *found = NULL;
    int rv = get_addresses_of_name(look_up->name, &found);

    if (rv != 0)
        return fail_system(look_up, rv);
    rv = add_found(look_up, found);
    freeaddrinfo(found);
    return rv;
}

/* ---- Asking servers ---- */

struct candidates {
    char names[CANDIDATES_MAX][MU__DNS_NAME_BYTES * 2];
    unsigned count;
};

static void add_candidate(struct candidates *candidates, const char *name,
                          const char *domain)
{
    (void)snprintf(candidates->names[candidates->count++], sizeof candidates->names[0],
                   "%s%s%s", name, domain == NULL ? "" : ".",
                   domain == NULL ? "" : domain);
}

/* As everybody reads resolv.conf: a name with few dots is looked for in the search list
 * first, one with more as it stands first. */
static void list_candidates(const char *name, struct __res_state *state,
                            struct candidates *candidates)
{
    bool is_whole = name[strlen(name) - 1] == '.';
    unsigned dots = 0;

    for (const char *at = name; *at != '\0'; at++)
        dots += *at == '.';
    if (is_whole || dots >= state->ndots)
        add_candidate(candidates, name, NULL);
    for (int i = 0; !is_whole && i < MAXDNSRCH && state->dnsrch[i] != NULL; i++)
        add_candidate(candidates, name, state->dnsrch[i]);
    if (!is_whole && dots < state->ndots)
        add_candidate(candidates, name, NULL);
}

/* The servers of this machine, and the names that may be meant. */
static int read_configuration(struct look_up *look_up, struct candidates *candidates)
{
    struct mu__dns_servers *servers = &look_up->servers;
    struct __res_state state;

    memset(&state, 0, sizeof state);
    if (res_ninit(&state) != 0)
        return mu__work_fail(look_up->task, -MU_EUNAVAILABLE,
                             "the system's DNS configuration cannot be read");
    for (int i = 0; i < state.nscount && servers->count < MU__DNS_SERVERS_MAX; i++) {
        if (state.nsaddr_list[i].sin_family == AF_INET)
            memcpy(&servers->items[servers->count++], &state.nsaddr_list[i],
                   sizeof state.nsaddr_list[i]);
        else if (state._u._ext.nsaddrs[i] != NULL)
            memcpy(&servers->items[servers->count++], state._u._ext.nsaddrs[i],
                   sizeof *state._u._ext.nsaddrs[i]);
    }
    list_candidates(look_up->name, &state, candidates);
    res_nclose(&state);
    return 0;
}

static int request_type(struct look_up *look_up, const char *name, int type,
                        mu_error *ret_error)
{
    struct mu__dns_exchange exchange = {.servers = &look_up->servers,
                                        .name = name,
                                        .type = type,
                                        .due_ns = look_up->task->due_ns,
                                        .cancelled = &look_up->task->is_cancelled};
    int code = MU__DNS_FINE;
    int rv = mu__dns_exchange(&exchange, ret_error, &look_up->records, &code);

    if (rv != 0)
        return rv;
    return code == MU__DNS_NO_SUCH_NAME ? -MU_ENOTFOUND : 0;
}

/* Of a name with IPv4 addresses the others may be missing: some servers fail where there
 * is none. -MU_ENOTFOUND has no words yet. */
static int request_name(struct look_up *look_up, const char *name, mu_error *ret_error)
{
    size_t count;
    int rv;

    if (look_up->kind == MU__REQUEST_SERVICES)
        return request_type(look_up, name, MU__DNS_SRV, ret_error);
    rv = request_type(look_up, name, MU__DNS_A, ret_error);
    if (rv != 0)
        return rv;
    count = look_up->records.count;
    rv = request_type(look_up, name, MU__DNS_AAAA, ret_error);
    return count > 0 && rv != -MU_ENOMEM && rv != -MU_ECANCELLED ? 0 : rv;
}

/* RFC 2782: a single "." says that there decidedly is no such service. */
static bool has_none(const struct mu__dns_records *records)
{
    return records->count == 0 ||
           (records->count == 1 && records->items[0].target != NULL &&
            strcmp(records->items[0].target, ".") == 0);
}

static void words_of_server(const struct look_up *look_up, char *out, size_t size)
{
    char address[48] = "";
    const struct sockaddr_storage *server = &look_up->servers.items[0];

    if (server->ss_family == AF_INET)
        (void)uv_ip4_name((const struct sockaddr_in *)server, address, sizeof address);
    else
        (void)uv_ip6_name((const struct sockaddr_in6 *)server, address, sizeof address);
    (void)snprintf(out, size, "DNS server %s%s", address,
                   look_up->servers.count > 1 ? " and others" : "");
}

static int request_servers(struct look_up *look_up)
{
    struct candidates candidates = {.count = 0};
    char server[80];
    mu_error error = {0};
    bool exists = false;

    if (look_up->servers.count > 0)
        (void)snprintf(candidates.names[candidates.count++], sizeof candidates.names[0],
                       "%s", look_up->name);
    else if (read_configuration(look_up, &candidates) != 0)
        return look_up->task->error.code;
    for (unsigned i = 0; i < candidates.count; i++) {
        int rv = request_name(look_up, candidates.names[i], &error);

        if (rv != 0 && rv != -MU_ENOTFOUND)
            return mu_error_set(&look_up->task->error, rv, "%.256s: %s",
                                candidates.names[i], error.message);
        exists |= rv == 0;
        if (!has_none(&look_up->records))
            return 0;
    }
    words_of_server(look_up, server, sizeof server);
    return mu_error_set(&look_up->task->error, -MU_ENOTFOUND, "%.256s: %s knows %s%s",
                        look_up->name, server, exists ? "no " : "no such name",
                        !exists                                 ? ""
                        : look_up->kind == MU__REQUEST_SERVICES ? "services (SRV) of it"
                                                                : "addresses of it");
}


/* ---- The task ---- */

static int write_records(struct look_up *look_up)
{
    size_t bytes_max = mu__request_bytes_max(&look_up->task->request);
    size_t size;
    char *text = mu__dns_records_text(&look_up->records, &size);

    if (text == NULL)
        return out_of_memory(look_up);
    if (size > bytes_max) {
        free(text);
        return mu_error_set(&look_up->task->error, -MU_EEXHAUSTED,
                            "%s: expected at most %zu bytes of records, got %zu",
                            look_up->name, bytes_max, size);
    }
    look_up->task->data = text;
    look_up->task->size = size;
    return 0;
}

static int find_out(struct look_up *look_up)
{
    const char *server = look_up->task->request.dns_server;
    int rv = 0;

    if (look_up->name[0] == '\0')
        return mu__work_fail(look_up->task, -MU_EINVALID,
                             "expected a name to look up, got none");
    if (strlen(look_up->name) >= MU__DNS_NAME_BYTES)
        return fails(look_up, -MU_EINVALID, "expected a name of at most 255 bytes");
    if (server != NULL)
        rv = mu__dns_server_parse(server, &look_up->task->error, &look_up->servers);
    if (rv != 0)
        return rv;
    return server == NULL && look_up->kind == MU__REQUEST_ADDRESSES
               ? request_system(look_up)
               : request_servers(look_up);
}

int mu__work_names(struct mu__request_work *task)
{
    struct look_up look_up = {
        .task = task, .name = task->request.name, .kind = task->request.kind};
    int rv = find_out(&look_up);

    if (rv == 0)
        rv = write_records(&look_up);
    mu__dns_records_done(&look_up.records);
    return rv;
}

/* ---- Numbers ---- */

static int number_text(const char *name, char **ret_text, size_t *ret_size)
{
    struct mu__dns_records records = {0};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    int rv = -MU_ENOTFOUND;

    if (uv_ip4_addr(name, 0, &v4) == 0)
        rv = mu__dns_records_add(&records, MU__DNS_A, (const uint8_t *)&v4.sin_addr);
    else if (uv_ip6_addr(name, 0, &v6) == 0)
        rv = mu__dns_records_add(&records, MU__DNS_AAAA, (const uint8_t *)&v6.sin6_addr);
    if (rv == 0)
        *ret_text = mu__dns_records_text(&records, ret_size);
    mu__dns_records_done(&records);
    return rv;
}

bool mu__requester_answer_number(struct mu__exchange *exchange)
{
    char *text = NULL;
    size_t size = 0;

    if (exchange->request.kind != MU__REQUEST_ADDRESSES ||
        number_text(exchange->request.name, &text, &size) == -MU_ENOTFOUND)
        return false;
    mu__requester_answer(exchange, text, size);
    return true;
}
