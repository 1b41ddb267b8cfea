#include "actors/ps/tables/policies/candidates.h"

#include "actors/partitions.h"

#include <string.h>

/* Ids of a partition have the lower bits of their hash in common. */
uint32_t mu__candidates_bucket(const struct mu__candidates *candidates, uint64_t id)
{
    return (uint32_t)((mu__mix64(id) >> 32) * candidates->count >> 32);
}

/* The place of an id; that of the one to be forgotten, or of none, if it is not there. */
static uint32_t find_way(const struct mu__candidate_bucket *bucket, uint64_t id)
{
    uint32_t way = 0;

    while (way + 1 < MU__CANDIDATE_WAYS && bucket->counts[way] != 0 &&
           bucket->ids[way] != id)
        way++;
    return way;
}

static bool is_way_of(const struct mu__candidate_bucket *bucket, uint32_t way,
                      uint64_t id)
{
    return bucket->counts[way] != 0 && bucket->ids[way] == id;
}

uint32_t mu__candidates_count(const struct mu__candidates *candidates, uint64_t id)
{
    const struct mu__candidate_bucket *bucket;
    uint32_t way;

    if (candidates->count == 0)
        return 0;
    bucket = &candidates->buckets[mu__candidates_bucket(candidates, id)];
    way = find_way(bucket, id);
    return is_way_of(bucket, way, id) ? bucket->counts[way] : 0;
}

uint32_t mu__candidates_add(struct mu__candidates *candidates, uint64_t id)
{
    uint32_t index = mu__candidates_bucket(candidates, id);
    struct mu__candidate_bucket *bucket = &candidates->buckets[index];
    uint32_t way = find_way(bucket, id);
    uint32_t pushes = is_way_of(bucket, way, id) ? bucket->counts[way] + 1 : 1;

    if (index < candidates->unfilled)
        return 0;
    memmove(&bucket->ids[1], &bucket->ids[0], way * sizeof bucket->ids[0]);
    memmove(&bucket->counts[1], &bucket->counts[0], way * sizeof bucket->counts[0]);
    bucket->ids[0] = id;
    bucket->counts[0] = pushes;
    return pushes;
}

void mu__candidates_forget(struct mu__candidates *candidates, uint64_t id)
{
    struct mu__candidate_bucket *bucket;
    uint32_t way;
    uint32_t behind;

    if (candidates->count == 0)
        return;
    bucket = &candidates->buckets[mu__candidates_bucket(candidates, id)];
    way = find_way(bucket, id);
    behind = MU__CANDIDATE_WAYS - 1 - way;
    if (!is_way_of(bucket, way, id))
        return;
    memmove(&bucket->ids[way], &bucket->ids[way + 1], behind * sizeof bucket->ids[0]);
    memmove(&bucket->counts[way], &bucket->counts[way + 1],
            behind * sizeof bucket->counts[0]);
    bucket->ids[MU__CANDIDATE_WAYS - 1] = 0;
    bucket->counts[MU__CANDIDATE_WAYS - 1] = 0;
}
