/* A node as the owner of its remote and per-worker values, which hold its memory: they
 * may be read and freed whenever, also after it was closed. */
#include "node/node.h"

#include "actors/messages.h"

static void owner_ref(struct mu__future_owner *owner)
{
    mu__node_ref(owner->node);
}

static void owner_unref(struct mu__future_owner *owner)
{
    mu__node_unref(owner->node);
}

static void owner_give_back(struct mu__future_owner *owner, struct mu__held *held)
{
    struct mu__msg *msg = mu__msg_heap(MU__RELEASE_HELD, sizeof(struct mu__release_held));

    if (msg != NULL)
        ((struct mu__release_held *)mu__body(msg))->held = held;
    if (msg == NULL || mu__node_post(owner->node, MU__CLIENT, msg) != 0)
        mu__held_free(held);
}

void mu__node_init_future_owner(mu_node *node)
{
    node->future_owner = (struct mu__future_owner){
        .node = node,
        .ref = owner_ref,
        .unref = owner_unref,
        .give_back = owner_give_back,
    };
}
