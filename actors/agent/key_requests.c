/* Requests about keys, and lists of keys.
 *
 * A request is one block of memory from mu_kv_request_async on: the KEY_SUBMIT message,
 * and in its body the request, key and value. The agent keeps the message; its messages
 * to the service borrow key and value through `bytes`, a buffer in the block. If the
 * KEY_SUBMIT message is freed before the agent reads it, that drops the last reference to
 * the buffer, whose release function then calls `done`. */
#include "actors/agent/call_handlers.h"

#include "actors/keep.h"
#include "runtime/message/codec.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)MU_KV_OVERWRITE == (int)MU__PUT_OVERWRITE &&
                  (int)MU_KV_COMPARE == (int)MU__PUT_COMPARE &&
                  (int)MU_KV_LEASE == (int)MU__PUT_LEASE,
              "the flags of a put travel as they are");

enum { REQUEST_AT = 16 }; /* in the body of its message: aligned as the body is */

enum { PUT_FLAGS = MU__PUT_OVERWRITE | MU__PUT_COMPARE | MU__PUT_LEASE };

static struct mu__key_request *key_request_of(struct mu__agent_request *pending)
{
    return (struct mu__key_request *)(void *)pending;
}

static bool is_own_request(const struct mu__key_request *request)
{
    return (request->flags & MU__KV_OWN) != 0;
}

static struct mu__view get_request_key(const struct mu__key_request *request)
{
    return (struct mu__view){request->bytes.data, request->key_size};
}

static struct mu__view get_request_value(const struct mu__key_request *request)
{
    return (struct mu__view){request->bytes.data + request->key_size,
                             request->value_size};
}

/* ---- bounds of pending requests ---- */

static uint64_t counted_bytes(unsigned flags, uint64_t value_size)
{
    return value_size <= MU__KEY_SMALL_MAX || (flags & MU__KV_OWN) != 0 ? 0 : value_size;
}

static uint64_t load_counter(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* `answered` is read after `begun`. If it is larger, further requests were begun and
 * answered in between, and none of those that `begun` counts is pending. */
static bool exceeds_request_limit(uint64_t begun, uint64_t answered, uint64_t more,
                                  uint64_t most)
{
    return (begun > answered ? begun - answered : 0) + more > most;
}

/* Counts another pending request; false: there are too many. */
static bool reserve_request(struct mu__agent_shared *shared, unsigned flags)
{
    uint64_t begun = load_counter(&shared->begun);

    do
        if ((flags & MU__KV_OWN) == 0 &&
            exceeds_request_limit(begun, load_counter(&shared->answered), 1,
                                  MU__KEY_REQUESTS_MAX))
            return false;
    while (!atomic_compare_exchange_weak_explicit(
        &shared->begun, &begun, begun + 1, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static bool reserve_request_bytes(struct mu__agent_shared *shared, uint64_t bytes)
{
    uint64_t before;

    if (bytes == 0)
        return true;
    before = atomic_fetch_add_explicit(&shared->begun_bytes, bytes, memory_order_relaxed);
    if (!exceeds_request_limit(before, load_counter(&shared->answered_bytes), bytes,
                               MU__KEY_REQUEST_BYTES_MAX))
        return true;
    (void)atomic_fetch_sub_explicit(&shared->begun_bytes, bytes, memory_order_relaxed);
    return false;
}

static void release_reservation(struct mu__agent_shared *shared, uint64_t bytes)
{
    (void)atomic_fetch_sub_explicit(&shared->begun, 1, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&shared->begun_bytes, bytes, memory_order_relaxed);
}

/* Only the loop thread writes these two counters. */
static void count_answered(struct mu__agent_shared *shared, uint64_t bytes)
{
    atomic_store_explicit(&shared->answered, load_counter(&shared->answered) + 1,
                          memory_order_relaxed);
    if (bytes > 0)
        atomic_store_explicit(&shared->answered_bytes,
                              load_counter(&shared->answered_bytes) + bytes,
                              memory_order_relaxed);
}

/* ---- answering and making a request ---- */

static void answer_key_request(struct mu__key_request *request,
                               const mu_kv_response *given)
{
    assert(!request->answered);
    request->answered = true;
    count_answered(request->shared, counted_bytes(request->flags, request->value_size));
    request->done(request->user, given);
}

static void answer_failure(struct mu__key_request *request, const mu_error *error,
                           int64_t number)
{
    const mu_kv_response given = {.code = error->code, .error = error, .number = number};

    answer_key_request(request, &given);
}

static void answer_error(struct mu__key_request *request, const mu_error *error)
{
    answer_failure(request, error, 0);
}

static void answer_closed(struct mu__key_request *request)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECLOSED, "the node is closed");
    answer_error(request, &error);
}

/* Release function of `bytes`. The block is freed with the KEY_SUBMIT message if that
 * still exists. */
static void release_request_bytes(struct mu__buf *bytes)
{
    struct mu__key_request *request =
        (struct mu__key_request *)(void *)((char *)bytes -
                                           offsetof(struct mu__key_request, bytes));

    if (!request->answered)
        answer_closed(request);
    else if (request->frees_later)
        free(request->msg);
}

static void fill_key_request(struct mu__key_request *request,
                             const mu_kv_request *kv_request, uint32_t key_size)
{
    uint32_t value_size = (uint32_t)kv_request->size;

    request->bytes = (struct mu__buf){
        .data = (uint8_t *)(request + 1),
        .size = key_size + value_size,
        .capacity = key_size + value_size,
        .refs = 1,
        .release = release_request_bytes,
    };
    memcpy(request->bytes.data, kv_request->key, key_size);
    if (value_size > 0)
        memcpy(request->bytes.data + key_size, kv_request->value, value_size);
    request->key_size = key_size;
    request->value_size = value_size;
    request->operation = kv_request->operation;
    request->flags = kv_request->flags;
    request->revision = kv_request->revision;
    request->by = kv_request->by;
    request->timeout_ms = kv_request->timeout_ms;
}

static int too_many(mu_error *ret_error)
{
    return mu_error_set(
        ret_error, -MU_EAGAIN,
        "limit reached: %d requests, or %llu bytes of their values, are under way",
        (int)MU__KEY_REQUESTS_MAX, (unsigned long long)MU__KEY_REQUEST_BYTES_MAX);
}

int mu__key_request_new(struct mu__agent_shared *shared, const mu_kv_request *kv_request,
                        mu_kv_done_fn done, void *user, mu_error *ret_error,
                        uint64_t *ret_id, struct mu__msg **ret_msg)
{
    uint32_t key_size = (uint32_t)strlen(kv_request->key);
    uint64_t bytes = counted_bytes(kv_request->flags, kv_request->size);
    struct mu__key_request *request;
    struct mu__msg *msg;

    assert(kv_request->size <= (kv_request->operation == MU__KV_TRANSACT
                                    ? MU__TXN_BYTES_MAX
                                    : MU__KEY_VALUE_MAX));
    assert(key_size <= MU__KEY_MAX);
    if (!reserve_request(shared, kv_request->flags))
        return too_many(ret_error);
    if (!reserve_request_bytes(shared, bytes)) {
        release_reservation(shared, 0);
        return too_many(ret_error);
    }
    msg = mu__msg_heap(MU__KEY_SUBMIT,
                       REQUEST_AT + sizeof *request + key_size + kv_request->size);
    if (msg == NULL) {
        release_reservation(shared, bytes);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a request about a key");
    }
    request = (struct mu__key_request *)(void *)(msg->body + REQUEST_AT);
    ((struct mu__key_submit *)(void *)msg->body)->request = request;
    fill_key_request(request, kv_request, key_size);
    request->msg = msg;
    request->shared = shared;
    request->done = done;
    request->user = user;
    if (ret_id != NULL) {
        request->id = atomic_fetch_add(&shared->ids, 1) + 1;
        *ret_id = request->id;
    }
    msg->backing = &request->bytes;
    *ret_msg = msg;
    return 0;
}

void mu__key_request_drop(struct mu__msg *msg)
{
    struct mu__key_request *request =
        ((struct mu__key_submit *)(void *)msg->body)->request;

    release_reservation(request->shared,
                        counted_bytes(request->flags, request->value_size));
    free(msg);
}

/* ---- in the agent ---- */

static bool is_key_change(const struct mu__key_request *request)
{
    return request->operation != MU_KV_GET && request->operation != MU_KV_TRY_GET;
}

static void list_unanswered_change(struct agent *a, struct mu__key_request *request)
{
    /* The token that submitting it will assign: its own message has the floor of
     * unanswered changes, which includes it. */
    request->pending.token = a->requests.token_next;
    mu__list_append(&a->requests.changes, &request->change_node);
}

/* Free an answered request, now or when no message borrows from it any more. */
static void free_request(struct mu__ctx *ctx, struct mu__key_request *request)
{
    if (request->bytes.refs == 1) {
        mu__msg_free(ctx, request->msg);
        return;
    }
    request->frees_later = true;
    request->msg->backing = NULL;
    mu__buf_unref(&request->bytes);
}

static void take_request_out(struct mu__ctx *ctx, struct agent *a,
                             struct mu__key_request *request)
{
    if (is_key_change(request))
        mu__list_remove(&a->requests.changes, &request->change_node);
    if (request->id != 0)
        (void)mu__map_remove(&a->requests.ids, request->id);
    mu__agent_remove(ctx, a, &request->pending);
}

static void fail_key(struct mu__ctx *ctx, struct agent *a,
                     struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__key_request *request = key_request_of(pending);
    bool was_requested =
        a->registration.registered && pending->session == a->registration.session;
    const struct mu__key_cancel body = {.token = pending->token};

    take_request_out(ctx, a, request);
    if (was_requested && request->operation == MU_KV_GET)
        (void)mu__send_body(ctx, mu__agent_service(a), MU__KEY_CANCEL, &body,
                            sizeof body);
    answer_error(request, error);
    free_request(ctx, request);
}

static void name_key_request(struct mu__agent_request *pending, char *out, size_t size)
{
    const struct mu__key_request *request = key_request_of(pending);
    struct mu__view key = get_request_key(request);

    (void)snprintf(out, size, "%skey \"%.*s\"",
                   request->operation == MU__KV_TRANSACT ? "the transaction of " : "",
                   key.size > 100 ? 100 : (int)key.size, (const char *)key.data);
}

/* ---- messages to the service ---- */

static void write_put(const struct agent *a, const struct mu__key_request *request,
                      void *body)
{
    *(struct mu__key_put *)body = (struct mu__key_put){
        .token = request->pending.token,
        .done = mu__agent_done_floor(a),
        .key = get_request_key(request),
        .value = get_request_value(request),
        .flags = request->flags & PUT_FLAGS,
        .revision = request->revision,
    };
}

static void write_get(const struct agent *a, const struct mu__key_request *request,
                      void *body)
{
    (void)a;
    *(struct mu__key_get *)body = (struct mu__key_get){
        .token = request->pending.token,
        .key = get_request_key(request),
        .wait = request->operation == MU_KV_GET,
    };
}

static void write_increment(const struct agent *a, const struct mu__key_request *request,
                            void *body)
{
    *(struct mu__key_increment *)body = (struct mu__key_increment){
        .token = request->pending.token,
        .done = mu__agent_done_floor(a),
        .key = get_request_key(request),
        .by = request->by,
    };
}

static void write_delete(const struct agent *a, const struct mu__key_request *request,
                         void *body)
{
    *(struct mu__key_delete *)body = (struct mu__key_delete){
        .token = request->pending.token,
        .done = mu__agent_done_floor(a),
        .key = get_request_key(request),
    };
}

/* A packed transaction has no tail: all of it is the head. */
static void write_txn(const struct agent *a, const struct mu__key_request *request,
                      void *body)
{
    struct mu__view content = get_request_value(request);

    *(struct mu__key_txn *)body = (struct mu__key_txn){
        .token = request->pending.token,
        .done = mu__agent_done_floor(a),
        .content = {.head = content.data, .head_size = content.size},
    };
}

static const struct {
    uint16_t kind;
    void (*write)(const struct agent *a, const struct mu__key_request *request,
                  void *body);
} writers[] = {
    [MU_KV_PUT] = {MU__KEY_PUT, write_put},
    [MU_KV_GET] = {MU__KEY_GET, write_get},
    [MU_KV_TRY_GET] = {MU__KEY_GET, write_get},
    [MU_KV_INCREMENT] = {MU__KEY_INCREMENT, write_increment},
    [MU_KV_DELETE] = {MU__KEY_DELETE, write_delete},
    [MU__KV_TRANSACT] = {MU__KEY_TXN, write_txn},
};

static struct mu__msg *make_key_message(struct mu__ctx *ctx, struct agent *a,
                                        struct mu__agent_request *pending)
{
    struct mu__key_request *request = key_request_of(pending);
    struct mu__msg *msg = mu__msg_new(ctx, writers[request->operation].kind);

    if (msg == NULL)
        return NULL;
    writers[request->operation].write(a, request, mu__body(msg));
    msg->backing = mu__buf_ref(&request->bytes);
    a->registration.used |= !is_own_request(request);
    return msg;
}

static const struct mu__agent_request_kind changing = {
    .make_message = make_key_message,
    .name = name_key_request,
    .fail = fail_key,
    .late = "was not changed",
    .changes = true,
};

static const struct mu__agent_request_kind getting = {
    .make_message = make_key_message,
    .name = name_key_request,
    .fail = fail_key,
    .late = "was not put",
    .is_open = true,
};

static const struct mu__agent_request_kind listening = {
    .make_message = make_key_message,
    .name = name_key_request,
    .fail = fail_key,
    .late = "was not put",
};

static const struct mu__agent_request_kind trying = {
    .make_message = make_key_message,
    .name = name_key_request,
    .fail = fail_key,
    .late = "was not answered",
};

/* Requests of the node itself. */
static const struct mu__agent_request_kind own_changing = {
    .make_message = make_key_message,
    .name = name_key_request,
    .fail = fail_key,
    .late = "was not changed",
    .changes = true,
    .survives_error = true,
    .is_own = true,
    .is_open = true,
};

static const struct mu__agent_request_kind own_trying = {
    .make_message = make_key_message,
    .name = name_key_request,
    .fail = fail_key,
    .late = "was not answered",
    .survives_error = true,
    .is_own = true,
    .is_open = true,
};

static const struct mu__agent_request_kind *const kinds[] = {
    [MU_KV_PUT] = &changing,    [MU_KV_GET] = &getting,
    [MU_KV_TRY_GET] = &trying,  [MU_KV_INCREMENT] = &changing,
    [MU_KV_DELETE] = &changing, [MU__KV_TRANSACT] = &changing,
};

static const struct mu__agent_request_kind *get_key_request_kind(
    const struct mu__key_request *request)
{
    if (is_own_request(request))
        return is_key_change(request) ? &own_changing : &own_trying;
    return request->operation == MU_KV_GET && (request->flags & MU__KV_NEWS) != 0
               ? &listening
               : kinds[request->operation];
}

/* ---- handlers ---- */

/* Functions with a mu_error, which is large, are kept apart from the common path. */
static void refuse_key_request(struct mu__ctx *ctx, const struct agent *a,
                               struct mu__key_request *request)
{
    mu_error error = {0};

    if (mu__agent_admits(a, &error))
        (void)mu_error_set(&error, -MU_ENOMEM, "no memory for a request about a key");
    answer_error(request, &error);
    free_request(ctx, request);
}

void mu__agent_on_key_submit(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    struct mu__key_request *request = ((struct mu__key_submit *)mu__body(msg))->request;

    (void)mu__claim(ctx);
    if (!a->registration.is_requested ||
        (a->error.code != 0 && !is_own_request(request)) ||
        (request->id != 0 && mu__map_set(&a->requests.ids, request->id, request) != 0)) {
        refuse_key_request(ctx, a, request);
        return;
    }
    if (is_key_change(request))
        list_unanswered_change(a, request);
    (void)mu__agent_submit(ctx, a, &request->pending, get_key_request_kind(request),
                           request->timeout_ms,
                           (uint32_t)sizeof *request + request->bytes.size);
}

void mu__agent_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    uint64_t id = ((const struct mu__key_cancel *)mu__body(msg))->token;
    struct mu__key_request *request;
    mu_error error = {0};

    if (msg->from.node != MU__NODE_SELF || id == 0)
        return;
    request = mu__map_get(&a->requests.ids, id);
    if (request == NULL)
        return;
    (void)mu_error_set(&error, -MU_ECANCELLED, "cancelled%s",
                       is_key_change(request) && mu__agent_may_be_done(&request->pending)
                           ? "; it may have been applied"
                           : "");
    fail_key(ctx, a, &request->pending, &error);
}

static void fail_answered(struct mu__ctx *ctx, struct agent *a,
                          struct mu__key_request *request,
                          const struct mu__key_done *body)
{
    mu_error error = mu__agent_error_of(body->code, body->message, (struct mu__view){0},
                                        MU_ERROR_OTHER);

    take_request_out(ctx, a, request);
    answer_failure(request, &error,
                   request->operation == MU__KV_TRANSACT ? body->number : 0);
    free_request(ctx, request);
}

void mu__agent_on_key_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__key_done *body = mu__body(msg);
    struct mu__agent_request *pending = mu__agent_find_answered(a, msg, body->token);
    struct mu__key_request *request;

    if (pending == NULL || pending->kind->make_message != make_key_message)
        return;
    request = key_request_of(pending);
    if (body->code == MU_EUNAVAILABLE) {
        mu__agent_resend(a, pending);
        return;
    }
    if (body->code != 0) {
        fail_answered(ctx, a, request, body);
        return;
    }
    take_request_out(ctx, a, request);
    answer_key_request(request, &(mu_kv_response){
                                    .value = body->value.data,
                                    .size = body->value.size,
                                    .revision = body->revision,
                                    .number = body->number,
                                });
    free_request(ctx, request);
}

/* ---- lists ---- */

static void name_list(struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "the list of \"%.100s\"", agent_call_of(pending)->name);
}

static struct mu__msg *make_list(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__key_list body = {
        .token = pending->token,
        .key = mu__view_str(call->name),
        .after = agent_text(call->after),
    };

    a->registration.used = true;
    return mu__agent_message(ctx, a, MU__KEY_LIST, &body, sizeof body);
}

static void end_list(struct mu__ctx *ctx, struct agent *a,
                     struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);

    mu__agent_remove(ctx, a, pending);
    free(call->after);
    call->after = NULL;
    if (error != NULL) {
        mu_value_free(call->content);
        call->content = NULL;
    }
    mu__agent_complete(call, error);
}

static const struct mu__agent_request_kind listing = {
    .make_message = make_list,
    .name = name_list,
    .fail = end_list,
    .late = "was not answered",
};

void mu__agent_call_list(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call)
{
    call->after = NULL;
    call->content = mu_value_list();
    if (call->content != NULL)
        (void)mu__agent_submit(ctx, a, &call->pending, &listing, call->call.timeout_ms,
                               0);
    else
        mu__call_complete(&call->call, mu_error_set(&call->call.error, -MU_ENOMEM,
                                                    "no memory for a list of keys"));
}

/* The key of an item: a string, or bytes if it is not UTF-8. */
static int find_key(const mu_value *item, struct mu__view *ret_key)
{
    const mu_value *value = mu_value_find(item, "key");
    const char *text = NULL;
    const void *data = NULL;
    size_t size = 0;

    if (mu_value_get_string(value, &text, &size) == 0)
        data = text;
    else if (mu_value_get_bytes(value, &data, &size) != 0 || size > MU__KEY_MAX)
        return -MU_EDATALOSS;
    *ret_key = (struct mu__view){data, (uint32_t)size};
    return 0;
}

/* Append a page to the content, and note its last key. */
static int add_page(struct mu__agent_call *call, const mu_value *items)
{
    struct mu__view key;

    for (size_t i = 0; i < mu_value_count(items); i++)
        if (mu_value_append(call->content, mu_value_ref(mu_value_at(items, i))) != 0)
            return -MU_ENOMEM;
    if (mu_value_count(items) == 0)
        return -MU_EDATALOSS;
    if (find_key(mu_value_at(items, mu_value_count(items) - 1), &key) != 0)
        return -MU_EDATALOSS;
    free(call->after);
    call->after = malloc((size_t)key.size + 1);
    if (call->after == NULL)
        return -MU_ENOMEM;
    mu__view_copy(key, call->after, (size_t)key.size + 1);
    return 0;
}

static int read_listed_page(struct mu__agent_call *call,
                            const struct mu__key_listed *body, mu_error *ret_error)
{
    mu_value *items = NULL;
    char why[128] = "";
    int rv = mu__value_unpack(&body->items, why, sizeof why, &items);

    if (rv == 0 && (mu_value_count(items) > 0 || body->more))
        rv = add_page(call, items);
    mu_value_free(items);
    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "no memory for a list of keys");
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "the coordination service's list of keys has "
                            "an item without a key%s%s",
                            why[0] == '\0' ? "" : ": ", why);
    return 0;
}

void mu__agent_on_listed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__key_listed *body = mu__body(msg);
    struct mu__agent_request *pending = mu__agent_find_answered(a, msg, body->token);
    mu_error error = {0};
    int rv;

    if (pending == NULL || pending->kind != &listing)
        return;
    if (body->code == MU_EUNAVAILABLE) {
        mu__agent_resend(a, pending);
        return;
    }
    if (body->code != 0)
        error = mu__agent_error_of(body->code, body->message, (struct mu__view){0}, 0);
    rv = body->code != 0 ? error.code
                         : read_listed_page(agent_call_of(pending), body, &error);
    if (rv == 0 && body->more)
        (void)mu__agent_resubmit(ctx, a, pending);
    else
        end_list(ctx, a, pending, rv == 0 ? NULL : &error);
}
