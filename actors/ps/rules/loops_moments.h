/* A part of rule_loops.h: what keeps an average of gradients, and its kin. */
#include "actors/ps/rules/loops_plain.h"

LOOP(run_adam)
{
    TARGET;
    SLOT(m, 0);
    SLOT(v, 1);
    NUMBER(rate, 0);
    NUMBER(rest1, 1);
    NUMBER(rest2, 2);
    NUMBER(epsilon, 3);

    for (size_t i = 0; i < n; i++) {
        m[i] += rest1 * (g[i] - m[i]);
        v[i] += rest2 * (g[i] * g[i] - v[i]);
        x[i] -= rate * m[i] / (ROOT(v[i]) + epsilon);
    }
}

LOOP(run_amsgrad)
{
    TARGET;
    SLOT(m, 0);
    SLOT(v, 1);
    SLOT(u, 2);
    NUMBER(rate, 0);
    NUMBER(rest1, 1);
    NUMBER(rest2, 2);
    NUMBER(epsilon, 3);

    for (size_t i = 0; i < n; i++) {
        m[i] += rest1 * (g[i] - m[i]);
        v[i] += rest2 * (g[i] * g[i] - v[i]);
        u[i] = u[i] > v[i] ? u[i] : v[i];
        x[i] -= rate * m[i] / (ROOT(u[i]) + epsilon);
    }
}

LOOP(run_adamax)
{
    TARGET;
    SLOT(m, 0);
    SLOT(u, 1);
    NUMBER(rate, 0);
    NUMBER(rest1, 1);
    NUMBER(beta2, 2);
    NUMBER(epsilon, 3);

    for (size_t i = 0; i < n; i++) {
        REAL size = g[i] < 0 ? -g[i] : g[i];
        REAL before = beta2 * u[i];

        m[i] += rest1 * (g[i] - m[i]);
        u[i] = before > size ? before : size;
        x[i] -= rate * m[i] / (u[i] + epsilon);
    }
}

LOOP(run_nadam)
{
    TARGET;
    SLOT(m, 0);
    SLOT(v, 1);
    NUMBER(rate, 0);
    NUMBER(rest1, 1);
    NUMBER(rest2, 2);
    NUMBER(epsilon, 3);
    NUMBER(of_m, 4);
    NUMBER(of_g, 5);
    NUMBER(of_v, 6);

    for (size_t i = 0; i < n; i++) {
        m[i] += rest1 * (g[i] - m[i]);
        v[i] += rest2 * (g[i] * g[i] - v[i]);
        x[i] -= rate * (of_m * m[i] + of_g * g[i]) / (ROOT(of_v * v[i]) + epsilon);
    }
}

LOOP(run_lion)
{
    TARGET;
    SLOT(m, 0);
    NUMBER(rate, 0);
    NUMBER(beta1, 1);
    NUMBER(rest1, 2);
    NUMBER(beta2, 3);
    NUMBER(rest2, 4);

    for (size_t i = 0; i < n; i++) {
        REAL way = beta1 * m[i] + rest1 * g[i];

        x[i] -= way > 0 ? rate : way < 0 ? -rate : 0;
        m[i] = beta2 * m[i] + rest2 * g[i];
    }
}

LOOP(run_lamb)
{
    GRADIENT;
    SLOT(m, 0);
    SLOT(v, 1);
    NUMBER(rest1, 1);
    NUMBER(rest2, 2);

    (void)x_;
    for (size_t i = 0; i < n; i++) {
        m[i] += rest1 * (g[i] - m[i]);
        v[i] += rest2 * (g[i] * g[i] - v[i]);
    }
}

/* The step of one element, of its slots. */
static REAL lamb_step(REAL m, REAL v, const double *factors)
{
    NUMBER(epsilon, 3);
    NUMBER(of_m, 4);
    NUMBER(of_v, 5);

    return of_m * m / (ROOT(of_v * v) + epsilon);
}

static double lamb_norm(const REAL *m, const REAL *v, size_t n, const double *factors)
{
    enum { BLOCK = 512 }; /* a multiple of what squares() adds up side by side */
    REAL steps[BLOCK];
    double sum = 0;

    for (size_t from = 0; from < n; from += BLOCK) {
        size_t count = n - from < BLOCK ? n - from : BLOCK;

        for (size_t i = 0; i < count; i++)
            steps[i] = lamb_step(m[from + i], v[from + i], factors);
        sum += sum_squares(steps, count);
    }
    return sqrt(sum);
}

static void finish_lamb(void *x_, void *const *slots, size_t n, const double *factors)
{
    REAL *restrict x = x_;
    SLOT(m, 0);
    SLOT(v, 1);
    double size = sqrt(sum_squares(x, n));
    double of_steps = lamb_norm(m, v, n, factors);
    REAL rate =
        (REAL)(size > 0 && of_steps > 0 ? factors[0] * (size / of_steps) : factors[0]);

    for (size_t i = 0; i < n; i++)
        x[i] -= rate * lamb_step(m[i], v[i], factors);
}
