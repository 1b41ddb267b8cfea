/* The log of a discovery's failures: each kind once, until it works again. */
#ifndef MU_NODE_DISCOVERY_FAILURE_LOG_H
#define MU_NODE_DISCOVERY_FAILURE_LOG_H

#include "muster/error.h"

#include <stdbool.h>

enum mu__discovery_failure {
    MU__LOOK_FAILURE,
    MU__ANNOUNCE_FAILURE,
    MU__DISCOVERY_FAILURES
};

/* All zero but for the first two members to begin with. */
struct mu__failure_log {
    void (*log)(void *owner, int level, const char *line);
    void *owner;
    char last[MU__DISCOVERY_FAILURES][512]; /* "": none since it worked */
};

/* Whether a failure was logged since the last success. */
static inline bool mu__failure_log_has(const struct mu__failure_log *failures,
                                       enum mu__discovery_failure which)
{
    return failures->last[which][0] != '\0';
}

void mu__failure_log_note(struct mu__failure_log *failures,
                          enum mu__discovery_failure which, const mu_error *error);

/* Note a success: logged when a failure was logged before. */
void mu__failure_log_recovered(struct mu__failure_log *failures,
                               enum mu__discovery_failure which);

#endif
