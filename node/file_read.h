/* Files that are read whole or piece by piece, and never waited for without end: a path
 * may name a pipe that nobody writes to. */
#ifndef MU_NODE_FILE_READ_H
#define MU_NODE_FILE_READ_H

#include "muster/error.h"

#include <stddef.h>

/* Open a file for reading. Of anything but a regular file -MU_EDATALOSS; else as
 * mu__file_error says. */
int mu__file_open(const char *path, mu_error *ret_error, int *ret_fd);

/* All of a file, of a pipe, or of "/dev/fd/N", up to `most` bytes, with a zero behind
 * them: the caller frees it. What has not come after `timeout_ms` is -MU_EDEADLINE. */
int mu__file_read(const char *path, size_t most, unsigned timeout_ms, mu_error *ret_error,
                  char **ret_text, size_t *ret_size);

#endif
