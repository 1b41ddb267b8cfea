/* Measuring and packing of values. */
#include "runtime/message/value_wire.h"

#include "runtime/message/pack.h"

#include <assert.h>

/* Sizes may pass 32 bits while they are being added up. */
struct sizes {
    uint64_t head;
    uint64_t tail;
};

/* ---- Measuring ---- */

static int measure_value(const mu_value *value, unsigned depth, struct sizes *sizes);

static int measure_items(const mu_value *value, unsigned depth, struct sizes *sizes)
{
    const struct mu__container *container = (const struct mu__container *)value;
    bool is_map = value->type == MU_VALUE_MAP;

    if (depth == 0)
        return -MU_ERANGE;
    sizes->head += mu__pack_container_size(container->count);
    for (uint32_t i = 0; i < container->count; i++) {
        int rv;

        if (is_map) {
            size_t size = strlen(container->keys[i]);

            sizes->head += mu__pack_str_size(size) + size;
        }
        rv = measure_value(container->items[i], depth - 1, sizes);
        if (rv != 0)
            return rv;
    }
    return 0;
}

static void measure_tensor(const mu_value *value, struct sizes *sizes)
{
    const struct mu__tensor *tensor = (const struct mu__tensor *)value;

    sizes->head += MU__TENSOR_EXT_HEAD + mu__tensor_ext_bytes(tensor->rank);
    if (tensor->bytes > 0)
        sizes->tail = mu__tail_align(sizes->tail) + tensor->bytes;
}

static void measure_blob(const mu_value *value, struct sizes *sizes)
{
    const struct mu__blob *blob = (const struct mu__blob *)value;

    if (value->type == MU_VALUE_STRING)
        sizes->head += mu__pack_str_size(blob->size) + (uint64_t)blob->size;
    else
        sizes->head += mu__pack_bin_size(blob->size) + (uint64_t)blob->size;
}

/* `depth` is how many lists and maps may still be entered. */
static int measure_value(const mu_value *value, unsigned depth, struct sizes *sizes)
{
    switch (mu_value_type(value)) {
    case MU_VALUE_NIL:
    case MU_VALUE_BOOL:
        sizes->head += 1;
        break;
    case MU_VALUE_INT:
        sizes->head += mu__pack_i64_size(((const struct mu__scalar *)value)->as.integer);
        break;
    case MU_VALUE_FLOAT:
        sizes->head += 1 + sizeof(double);
        break;
    case MU_VALUE_STRING:
    case MU_VALUE_BYTES:
        measure_blob(value, sizes);
        break;
    case MU_VALUE_LIST:
    case MU_VALUE_MAP:
        return measure_items(value, depth, sizes);
    case MU_VALUE_TENSOR:
        measure_tensor(value, sizes);
        break;
    case MU_VALUE_REFERENCE:
        sizes->head += MU__REFERENCE_BYTES;
        break;
    }
    return sizes->head > UINT32_MAX || sizes->tail > UINT32_MAX ? -MU_ERANGE : 0;
}

int mu__value_measure(const mu_value *value, uint32_t *ret_head, uint32_t *ret_tail)
{
    struct sizes sizes = {0, 0};
    int rv = measure_value(value, MU_VALUE_DEPTH_MAX, &sizes);

    if (rv != 0)
        return rv;
    *ret_head = (uint32_t)sizes.head;
    *ret_tail = (uint32_t)sizes.tail;
    return 0;
}

/* ---- Packing ---- */

struct packing {
    struct mu__writer head;
    uint8_t *tail;
    uint64_t tail_size; /* bytes of the tail that are written */
    uint64_t tail_room;
};

/* Numbers are little-endian in memory: see value_wire.h. */
static void store_little_words(uint8_t *out, uint64_t number)
{
    memcpy(out, &number, sizeof number);
}

static int pack_value(const mu_value *value, struct packing *packing);

static int pack_list(const mu_value *value, struct packing *packing)
{
    const struct mu__container *list = (const struct mu__container *)value;
    int rv = msgpack_pack_array(&packing->head, list->count);

    for (uint32_t i = 0; rv == 0 && i < list->count; i++)
        rv = pack_value(list->items[i], packing);
    return rv;
}

static int pack_map(const mu_value *value, struct packing *packing)
{
    const struct mu__container *map = (const struct mu__container *)value;
    int rv = msgpack_pack_map(&packing->head, map->count);

    for (uint32_t i = 0; rv == 0 && i < map->count; i++) {
        rv = mu__pack_str(&packing->head, map->keys[i], strlen(map->keys[i]));
        if (rv == 0)
            rv = pack_value(map->items[i], packing);
    }
    return rv;
}

/* The extension of a tensor whose elements begin at `offset` of the tail. */
static int pack_tensor_head(const struct mu__tensor *tensor, uint64_t offset,
                            struct mu__writer *head)
{
    uint8_t ext[MU__TENSOR_FIXED + sizeof(uint64_t) * (MU_TENSOR_RANK_MAX + 1)] = {
        tensor->dtype, tensor->rank};
    size_t ext_bytes = mu__tensor_ext_bytes(tensor->rank);

    for (unsigned i = 0; i < tensor->rank; i++)
        store_little_words(ext + MU__TENSOR_FIXED + sizeof(uint64_t) * i,
                           tensor->dims[i]);
    store_little_words(ext + ext_bytes - sizeof offset, offset);
    if (msgpack_pack_ext(head, ext_bytes, MU__TENSOR_EXT) != 0)
        return -1;
    return mu__writer_put(head, ext, ext_bytes);
}

static int pack_tensor(const mu_value *value, struct packing *packing)
{
    const struct mu__tensor *tensor = (const struct mu__tensor *)value;
    uint64_t offset = mu__tail_align(packing->tail_size);

    if (pack_tensor_head(tensor, offset, &packing->head) != 0)
        return -1;
    if (tensor->bytes == 0)
        return 0;

    assert(offset + tensor->bytes <= packing->tail_room);
    memset(packing->tail + packing->tail_size, 0, (size_t)(offset - packing->tail_size));
    memcpy(packing->tail + offset, tensor->data, tensor->bytes);
    packing->tail_size = offset + tensor->bytes;
    return 0;
}

static int pack_blob(const mu_value *value, struct packing *packing)
{
    const struct mu__blob *blob = (const struct mu__blob *)value;

    if (value->type == MU_VALUE_STRING)
        return mu__pack_str(&packing->head, blob->data, blob->size);
    return mu__pack_bin(&packing->head, blob->data, blob->size);
}

static int pack_reference(const mu_value *value, struct packing *packing)
{
    uint8_t ext[sizeof(uint64_t)];

    store_little_words(ext, ((const struct mu__reference *)value)->number);
    if (msgpack_pack_ext(&packing->head, sizeof ext, MU__REFERENCE_EXT) != 0)
        return -1;
    return mu__writer_put(&packing->head, ext, sizeof ext);
}

/* 0, or -1 when the head has no room left. */
static int pack_value(const mu_value *value, struct packing *packing)
{
    const struct mu__scalar *scalar = (const struct mu__scalar *)value;

    switch (mu_value_type(value)) {
    case MU_VALUE_NIL:
        return msgpack_pack_nil(&packing->head);
    case MU_VALUE_BOOL:
        return scalar->as.integer ? msgpack_pack_true(&packing->head)
                                  : msgpack_pack_false(&packing->head);
    case MU_VALUE_INT:
        return msgpack_pack_int64(&packing->head, scalar->as.integer);
    case MU_VALUE_FLOAT:
        return msgpack_pack_double(&packing->head, scalar->as.real);
    case MU_VALUE_STRING:
    case MU_VALUE_BYTES:
        return pack_blob(value, packing);
    case MU_VALUE_LIST:
        return pack_list(value, packing);
    case MU_VALUE_MAP:
        return pack_map(value, packing);
    case MU_VALUE_TENSOR:
        return pack_tensor(value, packing);
    case MU_VALUE_REFERENCE:
        return pack_reference(value, packing);
    }
    return -1;
}

void mu__value_pack(const mu_value *value, uint8_t *head, uint32_t head_size,
                    uint8_t *tail, uint32_t tail_size)
{
    struct packing packing = {
        .head = {head, head + head_size},
        .tail = tail,
        .tail_room = tail_size,
    };
    int rv = pack_value(value, &packing);

    assert(rv == 0 && packing.head.at == packing.head.end);
    assert(packing.tail_size == tail_size);
    (void)rv;
}

/* ---- In place ---- */

_Static_assert(MU__TENSOR_EXT_HEAD + MU__TENSOR_FIXED +
                       sizeof(uint64_t) * (MU_TENSOR_RANK_MAX + 1) <=
                   (size_t)MU__TENSOR_ROOM,
               "the head of a tensor has room before its data");
_Static_assert((int)MU__BIN_HEAD_MAX <= (int)MU__BLOB_ROOM, "so has that of bytes");

static size_t tensor_head_bytes(const struct mu__tensor *tensor)
{
    return MU__TENSOR_EXT_HEAD + mu__tensor_ext_bytes(tensor->rank);
}

static void write_tensor_room(struct mu__tensor *tensor)
{
    size_t bytes = tensor_head_bytes(tensor);
    uint8_t *end = tensor->room + sizeof tensor->room;
    struct packing packing = {.head = {end - bytes, end}};
    int rv = pack_tensor_head(tensor, 0, &packing.head);

    assert(rv == 0 && packing.head.at == end);
    (void)rv;
}

void mu__value_write_room(mu_value *value)
{
    struct mu__blob *blob = (struct mu__blob *)value;
    struct mu__writer out;

    if (value->type == MU_VALUE_TENSOR)
        write_tensor_room((struct mu__tensor *)value);
    if (value->type != MU_VALUE_BYTES || blob->size > UINT32_MAX)
        return;
    out.end = blob->room + sizeof blob->room;
    out.at = out.end - mu__pack_bin_size(blob->size);
    (void)msgpack_pack_bin(&out, blob->size);
}

static bool tensor_in_place(const struct mu__tensor *tensor,
                            struct mu__packed *ret_packed, size_t *ret_memory_bytes)
{
    size_t head_size = tensor_head_bytes(tensor);

    if (tensor->bytes == 0 || tensor->bytes > UINT32_MAX)
        return false;
    *ret_packed = (struct mu__packed){
        .head = tensor->room + sizeof tensor->room - head_size,
        .tail = tensor->data,
        .head_size = (uint32_t)head_size,
        .tail_size = (uint32_t)tensor->bytes,
    };
    *ret_memory_bytes = sizeof *tensor + tensor->bytes;
    return true;
}

bool mu__value_packed_in_place(const mu_value *value, struct mu__packed *ret_packed,
                               size_t *ret_memory_bytes)
{
    const struct mu__blob *blob = (const struct mu__blob *)value;
    size_t head_size;

    if (value->type == MU_VALUE_TENSOR)
        return tensor_in_place((const struct mu__tensor *)value, ret_packed,
                               ret_memory_bytes);
    if (value->type != MU_VALUE_BYTES || blob->size > UINT32_MAX - MU__BIN_HEAD_MAX)
        return false;
    head_size = mu__pack_bin_size(blob->size);
    *ret_packed = (struct mu__packed){
        .head = blob->room + sizeof blob->room - head_size,
        .head_size = (uint32_t)(head_size + blob->size),
    };
    *ret_memory_bytes = sizeof *blob + blob->size;
    return true;
}
