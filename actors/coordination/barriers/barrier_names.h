/* What the files of the table of barriers share: its names, its lists. */
#ifndef MU_ACTORS_BARRIER_NAMES_H
#define MU_ACTORS_BARRIER_NAMES_H

#include "actors/coordination/barriers/barrier_table.h"

void mu__barrier_append(struct mu__barrier_list *list, struct mu__barrier *barrier);
void mu__barrier_unlink(struct mu__barrier_list *list, struct mu__barrier *barrier);
void mu__barrier_outcome_free(struct mu__barrier_outcome *outcome);

/* Add a name; the barrier is in no list yet. NULL: out of memory. */
struct mu__barrier *mu__barrier_new_barrier(struct mu__barriers *barriers,
                                            struct mu__view name);

/* Free a barrier that is in no list. */
void mu__barrier_discard(struct mu__barriers *barriers, struct mu__barrier *barrier);

/* Drop old names until `seats` more, and a name more unless `but` (which is not dropped)
 * is given, are within the bounds. -MU_EEXHAUSTED with a message. */
int mu__barrier_make_room(struct mu__barriers *barriers, const struct mu__barrier *but,
                          uint32_t seats, uint64_t now_ms, mu_error *ret_error);

/* Copy an error into an outcome. */
void mu__barrier_describe(struct mu__barrier_outcome *outcome, const mu_error *error);

#endif
