/* What the files that read checkpoints have in common. Messages name the file of the
 * directory that is wrong; `file` NULL is the path itself. */
#ifndef MU_NODE_FILES_CHECKPOINT_INTERNAL_H
#define MU_NODE_FILES_CHECKPOINT_INTERNAL_H

#include "node/files/checkpoint/ckpt_reader.h"

/* ---- Errors ---- */

int mu__ckpt_refuse(const struct mu__ckpt_reader *reader, const char *file,
                    const char *why, mu_error *ret_error);
int mu__ckpt_refuse_tensor(const struct mu__ckpt_reader *reader, const char *file,
                           const char *name, const char *reason, mu_error *ret_error);
int mu__ckpt_no_memory(const struct mu__ckpt_reader *reader, mu_error *ret_error);

/* The error for what a reader of bytes has returned, and said in `error`. */
int mu__ckpt_explain(const struct mu__ckpt_reader *reader, const char *file, int rv,
                     const mu_error *error, mu_error *ret_error);

/* ---- Files ---- */

int mu__ckpt_read_bytes(const struct mu__ckpt_reader *reader, int fd, const char *file,
                        void *data, uint64_t size, uint64_t offset, mu_error *ret_error);

/* Open a regular file of the directory. */
int mu__ckpt_open_in(const struct mu__ckpt_reader *reader, int folder, const char *file,
                     mu_error *ret_error, int *ret_fd, uint64_t *ret_bytes);

/* Room for the descriptors of the data files. */
int mu__ckpt_make_fds(struct mu__ckpt_reader *reader, uint32_t count,
                      mu_error *ret_error);

/* What the header of a data file says. */
struct mu__ckpt_header {
    const uint32_t *expected_crc; /* NULL: there is none */
    uint64_t contents_at;
    struct mu__safetensor *tensors; /* by name */
    size_t count;
};

/* Fill in all but the sum. The caller frees the tensors with free(). */
int mu__ckpt_read_header(const struct mu__ckpt_reader *reader, int fd, const char *file,
                         uint64_t bytes, mu_error *ret_error,
                         struct mu__ckpt_header *header);

/* Names and shapes are those of variables; in other programs' files they may not be. */
int mu__ckpt_check_variables(const struct mu__ckpt_reader *reader, mu_error *ret_error);

/* ---- A checkpoint with a manifest (check.c) ---- */

/* Read the manifest, of `bytes`, and all files that it names; those of data stay open. */
int mu__ckpt_open_checkpoint(struct mu__ckpt_reader *reader, int folder, int manifest_fd,
                             uint64_t bytes, mu_error *ret_error);

#endif
