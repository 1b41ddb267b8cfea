/* Reading msgpack: a cursor over untrusted bytes.
 *
 * It allocates nothing and trusts no length before the bytes are there. Every function
 * returns false when the item at the cursor is of another type or cut short, and then
 * neither moves the cursor nor writes its result: error messages name the cursor's
 * offset. docs/decisions/0002-codec.md says why msgpack-c's reader is not used; a test
 * shows that both read the same. */
#ifndef MU_RUNTIME_UNPACK_H
#define MU_RUNTIME_UNPACK_H

#include "runtime/base/byte_order.h"
#include "runtime/message/reader.h"

#include <string.h>

static inline bool mu__read_nil(struct mu__reader *in)
{
    if (in->at == in->end || *in->at != 0xc0)
        return false;
    in->at++;
    return true;
}

static inline bool mu__read_flag(struct mu__reader *in, bool *ret_flag)
{
    if (in->at == in->end || (*in->at & 0xfe) != 0xc2)
        return false;
    *ret_flag = *in->at == 0xc3;
    in->at++;
    return true;
}

/* An integer of more than one byte: 0xcc to 0xcf unsigned, 0xd0 to 0xd3 signed, of 1, 2,
 * 4 and 8 bytes each. The bits of a negative one are extended to 64. */
static inline bool mu__read_wide(struct mu__reader *in, uint64_t *ret_bits,
                                 bool *ret_negative)
{
    size_t left = mu__reader_left(in);
    unsigned shift;
    uint64_t bits;
    size_t size;

    if (left == 0 || *in->at < 0xcc || *in->at > 0xd3)
        return false;
    size = (size_t)1 << (*in->at & 3);
    if (left <= size)
        return false;

    /* Eight bytes at once when so many are left: no loop over the size. */
    shift = (unsigned)(64 - 8 * size);
    bits =
        left > 8 ? mu__load_big64(in->at + 1) >> shift : mu__load_big(in->at + 1, size);
    *ret_negative = *in->at >= 0xd0 && (bits >> (8 * size - 1) & 1) != 0;
    if (*ret_negative)
        bits |= ~(UINT64_MAX >> shift);
    *ret_bits = bits;
    in->at += 1 + size;
    return true;
}

/* An integer that is not negative, in any of its encodings. */
static inline bool mu__read_u64(struct mu__reader *in, uint64_t *ret_number)
{
    const uint8_t *begin = in->at;
    uint64_t number;
    bool negative;

    if (in->at < in->end && *in->at < 0x80) {
        *ret_number = *in->at++;
        return true;
    }
    if (!mu__read_wide(in, &number, &negative))
        return false;
    if (negative) {
        in->at = begin;
        return false;
    }
    *ret_number = number;
    return true;
}

/* The same, if it is at most `most`. */
static inline bool mu__read_u64_up_to(struct mu__reader *in, uint64_t most,
                                      uint64_t *ret_number)
{
    const uint8_t *begin = in->at;
    uint64_t number;

    if (!mu__read_u64(in, &number))
        return false;
    if (number > most) {
        in->at = begin;
        return false;
    }
    *ret_number = number;
    return true;
}

static inline bool mu__read_i64(struct mu__reader *in, int64_t *ret_number)
{
    const uint8_t *begin = in->at;
    uint64_t bits;
    bool negative;

    if (in->at < in->end && (*in->at < 0x80 || *in->at >= 0xe0)) {
        *ret_number = (int8_t)*in->at++;
        return true;
    }
    if (!mu__read_wide(in, &bits, &negative))
        return false;
    if (!negative && bits > INT64_MAX) {
        in->at = begin;
        return false;
    }
    memcpy(ret_number, &bits, sizeof bits);
    return true;
}

/* A float of 64 bits, bit by bit, or one of 32 bits, converted. */
static inline bool mu__read_f64(struct mu__reader *in, double *ret_number)
{
    size_t left = mu__reader_left(in);
    uint64_t bits;
    uint32_t narrow;
    float number;

    if (left > 8 && *in->at == 0xcb) {
        bits = mu__load_big64(in->at + 1);
        memcpy(ret_number, &bits, sizeof bits);
        in->at += 9;
        return true;
    }
    if (left <= 4 || *in->at != 0xca)
        return false;
    narrow = mu__load_big32(in->at + 1);
    memcpy(&number, &narrow, sizeof number);
    *ret_number = (double)number;
    in->at += 5;
    return true;
}

/* How a type writes its length: in the low bits of one byte (`fix` under `mask`), or in
 * `width`, 2 * width, ... bytes after `lead`, lead + 1, ..., `last`. */
struct mu__length_form {
    uint8_t fix;
    uint8_t mask;
    uint8_t lead;
    uint8_t last;
    uint8_t width;
};

/* A length by its form. Moves the cursor behind it, not behind what it counts. */
static inline bool mu__read_length(struct mu__reader *in, struct mu__length_form form,
                                   uint32_t *ret_length)
{
    size_t left = mu__reader_left(in);
    size_t size;

    if (left == 0)
        return false;
    if ((*in->at & form.mask) == form.fix) {
        *ret_length = *in->at++ & (uint8_t)~form.mask;
        return true;
    }
    if (*in->at < form.lead || *in->at > form.last)
        return false;
    size = (size_t)form.width << (*in->at - form.lead);
    if (left <= size)
        return false;
    *ret_length = (uint32_t)mu__load_big(in->at + 1, size);
    in->at += 1 + size;
    return true;
}

static inline bool mu__read_array(struct mu__reader *in, uint32_t *ret_count)
{
    return mu__read_length(in, (struct mu__length_form){0x90, 0xf0, 0xdc, 0xdd, 2},
                           ret_count);
}

static inline bool mu__read_map(struct mu__reader *in, uint32_t *ret_count)
{
    return mu__read_length(in, (struct mu__length_form){0x80, 0xf0, 0xde, 0xdf, 2},
                           ret_count);
}

/* A length by its form and that many bytes; the result points to them. */
static inline bool mu__read_span(struct mu__reader *in, struct mu__length_form form,
                                 const uint8_t **ret_data, uint32_t *ret_size)
{
    const uint8_t *begin = in->at;
    uint32_t size;

    if (!mu__read_length(in, form, &size))
        return false;
    if (size > mu__reader_left(in)) {
        in->at = begin;
        return false;
    }
    *ret_data = in->at;
    *ret_size = size;
    in->at += size;
    return true;
}

static inline bool mu__read_str(struct mu__reader *in, const uint8_t **ret_data,
                                uint32_t *ret_size)
{
    return mu__read_span(in, (struct mu__length_form){0xa0, 0xe0, 0xd9, 0xdb, 1},
                         ret_data, ret_size);
}

/* Bytes have no short form: under an empty mask no byte is 0x01. */
static inline bool mu__read_bin(struct mu__reader *in, const uint8_t **ret_data,
                                uint32_t *ret_size)
{
    return mu__read_span(in, (struct mu__length_form){0x01, 0x00, 0xc4, 0xc6, 1},
                         ret_data, ret_size);
}

/* An extension: its type and its bytes. */
bool mu__read_ext(struct mu__reader *in, int8_t *ret_type, const uint8_t **ret_data,
                  uint32_t *ret_size);

/* Skip one whole item, with all that is inside it. Needs no stack, however deep the
 * nesting, and no more steps than there are bytes. */
bool mu__skip(struct mu__reader *in);

#endif
