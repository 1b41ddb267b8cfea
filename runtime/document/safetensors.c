#include "runtime/document/safetensors.h"

#include "runtime/base/array.h"
#include "runtime/base/byte_order.h"
#include "runtime/base/text.h"

#include <inttypes.h>

enum { TENSORS_FIRST = 16, ALIGN = 8, ENTRY_MEMBERS = 3 };

static const char metadata_key[] = "__metadata__";

/* ---- dtypes ---- */

/* The format's names are those of enum mu_dtype. */
#define DTYPE_ROW(name, number, words, bytes) {#name, MU_##name},
static const struct {
    const char *name;
    uint32_t dtype;
} dtypes[] = {MU_DTYPES(DTYPE_ROW)};
#undef DTYPE_ROW

const char *mu__safetensors_dtype_name(uint32_t dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

uint32_t mu__safetensors_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].dtype;
    return MU_DTYPE_NONE;
}

uint64_t mu__safetensors_bytes(const struct mu__safetensor *tensor)
{
    uint64_t bytes = mu_dtype_bytes((int)tensor->dtype);

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] == 0)
            return 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->dims[i] > MU__SAFETENSORS_FILE_MAX / bytes)
            return UINT64_MAX;
        bytes *= tensor->dims[i];
    }
    return bytes;
}

/* ---- writing ---- */

static int compare_layout(const void *a, const void *b)
{
    const struct mu__safetensor *one = a;
    const struct mu__safetensor *two = b;
    size_t one_bytes = mu_dtype_bytes((int)one->dtype);
    size_t two_bytes = mu_dtype_bytes((int)two->dtype);

    if (one_bytes != two_bytes)
        return one_bytes < two_bytes ? 1 : -1;
    return strcmp(one->name, two->name);
}

uint64_t mu__safetensors_arrange(struct mu__safetensor *tensors, size_t count)
{
    uint64_t offset = 0;

    if (count > 1)
        qsort(tensors, count, sizeof *tensors, compare_layout);
    for (size_t i = 0; i < count; i++) {
        tensors[i].offset = offset;
        offset += tensors[i].bytes;
    }
    return offset;
}

static void write_tensor(struct mu__build *out, const struct mu__safetensor *tensor)
{
    mu__build_add(out, ",");
    mu__build_json(out, tensor->name, strlen(tensor->name));
    mu__build_format(out, ":{\"dtype\":\"%s\",\"shape\":[",
                     mu__safetensors_dtype_name(tensor->dtype));
    for (uint32_t i = 0; i < tensor->rank; i++)
        mu__build_format(out, "%s%" PRIu64, i == 0 ? "" : ",", tensor->dims[i]);
    mu__build_format(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", tensor->offset,
                     tensor->offset + tensor->bytes);
}

void mu__safetensors_write(struct mu__build *out, const struct mu__safetensor *tensors,
                           size_t count)
{
    static const uint8_t nothing[MU__SAFETENSORS_SIZE_BYTES];
    size_t from = out->size;

    mu__build_bytes(out, nothing, sizeof nothing);
    /* Readers of the library transformers want to hear who it is for. */
    mu__build_format(out, "{\"%s\":{\"format\":\"pt\"}", metadata_key);
    for (size_t i = 0; i < count; i++)
        write_tensor(out, &tensors[i]);
    mu__build_add(out, "}");
    while ((out->size - from) % ALIGN != 0 && !out->failed)
        mu__build_add(out, " ");
    if (!out->failed)
        mu__store_little((uint8_t *)out->text + from, out->size - from - sizeof nothing,
                         sizeof nothing);
}

/* ---- reading ---- */

int mu__safetensors_read_size(const uint8_t bytes[MU__SAFETENSORS_SIZE_BYTES],
                              uint64_t file_bytes, mu_error *ret_error, size_t *ret_size)
{
    uint64_t size = mu__load_little64(bytes);

    if (file_bytes < MU__SAFETENSORS_SIZE_BYTES)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "the file is cut short, in its header");
    if (size > MU__SAFETENSORS_HEADER_MAX)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "its header has %" PRIu64 " bytes, expected at most %d", size,
                            MU__SAFETENSORS_HEADER_MAX);
    if (size > file_bytes - MU__SAFETENSORS_SIZE_BYTES)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "the file is cut short, in its header");
    if (file_bytes > MU__SAFETENSORS_FILE_MAX)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "the file has %" PRIu64 " bytes, expected at most %" PRIu64,
                            file_bytes, MU__SAFETENSORS_FILE_MAX);
    *ret_size = (size_t)size;
    return 0;
}

bool mu__safetensors_dims(const cJSON *list, uint32_t *ret_rank,
                          uint64_t ret_dims[MU_TENSOR_RANK_MAX])
{
    uint32_t rank = 0;

    if (!cJSON_IsArray(list))
        return false;
    for (const cJSON *item = list->child; item != NULL; item = item->next)
        if (rank == MU_TENSOR_RANK_MAX ||
            !mu__json_whole(item, MU__SAFETENSORS_FILE_MAX, &ret_dims[rank++]))
            return false;
    *ret_rank = rank;
    return true;
}

struct tensors_reader {
    struct mu__safetensor *tensors;
    size_t count;
    size_t room;
    uint64_t content_bytes;
    mu_error *error;
};

static int refuse_tensor(const struct tensors_reader *reader, const char *name,
                         const char *reason)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, name, strlen(name));
    return mu_error_set(reader->error, -MU_EDATALOSS, "tensor %s: %s", shown, reason);
}

static int read_dtype(const struct tensors_reader *reader, const char *name,
                      const cJSON *entry, uint32_t *ret_dtype)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    char shown[MU__QUOTE_BYTES];
    char got[MU__QUOTE_BYTES];

    if (!cJSON_IsString(item))
        return refuse_tensor(reader, name, "its dtype is no text");
    *ret_dtype = mu__safetensors_dtype(item->valuestring);
    if (*ret_dtype != MU_DTYPE_NONE)
        return 0;
    mu__quote(shown, sizeof shown, name, strlen(name));
    mu__quote(got, sizeof got, item->valuestring, strlen(item->valuestring));
    return mu_error_set(reader->error, -MU_EUNIMPLEMENTED,
                        "tensor %s: variables cannot have its dtype, %s", shown, got);
}

static int read_offsets(const struct tensors_reader *reader, const cJSON *entry,
                        struct mu__safetensor *tensor)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    uint64_t bytes = mu__safetensors_bytes(tensor);
    uint64_t end;

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 2 ||
        !mu__json_whole(list->child, MU__SAFETENSORS_FILE_MAX, &tensor->offset) ||
        !mu__json_whole(list->child->next, MU__SAFETENSORS_FILE_MAX, &end))
        return refuse_tensor(reader, tensor->name,
                             "its data_offsets are not two numbers");
    if (end < tensor->offset || end > reader->content_bytes)
        return refuse_tensor(reader, tensor->name,
                             "its data_offsets are beyond the file");
    if (end - tensor->offset != bytes)
        return refuse_tensor(reader, tensor->name,
                             "its data_offsets do not fit its dtype and shape");
    tensor->bytes = bytes;
    return 0;
}

static int read_tensor(void *owner, const char *key, const cJSON *entry)
{
    struct tensors_reader *reader = owner;
    struct mu__safetensor tensor = {.rank = 0};
    int rv;

    if (strcmp(key, metadata_key) == 0)
        return cJSON_IsObject(entry) ? 0 : refuse_tensor(reader, key, "it is no object");
    if (strlen(key) > MU__SAFETENSORS_NAME_MAX)
        return refuse_tensor(reader, key, "its name is too long");
    if (!cJSON_IsObject(entry) || cJSON_GetArraySize(entry) != ENTRY_MEMBERS)
        return refuse_tensor(reader, key,
                             "it is no object of dtype, shape and data_offsets");
    if (reader->count == MU__SAFETENSORS_TENSORS_MAX)
        return refuse_tensor(reader, key, "it is one too many");
    MU__COPY_TEXT(tensor.name, key);
    rv = read_dtype(reader, key, entry, &tensor.dtype);
    if (rv != 0)
        return rv;
    if (!mu__safetensors_dims(cJSON_GetObjectItemCaseSensitive(entry, "shape"),
                              &tensor.rank, tensor.dims))
        return refuse_tensor(reader, key, "its shape is no list of at most 8 numbers");
    rv = read_offsets(reader, entry, &tensor);
    if (rv != 0)
        return rv;
    if (!MU__ARRAY_RESERVE(&reader->tensors, &reader->room, reader->count, TENSORS_FIRST))
        return mu_error_set(reader->error, -MU_ENOMEM, "no memory for its header");
    reader->tensors[reader->count++] = tensor;
    return 0;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct mu__safetensor *one = a;
    const struct mu__safetensor *two = b;

    if (one->offset != two->offset)
        return one->offset < two->offset ? -1 : 1;
    return one->bytes < two->bytes ? -1 : one->bytes > two->bytes;
}

static int compare_tensor_names(const void *a, const void *b)
{
    const struct mu__safetensor *one = a;
    const struct mu__safetensor *two = b;

    return strcmp(one->name, two->name);
}

/* Contents follow each other up to the end, and names are there once. */
static int check_tensors(const struct tensors_reader *reader)
{
    struct mu__safetensor *tensors = reader->tensors;
    uint64_t expected = 0;

    if (reader->count > 1)
        qsort(tensors, reader->count, sizeof *tensors, compare_offsets);
    for (size_t i = 0; i < reader->count; i++) {
        if (tensors[i].offset != expected)
            return refuse_tensor(reader, tensors[i].name,
                                 tensors[i].offset < expected
                                     ? "its content overlaps with another one"
                                     : "there is a hole before its content");
        expected += tensors[i].bytes;
    }
    if (expected != reader->content_bytes)
        return mu_error_set(reader->error, -MU_EDATALOSS,
                            "there are bytes behind its last tensor");
    if (reader->count > 1)
        qsort(tensors, reader->count, sizeof *tensors, compare_tensor_names);
    for (size_t i = 1; i < reader->count; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return refuse_tensor(reader, tensors[i].name, "it is there twice");
    return 0;
}

int mu__safetensors_read(const char *json, size_t size, uint64_t content_bytes,
                         mu_error *ret_error, struct mu__safetensor **ret_tensors,
                         size_t *ret_count)
{
    struct tensors_reader reader = {.content_bytes = content_bytes, .error = ret_error};
    int rv =
        mu__json_parse_members(json, size, "its header", read_tensor, &reader, ret_error);

    if (rv == 0)
        rv = check_tensors(&reader);
    if (rv == 0) {
        *ret_tensors = reader.tensors;
        *ret_count = reader.count;
        return 0;
    }
    free(reader.tensors);
    if (rv == -MU_EINVALID && ret_error != NULL)
        ret_error->code = -MU_EDATALOSS;
    return rv == -MU_EINVALID ? -MU_EDATALOSS : rv;
}
