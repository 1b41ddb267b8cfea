/* A sum of a row's numbers, by which replicas compare what became of it. */
#ifndef MU_ACTORS_PS_TABLES_ROW_SUM_H
#define MU_ACTORS_PS_TABLES_ROW_SUM_H

#include <stdint.h>

/* In which each word of 4 bytes counts, and its place; `begin` is a sum of what is before
 * them. `bytes` is a multiple of 4. */
uint64_t mu__row_sum(uint64_t begin, const unsigned char *numbers, uint32_t bytes);

#endif
