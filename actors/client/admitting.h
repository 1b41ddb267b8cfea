/* The bounds of what a program has scheduled and not resolved: closures, and bytes of
 * their arguments. A closure is admitted before anything is sent, by the thread that
 * schedules it, or by the client actor for a thread that waits; whatever was admitted
 * goes exactly once: resolved by the actor, or withdrawn by its thread.
 *
 * What is in use is the difference of two counts: one that grows with what is admitted,
 * by compare-and-swap, and one that only the loop writes. A thread reads the second one
 * first, so that it may see less room than there is, and never more. */
#ifndef MU_CLIENT_ADMITTING_H
#define MU_CLIENT_ADMITTING_H

#include "actors/client/client.h"

static inline uint64_t mu__admission_closures(const struct mu__session *session)
{
    uint64_t resolved = atomic_load_explicit(&session->resolved, memory_order_acquire);

    return atomic_load_explicit(&session->scheduled, memory_order_acquire) - resolved;
}

static inline uint64_t mu__admission_bytes(const struct mu__session *session)
{
    uint64_t resolved =
        atomic_load_explicit(&session->bytes_resolved, memory_order_acquire);

    return atomic_load_explicit(&session->bytes_scheduled, memory_order_acquire) -
           resolved;
}

/* One that is larger than the bound is admitted when it is the only one. */
static inline bool mu__admission_fits(uint64_t used, uint64_t size, uint64_t max)
{
    return max == 0 || used == 0 || (used <= max && size <= max - used);
}

/* Whether a closure with `bytes` of arguments has been admitted; false: there is no room.
 * Does not look at who waits. Any thread. */
bool mu__admission_take(struct mu__session *session, uint64_t bytes);

/* The same for a thread that has not waited: those that wait come first. */
static inline bool mu__admission_try(struct mu__session *session, uint64_t bytes)
{
    return atomic_load(&session->waiting) == 0 && mu__admission_take(session, bytes);
}

/* An admitted closure that was not sent to the client actor. */
void mu__admission_withdraw(struct mu__session *session, uint64_t bytes);

#endif
