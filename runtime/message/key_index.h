/* Finds a map's keys: by looking at each while there are few, and then by a crit-bit
 * tree.
 *
 * A crit-bit tree asks one bit of the key at each node, always the first one in which the
 * keys below it differ, so a look-up takes no more steps than the key has bits whatever
 * keys a peer has chosen. A hash table would need a secret number to promise that.
 *
 * The index knows the keys by their place in the map's array of keys, which it is given
 * at each call. Keys are zero-terminated strings. */
#ifndef MU_RUNTIME_KEY_INDEX_H
#define MU_RUNTIME_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MU__KEY_INDEX_LINEAR_MAX = 8 };  /* keys that are just looked at, one by one */

struct mu__key_index {
    struct mu__key_node *nodes;     /* one fewer than keys; NULL while there are few */
    uint32_t capacity;
    uint32_t root;
};

void mu__key_index_done(struct mu__key_index *index);

/* Room for one more key than `count`. -MU_ENOMEM, and nothing has changed. */
int mu__key_index_reserve(struct mu__key_index *index, uint32_t count);

/* Add keys[count], which must not be among the `count` keys before it. Room is there. */
void mu__key_index_add(struct mu__key_index *index, char *const *keys, uint32_t count);

/* The place of a key among `count` keys. */
bool mu__key_index_find(const struct mu__key_index *index, char *const *keys,
                        uint32_t count, const char *key, uint32_t *ret_index);

#endif
