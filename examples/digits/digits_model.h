/* A multilayer perceptron for the digits: 64 inputs, a hidden layer of ReLUs, 10 classes
 * with softmax. Knows nothing of muster, of training loops or of optimizers.
 *
 * All functions are pure: they read what they are given, write what they return, and
 * allocate nothing. Any thread may call them at any time. */
#ifndef DIGITS_MODEL_H
#define DIGITS_MODEL_H

#include "digits_data.h"

enum {
    DIGITS_TENSORS = 4, /* W1, b1, W2, b2 */
    DIGITS_HIDDEN_DEFAULT = 64,
    DIGITS_HIDDEN_MAX = 1024 /* a row's activations live on the stack */
};

/* The first layer sees pixels less this, the mean over all images. Not centred, pixels
 * are all positive and pull every weight of a unit the same way; asynchronous training
 * then needs a rate several times smaller to stay stable. */
#define DIGITS_MIDDLE 0.305f

/* What one tensor of the model looks like, and where it is in a flat array of them all.
 * Rows come first: W1[i][j] at i * hidden + j. */
struct digits_tensor {
    const char *name; /* "W1", "b1", "W2", "b2"; static */
    unsigned rank;    /* 2 for W1 and W2, 1 for b1 and b2 */
    uint64_t dims[2]; /* the first `rank` of them count */
    size_t offset;    /* in floats, in a flat array */
    size_t count;     /* in floats */
};

/* A model's parameters, one array per tensor, not owned. */
struct digits_model {
    size_t hidden;
    const float *w1; /* [DIGITS_PIXELS][hidden] */
    const float *b1; /* [hidden] */
    const float *w2; /* [hidden][DIGITS_CLASSES] */
    const float *b2; /* [DIGITS_CLASSES] */
};

/* How well a model does on some rows. */
struct digits_score {
    double loss;     /* mean cross-entropy, in nats */
    double accuracy; /* 0 to 1 */
};

/* Floats in all tensors together; 0 unless 1 <= hidden <= DIGITS_HIDDEN_MAX. */
size_t digits_model_size(size_t hidden);

/* The i-th tensor, in the order W1, b1, W2, b2. Returns 0; -EINVAL for a `hidden` that
 * digits_model_size() refuses, -ERANGE when i is not below DIGITS_TENSORS. */
int digits_model_tensor(size_t hidden, size_t i, struct digits_tensor *ret_tensor);

/* The model whose tensors follow each other in `flat`, which must outlive it. `hidden`
 * is one that digits_model_size() accepts. */
struct digits_model digits_model_view(size_t hidden, const float *flat);

/* Draw first parameters: weights uniform within +-sqrt(6 / inputs), biases 0. Writes
 * digits_model_size(hidden) floats, on every machine the same for the same seed. Returns
 * 0; -EINVAL for a `hidden` that digits_model_size() refuses. */
int digits_model_init(size_t hidden, uint64_t seed, float *ret_flat);

/* The gradient of the mean cross-entropy over `rows`, and that loss before any step is
 * taken. Writes digits_model_size(hidden) floats, laid out as digits_model_tensor()
 * says. Parameters that are not finite give a loss and a gradient that are not.
 *
 * Returns: 0; -EINVAL for no rows at all or a bad `hidden`, -ERANGE for a row number
 *          that is not below DIGITS_ROWS. */
int digits_model_gradient(const struct digits_model *model,
                          const struct digits_data *data, struct digits_rows rows,
                          float *ret_gradient, double *ret_loss);

/* Loss and accuracy over `rows`. Fails as digits_model_gradient() does. */
int digits_model_score(const struct digits_model *model, const struct digits_data *data,
                       struct digits_rows rows, struct digits_score *ret_score);

#endif
