/* Notes for the logs of those who wait for long: which tasks are missing. */
#ifndef MU_ACTORS_COORDINATION_NOTES_H
#define MU_ACTORS_COORDINATION_NOTES_H

#include "actors/coordination/internal.h"

enum { COORD_NOTE_FIRST_MS = 5000, COORD_NOTE_STEP_MAX_MS = 60000 };

/* When those who have waited since `since_ms` are told next: after five seconds, then
 * each time that the wait has doubled, and at least once a minute. By
 * mu__coord_clock. */
uint64_t mu__coord_note_next(uint64_t since_ms, uint64_t now_ms);

/* Tell the agent of a node about what it asked under a token. At once: nothing depends on
 * it, and a note that is lost is followed by the next. */
void mu__coord_note(struct mu__ctx *ctx, uint32_t node, uint64_t token,
                    const char *text);

#endif
