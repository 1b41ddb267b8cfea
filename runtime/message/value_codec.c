/* Packed values. In the head each value is plain msgpack: a list is an array, a map a
 * map with strings for keys, and a tensor an extension of type 1 whose bytes stand in the
 * tail:
 *
 *   u8   dtype
 *   u8   rank
 *   u16  zero
 *   u64  dims[rank]        little-endian
 *   u64  offset            in the tail, little-endian
 *
 * There is one way to lay out the tail, and the reader insists on it: the tensors in the
 * order of the head, each at the next multiple of 16, zeros between them, nothing behind
 * the last. So no two tensors can share bytes, which would make a small message large. */
#include "runtime/message/codec.h"

#include "runtime/message/pack.h"
#include "runtime/message/unpack.h"
#include "runtime/message/value_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements of tensors travel as they are in memory: little-endian"
#endif

enum {
    TENSOR_EXT = 1,
    REFERENCE_EXT = 2,
    REFERENCE_BYTES = 2 + sizeof(uint64_t),
    TENSOR_EXT_HEAD = 3,    /* lead, size and type, before the extension's bytes */
    TENSOR_FIXED = 4,       /* dtype, rank and zero */
    BIN_HEAD_MAX = 5        /* before bytes */
};

/* Sizes may pass 32 bits while they are being added up. */
struct sizes {
    uint64_t head;
    uint64_t tail;
};

static uint64_t align_tail(uint64_t size)
{
    return (size + MU__TAIL_ALIGN - 1) & ~(uint64_t)(MU__TAIL_ALIGN - 1);
}

/* Bytes of the extension of a tensor. */
static size_t tensor_ext_bytes(unsigned rank)
{
    return TENSOR_FIXED + sizeof(uint64_t) * (rank + 1);
}

/* ---- Measuring ---- */

static int measure(const mu_value *value, unsigned depth, struct sizes *sizes);

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
        rv = measure(container->items[i], depth - 1, sizes);
        if (rv != 0)
            return rv;
    }
    return 0;
}

static void measure_tensor(const mu_value *value, struct sizes *sizes)
{
    const struct mu__tensor *tensor = (const struct mu__tensor *)value;

    sizes->head += TENSOR_EXT_HEAD + tensor_ext_bytes(tensor->rank);
    if (tensor->bytes > 0)
        sizes->tail = align_tail(sizes->tail) + tensor->bytes;
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
static int measure(const mu_value *value, unsigned depth, struct sizes *sizes)
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
        sizes->head += REFERENCE_BYTES;
        break;
    }
    return sizes->head > UINT32_MAX || sizes->tail > UINT32_MAX ? -MU_ERANGE : 0;
}

int mu__value_measure(const mu_value *value, uint32_t *ret_head, uint32_t *ret_tail)
{
    struct sizes sizes = {0, 0};
    int rv = measure(value, MU_VALUE_DEPTH_MAX, &sizes);

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
    uint64_t tail_size;     /* of what is in the tail so far */
    uint64_t tail_room;
};

/* As it is in memory: see above. */
static void store_little64(uint8_t *out, uint64_t number)
{
    memcpy(out, &number, sizeof number);
}

static int pack(const mu_value *value, struct packing *packing);

static int pack_list(const mu_value *value, struct packing *packing)
{
    const struct mu__container *list = (const struct mu__container *)value;
    int rv = msgpack_pack_array(&packing->head, list->count);

    for (uint32_t i = 0; rv == 0 && i < list->count; i++)
        rv = pack(list->items[i], packing);
    return rv;
}

static int pack_map(const mu_value *value, struct packing *packing)
{
    const struct mu__container *map = (const struct mu__container *)value;
    int rv = msgpack_pack_map(&packing->head, map->count);

    for (uint32_t i = 0; rv == 0 && i < map->count; i++) {
        rv = mu__pack_str(&packing->head, map->keys[i], strlen(map->keys[i]));
        if (rv == 0)
            rv = pack(map->items[i], packing);
    }
    return rv;
}

/* All but the bytes, which begin at `offset` of the tail. */
static int pack_tensor_head(const struct mu__tensor *tensor, uint64_t offset,
                            struct mu__writer *head)
{
    uint8_t ext[TENSOR_FIXED + sizeof(uint64_t) * (MU_TENSOR_RANK_MAX + 1)] = {
        tensor->dtype, tensor->rank};
    size_t ext_bytes = tensor_ext_bytes(tensor->rank);

    for (unsigned i = 0; i < tensor->rank; i++)
        store_little64(ext + TENSOR_FIXED + sizeof(uint64_t) * i, tensor->dims[i]);
    store_little64(ext + ext_bytes - sizeof offset, offset);
    if (msgpack_pack_ext(head, ext_bytes, TENSOR_EXT) != 0)
        return -1;
    return mu__writer_put(head, ext, ext_bytes);
}

static int pack_tensor(const mu_value *value, struct packing *packing)
{
    const struct mu__tensor *tensor = (const struct mu__tensor *)value;
    uint64_t offset = align_tail(packing->tail_size);

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

    store_little64(ext, ((const struct mu__reference *)value)->number);
    if (msgpack_pack_ext(&packing->head, sizeof ext, REFERENCE_EXT) != 0)
        return -1;
    return mu__writer_put(&packing->head, ext, sizeof ext);
}

/* 0, or -1 when the head has no room left. */
static int pack(const mu_value *value, struct packing *packing)
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
    int rv = pack(value, &packing);

    assert(rv == 0 && packing.head.at == packing.head.end);
    assert(packing.tail_size == tail_size);
    (void)rv;
}

/* ---- In place ---- */

_Static_assert(TENSOR_EXT_HEAD + TENSOR_FIXED +
               sizeof(uint64_t) * (MU_TENSOR_RANK_MAX + 1) <= (size_t)MU__TENSOR_ROOM,
               "the head of a tensor has room before its data");
_Static_assert((int)BIN_HEAD_MAX <= (int)MU__BLOB_ROOM, "so has that of bytes");

static size_t tensor_head_bytes(const struct mu__tensor *tensor)
{
    return TENSOR_EXT_HEAD + tensor_ext_bytes(tensor->rank);
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
    if (value->type != MU_VALUE_BYTES || blob->size > UINT32_MAX - BIN_HEAD_MAX)
        return false;
    head_size = mu__pack_bin_size(blob->size);
    *ret_packed = (struct mu__packed){
        .head = blob->room + sizeof blob->room - head_size,
        .head_size = (uint32_t)(head_size + blob->size),
    };
    *ret_memory_bytes = sizeof *blob + blob->size;
    return true;
}

/* ---- Unpacking ---- */

struct unpacking {
    struct mu__reader head;
    const uint8_t *begin;       /* of the head: bytes are counted from here */
    const uint8_t *tail;
    uint64_t tail_size;
    uint64_t tail_used;
    uint64_t owed;              /* items that were promised and have not begun */
    unsigned depth;             /* lists and maps that may still be entered */
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3), cold))
static int refuse(const struct unpacking *in, const char *format, ...)
{
    size_t byte = (size_t)(in->head.at - in->begin);
    va_list arguments;
    int length;

    length = snprintf(in->why, in->why_size, "value, byte %zu: ", byte);
    if (length < 0 || (size_t)length >= in->why_size)
        return -MU_EDATALOSS;
    va_start(arguments, format);
    vsnprintf(in->why + length, in->why_size - (size_t)length, format, arguments);
    va_end(arguments);
    return -MU_EDATALOSS;
}

/* What was read is a value now, if there was memory for it. */
static int made(mu_value *value, mu_value **ret_value)
{
    if (value == NULL)
        return -MU_ENOMEM;
    *ret_value = value;
    return 0;
}

static int unpack(struct unpacking *in, mu_value **ret_value);

static int unpack_nothing(struct unpacking *in, mu_value **ret_value)
{
    (void)ret_value;
    return refuse(in, "expected a value, found %s", mu__wire_word(&in->head));
}

static int unpack_cut(struct unpacking *in)
{
    return refuse(in, "%s is cut short or too large", mu__wire_word(&in->head));
}

static int unpack_nil(struct unpacking *in, mu_value **ret_value)
{
    if (!mu__read_nil(&in->head))
        return unpack_cut(in);
    return made(mu_value_nil(), ret_value);
}

static int unpack_flag(struct unpacking *in, mu_value **ret_value)
{
    bool flag;

    if (!mu__read_flag(&in->head, &flag))
        return unpack_cut(in);
    return made(mu_value_bool(flag), ret_value);
}

static int unpack_int(struct unpacking *in, mu_value **ret_value)
{
    int64_t number;

    if (!mu__read_i64(&in->head, &number))
        return unpack_cut(in);
    return made(mu_value_int(number), ret_value);
}

static int unpack_float(struct unpacking *in, mu_value **ret_value)
{
    double number;

    if (!mu__read_f64(&in->head, &number))
        return unpack_cut(in);
    return made(mu_value_float(number), ret_value);
}

static int unpack_str(struct unpacking *in, mu_value **ret_value)
{
    struct mu__reader at = in->head;
    const uint8_t *data;
    uint32_t size;

    if (!mu__read_str(&at, &data, &size))
        return unpack_cut(in);
    if (!mu__utf8_valid(data, size))
        return refuse(in, "a string of %u bytes that is not UTF-8", (unsigned)size);
    in->head = at;
    return made(mu__value_blob(MU_VALUE_STRING, data, size), ret_value);
}

static int unpack_bin(struct unpacking *in, mu_value **ret_value)
{
    const uint8_t *data;
    uint32_t size;

    if (!mu__read_bin(&in->head, &data, &size))
        return unpack_cut(in);
    return made(mu__value_blob(MU_VALUE_BYTES, data, size), ret_value);
}

/* Enter a list or map whose head was just read. Each promised item needs a byte of its
 * own, beside those that were promised before: memory for them is taken only then. */
static int enter(struct unpacking *in, enum mu_value_type type, uint32_t count,
                 struct mu__container **ret_container)
{
    uint64_t items = type == MU_VALUE_MAP ? 2 * (uint64_t)count : count;
    struct mu__container *container;

    if (in->depth == 0)
        return refuse(in, "lists and maps are more than %d deep", MU_VALUE_DEPTH_MAX);
    if (count > MU_VALUE_ITEMS_MAX)
        return refuse(in, "%u items where at most %d are allowed", (unsigned)count,
                      MU_VALUE_ITEMS_MAX);
    if (in->owed + items > mu__reader_left(&in->head))
        return refuse(in, "%u items promised, but only %zu bytes follow",
                      (unsigned)count, mu__reader_left(&in->head));
    container = mu__value_container(type, count);
    if (container == NULL)
        return -MU_ENOMEM;
    in->owed += items;
    in->depth--;
    *ret_container = container;
    return 0;
}

/* Leave it again, with all of its items or with an error. */
static int leave(struct unpacking *in, struct mu__container *container, int rv,
                 mu_value **ret_value)
{
    in->depth++;
    if (rv != 0) {
        mu_value_free(&container->head);
        return rv;
    }
    *ret_value = &container->head;
    return 0;
}

static int unpack_list(struct unpacking *in, mu_value **ret_value)
{
    struct mu__container *list;
    uint32_t count;
    int rv;

    if (!mu__read_array(&in->head, &count))
        return unpack_cut(in);
    rv = enter(in, MU_VALUE_LIST, count, &list);
    if (rv != 0)
        return rv;
    while (rv == 0 && list->count < count) {
        rv = unpack(in, &list->items[list->count]);
        if (rv == 0)
            list->count++;
    }
    return leave(in, list, rv, ret_value);
}

static int unpack_key(struct unpacking *in, const uint8_t **ret_key, uint32_t *ret_size)
{
    struct mu__reader at = in->head;
    const uint8_t *key;
    uint32_t size;

    if (!mu__read_str(&at, &key, &size))
        return refuse(in, "expected a string for a key, found %s",
                      mu__wire_word(&in->head));
    if (!mu__utf8_valid(key, size) || memchr(key, 0, size) != NULL)
        return refuse(in, "a key of %u bytes that is not UTF-8 without zeros",
                      (unsigned)size);
    in->head = at;
    in->owed--;
    *ret_key = key;
    *ret_size = size;
    return 0;
}

static int unpack_entry(struct unpacking *in, struct mu__container *map)
{
    const uint8_t *begin = in->head.at;
    const uint8_t *key = NULL;
    mu_value *item = NULL;
    uint32_t size = 0;
    int rv;

    rv = unpack_key(in, &key, &size);
    if (rv == 0)
        rv = unpack(in, &item);
    if (rv != 0)
        return rv;
    rv = mu__value_put(map, key, size, item);
    if (rv != -MU_EEXISTS)
        return rv;
    in->head.at = begin;
    return refuse(in, "key \"%.*s\" stands twice in a map",
                  size > 32 ? 32 : (int)size, (const char *)key);
}

static int unpack_map(struct unpacking *in, mu_value **ret_value)
{
    struct mu__container *map;
    uint32_t count;
    int rv;

    if (!mu__read_map(&in->head, &count))
        return unpack_cut(in);
    rv = enter(in, MU_VALUE_MAP, count, &map);
    if (rv != 0)
        return rv;
    while (rv == 0 && map->count < count)
        rv = unpack_entry(in, map);
    return leave(in, map, rv, ret_value);
}

/* The dims of a tensor whose extension is known to have the bytes for its rank. */
static void load_dims(const uint8_t *ext, unsigned rank, uint64_t *dims)
{
    for (unsigned i = 0; i < rank; i++)
        dims[i] = mu__load_little64(ext + TENSOR_FIXED + sizeof *dims * i);
}

/* The tensor's place in the tail: behind the last one, at the next multiple of 16. */
static int take_tail(struct unpacking *in, uint64_t offset, size_t bytes,
                     const uint8_t **ret_data)
{
    uint64_t expected = align_tail(in->tail_used);

    if (offset != expected)
        return refuse(in, "a tensor at byte %llu of the tail, expected %llu",
                      (unsigned long long)offset, (unsigned long long)expected);
    if (bytes == 0) {
        *ret_data = NULL;
        return 0;
    }
    if (expected > in->tail_size || bytes > in->tail_size - expected)
        return refuse(in, "a tensor of %zu bytes at %llu of a tail of %llu", bytes,
                      (unsigned long long)offset, (unsigned long long)in->tail_size);
    for (uint64_t i = in->tail_used; i < expected; i++)
        if (in->tail[i] != 0)
            return refuse(in, "the bytes before a tensor are not zero");
    in->tail_used = expected + bytes;
    *ret_data = in->tail + expected;
    return 0;
}

static int unpack_tensor(struct unpacking *in, const uint8_t *ext, uint32_t size,
                         mu_value **ret_value)
{
    uint64_t dims[MU_TENSOR_RANK_MAX];
    const uint8_t *data = NULL;
    unsigned rank;
    size_t bytes;
    int rv;

    if (size < TENSOR_FIXED || ext[1] > MU_TENSOR_RANK_MAX ||
        size != tensor_ext_bytes(ext[1]))
        return refuse(in, "a tensor described in %u bytes, which fits no rank",
                      (unsigned)size);
    rank = ext[1];
    load_dims(ext, rank, dims);
    if (ext[2] != 0 || ext[3] != 0 || !mu__tensor_bytes(ext[0], rank, dims, &bytes))
        return refuse(in, "a tensor of dtype %u and rank %u that cannot be", ext[0],
                      rank);
    rv = take_tail(in, mu__load_little64(ext + size - sizeof *dims), bytes, &data);
    if (rv != 0)
        return rv;
    return made(mu_value_tensor(ext[0], rank, dims, data), ret_value);
}

static int unpack_ext(struct unpacking *in, mu_value **ret_value)
{
    struct mu__reader at = in->head;
    const uint8_t *ext;
    uint32_t size;
    int8_t type;
    int rv;

    if (!mu__read_ext(&at, &type, &ext, &size))
        return unpack_cut(in);
    if (type == TENSOR_EXT)
        rv = unpack_tensor(in, ext, size, ret_value);
    else if (type == REFERENCE_EXT && size == sizeof(uint64_t))
        rv = made(mu__value_reference(mu__load_little64(ext), NULL, NULL), ret_value);
    else
        return refuse(in, "an extension of type %d in %u bytes, expected type %d, or %d "
                      "in 8 bytes", type, (unsigned)size, TENSOR_EXT, REFERENCE_EXT);
    if (rv == 0)
        in->head = at;
    return rv;
}

typedef int (*unpack_fn)(struct unpacking *in, mu_value **ret_value);

static const unpack_fn unpackers[] = {
    [MU__WIRE_END] = unpack_nothing,
    [MU__WIRE_UINT] = unpack_int,
    [MU__WIRE_INT] = unpack_int,
    [MU__WIRE_FLOAT] = unpack_float,
    [MU__WIRE_NIL] = unpack_nil,
    [MU__WIRE_FLAG] = unpack_flag,
    [MU__WIRE_STR] = unpack_str,
    [MU__WIRE_BIN] = unpack_bin,
    [MU__WIRE_ARRAY] = unpack_list,
    [MU__WIRE_MAP] = unpack_map,
    [MU__WIRE_EXT] = unpack_ext,
    [MU__WIRE_NONE] = unpack_nothing,
};

static int unpack(struct unpacking *in, mu_value **ret_value)
{
    in->owed--;
    return unpackers[mu__wire_type(&in->head)](in, ret_value);
}

/* What is left over after the one value. */
static int check_end(const struct unpacking *in)
{
    if (in->head.at != in->head.end)
        return refuse(in, "%zu bytes behind the value", mu__reader_left(&in->head));
    if (in->tail_used != in->tail_size)
        return refuse(in, "a tail of %llu bytes, of which tensors take %llu",
                      (unsigned long long)in->tail_size,
                      (unsigned long long)in->tail_used);
    return 0;
}

int mu__value_unpack(const struct mu__packed *packed, char *why, size_t why_size,
                     mu_value **ret_value)
{
    static const uint8_t nil = 0xc0;
    const uint8_t *head = packed->head_size > 0 ? packed->head : &nil;
    struct unpacking in = {
        .head = {head, head + (packed->head_size > 0 ? packed->head_size : 1)},
        .begin = head,
        .tail = packed->tail,
        .tail_size = packed->tail_size,
        .owed = 1,
        .depth = MU_VALUE_DEPTH_MAX,
        .why = why,
        .why_size = why_size,
    };
    mu_value *value = NULL;
    int rv = unpack(&in, &value);

    if (rv == 0)
        rv = check_end(&in);
    if (rv != 0) {
        mu_value_free(value);
        return rv;
    }
    *ret_value = value;
    return 0;
}
