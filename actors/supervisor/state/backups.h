/* Backup attempts: which closures have one, and which run so long that they should get
 * one (stragglers). Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_BACKUPS_H
#define MU_ACTORS_SUPERVISOR_BACKUPS_H

#include "actors/supervisor/state/function_times.h"

#include <stdbool.h>

enum {
    MU__BACKUPS_MAX = 1024,
    MU__BACKUP_AFTER_MS = 100, /* a shorter run is no straggler */
    MU__BACKUP_SAMPLES = 5     /* runs of a function before its mean is believed */
};

/* Zeroed memory is empty. */
struct backups {
    uint64_t timer;     /* of the next look for stragglers; 0: none */
    uint64_t *closures; /* the ids of those with a backup attempt */
    uint32_t count;
    uint32_t size;
    uint64_t runs; /* backups ever sent */
};

void mu__backups_done(struct backups *backups);

/* False: there are MU__BACKUPS_MAX, or no memory. */
bool mu__backups_add(struct backups *backups, uint64_t closure);

/* Does nothing if the closure is not there. */
void mu__backups_remove(struct backups *backups, uint64_t closure);

/* Whether a run of a function with these times (NULL: unknown) that has taken `ran_ms`
 * exceeds `percent` of the mean. */
bool mu__is_straggler(const struct mu__function_time *time, uint32_t ran_ms,
                      uint32_t percent);

#endif
