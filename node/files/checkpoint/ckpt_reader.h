/* Reading a checkpoint, or safetensors files of other programs, which have no manifest:
 * one such file, or all in a directory. All calls fill in ret_error, which may be NULL,
 * with the path. */
#ifndef MU_NODE_FILES_CHECKPOINT_CKPT_READER_H
#define MU_NODE_FILES_CHECKPOINT_CKPT_READER_H

#include "actors/ps/shape.h"
#include "runtime/document/manifest.h"

struct mu__ckpt_reader {
    char *path;
    struct mu__crc32c crc;
    struct mu__manifest manifest; /* of other programs' files: made of their headers */
    bool has_sums;                /* false: they are another program's */
    bool only_manifest;
    int *fds;         /* of the files */
    uint8_t *windows; /* the file of windows; NULL: there is none */
};

/* Read manifest and headers, and all contents once, to see that they are whole. The files
 * stay open, so that it does not matter when the checkpoint is replaced or removed
 * meanwhile. -MU_EDATALOSS; -MU_ENOTFOUND, -MU_EPERMISSION; -MU_EUNIMPLEMENTED: a tensor
 * that cannot be a variable. */
int mu__ckpt_reader_open(const char *path, mu_error *ret_error,
                         struct mu__ckpt_reader **ret_reader);

/* The same without looking at anything but the manifest. */
int mu__ckpt_reader_open_manifest(const char *path, mu_error *ret_error,
                                  struct mu__ckpt_reader **ret_reader);

struct mu__shape mu__ckpt_shape(const struct mu__manifest_variable *variable);

/* NULL when there is none. */
const struct mu__manifest_variable *mu__ckpt_reader_find(
    const struct mu__ckpt_reader *reader, const char *name);

/* The content of a variable, its checksums checked again; the caller frees it with
 * free(). */
int mu__ckpt_reader_content(const struct mu__ckpt_reader *reader,
                            const struct mu__manifest_variable *variable,
                            mu_error *ret_error, uint8_t **ret_content);

/* What the i-th partition of the manifest had applied; without bytes: nothing. Borrowed
 * from the reader. */
void mu__ckpt_reader_windows(const struct mu__ckpt_reader *reader, size_t i,
                             const uint8_t **ret_windows, uint64_t *ret_bytes);

/* The value beside the variables; nil when there is none. The caller's. */
int mu__ckpt_reader_value(const struct mu__ckpt_reader *reader, mu_error *ret_error,
                          mu_value **ret_value);

void mu__ckpt_reader_close(struct mu__ckpt_reader *reader);

#endif
