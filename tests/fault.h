/* A countdown in malloc: the n-th allocation from now fails, once. For tests whose names
 * end in _oom, which are linked with --wrap=malloc and its like. Include it in one file.
 *
 *     for (long n = 0; fault_arm(n), work(), fault_disarm(); n++)
 *         ... */
#ifndef MU_TESTS_FAULT_H
#define MU_TESTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

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

static bool fault_is_now(void)
{
    if (fault_countdown < 0 || fault_countdown-- > 0)
        return false;
    fault_happened = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fault_is_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fault_is_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fault_is_now() ? NULL : __real_realloc(memory, size);
}

#endif
