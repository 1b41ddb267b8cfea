#include "runtime/base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ESCAPE_BYTES = 4 };

/* Bytes of the UTF-8 character at `at`; 0: it is none. */
static size_t utf8_bytes(const unsigned char *at)
{
    uint32_t point;
    size_t bytes;

    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xC2 || at[0] > 0xF4)
        return 0;
    bytes = at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    point = at[0] & (0xFFU >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3FU);
    }
    if ((bytes == 3 && (point < 0x800 || (point >= 0xD800 && point < 0xE000))) ||
        (bytes == 4 && (point < 0x10000 || point > 0x10FFFF)))
        return 0;
    return bytes;
}

/* Of a whole character: below space, delete, the second set of controls, and what some
 * readers of logs take for the end of a line. */
static bool is_control(const unsigned char *at, size_t bytes)
{
    if (bytes == 1)
        return at[0] < 0x20 || at[0] == 0x7F;
    if (bytes == 2)
        return at[0] == 0xC2 && at[1] < 0xA0;
    return bytes == 3 && at[0] == 0xE2 && at[1] == 0x80 &&
           (at[2] == 0xA8 || at[2] == 0xA9);
}

static size_t escape(unsigned char byte, char *out)
{
    static const char digits[] = "0123456789abcdef";
    static const char controls[] = "\n\r\t";
    const char *control = memchr(controls, byte, sizeof controls - 1);

    out[0] = '\\';
    if (control != NULL) {
        out[1] = "nrt"[control - controls];
        return 2;
    }
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return ESCAPE_BYTES;
}

void mu__printable(const char *text, char *out, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;

    while (*at != '\0' && used + ESCAPE_BYTES < size) {
        size_t bytes = utf8_bytes(at);

        if (bytes > 0 && !is_control(at, bytes)) {
            memcpy(out + used, at, bytes);
            used += bytes;
            at += bytes;
        } else {
            used += escape(*at++, out + used);
        }
    }
    out[used] = '\0';
}
