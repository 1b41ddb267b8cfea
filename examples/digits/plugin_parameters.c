/* The model's parameters: four variables on the parameter servers.
 *
 * W1 is cut in two, so that two servers hold parts of it; each other variable has one
 * server, chosen by its name. Handles are shared by all threads. When a server no longer
 * has a variable (it was restarted), the handle is dropped, the next use opens the
 * variable again, and the last thread that uses the old handle closes it.
 *
 * A variable that a server lost begins again with its initial content, from which this
 * small training recovers. A program that cannot recover would use MU_VARIABLE_EXISTING,
 * and have its chief restore a checkpoint. */
#include "plugin_digits.h"

#include <stdlib.h>

enum {
    TIMEOUT_MS = 30000, /* of one call: enough for a server to restart */
    TRIES_MAX = 5,      /* attempts of one call while servers restart */
    W1_SHARDS = 2,
    LAST = DIGITS_TENSORS - 1
};

/* ---- Handles ---- */

static int open_tensor(mu_node *node, uint64_t seed, size_t i, mu_error *ret_error,
                       mu_variable **ret_variable)
{
    float
        first[DIGITS_PIXELS * HIDDEN + HIDDEN + HIDDEN * DIGITS_CLASSES + DIGITS_CLASSES];
    struct digits_tensor tensor;
    mu_variable_spec spec = {.dtype = MU_F32};

    if (digits_model_init(HIDDEN, seed, first) != 0 ||
        digits_model_tensor(HIDDEN, i, &tensor) != 0)
        return mu_error_set(ret_error, -MU_EINTERNAL, "the model has no tensor %zu", i);
    spec.name = tensor.name;
    spec.rank = tensor.rank;
    spec.dims = tensor.dims;
    spec.shards = i == 0 ? W1_SHARDS : 1;
    spec.initial = first + tensor.offset;
    spec.flags = MU_VARIABLE_RECREATE; /* recreated as a whole if a shard was lost */
    return mu_variable_open(node, &spec, TIMEOUT_MS, ret_error, ret_variable);
}

/* Opens the variable on first use with the lock held, since the other threads need it,
 * too. */
static int use(struct digits *digits, mu_node *node, uint64_t seed, size_t i,
               mu_error *ret_error, struct opened **ret_opened)
{
    int rv = 0;

    (void)pthread_mutex_lock(&digits->lock);
    if (digits->opened[i] == NULL) {
        struct opened *opened = calloc(1, sizeof *opened);

        rv = opened == NULL
                 ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for a variable")
                 : open_tensor(node, seed, i, ret_error, &opened->variable);
        if (rv == 0)
            digits->opened[i] = opened;
        else
            free(opened);
    }
    if (rv == 0) {
        digits->opened[i]->users++;
        *ret_opened = digits->opened[i];
    }
    (void)pthread_mutex_unlock(&digits->lock);
    return rv;
}

/* Release a handle; one that has failed is not used again. */
static void leave(struct digits *digits, size_t i, struct opened *opened, int failed)
{
    (void)pthread_mutex_lock(&digits->lock);
    opened->users--;
    if (failed && digits->opened[i] == opened)
        digits->opened[i] = NULL;
    if (opened->users == 0 && digits->opened[i] != opened) {
        mu_variable_close(opened->variable);
        free(opened);
    }
    (void)pthread_mutex_unlock(&digits->lock);
}

/* ---- Calls on one tensor ---- */

struct call {
    int (*function)(const struct call *call, mu_variable *variable, mu_error *ret_error);
    float *flat;                   /* read: destination */
    const float *gradient;         /* apply */
    const mu_optimizer *optimizer; /* apply */
    uint64_t *ret_version;         /* version */
    struct digits_tensor tensor;
};

static int call_read(const struct call *call, mu_variable *variable, mu_error *ret_error)
{
    return mu_variable_read(variable, call->flat + call->tensor.offset,
                            call->tensor.count * sizeof(float), TIMEOUT_MS, ret_error);
}

static int call_apply(const struct call *call, mu_variable *variable, mu_error *ret_error)
{
    return mu_variable_apply(variable, call->gradient + call->tensor.offset,
                             call->tensor.count * sizeof(float), call->optimizer,
                             TIMEOUT_MS, ret_error);
}

/* The initial content counts as a write. */
static int call_version(const struct call *call, mu_variable *variable,
                        mu_error *ret_error)
{
    uint64_t version;
    int rv = mu_variable_version(variable, TIMEOUT_MS, ret_error, &version);

    if (rv == 0)
        *call->ret_version = version - 1;
    return rv;
}

static int call_nothing(const struct call *call, mu_variable *variable,
                        mu_error *ret_error)
{
    (void)call;
    (void)variable;
    (void)ret_error;
    return 0;
}

/* After -MU_EUNAVAILABLE it is unknown whether a gradient was applied. Applying it twice
 * does no harm here: steps run at least once anyway. */
static int call_tensor(struct digits *digits, mu_node *node, uint64_t seed, size_t i,
                       struct call *call, mu_error *ret_error)
{
    struct opened *opened;
    int rv = 0;

    (void)digits_model_tensor(HIDDEN, i, &call->tensor);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        rv = use(digits, node, seed, i, ret_error, &opened);
        if (rv == 0) {
            rv = call->function(call, opened->variable, ret_error);
            leave(digits, i, opened, rv != 0);
        }
        if (rv != -MU_ENOTFOUND && rv != -MU_EUNAVAILABLE)
            break;
    }
    return rv;
}

static int call_all(struct digits *digits, mu_node *node, uint64_t seed,
                    struct call *call, mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < DIGITS_TENSORS; i++)
        rv = call_tensor(digits, node, seed, i, call, ret_error);
    return rv;
}

/* ---- Calls on the whole model ---- */

int parameters_open(struct digits *digits, mu_node *node, uint64_t seed,
                    mu_error *ret_error)
{
    struct call call = {.function = call_nothing};

    return call_all(digits, node, seed, &call, ret_error);
}

int parameters_read(struct digits *digits, mu_node *node, uint64_t seed, float *flat,
                    mu_error *ret_error)
{
    struct call call = {.function = call_read, .flat = flat};

    return call_all(digits, node, seed, &call, ret_error);
}

int parameters_apply(struct digits *digits, mu_node *node, uint64_t seed,
                     const float *flat, const mu_optimizer *optimizer,
                     mu_error *ret_error)
{
    struct call call = {
        .function = call_apply,
        .gradient = flat,
        .optimizer = optimizer,
    };

    return call_all(digits, node, seed, &call, ret_error);
}

/* The last tensor is written last, so the others have at least as many writes. */
int parameters_version(struct digits *digits, mu_node *node, uint64_t seed,
                       mu_error *ret_error, uint64_t *ret_version)
{
    struct call call = {.function = call_version, .ret_version = ret_version};

    return call_tensor(digits, node, seed, LAST, &call, ret_error);
}

int parameters_score(struct digits *digits, mu_node *node, mu_error *ret_error,
                     struct digits_score *ret_score, uint64_t *ret_version)
{
    const uint64_t seed = digits->settings.seed;
    const struct digits_data *data;
    struct digits_model model;
    struct digits_split split;
    uint64_t version;
    float *flat;
    int rv = digits_images(digits, ret_error, &data);

    if (rv != 0)
        return rv;
    flat = malloc(digits_model_size(HIDDEN) * sizeof *flat);
    if (flat == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the parameters");
    rv = parameters_version(digits, node, seed, ret_error, &version);
    if (rv == 0)
        rv = parameters_read(digits, node, seed, flat, ret_error);
    if (rv == 0) {
        digits_split_make(seed, &split);
        model = digits_model_view(HIDDEN, flat);
        (void)digits_model_score(
            &model, data, (struct digits_rows){split.held, DIGITS_HELD_ROWS}, ret_score);
        *ret_version = version;
    }
    free(flat);
    return rv;
}
