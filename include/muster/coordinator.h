/* The coordinator: schedules functions on the cluster's workers and tells what became of
 * them. It works on the chief, and on any other task through the chief. */
#ifndef MUSTER_COORDINATOR_H
#define MUSTER_COORDINATOR_H

#include "node.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_coordinator mu_coordinator;

/* The future of a closure. Counted; any thread. */
typedef struct mu_remote_value mu_remote_value;

enum mu_remote_value_state {
    MU_REMOTE_NOT_READY,
    MU_REMOTE_ABORTED,  /* lost with the chief, or thrown away after another's error */
    MU_REMOTE_READY     /* a result or an error */
};

/* Take the node's coordinator; one for each node (-MU_EEXISTS). Waits until the chief is
 * reached; at the limit the error names it. On a loop's thread only with limit 0, which
 * does not wait: what is scheduled before the chief is reached ends with
 * -MU_EUNAVAILABLE. */
MU_EXPORT int mu_coordinator_open(mu_node *node, int64_t limit_ms, mu_error *ret_error,
                                  mu_coordinator **ret_coordinator);

/* Let go of the coordinator, before or after its node is closed. Closures still under way
 * are cancelled, and waited for, five seconds at most; on a loop's thread nothing is
 * waited for. Calls of other threads that wait for it return -MU_ECLOSED; they must have
 * returned before. NULL is fine. */
MU_EXPORT void mu_coordinator_close(mu_coordinator *coordinator);

/* Queue a closure: `function` with `args` (NULL: nil), to run at least once on any
 * worker. Returns at once, unless `queue_max` closures are scheduled and not resolved:
 * then it waits for room, at most `limit_ms` (-MU_EDEADLINE; with limit 0 -MU_EAGAIN),
 * and nothing was queued. The first error of an earlier closure is returned here, by
 * join or by done, once, after everything queued was cancelled and nothing is in flight;
 * then too nothing was queued, and the coordinator is usable again.
 *
 * `ret_value` NULL says that nobody wants the result. Otherwise the caller frees it.
 * `args` stays the caller's. On a loop's thread only with limit 0: there an error is
 * returned once the rest was cancelled, and -MU_EAGAIN before. */
MU_EXPORT int mu_coordinator_schedule(mu_coordinator *coordinator, const char *function,
                                      const mu_value *args, int64_t limit_ms,
                                      mu_error *ret_error, mu_remote_value **ret_value);

/* Wait until every closure scheduled so far is resolved. Returns the first error, as
 * above. At the limit -MU_EDEADLINE: the message tells what is in flight where. */
MU_EXPORT int mu_coordinator_join(mu_coordinator *coordinator, int64_t limit_ms,
                                  mu_error *ret_error);

/* Whether nothing is queued or in flight. Waits for closures only to raise an error, as
 * above, and then for a minute at most (-MU_EDEADLINE). */
MU_EXPORT int mu_coordinator_done(mu_coordinator *coordinator, mu_error *ret_error,
                                  int *ret_done);

/* Counts of this coordinator since it was opened. scheduled = finished + failed +
 * cancelled + outstanding, always: a closure that is in none of them would be lost. */
typedef struct mu_coordinator_counts {
    uint64_t scheduled;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t outstanding;   /* queued or in flight */
    uint64_t retried;       /* attempts beyond each closure's first */
} mu_coordinator_counts;

MU_EXPORT void mu_coordinator_count(mu_coordinator *coordinator,
                                    mu_coordinator_counts *ret_counts);

/* Wait for the result. 0 with *ret_result (may be NULL; else the caller frees it); the
 * closure's own error; -MU_ECANCELLED when the value was aborted; -MU_EDEADLINE. */
MU_EXPORT int mu_remote_value_fetch(mu_remote_value *value, int64_t limit_ms,
                                    mu_error *ret_error, mu_value **ret_result);

MU_EXPORT enum mu_remote_value_state mu_remote_value_state(const mu_remote_value *value);

/* Call `notify` once, on the node's loop thread, as soon as the value is ready or
 * aborted; at once, on this thread, when that is so already. Must not block; may
 * schedule with limit 0. The value is held until then. -MU_ECLOSED when the node is
 * closed. */
MU_EXPORT int mu_remote_value_notify(mu_remote_value *value,
                                     void (*notify)(mu_remote_value *value, void *user),
                                     void *user);

/* Drop the caller's hold; the closure runs on. NULL is fine. */
MU_EXPORT void mu_remote_value_free(mu_remote_value *value);

#ifdef __cplusplus
}
#endif

#endif
