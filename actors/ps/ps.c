#include "actors/ps/ps.h"

#include "actors/keep.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/ps/applied.h"
#include "actors/variables/effects.h"
#include "actors/ps/staging.h"
#include "actors/ps/variable_store.h"

#include <inttypes.h>

/* The actor's state. */
enum { CHIEFS_MAX = 16 };

struct ps {
    struct mu__variable_store *store;
    struct mu__staging staging;
    struct mu__applied applied;
    uint32_t chiefs[CHIEFS_MAX];    /* nodes that are up; 0: none */
    uint64_t batches;               /* applied, */
    uint64_t repeated;              /* and not applied a second time */
};

/* ---- Answers ---- */

/* An answer that is lost here leaves its requester waiting until its timeout. `body` is
 * of the struct of `kind`, with `size` bytes. */
static void send_ps_answer(struct mu__ctx *ctx, mu__pid to, uint16_t kind,
                           const void *body, size_t size)
{
    int rv = mu__send_body(ctx, to, kind, body, size);

    if (rv != 0)
        mu__log(ctx, MU__LOG_WARN, "an answer to node %u was lost: %s", to.node,
                mu_strerror(rv));
}

/* Codes travel as positive numbers, messages only with an error. */
static uint32_t code_to_send(int rv)
{
    return (uint32_t)-rv;
}

static struct mu__view message_of(int rv, const char *reason)
{
    return rv == 0 ? (struct mu__view){NULL, 0} : mu__view_str(reason);
}

static void answer_open(struct mu__ctx *ctx, const struct mu__store_opened *opened)
{
    const struct mu__var_opened body = {
        .token = opened->requester.token,
        .code = code_to_send(opened->code),
        .message = message_of(opened->code, opened->reason),
        .variable = opened->id,
        .created = opened->created,
        .creation = opened->creation,
        .shards = opened->code == -MU_EPRECONDITION ? opened->shards : 0,
    };

    send_ps_answer(ctx, opened->requester.pid, MU__VAR_OPENED, &body, sizeof body);
}

/* Send the answers to opens that a request has made due. */
static void answer_opens(struct mu__ctx *ctx, struct ps *ps)
{
    struct mu__store_opened opened;

    while (mu__store_next_opened(ps->store, &opened))
        answer_open(ctx, &opened);
}

/* ---- Requests ---- */

static void on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_open *body = mu__body(msg);
    struct mu__store_open request = {
        .name = body->name,
        .shape = {.dtype = body->dtype, .shards = body->shards},
        .shard = body->shard,
        .bytes = body->size,
        .requester = {msg->from, body->token},
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
        rv = mu__store_open(ps->store, &request, &error);
    if (rv != 0)
        answer_open(ctx, &(struct mu__store_opened){
                             .requester = request.requester,
                             .code = rv,
                             .reason = error.message,
                             .shards = mu__store_shards(ps->store, &request)});
    answer_opens(ctx, ps);
}

static void on_variable_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_read *body = mu__body(msg);
    const struct mu__store_read request = {body->variable, body->offset, body->size};
    struct mu__var_data reply = {.token = body->token};
    mu_error error;
    int rv = mu__store_read(ps->store, &request, &error, &reply.data, &reply.version);

    reply.code = code_to_send(rv);
    reply.message = message_of(rv, error.message);
    send_ps_answer(ctx, msg->from, MU__VAR_DATA, &reply, sizeof reply);
}

static void on_write(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_write *body = mu__body(msg);
    const struct mu__store_write request = {
        .id = body->variable,
        .operation = body->operation,
        .transfer = body->transfer,
        .offset = body->offset,
        .data = body->data,
        .rate = body->rate,
        .momentum = body->momentum,
        .writer = msg->from,
    };
    struct mu__var_written reply = {.token = body->token};
    mu_error error = {.code = 0};

    (void)mu__store_write(ps->store, &request, &error, &reply.version);
    reply.code = code_to_send(error.code);
    reply.message = message_of(error.code, error.message);
    if (body->operation != MU__WRITE_ABANDON)
        send_ps_answer(ctx, msg->from, MU__VAR_WRITTEN, &reply, sizeof reply);
    answer_opens(ctx, ps);
}

/* ---- Writes of runs ---- */

/* The answer to an EFFECT_WRITE. */
struct effect_outcome {
    bool is_none;           /* no answer yet: more pieces come */
    bool again;
    uint64_t staged;
    mu_error error;
};

static struct mu__staging_piece piece_of(const struct mu__msg *msg,
                                         const struct mu__effect_write *body)
{
    return (struct mu__staging_piece){
        .batch = body->batch,
        .origin = body->origin,
        .effect = body->effect,
        .before = body->before,
        .write = {
            .id = body->variable,
            .operation = body->operation,
            .offset = body->offset,
            .data = body->data,
            .rate = body->rate,
            .momentum = body->momentum,
            .writer = msg->from,
        },
    };
}

/* Whether an effect is to be applied; if not, the outcome says why. */
static bool is_pending_effect(struct ps *ps, const struct mu__effect_write *body,
                              struct effect_outcome *outcome)
{
    const struct mu__effect_id id = {body->origin, body->effect, body->effects_done};

    if (id.effect == 0)
        return true;
    switch (mu__applied_check(&ps->applied, &id)) {
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
    ps->repeated++;
    return false;
}

/* Apply all of a batch, or nothing: what can fail is done before the first write. */
static void apply_batch(struct ps *ps, const struct mu__store_write *first,
                        uint64_t effect, struct effect_outcome *outcome)
{
    int rv = mu__store_check_batch(ps->store, first, &outcome->error);

    if (rv != 0)
        return;
    if (effect != 0)
        rv = mu__applied_mark(&ps->applied, effect);
    if (rv != 0) {
        (void)mu_error_set(&outcome->error, rv,
                           "effect %" PRIu64 " cannot be noted: all below %" PRIu64
                           " are finished with", effect, ps->applied.window.base);
        outcome->again = true;
        return;
    }
    mu__store_apply_batch(ps->store, first);
    ps->batches++;
}

/* Stage a piece; the last one applies the batch. A batch refused for lack of room may be
 * sent again, unless it alone has all the room. */
static void stage_piece(struct ps *ps, const struct mu__staging_piece *piece, bool last,
                        struct effect_outcome *outcome)
{
    struct mu__staged staged;
    int rv = mu__staging_add(&ps->staging, piece, &outcome->error, &staged);
    uint32_t node = piece->write.writer.node;

    if (rv != 0) {
        outcome->again = rv == -MU_EEXHAUSTED && ps->staging.batches > 0;
        return;
    }
    if (last) {
        apply_batch(ps, staged.first, piece->effect, outcome);
        mu__staging_drop(&ps->staging, node, piece->batch);
        return;
    }
    outcome->is_none = staged.fresh < MU__EFFECTS_REPORT_BYTES;
    outcome->staged = staged.bytes;
    if (!outcome->is_none)
        mu__staging_reported(&ps->staging, node, piece->batch);
}

static void answer_effect(struct mu__ctx *ctx, const struct mu__msg *msg, uint64_t token,
                          const struct effect_outcome *outcome)
{
    const struct mu__effect_written body = {
        .token = token,
        .code = code_to_send(outcome->error.code),
        .message = message_of(outcome->error.code, outcome->error.message),
        .again = outcome->again,
        .staged = outcome->staged,
    };

    send_ps_answer(ctx, msg->from, MU__EFFECT_WRITTEN, &body, sizeof body);
}

static void on_effect_write(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__effect_write *body = mu__body(msg);
    const struct mu__staging_piece piece = piece_of(msg, body);
    struct effect_outcome outcome;

    outcome.is_none = false;
    outcome.again = false;
    outcome.staged = 0;
    outcome.error.code = 0;
    if (body->operation == MU__WRITE_ABANDON) {
        mu__staging_drop(&ps->staging, msg->from.node, body->batch);
        return;
    }
    if (!is_pending_effect(ps, body, &outcome))
        mu__staging_drop(&ps->staging, msg->from.node, body->batch);
    else if (body->last && body->before == 0)
        apply_batch(ps, &piece.write, body->effect, &outcome);
    else
        stage_piece(ps, &piece, body->last, &outcome);
    if (!outcome.is_none)
        answer_effect(ctx, msg, body->token, &outcome);
}

static bool is_linked_chief(const struct ps *ps, uint32_t node)
{
    for (size_t i = 0; i < CHIEFS_MAX; i++)
        if (ps->chiefs[i] == node && node != 0)
            return true;
    return false;
}

static void on_fence(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__fence *body = mu__body(msg);

    if (!is_linked_chief(ps, msg->from.node)) {
        mu__log(ctx, MU__LOG_WARN, "a fence from node %" PRIu32
                ", which is no chief: ignored", msg->from.node);
        return;
    }
    if (!mu__applied_fence(&ps->applied, body->origin, body->epoch))
        return;
    mu__staging_drop_others(&ps->staging, body->origin);
    mu__log(ctx, MU__LOG_DEBUG, "effects are those of supervisor %" PRIx64
            " from now on", body->origin);
}

/* ---- Nodes ---- */

static void replace_linked_chief(struct ps *ps, uint32_t was, uint32_t is)
{
    for (size_t i = 0; i < CHIEFS_MAX; i++)
        if (ps->chiefs[i] == was) {
            ps->chiefs[i] = is;
            return;
        }
}

static void on_ps_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__node_down *body = mu__body(msg);

    replace_linked_chief(ps, body->node, 0);
    mu__staging_drop_node(&ps->staging, body->node);
    mu__store_node_down(ps->store, body->node);
    answer_opens(ctx, ps);
}

/* Remember chiefs: only they may send FENCE. */
static void on_ps_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__node_up *body = mu__body(msg);

    (void)ctx;
    if (mu__view_is(body->type, "chief") && body->index == 0)
        replace_linked_chief(state, 0, body->node);
}

/* ---- Status ---- */

struct variable_listing {
    mu_value *list;     /* NULL when out of memory */
    size_t left_out;
};

static mu_value *dims_value(const struct mu__shape *shape)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; list != NULL && i < shape->rank; i++) {
        if (mu_value_append(list, mu_value_int((int64_t)shape->dims[i])) != 0) {
            mu_value_free(list);
            return NULL;
        }
    }
    return list;
}

struct status_entry {
    const char *key;
    mu_value *value;
};

/* A map of the entries; takes their values. NULL when out of memory. */
static mu_value *map_of(const struct status_entry *entries, size_t count)
{
    mu_value *map = mu_value_map();
    bool failed = map == NULL;

    for (size_t i = 0; i < count; i++) {
        if (failed)
            mu_value_free(entries[i].value);
        else
            failed = mu_value_set(map, entries[i].key, entries[i].value) != 0;
    }
    if (failed) {
        mu_value_free(map);
        return NULL;
    }
    return map;
}

static mu_value *make_number_value(uint64_t n)
{
    return mu_value_int((int64_t)n);
}

static mu_value *info_value(const struct mu__store_info *info)
{
    const struct status_entry entries[] = {
        {"name", mu_value_string(info->name)},
        {"dtype", mu_value_string(mu_dtype_name((int)info->shape->dtype))},
        {"dims", dims_value(info->shape)},
        {"shard", make_number_value(info->shard)},
        {"shards", make_number_value(info->shape->shards)},
        {"bytes", make_number_value(info->bytes)},
        {"version", make_number_value(info->version)},
        {"ready", mu_value_bool(info->ready)},
        {"reads", make_number_value(info->reads)},
        {"writes", make_number_value(info->writes)},
        {"bytes_read", make_number_value(info->bytes_read)},
        {"bytes_written", make_number_value(info->bytes_written)},
    };

    return map_of(entries, sizeof entries / sizeof entries[0]);
}

/* Takes `item`. A list that lacks memory for one item is dropped as a whole. */
static void append_listing_item(struct variable_listing *listing, mu_value *item)
{
    if (listing->list == NULL) {
        mu_value_free(item);
        return;
    }
    if (mu_value_append(listing->list, item) != 0) {
        mu_value_free(listing->list);
        listing->list = NULL;
    }
}

static void list_variable(void *user, const struct mu__store_info *info)
{
    struct variable_listing *listing = user;

    if (listing->list != NULL && mu_value_count(listing->list) >= MU__PS_STATUS_MAX)
        listing->left_out++;
    else
        append_listing_item(listing, info_value(info));
}

mu_value *mu__ps_status(const void *ps_state)
{
    const struct ps *ps = ps_state;
    struct variable_listing listing = {mu_value_list(), 0};

    if (listing.list == NULL)
        return NULL;
    mu__store_each(ps->store, list_variable, &listing);
    if (listing.left_out > 0) {
        const struct status_entry entry = {"left_out",
                                           make_number_value(listing.left_out)};

        append_listing_item(&listing, map_of(&entry, 1));
    }
    return listing.list;
}

void mu__ps_effects(const void *ps_state, struct mu__ps_effects *ret_effects)
{
    const struct ps *ps = ps_state;

    *ret_effects = (struct mu__ps_effects){
        .origin = ps->applied.origin,
        .epoch = ps->applied.epoch,
        .batches = ps->batches,
        .repeated = ps->repeated,
        .span = ps->applied.window.end - ps->applied.window.base,
        .staged_bytes = ps->staging.bytes,
        .staged_batches = ps->staging.batches,
    };
}

static void on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__status_get *body = mu__body(msg);
    mu_value *value = mu__ps_status(state);
    struct mu__status reply = {.token = body->token};
    struct mu__buf *packed = mu__pack_value(value, &reply.status);

    if (packed != NULL)
        send_ps_answer(ctx, msg->from, MU__STATUS, &reply, sizeof reply);
    else
        mu__log(ctx, MU__LOG_WARN, "no status: out of memory");
    mu_value_free(value);
    mu__buf_unref(packed);
}

/* ---- Start and end ---- */

static int init_ps(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct ps *ps = state;
    int rv;

    ps->store = mu__store_new(arg == NULL ? &mu__store_limits_default : arg,
                              mu__random(ctx));
    if (ps->store == NULL)
        return -MU_ENOMEM;
    mu__staging_init(&ps->staging, &mu__staging_limits_default);
    rv = mu__watch_nodes(ctx);
    if (rv != 0)
        mu__store_free(ps->store);
    return rv;
}

static void end_ps(struct mu__ctx *ctx, void *state)
{
    struct ps *ps = state;

    (void)ctx;
    mu__staging_done(&ps->staging);
    mu__applied_done(&ps->applied);
    mu__store_free(ps->store);
}

static const struct mu__handler handlers[] = {
    {MU__VAR_OPEN, on_open},
    {MU__VAR_READ, on_variable_read},
    {MU__VAR_WRITE, on_write},
    {MU__EFFECT_WRITE, on_effect_write},
    {MU__FENCE, on_fence},
    {MU__STATUS_GET, on_status_get},
    {MU__NODE_UP, on_ps_node_up},
    {MU__NODE_DOWN, on_ps_node_down},
    {MU__NODE_TROUBLE, mu__ignore},
};

const struct mu__behavior mu__ps = {
    .name = "ps",
    .state_size = sizeof(struct ps),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_ps,
    .done = end_ps,
};
