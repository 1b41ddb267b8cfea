/* Shared by a handle of a variable and the writes made with it: the variable's name and
 * shape, and the ids of its shards. Any thread; an id changes when the variable was
 * reopened (reopen.c), each by itself. */
#ifndef MU_ACTORS_VARIABLES_OPENED_VARIABLE_H
#define MU_ACTORS_VARIABLES_OPENED_VARIABLE_H

#include "actors/messages.h"
#include "actors/ps/shape.h"

#include <stdatomic.h>

struct mu__opened_variable {
    atomic_uint refs;
    uint32_t servers_count; /* parameter servers of the cluster */
    bool is_same;           /* MU_VARIABLE_SAME: it is not reopened. Set before
                               others have it */
    struct mu__shape shape;
    char name[MU__VARIABLE_NAME_MAX + 1];
    _Atomic uint64_t ids[]; /* one for each shard */
};

/* With one reference; `name` was checked. NULL: out of memory. */
struct mu__opened_variable *mu__opened_variable_new(
    const char *name, const struct mu__shape *shape, uint32_t servers_count);
struct mu__opened_variable *mu__opened_variable_ref(struct mu__opened_variable *opened);
void mu__opened_variable_unref(struct mu__opened_variable *opened); /* or NULL */

/* Copy all ids out, or in. */
void mu__opened_variable_load(const struct mu__opened_variable *opened, uint64_t *ids);
void mu__opened_variable_store(struct mu__opened_variable *opened, const uint64_t *ids);

#endif
