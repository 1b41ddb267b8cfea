/* Requests of clients, and their answers. What changes a partition is in the table of
 * mutations: it is applied in the same way to the primary and, as a record, to the other
 * replica (stream.c). server.h says what the other files of the actor are. */
#include "actors/ps/rows/rows.h"
#include "actors/ps/store_snapshots.h"
#include "actors/ps/tables/tables.h"

#include "actors/keep.h"
#include "actors/variables/effects.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* ---- Answers ---- */

void mu__ps_send(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                 size_t size)
{
    int rv = mu__send_body(ctx, to, kind, body, size);

    if (rv != 0)
        mu__log(ctx, mu__ps_lost_level(rv), "a message to node %u was lost: %s", to.node,
                mu_strerror(rv));
}

/* An answer that is lost here leaves its requester waiting until its timeout. */
void mu__ps_answer(struct mu__ctx *ctx, struct partition *p, mu__pid to, uint16_t kind,
                   const void *body, size_t size)
{
    if (p->role != SERVING)
        return;
    if (mu__stream_acked(p) < p->record)
        mu__stream_hold(ctx, p, to, kind, body, size);
    else
        mu__ps_send(ctx, to, kind, body, size);
}

uint32_t mu__ps_code(int rv)
{
    return (uint32_t)-rv;
}

struct mu__view mu__ps_message_of(int rv, const char *reason)
{
    return rv == 0 ? (struct mu__view){NULL, 0} : mu__view_str(reason);
}

static void answer_open(struct mu__ctx *ctx, struct partition *p,
                        const struct mu__store_opened *opened)
{
    const struct mu__var_opened body = {
        .token = opened->requester.token,
        .code = mu__ps_code(opened->code),
        .message = mu__ps_message_of(opened->code, opened->reason),
        .variable = opened->id,
        .created = opened->created,
        .creation = opened->creation,
        .shards = opened->code == -MU_EPRECONDITION ? opened->shards : 0,
    };

    mu__stream_note(p, opened->id + body.code);
    mu__ps_answer(ctx, p, opened->requester.pid, MU__VAR_OPENED, &body, sizeof body);
}

/* A request that has no room changes nothing. Whether there is room depends on other
 * partitions, so the journal leaves it out. */
static void note_refusal(struct ps *ps, int rv)
{
    ps->journal.is_refused |= rv == -MU_EEXHAUSTED || rv == -MU_ENOMEM;
}

/* Send the answers to opens that a request has made due. */
static void answer_opens(struct mu__ctx *ctx, struct partition *p)
{
    struct mu__store_opened opened;

    while (mu__store_next_opened(p->store, &opened))
        answer_open(ctx, p, &opened);
}

/* ---- Requests ---- */

static void apply_open(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       const struct mu__msg *msg, mu__pid from)
{
    const struct mu__var_open *body = (const void *)msg->body;
    struct mu__store_open request = {
        .name = body->name,
        .shape = {.dtype = body->dtype, .shards = body->shards},
        .shard = body->shard,
        .bytes = body->size,
        .requester = {from, body->token},
        .existing = body->existing,
        .replaces = body->replaces,
        .creation = body->creation,
    };
    mu_error error;
    int rv = mu__shape_unpack_dims(body->dims, &request.shape);

    if (rv != 0)
        (void)mu_error_set(&error, rv, "dims of %u bytes: expected 8 for each",
                           body->dims.size);
    else
        rv = mu__store_open(p->store, &request, &error);
    note_refusal(ps, rv);
    if (rv != 0)
        answer_open(ctx, p,
                    &(struct mu__store_opened){.requester = request.requester,
                                               .code = rv,
                                               .reason = error.message,
                                               .shards =
                                                   mu__store_shards(p->store, &request)});
    answer_opens(ctx, p);
}

/* Apply a write that counts once: what can fail is done before it is noted. */
static void write_once(struct ps *ps, struct partition *p,
                       const struct mu__var_write *body,
                       const struct mu__store_write *write, mu_error *ret_error)
{
    const struct mu__effect_id id = {body->origin, body->effect, body->effects_done};
    int rv;

    if (id.origin == 0) {
        (void)mu_error_set(ret_error, -MU_EINVALID, "it has a number, and no origin");
        return;
    }
    if (mu__writers_check(&p->writers, &id) == MU__APPLIED_BEFORE) {
        ps->written.repeated++;
        return;
    }
    if (mu__store_check_batch(p->store, write, ret_error) != 0)
        return;
    rv = mu__writers_mark(&p->writers, &id);
    if (rv == 0)
        mu__store_apply_batch(p->store, write);
    else
        (void)mu_error_set(ret_error, rv, "write %" PRIu64 " cannot be noted: %s",
                           id.effect, mu_strerror(rv));
}

static void apply_var_write(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__msg *msg, mu__pid from)
{
    const struct mu__var_write *body = (const void *)msg->body;
    const struct mu__store_write request = {
        .id = body->variable,
        .operation = body->operation,
        .transfer = body->transfer,
        .offset = body->offset,
        .data = body->data,
        .rule = body->rule,
        .writer = from,
    };
    struct mu__var_written reply = {.token = body->token};
    mu_error error = {.code = 0};

    if (body->effect != 0)
        write_once(ps, p, body, &request, &error);
    else
        (void)mu__store_write(p->store, &request, &error, &reply.version);
    if (error.code == 0)
        reply.version = mu__store_version(p->store, body->variable);
    note_refusal(ps, error.code);
    reply.code = mu__ps_code(error.code);
    reply.message = mu__ps_message_of(error.code, error.message);
    mu__stream_note(p, reply.code + mu__store_sample_write(p->store, &request));
    if (body->operation != MU__WRITE_ABANDON)
        mu__ps_answer(ctx, p, from, MU__VAR_WRITTEN, &reply, sizeof reply);
    answer_opens(ctx, p);
}

/* ---- Writes of runs ---- */

/* The answer to an EFFECT_WRITE. */
struct effect_outcome {
    bool is_none; /* no answer yet: more pieces come */
    bool again;
    uint64_t staged;
    mu_error error;
};

static struct mu__staging_piece piece_of(const struct mu__effect_write *body,
                                         mu__pid from)
{
    return (struct mu__staging_piece){
        .batch = body->batch,
        .origin = body->origin,
        .effect = body->own ? 0 : body->effect,
        .before = body->before,
        .write =
            {
                .id = body->variable,
                .operation = body->operation,
                .offset = body->offset,
                .data = body->data,
                .rule = body->rule,
                .writer = from,
            },
    };
}

/* Whether an effect is to be applied; if not, the outcome says why. */
static bool is_pending_effect(struct ps *ps, struct partition *p,
                              const struct mu__effect_write *body,
                              struct effect_outcome *outcome)
{
    const struct mu__effect_id id = {body->origin, body->effect, body->effects_done};

    if (id.effect == 0 || (body->own && id.origin == 0)) {
        (void)mu_error_set(&outcome->error, -MU_EINVALID, "it has no effect number");
        return false;
    }
    switch (body->own ? mu__writers_check(&p->writers, &id)
                      : mu__applied_check(&p->applied, &id)) {
    case MU__APPLIED_NOT:
        return true;
    case MU__APPLIED_UNFENCED:
        outcome->again = true;
        return false;
    case MU__APPLIED_FENCED:
        (void)mu_error_set(&outcome->error, -MU_EABORTED,
                           "it is from a previous incarnation of the chief");
        return false;
    case MU__APPLIED_BEFORE:
        break;
    }
    ps->written.repeated++;
    return false;
}

/* Apply all of a batch, or nothing: what can fail is done before the first write. */
static void apply_batch(struct ps *ps, struct partition *p,
                        const struct mu__store_write *first,
                        const struct mu__effect_write *body,
                        struct effect_outcome *outcome)
{
    const struct mu__effect_id id = {body->origin, body->effect, body->effects_done};
    bool is_alone = mu__stream_is_alone(p);
    int rv = mu__store_check_batch(p->store, first, &outcome->error);

    if (rv != 0)
        return;
    rv = body->own ? mu__writers_mark(&p->writers, &id)
                   : mu__applied_mark(&p->applied, id.effect);
    if (rv != 0) {
        (void)mu_error_set(&outcome->error, rv, "effect %" PRIu64 " cannot be noted: %s",
                           id.effect, mu_strerror(rv));
        outcome->again = true;
        return;
    }
    mu__store_tables(p->store)->is_alone = is_alone;
    mu__store_apply_batch(p->store, first);
    ps->sweeps_due |= mu__store_tables(p->store)->may_sweep;
    for (const struct mu__store_write *write = first; write != NULL && !is_alone;
         write = write->next)
        mu__stream_note(p, mu__store_sample_write(p->store, write));
    ps->written.batches++;
}

/* Stage a piece; the last one applies the batch. A batch refused for lack of room may be
 * sent again, unless it alone has all the room. */
static void stage_piece(struct ps *ps, struct partition *p,
                        const struct mu__staging_piece *piece,
                        const struct mu__effect_write *body,
                        struct effect_outcome *outcome)
{
    struct mu__staged staged;
    int rv = mu__staging_add(&p->staging, piece, &outcome->error, &staged);
    uint32_t node = piece->write.writer.node;

    if (rv != 0) {
        outcome->again = rv == -MU_EEXHAUSTED && p->staging.batches > 0;
        return;
    }
    if (body->last) {
        apply_batch(ps, p, staged.first, body, outcome);
        mu__staging_drop(&p->staging, node, piece->batch);
        return;
    }
    outcome->is_none = staged.fresh < MU__EFFECTS_REPORT_BYTES;
    outcome->staged = staged.bytes;
    if (!outcome->is_none)
        mu__staging_reported(&p->staging, node, piece->batch);
}

static void answer_applied(struct mu__ctx *ctx, struct partition *p, mu__pid to,
                           uint64_t token)
{
    if (p->role != SERVING)
        return;
    if (mu__stream_acked(p) < p->record)
        mu__stream_hold_written(ctx, p, to, token);
    else
        mu__written_add(ctx, p->written, to, token);
}

static void answer_effect(struct mu__ctx *ctx, struct partition *p, mu__pid to,
                          uint64_t token, const struct effect_outcome *outcome)
{
    const struct mu__effect_written body = {
        .token = token,
        .code = mu__ps_code(outcome->error.code),
        .message = mu__ps_message_of(outcome->error.code, outcome->error.message),
        .again = outcome->again,
        .staged = outcome->staged,
    };

    if (body.code == 0 && !body.again && body.staged == 0)
        answer_applied(ctx, p, to, token);
    else
        mu__ps_answer(ctx, p, to, MU__EFFECT_WRITTEN, &body, sizeof body);
}

static void apply_effect_write(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                               const struct mu__msg *msg, mu__pid from)
{
    const struct mu__effect_write *body = (const void *)msg->body;
    const struct mu__staging_piece piece = piece_of(body, from);
    struct effect_outcome outcome;

    outcome.is_none = false;
    outcome.again = false;
    outcome.staged = 0;
    outcome.error.code = 0;
    if (body->operation == MU__WRITE_ABANDON) {
        mu__staging_drop(&p->staging, from.node, body->batch);
        return;
    }
    if (!is_pending_effect(ps, p, body, &outcome))
        mu__staging_drop(&p->staging, from.node, body->batch);
    else if (body->last && body->before == 0)
        apply_batch(ps, p, &piece.write, body, &outcome);
    else
        stage_piece(ps, p, &piece, body, &outcome);
    note_refusal(ps, outcome.error.code);
    mu__stream_note(p, mu__ps_code(outcome.error.code) + outcome.again);
    if (!outcome.is_none)
        answer_effect(ctx, p, from, body->token, &outcome);
}

/* Both messages have the same fields. A program that is no task has no part in the
 * numbers of runs. */
static void apply_own_write(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__msg *msg, mu__pid from)
{
    const struct mu__own_write *body = (const void *)msg->body;
    struct effect_outcome refused;

    _Static_assert(sizeof(struct mu__own_write) == sizeof(struct mu__effect_write),
                   "the same fields");
    if (body->own) {
        apply_effect_write(ctx, ps, p, msg, from);
        return;
    }
    refused = (struct effect_outcome){.is_none = false};
    (void)mu_error_set(&refused.error, -MU_EINVALID, "it is not its sender's own");
    answer_effect(ctx, p, from, body->token, &refused);
}

static void apply_fence(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__msg *msg, mu__pid from)
{
    const struct mu__fenced *body = (const void *)msg->body;

    (void)ctx;
    (void)ps;
    (void)from;
    if (mu__applied_fence(&p->applied, body->origin, body->epoch))
        mu__staging_drop_others(&p->staging, body->origin);
}

static void apply_client_lost(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                              const struct mu__msg *msg, mu__pid from)
{
    const struct mu__client_lost *body = (const void *)msg->body;

    (void)ps;
    (void)from;
    if (body->writer == MU__CLIENTS_ALL) {
        mu__staging_done(&p->staging);
        mu__store_forget_nodes(p->store);
        mu__clocks_forget_nodes(&p->clocks);
        mu__snapshots_drop(p->store);
        return;
    }
    mu__staging_drop_node(&p->staging, body->writer);
    mu__store_node_down(p->store, body->writer);
    mu__clocks_forget_node(&p->clocks, body->writer);
    answer_opens(ctx, p);
}

/* ---- Requests and records ---- */

#define MUTATION(KIND, name, run)                                                      \
    {                                                                                  \
        MU__##KIND, sizeof(struct mu__##name), offsetof(struct mu__##name, partition), \
            offsetof(struct mu__##name, generation),                                   \
            offsetof(struct mu__##name, record), offsetof(struct mu__##name, writer),  \
            run                                                                        \
    }

static const struct mutation mutations[] = {
    MUTATION(EFFECT_WRITE, effect_write, apply_effect_write),
    MUTATION(OWN_WRITE, own_write, apply_own_write),
    MUTATION(VAR_WRITE, var_write, apply_var_write),
    MUTATION(VAR_OPEN, var_open, apply_open),
    MUTATION(FENCED, fenced, apply_fence),
    MUTATION(WINDOWS_PUT, windows_put, mu__snapshot_apply_windows),
    MUTATION(CLOCK_SET, clock_set, mu__ps_apply_clock_set),
    MUTATION(TABLE_SWEEP, table_sweep, mu__ps_apply_table_sweep),
    MUTATION(CLIENT_LOST, client_lost, apply_client_lost),
};

const struct mutation *mu__ps_mutation(uint16_t kind)
{
    const struct mutation *mutation = mutations;

    while (mutation->kind != kind)
        mutation++;
    return mutation;
}

struct partition *mu__ps_find_serving(const struct ps *ps, uint32_t partition,
                                      uint64_t generation)
{
    struct partition *p = ps->partitions[partition];

    if (p == NULL || p->role != SERVING || p->generation != generation)
        return NULL;
    return p;
}

static void answer_read(struct mu__ctx *ctx, struct partition *p,
                        const struct mu__msg *msg)
{
    const struct mu__var_read *body = (const void *)msg->body;
    const struct mu__store_read request = {body->variable, body->offset, body->size};
    struct mu__var_data reply = {.token = body->token};
    mu_error error;
    int rv;

    if (body->rows.size > 0) {
        mu__rows_answer(ctx, p, msg);
        return;
    }
    rv = mu__store_read(p->store, &request, &error, &reply.data, &reply.version);
    reply.code = mu__ps_code(rv);
    reply.message = mu__ps_message_of(rv, error.message);
    mu__ps_answer(ctx, p, msg->from, MU__VAR_DATA, &reply, sizeof reply);
}

static bool begin_read(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       const struct mu__msg *msg)
{
    if (p->ready || mu__ps_is_cut_off(ps, p))
        return false;
    answer_read(ctx, p, msg);
    return true;
}

void mu__ps_run(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                const struct mutation *mutation, const struct mu__msg *msg)
{
    ps->journal.is_refused = false; /* as a replica's record may have been */
    mutation->apply(ctx, ps, p, msg, msg->from);
    mu__stream_applied(p);
    mu__ps_journal_record(ctx, ps, p, mutation, msg);
}

bool mu__ps_begin_deferred(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           struct mu__msg *msg)
{
    const struct mutation *mutation;

    if (msg->kind == MU__VAR_READ)
        return begin_read(ctx, ps, p, msg);
    if (msg->kind == MU__SNAPSHOT_OPEN)
        return mu__snapshot_begin(ctx, ps, p, msg);
    if (mu__stream_is_blocked(ctx, ps, p) || !mu__ps_journal_has_room(ctx, ps, p, msg))
        return false;
    mutation = mu__ps_mutation(msg->kind);
    p->record++;
    if (!mu__stream_send(ctx, ps, p, mutation, msg)) {
        p->record--;
        return false;
    }
    mu__ps_run(ctx, ps, p, mutation, msg);
    return true;
}

/* Records without a request, which no client may send. */
static bool is_of_primary(uint16_t kind)
{
    return kind == MU__CLIENT_LOST || kind == MU__FENCED || kind == MU__TABLE_SWEEP;
}

void mu__ps_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                  struct mu__msg *msg)
{
    bool is_current = msg == ctx->current;

    if (!mu__list_is_empty(&p->deferred) || !mu__ps_begin_deferred(ctx, ps, p, msg))
        mu__stream_defer(ctx, ps, p, is_current ? mu__claim(ctx) : msg);
    else if (!is_current)
        mu__msg_free(ctx, msg);
}

static void on_mutation(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mutation *mutation = mu__ps_mutation(msg->kind);
    const uint8_t *body = mu__body(msg);
    uint32_t partition;
    uint64_t generation;
    uint64_t record;
    struct partition *p;

    memcpy(&partition, body + mutation->partition, sizeof partition);
    memcpy(&generation, body + mutation->generation, sizeof generation);
    memcpy(&record, body + mutation->record, sizeof record);
    if (record != 0) {
        mu__stream_take(ctx, ps, mutation, msg);
        return;
    }
    p = mu__ps_find_serving(ps, partition, generation);
    if (p != NULL && !is_of_primary(msg->kind))
        mu__ps_begin(ctx, ps, p, msg);
}

static void on_variable_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_read *body = mu__body(msg);
    struct partition *p = mu__ps_find_serving(ps, body->partition, body->generation);

    if (p != NULL && !begin_read(ctx, ps, p, msg))
        mu__stream_defer(ctx, ps, p, mu__claim(ctx));
}

/* ---- Fences ---- */

void mu__ps_fence(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct mu__fenced *body;
    struct mu__msg *msg;

    if (!ps->fenced || (p->applied.fenced && p->applied.origin == ps->fence.origin))
        return;
    msg = mu__msg_new(ctx, MU__FENCED);
    if (msg == NULL) {
        mu__log(ctx, MU__LOG_ERROR,
                "out of memory: partition %" PRIu32 " takes no effects",
                p->view.partition);
        return;
    }
    body = mu__body(msg);
    body->origin = ps->fence.origin;
    body->epoch = ps->fence.epoch;
    mu__ps_begin(ctx, ps, p, msg);
}

static void fence_all(struct mu__ctx *ctx, struct ps *ps, const struct mu__fence *fence)
{
    ps->fenced = true;
    ps->fence = *fence;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->partitions[i] != NULL && ps->partitions[i]->role == SERVING)
            mu__ps_fence(ctx, ps, ps->partitions[i]);
    mu__log(ctx, MU__LOG_DEBUG, "effects are those of supervisor %" PRIx64 " from now on",
            fence->origin);
}

static void on_fence(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__fence *body = mu__body(msg);

    if (!mu__ps_is_chief(ps, msg->from.node))
        mu__log(ctx, MU__LOG_WARN,
                "a fence from node %" PRIu32 ", which is no chief: ignored",
                msg->from.node);
    else
        fence_all(ctx, ps, body);
}

/* ---- Start and end ---- */

/* Deferred requests are tried again. */
static void on_ps_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__timer *body = mu__body(msg);

    if (body->token == PS_CLOCKS) {
        mu__ps_clocks_tick(ctx, ps);
        return;
    }
    if (body->token == PS_SNAPSHOTS) {
        mu__snapshots_tick(ctx, ps);
        return;
    }
    if (body->token == PS_JOURNAL) {
        mu__ps_journal_tick(ctx, ps);
        return;
    }
    ps->retry.timer = 0;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->partitions[i] != NULL && ps->partitions[i]->role == SERVING)
            mu__stream_tick(ctx, ps, ps->partitions[i]);
}

/* What is told to others is in the journal before. */
static void after_ps_batch(struct mu__ctx *ctx, void *state)
{
    mu__ps_sweep_tables(ctx, state);
    mu__ps_journal_flush(ctx, state);
    mu__written_flush(ctx, &((struct ps *)state)->written);
    mu__stream_send_marks(ctx, state);
    mu__ps_report(ctx, state);
}

static int init_ps(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct ps *ps = state;
    const struct mu__ps_config *config = arg;
    int rv;

    ps->index = config->index;
    ps->incarnation = config->incarnation;
    ps->leader = config->leader;
    ps->limits = config->limits == NULL ? mu__store_limits_default : *config->limits;
    ps->limits.bytes_used = &ps->bytes_used;
    ps->limits.pages = &ps->pages;
    ps->limits.snapshots = &ps->snapshots.usage;
    rv = mu__ps_journal_open(ctx, ps, config);
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    if (rv != 0)
        mu__ps_free_all(ctx, ps);
    return rv;
}

static void end_ps(struct mu__ctx *ctx, void *state)
{
    mu__ps_free_all(ctx, state);
}

static const struct mu__handler handlers[] = {
    {MU__VAR_OPEN, on_mutation},
    {MU__VAR_READ, on_variable_read},
    {MU__TABLE_LOOKUP, mu__ps_on_table_lookup},
    {MU__VAR_WRITE, on_mutation},
    {MU__EFFECT_WRITE, on_mutation},
    {MU__OWN_WRITE, on_mutation},
    {MU__OWN_WRITES, mu__ps_on_effect_writes},
    {MU__EFFECT_WRITES, mu__ps_on_effect_writes},
    {MU__CLOCK_SET, on_mutation},
    {MU__CLOCK_GET, mu__ps_on_clock_get},
    {MU__FENCE, on_fence},
    {MU__FENCED, on_mutation},
    {MU__CLIENT_LOST, on_mutation},
    {MU__TABLE_SWEEP, on_mutation},
    {MU__SNAPSHOT_OPEN, mu__snapshot_on_open},
    {MU__SNAPSHOT_READ, mu__snapshot_on_read},
    {MU__SNAPSHOT_CLOSE, mu__snapshot_on_close},
    {MU__WINDOWS_PUT, on_mutation},
    {MU__RECORDS_DONE, mu__stream_on_records_done},
    {MU__VIEWS_SET, mu__ps_on_views_set},
    {MU__VIEWS_GET, mu__ps_on_views_get},
    {MU__REPLICA_VIEW, mu__ps_on_replica_view},
    {MU__FILL_BEGIN, mu__fill_on_part},
    {MU__FILL_WRITER, mu__fill_on_part},
    {MU__FILL_CLOCK, mu__fill_on_part},
    {MU__FILL_SHARD, mu__fill_on_part},
    {MU__FILL_DATA, mu__fill_on_part},
    {MU__FILL_TABLE, mu__fill_on_part},
    {MU__FILL_ROWS, mu__fill_on_part},
    {MU__FILL_END, mu__fill_on_part},
    {MU__FILL_TAKEN, mu__fill_on_taken},
    {MU__STATUS_GET, mu__ps_on_status_get},
    {MU__TIMER, on_ps_timer},
    {MU__NODE_UP, mu__ps_on_node_up},
    {MU__NODE_DOWN, mu__ps_on_node_down},
    {MU__NODE_TROUBLE, mu__ignore},
};

const struct mu__behavior mu__ps = {
    .name = "ps",
    .state_size = sizeof(struct ps),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_ps,
    .after_batch = after_ps_batch,
    .done = end_ps,
};
