/* Clocks: how far the members of a training may be apart.
 *
 * A member counts the steps that it has done; mu_clock_tick says that one more is, and
 * returns when the slowest member is at most `staleness` steps behind: 0 are synchronous
 * steps, as with a barrier; n is bounded staleness; MU_CLOCK_UNLIMITED never waits. What
 * a member had acknowledged of its writes to variables (variable.h) before a tick, those
 * see that its tick lets through. So with staleness n a member that has done s steps
 * reads all that was written in the steps up to s - n, and perhaps more.
 *
 * A clock is kept by the parameter server of one partition, by its name, and survives
 * that server where partitions have backups. It is gone when its last member has left by
 * closing; when that one was lost, it keeps its minimum for those that come.
 *
 * Each open is a member, of this node's task. It joins at the minimum, so alone it is
 * never held back; tasks that shall begin together meet at a barrier first
 * (coordination.h). A member leaves when it is closed, when its node is, when its task is
 * restarted, and when its node had no link to the server for 1 s: then nobody waits for
 * it. One that comes back after that joins again at the minimum, or at its own step if
 * that is greater, and its next tick goes on from there.
 *
 * Calls block until they are done or `timeout_ms` has passed (negative: no timeout), on
 * any thread except a loop's. -MU_EDEADLINE and -MU_EUNAVAILABLE name the server, as
 * calls of variable.h do, or who is behind: "step 6 waits: /job:worker/task:2 is at step
 * 4". A wait of more than 5 s is logged with the same words.
 *
 * A function may open a clock with mu_run_node(). Its writes with mu_run_add() and the
 * like are sent after it has returned, thus after its ticks: before a tick, write with
 * mu_variable_add(). */
#ifndef MUSTER_CLOCK_H
#define MUSTER_CLOCK_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_clock mu_clock;

#define MU_CLOCK_UNLIMITED UINT64_MAX

/* Join a clock. -MU_EPRECONDITION names a member that has opened it with another
 * staleness. -MU_EEXHAUSTED: there are 256 clocks, or 4096 members of clocks, in its
 * partition. */
MU_EXPORT int mu_clock_open(mu_node *node, const char *name, uint64_t staleness,
                            int64_t timeout_ms, mu_error *ret_error,
                            mu_clock **ret_clock);

/* Leave it, and free the handle. NULL is fine. */
MU_EXPORT void mu_clock_close(mu_clock *clock);

/* This member's next step is done; return when the slowest member is at most `staleness`
 * behind. *ret_step (NULL is fine) is the number of steps that this one has done, those
 * before it joined included. After an error the step counts as done, or will: the next
 * tick waits for it once more and adds none. One thread at a time. */
MU_EXPORT int mu_clock_tick(mu_clock *clock, int64_t timeout_ms, mu_error *ret_error,
                            uint64_t *ret_step);

/* The steps that the slowest member has done. */
MU_EXPORT int mu_clock_minimum(mu_clock *clock, int64_t timeout_ms, mu_error *ret_error,
                               uint64_t *ret_minimum);

#ifdef __cplusplus
}
#endif

#endif
