/* Knows whether the job is done. One on every node.
 *
 * Hears:  CALL from the node's program; JOB_DONE from the chief; node news; its timers
 * Says:   JOB_DONE to every node that is up, on the chief
 * Owns:   the calls that wait
 * Fails:  never */
#ifndef MU_ACTORS_JOB_H
#define MU_ACTORS_JOB_H

#include "actors/call.h"
#include "runtime/kernel.h"

enum mu__job_operation {
    MU__JOB_WAIT,   /* until the job is done: 0, with the job's own error in `error` */
    MU__JOB_END     /* tell every node; waits until all have hung up */
};

struct mu__job_call {
    struct mu__call call;
    int job_code;           /* END: what the job came to, 0 or negative */
    const char *message;    /* END: words, or NULL */
};

extern const struct mu__behavior mu__job;

#endif
