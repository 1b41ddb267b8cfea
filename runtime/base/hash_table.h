/* An intrusive hash table: each entry has a struct mu__hash_node in it. The table
 * compares hashes only; the caller compares the keys of entries with the same hash.
 * Where peers choose the keys, the hash is keyed with a secret (sip_hash.h).
 *
 *     struct job { struct mu__hash_node node; ... };      the node is the first member
 *     for (node = mu__hash_table_find(&table, hash); node != NULL;
 *          node = mu__hash_next(node)) ...
 *
 * text_map.h is the same for strings; map.h maps numbers to pointers, without nodes. */
#ifndef MU_RUNTIME_HASH_TABLE_H
#define MU_RUNTIME_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct mu__hash_node {
    struct mu__hash_node *next; /* of the same bucket */
    uint64_t hash;
};

/* Zeroed memory is an empty table. */
struct mu__hash_table {
    struct mu__hash_node **buckets;
    size_t buckets_count; /* a power of two, or 0 */
    size_t count;
};

/* Frees the table's own memory, not what is in it. */
void mu__hash_table_done(struct mu__hash_table *table);

/* The nodes with this hash, beginning with the last that was added; NULL: no more. */
struct mu__hash_node *mu__hash_table_find(const struct mu__hash_table *table,
                                          uint64_t hash);
struct mu__hash_node *mu__hash_next(const struct mu__hash_node *node);

/* -MU_ENOMEM: the node was not added. */
int mu__hash_table_add(struct mu__hash_table *table, uint64_t hash,
                       struct mu__hash_node *node);

/* `node` is in the table. */
void mu__hash_table_remove(struct mu__hash_table *table, struct mu__hash_node *node);

/* All nodes, in no particular order: NULL gives the first, and NULL follows the last. A
 * node may be removed once the one after it was fetched. */
struct mu__hash_node *mu__hash_table_next(const struct mu__hash_table *table,
                                          const struct mu__hash_node *node);

#endif
