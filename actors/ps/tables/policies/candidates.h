/* Ids that were pushed to and have no row yet, with how often. Buckets of a few ids, as
 * many as a table's policy says: an id that finds its bucket full takes the place of the
 * one that was pushed to longest ago, which is forgotten. So an id never has a row too
 * early, and its count is exact while its bucket has room. Plain data. */
#ifndef MU_ACTORS_PS_TABLES_CANDIDATES_H
#define MU_ACTORS_PS_TABLES_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

enum { MU__CANDIDATE_WAYS = 8 };

/* Those that were pushed to last come first; behind the last one, counts are 0. */
struct mu__candidate_bucket {
    uint64_t ids[MU__CANDIDATE_WAYS];
    uint32_t counts[MU__CANDIDATE_WAYS];
};

struct mu__candidates {
    struct mu__candidate_bucket *buckets; /* the owner's memory */
    uint32_t count;                       /* of buckets */
    uint32_t unfilled; /* of a copy: this many, the first ones, have not come yet */
};

/* Buckets for so many ids. */
static inline uint32_t mu__candidate_buckets(uint32_t ids)
{
    return (ids + MU__CANDIDATE_WAYS - 1) / MU__CANDIDATE_WAYS;
}

/* The bucket of an id; there is one, at least. */
uint32_t mu__candidates_bucket(const struct mu__candidates *candidates, uint64_t id);

/* How many pushes of an id are known. */
uint32_t mu__candidates_count(const struct mu__candidates *candidates, uint64_t id);

/* One more push; returns how many there are now. In a bucket that has not come yet,
 * nothing is counted: 0. */
uint32_t mu__candidates_add(struct mu__candidates *candidates, uint64_t id);

/* As if it had never been pushed to. */
void mu__candidates_forget(struct mu__candidates *candidates, uint64_t id);

#endif
