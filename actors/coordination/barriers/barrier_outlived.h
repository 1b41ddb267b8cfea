/* Outcomes of former hosts, and the processes of their time that live. Part of the table
 * of barriers. */
#ifndef MU_ACTORS_BARRIER_OUTLIVED_H
#define MU_ACTORS_BARRIER_OUTLIVED_H

#include "actors/coordination/barriers/barrier_table.h"

/* Whether an outcome is not for younger processes. */
static inline bool mu__barrier_is_quiet(const struct mu__barriers *barriers,
                                        const struct mu__barrier_outcome *outcome)
{
    return barriers->quiet_revision != 0 &&
           outcome->revision <= barriers->quiet_revision;
}

/* A younger process was given an outcome, which is stored with this revision now: it is
 * of that process's time, too. */
void mu__barrier_renew(struct mu__barrier *barrier,
                       const struct mu__barrier_outcome *outcome, uint64_t revision);

/* The outcome of a former host that the arrivals at the generation that runs were for,
 * had they known that a process of revision `since` lives; NULL: they were for another,
 * or the process is younger than that outcome. Then mu__barriers_withdraw: the generation
 * has not begun. */
const struct mu__barrier_outcome *
mu__barrier_outlived(const struct mu__barriers *barriers,
                     const struct mu__barrier *barrier, uint32_t slot, uint64_t since);
void mu__barriers_withdraw(struct mu__barriers *barriers, struct mu__barrier *barrier,
                           uint64_t now_ms);

#endif
