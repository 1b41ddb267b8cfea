/* Writing a checkpoint: a directory of safetensors files with a
 * manifest (runtime/document/manifest.h). All calls fill in ret_error, which may be NULL,
 * with the path. */
#ifndef MU_NODE_FILES_CHECKPOINT_CKPT_WRITER_H
#define MU_NODE_FILES_CHECKPOINT_CKPT_WRITER_H

#include "actors/ps/shape.h"
#include "node/files/checkpoint/ckpt_folder.h"
#include "runtime/base/crc32c.h"

/* Rows of a variable; a variable without dims has one row. Parts of one `file`, any
 * number, are in one file. */
struct mu__ckpt_part {
    uint32_t file;
    const char *name;
    const struct mu__shape *shape; /* of the whole variable */
    uint64_t first_row;
    uint64_t end_row;
};

struct mu__ckpt_writer;

/* Begin a checkpoint that will be at `path`. What other writers of it left behind when
 * they died is removed. */
int mu__ckpt_writer_open(const char *path, uint64_t step, mu_error *ret_error,
                         struct mu__ckpt_writer **ret_writer);

/* Declare all parts before any content is written, as their sizes come first in the
 * files: by ascending names, those of a variable by ascending rows, without holes. */
int mu__ckpt_writer_declare(struct mu__ckpt_writer *writer,
                            const struct mu__ckpt_part *part, mu_error *ret_error);

/* All are declared: the files begin, if they have not. Writing does it, too. */
int mu__ckpt_writer_begin(struct mu__ckpt_writer *writer, mu_error *ret_error);

/* Where the i-th part then begins in its file. Content that lies in memory as it does
 * there is written with the least effort (node/files/direct_file.h). */
uint64_t mu__ckpt_writer_offset(const struct mu__ckpt_writer *writer, size_t i);

/* Write the content of the i-th part that was declared. Each is written once, in any
 * order. */
int mu__ckpt_writer_write(struct mu__ckpt_writer *writer, size_t i, const void *content,
                          mu_error *ret_error);

/* The same in pieces, in any order, and again; then its sum, once. */
int mu__ckpt_writer_write_at(struct mu__ckpt_writer *writer, size_t i, uint64_t offset,
                             const void *content, size_t size, mu_error *ret_error);
void mu__ckpt_writer_end_part(struct mu__ckpt_writer *writer, size_t i, uint32_t sum);

/* A partition of the servers, by ascending numbers. `windows` is
 * not needed any more when it was written. */
struct mu__ckpt_partition {
    uint32_t partition;
    uint64_t position;
    uint64_t sum;
    const void *windows;
    uint64_t windows_bytes;
};

/* Write which partitions the contents are of, before the end. */
int mu__ckpt_writer_write_partitions(struct mu__ckpt_writer *writer,
                                     const struct mu__ckpt_partition *partitions,
                                     size_t count, mu_error *ret_error);

/* Note a table whose rows are among the tensors: by ascending names, each once; it is
 * copied. -MU_EEXHAUSTED, -MU_ENOMEM. */
struct mu__manifest_table;
int mu__ckpt_writer_add_table(struct mu__ckpt_writer *writer,
                              const struct mu__manifest_table *table,
                              mu_error *ret_error);

/* The number of what is saved, and of an increment the checkpoint before it, with its
 * number; 0: it is none. */
void mu__ckpt_writer_set_marks(struct mu__ckpt_writer *writer, uint64_t mark,
                               const char *base_name, uint64_t base_mark);

const struct mu__crc32c *mu__ckpt_writer_crc(const struct mu__ckpt_writer *writer);

/* Write the value beside the variables, before the end. */
int mu__ckpt_writer_write_value(struct mu__ckpt_writer *writer, const mu_value *value,
                                mu_error *ret_error);

/* Flush everything to the disk, then give the directory its name. */
int mu__ckpt_writer_finish(struct mu__ckpt_writer *writer, mu_error *ret_error);

/* Removes what was written unless it was finished. NULL is fine. */
void mu__ckpt_writer_free(struct mu__ckpt_writer *writer);

#endif
