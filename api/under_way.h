/* What calls that nobody waits for have copied: each handle has a bound. */
#ifndef MU_API_UNDER_WAY_H
#define MU_API_UNDER_WAY_H

#include "muster/error.h"

#include <stdatomic.h>
#include <stdint.h>

/* Of one handle; a call counts at least 4 KiB of these bytes. */
#define MU__UNDER_WAY_BYTES_MAX (UINT64_C(256) << 20)

enum { MU__UNDER_WAY_BYTES_MIN = 4 << 10 };

/* Count a call; what it counts is to be given back at its end. -MU_EAGAIN. */
static inline int mu__under_way_begin(atomic_ullong *under_way, uint64_t bytes,
                                      uint64_t *ret_counted)
{
    if (bytes < MU__UNDER_WAY_BYTES_MIN)
        bytes = MU__UNDER_WAY_BYTES_MIN;
    if (atomic_fetch_add(under_way, bytes) + bytes > MU__UNDER_WAY_BYTES_MAX) {
        atomic_fetch_sub(under_way, bytes);
        return -MU_EAGAIN;
    }
    *ret_counted = bytes;
    return 0;
}

static inline void mu__under_way_end(atomic_ullong *under_way, uint64_t counted)
{
    atomic_fetch_sub(under_way, counted);
}

#endif
