/* The cursor of unpack.h, and the types of msgpack that may stand at it. */
#ifndef MU_RUNTIME_READER_H
#define MU_RUNTIME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__reader {
    const uint8_t *at;
    const uint8_t *end;
};

/* The type of the item at the cursor, by its first byte. */
enum mu__wire_type {
    MU__WIRE_END, /* no byte is left */
    MU__WIRE_UINT,
    MU__WIRE_INT, /* written as signed; may still be positive */
    MU__WIRE_FLOAT,
    MU__WIRE_NIL,
    MU__WIRE_FLAG,
    MU__WIRE_STR,
    MU__WIRE_BIN,
    MU__WIRE_ARRAY,
    MU__WIRE_MAP,
    MU__WIRE_EXT,
    MU__WIRE_NONE /* 0xc1, which msgpack does not use */
};

static inline size_t mu__reader_left(const struct mu__reader *in)
{
    return (size_t)(in->end - in->at);
}

enum mu__wire_type mu__wire_type(const struct mu__reader *in);

/* The name of the type at the cursor, for error messages: "a string". */
const char *mu__wire_word(const struct mu__reader *in);

#endif
