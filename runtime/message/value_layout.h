/* The memory layout of values, for the files that make, read and pack them, and those
 * that make references. */
#ifndef MU_RUNTIME_VALUE_LAYOUT_H
#define MU_RUNTIME_VALUE_LAYOUT_H

#include "muster/value.h"
#include "runtime/message/key_index.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The head of every value. One of the structs below follows, by its type, in the
 * same allocation. */
struct mu_value {
    atomic_uint refs;
    uint8_t type; /* enum mu_value_type */
};

union mu__number {
    int64_t integer; /* bool: 0 or 1 */
    double real;
};

/* Bool, int and float. */
struct mu__scalar {
    struct mu_value head;
    union mu__number as;
};

/* Room before the data of bytes and tensors for their msgpack head, so that they can be
 * sent without a copy. The head is written, at the end of the room, when the value is
 * made. */
enum { MU__BLOB_ROOM = 16, MU__TENSOR_ROOM = 80 };

/* String and bytes; a zero byte follows that the size does not count. */
struct mu__blob {
    struct mu_value head;
    size_t size;
    uint8_t room[MU__BLOB_ROOM];
    char data[];
};

/* List and map, in the order in which items were put in. */
struct mu__container {
    struct mu_value head;
    uint32_t count;
    uint32_t capacity;
    mu_value **items;
    char **keys;                /* of a map: zero-terminated, each a malloc of its own */
    struct mu__key_index index; /* of a map */
    struct mu__container *next_dead; /* among those being freed */
};

static inline bool mu__value_is_container(const mu_value *value)
{
    return value->type == MU_VALUE_LIST || value->type == MU_VALUE_MAP;
}

struct mu__tensor {
    struct mu_value head;
    uint8_t dtype;
    uint8_t rank;
    size_t bytes;
    uint64_t dims[MU_TENSOR_RANK_MAX];
    uint8_t room[MU__TENSOR_ROOM];
    alignas(16) uint8_t data[];
};

/* A placeholder for another value, by number. In the process that made it, it may also
 * hold an object. */
struct mu__reference {
    struct mu_value head;
    uint64_t number;
    void *holder; /* not packed; NULL after unpacking */
    void (*drop)(void *holder);
};

/* `drop_it`, which may be NULL, is called with `holder` when the reference is freed. NULL
 * when out of memory: then `holder` stays the caller's. */
mu_value *mu__value_reference(uint64_t number, void *holder,
                              void (*drop_it)(void *holder));

/* Write the head of bytes or a tensor into the room before its data. */
void mu__value_write_room(mu_value *value);

/* String or bytes of a size; the content is not checked. NULL when out of memory. */
mu_value *mu__value_blob(enum mu_value_type type, const void *data, size_t size);

/* A list or map with room for `capacity` items. NULL when out of memory. */
struct mu__container *mu__value_container(enum mu_value_type type, uint32_t capacity);

/* Put an item under a new key of `size` bytes, which is UTF-8 without zero bytes.
 * -MU_EEXISTS when the map has the key. Owns: takes `item`, whatever is returned. */
int mu__value_put(struct mu__container *map, const void *key, size_t size,
                  mu_value *item);

/* Bytes of a tensor. False for an unknown dtype, a high rank or a size that overflows. */
bool mu__tensor_bytes(int dtype, unsigned rank, const uint64_t *dims, size_t *ret_bytes);

#endif
