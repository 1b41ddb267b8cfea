/* Any bytes as what a checkpoint is made of, its manifest and the headers of its files:
 * refused with a reason, or they make sense; and written again they are the same.
 *
 * The manifest's sum keeps random bytes out, so the input is used twice: as it is, and
 * with a sum that is right. */
#include "runtime/document/manifest.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- A file's header ---- */

/* Behind it are as many bytes as it says. */
static void check_again(struct mu__safetensor *tensors, size_t count)
{
    uint64_t bytes = mu__safetensors_arrange(tensors, count);
    struct mu__safetensor *again = NULL;
    struct mu__build out = {0};
    size_t again_count;

    mu__safetensors_write(&out, tensors, count);
    must(mu__build_whole(&out), "memory");
    must(mu__safetensors_read(out.text + 8, out.size - 8, bytes, NULL, &again,
                              &again_count) == 0,
         "what was written is read");
    must(again_count == count, "all tensors");
    free(again);
    mu__build_done(&out);
}

static void check_header(const char *json, size_t size, uint64_t content_bytes)
{
    struct mu__safetensor *tensors = NULL;
    uint64_t bytes = 0;
    mu_error error = {0};
    size_t count;
    int rv = mu__safetensors_read(json, size, content_bytes, &error, &tensors, &count);

    must(rv == 0 || ((rv == -MU_EDATALOSS || rv == -MU_EUNIMPLEMENTED) &&
                     error.code == rv && error.message[0] != '\0'),
         "refused with a reason");
    if (rv != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        must(i == 0 || strcmp(tensors[i - 1].name, tensors[i].name) < 0, "sorted");
        must(tensors[i].offset + tensors[i].bytes <= content_bytes, "inside the file");
        must(tensors[i].bytes == mu__safetensors_bytes(&tensors[i]), "its shape's bytes");
        bytes += tensors[i].bytes;
    }
    must(bytes == content_bytes, "without holes");
    check_again(tensors, count);
    free(tensors);
}

static void check_file(const uint8_t *data, size_t size)
{
    uint8_t prefix[MU__SAFETENSORS_SIZE_BYTES] = {0};
    mu_error error = {0};
    size_t json_size;
    int rv;

    memcpy(prefix, data, size < sizeof prefix ? size : sizeof prefix);
    rv = mu__safetensors_read_size(prefix, size, &error, &json_size);
    must(rv == 0 || (rv == -MU_EDATALOSS && error.message[0] != '\0'),
         "refused with a reason");
    if (rv == 0)
        check_header((const char *)data + sizeof prefix, json_size,
                     size - sizeof prefix - json_size);
}

/* ---- A manifest ---- */

/* Without its values, whose JSON is not written by it. */
static void check_manifest_again(const struct mu__crc32c *crc,
                                 const struct mu__manifest *manifest)
{
    struct mu__build first = {0};
    struct mu__build second = {0};
    struct mu__manifest again;

    mu__manifest_write(crc, manifest, NULL, &first);
    must(mu__build_whole(&first), "memory");
    must(mu__manifest_read(crc, first.text, first.size, NULL, &again) == 0,
         "what was written is read");
    mu__manifest_write(crc, &again, NULL, &second);
    must(mu__build_whole(&second) && first.size == second.size &&
             memcmp(first.text, second.text, first.size) == 0,
         "and the same");
    mu__manifest_done(&again);
    mu__build_done(&first);
    mu__build_done(&second);
}

static void check_manifest(const struct mu__crc32c *crc, const char *text, size_t size)
{
    struct mu__manifest manifest;
    mu_error error = {0};
    int rv = mu__manifest_read(crc, text, size, &error, &manifest);

    must(rv == 0 || (rv == -MU_EDATALOSS && error.code == rv && error.message[0] != '\0'),
         "refused with a reason");
    if (rv != 0)
        return;
    check_manifest_again(crc, &manifest);
    mu__manifest_done(&manifest);
}

static void check_with_sum(const struct mu__crc32c *crc, const uint8_t *data, size_t size)
{
    struct mu__build text = {0};

    mu__build_bytes(&text, data, size);
    mu__build_format(&text, "\"manifest_crc32c\": \"%08x\"}\n",
                     (unsigned)mu__crc32c_add(crc, 0, data, size));
    must(mu__build_whole(&text), "memory");
    check_manifest(crc, text.text, text.size);
    mu__build_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__crc32c crc;

    mu__crc32c_init(&crc);
    check_file(data, size);
    check_header((const char *)data, size, 8);
    check_manifest(&crc, (const char *)data, size);
    check_with_sum(&crc, data, size);
    return 0;
}
