/* Requests over HTTP; each is a struct mu__flight. */
#include "resolver/engine/uv/internal.h"

#include "resolver/engine/request.h"
#include "resolver/engine/uv/http_client.h"
#include "runtime/message/pool.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLIGHTS_MAX = 32, /* requests in flight; more wait for these */
    DONE_KIND = 1     /* of the client's messages to us: any number does */
};

struct mu__flight {
    struct mu__http_request request;
    struct mu__http_tls tls;
    struct mu__exchange *exchange; /* NULL: cancelled */
    struct mu__list_node node;     /* while it waits */
    bool is_sent;                  /* it is with the HTTP client */
    bool posted;                   /* its message is in our queue */
};

static void flight_free(struct mu__flight *flight)
{
    mu__buf_unref(flight->request.answer);
    free(flight);
}

static void msg_free(struct mu__msg *msg)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    mu__pool_put(&pool, msg);
    mu__pool_done(&pool);
}

/* The client's message begins with the url, as the exchange's will. */
static void give_failure(struct mu__exchange *exchange,
                         const struct mu__http_request *request)
{
    const char *words = strstr(request->error.message, ": ");

    mu__requester_fail(exchange, request->code,
                       words == NULL ? request->error.message : words + 2);
}

static void give_answer(struct mu__exchange *exchange,
                        const struct mu__http_request *request)
{
    size_t size = request->answer == NULL ? 0 : request->answer->size;
    char *data = malloc(size + 1);

    if (data != NULL) {
        if (size > 0)
            memcpy(data, request->answer->data, size);
        data[size] = '\0';
    }
    exchange->answer.status = request->status;
    exchange->answer.retry_after_ms = request->retry_after_ms;
    MU__COPY_TEXT(exchange->answer.content_type, request->content_type);
    MU__COPY_TEXT(exchange->answer.header, request->header);
    mu__requester_answer(exchange, data, size);
}

static void keep(struct mu__requester_uv *requester, const struct mu__exchange *exchange,
                 const struct mu__http_request *request)
{
    const struct mu__buf *answer = request->answer;

    if (request->code == 0 && request->status == 200)
        mu__requester_cache(requester, exchange,
                            answer == NULL ? "" : (const char *)answer->data,
                            answer == NULL ? 0 : answer->size);
}

static void flight_end(struct mu__requester_uv *requester, struct mu__flight *flight)
{
    struct mu__exchange *exchange = flight->exchange;

    if (exchange != NULL) {
        exchange->own = NULL;
        keep(requester, exchange, &flight->request);
        if (flight->request.code != 0)
            give_failure(exchange, &flight->request);
        else
            give_answer(exchange, &flight->request);
    }
    flight_free(flight);
}

static void send_waiting(struct mu__requester_uv *requester)
{
    struct mu__http *door = mu__http_client_door(requester->http);

    while (!mu__list_is_empty(&requester->waiting) && requester->flights < FLIGHTS_MAX) {
        struct mu__flight *flight =
            MU__LIST_ENTRY(mu__list_pop(&requester->waiting), struct mu__flight, node);

        flight->is_sent = true;
        requester->flights++;
        door->ops->send(door, &flight->request);
    }
}

/* Take one posted message in each round of the loop, since an answer may lead to the
 * next request. */
static void on_idle(uv_idle_t *idle)
{
    struct mu__requester_uv *requester = idle->data;
    struct mu__msg *msg = requester->done;

    if (msg == NULL) {
        (void)uv_idle_stop(idle);
        return;
    }
    requester->done = msg->next;
    if (requester->done == NULL)
        requester->done_last = &requester->done;
    requester->flights--;
    flight_end(requester, *(struct mu__flight **)(void *)msg->body);
    msg_free(msg);
    if (requester->closed == NULL && requester->http != NULL)
        send_waiting(requester);
}

static int on_post(void *owner, struct mu__msg *msg)
{
    struct mu__requester_uv *requester = owner;

    msg->next = NULL;
    (*(struct mu__flight **)(void *)msg->body)->posted = true;
    *requester->done_last = msg;
    requester->done_last = &msg->next;
    (void)uv_idle_start(&requester->idle, on_idle);
    return 0;
}

static int need_http(struct mu__requester_uv *requester, mu_error *ret_error)
{
    const struct mu__http_client_config config = {
        .loop = requester->loop,
        .done_kind = DONE_KIND,
        .post = on_post,
        .owner = requester,
    };
    int rv;

    if (requester->http != NULL)
        return 0;
    rv = mu__http_client_open(&config, ret_error, &requester->http);
    if (rv == 0)
        requester->holds++;
    return rv;
}

static void flight_fill(struct mu__flight *flight, const struct mu__request *request)
{
    const struct mu__request_tls *tls = request->tls;

    flight->request = (struct mu__http_request){
        .url = request->name,
        .method = request->method == NULL ? "GET" : request->method,
        .headers = request->headers,
        .body = request->body,
        .body_size = request->body_size,
        .timeout_ms = mu__request_timeout_ms(request),
        .answer_max = mu__request_bytes_max(request),
        .header_name = request->header,
        .uses_proxy = request->uses_proxy,
    };
    if (tls == NULL)
        return;
    flight->tls = (struct mu__http_tls){
        .ca = tls->ca,
        .certificate = tls->certificate,
        .key = tls->key,
        .server_name = tls->server_name,
        .insecure = tls->insecure,
    };
    flight->request.tls = &flight->tls;
}

void mu__requester_send_http(struct mu__requester_uv *requester,
                             struct mu__exchange *exchange)
{
    struct mu__flight *flight = calloc(1, sizeof *flight);
    mu_error error;
    int rv = flight == NULL ? mu_error_set(&error, -MU_ENOMEM, "out of memory")
                            : need_http(requester, &error);

    if (rv != 0) {
        free(flight);
        mu__requester_fail(exchange, rv, error.message);
        return;
    }
    flight_fill(flight, &exchange->request);
    flight->exchange = exchange;
    exchange->own = flight;
    mu__list_append(&requester->waiting, &flight->node);
    send_waiting(requester);
}

void mu__requester_cancel_http(struct mu__requester_uv *requester,
                               struct mu__exchange *exchange)
{
    struct mu__http *door = mu__http_client_door(requester->http);
    struct mu__flight *flight = exchange->own;

    exchange->own = NULL;
    flight->exchange = NULL;
    if (flight->posted)
        return; /* freed when its message is taken */
    if (flight->is_sent) {
        door->ops->cancel(door, &flight->request);
        requester->flights--;
    } else {
        mu__list_remove(&requester->waiting, &flight->node);
    }
    flight_free(flight);
    send_waiting(requester);
}

/* ---- Life ---- */

void mu__requester_init_http(struct mu__requester_uv *requester)
{
    requester->done_last = &requester->done;
    requester->idle.data = requester;
    (void)uv_idle_init(requester->loop, &requester->idle);
    requester->holds++;
}

static void on_idle_closed(uv_handle_t *handle)
{
    mu__requester_release(handle->data);
}

static void on_http_closed(void *arg)
{
    mu__requester_release(arg);
}

void mu__requester_close_http(struct mu__requester_uv *requester)
{
    while (requester->done != NULL) {
        struct mu__msg *msg = requester->done;

        requester->done = msg->next;
        flight_free(*(struct mu__flight **)(void *)msg->body);
        msg_free(msg);
    }
    uv_close((uv_handle_t *)&requester->idle, on_idle_closed);
    if (requester->http != NULL)
        mu__http_client_close(requester->http, on_http_closed, requester);
}
