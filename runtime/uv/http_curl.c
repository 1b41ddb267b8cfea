/* libcurl in the loop.
 *
 * libcurl says which sockets it waits for (on_socket) and for how long (on_timeout); the
 * loop's handles call drive() back, which lets libcurl work and then takes what has
 * ended. Nothing of ours is called by libcurl with an end, so requests are finished, and
 * their handles freed, outside of its callbacks.
 *
 * Memory. A request's HTTP_DONE message is made when it begins, so that its end cannot
 * fail. Where there is no memory even for that, the request waits in `starved` until
 * there is some to say so. A socket that cannot be watched makes libcurl give up all that
 * is under way: everything ends with an error, and the next request begins anew. */
#include "runtime/uv/http_curl.h"

#include "runtime/message/pool.h"
#include "runtime/uv/load_curl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    ANSWER_BYTES_MAX = 64 << 20,
    ANSWER_FIRST_BYTES = 4096,
    TOO_LARGE = 100,            /* CURLE_TOO_LARGE, since 8.6 */
    HEAD_BYTES_MAX = 256 << 10, /* all header lines of one answer */
    RETRY_AFTER_MAX_S = 86400,
    SHOWN_BYTES = 240,          /* of a url in a message */
    MEMORY_RETRY_MS = 20,
    TOLD_MS_MAX = 1000,
    IDLE_CONNECTIONS_MAX = 8
};

struct job {
    struct job *next;
    struct job **link;                  /* what points here */
    struct mu__http_request *request;   /* NULL: it was told */
    struct mu__msg *done;               /* its HTTP_DONE */
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    struct mu__buf *answer;
    size_t answer_max;
    size_t head_bytes;
    int refused;                        /* why the answer was not taken further */
    char words[CURL_ERROR_SIZE];
};

/* One socket of libcurl's. */
struct watch {
    uv_poll_t poll;
    struct mu__http_curl *http;
    curl_socket_t socket;
};

struct mu__http_curl {
    struct mu__http door;               /* first: operations cast */
    struct mu__http_curl_config config;
    CURLM *multi;                       /* NULL until the first request */
    struct job *jobs;
    unsigned jobs_count;
    void *starved;                      /* requests, linked by `own` */
    uv_timer_t timer;                   /* libcurl's */
    uv_timer_t memory;                  /* for those who starve */
    unsigned handles;                   /* of the loop that must close before we go */
    bool used;
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static struct mu__http_curl *from_door(struct mu__http *door)
{
    return (struct mu__http_curl *)door;
}

/* ---- Jobs ---- */

static void msg_free(struct mu__msg *msg)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    mu__pool_put(&pool, msg);
    mu__pool_done(&pool);
}

static void job_free(struct job *job)
{
    mu__curl.easy_cleanup(job->easy);
    mu__curl.slist_free_all(job->headers);
    mu__curl.slist_free_all(job->connect_to);
    mu__buf_unref(job->answer);
    msg_free(job->done);
    free(job);
}

static void job_take_out(struct mu__http_curl *http, struct job *job)
{
    (void)mu__curl.multi_remove_handle(http->multi, job->easy);
    *job->link = job->next;
    if (job->next != NULL)
        job->next->link = job->link;
    http->jobs_count--;
}

static void job_put_in(struct mu__http_curl *http, struct job *job)
{
    job->next = http->jobs;
    job->link = &http->jobs;
    if (job->next != NULL)
        job->next->link = &job->next;
    http->jobs = job;
    http->jobs_count++;
}

static void post(struct mu__http_curl *http, struct mu__http_request *request,
                 struct mu__msg *done)
{
    done->to = request->owner;
    *(void **)(void *)done->body = request;
    if (http->config.post(http->config.owner, done) != 0)
        msg_free(done);
}

/* ---- The answer ---- */

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

/* A server that will not have us as we are (it wants a certificate, or another one) says
 * so by an alert. With TLS 1.3 that comes after the handshake, when libcurl knows nothing
 * better than that it could not read: so it is known by its words. */
static bool is_refusal(const struct job *job, CURLcode result)
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

/* Later versions have bounds of their own for headers. One of them has a code that means
 * much, and is known by its words. */
static bool is_large_head(const struct job *job, CURLcode result)
{
    return (int)result == TOO_LARGE ||
           (result == CURLE_RECV_ERROR &&
            strncmp(job->words, "Too large response headers", 26) == 0);
}

/* A protocol that libcurl does not take may be that of the URL or that of an answer. */
static int code_of(const struct job *job, CURLcode result)
{
    long sent = 0;

    if (is_refusal(job, result))
        return -MU_EUNAUTHENTICATED;
    (void)mu__curl.easy_getinfo(job->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (result == CURLE_UNSUPPORTED_PROTOCOL && sent > 0)
        return -MU_EUNAVAILABLE;
    if (is_large_head(job, result))
        return -MU_EEXHAUSTED;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].curl == result)
            return results[i].code;
    return -MU_EUNAVAILABLE;
}

/* A url without user and query, which may be secret. */
static void shown_url(const char *url, char *out)
{
    const char *end = url + strcspn(url, "?#");
    const char *host = strstr(url, "://");
    size_t scheme;

    host = host == NULL || host > end ? url : host + 3;
    scheme = (size_t)(host - url);
    for (const char *at = host; at < end && *at != '/'; at++)
        if (*at == '@')
            host = at + 1;
    (void)snprintf(out, SHOWN_BYTES, "%.*s%.*s", (int)scheme, url, (int)(end - host),
                   host);
}

static void set_words(struct mu__http_request *request, int code, const char *words)
{
    char url[SHOWN_BYTES];

    shown_url(request->url, url);
    request->code = mu_error_set(&request->error, code, "%s: %s", url, words);
}

static void set_error(const struct job *job, int code, CURLcode result)
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
        set_words(job->request, code, words);
    else
        set_words(job->request, code,
                  job->words[0] != '\0' ? job->words : mu__curl.easy_strerror(result));
}

/* "Application/JSON; charset=utf-8" is "application/json". */
static void take_content_type(const struct job *job)
{
    struct mu__http_request *request = job->request;
    size_t room = sizeof request->content_type;
    char *type = NULL;
    size_t i = 0;

    (void)mu__curl.easy_getinfo(job->easy, CURLINFO_CONTENT_TYPE, &type);
    for (; type != NULL && i + 1 < room && strchr("; \t", type[i]) == NULL; i++)
        request->content_type[i] =
            (char)(type[i] >= 'A' && type[i] <= 'Z' ? type[i] - 'A' + 'a' : type[i]);
    request->content_type[i] = '\0';
}

static void take_head(const struct job *job)
{
    curl_off_t seconds = 0;
    long status = 0;

    (void)mu__curl.easy_getinfo(job->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)mu__curl.easy_getinfo(job->easy, CURLINFO_RETRY_AFTER, &seconds);
    job->request->status = (int)status;
    job->request->retry_after_ms =
        seconds <= 0 ? 0
                     : (uint32_t)(seconds > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S
                                                              : seconds) * 1000;
    take_content_type(job);
}

/* A job that libcurl has nothing to do with any more. */
static void job_finish(struct mu__http_curl *http, struct job *job, CURLcode result)
{
    struct mu__http_request *request = job->request;

    if (request != NULL) {
        request->own = NULL;
        request->code = job->refused != 0 ? job->refused : code_of(job, result);
        take_head(job);
        if (request->code == 0) {
            request->answer = job->answer;
            job->answer = NULL;
        } else {
            set_error(job, request->code, result);
        }
        post(http, request, job->done);
        job->done = NULL;
    }
    job_free(job);
}

/* Room for `size` bytes more: 0, -MU_ENOMEM, or -MU_EEXHAUSTED when that is too much. */
static int answer_reserve(struct job *job, size_t size)
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

static size_t on_bytes(char *data, size_t one, size_t count, void *owner)
{
    struct job *job = owner;
    size_t size = one * count;

    if (size == 0 || job->request == NULL)
        return size;
    job->refused = answer_reserve(job, size);
    if (job->refused != 0)
        return 0; /* less than there was: libcurl ends the transfer */
    memcpy(job->answer->data + job->answer->size, data, size);
    job->answer->size += (uint32_t)size;
    return size;
}

/* One line of the head, "Name: value\r\n"; the status line of another answer (a proxy's
 * comes before the server's) begins anew. */
static size_t on_header(char *line, size_t one, size_t count, void *owner)
{
    struct job *job = owner;
    struct mu__http_request *request = job->request;
    size_t size = one * count;
    size_t length;
    size_t used;

    job->head_bytes += size;
    if (job->head_bytes > HEAD_BYTES_MAX) {
        job->refused = -MU_EEXHAUSTED;
        return 0;
    }
    if (request == NULL || request->wanted_header == NULL)
        return size;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0)
        request->header[0] = '\0';
    length = strlen(request->wanted_header);
    if (size <= length || line[length] != ':' ||
        strncasecmp(line, request->wanted_header, length) != 0)
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

/* ---- libcurl's sockets and its timer ---- */

static void end_if_all_ended(struct mu__http_curl *http);

/* Libcurl's state is lost, so nothing that is under way can go on. */
static void give_up(struct mu__http_curl *http)
{
    struct job *jobs = http->jobs;

    while (http->jobs != NULL)
        job_take_out(http, http->jobs);
    (void)mu__curl.multi_cleanup(http->multi);
    http->multi = NULL;
    (void)uv_timer_stop(&http->timer);
    while (jobs != NULL) {
        struct job *job = jobs;

        jobs = job->next;
        job_finish(http, job, CURLE_OUT_OF_MEMORY);
    }
}

static void take_finished(struct mu__http_curl *http)
{
    CURLMsg *news;
    int left;

    while ((news = mu__curl.multi_info_read(http->multi, &left)) != NULL) {
        CURLcode result = news->data.result;    /* news goes with the handle */
        char *own = NULL;
        struct job *job;

        if (news->msg != CURLMSG_DONE)
            continue;
        (void)mu__curl.easy_getinfo(news->easy_handle, CURLINFO_PRIVATE, &own);
        job = (struct job *)(void *)own;
        job_take_out(http, job);
        job_finish(http, job, result);
    }
}

static void drive(struct mu__http_curl *http, curl_socket_t socket, int events)
{
    int running;

    if (mu__curl.multi_socket_action(http->multi, socket, events, &running) != CURLM_OK)
        give_up(http);
    else
        take_finished(http);
    end_if_all_ended(http);
}

/* A socket that has failed is read: so libcurl knows why, and sends anew what has met a
 * connection that the server was closing. Told of an error alone, it only gives up. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    int flags = status < 0 ? CURL_CSELECT_IN : 0;

    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    drive(watch->http, watch->socket, flags);   /* the watch may be closing then */
}

static void on_timer(uv_timer_t *timer)
{
    drive(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long timeout_ms, void *owner)
{
    struct mu__http_curl *http = owner;

    (void)multi;
    if (timeout_ms < 0)
        (void)uv_timer_stop(&http->timer);
    else
        (void)uv_timer_start(&http->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct mu__http_curl *http = watch->http;

    free(watch);
    http->handles--;
    end_if_all_ended(http);
}

static struct watch *watch_new(struct mu__http_curl *http, curl_socket_t socket)
{
    struct watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return NULL;
    if (uv_poll_init_socket(http->config.loop, &watch->poll, socket) != 0) {
        free(watch);
        return NULL;
    }
    watch->http = http;
    watch->socket = socket;
    watch->poll.data = watch;
    http->handles++;
    (void)mu__curl.multi_assign(http->multi, socket, watch);
    return watch;
}

static void watch_close(struct mu__http_curl *http, struct watch *watch)
{
    if (watch == NULL)
        return;
    (void)mu__curl.multi_assign(http->multi, watch->socket, NULL);
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *owner,
                     void *assigned)
{
    struct mu__http_curl *http = owner;
    struct watch *watch = assigned;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        watch_close(http, watch);
        return 0;
    }
    if (watch == NULL)
        watch = watch_new(http, socket);
    if (watch == NULL)
        return -1;
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

/* ---- Beginning ---- */

static int out_of_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

static int need_multi(struct mu__http_curl *http, mu_error *ret_error)
{
    int rv;

    if (http->multi != NULL)
        return 0;
    http->used = true;
    rv = mu__curl_load(ret_error);
    if (rv != 0)
        return rv;
    http->multi = mu__curl.multi_init();
    if (http->multi == NULL)
        return out_of_memory(ret_error);
    (void)mu__curl.multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)mu__curl.multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    (void)mu__curl.multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    (void)mu__curl.multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    (void)mu__curl.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS,
                                (long)IDLE_CONNECTIONS_MAX);
    return 0;
}

/* What the caller says. "Expect:" takes out a header with which libcurl would wait for
 * leave to send a large body. */
static int set_headers(struct job *job, const struct mu__http_request *request)
{
    job->headers = mu__curl.slist_append(NULL, "Expect:");
    if (job->headers == NULL)
        return -MU_ENOMEM;
    for (const char *const *at = request->headers; at != NULL && *at != NULL; at++)
        if (mu__curl.slist_append(job->headers, *at) == NULL)
            return -MU_ENOMEM;
    return mu__curl.easy_setopt(job->easy, CURLOPT_HTTPHEADER, job->headers) == CURLE_OK
               ? 0
               : -MU_ENOMEM;
}

static int set_body(struct job *job, const struct mu__http_request *request)
{
    CURLoption how = job->request == NULL ? CURLOPT_COPYPOSTFIELDS : CURLOPT_POSTFIELDS;
    const void *body = request->body == NULL ? "" : request->body;
    CURLcode rv;

    if (request->body == NULL && strcmp(request->method, "GET") == 0)
        return 0;
    rv = mu__curl.easy_setopt(job->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                              (curl_off_t)request->body_size);
    if (rv == CURLE_OK)
        rv = mu__curl.easy_setopt(job->easy, how, body);
    return rv == CURLE_OK ? 0 : -MU_ENOMEM;
}

static long limit_of(const struct job *job, const struct mu__http_request *request)
{
    if (job->request == NULL && request->timeout_ms > TOLD_MS_MAX)
        return TOLD_MS_MAX;
    return request->timeout_ms > INT32_MAX ? INT32_MAX : (long)request->timeout_ms;
}

/* Options that take no memory do not fail. */
static void set_plain(struct job *job, const struct mu__http_request *request)
{
    long timeout_ms = limit_of(job, request);

    (void)mu__curl.easy_setopt(job->easy, CURLOPT_PRIVATE, job);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_ERRORBUFFER, job->words);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_WRITEDATA, job);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_HEADERDATA, job);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_MAXFILESIZE_LARGE,
                               (curl_off_t)job->answer_max);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_TIMEOUT_MS,
                               timeout_ms > 0 ? timeout_ms : 1L);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_HTTP_VERSION,
                               (long)CURL_HTTP_VERSION_1_1);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_NOSIGNAL, 1L);
    (void)mu__curl.easy_setopt(job->easy, CURLOPT_QUICK_EXIT, 1L);
}

/* ---- TLS ---- */

static int set_blob(const struct job *job, CURLoption option, const char *text)
{
    struct curl_blob blob = {(void *)(uintptr_t)text, text == NULL ? 0 : strlen(text),
                             CURL_BLOB_COPY};

    if (text == NULL || mu__curl.easy_setopt(job->easy, option, &blob) == CURLE_OK)
        return 0;
    return -MU_ENOMEM;
}

static bool part_of(CURLU *url, CURLUPart what, unsigned flags, char **ret_part)
{
    return mu__curl.url_get(url, what, ret_part, flags) == CURLUE_OK;
}

/* libcurl compares a certificate with the url's host. So that is what it gets, and is
 * told to connect elsewhere; the server is still asked for the host that the url had. */
static int set_server_name(struct job *job, CURLU *url, const char *name)
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
    job->connect_to = mu__curl.slist_append(NULL, line);
    (void)snprintf(line, sizeof line, "Host: %.280s:%.10s", host, port);
    headers = mu__curl.slist_append(job->headers, line);
    if (job->connect_to == NULL || headers == NULL ||
        mu__curl.url_set(url, CURLUPART_HOST, name, 0) != CURLUE_OK ||
        !part_of(url, CURLUPART_URL, 0, &whole) ||
        mu__curl.easy_setopt(job->easy, CURLOPT_URL, whole) != CURLE_OK ||
        mu__curl.easy_setopt(job->easy, CURLOPT_CONNECT_TO, job->connect_to) != CURLE_OK)
        goto out;
    rv = 0;
out:
    mu__curl.free(host);
    mu__curl.free(port);
    mu__curl.free(whole);
    return rv;
}

/* A url that is none is left for libcurl to complain about. */
static int use_server_name(struct job *job, const struct mu__http_request *request)
{
    CURLU *url = mu__curl.url();
    int rv = 0;

    if (url == NULL)
        return -MU_ENOMEM;
    if (mu__curl.url_set(url, CURLUPART_URL, request->url, 0) == CURLUE_OK)
        rv = set_server_name(job, url, request->tls->server_name);
    mu__curl.url_cleanup(url);
    return rv;
}

static int set_tls(struct job *job, const struct mu__http_request *request)
{
    const struct mu__http_tls *tls = request->tls;

    if (tls->insecure) {
        (void)mu__curl.easy_setopt(job->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)mu__curl.easy_setopt(job->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (tls->ca != NULL &&
        (mu__curl.easy_setopt(job->easy, CURLOPT_CAINFO, NULL) != CURLE_OK ||
         mu__curl.easy_setopt(job->easy, CURLOPT_CAPATH, NULL) != CURLE_OK))
        return -MU_ENOMEM;
    if (set_blob(job, CURLOPT_CAINFO_BLOB, tls->ca) != 0 ||
        set_blob(job, CURLOPT_SSLCERT_BLOB, tls->certificate) != 0 ||
        set_blob(job, CURLOPT_SSLKEY_BLOB, tls->key) != 0)
        return -MU_ENOMEM;
    return tls->server_name == NULL ? 0 : use_server_name(job, request);
}

static int set_options(struct job *job, const struct mu__http_request *request)
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

    set_plain(job, request);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (mu__curl.easy_setopt(job->easy, texts[i].option, texts[i].text) != CURLE_OK)
            return -MU_ENOMEM;
    if (set_body(job, request) != 0 || set_headers(job, request) != 0)
        return -MU_ENOMEM;
    return request->tls == NULL ? 0 : set_tls(job, request);
}

/* `wanted`: the request itself when somebody waits for its answer, else NULL. */
static int begin(struct mu__http_curl *http, const struct mu__http_request *request,
                 struct mu__http_request *wanted, struct job **ret_job,
                 mu_error *ret_error)
{
    int rv = need_multi(http, ret_error);
    struct job *job;

    if (rv != 0)
        return rv;
    job = calloc(1, sizeof *job);
    if (job == NULL)
        return out_of_memory(ret_error);
    job->request = wanted;
    job->answer_max = request->answer_max == 0 || request->answer_max > ANSWER_BYTES_MAX
                          ? ANSWER_BYTES_MAX
                          : request->answer_max;
    job->done = mu__msg_heap(http->config.done_kind, sizeof(void *));
    job->easy = mu__curl.easy_init();
    if (job->done == NULL || job->easy == NULL)
        rv = -MU_ENOMEM;
    if (rv == 0)
        rv = set_options(job, request);
    if (rv == 0 && mu__curl.multi_add_handle(http->multi, job->easy) != CURLM_OK)
        rv = -MU_ENOMEM;
    if (rv != 0) {
        job_free(job);
        return out_of_memory(ret_error);
    }
    job_put_in(http, job);
    *ret_job = job;
    return 0;
}

/* ---- Requests that could not begin ---- */

static void on_memory(uv_timer_t *timer);

static void starve(struct mu__http_curl *http, struct mu__http_request *request)
{
    request->own = http->starved;
    http->starved = request;
    (void)uv_timer_start(&http->memory, on_memory, MEMORY_RETRY_MS, 0);
}

static void refuse(struct mu__http_curl *http, struct mu__http_request *request, int code,
                   const char *words)
{
    struct mu__msg *done = mu__msg_heap(http->config.done_kind, sizeof(void *));

    set_words(request, code, words);
    if (done == NULL)
        starve(http, request);
    else
        post(http, request, done);
}

static void on_memory(uv_timer_t *timer)
{
    struct mu__http_curl *http = timer->data;
    struct mu__http_request *request = http->starved;

    http->starved = NULL;
    while (request != NULL) {
        struct mu__http_request *next = request->own;

        request->own = NULL;
        refuse(http, request, -MU_ENOMEM, "out of memory");
        request = next;
    }
}

static bool starved_take_out(struct mu__http_curl *http, struct mu__http_request *request)
{
    void **at = &http->starved;

    while (*at != NULL && *at != request)
        at = &((struct mu__http_request *)*at)->own;
    if (*at == NULL)
        return false;
    *at = request->own;
    request->own = NULL;
    return true;
}

/* ---- The door ---- */

static void op_send(struct mu__http *door, struct mu__http_request *request)
{
    struct mu__http_curl *http = from_door(door);
    mu_error error;
    struct job *job;
    int rv;

    assert(!http->closing);
    request->code = 0;
    request->error.code = 0;
    request->status = 0;
    request->answer = NULL;
    request->own = NULL;
    request->content_type[0] = '\0';
    request->header[0] = '\0';
    request->retry_after_ms = 0;
    rv = http->jobs_count < MU__HTTP_REQUESTS_MAX
             ? begin(http, request, request, &job, &error)
             : mu_error_set(&error, -MU_EEXHAUSTED, "too many requests are under way");
    if (rv == 0)
        request->own = job;
    else
        refuse(http, request, rv, error.message);
}

static void op_cancel(struct mu__http *door, struct mu__http_request *request)
{
    struct mu__http_curl *http = from_door(door);
    struct job *job;

    if (starved_take_out(http, request) || request->own == NULL)
        return;
    job = request->own;
    assert(job->request == request);
    request->own = NULL;
    job_take_out(http, job);
    job_free(job);
}

static void op_tell(struct mu__http *door, const struct mu__http_request *request)
{
    struct mu__http_curl *http = from_door(door);
    struct job *job;

    assert(!http->closing);
    if (http->jobs_count < MU__HTTP_REQUESTS_MAX)
        (void)begin(http, request, NULL, &job, NULL);
}

static const struct mu__http_ops ops = {
    .send = op_send,
    .cancel = op_cancel,
    .tell = op_tell,
};

/* ---- Life ---- */

int mu__http_curl_open(const struct mu__http_curl_config *config,
                       struct mu__http_curl **ret_http)
{
    struct mu__http_curl *http = calloc(1, sizeof *http);

    if (http == NULL)
        return -MU_ENOMEM;
    http->door.ops = &ops;
    http->config = *config;
    (void)uv_timer_init(config->loop, &http->timer);
    (void)uv_timer_init(config->loop, &http->memory);
    http->timer.data = http;
    http->memory.data = http;
    http->handles = 2;
    *ret_http = http;
    return 0;
}

struct mu__http *mu__http_curl_door(struct mu__http_curl *http)
{
    return &http->door;
}

bool mu__http_curl_was_used(const struct mu__http_curl *http)
{
    return http->used;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct mu__http_curl *http = handle->data;

    http->handles--;
    end_if_all_ended(http);
}

/* When the last of what was told has ended, and then when the last handle has closed. */
static void end_if_all_ended(struct mu__http_curl *http)
{
    if (!http->closing || http->jobs != NULL)
        return;
    if (!uv_is_closing((uv_handle_t *)&http->timer)) {
        if (http->multi != NULL)
            (void)mu__curl.multi_cleanup(http->multi);
        http->multi = NULL;
        uv_close((uv_handle_t *)&http->timer, on_timer_closed);
        uv_close((uv_handle_t *)&http->memory, on_timer_closed);
    }
    if (http->handles == 0) {
        void (*closed)(void *arg) = http->closed;
        void *arg = http->closed_arg;

        free(http);
        closed(arg);
    }
}

static void drop_starved(struct mu__http_curl *http)
{
    while (http->starved != NULL)
        (void)starved_take_out(http, http->starved);
    (void)uv_timer_stop(&http->memory);
}

void mu__http_curl_close(struct mu__http_curl *http, void (*closed)(void *arg), void *arg)
{
    struct job *next;

    assert(!http->closing);
    http->closing = true;
    http->closed = closed;
    http->closed_arg = arg;
    drop_starved(http);
    for (struct job *job = http->jobs; job != NULL; job = next) {
        next = job->next;
        if (job->request == NULL)
            continue;
        job->request->own = NULL;
        job_take_out(http, job);
        job_free(job);
    }
    end_if_all_ended(http);
}
