/* Helpers of all blocking jobs of requests; the jobs over HTTP. */
#include "resolver/engine/request.h"
#include "resolver/engine/uv/cloud_library.h"
#include "resolver/engine/uv/internal.h"
#include "runtime/base/text.h"
#include "runtime/kernel/http.h"
#include "runtime/message/pool.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST_BYTES = 4096 };

int mu__work_fail(struct mu__request_work *work, int code, const char *words)
{
    return mu_error_set(&work->answer.error, code, "%s", words);
}

int mu__work_reserve(struct mu__request_work *work, size_t size)
{
    size_t room = work->room == 0 ? ROOM_FIRST_BYTES : work->room;
    char *data;

    if (size + 1 <= work->room)
        return 0;
    while (room < size + 1)
        room *= 2;
    data = realloc(work->answer.data, room);
    if (data == NULL)
        return mu__work_fail(work, -MU_ENOMEM, "out of memory");
    work->answer.data = data;
    work->room = room;
    return 0;
}

/* ---- HTTP ---- */

static int take_http_answer(struct mu__request_work *work,
                            const struct mu__http_request *http)
{
    const struct mu__buf *content = http->answer;
    size_t size = content == NULL ? 0 : content->size;
    int rv = mu__work_reserve(work, size);

    if (rv != 0)
        return rv;
    if (size > 0)
        memcpy(work->answer.data, content->data, size);
    work->answer.data[size] = '\0';
    work->answer.size = size;
    work->answer.status = http->status;
    work->answer.retry_after_ms = http->retry_after_ms;
    MU__COPY_TEXT(work->answer.content_type, http->content_type);
    MU__COPY_TEXT(work->answer.header, http->header);
    return 0;
}

/* The client's message begins with the url, as the exchange's will. */
static int fail_http(struct mu__request_work *work, const struct mu__http_request *http)
{
    const char *words = strstr(http->error.message, ": ");

    return mu__work_fail(work, http->code,
                         words == NULL ? http->error.message : words + 2);
}

int mu__work_http(struct mu__request_work *work)
{
    const struct mu__request *request = &work->request;
    const struct mu__request_tls none = {.ca = NULL};
    const struct mu__request_tls *from = request->tls == NULL ? &none : request->tls;
    const struct mu__http_tls tls = {from->ca, from->certificate, from->key,
                                     from->server_name, from->insecure};
    struct mu__http_request http = {
        .url = request->name,
        .method = request->method == NULL ? "GET" : request->method,
        .headers = request->headers,
        .body = request->body,
        .body_size = request->body_size,
        .timeout_ms = mu__request_timeout_ms(request),
        .answer_max = mu__request_bytes_max(request),
        .tls = request->tls == NULL ? NULL : &tls,
        .header_name = request->header,
        .uses_proxy = request->uses_proxy,
    };
    const struct mu__cloud *cloud;
    int rv = mu__cloud_load(&work->answer.error, &cloud);

    if (rv != 0)
        return rv;
    cloud->http_perform(&http, &work->is_cancelled);
    rv = http.code != 0 ? fail_http(work, &http) : take_http_answer(work, &http);
    mu__buf_unref(http.answer);
    return rv;
}
