#include "actors/ps/checkpoint_format.h"

#include "runtime/base/byte_order.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FORMAT = 1,
    AT_FORMAT = 8,
    AT_PARTS = 12,
    AT_STEP = 16,
    AT_INDEX = 24,
    AT_INDEX_SIZE = 32,
    AT_FILE_SIZE = 40,
    AT_INDEX_SUM = 48,
    AT_ZEROS = 52,
    AT_SUM = 60,
    ENTRY_BYTES = 28,   /* before dims and name */
    VALUE_RANK = 2,
    TAIL_STEP = 16
};

static const char magic[] = "mu ckpt\n";

/* ---- Writing ---- */

void mu__ckpt_header_write(const struct mu__crc32c *crc,
                           const struct mu__ckpt_header *header,
                           uint8_t out[MU__CKPT_HEADER_BYTES])
{
    memset(out, 0, MU__CKPT_HEADER_BYTES);
    memcpy(out, magic, sizeof magic - 1);
    mu__store_little(out + AT_FORMAT, FORMAT, 4);
    mu__store_little(out + AT_PARTS, header->parts_count, 4);
    mu__store_little(out + AT_STEP, header->step, 8);
    mu__store_little(out + AT_INDEX, header->index_offset, 8);
    mu__store_little(out + AT_INDEX_SIZE, header->index_size, 8);
    mu__store_little(out + AT_FILE_SIZE, header->file_size, 8);
    mu__store_little(out + AT_INDEX_SUM, header->index_sum, 4);
    mu__store_little(out + AT_SUM, mu__crc32c_add(crc, 0, out, AT_SUM), 4);
}

static uint64_t entry_size(const struct mu__ckpt_part *part)
{
    return ENTRY_BYTES + 8 * (uint64_t)part->shape.rank + strlen(part->name);
}

uint64_t mu__ckpt_index_size(const struct mu__ckpt_part *parts, uint32_t count)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < count; i++)
        size += entry_size(&parts[i]);
    return size;
}

void mu__ckpt_index_write(const struct mu__ckpt_part *parts, uint32_t count, uint8_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct mu__ckpt_part *part = &parts[i];
        size_t length = strlen(part->name);

        assert(i == 0 || strcmp(parts[i - 1].name, part->name) < 0);
        mu__store_little(out, length, 2);
        mu__store_little(out + 2, part->shape.dtype, 1);
        mu__store_little(out + 3, part->shape.rank, 1);
        mu__store_little(out + 4, part->shape.shards, 4);
        mu__store_little(out + 8, part->offset, 8);
        mu__store_little(out + 16, part->bytes, 8);
        mu__store_little(out + 24, part->sum, 4);
        out += ENTRY_BYTES;
        for (uint32_t k = 0; k < part->shape.rank; k++, out += 8)
            mu__store_little(out, part->shape.dims[k], 8);
        memcpy(out, part->name, length);
        out += length;
    }
}

/* ---- Reading the header ---- */

static int set_damage_reason(char *why, const char *reason)
{
    (void)snprintf(why, MU__CKPT_WHY_BYTES, "%s", reason);
    return -MU_EDATALOSS;
}

static const char *header_fault(const struct mu__ckpt_header *header, uint64_t size)
{
    if (size < header->file_size)
        return "the file is cut short";
    if (size > header->file_size)
        return "there are bytes behind its end";
    if (header->file_size > MU__CKPT_FILE_BYTES_MAX ||
        header->parts_count > MU__CKPT_PARTS_MAX ||
        header->index_size > MU__CKPT_INDEX_BYTES_MAX)
        return "it is beyond the bounds of a checkpoint";
    if (header->index_offset < MU__CKPT_HEADER_BYTES ||
        header->index_offset % MU__CKPT_ALIGN != 0 ||
        header->index_offset > header->file_size ||
        header->index_size != header->file_size - header->index_offset)
        return "its index is not at its end";
    return NULL;
}

int mu__ckpt_header_read(const struct mu__crc32c *crc,
                         const uint8_t bytes[MU__CKPT_HEADER_BYTES], uint64_t size,
                         char why[MU__CKPT_WHY_BYTES], struct mu__ckpt_header *ret_header)
{
    static const uint8_t zeros[AT_SUM - AT_ZEROS];
    struct mu__ckpt_header header;
    const char *fault;

    if (size < MU__CKPT_HEADER_BYTES)
        return set_damage_reason(why, "the file is cut short, in its header");
    if (memcmp(bytes, magic, sizeof magic - 1) != 0)
        return set_damage_reason(why, "it does not begin like a checkpoint");
    if (mu__load_little32(bytes + AT_SUM) != mu__crc32c_add(crc, 0, bytes, AT_SUM))
        return set_damage_reason(why, "its header is damaged");
    if (mu__load_little32(bytes + AT_FORMAT) != FORMAT)
        return set_damage_reason(why, "it has another format than 1");
    header = (struct mu__ckpt_header){
        .parts_count = mu__load_little32(bytes + AT_PARTS),
        .step = mu__load_little64(bytes + AT_STEP),
        .index_offset = mu__load_little64(bytes + AT_INDEX),
        .index_size = mu__load_little64(bytes + AT_INDEX_SIZE),
        .file_size = mu__load_little64(bytes + AT_FILE_SIZE),
        .index_sum = mu__load_little32(bytes + AT_INDEX_SUM),
    };
    fault = header_fault(&header, size);
    if (fault == NULL && memcmp(bytes + AT_ZEROS, zeros, sizeof zeros) != 0)
        fault = "its header has bytes where zeros were expected";
    if (fault != NULL)
        return set_damage_reason(why, fault);
    *ret_header = header;
    return 0;
}

/* ---- Reading the index ---- */

struct ckpt_cursor {
    const uint8_t *at;
    uint64_t left;
};

static const char *value_fault(const struct mu__ckpt_part *part)
{
    uint64_t tail = (part->shape.dims[1] + TAIL_STEP - 1) / TAIL_STEP * TAIL_STEP;

    if (part->shape.dtype != 0 || part->shape.rank != VALUE_RANK ||
        part->shape.shards != 0 || part->shape.dims[0] > UINT32_MAX ||
        part->shape.dims[1] > UINT32_MAX || part->bytes != tail + part->shape.dims[0])
        return "the value beside the variables is malformed";
    return NULL;
}

static const char *part_fault(const struct mu__ckpt_part *part)
{
    if (part->name[0] == '\0')
        return value_fault(part);
    if (mu__variable_name_check(mu__view_str(part->name), NULL) != 0)
        return "a variable's name is not valid";
    if (mu__shape_check(&part->shape, NULL) != 0)
        return "a variable's shape is not valid";
    if (part->bytes != mu__shape_bytes(&part->shape))
        return "a variable has another size than its shape says";
    return NULL;
}

/* NULL, or what is wrong. */
static const char *read_checkpoint_part(struct ckpt_cursor *cursor,
                                        struct mu__ckpt_part *part)
{
    const uint8_t *at = cursor->at;
    uint64_t length;

    if (cursor->left < ENTRY_BYTES)
        return "its index is cut short";
    length = mu__load_little(at, 2);
    part->shape.dtype = at[2];
    part->shape.rank = at[3];
    part->shape.shards = mu__load_little32(at + 4);
    part->offset = mu__load_little64(at + 8);
    part->bytes = mu__load_little64(at + 16);
    part->sum = mu__load_little32(at + 24);
    if (part->shape.rank > MU_TENSOR_RANK_MAX || length > MU__VARIABLE_NAME_MAX)
        return "an entry of its index is malformed";
    if (cursor->left < ENTRY_BYTES + 8 * (uint64_t)part->shape.rank + length)
        return "its index is cut short";
    at += ENTRY_BYTES;
    for (uint32_t k = 0; k < part->shape.rank; k++, at += 8)
        part->shape.dims[k] = mu__load_little64(at);
    if (memchr(at, '\0', length) != NULL)
        return "a variable's name is not valid";
    memcpy(part->name, at, length);
    part->name[length] = '\0';
    cursor->at = at + length;
    cursor->left -= entry_size(part);
    return part_fault(part);
}

static const char *read_checkpoint_parts(const struct mu__ckpt_header *header,
                                         struct ckpt_cursor *cursor,
                                         struct mu__ckpt_part *parts)
{
    uint64_t expected = MU__CKPT_HEADER_BYTES;

    for (uint32_t i = 0; i < header->parts_count; i++) {
        const char *fault = read_checkpoint_part(cursor, &parts[i]);

        if (fault != NULL)
            return fault;
        if (i > 0 && strcmp(parts[i - 1].name, parts[i].name) >= 0)
            return "its names do not ascend";
        if (parts[i].offset != expected)
            return "a content is not where it was expected";
        if (parts[i].bytes > header->index_offset - expected ||
            mu__ckpt_filled(parts[i].bytes) > header->index_offset - expected)
            return "a content reaches into the index";
        expected += mu__ckpt_filled(parts[i].bytes);
    }
    if (cursor->left > 0)
        return "there are bytes behind its index";
    return expected == header->index_offset ? NULL : "there are bytes before its index";
}

int mu__ckpt_index_read(const struct mu__crc32c *crc,
                        const struct mu__ckpt_header *header, const uint8_t *bytes,
                        char why[MU__CKPT_WHY_BYTES], struct mu__ckpt_part **ret_parts)
{
    struct ckpt_cursor cursor = {bytes, header->index_size};
    struct mu__ckpt_part *parts;
    const char *fault;

    if (mu__crc32c_add(crc, 0, bytes, header->index_size) != header->index_sum)
        return set_damage_reason(why, "its index is damaged");
    if (header->parts_count > header->index_size / ENTRY_BYTES)
        return set_damage_reason(why, "its index is cut short");
    parts = calloc((size_t)header->parts_count + 1, sizeof *parts);
    if (parts == NULL)
        return -MU_ENOMEM;
    fault = read_checkpoint_parts(header, &cursor, parts);
    if (fault != NULL) {
        free(parts);
        return set_damage_reason(why, fault);
    }
    *ret_parts = parts;
    return 0;
}

struct mu__packed mu__ckpt_packed(const struct mu__ckpt_part *part,
                                  const uint8_t *content)
{
    struct mu__packed packed = {
        .head_size = (uint32_t)part->shape.dims[0],
        .tail_size = (uint32_t)part->shape.dims[1],
    };

    packed.head = content + (part->bytes - packed.head_size);
    packed.tail = packed.tail_size == 0 ? NULL : content;
    return packed;
}
