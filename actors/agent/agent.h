/* A node's side of the coordination service. One on every node.
 *
 * Hears:  CALL, KEY_SUBMIT and KEY_CANCEL from the node's program; SERVICE_HERE, answers,
 *         TASK_ERROR, PREEMPT_REQUEST, PREEMPT_STOP and KEY_EVENT from the service; node
 *         news; its timers
 * Says:   TASK_..., TASKS_GET, BARRIER_..., PREEMPT_..., KEY_... to the service
 * Owns:   calls that wait, until their timeout; requests that are not answered, which it
 *         sends again when the service is elsewhere
 * Fails:  never by itself. In error state every call does, with that error */
#ifndef MU_ACTORS_AGENT_H
#define MU_ACTORS_AGENT_H

#include "actors/agent/calls.h"

/* The error of MU_AGENT_ERROR; NULL when it is not in error. Loop thread; `state` is the
 * actor's. */
const mu_error *mu__agent_error(const void *state);

/* The last word of a process that ends well, to be transmitted before it hangs up: its
 * task has left, and is not lost. NULL: there is nobody to say it to, or no memory. Loop
 * thread; `state` is the actor's. */
struct mu__msg *mu__agent_goodbye(void *state, struct mu__pool *pool);

extern const struct mu__behavior mu__agent;     /* init takes the config */

#endif
