/* How gradients change variables.
 *
 * An optimizer is plain data: the kind of a rule and its hyperparameters, which travel
 * with each gradient. What a rule keeps beside a variable, its slots and the count of its
 * updates, is on the servers, with the variable: in its copies, in journals, in
 * checkpoints. Any number of workers may apply gradients with the same kind of rule and
 * with other numbers, such as a rate that falls.
 *
 *     mu_optimizer adam = mu_optimizer_make(MU_OPTIMIZER_ADAM, 0.001);
 *
 *     adam.beta2 = 0.99;
 *     rv = mu_variable_apply(variable, gradient, bytes, &adam, -1, &error);
 *
 * x parameter, g gradient, t = 1, 2, ... the step, r rate; element by element. Before
 * each rule x -= r * weight_decay * x. Slots begin as 0, or where it says so as
 * `initial`.
 *
 *     sgd               x -= r g
 *     momentum          v = momentum v + g; x -= r v                  (torch's form)
 *     momentum_keras    v = momentum v - r g; x += v
 *     nesterov          v = momentum v + g; x -= r (g + momentum v)   (torch's form)
 *     nesterov_keras    v = momentum v - r g; x += momentum v - r g
 *     adagrad           a += g^2; x -= r g / sqrt(a + epsilon); a begins as initial
 *     rowwise_adagrad   a, one for a row, += mean of g^2 over the row;
 *                       x -= r g / (sqrt(a) + epsilon); a begins as initial
 *     rmsprop           v = rho v + (1 - rho) g^2; x -= r g / sqrt(v + epsilon)
 *     rmsprop_momentum  likewise, m = momentum m + r g / sqrt(v + epsilon); x -= m
 *     rmsprop_centered  likewise, h = rho h + (1 - rho) g, and v - h^2 below the root
 *     adam, adamw       m += (1 - beta1) (g - m); v += (1 - beta2) (g^2 - v);
 *                       x -= r sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
 *     amsgrad           as adam, u = max(u, v), and u below the root
 *     ftrl              k = n + g^2; p = -power; z += g + 2 shrinkage x
 *                       - (k^p - n^p) / r x; n = k; x = (z cut at -l1 and l1, minus z) /
 *                       ((n^p + beta) / r + 2 l2); n begins as initial. The first update
 *                       forgets what x was
 *     adadelta          a = rho a + (1 - rho) g^2; d = g sqrt(u + epsilon) /
 *                       sqrt(a + epsilon); u = rho u + (1 - rho) d^2; x -= r d
 *     adamax            m as adam; u = max(beta2 u, |g|);
 *                       x -= r / (1 - beta1^t) m / (u + epsilon)
 *     nadam             adam with Nesterov's momentum, as Keras has it
 *     lion              x -= r sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g
 *     lamb              h = the step of adam, with epsilon beside the corrected root;
 *                       x -= r h |x| / |h|. The variable has one shard
 *
 * The defaults are those of Keras 3; momentum is 0.9. Rows are those of the variable's
 * first dimension. Variables of 16-bit floats have slots of 32 bits, with which the rules
 * calculate, too; x is then rounded to the nearest number. They have no lamb, and
 * rowwise_adagrad for rows of at most 4,096. The result is the same on every machine, to
 * the last bit. */
#ifndef MUSTER_OPTIMIZER_H
#define MUSTER_OPTIMIZER_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mu_optimizer_kind {
    MU_OPTIMIZER_SGD = 1,
    MU_OPTIMIZER_MOMENTUM = 2,
    MU_OPTIMIZER_MOMENTUM_KERAS = 3,
    MU_OPTIMIZER_NESTEROV = 4,
    MU_OPTIMIZER_NESTEROV_KERAS = 5,
    MU_OPTIMIZER_ADAGRAD = 6,
    MU_OPTIMIZER_ROWWISE_ADAGRAD = 7,
    MU_OPTIMIZER_RMSPROP = 8,
    MU_OPTIMIZER_RMSPROP_MOMENTUM = 9,
    MU_OPTIMIZER_RMSPROP_CENTERED = 10,
    MU_OPTIMIZER_ADAM = 11,
    MU_OPTIMIZER_ADAMW = 12,
    MU_OPTIMIZER_AMSGRAD = 13,
    MU_OPTIMIZER_FTRL = 14,
    MU_OPTIMIZER_ADADELTA = 15,
    MU_OPTIMIZER_ADAMAX = 16,
    MU_OPTIMIZER_NADAM = 17,
    MU_OPTIMIZER_LION = 18,
    MU_OPTIMIZER_LAMB = 19
};

enum mu_optimizer_flag {
    MU_OPTIMIZER_ANY_NUMBER = 1, /* NaN and infinity in a gradient are let through */
    MU_OPTIMIZER_REPLACE = 2     /* slots of another rule are dropped, and made anew;
                                    without it the gradient is refused */
};

/* Made by mu_optimizer_make, and then changed. A rule reads the numbers that it has. */
typedef struct mu_optimizer {
    size_t size; /* of this struct, when the program was compiled */
    int kind;
    unsigned flags; /* enum mu_optimizer_flag, or 0 */
    uint64_t step;  /* t, from 1; 0: the servers count the updates of each shard. Where
                       several workers share a schedule, the step of the closure */
    double rate;
    double weight_decay;
    double momentum;
    double beta1;
    double beta2;
    double rho;
    double epsilon;
    double initial;
    double l1;
    double l2;
    double shrinkage;
    double power;
    double beta;
} mu_optimizer;

/* An optimizer with defaults and that rate. An unknown kind is refused when it is used.
 */
MU_EXPORT mu_optimizer mu_optimizer_make(int kind, double rate);

/* ---- Clipping, where gradients were computed ---- */

/* A gradient: `count` elements of a dtype of floats. */
typedef struct mu_gradient {
    int dtype;
    void *data; /* changed in place */
    size_t count;
} mu_gradient;

enum mu_clip {
    MU_CLIP_VALUE = 1,      /* each element to -limit and limit */
    MU_CLIP_NORM = 2,       /* each gradient to that norm at most */
    MU_CLIP_GLOBAL_NORM = 3 /* all together to that norm at most */
};

/* Clip all gradients of a step. A norm that is not finite makes NaN of them, which the
 * servers refuse. -MU_EINVALID: no such clipping, a limit that is not above 0, no floats;
 * nothing has changed. Any thread. */
MU_EXPORT int mu_clip_gradients(const mu_gradient *gradients, size_t count, int by,
                                double limit, mu_error *ret_error);

/* By name, as above: "adam". -MU_ENOTFOUND, NULL: there is none. */
MU_EXPORT int mu_optimizer_find(const char *name);
MU_EXPORT const char *mu_optimizer_name(int kind);

#ifdef __cplusplus
}
#endif

#endif
