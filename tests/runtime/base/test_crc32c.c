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

/* Long data are summed in parts: at all sizes around one and several of their blocks, by
 * instruction as by table. */
TEST(test_long_data)
{
    enum { BLOCK = 48 << 10, MOST = 3 * BLOCK + 64 };
    uint8_t *data = malloc(MOST);
    struct mu__crc32c crc;

    assert_non_null(data);
    mu__crc32c_init(&crc);
    for (uint32_t i = 0; i < MOST; i++)
        data[i] = (uint8_t)(i * UINT32_C(2654435761) >> 13);
    for (size_t blocks = 0; blocks <= 3; blocks++)
        for (size_t more = 0; more < 64; more += 7) {
            struct mu__crc32c plain = crc;
            size_t size = blocks * BLOCK + more;

            plain.has_instruction = false;
            assert_int_equal(mu__crc32c_add(&crc, 77, data + 1, size - (size > 0)),
                             mu__crc32c_add(&plain, 77, data + 1, size - (size > 0)));
        }
    free(data);
}

TEST_PROGRAM()
