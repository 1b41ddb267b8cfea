#include "actors/supervisor/state/backups.h"

#include "actors/packing.h"

void mu__backups_done(struct backups *backups)
{
    mu__free_array(backups->closures);
}

bool mu__backups_add(struct backups *backups, uint64_t closure)
{
    if (backups->count == MU__BACKUPS_MAX)
        return false;
    if (backups->count == backups->size) {
        uint32_t size = backups->size * 2 + 16;

        if (!mu__grow_array((void **)&backups->closures, size,
                            sizeof *backups->closures))
            return false;
        backups->size = size;
    }
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
