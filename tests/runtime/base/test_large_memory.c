#include "runtime/base/large_memory.h"

#include "tests/support/test.h"

#include <stdint.h>

static void check_memory(size_t bytes)
{
    uint8_t *data = mu__large_new(bytes);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], 0);
    data[bytes - 1] = 1;
    mu__large_free(data, bytes);
}

/* Below and above the size from which it is mapped, and what another one had before. */
TEST(test_memory_is_zero)
{
    const size_t sizes[] = {1, 4096, (4 << 20) - 1, 4 << 20, (4 << 20) + 4097};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_memory(sizes[i]);
        check_memory(sizes[i]);
    }
    mu__large_free(NULL, 4 << 20);
}

TEST(test_too_much_memory_is_none)
{
    assert_null(mu__large_new(SIZE_MAX / 2));
}

TEST_PROGRAM()
