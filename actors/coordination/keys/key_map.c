/* Keys by hash, and in order.
 *
 * Each entry is in two structures. A map by the hash of its key finds it; entries whose
 * whole hashes are equal form a chain. A crit-bit tree has the order: a node tests one
 * bit of the key, the first in which the keys below it differ, so no key is compared on
 * the way down, and a step to the next key is two walks.
 *
 * The tree needs one node fewer than there are keys, and each entry has room for one. A
 * link in the tree means the entry itself (a leaf) or the node in it: the node, when its
 * position is behind that of the node where the link stands, because positions grow on
 * the way down, and else the leaf. This is unambiguous since an entry's node is always an
 * ancestor of its leaf, which keep_room() sees to when an entry goes. The one entry
 * whose node is not in use has position 0. */
#include "actors/coordination/keys/key_map.h"

#include "actors/messages.h"
#include "runtime/base/map.h"
#include "runtime/base/sip_hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUE_ROOM_MIN = 24, /* so that numbers stay in place when they grow */
    DIGIT_BITS = 9,
    POSITION_SHIFT = 4 /* a position: the byte's offset, then its bit's number */
};

/* Fields that each operation reads are in one piece with the key. */
struct key_entry {
    struct key_entry *child[2];   /* of the node that is in it */
    struct key_entry *owned_next; /* of the same owner */
    struct key_entry *owned_before;
    struct key_entry *same_hash;
    struct mu__buf *value; /* NULL when empty */
    uint64_t hash;
    uint64_t revision;
    uint64_t owner;
    uint32_t position; /* of the node that is in it; 0: unused */
    uint32_t key_size;
    uint8_t key[];
};

struct mu__key_values {
    struct mu__map hashes; /* -> the first entry of a chain */
    struct mu__map owners; /* -> the first entry of its list */
    struct key_entry *root;
    struct key_entry *found;   /* last, which is often put next; NULL: none */
    struct key_entry **memory; /* &found, to set it in a const map */
    uint64_t secret;
    uint64_t count;
    uint64_t bytes;
    uint64_t keys_max;
    uint64_t bytes_max;
};

/* ---- Keys ---- */

static int refuse_key(mu_error *error, const char *why, uint64_t number)
{
    return mu_error_set(error, -MU_EINVALID, "a key %s %" PRIu64, why, number);
}

int mu__key_normalize(struct mu__view key, bool may_be_empty, mu_error *ret_error,
                      char out[1024], uint32_t *ret_size)
{
    const uint8_t *from = key.data;
    uint32_t size = 0;
    bool slash = false;

    for (uint32_t i = 0; i < key.size; i++) {
        if (from[i] < 32)
            return refuse_key(ret_error,
                              "may have no control characters; there is one at byte", i);
        if (from[i] == '/') {
            slash = size > 0;
            continue;
        }
        if (size + slash >= MU__KEY_MAX)
            return refuse_key(
                ret_error, "may have so many bytes, and this one has more:", MU__KEY_MAX);
        if (slash)
            out[size++] = '/';
        out[size++] = (char)from[i];
        slash = false;
    }
    if (size == 0 && !may_be_empty)
        return mu_error_set(ret_error, -MU_EINVALID, "a key may not be empty");
    out[size] = '\0';
    *ret_size = size;
    return 0;
}

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether eight bytes are neither slashes nor below 32. */
static bool are_bytes_plain(const uint8_t *at)
{
    uint64_t word;
    uint64_t slashes;

    memcpy(&word, at, 8);
    slashes = word ^ EACH_BYTE('/');
    return ((((word - EACH_BYTE(32)) & ~word) | ((slashes - EACH_BYTE(1)) & ~slashes)) &
            EACH_BYTE(128)) == 0;
}

bool mu__key_is_normal(struct mu__view key)
{
    const uint8_t *at = key.data;
    bool slash = true; /* one more is wrong here */

    if (key.size > MU__KEY_MAX)
        return false;
    for (uint32_t i = 0; i < key.size; i++) {
        if (i + 8 <= key.size && are_bytes_plain(at + i)) {
            slash = false;
            i += 7;
            continue;
        }
        if (at[i] < 32 || (slash && at[i] == '/'))
            return false;
        slash = at[i] == '/';
    }
    return key.size == 0 || !slash;
}

bool mu__key_is_below(struct mu__view key, struct mu__view directory)
{
    const uint8_t *at = key.data;

    if (directory.size == 0)
        return true;
    return key.size > directory.size && at[directory.size] == '/' &&
           memcmp(at, directory.data, directory.size) == 0;
}

static uint64_t hash_key(const struct mu__key_values *kv, struct mu__view key)
{
    return mu__sip_hash(kv->secret, key.data, key.size);
}

static bool is_entry_key(const struct key_entry *entry, struct mu__view key)
{
    return entry->key_size == key.size &&
           (key.size == 0 || memcmp(entry->key, key.data, key.size) == 0);
}

static struct key_entry *find_key_entry(const struct mu__key_values *kv, uint64_t hash,
                                        struct mu__view key)
{
    struct key_entry *entry = mu__map_get(&kv->hashes, hash);

    while (entry != NULL && !is_entry_key(entry, key))
        entry = entry->same_hash;
    return entry;
}

/* Replace the value of a key in a map. The old one is removed first, so that this takes
 * no memory. */
static void replace_map_value(struct mu__map *map, uint64_t key, void *value)
{
    int rv;

    (void)mu__map_remove(map, key);
    rv = mu__map_set(map, key, value);
    assert(rv == 0);
}

static int add_to_hashes(struct mu__key_values *kv, struct key_entry *entry)
{
    entry->same_hash = mu__map_get(&kv->hashes, entry->hash);
    if (entry->same_hash == NULL)
        return mu__map_set(&kv->hashes, entry->hash, entry);
    replace_map_value(&kv->hashes, entry->hash, entry);
    return 0;
}

static void take_from_hashes(struct mu__key_values *kv, struct key_entry *entry)
{
    struct key_entry *before = mu__map_get(&kv->hashes, entry->hash);

    if (before != entry) {
        while (before->same_hash != entry)
            before = before->same_hash;
        before->same_hash = entry->same_hash;
    } else if (entry->same_hash == NULL) {
        (void)mu__map_remove(&kv->hashes, entry->hash);
    } else {
        replace_map_value(&kv->hashes, entry->hash, entry->same_hash);
    }
}

/* ---- The order ---- */

/* A key's byte as a number of nine bits, in the order of keys: the end, '/', the rest. */
static inline unsigned get_key_digit(struct mu__view key, uint32_t offset)
{
    uint8_t byte;

    if (offset >= key.size)
        return 0;
    byte = ((const uint8_t *)key.data)[offset];
    return byte == '/' ? 1 : (unsigned)byte + 2;
}

static inline unsigned bit_at(struct mu__view key, uint32_t position)
{
    unsigned which = position & ((1u << POSITION_SHIFT) - 1);

    return get_key_digit(key, position >> POSITION_SHIFT) >> (DIGIT_BITS - which) & 1;
}

static struct mu__view get_entry_key(const struct key_entry *entry)
{
    return (struct mu__view){entry->key, entry->key_size};
}

/* Position of the first bit in which two keys differ; 0: they do not. */
static uint32_t first_difference(struct mu__view a, struct mu__view b)
{
    const uint8_t *left = a.data;
    const uint8_t *right = b.data;
    uint32_t least = a.size < b.size ? a.size : b.size;
    uint32_t offset = 0;
    unsigned differ;
    unsigned which = 1;

    while (offset < least && left[offset] == right[offset])
        offset++;
    differ = get_key_digit(a, offset) ^ get_key_digit(b, offset);
    if (differ == 0)
        return 0;
    while (differ >> (DIGIT_BITS - which) == 0)
        which++;
    return offset << POSITION_SHIFT | which;
}

/* A leaf that agrees with the key in all bits that the nodes on the way test. */
static struct key_entry *find_leaf(const struct mu__key_values *kv, struct mu__view key)
{
    struct key_entry *at = kv->root;
    uint32_t last = 0;

    while (at->position > last) {
        last = at->position;
        at = at->child[bit_at(key, last)];
    }
    return at;
}

int mu__key_compare(struct mu__view a, struct mu__view b)
{
    uint32_t position = first_difference(a, b);

    if (position == 0)
        return 0;
    return bit_at(a, position) == 0 ? -1 : 1;
}

static void add_to_order(struct mu__key_values *kv, struct key_entry *entry)
{
    struct mu__view key = get_entry_key(entry);
    struct key_entry **link = &kv->root;
    uint32_t last = 0;
    uint32_t position;
    unsigned side;

    entry->position = 0;
    if (kv->root == NULL) {
        kv->root = entry;
        return;
    }
    position = first_difference(key, get_entry_key(find_leaf(kv, key)));
    assert(position > 0);
    while ((*link)->position > last && (*link)->position < position) {
        last = (*link)->position;
        link = &(*link)->child[bit_at(key, last)];
    }
    side = bit_at(key, position);
    entry->position = position;
    entry->child[side] = entry;
    entry->child[!side] = *link;
    *link = entry;
}

/* The leaf of `removed` was taken out of the tree, and with it the node in `parent`. Move
 * the node of `removed`, if that is in use, into `parent`: `node_link` is the link to it.
 * The leaf of `parent` is below both nodes. */
static void keep_room(struct key_entry *removed, struct key_entry *parent,
                      struct key_entry **node_link)
{
    if (parent == removed)
        return;
    parent->position = removed->position;
    if (removed->position == 0)
        return;
    parent->child[0] = removed->child[0];
    parent->child[1] = removed->child[1];
    *node_link = parent;
}

static void take_from_order(struct mu__key_values *kv, struct key_entry *entry)
{
    struct mu__view key = get_entry_key(entry);
    struct key_entry **link = &kv->root;
    struct key_entry **parent_link = NULL;
    struct key_entry **node_link = NULL;
    struct key_entry *parent;
    uint32_t last = 0;

    while ((*link)->position > last) {
        if (*link == entry)
            node_link = link;
        last = (*link)->position;
        parent_link = link;
        link = &(*link)->child[bit_at(key, last)];
    }
    assert(*link == entry);
    if (parent_link == NULL) {
        kv->root = NULL;
        return;
    }
    parent = *parent_link;
    *parent_link = parent->child[link == &parent->child[0]];
    keep_room(entry, parent, node_link);
}

/* The first leaf at a link that stands in a node of position `last`. */
static const struct key_entry *first_below(const struct key_entry *at, uint32_t last)
{
    while (at->position > last) {
        last = at->position;
        at = at->child[0];
    }
    return at;
}

/* The first leaf behind all that agree with the key in the bits before `position`, which
 * is 0 for all bits. NULL: none. */
static const struct key_entry *find_first_behind(const struct mu__key_values *kv,
                                                 struct mu__view key, uint32_t position)
{
    const struct key_entry *at = kv->root;
    const struct key_entry *turn = NULL; /* the last node where the key goes left */
    uint32_t last = 0;

    while (at->position > last && (position == 0 || at->position < position)) {
        unsigned side = bit_at(key, at->position);

        if (side == 0)
            turn = at;
        last = at->position;
        at = at->child[side];
    }
    return turn == NULL ? NULL : first_below(turn->child[1], turn->position);
}

/* The first leaf of those that agree with the key in the bits before `position`. */
static const struct key_entry *first_like(const struct mu__key_values *kv,
                                          struct mu__view key, uint32_t position)
{
    const struct key_entry *at = kv->root;
    uint32_t last = 0;

    while (at->position > last && at->position < position) {
        last = at->position;
        at = at->child[bit_at(key, last)];
    }
    return first_below(at, last);
}

static const struct key_entry *find_next_entry(const struct mu__key_values *kv,
                                               struct mu__view from, bool behind)
{
    const struct key_entry *near;
    uint32_t position;

    if (kv->root == NULL)
        return NULL;
    near = find_leaf(kv, from);
    position = first_difference(from, get_entry_key(near));
    if (position == 0)
        return behind ? find_first_behind(kv, from, 0) : near;
    if (bit_at(from, position) == 0)
        return first_like(kv, from, position);
    return find_first_behind(kv, from, position);
}

/* ---- Owners: a list of the entries of each owner, the first one in the map ---- */

static void take_from_owner(struct mu__key_values *kv, struct key_entry *entry)
{
    if (entry->owner == 0)
        return;
    if (entry->owned_next != NULL)
        entry->owned_next->owned_before = entry->owned_before;
    if (entry->owned_before != NULL)
        entry->owned_before->owned_next = entry->owned_next;
    else if (entry->owned_next != NULL)
        replace_map_value(&kv->owners, entry->owner, entry->owned_next);
    else
        (void)mu__map_remove(&kv->owners, entry->owner);
    entry->owner = 0;
}

/* -MU_ENOMEM: nothing has changed. */
static int set_owner(struct mu__key_values *kv, struct key_entry *entry, uint64_t owner)
{
    struct key_entry *first;

    if (entry->owner == owner)
        return 0;
    first = owner == 0 ? NULL : mu__map_get(&kv->owners, owner);
    if (owner != 0 && first == NULL && mu__map_set(&kv->owners, owner, entry) != 0)
        return -MU_ENOMEM;
    take_from_owner(kv, entry);
    if (first != NULL) {
        replace_map_value(&kv->owners, owner, entry);
        first->owned_before = entry;
    }
    entry->owner = owner;
    entry->owned_next = first;
    entry->owned_before = NULL;
    return 0;
}

/* ---- Entries ---- */

static uint32_t value_size(const struct key_entry *entry)
{
    return entry->value == NULL ? 0 : entry->value->size;
}

/* A buffer for a new value: the entry's own when nothing else refers to it and it has
 * about that size, or a new one; NULL for an empty value. */
static int room_for(const struct key_entry *entry, uint32_t size,
                    struct mu__buf **ret_room)
{
    struct mu__buf *own = entry->value;
    struct mu__buf *room = NULL;

    if (size > 0 && own != NULL && own->refs == 1 && own->capacity >= size &&
        own->capacity / 2 <= size + VALUE_ROOM_MIN)
        room = mu__buf_ref(own);
    else if (size > 0)
        room = mu__buf_new(size < VALUE_ROOM_MIN ? VALUE_ROOM_MIN : size);
    if (size > 0 && room == NULL)
        return -MU_ENOMEM;
    *ret_room = room;
    return 0;
}

static void fill_value(struct key_entry *entry, struct mu__buf *room,
                       struct mu__view value)
{
    if (room != NULL) {
        memcpy(room->data, value.data, value.size);
        room->size = value.size;
    }
    mu__buf_unref(entry->value);
    entry->value = room;
}

static void free_entry(struct key_entry *entry)
{
    mu__buf_unref(entry->value);
    free(entry);
}

static struct key_entry *make_entry(uint64_t hash, const struct mu__key_value *from)
{
    struct key_entry *entry = malloc(sizeof *entry + from->key.size);
    struct mu__buf *room;

    if (entry == NULL)
        return NULL;
    *entry = (struct key_entry){
        .hash = hash, .revision = from->revision, .key_size = from->key.size};
    if (from->key.size > 0)
        memcpy(entry->key, from->key.data, from->key.size);
    if (room_for(entry, from->value.size, &room) != 0) {
        free(entry);
        return NULL;
    }
    fill_value(entry, room, from->value);
    return entry;
}

static int check_key_bytes(const struct mu__key_values *kv, uint64_t less, uint64_t more,
                           mu_error *error)
{
    if (kv->bytes - less + more <= kv->bytes_max)
        return 0;
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "keys and values have %" PRIu64 " bytes, "
                        "and may have %" PRIu64 ": there is no room for %" PRIu64 " more",
                        kv->bytes, kv->bytes_max, more - less);
}

static int refuse_key_memory(mu_error *error)
{
    return mu_error_set(error, -MU_ENOMEM, "no memory for a key");
}

static int change_key_entry(struct mu__key_values *kv, struct key_entry *entry,
                            const struct mu__key_value *to, mu_error *error)
{
    uint32_t size = value_size(entry);
    struct mu__buf *room;
    int rv = check_key_bytes(kv, size, to->value.size, error);

    if (rv != 0)
        return rv;
    if (room_for(entry, to->value.size, &room) != 0)
        return refuse_key_memory(error);
    if (set_owner(kv, entry, to->owner) != 0) {
        mu__buf_unref(room);
        return refuse_key_memory(error);
    }
    fill_value(entry, room, to->value);
    entry->revision = to->revision;
    kv->bytes = kv->bytes - size + to->value.size;
    return 0;
}

static int add_key_entry(struct mu__key_values *kv, uint64_t hash,
                         const struct mu__key_value *from, mu_error *error)
{
    uint64_t size = (uint64_t)from->key.size + from->value.size;
    struct key_entry *entry;
    int rv = check_key_bytes(kv, 0, size, error);

    if (rv != 0)
        return rv;
    if (kv->count >= kv->keys_max)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "there are %" PRIu64 " keys, as many as there may be",
                            kv->count);
    entry = make_entry(hash, from);
    if (entry == NULL)
        return refuse_key_memory(error);
    if (set_owner(kv, entry, from->owner) != 0 || add_to_hashes(kv, entry) != 0) {
        take_from_owner(kv, entry);
        free_entry(entry);
        return refuse_key_memory(error);
    }
    add_to_order(kv, entry);
    kv->count++;
    kv->bytes += size;
    return 0;
}

static bool show_key_entry(const struct key_entry *entry, struct mu__key_value *ret_entry)
{
    struct mu__view value = {NULL, 0};

    if (entry == NULL)
        return false;
    if (entry->value != NULL)
        value = (struct mu__view){entry->value->data, entry->value->size};
    *ret_entry = (struct mu__key_value){entry->revision, entry->owner,
                                        get_entry_key(entry), value, entry->value};
    return true;
}

/* ---- The map ---- */

struct mu__key_values *mu__key_values_new(uint64_t secret, uint64_t keys_max,
                                          uint64_t bytes_max)
{
    struct mu__key_values *kv = calloc(1, sizeof *kv);

    if (kv == NULL)
        return NULL;
    kv->memory = &kv->found;
    kv->secret = secret;
    mu__map_seed(&kv->owners, secret);
    kv->keys_max = keys_max == 0 ? MU__KEYS_MAX : keys_max;
    kv->bytes_max = bytes_max == 0 ? MU__KEY_BYTES_MAX : bytes_max;
    return kv;
}

void mu__key_values_clear(struct mu__key_values *kv)
{
    for (size_t i = 0; i < kv->hashes.capacity; i++) {
        struct key_entry *entry = kv->hashes.entries[i].value;

        while (entry != NULL) {
            struct key_entry *same = entry->same_hash;

            free_entry(entry);
            entry = same;
        }
    }
    mu__map_done(&kv->hashes);
    mu__map_done(&kv->owners);
    kv->root = NULL;
    kv->found = NULL;
    kv->count = 0;
    kv->bytes = 0;
}

void mu__key_values_free(struct mu__key_values *kv)
{
    if (kv == NULL)
        return;
    mu__key_values_clear(kv);
    free(kv);
}

bool mu__key_values_find(const struct mu__key_values *kv, struct mu__view key,
                         struct mu__key_value *ret_entry)
{
    *kv->memory = find_key_entry(kv, hash_key(kv, key), key);
    return show_key_entry(kv->found, ret_entry);
}

int mu__key_values_put(struct mu__key_values *kv, const struct mu__key_value *entry,
                       mu_error *ret_error)
{
    struct key_entry *found = kv->found;
    uint64_t hash;

    if (found != NULL && is_entry_key(found, entry->key))
        return change_key_entry(kv, found, entry, ret_error);
    hash = hash_key(kv, entry->key);
    found = find_key_entry(kv, hash, entry->key);
    if (found != NULL)
        return change_key_entry(kv, found, entry, ret_error);
    return add_key_entry(kv, hash, entry, ret_error);
}

/* Giving back an owner takes no memory: the map of owners was never smaller since. */
void mu__key_values_restore(struct mu__key_values *kv, const struct mu__key_value *before)
{
    struct key_entry *entry = find_key_entry(kv, hash_key(kv, before->key), before->key);
    int rv = set_owner(kv, entry, before->owner);

    assert(rv == 0);
    kv->bytes = kv->bytes - value_size(entry) + before->value.size;
    mu__buf_unref(entry->value);
    entry->value = before->backing == NULL ? NULL : mu__buf_ref(before->backing);
    entry->revision = before->revision;
}

bool mu__key_values_remove(struct mu__key_values *kv, struct mu__view key)
{
    struct key_entry *entry = find_key_entry(kv, hash_key(kv, key), key);

    if (entry == NULL)
        return false;
    if (kv->found == entry)
        kv->found = NULL;
    take_from_owner(kv, entry);
    take_from_order(kv, entry);
    take_from_hashes(kv, entry);
    kv->count--;
    kv->bytes -= (uint64_t)entry->key_size + value_size(entry);
    free_entry(entry);
    return true;
}

bool mu__key_values_next(const struct mu__key_values *kv, struct mu__view from,
                         bool behind, struct mu__key_value *ret_entry)
{
    return show_key_entry(find_next_entry(kv, from, behind), ret_entry);
}

bool mu__key_values_owned(const struct mu__key_values *kv, uint64_t owner,
                          struct mu__key_value *ret_entry)
{
    return show_key_entry(mu__map_get(&kv->owners, owner), ret_entry);
}

uint64_t mu__key_values_count(const struct mu__key_values *kv)
{
    return kv->count;
}

uint64_t mu__key_values_bytes(const struct mu__key_values *kv)
{
    return kv->bytes;
}

int mu__key_values_check_last_eighth(const struct mu__key_values *kv, mu_error *ret_error)
{
    if (kv->count < kv->keys_max - kv->keys_max / 8 &&
        kv->bytes < kv->bytes_max - kv->bytes_max / 8)
        return 0;
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "there are %" PRIu64 " keys of %" PRIu64
                        " that there may be, and %" PRIu64 " bytes of %" PRIu64
                        ": the last eighth is kept for tasks",
                        kv->count, kv->keys_max, kv->bytes, kv->bytes_max);
}
