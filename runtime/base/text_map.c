#include "runtime/base/text_map.h"

#include <string.h>

static uint64_t hash_map_text(const struct mu__text_map *map, struct mu__view text)
{
    const unsigned char *at = text.data;
    uint64_t hash = UINT64_C(14695981039346656037) ^ map->secret;

    for (uint32_t i = 0; i < text.size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

void mu__text_map_done(struct mu__text_map *map)
{
    mu__hash_table_done(&map->table);
}

struct mu__text_node *mu__text_map_find(const struct mu__text_map *map,
                                        struct mu__view text)
{
    struct mu__hash_node *at = mu__hash_table_find(&map->table, hash_map_text(map, text));

    for (; at != NULL; at = mu__hash_next(at)) {
        struct mu__text_node *node = (struct mu__text_node *)at;

        if (node->text.size == text.size &&
            (text.size == 0 || memcmp(node->text.data, text.data, text.size) == 0))
            return node;
    }
    return NULL;
}

int mu__text_map_add(struct mu__text_map *map, struct mu__text_node *node)
{
    return mu__hash_table_add(&map->table, hash_map_text(map, node->text), &node->hashed);
}

void mu__text_map_remove(struct mu__text_map *map, struct mu__text_node *node)
{
    mu__hash_table_remove(&map->table, &node->hashed);
}

struct mu__text_node *mu__text_map_next(const struct mu__text_map *map,
                                        const struct mu__text_node *node)
{
    return (struct mu__text_node *)mu__hash_table_next(
        &map->table, node == NULL ? NULL : &node->hashed);
}
