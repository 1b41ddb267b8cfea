/* Functions of the program's own: each call is a request, which is answered by a thread,
 * where the function may block, or by the program when it finishes its reply. */
#include "resolver/engine/internal.h"
#include "resolver/engine/request_call.h"
#include "resolver/spec/cluster.h"

#include <stdlib.h>
#include <string.h>

/* One call, and its results once it is over. */
struct mu__own_call {
    struct mu__request_call call;   /* first: calls cast */
    struct mu__own_kind *own;       /* held */
    struct mu__own_reply reply;     /* of an asynchronous function */
    bool detects;                   /* it is a call of `detect`, not of `resolve` */
    int64_t left_ms;
    uint32_t timeout_ms;
    int rv;
    mu_error error;
    mu_resolution resolution;       /* owns its cluster */
};

static void call_free(struct mu__request_call *base)
{
    struct mu__own_call *call = (struct mu__own_call *)base;

    mu_cluster_free(call->resolution.cluster);
    call->own->unref(call->own);
    free(call);
}

static void unref(struct mu__own_call *call)
{
    if (call != NULL)
        mu__request_call_unref(&call->call);
}

/* ---- Results, on any thread ---- */

static void text_end(char *text, size_t size)
{
    text[size - 1] = '\0';
}

static int highest_code(const struct mu__own_call *call)
{
    return call->detects ? 1 : 0;
}

/* Make a code with words of whatever a function has returned. */
static int own_code(const struct mu__own_kind *own, int rv, int highest, mu_error *error)
{
    text_end(error->message, sizeof error->message);
    if (rv > highest)
        return mu_error_set(error, -MU_EINTERNAL,
                            "resolver %s: expected 0 or an error, got %d", own->name,
                            rv);
    if (rv == MU__LATER)
        rv = -MU_EUNAVAILABLE;
    if (rv < 0 && error->message[0] == '\0')
        return mu_error_set(error, rv, "resolver %s: %s", own->name, mu_strerror(rv));
    error->code = rv;
    return rv;
}

static int check(const struct mu__own_kind *own, mu_resolution *resolution,
                 mu_error *ret_error)
{
    mu_error inner;

    text_end(resolution->task_type, sizeof resolution->task_type);
    text_end(resolution->rpc_layer, sizeof resolution->rpc_layer);
    text_end(resolution->environment, sizeof resolution->environment);
    text_end(resolution->master, sizeof resolution->master);
    text_end(resolution->bind_address, sizeof resolution->bind_address);
    text_end(resolution->visible_devices, sizeof resolution->visible_devices);
    text_end(resolution->accelerator, sizeof resolution->accelerator);
    text_end(resolution->cluster_name, sizeof resolution->cluster_name);
    if (resolution->task_type[0] == '\0' ||
        mu__task_type_check(resolution->task_type, &inner) == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "resolver %s: %s", own->name,
                        inner.message);
}

/* Check and keep the outcome of a function that has returned `rv`. */
static void judge(struct mu__own_call *call, int rv)
{
    call->rv = own_code(call->own, rv, highest_code(call), &call->error);
    if (call->rv == 0 && !call->detects)
        call->rv = check(call->own, &call->resolution, &call->error);
}

/* ---- Blocking functions, on a thread ---- */

static void run_call(struct mu__request_call *base)
{
    struct mu__own_call *call = (struct mu__own_call *)base;
    const mu_resolver_kind *kind = &call->own->kind;

    judge(call, call->detects ? kind->detect(kind->user, &call->error)
                              : kind->resolve(kind->user, call->left_ms, &call->error,
                                              &call->resolution));
}

/* ---- Asynchronous functions ---- */

static struct mu__own_call *call_of(const struct mu__own_reply *reply)
{
    return MU__LIST_ENTRY((struct mu__own_reply *)(uintptr_t)reply, struct mu__own_call,
                          reply);
}

int mu__own_reply_check(const struct mu__own_reply *reply, int code,
                        const mu_resolution *resolution)
{
    const struct mu__own_call *call = call_of(reply);
    bool needs_resolution = !call->detects && code == 0;

    return code <= highest_code(call) && needs_resolution == (resolution != NULL)
               ? 0
               : -MU_EINVALID;
}

/* The reply is not open any more. */
static void conclude(struct mu__own_call *call)
{
    mu__request_call_finish(&call->call);
    mu__request_call_unref(&call->call);
}

void mu__own_reply_finish(struct mu__own_reply *reply, int code, const mu_error *error,
                          mu_resolution *resolution)
{
    struct mu__own_call *call = call_of(reply);

    if (error != NULL)
        call->error = *error;
    if (resolution != NULL) {
        call->resolution = *resolution;
        resolution->cluster = NULL;
    }
    judge(call, code);
    conclude(call);
}

/* The function has refused the call with `rv`. */
static void refuse(struct mu__own_call *call, int rv)
{
    call->rv = own_code(call->own, rv, 0, &call->error);
    conclude(call);
}

/* The open reply holds the call. */
static void start_call(struct mu__request_call *base)
{
    struct mu__own_call *call = (struct mu__own_call *)base;
    const mu_resolver_kind *kind = &call->own->kind;
    mu_resolver_reply *handle;
    int rv;

    mu__request_call_ref(base);
    call->own->reply_open(&call->reply);
    handle = call->reply.handle;
    rv = call->detects ? kind->detect_async(kind->user, handle)
                       : kind->resolve_async(kind->user, call->left_ms, handle);
    if (rv != 0 && call->own->reply_close(&call->reply))
        refuse(call, rv);
}

static void cancel_call(struct mu__request_call *base)
{
    struct mu__own_call *call = (struct mu__own_call *)base;
    const mu_resolver_kind *kind = &call->own->kind;

    if (kind->cancel != NULL)
        kind->cancel(kind->user, call->reply.handle);
}

/* ---- Requests ---- */

static uint32_t limit_of(int64_t left_ms)
{
    if (left_ms == 0)
        return MU_RESOLVER_ATTEMPT_TIMEOUT_MS;
    return left_ms < 0 || left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

static struct mu__own_call *call_new(struct mu__own_kind *own, int64_t left_ms,
                                     bool detects)
{
    static const struct mu__request_call_ops blocking = {.run = run_call,
                                                         .free = call_free};
    static const struct mu__request_call_ops async = {
        .start = start_call, .cancel = cancel_call, .free = call_free};
    bool blocks = detects ? own->kind.detect != NULL : own->kind.resolve != NULL;
    struct mu__own_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    mu__request_call_init(&call->call, blocks ? &blocking : &async);
    mu_resolution_init(&call->resolution);
    call->own = own;
    call->detects = detects;
    call->left_ms = left_ms;
    call->timeout_ms = limit_of(left_ms);
    own->ref(own);
    return call;
}

/* The call is not over in time, or has not begun: all threads were in use. */
static int fails_late(const struct mu__own_call *call, const char *words,
                      mu_error *ret_error)
{
    const char *what = "its function was not called before others return";

    if (mu__request_call_has_begun(&call->call))
        what = mu__request_call_is_async(&call->call) ? "its reply was not finished"
                                                      : "its function has not returned";
    return mu_error_set(ret_error, -MU_EDEADLINE, "resolver %s: %s (%.300s)",
                        call->own->name, what, words);
}

static int fails(const struct mu__own_call *call, const struct mu__answer *answer,
                 mu_error *ret_error)
{
    const char *words = strstr(answer->error.message, ": ");

    words = words == NULL ? answer->error.message : words + 2;
    if (answer->code == -MU_EDEADLINE)
        return fails_late(call, words, ret_error);
    return mu_error_set(ret_error, answer->code, "resolver %s: %.300s", call->own->name,
                        words);
}

static int not_now(const struct mu__own_call *before, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EUNAVAILABLE, "resolver %s: %s",
                        before->own->name,
                        mu__request_call_is_async(&before->call)
                            ? "its reply to the call before, which took too long, was "
                              "not finished yet"
                            : "its function has not returned yet from the call before, "
                              "which took too long");
}

static int need_call(struct mu__entry *entry, struct mu__own_call **slot, int64_t left_ms,
                     bool detects, mu_error *ret_error)
{
    if (entry->stuck != NULL && mu__request_call_is_running(&entry->stuck->call))
        return not_now(entry->stuck, ret_error);
    unref(entry->stuck);
    entry->stuck = NULL;
    *slot = call_new(entry->own, left_ms, detects);
    return *slot != NULL ? 0 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

/* 0: *slot is over. An announcement that runs beside this query may have requested the
 * same call, and have cancelled it. */
static int request(struct mu__entry *entry, struct mu__own_call **slot,
                   struct mu__requests *requests, int64_t left_ms,
                   bool detects, mu_error *ret_error)
{
    const struct mu__answer *answer;
    struct mu__request request = {
        .kind = MU__REQUEST_CALL, .name = entry->own->name, .tries = 1};
    int rv = *slot == NULL ? need_call(entry, slot, left_ms, detects, ret_error) : 0;

    if (rv != 0 || mu__request_call_has_returned(&(*slot)->call))
        return rv;
    request.call = &(*slot)->call;
    request.timeout_ms = (*slot)->timeout_ms;
    answer = mu__requests_get(requests, &request);
    if (answer == NULL)
        return MU__LATER;
    if (answer->code != 0)
        return fails(*slot, answer, ret_error);
    return mu__request_call_has_returned(&(*slot)->call) ? 0 : not_now(*slot, ret_error);
}

int mu__own_detect(struct mu__entry *entry, struct mu__requests *requests,
                   mu_error *ret_why)
{
    int rv;

    if (entry->own->kind.detect == NULL && entry->own->kind.detect_async == NULL) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND, "it is taken only by its name");
        return 0;
    }
    rv = request(entry, &entry->detecting, requests, 0, true, ret_why);
    if (rv != 0)
        return rv;
    *ret_why = entry->detecting->error;
    return entry->detecting->rv;
}

int mu__own_resolve(struct mu__entry *entry, struct mu__requests *requests,
                    int64_t left_ms, mu_error *ret_error, mu_resolution *ret_resolution)
{
    int rv =
        request(entry, &entry->resolve_call, requests, left_ms, false, ret_error);
    const struct mu__own_call *call = entry->resolve_call;

    if (rv != 0)
        return rv;
    if (call->rv != 0) {
        *ret_error = call->error;
        return call->rv;
    }
    *ret_resolution = call->resolution;
    ret_resolution->cluster = NULL;
    if (call->resolution.cluster == NULL)
        return 0;
    ret_resolution->cluster = mu_cluster_copy(call->resolution.cluster);
    return ret_resolution->cluster != NULL
               ? 0
               : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

/* ---- Rounds ---- */

/* At most one of an entry's calls runs: none begins while another one runs. */
static void put_aside(struct mu__entry *entry, struct mu__own_call **slot)
{
    struct mu__own_call *call = *slot;

    *slot = NULL;
    if (call == NULL || !mu__request_call_is_running(&call->call)) {
        unref(call);
        return;
    }
    unref(entry->stuck);
    entry->stuck = call;
}

void mu__own_begin(struct mu__entry *entry)
{
    put_aside(entry, &entry->detecting);
    put_aside(entry, &entry->resolve_call);
}

void mu__own_move(struct mu__entry *from, struct mu__entry *to)
{
    mu__own_begin(from);
    to->stuck = from->stuck;
    from->stuck = NULL;
}

void mu__own_done(struct mu__entry *entry)
{
    mu__own_begin(entry);
    unref(entry->stuck);
    entry->stuck = NULL;
}
