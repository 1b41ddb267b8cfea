/* Taking back closures that were sent to a worker and have not begun there.
 *
 * A worker reports runs that take some time (BEGUN). Of other closures the supervisor
 * knows only that they were sent: RECALL asks for some of them back, and RECALLED lists
 * those that will not run there. The worker decides, once for each attempt, whether it
 * runs or is given back. What comes back goes to the front of its queue, and does not
 * count as a failure.
 *
 * Recalled are closures that wait behind a run of unknown length; that wait at one worker
 * while another is idle; that are in front of a more urgent one; and all that wait at a
 * worker that leaves. */
#ifndef MU_ACTORS_SUPERVISOR_RECALL_H
#define MU_ACTORS_SUPERVISOR_RECALL_H

#include "actors/supervisor/state/closures.h"
#include "actors/supervisor/state/membership.h"
#include "runtime/kernel/kernel.h"

struct supervisor;

/* Ask a worker for all that it has not begun, but for what may run nowhere else. */
void mu__sup_recall_all(struct mu__ctx *ctx, struct supervisor *s, uint32_t number);

/* Take back what exceeds the work that this worker would be sent now. */
void mu__sup_recall_excess(struct mu__ctx *ctx, struct supervisor *s,
                           const struct mu__member_worker *worker);

/* Ask for one closure that is in flight. */
void mu__sup_recall_one(struct mu__ctx *ctx, struct supervisor *s,
                        const struct mu__closure *closure);

/* After closures were given out, or could not be: check soon whether some should move. */
void mu__sup_recall_watch(struct mu__ctx *ctx, struct supervisor *s);

/* Check so soon at the latest. */
void mu__sup_recall_look_within(struct mu__ctx *ctx, struct supervisor *s,
                                uint64_t delay_ms);

/* How often a closure was sent and not given back: so often it ran, or may have. */
uint32_t mu__sup_runs(const struct supervisor *s, const struct mu__closure *closure);

#endif
