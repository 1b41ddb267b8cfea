/* Requests to the supervisor: those of the program, and status requests of the client
 * actor when a call has timed out. Every request and every answer begins with a token. */
#include "actors/client/actions.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXPLAIN_MS = 2000, MISSING_SHOWN_MAX = 3 };

static bool is_supervisor_request(const struct mu__call *call)
{
    return call->operation == MU__CLIENT_STATUS ||
           call->operation == MU__CLIENT_EXPLAIN || call->operation == MU__CLIENT_REQUEST;
}

/* ---- explanations without the chief ---- */

/* The closure of a future if it waits for inputs; else NULL. */
static struct mu__pending_closure *waits_here(const struct client_actor *c,
                                              const mu_remote_value *future)
{
    struct mu__pending_closure *closure;

    if (future->token == 0)
        return NULL;
    closure = mu__slot_pending(&c->slots.items[future->token - 1]);
    return closure != NULL && closure->list != NULL ? closure : NULL;
}

static const char *state_word(const mu_remote_value *future)
{
    if (mu__future_is(future, MU_REMOTE_ABORTED))
        return "cancelled";
    return future->error != NULL ? "failed" : "finished";
}

/* Describe what the closure of a future waits for in this client, and its function;
 * false: it does not wait here. */
static bool describe_local_wait(const struct client_actor *c,
                                const mu_remote_value *future,
                                struct mu__view *ret_function, char *out, size_t size)
{
    const struct mu__pending_closure *closure = waits_here(c, future);

    if (future->token != 0 && c->slots.items[future->token - 1].state == SLOT_WAITS) {
        mu__client_room_describe(c, future->token - 1, out, size);
        *ret_function = mu__client_room_function(c, future->token - 1);
        return true;
    }
    if (closure == NULL)
        return false;
    (void)snprintf(out, size, "for %" PRIu32 " of its %" PRIu32 " input%s",
                   closure->missing, closure->inputs_count,
                   closure->inputs_count == 1 ? "" : "s");
    *ret_function = ((struct mu__schedule *)mu__body(closure->msg))->function;
    return true;
}

static mu_value *waiting_value(struct mu__view function, const char *words)
{
    mu_value *map = mu_value_map();
    char text[MU__FUNCTION_NAME_MAX + 1];

    mu__view_copy(function, text, sizeof text);
    (void)mu_value_set(map, "function", mu_value_string(text));
    (void)mu_value_set(map, "state", mu_value_string("waiting"));
    (void)mu_value_set(map, "waits_for", mu_value_string(words));
    return map;
}

/* Why a future is not resolved, or how it was; NULL: its closure is at the chief. */
static mu_value *explain_here(const struct client_actor *c, const mu_remote_value *future)
{
    struct mu__view function;
    mu_value *map;
    char words[256];

    if (describe_local_wait(c, future, &function, words, sizeof words))
        return waiting_value(function, words);
    if (mu__future_is(future, MU_REMOTE_NOT_READY))
        return NULL;
    map = mu_value_map();
    if (map == NULL)
        return NULL;
    (void)mu_value_set(map, "state", mu_value_string(state_word(future)));
    if (future->error != NULL)
        (void)mu_value_set(map, "error", mu_value_string(future->error->message));
    return map;
}

/* ---- sending requests ---- */

/* Takes msg. False: it was NULL or could not be sent. */
static bool send_request(struct mu__ctx *ctx, struct client_actor *c,
                         struct mu__client_call *call, struct mu__msg *msg)
{
    uint64_t *token;

    if (msg == NULL)
        return false;
    token = mu__body(msg);
    *token = ++c->calls.token_next;
    call->token = *token;
    return mu__send(ctx, c->chief.pid, msg) == 0;
}

/* `slot`: the token of a closure to explain; 0: the whole status. */
static struct mu__msg *status_get(struct mu__ctx *ctx, uint64_t slot)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__STATUS_GET);

    if (msg != NULL)
        ((struct mu__status_get *)mu__body(msg))->slot = slot;
    return msg;
}

static struct mu__msg *take_request_message(struct mu__ctx *ctx,
                                            struct mu__client_call *call)
{
    struct mu__msg *msg = call->request;

    call->request = NULL;
    if (call->call.operation == MU__CLIENT_REQUEST)
        return msg;
    return status_get(
        ctx, call->call.operation == MU__CLIENT_EXPLAIN ? call->future->token : 0);
}

static void complete_unavailable(struct mu__ctx *ctx, struct client_actor *c,
                                 struct mu__call *call)
{
    mu__client_complete(ctx, c, call,
                        mu_error_set(&call->error, -MU_EUNAVAILABLE,
                                     "%s is not connected%s%s", c->config.chief,
                                     c->chief.reported_error[0] == '\0' ? "" : ": ",
                                     c->chief.reported_error));
}

static void submit_request(struct mu__ctx *ctx, struct client_actor *c,
                           struct mu__client_call *call)
{
    struct mu__msg *msg = take_request_message(ctx, call);

    if (msg != NULL &&
        mu__send_is_forbidden(ctx, c->chief.pid.node, msg->kind, &call->call.error)) {
        mu__msg_free(ctx, msg);
        mu__client_complete(ctx, c, &call->call, -MU_EPERMISSION);
        return;
    }
    if (!send_request(ctx, c, call, msg)) {
        complete_unavailable(ctx, c, &call->call);
        return;
    }
    call->call.next = c->calls.requested;
    c->calls.requested = &call->call;
}

void mu__client_request(struct mu__ctx *ctx, struct client_actor *c,
                        struct mu__client_call *call)
{
    call->call.timer = 0;
    if (call->call.operation == MU__CLIENT_EXPLAIN) {
        call->status = explain_here(c, call->future);
        if (call->status != NULL) {
            mu__call_complete(&call->call, 0);
            return;
        }
    }
    if (!c->chief.connected && call->at_once)
        complete_unavailable(ctx, c, &call->call);
    else if (!c->chief.connected)
        mu__client_call_wait(ctx, c, &c->calls.waiting, &call->call,
                             call->call.timeout_ms);
    else if (mu__client_start_timeout(ctx, c, &call->call, call->call.timeout_ms))
        submit_request(ctx, c, call);
}

void mu__client_send_waiting(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__call *call = c->calls.waiting;

    while (call != NULL) {
        struct mu__call *next = call->next;

        if (is_supervisor_request(call) && mu__client_unlist(&c->calls.waiting, call))
            submit_request(ctx, c, (struct mu__client_call *)call);
        call = next;
    }
}

/* ---- calls that have timed out ---- */

static const char *get_map_string(const mu_value *map, const char *key,
                                  const char *otherwise)
{
    const char *text = otherwise;
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

static int64_t get_map_number(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

/* Workers that were connected and are lost. */
static void describe_missing_workers(const mu_value *missing, char *out, size_t size)
{
    size_t used;

    (void)snprintf(out, size, "none is in flight: no worker is up, or none has room");
    for (size_t i = 0; i < mu_value_count(missing) && i < MISSING_SHOWN_MAX; i++) {
        const mu_value *worker = mu_value_at(missing, i);

        used = strlen(out);
        (void)snprintf(out + used, size - used, "%s%s is missing for %" PRId64 " ms",
                       i == 0 ? "; " : ", ", get_map_string(worker, "task", "?"),
                       get_map_number(worker, "for_ms"));
    }
}

static bool is_closure_running(const mu_value *closure)
{
    return strcmp(get_map_string(closure, "state", "running"), "running") == 0;
}

/* The first closure that has begun to run; else the first that was sent; NULL: none is in
 * flight. */
static const mu_value *first_in_flight(const mu_value *status)
{
    const mu_value *list = mu_value_find(status, "in_flight");

    for (size_t i = 0; i < mu_value_count(list); i++)
        if (is_closure_running(mu_value_at(list, i)))
            return mu_value_at(list, i);
    return mu_value_at(list, 0);
}

void mu__client_describe_status(const mu_value *status, char *out, size_t size)
{
    static const char running[] = "closure %" PRId64 " \"%s\" runs on %s for "
                                  "%" PRId64 " ms";
    static const char sent[] =
        "closure %" PRId64 " \"%s\" was sent to %s %" PRId64 " ms ago";
    const mu_value *closures = mu_value_find(status, "closures");
    const mu_value *first = first_in_flight(status);
    size_t used;

    if (first == NULL)
        describe_missing_workers(mu_value_find(status, "workers_missing"), out, size);
    else
        (void)snprintf(out, size, is_closure_running(first) ? running : sent,
                       get_map_number(first, "closure"),
                       get_map_string(first, "function", "?"),
                       get_map_string(first, "task", "?"),
                       get_map_number(first, "for_ms"));
    used = strlen(out);
    (void)snprintf(out + used, size - used,
                   "; the chief has %" PRId64 " running, "
                   "%" PRId64 " sent, %" PRId64 " queued",
                   get_map_number(closures, "running"), get_map_number(closures, "sent"),
                   get_map_number(closures, "queued"));
    used = strlen(out);
    if (get_map_number(closures, "blocked_workers") > 0)
        (void)snprintf(out + used, size - used, "; " MU__BLOCKED_WORKERS,
                       get_map_number(closures, "blocked_workers"));
}

/* Describe a closure from the chief's answer: its state, where it runs or what it waits
 * for. */
static void describe_closure(const mu_value *closure, char *out, size_t size)
{
    const char *state = get_map_string(closure, "state", "?");
    const char *task = get_map_string(closure, "task", "");
    const char *waits_for = get_map_string(closure, "waits_for", "");
    char where[96] = "";

    if (task[0] != '\0')
        (void)snprintf(where, sizeof where, " on %.63s for %" PRId64 " ms", task,
                       get_map_number(closure, "for_ms"));
    (void)snprintf(out, size,
                   "closure %" PRId64 " \"%s\" is %s%s (attempt %" PRId64 ")%s%s",
                   get_map_number(closure, "closure"),
                   get_map_string(closure, "function", "?"), state, where,
                   get_map_number(closure, "attempt"), waits_for[0] == '\0' ? "" : "; ",
                   waits_for);
}

static void set_timeout_error(const struct client_actor *c, struct mu__call *call,
                              const char *words)
{
    if (call->operation == MU__CLIENT_FETCH)
        (void)mu_error_set(&call->error, -MU_EDEADLINE,
                           "the closure has no result after %" PRId64 " ms; %s",
                           call->timeout_ms, words);
    else if (mu__client_phase(c) != MU__SESSION_FINE)
        (void)mu_error_set(&call->error, -MU_EDEADLINE,
                           "%" PRIu64 " closure%s outstanding after %" PRId64 " ms; an "
                           "error is raised when none is: %.300s",
                           mu__client_outstanding(c),
                           mu__client_outstanding(c) == 1 ? " is" : "s are",
                           call->timeout_ms, c->session.error.message);
    else
        (void)mu_error_set(&call->error, -MU_EDEADLINE,
                           "%" PRIu64 " closure%s outstanding after %" PRId64 " ms; %s",
                           mu__client_outstanding(c),
                           mu__client_outstanding(c) == 1 ? " is" : "s are",
                           call->timeout_ms, words);
    call->error.kind = MU_ERROR_LIMIT;
}

/* Completes a call that has timed out. `status`: the chief's answer; NULL: there is
 * none. */
static void explain_timeout(struct mu__ctx *ctx, struct client_actor *c,
                            struct mu__call *call, const mu_value *status)
{
    char words[448];

    (void)snprintf(words, sizeof words, "%.200s did not say more", c->config.chief);
    if (call->operation != MU__CLIENT_FETCH && status != NULL)
        mu__client_describe_status(status, words, sizeof words);
    else if (mu_value_find(status, "state") != NULL)
        describe_closure(status, words, sizeof words);
    set_timeout_error(c, call, words);
    mu__client_complete(ctx, c, call, -MU_EDEADLINE);
}

/* Completes a FETCH that has timed out, without the chief. False: only the chief knows
 * the state of the closure. */
static bool explain_fetch_here(struct mu__ctx *ctx, struct client_actor *c,
                               struct mu__client_call *call)
{
    const mu_remote_value *future = call->waiters[call->error_at].future;
    struct mu__view function;
    char wait[256];
    char words[272];

    if (future->request != 0)
        (void)snprintf(words, sizeof words, "the actor has not answered");
    else if (describe_local_wait(c, future, &function, wait, sizeof wait))
        (void)snprintf(words, sizeof words, "it waits %s", wait);
    else if (future->token == 0)
        (void)snprintf(words, sizeof words, "a worker keeps it and did not send it");
    else
        return false;
    set_timeout_error(c, &call->call, words);
    mu__client_complete(ctx, c, &call->call, -MU_EDEADLINE);
    return true;
}

void mu__client_explain_timeout(struct mu__ctx *ctx, struct client_actor *c,
                                struct mu__client_call *call)
{
    uint64_t slot = 0;

    if (call->call.operation == MU__CLIENT_FETCH) {
        if (explain_fetch_here(ctx, c, call))
            return;
        slot = call->waiters[call->error_at].future->token;
    }
    if (!c->chief.connected || !send_request(ctx, c, call, status_get(ctx, slot))) {
        explain_timeout(ctx, c, &call->call, NULL);
        return;
    }
    mu__client_call_wait(ctx, c, &c->calls.requested, &call->call, EXPLAIN_MS);
}

/* Request the status, to find out whether the chief does not answer at all or the first
 * request takes so long. False: that is not done for this call. */
static bool request_alive(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__client_call *call)
{
    if (call->late == NULL || call->explains_timeout || call->call.timeout_ms == 0 ||
        !c->chief.connected || !send_request(ctx, c, call, status_get(ctx, 0)))
        return false;
    call->explains_timeout = true;
    mu__client_call_wait(ctx, c, &c->calls.requested, &call->call, EXPLAIN_MS);
    return true;
}

static void describe_no_answer(const struct client_actor *c, struct mu__client_call *call,
                               bool is_late)
{
    if (is_late)
        (void)mu_error_set(&call->call.error, -MU_EDEADLINE, "after %" PRId64 " ms %s",
                           call->call.timeout_ms, call->late);
    else
        (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                           "%s did not answer within %" PRId64 " ms", c->config.chief,
                           call->call.timeout_ms);
}

void mu__client_no_answer(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__call *call)
{
    if (!is_supervisor_request(call)) {
        explain_timeout(ctx, c, call, NULL);
        return;
    }
    if (request_alive(ctx, c, (struct mu__client_call *)call))
        return;
    describe_no_answer(c, (struct mu__client_call *)call,
                       call->timeout_ms == 0 &&
                           ((struct mu__client_call *)call)->late != NULL);
    call->error.kind = MU_ERROR_LIMIT;
    mu__client_complete(ctx, c, call, -MU_EDEADLINE);
}

/* The chief is lost before it has explained the timeout of a call. */
static void explain_lost_chief(struct mu__ctx *ctx, struct client_actor *c,
                               struct mu__call *call, const mu_error *error)
{
    if (call->operation == MU__CLIENT_JOIN && mu__client_try(ctx, c, call))
        return;
    (void)mu_error_set(&call->error, -MU_EDEADLINE, "after %" PRId64 " ms %s",
                       call->timeout_ms, error->message);
    call->error.kind = MU_ERROR_LIMIT;
    mu__client_complete(ctx, c, call, -MU_EDEADLINE);
}

void mu__client_fail_requests(struct mu__ctx *ctx, struct client_actor *c,
                              const mu_error *error)
{
    while (c->calls.requested != NULL) {
        struct mu__call *call = c->calls.requested;

        c->calls.requested = call->next;
        if (!is_supervisor_request(call)) {
            explain_lost_chief(ctx, c, call, error);
            continue;
        }
        call->error = *error;
        mu__client_complete(ctx, c, call, error->code);
    }
}

/* ---- answers ---- */

/* The call that an answer is for, taken out of the list; NULL: there is none. */
static struct mu__client_call *requester_of(struct client_actor *c,
                                            const struct mu__msg *msg, uint64_t token)
{
    struct mu__call *call = c->calls.requested;

    if (!mu__client_is_from_chief(c, msg))
        return NULL;
    while (call != NULL && ((struct mu__client_call *)call)->token != token)
        call = call->next;
    if (call != NULL)
        (void)mu__client_unlist(&c->calls.requested, call);
    return (struct mu__client_call *)call;
}

void mu__client_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__status *body = mu__body(msg);
    struct mu__client_call *call = requester_of(c, msg, body->token);
    mu_value *status = NULL;
    char why[128] = "out of memory";

    if (call == NULL)
        return;
    (void)mu__value_unpack(&body->status, why, sizeof why, &status);
    if (!is_supervisor_request(&call->call)) {
        explain_timeout(ctx, c, &call->call, status);
        mu_value_free(status);
        return;
    }
    if (call->explains_timeout) {
        mu_value_free(status);
        describe_no_answer(c, call, true);
        call->call.error.kind = MU_ERROR_LIMIT;
        mu__client_complete(ctx, c, &call->call, -MU_EDEADLINE);
        return;
    }
    if (body->code != 0) {
        mu_value_free(status);
        mu__client_complete(ctx, c, &call->call,
                            mu_error_set(&call->call.error, -(int)body->code, "%.*s",
                                         (int)body->message.size,
                                         (const char *)body->message.data));
        return;
    }
    call->status = status;
    mu__client_complete(ctx, c, &call->call,
                        status != NULL
                            ? 0
                            : mu_error_set(&call->call.error, -MU_EDATALOSS,
                                           "the chief's status cannot be read: %s", why));
}

static void complete_answered_call(struct mu__ctx *ctx, struct client_actor *c,
                                   struct mu__client_call *call, uint32_t code,
                                   struct mu__view words)
{
    char text[MU__ERROR_TEXT_MAX + 1];

    mu__view_copy(words, text, sizeof text);
    mu__client_complete(
        ctx, c, &call->call,
        code == 0 ? 0 : mu_error_set(&call->call.error, -(int)code, "%s", text));
}

/* If the call has timed out, the value has no holder: release it. */
void mu__client_on_made(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__per_worker_made *body = mu__body(msg);
    struct mu__client_call *call = requester_of(c, msg, body->token);

    if (call != NULL) {
        call->input = body->input;
        call->chief_epoch = c->chief.epoch;
        complete_answered_call(ctx, c, call, body->code, body->message);
    } else if (mu__client_is_from_chief(c, msg) && body->input != 0) {
        mu__client_release(ctx, c, body->input);
    }
}

void mu__client_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__drained *body = mu__body(msg);
    struct mu__client_call *call = requester_of(c, msg, body->token);

    if (call != NULL)
        complete_answered_call(ctx, c, call, body->code, body->message);
}
