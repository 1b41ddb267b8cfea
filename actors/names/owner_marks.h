/* Messages of owners say whose name they own, and their epoch. A node that has heard of a
 * later owner of the name drops what comes from a former one: it was held up, with its
 * process or on the way. What it has heard is news of the service, its own actors, and
 * messages of other owners. The latter count for a minute, and are a bounded number, so
 * that nothing stays that is wrong: the epochs of another service's store may be lower.
 *
 * Only tasks own names, so of a client no mark is believed: with a higher epoch it could
 * make the owner unheard. Its message is refused, as is one whose mark is no name.
 *
 * Kept actors need no marks: of a life that is fenced off nothing leaves. Nor do answers:
 * they are those of the life that was called. */
#ifndef MU_ACTORS_NAMES_OWNER_MARKS_H
#define MU_ACTORS_NAMES_OWNER_MARKS_H

#include "actors/names/naming.h"

#ifdef MUSTER_TINY
enum { OWNER_MARKS_MAX = 4 };
#else
enum { OWNER_MARKS_MAX = 1024 };
#endif

enum { OWNER_MARKS_MS = 60000 };

/* What an actor's turn sends; a call of it that is to be sent again. */
void mu__owner_mark(const mu_actor *actor, const struct mail *mail);

void mu__owner_mark_again(const mu_actor *actor, struct name_message *message);

/* What has waited for the owner of a name, and goes there now. */
void mu__owner_mark_forwarded(const struct owner_mark *mark, const struct mail *mail);

/* Whether a later owner is known; if not, this one is remembered. */
bool mu__owner_is_former(struct office *office, struct mu__view name, uint64_t epoch);

/* Whether a message of a peer with this mark is heard; the error says why not. */
int mu__owner_check(struct office *office, const struct peer *peer, struct mu__view name,
                    uint64_t epoch, mu_error *ret_error);

void mu__owner_marks_done(struct naming *names);

#endif
