/* Philox4x32-10: 128 random bits for each counter and key (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", 2011). It has no state, so that any number of a
 * sequence can be had alone. */
#ifndef MU_ACTORS_PS_INITIAL_PHILOX_H
#define MU_ACTORS_PS_INITIAL_PHILOX_H

#include <stdint.h>

void mu__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
