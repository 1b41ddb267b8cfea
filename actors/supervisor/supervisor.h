/* Schedules closures on workers. One on the chief.
 *
 * Hears:  SCHEDULE, ROOM_REQUEST, CANCEL_ALL, STATUS_GET, REPORT and others from
 *         clients; REGISTER, RESULT, BEGUN and RECALLED from workers; STATUS from
 *         parameter servers; CALL and JOB_DONE from the chief's own program; node news;
 *         CLUSTER_ADDED and CLUSTER_REMOVED of workers; its timers
 * Says:   RUN, CANCEL and RECALL to workers; RESOLVED, ROOM_ALLOW, STATUS to clients;
 *         STATUS_GET and FENCE to servers
 * Owns:   every closure from SCHEDULE to RESOLVED
 * Fails:  never by itself. A lost worker's closures go back to the front of the queue; a
 *         lost client's are forgotten */
#ifndef MU_ACTORS_SUPERVISOR_H
#define MU_ACTORS_SUPERVISOR_H

#include "actors/call.h"
#include "actors/supervisor/config.h"
#include "runtime/kernel/kernel.h"

/* A call of the chief's program: the last number reported under a name. */
struct mu__metric_call {
    struct mu__call call;
    const char *name;
    double number;
    uint64_t step;
};

extern const struct mu__behavior mu__supervisor; /* init takes the config */

/* Whether its journal is still being read, some thousand records in a turn. What clients
 * and workers ask for waits meanwhile, but for the status, which says how far it is. */
bool mu__supervisor_reads(const void *state);

/* For checks in tests: closures queued, and in flight. */
void mu__supervisor_counts(const void *state, uint32_t *ret_queued,
                           uint32_t *ret_in_flight);

#endif
