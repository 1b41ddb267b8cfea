/* The actor: plans a run's batches, takes answers, watches servers and timeouts. */
#include "actors/effects/effects.h"

#include "actors/effects/internal.h"
#include "actors/variables/variables.h"
#include "actors/worker/function_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(ACTIVE_MAX * MU__EFFECTS_REPORT_BYTES < MU__WINDOW_BYTES,
               "what servers have not told of would fill the window");

/* ---- Planning ---- */

/* Make the batch of a run for a server, if it has none. */
static int need_batch(struct mu__ctx *ctx, struct effects *e, struct sending *sending,
                      uint32_t server)
{
    struct write_batch *batch;
    int rv = mu__effects_need_servers(ctx, e, server);

    if (rv != 0 || e->servers[server]->planned != NULL)
        return rv;
    rv = mu__effects_batch_new(e, &batch);
    if (rv != 0)
        return rv;
    batch->server = server;
    batch->sending = sending;
    batch->sibling = sending->batches;
    sending->batches = batch;
    sending->batches_left++;
    e->servers[server]->planned = batch;
    return 0;
}

static void plan_write(struct write_batch *batch, struct mu__effect *write)
{
    if (batch->first == NULL)
        batch->first = write;
    else
        batch->last->next = write;
    batch->last = write;
    batch->writes_count++;
    if (batch->writes_count > 1 || write->size > MU__PIECE_BYTES_MAX)
        batch->size = LARGE;
}

/* Link the writes of a run into one list again, sorted by server. */
static void join(const struct sending *sending, struct mu__effects *effects)
{
    effects->first = NULL;
    for (struct write_batch *batch = sending->batches; batch != NULL;
         batch = batch->sibling) {
        if (effects->first == NULL)
            effects->first = batch->first;
        else
            effects->last->next = batch->first;
        effects->last = batch->last;
    }
    effects->last->next = NULL;
}

static int plan(struct mu__ctx *ctx, struct effects *e, struct sending *sending)
{
    struct mu__effects *effects = &sending->run->effects;
    struct mu__effect *write = effects->first;
    int rv = 0;

    for (; write != NULL && rv == 0; write = write->next)
        rv = need_batch(ctx, e, sending, write->server);
    if (rv == 0 && effects->first != NULL) {
        for (write = effects->first; write != NULL; write = write->next)
            plan_write(e->servers[write->server]->planned, write);
        join(sending, effects);
    }
    for (struct write_batch *batch = sending->batches; batch != NULL;
         batch = batch->sibling)
        e->servers[batch->server]->planned = NULL;
    return rv;
}

static void start(struct mu__ctx *ctx, struct effects *e, struct sending *sending)
{
    struct write_batch *batch = sending->batches;

    sending->deadline_ms = mu__now_ms(ctx) + e->config.timeout_ms;
    mu__list_append(&e->sendings, &sending->node);
    mu__effects_arm(ctx, e, TIMEOUT, e->config.timeout_ms);
    for (; batch != NULL; batch = batch->sibling) {
        mu__effects_rewind_batch(e, batch);
        mu__effects_put_last(mu__effects_waiting_of(e, batch), batch);
    }
}

/* Answer a run whose sending cannot begin, or that has no writes. */
static void refuse(struct mu__ctx *ctx, struct effects *e, struct sending *sending,
                   int code)
{
    while (sending->batches != NULL) {
        struct write_batch *batch = sending->batches;

        sending->batches = batch->sibling;
        mu__effects_batch_free(e, batch);
    }
    sending->run->code = code;
    mu__effects_answer(ctx, sending->requester, sending->answer);
    mu__effects_sending_free(e, sending);
}

/* The answer takes the memory of the message, so that it cannot fail. */
static struct mu__msg *claim_answer(struct mu__ctx *ctx)
{
    struct mu__msg *msg = mu__claim(ctx);

    _Static_assert(sizeof(struct mu__effects_send) == sizeof(struct mu__effects_sent),
                   "both have the run alone");
    msg->kind = MU__EFFECTS_SENT;
    return msg;
}

static void pump_run(struct mu__ctx *ctx, struct effects *e, const struct mu_run *run)
{
    uint32_t server = run->effects.first->server;

    if (run->effects.last->server == server)
        mu__effects_pump(ctx, e, server);
    else
        mu__effects_pump_all(ctx, e);
}

/* ---- Servers that are lost ---- */

static void fail_missing(struct mu__ctx *ctx, struct effects *e,
                         struct write_batch *batch)
{
    const struct effect_server *server = e->servers[batch->server];
    uint64_t missing_ms = mu__now_ms(ctx) - server->down_ms;
    char text[TROUBLE_BYTES_MAX + 64];

    (void)snprintf(text, sizeof text, "not reached for %" PRIu64 ".%" PRIu64 " s%s%s%s",
                   missing_ms / 1000, missing_ms % 1000 / 100,
                   server->trouble[0] == '\0' ? "" : " (", server->trouble,
                   server->trouble[0] == '\0' ? "" : ")");
    mu__effects_fail(ctx, e, batch, -MU_EUNAVAILABLE, text);
}

static bool may_be_lost(const struct effects *e, const struct effect_server *server)
{
    return e->config.server_lost_ms != 0 && !server->up && server->was_up;
}

/* The batch of a run that waits for a server that is lost; NULL: there is none. */
static struct write_batch *lost_batch(struct mu__ctx *ctx, const struct effects *e,
                                      const struct sending *sending)
{
    struct write_batch *batch = sending->batches;

    for (; batch != NULL; batch = batch->sibling) {
        const struct effect_server *server = e->servers[batch->server];

        if (may_be_lost(e, server) &&
            mu__now_ms(ctx) - server->down_ms >= e->config.server_lost_ms)
            return batch;
    }
    return NULL;
}

/* Fail the runs that need a lost server, and set the timer for the next server to be
 * lost. */
static void check_lost(struct mu__ctx *ctx, struct effects *e)
{
    struct sending *sending = MU__LIST_FIRST(&e->sendings, struct sending, node);
    uint64_t now_ms = mu__now_ms(ctx);

    while (sending != NULL) {
        struct sending *next = MU__LIST_NEXT(sending, struct sending, node);
        struct write_batch *batch = lost_batch(ctx, e, sending);

        if (batch != NULL)
            fail_missing(ctx, e, batch);
        sending = next;
    }
    for (uint32_t i = 0; i < e->servers_count; i++) {
        uint64_t due_ms = e->servers[i]->down_ms + e->config.server_lost_ms;

        if (may_be_lost(e, e->servers[i]) && due_ms > now_ms)
            mu__effects_arm_at(ctx, e, LOST, due_ms);
    }
}

static void on_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    struct mu_run *run = ((struct mu__effects_send *)mu__body(msg))->run;
    mu__pid requester = msg->from;
    struct sending *sending = mu__effects_sending_new(e);
    int rv;

    if (sending == NULL) {
        run->code = -MU_ENOMEM;
        mu__effects_answer(ctx, requester, claim_answer(ctx));
        return;
    }
    sending->run = run;
    sending->requester = requester;
    sending->answer = claim_answer(ctx);
    rv = plan(ctx, e, sending);
    if (rv != 0 || sending->batches == NULL) {
        refuse(ctx, e, sending, rv);
        return;
    }
    start(ctx, e, sending);
    if (lost_batch(ctx, e, sending) != NULL)
        fail_missing(ctx, e, lost_batch(ctx, e, sending));
    else
        pump_run(ctx, e, run);
}

/* ---- Answers ---- */

static void rest(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                 int code)
{
    mu__effects_rewind_batch(e, batch);
    batch->rested = true;
    batch->refused = code;
    batch->due_ms = mu__now_ms(ctx) + AGAIN_MS;
    mu__effects_put_last(&e->resting, batch);
    mu__effects_arm(ctx, e, AGAIN, AGAIN_MS);
}

void mu__effects_send_again(struct mu__ctx *ctx, struct effects *e,
                            struct write_batch *batch)
{
    mu__effects_rewind_batch(e, batch);
    mu__effects_put_last(mu__effects_waiting_of(e, batch), batch);
    mu__effects_pump(ctx, e, batch->server);
}

static void fail_by_answer(struct mu__ctx *ctx, struct effects *e,
                           struct write_batch *batch,
                           const struct mu__effect_written *body)
{
    char message[MU__ERROR_TEXT_MAX + 1];
    char text[sizeof message + 16];

    mu__effects_take_out(batch);
    if (body->code == MU_ENOTFOUND && mu__effects_reopen(ctx, e, batch)) {
        mu__effects_end_flight(e, batch);
        return;
    }
    if (body->code == MU_ENOTFOUND) {
        mu__effects_fail_forgotten(ctx, e, batch);
        return;
    }
    mu__view_copy(body->message, message, sizeof message);
    (void)snprintf(text, sizeof text, "refused it: %s", message);
    mu__effects_fail(ctx, e, batch, -(int)body->code, text);
}

/* The server has staged so much of a batch. */
static void note_staged(struct effects *e, struct write_batch *batch, uint64_t staged)
{
    if (staged <= batch->reported || staged > batch->sent)
        return;
    e->servers[batch->server]->under_way[batch->size] -= staged - batch->reported;
    batch->reported = staged;
}

static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__effect_written *body = mu__body(msg);
    struct write_batch *batch = mu__effects_find_batch(e, msg, body->token);
    uint32_t server;

    if (batch == NULL)
        return;
    server = batch->server;
    if (body->staged != 0)
        note_staged(e, batch, body->staged);
    else if (batch->sending == NULL)
        mu__effects_batch_free(e, batch);
    else if (body->again)
        rest(ctx, e, batch, -(int)body->code);
    else if (body->code != 0)
        fail_by_answer(ctx, e, batch, body);
    else
        mu__effects_complete(ctx, e, batch);
    mu__effects_pump(ctx, e, server);
}

/* ---- Timeouts ---- */

static void fail_slow(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    const char *how = "has not answered";
    char text[96];

    if (batch->rested && batch->refused == 0)
        how = "knows no supervisor and has refused it";
    else if (batch->rested)
        how = "has no room and has refused it";
    (void)snprintf(text, sizeof text, "%s for %" PRIu32 ".%" PRIu32 " s", how,
                   e->config.timeout_ms / 1000, e->config.timeout_ms % 1000 / 100);
    mu__effects_fail(ctx, e, batch,
               batch->rested && batch->refused != 0 ? batch->refused : -MU_EUNAVAILABLE,
                     text);
}

/* Names a missing server before a slow one. */
static void fail_by_timeout(struct mu__ctx *ctx, struct effects *e,
                            struct sending *sending)
{
    struct write_batch *batch = sending->batches;

    while (batch->sibling != NULL && e->servers[batch->server]->up)
        batch = batch->sibling;
    if (e->servers[batch->server]->up)
        fail_slow(ctx, e, batch);
    else
        fail_missing(ctx, e, batch);
}

static void check_timeouts(struct mu__ctx *ctx, struct effects *e)
{
    uint64_t now_ms = mu__now_ms(ctx);
    struct sending *first;

    while ((first = MU__LIST_FIRST(&e->sendings, struct sending, node)) != NULL &&
           first->deadline_ms <= now_ms)
        fail_by_timeout(ctx, e, first);
    if (first != NULL)
        mu__effects_arm_at(ctx, e, TIMEOUT, first->deadline_ms);
}

static void wake_resting(struct mu__ctx *ctx, struct effects *e)
{
    uint64_t now_ms = mu__now_ms(ctx);
    struct write_batch *batch;

    while ((batch = mu__effects_first(&e->resting)) != NULL && batch->due_ms <= now_ms)
        mu__effects_put_last(mu__effects_waiting_of(e, batch), batch);
    if (batch != NULL)
        mu__effects_arm_at(ctx, e, AGAIN, batch->due_ms);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__timer *body = mu__body(msg);

    e->timers[body->token] = 0;
    if (body->token == TIMEOUT)
        check_timeouts(ctx, e);
    if (body->token == AGAIN)
        wake_resting(ctx, e);
    if (body->token == LOST)
        check_lost(ctx, e);
    mu__effects_pump_all(ctx, e);
}

/* ---- Servers that come and go ---- */

/* Batches of a list that may be sent again go to the front of their waiting list; the
 * others fail, since their outcome is unknown. */
static void recall(struct mu__ctx *ctx, struct effects *e, struct mu__list *list,
                   bool may_be_applied)
{
    struct write_batch *batch;

    while ((batch = MU__LIST_LAST(list, struct write_batch, node)) != NULL) {
        if (batch->sending == NULL) {
            mu__effects_batch_free(e, batch);
        } else if (may_be_applied && batch->sending->run->effects.effect == 0) {
            mu__effects_take_out(batch);
            mu__effects_fail(ctx, e, batch, -MU_EUNAVAILABLE,
                             "was lost before it answered: the outcome is unknown");
        } else {
            mu__effects_rewind_batch(e, batch);
            batch->rested = false;
            mu__effects_put_first(mu__effects_waiting_of(e, batch), batch);
        }
    }
}

static void lose_server(struct mu__ctx *ctx, struct effects *e, uint32_t index)
{
    struct effect_server *server = e->servers[index];

    server->up = false;
    server->down_ms = mu__now_ms(ctx);
    recall(ctx, e, &server->flying, true);
    recall(ctx, e, &server->active, false);
    if (may_be_lost(e, server))
        mu__effects_arm(ctx, e, LOST, e->config.server_lost_ms);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__node_up *body = mu__body(msg);
    struct effect_server *server;

    if (!mu__view_is(body->type, "ps"))
        return;
    if (mu__effects_need_servers(ctx, e, body->index) != 0) {
        mu__log(ctx, MU__LOG_ERROR, "no room for parameter server %" PRIu32, body->index);
        return;
    }
    server = e->servers[body->index];
    if (server->up)
        lose_server(ctx, e, body->index);
    server->up = true;
    server->was_up = true;
    server->node = body->node;
    server->trouble[0] = '\0';
    free(server->address);
    server->address = mu__view_dup(body->address);
    mu__effects_pump(ctx, e, body->index);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__node_down *body = mu__body(msg);

    for (uint32_t i = 0; i < e->servers_count; i++) {
        if (!e->servers[i]->up || e->servers[i]->node != body->node)
            continue;
        mu__view_copy(body->reason, e->servers[i]->trouble, TROUBLE_BYTES_MAX);
        lose_server(ctx, e, i);
    }
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__node_trouble *body = mu__body(msg);

    if (mu__view_is(body->type, "ps") &&
        mu__effects_need_servers(ctx, e, body->index) == 0)
        mu__view_copy(body->reason, e->servers[body->index]->trouble, TROUBLE_BYTES_MAX);
}

/* ---- Start and end ---- */

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct effects *e = state;

    if (arg != NULL)
        e->config = *(const struct mu__effects_config *)arg;
    if (e->config.timeout_ms == 0)
        e->config.timeout_ms = TIMEOUT_MS;
    return mu__watch_nodes(ctx);
}

static void free_sendings(struct mu__ctx *ctx, struct mu__list *list)
{
    struct sending *sending;

    while ((sending = MU__LIST_FIRST(list, struct sending, node)) != NULL) {
        (void)mu__list_pop(list);
        mu__msg_free(ctx, sending->answer);
        free(sending);
    }
}

/* The runs belong to the worker, which may have ended: they are not touched. */
static void done(struct mu__ctx *ctx, void *state)
{
    struct effects *e = state;

    mu__effects_drop_reopenings(e);
    free_sendings(ctx, &e->sendings);
    free_sendings(ctx, &e->spare_sendings);
    for (uint32_t i = 0; i < e->slots_count; i++)
        free(e->slots[i]);
    for (uint32_t i = 0; i < e->servers_count; i++) {
        free(e->servers[i]->address);
        free(e->servers[i]);
    }
    free(e->slots);
    free(e->servers);
}

static const struct mu__handler handlers[] = {
    {MU__EFFECTS_SEND, on_send},
    {MU__EFFECT_WRITTEN, on_written},
    {MU__TIMER, on_timer},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
    {MU__VAR_REOPENED, mu__effects_on_reopened},
};

const struct mu__behavior mu__effects_actor = {
    .name = "effects",
    .state_size = sizeof(struct effects),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* as the worker's: runs bound what comes */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
