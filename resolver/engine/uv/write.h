/* Writing files, for registries of tasks. Blocking: for a thread that may wait. */
#ifndef MU_RESOLVER_WRITE_UV_H
#define MU_RESOLVER_WRITE_UV_H

#include <muster/error.h>

#include <stdbool.h>
#include <stddef.h>

/* Make the bytes the content of a file: readers see the old content or the new one, never
 * a part. With `new_only` a file that is there stays: -MU_EEXISTS. -MU_ENOTFOUND: there
 * is no such folder; -MU_EPERMISSION, -MU_EEXHAUSTED (no room), -MU_EUNAVAILABLE,
 * -MU_EINVALID, each with path and reason. */
int mu__file_write(const char *path, const void *bytes, size_t size, bool new_only,
                   mu_error *ret_error);

/* An errno as the code of an error. */
int mu__errno_code(int number);

/* -MU_ENOTFOUND: it is not there. */
int mu__file_remove(const char *path, mu_error *ret_error);

#endif
