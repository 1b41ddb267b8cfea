/* malloc and its like fail when the test says so, with malloc_fails(). For tests whose
 * names end in _oom, which are linked with --wrap=malloc and its like. Include it in one
 * file. */
#ifndef MU_TESTS_WRAP_MALLOC_H
#define MU_TESTS_WRAP_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* The includer's; asked once for each allocation. */
static bool malloc_fails(void);

void *__wrap_malloc(size_t size)
{
    return malloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return malloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return malloc_fails() ? NULL : __real_realloc(memory, size);
}

#endif
