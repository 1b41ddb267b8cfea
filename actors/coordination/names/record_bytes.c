#include "actors/coordination/names/record_bytes.h"

#include "runtime/message/codec.h"

#include <stdlib.h>
#include <string.h>

/* Of the head: checksum, sizes. */
enum { RECORD_HEAD = 12, RECORD_ALIGN = 16 };

static size_t record_align(size_t size)
{
    return (size + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

static uint32_t sum_record(const struct mu__crc32c *crc, const uint8_t *bytes,
                           size_t size, struct mu__view name)
{
    uint32_t sum = mu__crc32c_add(crc, 0, bytes + 4, size - 4);

    return mu__crc32c_add(crc, sum, name.data, name.size);
}

int mu__name_record_pack(const struct mu__crc32c *crc, const mu_value *map,
                         struct mu__view name, uint8_t **ret_bytes, size_t *ret_size)
{
    uint32_t head;
    uint32_t tail;
    uint32_t sum;
    int rv = mu__value_measure(map, &head, &tail);
    size_t padded = record_align((size_t)RECORD_HEAD + head);
    uint8_t *bytes;

    if (rv != 0)
        return rv;
    bytes = aligned_alloc(RECORD_ALIGN, record_align(padded + tail));
    if (bytes == NULL)
        return -MU_ENOMEM;
    memset(bytes, 0, padded);
    memcpy(bytes + 4, &head, 4);
    memcpy(bytes + 8, &tail, 4);
    mu__value_pack(map, bytes + RECORD_HEAD, head, bytes + padded, tail);
    sum = sum_record(crc, bytes, padded + tail, name);
    memcpy(bytes, &sum, 4);
    *ret_bytes = bytes;
    *ret_size = padded + tail;
    return 0;
}

int mu__name_record_unpack(const struct mu__crc32c *crc, struct mu__view record,
                           struct mu__view name, mu_value **ret_map)
{
    struct mu__packed packed = {0};
    size_t padded;
    uint32_t sum;
    char why[128];
    uint8_t *copy;
    int rv;

    if (record.size < RECORD_HEAD)
        return -MU_EDATALOSS;
    memcpy(&sum, record.data, 4);
    memcpy(&packed.head_size, (const uint8_t *)record.data + 4, 4);
    memcpy(&packed.tail_size, (const uint8_t *)record.data + 8, 4);
    padded = record_align((size_t)RECORD_HEAD + packed.head_size);
    if (sum != sum_record(crc, record.data, record.size, name) || padded > record.size ||
        packed.tail_size != record.size - padded)
        return -MU_EDATALOSS;
    copy = aligned_alloc(RECORD_ALIGN, record_align(record.size));
    if (copy == NULL)
        return -MU_ENOMEM;
    memcpy(copy, record.data, record.size);
    packed.head = copy + RECORD_HEAD;
    packed.tail = copy + padded;
    rv = mu__value_unpack(&packed, why, sizeof why, ret_map);
    free(copy);
    return rv;
}
