/* The nodes whose links are up, by node number. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_LIVE_NODES_H
#define MU_ACTORS_SUPERVISOR_LIVE_NODES_H

#include "runtime/base/map.h"

#include <stdbool.h>

struct live_node {
    uint32_t node;
    uint32_t index;
    uint64_t since_ms;
    char type[16];
    char address[256];
    bool is_refused;      /* as a worker: REGISTER_REFUSED was sent */
    uint64_t status_cost; /* of what it has asked for, less what time gives back */
    uint64_t status_ms;   /* when that was last */
};

/* In no order. Zeroed memory is empty. */
struct live_nodes {
    struct live_node *items;
    uint32_t count;
    uint32_t size;
    struct mu__map by_node; /* node to index in `items` + 1 */
};

void mu__live_nodes_done(struct live_nodes *nodes);

/* NULL when there is none. */
struct live_node *mu__live_nodes_find(const struct live_nodes *nodes, uint32_t node);

/* `node` is copied. NULL: out of memory. */
struct live_node *mu__live_nodes_add(struct live_nodes *nodes,
                                     const struct live_node *node);

/* Does nothing if the node is not there. */
void mu__live_nodes_remove(struct live_nodes *nodes, uint32_t node);

#endif
