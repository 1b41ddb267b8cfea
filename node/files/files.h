/* Reading files without blocking for ever (a path may name a pipe that nobody writes to),
 * and what the system says about a file, as an error. */
#ifndef MU_NODE_FILES_FILES_H
#define MU_NODE_FILES_FILES_H

#include "muster/error.h"

#include <stddef.h>
#include <stdint.h>

/* "\"PATH\" cannot be WHAT: TEXT", with the code and text for `number`, an errno:
 * -MU_ENOTFOUND, -MU_EPERMISSION, -MU_EEXHAUSTED, -MU_EEXISTS, -MU_EINVALID, or
 * -MU_EUNKNOWN. */
int mu__file_error(const char *path, const char *what, int number, mu_error *ret_error);

/* Write all of `data`; 0, or an errno. */
int mu__file_write_all(int fd, const void *data, uint64_t size);

/* The same at `offset`, wherever the file is. */
int mu__file_write_at(int fd, const void *data, uint64_t size, uint64_t offset);

/* Read `size` bytes at `offset`; 0, -1 when the file ends before, or an errno. */
int mu__file_read_all(int fd, void *data, uint64_t size, uint64_t offset);

/* Flush the folder of `path`, so that a new name survives a power cut, too. Where folders
 * cannot be flushed there is nothing to be done about it. */
void mu__file_flush_folder(const char *path);

/* Open a regular file for reading; anything else is -MU_EDATALOSS. */
int mu__file_open(const char *path, mu_error *ret_error, int *ret_fd);

/* All of a file, of a pipe, or of "/dev/fd/N", up to `most` bytes, with a zero behind
 * them: the caller frees it. What has not come after `timeout_ms` is -MU_EDEADLINE. */
int mu__file_read(const char *path, size_t most, unsigned timeout_ms, mu_error *ret_error,
                  char **ret_text, size_t *ret_size);

#endif
