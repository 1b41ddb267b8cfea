/* What the system says about a file, as an error. */
#ifndef MU_NODE_FILE_ERROR_H
#define MU_NODE_FILE_ERROR_H

#include "muster/error.h"

/* "\"PATH\" cannot be WHAT: WORDS", with the code for the system's `number`:
 * -MU_ENOTFOUND, -MU_EPERMISSION, -MU_EEXHAUSTED, -MU_EINVALID, or -MU_EUNKNOWN. */
int mu__file_error(const char *path, const char *what, int number, mu_error *ret_error);

#endif
