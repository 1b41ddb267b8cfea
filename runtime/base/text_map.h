/* A hash table with strings as keys, which are in the nodes. Where peers may choose the
 * strings, the hash begins with a secret number. */
#ifndef MU_RUNTIME_TEXT_MAP_H
#define MU_RUNTIME_TEXT_MAP_H

#include "runtime/base/hash_table.h"
#include "runtime/base/view.h"

struct mu__text_node {
    struct mu__hash_node hashed;
    struct mu__view text; /* must not change while the node is in a map */
};

/* Zeroed memory is an empty map; `secret` may be set while it is empty. */
struct mu__text_map {
    struct mu__hash_table table;
    uint64_t secret;
};

/* Frees the map's own memory, not the nodes. */
void mu__text_map_done(struct mu__text_map *map);

/* NULL when there is none. */
struct mu__text_node *mu__text_map_find(const struct mu__text_map *map,
                                        struct mu__view text);

/* Add a node whose text is filled in and not in the map. -MU_ENOMEM. */
int mu__text_map_add(struct mu__text_map *map, struct mu__text_node *node);

void mu__text_map_remove(struct mu__text_map *map, struct mu__text_node *node);

/* All nodes, in no particular order: NULL gives the first, and NULL follows the last. A
 * node may be removed once the one after it was fetched. */
struct mu__text_node *mu__text_map_next(const struct mu__text_map *map,
                                        const struct mu__text_node *node);

#endif
