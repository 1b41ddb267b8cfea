/* The number below which a share `p` of normally distributed numbers lies, 0 < p < 1,
 * with mean 0 and deviation 1. Within 1e-15 of the true one, and by additions,
 * multiplications, divisions and roots alone: so it has the same bits on every machine,
 * which the logarithm of a C library has not. */
#ifndef MU_ACTORS_PS_INITIAL_QUANTILE_H
#define MU_ACTORS_PS_INITIAL_QUANTILE_H

double mu__normal_quantile(double p);

/* The natural logarithm of a normal number above 0. */
double mu__logarithm(double x);

#endif
