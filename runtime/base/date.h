/* Dates as the APIs of clouds have them. Pure. */
#ifndef MU_RESOLVER_DATE_H
#define MU_RESOLVER_DATE_H

#include <stdint.h>

/* "2024-05-06T07:08:09.123Z" or with "+02:00" in place of the Z (RFC 3339), as seconds
 * since 1970. -MU_EINVALID: it is none, or one before 1970. */
int mu__date_parse(const char *text, int64_t *ret_s);

#endif
