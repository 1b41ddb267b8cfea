/* Wichura's algorithm AS 241 (Applied Statistics 37, 1988): quotients of polynomials, for
 * the middle and two parts of the tails. */
#include "actors/ps/initial/quantile.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef FLT_EVAL_METHOD
_Static_assert(FLT_EVAL_METHOD == 0, "doubles are computed as such, for equal bits");
#endif

/* Of numerators and denominators, the highest power first. */
static const double middle_above[8] = {
    2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
    4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
    1.3314166789178437745e+2, 3.3871328727963666080e+0};
static const double middle_below[8] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                       3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                       5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                       4.2313330701600911252e+1, 1.0};
static const double tail_above[8] = {
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
    4.63033784615654529590e+0, 1.42343711074968357734e+0};
static const double tail_below[8] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                     1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                     6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                     2.05319162663775882187e+0, 1.0};
static const double far_above[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                    1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                    2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                    5.46378491116411436990e+0, 6.65790464350110377720e+0};
static const double far_below[8] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                    1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                    1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                    5.99832206555887937690e-1,  1.0};

static double polynomial(const double factors[8], double x)
{
    double sum = factors[0];

    for (int i = 1; i < 8; i++)
        sum = sum * x + factors[i];
    return sum;
}

/* 2 artanh of a number near 0, by its series, and the exponent. */
double mu__logarithm(double x)
{
    const double log_2 = 0.693147180559945309417;
    uint64_t bits;
    int64_t exponent;
    double s;
    double square;
    double sum = 0;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int64_t)(bits >> 52) - 1022;
    bits = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(1022) << 52;
    memcpy(&x, &bits, sizeof x);
    if (x < 0.70710678118654752440) {
        x = x * 2;
        exponent--;
    }
    s = (x - 1) / (x + 1);
    square = s * s;
    for (int power = 23; power >= 1; power -= 2)
        sum = sum * square + 1.0 / power;
    return 2 * s * sum + (double)exponent * log_2;
}

double mu__normal_quantile(double p)
{
    double q = p - 0.5;
    double r;

    if (q <= 0.425 && q >= -0.425) {
        r = 0.180625 - q * q;
        return q * polynomial(middle_above, r) / polynomial(middle_below, r);
    }
    r = sqrt(-mu__logarithm(q < 0 ? p : 1 - p));
    if (r <= 5)
        r = polynomial(tail_above, r - 1.6) / polynomial(tail_below, r - 1.6);
    else
        r = polynomial(far_above, r - 5) / polynomial(far_below, r - 5);
    return q < 0 ? -r : r;
}
