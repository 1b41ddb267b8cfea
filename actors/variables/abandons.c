/* What was begun on a server and was given up: the server is told, now or as soon as its
 * link has room. */
#include "actors/variables/actions.h"
#include "actors/variables/batches.h"
#include "actors/variables/partition_actions.h"

#include "actors/keep.h"
#include "actors/ps/variable_store.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ABANDONS_MAX = 4096 }; /* beyond, servers learn it only when this node ends */

/* An ABANDON that found no room in its link, and is owed to a server. */
struct pending_abandon {
    struct mu__list_node node;
    mu__pid to;
    uint32_t partition;
    uint64_t generation;
    uint64_t snapshot; /* its number; 0: no snapshot, */
    uint64_t batch;    /* but one with this token; 0: of a call, by the last two */
    bool own;          /* of a program, not of a run */
    uint64_t variable;
    uint64_t transfer;
};

static int try_abandon(struct mu__ctx *ctx, const struct pending_abandon *abandon)
{
    const struct mu__effect_write batch = {.token = abandon->batch,
                                           .batch = abandon->batch,
                                           .operation = MU__WRITE_ABANDON,
                                           .own = abandon->own,
                                           .partition = abandon->partition,
                                           .generation = abandon->generation};
    const struct mu__var_write body = {
        .operation = MU__WRITE_ABANDON,
        .variable = abandon->variable,
        .transfer = abandon->transfer,
        .partition = abandon->partition,
        .generation = abandon->generation,
    };
    const struct mu__snapshot_close close = {.snapshot = abandon->snapshot,
                                             .partition = abandon->partition,
                                             .generation = abandon->generation};

    if (abandon->snapshot != 0)
        return mu__send_body(ctx, abandon->to, MU__SNAPSHOT_CLOSE, &close, sizeof close);
    if (abandon->batch != 0)
        return mu__send_body(ctx, abandon->to,
                             abandon->own ? MU__OWN_WRITE : MU__EFFECT_WRITE, &batch,
                             sizeof batch);
    return mu__send_body(ctx, abandon->to, MU__VAR_WRITE, &body, sizeof body);
}

/* Nothing answers an ABANDON. Without it, others would wait for a shard that we do not
 * create for as long as this node lives, and pieces of a batch would stay. A server that
 * is down forgets it anyway. */
static void report_abandon(struct mu__ctx *ctx, struct variables *v,
                           const struct pending_abandon *abandon)
{
    struct pending_abandon *stored;
    int rv = try_abandon(ctx, abandon);

    if (!mu__send_is_transient(rv) || rv == -MU_EUNAVAILABLE)
        return;
    stored = v->abandons_count < ABANDONS_MAX ? malloc(sizeof *stored) : NULL;
    if (stored == NULL) {
        mu__log(ctx, MU__LOG_WARN, "node %" PRIu32 " is not told what was given up",
                abandon->to.node);
        return;
    }
    *stored = *abandon;
    mu__list_prepend(&v->abandons, &stored->node);
    v->abandons_count++;
    mu__vars_arm(ctx, v, RETRY, RETRY_MS);
}

static struct pending_abandon abandon_at(const struct variables *v, uint32_t partition)
{
    return (struct pending_abandon){.to = pid_of(v, server_of(v, partition)),
                                    .partition = partition,
                                    .generation = v->placements[partition].generation};
}

void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, uint32_t partition,
                           uint64_t variable, uint64_t transfer)
{
    struct pending_abandon abandon = abandon_at(v, partition);

    abandon.variable = variable;
    abandon.transfer = transfer;
    report_abandon(ctx, v, &abandon);
}

void mu__vars_abandon_batch(struct mu__ctx *ctx, struct variables *v,
                            const struct write_batch *batch)
{
    struct pending_abandon abandon = abandon_at(v, batch->partition);

    abandon.batch = batch->token;
    abandon.own = batch->op->writer.table != NULL;
    report_abandon(ctx, v, &abandon);
}

void mu__vars_close_snapshot(struct mu__ctx *ctx, struct variables *v, uint32_t partition,
                             uint64_t number)
{
    struct pending_abandon abandon;

    if (!v->placements[partition].served)
        return; /* it has ended with the generation, or with the link */
    abandon = abandon_at(v, partition);
    abandon.snapshot = number;
    report_abandon(ctx, v, &abandon);
}

static struct pending_abandon *take_first(struct mu__list *abandons)
{
    struct mu__list_node *node = mu__list_pop(abandons);

    return node == NULL ? NULL : MU__LIST_ENTRY(node, struct pending_abandon, node);
}

void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v)
{
    struct mu__list due = v->abandons;
    struct pending_abandon *at;

    v->abandons = (struct mu__list){NULL, NULL};
    v->abandons_count = 0;
    while ((at = take_first(&due)) != NULL) {
        report_abandon(ctx, v, at);
        free(at);
    }
}

void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part)
{
    const struct mu__variable_call *call = part->op->call;

    if (!v->placements[part->partition].served)
        return;
    if (part->step == OPENING && part->begun)
        mu__vars_send_abandon(ctx, v, part->partition, 0, part->transfer);
    if (part->made || part->staged)
        mu__vars_send_abandon(ctx, v, part->partition, call->ids[part->shard],
                              part->transfer);
}

void mu__vars_drop_abandons(struct variables *v)
{
    struct pending_abandon *at;

    while ((at = take_first(&v->abandons)) != NULL)
        free(at);
}
