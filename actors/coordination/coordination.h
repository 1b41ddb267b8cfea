/* The coordination service: who is there, what they agree on. One on each task that may
 * host it; one of them leads.
 *
 * Hears:  what agents ask (TASK_..., TASKS_GET, BARRIER_..., PREEMPT_..., KEY_...); node
 *         news; CLUSTER_ADDED and CLUSTER_REMOVED; HTTP_DONE; its timers
 * Says:   SERVICE_HERE to every node that is up; the answers; TASK_ERROR,
 *         PREEMPT_REQUEST and PREEMPT_STOP to registered tasks; KEY_EVENT to those who
 *         watch
 * Owns:   the store, and all that internal.h has
 * Fails:  never by itself. Without its store it does not lead, and says why */
#ifndef MU_ACTORS_COORDINATION_H
#define MU_ACTORS_COORDINATION_H

#include "actors/coordination/host_config.h"
#include "runtime/kernel/kernel.h"

extern const struct mu__behavior mu__coordination;

#endif
