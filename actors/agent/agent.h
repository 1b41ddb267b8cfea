/* A node's side of the coordination service. One on every node.
 *
 * Hears:  CALL, KEY_SUBMIT and KEY_CANCEL from the node's program; SERVICE_HERE, answers,
 *         TASK_ERROR, TASK_CLEARED, PREEMPT_REQUEST, PREEMPT_STOP, WAIT_NOTE and
 *         KEY_EVENT from the service; node news; its timers
 * Says:   TASK_..., TASKS_GET, RUN..., BARRIER_..., PREEMPT_..., KEY_... to the service
 * Owns:   pending calls and key requests, until they are answered or time out; it sends
 *         them again to the next host when the service moves
 * Fails:  never by itself. In the error state every call fails with that error */
#ifndef MU_ACTORS_AGENT_H
#define MU_ACTORS_AGENT_H

#include "actors/agent/calls.h"

/* The error of the error state; NULL: the agent is not in it. Loop thread; `state` is the
 * actor's. */
const mu_error *mu__agent_error(const void *state);

/* A TASK_LEAVE message for a process that ends well to send before it closes its links,
 * so that the service does not count the task as lost. NULL: the task is not registered
 * with another node's service, or there is no memory. Loop thread; `state` is the
 * actor's. */
struct mu__msg *mu__agent_goodbye(void *state, struct mu__pool *pool);

extern const struct mu__behavior mu__agent; /* init takes the config */

#endif
