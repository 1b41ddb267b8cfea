/* The interface to one file, which is all that an actor knows of disks.
 *
 * runtime/uv/file_storage.c is a file in a folder; tests/sim/ has one that survives the
 * crash of its process, but for what was not flushed. Loop thread only. What every
 * storage must do is tested by tests/support/contract/storage.h. */
#ifndef MU_RUNTIME_STORAGE_H
#define MU_RUNTIME_STORAGE_H

#include "muster/error.h"
#include "runtime/message/buf.h"

#include <stdbool.h>

struct mu__storage {
    const struct mu__storage_ops *ops;
    const char *name; /* for messages: the path; lives as long as the storage */
};

struct mu__storage_ops {
    /* Of what a process that starts now would find, at most `bytes_max` bytes from
     * `offset` on; NULL in *ret_content when there are none. The caller drops the
     * buffer. */
    int (*load)(struct mu__storage *storage, uint64_t offset, uint32_t bytes_max,
                mu_error *ret_error, struct mu__buf **ret_content);

    /* How many bytes that are. */
    uint64_t (*size)(const struct mu__storage *storage);

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

    /* Drop what is behind the first `size` bytes of what load() finds. Nothing was
     * appended. A failure leaves everything as it was. */
    int (*cut)(struct mu__storage *storage, uint64_t size, mu_error *ret_error);

    /* Reserve space, so that `bytes` more can be appended and flushed, now or later.
     * Where the system cannot reserve, 0 promises nothing. -MU_EEXHAUSTED when there is
     * no room. May be NULL. */
    int (*reserve)(struct mu__storage *storage, uint64_t bytes, mu_error *ret_error);

    /* Write another content beside the present one, which is used as before, and put it
     * in its place in the end: replace() in pieces that do not wait for the disk. A
     * renewal that is under way is dropped. After a failure nothing has changed. */
    int (*renew)(struct mu__storage *storage, mu_error *ret_error);
    int (*renew_append)(struct mu__storage *storage, const void *data, size_t size,
                        mu_error *ret_error);

    /* Much of it is not written yet: what can wait should not be appended now. */
    bool (*renew_is_busy)(struct mu__storage *storage);

    /* As replace() with all that was appended to the renewal. MU__STORAGE_NOT_YET: call
     * it again in some milliseconds; more may be appended until then. After a failure
     * the renewal is dropped. */
    int (*renew_commit)(struct mu__storage *storage, mu_error *ret_error);

    /* None under way is fine. A crash does the same. */
    void (*renew_drop)(struct mu__storage *storage);
};

enum { MU__STORAGE_NOT_YET = 1 };

#endif
