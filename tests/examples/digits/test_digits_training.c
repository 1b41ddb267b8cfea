/* The digits example's model: the gradient against finite differences, and the training
 * that the example does, here in one loop with the delays of asynchronous workers.
 * MUSTER_DIGITS_SEEDS says how many seeds to train with. */
#include "tests/examples/digits/digits_fixture.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static const float rate = 0.03f;
static const float momentum = 0.5f;

TEST(test_tensors_fill_the_flat_array)
{
    static const char *const names[DIGITS_TENSORS] = {"W1", "b1", "W2", "b2"};
    const size_t bad_hidden[] = {0, DIGITS_HIDDEN_MAX + 1, SIZE_MAX};
    struct digits_tensor tensor;
    size_t end = 0;
    float one = 1.0f;

    for (size_t i = 0; i < DIGITS_TENSORS; i++) {
        assert_int_equal(digits_model_tensor(64, i, &tensor), 0);
        assert_string_equal(tensor.name, names[i]);
        assert_int_equal(tensor.offset, end);
        assert_int_equal(tensor.count,
                         tensor.dims[0] * (tensor.rank == 2 ? tensor.dims[1] : 1));
        end += tensor.count;
    }
    assert_int_equal(end, 4810);
    assert_int_equal(digits_model_size(64), end);
    assert_int_equal(digits_model_tensor(64, DIGITS_TENSORS, &tensor), -ERANGE);

    for (size_t i = 0; i < sizeof bad_hidden / sizeof bad_hidden[0]; i++) {
        assert_int_equal(digits_model_size(bad_hidden[i]), 0);
        assert_int_equal(digits_model_tensor(bad_hidden[i], 0, &tensor), -EINVAL);
        assert_int_equal(digits_model_init(bad_hidden[i], 1, &one), -EINVAL);
    }
    assert_float_equal(one, 1.0f, 0.0f);
}

static float *new_floats(size_t count)
{
    float *floats = calloc(count, sizeof *floats);

    assert_non_null(floats);
    return floats;
}

TEST(test_first_parameters_are_decided_by_their_seed)
{
    const size_t size = digits_model_size(HIDDEN);
    float *one = new_floats(size);
    float *two = new_floats(size);
    struct digits_model model = digits_model_view(HIDDEN, one);
    const float limit = sqrtf(6.0f / 64.0f);

    assert_int_equal(digits_model_init(HIDDEN, 3, one), 0);
    assert_int_equal(digits_model_init(HIDDEN, 3, two), 0);
    assert_memory_equal(one, two, size * sizeof *one);
    assert_int_equal(digits_model_init(HIDDEN, 4, two), 0);
    assert_memory_not_equal(one, two, size * sizeof *one);

    for (size_t i = 0; i < size; i++)
        assert_true(fabsf(one[i]) <= limit);
    for (size_t i = 0; i < HIDDEN; i++)
        assert_float_equal(model.b1[i], 0.0f, 0.0f);
    for (size_t i = 0; i < DIGITS_CLASSES; i++)
        assert_float_equal(model.b2[i], 0.0f, 0.0f);
    free(one);
    free(two);
}

/* One row's loss in doubles, written from the model's definition and sharing no code
 * with it. `p` holds W1, b1, W2, b2 behind each other. */
static double plain_row_loss(size_t hidden, const double *p, uint32_t row)
{
    const double *b1 = p + DIGITS_PIXELS * hidden;
    const double *w2 = b1 + hidden;
    const double *b2 = w2 + hidden * DIGITS_CLASSES;
    double out[DIGITS_CLASSES];
    double sum = 0.0;

    memcpy(out, b2, sizeof out);
    for (size_t j = 0; j < hidden; j++) {
        double h = b1[j];

        for (size_t i = 0; i < DIGITS_PIXELS; i++)
            h += ((double)data->pixels[row][i] - (double)DIGITS_MIDDLE) *
                 p[i * hidden + j];
        for (size_t c = 0; c < DIGITS_CLASSES && h > 0.0; c++)
            out[c] += h * w2[j * DIGITS_CLASSES + c];
    }
    for (size_t c = 0; c < DIGITS_CLASSES; c++)
        sum += exp(out[c]);
    return log(sum) - out[data->labels[row]];
}

static double plain_loss(size_t hidden, const double *p, struct digits_rows rows)
{
    double loss = 0.0;

    for (size_t i = 0; i < rows.count; i++)
        loss += plain_row_loss(hidden, p, rows.index[i]);
    return loss / (double)rows.count;
}

/* The slope of the plain loss along parameter `i`, by central difference. */
static double plain_slope(size_t hidden, double *p, size_t i, struct digits_rows rows)
{
    const double step = 1e-6;
    const double kept = p[i];
    double up;
    double down;

    p[i] = kept + step;
    up = plain_loss(hidden, p, rows);
    p[i] = kept - step;
    down = plain_loss(hidden, p, rows);
    p[i] = kept;
    return (up - down) / (2.0 * step);
}

static void check_gradient(size_t hidden, struct digits_rows rows)
{
    const size_t size = digits_model_size(hidden);
    struct digits_random random = {hidden};
    float *flat = new_floats(size);
    float *gradient = new_floats(size);
    double *p = calloc(size, sizeof *p);
    struct digits_model model = digits_model_view(hidden, flat);
    double loss = 0.0;

    assert_non_null(p);
    for (size_t i = 0; i < size; i++) {
        flat[i] = 0.3f * digits_random_sign(&random);
        p[i] = (double)flat[i];
    }
    assert_int_equal(digits_model_gradient(&model, data, rows, gradient, &loss), 0);
    assert_true(fabs(loss - plain_loss(hidden, p, rows)) < 1e-5);
    for (size_t i = 0; i < size; i++) {
        double slope = plain_slope(hidden, p, i, rows);

        if (!(fabs(slope - (double)gradient[i]) < 1e-5 + 1e-4 * fabs(slope)))
            fail_msg("hidden %zu, rows %zu, parameter %zu: gradient %g, difference %g",
                     hidden, rows.count, i, (double)gradient[i], slope);
    }
    free(p);
    free(gradient);
    free(flat);
}

TEST(test_gradient_is_the_slope_of_the_loss)
{
    static const uint32_t index[] = {0, 1, 7, 7, 500, 1234, 1796};
    static const size_t hiddens[] = {1, 5, 8, 19};

    for (size_t i = 0; i < sizeof hiddens / sizeof hiddens[0]; i++) {
        check_gradient(hiddens[i], (struct digits_rows){index, 1});
        check_gradient(hiddens[i], (struct digits_rows){index, 7});
    }
}

TEST(test_bad_batches_are_refused)
{
    static const uint32_t good[] = {0, DIGITS_ROWS - 1};
    static const uint32_t bad[] = {0, DIGITS_ROWS};
    static const struct {
        size_t hidden;
        struct digits_rows rows;
        int rv;
    } cases[] = {
        {2, {good, 2}, 0},
        {2, {good, 0}, -EINVAL},
        {2, {bad, 2}, -ERANGE},
        {0, {good, 2}, -EINVAL},
        {DIGITS_HIDDEN_MAX + 1, {good, 2}, -EINVAL},
        {SIZE_MAX, {good, 2}, -EINVAL},
    };
    float flat[256] = {0.0f};

    assert_true(digits_model_size(2) <= sizeof flat / sizeof flat[0]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct digits_model model = digits_model_view(2, flat);
        struct digits_score score = {-1.0, -1.0};
        float gradient[256] = {-1.0f};
        double loss = -1.0;

        model.hidden = cases[i].hidden;
        assert_int_equal(digits_model_gradient(&model, data, cases[i].rows, gradient,
                                               &loss),
                         cases[i].rv);
        assert_int_equal(digits_model_score(&model, data, cases[i].rows, &score),
                         cases[i].rv);
        assert_true((loss < 0.0) == (cases[i].rv != 0));
        assert_true((gradient[0] < 0.0f) == (cases[i].rv != 0));
        assert_true((score.loss < 0.0) == (cases[i].rv != 0));
        assert_true((score.accuracy < 0.0) == (cases[i].rv != 0));
    }
}

/* Parameters of 0 guess class 0 with a tenth each; a bias decides all; and logits far
 * beyond what expf() can hold still give a finite loss. */
TEST(test_score_knows_simple_models)
{
    static const uint32_t index[] = {0, 10, 20, 1}; /* 0, 0, 0, 1 */
    const struct digits_rows rows = {index, 4};
    float flat[256] = {0.0f};
    float gradient[256];
    struct digits_model model = digits_model_view(2, flat);
    struct digits_score score;
    double loss;

    assert_int_equal(digits_model_score(&model, data, rows, &score), 0);
    assert_true(fabs(score.loss - log(10.0)) < 1e-6);
    assert_true(fabs(score.accuracy - 0.75) < 1e-12);

    flat[digits_model_size(2) - DIGITS_CLASSES + 1] = 1000.0f;
    assert_int_equal(digits_model_score(&model, data, rows, &score), 0);
    assert_true(fabs(score.loss - 750.0) < 1e-3);
    assert_true(fabs(score.accuracy - 0.25) < 1e-12);
    assert_int_equal(digits_model_gradient(&model, data, rows, gradient, &loss), 0);
    assert_true(fabs(loss - 750.0) < 1e-3);
    assert_float_equal(gradient[digits_model_size(2) - DIGITS_CLASSES], -0.75f, 1e-6f);
}

/* How old the parameters are that a gradient was computed on, in steps. */
enum staleness { FRESH, OLDEST, MIXED };

static uint64_t draw_age(enum staleness staleness, uint64_t step,
                         struct digits_random *random)
{
    uint64_t age = 0;

    if (staleness == OLDEST)
        age = STALE_MAX;
    if (staleness == MIXED)
        age = digits_random_below(random, STALE_MAX + 1);
    return age < step ? age : step;
}

/* One training: the parameters, and those of the steps before. */
struct training {
    struct digits_split split;
    size_t size;
    float *parameters;
    float *velocity;
    float *gradient;
    float *past; /* the last STALE_MAX + 1 parameters, in turn */
};

static void training_init(struct training *t, uint64_t seed)
{
    digits_split_make(SPLIT_SEED, &t->split);
    t->size = digits_model_size(HIDDEN);
    t->parameters = new_floats(t->size);
    t->velocity = new_floats(t->size);
    t->gradient = new_floats(t->size);
    t->past = new_floats(t->size * (STALE_MAX + 1));
    assert_int_equal(digits_model_init(HIDDEN, seed, t->parameters), 0);
}

static void training_done(struct training *t)
{
    free(t->past);
    free(t->gradient);
    free(t->velocity);
    free(t->parameters);
}

static float *past_of(struct training *t, uint64_t step)
{
    return t->past + (size_t)(step % (STALE_MAX + 1)) * t->size;
}

/* One step of SGD with momentum, its gradient `age` steps old. */
static void training_step(struct training *t, uint64_t seed, uint64_t step, uint64_t age)
{
    struct digits_model model = digits_model_view(HIDDEN, past_of(t, step - age));
    uint32_t rows[BATCH];
    double loss;

    memcpy(past_of(t, step), t->parameters, t->size * sizeof *t->parameters);
    assert_int_equal(digits_batch(&t->split, seed, step, BATCH, rows), 0);
    assert_int_equal(digits_model_gradient(&model, data,
                                           (struct digits_rows){rows, BATCH}, t->gradient,
                                           &loss),
                     0);
    for (size_t i = 0; i < t->size; i++) {
        t->velocity[i] = momentum * t->velocity[i] + t->gradient[i];
        t->parameters[i] -= rate * t->velocity[i];
    }
}

static struct digits_score train(uint64_t seed, enum staleness staleness, uint64_t steps)
{
    struct digits_random random = {seed};
    struct digits_score score;
    struct digits_model model;
    struct training t;

    training_init(&t, seed);
    for (uint64_t step = 0; step < steps; step++)
        training_step(&t, seed, step, draw_age(staleness, step, &random));
    model = digits_model_view(HIDDEN, t.parameters);
    assert_int_equal(
        digits_model_score(&model, data,
                           (struct digits_rows){t.split.held, DIGITS_HELD_ROWS}, &score),
        0);
    training_done(&t);
    return score;
}

static uint64_t seeds_count(void)
{
    const char *text = getenv("MUSTER_DIGITS_SEEDS");
    unsigned long count = text != NULL ? strtoul(text, NULL, 10) : 0;

    return count > 0 ? count : SEEDS_USUAL;
}

static void check_training(const char *what, enum staleness staleness, double wanted)
{
    const uint64_t count = seeds_count();
    double worst = 1.0;
    double sum = 0.0;

    for (uint64_t seed = 1; seed <= count; seed++) {
        double accuracy = train(seed, staleness, STEPS).accuracy;

        worst = accuracy < worst ? accuracy : worst;
        sum += accuracy;
        if (!(accuracy >= wanted))
            fail_msg("%s, seed %llu: held-out accuracy %.4f, expected %.2f", what,
                     (unsigned long long)seed, accuracy, wanted);
    }
    print_message("%s: held-out accuracy, worst %.4f, mean %.4f of %llu seeds\n", what,
                  worst, sum / (double)count, (unsigned long long)count);
}

TEST(test_training_reaches_its_accuracy)
{
    check_training("fresh gradients", FRESH, 0.97);
}

TEST(test_training_stands_oldest_gradients)
{
    check_training("gradients 24 steps old", OLDEST, 0.96);
}

TEST(test_training_stands_mixed_gradients)
{
    check_training("gradients 0 to 24 steps old", MIXED, 0.96);
}

TEST(test_training_is_decided_by_its_seed)
{
    for (enum staleness s = FRESH; s <= MIXED; s++) {
        double loss = train(1, s, 60).loss;

        assert_true(fabs(train(1, s, 60).loss - loss) <= 0.0);
        assert_true(fabs(train(2, s, 60).loss - loss) > 0.0);
    }
}

TEST_PROGRAM_WITH(load_data, free_data)
