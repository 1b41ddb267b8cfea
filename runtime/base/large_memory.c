#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "runtime/base/large_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE_BYTES_MIN = 4 << 20 }; /* two pages of 2 MiB */

void *mu__large_new(size_t bytes)
{
    void *mapped;

    if (bytes < LARGE_BYTES_MIN)
        return calloc(bytes, 1);
    mapped =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(mapped, bytes, MADV_HUGEPAGE);
#endif
    return mapped;
}

void mu__large_free(void *data, size_t bytes)
{
    if (data == NULL || bytes < LARGE_BYTES_MIN)
        free(data);
    else
        (void)munmap(data, bytes);
}
