/* Whom an actor ends with. */
#ifndef MU_ACTORS_USER_FAMILY_H
#define MU_ACTORS_USER_FAMILY_H

#include "runtime/base/list.h"

struct mu_actor;

struct actor_family {
    struct mu__list children; /* struct mu_actor, by as_child */
    struct mu_actor *parent;  /* NULL: none */
    struct mu__list_node as_child;
};

#endif
