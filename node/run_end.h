/* The end of a job's run, which the coordination service's store records. */
#ifndef MU_NODE_RUN_END_H
#define MU_NODE_RUN_END_H

#include "actors/agent/agent.h"

#include "muster/node.h"

enum { MU__RUN_END_MS = 2000 }; /* for the store */

/* Post a call to the node's agent and wait until it is completed. */
int mu__agent_call_and_wait(mu_node *node, struct mu__agent_call *call, int operation,
                            int64_t timeout_ms, mu_error *ret_error);

#endif
