/* How a learner gets what a partition holds, while work goes on.
 *
 * In one turn it gets the windows of what was applied, and a list of the shards, with
 * zeros for their content; then the content, piece by piece, each as it is when it is
 * sent. From the first message on it gets the records too, and applies them to what it
 * has: what they do to bytes that are not filled yet is overwritten by the pieces. So
 * after the last piece it holds what the primary held then. */
#include "actors/ps/tables/tables.h"

#include "actors/keep.h"
#include "actors/ps/windows.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static mu__pid replica_pid(const struct partition *p)
{
    return (mu__pid){p->streams[TO_LEARNER].node, MU__PS};
}

/* ---- The window of all fillings ----
 *
 * What is under way is before what programs write. So a link that acknowledges at once
 * has no more under way than keeps it busy. */

enum { AT_ONCE_MS = 1, SOON_MS = 10, LATE_MS = 100 };

static void note_fill_sent(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           uint64_t bytes)
{
    struct fill_window *window = &ps->fill_window;

    p->filling.sent += bytes;
    window->in_flight += bytes;
    if (window->probe_ms != 0)
        return;
    window->probe_left = window->in_flight;
    window->probe_ms = mu__now_ms(ctx);
}

static void adapt_fill_window(struct mu__ctx *ctx, struct fill_window *window)
{
    uint64_t for_ms = mu__now_ms(ctx) - window->probe_ms;

    window->probe_ms = 0;
    if ((for_ms <= AT_ONCE_MS || for_ms > LATE_MS) && window->size > FILL_WINDOW_MIN)
        window->size /= 2;
    else if (for_ms > AT_ONCE_MS && for_ms <= SOON_MS && window->size < FILL_WINDOW_MAX)
        window->size *= 2;
}

static void note_fill_taken(struct mu__ctx *ctx, struct ps *ps, uint64_t bytes)
{
    struct fill_window *window = &ps->fill_window;

    window->in_flight -= bytes;
    if (window->probe_ms == 0)
        return;
    window->probe_left -= bytes < window->probe_left ? bytes : window->probe_left;
    if (window->probe_left == 0)
        adapt_fill_window(ctx, window);
}

static bool has_fill_room(const struct ps *ps)
{
    return ps->fill_window.in_flight < ps->fill_window.size;
}

/* Nothing of it is under way any more. */
void mu__fill_end(struct ps *ps, struct partition *p)
{
    if (p->role == SERVING)
        ps->fill_window.in_flight -= p->filling.sent - p->filling.taken;
    p->filling = (struct filling){.active = false};
}

/* ---- The primary ---- */

/* False: the replica is lost. */
static bool send_fill(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      uint16_t kind, const void *body, size_t size)
{
    if (mu__send_body(ctx, replica_pid(p), kind, body, size) == 0)
        return true;
    mu__stream_lose(ps, p, TO_LEARNER, MU__REPLICA_LOST);
    return false;
}

static bool put_fill_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           mu__fill_put_fn put)
{
    const struct mu__store_position position = mu__store_get_position(p->store);
    struct mu__fill_begin body = {
        .partition = p->view.partition,
        .view = p->view.number,
        .record = p->record,
        .serial = position.serial,
        .creations = position.creations,
        .fenced = p->applied.fenced,
        .epoch = p->applied.epoch,
        .origin = p->applied.origin,
        .base = p->applied.window.base,
        .end = p->applied.window.end,
    };
    uint8_t *bits = mu__window_pack(&p->applied.window, &body.applied);
    bool sent;

    if (bits == NULL)
        return false;
    sent = put(ctx, ps, p, MU__FILL_BEGIN, &body, sizeof body);
    free(bits);
    return sent;
}

static bool put_fill_writer(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__known_writer *writer, mu__fill_put_fn put)
{
    struct mu__fill_writer body = {
        .partition = p->view.partition,
        .view = p->view.number,
        .origin = writer->origin,
        .base = writer->window.base,
        .end = writer->window.end,
    };
    uint8_t *bits = mu__window_pack(&writer->window, &body.applied);
    bool sent;

    if (bits == NULL)
        return false;
    sent = put(ctx, ps, p, MU__FILL_WRITER, &body, sizeof body);
    free(bits);
    return sent;
}

/* The writer that wrote last is sent last, so that the order of use is the same. */
bool mu__fill_put_windows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                          mu__fill_put_fn put)
{
    const struct mu__list_node *node = p->writers.by_use.last;

    if (!put_fill_begin(ctx, ps, p, put))
        return false;
    while (node != NULL) {
        if (!put_fill_writer(ctx, ps, p,
                             MU__LIST_ENTRY(node, struct mu__known_writer, node), put))
            return false;
        node = node->prev;
    }
    return mu__ps_put_clocks(ctx, ps, p, put) && mu__ps_put_tables(ctx, ps, p, put);
}

bool mu__fill_put_shard(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__store_shard *shard, mu__fill_put_fn put)
{
    uint8_t dims[MU__DIMS_BYTES_MAX];
    const struct mu__fill_shard body = {
        .partition = p->view.partition,
        .view = p->view.number,
        .name = shard->name,
        .dtype = shard->shape.dtype,
        .dims = {dims, mu__shape_pack_dims(&shard->shape, dims)},
        .shard = shard->shard,
        .shards = shard->shape.shards,
        .variable = shard->id,
        .creation = shard->creation,
        .version = shard->version,
        .ready = shard->ready,
        .rule = shard->rule,
        .step = shard->step,
    };

    return put(ctx, ps, p, MU__FILL_SHARD, &body, sizeof body);
}

void mu__fill_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct mu__store_shard shard;

    mu__fill_end(ps, p);
    p->filling.active = true;
    if (ps->fill_window.size == 0)
        ps->fill_window.size = FILL_WINDOW_MIN;
    if (!mu__fill_put_windows(ctx, ps, p, send_fill)) {
        mu__stream_lose(ps, p, TO_LEARNER, MU__REPLICA_LOST);
        return;
    }
    mu__store_visit(p->store);
    while (mu__store_visit_next(p->store, &shard))
        if (!mu__fill_put_shard(ctx, ps, p, &shard, send_fill))
            return;
    mu__store_visit(p->store);
    mu__fill_go_on(ctx, ps, p);
}

static uint64_t bytes_to_fill(const struct filling *filling,
                              const struct mu__store_shard *shard)
{
    return filling->slots ? shard->slots_bytes : shard->bytes;
}

/* The shard of which bytes are to be sent, from the one that was begun on; false: all
 * were sent. One that has got another content is begun anew. */
static bool find_bytes(struct partition *p, struct mu__store_shard *ret_shard)
{
    struct filling *filling = &p->filling;

    if (filling->id != 0 && mu__store_visited(p->store, ret_shard)) {
        if (ret_shard->id != filling->id)
            filling->slots = false;
        if (ret_shard->id != filling->id)
            filling->offset = 0;
        if (filling->offset < bytes_to_fill(filling, ret_shard)) {
            filling->id = ret_shard->id;
            return true;
        }
        if (!filling->slots && ret_shard->slots_bytes > 0) {
            filling->slots = true;
            filling->offset = 0;
            return true;
        }
    }
    if (!mu__store_visit_next(p->store, ret_shard))
        return false;
    filling->id = ret_shard->id;
    filling->slots = false;
    filling->offset = 0;
    return true;
}

static bool send_bytes(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       const struct mu__store_shard *shard)
{
    struct filling *filling = &p->filling;
    const uint8_t *from = filling->slots ? shard->slots : shard->data;
    uint64_t left = bytes_to_fill(filling, shard) - filling->offset;
    uint32_t size = left < FILL_PIECE_BYTES ? (uint32_t)left : FILL_PIECE_BYTES;
    const struct mu__fill_data body = {
        .partition = p->view.partition,
        .view = p->view.number,
        .variable = shard->id,
        .slots = filling->slots,
        .offset = filling->offset,
        .data = {from + filling->offset, size},
    };

    if (!send_fill(ctx, ps, p, MU__FILL_DATA, &body, sizeof body))
        return false;
    filling->offset += size;
    note_fill_sent(ctx, ps, p, size);
    return true;
}

/* Some rows of tables; false: there are none, or they could not be sent. */
static bool send_rows(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct mu__fill_rows body;

    do {
        if (!mu__ps_next_rows(p, &p->filling.rows, &body) ||
            !send_fill(ctx, ps, p, MU__FILL_ROWS, &body, sizeof body))
            return false;
        note_fill_sent(ctx, ps, p, body.rows.size);
    } while (p->filling.rows.is_within);
    return true;
}

static void send_fill_end(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    const struct mu__fill_end body = {p->view.partition, p->view.number, p->record,
                                      p->sum};

    p->streams[TO_LEARNER].checked_from = p->record + 1;
    if (!send_fill(ctx, ps, p, MU__FILL_END, &body, sizeof body))
        return;
    p->filling.ended = true;
    note_fill_sent(ctx, ps, p, 1);
}

void mu__fill_go_on(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct filling *filling = &p->filling;
    struct mu__store_shard shard;

    while (filling->active && !filling->ended && has_fill_room(ps) &&
           !mu__is_behind(ctx, p->streams[TO_LEARNER].node)) {
        if (!find_bytes(p, &shard)) {
            if (!send_rows(ctx, ps, p) && filling->active)
                send_fill_end(ctx, ps, p);
        } else if (!send_bytes(ctx, ps, p, &shard)) {
            return;
        }
    }
    if (filling->active && !filling->ended)
        mu__stream_arm(ctx, ps);
}

/* The learner has all that was there when the last piece was sent. From now on nothing is
 * answered that it has not. */
static void await_level(struct ps *ps, struct partition *p)
{
    mu__fill_end(ps, p);
    p->streams[TO_LEARNER].needed = true;
    p->streams[TO_LEARNER].level_at = p->record;
    mu__fill_check_level(ps, p);
}

/* The chief may have made it the backup when that is heard of: so what was answered
 * without it has to be there, too. */
void mu__fill_check_level(struct ps *ps, struct partition *p)
{
    struct stream *stream = &p->streams[TO_LEARNER];

    if (!stream->needed || stream->fate != 0 || stream->acked < stream->level_at)
        return;
    stream->fate = MU__REPLICA_LEVEL;
    ps->news_due = true;
}

/* All go on that have been waiting for room. */
static void go_on_with_all(struct mu__ctx *ctx, struct ps *ps)
{
    for (uint32_t i = 0; i < MU__PARTITIONS && has_fill_room(ps); i++) {
        struct partition *p = ps->partitions[i];

        if (p != NULL && p->role == SERVING && p->filling.active)
            mu__fill_go_on(ctx, ps, p);
    }
}

void mu__fill_on_taken(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__fill_taken *body = mu__body(msg);
    struct partition *p = ps->partitions[body->partition];

    if (p == NULL || p->role != SERVING || p->view.number != body->view ||
        p->streams[TO_LEARNER].node != msg->from.node || !p->filling.active ||
        body->bytes <= p->filling.taken || body->bytes > p->filling.sent)
        return;
    note_fill_taken(ctx, ps, body->bytes - p->filling.taken);
    p->filling.taken = body->bytes;
    if (p->filling.ended && p->filling.taken == p->filling.sent)
        await_level(ps, p);
    go_on_with_all(ctx, ps);
}

/* ---- The learner ---- */

/* What cannot be taken is told to the primary. */
static void check_taken(struct mu__ctx *ctx, struct ps *ps, struct partition *p, int rv,
                        const mu_error *error)
{
    if (rv == 0)
        return;
    mu__log(ctx, MU__LOG_ERROR, "partition %" PRIu32 " cannot be filled: %s",
            p->view.partition, error->message);
    p->broken = true;
    mu__stream_mark(ps, p);
}

static void take_fill_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__fill_begin *body)
{
    const struct mu__packed_window window = {body->base, body->end, body->applied};
    mu_error error = {.code = 0};
    int rv;

    if (p->filling.active)
        return;
    p->filling.active = true;
    p->generation = mu__generation_of(body->view);
    p->record = body->record;
    mu__store_set_position(p->store,
                           (struct mu__store_position){body->serial, body->creations});
    if (body->fenced)
        (void)mu__applied_fence(&p->applied, body->origin, body->epoch);
    p->applied.origin = body->origin;
    rv = mu__window_unpack(&window, &p->applied.window);
    if (rv != 0)
        (void)mu_error_set(&error, rv, "its window of effects: %s", mu_strerror(rv));
    check_taken(ctx, ps, p, rv, &error);
}

static void take_fill_writer(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                             const struct mu__fill_writer *body)
{
    const struct mu__packed_window window = {body->base, body->end, body->applied};
    struct mu__known_writer *writer =
        body->origin == 0 ? NULL : mu__writers_need(&p->writers, body->origin);
    mu_error error = {.code = 0};
    int rv = -MU_ENOMEM;

    if (writer != NULL)
        rv = mu__window_unpack(&window, &writer->window);
    if (rv != 0)
        (void)mu_error_set(&error, rv, "its window of writes: %s", mu_strerror(rv));
    check_taken(ctx, ps, p, rv, &error);
}

static void take_fill_shard(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__fill_shard *body)
{
    struct mu__store_shard shard = {
        .name = body->name,
        .shape = {.dtype = body->dtype, .shards = body->shards},
        .shard = body->shard,
        .id = body->variable,
        .creation = body->creation,
        .version = body->version,
        .ready = body->ready,
        .rule = body->rule,
        .step = body->step,
    };
    uint64_t offset;
    mu_error error = {.code = 0};
    int rv = mu__shape_unpack_dims(body->dims, &shard.shape);

    if (rv == 0)
        rv = mu__shape_check(&shard.shape, &error);
    if (rv == 0 && shard.shard >= shard.shape.shards)
        rv = mu_error_set(&error, -MU_EINVALID, "shard %" PRIu32 " of %" PRIu32,
                          shard.shard, shard.shape.shards);
    if (rv == 0) {
        mu__shape_shard(&shard.shape, shard.shard, &offset, &shard.bytes);
        rv = mu__store_put_shard(p->store, &shard, &error);
    }
    check_taken(ctx, ps, p, rv, &error);
}

static uint32_t take_fill_data(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                               const struct mu__fill_data *body)
{
    const struct mu__store_bytes bytes = {body->variable, body->slots, body->offset,
                                          body->data};
    mu_error error = {.code = 0};

    check_taken(ctx, ps, p, mu__store_put_bytes(p->store, &bytes, &error), &error);
    return body->data.size;
}

static void take_fill_table(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__fill_table *body)
{
    mu_error error = {.code = 0};

    check_taken(ctx, ps, p, mu__ps_take_fill_table(p, body, &error), &error);
}

static uint32_t take_fill_rows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                               const struct mu__fill_rows *body)
{
    mu_error error = {.code = 0};

    check_taken(ctx, ps, p, mu__ps_take_fill_rows(p, body, &error), &error);
    return body->rows.size;
}

static uint32_t take_fill_end(struct ps *ps, struct partition *p,
                              const struct mu__fill_end *body)
{
    if (body->record != p->record)
        p->broken = true;
    p->filling.ended = true;
    p->sum = body->sum;
    mu__stream_mark(ps, p);
    return 1;
}

uint32_t mu__fill_take(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       const struct mu__msg *msg)
{
    const void *body = msg->body;
    uint32_t bytes = 0;

    if (msg->kind == MU__FILL_BEGIN)
        take_fill_begin(ctx, ps, p, body);
    else if (!p->filling.active)
        return 0;
    else if (msg->kind == MU__FILL_WRITER)
        take_fill_writer(ctx, ps, p, body);
    else if (msg->kind == MU__FILL_CLOCK)
        mu__ps_take_fill_clock(ctx, ps, p, body);
    else if (msg->kind == MU__FILL_SHARD)
        take_fill_shard(ctx, ps, p, body);
    else if (msg->kind == MU__FILL_DATA)
        bytes = take_fill_data(ctx, ps, p, body);
    else if (msg->kind == MU__FILL_TABLE)
        take_fill_table(ctx, ps, p, body);
    else if (msg->kind == MU__FILL_ROWS)
        bytes = take_fill_rows(ctx, ps, p, body);
    else
        bytes = take_fill_end(ps, p, body);
    return bytes;
}

static void send_taken(struct mu__ctx *ctx, struct partition *p, uint32_t node,
                       uint64_t bytes)
{
    struct mu__fill_taken body = {.partition = p->view.partition, .view = p->view.number};

    p->filling.taken += bytes;
    body.bytes = p->filling.taken;
    mu__ps_send(ctx, (mu__pid){node, MU__PS}, MU__FILL_TAKEN, &body, sizeof body);
}

/* What all messages of a filling begin with. */
struct fill_head {
    uint32_t partition;
    uint64_t view;
};

#define FILL_BEGINS_ALIKE(type)                                                         \
    _Static_assert(offsetof(struct fill_head, partition) ==                             \
                           offsetof(struct type, partition) &&                          \
                       offsetof(struct fill_head, view) == offsetof(struct type, view), \
                   "a message of a filling begins with partition and view")

FILL_BEGINS_ALIKE(mu__fill_begin);
FILL_BEGINS_ALIKE(mu__fill_writer);
FILL_BEGINS_ALIKE(mu__fill_clock);
FILL_BEGINS_ALIKE(mu__fill_shard);
FILL_BEGINS_ALIKE(mu__fill_data);
FILL_BEGINS_ALIKE(mu__fill_table);
FILL_BEGINS_ALIKE(mu__fill_rows);
FILL_BEGINS_ALIKE(mu__fill_end);

void mu__fill_on_part(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct fill_head head;
    struct partition *p;
    uint32_t bytes;

    memcpy(&head, mu__body(msg), sizeof head);
    p = mu__stream_replica_of(ctx, state, head.partition, head.view, msg->from.node);
    if (p == NULL || p->role != LEARNING || p->view.number != head.view)
        return;
    bytes = mu__fill_take(ctx, state, p, msg);
    if (bytes > 0)
        send_taken(ctx, p, msg->from.node, bytes);
}
