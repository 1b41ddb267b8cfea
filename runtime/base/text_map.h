/* A map from strings to whatever has one of its nodes in it. The strings may be chosen by
 * others: their hash begins with a secret number, and those of the same hash are in one
 * list. */
#ifndef MU_ACTORS_TEXT_MAP_H
#define MU_ACTORS_TEXT_MAP_H

#include "runtime/base/view.h"

struct mu__text_node {
    struct mu__text_node *next;
    uint64_t hash;
    struct mu__view text;       /* stays as it is while the node is in a map */
};

/* Zeroed memory is an empty map; `secret` may be set while it is empty. */
struct mu__text_map {
    struct mu__text_node **lists;
    size_t lists_count;         /* a power of two, or 0 */
    size_t count;
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

/* All nodes, in no order: NULL begins, and ends. The one given may be removed once the
 * next is known. */
struct mu__text_node *mu__text_map_next(const struct mu__text_map *map,
                                        const struct mu__text_node *node);

#endif
