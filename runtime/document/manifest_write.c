#include "runtime/document/manifest_format.h"

#include "runtime/base/text.h"
#include "runtime/document/value_json.h"

#include <string.h>

static void write_files(const struct mu__manifest *manifest, struct mu__build *out)
{
    char name[MU__MANIFEST_FILE_BYTES];

    mu__build_add(out, "\"files\": [");
    for (uint32_t i = 0; i < manifest->files_count; i++) {
        const struct mu__manifest_file *file = &manifest->files[i];

        mu__manifest_file_name(i, manifest->files_count, name);
        mu__build_format(out,
                         "%s\n {\"file\": \"%s\", \"bytes\": %" PRIu64
                         ", \"header_crc32c\": %" PRIu32 "}",
                         i == 0 ? "" : ",", name, file->bytes, file->header_crc);
    }
    mu__build_add(out, "],\n");
}

static void write_file_sum(const char *key, const char *file,
                           const struct mu__manifest_sum *sum, struct mu__build *out)
{
    mu__build_format(out,
                     "\"%s\": {\"file\": \"%s\", \"bytes\": %" PRIu64
                     ", \"crc32c\": %" PRIu32 "},\n",
                     key, file, sum->bytes, sum->crc);
}

static void write_partitions(const struct mu__manifest *manifest, struct mu__build *out)
{
    if (manifest->partitions_count == 0)
        return;
    mu__build_add(out, "\"partitions\": [");
    for (size_t i = 0; i < manifest->partitions_count; i++) {
        const struct mu__manifest_partition *partition = &manifest->partitions[i];

        mu__build_format(out,
                         "%s\n {\"partition\": %" PRIu32 ", \"position\": \"%" PRIu64
                         "\", \"sum\": \"%016" PRIx64 "\", \"windows\": %" PRIu64 "}",
                         i == 0 ? "" : ",", partition->partition, partition->position,
                         partition->sum, partition->windows_bytes);
    }
    mu__build_add(out, "],\n");
    if (manifest->windows.bytes != 0)
        write_file_sum("windows", MU__MANIFEST_WINDOWS_FILE, &manifest->windows, out);
}

static void write_hex_digits(const uint8_t *bytes, size_t count, struct mu__build *out)
{
    for (size_t i = 0; i < count; i++)
        mu__build_format(out, "%02x", bytes[i]);
}

static void write_marks(const struct mu__manifest *manifest, struct mu__build *out)
{
    if (manifest->mark != 0)
        mu__build_format(out, "\"mark\": \"%016" PRIx64 "\",\n", manifest->mark);
    if (manifest->base_mark == 0)
        return;
    mu__build_add(out, "\"base\": {\"name\": ");
    mu__build_json(out, manifest->base_name, strlen(manifest->base_name));
    mu__build_format(out, ", \"mark\": \"%016" PRIx64 "\"},\n", manifest->base_mark);
}

static void write_table(const struct mu__manifest *manifest,
                        const struct mu__manifest_table *table, struct mu__build *out)
{
    mu__build_add(out, "{\"name\": ");
    mu__build_json(out, table->name, strlen(table->name));
    mu__build_format(out, ", \"rows\": \"%" PRIu64 "\", \"form\": \"", table->rows);
    write_hex_digits(table->form, table->form_bytes, out);
    if (manifest->base_mark != 0) {
        mu__build_format(out, "\", \"deleted\": \"%" PRIu64 "\", \"whole\": \"",
                         table->deleted);
        write_hex_digits(table->whole, sizeof table->whole, out);
    }
    mu__build_add(out, "\"}");
}

static void write_tables(const struct mu__manifest *manifest, struct mu__build *out)
{
    write_marks(manifest, out);
    if (manifest->tables_count == 0)
        return;
    mu__build_add(out, "\"tables\": [");
    for (size_t i = 0; i < manifest->tables_count; i++) {
        mu__build_add(out, i == 0 ? "\n " : ",\n ");
        write_table(manifest, &manifest->tables[i], out);
    }
    mu__build_add(out, "],\n");
}

static void write_values(const struct mu__manifest *manifest, const char *values,
                         struct mu__build *out)
{
    if (values != NULL) {
        mu__build_add(out, "\"values\": ");
        mu__build_add(out, values);
        mu__build_add(out, ",\n");
    }
    if (manifest->packed.bytes != 0)
        mu__build_format(out,
                         "\"packed_values\": {\"file\": \"%s\", \"bytes\": %" PRIu64
                         ", \"crc32c\": %" PRIu32 ", \"head_bytes\": %" PRIu32
                         ", \"tail_bytes\": %" PRIu32 "},\n",
                         MU__MANIFEST_VALUES_FILE, manifest->packed.bytes,
                         manifest->packed.crc, manifest->head_bytes,
                         manifest->tail_bytes);
}

static void write_parts(const struct mu__manifest *manifest,
                        const struct mu__manifest_variable *variable,
                        struct mu__build *out)
{
    for (uint32_t i = 0; i < variable->parts_count; i++) {
        const struct mu__manifest_part *part = &manifest->parts[variable->parts_from + i];
        struct mu__safetensor tensor;

        mu__manifest_tensor(variable, part, &tensor);
        mu__build_format(out,
                         "%s{\"file\": %" PRIu32 ", \"tensor\": ", i == 0 ? "" : ", ",
                         part->file + 1);
        mu__build_json(out, tensor.name, strlen(tensor.name));
        mu__build_format(out,
                         ", \"rows\": [%" PRIu64 ", %" PRIu64 "], \"crc32c\": %" PRIu32
                         "}",
                         part->first_row, part->end_row, part->crc);
    }
}

static void write_variables(const struct mu__manifest *manifest, struct mu__build *out)
{
    mu__build_add(out, "\"variables\": [");
    for (size_t i = 0; i < manifest->variables_count; i++) {
        const struct mu__manifest_variable *variable = &manifest->variables[i];

        mu__build_format(out, "%s\n {\"name\": ", i == 0 ? "" : ",");
        mu__build_json(out, variable->name, strlen(variable->name));
        mu__build_format(out, ", \"dtype\": \"%s\", \"shape\": [",
                         mu__safetensors_dtype_name(variable->dtype));
        for (uint32_t k = 0; k < variable->rank; k++)
            mu__build_format(out, "%s%" PRIu64, k == 0 ? "" : ", ", variable->dims[k]);
        mu__build_format(out, "], \"shards\": %" PRIu32 ",\n  \"parts\": [",
                         variable->shards);
        write_parts(manifest, variable, out);
        mu__build_add(out, "]}");
    }
    mu__build_add(out, "],\n");
}

void mu__manifest_write(const struct mu__crc32c *crc, const struct mu__manifest *manifest,
                        const char *values, struct mu__build *out)
{
    char end[MU__MANIFEST_END_BYTES];

    mu__build_format(out,
                     "{\"format\": \"%s\", \"version\": %d, \"step\": \"%" PRIu64 "\",\n",
                     MU__MANIFEST_FORMAT, MU__MANIFEST_VERSION, manifest->step);
    write_files(manifest, out);
    write_partitions(manifest, out);
    write_tables(manifest, out);
    write_file_sum("index", MU__MANIFEST_INDEX_FILE, &manifest->index, out);
    write_values(manifest, values, out);
    write_variables(manifest, out);
    if (!out->failed)
        mu__build_bytes(out, end,
                        mu__manifest_end(mu__crc32c_add(crc, 0, out->text, out->size),
                                         end));
}

void mu__manifest_write_index(const struct mu__manifest *manifest, struct mu__build *out)
{
    char file[MU__MANIFEST_FILE_BYTES];
    struct mu__safetensor tensor;
    uint64_t total = 0;

    mu__build_add(out, "{\"weight_map\": {");
    for (size_t i = 0; i < manifest->variables_count; i++) {
        const struct mu__manifest_variable *variable = &manifest->variables[i];

        for (uint32_t k = 0; k < variable->parts_count; k++) {
            const struct mu__manifest_part *part =
                &manifest->parts[variable->parts_from + k];

            mu__manifest_tensor(variable, part, &tensor);
            mu__manifest_file_name(part->file, manifest->files_count, file);
            mu__build_add(out, i + k == 0 ? "\n " : ",\n ");
            mu__build_json(out, tensor.name, strlen(tensor.name));
            mu__build_format(out, ": \"%s\"", file);
            total += tensor.bytes;
        }
    }
    mu__build_format(out, "},\n\"metadata\": {\"total_size\": %" PRIu64 "}}\n", total);
}
