/* A map from non-zero 64-bit numbers to pointers. Open addressing, linear probing.
 *
 * Where peers choose the keys the map has a seed that they do not know (mu__secret):
 * otherwise they could choose many keys of the same slot. For keys of our own a simple
 * hash is enough. The order of the entries depends on the seed. */
#ifndef MU_RUNTIME_MAP_H
#define MU_RUNTIME_MAP_H

#include <stddef.h>
#include <stdint.h>

struct mu__map_entry {
    uint64_t key; /* 0: empty */
    void *value;
};

/* Zeroed memory is an empty map. */
struct mu__map {
    struct mu__map_entry *entries;
    size_t count;
    size_t capacity; /* a power of two, or 0 */
    uint64_t seed;   /* 0: the keys are ours */
};

/* Before the first entry is set. */
void mu__map_seed(struct mu__map *map, uint64_t seed);

/* Frees the map's own memory, not what it points to. The seed stays. */
void mu__map_done(struct mu__map *map);

/* NULL when there is none. */
void *mu__map_get(const struct mu__map *map, uint64_t key);

/* Sets or replaces an entry; replacing allocates nothing. `key` is not 0, `value` not
 * NULL. -MU_ENOMEM: nothing changed. */
int mu__map_set(struct mu__map *map, uint64_t key, void *value);

/* Takes out and returns the value, NULL when there is none. */
void *mu__map_remove(struct mu__map *map, uint64_t key);

#endif
