/* The kinds of stores that a node knows, by name. */
#ifndef MU_NODE_STORES_H
#define MU_NODE_STORES_H

#include "actors/coordination/store/store.h"

/* NULL ends them. */
extern const struct mu__store_kind *const mu__stores[];

#endif
