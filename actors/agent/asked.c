/* Tokens, limits, sending.
 *
 * An answer finds what it answers by its token, in a ring of pointers with a place for
 * each of the last tokens. What waits for so long that its place is wanted again moves to
 * a map. */
#include "actors/agent/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_TIMER = 1 };

/* ---- by token ---- */

static struct mu__asked **place_of(const struct agent *a, uint64_t token)
{
    return &a->ring[token & (a->ring_size - 1)];
}

static bool grow_ring(struct agent *a)
{
    uint32_t size = a->ring_size == 0 ? AGENT_RING_FIRST : a->ring_size * 2;
    struct mu__asked **ring;
    struct mu__asked **before = a->ring;
    uint32_t size_before = a->ring_size;

    if (size > AGENT_RING_MAX)
        return false;
    ring = calloc(size, sizeof(struct mu__asked *));
    if (ring == NULL)
        return false;
    a->ring = ring;
    a->ring_size = size;
    for (uint32_t i = 0; i < size_before; i++)
        if (before[i] != NULL)
            *place_of(a, before[i]->token) = before[i];
    free(before);
    return true;
}

static bool index_token(struct agent *a, struct mu__asked *asked)
{
    struct mu__asked **place;

    while (a->ring_size == 0 || *place_of(a, asked->token) != NULL)
        if (!grow_ring(a))
            break;
    if (a->ring_size == 0)
        return false;
    place = place_of(a, asked->token);
    if (*place != NULL && mu__map_set(&a->old, (*place)->token, *place) != 0)
        return false;
    *place = asked;
    return true;
}

struct mu__asked *mu__agent_find(const struct agent *a, uint64_t token)
{
    struct mu__asked *asked;

    if (token == 0 || a->ring_size == 0)
        return NULL;
    asked = *place_of(a, token);
    if (asked != NULL && asked->token == token)
        return asked;
    return a->old.count == 0 ? NULL : mu__map_get(&a->old, token);
}

static void unindex_token(struct agent *a, const struct mu__asked *asked)
{
    struct mu__asked **place = place_of(a, asked->token);

    if (*place == asked)
        *place = NULL;
    else
        (void)mu__map_remove(&a->old, asked->token);
}

/* ---- in order ---- */

static void append(struct agent *a, struct mu__asked *asked)
{
    asked->next = NULL;
    asked->prev = a->last;
    if (a->last == NULL)
        a->first = asked;
    else
        a->last->next = asked;
    a->last = asked;
    if (a->unsent == NULL)
        a->unsent = asked;
}

static void take_out(struct agent *a, struct mu__asked *asked)
{
    if (a->unsent == asked)
        a->unsent = asked->next;
    if (asked->prev == NULL)
        a->first = asked->next;
    else
        asked->prev->next = asked->next;
    if (asked->next == NULL)
        a->last = asked->prev;
    else
        asked->next->prev = asked->prev;
}

static void not_flying(struct agent *a, struct mu__asked *asked)
{
    if (asked->session == 0 || asked->session != a->session)
        return;
    assert(a->flying >= asked->bytes);
    a->flying -= asked->bytes;
}

/* ---- limits ---- */

static void arm(struct mu__ctx *ctx, struct agent_queue *queue)
{
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t due_ms;

    if (queue->first == NULL)
        return;
    due_ms = queue->first->due_ms;
    if (queue->timer != 0 && queue->timer_due_ms <= due_ms)
        return;
    mu__timer_cancel(ctx, queue->timer);
    queue->timer_due_ms = due_ms;
    queue->timer =
        mu__timer_set(ctx, due_ms <= now_ms ? 0 : due_ms - now_ms, LIMIT_TIMER);
}

/* One of the same length; one that is empty; or the last, for all the others. */
static uint8_t choose_queue(const struct agent *a, int64_t timeout_ms)
{
    uint8_t empty = AGENT_QUEUES;

    for (uint8_t i = 0; i < AGENT_QUEUES; i++) {
        if (a->queues[i].first == NULL)
            empty = empty == AGENT_QUEUES ? i : empty;
        else if (a->queues[i].timeout_ms == timeout_ms)
            return i;
    }
    return empty == AGENT_QUEUES ? AGENT_QUEUES - 1 : empty;
}

static void enqueue(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked,
                    int64_t timeout_ms)
{
    uint8_t i = choose_queue(a, timeout_ms);
    struct agent_queue *queue = &a->queues[i];
    struct mu__asked *before = queue->last;

    if (queue->first == NULL)
        queue->timeout_ms = timeout_ms;
    while (before != NULL && before->due_ms > asked->due_ms)
        before = before->sooner;
    asked->queue = (uint8_t)(i + 1);
    asked->sooner = before;
    asked->later = before == NULL ? queue->first : before->later;
    if (asked->later == NULL)
        queue->last = asked;
    else
        asked->later->sooner = asked;
    if (before == NULL)
        queue->first = asked;
    else
        before->later = asked;
    arm(ctx, queue);
}

static void dequeue(struct agent *a, struct mu__asked *asked)
{
    struct agent_queue *queue;

    if (asked->queue == 0)
        return;
    queue = &a->queues[asked->queue - 1];
    asked->queue = 0;
    if (asked->sooner == NULL)
        queue->first = asked->later;
    else
        asked->sooner->later = asked->later;
    if (asked->later == NULL)
        queue->last = asked->sooner;
    else
        asked->later->sooner = asked->sooner;
}

void mu__agent_unlimit(struct agent *a, struct mu__asked *asked)
{
    dequeue(a, asked);
    asked->due_ms = UINT64_MAX;
}

static bool is_asked_now(const struct agent *a, const struct mu__asked *asked)
{
    return a->registered && asked->session == a->session;
}

bool mu__agent_is_asked(const struct agent *a, const struct mu__asked *asked)
{
    return asked->kind->say == NULL || is_asked_now(a, asked);
}

bool mu__agent_may_be_done(const struct mu__asked *asked)
{
    return asked->session != 0 || asked->may_be_done;
}

/* What the answer to has to come from the host, which has it and is connected. */
static void say_silence(struct mu__ctx *ctx, const struct agent *a,
                        const struct mu__asked *asked, char *out, size_t size)
{
    (void)snprintf(out, size, "%s, which hosts the service, %s, and was heard %llu ms "
                   "ago", a->host->task,
                   asked->kind->is_open ? "is connected" : "has not answered",
                   (unsigned long long)(mu__now_ms(ctx) - a->heard_ms));
}

static void say_late(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked)
{
    const struct mu__asked_kind *kind = asked->kind;
    bool has_service = kind->say == NULL ? a->registered : is_asked_now(a, asked);
    char name[AGENT_WORDS_MAX];
    char host[AGENT_WORDS_MAX] = "";
    mu_error error = {0};

    kind->name(asked, name, sizeof name);
    if (!has_service)
        mu__agent_host_words(ctx, a, host, sizeof host);
    else if (kind->say != NULL || kind->is_open)
        say_silence(ctx, a, asked, host, sizeof host);
    (void)mu_error_set(&error, -MU_EDEADLINE, "%s %s within %lld ms%s%s%s", name,
                       kind->late, (long long)asked->timeout_ms,
                       host[0] == '\0' ? "" : ": ", host,
                       kind->changes && mu__agent_may_be_done(asked)
                           ? "; it may have been applied"
                           : "");
    error.kind = MU_ERROR_LIMIT;
    kind->fail(ctx, a, asked, &error);
}

/* What the service knows the limit of, it answers at that time, and tells more. */
static void pass_limit(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked)
{
    int64_t answer_ms = AGENT_ANSWER_MS;

    if (asked->extended || !asked->kind->is_limited || !is_asked_now(a, asked)) {
        say_late(ctx, a, asked);
        return;
    }
    dequeue(a, asked);
    asked->extended = true;
    if (asked->kind->is_shared && a->config.dead_ms > AGENT_ANSWER_MS)
        answer_ms = a->config.dead_ms;
    asked->due_ms = mu__now_ms(ctx) + (uint64_t)answer_ms;
    enqueue(ctx, a, asked, answer_ms);
}

void mu__agent_limits(struct mu__ctx *ctx, struct agent *a)
{
    uint64_t now_ms = mu__now_ms(ctx);

    for (unsigned i = 0; i < AGENT_QUEUES; i++) {
        struct agent_queue *queue = &a->queues[i];

        if (queue->timer != 0 && queue->timer_due_ms <= now_ms)
            queue->timer = 0;
        while (queue->first != NULL && queue->first->due_ms <= now_ms)
            pass_limit(ctx, a, queue->first);
        arm(ctx, queue);
    }
}

uint64_t mu__agent_left_ms(struct mu__ctx *ctx, const struct mu__asked *asked)
{
    uint64_t now_ms = mu__now_ms(ctx);

    if (asked->due_ms == UINT64_MAX)
        return 0;
    return asked->extended || asked->due_ms <= now_ms ? 1 : asked->due_ms - now_ms;
}

/* ---- life of what is asked ---- */

static void fail_no_memory(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ENOMEM,
                       "the agent has no memory for what it is asked");
    asked->kind->fail(ctx, a, asked, &error);
}

bool mu__agent_ask(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked,
                   const struct mu__asked_kind *kind, int64_t timeout_ms, uint32_t bytes)
{
    asked->kind = kind;
    asked->token = a->token_next;
    asked->session = 0;
    asked->may_be_done = false;
    asked->bytes = bytes;
    asked->timeout_ms = timeout_ms;
    asked->since_ms = mu__now_ms(ctx);
    asked->queue = 0;
    asked->extended = false;
    asked->due_ms = UINT64_MAX;
    if (!index_token(a, asked)) {
        asked->token = 0;
        fail_no_memory(ctx, a, asked);
        return false;
    }
    a->token_next++;
    append(a, asked);
    if (timeout_ms >= 0) {
        asked->due_ms = mu__now_ms(ctx) + (uint64_t)timeout_ms;
        enqueue(ctx, a, asked, timeout_ms);
    }
    mu__agent_pump(ctx, a);
    return true;
}

bool mu__agent_ask_on(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked)
{
    not_flying(a, asked);
    unindex_token(a, asked);
    take_out(a, asked);
    asked->session = 0;
    asked->may_be_done = false;
    asked->token = a->token_next;
    if (!index_token(a, asked)) {
        dequeue(a, asked);
        asked->token = 0;
        fail_no_memory(ctx, a, asked);
        return false;
    }
    a->token_next++;
    append(a, asked);
    mu__agent_pump(ctx, a);
    return true;
}

void mu__agent_forget(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked)
{
    bool was_full = a->flying >= AGENT_FLYING_BYTES;

    if (asked->token == 0)
        return;
    not_flying(a, asked);
    unindex_token(a, asked);
    take_out(a, asked);
    dequeue(a, asked);
    asked->token = 0;
    if (was_full)
        mu__agent_pump(ctx, a);
}

void mu__agent_fail_all(struct mu__ctx *ctx, struct agent *a, const mu_error *error,
                        bool all)
{
    uint64_t end = a->token_next;
    struct mu__asked *asked = a->first;

    /* What fails may end its neighbours, too: begin anew behind the last token. */
    while (asked != NULL && asked->token < end) {
        uint64_t token = asked->token;

        if (all || !asked->kind->stays)
            asked->kind->fail(ctx, a, asked, error);
        asked = a->first;
        while (asked != NULL && (asked->token <= token ||
                                 (!all && asked->kind->stays)))
            asked = asked->next;
    }
}

/* ---- sending ---- */

/* False: the service's mailbox is full, or there is no memory: later. */
static bool send(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked)
{
    struct mu__msg *msg = asked->kind->say(ctx, a, asked);

    if (msg == NULL || mu__send(ctx, agent_service(a), msg) != 0)
        return false;
    asked->may_be_done = asked->may_be_done || asked->session != 0;
    asked->session = a->session;
    a->flying += asked->bytes;
    return true;
}

void mu__agent_pump(struct mu__ctx *ctx, struct agent *a)
{
    if (!a->registered || a->error.code != 0)
        return;
    while (a->unsent != NULL && a->flying < AGENT_FLYING_BYTES) {
        struct mu__asked *asked = a->unsent;

        if (asked->kind->say != NULL && asked->session != a->session &&
            !send(ctx, a, asked)) {
            a->again = true;
            return;
        }
        a->unsent = asked->next;
    }
}

void mu__agent_again(struct agent *a, struct mu__asked *asked)
{
    not_flying(a, asked);
    asked->session = 0;
    a->again = true;
}

void mu__agent_pump_all(struct mu__ctx *ctx, struct agent *a)
{
    a->again = false;
    a->unsent = a->first;
    mu__agent_pump(ctx, a);
}

uint64_t mu__agent_done_floor(const struct agent *a)
{
    return a->changes == NULL ? a->token_next : a->changes->asked.token;
}

void mu__agent_asked_done(struct agent *a)
{
    mu__map_done(&a->old);
    mu__map_done(&a->ids);
    free(a->ring);
}
