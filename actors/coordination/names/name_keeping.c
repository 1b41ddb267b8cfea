/* What is kept of actors that have no record any more. It is dropped once the deletion of
 * the record is safe, so that it is there as long as a record can come back. A drop that
 * is lost, with this process, is found out by the next host: when it has read the
 * records, the keeper asks for each actor that it has. It asks for each new one, too: its
 * life may be one that does not know that it was stopped. */
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/replies.h"
#include "actors/packing.h"
#include "runtime/message/pool.h"

/* No life of the name up to this epoch has a record. Of a record that cannot be read it
 * is not known when it was made; and what has a higher epoch than this store has given
 * out is of another store. */
static uint64_t find_ended_epoch(struct coordination *c, struct mu__view text)
{
    const struct coord_name *name = mu__coord_name_find(c, text);
    char copy[MU__ACTOR_NAME_MAX + 1];

    if (mu__name_check(text, NULL) != 0)
        return 0;
    if (name != NULL && name->is_made)
        return name->made == 0 ? 0 : name->made - 1;
    mu__view_copy(text, copy, sizeof copy);
    return mu__coord_name_has_record(c, copy) ? 0 : c->revision;
}

void mu__coord_name_drop_kept(struct mu__ctx *ctx, struct coordination *c,
                              struct mu__view text)
{
    struct mu__msg *msg = c->config.kept == NULL
                              ? NULL
                              : mu__pool_get(mu__kernel_pool(ctx->kernel), MU__KEEP_DROP,
                                             sizeof(struct mu__keep_drop) + text.size);
    struct mu__keep_drop *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = text;
    body->epoch = find_ended_epoch(c, text);
    (void)mu__pack_view((uint8_t *)(body + 1), &body->name);
    mu__coord_send(ctx, c, MU__NODE_SELF, msg);
}

void mu__coord_names_review_kept(struct mu__ctx *ctx, struct coordination *c)
{
    if (c->config.kept != NULL)
        mu__coord_send(ctx, c, MU__NODE_SELF, mu__msg_new(ctx, MU__KEEP_REVIEW));
}

/* A host that does not lead says nothing: whoever leads next asks for all again. */
void mu__coord_names_on_keep_check(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__keep_check *body = mu__body(msg);
    struct coordination *c = state;

    if (c->leads && !c->commits.broken && c->names->is_read)
        mu__coord_name_drop_kept(ctx, c, body->name);
}
