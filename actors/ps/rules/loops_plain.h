/* A part of rule_loops.h: descent, momentum, and what divides by a root of squares. */

LOOP(run_sgd)
{
    TARGET;
    NUMBER(rate, 0);

    (void)slots;
    for (size_t i = 0; i < n; i++)
        x[i] -= rate * g[i];
}

LOOP(run_momentum)
{
    TARGET;
    SLOT(v, 0);
    NUMBER(rate, 0);
    NUMBER(momentum, 1);

    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + g[i];
        x[i] -= rate * v[i];
    }
}

LOOP(run_momentum_keras)
{
    TARGET;
    SLOT(v, 0);
    NUMBER(rate, 0);
    NUMBER(momentum, 1);

    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] - rate * g[i];
        x[i] += v[i];
    }
}

LOOP(run_nesterov)
{
    TARGET;
    SLOT(v, 0);
    NUMBER(rate, 0);
    NUMBER(momentum, 1);

    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + g[i];
        x[i] -= rate * (g[i] + momentum * v[i]);
    }
}

LOOP(run_nesterov_keras)
{
    TARGET;
    SLOT(v, 0);
    NUMBER(rate, 0);
    NUMBER(momentum, 1);

    for (size_t i = 0; i < n; i++) {
        REAL step = rate * g[i];

        v[i] = momentum * v[i] - step;
        x[i] += momentum * v[i] - step;
    }
}

LOOP(run_adagrad)
{
    TARGET;
    SLOT(a, 0);
    NUMBER(rate, 0);
    NUMBER(epsilon, 1);

    for (size_t i = 0; i < n; i++) {
        a[i] += g[i] * g[i];
        x[i] -= rate * g[i] / ROOT(a[i] + epsilon);
    }
}

/* The sum of squares in an order that depends on `n` alone: eight sums, each of every
 * eighth element, and these by pairs. */
static double sum_squares(const given_real *g, size_t n)
{
    double sums[8] = {0};
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            sums[k] += (double)g[i + k] * (double)g[i + k];
    for (size_t k = 0; i < n; i++, k++)
        sums[k] += (double)g[i] * (double)g[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

LOOP(run_rowwise_adagrad)
{
    TARGET;
    SLOT(a, 0);
    NUMBER(rate, 0);
    NUMBER(epsilon, 1);
    REAL scale;

    if (n == 0)
        return;
    a[0] += (REAL)(sum_squares(g, n) / (double)n);
    scale = rate / (ROOT(a[0]) + epsilon);
    for (size_t i = 0; i < n; i++)
        x[i] -= scale * g[i];
}

LOOP(run_rmsprop)
{
    TARGET;
    SLOT(v, 0);
    NUMBER(rate, 0);
    NUMBER(rho, 1);
    NUMBER(rest, 2);
    NUMBER(epsilon, 3);

    for (size_t i = 0; i < n; i++) {
        v[i] = rho * v[i] + rest * (g[i] * g[i]);
        x[i] -= rate * g[i] / ROOT(v[i] + epsilon);
    }
}

LOOP(run_rmsprop_momentum)
{
    TARGET;
    SLOT(v, 0);
    SLOT(m, 1);
    NUMBER(rate, 0);
    NUMBER(rho, 1);
    NUMBER(rest, 2);
    NUMBER(epsilon, 3);
    NUMBER(momentum, 4);

    for (size_t i = 0; i < n; i++) {
        v[i] = rho * v[i] + rest * (g[i] * g[i]);
        m[i] = momentum * m[i] + rate * g[i] / ROOT(v[i] + epsilon);
        x[i] -= m[i];
    }
}

LOOP(run_rmsprop_centered)
{
    TARGET;
    SLOT(v, 0);
    SLOT(m, 1);
    SLOT(h, 2);
    NUMBER(rate, 0);
    NUMBER(rho, 1);
    NUMBER(rest, 2);
    NUMBER(epsilon, 3);
    NUMBER(momentum, 4);

    for (size_t i = 0; i < n; i++) {
        REAL variance;

        v[i] = rho * v[i] + rest * (g[i] * g[i]);
        h[i] = rho * h[i] + rest * g[i];
        variance = v[i] - h[i] * h[i];
        variance = variance > 0 ? variance : 0; /* it may have been rounded below */
        m[i] = momentum * m[i] + rate * g[i] / ROOT(variance + epsilon);
        x[i] -= m[i];
    }
}

/* n^p; `is_root`: p is 0.5. */
static inline REAL scale_of_square(REAL square, double power, bool is_root)
{
    return is_root ? ROOT(square) : (REAL)mu__rule_power((double)square, power);
}

/* Called with constants for `is_root`, so that there is vector code for the root. */
static inline __attribute__((always_inline)) void step_ftrl(void *x_, void *const *slots,
                                                            const void *g_, size_t n,
                                                            const double *factors,
                                                            bool is_root)
{
    TARGET;
    SLOT(squares, 0);
    SLOT(z, 1);
    NUMBER(rate, 0);
    NUMBER(l1, 1);
    NUMBER(l2_twice, 2);
    NUMBER(shrinkage_twice, 3);
    const double power = factors[4];

    for (size_t i = 0; i < n; i++) {
        REAL before = scale_of_square(squares[i], power, is_root);
        REAL square = squares[i] + g[i] * g[i];
        REAL after = scale_of_square(square, power, is_root);
        REAL sum =
            z[i] + (g[i] + shrinkage_twice * x[i] - (after - before) / rate * x[i]);
        REAL cut = sum < -l1 ? -l1 : sum > l1 ? l1 : sum;
        REAL slope = after / rate + l2_twice;
        REAL step = (cut - sum) / slope;

        squares[i] = square;
        z[i] = sum;
        x[i] = slope > 0 ? step : 0;
    }
}

LOOP(run_ftrl)
{
    if (factors[4] == 0.5)
        step_ftrl(x_, slots, g_, n, factors, true);
    else
        step_ftrl(x_, slots, g_, n, factors, false);
}

LOOP(run_adadelta)
{
    TARGET;
    SLOT(a, 0);
    SLOT(u, 1);
    NUMBER(rate, 0);
    NUMBER(rho, 1);
    NUMBER(rest, 2);
    NUMBER(epsilon, 3);

    for (size_t i = 0; i < n; i++) {
        REAL delta;

        a[i] = rho * a[i] + rest * (g[i] * g[i]);
        delta = g[i] * ROOT(u[i] + epsilon) / ROOT(a[i] + epsilon);
        u[i] = rho * u[i] + rest * (delta * delta);
        x[i] -= rate * delta;
    }
}
