#include "node/discovery/failure_log.h"

#include "muster/node.h"

#include <stdio.h>

/* Whether two messages differ in their numbers alone. */
static bool is_same_kind(const char *a, const char *b)
{
    for (; *a != '\0' || *b != '\0'; a += *a != '\0', b += *b != '\0') {
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
    }
    return true;
}

void mu__failure_log_note(struct mu__failure_log *failures,
                          enum mu__discovery_failure which, const mu_error *error)
{
    static const char *const words[] = {
        "the cluster cannot be resolved: the last one that was known stays",
        "this task cannot be announced",
    };
    char line[640];

    if (is_same_kind(failures->last[which], error->message))
        return;
    (void)snprintf(failures->last[which], sizeof failures->last[which], "%s",
                   error->message);
    (void)snprintf(line, sizeof line, "%s: %s", words[which], error->message);
    failures->log(failures->owner,
                  error->code == -MU_EEXISTS ? MU_LOG_ERROR : MU_LOG_WARN, line);
}

void mu__failure_log_recovered(struct mu__failure_log *failures,
                               enum mu__discovery_failure which)
{
    static const char *const words[] = {"the cluster can be resolved again",
                                        "this task can be announced again"};

    if (failures->last[which][0] == '\0')
        return;
    failures->last[which][0] = '\0';
    failures->log(failures->owner, MU_LOG_INFO, words[which]);
}
