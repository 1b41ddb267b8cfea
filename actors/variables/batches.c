/* What a run writes to variables: its list, its batches, one for each partition, and
 * their pieces. */
#include "actors/variables/batches.h"

#include "actors/keep.h"
#include "actors/ps/variable_store.h"
#include "actors/variables/opened_variable.h"
#include "actors/worker/function_run.h"
#include "runtime/message/block_pool.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACTIVE_MAX = 4,              /* large batches under way with one server */
    FRAMED_WRITES_MAX = 64,      /* of a batch of several that goes in one message, */
    FRAMED_BYTES_MAX = 64 << 10, /* and their bytes */
    EFFECT_BLOCK_MIN = 4 << 10,  /* of memory for several writes of a list */
    EFFECT_BLOCK_MAX = 64 << 10
};

_Static_assert(ACTIVE_MAX *MU__EFFECTS_REPORT_BYTES < MU__WINDOW_BYTES,
               "what servers have not told of would fill the window");

/* ---- The list ---- */

/* Memory of several small writes. */
struct mu__effect_block {
    uint32_t refs; /* of writes, and of the list whose next ones it is for */
    uint32_t used;
    uint32_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static void unref_effect_block(struct mu__effect_block *block)
{
    if (block != NULL && --block->refs == 0)
        mu__block_put(block);
}

/* One for the next writes of a list: the larger, the more the list has. */
static struct mu__effect_block *new_effect_block(struct mu__effects *effects)
{
    uint32_t size = EFFECT_BLOCK_MIN;
    struct mu__effect_block *block;

    while (size < EFFECT_BLOCK_MAX && size < effects->bytes)
        size *= 2;
    block = mu__block_get(sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->refs = 1;
    block->used = 0;
    block->size = size;
    unref_effect_block(effects->block);
    effects->block = block;
    return block;
}

/* The first write of a list, and each large one, has memory of its own. */
static struct mu__effect *new_effect(struct mu__effects *effects, size_t bytes)
{
    size_t aligned = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct mu__effect_block *block = effects->block;
    struct mu__effect *effect;

    if (effects->last == NULL || aligned > EFFECT_BLOCK_MIN) {
        effect = mu__block_get(bytes);
        if (effect != NULL)
            effect->block = NULL;
        return effect;
    }
    if (block == NULL || aligned > block->size - block->used)
        block = new_effect_block(effects);
    if (block == NULL)
        return NULL;
    effect = (struct mu__effect *)(void *)(block->bytes + block->used);
    effect->block = block;
    block->used += (uint32_t)aligned;
    block->refs++;
    return effect;
}

static void free_effect(struct mu__effect *effect)
{
    mu__opened_variable_unref(effect->opened);
    if (effect->block == NULL)
        mu__block_put(effect);
    else
        unref_effect_block(effect->block);
}

int mu__effects_append(struct mu__effects *effects, const struct mu__effect *write,
                       unsigned char **ret_data)
{
    uint64_t bytes =
        write->size < MU__EFFECT_BYTES_MIN ? MU__EFFECT_BYTES_MIN : write->size;
    struct mu__effect_block *block;
    struct mu__effect *effect;

    assert(write->size > 0);
    if (bytes > MU__EFFECTS_BYTES_MAX - effects->bytes)
        return -MU_EEXHAUSTED;
    effect = new_effect(effects, sizeof *effect + (size_t)write->size + write->rule.size);
    if (effect == NULL)
        return -MU_ENOMEM;
    block = effect->block;
    *effect = *write;
    effect->block = block;
    effect->next = NULL;
    if (effect->opened != NULL)
        (void)mu__opened_variable_ref(effect->opened);
    effect->rule.data = effect->data + write->size;
    if (write->rule.size > 0)
        memcpy(effect->data + write->size, write->rule.data, write->rule.size);
    if (effects->last == NULL)
        effects->first = effect;
    else
        effects->last->next = effect;
    effects->last = effect;
    effects->bytes += bytes;
    *ret_data = effect->data;
    return 0;
}

int mu__effects_add(struct mu__effects *effects, const struct mu__effect *write,
                    const void *data)
{
    unsigned char *to;
    int rv = mu__effects_append(effects, write, &to);

    if (rv == 0)
        memcpy(to, data, (size_t)write->size);
    return rv;
}

void mu__effects_cut(struct mu__effects *effects, struct mu__effect *last, uint64_t bytes)
{
    struct mu__effect *effect = last == NULL ? effects->first : last->next;

    while (effect != NULL) {
        struct mu__effect *next = effect->next;

        free_effect(effect);
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
    unref_effect_block(effects->block);
    effects->block = NULL;
}

/* ---- Planning ---- */

static struct write_batch *first_write_batch(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct write_batch, node);
}

/* Make the batch of a run for a partition, if it has none. */
static int need_batch(struct variables *v, struct operation *op, uint32_t partition)
{
    struct placement *placement = &v->placements[partition];
    struct write_batch *batch;

    if (placement->planned != NULL)
        return 0;
    batch = first_write_batch(&v->spares.batches);
    if (batch == NULL)
        batch = malloc(sizeof *batch);
    else
        (void)mu__list_pop(&v->spares.batches);
    if (batch == NULL)
        return -MU_ENOMEM;
    *batch = (struct write_batch){.partition = partition,
                                  .queue = SINGLES,
                                  .is_of_tables = true,
                                  .op = op,
                                  .sibling = op->batches,
                                  .link = &op->batches};
    if (op->batches != NULL)
        op->batches->link = &batch->sibling;
    op->batches = batch;
    placement->planned = batch;
    return 0;
}

static uint32_t piece_max(const struct mu__effect *write)
{
    return write->piece == 0 ? MU__PIECE_BYTES_MAX : write->piece;
}

static bool is_of_one_message(const struct write_batch *batch)
{
    if (batch->writes_count == 1)
        return batch->first->size <= piece_max(batch->first);
    return batch->is_of_tables && batch->writes_count <= FRAMED_WRITES_MAX &&
           batch->bytes <= FRAMED_BYTES_MAX;
}

static void plan_write(struct write_batch *batch, struct mu__effect *write)
{
    if (batch->first == NULL)
        batch->first = write;
    else
        batch->last->next = write;
    batch->last = write;
    batch->writes_count++;
    batch->bytes += write->size;
    batch->is_of_tables = batch->is_of_tables && mu__write_is_of_table(write->operation);
    if (!is_of_one_message(batch))
        batch->queue = LARGES;
}

/* Link the writes of a run into one list again, sorted by partition. */
static void join_writes(const struct operation *op, struct mu__effects *effects)
{
    effects->first = NULL;
    for (struct write_batch *batch = op->batches; batch != NULL; batch = batch->sibling) {
        if (effects->first == NULL)
            effects->first = batch->first;
        else
            effects->last->next = batch->first;
        effects->last = batch->last;
    }
    effects->last->next = NULL;
}

int mu__vars_plan_batches(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct mu__effects *effects = &op->run->effects;
    struct mu__effect *write = effects->first;
    int rv = mu__vars_need_servers(ctx, v, 1);

    for (; write != NULL && rv == 0; write = write->next)
        rv = need_batch(v, op, write->partition);
    if (rv == 0 && effects->first != NULL) {
        for (write = effects->first; write != NULL; write = write->next)
            plan_write(v->placements[write->partition].planned, write);
        join_writes(op, effects);
    }
    for (struct write_batch *batch = op->batches; batch != NULL; batch = batch->sibling)
        v->placements[batch->partition].planned = NULL;
    return rv;
}

void mu__vars_rewind_batch(struct variables *v, struct write_batch *batch)
{
    struct flight *flight = mu__vars_flight_of(v, batch->token);

    if (flight != NULL)
        mu__vars_end_flight(v, flight);
    batch->token = 0;
    batch->at = batch->first;
    batch->offset = 0;
    batch->writes_left = batch->writes_count;
    batch->pieces = 0;
}

/* ---- Pieces ---- */

static uint32_t piece_size(const struct write_batch *batch)
{
    uint64_t left = batch->at->size - batch->offset;
    uint32_t most = piece_max(batch->at);

    return left < most ? (uint32_t)left : most;
}

/* A run has a number for the job, by which its closure counts once; or its batches have
 * some of this actor, so that they may be sent again. */
static void fill_number(struct mu__ctx *ctx, struct variables *v,
                        const struct write_batch *batch, struct mu__effect_write *body)
{
    const struct mu__effects *effects = &batch->op->run->effects;

    body->own = effects->effect == 0;
    body->origin = body->own ? mu__vars_need_origin(ctx, v) : effects->origin;
    body->effect = body->own ? batch->numbered.first : effects->effect;
    body->effects_done =
        body->own ? mu__vars_settled(v, batch->partition) : effects->effects_done;
}

void mu__vars_fill_piece(struct mu__ctx *ctx, struct variables *v,
                         const struct write_batch *batch, struct mu__effect_write *body)
{
    const struct mu__effect *at = batch->at;
    uint32_t size = piece_size(batch);

    body->token = batch->token;
    body->batch = batch->token;
    body->variable = at->variable;
    body->operation = at->operation;
    body->offset = at->offset + batch->offset;
    body->data = (struct mu__view){at->data + batch->offset, size};
    body->last = batch->writes_left == 1 && batch->offset + size == at->size;
    body->rule = at->rule;
    body->before = batch->pieces;
    body->partition = batch->partition;
    body->generation = v->placements[batch->partition].generation;
    fill_number(ctx, v, batch, body);
}

bool mu__vars_move_on(struct variables *v, struct write_batch *batch,
                      struct flight *flight)
{
    uint32_t size = piece_size(batch);
    uint32_t weight = (uint32_t)mu__effect_weight(size);

    batch->pieces++;
    flight->offset += weight;
    mu__vars_note_sent(v, flight, weight);
    batch->offset += size;
    if (batch->offset < batch->at->size)
        return true;
    batch->offset = 0;
    batch->at = batch->at->next;
    return --batch->writes_left > 0;
}

struct flight *mu__vars_begin_batch(struct variables *v, struct write_batch *batch)
{
    struct flight *flight;

    if (batch->token != 0)
        return mu__vars_flight_of(v, batch->token);
    flight = mu__vars_flight_new(v, batch->partition, batch->queue, MU__EFFECT_WRITTEN);
    if (flight == NULL)
        return NULL;
    flight->batch = batch;
    batch->token = flight->token;
    if (batch->op->run->effects.effect == 0 && batch->numbered.first == 0)
        mu__vars_number(v, batch->partition, &batch->numbered, 1);
    return flight;
}

static int send_piece_of(struct mu__ctx *ctx, struct variables *v,
                         const struct write_batch *batch, const struct flight *flight)
{
    uint16_t kind = batch->op->writer.table != NULL ? MU__OWN_WRITE : MU__EFFECT_WRITE;
    struct mu__msg *msg = flight == NULL ? NULL : mu__msg_new(ctx, kind);

    if (msg == NULL)
        return -MU_ENOMEM;
    mu__vars_fill_piece(ctx, v, batch, mu__body(msg));
    return mu__send_borrowed(ctx, pid_of(v, flight->server), msg);
}

/* NULL: there is none, or the window is full. */
static struct write_batch *next_batch(struct variable_server *server, enum queue queue)
{
    uint32_t count = 0;

    if (server->under_way[queue] >= MU__WINDOW_BYTES)
        return NULL;
    if (queue == SINGLES)
        return first_write_batch(&server->queues[SINGLES]);
    for (struct mu__list_node *at = server->active.first; at != NULL; at = at->next)
        count++;
    if (count < ACTIVE_MAX && !mu__list_is_empty(&server->queues[LARGES]))
        mu__vars_put_batch_first(&server->active,
                                 first_write_batch(&server->queues[LARGES]));
    return first_write_batch(&server->active);
}

int mu__vars_send_batch(struct mu__ctx *ctx, struct variables *v, uint32_t index,
                        enum queue queue)
{
    struct variable_server *server = v->servers[index];
    struct write_batch *batch = next_batch(server, queue);
    struct flight *flight;
    int rv;

    if (batch == NULL)
        return 0;
    if (queue == SINGLES && batch->is_of_tables)
        return mu__vars_send_frame(ctx, v, index);
    flight = mu__vars_begin_batch(v, batch);
    rv = send_piece_of(ctx, v, batch, flight);
    if (rv == 0) {
        mu__vars_put_batch_last(mu__vars_move_on(v, batch, flight) ? &server->active
                                                                   : &server->flying,
                                batch);
        return 1;
    }
    if (batch->pieces == 0)
        mu__vars_rewind_batch(v, batch);
    if (mu__send_is_transient(rv))
        return rv;
    mu__vars_fail(ctx, v, batch->op, index, rv, "a message could not be sent");
    return 1;
}
