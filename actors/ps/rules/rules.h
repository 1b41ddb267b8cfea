/* Update rules: what a gradient does to elements, and to the slots that an optimizer
 * keeps beside them. Pure: no memory is got, nothing but the arguments counts.
 *
 * The same arguments give the same bits on every machine and at every vector width: no
 * contraction into fused operations, no estimates of reciprocals, powers of our own, sums
 * over a row in one fixed order (CMakeLists.txt has the options of this folder).
 *
 * In formulas: x parameter, g gradient, t = 1, 2, ... the step, r rate; element by
 * element. Before each rule x -= r * weight_decay * x. Slots begin as 0, or where it says
 * so, as `initial`. [k] of a row is its slot k.
 *
 *     sgd               x -= r g
 *     momentum          v[0] = momentum v + g; x -= r v              (torch's form)
 *     momentum_keras    v[0] = momentum v - r g; x += v
 *     nesterov          v[0] = momentum v + g; x -= r (g + momentum v)
 *     nesterov_keras    v[0] = momentum v - r g; x += momentum v - r g
 *     adagrad           a[0] += g^2; x -= r g / sqrt(a + epsilon); a begins as initial
 *     rowwise_adagrad   a[0], one for a row, += mean of g^2 over the row;
 *                       x -= r g / (sqrt(a) + epsilon); a begins as initial
 *     rmsprop           v[0] = rho v + (1 - rho) g^2; x -= r g / sqrt(v + epsilon)
 *     rmsprop_momentum  v[0] likewise; m[1] = momentum m + r g / sqrt(v + epsilon);
 *                       x -= m
 *     rmsprop_centered  likewise, h[2] = rho h + (1 - rho) g, and v - h^2, at least 0, in
 *                       place of v below the root
 *     adam, adamw       m[0] += (1 - beta1) (g - m); v[1] += (1 - beta2) (g^2 - v);
 *                       x -= r sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
 *     amsgrad           as adam, u[2] = max(u, v), and u below the root
 *     ftrl              n[0] begins as initial, z[1]; L = l2 + beta / (2 r);
 *                       k = n + g^2; p = -power; with h = g + 2 shrinkage x:
 *                       z += h - (k^p - n^p) / r x; n = k;
 *                       x = (z cut at -l1 and l1, minus z) / (n^p / r + 2 L)
 *     adadelta          a[0] = rho a + (1 - rho) g^2;
 *                       d = g sqrt(u + epsilon) / sqrt(a + epsilon);
 *                       u[1] = rho u + (1 - rho) d^2; x -= r d
 *     adamax            m[0] as adam; u[1] = max(beta2 u, |g|);
 *                       x -= r / (1 - beta1^t) m / (u + epsilon)
 *     nadam             m[0], v[1] as adam; c(t) = beta1 (1 - 0.96^t / 2), P = c(1) to
 *                       c(t), multiplied; x -= r h / (sqrt(v / (1 - beta2^t)) + epsilon)
 *                       with h = c(t + 1) m / (1 - P c(t + 1)) + (1 - c(t)) g / (1 - P)
 *     lion              x -= r sign(beta1 m + (1 - beta1) g);
 *                       m[0] = beta2 m + (1 - beta2) g
 *     lamb              m[0], v[1] as adam;
 *                       h = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon);
 *                       x -= r h |x| / |h|, or r h if one of the norms is 0 */
#ifndef MU_ACTORS_RULES_H
#define MU_ACTORS_RULES_H

#include "muster/error.h"
#include "muster/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part of the wire format and of files. */
enum mu__rule_kind_number {
    MU__RULE_SGD = 1,
    MU__RULE_MOMENTUM = 2,
    MU__RULE_MOMENTUM_KERAS = 3,
    MU__RULE_NESTEROV = 4,
    MU__RULE_NESTEROV_KERAS = 5,
    MU__RULE_ADAGRAD = 6,
    MU__RULE_ROWWISE_ADAGRAD = 7,
    MU__RULE_RMSPROP = 8,
    MU__RULE_RMSPROP_MOMENTUM = 9,
    MU__RULE_RMSPROP_CENTERED = 10,
    MU__RULE_ADAM = 11,
    MU__RULE_ADAMW = 12,
    MU__RULE_AMSGRAD = 13,
    MU__RULE_FTRL = 14,
    MU__RULE_ADADELTA = 15,
    MU__RULE_ADAMAX = 16,
    MU__RULE_NADAM = 17,
    MU__RULE_LION = 18,
    MU__RULE_LAMB = 19,
    MU__RULE_KINDS /* one more than the last */
};

/* Hyperparameters, and their order on the wire. */
enum mu__rule_number {
    MU__RATE,
    MU__WEIGHT_DECAY,
    MU__MOMENTUM,
    MU__BETA1,
    MU__BETA2,
    MU__RHO,
    MU__EPSILON,
    MU__INITIAL,
    MU__L1,
    MU__L2,
    MU__SHRINKAGE,
    MU__POWER,
    MU__BETA,
    MU__RULE_NUMBERS
};

enum mu__rule_flag {
    MU__RULE_ANY_NUMBER = 1, /* NaN and infinity in a gradient are let through */
    MU__RULE_REPLACES = 2,   /* slots of another rule are dropped, and made anew */
    MU__RULE_FLAGS_ALL = 1 | 2
};

struct mu__rule {
    uint32_t kind;
    uint32_t flags;
    uint64_t step; /* t; 0: counted by who has the slots */
    double numbers[MU__RULE_NUMBERS];
};

enum { MU__RULE_SLOTS_MAX = 3 };

/* A kind of rule. */
struct mu__rule_kind {
    const char *name;
    uint32_t numbers;                           /* bit i: it has hyperparameter i */
    unsigned slots;                             /* for each element: the first ones */
    unsigned row_slots;                         /* for a row: those behind them */
    const char *slot_names[MU__RULE_SLOTS_MAX]; /* NULL behind the last */
    uint32_t initial_slots;                     /* bit k: slot k begins as `initial` */
    bool is_stepped;                            /* t matters */
    bool is_whole;   /* it needs a norm of all: mu__rule_finish does the rest */
    bool dense_only; /* not for rows of tables */
};

/* NULL: there is none. By name: "adam". */
const struct mu__rule_kind *mu__rule_kind(uint32_t kind);
uint32_t mu__rule_kind_by_name(const char *name);

/* A rule with the defaults of Keras 3 (momentum 0.9; weight decay 0.004 of adamw). */
struct mu__rule mu__rule_defaults(uint32_t kind);

/* "epsilon" */
const char *mu__rule_number_name(unsigned number);

/* In what a rule calculates for elements of a dtype, and its slots are: float32, also for
 * floats of 16 bits; float64. MU_DTYPE_NONE: others take no gradients. */
int mu__rule_dtype(int dtype);

/* Whether the rule may be applied to elements of a dtype. -MU_EINVALID names the
 * hyperparameter and its range, or the dtype. */
int mu__rule_check(const struct mu__rule *rule, int dtype, mu_error *ret_error);

/* What all elements of slot `slot` begin as. */
double mu__rule_slot_start(const struct mu__rule *rule, unsigned slot);

/* Set `count` elements of a slot to that. */
void mu__rule_slot_fill(const struct mu__rule *rule, int dtype, unsigned slot, void *to,
                        size_t count);

/* ---- Applying ---- */

/* A rule at a step, ready for many rows. */
struct mu__rule_at {
    uint32_t kind;
    int dtype;
    double decay; /* r * weight_decay */
    double factors[9];
};

/* The rule was checked; `step` is t, from 1. */
struct mu__rule_at mu__rule_prepare(const struct mu__rule *rule, int dtype,
                                    uint64_t step);

/* Apply it to `count` elements; of a kind with slots for a row, these are one row. `x`
 * and slots are aligned to their elements, `gradient` need not be; ranges do not overlap.
 * Slots have the dtype of `x`. */
void mu__rule_run(const struct mu__rule_at *at, void *x, void *const *slots,
                  const void *gradient, size_t count);

/* Of a kind with `is_whole`, once the gradient was run for all `count` elements, in any
 * number of parts: change x. Others: nothing. */
void mu__rule_finish(const struct mu__rule_at *at, void *x, void *const *slots,
                     size_t count);

/* All of that for one row, or one whole variable. */
void mu__rule_apply(const struct mu__rule *rule, int dtype, void *x, void *const *slots,
                    const void *gradient, size_t count, uint64_t step);

/* The first element that is NaN or infinite; `count`: there is none. Of a dtype that is
 * no float there is none. */
size_t mu__rule_find_nonfinite(int dtype, const void *gradient, size_t count);

/* ---- Packed (rule_packing.c) ---- */

enum { MU__RULE_BYTES_MAX = 1 + 1 + 8 + 8 * MU__RULE_NUMBERS };

/* Into at most MU__RULE_BYTES_MAX bytes, little-endian: kind, flags, step, the kind's
 * numbers. Returns how many bytes. */
size_t mu__rule_pack(const struct mu__rule *rule, uint8_t *to);

/* False: these bytes are no rule. Numbers that the kind does not have are 0; whether they
 * are in their ranges is for mu__rule_check. */
bool mu__rule_unpack(const uint8_t *bytes, size_t size, struct mu__rule *ret_rule);

#endif
