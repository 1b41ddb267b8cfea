/* Bytes as text, for tests whose subject is bytes. */
#ifndef MU_TESTS_HEX_H
#define MU_TESTS_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a text such as "93 05ff"; spaces are skipped. False when the text is not
 * hexadecimal or has more than `capacity` bytes. */
static inline bool hex_read(const char *text, uint8_t *out, size_t capacity,
                            size_t *ret_count)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;
    int high = -1;

    for (; *text != '\0'; text++) {
        const char *found = strchr(digits, *text);

        if (*text == ' ')
            continue;
        if (found == NULL)
            return false;
        if (high < 0) {
            high = (int)(found - digits);
            continue;
        }
        if (count == capacity)
            return false;
        out[count++] = (uint8_t)(high << 4 | (int)(found - digits));
        high = -1;
    }
    *ret_count = count;
    return high < 0;
}

/* The text of bytes: `out` has room for 2 * size + 1. */
static inline void hex_write(const uint8_t *data, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        *out++ = digits[data[i] >> 4];
        *out++ = digits[data[i] & 15];
    }
    *out = '\0';
}

#endif
