/* Sums of rows: what differs in one word, or has two of them in each other's place, has
 * another sum; what is the same has the same. */
#include "actors/ps/tables/row_sum.h"
#include "tests/support/test.h"

enum { WORDS = 45, BYTES = WORDS * 4 };

static void make_row(uint32_t *words)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = 1000 * i + 7;
}

static uint64_t sum_words(const uint32_t *words, uint32_t count)
{
    unsigned char odd[BYTES + 1];

    memcpy(odd + 1, words, sizeof(uint32_t) * count);
    return mu__row_sum(1, odd + 1, count * 4);
}

TEST(test_each_word_of_a_row_counts)
{
    uint32_t words[WORDS];

    make_row(words);
    for (uint32_t count = 1; count <= WORDS; count++)
        for (uint32_t i = 0; i < count; i++) {
            uint64_t before = sum_words(words, count);

            words[i] ^= 1U << i % 32;
            assert_int_not_equal(sum_words(words, count), before);
            words[i] ^= 1U << i % 32;
            assert_int_equal(sum_words(words, count), before);
        }
}

TEST(test_the_place_of_a_word_counts)
{
    uint32_t words[WORDS];
    uint64_t before;

    make_row(words);
    before = sum_words(words, WORDS);
    for (uint32_t i = 0; i < WORDS; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint32_t word = words[i];

            words[i] = words[k];
            words[k] = word;
            assert_int_not_equal(sum_words(words, WORDS), before);
            words[k] = words[i];
            words[i] = word;
        }
}

TEST_PROGRAM()
