/* A storage that is a file. Appended bytes wait in a buffer of fixed size until the
 * flush, or until the buffer is full, and are then written at once. The calls block. */
#ifndef MU_RUNTIME_STORAGE_UV_H
#define MU_RUNTIME_STORAGE_UV_H

#include "runtime/kernel/storage.h"

#include <stdbool.h>

/* Open the file, or create it; its folder must exist. With `sync`, flushed bytes
 * survive a power cut, too, and each flush waits for the disk.
 *
 * The file is locked until it is closed or the process has ended (with all children that
 * it forked without exec): -MU_EEXISTS when it is open already. -MU_ENOTFOUND,
 * -MU_EPERMISSION, -MU_EINVALID (a folder, say). */
int mu__storage_uv_open(const char *path, bool sync, mu_error *ret_error,
                        struct mu__storage **ret_storage);

/* Data that was not flushed is lost. NULL is fine. */
void mu__storage_uv_close(struct mu__storage *storage);

#endif
