#include "runtime/document/manifest_format.h"

#include "runtime/base/array.h"
#include "runtime/base/text.h"
#include "runtime/document/value_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

enum { ITEMS_FIRST = 16, TAIL_ALIGN = 16 };

void mu__manifest_file_name(uint32_t file, uint32_t count,
                            char out[MU__MANIFEST_FILE_BYTES])
{
    (void)snprintf(out, MU__MANIFEST_FILE_BYTES, "%05u-of-%05u.safetensors",
                   (unsigned)(file % 100000 + 1), (unsigned)(count % 100000));
}

static uint64_t count_rows(const struct mu__manifest_variable *variable)
{
    return variable->rank == 0 ? 1 : variable->dims[0];
}

void mu__manifest_tensor(const struct mu__manifest_variable *variable,
                         const struct mu__manifest_part *part,
                         struct mu__safetensor *ret_tensor)
{
    bool is_whole = part->first_row == 0 && part->end_row == count_rows(variable);

    *ret_tensor =
        (struct mu__safetensor){.dtype = variable->dtype, .rank = variable->rank};
    if (is_whole)
        MU__COPY_TEXT(ret_tensor->name, variable->name);
    else
        (void)snprintf(ret_tensor->name, sizeof ret_tensor->name,
                       "%s[%" PRIu64 ":%" PRIu64 "]", variable->name, part->first_row,
                       part->end_row);
    memcpy(ret_tensor->dims, variable->dims, sizeof variable->dims);
    if (variable->rank > 0)
        ret_tensor->dims[0] = part->end_row - part->first_row;
    ret_tensor->bytes = mu__safetensors_bytes(ret_tensor);
}

void mu__manifest_windows_tensor(const struct mu__manifest_partition *partition,
                                 struct mu__safetensor *ret_tensor)
{
    *ret_tensor = (struct mu__safetensor){.dtype = MU_U8, .rank = 1};
    (void)snprintf(ret_tensor->name, sizeof ret_tensor->name, "%" PRIu32,
                   partition->partition);
    ret_tensor->dims[0] = ret_tensor->bytes = partition->windows_bytes;
}

uint64_t mu__manifest_packed_bytes(uint32_t head_bytes, uint32_t tail_bytes)
{
    return ((uint64_t)tail_bytes + TAIL_ALIGN - 1) / TAIL_ALIGN * TAIL_ALIGN + head_bytes;
}

/* ---- reading ---- */

struct manifest_reader {
    struct mu__manifest manifest;
    size_t variables_room;
    size_t parts_room;
    mu_error *error;
    int rv; /* of the variables: the first fault */
};

MU_PRINTF(2, 3)
static int refuse_manifest(mu_error *error, const char *format, ...)
{
    mu_error said;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(said.message, sizeof said.message, format, arguments);
    va_end(arguments);
    return mu_error_set(error, -MU_EDATALOSS, "%s", said.message);
}

/* The same about a variable. */
static int refuse_saved_variable(const struct manifest_reader *reader,
                                 const struct mu__manifest_variable *variable,
                                 const char *reason)
{
    char name[MU__QUOTE_BYTES];

    mu__quote(name, sizeof name, variable->name, strlen(variable->name));
    return refuse_manifest(reader->error, "variable %s%s", name, reason);
}

static const cJSON *find_manifest_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static bool read_whole_member(const cJSON *object, const char *key, uint64_t max,
                              uint64_t *ret_number)
{
    return mu__json_whole(find_manifest_member(object, key), max, ret_number);
}

static bool read_whole32(const cJSON *object, const char *key, uint32_t *ret_number)
{
    uint64_t number;

    if (!read_whole_member(object, key, UINT32_MAX, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

/* Decimal digits in a text. */
static bool read_text64(const cJSON *object, const char *key, uint64_t *ret_number)
{
    const cJSON *item = find_manifest_member(object, key);
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    char *end;
    uint64_t number;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *ret_number = number;
    return true;
}

static bool is_text(const cJSON *object, const char *key, const char *expected)
{
    const cJSON *item = find_manifest_member(object, key);

    return cJSON_IsString(item) && strcmp(item->valuestring, expected) == 0;
}

/* ---- reading variables ---- */

static int read_manifest_part(struct manifest_reader *reader, const cJSON *entry,
                              const struct mu__manifest_variable *variable)
{
    struct mu__manifest *manifest = &reader->manifest;
    const cJSON *rows = find_manifest_member(entry, "rows");
    struct mu__manifest_part part = {.offset = 0};
    struct mu__safetensor tensor;

    if (!read_whole32(entry, "file", &part.file) || part.file == 0 ||
        !read_whole32(entry, "crc32c", &part.crc) || !cJSON_IsArray(rows) ||
        cJSON_GetArraySize(rows) != 2 ||
        !mu__json_whole(rows->child, count_rows(variable), &part.first_row) ||
        !mu__json_whole(rows->child->next, count_rows(variable), &part.end_row) ||
        part.first_row >= part.end_row)
        return refuse_saved_variable(reader, variable, ": a part is malformed");
    part.file--;
    mu__manifest_tensor(variable, &part, &tensor);
    if (!is_text(entry, "tensor", tensor.name))
        return refuse_saved_variable(reader, variable,
                                     ": a part has another tensor than its rows say");
    if (manifest->parts_count == MU__MANIFEST_PARTS_MAX)
        return refuse_manifest(reader->error, "there are more than %d parts",
                               MU__MANIFEST_PARTS_MAX);
    if (!MU__ARRAY_RESERVE(&manifest->parts, &reader->parts_room, manifest->parts_count,
                           ITEMS_FIRST))
        return -MU_ENOMEM;
    manifest->parts[manifest->parts_count++] = part;
    return 0;
}

/* The rows of the parts follow each other, from the first to the last one. */
static int read_manifest_parts(struct manifest_reader *reader, const cJSON *list,
                               struct mu__manifest_variable *variable)
{
    uint64_t expected = 0;

    variable->parts_from = reader->manifest.parts_count;
    for (const cJSON *entry = cJSON_IsArray(list) ? list->child : NULL; entry != NULL;
         entry = entry->next) {
        int rv = read_manifest_part(reader, entry, variable);
        const struct mu__manifest_part *part;

        if (rv != 0)
            return rv;
        part = &reader->manifest.parts[reader->manifest.parts_count - 1];
        if (part->first_row != expected)
            return refuse_saved_variable(reader, variable,
                                         ": rows overlap, or are missing between parts");
        expected = part->end_row;
        variable->parts_count++;
    }
    if (expected != count_rows(variable))
        return refuse_saved_variable(reader, variable, ": rows are missing at its end");
    return 0;
}

static int read_form(struct manifest_reader *reader, const cJSON *entry,
                     struct mu__manifest_variable *variable)
{
    const cJSON *name = find_manifest_member(entry, "name");
    const cJSON *dtype = find_manifest_member(entry, "dtype");
    struct mu__safetensor whole;

    if (!cJSON_IsString(name) || strlen(name->valuestring) > MU__MANIFEST_NAME_MAX ||
        !cJSON_IsString(dtype))
        return refuse_manifest(reader->error, "a variable is malformed");
    MU__COPY_TEXT(variable->name, name->valuestring);
    variable->dtype = mu__safetensors_dtype(dtype->valuestring);
    if (variable->dtype == MU_DTYPE_NONE ||
        !read_whole32(entry, "shards", &variable->shards) ||
        !mu__safetensors_dims(find_manifest_member(entry, "shape"), &variable->rank,
                              variable->dims))
        return refuse_saved_variable(reader, variable, " is malformed");
    whole = (struct mu__safetensor){.dtype = variable->dtype, .rank = variable->rank};
    memcpy(whole.dims, variable->dims, sizeof whole.dims);
    if (mu__safetensors_bytes(&whole) - 1 >= MU__SAFETENSORS_FILE_MAX)
        return refuse_saved_variable(reader, variable,
                                     ": its shape has no or too many bytes");
    return 0;
}

static int read_variable(struct manifest_reader *reader, const cJSON *entry)
{
    struct mu__manifest *manifest = &reader->manifest;
    size_t count = manifest->variables_count;
    struct mu__manifest_variable variable = {.rank = 0};
    int rv = read_form(reader, entry, &variable);

    if (rv != 0)
        return rv;
    if (count > 0 && strcmp(manifest->variables[count - 1].name, variable.name) >= 0)
        return refuse_saved_variable(reader, &variable,
                                     ": names do not ascend, or it is there twice");
    rv = read_manifest_parts(reader, find_manifest_member(entry, "parts"), &variable);
    if (rv != 0)
        return rv;
    if (count == MU__MANIFEST_VARIABLES_MAX)
        return refuse_manifest(reader->error, "there are more than %d variables",
                               MU__MANIFEST_VARIABLES_MAX);
    if (!MU__ARRAY_RESERVE(&manifest->variables, &reader->variables_room, count,
                           ITEMS_FIRST))
        return -MU_ENOMEM;
    manifest->variables[manifest->variables_count++] = variable;
    return 0;
}

/* After the first fault the rest is only parsed. */
static int read_variable_item(void *owner, const cJSON *entry)
{
    struct manifest_reader *reader = owner;

    if (reader->rv == 0)
        reader->rv = read_variable(reader, entry);
    return reader->rv == -MU_ENOMEM ? -MU_ENOMEM : 0;
}

/* ---- reading the rest ---- */

static int read_files(struct manifest_reader *reader, const cJSON *list)
{
    int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;
    struct mu__manifest_file *files;
    uint32_t at = 0;

    if (count < 0 || count > MU__MANIFEST_FILES_MAX)
        return refuse_manifest(reader->error, "\"files\" is no list of at most %d",
                               MU__MANIFEST_FILES_MAX);
    files = calloc((size_t)count + 1, sizeof *files);
    if (files == NULL)
        return -MU_ENOMEM;
    reader->manifest.files = files;
    reader->manifest.files_count = (uint32_t)count;
    for (const cJSON *entry = list->child; entry != NULL; entry = entry->next, at++) {
        char name[MU__MANIFEST_FILE_BYTES];

        mu__manifest_file_name(at, (uint32_t)count, name);
        if (!is_text(entry, "file", name) ||
            !read_whole_member(entry, "bytes", MU__SAFETENSORS_FILE_MAX,
                               &files[at].bytes) ||
            !read_whole32(entry, "header_crc32c", &files[at].header_crc))
            return refuse_manifest(reader->error, "its file %s is malformed", name);
    }
    return 0;
}

static bool read_sum(const cJSON *entry, const char *file, struct mu__manifest_sum *sum)
{
    return is_text(entry, "file", file) &&
           read_whole_member(entry, "bytes", MU__SAFETENSORS_FILE_MAX, &sum->bytes) &&
           read_whole32(entry, "crc32c", &sum->crc);
}

/* 16 digits. */
static bool read_hex64(const cJSON *object, const char *key, uint64_t *ret_number)
{
    const cJSON *item = find_manifest_member(object, key);
    const char *text = cJSON_IsString(item) ? item->valuestring : "";

    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *ret_number = strtoull(text, NULL, 16);
    return true;
}

/* Sets *has_windows when it has some. */
static bool read_partition(const cJSON *entry, struct mu__manifest_partition *partition,
                           bool *has_windows)
{
    if (!read_whole32(entry, "partition", &partition->partition) ||
        !read_text64(entry, "position", &partition->position) ||
        !read_hex64(entry, "sum", &partition->sum) ||
        !read_whole_member(entry, "windows", MU__SAFETENSORS_FILE_MAX,
                           &partition->windows_bytes))
        return false;
    *has_windows = *has_windows || partition->windows_bytes > 0;
    return true;
}

static int read_partitions(struct manifest_reader *reader, const cJSON *root)
{
    struct mu__manifest *manifest = &reader->manifest;
    const cJSON *list = find_manifest_member(root, "partitions");
    const cJSON *windows = find_manifest_member(root, "windows");
    int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -(list != NULL);
    bool has_windows = false;

    if (count < 0 || count > MU__MANIFEST_PARTITIONS_MAX)
        return refuse_manifest(reader->error, "\"partitions\" is no list of at most %d",
                               MU__MANIFEST_PARTITIONS_MAX);
    manifest->partitions = calloc((size_t)count + 1, sizeof *manifest->partitions);
    if (manifest->partitions == NULL)
        return -MU_ENOMEM;
    for (const cJSON *entry = list == NULL ? NULL : list->child; entry != NULL;
         entry = entry->next) {
        struct mu__manifest_partition *at =
            &manifest->partitions[manifest->partitions_count++];

        if (!read_partition(entry, at, &has_windows) ||
            (manifest->partitions_count > 1 && at[-1].partition >= at->partition))
            return refuse_manifest(reader->error, "a partition is malformed");
    }
    if (has_windows != (windows != NULL) ||
        (has_windows &&
         !read_sum(windows, MU__MANIFEST_WINDOWS_FILE, &manifest->windows)))
        return refuse_manifest(reader->error, "\"windows\" is malformed");
    return 0;
}

/* At most `room` bytes, at least one; 0: it is no such text. */
static uint32_t read_hex_bytes(const cJSON *item, uint8_t *bytes, size_t room)
{
    static const char digits[] = "0123456789abcdef";
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    size_t length = strlen(text);

    if (length % 2 != 0 || length > 2 * room || strspn(text, digits) != length)
        return 0;
    for (size_t i = 0; i < length; i += 2)
        bytes[i / 2] = (uint8_t)((strchr(digits, text[i]) - digits) << 4 |
                                 (strchr(digits, text[i + 1]) - digits));
    return (uint32_t)(length / 2);
}

static bool read_table(const struct mu__manifest *manifest, const cJSON *entry,
                       struct mu__manifest_table *table)
{
    const cJSON *name = find_manifest_member(entry, "name");
    const cJSON *whole = find_manifest_member(entry, "whole");

    if (!cJSON_IsString(name) || strlen(name->valuestring) > MU__MANIFEST_NAME_MAX ||
        !read_text64(entry, "rows", &table->rows))
        return false;
    MU__COPY_TEXT(table->name, name->valuestring);
    table->form_bytes = read_hex_bytes(find_manifest_member(entry, "form"), table->form,
                                       sizeof table->form);
    if (table->form_bytes == 0 || manifest->base_mark == 0)
        return table->form_bytes != 0;
    return read_text64(entry, "deleted", &table->deleted) &&
           read_hex_bytes(whole, table->whole, sizeof table->whole) ==
               sizeof table->whole;
}

static bool read_marks(struct mu__manifest *manifest, const cJSON *root)
{
    const cJSON *base = find_manifest_member(root, "base");
    const cJSON *name = find_manifest_member(base, "name");

    if (find_manifest_member(root, "mark") != NULL &&
        (!read_hex64(root, "mark", &manifest->mark) || manifest->mark == 0))
        return false;
    if (base == NULL)
        return true;
    if (!cJSON_IsString(name) || strlen(name->valuestring) > MU__MANIFEST_NAME_MAX ||
        !read_hex64(base, "mark", &manifest->base_mark) || manifest->base_mark == 0)
        return false;
    MU__COPY_TEXT(manifest->base_name, name->valuestring);
    return true;
}

static int read_tables(struct manifest_reader *reader, const cJSON *root)
{
    struct mu__manifest *manifest = &reader->manifest;
    const cJSON *list = find_manifest_member(root, "tables");
    int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -(list != NULL);

    if (!read_marks(manifest, root))
        return refuse_manifest(reader->error, "\"mark\" or \"base\" is malformed");
    if (count < 0 || count > MU__MANIFEST_TABLES_MAX)
        return refuse_manifest(reader->error, "\"tables\" is no list of at most %d",
                               MU__MANIFEST_TABLES_MAX);
    manifest->tables = calloc((size_t)count + 1, sizeof *manifest->tables);
    if (manifest->tables == NULL)
        return -MU_ENOMEM;
    for (const cJSON *entry = list == NULL ? NULL : list->child; entry != NULL;
         entry = entry->next) {
        struct mu__manifest_table *at = &manifest->tables[manifest->tables_count++];

        if (!read_table(manifest, entry, at) ||
            (manifest->tables_count > 1 && strcmp(at[-1].name, at->name) >= 0))
            return refuse_manifest(reader->error, "a table is malformed");
    }
    return 0;
}

static int read_values(struct manifest_reader *reader, const cJSON *root)
{
    struct mu__manifest *manifest = &reader->manifest;
    const cJSON *packed = find_manifest_member(root, "packed_values");
    const cJSON *values = find_manifest_member(root, "values");

    if (packed != NULL &&
        (!read_sum(packed, MU__MANIFEST_VALUES_FILE, &manifest->packed) ||
         !read_whole32(packed, "head_bytes", &manifest->head_bytes) ||
         !read_whole32(packed, "tail_bytes", &manifest->tail_bytes) || values != NULL ||
         manifest->packed.bytes <
             mu__manifest_packed_bytes(manifest->head_bytes, manifest->tail_bytes)))
        return refuse_manifest(reader->error, "\"packed_values\" is malformed");
    return values == NULL ? 0
                          : mu__value_from_json(values, reader->error, &manifest->values);
}

static int check_part_files(const struct manifest_reader *reader)
{
    for (size_t i = 0; i < reader->manifest.parts_count; i++)
        if (reader->manifest.parts[i].file >= reader->manifest.files_count)
            return refuse_manifest(reader->error,
                                   "a part is in file %" PRIu32 ", of %" PRIu32,
                                   reader->manifest.parts[i].file + 1,
                                   reader->manifest.files_count);
    return 0;
}

static int read_manifest_root(struct manifest_reader *reader, const cJSON *root)
{
    uint64_t version;
    int rv;

    if (!is_text(root, "format", MU__MANIFEST_FORMAT))
        return refuse_manifest(reader->error, "its format is not \"%s\"",
                               MU__MANIFEST_FORMAT);
    if (!read_whole_member(root, "version", UINT32_MAX, &version) ||
        version != MU__MANIFEST_VERSION)
        return refuse_manifest(reader->error, "its version is not %d",
                               MU__MANIFEST_VERSION);
    if (!read_text64(root, "step", &reader->manifest.step))
        return refuse_manifest(reader->error, "its step is no text of digits");
    if (!cJSON_IsArray(find_manifest_member(root, "variables")))
        return refuse_manifest(reader->error, "\"variables\" is no list");
    if (!read_sum(find_manifest_member(root, "index"), MU__MANIFEST_INDEX_FILE,
                  &reader->manifest.index))
        return refuse_manifest(reader->error, "\"index\" is malformed");
    rv = read_files(reader, find_manifest_member(root, "files"));
    if (rv == 0)
        rv = check_part_files(reader);
    if (rv == 0)
        rv = read_partitions(reader, root);
    if (rv == 0)
        rv = read_tables(reader, root);
    return rv == 0 ? read_values(reader, root) : rv;
}

static int check_manifest_sum(const struct mu__crc32c *crc, const char *text, size_t size,
                              mu_error *error)
{
    char end[MU__MANIFEST_END_BYTES];
    size_t length = mu__manifest_end(0, end);

    if (size < length)
        return refuse_manifest(error, "it is cut short");
    length = mu__manifest_end(mu__crc32c_add(crc, 0, text, size - length), end);
    if (memcmp(text + size - length, end, length) != 0)
        return refuse_manifest(error, "it is damaged: its sum is not that at its end");
    return 0;
}

static int read_manifest(struct manifest_reader *reader, const char *text, size_t size)
{
    cJSON *root = NULL;
    int rv = mu__json_parse_items(text, size, "it", "variables", read_variable_item,
                                  reader, reader->error, &root);

    if (rv == 0)
        rv = mu__json_check_keys(root, "it", reader->error);
    if (rv == 0)
        rv = reader->rv;
    if (rv == 0)
        rv = read_manifest_root(reader, root);
    cJSON_Delete(root);
    if (rv == -MU_ENOMEM)
        return mu_error_set(reader->error, rv, "no memory for it");
    if (rv != 0 && reader->error != NULL)
        reader->error->code = -MU_EDATALOSS;
    return rv == 0 ? 0 : -MU_EDATALOSS;
}

int mu__manifest_read(const struct mu__crc32c *crc, const char *text, size_t size,
                      mu_error *ret_error, struct mu__manifest *ret_manifest)
{
    struct manifest_reader reader = {.error = ret_error};
    int rv = check_manifest_sum(crc, text, size, ret_error);

    if (rv == 0)
        rv = read_manifest(&reader, text, size);
    if (rv == 0)
        *ret_manifest = reader.manifest;
    else
        mu__manifest_done(&reader.manifest);
    return rv;
}

void mu__manifest_done(struct mu__manifest *manifest)
{
    free(manifest->files);
    free(manifest->variables);
    free(manifest->parts);
    free(manifest->partitions);
    free(manifest->tables);
    mu_value_free(manifest->values);
    *manifest = (struct mu__manifest){0};
}
