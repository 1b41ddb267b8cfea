/* Values: the arguments and results of functions.
 *
 * A value is nil, bool, int (64 bits), float (64 bits), string (UTF-8), bytes, list, map
 * (string keys, order kept) or tensor. Values are reference counted; the count is atomic,
 * the content has no lock: build a value on one thread, then share it and do not change
 * it any more. Constructors return NULL when out of memory.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_VALUE_H
#define MUSTER_VALUE_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_value mu_value;

enum mu_value_type {
    MU_VALUE_NIL,
    MU_VALUE_BOOL,
    MU_VALUE_INT,
    MU_VALUE_FLOAT,
    MU_VALUE_STRING,
    MU_VALUE_BYTES,
    MU_VALUE_LIST,
    MU_VALUE_MAP,
    MU_VALUE_TENSOR,
    MU_VALUE_REFERENCE /* stands for a remote value or a per-worker value among the
                          arguments of a closure: see coordinator.h */
};

/* Element types of tensors and variables: name, number, text and bytes of one element.
 * Numbers and sizes are part of the wire format. */
#define MU_DTYPES(X)        \
    X(F32, 1, "float32", 4) \
    X(F64, 2, "float64", 8) \
    X(I8, 3, "int8", 1)     \
    X(I16, 4, "int16", 2)   \
    X(I32, 5, "int32", 4)   \
    X(I64, 6, "int64", 8)   \
    X(U8, 7, "uint8", 1)    \
    X(BOOL, 8, "bool", 1)   \
    X(F16, 9, "float16", 2) \
    X(U16, 10, "uint16", 2) \
    X(U32, 11, "uint32", 4) \
    X(U64, 12, "uint64", 8) \
    X(BF16, 13, "bfloat16", 2)

enum mu_dtype {
#define MU_DTYPE_NUMBER(name, number, words, bytes) MU_##name = number,
    MU_DTYPES(MU_DTYPE_NUMBER)
#undef MU_DTYPE_NUMBER
        MU_DTYPE_NONE = 0
};

enum {
    MU_TENSOR_RANK_MAX = 8,      /* of a tensor */
    MU_VALUE_DEPTH_MAX = 32,     /* of lists and maps nested in each other */
    MU_VALUE_ITEMS_MAX = 1 << 24 /* of one list or map */
};

/* Bytes of one element; 0 for an unknown dtype. */
MU_EXPORT size_t mu_dtype_bytes(int dtype);

/* "float32" for MU_F32; NULL for an unknown dtype. */
MU_EXPORT const char *mu_dtype_name(int dtype);

/* The dtype of that name (NULL: of none); MU_DTYPE_NONE: there is none. */
MU_EXPORT int mu_dtype_find(const char *name);

/* Constructors. The caller frees the value. */
MU_EXPORT mu_value *mu_value_nil(void);
MU_EXPORT mu_value *mu_value_bool(int truth);
MU_EXPORT mu_value *mu_value_int(int64_t number);
MU_EXPORT mu_value *mu_value_float(double number);
MU_EXPORT mu_value *mu_value_string(const char *text); /* copies; NULL also when `text` is
                                                          NULL or not UTF-8 */
MU_EXPORT mu_value *mu_value_bytes(const void *data, size_t size); /* copies */
MU_EXPORT mu_value *mu_value_list(void);
MU_EXPORT mu_value *mu_value_map(void);

/* A dense tensor in row-major order and host byte order. `dims` has `rank` entries; rank
 * 0 is a scalar. Copies `data`; NULL gives zeros. NULL also for an unknown dtype, a rank
 * above MU_TENSOR_RANK_MAX or a size that overflows. */
MU_EXPORT mu_value *mu_value_tensor(int dtype, unsigned rank, const uint64_t *dims,
                                    const void *data);

/* Append to a list; set a key of a map, replacing an earlier item. Both take ownership of
 * `item`, also when they fail; item NULL gives -MU_ENOMEM, so that the return value of a
 * constructor can be passed on unchecked. A value may not contain itself, and a key must
 * be UTF-8 (-MU_EINVALID). */
MU_EXPORT int mu_value_append(mu_value *list, mu_value *item);
MU_EXPORT int mu_value_set(mu_value *map, const char *key, mu_value *item);

/* Take a reference; returns `value`. Release one; NULL is fine. */
MU_EXPORT mu_value *mu_value_ref(const mu_value *value);
MU_EXPORT void mu_value_free(mu_value *value);

/* The type of a value; MU_VALUE_NIL for NULL. */
MU_EXPORT enum mu_value_type mu_value_type(const mu_value *value);

/* Read a value. -MU_EINVALID when it has another type; mu_value_get_float also reads an
 * int. Strings and bytes stay owned by the value; a zero byte, which the size does not
 * count, follows a string. */
MU_EXPORT int mu_value_get_bool(const mu_value *value, int *ret_truth);
MU_EXPORT int mu_value_get_int(const mu_value *value, int64_t *ret_number);
MU_EXPORT int mu_value_get_float(const mu_value *value, double *ret_number);
MU_EXPORT int mu_value_get_string(const mu_value *value, const char **ret_text,
                                  size_t *ret_size);
MU_EXPORT int mu_value_get_bytes(const mu_value *value, const void **ret_data,
                                 size_t *ret_size);

/* Number of items of a list or a map; 0 for other types. */
MU_EXPORT size_t mu_value_count(const mu_value *value);

/* The i-th item of a list or map, owned by it; NULL past the end. */
MU_EXPORT const mu_value *mu_value_at(const mu_value *value, size_t i);

/* The i-th key of a map, owned by it; NULL past the end. */
MU_EXPORT const char *mu_value_key(const mu_value *map, size_t i);

/* The item of a key, owned by the map; NULL when the key is absent or `map` is not a
 * map. */
MU_EXPORT const mu_value *mu_value_find(const mu_value *map, const char *key);

/* A tensor's parts; pointers are owned by the value. */
typedef struct mu_tensor {
    int dtype;
    unsigned rank;
    const uint64_t *dims;
    const void *data; /* aligned to 16 bytes */
    size_t bytes;
} mu_tensor;

/* Read a tensor; -MU_EINVALID for other types. */
MU_EXPORT int mu_value_get_tensor(const mu_value *value, mu_tensor *ret_tensor);

/* The tensor's elements, to be filled in before the value is shared. NULL for other
 * types. */
MU_EXPORT void *mu_value_tensor_data(mu_value *value);

/* 1 when type and content are equal: floats are compared bit by bit, the order of a map's
 * keys does not matter, and values nested deeper than MU_VALUE_DEPTH_MAX count as
 * different. */
MU_EXPORT int mu_value_equal(const mu_value *a, const mu_value *b);

#ifdef __cplusplus
}
#endif

#endif
