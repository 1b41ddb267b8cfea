/* An index of a map's keys: a linear search while there are few, and then a crit-bit
 * tree.
 *
 * A crit-bit tree tests one bit of the key at each node, always the first one in which
 * the keys below it differ, so a look-up takes no more steps than the key has bits,
 * whatever keys a peer has chosen. A hash table would need a secret number to promise
 * that.
 *
 * The index refers to keys by their position in the map's array of keys, which is passed
 * to each call. Keys are zero-terminated strings. */
#ifndef MU_RUNTIME_KEY_INDEX_H
#define MU_RUNTIME_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MU__KEY_INDEX_LINEAR_MAX = 8 }; /* keys that are compared one by one */

struct mu__key_index {
    struct mu__key_node *nodes; /* one fewer than keys; NULL while there are few */
    uint32_t capacity;
    uint32_t root;
};

void mu__key_index_done(struct mu__key_index *index);

/* Make room for one more key than `count`. -MU_ENOMEM: nothing has changed. */
int mu__key_index_reserve(struct mu__key_index *index, uint32_t count);

/* Add keys[count], which must not be among the `count` keys before it, and for which room
 * was reserved. */
void mu__key_index_add(struct mu__key_index *index, char *const *keys, uint32_t count);

/* The position of a key among `count` keys. */
bool mu__key_index_find(const struct mu__key_index *index, char *const *keys,
                        uint32_t count, const char *key, uint32_t *ret_index);

#endif
