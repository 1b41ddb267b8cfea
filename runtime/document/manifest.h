/* The manifest of a checkpoint: which files it has, with checksums of all their bytes,
 * and where the content of each variable is in them. JSON; pure.
 *
 *   {"format": "muster checkpoint", "version": 1, "step": "7",
 *    "files": [{"file": "00001-of-00001.safetensors", "bytes": 152, "header_crc32c": 1}],
 *    "partitions": [{"partition": 7, "position": "12", "sum": "00000000000000ff",
 *                    "windows": 40}],
 *    "windows": {"file": "windows.safetensors", "bytes": 120, "crc32c": 8},
 *    "index": {"file": "model.safetensors.index.json", "bytes": 90, "crc32c": 2},
 *    "values": {"epoch": 3},
 *    "variables": [{"name": "w", "dtype": "F32", "shape": [5], "shards": 2,
 *                   "parts": [{"file": 1, "tensor": "w", "rows": [0, 5], "crc32c": 3}]}],
 *    "manifest_crc32c": "00000004"}
 *
 * Sums are CRC-32C: of a file's first bytes up to its contents, of each content, of the
 * index, and of the manifest's bytes before "manifest_crc32c". Numbers that may be beyond
 * 2^53 are texts. A part is a range of rows, all those of the variable together; one that
 * is not all of it is the tensor "NAME[FIRST:END]".
 *
 * "partitions" are those of the servers in which the variables' shards are, by ascending
 * numbers; missing when they are not known. Position: the records that had changed it,
 * sum: the running sum of what came of them. The tensor "7" of U8 in the file of windows
 * has what partition 7 had applied (actors/ps/windows.h), unless that is nothing.
 *
 * "tables", missing when there are none, by ascending names: {"name": "emb", "rows": "7",
 * "form": "00ff"}; the form is as servers have it, packed
 * (actors/ps/tables/table_writes.h), in hex. Their rows are tensors among the variables:
 * actors/ps/tables/copies/table_columns.h.
 *
 * "mark", 16 hex digits, is the number by which servers know what was saved. An increment
 * has "base": {"name": "model-3", "mark": "..."}, the checkpoint before it; its tables
 * have the rows that have changed since; "deleted", how many ids of deleted rows are in
 * the tensor "emb#deleted"; and "whole", in hex a bit for each partition of ids of which
 * there are all rows, and no others. Deletions come before rows.
 *
 * "values" (value_json.h) is missing when JSON cannot hold them; then "packed_values" is
 * {"file": "values.safetensors", "bytes": 90, "crc32c": 5, "head_bytes": 6, "tail_bytes":
 * 7}: of a file with one tensor of U8, whose content is the packed value's tail, filled
 * up to 16 bytes, and its head. */
#ifndef MU_RUNTIME_DOCUMENT_MANIFEST_H
#define MU_RUNTIME_DOCUMENT_MANIFEST_H

#include "runtime/base/crc32c.h"
#include "runtime/document/safetensors.h"

enum {
    MU__MANIFEST_NAME_MAX = 255,
    MU__MANIFEST_TABLES_MAX = 4096,
    MU__MANIFEST_FORM_MAX = 512,
    MU__MANIFEST_WHOLE_BYTES = 32, /* a bit for each partition of a table */
    MU__MANIFEST_FILE_BYTES = 32,  /* of a file's name, with its zero */
    MU__MANIFEST_FILES_MAX = 99999,
    MU__MANIFEST_VARIABLES_MAX = 1 << 20,
    MU__MANIFEST_PARTS_MAX = 1 << 22,
    MU__MANIFEST_PARTITIONS_MAX = 1 << 16,
    MU__MANIFEST_BYTES_MAX = 1 << 30
};

#define MU__MANIFEST_FILE "manifest.json"
#define MU__MANIFEST_INDEX_FILE "model.safetensors.index.json"
#define MU__MANIFEST_VALUES_FILE "values.safetensors"
#define MU__MANIFEST_WINDOWS_FILE "windows.safetensors"

struct mu__manifest_file {
    uint64_t bytes;
    uint32_t header_crc;
};

struct mu__manifest_partition {
    uint32_t partition;
    uint64_t position;
    uint64_t sum;
    uint64_t windows_bytes;
    uint64_t windows_offset; /* in the file; not in the JSON */
};

/* Rows of a variable; a variable without dims has one row. */
struct mu__manifest_part {
    uint32_t file; /* from 0 */
    uint64_t first_row;
    uint64_t end_row;
    uint32_t crc;
    uint64_t offset; /* in the file; not in the JSON */
};

struct mu__manifest_variable {
    char name[MU__MANIFEST_NAME_MAX + 1];
    uint32_t dtype;
    uint32_t rank;
    uint64_t dims[MU_TENSOR_RANK_MAX];
    uint32_t shards;
    uint32_t parts_count;
    size_t parts_from; /* in the manifest's parts */
};

struct mu__manifest_table {
    char name[MU__MANIFEST_NAME_MAX + 1];
    uint64_t rows;
    uint32_t form_bytes;
    uint8_t form[MU__MANIFEST_FORM_MAX];
    uint64_t deleted; /* this and below: of an increment */
    uint8_t whole[MU__MANIFEST_WHOLE_BYTES];
};

struct mu__manifest_sum {
    uint64_t bytes;
    uint32_t crc;
};

struct mu__manifest {
    uint64_t step;
    struct mu__manifest_file *files;
    uint32_t files_count;
    struct mu__manifest_variable *variables; /* by name */
    size_t variables_count;
    struct mu__manifest_part *parts;
    size_t parts_count;
    struct mu__manifest_table *tables; /* by name */
    size_t tables_count;
    uint64_t mark;      /* 0: there is none */
    uint64_t base_mark; /* 0: it is no increment */
    char base_name[MU__MANIFEST_NAME_MAX + 1];
    struct mu__manifest_partition *partitions;
    size_t partitions_count;
    struct mu__manifest_sum windows; /* bytes 0: there is no such file */
    struct mu__manifest_sum index;
    mu_value *values;               /* NULL: none, or they are packed */
    struct mu__manifest_sum packed; /* bytes 0: they are not */
    uint32_t head_bytes;
    uint32_t tail_bytes;
};

/* "00001-of-00003.safetensors" for file 0 of 3. */
void mu__manifest_file_name(uint32_t file, uint32_t count,
                            char out[MU__MANIFEST_FILE_BYTES]);

/* The tensor of a part: its name, dtype, dims and bytes. */
void mu__manifest_tensor(const struct mu__manifest_variable *variable,
                         const struct mu__manifest_part *part,
                         struct mu__safetensor *ret_tensor);

/* The tensor of a partition's windows. */
void mu__manifest_windows_tensor(const struct mu__manifest_partition *partition,
                                 struct mu__safetensor *ret_tensor);

/* Where the packed value's content begins in its file, by its end. */
uint64_t mu__manifest_packed_bytes(uint32_t head_bytes, uint32_t tail_bytes);

/* The manifest, and the index by which other programs find the tensors' files. `values`
 * is their JSON; NULL: there is none. */
void mu__manifest_write(const struct mu__crc32c *crc, const struct mu__manifest *manifest,
                        const char *values, struct mu__build *out);
void mu__manifest_write_index(const struct mu__manifest *manifest, struct mu__build *out);

/* Any bytes: -MU_EDATALOSS with what is wrong, -MU_ENOMEM. The caller frees what is in
 * *ret_manifest with mu__manifest_done(). Names and shapes are as JSON has them, the
 * caller checks that there are such variables. */
int mu__manifest_read(const struct mu__crc32c *crc, const char *text, size_t size,
                      mu_error *ret_error, struct mu__manifest *ret_manifest);

void mu__manifest_done(struct mu__manifest *manifest);

#endif
