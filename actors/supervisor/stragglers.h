/* Backup attempts of closures that take long. Part of the supervisor. */
#ifndef MU_ACTORS_SUPERVISOR_STRAGGLERS_H
#define MU_ACTORS_SUPERVISOR_STRAGGLERS_H

#include "actors/supervisor/internal.h"

/* The backup attempt becomes the closure's attempt; false: there is none. */
bool mu__sup_promote_backup(struct supervisor *s, struct mu__closure *closure);

void mu__sup_forget_backup(struct supervisor *s, struct closure_extra *extra);

/* A worker was lost: the backup attempts that ran there end. */
void mu__sup_backups_lost(struct supervisor *s, uint32_t number);

/* Start the timer that looks for stragglers. */
void mu__sup_backup_watch(struct mu__ctx *ctx, struct supervisor *s);

#endif
