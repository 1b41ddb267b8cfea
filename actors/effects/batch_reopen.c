/* Writes of runs to shards that their server has lost: the variables are reopened by
 * their names (variables/reopen.c), one request for each, and the batch is sent again
 * with the new ids. */
#include "actors/effects/internal.h"

#include "actors/keep.h"
#include "actors/variables/opened_variable.h"
#include "actors/variables/variables.h"

#include <stdlib.h>
#include <string.h>

enum { REOPENS_MAX = 8 };       /* of one batch */

struct reopening {
    struct mu__reopen request;  /* first: VAR_REOPEN points here */
    struct mu__list_node node;
    struct write_batch *batch;  /* NULL: the batch has ended */
    struct mu__opened_variable *opened;
    uint64_t ids[];
};

static struct reopening *first_reopening(const struct effects *e)
{
    return MU__LIST_FIRST(&e->reopenings, struct reopening, node);
}

static void reopening_free(struct reopening *r)
{
    mu__opened_variable_unref(r->opened);
    free(r);
}

static bool is_looked_for(const struct effects *e, const struct write_batch *batch,
                          const struct mu__opened_variable *opened)
{
    const struct reopening *r = first_reopening(e);

    while (r != NULL && (r->batch != batch || r->opened != opened))
        r = MU__LIST_NEXT(r, struct reopening, node);
    return r != NULL;
}

/* The call's timeout ends at the run's deadline. */
static struct mu__variable_call call_for(struct mu__ctx *ctx,
                                         const struct write_batch *batch,
                                         const struct mu__opened_variable *opened,
                                         uint64_t *ids)
{
    uint64_t timeout_ms = batch->sending->deadline_ms;
    uint64_t now_ms = mu__now_ms(ctx);

    return (struct mu__variable_call){
        .call = {.operation = MU__VARIABLE_OPEN,
                 .timeout_ms = timeout_ms > now_ms ? (int64_t)(timeout_ms - now_ms) : 0},
        .name = opened->name,
        .shape = &opened->shape,
        .servers_count = opened->servers_count,
        .flags = MU_VARIABLE_EXISTING | MU__VARIABLE_REOPEN,
        .ids = ids,
    };
}

static bool look_for(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                     struct mu__opened_variable *opened)
{
    struct reopening *r =
        calloc(1, sizeof *r + opened->shape.shards * sizeof r->ids[0]);
    const struct mu__var_reopen body = {.request = &r->request};

    if (r == NULL)
        return false;
    r->request.call = call_for(ctx, batch, opened, r->ids);
    if (mu__send_body(ctx, (mu__pid){MU__NODE_SELF, MU__VARIABLES}, MU__VAR_REOPEN, &body,
                      sizeof body) != 0) {
        free(r);
        return false;
    }
    r->opened = mu__opened_variable_ref(opened);
    r->batch = batch;
    mu__list_prepend(&e->reopenings, &r->node);
    batch->reopening++;
    return true;
}

bool mu__effects_reopen(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct mu__effect *write = batch->first;

    if (++batch->reopens > REOPENS_MAX)
        return false;
    for (uint32_t i = 0; i < batch->writes_count; i++, write = write->next)
        if (write->opened != NULL && !write->opened->is_same &&
            !is_looked_for(e, batch, write->opened) &&
            !look_for(ctx, e, batch, write->opened))
            break;
    return batch->reopening > 0;
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

void mu__effects_fail_forgotten(struct mu__ctx *ctx, struct effects *e,
                                struct write_batch *batch)
{
    mu__effects_fail(ctx, e, batch, -MU_ENOTFOUND,
                     "refused it: the server was restarted, or the variable created "
                     "anew: it does not have it");
}

/* Fail a batch with the error of a reopen. */
static void fail_as(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                    const mu_error *error)
{
    mu_error own;

    if (error->code == -MU_ENOTFOUND) {
        mu__effects_fail_forgotten(ctx, e, batch);
        return;
    }
    (void)mu_error_set(&own, error->code, "what the run wrote: %.400s", error->message);
    memcpy(own.task, error->task, sizeof own.task);
    mu__effects_fail_with(ctx, e, batch, &own);
}

void mu__effects_on_reopened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct effects *e = state;
    const struct mu__var_reopened *body = mu__body(msg);
    struct reopening *r = (struct reopening *)(void *)body->request;
    struct write_batch *batch = r->batch;
    const mu_error *error = &r->request.call.call.error;
    int code = r->request.call.call.code;

    mu__list_remove(&e->reopenings, &r->node);
    if (code == 0)
        mu__opened_variable_store(r->opened, r->ids);
    if (batch != NULL) {
        batch->reopening--;
        if (code != 0)
            fail_as(ctx, e, batch, error);
        else if (batch->reopening == 0 && renew(batch))
            mu__effects_send_again(ctx, e, batch);
        else if (batch->reopening == 0)
            mu__effects_fail_forgotten(ctx, e, batch);
    }
    reopening_free(r);
}

void mu__effects_forget_reopenings(struct effects *e, struct write_batch *batch)
{
    batch->reopening = 0;
    for (struct reopening *r = first_reopening(e); r != NULL;
         r = MU__LIST_NEXT(r, struct reopening, node))
        if (r->batch == batch)
            r->batch = NULL;
}

void mu__effects_drop_reopenings(struct effects *e)
{
    struct reopening *r;

    while ((r = first_reopening(e)) != NULL) {
        mu__list_remove(&e->reopenings, &r->node);
        reopening_free(r);
    }
}
