#include "actors/supervisor/state/live_nodes.h"

#include "actors/packing.h"

void mu__live_nodes_done(struct live_nodes *nodes)
{
    mu__free_array(nodes->items);
    mu__map_done(&nodes->by_node);
}

struct live_node *mu__live_nodes_find(const struct live_nodes *nodes, uint32_t node)
{
    uintptr_t slot = node == 0 ? 0 : (uintptr_t)mu__map_get(&nodes->by_node, node);

    return slot == 0 ? NULL : &nodes->items[slot - 1];
}

static int index_node(struct live_nodes *nodes, const struct live_node *node)
{
    return mu__map_set(&nodes->by_node, node->node,
                       (void *)(uintptr_t)(node - nodes->items + 1));
}

struct live_node *mu__live_nodes_add(struct live_nodes *nodes,
                                     const struct live_node *node)
{
    struct live_node *added;

    if (!mu__grow_for_one((void **)&nodes->items, &nodes->size, nodes->count,
                          sizeof *nodes->items))
        return NULL;
    added = &nodes->items[nodes->count];
    *added = *node;
    if (index_node(nodes, added) != 0)
        return NULL;
    nodes->count++;
    return added;
}

void mu__live_nodes_remove(struct live_nodes *nodes, uint32_t node)
{
    struct live_node *removed = mu__live_nodes_find(nodes, node);
    const struct live_node *last;

    if (removed == NULL)
        return;
    last = &nodes->items[--nodes->count];
    (void)mu__map_remove(&nodes->by_node, node);
    if (removed == last)
        return;
    *removed = *last;
    /* Takes no memory: an entry has just been removed. */
    (void)index_node(nodes, removed);
}
