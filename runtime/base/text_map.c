#include "runtime/base/text_map.h"

#include "muster/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS_FIRST = 16 };

static uint64_t hash_of(const struct mu__text_map *map, struct mu__view text)
{
    const unsigned char *at = text.data;
    uint64_t hash = UINT64_C(14695981039346656037) ^ map->secret;

    for (uint32_t i = 0; i < text.size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

static struct mu__text_node **list_of(const struct mu__text_map *map, uint64_t hash)
{
    return &map->lists[hash & (map->lists_count - 1)];
}

void mu__text_map_done(struct mu__text_map *map)
{
    free(map->lists);
    *map = (struct mu__text_map){.secret = map->secret};
}

struct mu__text_node *mu__text_map_find(const struct mu__text_map *map,
                                        struct mu__view text)
{
    uint64_t hash = hash_of(map, text);
    struct mu__text_node *node = map->lists_count == 0 ? NULL : *list_of(map, hash);

    for (; node != NULL; node = node->next)
        if (node->hash == hash && node->text.size == text.size &&
            (text.size == 0 || memcmp(node->text.data, text.data, text.size) == 0))
            return node;
    return NULL;
}

static int grow(struct mu__text_map *map)
{
    struct mu__text_map grown = *map;

    grown.lists_count = map->lists_count == 0 ? LISTS_FIRST : map->lists_count * 2;
    grown.lists = calloc(grown.lists_count, sizeof(struct mu__text_node *));
    if (grown.lists == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < map->lists_count; i++)
        while (map->lists[i] != NULL) {
            struct mu__text_node *node = map->lists[i];
            struct mu__text_node **list = list_of(&grown, node->hash);

            map->lists[i] = node->next;
            node->next = *list;
            *list = node;
        }
    free(map->lists);
    *map = grown;
    return 0;
}

int mu__text_map_add(struct mu__text_map *map, struct mu__text_node *node)
{
    struct mu__text_node **list;

    if (map->count == map->lists_count && grow(map) != 0)
        return -MU_ENOMEM;
    node->hash = hash_of(map, node->text);
    list = list_of(map, node->hash);
    node->next = *list;
    *list = node;
    map->count++;
    return 0;
}

void mu__text_map_remove(struct mu__text_map *map, struct mu__text_node *node)
{
    struct mu__text_node **link = list_of(map, node->hash);

    while (*link != node) {
        assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = node->next;
    map->count--;
}

struct mu__text_node *mu__text_map_next(const struct mu__text_map *map,
                                        const struct mu__text_node *node)
{
    size_t i = 0;

    if (node != NULL) {
        if (node->next != NULL)
            return node->next;
        i = (node->hash & (map->lists_count - 1)) + 1;
    }
    while (i < map->lists_count && map->lists[i] == NULL)
        i++;
    return i < map->lists_count ? map->lists[i] : NULL;
}
