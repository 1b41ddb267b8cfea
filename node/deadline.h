/* Deadlines by the monotonic clock, for calls that consist of several waits, and the lock
 * with a condition that threads wait at. Any thread. */
#ifndef MU_NODE_DEADLINE_H
#define MU_NODE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define MU__NO_DEADLINE UINT64_MAX

/* In nanoseconds, as uv_hrtime(). A negative timeout has no deadline. */
uint64_t mu__deadline_in(int64_t timeout_ms);

/* The time left, rounded up: 0 once the deadline has passed, -1 without one. */
int64_t mu__deadline_left_ms(uint64_t deadline_ns);

/* The same for calls that do not wait with a timeout of 0: at least 1, unless the whole
 * `timeout_ms` is 0. */
int64_t mu__deadline_wait_ms(uint64_t deadline_ns, int64_t timeout_ms);

/* With the lock: wait for a signal. False, without waiting, once the deadline has
 * passed. */
bool mu__deadline_wait(uint64_t deadline_ns, uv_cond_t *cond, uv_mutex_t *lock);

/* -MU_ENOMEM: neither is open. */
int mu__lock_init(uv_mutex_t *lock, uv_cond_t *cond);
void mu__lock_destroy(uv_mutex_t *lock, uv_cond_t *cond);

#endif
