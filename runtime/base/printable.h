/* Untrusted text made safe for a line of a log: it cannot end the line or control a
 * terminal. */
#ifndef MU_RUNTIME_BASE_PRINTABLE_H
#define MU_RUNTIME_BASE_PRINTABLE_H

#include <stddef.h>

/* Write `text` zero-terminated into `out`, cut to `size` bytes: control characters, line
 * separators and bytes that are not UTF-8 become \n, \t, \r or \xNN. A text that is
 * printable already stays as it is. */
void mu__printable(const char *text, char *out, size_t size);

#endif
