/* How an open goes from phase to phase: see enum open_phase. */
#include "actors/variables/actions.h"

#include "actors/ps/initial/initial.h"
#include "actors/ps/variable_store.h"

bool mu__vars_requests_existing(const struct op_part *part)
{
    if (part->shard == 0)
        return part->op->phase == CONFIRM || has_flag(part->op, MU_VARIABLE_EXISTING);
    return !part->op->creates;
}

bool mu__vars_has_absent(const struct operation *op)
{
    for (uint32_t i = 0; i < op->parts_count; i++)
        if (op->parts[i].absent)
            return true;
    return false;
}

static void unpark(struct op_part *part)
{
    if (part->op->parked == part)
        part->op->parked = NULL;
}

static void begin_step(struct variables *v, struct op_part *part, enum step step)
{
    part->op->parts_left += part->step == RESTING;
    part->step = step;
    part->begun = false;
    part->write = 0;
    part->bytes = 0;
    part->sent = 0;
    part->done = 0;
    part->absent = false;
    unpark(part);
    mu__vars_enqueue(v, part);
    v->pump_all_due = true;
}

/* `replaces`, if not 0: the id of the shard to be replaced. */
static void open_part(struct variables *v, struct op_part *part, uint64_t replaces)
{
    begin_step(v, part, OPENING);
    part->opened = false;
    part->made = false;
    part->replaces = replaces;
}

/* The initial content, or zeros. What the servers generate counts as what they are
 * sent. */
static void fill_part(struct variables *v, struct op_part *part)
{
    const struct mu__variable_call *call = part->op->call;

    begin_step(v, part, MOVING);
    if (call->initial != NULL)
        part->write = MU__WRITE_INITIAL;
    else
        part->write = call->source == NULL ? MU__WRITE_ZERO : MU__WRITE_ASSIGN;
    part->bytes = part->write == MU__WRITE_ZERO ? 0 : part->shard_bytes;
}

void mu__vars_begin_open(struct variables *v, struct operation *op, uint64_t replaces)
{
    op->phase = FIND_HOME;
    op->creates = false;
    open_part(v, &op->parts[0], replaces);
}

/* Begin an open anew: nothing of it stays on the servers. */
static void find_again(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       uint64_t replaces)
{
    mu__vars_disown_flights(v, op, NULL);
    for (uint32_t i = 0; i < op->parts_count; i++) {
        struct op_part *part = &op->parts[i];

        mu__vars_abandon_part(ctx, v, part);
        mu__vars_dequeue(part);
        part->absent = false;
        part->step = RESTING;
        part->opened = false;
        part->made = false;
    }
    op->parts_left = 0;
    op->parked = NULL;
    mu__vars_begin_open(v, op, replaces);
}

/* Some servers have their shards and others have not. An open with MU_VARIABLE_EXISTING
 * begins anew, and waits for the missing ones. */
static void take_loss(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (op->recreates || has_flag(op, MU_VARIABLE_EXISTING))
        find_again(ctx, v, op, op->recreates ? op->call->ids[0] : 0);
    else
        mu__vars_fail_lost(ctx, v, op);
}

/* Shard 0 is this open's creation, and yet others' shards exist. */
static bool finds_remains(const struct operation *op)
{
    for (uint32_t i = 1; i < op->parts_count; i++)
        if (!op->parts[i].made)
            return true;
    return false;
}

/* Either the server of shard 0 has lost its memory; or, while we have not heard yet that
 * our connection to it broke, it has given our creation to another open, which made these
 * shards. So shard 0 is requested once more: if it is made again, it was lost. */
static void take_remains(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (op->doubts) {
        take_loss(ctx, v, op);
        return;
    }
    op->doubts = true;
    op->recreates = has_flag(op, MU_VARIABLE_RECREATE);
    find_again(ctx, v, op, 0);
}

/* What follows a phase; false when the open has ended or begins anew. */
static bool after_find_home(struct mu__ctx *ctx, struct variables *v,
                            struct operation *op)
{
    (void)ctx;
    op->creates = op->parts[0].made;
    if (!op->creates)
        op->recreates = has_flag(op, MU_VARIABLE_RECREATE);
    op->home = op->call->ids[0];
    op->phase = FIND;
    for (uint32_t i = 1; i < op->parts_count; i++)
        open_part(v, &op->parts[i], 0);
    return true;
}

static bool after_find(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (op->creates && finds_remains(op)) {
        take_remains(ctx, v, op);
        return false;
    }
    if (mu__vars_has_absent(op)) {
        take_loss(ctx, v, op);
        return false;
    }
    if (!op->creates) {
        op->phase = CONFIRM;
        if (op->parts_count > 1)
            open_part(v, &op->parts[0], 0);
        return true;
    }
    op->phase = FILL;
    for (uint32_t i = 1; i < op->parts_count; i++)
        fill_part(v, &op->parts[i]);
    return true;
}

static bool after_confirm(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (mu__vars_has_absent(op) || op->call->ids[0] != op->home)
        find_again(ctx, v, op, 0);
    else
        mu__vars_complete(ctx, v, op, 0);
    return false;
}

static bool after_fill(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (finds_remains(op)) {
        take_remains(ctx, v, op);
        return false;
    }
    op->phase = FILL_HOME;
    fill_part(v, &op->parts[0]);
    return true;
}

/* From here on others find the variable. A shard that is lost before the end of this open
 * is made anew, and with it all others: the call still has their content. */
static bool after_fill_home(struct mu__ctx *ctx, struct variables *v,
                            struct operation *op)
{
    (void)ctx;
    op->phase = COMMIT;
    op->creates = false;
    op->recreates = true;
    for (uint32_t i = 1; i < op->parts_count; i++) {
        struct op_part *part = &op->parts[i];

        if (!part->made) {
            open_part(v, part, 0);
            continue;
        }
        begin_step(v, part, MOVING);
        part->write = MU__WRITE_COMMIT;
    }
    return true;
}

static bool after_commit(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (mu__vars_has_absent(op))
        take_loss(ctx, v, op);
    else
        mu__vars_complete(ctx, v, op, 0);
    return false;
}

static bool (*const after[])(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op) = {
    [FIND_HOME] = after_find_home, [FIND] = after_find,
    [CONFIRM] = after_confirm,     [FILL] = after_fill,
    [FILL_HOME] = after_fill_home, [COMMIT] = after_commit,
};

void mu__vars_go_through(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    struct operation *op = part->op;

    unpark(part);
    while (op->parts_left == 0)
        if (!after[op->phase](ctx, v, op))
            return;
}

void mu__vars_take_opened(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__var_opened *body)
{
    struct operation *op = part->op;

    if (body->created && mu__vars_requests_existing(part)) {
        mu__vars_fail_bad_answer(ctx, v, part);
        return;
    }
    op->call->ids[part->shard] = body->variable;
    part->opened = true;
    part->made = body->created;
    part->absent = false;
    if (part->shard == 0 && part->made)
        op->creation = body->creation;
    if (!part->made && op->creates && op->recreates)
        open_part(v, part, body->variable);
    else if (part->made && op->phase == FILL)
        fill_part(v, part);
    else
        mu__vars_rest(ctx, v, part);
}

/* One part of an open that never creates waits for the server's answer (`parked`); the
 * opens of the others are given up. */
void mu__vars_take_absent(struct mu__ctx *ctx, struct variables *v, struct flight *flight)
{
    struct op_part *part = flight == NULL ? NULL : flight->part;
    struct operation *op;

    if (part == NULL || !mu__vars_requests_existing(part))
        return;
    op = part->op;
    if (has_flag(op, MU__VARIABLE_REOPEN)) {
        mu__vars_fail_forgotten(ctx, v, op, part->partition);
        return;
    }
    part->absent = true;
    if (op->parked == NULL && has_flag(op, MU_VARIABLE_EXISTING))
        op->parked = part;
    if (op->parked == part)
        return;
    mu__vars_abandon_part(ctx, v, part);
    flight->part = NULL;
    op->flights--;
    mu__vars_rest(ctx, v, part);
}

/* Open again a shard that was being opened or made when its server was lost. */
static void open_over(struct variables *v, struct op_part *part)
{
    if (part->op->phase == FILL_HOME) {
        part->opened = false;
        part->made = false;
        return;
    }
    open_part(v, part, part->step == OPENING ? part->replaces : 0);
}

/* An open whose creation of shard 0 is lost begins anew: another one may create now.
 * Shards that were found or committed are not opened again. */
void mu__vars_lose_in_open(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (op->creates && !v->placements[op->parts[0].partition].served) {
        op->recreates = has_flag(op, MU_VARIABLE_RECREATE);
        op->doubts = false;
        find_again(ctx, v, op, 0);
        return;
    }
    for (uint32_t i = 0; i < op->parts_count; i++) {
        struct op_part *part = &op->parts[i];

        if (!v->placements[part->partition].served &&
            (part->step != RESTING || (op->creates && part->made)))
            open_over(v, part);
    }
}
