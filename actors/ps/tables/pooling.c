#include "actors/ps/tables/pooling.h"

#include <string.h>

enum { SOME = 16 }; /* numbers that are added together */

static void add_numbers(unsigned char *sum, const unsigned char *row, float weight,
                        uint32_t count)
{
    float sums[SOME];
    float numbers[SOME];

    memcpy(sums, sum, count * sizeof *sums);
    memcpy(numbers, row, count * sizeof *numbers);
    for (uint32_t i = 0; i < count; i++)
        sums[i] += weight * numbers[i];
    memcpy(sum, sums, count * sizeof *sums);
}

void mu__pool_add(void *sum, const void *row, float weight, uint32_t dim)
{
    unsigned char *to = sum;
    const unsigned char *from = row;
    uint32_t at = 0;

    for (; at + SOME <= dim; at += SOME)
        add_numbers(to + at * sizeof(float), from + at * sizeof(float), weight, SOME);
    if (at < dim)
        add_numbers(to + at * sizeof(float), from + at * sizeof(float), weight, dim - at);
}
