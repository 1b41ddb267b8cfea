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

static bool same_text(const char *a, const char *b)
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
    for (; *a != NULL && same_text(*a, *b); a++)
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
    return a->insecure == b->insecure && same_text(a->ca, b->ca) &&
           same_text(a->certificate, b->certificate) && same_text(a->key, b->key) &&
           same_text(a->server_name, b->server_name);
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
           same_text(or_default(a->name, ""), or_default(b->name, "")) &&
           same_text(or_default(a->method, "GET"), or_default(b->method, "GET")) &&
           same_text(a->header, b->header) && same_text(a->secret, b->secret) &&
           same_text(a->dns_server, b->dns_server) && a->call == b->call &&
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

static bool copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

static bool copy_headers(const char *const *headers, const char *const **ret_copy)
{
    size_t count = 0;
    char **copy;

    *ret_copy = NULL;
    if (headers == NULL)
        return true;
    while (headers[count] != NULL)
        count++;
    copy = calloc(count + 1, sizeof *copy);
    *ret_copy = (const char *const *)copy;
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(headers[i]);
        if (copy[i] == NULL)
            return false;
    }
    return copy != NULL;
}

static bool copy_tls(const struct mu__request_tls *tls,
                     const struct mu__request_tls **ret_copy)
{
    struct mu__request_tls *copy;
    bool whole = true;

    *ret_copy = NULL;
    if (tls == NULL)
        return true;
    copy = calloc(1, sizeof *copy);
    *ret_copy = copy;
    if (copy == NULL)
        return false;
    copy->insecure = tls->insecure;
    whole &= copy_text(tls->ca, &copy->ca);
    whole &= copy_text(tls->certificate, &copy->certificate);
    whole &= copy_text(tls->key, &copy->key);
    whole &= copy_text(tls->server_name, &copy->server_name);
    return whole;
}

static bool copy_body(const struct mu__request *request, struct mu__request *copy)
{
    void *body;

    copy->body = NULL;
    if (request->body == NULL)
        return true;
    body = malloc(request->body_size + 1);
    if (body != NULL)
        memcpy(body, request->body, request->body_size);
    copy->body = body;
    return body != NULL;
}

/* After a failure *copy has what could be copied. */
static bool copy_all(const struct mu__request *request, struct mu__request *copy)
{
    bool whole = true;

    *copy = *request;
    if (copy->call != NULL)
        mu__request_call_ref(copy->call);
    whole &= copy_text(or_default(request->name, ""), &copy->name);
    whole &= copy_text(request->method, &copy->method);
    whole &= copy_text(request->header, &copy->header);
    whole &= copy_text(request->secret, &copy->secret);
    whole &= copy_text(request->dns_server, &copy->dns_server);
    whole &= copy_headers(request->headers, &copy->headers);
    whole &= copy_body(request, copy);
    whole &= copy_tls(request->tls, &copy->tls);
    return whole;
}

int mu__request_copy(const struct mu__request *request, struct mu__request *ret_copy)
{
    struct mu__request copy;

    if (!copy_all(request, &copy)) {
        mu__request_free_copy(&copy);
        return -MU_ENOMEM;
    }
    *ret_copy = copy;
    return 0;
}

static void text_free(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void headers_free(const char *const *headers)
{
    for (size_t i = 0; headers != NULL && headers[i] != NULL; i++)
        text_free(headers[i]);
    free((void *)(uintptr_t)headers);
}

static void tls_free(const struct mu__request_tls *tls)
{
    if (tls == NULL)
        return;
    text_free(tls->ca);
    text_free(tls->certificate);
    text_free(tls->key);
    text_free(tls->server_name);
    free((void *)(uintptr_t)tls);
}

void mu__request_free_copy(struct mu__request *copy)
{
    text_free(copy->name);
    text_free(copy->method);
    text_free(copy->header);
    text_free(copy->secret);
    text_free(copy->dns_server);
    headers_free(copy->headers);
    free((void *)(uintptr_t)copy->body);
    tls_free(copy->tls);
    mu__request_call_unref(copy->call);
    *copy = (struct mu__request){.kind = copy->kind};
}
