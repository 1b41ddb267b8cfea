/* How the centring of pixels is done: blank pixels, about half of all, are kept cheap by
 * arithmetic. The sum of (x - DIGITS_MIDDLE) * w is the sum of x * w, less DIGITS_MIDDLE
 * times the sum of w. The second term is the same for all rows of a batch, so it is done
 * once per batch, forwards (centred_bias) and backwards (centre_gradient). */
#include "digits_model.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    LANES = 8 /* floats in the inner loop that compilers turn into vector code */
};

/* Activations of one row, kept for the backward pass. */
struct activations {
    float hidden[DIGITS_HIDDEN_MAX];
    float probability[DIGITS_CLASSES];
    double loss;
    size_t guess;
};

/* The gradient's tensors, inside the flat array that the caller provided. */
struct gradient {
    float *w1;
    float *b1;
    float *w2;
    float *b2;
};

size_t digits_model_size(size_t hidden)
{
    if (hidden == 0 || hidden > DIGITS_HIDDEN_MAX)
        return 0;
    return DIGITS_PIXELS * hidden + hidden + hidden * DIGITS_CLASSES + DIGITS_CLASSES;
}

int digits_model_tensor(size_t hidden, size_t i, struct digits_tensor *ret_tensor)
{
    const struct digits_tensor tensors[DIGITS_TENSORS] = {
        {"W1", 2, {DIGITS_PIXELS, hidden}, 0, DIGITS_PIXELS * hidden},
        {"b1", 1, {hidden, 0}, DIGITS_PIXELS * hidden, hidden},
        {"W2",
         2,
         {hidden, DIGITS_CLASSES},
         (DIGITS_PIXELS + 1) * hidden,
         hidden * DIGITS_CLASSES},
        {"b2",
         1,
         {DIGITS_CLASSES, 0},
         (DIGITS_PIXELS + 1 + DIGITS_CLASSES) * hidden,
         DIGITS_CLASSES},
    };

    if (digits_model_size(hidden) == 0)
        return -EINVAL;
    if (i >= DIGITS_TENSORS)
        return -ERANGE;
    *ret_tensor = tensors[i];
    return 0;
}

struct digits_model digits_model_view(size_t hidden, const float *flat)
{
    struct digits_model model = {.hidden = hidden, .w1 = flat};

    assert(digits_model_size(hidden) > 0);

    model.b1 = model.w1 + DIGITS_PIXELS * hidden;
    model.w2 = model.b1 + hidden;
    model.b2 = model.w2 + hidden * DIGITS_CLASSES;
    return model;
}

static void draw_weights(struct digits_random *random, size_t inputs, float *weights,
                         size_t count)
{
    float limit = sqrtf(6.0f / (float)inputs);

    for (size_t i = 0; i < count; i++)
        weights[i] = limit * digits_random_sign(random);
}

int digits_model_init(size_t hidden, uint64_t seed, float *ret_flat)
{
    struct digits_random random = {seed};
    size_t size = digits_model_size(hidden);

    if (size == 0)
        return -EINVAL;
    memset(ret_flat, 0, size * sizeof *ret_flat);
    draw_weights(&random, DIGITS_PIXELS, ret_flat, DIGITS_PIXELS * hidden);
    draw_weights(&random, hidden, ret_flat + (DIGITS_PIXELS + 1) * hidden,
                 hidden * DIGITS_CLASSES);
    return 0;
}

/* Add `scale` times each of `from` to its neighbour in `to`. */
static void add_scaled(size_t count, float scale, const float *restrict from,
                       float *restrict to)
{
    for (; count >= LANES; count -= LANES, from += LANES, to += LANES)
        for (size_t i = 0; i < LANES; i++)
            to[i] += scale * from[i];
    for (size_t i = 0; i < count; i++)
        to[i] += scale * from[i];
}

/* The first layer's bias for pixels that are not centred. */
static void centred_bias(const struct digits_model *model, float *ret_bias)
{
    memcpy(ret_bias, model->b1, model->hidden * sizeof *ret_bias);
    for (size_t i = 0; i < DIGITS_PIXELS; i++)
        add_scaled(model->hidden, -DIGITS_MIDDLE, model->w1 + i * model->hidden,
                   ret_bias);
}

/* About half of an image is blank: those rows of W1 are skipped. */
static void hidden_layer(const struct digits_model *model, const float *bias,
                         const float *pixels, float *hidden)
{
    const size_t count = model->hidden;

    memcpy(hidden, bias, count * sizeof *hidden);
    for (size_t i = 0; i < DIGITS_PIXELS; i++)
        if (pixels[i] > 0.0f)
            add_scaled(count, pixels[i], model->w1 + i * count, hidden);
    for (size_t j = 0; j < count; j++)
        hidden[j] = hidden[j] < 0.0f ? 0.0f : hidden[j];
}

/* Softmax over `logits`, in place of them. The largest is taken off first, so that
 * nothing overflows; the loss comes from the logits, so that it stays finite when the
 * label's probability rounds to 0. */
static void softmax(float *logits, size_t label, double *ret_loss, size_t *ret_guess)
{
    size_t top = 0;
    float top_logit;
    float label_logit;
    float sum = 0.0f;

    for (size_t c = 1; c < DIGITS_CLASSES; c++)
        if (logits[c] > logits[top])
            top = c;
    top_logit = logits[top];
    label_logit = logits[label] - top_logit;
    for (size_t c = 0; c < DIGITS_CLASSES; c++) {
        logits[c] = expf(logits[c] - top_logit);
        sum += logits[c];
    }
    for (size_t c = 0; c < DIGITS_CLASSES; c++)
        logits[c] /= sum;

    *ret_loss = log((double)sum) - (double)label_logit;
    *ret_guess = top;
}

static void forward(const struct digits_model *model, const float *bias,
                    const float *pixels, size_t label, struct activations *ret_row)
{
    float *out = ret_row->probability;

    hidden_layer(model, bias, pixels, ret_row->hidden);
    memcpy(out, model->b2, sizeof ret_row->probability);
    for (size_t j = 0; j < model->hidden; j++)
        add_scaled(DIGITS_CLASSES, ret_row->hidden[j], model->w2 + j * DIGITS_CLASSES,
                   out);
    softmax(out, label, &ret_row->loss, &ret_row->guess);
}

/* Add the second layer's gradient, and turn `hidden` into the loss' slope there: 0 where
 * the ReLU was off. */
static void backward_out(const struct digits_model *model, const float *slope,
                         float *hidden, const struct gradient *g)
{
    add_scaled(DIGITS_CLASSES, 1.0f, slope, g->b2);
    for (size_t j = 0; j < model->hidden; j++) {
        const float *w = model->w2 + j * DIGITS_CLASSES;
        float back = 0.0f;

        if (hidden[j] <= 0.0f)
            continue;
        add_scaled(DIGITS_CLASSES, hidden[j], slope, g->w2 + j * DIGITS_CLASSES);
        for (size_t c = 0; c < DIGITS_CLASSES; c++)
            back += w[c] * slope[c];
        hidden[j] = back;
    }
}

/* Add the first layer's gradient as if pixels were not centred. */
static void backward_hidden(size_t count, const float *pixels, const float *slope,
                            const struct gradient *g)
{
    add_scaled(count, 1.0f, slope, g->b1);
    for (size_t i = 0; i < DIGITS_PIXELS; i++)
        if (pixels[i] > 0.0f)
            add_scaled(count, pixels[i], slope, g->w1 + i * count);
}

/* Correct the first layer's gradient for the centring of pixels, for all rows at once. */
static void centre_gradient(size_t count, const struct gradient *g)
{
    for (size_t i = 0; i < DIGITS_PIXELS; i++)
        add_scaled(count, -DIGITS_MIDDLE, g->b1, g->w1 + i * count);
}

/* The tensors of a flat gradient, which is set to 0. */
static struct gradient gradient_view(size_t hidden, float *flat)
{
    struct gradient g = {.w1 = flat};

    memset(flat, 0, digits_model_size(hidden) * sizeof *flat);
    g.b1 = g.w1 + DIGITS_PIXELS * hidden;
    g.w2 = g.b1 + hidden;
    g.b2 = g.w2 + hidden * DIGITS_CLASSES;
    return g;
}

static int check(const struct digits_model *model, struct digits_rows rows)
{
    if (digits_model_size(model->hidden) == 0 || rows.count == 0)
        return -EINVAL;
    for (size_t i = 0; i < rows.count; i++)
        if (rows.index[i] >= DIGITS_ROWS)
            return -ERANGE;
    return 0;
}

int digits_model_gradient(const struct digits_model *model,
                          const struct digits_data *data, struct digits_rows rows,
                          float *ret_gradient, double *ret_loss)
{
    float bias[DIGITS_HIDDEN_MAX];
    struct activations row;
    struct gradient g;
    double loss = 0.0;
    float share;
    int rv = check(model, rows);

    if (rv != 0)
        return rv;

    share = 1.0f / (float)rows.count;
    g = gradient_view(model->hidden, ret_gradient);
    centred_bias(model, bias);
    for (size_t i = 0; i < rows.count; i++) {
        const float *pixels = data->pixels[rows.index[i]];
        const size_t label = data->labels[rows.index[i]];

        forward(model, bias, pixels, label, &row);
        loss += row.loss;
        row.probability[label] -= 1.0f;
        for (size_t c = 0; c < DIGITS_CLASSES; c++)
            row.probability[c] *= share;
        backward_out(model, row.probability, row.hidden, &g);
        backward_hidden(model->hidden, pixels, row.hidden, &g);
    }
    centre_gradient(model->hidden, &g);
    *ret_loss = loss / (double)rows.count;
    return 0;
}

int digits_model_score(const struct digits_model *model, const struct digits_data *data,
                       struct digits_rows rows, struct digits_score *ret_score)
{
    float bias[DIGITS_HIDDEN_MAX];
    struct activations row;
    double loss = 0.0;
    size_t right = 0;
    int rv = check(model, rows);

    if (rv != 0)
        return rv;

    centred_bias(model, bias);
    for (size_t i = 0; i < rows.count; i++) {
        const size_t label = data->labels[rows.index[i]];

        forward(model, bias, data->pixels[rows.index[i]], label, &row);
        loss += row.loss;
        right += row.guess == label;
    }
    ret_score->loss = loss / (double)rows.count;
    ret_score->accuracy = (double)right / (double)rows.count;
    return 0;
}
