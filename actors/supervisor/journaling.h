/* Named closures in the journal: what the supervisor does with its closure_journal. */
#ifndef MU_ACTORS_SUPERVISOR_JOURNALING_H
#define MU_ACTORS_SUPERVISOR_JOURNALING_H

#include "actors/supervisor/internal.h"

/* Connect the part `journal` with the rest of the supervisor; before any other use of
 * it. */
void mu__sup_journal_init(struct supervisor *s);

/* Begins to read the journal of the configuration, if there is one, and to queue what is
 * left. Of a small one that is all. Else it goes on in later turns, of some milliseconds:
 * `is_late` is set, and mu__sup_opened is called at the end. */
int mu__sup_journal_open(struct mu__ctx *ctx, struct supervisor *s);

static inline bool mu__sup_journal_is_open(const struct supervisor *s)
{
    return s->opening.phase == JOURNAL_OPEN;
}

/* For the status: how far it is. NULL: it is open. */
mu_value *mu__sup_journal_value(const struct supervisor *s);

/* A closure with a name is being scheduled. True when nothing is left to do: it was
 * answered because it has finished, or joined with the one that is under way. */
bool mu__sup_journal_known(struct mu__ctx *ctx, struct supervisor *s,
                           struct supervisor_client *client,
                           const struct mu__schedule *body);

/* Write a new closure down, with the shared values among its inputs; 0, or why it cannot
 * be (with a message). One that has other inputs is written down when it has finished:
 * the next chief would not know them. The result of a closure of the journal is there,
 * and is not pinned on its worker. */
int mu__sup_journal_scheduled(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure, mu_error *ret_error);

/* Flush what was appended to the journal; a failure is reported to clients. */
void mu__sup_journal_secure(struct mu__ctx *ctx, struct supervisor *s);

/* Let the journal be compacted if there is a reason, step by step. */
void mu__sup_journal_plan(struct mu__ctx *ctx, struct supervisor *s);

/* Add the result of a closure under way to those that have finished. -MU_ENOMEM. */
int mu__sup_journal_keep(struct mu__ctx *ctx, struct supervisor *s,
                         const struct named_closure *named,
                         const struct mu__packed *result);

/* Settle all effect numbers but those of closures that are still to be run. */
int mu__sup_journal_settle(struct supervisor *s);

/* Whether one more effect number may be given out: not while too many are unsettled.
 * mu__sup_journal_reserve sees that the journal covers it: -MU_EEXHAUSTED (the file is
 * full) or -MU_EUNAVAILABLE, and s->journal.error says why. */
bool mu__sup_has_effect_number(const struct supervisor *s);
int mu__sup_journal_reserve(struct mu__ctx *ctx, struct supervisor *s);

/* A closure of the journal is resolved: write that down, answer those who joined it.
 * False when it could not be written: then its effect is not settled, since the next
 * chief may run it again, and must be able to apply it if this run did not. */
bool mu__sup_journal_resolved(struct mu__ctx *ctx, struct supervisor *s,
                              struct mu__closure *closure,
                              const struct closure_outcome *outcome);

/* The function of a named closure that the journal knows to have finished; MU__NAME_NONE
 * when there is none. */
uint32_t mu__sup_journal_finished(const struct supervisor *s, struct mu__view name);

#endif
