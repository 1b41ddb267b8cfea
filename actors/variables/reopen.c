/* Shards that their server has lost, since it was restarted or the variable was created
 * anew. The operation opens the variable by its name, without creating it or waiting for
 * a creator, and goes on with the shards that exist now: restored from a checkpoint, say.
 * A variable that does not exist gives -MU_ENOTFOUND, another dtype or shape
 * -MU_EPRECONDITION.
 *
 * Reads and assigns are repeated. An add or a gradient goes on only for shards that have
 * refused it as a whole; if a former shard has applied it, or may have, its outcome is
 * unknown. */
#include "actors/variables/actions.h"

#include "actors/keep.h"

#include <stdlib.h>

enum { REOPENS_MAX = 8 };       /* of one operation; more are not expected */

struct inner {
    struct mu__variable_call call;  /* first: the operation's call points here */
    uint64_t ids[];
};

/* ---- The open ---- */

/* It has no timeout of its own: the outer operation ends it. */
static struct mu__variable_call *inner_call(const struct operation *outer)
{
    const struct mu__variable_call *call = outer->call;
    struct inner *inner =
        calloc(1, sizeof *inner + outer->parts_count * sizeof inner->ids[0]);

    if (inner == NULL)
        return NULL;
    inner->call = (struct mu__variable_call){
        .call = {.operation = MU__VARIABLE_OPEN, .timeout_ms = -1},
        .name = call->name,
        .shape = call->shape,
        .servers_count = call->servers_count,
        .flags = MU_VARIABLE_EXISTING | MU__VARIABLE_REOPEN,
        .ids = inner->ids,
    };
    return &inner->call;
}

static int begin_inner(struct mu__ctx *ctx, struct variables *v, struct operation *outer)
{
    struct mu__variable_call *call = inner_call(outer);
    int rv;

    if (call == NULL)
        return -MU_ENOMEM;
    rv = mu__vars_plan(ctx, v, call, &outer->inner);
    if (rv != 0) {
        free(call);
        return rv;
    }
    outer->inner->outer = outer;
    mu__vars_begin(ctx, v, outer->inner);
    v->pump_all_due = true;
    return 0;
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

bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part)
{
    if (is_open(part->op) || part->op->rule->repeats || !is_replaced(part))
        return false;
    mu__vars_fail_replaced(ctx, v, part);
    return true;
}

void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    struct operation *op = part->op;
    int rv;

    if (!op->rule->repeats && part->done > 0) {
        mu__vars_fail_replaced(ctx, v, part);
        return;
    }
    if (has_flag(op, MU_VARIABLE_SAME)) {
        mu__vars_fail_forgotten(ctx, v, part);
        return;
    }
    if (is_replaced(part)) {
        restart(v, part);
        return;
    }
    mu__vars_dequeue(v, part);
    mu__vars_disown_flights(v, part->op, part);
    mu__vars_unstage(v, part);
    part->stale = true;
    if (op->inner != NULL)
        return;
    if (++op->reopens > REOPENS_MAX) {
        mu__vars_fail_forgotten(ctx, v, part);
        return;
    }
    rv = begin_inner(ctx, v, op);
    if (rv != 0)
        mu__vars_fail(ctx, v, op, part->server, rv, "it cannot be reopened");
}

/* Let a part go on with the new id. False: the operation has failed. A request under way
 * that must not be repeated keeps waiting for its answer. */
static bool take_over(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    bool repeats = part->op->rule->repeats;

    if (!is_replaced(part)) {
        if (part->stale)
            mu__vars_fail_forgotten(ctx, v, part);
        return !part->stale;
    }
    if (!repeats && (part->step == RESTING || part->done > 0)) {
        mu__vars_fail_replaced(ctx, v, part);
        return false;
    }
    if (repeats || part->stale || !part->begun)
        restart(v, part);
    return true;
}

/* ---- The end of the open ---- */

static void answer_request(struct mu__ctx *ctx, const struct operation *op, int code)
{
    const struct mu__var_reopened body = {.request = op->request};

    op->call->call.code = code;
    if (mu__send_body(ctx, op->requester, MU__VAR_REOPENED, &body, sizeof body) != 0)
        mu__log(ctx, MU__LOG_ERROR, "nobody hears that variable %s was reopened",
                op->call->name);
}

static void go_on(struct mu__ctx *ctx, struct variables *v, struct operation *outer,
                  const uint64_t *ids)
{
    for (uint32_t i = 0; i < outer->parts_count; i++) {
        outer->call->reopened = outer->call->reopened || outer->call->ids[i] != ids[i];
        outer->call->ids[i] = ids[i];
    }
    mu__log(ctx, MU__LOG_INFO, "variable %s was lost with its server, or created anew: "
            "it is reopened", outer->call->name);
    for (uint32_t i = 0; i < outer->parts_count; i++)
        if (!take_over(ctx, v, &outer->parts[i]))
            return;
}

void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code)
{
    struct operation *outer = op->outer;

    if (outer == NULL) {
        answer_request(ctx, op, code);
        return;
    }
    outer->inner = NULL;
    if (code == 0)
        go_on(ctx, v, outer, op->call->ids);
    else
        mu__vars_fail_as(ctx, v, outer, op->call);
    free(op->call);
}

/* ---- VAR_REOPEN ---- */

void mu__vars_on_reopen(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    struct mu__reopen *request = ((struct mu__var_reopen *)mu__body(msg))->request;
    struct operation failed = {.call = &request->call, .request = request,
                               .requester = msg->from};
    struct operation *op;
    int rv = mu__vars_plan(ctx, v, &request->call, &op);

    if (rv != 0) {
        (void)mu_error_set(&request->call.call.error, rv, "variable %s: %s",
                           request->call.name, mu_strerror(rv));
        answer_request(ctx, &failed, rv);
        return;
    }
    op->request = request;
    op->requester = msg->from;
    mu__vars_begin(ctx, v, op);
    mu__vars_pump_all(ctx, v);
}
