/* libcurl in the loop.
 *
 * libcurl says which sockets it waits for (on_socket) and for how long (on_timeout); the
 * loop's handles call run_curl(), which lets libcurl work and then takes the transfers
 * that have ended. Requests are finished and their handles freed there, outside of
 * libcurl's callbacks.
 *
 * Memory. A request's HTTP_DONE message is made when it begins, so that its end cannot
 * fail. Where there is no memory even for that, the request waits in
 * `failed_allocations` until there is memory for the message that says so. When a socket
 * cannot be watched, all transfers end with an error, and the next request makes a new
 * multi handle. */
#include "resolver/cloud/uv/curl.h"

#include "runtime/message/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_RETRY_MS = 20, IDLE_CONNECTIONS_MAX = 8, ORIGIN_BYTES = 320 };

/* One socket of libcurl's. */
struct watch {
    uv_poll_t poll;
    struct mu__curl_pool *pool;
    curl_socket_t socket;
};

/* The connections of one version of HTTP. With one pool for both, libcurl would send
 * HTTP/2 over an idle connection that has begun with HTTP/1.1. */
struct mu__curl_pool {
    struct mu__http_client *http;
    CURLM *multi;              /* NULL until the first request */
    uv_timer_t timer;          /* libcurl's */
    char origin[ORIGIN_BYTES]; /* see set_version; "": none */
};

enum { POOLS = 2 }; /* HTTP/1.1, HTTP/2 */

struct mu__http_client {
    struct mu__http door; /* first: operations cast */
    struct mu__http_client_config config;
    struct mu__curl_pool pools[POOLS];
    struct mu__curl_job *jobs;
    unsigned jobs_count;
    void *failed_allocations; /* requests, linked by `own` */
    uv_timer_t memory;        /* retries failed_allocations */
    unsigned handles;         /* of the loop that are not closed yet */
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static struct mu__http_client *from_http_door(struct mu__http *door)
{
    return (struct mu__http_client *)door;
}

/* ---- Jobs ---- */

static void msg_free(struct mu__msg *msg)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    mu__pool_put(&pool, msg);
    mu__pool_done(&pool);
}

static void job_free(struct mu__curl_job *job)
{
    curl_easy_cleanup(job->easy);
    curl_slist_free_all(job->headers);
    curl_slist_free_all(job->connect_to);
    mu__buf_unref(job->answer);
    msg_free(job->done);
    free(job);
}

static void job_take_out(struct mu__http_client *http, struct mu__curl_job *job)
{
    (void)curl_multi_remove_handle(job->pool->multi, job->easy);
    *job->link = job->next;
    if (job->next != NULL)
        job->next->link = job->link;
    http->jobs_count--;
}

static void job_put_in(struct mu__http_client *http, struct mu__curl_job *job)
{
    job->next = http->jobs;
    job->link = &http->jobs;
    if (job->next != NULL)
        job->next->link = &job->next;
    http->jobs = job;
    http->jobs_count++;
}

static void post_http_done(struct mu__http_client *http, struct mu__http_request *request,
                           struct mu__msg *done)
{
    done->to = request->owner;
    *(void **)(void *)done->body = request;
    if (http->config.post(http->config.owner, done) != 0)
        msg_free(done);
}

/* The job's handle is out of libcurl's multi handle. */
static void job_finish(struct mu__http_client *http, struct mu__curl_job *job,
                       CURLcode result)
{
    struct mu__http_request *request = job->request;

    if (request != NULL) {
        request->own = NULL;
        mu__curl_take_answer(job, result);
        post_http_done(http, request, job->done);
        job->done = NULL;
    }
    job_free(job);
}

/* ---- libcurl's sockets and its timer ---- */

static void end_closed_client(struct mu__http_client *http);

/* A pool's multi handle is unusable: none of its transfers can go on. */
static void give_up_pool(struct mu__curl_pool *pool)
{
    struct mu__http_client *http = pool->http;
    struct mu__curl_job *next;

    for (struct mu__curl_job *job = http->jobs; job != NULL; job = next) {
        next = job->next;
        if (job->pool != pool)
            continue;
        job_take_out(http, job);
        job_finish(http, job, CURLE_OUT_OF_MEMORY);
    }
    (void)curl_multi_cleanup(pool->multi);
    pool->multi = NULL;
    (void)uv_timer_stop(&pool->timer);
}

/* "http://host:port" of a url; "" when it is too long. */
static void origin_of(const char *url, char out[ORIGIN_BYTES])
{
    const char *host = strstr(url, "://");
    size_t size = host == NULL ? 0 : (size_t)(host - url) + 3;

    size += strcspn(url + size, "/?#");
    (void)snprintf(out, ORIGIN_BYTES, "%.*s", size < ORIGIN_BYTES ? (int)size : 0, url);
}

static void note_origin(const struct mu__curl_job *job, CURLcode result)
{
    long version = 0;

    (void)curl_easy_getinfo(job->easy, CURLINFO_HTTP_VERSION, &version);
    if (job->request != NULL && job->request->http2 && result == CURLE_OK &&
        version == CURL_HTTP_VERSION_2_0)
        origin_of(job->request->url, job->pool->origin);
}

static void take_finished_transfers(struct mu__curl_pool *pool)
{
    CURLMsg *news;
    int left;

    while ((news = curl_multi_info_read(pool->multi, &left)) != NULL) {
        CURLcode result = news->data.result; /* news goes with the handle */
        char *own = NULL;
        struct mu__curl_job *job;

        if (news->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(news->easy_handle, CURLINFO_PRIVATE, &own);
        job = (struct mu__curl_job *)(void *)own;
        note_origin(job, result);
        job_take_out(pool->http, job);
        job_finish(pool->http, job, result);
    }
}

static void run_curl(struct mu__curl_pool *pool, curl_socket_t socket, int events)
{
    int running;

    if (curl_multi_socket_action(pool->multi, socket, events, &running) != CURLM_OK)
        give_up_pool(pool);
    else
        take_finished_transfers(pool);
    end_closed_client(pool->http);
}

/* A socket with an error is reported as readable: libcurl then reads the reason, and
 * repeats a request that has met a connection which the server was closing. Reported as
 * an error, the transfer would only fail. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    int flags = status < 0 ? CURL_CSELECT_IN : 0;

    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    run_curl(watch->pool, watch->socket, flags); /* the watch may be closing then */
}

static void on_curl_timer(uv_timer_t *timer)
{
    run_curl(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timeout(CURLM *multi, long timeout_ms, void *owner)
{
    struct mu__curl_pool *pool = owner;

    (void)multi;
    if (timeout_ms < 0)
        (void)uv_timer_stop(&pool->timer);
    else
        (void)uv_timer_start(&pool->timer, on_curl_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct mu__http_client *http = watch->pool->http;

    free(watch);
    http->handles--;
    end_closed_client(http);
}

static struct watch *watch_new(struct mu__curl_pool *pool, curl_socket_t socket)
{
    struct watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return NULL;
    if (uv_poll_init_socket(pool->http->config.loop, &watch->poll, socket) != 0) {
        free(watch);
        return NULL;
    }
    watch->pool = pool;
    watch->socket = socket;
    watch->poll.data = watch;
    pool->http->handles++;
    (void)curl_multi_assign(pool->multi, socket, watch);
    return watch;
}

static void watch_close(struct mu__curl_pool *pool, struct watch *watch)
{
    if (watch == NULL)
        return;
    (void)curl_multi_assign(pool->multi, watch->socket, NULL);
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *owner,
                     void *assigned)
{
    struct mu__curl_pool *pool = owner;
    struct watch *watch = assigned;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        watch_close(pool, watch);
        return 0;
    }
    if (watch == NULL)
        watch = watch_new(pool, socket);
    if (watch == NULL)
        return -1;
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

/* ---- Beginning ---- */

static int http_out_of_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

static int need_multi(struct mu__curl_pool *pool, mu_error *ret_error)
{
    if (pool->multi != NULL)
        return 0;
    pool->multi = curl_multi_init();
    if (pool->multi == NULL)
        return http_out_of_memory(ret_error);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_timeout);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS,
                            pool == &pool->http->pools[1] ? 1L
                                                          : (long)IDLE_CONNECTIONS_MAX);
    return 0;
}

static int on_close_socket(void *owner, curl_socket_t socket)
{
    ((struct mu__curl_pool *)owner)->origin[0] = '\0';
    return close(socket);
}

/* Without TLS, HTTP/2 is spoken without asking for it ("prior knowledge"). But a libcurl
 * before 8.0 begins it once more on a connection that it uses again, and fails: so there
 * is at most one idle connection, and a request to where it leads is plain HTTP/2. */
static int set_version(struct mu__curl_job *job, const struct mu__http_request *request)
{
    char origin[ORIGIN_BYTES];
    bool again;

    if (!request->http2 || strncmp(request->url, "https:", 6) == 0)
        return 0;
    origin_of(request->url, origin);
    again = origin[0] != '\0' && strcmp(origin, job->pool->origin) == 0;
    (void)curl_easy_setopt(job->easy, CURLOPT_HTTP_VERSION,
                           again ? (long)CURL_HTTP_VERSION_2_0
                                 : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    (void)curl_easy_setopt(job->easy, CURLOPT_CLOSESOCKETDATA, job->pool);
    return curl_easy_setopt(job->easy, CURLOPT_CLOSESOCKETFUNCTION, on_close_socket) ==
                   CURLE_OK
               ? 0
               : -MU_ENOMEM;
}

/* `http_request`: the request when its answer is waited for, else NULL. */
static int begin_curl_transfer(struct mu__http_client *http,
                               const struct mu__http_request *request,
                               struct mu__http_request *http_request,
                               struct mu__curl_job **ret_job, mu_error *ret_error)
{
    struct mu__curl_pool *pool = &http->pools[request->http2];
    int rv = need_multi(pool, ret_error);
    struct mu__curl_job *job;

    if (rv != 0)
        return rv;
    job = calloc(1, sizeof *job);
    if (job == NULL)
        return http_out_of_memory(ret_error);
    job->pool = pool;
    job->request = http_request;
    job->done = mu__msg_heap(http->config.done_kind, sizeof(void *));
    job->easy = curl_easy_init();
    if (job->done == NULL || job->easy == NULL)
        rv = -MU_ENOMEM;
    if (rv == 0)
        rv = mu__curl_set_options(job, request);
    if (rv == 0)
        rv = set_version(job, request);
    if (rv == 0 && curl_multi_add_handle(pool->multi, job->easy) != CURLM_OK)
        rv = -MU_ENOMEM;
    if (rv != 0) {
        job_free(job);
        return http_out_of_memory(ret_error);
    }
    job_put_in(http, job);
    *ret_job = job;
    return 0;
}

/* ---- Requests that could not begin ---- */

static void on_memory(uv_timer_t *timer);

static void defer_failed_allocation(struct mu__http_client *http,
                                    struct mu__http_request *request)
{
    request->own = http->failed_allocations;
    http->failed_allocations = request;
    (void)uv_timer_start(&http->memory, on_memory, MEMORY_RETRY_MS, 0);
}

static void refuse_http_request(struct mu__http_client *http,
                                struct mu__http_request *request, int code,
                                const char *words)
{
    struct mu__msg *done = mu__msg_heap(http->config.done_kind, sizeof(void *));

    mu__curl_set_words(request, code, words);
    if (done == NULL)
        defer_failed_allocation(http, request);
    else
        post_http_done(http, request, done);
}

static void on_memory(uv_timer_t *timer)
{
    struct mu__http_client *http = timer->data;
    struct mu__http_request *request = http->failed_allocations;

    http->failed_allocations = NULL;
    while (request != NULL) {
        struct mu__http_request *next = request->own;

        request->own = NULL;
        refuse_http_request(http, request, -MU_ENOMEM, "out of memory");
        request = next;
    }
}

static bool out_of_memory_take_out(struct mu__http_client *http,
                                   struct mu__http_request *request)
{
    void **at = &http->failed_allocations;

    while (*at != NULL && *at != request)
        at = &((struct mu__http_request *)*at)->own;
    if (*at == NULL)
        return false;
    *at = request->own;
    request->own = NULL;
    return true;
}

/* ---- Operations of struct mu__http ---- */

static void op_send(struct mu__http *door, struct mu__http_request *request)
{
    struct mu__http_client *http = from_http_door(door);
    mu_error error;
    struct mu__curl_job *job;
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
             ? begin_curl_transfer(http, request, request, &job, &error)
             : mu_error_set(&error, -MU_EEXHAUSTED, "too many requests are under way");
    if (rv == 0)
        request->own = job;
    else
        refuse_http_request(http, request, rv, error.message);
}

static void op_cancel(struct mu__http *door, struct mu__http_request *request)
{
    struct mu__http_client *http = from_http_door(door);
    struct mu__curl_job *job;

    if (out_of_memory_take_out(http, request) || request->own == NULL)
        return;
    job = request->own;
    assert(job->request == request);
    request->own = NULL;
    job_take_out(http, job);
    job_free(job);
}

static void op_notify(struct mu__http *door, const struct mu__http_request *request)
{
    struct mu__http_client *http = from_http_door(door);
    struct mu__curl_job *job;

    assert(!http->closing);
    if (http->jobs_count < MU__HTTP_REQUESTS_MAX)
        (void)begin_curl_transfer(http, request, NULL, &job, NULL);
}

static const struct mu__http_ops ops = {
    .send = op_send,
    .cancel = op_cancel,
    .notify = op_notify,
};

/* ---- Opening and closing ---- */

int mu__curl_open(const struct mu__http_client_config *config,
                  struct mu__http_client **ret_http)
{
    struct mu__http_client *http = calloc(1, sizeof *http);

    if (http == NULL)
        return -MU_ENOMEM;
    http->door.ops = &ops;
    http->config = *config;
    for (int i = 0; i < POOLS; i++) {
        http->pools[i].http = http;
        (void)uv_timer_init(config->loop, &http->pools[i].timer);
        http->pools[i].timer.data = &http->pools[i];
    }
    (void)uv_timer_init(config->loop, &http->memory);
    http->memory.data = http;
    http->handles = POOLS + 1;
    *ret_http = http;
    return 0;
}

struct mu__http *mu__curl_door(struct mu__http_client *http)
{
    return &http->door;
}

static void drop_http_handle(struct mu__http_client *http)
{
    http->handles--;
    end_closed_client(http);
}

static void on_curl_timer_closed(uv_handle_t *handle)
{
    drop_http_handle(((struct mu__curl_pool *)handle->data)->http);
}

static void on_memory_closed(uv_handle_t *handle)
{
    drop_http_handle(handle->data);
}

static void close_handles(struct mu__http_client *http)
{
    for (int i = 0; i < POOLS; i++) {
        if (http->pools[i].multi != NULL)
            (void)curl_multi_cleanup(http->pools[i].multi);
        http->pools[i].multi = NULL;
        uv_close((uv_handle_t *)&http->pools[i].timer, on_curl_timer_closed);
    }
    uv_close((uv_handle_t *)&http->memory, on_memory_closed);
}

/* After the last job has ended the handles are closed, and after the last handle the
 * client. */
static void end_closed_client(struct mu__http_client *http)
{
    if (!http->closing || http->jobs != NULL)
        return;
    if (!uv_is_closing((uv_handle_t *)&http->memory))
        close_handles(http);
    if (http->handles == 0) {
        void (*closed)(void *arg) = http->closed;
        void *arg = http->closed_arg;

        free(http);
        closed(arg);
    }
}

static void fail_allocations(struct mu__http_client *http)
{
    while (http->failed_allocations != NULL)
        (void)out_of_memory_take_out(http, http->failed_allocations);
    (void)uv_timer_stop(&http->memory);
}

void mu__curl_close(struct mu__http_client *http, void (*closed)(void *arg), void *arg)
{
    struct mu__curl_job *next;

    assert(!http->closing);
    http->closing = true;
    http->closed = closed;
    http->closed_arg = arg;
    fail_allocations(http);
    for (struct mu__curl_job *job = http->jobs; job != NULL; job = next) {
        next = job->next;
        if (job->request == NULL)
            continue;
        job->request->own = NULL;
        job_take_out(http, job);
        job_free(job);
    }
    end_closed_client(http);
}
