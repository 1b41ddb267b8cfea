#include "actors/ps/tables/policies/table_policy.h"

#include "actors/partitions.h"

#include <inttypes.h>

static int check_admission(const struct mu__table_policy *policy, mu_error *ret_error)
{
    if (policy->admit_after > 1 && policy->admit_chance != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "rows are made by count or by chance, and not by both");
    if (policy->candidates > MU__CANDIDATES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " ids counted in a partition: expected at most %d",
                            policy->candidates, MU__CANDIDATES_MAX);
    if (mu__table_policy_counts(policy) && policy->candidates == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "rows are made at push %" PRIu32
                            " of their id, and no ids are counted",
                            policy->admit_after);
    return 0;
}

int mu__table_policy_check(const struct mu__table_policy *policy, mu_error *ret_error)
{
    if (policy->eviction >= MU__EVICTIONS)
        return mu_error_set(ret_error, -MU_EINVALID, "no eviction %" PRIu32,
                            policy->eviction);
    return check_admission(policy, ret_error);
}

bool mu__table_policy_equals(const struct mu__table_policy *a,
                             const struct mu__table_policy *b)
{
    return a->admit_after == b->admit_after && a->admit_chance == b->admit_chance &&
           a->candidates == b->candidates && a->ttl == b->ttl &&
           a->capacity == b->capacity && a->eviction == b->eviction &&
           a->unknown_zeros == b->unknown_zeros;
}

bool mu__table_policy_draw(const struct mu__table_policy *policy, uint64_t seed,
                           uint64_t id, uint64_t push)
{
    uint64_t drawn = mu__mix64(mu__mix64(seed ^ mu__mix64(id)) + push);

    return drawn >> 32 < policy->admit_chance;
}
