/* Shards that their server has lost, since it was restarted or the variable was created
 * anew. The operation opens the variable by its name, without creating it or waiting for
 * a creator, and goes on with the shards that exist now: restored from a checkpoint, say.
 * A variable that does not exist gives -MU_ENOTFOUND, another dtype or shape
 * -MU_EPRECONDITION.
 *
 * Reads and assigns are repeated. An add or a gradient goes on only for shards that have
 * refused it as a whole; if a former shard has applied it, or may have, its outcome is
 * unknown: the new shard may hold what was saved of the former one. */
#include "actors/variables/actions.h"
#include "actors/variables/batches.h"

#include "actors/variables/opened_variable.h"

#include <stdlib.h>

enum { REOPENS_MAX = 8 }; /* of one operation; more are not expected */

/* The call of an open that reopens a variable. */
struct inner {
    struct mu__variable_call call; /* first: the operation's call points here */
    uint64_t ids[];
};

/* ---- The open ---- */

/* It has no timeout of its own: the outer operation ends it. */
static struct mu__variable_call *inner_call(
    const char *name, const struct mu__shape *shape, uint32_t servers_count)
{
    struct inner *inner = calloc(1, sizeof *inner + shape->shards * sizeof inner->ids[0]);

    if (inner == NULL)
        return NULL;
    inner->call = (struct mu__variable_call){
        .call = {.operation = MU__VARIABLE_OPEN, .timeout_ms = -1},
        .name = name,
        .shape = shape,
        .servers_count = servers_count,
        .flags = MU_VARIABLE_EXISTING | MU__VARIABLE_REOPEN,
        .ids = inner->ids,
    };
    return &inner->call;
}

/* NULL: that is not possible; *ret_code says why. */
static struct operation *plan_inner(struct mu__ctx *ctx, struct variables *v,
                                    struct operation *outer,
                                    struct mu__variable_call *call, int *ret_code)
{
    struct operation *inner = NULL;

    *ret_code = call == NULL ? -MU_ENOMEM : mu__vars_plan(ctx, v, call, &inner);
    if (*ret_code != 0) {
        free(call);
        return NULL;
    }
    inner->outer = outer;
    outer->inners++;
    v->pump_all_due = true;
    return inner;
}

/* ---- The parts ---- */

/* Send a part again from its first piece, to the present shard. */
static void restart(struct variables *v, struct op_part *part)
{
    mu__vars_disown_flights(v, part->op, part);
    mu__vars_unstage(v, part);
    part->op->parts_left += part->step == RESTING;
    part->step = MOVING;
    part->id = part->op->call->ids[part->shard];
    part->stale = false;
    part->begun = false;
    part->sent = 0;
    part->done = 0;
    mu__vars_enqueue(v, part);
    v->pump_all_due = true;
}

static bool is_replaced(const struct op_part *part)
{
    return part->id != part->op->call->ids[part->shard];
}

/* A former shard has applied what counts once, or may have. */
static bool may_be_applied(const struct op_part *part)
{
    return part->op->rule->counts &&
           (part->step == RESTING || part->done > 0 || part->doubted);
}

bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part)
{
    if (is_open(part->op) || !part->op->rule->counts || !is_replaced(part))
        return false;
    mu__vars_fail_replaced(ctx, v, part);
    return true;
}

void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    struct operation *op = part->op;
    struct operation *inner;
    int rv;

    if (may_be_applied(part)) {
        mu__vars_fail_replaced(ctx, v, part);
        return;
    }
    if (has_flag(op, MU_VARIABLE_SAME)) {
        mu__vars_fail_forgotten(ctx, v, op, part->partition);
        return;
    }
    if (is_replaced(part)) {
        restart(v, part);
        return;
    }
    mu__vars_dequeue(part);
    mu__vars_disown_flights(v, part->op, part);
    mu__vars_unstage(v, part);
    part->stale = true;
    if (op->inners > 0)
        return;
    if (++op->reopens > REOPENS_MAX) {
        mu__vars_fail_forgotten(ctx, v, op, part->partition);
        return;
    }
    inner =
        plan_inner(ctx, v, op,
                   inner_call(op->call->name, op->call->shape, op->call->servers_count),
                   &rv);
    if (inner == NULL)
        mu__vars_fail(ctx, v, op, server_of(v, part->partition), rv,
                      "it cannot be reopened");
    else
        (void)mu__vars_begin(ctx, v, inner);
}

/* Let a part go on with the new id. False: the operation has failed. A request under way
 * that must not be repeated keeps waiting for its answer. */
static bool take_over(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    if (!is_replaced(part)) {
        if (part->stale)
            mu__vars_fail_forgotten(ctx, v, part->op, part->partition);
        return !part->stale;
    }
    if (may_be_applied(part)) {
        mu__vars_fail_replaced(ctx, v, part);
        return false;
    }
    if (!part->op->rule->counts || part->stale || !part->begun)
        restart(v, part);
    return true;
}

static void go_on_with(struct mu__ctx *ctx, struct variables *v, struct operation *outer,
                       const uint64_t *ids)
{
    for (uint32_t i = 0; i < outer->call->shape->shards; i++) {
        outer->call->reopened = outer->call->reopened || outer->call->ids[i] != ids[i];
        outer->call->ids[i] = ids[i];
    }
    mu__log(ctx, MU__LOG_INFO,
            "variable %s was lost with its server, or created anew: it is reopened",
            outer->call->name);
    for (uint32_t i = 0; i < outer->parts_count; i++)
        if (!take_over(ctx, v, &outer->parts[i]))
            return;
}

/* ---- Batches ---- */

static bool is_reopened(const struct variables *v, const struct write_batch *batch,
                        const struct mu__opened_variable *opened)
{
    const struct operation *op = first_operation(&v->calls);

    while (op != NULL && (op->batch != batch || op->opened != opened))
        op = next_operation(op);
    return op != NULL;
}

/* False: an open has ended at once, and with it the run. */
static bool reopen_written(struct mu__ctx *ctx, struct variables *v,
                           struct write_batch *batch, struct mu__opened_variable *opened)
{
    struct operation *inner;
    int rv;

    if (opened == NULL || opened->is_same || is_reopened(v, batch, opened))
        return true;
    inner =
        plan_inner(ctx, v, batch->op,
                   inner_call(opened->name, &opened->shape, opened->servers_count), &rv);
    if (inner == NULL)
        return true;
    inner->batch = batch;
    inner->opened = opened;
    batch->reopening++;
    return mu__vars_begin(ctx, v, inner);
}

/* What cannot be reopened for want of memory is refused again. */
void mu__vars_reopen_batch(struct mu__ctx *ctx, struct variables *v,
                           struct write_batch *batch)
{
    struct mu__effect *write = batch->first;
    uint32_t count = ++batch->reopens > REOPENS_MAX ? 0 : batch->writes_count;

    for (uint32_t i = 0; i < count; i++, write = write->next)
        if (!reopen_written(ctx, v, batch, write->opened))
            return;
    if (batch->reopening == 0)
        mu__vars_fail_forgotten(ctx, v, batch->op, batch->partition);
}

/* Give a batch's writes the present ids; false: they had them already. */
static bool renew(const struct write_batch *batch)
{
    struct mu__effect *write = batch->first;
    bool renewed = false;

    for (uint32_t i = 0; i < batch->writes_count; i++, write = write->next) {
        uint64_t id = write->variable;

        if (write->opened != NULL)
            id = atomic_load_explicit(&write->opened->ids[write->shard],
                                      memory_order_relaxed);
        renewed = renewed || id != write->variable;
        write->variable = id;
    }
    return renewed;
}

static void go_on_with_batch(struct mu__ctx *ctx, struct variables *v,
                             struct write_batch *batch)
{
    if (batch->reopening > 0)
        return;
    if (renew(batch))
        mu__vars_send_again(v, batch);
    else
        mu__vars_fail_forgotten(ctx, v, batch->op, batch->partition);
}

/* ---- The end of the open ---- */

void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code)
{
    struct operation *outer = op->outer;
    struct write_batch *batch = op->batch;

    outer->inners--;
    if (batch != NULL)
        batch->reopening--;
    if (batch != NULL && code == 0) {
        mu__opened_variable_store(op->opened, op->call->ids);
        go_on_with_batch(ctx, v, batch);
    } else if (batch != NULL && code == -MU_ENOTFOUND) {
        mu__vars_fail_forgotten(ctx, v, outer, batch->partition);
    } else if (code == 0) {
        go_on_with(ctx, v, outer, op->call->ids);
    } else {
        mu__vars_fail_as(ctx, v, outer, op->call);
    }
    free(op->call);
}
