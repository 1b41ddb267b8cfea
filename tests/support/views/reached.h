/* What runs of the seeds of views come to, and how often. */
#ifndef MUSTER_TESTS_SUPPORT_VIEWS_REACHED_H
#define MUSTER_TESTS_SUPPORT_VIEWS_REACHED_H

enum reached {
    PROMOTED,
    FILLED,
    HANDED_OVER,
    SPREAD,
    DROPPED,
    LOST,
    ADOPTED,
    UNKNOWN_PRIMARY,
    UNKNOWN_BACKUP,
    RESTORED,
    RESTORED_FORMER,
    REACHED
};

static const char *const reached_words[REACHED] = {
    [PROMOTED] = "backups that became primary",
    [FILLED] = "learners that became backup",
    [HANDED_OVER] = "primaries that were ready to hand over",
    [SPREAD] = "runs in which load was spread in the end",
    [DROPPED] = "replicas that were dropped",
    [LOST] = "partitions that began anew",
    [ADOPTED] = "partitions that went on under another chief",
    [UNKNOWN_PRIMARY] = "partitions lost as the primary died without a report",
    [RESTORED] = "primaries that went on with their journal",
    [RESTORED_FORMER] = "former primaries that went on with their journal",
    [UNKNOWN_BACKUP] = "primaries that went on as a later one died without a report",
};

#endif
