/* A storage that is a file. What is appended waits in a buffer of fixed size until it is
 * flushed, or until the buffer is full, and is then written at once. The calls block. */
#ifndef MU_RUNTIME_STORAGE_UV_H
#define MU_RUNTIME_STORAGE_UV_H

#include "runtime/kernel/storage.h"

#include <stdbool.h>

/* Open the file, or make it; its folder must exist. With `sync`, what was flushed
 * survives a power cut, too, and each flush waits for the disk.
 *
 * The file is ours until it is closed or the process ends (and children that it forked
 * without exec): -MU_EEXISTS when somebody has it open. -MU_ENOTFOUND, -MU_EPERMISSION,
 * -MU_EINVALID (a folder, say). */
int mu__storage_uv_open(const char *path, bool sync, mu_error *ret_error,
                        struct mu__storage **ret_storage);

/* What was not flushed is lost. NULL is fine. */
void mu__storage_uv_close(struct mu__storage *storage);

#endif
