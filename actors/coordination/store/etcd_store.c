/* Requests, the lease, and the operations of the owner.
 *
 * Three requests may be under way: the one of the present phase (`main`), the keep-alive
 * of the lease, and the one for a user's token. A failed one is sent to the next
 * endpoint, after a pause that grows; its body stays as it is, since every transaction
 * may be sent twice. With a lease this goes on until the lease has certainly ended. */
#include "actors/coordination/store/etcd_form.h"
#include "actors/coordination/store/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_HEADER "Content-Type: application/json"
#define GRPC_HEADER "Content-Type: application/grpc"

enum {
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 1000,
    HEADERS_MAX = 4,    /* of a request, with the NULL */
    LIMIT_MIN_MS = 300, /* timeout of a request */
    LEASE_MIN_MS = 100
};

static struct etcd_store *store_of(struct mu__store *base)
{
    return (struct etcd_store *)base; /* the base is its first member */
}

/* ---- Keys ---- */

struct mu__view mu__etcd_key_of(const struct etcd_store *store, struct mu__view rest,
                                char out[ETCD_KEY_MAX + 1])
{
    size_t size = strlen(store->prefix);

    memcpy(out, store->prefix, size);
    out[size] = '/';
    if (rest.size > 0)
        memcpy(out + size + 1, rest.data, rest.size);
    return (struct mu__view){out, (uint32_t)size + 1 + rest.size};
}

struct mu__view mu__etcd_key(const struct etcd_store *store, const char *rest,
                             char out[ETCD_KEY_MAX + 1])
{
    return mu__etcd_key_of(store, mu__view_str(rest), out);
}

/* ---- The lease ---- */

/* Whether a lease was granted that must be kept alive. */
static bool has_granted_lease(const struct etcd_store *store)
{
    return store->phase >= ETCD_ELECTING;
}

/* By etcd's clock the lease ends no earlier than ttl_ms after its last keep-alive was
 * sent. A tenth is for clocks of different speed. */
bool mu__etcd_is_certain(const struct etcd_store *store, struct mu__ctx *ctx)
{
    const struct etcd_lease *lease = &store->lease;

    return has_granted_lease(store) &&
           mu__now_ms(ctx) + lease->ttl_ms / 10 < lease->sent_ms + lease->ttl_ms;
}

/* ---- Sending ---- */

static uint32_t get_request_timeout(const struct etcd_store *store, uint32_t part)
{
    uint32_t lease_ms = store->lease.ttl_ms > 0 ? store->lease.ttl_ms : store->lease_ms;
    uint32_t ms = lease_ms / part;

    return ms < LIMIT_MIN_MS ? LIMIT_MIN_MS : ms;
}

/* `headers`: the caller's, until the request was handed on. */
static void fill_request(const struct etcd_store *store, struct etcd_flight *flight,
                         const char *path, uint32_t timeout_ms,
                         const char *headers[HEADERS_MAX])
{
    bool has_token = flight != &store->login.flight && store->login.token[0] != '\0';
    const char *const *first = headers;

    *headers++ = flight->grpc ? GRPC_HEADER : JSON_HEADER;
    if (flight->grpc)
        *headers++ = "TE: trailers";
    if (has_token)
        *headers++ = store->login.token;
    *headers = NULL;
    flight->token_number = has_token ? store->login.token_number : 0;
    (void)snprintf(flight->url, sizeof flight->url, "%s%s",
                   store->endpoints.list[store->endpoints.next].url, path);
    flight->http = (struct mu__http_request){
        .url = flight->url,
        .method = "POST",
        .headers = first,
        .body = flight->body.text,
        .body_size = flight->body.size,
        .timeout_ms = timeout_ms,
        .tls = store->access == NULL ? NULL : &store->access->tls,
        .header_name = flight->grpc ? "grpc-status" : NULL,
        .http2 = flight->grpc,
    };
}

void mu__etcd_send(struct etcd_store *store, struct mu__ctx *ctx,
                   struct etcd_flight *flight, const char *path)
{
    const char *headers[HEADERS_MAX];

    fill_request(store, flight, path,
                 get_request_timeout(store, flight == &store->lease.keeping ? 4 : 3),
                 headers);
    flight->endpoint = store->endpoints.next;
    flight->sent_ms = mu__now_ms(ctx);
    flight->busy = true;
    flight->void_answer = false;
    flight->http.owner = ctx->self;
    store->http->ops->send(store->http, &flight->http);
    flight->http.headers = NULL;
}

static void try_later(struct etcd_store *store, struct mu__ctx *ctx)
{
    store->retry.due_ms = mu__now_ms(ctx) + store->retry.backoff_ms;
    store->retry.backoff_ms *= 2;
    if (store->retry.backoff_ms > BACKOFF_MAX_MS)
        store->retry.backoff_ms = BACKOFF_MAX_MS;
}

void mu__etcd_step(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct mu__build *body = &store->main.body;

    if (!store->started || store->hearing || store->main.busy ||
        mu__now_ms(ctx) < store->retry.due_ms || !mu__etcd_next(store, ctx) ||
        !mu__etcd_may_send(store, ctx))
        return;
    if (body->size == 0) {
        mu__etcd_choose_form(store, ctx);
        mu__etcd_phases[store->phase].build(store);
    }
    if (body->failed) {
        mu__build_done(body);
        try_later(store, ctx);
        return;
    }
    mu__etcd_send(store, ctx, &store->main,
                  store->main.grpc ? MU__ETCD_GRPC_TXN
                                   : mu__etcd_phases[store->phase].path);
}

static void keep_lease_alive(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct etcd_lease *lease = &store->lease;

    if (!has_granted_lease(store) || lease->keeping.busy ||
        mu__now_ms(ctx) < lease->due_ms || !mu__etcd_may_send(store, ctx))
        return;
    mu__build_done(&lease->keeping.body);
    mu__etcd_keep(&lease->keeping.body, lease->id);
    if (!lease->keeping.body.failed)
        mu__etcd_send(store, ctx, &lease->keeping, MU__ETCD_KEEP);
}

/* ---- Failures ---- */

/* Tell the owner, for the agents that wait for the service. */
static void report_trouble(struct etcd_store *store, struct mu__ctx *ctx,
                           const char *reason)
{
    if (store->phase != ETCD_HOLDING && store->up.trouble != NULL)
        store->up.trouble(store->up.owner, ctx, reason);
}

/* The same trouble is logged once, until the store is held again. */
static void log_trouble(struct etcd_store *store, struct mu__ctx *ctx, const char *reason)
{
    if (strcmp(reason, store->logged.trouble) == 0)
        return;
    (void)snprintf(store->logged.trouble, sizeof store->logged.trouble, "%s", reason);
    mu__log(ctx, MU__LOG_WARN, "%s", reason);
    report_trouble(store, ctx, reason);
}

static void abandon_flight(struct etcd_flight *flight)
{
    flight->void_answer = flight->busy;
    if (!flight->busy)
        mu__build_done(&flight->body);
}

static void abandon_etcd_store(struct etcd_store *store, struct mu__ctx *ctx,
                               const char *reason)
{
    bool held = store->phase == ETCD_HOLDING;

    abandon_flight(&store->main);
    abandon_flight(&store->lease.keeping);
    mu__etcd_queue_forget(&store->queue);
    store->phase = store->lease.id == 0 ? ETCD_RESTING : ETCD_DROPPING;
    store->retry.backoff_ms = BACKOFF_FIRST_MS;
    store->retry.due_ms =
        mu__now_ms(ctx) + (store->lease.id == 0 ? store->lease_ms / 4 : 0);
    if (!held) {
        log_trouble(store, ctx, reason);
        return;
    }
    mu__log(ctx, MU__LOG_WARN, "%s has lost %s: %s", store->task, store->prefix, reason);
    store->up.lost(store->up.owner, ctx, reason);
}

void mu__etcd_abandon(struct etcd_store *store, struct mu__ctx *ctx, const char *format,
                      ...)
{
    char reason[ETCD_REASON_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    abandon_etcd_store(store, ctx, reason);
}

void mu__etcd_endpoint_failed(struct etcd_store *store, struct mu__ctx *ctx,
                              const struct etcd_flight *flight, const char *reason)
{
    struct etcd_endpoints *all = &store->endpoints;
    struct etcd_endpoint *endpoint = &all->list[flight->endpoint];

    (void)snprintf(all->failure, sizeof all->failure, "etcd at %s: %s", endpoint->url,
                   reason);
    if (!endpoint->bad) {
        mu__log(ctx, MU__LOG_WARN, "%s; it is tried again", all->failure);
        report_trouble(store, ctx, all->failure);
    }
    endpoint->bad = true;
    if (flight->endpoint == all->next)
        all->next = (all->next + 1) % all->count;
}

static void endpoint_works(struct etcd_store *store, struct mu__ctx *ctx,
                           const struct etcd_flight *flight)
{
    struct etcd_endpoints *all = &store->endpoints;
    struct etcd_endpoint *endpoint = &all->list[flight->endpoint];

    if (endpoint->bad) {
        (void)snprintf(all->failure, sizeof all->failure, "etcd at %s answers again",
                       endpoint->url);
        mu__log(ctx, MU__LOG_INFO, "%s", all->failure);
        report_trouble(store, ctx, all->failure);
    }
    endpoint->bad = false;
    all->failure[0] = '\0';
}

/* Whether it is useless to repeat a request. */
static bool is_for_good(int code)
{
    static const int codes[] = {-MU_EINVALID,       -MU_ENOTFOUND,       -MU_EPERMISSION,
                                -MU_EEXHAUSTED,     -MU_EPRECONDITION,   -MU_ERANGE,
                                -MU_EUNIMPLEMENTED, -MU_EUNAUTHENTICATED};

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i] == code)
            return true;
    return false;
}

static void on_request_refused(struct etcd_store *store, struct mu__ctx *ctx,
                               const mu_error *error)
{
    if (store->phase == ETCD_DROPPING) {
        store->lease.id = 0; /* it has ended already */
        mu__build_done(&store->main.body);
        store->phase = ETCD_RESTING;
        store->retry.due_ms = mu__now_ms(ctx) + store->lease_ms / 8;
        return;
    }
    mu__etcd_abandon(store, ctx, "etcd at %s: cannot %s below %s: %s%s",
                     store->endpoints.list[store->main.endpoint].url,
                     mu__etcd_phases[store->phase].reason, store->prefix, error->message,
                     mu__etcd_advice(store, error->code, error));
}

/* ---- Answers ---- */

int mu__etcd_read(const struct etcd_flight *flight, mu_error *ret_error,
                  struct mu__etcd_answer **ret_answer)
{
    const struct mu__http_request *http = &flight->http;

    if (http->code != 0) {
        *ret_error = http->error;
        return http->code;
    }
    return mu__etcd_answer_read(http->status,
                                http->answer == NULL ? NULL : http->answer->data,
                                http->answer == NULL ? 0 : http->answer->size, ret_error,
                                ret_answer);
}

static void main_failed(struct etcd_store *store, struct mu__ctx *ctx, int code,
                        const mu_error *error)
{
    if ((code == -MU_EEXHAUSTED || code == -MU_EDEADLINE) && store->main.http.code != 0 &&
        mu__etcd_shrink_pages(store)) {
        mu__build_done(&store->main.body);
    } else if (store->main.http.code == 0 && is_for_good(code)) {
        on_request_refused(store, ctx, error);
        return;
    }
    mu__etcd_endpoint_failed(store, ctx, &store->main, error->message);
    try_later(store, ctx);
}

static void main_succeeded(struct etcd_store *store, struct mu__ctx *ctx)
{
    endpoint_works(store, ctx, &store->main);
    mu__build_done(&store->main.body);
    store->retry.backoff_ms = BACKOFF_FIRST_MS;
}

static void on_grpc(struct etcd_store *store, struct mu__ctx *ctx)
{
    const struct mu__http_request *http = &store->main.http;

    if (mu__etcd_grpc_applied(store, ctx)) {
        mu__etcd_write_applied(store, ctx);
        main_succeeded(store, ctx);
    } else if (http->code == -MU_EDEADLINE) {
        mu__etcd_endpoint_failed(store, ctx, &store->main, http->error.message);
        try_later(store, ctx);
    }
}

static void on_gateway(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct mu__etcd_answer *answer = NULL;
    mu_error error = {.code = 0};
    int rv = mu__etcd_read(&store->main, &error, &answer);

    if (mu__etcd_token_ended(store, &store->main, rv, &error))
        return;
    if (rv == 0)
        rv = mu__etcd_phases[store->phase].answered(store, ctx, answer, &error);
    mu__etcd_answer_free(answer);
    if (rv != 0)
        main_failed(store, ctx, rv, &error);
    else
        main_succeeded(store, ctx);
}

static void on_main(struct etcd_store *store, struct mu__ctx *ctx)
{
    if (store->main.void_answer)
        mu__build_done(&store->main.body);
    else if (store->main.grpc)
        on_grpc(store, ctx);
    else
        on_gateway(store, ctx);
}

static void on_keep(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct etcd_lease *lease = &store->lease;
    struct mu__etcd_answer *answer = NULL;
    mu_error error = {.code = 0};
    uint64_t ttl_s = 0;
    int rv = mu__etcd_read(&lease->keeping, &error, &answer);

    if (rv == 0)
        rv = mu__etcd_lease_ttl(answer, &error, &ttl_s);
    mu__etcd_answer_free(answer);
    if (lease->keeping.void_answer)
        return;
    if (mu__etcd_token_ended(store, &lease->keeping, rv, &error)) {
        lease->due_ms = mu__now_ms(ctx);
    } else if (rv != 0) {
        mu__etcd_endpoint_failed(store, ctx, &lease->keeping, error.message);
        lease->due_ms = mu__now_ms(ctx) + lease->ttl_ms / 16;
    } else if (ttl_s == 0) {
        mu__etcd_abandon(store, ctx, "its lease has ended");
    } else {
        endpoint_works(store, ctx, &lease->keeping);
        lease->sent_ms = lease->keeping.sent_ms;
        lease->due_ms = lease->keeping.sent_ms + lease->ttl_ms / 3;
    }
}

static bool handle_flight_answer(
    struct etcd_store *store, struct mu__ctx *ctx, struct etcd_flight *flight,
    struct mu__http_request *request,
    void (*heard)(struct etcd_store *store, struct mu__ctx *ctx))
{
    if (&flight->http != request || !flight->busy)
        return &flight->http == request;
    flight->busy = false;
    store->hearing = true;
    heard(store, ctx);
    store->hearing = false;
    if (!flight->busy) {
        mu__buf_unref(flight->http.answer);
        flight->http.answer = NULL;
    }
    mu__etcd_step(store, ctx);
    return true;
}

static bool op_heard(struct mu__store *base, struct mu__ctx *ctx,
                     struct mu__http_request *request)
{
    struct etcd_store *store = store_of(base);

    return handle_flight_answer(store, ctx, &store->main, request, on_main) ||
           handle_flight_answer(store, ctx, &store->lease.keeping, request, on_keep) ||
           handle_flight_answer(store, ctx, &store->login.flight, request,
                                mu__etcd_on_login);
}

/* ---- The other operations ---- */

static void op_start(struct mu__store *base, struct mu__ctx *ctx)
{
    store_of(base)->started = true;
    mu__etcd_step(store_of(base), ctx);
}

static void check_lease(struct etcd_store *store, struct mu__ctx *ctx)
{
    const char *failure = store->endpoints.failure;

    if (has_granted_lease(store) &&
        mu__now_ms(ctx) >= store->lease.sent_ms + store->lease.ttl_ms)
        mu__etcd_abandon(store, ctx, "its lease could not be kept for %" PRIu32 " ms%s%s",
                         store->lease.ttl_ms, failure[0] == '\0' ? "" : ": ", failure);
}

static void op_tick(struct mu__store *base, struct mu__ctx *ctx)
{
    struct etcd_store *store = store_of(base);

    if (store->queue.failed)
        mu__etcd_abandon(store, ctx, "%s", store->queue.reason);
    check_lease(store, ctx);
    keep_lease_alive(store, ctx);
    mu__etcd_step(store, ctx);
}

static bool op_may_read(struct mu__store *base, struct mu__ctx *ctx)
{
    const struct etcd_store *store = store_of(base);

    return store->phase == ETCD_HOLDING && !store->queue.failed &&
           mu__etcd_is_certain(store, ctx);
}

/* ---- start and end ---- */

static void flight_done(struct etcd_store *store, struct etcd_flight *flight)
{
    if (flight->busy)
        store->http->ops->cancel(store->http, &flight->http);
    mu__buf_unref(flight->http.answer);
    mu__build_done(&flight->body);
}

/* Revoke the lease, so that the next holder need not wait for its end. */
static void revoke_lease(struct etcd_store *store)
{
    struct etcd_flight *flight = &store->main;
    const char *headers[HEADERS_MAX];

    flight->busy = false;
    flight->grpc = false;
    mu__build_done(&flight->body);
    mu__etcd_revoke(&flight->body, store->lease.id);
    if (flight->body.failed)
        return;
    fill_request(store, flight, MU__ETCD_REVOKE, LIMIT_MIN_MS, headers);
    store->http->ops->notify(store->http, &flight->http);
}

static void op_close(struct mu__store *base, struct mu__ctx *ctx)
{
    struct etcd_store *store = store_of(base);

    (void)ctx;
    flight_done(store, &store->main);
    flight_done(store, &store->lease.keeping);
    flight_done(store, &store->login.flight);
    store->main.http.answer = NULL;
    if (store->lease.id != 0)
        revoke_lease(store);
    mu__build_done(&store->main.body);
    mu__etcd_queue_forget(&store->queue);
    free(store);
}

static const struct mu__store_ops ops = {
    .start = op_start,
    .write = mu__etcd_write,
    .commit = mu__etcd_commit,
    .may_read = op_may_read,
    .tick = op_tick,
    .heard = op_heard,
    .close = op_close,
};

/* ---- Opening ---- */

/* What is wrong with a URL; NULL: nothing. */
static const char *url_trouble(const char *url, size_t size)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : 8;

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return "it does not begin with http:// or https://";
    if (size > ETCD_URL_MAX)
        return "it is too long";
    if (size <= scheme || url[scheme] == '/' || url[scheme] == ':')
        return "it has no host";
    for (size_t i = 0; i < size; i++) {
        if (url[i] <= ' ' || url[i] > '~')
            return "it has a character that no URL has";
        if (strchr("@?#", url[i]) != NULL)
            return "it has more than scheme, host, port and path";
    }
    return NULL;
}

static int add_etcd_endpoint(struct etcd_store *store, const char *url, size_t size,
                             mu_error *ret_error)
{
    const char *trouble = url_trouble(url, size);

    while (size > 0 && url[size - 1] == '/')
        size--;
    if (trouble == NULL && store->endpoints.count == ETCD_ENDPOINTS_MAX)
        trouble = "there are too many";
    if (trouble != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "store \"etcd:...\": the address \"%.*s\" is wrong: %s; "
                            "expected http://host:port, several with commas",
                            (int)(size > 100 ? 100 : size), url, trouble);
    memcpy(store->endpoints.list[store->endpoints.count++].url, url, size);
    return 0;
}

static int add_endpoints(struct etcd_store *store, const char *url, mu_error *ret_error)
{
    int rv = 0;

    for (;;) {
        size_t size = strcspn(url, ",");

        rv = add_etcd_endpoint(store, url, size, ret_error);
        if (rv != 0 || url[size] == '\0')
            return rv;
        url += size + 1;
    }
}

/* With the '/' of a name escaped, no cluster's keys are below those of another. */
static int set_prefix(struct etcd_store *store, const char *name, mu_error *ret_error)
{
    size_t at = (size_t)snprintf(store->prefix, sizeof store->prefix, "/muster/");

    for (; *name != '\0' && at + 4 < sizeof store->prefix; name++) {
        bool plain = *name != '/' && *name != '%';

        at += (size_t)snprintf(store->prefix + at, sizeof store->prefix - at,
                               plain ? "%c" : "%%%02X", *name);
    }
    if (*name != '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "store \"etcd:...\": the cluster's name is too long");
    return 0;
}

static void init_etcd_store(struct etcd_store *store,
                            const struct mu__store_config *config)
{
    store->base.ops = &ops;
    store->schema = config->schema;
    store->pool = config->pool;
    store->http = config->http;
    store->access = config->access;
    store->up = config->up;
    store->lease_ms = config->lease_ms < LEASE_MIN_MS ? LEASE_MIN_MS : config->lease_ms;
    store->incarnation = config->incarnation;
    store->retry.backoff_ms = BACKOFF_FIRST_MS;
    store->queue.end = &store->queue.first;
    (void)snprintf(store->task, sizeof store->task, "%s", config->task);
}

static int etcd_open(const struct mu__store_config *config, mu_error *ret_error,
                     struct mu__store **ret_store)
{
    struct etcd_store *store = calloc(1, sizeof *store);
    int rv;

    if (store == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a store");
    init_etcd_store(store, config);
    rv = add_endpoints(store, config->location, ret_error);
    if (rv == 0)
        rv = set_prefix(store, config->cluster_name, ret_error);
    if (rv == 0 && config->http == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "store \"etcd:%s\" needs HTTP, which this program has not",
                          config->location);
    if (rv != 0) {
        free(store);
        return rv;
    }
    *ret_store = &store->base;
    return 0;
}

const struct mu__store_kind mu__store_etcd = {
    .name = "etcd",
    .has_location = true,
    .shared = true,
    .lasting = true,
    .open = etcd_open,
};
