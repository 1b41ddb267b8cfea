/* One struct for each look-up. It answers its note once: with what the thread has found,
 * or by its timer when that takes too long; the thread may go on for a while, and then
 * finds nobody who wants it. It is freed when both the timer is closed and the thread's
 * work is done. */
#define _DEFAULT_SOURCE /* resolv.h */

#include "resolver/dns_uv.h"
#include "resolver/dns_exchange_uv.h"

#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, CANDIDATES_MAX = MAXDNSRCH + 2 };

struct look_up {
    union {
        uv_getaddrinfo_t system;
        uv_work_t work;
    } request; /* first: requests cast */
    uv_timer_t timer;
    unsigned holds;        /* timer, request */
    struct mu__note *note; /* NULL: answered, or nobody wants it */
    bool requested;
    enum mu__ask_kind kind;
    char *name;
    uint32_t limit_ms;
    uint64_t due_ns;
    bool own_server; /* `servers` is what the question says */
    struct mu__dns_servers servers;
    atomic_bool cancelled;
    int code; /* what was found out: */
    mu_error error;
    struct mu__dns_records records;
};

/* ---- Life ---- */

static void drop(struct look_up *look_up)
{
    if (--look_up->holds > 0)
        return;
    mu__dns_records_done(&look_up->records);
    free(look_up->name);
    free(look_up);
}

static void on_timer_closed(uv_handle_t *handle)
{
    drop(handle->data);
}

/* The note has no use for it any more. */
static struct mu__note *let_go(struct look_up *look_up)
{
    struct mu__note *note = look_up->note;

    look_up->note = NULL;
    note->own = NULL;
    uv_close((uv_handle_t *)&look_up->timer, on_timer_closed);
    return note;
}

/* ---- Answering ---- */

static int fill_in(struct look_up *look_up, const struct mu__question *question,
                   mu_error *ret_error, struct mu__answer *answer)
{
    size_t bytes_max = question->bytes_max == 0 ? MU__ASK_BYTES_MAX : question->bytes_max;
    size_t size;
    char *text;

    if (look_up->code != 0) {
        *ret_error = look_up->error;
        return look_up->code;
    }
    text = mu__dns_records_text(&look_up->records, &size);
    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    if (size > bytes_max) {
        free(text);
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: expected at most %zu bytes of records, got %zu",
                            look_up->name, bytes_max, size);
    }
    answer->data = text;
    answer->size = size;
    return 0;
}

static void conclude(struct look_up *look_up)
{
    struct mu__note *note = let_go(look_up);

    note->answer.code =
        fill_in(look_up, &note->question, &note->answer.error, &note->answer);
    mu__note_answer(note);
}

/* The thread may be writing what it has found out: that stays its own. */
static void on_limit(uv_timer_t *timer)
{
    struct look_up *look_up = timer->data;
    struct mu__note *note;
    char server[96] = "";

    if (look_up->own_server)
        (void)snprintf(server, sizeof server, " from DNS server %.64s",
                       look_up->note->question.dns_server);
    atomic_store(&look_up->cancelled, true);
    if (look_up->requested)
        (void)uv_cancel((uv_req_t *)&look_up->request);
    note = let_go(look_up);
    note->answer.code = mu_error_set(&note->answer.error, -MU_EDEADLINE,
                                     "%.256s: no answer%s within %u ms", look_up->name,
                                     server, look_up->limit_ms);
    mu__note_answer(note);
}

/* What is known already is said at the loop's next turn. */
static void on_known(uv_timer_t *timer)
{
    conclude(timer->data);
}

/* ---- The system's look-up ---- */

static const struct {
    int status;
    int code;
} system_codes[] = {
    {UV_EAI_NONAME, -MU_ENOTFOUND},
    {UV_EAI_NODATA, -MU_ENOTFOUND},
    {UV_EAI_ADDRFAMILY, -MU_ENOTFOUND},
    {UV_EAI_MEMORY, -MU_ENOMEM},
    {UV_ENOMEM, -MU_ENOMEM},
    {UV_EINVAL, -MU_EINVALID},
    {UV_ENAMETOOLONG, -MU_EINVALID},
};

static int fail_system(struct look_up *look_up, int status)
{
    int code = -MU_EUNAVAILABLE;

    for (size_t i = 0; i < sizeof system_codes / sizeof system_codes[0]; i++)
        if (system_codes[i].status == status)
            code = system_codes[i].code;
    return mu_error_set(&look_up->error, code, "%.260s: %s", look_up->name,
                        uv_strerror(status));
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
    return rv == 0 ? 0 : mu_error_set(&look_up->error, rv, "out of memory");
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct look_up *look_up = (struct look_up *)request;

    if (look_up->note != NULL) {
        look_up->code =
            status != 0 ? fail_system(look_up, status) : add_found(look_up, found);
        conclude(look_up);
    }
    uv_freeaddrinfo(found);
    drop(look_up);
}

/* ---- Asking servers, on a thread ---- */

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
        return mu_error_set(&look_up->error, -MU_EUNAVAILABLE,
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

static int ask_type(struct look_up *look_up, const char *name, int type,
                    mu_error *ret_error)
{
    struct mu__dns_exchange exchange = {.servers = &look_up->servers,
                                        .name = name,
                                        .type = type,
                                        .due_ns = look_up->due_ns,
                                        .cancelled = &look_up->cancelled};
    int code = MU__DNS_FINE;
    int rv = mu__dns_exchange(&exchange, ret_error, &look_up->records, &code);

    if (rv != 0)
        return rv;
    return code == MU__DNS_NO_SUCH_NAME ? -MU_ENOTFOUND : 0;
}

/* Of a name with IPv4 addresses the others may be missing: some servers fail where there
 * is none. -MU_ENOTFOUND has no words yet. */
static int ask_name(struct look_up *look_up, const char *name, mu_error *ret_error)
{
    size_t count;
    int rv;

    if (look_up->kind == MU__ASK_SERVICES)
        return ask_type(look_up, name, MU__DNS_SRV, ret_error);
    rv = ask_type(look_up, name, MU__DNS_A, ret_error);
    if (rv != 0)
        return rv;
    count = look_up->records.count;
    rv = ask_type(look_up, name, MU__DNS_AAAA, ret_error);
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

static int find_out(struct look_up *look_up)
{
    struct candidates candidates = {.count = 0};
    char server[80];
    mu_error error = {0};
    bool exists = false;

    if (look_up->own_server)
        (void)snprintf(candidates.names[candidates.count++], sizeof candidates.names[0],
                       "%s", look_up->name);
    else if (read_configuration(look_up, &candidates) != 0)
        return look_up->error.code;
    for (unsigned i = 0; i < candidates.count; i++) {
        int rv = ask_name(look_up, candidates.names[i], &error);

        if (rv != 0 && rv != -MU_ENOTFOUND)
            return mu_error_set(&look_up->error, rv, "%.256s: %s", candidates.names[i],
                                error.message);
        exists |= rv == 0;
        if (!has_none(&look_up->records))
            return 0;
    }
    words_of_server(look_up, server, sizeof server);
    return mu_error_set(&look_up->error, -MU_ENOTFOUND, "%.256s: %s knows %s%s",
                        look_up->name, server, exists ? "no " : "no such name",
                        !exists                             ? ""
                        : look_up->kind == MU__ASK_SERVICES ? "services (SRV) of it"
                                                            : "addresses of it");
}

static void on_thread(uv_work_t *work)
{
    struct look_up *look_up = (struct look_up *)work;

    look_up->code = find_out(look_up);
}

static void on_worked(uv_work_t *work, int status)
{
    struct look_up *look_up = (struct look_up *)work;

    (void)status; /* a cancelled one has answered already */
    if (look_up->note != NULL)
        conclude(look_up);
    drop(look_up);
}

/* ---- Beginning ---- */

/* A number is its own address, whoever is asked. */
static bool is_number(struct look_up *look_up)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    int rv;

    if (look_up->kind != MU__ASK_ADDRESSES)
        return false;
    if (uv_ip4_addr(look_up->name, 0, &v4) == 0)
        rv = mu__dns_records_add(&look_up->records, MU__DNS_A,
                                 (const uint8_t *)&v4.sin_addr);
    else if (uv_ip6_addr(look_up->name, 0, &v6) == 0)
        rv = mu__dns_records_add(&look_up->records, MU__DNS_AAAA,
                                 (const uint8_t *)&v6.sin6_addr);
    else
        return false;
    if (rv != 0)
        look_up->code = mu_error_set(&look_up->error, rv, "out of memory");
    return true;
}

/* Whether something is under way: if not, `code` or the records say why. */
static bool begin(uv_loop_t *loop, struct look_up *look_up, const char *dns_server)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rv;

    if (look_up->name[0] == '\0') {
        look_up->code = mu_error_set(&look_up->error, -MU_EINVALID,
                                     "expected a name to look up, got none");
        return false;
    }
    if (is_number(look_up))
        return false;
    if (dns_server != NULL) {
        look_up->own_server = true;
        look_up->code =
            mu__dns_server_parse(dns_server, &look_up->error, &look_up->servers);
        if (look_up->code != 0)
            return false;
    }
    if (dns_server == NULL && look_up->kind == MU__ASK_ADDRESSES)
        rv = uv_getaddrinfo(loop, &look_up->request.system, on_found, look_up->name, NULL,
                            &hints);
    else
        rv = uv_queue_work(loop, &look_up->request.work, on_thread, on_worked);
    if (rv != 0)
        look_up->code = fail_system(look_up, rv);
    return rv == 0;
}

static struct look_up *new_look_up(const struct mu__question *question)
{
    struct look_up *look_up = calloc(1, sizeof *look_up);

    if (look_up == NULL)
        return NULL;
    look_up->name = strdup(question->name);
    if (look_up->name == NULL) {
        free(look_up);
        return NULL;
    }
    look_up->kind = question->kind;
    look_up->limit_ms = question->limit_ms == 0 ? MU__ASK_LIMIT_MS : question->limit_ms;
    look_up->due_ns = uv_hrtime() + (uint64_t)look_up->limit_ms * NS_PER_MS;
    atomic_init(&look_up->cancelled, false);
    look_up->holds = 1;
    return look_up;
}

void mu__dns_uv_ask(uv_loop_t *loop, struct mu__note *note)
{
    struct look_up *look_up = new_look_up(&note->question);

    if (look_up == NULL) {
        note->answer.code =
            mu_error_set(&note->answer.error, -MU_ENOMEM, "out of memory");
        mu__note_answer(note);
        return;
    }
    (void)uv_timer_init(loop, &look_up->timer);
    look_up->timer.data = look_up;
    look_up->note = note;
    note->own = look_up;
    look_up->requested = begin(loop, look_up, note->question.dns_server);
    look_up->holds += look_up->requested;
    uv_update_time(loop);
    (void)uv_timer_start(&look_up->timer, look_up->requested ? on_limit : on_known,
                         look_up->requested ? look_up->limit_ms : 0, 0);
}

void mu__dns_uv_cancel(struct mu__note *note)
{
    struct look_up *look_up = note->own;

    if (look_up == NULL)
        return;
    atomic_store(&look_up->cancelled, true);
    if (look_up->requested)
        (void)uv_cancel((uv_req_t *)&look_up->request);
    (void)let_go(look_up);
}
