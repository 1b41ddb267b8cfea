#include "runtime/base/map.h"

#include "muster/error.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 16 };

static size_t get_home_slot(const struct mu__map *map, uint64_t key)
{
    if (map->seed != 0) {
        key = (key ^ map->seed) * UINT64_C(0xff51afd7ed558ccd);
        key = (key ^ key >> 32 ^ map->seed >> 17) * UINT64_C(0xc4ceb9fe1a85ec53);
        return (size_t)(key ^ key >> 32) & (map->capacity - 1);
    }
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (map->capacity - 1);
}

void mu__map_seed(struct mu__map *map, uint64_t seed)
{
    assert(map->capacity == 0);
    map->seed = seed;
}

void mu__map_done(struct mu__map *map)
{
    free(map->entries);
    *map = (struct mu__map){.seed = map->seed};
}

/* The key's entry, or the empty one where it would go. */
static struct mu__map_entry *probe_map(const struct mu__map *map, uint64_t key)
{
    size_t i = get_home_slot(map, key);

    while (map->entries[i].key != 0 && map->entries[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return &map->entries[i];
}

void *mu__map_get(const struct mu__map *map, uint64_t key)
{
    return map->count == 0 ? NULL : probe_map(map, key)->value;
}

static int grow_map(struct mu__map *map)
{
    struct mu__map bigger = {
        .count = map->count,
        .capacity = map->capacity == 0 ? CAPACITY_FIRST : map->capacity * 2,
        .seed = map->seed,
    };

    bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
    if (bigger.entries == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].key != 0)
            *probe_map(&bigger, map->entries[i].key) = map->entries[i];
    free(map->entries);
    *map = bigger;
    return 0;
}

static bool is_map_full(const struct mu__map *map)
{
    return map->count * 4 >= map->capacity * 3;
}

int mu__map_set(struct mu__map *map, uint64_t key, void *value)
{
    struct mu__map_entry *entry;

    assert(key != 0 && value != NULL);
    if (is_map_full(map) && mu__map_get(map, key) == NULL) {
        int rv = grow_map(map);

        if (rv != 0)
            return rv;
    }
    entry = probe_map(map, key);
    if (entry->key == 0)
        map->count++;
    *entry = (struct mu__map_entry){key, value};
    return 0;
}

/* Entries behind the hole move up, so that probing never stops short of them. */
static void close_hole(struct mu__map *map, size_t hole)
{
    size_t mask = map->capacity - 1;

    for (size_t i = (hole + 1) & mask; map->entries[i].key != 0; i = (i + 1) & mask) {
        size_t ideal = get_home_slot(map, map->entries[i].key);

        if (((i - ideal) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (struct mu__map_entry){0};
}

void *mu__map_remove(struct mu__map *map, uint64_t key)
{
    struct mu__map_entry *entry;
    void *value;

    if (map->count == 0)
        return NULL;
    entry = probe_map(map, key);
    value = entry->value;
    if (entry->key == 0)
        return NULL;
    map->count--;
    close_hole(map, (size_t)(entry - map->entries));
    return value;
}
