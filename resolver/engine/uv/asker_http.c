/* Questions over HTTP: a flight each. */
#include "resolver/engine/uv/asker_inner.h"

#include "resolver/engine/question.h"
#include "resolver/engine/uv/cloud_library.h"
#include "runtime/message/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLIGHTS_MAX = 32,   /* requests under way; more wait for these */
    DONE_KIND = 1       /* of the messages between the door and us: any number does */
};

struct mu__flight {
    struct mu__http_request request;
    struct mu__http_tls tls;
    struct mu__note *note;      /* NULL: nobody wants the answer */
    struct mu__flight *next;        /* of those that wait */
    bool posted;                /* its message is in our queue */
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

/* What the door says begins with the url, which the question's words begin with, too. */
static void give_failure(struct mu__note *note, const struct mu__http_request *request)
{
    const char *words = strstr(request->error.message, ": ");

    mu__asker_give_error(note, request->code,
                         words == NULL ? request->error.message : words + 2);
}

static void give_answer(struct mu__note *note, const struct mu__http_request *request)
{
    size_t size = request->answer == NULL ? 0 : request->answer->size;
    char *data = malloc(size + 1);

    if (data != NULL) {
        if (size > 0)
            memcpy(data, request->answer->data, size);
        data[size] = '\0';
    }
    note->answer.status = request->status;
    note->answer.retry_after_ms = request->retry_after_ms;
    (void)snprintf(note->answer.content_type, sizeof note->answer.content_type, "%s",
                   request->content_type);
    (void)snprintf(note->answer.header, sizeof note->answer.header, "%s",
                   request->header);
    mu__asker_give_data(note, data, size);
}

static void keep(struct mu__asker_uv *asker, const struct mu__note *note,
                 const struct mu__http_request *request)
{
    const struct mu__buf *answer = request->answer;

    if (request->code == 0 && request->status == 200)
        mu__asker_keep(asker, note, answer == NULL ? "" : (const char *)answer->data,
                       answer == NULL ? 0 : answer->size);
}

static void flight_end(struct mu__asker_uv *asker, struct mu__flight *flight)
{
    struct mu__note *note = flight->note;

    if (note != NULL) {
        note->own = NULL;
        keep(asker, note, &flight->request);
        if (flight->request.code != 0)
            give_failure(note, &flight->request);
        else
            give_answer(note, &flight->request);
    }
    flight_free(flight);
}

static void send_waiting(struct mu__asker_uv *asker)
{
    struct mu__http *door = mu__http_client_door(asker->http);

    while (asker->waiting != NULL && asker->flights < FLIGHTS_MAX) {
        struct mu__flight *flight = asker->waiting;

        asker->waiting = flight->next;
        if (asker->waiting == NULL)
            asker->waiting_last = &asker->waiting;
        asker->flights++;
        door->ops->send(door, &flight->request);
    }
}

/* The door has posted: in a round of the loop of its own, since an answer may lead to the
 * next question. */
static void on_idle(uv_idle_t *idle)
{
    struct mu__asker_uv *asker = idle->data;
    struct mu__msg *msg = asker->done;

    if (msg == NULL) {
        (void)uv_idle_stop(idle);
        return;
    }
    asker->done = msg->next;
    if (asker->done == NULL)
        asker->done_last = &asker->done;
    asker->flights--;
    flight_end(asker, *(struct mu__flight **)(void *)msg->body);
    msg_free(msg);
    if (asker->closed == NULL && asker->http != NULL)
        send_waiting(asker);
}

static int on_post(void *owner, struct mu__msg *msg)
{
    struct mu__asker_uv *asker = owner;

    msg->next = NULL;
    (*(struct mu__flight **)(void *)msg->body)->posted = true;
    *asker->done_last = msg;
    asker->done_last = &msg->next;
    (void)uv_idle_start(&asker->idle, on_idle);
    return 0;
}

static int need_http(struct mu__asker_uv *asker, mu_error *ret_error)
{
    const struct mu__http_client_config config = {
        .loop = asker->loop,
        .done_kind = DONE_KIND,
        .post = on_post,
        .owner = asker,
    };
    int rv;

    if (asker->http != NULL)
        return 0;
    rv = mu__http_client_open(&config, ret_error, &asker->http);
    if (rv == 0)
        asker->holds++;
    return rv;
}

static void flight_fill(struct mu__flight *flight, const struct mu__question *question)
{
    const struct mu__ask_tls *tls = question->tls;

    flight->request = (struct mu__http_request){
        .url = question->name,
        .method = question->method == NULL ? "GET" : question->method,
        .headers = question->headers,
        .body = question->body,
        .body_size = question->body_size,
        .timeout_ms = mu__question_timeout_ms(question),
        .answer_max = mu__question_bytes_max(question),
        .wanted_header = question->header,
        .takes_proxy = question->takes_proxy,
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

void mu__asker_ask_http(struct mu__asker_uv *asker, struct mu__note *note)
{
    struct mu__flight *flight = calloc(1, sizeof *flight);
    mu_error error;
    int rv = flight == NULL ? mu_error_set(&error, -MU_ENOMEM, "out of memory")
                            : need_http(asker, &error);

    if (rv != 0) {
        free(flight);
        mu__asker_give_error(note, rv, error.message);
        return;
    }
    flight_fill(flight, &note->question);
    flight->note = note;
    note->own = flight;
    *asker->waiting_last = flight;
    asker->waiting_last = &flight->next;
    send_waiting(asker);
}

void mu__asker_cancel_http(struct mu__asker_uv *asker, struct mu__note *note)
{
    struct mu__http *door = mu__http_client_door(asker->http);
    struct mu__flight *flight = note->own;
    struct mu__flight **at = &asker->waiting;

    note->own = NULL;
    flight->note = NULL;
    if (flight->posted)
        return; /* freed when its message is taken */
    while (*at != NULL && *at != flight)
        at = &(*at)->next;
    if (*at == NULL) {
        door->ops->cancel(door, &flight->request);
        asker->flights--;
        flight_free(flight);
        send_waiting(asker);
        return;
    }
    *at = flight->next;
    if (flight->next == NULL)
        asker->waiting_last = at;
    flight_free(flight);
}

/* ---- Life ---- */

void mu__asker_init_http(struct mu__asker_uv *asker)
{
    asker->done_last = &asker->done;
    asker->waiting_last = &asker->waiting;
    asker->idle.data = asker;
    (void)uv_idle_init(asker->loop, &asker->idle);
    asker->holds++;
}

static void on_idle_closed(uv_handle_t *handle)
{
    mu__asker_unhold(handle->data);
}

static void on_http_closed(void *arg)
{
    mu__asker_unhold(arg);
}

void mu__asker_close_http(struct mu__asker_uv *asker)
{
    while (asker->done != NULL) {
        struct mu__msg *msg = asker->done;

        asker->done = msg->next;
        flight_free(*(struct mu__flight **)(void *)msg->body);
        msg_free(msg);
    }
    uv_close((uv_handle_t *)&asker->idle, on_idle_closed);
    if (asker->http != NULL)
        mu__http_client_close(asker->http, on_http_closed, asker);
}
