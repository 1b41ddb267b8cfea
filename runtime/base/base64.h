/* Base64 with padding (RFC 4648, section 4). */
#ifndef MU_RUNTIME_BASE64_H
#define MU_RUNTIME_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters of the encoded form of `size` bytes. */
static inline size_t mu__base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

/* Write mu__base64_size(size) characters, without a zero behind them. */
void mu__base64_encode(const void *data, size_t size, char *out);

/* Read `size` characters; writes at most size / 4 * 3 bytes. `out` may be `text`.
 * -MU_EINVALID: not base64, which includes missing padding, characters of other alphabets
 * and bits that would be lost; `out` is undefined then. */
int mu__base64_decode(const char *text, size_t size, uint8_t *out, size_t *ret_size);

#endif
