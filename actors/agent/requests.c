/* Pending requests: tokens, timeouts, sending.
 *
 * An answer finds its request by token, in a ring with a slot for each of the last
 * tokens. A request still pending when its slot is needed again moves to a map. */
#include "actors/agent/call_handlers.h"

#include "actors/keep.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- by token ---- */

static struct mu__agent_request **find_ring_slot(const struct agent *a, uint64_t token)
{
    return &a->requests.ring[token & (a->requests.ring_size - 1)];
}

static bool grow_request_ring(struct agent *a)
{
    uint32_t size =
        a->requests.ring_size == 0 ? AGENT_RING_FIRST : a->requests.ring_size * 2;
    struct mu__agent_request **ring;
    struct mu__agent_request **before = a->requests.ring;
    uint32_t size_before = a->requests.ring_size;

    if (size > AGENT_RING_MAX)
        return false;
    ring = calloc(size, sizeof(struct mu__agent_request *));
    if (ring == NULL)
        return false;
    a->requests.ring = ring;
    a->requests.ring_size = size;
    for (uint32_t i = 0; i < size_before; i++)
        if (before[i] != NULL)
            *find_ring_slot(a, before[i]->token) = before[i];
    free(before);
    return true;
}

static bool index_token(struct agent *a, struct mu__agent_request *pending)
{
    struct mu__agent_request **slot;

    while (a->requests.ring_size == 0 || *find_ring_slot(a, pending->token) != NULL)
        if (!grow_request_ring(a))
            break;
    if (a->requests.ring_size == 0)
        return false;
    slot = find_ring_slot(a, pending->token);
    if (*slot != NULL && mu__map_set(&a->requests.overflow, (*slot)->token, *slot) != 0)
        return false;
    *slot = pending;
    return true;
}

struct mu__agent_request *mu__agent_find_request(const struct agent *a, uint64_t token)
{
    struct mu__agent_request *pending;

    if (token == 0 || a->requests.ring_size == 0)
        return NULL;
    pending = *find_ring_slot(a, token);
    if (pending != NULL && pending->token == token)
        return pending;
    return a->requests.overflow.count == 0 ? NULL
                                           : mu__map_get(&a->requests.overflow, token);
}

static void unindex_token(struct agent *a, const struct mu__agent_request *pending)
{
    struct mu__agent_request **slot = find_ring_slot(a, pending->token);

    if (*slot == pending)
        *slot = NULL;
    else
        (void)mu__map_remove(&a->requests.overflow, pending->token);
}

/* ---- in the order of tokens ---- */

static void append_request(struct agent *a, struct mu__agent_request *pending)
{
    mu__list_append(&a->requests.pending, &pending->node);
    if (a->requests.unsent == NULL)
        a->requests.unsent = pending;
}

static void unlist_request(struct agent *a, struct mu__agent_request *pending)
{
    if (a->requests.unsent == pending)
        a->requests.unsent = agent_next_request(pending);
    mu__list_remove(&a->requests.pending, &pending->node);
}

static void not_in_flight(struct agent *a, struct mu__agent_request *pending)
{
    if (pending->session == 0 || pending->session != a->registration.session)
        return;
    assert(a->requests.in_flight_bytes >= pending->bytes);
    a->requests.in_flight_bytes -= pending->bytes;
}

/* ---- timeouts ---- */

static struct mu__agent_request *first_due_request(
    const struct agent_timeout_queue *queue)
{
    return MU__LIST_FIRST(&queue->requests, struct mu__agent_request, timeout_node);
}

static void arm_timeout_queue(struct mu__ctx *ctx, struct agent_timeout_queue *queue)
{
    const struct mu__agent_request *first = first_due_request(queue);
    uint64_t now_ms = mu__now_ms(ctx);

    if (first == NULL || (queue->timer != 0 && queue->timer_due_ms <= first->due_ms))
        return;
    mu__timer_cancel(ctx, queue->timer);
    queue->timer_due_ms = first->due_ms;
    queue->timer =
        mu__timer_set(ctx, first->due_ms <= now_ms ? 0 : first->due_ms - now_ms, 0);
}

/* The queue of that length; else an empty one; else the last, which then has timeouts of
 * several lengths. */
static uint8_t choose_queue(const struct agent *a, int64_t timeout_ms)
{
    uint8_t empty = AGENT_QUEUES;

    for (uint8_t i = 0; i < AGENT_QUEUES; i++) {
        if (mu__list_is_empty(&a->requests.queues[i].requests))
            empty = empty == AGENT_QUEUES ? i : empty;
        else if (a->requests.queues[i].timeout_ms == timeout_ms)
            return i;
    }
    return empty == AGENT_QUEUES ? AGENT_QUEUES - 1 : empty;
}

static uint64_t due_of(const struct mu__list_node *node)
{
    return MU__LIST_ENTRY(node, const struct mu__agent_request, timeout_node)->due_ms;
}

static void queue_timeout(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_request *pending, int64_t timeout_ms)
{
    uint8_t i = choose_queue(a, timeout_ms);
    struct agent_timeout_queue *queue = &a->requests.queues[i];
    struct mu__list_node *at = queue->requests.last;
    struct mu__list_node *later = NULL;

    if (at == NULL)
        queue->timeout_ms = timeout_ms;
    for (; at != NULL && due_of(at) > pending->due_ms; at = at->prev)
        later = at;
    pending->queue = (uint8_t)(i + 1);
    mu__list_insert(&queue->requests, later, &pending->timeout_node);
    arm_timeout_queue(ctx, queue);
}

static void unqueue_timeout(struct agent *a, struct mu__agent_request *pending)
{
    if (pending->queue == 0)
        return;
    mu__list_remove(&a->requests.queues[pending->queue - 1].requests,
                    &pending->timeout_node);
    pending->queue = 0;
}

void mu__agent_clear_timeout(struct agent *a, struct mu__agent_request *pending)
{
    unqueue_timeout(a, pending);
    pending->due_ms = UINT64_MAX;
}

static bool was_sent_now(const struct agent *a, const struct mu__agent_request *pending)
{
    return a->registration.registered && pending->session == a->registration.session;
}

bool mu__agent_is_current(const struct agent *a, const struct mu__agent_request *pending)
{
    return pending->kind->make_message == NULL || was_sent_now(a, pending);
}

struct mu__agent_request *mu__agent_find_answered(
    const struct agent *a, const struct mu__msg *msg, uint64_t token)
{
    struct mu__agent_request *pending = mu__agent_find_request(a, token);

    return pending != NULL && mu__agent_is_from_host(a, msg) &&
                   mu__agent_is_current(a, pending)
               ? pending
               : NULL;
}

bool mu__agent_may_be_done(const struct mu__agent_request *pending)
{
    return pending->session != 0 || pending->may_be_done;
}

/* Words for a request that the host has and has not answered. */
static void describe_silence(struct mu__ctx *ctx, const struct agent *a,
                             const struct mu__agent_request *pending, char *out,
                             size_t size)
{
    (void)snprintf(out, size,
                   "%s, which hosts the service, %s, and was heard %llu ms ago",
                   a->hosts.followed->task,
                   pending->kind->is_open ? "is connected" : "has not answered",
                   (unsigned long long)(mu__now_ms(ctx) - a->hosts.heard_ms));
}

void mu__agent_request_name(struct mu__agent_request *pending, char *out, size_t size)
{
    if (pending->kind->what != NULL)
        (void)snprintf(out, size, "%s", pending->kind->what);
    else
        pending->kind->name(pending, out, size);
}

static void fail_timed_out(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending)
{
    const struct mu__agent_request_kind *kind = pending->kind;
    bool has_service = kind->make_message == NULL ? a->registration.registered
                                                  : was_sent_now(a, pending);
    char name[AGENT_WORDS_MAX];
    char host[AGENT_WORDS_MAX] = "";
    mu_error error = {0};

    mu__agent_request_name(pending, name, sizeof name);
    if (!has_service)
        mu__agent_host_words(ctx, a, host, sizeof host);
    else if (kind->make_message != NULL || kind->is_open)
        describe_silence(ctx, a, pending, host, sizeof host);
    (void)mu_error_set(&error, -MU_EDEADLINE, "%s %s within %lld ms%s%s%s", name,
                       kind->late, (long long)pending->timeout_ms,
                       host[0] == '\0' ? "" : ": ", host,
                       kind->changes && mu__agent_may_be_done(pending)
                           ? "; it may have been applied"
                           : "");
    error.kind = MU_ERROR_LIMIT;
    kind->fail(ctx, a, pending, &error);
}

/* The timeout has passed. If the service knows it, its answer is on its way and says
 * more than the agent can: wait a little longer for that, once. */
static void expire_request(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending)
{
    int64_t answer_ms = AGENT_ANSWER_MS;

    if (pending->extended || !pending->kind->is_limited || !was_sent_now(a, pending)) {
        fail_timed_out(ctx, a, pending);
        return;
    }
    unqueue_timeout(a, pending);
    pending->extended = true;
    if (pending->kind->is_shared && a->config.dead_ms > AGENT_ANSWER_MS)
        answer_ms = a->config.dead_ms;
    pending->due_ms = mu__now_ms(ctx) + (uint64_t)answer_ms;
    queue_timeout(ctx, a, pending, answer_ms);
}

void mu__agent_check_timeouts(struct mu__ctx *ctx, struct agent *a)
{
    uint64_t now_ms = mu__now_ms(ctx);

    for (unsigned i = 0; i < AGENT_QUEUES; i++) {
        struct agent_timeout_queue *queue = &a->requests.queues[i];
        struct mu__agent_request *first;

        if (queue->timer != 0 && queue->timer_due_ms <= now_ms)
            queue->timer = 0;
        while ((first = first_due_request(queue)) != NULL && first->due_ms <= now_ms)
            expire_request(ctx, a, first);
        arm_timeout_queue(ctx, queue);
    }
}

uint64_t mu__agent_left_ms(struct mu__ctx *ctx, const struct mu__agent_request *pending)
{
    uint64_t now_ms = mu__now_ms(ctx);

    if (pending->due_ms == UINT64_MAX)
        return 0;
    return pending->extended || pending->due_ms <= now_ms ? 1 : pending->due_ms - now_ms;
}

/* ---- sending ---- */

struct mu__msg *mu__agent_message(struct mu__ctx *ctx, const struct agent *a,
                                  uint16_t kind, const void *body, size_t size)
{
    struct mu__msg *msg = mu__msg_new(ctx, kind);

    if (msg == NULL)
        return NULL;
    memcpy(msg->body, body, size);
    if (mu__agent_service(a).node != MU__NODE_SELF ||
        mu__msg_keep(mu__kernel_schema(ctx->kernel), msg) == 0)
        return msg;
    mu__msg_free(ctx, msg);
    return NULL;
}

enum sent {
    SENT,
    FAILED,   /* this node has not proven the right to it */
    NOT_TAKEN /* the mailbox is full, or memory is short: it is tried
                 again at a tick */
};

static enum sent send_request_message(struct mu__ctx *ctx, struct agent *a,
                                      struct mu__agent_request *pending)
{
    struct mu__msg *msg = pending->kind->make_message(ctx, a, pending);
    mu_error error = {0};

    if (msg == NULL)
        return NOT_TAKEN;
    if (mu__send_is_forbidden(ctx, mu__agent_service(a).node, msg->kind, &error)) {
        mu__msg_free(ctx, msg);
        pending->kind->fail(ctx, a, pending, &error);
        return FAILED;
    }
    if (mu__send(ctx, mu__agent_service(a), msg) != 0)
        return NOT_TAKEN;
    pending->may_be_done = pending->may_be_done || pending->session != 0;
    pending->session = a->registration.session;
    a->requests.in_flight_bytes += pending->bytes;
    return SENT;
}

/* What is passed over in the error state is sent when the task is registered again. */
static bool is_to_be_sent(const struct agent *a, const struct mu__agent_request *pending)
{
    return pending->kind->make_message != NULL &&
           pending->session != a->registration.session &&
           (a->error.code == 0 || pending->kind->is_own);
}

/* Send what was not sent in this session, up to AGENT_IN_FLIGHT_BYTES. */
static void send_unsent_requests(struct mu__ctx *ctx, struct agent *a)
{
    if (!a->registration.registered)
        return;
    while (a->requests.unsent != NULL &&
           a->requests.in_flight_bytes < AGENT_IN_FLIGHT_BYTES) {
        struct mu__agent_request *pending = a->requests.unsent;
        enum sent sent =
            is_to_be_sent(a, pending) ? send_request_message(ctx, a, pending) : SENT;

        if (sent == NOT_TAKEN) {
            a->requests.resend = true;
            return;
        }
        if (sent == SENT)
            a->requests.unsent = agent_next_request(pending);
    }
}

void mu__agent_resend(struct agent *a, struct mu__agent_request *pending)
{
    not_in_flight(a, pending);
    pending->session = 0;
    a->requests.resend = true;
}

void mu__agent_pump_all(struct mu__ctx *ctx, struct agent *a)
{
    a->requests.resend = false;
    a->requests.unsent = agent_first_request(a);
    send_unsent_requests(ctx, a);
}

/* ---- submitting and removing ---- */

static void fail_no_memory(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ENOMEM, "the agent has no memory for another request");
    pending->kind->fail(ctx, a, pending, &error);
}

bool mu__agent_submit(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending,
                      const struct mu__agent_request_kind *kind, int64_t timeout_ms,
                      uint32_t bytes)
{
    pending->kind = kind;
    pending->token = a->requests.token_next;
    pending->session = 0;
    pending->may_be_done = false;
    pending->bytes = bytes;
    pending->timeout_ms = timeout_ms;
    pending->since_ms = mu__now_ms(ctx);
    pending->queue = 0;
    pending->extended = false;
    pending->due_ms = UINT64_MAX;
    if (!index_token(a, pending)) {
        pending->token = 0;
        fail_no_memory(ctx, a, pending);
        return false;
    }
    a->requests.token_next++;
    append_request(a, pending);
    if (timeout_ms >= 0) {
        pending->due_ms = mu__now_ms(ctx) + (uint64_t)timeout_ms;
        queue_timeout(ctx, a, pending, timeout_ms);
    }
    send_unsent_requests(ctx, a);
    return true;
}

bool mu__agent_resubmit(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending)
{
    not_in_flight(a, pending);
    unindex_token(a, pending);
    unlist_request(a, pending);
    pending->session = 0;
    pending->may_be_done = false;
    pending->token = a->requests.token_next;
    if (!index_token(a, pending)) {
        unqueue_timeout(a, pending);
        pending->token = 0;
        fail_no_memory(ctx, a, pending);
        return false;
    }
    a->requests.token_next++;
    append_request(a, pending);
    send_unsent_requests(ctx, a);
    return true;
}

void mu__agent_remove(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending)
{
    bool was_full = a->requests.in_flight_bytes >= AGENT_IN_FLIGHT_BYTES;

    if (pending->token == 0)
        return;
    not_in_flight(a, pending);
    unindex_token(a, pending);
    unlist_request(a, pending);
    unqueue_timeout(a, pending);
    pending->token = 0;
    if (was_full)
        send_unsent_requests(ctx, a);
}

void mu__agent_fail_all(struct mu__ctx *ctx, struct agent *a, const mu_error *error,
                        bool all)
{
    uint64_t end = a->requests.token_next;
    struct mu__agent_request *pending = agent_first_request(a);

    /* Failing one request may end its neighbours: after each, search the list again from
     * its begin, for the next token. */
    while (pending != NULL && pending->token < end) {
        uint64_t token = pending->token;

        if (all || !pending->kind->survives_error)
            pending->kind->fail(ctx, a, pending, error);
        pending = agent_first_request(a);
        while (pending != NULL &&
               (pending->token <= token || (!all && pending->kind->survives_error)))
            pending = agent_next_request(pending);
    }
}

uint64_t mu__agent_done_floor(const struct agent *a)
{
    const struct mu__key_request *first =
        MU__LIST_FIRST(&a->requests.changes, struct mu__key_request, change_node);

    return first == NULL ? a->requests.token_next : first->pending.token;
}

void mu__agent_requests_done(struct agent *a)
{
    mu__map_done(&a->requests.overflow);
    mu__map_done(&a->requests.ids);
    free(a->requests.ring);
}
