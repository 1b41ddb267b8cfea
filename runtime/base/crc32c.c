/* CRC-32C, eight bytes at a step. The processor's instruction takes three steps' time but
 * can begin one in each: so long data are summed in three parts at once, whose sums are
 * put together by shifts of a fixed length. */
#include "runtime/base/crc32c.h"

#include <string.h>

/* A shift costs as much as some hundred bytes. */
enum { PARTS = 3, PART_BYTES = 16 << 10 };

static const uint32_t polynomial = UINT32_C(0x82F63B78); /* the lowest bit first */

static uint32_t next_bit(uint32_t sum)
{
    return (sum >> 1) ^ ((sum & 1) != 0 ? polynomial : 0);
}

#if defined(__x86_64__) && defined(__GNUC__)

static bool has_crc_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}

static uint64_t crc_word_at(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

/* Of whole eight bytes. */
__attribute__((target("sse4.2"))) static uint32_t add_by_instruction(
    uint32_t sum, const uint8_t *at, size_t eights)
{
    uint64_t wide = sum;

    for (; eights > 0; eights--, at += 8)
        wide = __builtin_ia32_crc32di(wide, crc_word_at(at));
    return (uint32_t)wide;
}

/* Of PARTS times PART_BYTES: the sums of the parts, of which the first goes on from
 * sums[0]. */
__attribute__((target("sse4.2"))) static void add_three_parts(uint32_t sums[PARTS],
                                                              const uint8_t *at)
{
    uint64_t first = sums[0];
    uint64_t second = sums[1];
    uint64_t third = sums[2];

    for (size_t i = 0; i < PART_BYTES; i += 8) {
        first = __builtin_ia32_crc32di(first, crc_word_at(at + i));
        second = __builtin_ia32_crc32di(second, crc_word_at(at + PART_BYTES + i));
        third =
            __builtin_ia32_crc32di(third, crc_word_at(at + (size_t)2 * PART_BYTES + i));
    }
    sums[0] = (uint32_t)first;
    sums[1] = (uint32_t)second;
    sums[2] = (uint32_t)third;
}

#else

static bool has_crc_instruction(void)
{
    return false;
}

static uint32_t add_by_instruction(uint32_t sum, const uint8_t *at, size_t eights)
{
    (void)at;
    (void)eights;
    return sum;
}

static void add_three_parts(uint32_t sums[PARTS], const uint8_t *at)
{
    (void)sums;
    (void)at;
}

#endif

/* Of polynomials over bits, modulo that of the sum; the highest bit is x^0. */
static uint32_t multiply_polynomials(uint32_t one, uint32_t two)
{
    uint32_t product = 0;

    for (; one != 0; one <<= 1) {
        product ^= two & (0 - (one >> 31));
        two = next_bit(two);
    }
    return product;
}

uint32_t mu__crc32c_shift(uint32_t sum, uint64_t bytes)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8: a byte of zeros */

    for (; bytes > 0; bytes >>= 1) {
        if ((bytes & 1) != 0)
            sum = multiply_polynomials(power, sum);
        power = multiply_polynomials(power, power);
    }
    return sum;
}

void mu__crc32c_init(struct mu__crc32c *crc)
{
    crc->has_instruction = has_crc_instruction();
    crc->part_shift = mu__crc32c_shift(UINT32_C(1) << 31, PART_BYTES);
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;

        for (unsigned bit = 0; bit < 8; bit++)
            sum = next_bit(sum);
        crc->tables[0][byte] = sum;
    }
    for (unsigned k = 1; k < 8; k++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t sum = crc->tables[k - 1][byte];

            crc->tables[k][byte] = (sum >> 8) ^ crc->tables[0][sum & 255];
        }
}

static uint32_t add_eight(const struct mu__crc32c *crc, uint32_t sum, const uint8_t *at)
{
    return crc->tables[7][at[0] ^ (sum & 255)] ^
           crc->tables[6][at[1] ^ ((sum >> 8) & 255)] ^
           crc->tables[5][at[2] ^ ((sum >> 16) & 255)] ^
           crc->tables[4][at[3] ^ (sum >> 24)] ^ crc->tables[3][at[4]] ^
           crc->tables[2][at[5]] ^ crc->tables[1][at[6]] ^ crc->tables[0][at[7]];
}

uint32_t mu__crc32c_add(const struct mu__crc32c *crc, uint32_t before, const void *data,
                        size_t size)
{
    const uint8_t *at = data;
    uint32_t sum = ~before;

    if (crc->has_instruction) {
        for (; size >= (size_t)PARTS * PART_BYTES; size -= (size_t)PARTS * PART_BYTES) {
            uint32_t sums[PARTS] = {sum};

            add_three_parts(sums, at);
            sum = sums[0];
            for (unsigned k = 1; k < PARTS; k++)
                sum = multiply_polynomials(crc->part_shift, sum) ^ sums[k];
            at += (size_t)PARTS * PART_BYTES;
        }
        sum = add_by_instruction(sum, at, size / 8);
        at += size / 8 * 8;
        size %= 8;
    }
    for (; size >= 8; size -= 8, at += 8)
        sum = add_eight(crc, sum, at);
    for (; size > 0; size--, at++)
        sum = (sum >> 8) ^ crc->tables[0][(sum ^ *at) & 255];
    return ~sum;
}
