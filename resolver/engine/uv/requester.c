#include "resolver/engine/uv/internal.h"

#include "resolver/engine/request.h"
#include "resolver/engine/request_call.h"
#include "resolver/engine/uv/cloud_library.h"
#include "resolver/engine/uv/run_program.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS_BYTES = 256 };

/* ---- Answering ---- */

void mu__requester_fail(struct mu__exchange *exchange, int code, const char *words)
{
    char requested[WORDS_BYTES];

    mu__request_describe(&exchange->request, requested, sizeof requested);
    exchange->answer.code =
        mu_error_set(&exchange->answer.error, code, "%s: %s", requested, words);
    mu__exchange_answer(exchange);
}

void mu__requester_answer(struct mu__exchange *exchange, char *data, size_t size)
{
    if (data == NULL) {
        mu__requester_fail(exchange, -MU_ENOMEM, "out of memory");
        return;
    }
    exchange->answer.data = data;
    exchange->answer.size = size;
    mu__exchange_answer(exchange);
}

void mu__requester_cache(struct mu__requester_uv *requester,
                         const struct mu__exchange *exchange, const char *data,
                         size_t size)
{
    if (exchange->request.cache_ms != 0)
        mu__answer_cache_put(&requester->cache, &exchange->request, data, size,
                             uv_now(requester->loop));
}

/* False: the cache has no answer for this request. */
static bool answer_from_cache(struct mu__requester_uv *requester,
                              struct mu__exchange *exchange)
{
    const struct mu__cached_answer *cache = mu__answer_cache_find(
        &requester->cache, &exchange->request, uv_now(requester->loop));
    char *data;

    if (cache == NULL)
        return false;
    data = malloc(cache->size + 1);
    if (data != NULL)
        memcpy(data, cache->data, cache->size + 1);
    exchange->answer.status = exchange->request.kind == MU__REQUEST_HTTP ? 200 : 0;
    mu__requester_answer(exchange, data, cache->size);
    return true;
}

static void give_text(struct mu__exchange *exchange, const char *text)
{
    mu__requester_answer(exchange, strdup(text), strlen(text));
}

/* ---- At once ---- */

static void answer_variable(struct mu__exchange *exchange)
{
    const char *value = getenv(exchange->request.name);

    if (value == NULL || value[0] == '\0')
        mu__requester_fail(exchange, -MU_ENOTFOUND, "not set");
    else
        give_text(exchange, value);
}

static void answer_host_name(struct mu__exchange *exchange)
{
    char name[UV_MAXHOSTNAMESIZE];
    size_t size = sizeof name;
    int rv = uv_os_gethostname(name, &size);

    if (rv == 0)
        give_text(exchange, name);
    else
        mu__requester_fail(exchange, -MU_EUNAVAILABLE, uv_strerror(rv));
}

static void answer_clock(struct mu__exchange *exchange)
{
    char digits[32];

    (void)snprintf(digits, sizeof digits, "%lld", (long long)time(NULL));
    give_text(exchange, digits);
}

static void answer_library(struct mu__exchange *exchange)
{
    const struct mu__cloud *cloud;
    mu_error error;
    int rv = mu__cloud_load(&error, &cloud);

    if (rv == 0) {
        give_text(exchange, "");
        return;
    }
    exchange->answer.code = rv;
    exchange->answer.error = error;
    mu__exchange_answer(exchange);
}

/* ---- On a thread ---- */

static int task_signature(struct mu__request_work *task)
{
    const struct mu__request *request = &task->request;
    unsigned char *signature;
    size_t size;
    int rv = mu__sign_rs256(request->secret == NULL ? "" : request->secret, request->body,
                            request->body_size, &task->error, &signature, &size);

    if (rv != 0)
        return rv;
    rv = mu__work_reserve(task, size);
    if (rv == 0) {
        memcpy(task->data, signature, size);
        task->data[size] = '\0';
        task->size = size;
    }
    free(signature);
    return rv;
}

/* The result is in the call. */
static int task_call(struct mu__request_work *task)
{
    int rv = mu__work_reserve(task, 0);

    if (rv != 0)
        return rv;
    task->data[0] = '\0';
    mu__request_call_run(task->request.call);
    return 0;
}

static int task_program(struct mu__request_work *task)
{
    const struct mu__request *request = &task->request;

    return mu__run_program(request->name, request->body, request->body_size,
                           mu__request_bytes_max(request), &task->is_cancelled,
                           &task->error, &task->data, &task->size);
}

/* ---- The requester ---- */

/* How each kind is answered: at once, by a blocking job, by DNS or over HTTP. */
static const struct {
    void (*at_once)(struct mu__exchange *exchange);
    struct mu__work_kind task;
} kinds[MU__REQUEST_KINDS] = {
    [MU__REQUEST_VARIABLE] = {.at_once = answer_variable},
    [MU__REQUEST_HOST_NAME] = {.at_once = answer_host_name},
    [MU__REQUEST_CLOCK] = {.at_once = answer_clock},
    [MU__REQUEST_LIBRARY] = {.at_once = answer_library},
    [MU__REQUEST_FILE] = {.task = {MU__BLOCKING_FILES, mu__work_file, false, false}},
    [MU__REQUEST_FOLDER] = {.task = {MU__BLOCKING_FILES, mu__work_folder, false, false}},
    [MU__REQUEST_WRITE] = {.task = {MU__BLOCKING_FILES, mu__work_write, false, false}},
    [MU__REQUEST_REMOVE] = {.task = {MU__BLOCKING_FILES, mu__work_remove, false, false}},
    [MU__REQUEST_SIGNATURE] = {.task = {MU__BLOCKING_SIGNATURES, task_signature, false,
                                        false}},
    [MU__REQUEST_ADDRESSES] = {.task = {MU__BLOCKING_NAMES, mu__work_names, true, false}},
    [MU__REQUEST_SERVICES] = {.at_once = NULL},
    [MU__REQUEST_CALL] = {.task = {MU__BLOCKING_CALLS, task_call, false, false}},
    [MU__REQUEST_PROGRAM] = {.task = {MU__BLOCKING_PROGRAMS, task_program, false, true}},
    [MU__REQUEST_HTTP] = {.at_once = NULL},
};

static bool is_of_dns(const struct mu__request *request)
{
    return request->kind == MU__REQUEST_SERVICES ||
           (request->kind == MU__REQUEST_ADDRESSES && request->dns_server != NULL);
}

static void op_send(struct mu__requester *base, struct mu__exchange *exchange)
{
    struct mu__requester_uv *requester = (struct mu__requester_uv *)base;
    enum mu__request_kind kind = exchange->request.kind;

    assert(requester->closed == NULL);
    if (kinds[kind].at_once != NULL)
        kinds[kind].at_once(exchange);
    else if (mu__requester_answer_number(exchange) ||
             answer_from_cache(requester, exchange))
        return;
    else if (is_of_dns(&exchange->request))
        mu__requester_send_dns(requester, exchange);
    else if (kinds[kind].task.run != NULL)
        mu__requester_send_work(requester, exchange, &kinds[kind].task);
    else
        mu__requester_send_http(requester, exchange);
}

static void op_cancel(struct mu__requester *base, struct mu__exchange *exchange)
{
    if (is_of_dns(&exchange->request))
        mu__requester_cancel_dns(exchange);
    else if (kinds[exchange->request.kind].task.run != NULL)
        mu__requester_cancel_work(exchange);
    else
        mu__requester_cancel_http((struct mu__requester_uv *)base, exchange);
}

/* ---- Life ---- */

int mu__requester_uv_open(uv_loop_t *loop, struct mu__requester_uv **ret_requester)
{
    static const struct mu__requester_ops ops = {op_send, op_cancel};
    struct mu__requester_uv *requester = calloc(1, sizeof *requester);

    if (requester == NULL || mu__blocking_open(loop, &requester->blocking_jobs) != 0) {
        free(requester);
        return -MU_ENOMEM;
    }
    requester->requester.ops = &ops;
    requester->loop = loop;
    requester->holds = 1; /* the blocking jobs */
    mu__requester_init_http(requester);
    *ret_requester = requester;
    return 0;
}

struct mu__requester *mu__requester_uv_base(struct mu__requester_uv *requester)
{
    return &requester->requester;
}

void mu__requester_uv_wait_for_calls(struct mu__requester_uv *requester,
                                     uint64_t timeout_ms,
                                     void (*left)(void *owner, const char *line),
                                     void *owner)
{
    requester->calls_ms = timeout_ms;
    requester->left = left;
    requester->left_owner = owner;
}

void mu__requester_release(struct mu__requester_uv *requester)
{
    void (*closed)(void *arg) = requester->closed;
    void *arg = requester->closed_arg;

    if (--requester->holds > 0)
        return;
    mu__answer_cache_done(&requester->cache);
    free(requester);
    closed(arg);
}

void mu__requester_uv_close(struct mu__requester_uv *requester, void (*closed)(void *arg),
                            void *arg)
{
    assert(requester->closed == NULL && mu__list_is_empty(&requester->waiting));
    requester->closed = closed;
    requester->closed_arg = arg;
    mu__requester_close_http(requester);
    mu__requester_close_work(requester);
}
