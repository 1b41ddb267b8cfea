#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "runtime/base/block_pages.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)2 << 20)

struct free_block {
    struct free_block *next;
};

/* At the begin of each page, which is aligned to its size. */
struct block_page {
    struct mu__list_node node;
    struct free_block *free;
    uint32_t block_bytes;
    uint32_t used; /* blocks that are somebody's, */
    uint32_t cut;  /* and that ever were */
};

enum { HEAD_BYTES = 64 };

_Static_assert(sizeof(struct block_page) <= HEAD_BYTES, "the head has room");

static unsigned char *block_at(struct block_page *page, uint32_t i)
{
    return (unsigned char *)page + HEAD_BYTES + (size_t)i * page->block_bytes;
}

static bool is_full(const struct block_page *page)
{
    return page->free == NULL &&
           HEAD_BYTES + ((size_t)page->cut + 1) * page->block_bytes > PAGE_BYTES;
}

/* Twice as much has an aligned page in it; the rest is given back. */
static void *map_page(void)
{
    unsigned char *mapped = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (mapped == MAP_FAILED)
        return NULL;
    before = (size_t)(-(uintptr_t)mapped & (PAGE_BYTES - 1));
    if (before > 0)
        (void)munmap(mapped, before);
    (void)munmap(mapped + before + PAGE_BYTES, PAGE_BYTES - before);
#ifdef MADV_HUGEPAGE
    (void)madvise(mapped + before, PAGE_BYTES, MADV_HUGEPAGE);
#endif
    return mapped + before;
}

static struct block_page *find_page(const struct mu__block_pages *pages,
                                    uint32_t block_bytes)
{
    struct block_page *page = MU__LIST_FIRST(&pages->open, struct block_page, node);

    while (page != NULL && page->block_bytes != block_bytes)
        page = MU__LIST_NEXT(page, struct block_page, node);
    return page;
}

static struct block_page *new_page(struct mu__block_pages *pages, uint32_t block_bytes)
{
    struct block_page *page = map_page();

    if (page == NULL)
        return NULL;
    page->block_bytes = block_bytes;
    mu__list_append(&pages->open, &page->node);
    return page;
}

static void *take_block(struct block_page *page)
{
    struct free_block *block = page->free;

    page->used++;
    if (block == NULL)
        return block_at(page, page->cut++);
    page->free = block->next;
    return memset(block, 0, page->block_bytes);
}

void *mu__page_block_get(struct mu__block_pages *pages, size_t bytes)
{
    uint32_t block_bytes = (uint32_t)(bytes + 7) / 8 * 8;
    struct block_page *page;
    void *block;

    assert(bytes > 0 && bytes <= MU__PAGE_BLOCK_BYTES_MAX);
    page = find_page(pages, block_bytes);
    if (page == NULL)
        page = new_page(pages, block_bytes);
    if (page == NULL)
        return NULL;
    block = take_block(page);
    if (is_full(page))
        mu__list_remove(&pages->open, &page->node);
    return block;
}

void mu__page_block_put(struct mu__block_pages *pages, void *block)
{
    struct block_page *page = (void *)((uintptr_t)block & ~(uintptr_t)(PAGE_BYTES - 1));
    struct free_block *freed = block;

    if (block == NULL)
        return;
    if (is_full(page))
        mu__list_append(&pages->open, &page->node);
    freed->next = page->free;
    page->free = freed;
    if (--page->used > 0)
        return;
    mu__list_remove(&pages->open, &page->node);
    (void)munmap(page, PAGE_BYTES);
}
