/* The parts of the msgpack reader that are not inlined. */
#include "runtime/message/unpack.h"

struct lead {
    uint8_t last; /* the row is for first bytes up to this one */
    uint8_t type;
};

/* msgpack's first bytes, in order. */
static const struct lead leads[] = {
    {0x7f, MU__WIRE_UINT},  {0x8f, MU__WIRE_MAP},  {0x9f, MU__WIRE_ARRAY},
    {0xbf, MU__WIRE_STR},   {0xc0, MU__WIRE_NIL},  {0xc1, MU__WIRE_NONE},
    {0xc3, MU__WIRE_FLAG},  {0xc6, MU__WIRE_BIN},  {0xc9, MU__WIRE_EXT},
    {0xcb, MU__WIRE_FLOAT}, {0xcf, MU__WIRE_UINT}, {0xd3, MU__WIRE_INT},
    {0xd8, MU__WIRE_EXT},   {0xdb, MU__WIRE_STR},  {0xdd, MU__WIRE_ARRAY},
    {0xdf, MU__WIRE_MAP},   {0xff, MU__WIRE_INT},
};

static const char *const words[] = {
    [MU__WIRE_END] = "the end",
    [MU__WIRE_UINT] = "an unsigned number",
    [MU__WIRE_INT] = "a signed number",
    [MU__WIRE_FLOAT] = "a float",
    [MU__WIRE_NIL] = "nil",
    [MU__WIRE_FLAG] = "a truth value",
    [MU__WIRE_STR] = "a string",
    [MU__WIRE_BIN] = "bytes",
    [MU__WIRE_ARRAY] = "a list",
    [MU__WIRE_MAP] = "a map",
    [MU__WIRE_EXT] = "an extension",
    [MU__WIRE_NONE] = "a byte that is not msgpack",
};

enum mu__wire_type mu__wire_type(const struct mu__reader *in)
{
    size_t i = 0;

    if (in->at == in->end)
        return MU__WIRE_END;
    while (*in->at > leads[i].last)
        i++;
    return leads[i].type;
}

const char *mu__wire_word(const struct mu__reader *in)
{
    return words[mu__wire_type(in)];
}

bool mu__read_ext(struct mu__reader *in, int8_t *ret_type, const uint8_t **ret_data,
                  uint32_t *ret_size)
{
    struct mu__reader at = *in;
    uint32_t size;

    if (at.at == at.end)
        return false;
    if (*at.at >= 0xd4 && *at.at <= 0xd8)
        size = UINT32_C(1) << (*at.at++ - 0xd4);
    else if (!mu__read_length(&at, (struct mu__length_form){0x01, 0x00, 0xc7, 0xc9, 1},
                              &size))
        return false;
    if (mu__reader_left(&at) <= size)
        return false;

    *ret_type = (int8_t)*at.at;
    *ret_data = at.at + 1;
    *ret_size = size;
    in->at = at.at + 1 + size;
    return true;
}

/* Skip one item, or the head of a container, whose items are then added to *owed. */
static bool skip_one(struct mu__reader *in, uint64_t *owed)
{
    const uint8_t *data;
    uint64_t bits;
    uint32_t count;
    double number;
    int64_t sign;
    int8_t type;
    bool flag;

    switch (mu__wire_type(in)) {
    case MU__WIRE_UINT:
        return mu__read_u64(in, &bits);
    case MU__WIRE_INT:
        return mu__read_i64(in, &sign);
    case MU__WIRE_FLOAT:
        return mu__read_f64(in, &number);
    case MU__WIRE_NIL:
        return mu__read_nil(in);
    case MU__WIRE_FLAG:
        return mu__read_flag(in, &flag);
    case MU__WIRE_STR:
        return mu__read_str(in, &data, &count);
    case MU__WIRE_BIN:
        return mu__read_bin(in, &data, &count);
    case MU__WIRE_EXT:
        return mu__read_ext(in, &type, &data, &count);
    case MU__WIRE_ARRAY:
        if (!mu__read_array(in, &count))
            return false;
        *owed += count;
        return true;
    case MU__WIRE_MAP:
        if (!mu__read_map(in, &count))
            return false;
        *owed += 2 * (uint64_t)count;
        return true;
    case MU__WIRE_END:
    case MU__WIRE_NONE:
        return false;
    }
    return false;
}

bool mu__skip(struct mu__reader *in)
{
    struct mu__reader at = *in;
    uint64_t owed = 1;

    while (owed > 0) {
        owed--;
        if (!skip_one(&at, &owed) || owed > mu__reader_left(&at))
            return false;
    }
    *in = at;
    return true;
}
