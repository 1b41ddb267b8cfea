/* Powers of basic operations alone: pow() of the C library differs from one to another in
 * the last bits. */
#include "actors/ps/rules/internal.h"

#include <math.h>

static const double ln2 = 0.69314718055994530942;
static const double root_half = 0.70710678118654752440;

/* The natural logarithm: x = m * 2^e, and of m by 2 atanh((m - 1) / (m + 1)). */
static double logarithm(double x)
{
    enum { TERMS = 12 };
    int e;
    double m = frexp(x, &e);
    double s;
    double sum = 0;

    if (m < root_half) {
        m *= 2;
        e--;
    }
    s = (m - 1) / (m + 1);
    for (int k = TERMS; k >= 0; k--)
        sum = sum * (s * s) + 1.0 / (2 * k + 1);
    return 2 * s * sum + e * ln2;
}

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
    x = power * logarithm(base);
    return x < -700 ? 0 : x > 700 ? (double)INFINITY : exponential(x);
}
