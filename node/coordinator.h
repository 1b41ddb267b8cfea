/* What a node does about its coordinator when it is closed. */
#ifndef MU_NODE_COORDINATOR_H
#define MU_NODE_COORDINATOR_H

#include "muster/coordinator.h"

/* The node is being closed: its coordinator, if it has one, answers every call with
 * -MU_ECLOSED from now on, and gives up what it has. That is waited for, `limit_ms` and
 * some seconds at most, unless this is the loop's thread. */
void mu__coordinator_detach(mu_node *node, int64_t limit_ms);

/* The node it was opened on. Any thread. */
mu_node *mu__coordinator_node(const mu_coordinator *coordinator);

#endif
