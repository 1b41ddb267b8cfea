/* A countdown in malloc: the n-th allocation from now fails, once. For tests whose names
 * end in _oom, which are linked with --wrap=malloc and its like. Include it in one file.
 *
 *     for (long n = 0; fault_arm(n), work(), fault_disarm(); n++)
 *         ... */
#ifndef MU_TESTS_FAULT_H
#define MU_TESTS_FAULT_H

#include "tests/support/wrap_malloc.h"

/* Threads may allocate, too. */
static _Atomic long fault_countdown = -1;
static _Atomic bool fault_happened;

/* Allocation `n` fails, counted from 0. */
static void fault_arm(long n)
{
    fault_countdown = n;
    fault_happened = false;
}

/* No more failures; true when there was one. */
static bool fault_disarm(void)
{
    fault_countdown = -1;
    return fault_happened;
}

static bool malloc_fails(void)
{
    if (fault_countdown < 0 || fault_countdown-- > 0)
        return false;
    fault_happened = true;
    return true;
}

#endif
