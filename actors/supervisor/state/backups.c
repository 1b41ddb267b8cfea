#include "actors/supervisor/state/backups.h"

#include "actors/packing.h"

void mu__backups_done(struct backups *backups)
{
    mu__free_array(backups->closures);
}

bool mu__backups_add(struct backups *backups, uint64_t closure)
{
    if (backups->count == MU__BACKUPS_MAX ||
        !mu__grow_for_one((void **)&backups->closures, &backups->size, backups->count,
                          sizeof *backups->closures))
        return false;
    backups->closures[backups->count++] = closure;
    return true;
}

void mu__backups_remove(struct backups *backups, uint64_t closure)
{
    for (uint32_t i = 0; i < backups->count; i++)
        if (backups->closures[i] == closure) {
            backups->closures[i] = backups->closures[--backups->count];
            return;
        }
}

bool mu__is_straggler(const struct mu__function_time *time, uint32_t ran_ms,
                      uint32_t percent)
{
    return time != NULL && time->count >= MU__BACKUP_SAMPLES &&
           ran_ms >= MU__BACKUP_AFTER_MS &&
           !(ran_ms < time->mean_us / 1000.0 * percent / 100);
}
