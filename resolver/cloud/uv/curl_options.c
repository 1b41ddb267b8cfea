/* A request as libcurl's options. */
#include "resolver/cloud/uv/curl.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 64 << 20, TIMER_MS_MAX = 1000 };

/* The request's own headers. "Expect:" removes a header with which libcurl would wait for
 * the server's permission to send a large body. */
static int set_headers(struct mu__curl_job *job, const struct mu__http_request *request)
{
    job->headers = curl_slist_append(NULL, "Expect:");
    if (job->headers == NULL)
        return -MU_ENOMEM;
    for (const char *const *at = request->headers; at != NULL && *at != NULL; at++)
        if (curl_slist_append(job->headers, *at) == NULL)
            return -MU_ENOMEM;
    return curl_easy_setopt(job->easy, CURLOPT_HTTPHEADER, job->headers) == CURLE_OK
               ? 0
               : -MU_ENOMEM;
}

static int set_body(struct mu__curl_job *job, const struct mu__http_request *request)
{
    CURLoption how = job->request == NULL ? CURLOPT_COPYPOSTFIELDS : CURLOPT_POSTFIELDS;
    const void *body = request->body == NULL ? "" : request->body;
    CURLcode rv;

    if (request->body == NULL && strcmp(request->method, "GET") == 0)
        return 0;
    rv = curl_easy_setopt(job->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                          (curl_off_t)request->body_size);
    if (rv == CURLE_OK)
        rv = curl_easy_setopt(job->easy, how, body);
    return rv == CURLE_OK ? 0 : -MU_ENOMEM;
}

static long get_curl_timeout_ms(const struct mu__curl_job *job,
                                const struct mu__http_request *request)
{
    if (job->request == NULL && request->timeout_ms > TIMER_MS_MAX)
        return TIMER_MS_MAX;
    return request->timeout_ms > INT32_MAX ? INT32_MAX : (long)request->timeout_ms;
}

/* Options for which libcurl allocates nothing: they do not fail. */
static void set_plain(struct mu__curl_job *job, const struct mu__http_request *request)
{
    long timeout_ms = get_curl_timeout_ms(job, request);

    (void)curl_easy_setopt(job->easy, CURLOPT_PRIVATE, job);
    (void)curl_easy_setopt(job->easy, CURLOPT_ERRORBUFFER, job->words);
    (void)curl_easy_setopt(job->easy, CURLOPT_WRITEFUNCTION, mu__curl_on_bytes);
    (void)curl_easy_setopt(job->easy, CURLOPT_WRITEDATA, job);
    (void)curl_easy_setopt(job->easy, CURLOPT_HEADERFUNCTION, mu__curl_on_header);
    (void)curl_easy_setopt(job->easy, CURLOPT_HEADERDATA, job);
    (void)curl_easy_setopt(job->easy, CURLOPT_MAXFILESIZE_LARGE,
                           (curl_off_t)job->answer_max);
    (void)curl_easy_setopt(job->easy, CURLOPT_TIMEOUT_MS,
                           timeout_ms > 0 ? timeout_ms : 1L);
    (void)curl_easy_setopt(job->easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(job->easy, CURLOPT_HTTP_VERSION,
                           request->http2 ? (long)CURL_HTTP_VERSION_2TLS
                                          : (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(job->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(job->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(job->easy, CURLOPT_QUICK_EXIT, 1L);
}

/* ---- TLS ---- */

static int set_blob(const struct mu__curl_job *job, CURLoption option, const char *text)
{
    struct curl_blob blob = {(void *)(uintptr_t)text, text == NULL ? 0 : strlen(text),
                             CURL_BLOB_COPY};

    if (text == NULL || curl_easy_setopt(job->easy, option, &blob) == CURLE_OK)
        return 0;
    return -MU_ENOMEM;
}

static bool part_of(CURLU *url, CURLUPart what, unsigned flags, char **ret_part)
{
    return curl_url_get(url, what, ret_part, flags) == CURLUE_OK;
}

/* libcurl compares a certificate with the url's host. So the url gets the name that the
 * certificate is to have, CURLOPT_CONNECT_TO the real host, and the header Host the one
 * that the url had. */
static int set_server_name(struct mu__curl_job *job, CURLU *url, const char *name)
{
    struct curl_slist *headers = NULL;
    char *host = NULL;
    char *port = NULL;
    char *whole = NULL;
    char line[600];
    int rv = -MU_ENOMEM;

    if (!part_of(url, CURLUPART_HOST, 0, &host) ||
        !part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port))
        goto out;
    (void)snprintf(line, sizeof line, "::%.280s:%.10s", host, port);
    job->connect_to = curl_slist_append(NULL, line);
    (void)snprintf(line, sizeof line, "Host: %.280s:%.10s", host, port);
    headers = curl_slist_append(job->headers, line);
    if (job->connect_to == NULL || headers == NULL ||
        curl_url_set(url, CURLUPART_HOST, name, 0) != CURLUE_OK ||
        !part_of(url, CURLUPART_URL, 0, &whole) ||
        curl_easy_setopt(job->easy, CURLOPT_URL, whole) != CURLE_OK ||
        curl_easy_setopt(job->easy, CURLOPT_CONNECT_TO, job->connect_to) != CURLE_OK)
        goto out;
    rv = 0;
out:
    curl_free(host);
    curl_free(port);
    curl_free(whole);
    return rv;
}

/* A url that cannot be parsed stays as it is: libcurl reports it. */
static int use_server_name(struct mu__curl_job *job,
                           const struct mu__http_request *request)
{
    CURLU *url = curl_url();
    int rv = 0;

    if (url == NULL)
        return -MU_ENOMEM;
    if (curl_url_set(url, CURLUPART_URL, request->url, 0) == CURLUE_OK)
        rv = set_server_name(job, url, request->tls->server_name);
    curl_url_cleanup(url);
    return rv;
}

static int set_tls(struct mu__curl_job *job, const struct mu__http_request *request)
{
    const struct mu__http_tls *tls = request->tls;

    if (tls->insecure) {
        (void)curl_easy_setopt(job->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(job->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (tls->ca != NULL &&
        (curl_easy_setopt(job->easy, CURLOPT_CAINFO, NULL) != CURLE_OK ||
         curl_easy_setopt(job->easy, CURLOPT_CAPATH, NULL) != CURLE_OK))
        return -MU_ENOMEM;
    if (set_blob(job, CURLOPT_CAINFO_BLOB, tls->ca) != 0 ||
        set_blob(job, CURLOPT_SSLCERT_BLOB, tls->certificate) != 0 ||
        set_blob(job, CURLOPT_SSLKEY_BLOB, tls->key) != 0)
        return -MU_ENOMEM;
    return tls->server_name == NULL ? 0 : use_server_name(job, request);
}

int mu__curl_set_options(struct mu__curl_job *job, const struct mu__http_request *request)
{
    const struct {
        CURLoption option;
        const char *text;
    } texts[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_PROXY, request->uses_proxy ? NULL : ""},
        {CURLOPT_USERAGENT, "muster"},
        {CURLOPT_URL, request->url},
        {CURLOPT_CUSTOMREQUEST, request->method},
    };

    job->answer_max = request->answer_max == 0 || request->answer_max > ANSWER_BYTES_MAX
                          ? ANSWER_BYTES_MAX
                          : request->answer_max;
    set_plain(job, request);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (curl_easy_setopt(job->easy, texts[i].option, texts[i].text) != CURLE_OK)
            return -MU_ENOMEM;
    if (set_body(job, request) != 0 || set_headers(job, request) != 0)
        return -MU_ENOMEM;
    return request->tls == NULL ? 0 : set_tls(job, request);
}
