#include "runtime/base/printable.h"

#include "runtime/base/text.h"

#include <string.h>

enum { ESCAPE_BYTES = 4 };

/* Whether a character of UTF-8 is a control (C0, DEL or C1), or U+2028 or U+2029, which
 * some readers of logs take for the end of a line. */
static bool is_control(const unsigned char *at, size_t bytes)
{
    if (bytes == 1)
        return at[0] < 0x20 || at[0] == 0x7F;
    if (bytes == 2)
        return at[0] == 0xC2 && at[1] < 0xA0;
    return bytes == 3 && at[0] == 0xE2 && at[1] == 0x80 &&
           (at[2] == 0xA8 || at[2] == 0xA9);
}

static size_t write_escape(unsigned char byte, char *out)
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
    const char *end = text + strlen(text);
    size_t used = 0;

    while (text < end && used + ESCAPE_BYTES < size) {
        size_t bytes = mu__utf8_length(text, end);

        if (bytes > 0 && !is_control((const unsigned char *)text, bytes)) {
            memcpy(out + used, text, bytes);
            used += bytes;
            text += bytes;
        } else {
            used += write_escape((unsigned char)*text++, out + used);
        }
    }
    out[used] = '\0';
}
