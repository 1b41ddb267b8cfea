/* Clocks of which this node has members: what they say to servers, and who waits. */
#include "actors/variables/actions.h"

#include "actors/keep.h"
#include "actors/ps/clocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUERY_MIN_MS = 20, /* between queries for whom a call waits */
    QUERY_MAX_MS = 500,
    LOG_FIRST_MS = 5000,
    LOG_STEP_MAX_MS = 60000
};

/* ---- The list ---- */

static struct clock_membership *first_membership(const struct variables *v)
{
    return MU__LIST_FIRST(&v->clocks.list, struct clock_membership, node);
}

static struct clock_membership *next_membership(const struct clock_membership *m)
{
    return MU__LIST_NEXT(m, struct clock_membership, node);
}

static struct clock_membership *find_membership(const struct variables *v, uint64_t id)
{
    struct clock_membership *m = first_membership(v);

    while (m != NULL && (m->id != id || m->leaves))
        m = next_membership(m);
    return m;
}

/* Where a membership has the call with this token; NULL: nowhere. */
static struct mu__clock_call **call_slot(struct clock_membership *m, uint64_t token)
{
    if (m->tick != NULL && m->tick->token == token)
        return &m->tick;
    return m->query != NULL && m->query->token == token ? &m->query : NULL;
}

static struct clock_membership *find_caller(const struct variables *v, uint64_t token)
{
    struct clock_membership *m = first_membership(v);

    while (m != NULL && call_slot(m, token) == NULL)
        m = next_membership(m);
    return m;
}

static void free_membership(struct variables *v, struct clock_membership *m)
{
    mu__list_remove(&v->clocks.list, &m->node);
    free(m);
}

static struct clock_membership *membership_new(struct mu__ctx *ctx, struct variables *v,
                                               const struct mu__clock_call *call)
{
    size_t size = strlen(call->name);
    struct clock_membership *m = calloc(1, sizeof *m + size + 1);

    if (m == NULL)
        return NULL;
    memcpy(m->name, call->name, size);
    while (m->id == 0)
        m->id = mu__random(ctx);
    m->staleness = call->staleness;
    m->partition = mu__partition_of(mu__view_str(call->name), 0);
    m->said = true;
    mu__list_append(&v->clocks.list, &m->node);
    return m;
}

/* It is to say something else than before. */
static void say_anew(struct clock_membership *m, uint64_t token)
{
    m->token = token;
    m->said = false;
    m->slowest[0] = '\0';
}

/* ---- The end of calls ---- */

static const char *verb_of(const struct mu__clock_call *call)
{
    switch (call->call.operation) {
    case MU__CLOCK_OPEN:
        return "open";
    case MU__CLOCK_TICK:
        return "tick";
    default:
        return "minimum";
    }
}

static void complete_clock(struct mu__ctx *ctx, struct mu__clock_call **slot, int code)
{
    struct mu__clock_call *call = *slot;

    *slot = NULL;
    mu__timer_cancel(ctx, call->call.timer);
    mu__call_complete(&call->call, code);
}

static void leave(struct variables *v, struct clock_membership *m)
{
    m->leaves = true;
    say_anew(m, ++v->id_last);
}

/* An open that has failed leaves nothing. */
static void fail_clock(struct mu__ctx *ctx, struct variables *v,
                       struct clock_membership *m, struct mu__clock_call **slot, int code,
                       const char *reason)
{
    mu_error *error = &(*slot)->call.error;
    bool is_open = (*slot)->call.operation == MU__CLOCK_OPEN;

    (void)mu_error_set(error, code, "clock %s: %s: %s", m->name, verb_of(*slot), reason);
    error->kind = MU_ERROR_SERVER;
    (void)snprintf(error->task, sizeof error->task, "/job:ps/task:%" PRIu32,
                   v->placements[m->partition].server);
    complete_clock(ctx, slot, code);
    if (is_open)
        leave(v, m);
}

/* Why a call waits. */
static void waiting_words(struct mu__ctx *ctx, const struct variables *v,
                          const struct clock_membership *m,
                          const struct mu__clock_call *call, char *out, size_t size)
{
    if (m->slowest[0] != '\0')
        (void)snprintf(out, size, "step %" PRIu64 " waits: %s", m->step, m->slowest);
    else
        mu__vars_server_words(ctx, v, m->partition, call->began_ms, out, size);
}

static void fail_waiting_clock(struct mu__ctx *ctx, struct variables *v,
                               struct clock_membership *m, struct mu__clock_call **slot)
{
    const struct variable_server *s = v->servers[v->placements[m->partition].server];
    char words[MU__ERROR_TEXT_MAX + 64];

    waiting_words(ctx, v, m, *slot, words, sizeof words);
    fail_clock(ctx, v, m, slot, s->was_up && !s->up ? -MU_EUNAVAILABLE : -MU_EDEADLINE,
               words);
}

/* ---- Saying ---- */

static int send_step(struct mu__ctx *ctx, const struct variables *v,
                     const struct clock_membership *m)
{
    const struct placement *placement = &v->placements[m->partition];
    const struct mu__clock_set body = {
        .token = m->token,
        .member = m->id,
        .name = mu__view_str(m->name),
        .task = mu__view_str(v->clocks.task),
        .incarnation = v->clocks.incarnation,
        .staleness = m->staleness,
        .step = m->step,
        .leaves = m->leaves ? MU__CLOCK_CLOSED : MU__CLOCK_STAYS,
        .partition = m->partition,
        .generation = placement->generation,
    };

    return mu__send_body(ctx, pid_of(v, placement->server), MU__CLOCK_SET, &body,
                         sizeof body);
}

static void say(struct mu__ctx *ctx, struct variables *v, struct clock_membership *m)
{
    const struct placement *placement = &v->placements[m->partition];
    mu_error error;
    int rv;

    if (m->tick != NULL && mu__send_is_forbidden(ctx, v->servers[placement->server]->node,
                                                 MU__CLOCK_SET, &error)) {
        fail_clock(ctx, v, m, &m->tick, -MU_EPERMISSION, error.message);
        return;
    }
    rv = send_step(ctx, v, m);
    m->said = rv == 0;
    if (rv != 0)
        mu__vars_arm(ctx, v, RETRY, RETRY_MS);
}

void mu__vars_pump_clocks(struct mu__ctx *ctx, struct variables *v)
{
    for (struct clock_membership *m = first_membership(v); m != NULL;
         m = next_membership(m))
        if (!m->said && v->placements[m->partition].served)
            say(ctx, v, m);
}

void mu__vars_recall_clocks(struct variables *v)
{
    for (struct clock_membership *m = first_membership(v); m != NULL;
         m = next_membership(m))
        if (!v->placements[m->partition].served)
            say_anew(m, m->token);
}

/* Who is behind, or the minimum. A lost answer is requested again. */
static void request_state(struct mu__ctx *ctx, const struct variables *v,
                          const struct clock_membership *m,
                          const struct mu__clock_call *call)
{
    const struct placement *placement = &v->placements[m->partition];
    const struct mu__clock_get body = {
        .token = call->token,
        .name = mu__view_str(m->name),
        .partition = m->partition,
        .generation = placement->generation,
    };

    if (placement->served)
        (void)mu__send_body(ctx, pid_of(v, placement->server), MU__CLOCK_GET, &body,
                            sizeof body);
}

/* ---- Calls ---- */

static uint64_t query_interval_ms(const struct mu__clock_call *call)
{
    int64_t ms = call->call.timeout_ms / 4;

    if (call->call.timeout_ms < 0 || ms > QUERY_MAX_MS)
        return QUERY_MAX_MS;
    return ms < QUERY_MIN_MS ? QUERY_MIN_MS : (uint64_t)ms;
}

static bool arm_call(struct mu__ctx *ctx, struct mu__clock_call *call)
{
    uint64_t left_ms = call->deadline_ms - mu__now_ms(ctx);
    uint64_t delay_ms = query_interval_ms(call);

    call->call.timer =
        mu__timer_set(ctx, left_ms < delay_ms ? left_ms : delay_ms, call->token);
    return call->call.timer != 0;
}

static void begin_clock_call(struct mu__ctx *ctx, struct variables *v,
                             struct clock_membership *m, struct mu__clock_call **slot,
                             struct mu__clock_call *call)
{
    uint64_t now_ms = mu__now_ms(ctx);

    *slot = call;
    call->token = ++v->id_last;
    call->began_ms = now_ms;
    call->log_ms = now_ms + LOG_FIRST_MS;
    call->deadline_ms =
        call->call.timeout_ms < 0 ? UINT64_MAX : now_ms + (uint64_t)call->call.timeout_ms;
    if (!arm_call(ctx, call))
        fail_clock(ctx, v, m, slot, -MU_EEXHAUSTED, mu_strerror(-MU_EEXHAUSTED));
}

static void refuse_clock_call(struct mu__clock_call *call, int code, const char *what)
{
    (void)mu_error_set(&call->call.error, code, "clock: %s: %s", verb_of(call), what);
    mu__call_complete(&call->call, code);
}

static void begin_clock_open(struct mu__ctx *ctx, struct variables *v,
                             struct mu__clock_call *call)
{
    int rv = mu__vars_need_servers(ctx, v, call->servers_count);
    struct clock_membership *m = rv == 0 ? membership_new(ctx, v, call) : NULL;

    if (m == NULL) {
        rv = rv == 0 ? -MU_ENOMEM : rv;
        refuse_clock_call(call, rv, mu_strerror(rv));
        return;
    }
    call->member = m->id;
    say_anew(m, v->id_last + 1);
    begin_clock_call(ctx, v, m, &m->tick, call);
}

/* A step that was not let through before the timeout is waited for once more. */
static void begin_tick(struct mu__ctx *ctx, struct variables *v,
                       struct clock_membership *m, struct mu__clock_call *call)
{
    m->step += m->passed;
    m->passed = false;
    say_anew(m, v->id_last + 1);
    begin_clock_call(ctx, v, m, &m->tick, call);
}

static void begin_close(struct mu__ctx *ctx, struct variables *v,
                        struct clock_membership *m, struct mu__clock_call *call)
{
    if (m->tick != NULL)
        fail_clock(ctx, v, m, &m->tick, -MU_ECANCELLED, "it is closed");
    if (m->query != NULL)
        fail_clock(ctx, v, m, &m->query, -MU_ECANCELLED, "it is closed");
    leave(v, m);
    mu__call_complete(&call->call, 0);
}

void mu__vars_on_clock_call(struct mu__ctx *ctx, struct variables *v,
                            struct mu__clock_call *call)
{
    bool opens = call->call.operation == MU__CLOCK_OPEN;
    struct clock_membership *m = opens ? NULL : find_membership(v, call->member);
    bool queries = call->call.operation == MU__CLOCK_MINIMUM;

    if (opens)
        begin_clock_open(ctx, v, call);
    else if (m == NULL)
        refuse_clock_call(call, -MU_ECLOSED, "it is closed");
    else if (call->call.operation == MU__CLOCK_CLOSE)
        begin_close(ctx, v, m, call);
    else if (queries ? m->query != NULL : m->tick != NULL)
        refuse_clock_call(call, -MU_EPRECONDITION, "another thread waits for it");
    else if (queries)
        begin_clock_call(ctx, v, m, &m->query, call);
    else
        begin_tick(ctx, v, m, call);
    if (queries && m != NULL && m->query == call)
        request_state(ctx, v, m, call);
    mu__vars_pump_clocks(ctx, v);
}

/* ---- Answers ---- */

static bool is_from_server(const struct variables *v, const struct clock_membership *m,
                           const struct mu__msg *msg)
{
    const struct placement *placement = &v->placements[m->partition];

    return placement->served && mu__pid_equal(pid_of(v, placement->server), msg->from);
}

static void take_refused_step(struct mu__ctx *ctx, struct variables *v,
                              struct clock_membership *m,
                              const struct mu__clock_passed *body)
{
    char message[MU__ERROR_TEXT_MAX + 1];

    mu__view_copy(body->message, message, sizeof message);
    if (m->tick != NULL)
        fail_clock(ctx, v, m, &m->tick, -(int)body->code, message);
    else
        mu__log(ctx, MU__LOG_WARN, "clock %s: %s", m->name, message);
}

static void take_passed_step(struct mu__ctx *ctx, struct clock_membership *m,
                             const struct mu__clock_passed *body)
{
    if (m->step < body->step)
        m->step = body->step;
    if (m->tick == NULL)
        return;
    m->passed = true;
    m->tick->step = m->step;
    complete_clock(ctx, &m->tick, 0);
}

void mu__vars_on_clock_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__clock_passed *body = mu__body(msg);
    struct clock_membership *m = first_membership(v);

    while (m != NULL && m->token != body->token)
        m = next_membership(m);
    if (m == NULL || !is_from_server(v, m, msg))
        return;
    if (m->leaves)
        free_membership(v, m);
    else if (body->code != 0)
        take_refused_step(ctx, v, m, body);
    else
        take_passed_step(ctx, m, body);
    mu__vars_pump_clocks(ctx, v);
}

void mu__vars_on_clock_state(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__clock_state *body = mu__body(msg);
    struct clock_membership *m = find_caller(v, body->token);

    if (m == NULL || !is_from_server(v, m, msg))
        return;
    if (m->query == NULL || m->query->token != body->token) {
        mu__view_copy(body->slowest, m->slowest, sizeof m->slowest);
        return;
    }
    m->query->minimum = body->minimum;
    complete_clock(ctx, &m->query, 0);
}

/* ---- Time ---- */

static void log_waiting_tick(struct mu__ctx *ctx, const struct variables *v,
                             const struct clock_membership *m,
                             struct mu__clock_call *call)
{
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t waited_ms = now_ms - call->began_ms;
    char words[MU__ERROR_TEXT_MAX + 64];

    if (now_ms < call->log_ms)
        return;
    call->log_ms = now_ms + (waited_ms < LOG_STEP_MAX_MS ? waited_ms : LOG_STEP_MAX_MS);
    waiting_words(ctx, v, m, call, words, sizeof words);
    mu__log(ctx, MU__LOG_WARN, "waiting: clock %s: %s for %" PRIu64 " s: %s", m->name,
            verb_of(call), waited_ms / 1000, words);
}

static void go_on_waiting(struct mu__ctx *ctx, struct variables *v,
                          struct clock_membership *m, struct mu__clock_call **slot)
{
    struct mu__clock_call *call = *slot;

    call->call.timer = 0;
    if (mu__now_ms(ctx) >= call->deadline_ms ||
        mu__vars_is_lost(ctx, v, v->placements[m->partition].server)) {
        fail_waiting_clock(ctx, v, m, slot);
        return;
    }
    log_waiting_tick(ctx, v, m, call);
    if (call->call.operation != MU__CLOCK_OPEN)
        request_state(ctx, v, m, call);
    if (!arm_call(ctx, call))
        fail_clock(ctx, v, m, slot, -MU_EEXHAUSTED, mu_strerror(-MU_EEXHAUSTED));
}

bool mu__vars_clock_tick(struct mu__ctx *ctx, struct variables *v, uint64_t token)
{
    struct clock_membership *m = find_caller(v, token);

    if (m == NULL)
        return false;
    go_on_waiting(ctx, v, m, call_slot(m, token));
    return true;
}

/* ---- Start and end ---- */

int mu__vars_clocks_init(struct variables *v, const struct mu__variables_options *options)
{
    if (options == NULL || options->task == NULL)
        return 0;
    if (strlen(options->task) > MU__TASK_NAME_MAX)
        return -MU_ERANGE;
    v->clocks.incarnation = options->incarnation;
    memcpy(v->clocks.task, options->task, strlen(options->task));
    return 0;
}

static void close_call(struct clock_membership *m, struct mu__clock_call *call)
{
    if (call == NULL)
        return;
    (void)mu_error_set(&call->call.error, -MU_ECLOSED,
                       "clock %s: %s: the node is being closed", m->name, verb_of(call));
    mu__call_complete(&call->call, -MU_ECLOSED);
}

void mu__vars_clocks_close(struct variables *v)
{
    for (struct clock_membership *m = first_membership(v); m != NULL;
         m = next_membership(m)) {
        close_call(m, m->tick);
        close_call(m, m->query);
        m->tick = m->query = NULL;
    }
}

void mu__vars_clocks_free(struct variables *v)
{
    while (!mu__list_is_empty(&v->clocks.list))
        free_membership(v, first_membership(v));
}
