/* Sums of bytes: known ones, in pieces in any order, and by table as by instruction. */
#include "runtime/base/crc32c.h"

#include "tests/support/test.h"

TEST(test_known_sums)
{
    struct mu__crc32c crc;
    uint8_t zeros[32] = {0};

    mu__crc32c_init(&crc);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mu__crc32c_add(&crc, 0, "123456789", 9), 0xe3069283);
        assert_int_equal(mu__crc32c_add(&crc, 0, zeros, sizeof zeros), 0x8a9136aa);
        assert_int_equal(mu__crc32c_add(&crc, 0, "", 0), 0);
        crc.has_instruction = false;
    }
}

TEST(test_pieces_in_any_order)
{
    static const char text[] = "a sum is put together from those of its pieces";
    const size_t size = sizeof text;
    struct mu__crc32c crc;
    uint32_t whole;

    mu__crc32c_init(&crc);
    whole = mu__crc32c_add(&crc, 0, text, size);
    for (size_t cut = 0; cut <= size; cut++) {
        uint32_t first = mu__crc32c_add(&crc, 0, text, cut);
        uint32_t second = mu__crc32c_add(&crc, 0, text + cut, size - cut);

        assert_int_equal(mu__crc32c_add(&crc, first, text + cut, size - cut), whole);
        assert_int_equal(mu__crc32c_shift(first, size - cut) ^ second, whole);
    }
}

TEST_PROGRAM()
