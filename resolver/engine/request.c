#include "resolver/engine/request.h"

#include "resolver/engine/request_call.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uint32_t mu__request_timeout_ms(const struct mu__request *request)
{
    return request->timeout_ms == 0 ? MU__REQUEST_TIMEOUT_MS : request->timeout_ms;
}

size_t mu__request_bytes_max(const struct mu__request *request)
{
    return request->bytes_max == 0 ? (size_t)MU__REQUEST_BYTES_MAX : request->bytes_max;
}

/* ---- The same ---- */

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const char *or_default(const char *text, const char *initial)
{
    return text == NULL ? initial : text;
}

static bool same_headers(const char *const *a, const char *const *b)
{
    static const char *const none[] = {NULL};

    a = a == NULL ? none : a;
    b = b == NULL ? none : b;
    for (; *a != NULL && is_same_text(*a, *b); a++)
        b++;
    return *a == *b;
}

static bool same_body(const struct mu__request *a, const struct mu__request *b)
{
    if (a->body == NULL || b->body == NULL)
        return a->body == b->body;
    return a->body_size == b->body_size && memcmp(a->body, b->body, a->body_size) == 0;
}

static bool same_tls(const struct mu__request_tls *a, const struct mu__request_tls *b)
{
    static const struct mu__request_tls none;

    a = a == NULL ? &none : a;
    b = b == NULL ? &none : b;
    return a->insecure == b->insecure && is_same_text(a->ca, b->ca) &&
           is_same_text(a->certificate, b->certificate) && is_same_text(a->key, b->key) &&
           is_same_text(a->server_name, b->server_name);
}

static bool same_terms(const struct mu__request *a, const struct mu__request *b)
{
    return mu__request_timeout_ms(a) == mu__request_timeout_ms(b) &&
           mu__request_bytes_max(a) == mu__request_bytes_max(b) && a->tries == b->tries &&
           a->retry_missing == b->retry_missing && a->new_only == b->new_only &&
           a->cache_ms == b->cache_ms && a->uses_proxy == b->uses_proxy;
}

bool mu__request_same(const struct mu__request *a, const struct mu__request *b)
{
    return a->kind == b->kind && a->again == b->again &&
           is_same_text(or_default(a->name, ""), or_default(b->name, "")) &&
           is_same_text(or_default(a->method, "GET"), or_default(b->method, "GET")) &&
           is_same_text(a->header, b->header) && is_same_text(a->secret, b->secret) &&
           is_same_text(a->dns_server, b->dns_server) && a->call == b->call &&
           same_terms(a, b) && same_headers(a->headers, b->headers) && same_body(a, b) &&
           same_tls(a->tls, b->tls);
}

/* FNV-1a. */
uint64_t mu__request_hash(const struct mu__request *request)
{
    uint64_t hash = (UINT64_C(14695981039346656037) ^ (unsigned)request->kind ^
                     ((uint64_t)request->again << 8)) *
                    UINT64_C(1099511628211);

    for (const char *at = or_default(request->name, ""); *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

/* ---- A copy ---- */

/* Copies go into one block; while there is none, their bytes are counted. */
struct copier {
    char *block;
    size_t used;
};

static void *copy_bytes(struct copier *copier, const void *bytes, size_t size)
{
    char *to = copier->block == NULL ? NULL : copier->block + copier->used;

    if (bytes == NULL)
        return NULL;
    if (to != NULL && size > 0)
        memcpy(to, bytes, size);
    copier->used += (size + 1 + 15) / 16 * 16;
    return to;
}

static const char *copy_request_text(struct copier *copier, const char *text)
{
    return copy_bytes(copier, text, text == NULL ? 0 : strlen(text) + 1);
}

static const char *const *copy_headers(struct copier *copier, const char *const *headers)
{
    size_t count = 0;
    const char **copy;

    while (headers != NULL && headers[count] != NULL)
        count++;
    copy = copy_bytes(copier, headers, (count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        const char *header = copy_request_text(copier, headers[i]);

        if (copy != NULL)
            copy[i] = header;
    }
    return copy;
}

static const struct mu__request_tls *copy_tls(struct copier *copier,
                                              const struct mu__request_tls *tls)
{
    struct mu__request_tls *copy = copy_bytes(copier, tls, sizeof *tls);
    struct mu__request_tls texts;

    if (tls == NULL)
        return NULL;
    texts = (struct mu__request_tls){
        .ca = copy_request_text(copier, tls->ca),
        .certificate = copy_request_text(copier, tls->certificate),
        .key = copy_request_text(copier, tls->key),
        .server_name = copy_request_text(copier, tls->server_name),
        .insecure = tls->insecure,
    };
    if (copy != NULL)
        *copy = texts;
    return copy;
}

/* The name is never NULL, and first: it is where the block begins. */
static void copy_into(struct copier *copier, const struct mu__request *request,
                      struct mu__request *copy)
{
    *copy = *request;
    copy->name = copy_request_text(copier, or_default(request->name, ""));
    copy->method = copy_request_text(copier, request->method);
    copy->header = copy_request_text(copier, request->header);
    copy->secret = copy_request_text(copier, request->secret);
    copy->dns_server = copy_request_text(copier, request->dns_server);
    copy->headers = copy_headers(copier, request->headers);
    copy->body = copy_bytes(copier, request->body, request->body_size);
    copy->tls = copy_tls(copier, request->tls);
}

int mu__request_copy(const struct mu__request *request, struct mu__request *ret_copy)
{
    struct copier copier = {NULL, 0};

    copy_into(&copier, request, ret_copy);
    copier = (struct copier){malloc(copier.used), 0};
    if (copier.block == NULL)
        return -MU_ENOMEM;
    copy_into(&copier, request, ret_copy);
    if (ret_copy->call != NULL)
        mu__request_call_ref(ret_copy->call);
    return 0;
}

void mu__request_free_copy(struct mu__request *copy)
{
    free((void *)(uintptr_t)copy->name);
    mu__request_call_unref(copy->call);
    *copy = (struct mu__request){.kind = copy->kind};
}
