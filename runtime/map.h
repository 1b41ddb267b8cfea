/* A map from non-zero 64-bit numbers to pointers. Open addressing, linear probing; the
 * numbers are ours (never chosen by a peer), so a simple hash is enough. */
#ifndef MU_RUNTIME_MAP_H
#define MU_RUNTIME_MAP_H

#include <stddef.h>
#include <stdint.h>

struct mu__map_entry {
    uint64_t key;   /* 0: empty */
    void *value;
};

/* Zeroed memory is an empty map. */
struct mu__map {
    struct mu__map_entry *entries;
    size_t count;
    size_t capacity;    /* a power of two, or 0 */
};

/* Frees the map's own memory, not what it points to. */
void mu__map_done(struct mu__map *map);

/* NULL when there is none. */
void *mu__map_get(const struct mu__map *map, uint64_t key);

/* Sets, or replaces, which takes no memory. `key` and `value` are not 0. -MU_ENOMEM:
 * nothing changed. */
int mu__map_set(struct mu__map *map, uint64_t key, void *value);

/* Takes out and returns the value, NULL when there is none. */
void *mu__map_remove(struct mu__map *map, uint64_t key);

#endif
