/* Any bytes as a checkpoint: its header and index are refused with a reason, or make
 * sense; and written again they are the same bytes.
 *
 * Sums keep random bytes out, so the input is used twice: as the file, and with sums that
 * are right. */
#include "actors/ps/checkpoint_format.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(const struct mu__ckpt_header *header,
                        const struct mu__ckpt_part *parts, const uint8_t *index)
{
    uint8_t *again = malloc(header->index_size + 1);

    must(again != NULL, "memory");
    must(mu__ckpt_index_size(parts, header->parts_count) == header->index_size, "size");
    mu__ckpt_index_write(parts, header->parts_count, again);
    must(memcmp(again, index, header->index_size) == 0, "written again");
    for (uint32_t i = 0; i < header->parts_count; i++) {
        must(parts[i].offset + mu__ckpt_filled(parts[i].bytes) <= header->index_offset,
             "a content is before the index");
        must(strlen(parts[i].name) <= MU__VARIABLE_NAME_MAX, "a name ends");
    }
    free(again);
}

static void check_file(const struct mu__crc32c *crc, const uint8_t *data, size_t size)
{
    uint8_t bytes[MU__CKPT_HEADER_BYTES] = {0};
    uint8_t again[MU__CKPT_HEADER_BYTES];
    char why[MU__CKPT_WHY_BYTES] = "";
    struct mu__ckpt_header header;
    struct mu__ckpt_part *parts = NULL;
    int rv;

    memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
    rv = mu__ckpt_header_read(crc, bytes, size, why, &header);
    must(rv == 0 || (rv == -MU_EDATALOSS && why[0] != '\0'), "refused with a reason");
    if (rv != 0)
        return;
    mu__ckpt_header_write(crc, &header, again);
    must(memcmp(again, bytes, sizeof again) == 0, "the header, written again");
    rv = mu__ckpt_index_read(crc, &header, data + header.index_offset, why, &parts);
    must(rv == 0 || (rv == -MU_EDATALOSS && why[0] != '\0'), "refused with a reason");
    if (rv == 0)
        check_parts(&header, parts, data + header.index_offset);
    free(parts);
}

/* The input as an index behind contents that fill some bytes. */
static void check_index(const struct mu__crc32c *crc, const uint8_t *data, size_t size)
{
    size_t filled = size == 0 ? 0 : (size_t)data[0] * MU__CKPT_ALIGN;
    size_t whole = MU__CKPT_HEADER_BYTES + filled + size;
    uint8_t *file = calloc(1, whole);
    struct mu__ckpt_header header = {
        .parts_count = size < 2 ? 0 : data[1],
        .step = 3,
        .index_offset = MU__CKPT_HEADER_BYTES + filled,
        .index_size = size < 2 ? size : size - 2,
        .file_size = size < 2 ? whole : whole - 2,
    };

    must(file != NULL, "memory");
    if (size > 2)
        memcpy(file + header.index_offset, data + 2, size - 2);
    header.index_sum = mu__crc32c_add(crc, 0, file + header.index_offset,
                                      header.index_size);
    mu__ckpt_header_write(crc, &header, file);
    check_file(crc, file, header.file_size);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__crc32c crc;

    mu__crc32c_init(&crc);
    check_file(&crc, data, size);
    check_index(&crc, data, size);
    return 0;
}
