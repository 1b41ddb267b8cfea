/* Schedules closures on workers. One on the chief.
 *
 * Hears:  SCHEDULE, CANCEL_ALL, STATUS_GET, REPORT from clients; REGISTER and RESULT from
 *         workers; STATUS from parameter servers; CALL from the chief's own program; node
 *         news; its timer
 * Says:   RUN and CANCEL to workers; RESOLVED and STATUS to clients; STATUS_GET to
 *         servers
 * Owns:   every closure from SCHEDULE to RESOLVED
 * Fails:  never by itself. A lost worker's closures go back to the front of the queue; a
 *         lost client's are forgotten */
#ifndef MU_ACTORS_SUPERVISOR_H
#define MU_ACTORS_SUPERVISOR_H

#include "actors/call.h"
#include "runtime/kernel.h"

struct mu__supervisor_config {
    uint32_t window;        /* 0: by the worker's threads */
    uint32_t attempts_max;  /* workers that may be lost under one closure */
    uint32_t queue_max;     /* closures held; more are refused as "resource exhausted" */
};

/* What the chief's program asks: the last number reported under a name. */
struct mu__metric_call {
    struct mu__call call;
    const char *name;
    double number;
    uint64_t step;
};

extern const struct mu__behavior mu__supervisor;    /* init takes the config */

/* For checks in tests: closures queued, and in flight. */
void mu__supervisor_counts(const void *state, uint32_t *ret_queued,
                           uint32_t *ret_in_flight);

#endif
