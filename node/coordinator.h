/* What a node does about its coordinator when it is closed. */
#ifndef MU_NODE_COORDINATOR_H
#define MU_NODE_COORDINATOR_H

#include "muster/coordinator.h"

/* The node is being closed: its coordinator, if it has one, gives up what it has, and
 * answers every call with -MU_ECLOSED from now on. */
void mu__coordinator_detach(mu_node *node);

/* The node is gone: free a coordinator that could not be closed before. */
void mu__coordinator_free_orphan(mu_node *node);

#endif
