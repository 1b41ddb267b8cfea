/* Memory that may be large, of zeros. What is large is mapped on its own, in pages of 2
 * MiB where the system has them: faulting in small ones costs more than filling them. */
#ifndef MU_RUNTIME_LARGE_MEMORY_H
#define MU_RUNTIME_LARGE_MEMORY_H

#include <stddef.h>

/* NULL when out of memory. */
void *mu__large_new(size_t bytes);

/* With the same number of bytes; NULL is fine. */
void mu__large_free(void *data, size_t bytes);

#endif
