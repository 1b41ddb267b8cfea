#include "actors/ps/tables/initial_row.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PHILOX_ROUNDS = 10, PHILOX_WORDS = 4 };

void mu__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t product0 = UINT64_C(0xD2511F53) * c[0];
        uint64_t product1 = UINT64_C(0xCD9E8D57) * c[2];

        c[0] = (uint32_t)(product1 >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(product0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)product1;
        c[3] = (uint32_t)product0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    memcpy(ret_words, c, sizeof c);
}

/* ---- Distributions ---- */

/* The natural logarithm of a normal number, to some 1e-14: by the exponent, and a series
 * in (m - 1) / (m + 1) for the rest m, which is from sqrt(1/2) to sqrt(2). */
static double log_of(double x)
{
    int exponent;
    double m = frexp(x, &exponent);
    double z;
    double term;
    double sum = 0;

    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    z = (m - 1) / (m + 1);
    term = z;
    for (int i = 1; i < 36; i += 2) {
        sum += term / i;
        term *= z * z;
    }
    return 2 * sum + exponent * 0.69314718055994531;
}

static double polynomial(const double *coefficients, int count, double x)
{
    double sum = coefficients[0];

    for (int i = 1; i < count; i++)
        sum = sum * x + coefficients[i];
    return sum;
}

/* The inverse of the normal distribution, by Acklam's quotients of polynomials (relative
 * error 1.15e-9). 0 < p < 1. */
static double normal_quantile(double p)
{
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                               -2.759285104469687e+02, 1.383577518672690e+02,
                               -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                               -1.556989798598866e+02, 6.680131188771972e+01,
                               -1.328068155288572e+01, 1};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                               -2.400758277161838e+00, -2.549732539343734e+00,
                               4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01,
                               2.445134137142996e+00, 3.754408661907416e+00, 1};
    const double tail = 0.02425;
    double q;

    if (p < tail) {
        q = sqrt(-2 * log_of(p));
        return polynomial(c, 6, q) / polynomial(d, 5, q);
    }
    if (p > 1 - tail)
        return -normal_quantile(1 - p);
    q = p - 0.5;
    return q * polynomial(a, 6, q * q) / polynomial(b, 6, q * q);
}

static float number_of(const struct mu__initial *initial, uint32_t word)
{
    if (initial->kind == MU__INITIAL_UNIFORM)
        return initial->a + (initial->b - initial->a) * ((float)(word >> 8) * 0x1p-24F);
    return initial->a +
           initial->b * (float)normal_quantile(((double)word + 0.5) * 0x1p-32);
}

static void put_constant(float number, uint32_t dim, unsigned char *row)
{
    for (uint32_t i = 0; i < dim; i++)
        memcpy(row + i * sizeof number, &number, sizeof number);
}

void mu__initial_row(const struct mu__initial *initial, uint64_t id, uint32_t dim,
                     void *row)
{
    const uint32_t key[2] = {(uint32_t)initial->seed, (uint32_t)(initial->seed >> 32)};
    unsigned char *at = row;

    if (initial->kind == MU__INITIAL_ZEROS) {
        memset(row, 0, dim * sizeof(float));
        return;
    }
    if (initial->kind == MU__INITIAL_CONSTANT) {
        put_constant(initial->a, dim, row);
        return;
    }
    for (uint32_t i = 0; i < dim; i += PHILOX_WORDS) {
        const uint32_t counter[4] = {(uint32_t)id, (uint32_t)(id >> 32), i / PHILOX_WORDS,
                                     0};
        uint32_t words[PHILOX_WORDS];

        mu__philox(counter, key, words);
        for (uint32_t k = 0; k < PHILOX_WORDS && i + k < dim; k++) {
            float number = number_of(initial, words[k]);

            memcpy(at + (i + k) * sizeof number, &number, sizeof number);
        }
    }
}

int mu__initial_check(const struct mu__initial *initial, mu_error *ret_error)
{
    if (initial->kind > MU__INITIAL_NORMAL)
        return mu_error_set(ret_error, -MU_EINVALID, "no initializer %" PRIu32,
                            initial->kind);
    if (!isfinite(initial->a) || !isfinite(initial->b) ||
        !isfinite(initial->b - initial->a))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the initializer's numbers %g and %g are not finite",
                            (double)initial->a, (double)initial->b);
    if (initial->kind == MU__INITIAL_NORMAL && initial->b < 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a standard deviation of %g: expected at least 0",
                            (double)initial->b);
    if (initial->kind == MU__INITIAL_UNIFORM && initial->a > initial->b)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "numbers from %g to %g: expected the lower one first",
                            (double)initial->a, (double)initial->b);
    return 0;
}
