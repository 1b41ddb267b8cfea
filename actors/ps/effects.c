/* A run's writes to one server are a batch. A batch stands in one list of its server, or
 * rests until it may be sent again. One that is a single message takes the short way:
 *
 *     SINGLES ----------------------------> FLYING --> (answered)
 *     LARGES --> ACTIVE (piece by piece) ---^  |
 *        ^---------^------ RESTING <-----------'   the server said: again
 *
 * Single messages and pieces of large batches take turns and have windows of their own,
 * so that neither waits for the other's. Few large batches are active at a time: each
 * may have a rest that its server has not told of yet, and these must not fill the
 * window.
 *
 * A batch whose run has failed is an orphan: an active one is abandoned on its server,
 * one that flies lands when its answer comes, or its server goes. */
#include "actors/ps/effects.h"

#include "actors/keep.h"
#include "actors/ps/effects_internal.h"
#include "actors/ps/opened_variable.h"
#include "actors/ps/variable_store.h"
#include "actors/ps/variables.h"
#include "actors/worker/run.h"
#include "runtime/message/block_pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What it hears. */
static void on_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__EFFECTS_SEND, on_send},
    {MU__EFFECT_WRITTEN, on_written},
    {MU__TIMER, on_timer},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
    {MU__VAR_REOPENED, mu__effects_on_reopened},
};

enum {
    TIMEOUT_MS = 60000,
    RETRY_MS = 5,           /* after a link had no room */
    AGAIN_MS = 50,          /* after a server asked for it */
    ACTIVE_MAX = 4,         /* large batches under way with one server */
    SLOT_BITS = 24,         /* of a token; the rest counts tries */
    SERVER_TEXT_MAX = 384   /* a task and its address */
};

_Static_assert(ACTIVE_MAX * MU__EFFECTS_REPORT_BYTES < MU__WINDOW_BYTES,
               "what servers have not told of would fill the window");

/* ---- A run's writes ---- */

int mu__effects_add(struct mu__effects *effects, const struct mu__effect *write,
                    const void *data)
{
    uint64_t bytes = write->size < MU__EFFECT_BYTES_MIN ? MU__EFFECT_BYTES_MIN
                                                        : write->size;
    struct mu__effect *effect;

    assert(write->size > 0);
    if (bytes > MU__EFFECTS_BYTES_MAX - effects->bytes)
        return -MU_EEXHAUSTED;
    effect = mu__block_get(sizeof *effect + (size_t)write->size);
    if (effect == NULL)
        return -MU_ENOMEM;
    *effect = *write;
    effect->next = NULL;
    if (effect->opened != NULL)
        (void)mu__opened_variable_ref(effect->opened);
    memcpy(effect->data, data, (size_t)write->size);
    if (effects->last == NULL)
        effects->first = effect;
    else
        effects->last->next = effect;
    effects->last = effect;
    effects->bytes += bytes;
    return 0;
}

void mu__effects_cut(struct mu__effects *effects, struct mu__effect *last, uint64_t bytes)
{
    struct mu__effect *effect = last == NULL ? effects->first : last->next;

    while (effect != NULL) {
        struct mu__effect *next = effect->next;

        mu__opened_variable_unref(effect->opened);
        mu__block_put(effect);
        effect = next;
    }
    if (last == NULL)
        effects->first = NULL;
    else
        last->next = NULL;
    effects->last = last;
    effects->bytes = bytes;
}

void mu__effects_clear(struct mu__effects *effects)
{
    mu__effects_cut(effects, NULL, 0);
}

/* ---- Chains ---- */

static void take_out(struct write_batch *batch)
{
    struct chain *chain = batch->in;

    if (chain == NULL)
        return;
    if (batch->prev == NULL)
        chain->first = batch->next;
    else
        batch->prev->next = batch->next;
    if (batch->next == NULL)
        chain->last = batch->prev;
    else
        batch->next->prev = batch->prev;
    batch->in = NULL;
}

static void put_last(struct chain *chain, struct write_batch *batch)
{
    take_out(batch);
    batch->in = chain;
    batch->next = NULL;
    batch->prev = chain->last;
    if (chain->last == NULL)
        chain->first = batch;
    else
        chain->last->next = batch;
    chain->last = batch;
}

static void put_first(struct chain *chain, struct write_batch *batch)
{
    take_out(batch);
    batch->in = chain;
    batch->prev = NULL;
    batch->next = chain->first;
    if (chain->first == NULL)
        chain->last = batch;
    else
        chain->first->prev = batch;
    chain->first = batch;
}

static struct chain *waiting_of(const struct effects *e, const struct write_batch *batch)
{
    return &e->servers[batch->server]->waiting[batch->size];
}

/* ---- Timers ---- */

/* A timer that cannot be had now is asked for again with the next event. */
static void arm(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                uint64_t delay_ms)
{
    if (e->timers[timer] == 0)
        e->timers[timer] = mu__timer_set(ctx, delay_ms, (uint64_t)timer);
}

static void arm_at(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                   uint64_t due_ms)
{
    uint64_t now_ms = mu__now_ms(ctx);

    arm(ctx, e, timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* ---- Servers ---- */

static struct effect_server *server_new(struct mu__ctx *ctx)
{
    struct effect_server *server = calloc(1, sizeof *server);

    if (server != NULL)
        server->down_ms = mu__now_ms(ctx);
    return server;
}

/* Servers up to an index. */
static int need_servers(struct mu__ctx *ctx, struct effects *e, uint32_t index)
{
    struct effect_server **servers;

    if (index < e->servers_count)
        return 0;
    if (index >= MU__SERVERS_MAX)
        return -MU_ERANGE;
    servers = realloc(e->servers, ((size_t)index + 1) * sizeof *servers);
    if (servers == NULL)
        return -MU_ENOMEM;
    e->servers = servers;
    while (e->servers_count <= index) {
        servers[e->servers_count] = server_new(ctx);
        if (servers[e->servers_count] == NULL)
            return -MU_ENOMEM;
        e->servers_count++;
    }
    return 0;
}

static mu__pid pid_of(const struct effects *e, uint32_t server)
{
    return (mu__pid){e->servers[server]->node, MU__PS};
}

static void task_text(uint32_t server, char *out, size_t size)
{
    (void)snprintf(out, size, "/job:ps/task:%" PRIu32, server);
}

/* "/job:ps/task:1 (tcp://host:port)" */
static void server_text(const struct effects *e, uint32_t server, char *out, size_t size)
{
    const char *address = e->servers[server]->address;

    if (address == NULL)
        task_text(server, out, size);
    else
        (void)snprintf(out, size, "/job:ps/task:%" PRIu32 " (%s)", server, address);
}

/* ---- Batches ---- */

static int add_slot(struct effects *e, struct write_batch *batch)
{
    if (e->slots_count == UINT32_C(1) << SLOT_BITS)
        return -MU_EEXHAUSTED;
    if (e->slots_count == e->slots_capacity) {
        uint32_t capacity = e->slots_capacity == 0 ? 64 : 2 * e->slots_capacity;
        struct write_batch **slots = realloc(e->slots, capacity * sizeof *slots);

        if (slots == NULL)
            return -MU_ENOMEM;
        e->slots = slots;
        e->slots_capacity = capacity;
    }
    batch->slot = e->slots_count;
    e->slots[e->slots_count++] = batch;
    return 0;
}

static int batch_new(struct effects *e, struct write_batch **ret_batch)
{
    struct write_batch *batch = e->spare;

    if (batch != NULL) {
        uint32_t slot = batch->slot;

        e->spare = batch->next;
        *batch = (struct write_batch){.slot = slot};
    } else {
        int rv;

        batch = calloc(1, sizeof *batch);
        if (batch == NULL)
            return -MU_ENOMEM;
        rv = add_slot(e, batch);
        if (rv != 0) {
            free(batch);
            return rv;
        }
    }
    *ret_batch = batch;
    return 0;
}

/* What was sent of it is not under way any more. */
static void end_flight(struct effects *e, struct write_batch *batch)
{
    e->servers[batch->server]->under_way[batch->size] -= batch->sent - batch->reported;
    batch->reported = batch->sent;
    batch->token = 0;
}

static void batch_free(struct effects *e, struct write_batch *batch)
{
    end_flight(e, batch);
    take_out(batch);
    batch->sending = NULL;
    batch->next = e->spare;
    e->spare = batch;
}

/* Nothing of it was sent, or it is to be sent from its first piece again. */
static void rewind_batch(struct effects *e, struct write_batch *batch)
{
    end_flight(e, batch);
    batch->at = batch->first;
    batch->offset = 0;
    batch->writes_left = batch->writes_count;
    batch->pieces = 0;
    batch->sent = 0;
    batch->reported = 0;
}

static struct write_batch *find_batch(const struct effects *e, const struct mu__msg *msg,
                                uint64_t token)
{
    uint64_t slot = token & ((UINT64_C(1) << SLOT_BITS) - 1);
    struct write_batch *batch = slot < e->slots_count ? e->slots[slot] : NULL;

    if (token == 0 || batch == NULL || batch->token != token ||
        !mu__pid_equal(pid_of(e, batch->server), msg->from))
        return NULL;
    return batch;
}

/* ---- Runs ---- */

static struct sending *sending_new(struct effects *e)
{
    struct sending *sending = e->spare_sendings;

    if (sending == NULL)
        return calloc(1, sizeof *sending);
    e->spare_sendings = sending->next;
    *sending = (struct sending){.next = NULL};
    return sending;
}

static void sending_free(struct effects *e, struct sending *sending)
{
    sending->next = e->spare_sendings;
    e->spare_sendings = sending;
}

static void list(struct effects *e, struct sending *sending)
{
    sending->prev = e->last;
    if (e->last == NULL)
        e->first = sending;
    else
        e->last->next = sending;
    e->last = sending;
}

static void unlist(struct effects *e, struct sending *sending)
{
    if (sending->prev == NULL)
        e->first = sending->next;
    else
        sending->prev->next = sending->next;
    if (sending->next == NULL)
        e->last = sending->prev;
    else
        sending->next->prev = sending->prev;
}

static void answer(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg)
{
    if (mu__send(ctx, to, msg) != 0)
        mu__log(ctx, MU__LOG_ERROR, "the worker does not hear that a run's writes ended");
}

/* All that a run wrote was applied, or it has failed and has no batches any more. */
static void finish(struct mu__ctx *ctx, struct effects *e, struct sending *sending)
{
    unlist(e, sending);
    answer(ctx, sending->requester, sending->answer);
    sending_free(e, sending);
}

/* An orphan that was begun stays where it is: its server must hear of it, or answer. One
 * that is in no chain has its answer. */
static void leave_batch(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct effect_server *server = e->servers[batch->server];

    batch->sending = NULL;
    if (batch->reopening > 0)
        mu__effects_forget_reopenings(e, batch);
    if (batch->in == &server->active && batch->pieces > 0)
        arm(ctx, e, RETRY, 0);
    else if (batch->in != &server->flying)
        batch_free(e, batch);
}

/* Ends a run with an error from the batch's server, if it names no other one. */
void mu__effects_fail_with(struct mu__ctx *ctx, struct effects *e,
                           struct write_batch *batch, const mu_error *error)
{
    struct sending *sending = batch->sending;
    struct mu_run *run = sending->run;

    run->code = error->code;
    if (run->failure == NULL)
        run->failure = malloc(sizeof *run->failure);
    if (run->failure != NULL) {
        *run->failure = *error;
        run->failure->kind = MU_ERROR_SERVER;
        if (error->task[0] == '\0')
            task_text(batch->server, run->failure->task, sizeof run->failure->task);
    }
    batch = sending->batches;
    while (batch != NULL) {
        struct write_batch *sibling = batch->sibling;

        leave_batch(ctx, e, batch);
        batch = sibling;
    }
    finish(ctx, e, sending);
}

void mu__effects_fail(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                      int code, const char *reason)
{
    char server_name[SERVER_TEXT_MAX];
    mu_error error;

    server_text(e, batch->server, server_name, sizeof server_name);
    (void)mu_error_set(&error, code, "what the run wrote: %s %s", server_name, reason);
    mu__effects_fail_with(ctx, e, batch, &error);
}

/* Applied, so the run is rid of it. */
static void complete(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct sending *sending = batch->sending;
    struct write_batch **link = &sending->batches;

    while (*link != batch)
        link = &(*link)->sibling;
    *link = batch->sibling;
    batch_free(e, batch);
    if (--sending->batches_left == 0)
        finish(ctx, e, sending);
}

/* ---- Sending ---- */

/* Whether a refused message may be accepted later. The loss of a server is told soon. */
static bool is_transient(int rv)
{
    return rv == -MU_EEXHAUSTED || rv == -MU_EUNAVAILABLE || rv == -MU_EAGAIN ||
           rv == -MU_ENOMEM;
}

static uint32_t piece_size(const struct write_batch *batch)
{
    uint64_t left = batch->at->size - batch->offset;

    return left < MU__PIECE_BYTES_MAX ? (uint32_t)left : MU__PIECE_BYTES_MAX;
}

static void fill_piece(const struct write_batch *batch, struct mu__effect_write *body)
{
    const struct mu__effects *effects = &batch->sending->run->effects;
    const struct mu__effect *at = batch->at;
    uint32_t size = piece_size(batch);

    body->token = batch->token;
    body->batch = batch->token;
    body->variable = at->variable;
    body->operation = at->operation;
    body->offset = batch->offset;
    body->data = (struct mu__view){at->data + batch->offset, size};
    body->last = batch->writes_left == 1 && batch->offset + size == at->size;
    body->effect = effects->effect;
    if (body->effect != 0) {
        body->origin = effects->origin;
        body->effects_done = effects->effects_done;
    }
    body->rate = at->rate;
    body->momentum = at->momentum;
    body->before = batch->pieces;
}

/* Behind the piece that was sent; false when it was the last. */
static bool move_on(struct effects *e, struct write_batch *batch)
{
    uint32_t size = piece_size(batch);
    uint64_t weight = mu__effect_weight(size);

    batch->pieces++;
    batch->sent += weight;
    e->servers[batch->server]->under_way[batch->size] += weight;
    batch->offset += size;
    if (batch->offset < batch->at->size)
        return true;
    batch->offset = 0;
    batch->at = batch->at->next;
    return --batch->writes_left > 0;
}

static int send_piece(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__EFFECT_WRITE);

    if (msg == NULL)
        return -MU_ENOMEM;
    if (batch->pieces == 0)
        batch->token = ++e->tries << SLOT_BITS | batch->slot;
    fill_piece(batch, mu__body(msg));
    return mu__send_borrowed(ctx, pid_of(e, batch->server), msg);
}

/* An orphan's pieces need not stay with their server. */
static int send_abandon(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__EFFECT_WRITE);

    if (msg != NULL) {
        struct mu__effect_write *body = mu__body(msg);

        body->token = batch->token;
        body->batch = batch->token;
        body->operation = MU__WRITE_ABANDON;
    }
    return mu__send(ctx, pid_of(e, batch->server), msg);
}

/* Send the next piece of a batch, or that it is abandoned. */
static int send_next(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct effect_server *server = e->servers[batch->server];
    int rv;

    if (batch->sending == NULL) {
        rv = send_abandon(ctx, e, batch);
        if (rv == 0)
            batch_free(e, batch);
        return rv;
    }
    rv = send_piece(ctx, e, batch);
    if (rv == 0)
        put_last(move_on(e, batch) ? &server->active : &server->flying, batch);
    return rv;
}

/* The batch whose turn it is. */
static struct write_batch *next_of(struct effect_server *server, enum size size)
{
    struct write_batch *active = server->active.first;
    uint32_t count = 0;

    if (server->under_way[size] >= MU__WINDOW_BYTES)
        return NULL;
    if (size == SINGLE)
        return server->waiting[SINGLE].first;
    while (active != NULL) {
        active = active->next;
        count++;
    }
    if (count < ACTIVE_MAX && server->waiting[LARGE].first != NULL)
        put_first(&server->active, server->waiting[LARGE].first);
    return server->active.first;
}

/* Send to a server what its windows have room for. */
static void pump(struct mu__ctx *ctx, struct effects *e, uint32_t index)
{
    struct effect_server *server = e->servers[index];
    enum size size = SINGLE;
    unsigned idle = 0;

    while (server->up && idle < SIZES) {
        struct write_batch *batch = next_of(server, size);
        int rv = batch == NULL ? 0 : send_next(ctx, e, batch);

        idle = batch == NULL ? idle + 1 : 0;
        size = size == SINGLE ? LARGE : SINGLE;
        if (rv == 0)
            continue;
        if (is_transient(rv)) {
            arm(ctx, e, RETRY, RETRY_MS);
            return;
        }
        if (batch->sending == NULL)
            batch_free(e, batch);
        else
            mu__effects_fail(ctx, e, batch, rv, "was not sent a message");
    }
}

static void pump_all(struct mu__ctx *ctx, struct effects *e)
{
    for (uint32_t i = 0; i < e->servers_count; i++)
        pump(ctx, e, i);
}

/* ---- Planning ---- */

/* The batch of a run for a server. */
static int need_batch(struct mu__ctx *ctx, struct effects *e, struct sending *sending,
                      uint32_t server)
{
    struct write_batch *batch;
    int rv = need_servers(ctx, e, server);

    if (rv != 0 || e->servers[server]->planned != NULL)
        return rv;
    rv = batch_new(e, &batch);
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

/* The writes of a run, sorted by server, are one list still. */
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
    list(e, sending);
    arm(ctx, e, TIMEOUT, e->config.timeout_ms);
    for (; batch != NULL; batch = batch->sibling) {
        rewind_batch(e, batch);
        put_last(waiting_of(e, batch), batch);
    }
}

/* A run that cannot even be begun. */
static void refuse(struct mu__ctx *ctx, struct effects *e, struct sending *sending,
                   int code)
{
    while (sending->batches != NULL) {
        struct write_batch *batch = sending->batches;

        sending->batches = batch->sibling;
        batch_free(e, batch);
    }
    sending->run->code = code;
    answer(ctx, sending->requester, sending->answer);
    sending_free(e, sending);
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
        pump(ctx, e, server);
    else
        pump_all(ctx, e);
}

/* ---- Servers that are lost ---- */

static void fail_missing(struct mu__ctx *ctx, struct effects *e,
                         struct write_batch *batch);

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

/* Those that wait for a server that is lost now fail; the timer for the next one. */
static void check_lost(struct mu__ctx *ctx, struct effects *e)
{
    struct sending *sending = e->first;
    uint64_t now_ms = mu__now_ms(ctx);

    while (sending != NULL) {
        struct sending *next = sending->next;
        struct write_batch *batch = lost_batch(ctx, e, sending);

        if (batch != NULL)
            fail_missing(ctx, e, batch);
        sending = next;
    }
    for (uint32_t i = 0; i < e->servers_count; i++) {
        uint64_t due_ms = e->servers[i]->down_ms + e->config.server_lost_ms;

        if (may_be_lost(e, e->servers[i]) && due_ms > now_ms)
            arm_at(ctx, e, LOST, due_ms);
    }
}

static void on_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    struct mu_run *run = ((struct mu__effects_send *)mu__body(msg))->run;
    mu__pid requester = msg->from;
    struct sending *sending = sending_new(e);
    int rv;

    if (sending == NULL) {
        run->code = -MU_ENOMEM;
        answer(ctx, requester, claim_answer(ctx));
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
    rewind_batch(e, batch);
    batch->rested = true;
    batch->refused = code;
    batch->due_ms = mu__now_ms(ctx) + AGAIN_MS;
    put_last(&e->resting, batch);
    arm(ctx, e, AGAIN, AGAIN_MS);
}

void mu__effects_send_again(struct mu__ctx *ctx, struct effects *e,
                            struct write_batch *batch)
{
    rewind_batch(e, batch);
    put_last(waiting_of(e, batch), batch);
    pump(ctx, e, batch->server);
}

static void fail_by_answer(struct mu__ctx *ctx, struct effects *e,
                           struct write_batch *batch,
                           const struct mu__effect_written *body)
{
    char message[MU__ERROR_TEXT_MAX + 1];
    char text[sizeof message + 16];

    take_out(batch);
    if (body->code == MU_ENOTFOUND && mu__effects_reopen(ctx, e, batch)) {
        end_flight(e, batch);
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

/* So much of a batch is there. */
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
    struct write_batch *batch = find_batch(e, msg, body->token);
    uint32_t server;

    if (batch == NULL)
        return;
    server = batch->server;
    if (body->staged != 0)
        note_staged(e, batch, body->staged);
    else if (batch->sending == NULL)
        batch_free(e, batch);
    else if (body->again)
        rest(ctx, e, batch, -(int)body->code);
    else if (body->code != 0)
        fail_by_answer(ctx, e, batch, body);
    else
        complete(ctx, e, batch);
    pump(ctx, e, server);
}

/* ---- Limits ---- */

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

/* A server that is missing is to blame before one that is slow. */
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

    while (e->first != NULL && e->first->deadline_ms <= now_ms)
        fail_by_timeout(ctx, e, e->first);
    if (e->first != NULL)
        arm_at(ctx, e, TIMEOUT, e->first->deadline_ms);
}

static void wake_resting(struct mu__ctx *ctx, struct effects *e)
{
    uint64_t now_ms = mu__now_ms(ctx);
    struct write_batch *batch;

    while ((batch = e->resting.first) != NULL && batch->due_ms <= now_ms)
        put_last(waiting_of(e, batch), batch);
    if (batch != NULL)
        arm_at(ctx, e, AGAIN, batch->due_ms);
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
    pump_all(ctx, e);
}

/* ---- Servers that come and go ---- */

/* Those of a chain that may be sent again wait for the server, before others; the rest
 * fail, since nobody knows what became of them. */
static void recall(struct mu__ctx *ctx, struct effects *e, struct chain *chain,
                   bool may_be_applied)
{
    struct write_batch *batch;

    while ((batch = chain->last) != NULL) {
        if (batch->sending == NULL) {
            batch_free(e, batch);
        } else if (may_be_applied && batch->sending->run->effects.effect == 0) {
            take_out(batch);
            mu__effects_fail(ctx, e, batch, -MU_EUNAVAILABLE,
                       "was lost before it answered: the outcome is unknown");
        } else {
            rewind_batch(e, batch);
            batch->rested = false;
            put_first(waiting_of(e, batch), batch);
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
        arm(ctx, e, LOST, e->config.server_lost_ms);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__node_up *body = mu__body(msg);
    struct effect_server *server;

    if (!mu__view_is(body->type, "ps"))
        return;
    if (need_servers(ctx, e, body->index) != 0) {
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
    server->address = malloc(body->address.size + 1);
    if (server->address != NULL)
        mu__view_copy(body->address, server->address, body->address.size + 1);
    pump(ctx, e, body->index);
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

    if (mu__view_is(body->type, "ps") && need_servers(ctx, e, body->index) == 0)
        mu__view_copy(body->reason, e->servers[body->index]->trouble, TROUBLE_BYTES_MAX);
}

/* ---- Life ---- */

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct effects *e = state;

    if (arg != NULL)
        e->config = *(const struct mu__effects_config *)arg;
    if (e->config.timeout_ms == 0)
        e->config.timeout_ms = TIMEOUT_MS;
    return mu__watch_nodes(ctx);
}

static void free_sendings(struct sending *sending)
{
    while (sending != NULL) {
        struct sending *next = sending->next;

        free(sending);
        sending = next;
    }
}

/* Runs whose writes are under way belong to the worker, which may be gone by now. */
static void done(struct mu__ctx *ctx, void *state)
{
    struct effects *e = state;

    for (struct sending *s = e->first; s != NULL; s = s->next)
        mu__msg_free(ctx, s->answer);
    mu__effects_drop_reopenings(e);
    free_sendings(e->first);
    free_sendings(e->spare_sendings);
    for (uint32_t i = 0; i < e->slots_count; i++)
        free(e->slots[i]);
    for (uint32_t i = 0; i < e->servers_count; i++) {
        free(e->servers[i]->address);
        free(e->servers[i]);
    }
    free(e->slots);
    free(e->servers);
}

const struct mu__behavior mu__effects_actor = {
    .name = "effects",
    .state_size = sizeof(struct effects),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* as the worker's: runs bound what comes */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
