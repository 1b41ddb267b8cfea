/* Where the partitions are, as their servers say with SERVES. A partition is not served
 * before that, nor after the link of its server went down, until it is back and says so
 * again; with a greater generation, any server may take it. Then all that was under way
 * is to be sent again, as after a link that went down: requests of a former generation
 * are dropped. */
#include "actors/variables/actions.h"
#include "actors/variables/batches.h"

#include "actors/keep.h"

#include <inttypes.h>

void mu__vars_guess_placements(struct variables *v)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (v->placements[i].generation == 0)
            v->placements[i].server = mu__partition_home(i, v->servers_count);
}

/* ---- Partitions that are not served any more ---- */

static bool is_served(const struct variables *v, uint32_t partition)
{
    return v->placements[partition].served;
}

/* Send again what the server may have forgotten. Not for parts of an open. */
static void start_over(struct variables *v, struct op_part *part)
{
    if (part->op->call->call.operation == MU__VARIABLE_ASSIGN)
        part->done = 0;
    part->doubted = part->doubted || part->sent > part->done;
    part->sent = part->done;
    part->begun = false;
    mu__vars_unstage(v, part);
    mu__vars_enqueue(v, part);
}

static void recall_parts(struct variables *v, uint32_t server)
{
    struct op_part *part =
        MU__LIST_FIRST(&v->servers[server]->queues[CALLS], struct op_part, node);

    while (part != NULL) {
        struct op_part *next = MU__LIST_NEXT(part, struct op_part, node);

        if (!is_served(v, part->partition)) {
            mu__vars_dequeue(part);
            mu__vars_enqueue(v, part);
            if (!is_open(part->op))
                start_over(v, part);
        }
        part = next;
    }
}

static void recall_flight(struct variables *v, struct flight *flight)
{
    struct op_part *part = flight->part;

    mu__vars_end_flight(v, flight);
    if (part != NULL && !is_open(part->op))
        start_over(v, part);
}

/* What is under way, or in the queue of a server, waits for its partition. */
static void recall_unserved(struct mu__ctx *ctx, struct variables *v)
{
    for (uint32_t i = 0; i < v->servers_count; i++) {
        recall_parts(v, i);
        mu__vars_recall_batches(v, i);
    }
    mu__vars_recall_clocks(v);
    mu__vars_recall_lookups(v);
    for (uint32_t i = 0; i < v->flights_size; i++)
        if (v->flights[i].token != 0 && !is_served(v, v->flights[i].partition))
            recall_flight(v, &v->flights[i]);
    for (struct operation *op = first_operation(&v->calls); op != NULL;
         op = next_operation(op))
        if (is_open(op))
            mu__vars_lose_in_open(ctx, v, op);
}

void mu__vars_lose_placements(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (v->placements[i].server == server)
            v->placements[i].served = false;
    recall_unserved(ctx, v);
}

/* ---- Partitions that are served ---- */

/* The server that a message is from; UINT32_MAX: it is from none. */
static uint32_t find_sending_server(const struct variables *v, const struct mu__msg *msg)
{
    for (uint32_t i = 0; i < v->servers_count; i++)
        if (v->servers[i]->up && mu__pid_equal(pid_of(v, i), msg->from))
            return i;
    return UINT32_MAX;
}

/* Let go what has waited for a partition. */
static void release(struct variables *v, struct placement *placement)
{
    struct mu__list parts = placement->parts;
    struct mu__list batches = placement->batches;
    struct mu__list_node *node;

    placement->parts = placement->batches = (struct mu__list){NULL, NULL};
    while ((node = mu__list_pop(&parts)) != NULL) {
        struct op_part *part = MU__LIST_ENTRY(node, struct op_part, node);

        part->in = NULL;
        mu__vars_enqueue(v, part);
    }
    while ((node = mu__list_pop(&batches)) != NULL) {
        struct write_batch *batch = MU__LIST_ENTRY(node, struct write_batch, node);

        batch->in = NULL;
        mu__vars_put_batch_last(mu__vars_queue_of(v, batch), batch);
    }
}

static void take_placement(struct variables *v, const struct mu__numbered *entry,
                           uint32_t server)
{
    struct placement *placement = &v->placements[entry->partition];

    if (entry->number < placement->generation || entry->number == 0 ||
        (entry->number == placement->generation && placement->server != server))
        return;
    placement->generation = entry->number;
    placement->server = server;
    placement->served = true;
    release(v, placement);
}

/* Take back what is under way of a former generation. */
static void end_former(struct mu__ctx *ctx, struct variables *v, struct mu__view entries)
{
    struct mu__numbered entry;
    bool any = false;

    for (uint32_t i = 0; i < mu__numbered_count(entries); i++) {
        if (!mu__numbered_at(entries, i, &entry) || !is_served(v, entry.partition) ||
            entry.number <= v->placements[entry.partition].generation)
            continue;
        v->placements[entry.partition].served = false;
        any = true;
    }
    if (any)
        recall_unserved(ctx, v);
}

void mu__vars_on_serves(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__serves *body = mu__body(msg);
    uint32_t server = find_sending_server(v, msg);
    struct mu__numbered entry;

    if (server == UINT32_MAX) {
        mu__log(ctx, MU__LOG_WARN,
                "node %" PRIu32 ", which is no parameter server, says "
                "that it serves partitions: ignored",
                msg->from.node);
        return;
    }
    end_former(ctx, v, body->partitions);
    for (uint32_t i = 0; i < mu__numbered_count(body->partitions); i++)
        if (mu__numbered_at(body->partitions, i, &entry))
            take_placement(v, &entry, server);
    mu__vars_pump_all(ctx, v);
}
