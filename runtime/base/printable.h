/* Texts of others in a line of a log: they cannot end the line, nor steer a terminal. */
#ifndef MU_RUNTIME_BASE_PRINTABLE_H
#define MU_RUNTIME_BASE_PRINTABLE_H

#include <stddef.h>

/* Write `text` with a zero behind it, cut where `size` ends: control characters, line
 * separators and bytes that are no UTF-8 become \n, \t, \r or \xNN. What was written once
 * stays as it is when it is written again. */
void mu__printable(const char *text, char *out, size_t size);

#endif
