/* The header of a safetensors file, a format that many programs read and write:
 *
 *   8 bytes     N, little-endian
 *   N bytes     JSON, filled up with spaces
 *   the rest    the contents of the tensors, one after the other, without holes
 *
 * The JSON is an object with a member for each tensor, {"dtype": "F32", "shape": [2, 3],
 * "data_offsets": [0, 24]}: first byte and end, counted from where the contents begin;
 * "__metadata__" is for texts. Contents are little-endian, row-major. There are no
 * checksums in it. Pure. */
#ifndef MU_RUNTIME_DOCUMENT_SAFETENSORS_H
#define MU_RUNTIME_DOCUMENT_SAFETENSORS_H

#include "muster/value.h"
#include "runtime/base/build.h"
#include "runtime/document/json.h"

enum {
    MU__SAFETENSORS_SIZE_BYTES = 8,
    MU__SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000, /* as the format's own library */
    MU__SAFETENSORS_TENSORS_MAX = 1 << 20,
    MU__SAFETENSORS_NAME_MAX = 319
};
#define MU__SAFETENSORS_FILE_MAX (UINT64_C(1) << 48)

struct mu__safetensor {
    char name[MU__SAFETENSORS_NAME_MAX + 1];
    uint32_t dtype;
    uint32_t rank;
    uint64_t dims[MU_TENSOR_RANK_MAX];
    uint64_t offset; /* from where the contents begin */
    uint64_t bytes;
};

/* "F32" for MU_F32, and back; MU_DTYPE_NONE for a dtype that muster does not have. */
const char *mu__safetensors_dtype_name(uint32_t dtype);
uint32_t mu__safetensors_dtype(const char *name);

/* Bytes by dtype and dims; UINT64_MAX when they are beyond MU__SAFETENSORS_FILE_MAX. */
uint64_t mu__safetensors_bytes(const struct mu__safetensor *tensor);

/* Sort tensors, whose `bytes` are filled in, into the order of their contents, in which
 * each is aligned to its elements, and fill in their offsets. Returns all their bytes. */
uint64_t mu__safetensors_arrange(struct mu__safetensor *tensors, size_t count);

/* Append size and JSON for tensors that were arranged. */
void mu__safetensors_write(struct mu__build *out, const struct mu__safetensor *tensors,
                           size_t count);

/* Readers take any bytes: -MU_EDATALOSS with what is wrong, -MU_ENOMEM. */

/* How many bytes of JSON follow in a file of `file_bytes`. */
int mu__safetensors_read_size(const uint8_t bytes[MU__SAFETENSORS_SIZE_BYTES],
                              uint64_t file_bytes, mu_error *ret_error, size_t *ret_size);

/* The JSON, behind which there are `content_bytes`. The tensors are sorted by name; the
 * caller frees them with free(). -MU_EUNIMPLEMENTED: a dtype that muster has not. */
int mu__safetensors_read(const char *json, size_t size, uint64_t content_bytes,
                         mu_error *ret_error, struct mu__safetensor **ret_tensors,
                         size_t *ret_count);

/* Read a list of dims; false: it is none, or too long. */
bool mu__safetensors_dims(const cJSON *list, uint32_t *ret_rank,
                          uint64_t ret_dims[MU_TENSOR_RANK_MAX]);

#endif
