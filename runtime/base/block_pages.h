/* Blocks of some KiB, of zeros, cut from pages of 2 MiB where the system has those: who
 * reads many blocks in no order waits for the memory, and not for where it is, too. A
 * page has blocks of one size, and goes back to the system with the last of them. */
#ifndef MU_RUNTIME_BLOCK_PAGES_H
#define MU_RUNTIME_BLOCK_PAGES_H

#include "runtime/base/list.h"

enum { MU__PAGE_BLOCK_BYTES_MAX = 128 << 10 };

/* Zeroed memory is one without pages. */
struct mu__block_pages {
    struct mu__list open; /* pages with room */
};

/* At least 1 byte, at most MU__PAGE_BLOCK_BYTES_MAX; aligned to 8. NULL: out of memory.
 */
void *mu__page_block_get(struct mu__block_pages *pages, size_t bytes);

/* NULL is fine. */
void mu__page_block_put(struct mu__block_pages *pages, void *block);

#endif
