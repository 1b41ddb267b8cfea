#include "runtime/base/hash_table.h"

#include "muster/error.h"

#include <assert.h>
#include <stdlib.h>

enum { BUCKETS_FIRST = 16 };

static struct mu__hash_node **get_hash_bucket(const struct mu__hash_table *table,
                                              uint64_t hash)
{
    return &table->buckets[hash & (table->buckets_count - 1)];
}

/* The first node with this hash from `node` on. */
static struct mu__hash_node *same_hash(struct mu__hash_node *node, uint64_t hash)
{
    while (node != NULL && node->hash != hash)
        node = node->next;
    return node;
}

void mu__hash_table_done(struct mu__hash_table *table)
{
    free(table->buckets);
    *table = (struct mu__hash_table){0};
}

struct mu__hash_node *mu__hash_table_find(const struct mu__hash_table *table,
                                          uint64_t hash)
{
    return table->count == 0 ? NULL : same_hash(*get_hash_bucket(table, hash), hash);
}

struct mu__hash_node *mu__hash_next(const struct mu__hash_node *node)
{
    return same_hash(node->next, node->hash);
}

/* Nodes of one hash keep their order. */
static void insert_hash_node(struct mu__hash_table *table, struct mu__hash_node *node)
{
    struct mu__hash_node **bucket = get_hash_bucket(table, node->hash);
    struct mu__hash_node *last = same_hash(*bucket, node->hash);

    while (last != NULL && mu__hash_next(last) != NULL)
        last = mu__hash_next(last);
    if (last != NULL)
        bucket = &last->next;
    node->next = *bucket;
    *bucket = node;
}

static int grow_hash_table(struct mu__hash_table *table)
{
    struct mu__hash_table grown = *table;

    grown.buckets_count =
        table->buckets_count == 0 ? BUCKETS_FIRST : table->buckets_count * 2;
    grown.buckets = calloc(grown.buckets_count, sizeof(struct mu__hash_node *));
    if (grown.buckets == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < table->buckets_count; i++)
        while (table->buckets[i] != NULL) {
            struct mu__hash_node *node = table->buckets[i];

            table->buckets[i] = node->next;
            insert_hash_node(&grown, node);
        }
    free(table->buckets);
    *table = grown;
    return 0;
}

int mu__hash_table_add(struct mu__hash_table *table, uint64_t hash,
                       struct mu__hash_node *node)
{
    struct mu__hash_node **bucket;

    if (table->count == table->buckets_count && grow_hash_table(table) != 0)
        return -MU_ENOMEM;
    bucket = get_hash_bucket(table, hash);
    *node = (struct mu__hash_node){*bucket, hash};
    *bucket = node;
    table->count++;
    return 0;
}

void mu__hash_table_remove(struct mu__hash_table *table, struct mu__hash_node *node)
{
    struct mu__hash_node **link = get_hash_bucket(table, node->hash);

    while (*link != node) {
        assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = node->next;
    *node = (struct mu__hash_node){0};
    table->count--;
}

struct mu__hash_node *mu__hash_table_next(const struct mu__hash_table *table,
                                          const struct mu__hash_node *node)
{
    size_t i = 0;

    if (node != NULL) {
        if (node->next != NULL)
            return node->next;
        i = (node->hash & (table->buckets_count - 1)) + 1;
    }
    while (i < table->buckets_count && table->buckets[i] == NULL)
        i++;
    return i < table->buckets_count ? table->buckets[i] : NULL;
}
