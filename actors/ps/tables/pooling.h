/* Sums of rows. Plain data; numbers are in host byte order and not aligned. */
#ifndef MU_ACTORS_PS_TABLES_POOLING_H
#define MU_ACTORS_PS_TABLES_POOLING_H

#include <stdint.h>

/* sum[i] += weight * row[i], each operation rounded. */
void mu__pool_add(void *sum, const void *row, float weight, uint32_t dim);

#endif
