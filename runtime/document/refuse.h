/* The error for a text that is not what was expected. */
#ifndef MU_RUNTIME_DOCUMENT_REFUSE_H
#define MU_RUNTIME_DOCUMENT_REFUSE_H

#include <muster/error.h>

#include <stddef.h>

/* Return -MU_EINVALID, with a message of the formatted text, which ends with what was
 * expected, and ", got" with the quoted `text`. */
int mu__refuse(mu_error *ret_error, const char *text, size_t size, const char *format,
               ...) MU_PRINTF(4, 5);

#endif
