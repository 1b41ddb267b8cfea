/* What was begun on a server and is not wanted any more: the server is told, now or as
 * soon as its link has room. */
#include "actors/ps/variables_internal.h"

#include "actors/ps/variable_store.h"

#include <inttypes.h>
#include <stdlib.h>

enum { DEBTS_MAX = 4096 };  /* past it servers learn of it only when the node goes */

/* An ABANDON that found no room in its link, and is owed to a server. */
struct debt {
    struct debt *next;
    mu__pid to;
    uint64_t variable;
    uint64_t transfer;
};

static int try_abandon(struct mu__ctx *ctx, const struct debt *debt)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__VAR_WRITE);

    if (msg != NULL) {
        struct mu__var_write *body = mu__body(msg);

        body->operation = MU__WRITE_ABANDON;
        body->variable = debt->variable;
        body->transfer = debt->transfer;
    }
    return mu__send(ctx, debt->to, msg);
}

/* Nothing answers an ABANDON. Without it, others would wait for what we gave up for as
 * long as this node lives. A server that is not there any more has forgotten it. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                           uint64_t variable, uint64_t transfer)
{
    const struct debt debt = {NULL, to, variable, transfer};
    struct debt *kept;
    int rv = try_abandon(ctx, &debt);

    if (!mu__vars_is_passing(rv) || rv == -MU_EUNAVAILABLE)
        return;
    kept = v->debts_count < DEBTS_MAX ? malloc(sizeof *kept) : NULL;
    if (kept == NULL) {
        mu__log(ctx, MU__LOG_WARN, "node %" PRIu32 " is not told what was given up",
                to.node);
        return;
    }
    *kept = debt;
    kept->next = v->debts;
    v->debts = kept;
    v->debts_count++;
    mu__vars_retry_later(ctx, v);
}

void mu__vars_pay_debts(struct mu__ctx *ctx, struct variables *v)
{
    struct debt *debt = v->debts;

    v->debts = NULL;
    v->debts_count = 0;
    while (debt != NULL) {
        struct debt *next = debt->next;

        mu__vars_send_abandon(ctx, v, debt->to, debt->variable, debt->transfer);
        free(debt);
        debt = next;
    }
}

void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct part *part)
{
    const struct mu__variable_call *call = part->op->call;

    if (!v->servers[part->server].up)
        return;
    if (part->step == OPENING && part->begun)
        mu__vars_send_abandon(ctx, v, pid_of(v, part->server), 0, part->transfer);
    if (part->made || part->staged)
        mu__vars_send_abandon(ctx, v, pid_of(v, part->server), call->ids[part->shard],
                              part->transfer);
}

void mu__vars_forget_debts(struct variables *v)
{
    while (v->debts != NULL) {
        struct debt *next = v->debts->next;

        free(v->debts);
        v->debts = next;
    }
}
