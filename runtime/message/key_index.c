/* The crit-bit tree of a map's keys. */
#include "runtime/message/key_index.h"

#include "muster/error.h"

#include <stdlib.h>
#include <string.h>

/* A link is a node's number, or a key's place with LEAF set. */
#define LEAF UINT32_C(0x80000000)

struct mu__key_node {
    uint32_t byte;          /* the first byte in which the keys below differ */
    uint32_t mask;          /* its highest bit that does */
    uint32_t links[2];      /* keys without that bit, keys with it */
};

/* A place in a key. A key that ends before it counts as zero there. */
struct place {
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

static unsigned side(struct place place, const char *key, size_t length)
{
    unsigned bits = place.byte < length ? (unsigned char)key[place.byte] : 0;

    return (bits & place.mask) != 0;
}

/* The key that is like `key` in every bit that the tree asks. */
static uint32_t nearest(const struct mu__key_index *index, const char *key)
{
    size_t length = strlen(key);
    uint32_t link = index->root;

    while ((link & LEAF) == 0) {
        const struct mu__key_node *node = &index->nodes[link];

        link = node->links[side((struct place){node->byte, node->mask}, key, length)];
    }
    return link & ~LEAF;
}

/* The first bit in which two different keys differ. */
static struct place difference(const char *a, const char *b)
{
    struct place place = {0, 0x80};
    unsigned bits;

    while (a[place.byte] == b[place.byte])
        place.byte++;
    bits = (unsigned char)(a[place.byte] ^ b[place.byte]);
    while ((bits & place.mask) == 0)
        place.mask >>= 1;
    return place;
}

static bool comes_before(const struct mu__key_node *node, struct place place)
{
    return node->byte < place.byte ||
           (node->byte == place.byte && node->mask > place.mask);
}

/* Node number place - 1 parts keys[place] from those in the tree. It belongs above the
 * first node that asks a later bit. */
static void insert(struct mu__key_index *index, char *const *keys, uint32_t place)
{
    const char *key = keys[place];
    size_t length = strlen(key);
    struct place differs = difference(key, keys[nearest(index, key)]);
    unsigned own_side = side(differs, key, length);
    uint32_t *link = &index->root;
    struct mu__key_node *added = &index->nodes[place - 1];

    while ((*link & LEAF) == 0) {
        struct mu__key_node *node = &index->nodes[*link];

        if (!comes_before(node, differs))
            break;
        link = &node->links[side((struct place){node->byte, node->mask}, key, length)];
    }
    *added = (struct mu__key_node){.byte = differs.byte, .mask = differs.mask};
    added->links[own_side] = place | LEAF;
    added->links[1 - own_side] = *link;
    *link = place - 1;
}

void mu__key_index_add(struct mu__key_index *index, char *const *keys, uint32_t count)
{
    if (count < MU__KEY_INDEX_LINEAR_MAX)
        return;
    if (count == MU__KEY_INDEX_LINEAR_MAX) {
        index->root = LEAF;
        for (uint32_t i = 1; i < count; i++)
            insert(index, keys, i);
    }
    insert(index, keys, count);
}

bool mu__key_index_find(const struct mu__key_index *index, char *const *keys,
                        uint32_t count, const char *key, uint32_t *ret_place)
{
    uint32_t place = 0;

    if (count > MU__KEY_INDEX_LINEAR_MAX) {
        place = nearest(index, key);
        if (strcmp(keys[place], key) != 0)
            return false;
    } else {
        while (place < count && strcmp(keys[place], key) != 0)
            place++;
        if (place == count)
            return false;
    }
    *ret_place = place;
    return true;
}
