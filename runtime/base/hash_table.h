/* The intrusive hash table: what is in it has a struct mu__hash_node. It knows hashes
 * alone; who searches compares the keys of what has the same hash. Where peers choose
 * the keys, the hash has a secret (sip_hash.h).
 *
 *     struct job { struct mu__hash_node node; ... };      the node first
 *     for (node = mu__hash_table_find(&table, hash); node != NULL;
 *          node = mu__hash_next(node)) ...
 *
 * text_map.h is the same for strings. Numbers of which only a pointer is wanted need no
 * node: map.h. */
#ifndef MU_RUNTIME_HASH_TABLE_H
#define MU_RUNTIME_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct mu__hash_node {
    struct mu__hash_node *next;     /* of the same bucket */
    uint64_t hash;
};

/* Zeroed memory is an empty table. */
struct mu__hash_table {
    struct mu__hash_node **buckets;
    size_t buckets_count;           /* a power of two, or 0 */
    size_t count;
};

/* Frees the table's own memory, not what is in it. */
void mu__hash_table_done(struct mu__hash_table *table);

/* The one with this hash that was added last, and then the one before it; NULL: there is
 * none. */
struct mu__hash_node *mu__hash_table_find(const struct mu__hash_table *table,
                                          uint64_t hash);
struct mu__hash_node *mu__hash_next(const struct mu__hash_node *node);

/* -MU_ENOMEM: it is not in the table. */
int mu__hash_table_add(struct mu__hash_table *table, uint64_t hash,
                       struct mu__hash_node *node);

/* `node` is in the table. */
void mu__hash_table_remove(struct mu__hash_table *table, struct mu__hash_node *node);

/* All there are, in no order: NULL begins, and ends. The one given may be removed once
 * the next is known. */
struct mu__hash_node *mu__hash_table_next(const struct mu__hash_table *table,
                                          const struct mu__hash_node *node);

#endif
