#include "actors/client/admission.h"

/* `resolved` only grows, and is read before `taken`: if that has not changed when it is
 * swapped, there is at least as much room as was seen. */
static bool take(atomic_uint_fast64_t *taken, const atomic_uint_fast64_t *resolved,
                 uint64_t size, uint64_t max)
{
    uint64_t done = atomic_load_explicit(resolved, memory_order_acquire);
    uint64_t seen = atomic_load_explicit(taken, memory_order_acquire);

    for (;;) {
        if (!mu__admission_fits(seen - done, size, max)) {
            uint64_t now = atomic_load_explicit(resolved, memory_order_acquire);

            if (now == done)
                return false;
            done = now;
            seen = atomic_load_explicit(taken, memory_order_acquire);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(taken, &seen, seen + size,
                                                  memory_order_acq_rel,
                                                  memory_order_acquire))
            return true;
    }
}

bool mu__admission_take(struct mu__session *session, uint64_t bytes)
{
    if (bytes > 0 && !take(&session->bytes_scheduled, &session->bytes_resolved, bytes,
                           session->bytes_max))
        return false;
    if (take(&session->scheduled, &session->resolved, 1, session->closures_max))
        return true;
    if (bytes > 0)
        (void)atomic_fetch_sub(&session->bytes_scheduled, bytes);
    return false;
}

void mu__admission_withdraw(struct mu__session *session, uint64_t bytes)
{
    (void)atomic_fetch_sub(&session->scheduled, 1);
    if (bytes > 0)
        (void)atomic_fetch_sub(&session->bytes_scheduled, bytes);
}
