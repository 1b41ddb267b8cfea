/* Which ids get rows, and which rows stay. All of it is a function of a table's writes:
 * time comes with them, and chance is a hash of the seed, the id, and the number of the
 * push. Plain data. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_POLICY_H
#define MU_ACTORS_PS_TABLES_TABLE_POLICY_H

#include "muster/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Which rows are removed first. */
enum mu__table_eviction {
    MU__EVICT_NONE,
    MU__EVICT_LRU, /* those whose last push has the lowest time */
    MU__EVICT_LFU, /* those with the fewest pushes */
    MU__EVICTIONS
};

/* Zeros: each id gets a row at its first push, and keeps it. */
struct mu__table_policy {
    uint32_t admit_after;  /* a row is made at this push of its id; or */
    uint32_t admit_chance; /* each push makes it in so many of 2^32 cases */
    uint32_t candidates;   /* ids that a part counts at most, with admit_after */
    uint32_t ttl;          /* a row that is older, by times of pushes, is removed */
    uint32_t capacity;     /* rows of a part */
    uint32_t eviction;     /* enum mu__table_eviction: of rows beyond it; else refused */
    bool unknown_zeros;    /* look-ups of ids without a row give zeros */
};

enum { MU__CANDIDATES_MAX = 1 << 20 };

/* -MU_EINVALID. */
int mu__table_policy_check(const struct mu__table_policy *policy, mu_error *ret_error);

bool mu__table_policy_equals(const struct mu__table_policy *a,
                             const struct mu__table_policy *b);

/* Whether rows have the time of their last push. */
static inline bool mu__table_policy_has_time(const struct mu__table_policy *policy)
{
    return policy->ttl > 0 || policy->eviction == MU__EVICT_LRU;
}

static inline bool mu__table_policy_counts(const struct mu__table_policy *policy)
{
    return policy->admit_after > 1;
}

/* Whether each id gets a row at its first push. */
static inline bool mu__table_policy_admits_all(const struct mu__table_policy *policy)
{
    return policy->admit_chance == 0 && !mu__table_policy_counts(policy);
}

/* Whether rows are removed without being asked. */
static inline bool mu__table_policy_sweeps(const struct mu__table_policy *policy)
{
    return policy->ttl > 0 ||
           (policy->capacity > 0 && policy->eviction != MU__EVICT_NONE);
}

/* Whether push number `push` of a part makes the row of an id, by chance. */
bool mu__table_policy_draw(const struct mu__table_policy *policy, uint64_t seed,
                           uint64_t id, uint64_t push);

/* How many rows stay of a part that had more than its capacity: 7/8, rounded up. */
static inline uint32_t mu__table_policy_retained(const struct mu__table_policy *policy)
{
    return policy->capacity - policy->capacity / 8;
}

#endif
