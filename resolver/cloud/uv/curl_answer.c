/* Answers and errors of HTTP requests, as libcurl reports them. */
#include "resolver/cloud/uv/curl.h"

#include "runtime/base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    ANSWER_FIRST_BYTES = 4096,
    TOO_LARGE = 100,            /* CURLE_TOO_LARGE, since 8.6 */
    HEAD_BYTES_MAX = 256 << 10, /* all header lines of one answer */
    RETRY_AFTER_MAX_S = 86400,
    SHOWN_BYTES = 240 /* of a url in a message */
};

static const struct {
    CURLcode curl;
    int code;
} results[] = {
    {CURLE_OK, 0},
    {CURLE_UNSUPPORTED_PROTOCOL, -MU_EINVALID},
    {CURLE_URL_MALFORMAT, -MU_EINVALID},
    {CURLE_OPERATION_TIMEDOUT, -MU_EDEADLINE},
    {CURLE_FILESIZE_EXCEEDED, -MU_EEXHAUSTED},
    {CURLE_OUT_OF_MEMORY, -MU_ENOMEM},
    {CURLE_PEER_FAILED_VERIFICATION, -MU_EUNAUTHENTICATED},
    {CURLE_SSL_CLIENTCERT, -MU_EUNAUTHENTICATED},
    {CURLE_SSL_CERTPROBLEM, -MU_EINVALID},
    {CURLE_SSL_CACERT_BADFILE, -MU_EINVALID},
    {CURLE_BAD_FUNCTION_ARGUMENT, -MU_EINVALID},
};

/* A server that refuses the client (it wants a certificate, or another one) sends an
 * alert. With TLS 1.3 the alert comes after the handshake, and libcurl only reports that
 * it could not read: so the alert is recognised by libcurl's words. */
static bool is_refusal(const struct mu__curl_job *job, CURLcode result)
{
    static const char *const passing[] = {"internal error", "user canceled",
                                          "close notify"};
    const char *alert = strstr(job->words, " alert ");

    if (alert == NULL || (result != CURLE_SSL_CONNECT_ERROR &&
                          result != CURLE_RECV_ERROR && result != CURLE_SEND_ERROR))
        return false;
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (strstr(alert, passing[i]) != NULL)
            return false;
    return true;
}

/* Later versions of libcurl have bounds of their own for headers. One of them is reported
 * with a code that stands for many errors, and is recognised by its words. */
static bool is_large_head(const struct mu__curl_job *job, CURLcode result)
{
    return (int)result == TOO_LARGE ||
           (result == CURLE_RECV_ERROR &&
            strncmp(job->words, "Too large response headers", 26) == 0);
}

/* CURLE_UNSUPPORTED_PROTOCOL may be about the URL or about an answer. */
static int get_curl_code(const struct mu__curl_job *job, CURLcode result)
{
    long sent = 0;

    if (is_refusal(job, result))
        return -MU_EUNAUTHENTICATED;
    (void)curl_easy_getinfo(job->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (result == CURLE_UNSUPPORTED_PROTOCOL && sent > 0)
        return -MU_EUNAVAILABLE;
    if (is_large_head(job, result))
        return -MU_EEXHAUSTED;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].curl == result)
            return results[i].code;
    return -MU_EUNAVAILABLE;
}

void mu__curl_set_words(struct mu__http_request *request, int code, const char *words)
{
    char url[SHOWN_BYTES];

    mu__show_url(request->url, url, sizeof url);
    request->code = mu_error_set(&request->error, code, "%s: %s", url, words);
}

static void set_error(const struct mu__curl_job *job, int code, CURLcode result)
{
    char words[CURL_ERROR_SIZE + 40];

    if (is_large_head(job, result))
        (void)snprintf(words, sizeof words, "the answer has too large headers: %s",
                       job->words);
    else if (code == -MU_EEXHAUSTED && job->head_bytes > HEAD_BYTES_MAX)
        (void)snprintf(words, sizeof words,
                       "the answer has more than %d bytes of headers",
                       (int)HEAD_BYTES_MAX);
    else if (code == -MU_EEXHAUSTED)
        (void)snprintf(words, sizeof words, "the answer has more than %zu bytes",
                       job->answer_max);
    if (code == -MU_EEXHAUSTED)
        mu__curl_set_words(job->request, code, words);
    else
        mu__curl_set_words(job->request, code,
                           job->words[0] != '\0' ? job->words
                                                 : curl_easy_strerror(result));
}

/* "Application/JSON; charset=utf-8" is "application/json". */
static void take_content_type(const struct mu__curl_job *job)
{
    struct mu__http_request *request = job->request;
    size_t room = sizeof request->content_type;
    char *type = NULL;
    size_t i = 0;

    (void)curl_easy_getinfo(job->easy, CURLINFO_CONTENT_TYPE, &type);
    for (; type != NULL && i + 1 < room && strchr("; \t", type[i]) == NULL; i++)
        request->content_type[i] =
            (char)(type[i] >= 'A' && type[i] <= 'Z' ? type[i] - 'A' + 'a' : type[i]);
    request->content_type[i] = '\0';
}

static void take_head(const struct mu__curl_job *job)
{
    curl_off_t seconds = 0;
    long status = 0;

    (void)curl_easy_getinfo(job->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(job->easy, CURLINFO_RETRY_AFTER, &seconds);
    job->request->status = (int)status;
    job->request->retry_after_ms =
        seconds <= 0
            ? 0
            : (uint32_t)(seconds > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : seconds) *
                  1000;
    take_content_type(job);
}

/* Room for `size` bytes more. -MU_EEXHAUSTED: the answer would be too large. */
static int answer_reserve(struct mu__curl_job *job, size_t size)
{
    size_t used = job->answer == NULL ? 0 : job->answer->size;
    size_t capacity = job->answer == NULL ? ANSWER_FIRST_BYTES : job->answer->capacity;
    struct mu__buf *larger;

    if (size > job->answer_max - used)
        return -MU_EEXHAUSTED;
    if (job->answer != NULL && size <= capacity - used)
        return 0;
    while (capacity - used < size)
        capacity *= 2;
    larger = mu__buf_new(capacity);
    if (larger == NULL)
        return -MU_ENOMEM;
    if (used > 0)
        memcpy(larger->data, job->answer->data, used);
    larger->size = (uint32_t)used;
    mu__buf_unref(job->answer);
    job->answer = larger;
    return 0;
}

size_t mu__curl_on_bytes(char *data, size_t one, size_t count, void *owner)
{
    struct mu__curl_job *job = owner;
    size_t size = one * count;

    if (size == 0 || job->request == NULL)
        return size;
    job->refused = answer_reserve(job, size);
    if (job->refused != 0)
        return 0; /* fewer bytes than given: libcurl ends the transfer */
    memcpy(job->answer->data + job->answer->size, data, size);
    job->answer->size += (uint32_t)size;
    return size;
}

/* One header line, "Name: value\r\n". A status line begins another answer, as the
 * server's after a proxy's: the headers so far are dropped. */
size_t mu__curl_on_header(char *line, size_t one, size_t count, void *owner)
{
    struct mu__curl_job *job = owner;
    struct mu__http_request *request = job->request;
    size_t size = one * count;
    size_t length;
    size_t used;

    job->head_bytes += size;
    if (job->head_bytes > HEAD_BYTES_MAX) {
        job->refused = -MU_EEXHAUSTED;
        return 0;
    }
    if (request == NULL || request->header_name == NULL)
        return size;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0)
        request->header[0] = '\0';
    length = strlen(request->header_name);
    if (size <= length || line[length] != ':' ||
        strncasecmp(line, request->header_name, length) != 0)
        return size;
    for (length++; length < size && strchr(" \t", line[length]) != NULL;)
        length++;
    for (used = size; used > length && strchr(" \t\r\n", line[used - 1]) != NULL;)
        used--;
    if (used - length < sizeof request->header)
        (void)snprintf(request->header, sizeof request->header, "%.*s",
                       (int)(used - length), line + length);
    return size;
}

void mu__curl_take_answer(struct mu__curl_job *job, CURLcode result)
{
    struct mu__http_request *request = job->request;

    request->code = job->refused != 0 ? job->refused : get_curl_code(job, result);
    take_head(job);
    if (request->code == 0) {
        request->answer = job->answer;
        job->answer = NULL;
    } else {
        set_error(job, request->code, result);
    }
}
