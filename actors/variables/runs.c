/* The course of what a run has written: its batches are planned, sent (batches.c) and
 * answered. */
#include "actors/variables/batches.h"

#include "actors/worker/function_run.h"
#include "runtime/base/byte_order.h"

#include <stdlib.h>

enum { AGAIN_MS = 50 }; /* before a batch that was refused is sent again */

/* ---- The end of a run ---- */

/* The answer takes the memory of the message, so that it cannot fail. */
static struct mu__msg *claim_answer(struct mu__ctx *ctx)
{
    struct mu__msg *msg = mu__claim(ctx);

    _Static_assert(sizeof(struct mu__effects_send) == sizeof(struct mu__effects_sent),
                   "both have the run alone");
    msg->kind = MU__EFFECTS_SENT;
    return msg;
}

static void answer_worker(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg)
{
    if (mu__send(ctx, to, msg) != 0)
        mu__log(ctx, MU__LOG_ERROR, "the worker does not hear that a run's writes ended");
}

/* The call frees what it wrote. */
static void complete_table_write(struct mu__ctx *ctx, struct operation *op)
{
    struct mu__table_call *table = op->writer.table;
    struct mu_run *run = op->run;

    mu__timer_cancel(ctx, table->call.timer);
    op->writer.table = NULL;
    op->id = 0;
    if (run->code != 0 && run->failure == NULL)
        (void)mu_error_set(&table->call.error, run->code, "table %s: %s", table->name,
                           mu_strerror(run->code));
    else if (run->code != 0)
        table->call.error = *run->failure;
    free(run->failure);
    mu__call_complete(&table->call, run->code);
}

/* Its server is told of a batch of which a part is there; the answer to one that was sent
 * as a whole is ignored. */
static void abandon_sent(struct mu__ctx *ctx, struct variables *v,
                         struct write_batch *batch)
{
    struct variable_server *server = v->servers[server_of(v, batch->partition)];

    if (batch->in == &server->flying) {
        mu__vars_flight_of(v, batch->token)->batch = NULL;
        batch->token = 0;
    } else if (batch->in == &server->active && batch->pieces > 0) {
        mu__vars_abandon_batch(ctx, v, batch);
    }
}

static void free_write_batch(struct variables *v, struct write_batch *batch)
{
    mu__vars_rewind_batch(v, batch);
    mu__vars_settle(v, batch->partition, &batch->numbered);
    mu__vars_put_batch_first(&v->spares.batches, batch);
}

static void free_run_operation(struct variables *v, struct operation *op)
{
    while (op->batches != NULL) {
        struct write_batch *batch = op->batches;

        op->batches = batch->sibling;
        free_write_batch(v, batch);
    }
    mu__list_remove(&v->runs, &op->node);
    mu__list_prepend(&v->spares.runs, &op->node);
}

/* Its writes were applied, or it has failed. */
static void finish_run(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    for (struct write_batch *batch = op->batches; batch != NULL; batch = batch->sibling)
        abandon_sent(ctx, v, batch);
    if (op->writer.table != NULL)
        complete_table_write(ctx, op);
    else
        answer_worker(ctx, op->writer.worker, op->writer.answer);
    free_run_operation(v, op);
}

void mu__vars_fail_run(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       const mu_error *error)
{
    struct mu_run *run = op->run;

    mu__vars_drop_inners(ctx, v, op);
    run->code = error->code;
    if (run->failure == NULL)
        run->failure = malloc(sizeof *run->failure);
    if (run->failure != NULL) {
        *run->failure = *error;
        run->failure->kind = MU_ERROR_SERVER;
    }
    finish_run(ctx, v, op);
}

/* A batch was applied. The last one ends the run. */
static void complete_batch(struct mu__ctx *ctx, struct variables *v,
                           struct write_batch *batch)
{
    struct operation *op = batch->op;

    *batch->link = batch->sibling;
    if (batch->sibling != NULL)
        batch->sibling->link = batch->link;
    free_write_batch(v, batch);
    if (op->batches == NULL)
        finish_run(ctx, v, op);
}

void mu__vars_drop_runs(struct mu__ctx *ctx, struct variables *v)
{
    struct mu__list_node *node;
    struct operation *op;

    while ((op = first_operation(&v->runs)) != NULL) {
        mu__vars_drop_inners(ctx, v, op);
        if (op->writer.table == NULL) {
            mu__msg_free(ctx, op->writer.answer);
        } else {
            op->run->code = -MU_ECLOSED;
            complete_table_write(ctx, op);
        }
        free_run_operation(v, op);
    }
    while ((node = mu__list_pop(&v->spares.runs)) != NULL)
        free(MU__LIST_ENTRY(node, struct operation, node));
    while ((node = mu__list_pop(&v->spares.batches)) != NULL)
        free(MU__LIST_ENTRY(node, struct write_batch, node));
}

/* ---- The begin ---- */

static void begin_writes(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    uint32_t partition = op->run->effects.first->partition;

    if (op->run->effects.last->partition != partition)
        v->pump_all_due = true;
    for (struct write_batch *batch = op->batches; batch != NULL; batch = batch->sibling) {
        mu__vars_rewind_batch(v, batch);
        mu__vars_put_batch_last(mu__vars_queue_of(v, batch), batch);
    }
    mu__vars_arm(ctx, v, TIMEOUT, v->effect_wait_ms);
    if (!mu__vars_end_if_lost(ctx, v, op))
        mu__vars_watch_lost(ctx, v);
    mu__vars_go_on(ctx, v, server_of(v, partition));
}

/* What runs do not use of it is zero. NULL: out of memory. */
static struct operation *new_run_operation(struct variables *v)
{
    struct mu__list_node *node = mu__list_pop(&v->spares.runs);

    return node == NULL ? calloc(1, sizeof(struct operation))
                        : MU__LIST_ENTRY(node, struct operation, node);
}

static void begin_run_writes(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op, struct mu_run *run)
{
    op->run = run;
    op->began_ms = mu__now_ms(ctx);
    mu__list_append(&v->runs, &op->node);
    run->code = mu__vars_plan_batches(ctx, v, op);
    if (run->code != 0 || op->batches == NULL)
        finish_run(ctx, v, op);
    else
        begin_writes(ctx, v, op);
}

void mu__vars_on_effects_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    struct mu_run *run = ((struct mu__effects_send *)mu__body(msg))->run;
    mu__pid requester = msg->from;
    struct operation *op = new_run_operation(v);

    if (op == NULL) {
        run->code = -MU_ENOMEM;
        answer_worker(ctx, requester, claim_answer(ctx));
        return;
    }
    op->writer.worker = requester;
    op->writer.answer = claim_answer(ctx);
    begin_run_writes(ctx, v, op, run);
}

static int plan_table_write(struct mu__ctx *ctx, struct variables *v,
                            struct mu__table_call *call, struct operation **ret_op)
{
    struct mu__call *of_program = &call->call;
    int rv = mu__vars_need_servers(ctx, v, call->servers_count);

    if (rv != 0)
        return rv;
    of_program->timer = 0;
    if (of_program->timeout_ms >= 0) {
        of_program->timer =
            mu__timer_set(ctx, (uint64_t)of_program->timeout_ms, v->id_last + 1);
        if (of_program->timer == 0)
            return -MU_EEXHAUSTED;
    }
    *ret_op = new_run_operation(v);
    if (*ret_op == NULL) {
        mu__timer_cancel(ctx, of_program->timer);
        return -MU_ENOMEM;
    }
    (*ret_op)->id = ++v->id_last;
    return 0;
}

void mu__vars_begin_table_write(struct mu__ctx *ctx, struct variables *v,
                                struct mu__table_call *call)
{
    struct operation *op;
    int rv = plan_table_write(ctx, v, call, &op);

    if (rv != 0) {
        (void)mu_error_set(&call->call.error, rv, "table %s: %s", call->name,
                           mu_strerror(rv));
        mu__call_complete(&call->call, rv);
        return;
    }
    op->writer.table = call;
    begin_run_writes(ctx, v, op, &call->run);
}

/* ---- Answers ---- */

static void rest_batch(struct mu__ctx *ctx, struct variables *v,
                       struct write_batch *batch, int code)
{
    mu__vars_rewind_batch(v, batch);
    batch->rested = true;
    batch->refused = code;
    batch->due_ms = mu__now_ms(ctx) + AGAIN_MS;
    mu__vars_put_batch_last(&v->resting, batch);
    mu__vars_arm(ctx, v, AGAIN, AGAIN_MS);
}

void mu__vars_send_again(struct variables *v, struct write_batch *batch)
{
    mu__vars_rewind_batch(v, batch);
    mu__vars_put_batch_last(mu__vars_queue_of(v, batch), batch);
    v->pump_all_due = true;
}

/* The server has staged so much of a batch. */
static void note_staged(struct variables *v, struct flight *flight, uint64_t staged)
{
    uint64_t reported = flight->offset - flight->size;

    if (staged > reported && staged <= flight->offset)
        mu__vars_note_arrived(v, flight, (uint32_t)(staged - reported));
}

static void take_batch_answer(struct mu__ctx *ctx, struct variables *v,
                              struct write_batch *batch,
                              const struct mu__effect_written *body)
{
    mu__vars_take_out_batch(batch);
    if (body->again)
        rest_batch(ctx, v, batch, -(int)body->code);
    else if (body->code == MU_ENOTFOUND && batch->doubted)
        mu__vars_fail_unknown(ctx, v, batch->op, batch->partition);
    else if (body->code == MU_ENOTFOUND)
        mu__vars_reopen_batch(ctx, v, batch);
    else if (body->code != 0)
        mu__vars_fail_by_answer(ctx, v, batch->op, batch->partition, body->code,
                                body->message);
    else
        complete_batch(ctx, v, batch);
}

void mu__vars_on_effect_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__effect_written *body = mu__body(msg);
    struct flight *flight = mu__vars_find_flight(v, msg, body->token);
    uint32_t server;
    struct write_batch *batch;

    if (flight == NULL)
        return;
    server = flight->server;
    if (body->staged != 0) {
        note_staged(v, flight, body->staged);
    } else {
        batch = flight->batch;
        mu__vars_end_flight(v, flight);
        if (batch != NULL) {
            batch->token = 0;
            take_batch_answer(ctx, v, batch, body);
        }
    }
    mu__vars_go_on(ctx, v, server);
}

/* NULL: it has ended, or the answer comes from elsewhere. */
static struct flight *find_batch_flight(const struct variables *v,
                                        const struct mu__msg *msg, uint64_t token)
{
    struct flight *flight = mu__vars_flight_of(v, token);

    if (flight == NULL || flight->answer != MU__EFFECT_WRITTEN ||
        !mu__pid_equal(pid_of(v, flight->server), msg->from))
        return NULL;
    return flight;
}

static void end_applied(struct mu__ctx *ctx, struct variables *v, struct flight *flight)
{
    struct write_batch *batch = flight->batch;

    mu__vars_end_flight(v, flight);
    if (batch == NULL)
        return;
    batch->token = 0;
    mu__vars_take_out_batch(batch);
    complete_batch(ctx, v, batch);
}

void mu__vars_on_effects_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__effects_written *body = mu__body(msg);
    uint32_t server = UINT32_MAX;

    for (uint32_t at = 0; at + 8 <= body->tokens.size; at += 8) {
        uint64_t token = mu__load_little64((const uint8_t *)body->tokens.data + at);
        struct flight *flight = find_batch_flight(v, msg, token);

        if (flight == NULL)
            continue;
        server = flight->server;
        end_applied(ctx, v, flight);
    }
    if (server != UINT32_MAX)
        mu__vars_go_on(ctx, v, server);
}

/* ---- Timers, and servers that go down ---- */

/* The first of those that have no timeout of their own. */
static struct operation *first_of_workers(const struct variables *v)
{
    struct operation *op = first_operation(&v->runs);

    while (op != NULL && op->writer.table != NULL)
        op = next_operation(op);
    return op;
}

void mu__vars_check_timeouts(struct mu__ctx *ctx, struct variables *v)
{
    uint64_t now_ms = mu__now_ms(ctx);
    struct operation *op;

    while ((op = first_of_workers(v)) != NULL &&
           op->began_ms + v->effect_wait_ms <= now_ms)
        mu__vars_fail_by_timeout(ctx, v, op);
    if (op != NULL)
        mu__vars_arm_at(ctx, v, TIMEOUT, op->began_ms + v->effect_wait_ms);
}

void mu__vars_wake_resting(struct mu__ctx *ctx, struct variables *v)
{
    uint64_t now_ms = mu__now_ms(ctx);
    struct write_batch *batch;

    while ((batch = MU__LIST_FIRST(&v->resting, struct write_batch, node)) != NULL &&
           batch->due_ms <= now_ms)
        mu__vars_put_batch_last(mu__vars_queue_of(v, batch), batch);
    if (batch != NULL)
        mu__vars_arm_at(ctx, v, AGAIN, batch->due_ms);
}

/* Batches of a list whose partition is not served any more go to the front of those that
 * wait for it. */
static void recall_list(struct variables *v, struct mu__list *list, bool was_sent)
{
    struct mu__list_node *node = list->last;

    while (node != NULL) {
        struct write_batch *batch = MU__LIST_ENTRY(node, struct write_batch, node);

        node = node->prev;
        if (v->placements[batch->partition].served)
            continue;
        mu__vars_rewind_batch(v, batch);
        batch->rested = false;
        batch->doubted = batch->doubted || (was_sent && batch->numbered.first != 0);
        mu__vars_put_batch_first(mu__vars_queue_of(v, batch), batch);
    }
}

void mu__vars_recall_batches(struct variables *v, uint32_t server)
{
    struct variable_server *s = v->servers[server];

    recall_list(v, &s->queues[SINGLES], false);
    recall_list(v, &s->queues[LARGES], false);
    recall_list(v, &s->flying, true);
    recall_list(v, &s->active, false);
}
