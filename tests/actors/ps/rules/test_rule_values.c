/* Update rules against two other sources: the values that Keras 3 publishes with its own
 * tests, and each rule once more in double precision, written as its paper has it. */
#include "actors/ps/rules/rules.h"

#include "tests/support/test.h"

#include <math.h>

enum { WIDTH = 10, STEPS = 5 };

/* ---- Published values ----
 *
 * x begins as ones; the first gradient is 0.01, all later ones are 0.1, 0.2 ... 1.0. x
 * after each step, to 5e-4 of it plus 5e-4. One value in a row: all are alike. */
struct golden {
    const char *name;
    uint32_t kind;
    double set[MU__RULE_NUMBERS]; /* 0: the default */
    double x[STEPS][WIDTH];
};

static const struct golden goldens[] = {
    {"SGD(nesterov=True), without momentum",
     MU__RULE_SGD,
     {0},
     {{.9999, .9999, .9999, .9999, .9999, .9999, .9999, .9999, .9999, .9999},
      {.9989, .9979, .9969, .9959, .9949, .9939, .9929, .9919, .9909, .9899},
      {.9979, .9959, .9939, .9919, .9899, .9879, .9859, .9839, .9819, .9799},
      {.9969, .9939, .9909, .9879, .9849, .9819, .9789, .9759, .9729, .9699},
      {.9959, .9919, .9879, .9839, .9799, .9759, .9719, .9679, .9639, .9599}}},
    {"Adagrad",
     MU__RULE_ADAGRAD,
     {[MU__RATE] = 0.2, [MU__INITIAL] = 0.3, [MU__EPSILON] = 1e-6},
     {{.9963, .9963, .9963, .9963, .9963, .9963, .9963, .9963, .9963, .9963},
      {.9604, .9278, .9003, .8784, .8615, .8487, .8388, .8313, .8255, .8209},
      {.9251, .8629, .8137, .7768, .7497, .7298, .7151, .704, .6956, .6891},
      {.8903, .8012, .7342, .6862, .6521, .6277, .6099, .5967, .5867, .579},
      {.856, .7422, .6604, .6037, .5644, .5367, .5168, .5021, .491, .4825}}},
    {"RMSprop(centered=True)",
     MU__RULE_RMSPROP_CENTERED,
     {[MU__MOMENTUM] = -1e-300},
     {{.9967}, {.9933}, {.9908}, {.9885}, {.9864}}},
    {"Adam", MU__RULE_ADAM, {0}, {{.999}, {.9982}, {.9974}, {.9965}, {.9955}}},
    {"Adam(amsgrad=True)",
     MU__RULE_AMSGRAD,
     {0},
     {{.999}, {.9982}, {.9974}, {.9965}, {.9955}}},
    {"AdamW",
     MU__RULE_ADAMW,
     {[MU__RATE] = 1, [MU__WEIGHT_DECAY] = 0.5, [MU__EPSILON] = 2},
     {{.4998, .4998, .4998, .4998, .4998, .4998, .4998, .4998, .4998, .4998},
      {.2486, .2475, .2463, .2451, .244, .2428, .2417, .2405, .2394, .2382},
      {.1223, .1198, .1174, .1149, .1124, .11, .1075, .1051, .1027, .1003},
      {.0586, .0549, .0512, .0475, .0439, .0402, .0366, .033, .0294, .0258},
      {.0263, .0215, .0167, .012, .0073, .0026, -.0021, -.0067, -.0113, -.0159}}},
    {"Ftrl",
     MU__RULE_FTRL,
     {[MU__RATE] = 0.05,
      [MU__POWER] = -0.2,
      [MU__INITIAL] = 0.4,
      [MU__L1] = 0.05,
      [MU__L2] = 0.15,
      [MU__SHRINKAGE] = 0.01,
      [MU__BETA] = 0.3},
     {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
      {-.0034, -.0077, -.0118, -.0157, -.0194, -.023, -.0263, -.0294, -.0325, -.0354},
      {-.0078, -.0162, -.0242, -.0317, -.0387, -.0454, -.0516, -.0575, -.0631, -.0685},
      {-.0121, -.0246, -.0363, -.0472, -.0573, -.0668, -.0757, -.0842, -.0922, -.0999},
      {-.0164, -.0328, -.0481, -.0623, -.0753, -.0875, -.099, -.1098, -.1201, -.1299}}},
    {"Adadelta",
     MU__RULE_ADADELTA,
     {[MU__RATE] = 1, [MU__RHO] = 0.8, [MU__EPSILON] = 1e-6},
     {{.9978}, {.9947}, {.9915}, {.9882}, {.9849}}},
    {"Adamax",
     MU__RULE_ADAMAX,
     {[MU__RATE] = 0.2, [MU__BETA1] = 0.85, [MU__BETA2] = 0.95, [MU__EPSILON] = 1e-6},
     {{.8, .8, .8, .8, .8, .8, .8, .8, .8, .8},
      {.6827, .6873, .6888, .6896, .6901, .6904, .6906, .6908, .6909, .691},
      {.5333, .5407, .5431, .5444, .5451, .5456, .546, .5462, .5464, .5466},
      {.368, .3773, .3804, .382, .3829, .3835, .384, .3843, .3846, .3848},
      {.1933, .204, .2076, .2094, .2105, .2112, .2117, .2121, .2124, .2126}}},
    {"Nadam",
     MU__RULE_NADAM,
     {[MU__RATE] = 0.5, [MU__BETA1] = 0.5, [MU__BETA2] = 0.67, [MU__EPSILON] = 1e-5},
     {{.4281, .4281, .4281, .4281, .4281, .4281, .4281, .4281, .4281, .4281},
      {-.1738, -.1731, -.1726, -.1723, -.1721, -.172, -.1719, -.1718, -.1718, -.1717},
      {-.7115, -.7103, -.7096, -.7092, -.709, -.7088, -.7086, -.7085, -.7085, -.7084},
      {-1.2335, -1.2322, -1.2313, -1.2309, -1.2306, -1.2304, -1.2302, -1.2301, -1.23,
       -1.2299},
      {-1.7492, -1.7478, -1.7469, -1.7464, -1.7461, -1.7459, -1.7457, -1.7456, -1.7455,
       -1.7454}}},
    {"Lion", MU__RULE_LION, {0}, {{.999}, {.998}, {.997}, {.996}, {.995}}},
    {"Lamb", MU__RULE_LAMB, {0}, {{.999}, {.9982}, {.9974}, {.9965}, {.9955}}},
};

static struct mu__rule rule_of(const struct golden *golden)
{
    struct mu__rule rule = mu__rule_defaults(golden->kind);

    for (unsigned i = 0; i < MU__RULE_NUMBERS; i++)
        if (fabs(golden->set[i]) > 0)
            rule.numbers[i] = golden->set[i];
    return rule;
}

static double golden_x(const struct golden *golden, size_t step, size_t i)
{
    bool all_alike = i > 0 && !(fabs(golden->x[1][i]) > 0);

    return golden->x[step][all_alike ? 0 : i];
}

static void check_golden(const struct golden *golden)
{
    const struct mu__rule rule = rule_of(golden);
    float x[WIDTH];
    float slots[MU__RULE_SLOTS_MAX][WIDTH];
    void *const at[MU__RULE_SLOTS_MAX] = {slots[0], slots[1], slots[2]};
    float g[WIDTH];

    for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++)
        mu__rule_slot_fill(&rule, MU_F32, k, slots[k], WIDTH);
    for (size_t i = 0; i < WIDTH; i++)
        x[i] = 1;
    for (size_t step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < WIDTH; i++)
            g[i] = step == 0 ? 0.01F : (float)(i + 1) / 10;
        mu__rule_apply(&rule, MU_F32, x, at, g, WIDTH, step + 1);
        for (size_t i = 0; i < WIDTH; i++) {
            double expected = golden_x(golden, step, i);

            if (!(fabs((double)x[i] - expected) < 5e-4 * (1 + fabs(expected))))
                fail_msg("%s, step %zu, element %zu: %g", golden->name, step + 1, i,
                         (double)x[i]);
        }
    }
}

TEST(test_published_values)
{
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++)
        check_golden(&goldens[i]);
}

/* One step with rate 0.5 from 1, 2, 3, 4 with the gradient 1, 6, 7, 2, to 1e-4; and of
 * rules that Keras does not have, worked out by hand from the formula in rules.h. */
static const struct single_step {
    uint32_t kind;
    double x[4];
} single_steps[] = {
    {MU__RULE_SGD, {.5, -1, -.5, 3}},
    {MU__RULE_MOMENTUM, {.5, -1, -.5, 3}},
    {MU__RULE_MOMENTUM_KERAS, {.5, -1, -.5, 3}},
    {MU__RULE_NESTEROV, {.05, -3.7, -3.65, 2.1}},
    {MU__RULE_NESTEROV_KERAS, {.05, -3.7, -3.65, 2.1}},
    {MU__RULE_ADAGRAD, {.5233, 1.5007, 2.5005, 3.5061}},
    /* the mean of the squares is 22.5, its root 4.74342 */
    {MU__RULE_ROWWISE_ADAGRAD, {.89459, 1.36754, 2.26213, 3.78918}},
    {MU__RULE_RMSPROP, {-.5811, .4189, 1.4189, 2.4189}},
    {MU__RULE_RMSPROP_MOMENTUM, {-.5811, .4189, 1.4189, 2.4189}},
    {MU__RULE_ADAM, {.5, 1.5, 2.5, 3.5}},
    {MU__RULE_ADAMW, {.498, 1.496, 2.494, 3.492}},
    {MU__RULE_AMSGRAD, {.5, 1.5, 2.5, 3.5}},
    {MU__RULE_FTRL, {.2218, 1.3954, 2.3651, 2.8814}},
    {MU__RULE_ADADELTA, {.9993, 1.9993, 2.9993, 3.9993}},
    {MU__RULE_ADAMAX, {.5, 1.5, 2.5, 3.5}},
    {MU__RULE_NADAM, {.4686, 1.4686, 2.4686, 3.4686}},
    {MU__RULE_LION, {.5, 1.5, 2.5, 3.5}},
    {MU__RULE_LAMB, {-.3693, .6306, 1.6306, 2.6306}},
};

static void check_single_step(const struct single_step *expected)
{
    struct mu__rule rule = mu__rule_defaults(expected->kind);
    const float g[4] = {1, 6, 7, 2};
    float x[4] = {1, 2, 3, 4};
    float slots[MU__RULE_SLOTS_MAX][4];
    void *const at[MU__RULE_SLOTS_MAX] = {slots[0], slots[1], slots[2]};

    rule.numbers[MU__RATE] = 0.5;
    for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++)
        mu__rule_slot_fill(&rule, MU_F32, k, slots[k], 4);
    mu__rule_apply(&rule, MU_F32, x, at, g, 4, 1);
    for (size_t i = 0; i < 4; i++)
        if (!(fabs((double)x[i] - expected->x[i]) < 1e-4))
            fail_msg("%s, element %zu: %g", mu__rule_kind(expected->kind)->name, i,
                     (double)x[i]);
}

TEST(test_single_steps)
{
    for (size_t i = 0; i < sizeof single_steps / sizeof single_steps[0]; i++)
        check_single_step(&single_steps[i]);
}

/* ---- The same rules once more ---- */

enum { ROW = 37, ROUNDS = 60 };

/* What a reference rule knows: all gradients so far, oldest first. Most compute their
 * averages from these anew, as sums and not by recurrence. */
struct history {
    double g[ROUNDS][ROW];
    double x[ROUNDS + 1][ROW]; /* before each of them */
    double rates[ROUNDS];
    size_t t;        /* how many there are */
    const double *n; /* hyperparameters; rate is that of rates[] */
};

static double rate_now(const struct history *h)
{
    return h->rates[h->t - 1];
}

/* The sum of weight^(t - k) f(g_k). */
static double decayed(const struct history *h, size_t i, double weight, int exponent)
{
    double sum = 0;

    for (size_t k = 1; k <= h->t; k++)
        sum += pow(weight, (double)(h->t - k)) * pow(h->g[k - 1][i], exponent);
    return sum;
}

static double average(const struct history *h, size_t i, double weight, int exponent)
{
    return (1 - weight) * decayed(h, i, weight, exponent);
}

static double refer_sgd(const struct history *h, size_t i)
{
    return rate_now(h) * h->g[h->t - 1][i];
}

static double refer_momentum(const struct history *h, size_t i)
{
    return rate_now(h) * decayed(h, i, h->n[MU__MOMENTUM], 1);
}

static double keras_velocity(const struct history *h, size_t i)
{
    double sum = 0;

    for (size_t k = 1; k <= h->t; k++)
        sum += pow(h->n[MU__MOMENTUM], (double)(h->t - k)) * h->rates[k - 1] *
               h->g[k - 1][i];
    return sum;
}

static double refer_nesterov(const struct history *h, size_t i)
{
    double mu = h->n[MU__MOMENTUM];

    return rate_now(h) * (h->g[h->t - 1][i] + mu * decayed(h, i, mu, 1));
}

static double refer_nesterov_keras(const struct history *h, size_t i)
{
    return h->n[MU__MOMENTUM] * keras_velocity(h, i) + refer_sgd(h, i);
}

static double refer_adagrad(const struct history *h, size_t i)
{
    double sum = h->n[MU__INITIAL] + decayed(h, i, 1, 2);

    return refer_sgd(h, i) / sqrt(sum + h->n[MU__EPSILON]);
}

static double refer_rowwise(const struct history *h, size_t i)
{
    double sum = h->n[MU__INITIAL];

    for (size_t k = 0; k < ROW; k++)
        sum += decayed(h, k, 1, 2) / ROW;
    return refer_sgd(h, i) / (sqrt(sum) + h->n[MU__EPSILON]);
}

/* The step of RMSProp as it was at step t, centered or not. */
static double rms_step(const struct history *h, size_t i, size_t t, bool is_centered)
{
    struct history *then = malloc(sizeof *then);
    double rho = h->n[MU__RHO];
    double square;
    double step;

    assert_non_null(then);
    *then = *h;
    then->t = t;
    square = average(then, i, rho, 2);
    if (is_centered)
        square -= pow(average(then, i, rho, 1), 2);
    step = refer_sgd(then, i) / sqrt(square + h->n[MU__EPSILON]);
    free(then);
    return step;
}

static double refer_rmsprop(const struct history *h, size_t i)
{
    return rms_step(h, i, h->t, false);
}

static double rms_with_momentum(const struct history *h, size_t i, bool is_centered)
{
    double sum = 0;

    for (size_t t = 1; t <= h->t; t++)
        sum +=
            pow(h->n[MU__MOMENTUM], (double)(h->t - t)) * rms_step(h, i, t, is_centered);
    return sum;
}

static double refer_rmsprop_momentum(const struct history *h, size_t i)
{
    return rms_with_momentum(h, i, false);
}

static double refer_rmsprop_centered(const struct history *h, size_t i)
{
    return rms_with_momentum(h, i, true);
}

/* Adam by its paper: both averages corrected, epsilon as Keras scales it. */
static double adam_with(const struct history *h, size_t i, double square)
{
    double correction1 = 1 - pow(h->n[MU__BETA1], (double)h->t);
    double correction2 = 1 - pow(h->n[MU__BETA2], (double)h->t);
    double epsilon = h->n[MU__EPSILON] / sqrt(correction2);

    return rate_now(h) * (average(h, i, h->n[MU__BETA1], 1) / correction1) /
           (sqrt(square / correction2) + epsilon);
}

static double refer_adam(const struct history *h, size_t i)
{
    return adam_with(h, i, average(h, i, h->n[MU__BETA2], 2));
}

static double refer_amsgrad(const struct history *h, size_t i)
{
    struct history *then = malloc(sizeof *then);
    double most = 0;

    assert_non_null(then);
    *then = *h;
    for (then->t = 1; then->t <= h->t; then->t++)
        most = fmax(most, average(then, i, h->n[MU__BETA2], 2));
    free(then);
    return adam_with(h, i, most);
}

/* FTRL as the argument of a minimum: x before is not used but for its regularisers. */
static double refer_ftrl(const struct history *h, size_t i)
{
    double p = -h->n[MU__POWER];
    double squares = h->n[MU__INITIAL];
    double z = 0;
    double slope;
    double x;

    for (size_t k = 0; k < h->t; k++) {
        double sigma = (pow(squares + pow(h->g[k][i], 2), p) - pow(squares, p));

        z += h->g[k][i] + 2 * h->n[MU__SHRINKAGE] * h->x[k][i] -
             sigma / h->rates[k] * h->x[k][i];
        squares += pow(h->g[k][i], 2);
    }
    slope = (pow(squares, p) + h->n[MU__BETA]) / rate_now(h) + 2 * h->n[MU__L2];
    x = fabs(z) <= h->n[MU__L1] ? 0 : (copysign(h->n[MU__L1], z) - z) / slope;
    return h->x[h->t - 1][i] - x;
}

static double refer_adadelta(const struct history *h, size_t i)
{
    double rho = h->n[MU__RHO];
    double epsilon = h->n[MU__EPSILON];
    double square = 0;
    double updates = 0;
    double delta = 0;

    for (size_t k = 0; k < h->t; k++) {
        square = rho * square + (1 - rho) * pow(h->g[k][i], 2);
        delta = sqrt((updates + epsilon) / (square + epsilon)) * h->g[k][i];
        updates = rho * updates + (1 - rho) * delta * delta;
    }
    return rate_now(h) * delta;
}

static double refer_adamax(const struct history *h, size_t i)
{
    double most = 0;

    for (size_t k = 1; k <= h->t; k++)
        most =
            fmax(most, pow(h->n[MU__BETA2], (double)(h->t - k)) * fabs(h->g[k - 1][i]));
    return rate_now(h) * average(h, i, h->n[MU__BETA1], 1) /
           (1 - pow(h->n[MU__BETA1], (double)h->t)) / (most + h->n[MU__EPSILON]);
}

static double nadam_mu(const struct history *h, size_t t)
{
    return h->n[MU__BETA1] * (1 - pow(0.96, (double)t) / 2);
}

static double refer_nadam(const struct history *h, size_t i)
{
    double product = 1;
    double next = nadam_mu(h, h->t + 1);
    double m = average(h, i, h->n[MU__BETA1], 1);
    double v = average(h, i, h->n[MU__BETA2], 2);

    for (size_t k = 1; k <= h->t; k++)
        product *= nadam_mu(h, k);
    m = next * m / (1 - product * next) +
        (1 - nadam_mu(h, h->t)) * h->g[h->t - 1][i] / (1 - product);
    v /= 1 - pow(h->n[MU__BETA2], (double)h->t);
    return rate_now(h) * m / (sqrt(v) + h->n[MU__EPSILON]);
}

static double refer_lion(const struct history *h, size_t i)
{
    double g = h->g[h->t - 1][i];
    double m =
        (average(h, i, h->n[MU__BETA2], 1) - (1 - h->n[MU__BETA2]) * g) / h->n[MU__BETA2];
    double way = h->n[MU__BETA1] * m + (1 - h->n[MU__BETA1]) * g;

    return way > 0 ? rate_now(h) : way < 0 ? -rate_now(h) : 0;
}

static double lamb_part(const struct history *h, size_t i)
{
    double t = (double)h->t;
    double m = average(h, i, h->n[MU__BETA1], 1) / (1 - pow(h->n[MU__BETA1], t));
    double v = average(h, i, h->n[MU__BETA2], 2) / (1 - pow(h->n[MU__BETA2], t));

    return m / (sqrt(v) + h->n[MU__EPSILON]);
}

static double refer_lamb(const struct history *h, size_t i)
{
    double of_x = 0;
    double of_steps = 0;

    for (size_t k = 0; k < ROW; k++) {
        of_x += pow(h->x[h->t - 1][k], 2);
        of_steps += pow(lamb_part(h, k), 2);
    }
    return rate_now(h) * sqrt(of_x / of_steps) * lamb_part(h, i);
}

/* By how much each rule lowers element i. */
static double (*const references[MU__RULE_KINDS])(const struct history *h, size_t i) = {
    [MU__RULE_SGD] = refer_sgd,
    [MU__RULE_MOMENTUM] = refer_momentum,
    [MU__RULE_MOMENTUM_KERAS] = keras_velocity,
    [MU__RULE_NESTEROV] = refer_nesterov,
    [MU__RULE_NESTEROV_KERAS] = refer_nesterov_keras,
    [MU__RULE_ADAGRAD] = refer_adagrad,
    [MU__RULE_ROWWISE_ADAGRAD] = refer_rowwise,
    [MU__RULE_RMSPROP] = refer_rmsprop,
    [MU__RULE_RMSPROP_MOMENTUM] = refer_rmsprop_momentum,
    [MU__RULE_RMSPROP_CENTERED] = refer_rmsprop_centered,
    [MU__RULE_ADAM] = refer_adam,
    [MU__RULE_ADAMW] = refer_adam,
    [MU__RULE_AMSGRAD] = refer_amsgrad,
    [MU__RULE_FTRL] = refer_ftrl,
    [MU__RULE_ADADELTA] = refer_adadelta,
    [MU__RULE_ADAMAX] = refer_adamax,
    [MU__RULE_NADAM] = refer_nadam,
    [MU__RULE_LION] = refer_lion,
    [MU__RULE_LAMB] = refer_lamb,
};

/* Numbers from -2 to 2, never near 0, the same in each run. */
static double next_number(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1;
    return ((double)(*seed >> 40) / 0x1p24 + 0.05) *
           ((*seed >> 39 & 1) != 0 ? 1.9 : -1.9);
}

struct comparison {
    struct mu__rule rule;
    struct history h;
    double x64[ROW];
    float x32[ROW];
    double slots64[MU__RULE_SLOTS_MAX][ROW];
    float slots32[MU__RULE_SLOTS_MAX][ROW];
};

static void step_both(struct comparison *c)
{
    void *const at64[] = {c->slots64[0], c->slots64[1], c->slots64[2]};
    void *const at32[] = {c->slots32[0], c->slots32[1], c->slots32[2]};
    float g32[ROW];

    for (size_t i = 0; i < ROW; i++)
        g32[i] = (float)c->h.g[c->h.t - 1][i];
    mu__rule_apply(&c->rule, MU_F64, c->x64, at64, c->h.g[c->h.t - 1], ROW, c->h.t);
    mu__rule_apply(&c->rule, MU_F32, c->x32, at32, g32, ROW, c->h.t);
}

static void step_reference(struct comparison *c)
{
    struct history *h = &c->h;
    double *x = h->x[h->t - 1];

    for (size_t i = 0; i < ROW; i++)
        x[i] -= rate_now(h) * c->rule.numbers[MU__WEIGHT_DECAY] * x[i];
    for (size_t i = 0; i < ROW; i++)
        h->x[h->t][i] = x[i] - references[c->rule.kind](h, i);
}

static void begin_comparison(struct comparison *c, uint32_t kind, uint64_t *seed)
{
    c->rule = mu__rule_defaults(kind);
    c->rule.numbers[MU__WEIGHT_DECAY] = 0.01;
    if (kind == MU__RULE_FTRL) {
        c->rule.numbers[MU__POWER] = -0.3;
        c->rule.numbers[MU__L1] = 0.02;
        c->rule.numbers[MU__L2] = 0.1;
        c->rule.numbers[MU__SHRINKAGE] = 0.05;
        c->rule.numbers[MU__BETA] = 0.2;
    }
    for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++) {
        mu__rule_slot_fill(&c->rule, MU_F64, k, c->slots64[k], ROW);
        mu__rule_slot_fill(&c->rule, MU_F32, k, c->slots32[k], ROW);
    }
    c->h.n = c->rule.numbers;
    for (size_t i = 0; i < ROW; i++) {
        c->h.x[0][i] = next_number(seed);
        c->x64[i] = c->h.x[0][i];
        c->x32[i] = (float)c->x64[i];
    }
}

static void check_step(const struct comparison *c)
{
    for (size_t i = 0; i < ROW; i++) {
        double expected = c->h.x[c->h.t][i];
        double scale = fabs(expected) + 1;

        if (!(fabs(c->x64[i] - expected) < 1e-11 * scale) ||
            !(fabs((double)c->x32[i] - expected) < 1e-4 * scale))
            fail_msg("%s, step %zu, element %zu: %.17g and %.9g, expected %.17g",
                     mu__rule_kind(c->rule.kind)->name, c->h.t, i, c->x64[i],
                     (double)c->x32[i], expected);
    }
}

/* The rate changes on the way, as a schedule changes it. */
TEST(test_rules_written_twice)
{
    struct comparison *c = malloc(sizeof *c);
    uint64_t seed = 25;

    assert_non_null(c);
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++) {
        memset(c, 0, sizeof *c);
        begin_comparison(c, kind, &seed);
        for (c->h.t = 1; c->h.t <= ROUNDS; c->h.t++) {
            c->rule.numbers[MU__RATE] = 0.02 / (1 + (double)c->h.t / 20);
            c->h.rates[c->h.t - 1] = c->rule.numbers[MU__RATE];
            for (size_t i = 0; i < ROW; i++)
                c->h.g[c->h.t - 1][i] = next_number(&seed);
            step_both(c);
            step_reference(c);
            check_step(c);
        }
    }
    free(c);
}

TEST_PROGRAM()
