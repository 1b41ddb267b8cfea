/* Descriptions of requests and their results for people, and the errors of answers. */
#include "resolver/engine/exchange.h"

#include "runtime/base/retry.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { SECRET_BYTES = 8 }; /* shorter words of a header are not taken for secret */

/* ---- Descriptions ---- */

static const char *const text_of[MU__REQUEST_KINDS] = {
    [MU__REQUEST_VARIABLE] = "variable ",
    [MU__REQUEST_HOST_NAME] = "the host's name",
    [MU__REQUEST_CLOCK] = "the time",
    [MU__REQUEST_FILE] = "file ",
    [MU__REQUEST_FOLDER] = "folder ",
    [MU__REQUEST_ADDRESSES] = "addresses of ",
    [MU__REQUEST_SERVICES] = "SRV records of ",
    [MU__REQUEST_HTTP] = "",
    [MU__REQUEST_SIGNATURE] = "signature ",
    [MU__REQUEST_WRITE] = "writing file ",
    [MU__REQUEST_REMOVE] = "removing file ",
    [MU__REQUEST_PROGRAM] = "program ",
    [MU__REQUEST_LIBRARY] = "library ",
    [MU__REQUEST_CALL] = "function of resolver ",
};

void mu__request_describe(const struct mu__request *request, char *out, size_t size)
{
    const char *method = request->method == NULL ? "GET" : request->method;
    const char *name = request->name == NULL ? "" : request->name;
    char url[220];

    if (request->kind != MU__REQUEST_HTTP) {
        (void)snprintf(out, size, "%s%.200s", text_of[request->kind], name);
        return;
    }
    mu__show_url(name, url, sizeof url);
    (void)snprintf(out, size, "%s%s%s", strcmp(method, "GET") == 0 ? "" : method,
                   strcmp(method, "GET") == 0 ? "" : " ", url);
}

/* An error's message without the request's description, with which it begins. */
static const char *bare_words(const struct mu__exchange *exchange)
{
    const char *words = exchange->answer.error.message;
    char requested[256];
    size_t length;

    mu__request_describe(&exchange->request, requested, sizeof requested);
    length = strlen(requested);
    if (strncmp(words, requested, length) == 0 && strncmp(words + length, ": ", 2) == 0)
        return words + length + 2;
    return words;
}

static bool is_answer_missing(const struct mu__exchange *exchange)
{
    return exchange->answer.code == -MU_ENOTFOUND &&
           exchange->request.kind != MU__REQUEST_HTTP;
}

void mu__exchange_reason(const struct mu__exchange *exchange, char *out, size_t size)
{
    if (is_answer_missing(exchange))
        (void)snprintf(out, size, "%s",
                       exchange->request.kind == MU__REQUEST_VARIABLE ? "not set"
                                                                      : "not there");
    else if (exchange->answer.code != 0)
        (void)snprintf(out, size, "%s", bare_words(exchange));
    else
        (void)snprintf(out, size, "status %d", exchange->answer.status);
}

static void outcome_words(const struct mu__exchange *exchange, char *out, size_t size)
{
    const struct mu__answer *answer = &exchange->answer;

    if (answer->code != 0)
        mu__exchange_reason(exchange, out, size);
    else if (exchange->request.kind == MU__REQUEST_HTTP)
        (void)snprintf(out, size, "status %d, %zu bytes", answer->status, answer->size);
    else if (exchange->request.kind == MU__REQUEST_VARIABLE)
        (void)snprintf(out, size, "set, %zu bytes", answer->size);
    else if (exchange->request.kind == MU__REQUEST_CALL)
        (void)snprintf(out, size, "has returned");
    else
        (void)snprintf(out, size, "%zu bytes", answer->size);
}

void mu__exchange_describe(const struct mu__exchange *exchange, char *out, size_t size)
{
    char requested[256];
    char outcome[MU__QUOTE_BYTES + 512];
    char tries[32] = "";

    mu__request_describe(&exchange->request, requested, sizeof requested);
    outcome_words(exchange, outcome, sizeof outcome);
    if (exchange->tries > 1)
        (void)snprintf(tries, sizeof tries, ", after %u tries", exchange->tries);
    (void)snprintf(out, size, "%s: %s%s", requested, outcome, tries);
}

/* ---- Problems ---- */

static const struct {
    int low;
    int high;
    int code;
    const char *words;
} statuses[] = {
    {300, 399, -MU_EINVALID, "a redirect, which is not followed"},
    {400, 400, -MU_EINVALID, "the server does not accept the request"},
    {401, 401, -MU_EUNAUTHENTICATED, "the server does not accept the credentials"},
    {403, 403, -MU_EPERMISSION, "the credentials do not permit this"},
    {404, 404, -MU_ENOTFOUND, "there is no such thing"},
    {408, 408, -MU_EUNAVAILABLE, "the server has waited too long for the request"},
    {429, 429, -MU_EUNAVAILABLE, "too many requests"},
    {501, 501, -MU_EUNIMPLEMENTED, "the server cannot do this"},
    {500, 599, -MU_EUNAVAILABLE, "the server has failed"},
    {INT_MIN, INT_MAX, -MU_EINVALID, "unexpected"},
};

/* Whether a text contains a word of this header's value, which may be a token. */
static bool has_word_of(const char *text, const char *header)
{
    const char *at = header + strcspn(header, ":");
    char word[256];

    if (strncmp(header, "Accept:", 7) == 0 || strncmp(header, "Content-Type:", 13) == 0)
        return false;
    while (*at != '\0') {
        size_t size = strcspn(at += strspn(at, ": "), " ");

        (void)snprintf(word, sizeof word, "%.*s", (int)(size < 255 ? size : 255), at);
        if (size >= SECRET_BYTES && strstr(text, word) != NULL)
            return true;
        at += size;
    }
    return false;
}

static bool has_header(const char *text, const struct mu__request *request)
{
    for (const char *const *at = request->headers; at != NULL && *at != NULL; at++)
        if (has_word_of(text, *at))
            return true;
    return false;
}

static const struct mu__exchange *exchange_of(const struct mu__answer *answer)
{
    return (const struct mu__exchange *)(const void *)((const char *)answer -
                                                       offsetof(struct mu__exchange,
                                                                answer));
}

/* {"error": {"message": ...}} of Google's APIs, {"message": ...} of Kubernetes. "" when
 * there is none, or it repeats what is secret. */
static void server_words(const struct mu__answer *answer, char *out, size_t size)
{
    char quoted[MU__QUOTE_BYTES * 2];
    const cJSON *message;
    cJSON *root = NULL;

    out[0] = '\0';
    if (mu__json_parse(answer->data, answer->size, "", NULL, &root) != 0)
        return;
    message = cJSON_GetObjectItemCaseSensitive(root, "error");
    message = cJSON_GetObjectItemCaseSensitive(cJSON_IsObject(message) ? message : root,
                                               "message");
    if (cJSON_IsString(message) &&
        !has_header(message->valuestring, &exchange_of(answer)->request)) {
        mu__quote(quoted, sizeof quoted, message->valuestring,
                  strlen(message->valuestring));
        (void)snprintf(out, size, "; it says %s", quoted);
    }
    cJSON_Delete(root);
}

static void pause_words(const struct mu__answer *answer, char *out, size_t size)
{
    char time[32];

    mu__retry_time(answer->retry_after_ms, time, sizeof time);
    if (answer->retry_after_ms != 0)
        (void)snprintf(out, size, "; Retry-After: %s", time);
}

int mu__answer_check(const struct mu__answer *answer, const char *what,
                     mu_error *ret_error)
{
    char explanation[MU__QUOTE_BYTES * 2 + 16];
    char pause[80] = "";
    size_t i = 0;

    if (answer->code != 0)
        return mu_error_set(ret_error, answer->code, "%s: %.400s", what,
                            answer->error.message);
    if (answer->status == 0 || (answer->status >= 200 && answer->status <= 299))
        return 0;
    while (answer->status < statuses[i].low || answer->status > statuses[i].high)
        i++;
    server_words(answer, explanation, sizeof explanation);
    pause_words(answer, pause, sizeof pause);
    return mu_error_set(ret_error, statuses[i].code, "%s: status %d: %s%s%s", what,
                        answer->status, statuses[i].words, explanation, pause);
}
