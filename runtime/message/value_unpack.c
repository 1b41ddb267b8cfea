/* Unpacking of values from untrusted bytes. */
#include "runtime/message/value_wire.h"

#include "runtime/base/text.h"
#include "runtime/message/unpack.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct unpacking {
    struct mu__reader head;
    const uint8_t *begin; /* of the head, for offsets in error messages */
    const uint8_t *tail;
    uint64_t tail_size;
    uint64_t tail_used;
    uint64_t owed;  /* items that lists and maps announced, not yet read */
    unsigned depth; /* lists and maps that may still be entered */
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3), cold)) static int refuse_value(
    const struct unpacking *in, const char *format, ...)
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

/* Return a new value; NULL: there was no memory for it. */
static int return_made_value(mu_value *value, mu_value **ret_value)
{
    if (value == NULL)
        return -MU_ENOMEM;
    *ret_value = value;
    return 0;
}

static int unpack_value(struct unpacking *in, mu_value **ret_value);

static int unpack_nothing(struct unpacking *in, mu_value **ret_value)
{
    (void)ret_value;
    return refuse_value(in, "expected a value, found %s", mu__wire_word(&in->head));
}

static int unpack_cut(struct unpacking *in)
{
    return refuse_value(in, "%s is cut short or too large", mu__wire_word(&in->head));
}

static int unpack_nil(struct unpacking *in, mu_value **ret_value)
{
    if (!mu__read_nil(&in->head))
        return unpack_cut(in);
    return return_made_value(mu_value_nil(), ret_value);
}

static int unpack_flag(struct unpacking *in, mu_value **ret_value)
{
    bool flag;

    if (!mu__read_flag(&in->head, &flag))
        return unpack_cut(in);
    return return_made_value(mu_value_bool(flag), ret_value);
}

static int unpack_int(struct unpacking *in, mu_value **ret_value)
{
    int64_t number;

    if (!mu__read_i64(&in->head, &number))
        return unpack_cut(in);
    return return_made_value(mu_value_int(number), ret_value);
}

static int unpack_float(struct unpacking *in, mu_value **ret_value)
{
    double number;

    if (!mu__read_f64(&in->head, &number))
        return unpack_cut(in);
    return return_made_value(mu_value_float(number), ret_value);
}

static int unpack_str(struct unpacking *in, mu_value **ret_value)
{
    struct mu__reader at = in->head;
    const uint8_t *data;
    uint32_t size;

    if (!mu__read_str(&at, &data, &size))
        return unpack_cut(in);
    if (!mu__utf8_valid(data, size))
        return refuse_value(in, "a string of %u bytes that is not UTF-8", (unsigned)size);
    in->head = at;
    return return_made_value(mu__value_blob(MU_VALUE_STRING, data, size), ret_value);
}

static int unpack_bin(struct unpacking *in, mu_value **ret_value)
{
    const uint8_t *data;
    uint32_t size;

    if (!mu__read_bin(&in->head, &data, &size))
        return unpack_cut(in);
    return return_made_value(mu__value_blob(MU_VALUE_BYTES, data, size), ret_value);
}

/* Enter a list or map whose head was just read. Every announced item takes at least one
 * byte: memory is allocated only if enough bytes follow for all of them. */
static int enter_container(struct unpacking *in, enum mu_value_type type, uint32_t count,
                           struct mu__container **ret_container)
{
    uint64_t items = type == MU_VALUE_MAP ? 2 * (uint64_t)count : count;
    struct mu__container *container;

    if (in->depth == 0)
        return refuse_value(in, "lists and maps are more than %d deep",
                            MU_VALUE_DEPTH_MAX);
    if (count > MU_VALUE_ITEMS_MAX)
        return refuse_value(in, "%u items where at most %d are allowed", (unsigned)count,
                            MU_VALUE_ITEMS_MAX);
    if (in->owed + items > mu__reader_left(&in->head))
        return refuse_value(in, "%u items promised, but only %zu bytes follow",
                            (unsigned)count, mu__reader_left(&in->head));
    container = mu__value_container(type, count);
    if (container == NULL)
        return -MU_ENOMEM;
    in->owed += items;
    in->depth--;
    *ret_container = container;
    return 0;
}

/* Leave a list or map: return it with all of its items, or free it after an error. */
static int leave_container(struct unpacking *in, struct mu__container *container, int rv,
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
    rv = enter_container(in, MU_VALUE_LIST, count, &list);
    if (rv != 0)
        return rv;
    while (rv == 0 && list->count < count) {
        rv = unpack_value(in, &list->items[list->count]);
        if (rv == 0)
            list->count++;
    }
    return leave_container(in, list, rv, ret_value);
}

static int unpack_key(struct unpacking *in, const uint8_t **ret_key, uint32_t *ret_size)
{
    struct mu__reader at = in->head;
    const uint8_t *key;
    uint32_t size;

    if (!mu__read_str(&at, &key, &size))
        return refuse_value(in, "expected a string for a key, found %s",
                            mu__wire_word(&in->head));
    if (!mu__utf8_valid(key, size) || memchr(key, 0, size) != NULL)
        return refuse_value(in, "a key of %u bytes that is not UTF-8 without zeros",
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
        rv = unpack_value(in, &item);
    if (rv != 0)
        return rv;
    rv = mu__value_put(map, key, size, item);
    if (rv != -MU_EEXISTS)
        return rv;
    in->head.at = begin;
    return refuse_value(in, "key \"%.*s\" appears twice in a map",
                        size > 32 ? 32 : (int)size, (const char *)key);
}

static int unpack_map(struct unpacking *in, mu_value **ret_value)
{
    struct mu__container *map;
    uint32_t count;
    int rv;

    if (!mu__read_map(&in->head, &count))
        return unpack_cut(in);
    rv = enter_container(in, MU_VALUE_MAP, count, &map);
    if (rv != 0)
        return rv;
    while (rv == 0 && map->count < count)
        rv = unpack_entry(in, map);
    return leave_container(in, map, rv, ret_value);
}

/* The dims of a tensor whose extension is known to have the bytes for its rank. */
static void load_dims(const uint8_t *ext, unsigned rank, uint64_t *dims)
{
    for (unsigned i = 0; i < rank; i++)
        dims[i] = mu__load_little64(ext + MU__TENSOR_FIXED + sizeof *dims * i);
}

/* The tensor's bytes in the tail: behind the last one's, at the next multiple of 16. */
static int take_tail(struct unpacking *in, uint64_t offset, size_t bytes,
                     const uint8_t **ret_data)
{
    uint64_t expected = mu__tail_align(in->tail_used);

    if (offset != expected)
        return refuse_value(in, "a tensor at byte %llu of the tail, expected %llu",
                            (unsigned long long)offset, (unsigned long long)expected);
    if (bytes == 0) {
        *ret_data = NULL;
        return 0;
    }
    if (expected > in->tail_size || bytes > in->tail_size - expected)
        return refuse_value(in, "a tensor of %zu bytes at %llu of a tail of %llu", bytes,
                            (unsigned long long)offset,
                            (unsigned long long)in->tail_size);
    for (uint64_t i = in->tail_used; i < expected; i++)
        if (in->tail[i] != 0)
            return refuse_value(in, "the bytes before a tensor are not zero");
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

    if (size < MU__TENSOR_FIXED || ext[1] > MU_TENSOR_RANK_MAX ||
        size != mu__tensor_ext_bytes(ext[1]))
        return refuse_value(in, "a tensor described in %u bytes, which fits no rank",
                            (unsigned)size);
    rank = ext[1];
    load_dims(ext, rank, dims);
    if (ext[2] != 0 || ext[3] != 0 || !mu__tensor_bytes(ext[0], rank, dims, &bytes))
        return refuse_value(in, "a tensor of dtype %u and rank %u that cannot be", ext[0],
                            rank);
    rv = take_tail(in, mu__load_little64(ext + size - sizeof *dims), bytes, &data);
    if (rv != 0)
        return rv;
    return return_made_value(mu_value_tensor(ext[0], rank, dims, data), ret_value);
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
    if (type == MU__TENSOR_EXT)
        rv = unpack_tensor(in, ext, size, ret_value);
    else if (type == MU__REFERENCE_EXT && size == sizeof(uint64_t))
        rv = return_made_value(mu__value_reference(mu__load_little64(ext), NULL, NULL),
                               ret_value);
    else
        return refuse_value(
            in, "an extension of type %d in %u bytes, expected type %d, or %d in 8 bytes",
            type, (unsigned)size, MU__TENSOR_EXT, MU__REFERENCE_EXT);
    if (rv == 0)
        in->head = at;
    return rv;
}

typedef int (*unpack_fn)(struct unpacking *in, mu_value **ret_value);

static const unpack_fn unpackers[] = {
    [MU__WIRE_END] = unpack_nothing, [MU__WIRE_UINT] = unpack_int,
    [MU__WIRE_INT] = unpack_int,     [MU__WIRE_FLOAT] = unpack_float,
    [MU__WIRE_NIL] = unpack_nil,     [MU__WIRE_FLAG] = unpack_flag,
    [MU__WIRE_STR] = unpack_str,     [MU__WIRE_BIN] = unpack_bin,
    [MU__WIRE_ARRAY] = unpack_list,  [MU__WIRE_MAP] = unpack_map,
    [MU__WIRE_EXT] = unpack_ext,     [MU__WIRE_NONE] = unpack_nothing,
};

static int unpack_value(struct unpacking *in, mu_value **ret_value)
{
    in->owed--;
    return unpackers[mu__wire_type(&in->head)](in, ret_value);
}

/* Refuse bytes behind the value. */
static int check_value_end(const struct unpacking *in)
{
    if (in->head.at != in->head.end)
        return refuse_value(in, "%zu bytes behind the value", mu__reader_left(&in->head));
    if (in->tail_used != in->tail_size)
        return refuse_value(in, "a tail of %llu bytes, of which tensors take %llu",
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
    int rv = unpack_value(&in, &value);

    if (rv == 0)
        rv = check_value_end(&in);
    if (rv != 0) {
        mu_value_free(value);
        return rv;
    }
    *ret_value = value;
    return 0;
}
