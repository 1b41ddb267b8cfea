#include "actors/ps/tables/pooling.h"

/* At any address. */
typedef float some_float __attribute__((aligned(1), may_alias));

void mu__pool_add(void *sum, const void *row, float weight, uint32_t dim)
{
    some_float *restrict to = sum;
    const some_float *restrict from = row;

    for (uint32_t i = 0; i < dim; i++)
        to[i] += weight * from[i];
}
