/* Writing msgpack: msgpack-c's own packing functions, instantiated for a bounded cursor.
 *
 * msgpack-c's packing template can be included with a custom writer. Its default writer
 * is a function pointer, which costs several times the packing itself; this one is
 * inlined. The functions keep msgpack-c's names (msgpack_pack_uint64 and so on) but
 * take a struct mu__writer and return 0, or -1 when the bytes do not fit, in which case
 * none of them is written. A file that includes this cannot include <msgpack.h>. */
#ifndef MU_RUNTIME_PACK_H
#define MU_RUNTIME_PACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <msgpack/pack_define.h>
#include <msgpack/timestamp.h>

struct mu__writer {
    uint8_t *at;
    uint8_t *end;
};

static inline int mu__writer_put(struct mu__writer *out, const void *data, size_t size)
{
    if (size > (size_t)(out->end - out->at))
        return -1;
    memcpy(out->at, data, size);
    out->at += size;
    return 0;
}

#define msgpack_pack_inline_func(name) static inline int msgpack_pack##name
#define msgpack_pack_inline_func_cint(name) static inline int msgpack_pack##name
#define msgpack_pack_inline_func_fixint(name) static inline int msgpack_pack_fix##name
#define msgpack_pack_user struct mu__writer *
#define msgpack_pack_append_buffer(out, data, size) \
    return mu__writer_put((out), (data), (size))
#include <msgpack/pack_template.h>

/* A string or bytes, head and body. `data` may be NULL when `size` is 0. */
static inline int mu__pack_str(struct mu__writer *out, const void *data, size_t size)
{
    if (msgpack_pack_str(out, size) != 0)
        return -1;
    return size == 0 ? 0 : mu__writer_put(out, data, size);
}

static inline int mu__pack_bin(struct mu__writer *out, const void *data, size_t size)
{
    if (msgpack_pack_bin(out, size) != 0)
        return -1;
    return size == 0 ? 0 : mu__writer_put(out, data, size);
}

/* Bytes that the functions above write, without the body. */
static inline size_t mu__pack_u64_size(uint64_t number)
{
    if (number < 0x80)
        return 1;
    if (number <= UINT8_MAX)
        return 2;
    if (number <= UINT16_MAX)
        return 3;
    return number <= UINT32_MAX ? 5 : 9;
}

static inline size_t mu__pack_i64_size(int64_t number)
{
    if (number >= 0)
        return mu__pack_u64_size((uint64_t)number);
    if (number >= -32)
        return 1;
    if (number >= INT8_MIN)
        return 2;
    if (number >= INT16_MIN)
        return 3;
    return number >= INT32_MIN ? 5 : 9;
}

static inline size_t mu__pack_str_size(size_t size)
{
    if (size < 32)
        return 1;
    if (size <= UINT8_MAX)
        return 2;
    return size <= UINT16_MAX ? 3 : 5;
}

static inline size_t mu__pack_bin_size(size_t size)
{
    if (size <= UINT8_MAX)
        return 2;
    return size <= UINT16_MAX ? 3 : 5;
}

/* Heads of arrays and maps are alike. */
static inline size_t mu__pack_container_size(size_t count)
{
    if (count < 16)
        return 1;
    return count <= UINT16_MAX ? 3 : 5;
}

#endif
