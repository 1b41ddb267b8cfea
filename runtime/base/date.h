/* Dates in RFC 3339 form, as the APIs of clouds use them. */
#ifndef MU_RUNTIME_BASE_DATE_H
#define MU_RUNTIME_BASE_DATE_H

#include <stdint.h>

/* Parse "2024-05-06T07:08:09.123Z", or with "+02:00" in place of the Z, into seconds
 * since 1970. -MU_EINVALID: not a date, or one before 1970. */
int mu__date_parse(const char *text, int64_t *ret_s);

#endif
