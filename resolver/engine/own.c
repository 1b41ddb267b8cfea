/* Functions of the program's own: each call is a request, which is answered by a thread,
 * where the function may block. */
#include "resolver/engine/internal.h"
#include "resolver/engine/request_call.h"
#include "resolver/spec/cluster.h"

#include <stdlib.h>
#include <string.h>

/* One call, and its results once it is over. */
struct mu__own_call {
    struct mu__request_call call; /* first: calls cast */
    struct mu__own_kind *own;     /* held */
    bool detects;                 /* it is a call of `detect`, not of `resolve` */
    int64_t left_ms;
    int rv;
    mu_error error;
    mu_resolution resolution; /* owns its cluster */
};

static void own_call_free(struct mu__request_call *base)
{
    struct mu__own_call *call = (struct mu__own_call *)base;

    mu_cluster_free(call->resolution.cluster);
    call->own->unref(call->own);
    free(call);
}

static void unref_own_call(struct mu__own_call *call)
{
    if (call != NULL)
        mu__request_call_unref(&call->call);
}

/* ---- On a thread ---- */

static void text_end(char *text, size_t size)
{
    text[size - 1] = '\0';
}

/* Make a code with words of whatever a function has returned. */
static int own_code(const struct mu__own_kind *own, int rv, int highest, mu_error *error)
{
    text_end(error->message, sizeof error->message);
    if (rv > highest)
        return mu_error_set(error, -MU_EINTERNAL,
                            "resolver %s: expected 0 or an error, got %d", own->name, rv);
    if (rv == -MU_EAGAIN)
        rv = -MU_EUNAVAILABLE;
    if (rv < 0 && error->message[0] == '\0')
        return mu_error_set(error, rv, "resolver %s: %s", own->name, mu_strerror(rv));
    error->code = rv;
    return rv;
}

static int check_own_resolution(const struct mu__own_kind *own, mu_resolution *resolution,
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

static void run_own_call(struct mu__request_call *base)
{
    struct mu__own_call *call = (struct mu__own_call *)base;
    const mu_resolver_kind *kind = &call->own->kind;
    int rv = call->detects ? kind->detect(kind->user, &call->error)
                           : kind->resolve(kind->user, call->left_ms, &call->error,
                                           &call->resolution);

    call->rv = own_code(call->own, rv, call->detects ? 1 : 0, &call->error);
    if (call->rv == 0 && !call->detects)
        call->rv = check_own_resolution(call->own, &call->resolution, &call->error);
}

/* ---- Requests ---- */

static uint32_t get_own_timeout_ms(int64_t left_ms)
{
    if (left_ms == 0)
        return MU_RESOLVER_ATTEMPT_TIMEOUT_MS;
    return left_ms < 0 || left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

static struct mu__own_call *own_call_new(struct mu__own_kind *own, int64_t left_ms,
                                         bool detects)
{
    struct mu__own_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    mu__request_call_init(&call->call, run_own_call, own_call_free);
    mu_resolution_init(&call->resolution);
    call->own = own;
    call->detects = detects;
    call->left_ms = left_ms;
    own->ref(own);
    return call;
}

/* The call is not over in time, or has not begun: all threads were in use. */
static int fail_own_call(const struct mu__own_call *call, const struct mu__answer *answer,
                         mu_error *ret_error)
{
    const char *words = strstr(answer->error.message, ": ");
    const char *what = mu__request_call_has_begun(&call->call)
                           ? "its function has not returned"
                           : "its function was not called before others return";

    words = words == NULL ? answer->error.message : words + 2;
    if (answer->code == -MU_EDEADLINE)
        return mu_error_set(ret_error, -MU_EDEADLINE, "resolver %s: %s (%.300s)",
                            call->own->name, what, words);
    return mu_error_set(ret_error, answer->code, "resolver %s: %.300s", call->own->name,
                        words);
}

static int check_last(struct mu__entry *entry, mu_error *ret_error)
{
    if (entry->last_call != NULL && mu__request_call_is_running(&entry->last_call->call))
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "resolver %s: its function has not returned yet from the "
                            "call before, which took too long",
                            entry->own->name);
    unref_own_call(entry->last_call);
    entry->last_call = NULL;
    return 0;
}

/* Call it, and wait: 0, and entry->last_call is over. */
static int call_own_function(struct mu__entry *entry, struct mu__requests *requests,
                             bool detects, mu_error *ret_error)
{
    int64_t left_ms = mu__requests_left_ms(requests);
    struct mu__request request = {.kind = MU__REQUEST_CALL,
                                  .name = entry->own->name,
                                  .tries = 1,
                                  .timeout_ms =
                                      get_own_timeout_ms(detects ? 0 : left_ms)};
    const struct mu__answer *answer;
    int rv = check_last(entry, ret_error);

    if (rv != 0)
        return rv;
    entry->last_call = own_call_new(entry->own, detects ? 0 : left_ms, detects);
    if (entry->last_call == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    request.call = &entry->last_call->call;
    answer = mu__requests_get(requests, &request);
    return answer->code == 0 ? 0 : fail_own_call(entry->last_call, answer, ret_error);
}

int mu__own_detect(struct mu__entry *entry, struct mu__requests *requests,
                   mu_error *ret_why)
{
    int rv;

    if (entry->own->kind.detect == NULL) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND, "it is taken only by its name");
        return 0;
    }
    rv = call_own_function(entry, requests, true, ret_why);
    if (rv != 0)
        return rv;
    *ret_why = entry->last_call->error;
    return entry->last_call->rv;
}

int mu__own_resolve(struct mu__entry *entry, struct mu__requests *requests,
                    mu_error *ret_error, mu_resolution *ret_resolution)
{
    int rv = call_own_function(entry, requests, false, ret_error);

    if (rv != 0)
        return rv;
    if (entry->last_call->rv != 0) {
        *ret_error = entry->last_call->error;
        return entry->last_call->rv;
    }
    *ret_resolution = entry->last_call->resolution;
    entry->last_call->resolution.cluster = NULL;
    return 0;
}

/* ---- The last call ---- */

void mu__own_move(struct mu__entry *from, struct mu__entry *to)
{
    unref_own_call(to->last_call);
    to->last_call = from->last_call;
    from->last_call = NULL;
}

void mu__own_done(struct mu__entry *entry)
{
    unref_own_call(entry->last_call);
    entry->last_call = NULL;
}
