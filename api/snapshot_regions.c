#include "api/snapshot_state.h"

#include "actors/ps/slots/slots.h"

uint64_t mu__reader_bytes_before(const struct reader_shard *shard, unsigned region)
{
    uint64_t bytes = 0;

    for (unsigned k = 0; k < region; k++)
        bytes += shard->regions[k].bytes;
    return bytes;
}

void mu__reader_plan_regions(const struct mu__snapshot_reader *reader,
                             struct reader_shard *shard)
{
    const struct mu__opened_variable *opened = reader->variables[shard->variable]->opened;
    uint32_t rule =
        reader->rules == NULL ? shard->slots.rule : reader->rules[shard->variable];
    struct mu__shape shape;

    shard->regions_count = 1;
    while (mu__slots_shape(rule, shard->regions_count - 1, &opened->shape, &shape)) {
        struct reader_region *region = &shard->regions[shard->regions_count++];

        mu__shape_shard(&shape, shard->shard, &region->offset, &region->bytes);
    }
}

void mu__reader_count_left(const struct mu__snapshot_reader *reader,
                           struct reader_partition *p)
{
    p->left = p->windows_bytes;
    p->has_unread = false;
    for (size_t i = 0; i < p->shards_count; i++) {
        const struct reader_shard *shard = &p->shards[i];

        p->left += mu__reader_bytes_before(shard, shard->regions_count);
        p->has_unread |= shard->regions_count == 1 && shard->slots.rule != 0;
    }
    for (size_t i = 0; i < reader->tables_count; i++)
        p->left += mu__reader_table_bytes(reader, p, i);
}

static void find_common_rules(const struct mu__snapshot_reader *reader, uint32_t *rules)
{
    enum { SEVERAL = UINT32_MAX };

    for (size_t i = 0; i < reader->variables_count; i++)
        rules[i] = MU__RULE_KINDS;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct reader_partition *p = &reader->partitions[i];

        for (size_t k = 0; k < p->shards_count; k++) {
            uint32_t *rule = &rules[p->shards[k].variable];

            if (*rule == MU__RULE_KINDS)
                *rule = p->shards[k].slots.rule;
            else if (*rule != p->shards[k].slots.rule)
                *rule = SEVERAL;
        }
    }
    for (size_t i = 0; i < reader->variables_count; i++)
        if (mu__rule_kind(rules[i]) == NULL)
            rules[i] = 0;
}

void mu__reader_settle_rules(struct mu__snapshot_reader *reader, uint32_t *rules)
{
    find_common_rules(reader, rules);
    reader->rules = rules;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        for (size_t k = 0; k < reader->partitions[i].shards_count; k++)
            mu__reader_plan_regions(reader, &reader->partitions[i].shards[k]);
        mu__reader_count_left(reader, &reader->partitions[i]);
    }
}

/* ---- What was read ---- */

uint32_t mu__snapshot_sum(const struct mu__snapshot_reader *reader, size_t variable,
                          unsigned region)
{
    struct mu__shape shape = reader->variables[variable]->opened->shape;
    uint32_t sum = 0;
    uint64_t bytes;

    if (region > 0)
        (void)mu__slots_shape(mu__snapshot_rule(reader, variable), region - 1, &shape,
                              &shape);
    bytes = mu__shape_bytes(&shape);

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct reader_partition *p = &reader->partitions[i];

        for (size_t k = 0; k < p->shards_count; k++)
            if (p->shards[k].variable == variable) {
                const struct reader_region *at = &p->shards[k].regions[region];

                sum ^= mu__crc32c_shift(at->sum, bytes - at->offset - at->bytes);
            }
    }
    return sum;
}

uint32_t mu__snapshot_rule(const struct mu__snapshot_reader *reader, size_t variable)
{
    return reader->rules == NULL ? 0 : reader->rules[variable];
}

uint64_t mu__snapshot_step(const struct mu__snapshot_reader *reader, size_t variable,
                           uint32_t shard)
{
    const char *name = reader->variables[variable]->opened->name;
    const struct reader_partition *p =
        &reader->partitions[mu__partition_of(mu__view_str(name), shard)];

    for (size_t k = 0; k < p->shards_count; k++)
        if (p->shards[k].variable == variable && p->shards[k].shard == shard)
            return p->shards[k].slots.step;
    return 0;
}

bool mu__snapshot_partition_at(const struct mu__snapshot_reader *reader,
                               uint32_t partition,
                               struct mu__snapshot_partition *ret_partition)
{
    const struct reader_partition *p = &reader->partitions[partition];

    if (p->shards_count == 0 && reader->tables_count == 0)
        return false;
    *ret_partition = (struct mu__snapshot_partition){partition, p->record, p->sum,
                                                     p->windows, p->windows_bytes};
    return true;
}
