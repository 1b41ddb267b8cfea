/* Looking at an actor from outside. Two methods that every actor has beside its own; no
 * method of a program can have their names. */
#ifndef MU_ACTORS_USER_LOOKING_H
#define MU_ACTORS_USER_LOOKING_H

#include "actors/user/internal.h"

#define MU__METHOD_STATE "#state"     /* what `save` gives */
#define MU__METHOD_EXPLAIN "#explain" /* what it waits for, and who for it */

/* NULL: it is none of these. */
const mu_actor_method *mu__method_built_in(struct mu__view name);

/* A name of a method that may be called: as mu__actors_check_name, or one of these. */
int mu__actors_check_called(const char *method, mu_error *ret_error);

/* Whether mail is answered at once, and not in its turn. */
bool mu__is_look(const struct mail *mail);

/* What an actor waits for, and who waits for it: a map. NULL: out of memory. */
mu_value *mu__explain_actor(mu_actor *actor);

/* How long the oldest of its mail has waited. */
uint64_t mu__oldest_mail_ms(const mu_actor *actor);

#endif
