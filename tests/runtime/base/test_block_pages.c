#include "runtime/base/block_pages.h"

#include "tests/support/test.h"

#include <stdint.h>

enum { BLOCKS = 1000, SIZES = 3 };

static const size_t sizes[SIZES] = {1, 8388, MU__PAGE_BLOCK_BYTES_MAX};

/* A block that is somebody's: where it is, and the byte that it is full of. */
struct owned {
    uint8_t *data;
    size_t bytes;
    uint8_t mark;
};

static void take_owned(struct mu__block_pages *pages, struct owned *owned, unsigned i)
{
    *owned = (struct owned){.bytes = sizes[i % SIZES], .mark = (uint8_t)(i % 255 + 1)};
    owned->data = mu__page_block_get(pages, owned->bytes);
    assert_non_null(owned->data);
    assert_int_equal((uintptr_t)owned->data % 8, 0);
    for (size_t at = 0; at < owned->bytes; at++)
        assert_int_equal(owned->data[at], 0);
    memset(owned->data, owned->mark, owned->bytes);
}

static void give_back(struct mu__block_pages *pages, struct owned *owned)
{
    for (size_t at = 0; at < owned->bytes; at++)
        assert_int_equal(owned->data[at], owned->mark);
    mu__page_block_put(pages, owned->data);
    owned->data = NULL;
}

/* Of several sizes, some of them had by others before: of zeros, and nobody else's. */
TEST(test_blocks_are_zero_and_apart)
{
    struct mu__block_pages pages = {{NULL, NULL}};
    struct owned owned[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++)
        take_owned(&pages, &owned[i], i);
    for (unsigned i = 0; i < BLOCKS; i += 2)
        give_back(&pages, &owned[i]);
    for (unsigned i = 0; i < BLOCKS; i += 2)
        take_owned(&pages, &owned[i], i + 1);
    for (unsigned i = 0; i < BLOCKS; i++)
        give_back(&pages, &owned[i]);
    assert_true(mu__list_is_empty(&pages.open));
}

/* One page at a time, however often blocks come and go. */
TEST(test_a_page_is_used_again)
{
    struct mu__block_pages pages = {{NULL, NULL}};
    void *first = mu__page_block_get(&pages, 4096);
    void *second = mu__page_block_get(&pages, 4096);

    mu__page_block_put(&pages, first);
    assert_ptr_equal(mu__page_block_get(&pages, 4096), first);
    assert_ptr_equal(pages.open.first, pages.open.last);
    mu__page_block_put(&pages, first);
    mu__page_block_put(&pages, second);
    mu__page_block_put(&pages, NULL);
    assert_true(mu__list_is_empty(&pages.open));
}

TEST_PROGRAM()
