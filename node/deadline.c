#include "node/deadline.h"

#include "muster/error.h"

enum { MS_NS = 1000000 };

uint64_t mu__deadline_in(int64_t timeout_ms)
{
    uint64_t now_ns = uv_hrtime();

    if (timeout_ms < 0 || (uint64_t)timeout_ms > (MU__NO_DEADLINE - now_ns) / MS_NS)
        return MU__NO_DEADLINE;
    return now_ns + (uint64_t)timeout_ms * MS_NS;
}

int64_t mu__deadline_left_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = uv_hrtime();

    if (deadline_ns == MU__NO_DEADLINE)
        return -1;
    return now_ns >= deadline_ns ? 0
                                 : (int64_t)((deadline_ns - now_ns + MS_NS - 1) / MS_NS);
}

int64_t mu__deadline_wait_ms(uint64_t deadline_ns, int64_t timeout_ms)
{
    int64_t left_ms = mu__deadline_left_ms(deadline_ns);

    return left_ms == 0 && timeout_ms != 0 ? 1 : left_ms;
}

bool mu__deadline_wait(uint64_t deadline_ns, uv_cond_t *cond, uv_mutex_t *lock)
{
    uint64_t now_ns = uv_hrtime();

    if (now_ns >= deadline_ns)
        return false;
    if (deadline_ns == MU__NO_DEADLINE)
        uv_cond_wait(cond, lock);
    else
        (void)uv_cond_timedwait(cond, lock, deadline_ns - now_ns);
    return true;
}

int mu__lock_init(uv_mutex_t *lock, uv_cond_t *cond)
{
    if (uv_mutex_init(lock) != 0)
        return -MU_ENOMEM;
    if (uv_cond_init(cond) == 0)
        return 0;
    uv_mutex_destroy(lock);
    return -MU_ENOMEM;
}

void mu__lock_destroy(uv_mutex_t *lock, uv_cond_t *cond)
{
    uv_cond_destroy(cond);
    uv_mutex_destroy(lock);
}
