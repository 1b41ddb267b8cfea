/* What was begun on a server and was given up: the server is told, now or as soon as its
 * link has room. */
#include "actors/variables/actions.h"

#include "actors/keep.h"
#include "actors/ps/variable_store.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ABANDONS_MAX = 4096 };  /* beyond, servers learn it only when this node ends */

/* An ABANDON that found no room in its link, and is owed to a server. */
struct pending_abandon {
    struct pending_abandon *next;
    mu__pid to;
    uint64_t variable;
    uint64_t transfer;
};

static int try_abandon(struct mu__ctx *ctx, const struct pending_abandon *abandon)
{
    const struct mu__var_write body = {
        .operation = MU__WRITE_ABANDON,
        .variable = abandon->variable,
        .transfer = abandon->transfer,
    };

    return mu__send_body(ctx, abandon->to, MU__VAR_WRITE, &body, sizeof body);
}

/* Nothing answers an ABANDON. Without it, others would wait for a shard that we do not
 * create for as long as this node lives. A server that is down forgets it anyway. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                           uint64_t variable, uint64_t transfer)
{
    const struct pending_abandon abandon = {NULL, to, variable, transfer};
    struct pending_abandon *stored;
    int rv = try_abandon(ctx, &abandon);

    if (!mu__send_is_transient(rv) || rv == -MU_EUNAVAILABLE)
        return;
    stored = v->abandons_count < ABANDONS_MAX ? malloc(sizeof *stored) : NULL;
    if (stored == NULL) {
        mu__log(ctx, MU__LOG_WARN, "node %" PRIu32 " is not told what was given up",
                to.node);
        return;
    }
    *stored = abandon;
    stored->next = v->abandons;
    v->abandons = stored;
    v->abandons_count++;
    mu__vars_retry_later(ctx, v);
}

void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v)
{
    struct pending_abandon *abandon = v->abandons;

    v->abandons = NULL;
    v->abandons_count = 0;
    while (abandon != NULL) {
        struct pending_abandon *next = abandon->next;

        mu__vars_send_abandon(ctx, v, abandon->to, abandon->variable, abandon->transfer);
        free(abandon);
        abandon = next;
    }
}

void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part)
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

void mu__vars_drop_abandons(struct variables *v)
{
    while (v->abandons != NULL) {
        struct pending_abandon *next = v->abandons->next;

        free(v->abandons);
        v->abandons = next;
    }
}
