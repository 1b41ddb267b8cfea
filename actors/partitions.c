#include "actors/partitions.h"

#include "actors/ps/shape.h"

#include <string.h>

uint32_t mu__partition_of(struct mu__view name, uint32_t shard)
{
    return (uint32_t)((mu__name_hash(name) + shard) % MU__PARTITIONS);
}

/* ---- Views ---- */

/* A view as it travels: numbers of 64 bits, then those of 32. */
struct packed_view {
    uint64_t long_numbers[5];  /* number, life, incarnations */
    uint32_t short_numbers[5]; /* partition, tasks, whether it is a handover */
};

enum { LONGS_BYTES = 40, SHORTS_BYTES = 20 };

uint32_t mu__views_count(struct mu__view bytes)
{
    return bytes.size / MU__VIEW_BYTES;
}

bool mu__views_at(struct mu__view bytes, uint32_t i, struct mu__partition_view *ret_view)
{
    const uint8_t *at = (const uint8_t *)bytes.data + (size_t)i * MU__VIEW_BYTES;
    struct packed_view packed;

    memcpy(packed.long_numbers, at, LONGS_BYTES);
    memcpy(packed.short_numbers, at + LONGS_BYTES, SHORTS_BYTES);
    *ret_view = (struct mu__partition_view){
        .partition = packed.short_numbers[0],
        .number = packed.long_numbers[0],
        .store_id = packed.long_numbers[1],
        .primary = {packed.short_numbers[1], packed.long_numbers[2]},
        .backup = {packed.short_numbers[2], packed.long_numbers[3]},
        .learner = {packed.short_numbers[3], packed.long_numbers[4]},
        .handover = packed.short_numbers[4] != 0,
    };
    return ret_view->partition < MU__PARTITIONS && ret_view->number != 0;
}

uint8_t *mu__views_put(uint8_t *at, const struct mu__partition_view *view)
{
    const struct packed_view packed = {
        .long_numbers = {view->number, view->store_id, view->primary.incarnation,
                         view->backup.incarnation, view->learner.incarnation},
        .short_numbers = {view->partition, view->primary.task, view->backup.task,
                          view->learner.task, view->handover},
    };

    memcpy(at, packed.long_numbers, LONGS_BYTES);
    memcpy(at + LONGS_BYTES, packed.short_numbers, SHORTS_BYTES);
    return at + MU__VIEW_BYTES;
}

/* ---- Partitions with a number ---- */

uint32_t mu__numbered_count(struct mu__view bytes)
{
    return bytes.size / MU__NUMBERED_BYTES;
}

bool mu__numbered_at(struct mu__view bytes, uint32_t i, struct mu__numbered *ret_entry)
{
    const uint8_t *at = (const uint8_t *)bytes.data + (size_t)i * MU__NUMBERED_BYTES;

    memcpy(&ret_entry->number, at, 8);
    memcpy(&ret_entry->partition, at + 8, 4);
    return ret_entry->partition < MU__PARTITIONS;
}

uint8_t *mu__numbered_put(uint8_t *at, const struct mu__numbered *entry)
{
    memcpy(at, &entry->number, 8);
    memcpy(at + 8, &entry->partition, 4);
    return at + MU__NUMBERED_BYTES;
}

/* ---- Marks ---- */

uint32_t mu__record_marks_count(struct mu__view bytes)
{
    return bytes.size / MU__RECORD_MARK_BYTES;
}

bool mu__record_marks_at(struct mu__view bytes, uint32_t i,
                         struct mu__record_mark *ret_mark)
{
    const uint8_t *at = (const uint8_t *)bytes.data + (size_t)i * MU__RECORD_MARK_BYTES;
    uint64_t long_numbers[3];
    uint32_t short_numbers[2];

    memcpy(long_numbers, at, sizeof long_numbers);
    memcpy(short_numbers, at + sizeof long_numbers, sizeof short_numbers);
    *ret_mark = (struct mu__record_mark){
        .partition = short_numbers[0],
        .verdict = (enum mu__record_verdict)short_numbers[1],
        .view = long_numbers[0],
        .record = long_numbers[1],
        .sum = long_numbers[2],
    };
    return ret_mark->partition < MU__PARTITIONS && short_numbers[1] <= MU__RECORDS_BROKEN;
}

uint8_t *mu__record_marks_put(uint8_t *at, const struct mu__record_mark *mark)
{
    const uint64_t long_numbers[3] = {mark->view, mark->record, mark->sum};
    const uint32_t short_numbers[2] = {mark->partition, (uint32_t)mark->verdict};

    memcpy(at, long_numbers, sizeof long_numbers);
    memcpy(at + sizeof long_numbers, short_numbers, sizeof short_numbers);
    return at + MU__RECORD_MARK_BYTES;
}
