/* Resolvers of the program's own, by name: a table of the process behind a lock. */
#ifndef MU_NODE_RESOLVER_KINDS_H
#define MU_NODE_RESOLVER_KINDS_H

#include "resolver/engine/resolver.h"

/* One more holder; NULL when there is none of this name. Any thread. */
struct mu__own_kind *mu__own_kind_find(const char *name);

/* All, the last one first, each with one more holder. `ret_kinds` has
 * MU_RESOLVER_KINDS_MAX. Any thread. */
size_t mu__own_kinds_all(struct mu__own_kind **ret_kinds);

#endif
