/* Files that are checkpoints: actors/ps/checkpoint_format.h says what is in them. Nothing
 * here knows of nodes. All calls fill in ret_error, which may be NULL, with the path. */
#ifndef MU_NODE_FILES_CHECKPOINT_FILE_H
#define MU_NODE_FILES_CHECKPOINT_FILE_H

#include "actors/ps/checkpoint_format.h"

enum { MU__CKPT_PATH_BYTES = 4096 };

/* ---- Writing ---- */

struct mu__ckpt_writer;

/* Begin a file that will be at `path`, with room for `parts_max` parts. What other
 * writers of the same checkpoint left behind when they died is removed. */
int mu__ckpt_writer_open(const char *path, uint64_t step, uint32_t parts_max,
                         mu_error *ret_error, struct mu__ckpt_writer **ret_writer);

/* Parts are added in ascending order of their names; "" is the value's. */
int mu__ckpt_writer_add(struct mu__ckpt_writer *writer, const char *name,
                        const struct mu__shape *shape, const void *data, uint64_t bytes,
                        mu_error *ret_error);
int mu__ckpt_writer_add_value(struct mu__ckpt_writer *writer, const mu_value *value,
                              mu_error *ret_error);

/* Flush the file to the disk, then rename it to its path. */
int mu__ckpt_writer_finish(struct mu__ckpt_writer *writer, mu_error *ret_error);

/* Removes the file unless it was finished. NULL is fine. */
void mu__ckpt_writer_free(struct mu__ckpt_writer *writer);

/* ---- Reading ---- */

struct mu__ckpt_reader {
    int fd;
    char *path;
    struct mu__crc32c crc;
    struct mu__ckpt_header header;
    struct mu__ckpt_part *parts;    /* header.parts_count of them */
};

/* Read header and index, and all contents once, to see that they are whole:
 * -MU_EDATALOSS, -MU_ENOTFOUND, -MU_EPERMISSION. */
int mu__ckpt_reader_open(const char *path, mu_error *ret_error,
                         struct mu__ckpt_reader **ret_reader);

/* NULL when there is none. */
const struct mu__ckpt_part *mu__ckpt_reader_find(const struct mu__ckpt_reader *reader,
                                                 const char *name);

/* The content of a part, its checksum checked again; the caller frees it with free(). */
int mu__ckpt_reader_content(const struct mu__ckpt_reader *reader,
                            const struct mu__ckpt_part *part, mu_error *ret_error,
                            uint8_t **ret_content);

/* The value beside the variables; nil when there is none. The caller's. */
int mu__ckpt_reader_value(const struct mu__ckpt_reader *reader, mu_error *ret_error,
                          mu_value **ret_value);

void mu__ckpt_reader_close(struct mu__ckpt_reader *reader);

/* ---- A directory of them ---- */

/* 1 to 63 letters, digits, "_", "-" or "."; -MU_EINVALID. */
int mu__ckpt_name_check(const char *name, mu_error *ret_error);

/* "DIRECTORY/NAME-STEP.ckpt"; -MU_EINVALID when it is too long. */
int mu__ckpt_path(const char *directory, const char *name, uint64_t step,
                  mu_error *ret_error, char out[MU__CKPT_PATH_BYTES]);

/* The steps of which there are checkpoints with this name, the largest first; the caller
 * frees them with mu__free_array(). -MU_ENOTFOUND when there is no such directory. */
int mu__ckpt_steps(const char *directory, const char *name, mu_error *ret_error,
                   uint64_t **ret_steps, size_t *ret_count);

/* Make a directory and those above it; one that is there is fine. */
int mu__ckpt_make_directory(const char *directory, mu_error *ret_error);

#endif
