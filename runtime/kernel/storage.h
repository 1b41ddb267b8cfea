/* The interface to one file, which is all that an actor knows of disks.
 *
 * runtime/uv/file_storage.c is a file in a folder; tests/sim/ has one that survives the
 * crash of its process, but for what was not flushed. Loop thread only. What every
 * storage must do is tested by tests/support/contract/storage.h. */
#ifndef MU_RUNTIME_STORAGE_H
#define MU_RUNTIME_STORAGE_H

#include "muster/error.h"
#include "runtime/message/buf.h"

struct mu__storage {
    const struct mu__storage_ops *ops;
    const char *name;       /* for messages: the path; lives as long as the storage */
};

struct mu__storage_ops {
    /* What a process that starts now would find; NULL in *ret_content when there is no
     * file yet, or it is empty. The caller drops the buffer. */
    int (*load)(struct mu__storage *storage, mu_error *ret_error,
                struct mu__buf **ret_content);

    /* Add bytes at the end. They survive the process from the next flush on; before it,
     * a crash leaves any first part of them. After a failure none of them was taken. */
    int (*append)(struct mu__storage *storage, const void *data, size_t size,
                  mu_error *ret_error);

    /* After a failure what was appended is kept and waits for the next flush. */
    int (*flush)(struct mu__storage *storage, mu_error *ret_error);

    /* Replace the whole content, and what was appended to it: after a crash at any time
     * there is the old or the new one. A failure leaves everything as it was. */
    int (*replace)(struct mu__storage *storage, const void *data, size_t size,
                   mu_error *ret_error);

    /* Reserve space, so that `bytes` more can be appended and flushed, now or later.
 * Where * the system cannot reserve, 0 promises nothing. -MU_EEXHAUSTED when there is
 * no room. * May be NULL. */
    int (*reserve)(struct mu__storage *storage, uint64_t bytes, mu_error *ret_error);
};

#endif
