/* A matrix with orthonormal columns, or rows where it has fewer of these: random numbers
 * made orthogonal. Computed as a whole. */
#ifndef MU_ACTORS_PS_INITIAL_ORTHOGONAL_H
#define MU_ACTORS_PS_INITIAL_ORTHOGONAL_H

#include "actors/ps/shape.h"

enum { MU__ORTHOGONAL_MAX = 1 << 20 }; /* elements */

/* Of a checked shape: all dimensions but the last are its rows. -MU_EINVALID (rank below
 * 2, no float), -MU_ERANGE (too large). */
int mu__orthogonal_check(const struct mu__shape *shape, mu_error *ret_error);

/* The whole variable, times `gain`. -MU_ENOMEM. */
int mu__orthogonal_fill(const struct mu__shape *shape, struct mu__view name,
                        uint64_t seed, double gain, void *out);

#endif
