#include "runtime/base/base64.h"

#include "muster/error.h"

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(uint32_t bits, char *out)
{
    for (int i = 0; i < 4; i++)
        out[i] = letters[bits >> (18 - 6 * i) & 63];
}

void mu__base64_encode(const void *data, size_t size, char *out)
{
    const uint8_t *at = data;

    for (; size >= 3; size -= 3, at += 3, out += 4)
        encode_group((uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2], out);
    if (size == 0)
        return;
    encode_group((uint32_t)at[0] << 16 | (size == 2 ? (uint32_t)at[1] << 8 : 0), out);
    out[3] = '=';
    if (size == 1)
        out[2] = '=';
}

static int decode_base64_letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* Decode `count` letters (2 to 4) into the upper bits of a 24-bit number; -1 when one is
 * not of the alphabet. */
static int32_t decode_group(const char *text, size_t count)
{
    int32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i < count ? decode_base64_letter(text[i]) : 0;

        if (value < 0)
            return -1;
        bits = bits << 6 | value;
    }
    return bits;
}

static size_t padding_of(const char *text, size_t size)
{
    if (size == 0 || text[size - 1] != '=')
        return 0;
    return text[size - 2] == '=' ? 2 : 1;
}

int mu__base64_decode(const char *text, size_t size, uint8_t *out, size_t *ret_size)
{
    size_t written = 0;
    size_t padding;

    if (size % 4 != 0)
        return -MU_EINVALID;
    padding = padding_of(text, size);
    for (size_t at = 0; at < size; at += 4) {
        size_t letters_count = at + 4 == size ? 4 - padding : 4;
        int32_t bits = decode_group(text + at, letters_count);

        if (bits < 0 || (letters_count == 3 && (bits & 0xFF) != 0) ||
            (letters_count == 2 && (bits & 0xFFFF) != 0))
            return -MU_EINVALID;
        for (size_t i = 0; i + 1 < letters_count; i++)
            out[written++] = (uint8_t)(bits >> (16 - 8 * i));
    }
    *ret_size = written;
    return 0;
}
