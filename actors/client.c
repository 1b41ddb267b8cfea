#include "actors/client.h"

#include "actors/messages.h"
#include "actors/packing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it hears. */
static void on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__SCHEDULE, on_schedule},   {MU__RESOLVED, on_resolved},
    {MU__REPORT, on_report},       {MU__STATUS, on_status},
    {MU__CALL, on_call},           {MU__TIMER, on_timer},
    {MU__NODE_UP, on_node_up},     {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
};

/* What it remembers. */
enum { EXPLAIN_MS = 2000, PLACES_FIRST = 1024, TROUBLE_BYTES_MAX = 256, PLACES_END = 1 };

/* A scheduled closure. While it is outstanding: its future, or NULL when nobody wants the
 * result. While it is free: the link to the next free place, which is odd. */
union place {
    mu_remote_value *future;
    uintptr_t next;
};

static uintptr_t link_to(uint32_t place)
{
    return ((uintptr_t)place + 1) * 2 + 1;
}

struct client {
    struct mu__client_config config;
    bool has_chief;
    mu__pid chief;
    uint64_t chief_since_ms;    /* up, or missing, since then */
    char trouble[TROUBLE_BYTES_MAX];
    struct mu__session *session;
    bool ending;                /* the session: by CLOSE */
    union place *places;        /* a token is a place + 1 */
    uint32_t places_count;
    uintptr_t free_first;       /* a link; PLACES_END: none */
    uint64_t resolved;
    mu_error error;             /* the first one, while the phase is not FINE */
    struct mu__call *waiting;   /* OPEN, CLOSE, JOIN, RAISE, ROOM */
    struct mu__call *asking;    /* waiting for a STATUS */
    uint64_t token_next;
};

/* ---- counting ---- */

static uint64_t outstanding(const struct client *c)
{
    if (c->session == NULL)
        return 0;
    return atomic_load_explicit(&c->session->scheduled, memory_order_acquire) -
           c->resolved;
}

static int phase_of(const struct client *c)
{
    return c->session == NULL
               ? MU__SESSION_FINE
               : atomic_load_explicit(&c->session->phase, memory_order_relaxed);
}

static void set_phase(struct client *c, int phase)
{
    atomic_store_explicit(&c->session->phase, phase, memory_order_release);
}

static void add(atomic_uint_fast64_t *counter, uint64_t number)
{
    uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, was + number, memory_order_relaxed);
}

/* ---- calls ---- */

static bool unlist(struct mu__call **list, struct mu__call *call)
{
    while (*list != NULL && *list != call)
        list = &(*list)->next;
    if (*list == NULL)
        return false;
    *list = call->next;
    return true;
}

static void complete(struct mu__ctx *ctx, struct mu__call *call, int code)
{
    mu__timer_cancel(ctx, call->timer);
    mu__call_complete(call, code);
}

/* ---- resolving ---- */

static void resolve_future(struct mu__ctx *ctx, mu_remote_value *future, int state)
{
    struct mu__call *call = future->waiters;

    future->waiters = NULL;
    atomic_store_explicit(&future->state, state, memory_order_release);
    while (call != NULL) {
        struct mu__call *next = call->next;

        complete(ctx, call, 0);
        call = next;
    }
    mu_remote_value_free(future);
}

static void keep_first_error(struct client *c, const mu_error *error)
{
    if (phase_of(c) != MU__SESSION_FINE)
        return;
    c->error = *error;
    set_phase(c, MU__SESSION_FAILED);
}

/* A value that failed or was thrown away. */
static void resolve_error(struct mu__ctx *ctx, mu_remote_value *future, int state,
                          const mu_error *error)
{
    if (future == NULL)
        return;
    if (mu__grow_array((void **)&future->error, 1, sizeof *future->error))
        *future->error = *error;
    resolve_future(ctx, future, state);
}

/* One that no session counts. */
static void abort_future(struct mu__ctx *ctx, mu_remote_value *future, const char *words)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECLOSED, "%s", words);
    resolve_error(ctx, future, MU_REMOTE_ABORTED, &error);
}

static mu_remote_value *take_place(struct client *c, uint64_t token)
{
    uint32_t place = (uint32_t)(token - 1);
    mu_remote_value *future = c->places[place].future;

    c->places[place].next = c->free_first;
    c->free_first = link_to(place);
    return future;
}

static bool is_outstanding(const struct client *c, uint64_t token)
{
    return token > 0 && token <= c->places_count &&
           (c->places[token - 1].next & 1) == 0;
}

/* What those who wait for the session as a whole may be told now. */
static void review_waiting(struct mu__ctx *ctx, struct client *c);

static void count_resolved(struct mu__ctx *ctx, struct client *c)
{
    c->resolved++;
    atomic_store_explicit(&c->session->resolved, c->resolved, memory_order_relaxed);
    if (c->waiting != NULL || phase_of(c) != MU__SESSION_FINE)
        review_waiting(ctx, c);
}

static void resolve_cancelled(struct mu__ctx *ctx, struct client *c,
                              mu_remote_value *future, int code, const char *words)
{
    mu_error error = {0};

    (void)mu_error_set(&error, code, "%s", words);
    if (code != -MU_ECANCELLED)
        keep_first_error(c, &error);
    add(&c->session->cancelled, 1);
    resolve_error(ctx, future, MU_REMOTE_ABORTED, &error);
    count_resolved(ctx, c);
}

static void read_error(const struct mu__resolved *body, mu_error *ret_error)
{
    *ret_error = (mu_error){
        .code = -(int)body->code,
        .attempt = body->attempt,
        .closure = body->closure,
    };
    mu__view_copy(body->task, ret_error->task, sizeof ret_error->task);
    mu__view_copy(body->function, ret_error->function, sizeof ret_error->function);
    mu__view_copy(body->message, ret_error->message, sizeof ret_error->message);
}

static void resolve_ready(struct mu__ctx *ctx, struct client *c, mu_remote_value *future,
                          const struct mu__resolved *body)
{
    char why[128];
    mu_error error;

    if (future != NULL && body->result.head_size > 0 &&
        mu__value_unpack(&body->result, why, sizeof why, &future->result) != 0) {
        read_error(body, &error);
        (void)mu_error_set(&error, -MU_EDATALOSS, "the result cannot be read: %s", why);
        add(&c->session->failed, 1);
        keep_first_error(c, &error);
        resolve_error(ctx, future, MU_REMOTE_READY, &error);
        return;
    }
    add(&c->session->finished, 1);
    if (future != NULL)
        resolve_future(ctx, future, MU_REMOTE_READY);
}

static void on_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__resolved *body = mu__body(msg);
    mu_remote_value *future;
    mu_error error;

    if (!c->has_chief || !mu__pid_equal(msg->from, c->chief) ||
        !is_outstanding(c, body->token))
        return;
    future = take_place(c, body->token);
    if (body->attempt > 1)
        add(&c->session->retried, body->attempt - 1);
    if (body->code == 0) {
        resolve_ready(ctx, c, future, body);
        count_resolved(ctx, c);
        return;
    }
    read_error(body, &error);
    if (body->code == MU_ECANCELLED) {
        add(&c->session->cancelled, 1);
        resolve_error(ctx, future, MU_REMOTE_ABORTED, &error);
    } else {
        add(&c->session->failed, 1);
        keep_first_error(c, &error);
        resolve_error(ctx, future, MU_REMOTE_READY, &error);
    }
    count_resolved(ctx, c);
}

/* ---- scheduling ---- */

static bool make_places(struct client *c)
{
    uint32_t count = c->places_count == 0 ? PLACES_FIRST : c->places_count * 2;

    if (!mu__grow_array((void **)&c->places, count, sizeof *c->places))
        return false;
    for (uint32_t i = count; i-- > c->places_count;) {
        c->places[i].next = c->free_first;
        c->free_first = link_to(i);
    }
    c->places_count = count;
    return true;
}

static void resolve_no_chief(struct mu__ctx *ctx, struct client *c,
                             mu_remote_value *future)
{
    char words[MU__ERROR_TEXT_MAX + 1];

    (void)snprintf(words, sizeof words, "%s is not connected", c->config.chief);
    resolve_cancelled(ctx, c, future, -MU_EUNAVAILABLE, words);
}

/* From the program, which put its future where the token goes. */
static void on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__schedule *body = mu__body(msg);
    mu_remote_value *future;
    uint32_t place;

    if (msg->from.node != MU__NODE_SELF)
        return;
    future = (mu_remote_value *)(uintptr_t)body->token;
    if (c->session == NULL) {
        abort_future(ctx, future, "the coordinator was closed");
        return;
    }
    if (phase_of(c) >= MU__SESSION_CANCELLING) {
        resolve_cancelled(ctx, c, future, -MU_ECANCELLED,
                          "cancelled after another closure's error");
        return;
    }
    if (!c->has_chief) {
        resolve_no_chief(ctx, c, future);
        return;
    }
    if (c->free_first == PLACES_END && !make_places(c)) {
        resolve_cancelled(ctx, c, future, -MU_ENOMEM, "out of memory");
        return;
    }
    place = (uint32_t)(c->free_first / 2 - 1);
    c->free_first = c->places[place].next;
    c->places[place].future = future;
    body->token = (uint64_t)place + 1;
    body->drop_result = future == NULL;
    if (mu__send(ctx, c->chief, mu__claim(ctx)) == 0)
        return;
    future = take_place(c, (uint64_t)place + 1);
    resolve_cancelled(ctx, c, future, -MU_EUNAVAILABLE,
                      "the closure could not be sent to the chief");
}

/* ---- errors ---- */

static void start_cancelling(struct mu__ctx *ctx, struct client *c)
{
    struct mu__msg *msg;

    if (phase_of(c) != MU__SESSION_FAILED)
        return;
    if (outstanding(c) == 0) {
        set_phase(c, MU__SESSION_RAISABLE);
        return;
    }
    set_phase(c, MU__SESSION_CANCELLING);
    msg = mu__msg_new(ctx, MU__CANCEL_ALL);
    (void)mu__send(ctx, c->chief, msg);
}

/* Hands the error to one caller; the session is fine again. */
static void raise_error(struct mu__ctx *ctx, struct client *c, struct mu__call *call)
{
    call->error = c->error;
    set_phase(c, MU__SESSION_FINE);
    complete(ctx, call, c->error.code);
}

/* Room is made in steps, so that a full queue does not wake its caller each time. */
static bool has_room(const struct client *c)
{
    uint32_t max = c->config.queue_max;

    return outstanding(c) <= max - max / 8 - (max < 8 ? 1 : 0);
}

/* Completes the call if it can be; false when it must wait. */
static bool try_complete(struct mu__ctx *ctx, struct client *c, struct mu__call *call)
{
    int phase = phase_of(c);

    switch (call->operation) {
    case MU__CLIENT_OPEN:
        if (!c->has_chief)
            return false;
        complete(ctx, call, 0);
        return true;
    case MU__CLIENT_CLOSE:
        if (outstanding(c) > 0)
            return false;
        c->session = NULL;
        complete(ctx, call, 0);
        return true;
    case MU__CLIENT_STATUS:
        return false;
    case MU__CLIENT_ROOM:
        if (!has_room(c) && phase == MU__SESSION_FINE)
            return false;
        complete(ctx, call, 0);
        return true;
    case MU__CLIENT_JOIN:
        if (phase == MU__SESSION_FINE && outstanding(c) > 0)
            return false;
        break;
    default:
        break;
    }
    start_cancelling(ctx, c);
    phase = phase_of(c);
    if (phase == MU__SESSION_FINE)
        complete(ctx, call, 0);
    else if (phase == MU__SESSION_RAISABLE)
        raise_error(ctx, c, call);
    else
        return false;
    return true;
}

static void review_waiting(struct mu__ctx *ctx, struct client *c)
{
    struct mu__call *call = c->waiting;

    if (phase_of(c) == MU__SESSION_CANCELLING && outstanding(c) == 0)
        set_phase(c, MU__SESSION_RAISABLE);
    c->waiting = NULL;
    while (call != NULL) {
        struct mu__call *next = call->next;

        if (!try_complete(ctx, c, call)) {
            call->next = c->waiting;
            c->waiting = call;
        }
        call = next;
    }
}

/* ---- questions ---- */

static bool ask_status(struct mu__ctx *ctx, struct client *c,
                       struct mu__client_call *call)
{
    struct mu__msg *msg = c->has_chief ? mu__msg_new(ctx, MU__STATUS_GET) : NULL;
    struct mu__status_get *body;

    if (msg == NULL)
        return false;
    body = mu__body(msg);
    body->token = ++c->token_next;
    call->token = body->token;
    return mu__send(ctx, c->chief, msg) == 0;
}

/* Words of the first closure in flight, from a status. */
static void describe(const mu_value *status, char *out, size_t size)
{
    const mu_value *first = mu_value_at(mu_value_find(status, "in_flight"), 0);
    const char *function = "?";
    const char *task = "?";
    int64_t closure = 0;
    int64_t for_ms = 0;
    size_t length;

    out[0] = '\0';
    if (first == NULL) {
        (void)snprintf(out, size, "none is in flight: no worker is up, or none has room");
        return;
    }
    (void)mu_value_get_string(mu_value_find(first, "function"), &function, &length);
    (void)mu_value_get_string(mu_value_find(first, "task"), &task, &length);
    (void)mu_value_get_int(mu_value_find(first, "closure"), &closure);
    (void)mu_value_get_int(mu_value_find(first, "for_ms"), &for_ms);
    (void)snprintf(out, size, "closure %" PRId64 " \"%s\" runs on %s for %" PRId64 " ms",
                   closure, function, task, for_ms);
}

static void explain(struct mu__ctx *ctx, struct client *c, struct mu__call *call,
                    const mu_value *status)
{
    char words[256];

    if (status == NULL)
        (void)snprintf(words, sizeof words, "the chief did not say more");
    else
        describe(status, words, sizeof words);
    complete(ctx, call,
             mu_error_set(&call->error, -MU_EDEADLINE,
                          "%" PRIu64 " closures are outstanding after %" PRId64
                          " ms; %s",
                          outstanding(c), call->limit_ms, words));
}

static void on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__status *body = mu__body(msg);
    struct mu__client_call *call = NULL;
    mu_value *status = NULL;
    char why[128];

    for (struct mu__call *at = c->asking; at != NULL; at = at->next)
        if (((struct mu__client_call *)at)->token == body->token)
            call = (struct mu__client_call *)at;
    if (call == NULL || !c->has_chief || !mu__pid_equal(msg->from, c->chief))
        return;
    (void)unlist(&c->asking, &call->call);
    (void)mu__value_unpack(&body->status, why, sizeof why, &status);
    if (call->call.operation != MU__CLIENT_STATUS) {
        explain(ctx, c, &call->call, status);
        mu_value_free(status);
        return;
    }
    call->status = status;
    complete(ctx, &call->call,
             status != NULL ? 0
                            : mu_error_set(&call->call.error, -MU_EDATALOSS,
                                           "the chief's status cannot be read: %s", why));
}

/* ---- calls of the program ---- */

static bool begin_session(struct client *c, struct mu__client_call *call)
{
    if (c->session != NULL) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_EEXISTS,
                                       "this node's coordinator is open already"));
        return false;
    }
    c->session = call->session;
    c->ending = false;
    c->resolved = 0;
    return true;
}

static void fetch(struct mu__ctx *ctx, struct mu__client_call *call)
{
    if (mu_remote_value_state(call->future) != MU_REMOTE_NOT_READY) {
        mu__call_complete(&call->call, 0);
        return;
    }
    mu__call_hold(ctx, &call->future->waiters, &call->call);
}

static bool is_about_session(const struct mu__call *call)
{
    return call->operation == MU__CLIENT_JOIN || call->operation == MU__CLIENT_RAISE ||
           call->operation == MU__CLIENT_ROOM;
}

static void complete_closed(struct mu__ctx *ctx, struct mu__call *call)
{
    complete(ctx, call, mu_error_set(&call->error, -MU_ECLOSED,
                                     "the coordinator is being closed"));
}

/* An open session is cancelled as a whole, as after an error. Those who wait for it hear
 * so, and nobody hears of it later than the one who ends it. */
static void end_session(struct mu__ctx *ctx, struct client *c)
{
    struct mu__call **at = &c->waiting;

    if (c->session != NULL && phase_of(c) == MU__SESSION_FINE)
        set_phase(c, MU__SESSION_FAILED);
    while (*at != NULL) {
        struct mu__call *call = *at;

        if (!is_about_session(call)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        complete_closed(ctx, call);
    }
    c->ending = true;
}

static void wait_for_status(struct mu__ctx *ctx, struct client *c,
                            struct mu__client_call *call)
{
    if (ask_status(ctx, c, call)) {
        mu__call_hold(ctx, &c->asking, &call->call);
        return;
    }
    mu__call_complete(&call->call,
                      mu_error_set(&call->call.error, -MU_EUNAVAILABLE,
                                   "%s is not connected", c->config.chief));
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__client_call *call = body->call;

    switch (call->call.operation) {
    case MU__CLIENT_OPEN:
        if (!begin_session(c, call))
            return;
        break;
    case MU__CLIENT_CLOSE:
        end_session(ctx, c);
        start_cancelling(ctx, c);
        break;
    case MU__CLIENT_FETCH:
        fetch(ctx, call);
        return;
    case MU__CLIENT_STATUS:
        if (c->has_chief)
            wait_for_status(ctx, c, call);
        else
            mu__call_hold(ctx, &c->waiting, &call->call);
        return;
    default:
        break;
    }
    call->call.timer = 0;
    if (is_about_session(&call->call) && (c->session == NULL || c->ending)) {
        complete_closed(ctx, &call->call);
        return;
    }
    if (try_complete(ctx, c, &call->call))
        return;
    if (call->at_once)
        mu__call_complete(&call->call, -MU_EAGAIN);
    else
        mu__call_hold(ctx, &c->waiting, &call->call);
}

static void on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;

    if (msg->from.node == MU__NODE_SELF && c->has_chief)
        (void)mu__send(ctx, c->chief, mu__claim(ctx));
}

/* ---- limits ---- */

static void say_chief_missing(struct mu__ctx *ctx, struct client *c,
                              struct mu__call *call)
{
    complete(ctx, call,
             mu_error_set(&call->error, -MU_EDEADLINE,
                          "%s was not reached within %" PRId64 " ms%s%s", c->config.chief,
                          call->limit_ms, c->trouble[0] == '\0' ? "" : ": ", c->trouble));
}

/* A wait for the session is over its limit: ask the chief what keeps it, then tell. */
static void give_up(struct mu__ctx *ctx, struct client *c, struct mu__call *call)
{
    (void)unlist(&c->waiting, call);
    call->timer = 0;
    if (call->operation == MU__CLIENT_OPEN)
        c->session = NULL;
    if (!c->has_chief) {
        say_chief_missing(ctx, c, call);
        return;
    }
    if (!ask_status(ctx, c, (struct mu__client_call *)call)) {
        explain(ctx, c, call, NULL);
        return;
    }
    call->next = c->asking;
    c->asking = call;
    call->timer = mu__timer_set(ctx, EXPLAIN_MS, 0);
}

static struct mu__call *call_with_timer(struct mu__call *list, uint64_t timer)
{
    while (list != NULL && list->timer != timer)
        list = list->next;
    return list;
}

static bool give_up_asking(struct mu__ctx *ctx, struct client *c, uint64_t timer)
{
    struct mu__call *call = call_with_timer(c->asking, timer);

    if (call == NULL)
        return false;
    (void)unlist(&c->asking, call);
    call->timer = 0;
    if (call->operation == MU__CLIENT_STATUS)
        complete(ctx, call,
                 mu_error_set(&call->error, -MU_EDEADLINE,
                              "%s did not answer within %" PRId64 " ms", c->config.chief,
                              call->limit_ms));
    else
        explain(ctx, c, call, NULL);
    return true;
}

static void give_up_fetch(struct mu__ctx *ctx, struct client *c, uint64_t timer)
{
    for (uint32_t i = 0; i < c->places_count; i++) {
        mu_remote_value *future = c->places[i].future;
        struct mu__call *call;

        if ((c->places[i].next & 1) != 0 || future == NULL)
            continue;
        call = call_with_timer(future->waiters, timer);
        if (call == NULL)
            continue;
        (void)unlist(&future->waiters, call);
        call->timer = 0;
        complete(ctx, call,
                 mu_error_set(&call->error, -MU_EDEADLINE,
                              "the closure has no result after %" PRId64 " ms",
                              call->limit_ms));
        return;
    }
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__timer *body = mu__body(msg);
    struct mu__call *call = call_with_timer(c->waiting, body->timer);

    if (call != NULL)
        give_up(ctx, c, call);
    else if (!give_up_asking(ctx, c, body->timer))
        give_up_fetch(ctx, c, body->timer);
}

/* ---- node news ---- */

static void chief_is_up(struct mu__ctx *ctx, struct client *c, mu__pid chief)
{
    struct mu__call *call = c->waiting;

    c->has_chief = true;
    c->chief = chief;
    c->chief_since_ms = mu__now_ms(ctx);
    c->trouble[0] = '\0';
    while (call != NULL) {
        struct mu__call *next = call->next;

        if (call->operation == MU__CLIENT_STATUS && unlist(&c->waiting, call)) {
            mu__timer_cancel(ctx, call->timer);
            wait_for_status(ctx, c, (struct mu__client_call *)call);
        }
        call = next;
    }
    review_waiting(ctx, c);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__node_up *body = mu__body(msg);

    if (!c->config.is_chief && mu__view_is(body->type, "chief"))
        chief_is_up(ctx, c, (mu__pid){body->node, MU__SUPERVISOR});
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__node_down *body = mu__body(msg);
    char words[TROUBLE_BYTES_MAX];
    mu_error error = {0};

    if (!c->has_chief || c->chief.node != body->node)
        return;
    c->has_chief = false;
    c->chief_since_ms = mu__now_ms(ctx);
    mu__view_copy(body->reason, words, sizeof words);
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s is lost: %s", c->config.chief,
                       words);
    (void)snprintf(error.task, sizeof error.task, "/job:chief/task:0");
    for (uint32_t i = 0; i < c->places_count; i++) {
        if ((c->places[i].next & 1) != 0)
            continue;
        keep_first_error(c, &error);
        resolve_cancelled(ctx, c, take_place(c, (uint64_t)i + 1), -MU_EUNAVAILABLE,
                          error.message);
    }
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__node_trouble *body = mu__body(msg);

    (void)ctx;
    if (mu__view_is(body->type, "chief"))
        mu__view_copy(body->reason, c->trouble, sizeof c->trouble);
}

/* ---- life ---- */

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct client *c = state;

    c->config = *(const struct mu__client_config *)arg;
    assert(c->config.queue_max > 0);
    c->free_first = PLACES_END;
    if (c->config.is_chief) {
        c->has_chief = true;
        c->chief = (mu__pid){MU__NODE_SELF, MU__SUPERVISOR};
    }
    return mu__watch_nodes(ctx);
}

static void close_all(struct mu__ctx *ctx, struct mu__call **list)
{
    while (*list != NULL) {
        struct mu__call *call = *list;

        *list = call->next;
        complete(ctx, call,
                 mu_error_set(&call->error, -MU_ECLOSED, "the node is being closed"));
    }
}

static void done(struct mu__ctx *ctx, void *state)
{
    struct client *c = state;

    for (uint32_t i = 0; i < c->places_count; i++)
        if ((c->places[i].next & 1) == 0)
            abort_future(ctx, take_place(c, (uint64_t)i + 1), "the node was closed");
    close_all(ctx, &c->waiting);
    close_all(ctx, &c->asking);
    mu__free_array(c->places);
}

const struct mu__behavior mu__client = {
    .name = "client",
    .state_size = sizeof(struct client),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* queue_max bounds what is scheduled */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
