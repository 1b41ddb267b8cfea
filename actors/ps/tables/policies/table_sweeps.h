/* Rows of a part that are removed by their score: the time of their last push, or the
 * number of their pushes. Plain data. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_SWEEPS_H
#define MU_ACTORS_PS_TABLES_TABLE_SWEEPS_H

#include "actors/ps/tables/table_part.h"

/* Why; the numbers are part of the wire format. */
enum mu__table_sweep_reason {
    MU__SWEEP_REQUESTED, /* a program says so */
    MU__SWEEP_AGE,       /* the policy's time to live */
    MU__SWEEP_CAPACITY,  /* more rows than its capacity */
    MU__SWEEP_REASONS
};

/* Rows with a lower score go, and those with this one and a lower id. Of a sweep beyond
 * the capacity the score is what the policy evicts by; else it is the time of the last
 * push, or if rows have none, the number of pushes. */
struct mu__table_bound {
    uint32_t reason;
    uint32_t score;
    uint64_t id;
};

/* Whether the policy asks for one, and for which: a decision of the primary, which all
 * replicas then carry out.
 *
 * By age: when the largest time, less the time to live, is more than an eighth of that
 * beyond where the last sweep was. Beyond the capacity: the best rows stay, as many as
 * mu__table_policy_retained says, of the same score those with larger ids. */
bool mu__table_sweep_due(const struct mu__table *table,
                         struct mu__table_bound *ret_bound);

/* Remove the rows; returns how many. */
uint32_t mu__table_sweep(struct mu__table *table, const struct mu__table_bound *bound);

#endif
