/* The coordination service: membership, barriers, key-values, preemption. Each task that
 * may host it has one; one of them leads.
 *
 * Receives: requests of agents (TASK_..., TASKS_GET, BARRIER_..., PREEMPT_..., KEY_...,
 *           RUN...); node news; CLUSTER_ADDED and CLUSTER_REMOVED; HTTP_DONE; its timers
 * Sends:    SERVICE_HERE to every node that is up; answers; TASK_ERROR, TASK_CLEARED,
 *           PREEMPT_REQUEST and PREEMPT_STOP to registered tasks; KEY_EVENT to watches
 * Owns:     the store, and the state in internal.h
 * Fails:    never by itself. Without its store it does not lead, and says why */
#ifndef MU_ACTORS_COORDINATION_H
#define MU_ACTORS_COORDINATION_H

#include "actors/coordination/host_config.h"
#include "runtime/kernel/kernel.h"

extern const struct mu__behavior mu__coordination;

#endif
