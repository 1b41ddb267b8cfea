/* Messages: the header every message has, the types a field may have, and the macros
 * that make structs and descriptions from a message table.
 *
 * Messages that travel are rows M(number, NAME, name, RIGHT, FIELDS) of a table. RIGHT is
 * what a peer must have proven for its message to be taken: OBSERVE, USE, OPERATE, TASK;
 * STORED: it is no message, but a record in a file. FIELDS is a macro (F, S) that lists
 * F(S, need, type, field, bound):
 *   need   REQUIRED or OPTIONAL. Fields are appended only; a message that lacks one that
 *          is required is refused, an absent optional one is zero.
 *   type   one of the C types below.
 *   bound  most bytes of a str, bytes, value or raw; largest number of a u32 or u64
 *          (0: no bound beyond the type's own).
 *
 * Local messages stay in the process. Their bodies are plain structs, which may have
 * pointers; their rows are M(number, NAME, name), with numbers from MU__LOCAL_KINDS_BEGIN
 * in a table of their own, and the codec refuses them. */
#ifndef MU_RUNTIME_MESSAGE_H
#define MU_RUNTIME_MESSAGE_H

#include "runtime/base/view.h"
#include "runtime/kernel/pid.h"
#include "runtime/message/buf.h"
#include "runtime/message/rights.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A packed value: its msgpack part and the raw tensor bytes that it refers to. */
struct mu__packed {
    const void *head;
    const void *tail; /* aligned to 16 bytes; NULL when tail_size is 0 */
    uint32_t head_size;
    uint32_t tail_size;
};

/* Field type -> C type. A message has at most one field of type value or raw, because
 * the raw bytes of either travel behind the msgpack part. */
typedef uint64_t mu__type_u64;
typedef uint32_t mu__type_u32;
typedef int64_t mu__type_i64;
typedef double mu__type_f64;
typedef bool mu__type_flag;
typedef struct mu__view mu__type_str; /* UTF-8 not required; no zero at the end */
typedef struct mu__view mu__type_bytes;
typedef struct mu__view mu__type_raw;
typedef struct mu__packed mu__type_value;

enum mu__field_type {
    MU__FIELD_u64,
    MU__FIELD_u32,
    MU__FIELD_i64,
    MU__FIELD_f64,
    MU__FIELD_flag,
    MU__FIELD_str,
    MU__FIELD_bytes,
    MU__FIELD_raw,
    MU__FIELD_value
};

enum { MU__NEED_OPTIONAL = 0, MU__NEED_REQUIRED = 1 };

struct mu__field {
    const char *name;
    uint32_t offset; /* in the body */
    uint32_t bound;
    uint8_t type;
    uint8_t required;
};

/* One message that travels. */
struct mu__row {
    const char *name; /* NULL: no message has this number */
    const struct mu__field *fields;
    uint16_t fields_count;
    uint16_t required_count; /* of these; they come first */
    uint16_t body_size;
    uint8_t right;    /* enum mu__right that its sender needs */
    uint8_t by_chief; /* 1: and to be the chief */
    uint8_t is_read;  /* 1: its answer may be far larger than itself */
};

/* One local message. */
struct mu__local_row {
    const char *name; /* NULL: no message has this number */
    uint16_t body_size;
};

enum { MU__LOCAL_KINDS_BEGIN = 256 };

/* All messages of a node. */
struct mu__schema {
    const struct mu__row *rows;        /* indexed by number */
    uint16_t rows_count;               /* at most MU__LOCAL_KINDS_BEGIN */
    const struct mu__local_row *local; /* by number - MU__LOCAL_KINDS_BEGIN */
    uint16_t local_count;
};

/* The first number that no message has. */
static inline uint16_t mu__schema_kinds_end(const struct mu__schema *schema)
{
    return schema->local_count == 0
               ? schema->rows_count
               : (uint16_t)(MU__LOCAL_KINDS_BEGIN + schema->local_count);
}

/* NULL: no message has this number. */
static inline const char *mu__schema_name(const struct mu__schema *schema, uint16_t kind)
{
    if (kind >= mu__schema_kinds_end(schema))
        return NULL;
    if (kind >= MU__LOCAL_KINDS_BEGIN)
        return schema->local[kind - MU__LOCAL_KINDS_BEGIN].name;
    return kind < schema->rows_count ? schema->rows[kind].name : NULL;
}

/* The size of a message of the schema. */
static inline uint16_t mu__schema_body_size(const struct mu__schema *schema,
                                            uint16_t kind)
{
    return kind < MU__LOCAL_KINDS_BEGIN
               ? schema->rows[kind].body_size
               : schema->local[kind - MU__LOCAL_KINDS_BEGIN].body_size;
}

/* The head of every message; the body follows. */
struct mu__msg {
    struct mu__msg *next;    /* for the lists of the message's owner */
    struct mu__buf *backing; /* what views of the body point into; may be NULL */
    mu__pid from;
    mu__pid to;
    uint16_t kind;
    uint16_t pool_class; /* how the memory was got: see pool.h */
    uint32_t unused;
    alignas(16) unsigned char body[];
};

/* Struct of a message's body: MU__MESSAGE_STRUCT(run, RUN_FIELDS). */
#define MU__STRUCT_FIELD(S, need, type, field, bound) mu__type_##type field;
#define MU__MESSAGE_STRUCT(name, FIELDS) \
    struct mu__##name {                  \
        FIELDS(MU__STRUCT_FIELD, name)   \
    };

/* A table as data: MU__DESCRIBE_FIELDS for each row at file scope, then MU__DESCRIBE_ROW
 * for each inside an array of struct mu__row; MU__DESCRIBE_LOCAL inside one of struct
 * mu__local_row. */
#define MU__DESCRIBE_FIELD(name, need, type, field, bound)                    \
    {#field, (uint32_t)offsetof(struct mu__##name, field), (uint32_t)(bound), \
     MU__FIELD_##type, MU__NEED_##need},
#define MU__COUNT_REQUIRED(name, need, type, field, bound) +(MU__NEED_##need != 0)
#define MU__DESCRIBE_FIELDS(number, NAME, name, RIGHT, FIELDS) \
    static const struct mu__field name##_fields[] = {FIELDS(MU__DESCRIBE_FIELD, name)};
#define MU__DESCRIBE_ROW(number, NAME, name, RIGHT, FIELDS)     \
    [number] = {#name,                                          \
                name##_fields,                                  \
                sizeof name##_fields / sizeof name##_fields[0], \
                0 FIELDS(MU__COUNT_REQUIRED, name),             \
                sizeof(struct mu__##name),                      \
                MU__RIGHT_##RIGHT,                              \
                MU__BY_CHIEF_##RIGHT,                           \
                MU__IS_READ_##RIGHT},
#define MU__DESCRIBE_LOCAL(number, NAME, name) \
    [(number)-MU__LOCAL_KINDS_BEGIN] = {#name, sizeof(struct mu__##name)},

#endif
