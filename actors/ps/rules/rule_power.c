/* Powers of basic operations alone: pow() of the C library differs from one to another in
 * the last bits. */
#include "actors/ps/initial/quantile.h"
#include "actors/ps/rules/internal.h"

#include <math.h>

static const double ln2 = 0.69314718055994530942;

/* e^x: x = k ln 2 + rest, and of the rest by Taylor's series. */
static double exponential(double x)
{
    enum { TERMS = 16 };
    double k = floor(x / ln2 + 0.5);
    double rest = x - k * ln2;
    double sum = 1;

    for (int n = TERMS; n >= 1; n--)
        sum = 1 + sum * rest / n;
    return ldexp(sum, (int)k);
}

double mu__rule_power(double base, double power)
{
    double x;

    if (!(power > 0 || power < 0))
        return 1;
    if (!(base > 0) || isinf(base))
        return base;
    x = power * mu__logarithm(base);
    return x < -700 ? 0 : x > 700 ? (double)INFINITY : exponential(x);
}
