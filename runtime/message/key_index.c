/* The crit-bit tree of a map's keys. */
#include "runtime/message/key_index.h"

#include "muster/error.h"

#include <stdlib.h>
#include <string.h>

/* A link is a node's number, or a key's position with LEAF set. */
#define LEAF UINT32_C(0x80000000)

struct mu__key_node {
    uint32_t byte;     /* the first byte in which the keys below differ */
    uint32_t mask;     /* its highest bit that does */
    uint32_t links[2]; /* keys without that bit, keys with it */
};

/* A bit of a key. A key that ends before it has zero there. */
struct at {
    uint32_t byte;
    uint32_t mask;
};

void mu__key_index_done(struct mu__key_index *index)
{
    free(index->nodes);
    *index = (struct mu__key_index){.nodes = NULL};
}

int mu__key_index_reserve(struct mu__key_index *index, uint32_t count)
{
    struct mu__key_node *nodes;
    uint32_t capacity;

    if (count < MU__KEY_INDEX_LINEAR_MAX || count < index->capacity)
        return 0;
    capacity = 2 * count;
    nodes = realloc(index->nodes, capacity * sizeof *nodes);
    if (nodes == NULL)
        return -MU_ENOMEM;
    index->nodes = nodes;
    index->capacity = capacity;
    return 0;
}

static unsigned get_key_side(struct at at, const char *key, size_t length)
{
    unsigned bits = at.byte < length ? (unsigned char)key[at.byte] : 0;

    return (bits & at.mask) != 0;
}

/* The key in the tree that agrees with `key` in every bit that is tested on the way. */
static uint32_t find_nearest_key(const struct mu__key_index *index, const char *key)
{
    size_t length = strlen(key);
    uint32_t link = index->root;

    while ((link & LEAF) == 0) {
        const struct mu__key_node *node = &index->nodes[link];

        link =
            node->links[get_key_side((struct at){node->byte, node->mask}, key, length)];
    }
    return link & ~LEAF;
}

/* The first bit in which two different keys differ. */
static struct at find_first_difference(const char *a, const char *b)
{
    struct at at = {0, 0x80};
    unsigned bits;

    while (a[at.byte] == b[at.byte])
        at.byte++;
    bits = (unsigned char)(a[at.byte] ^ b[at.byte]);
    while ((bits & at.mask) == 0)
        at.mask >>= 1;
    return at;
}

static bool comes_before(const struct mu__key_node *node, struct at at)
{
    return node->byte < at.byte || (node->byte == at.byte && node->mask > at.mask);
}

/* Node number at - 1 separates keys[at] from those in the tree. It belongs above the
 * first node that tests a later bit. */
static void insert_key(struct mu__key_index *index, char *const *keys, uint32_t at)
{
    const char *key = keys[at];
    size_t length = strlen(key);
    struct at differs = find_first_difference(key, keys[find_nearest_key(index, key)]);
    unsigned own_side = get_key_side(differs, key, length);
    uint32_t *link = &index->root;
    struct mu__key_node *added = &index->nodes[at - 1];

    while ((*link & LEAF) == 0) {
        struct mu__key_node *node = &index->nodes[*link];

        if (!comes_before(node, differs))
            break;
        link =
            &node->links[get_key_side((struct at){node->byte, node->mask}, key, length)];
    }
    *added = (struct mu__key_node){.byte = differs.byte, .mask = differs.mask};
    added->links[own_side] = at | LEAF;
    added->links[1 - own_side] = *link;
    *link = at - 1;
}

void mu__key_index_add(struct mu__key_index *index, char *const *keys, uint32_t count)
{
    if (count < MU__KEY_INDEX_LINEAR_MAX)
        return;
    if (count == MU__KEY_INDEX_LINEAR_MAX) {
        index->root = LEAF;
        for (uint32_t i = 1; i < count; i++)
            insert_key(index, keys, i);
    }
    insert_key(index, keys, count);
}

bool mu__key_index_find(const struct mu__key_index *index, char *const *keys,
                        uint32_t count, const char *key, uint32_t *ret_index)
{
    uint32_t at = 0;

    if (count > MU__KEY_INDEX_LINEAR_MAX) {
        at = find_nearest_key(index, key);
        if (strcmp(keys[at], key) != 0)
            return false;
    } else {
        while (at < count && strcmp(keys[at], key) != 0)
            at++;
        if (at == count)
            return false;
    }
    *ret_index = at;
    return true;
}
