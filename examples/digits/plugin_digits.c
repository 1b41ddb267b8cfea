/* Training on the handwritten digits: the function that workers run, and the evaluator.
 * The chief's part is in plugin_chief.c. */
#include "plugin_digits.h"

#include "../progress.h"

#include <stdio.h>
#include <stdlib.h>

enum { EVALUATE_EACH_MS = 200 };

int digits_images(struct digits *digits, mu_error *ret_error,
                  const struct digits_data **ret_data)
{
    struct digits_error error;
    char path[DIGITS_PATH_BYTES];
    int rv = 0;

    (void)pthread_mutex_lock(&digits->lock);
    if (digits->data == NULL) {
        rv = digits_data_find(digits->data_path, &error, path);
        if (rv == 0)
            rv = digits_data_load(path, &error, &digits->data);
        if (rv != 0)
            rv = mu_error_set(ret_error, -MU_EPRECONDITION, "%.500s", error.text);
    }
    if (rv == 0)
        *ret_data = digits->data;
    (void)pthread_mutex_unlock(&digits->lock);
    return rv;
}

/* ---- One step, on a worker ---- */

struct step {
    int64_t number;
    int64_t batch;
    int64_t seed;
    int64_t slow_ms;
    mu_optimizer optimizer;
};

static int step_read(mu_run *run, struct step *ret_step)
{
    const mu_value *args = mu_run_args(run);
    struct step step = {.optimizer = mu_optimizer_make(MU_OPTIMIZER_MOMENTUM, 0)};

    if (mu_value_get_int(mu_value_find(args, "step"), &step.number) != 0 ||
        mu_value_get_int(mu_value_find(args, "batch"), &step.batch) != 0 ||
        mu_value_get_int(mu_value_find(args, "seed"), &step.seed) != 0 ||
        mu_value_get_int(mu_value_find(args, "slow_ms"), &step.slow_ms) != 0 ||
        mu_value_get_float(mu_value_find(args, "rate"), &step.optimizer.rate) != 0 ||
        mu_value_get_float(mu_value_find(args, "momentum"), &step.optimizer.momentum) !=
            0)
        return mu_run_fail(run, -MU_EINVALID,
                           "digits_step expects a map with the whole numbers step, "
                           "batch, seed and slow_ms, and the numbers rate and momentum");
    if (step.number < 0 || step.batch < 1 || step.batch > DIGITS_TRAIN_ROWS ||
        step.slow_ms < 0)
        return mu_run_fail(run, -MU_ERANGE,
                           "digits_step expects step and slow_ms from 0, and batch from "
                           "1 to %d",
                           DIGITS_TRAIN_ROWS);
    *ret_step = step;
    return 0;
}

/* The gradient on the step's mini-batch, which its number alone decides: a step that runs
 * again, on another worker, sees the same images. */
static double step_gradient(const struct step *step, const struct digits_data *data,
                            const float *flat, float *ret_gradient)
{
    const struct digits_model model = digits_model_view(HIDDEN, flat);
    struct digits_split split;
    uint32_t rows[DIGITS_TRAIN_ROWS];
    const size_t count = (size_t)step->batch;
    double loss = 0;

    digits_split_make((uint64_t)step->seed, &split);
    (void)digits_batch(&split, (uint64_t)step->seed, (uint64_t)step->number, count, rows);
    (void)digits_model_gradient(&model, data, (struct digits_rows){rows, count},
                                ret_gradient, &loss);
    return loss;
}

static mu_value *step_result(const struct step *step, mu_node *node, double loss)
{
    mu_value *result = mu_value_map();

    if (mu_value_set(result, "step", mu_value_int(step->number)) == 0 &&
        mu_value_set(result, "loss", mu_value_float(loss)) == 0 &&
        mu_value_set(result, "task", mu_value_string(mu_node_task(node))) == 0)
        return result;
    mu_value_free(result);
    return NULL;
}

static int step_take(struct digits *digits, mu_node *node, const struct step *step,
                     mu_error *ret_error, double *ret_loss)
{
    const uint64_t seed = (uint64_t)step->seed;
    const size_t size = digits_model_size(HIDDEN);
    const struct digits_data *data;
    float *flat;
    int rv = digits_images(digits, ret_error, &data);

    if (rv != 0)
        return rv;
    flat = malloc(2 * size * sizeof *flat);
    if (flat == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the parameters");
    rv = parameters_read(digits, node, seed, flat, ret_error);
    if (rv == 0) {
        nap((uint64_t)step->slow_ms);
        *ret_loss = step_gradient(step, data, flat, flat + size);
        rv = parameters_apply(digits, node, seed, flat + size, &step->optimizer,
                              ret_error);
    }
    free(flat);
    return rv;
}

static int digits_step(mu_run *run, void *user)
{
    mu_node *node = mu_run_node(run);
    mu_value *result;
    struct step step;
    mu_error error;
    double loss = 0;
    int rv = step_read(run, &step);

    if (rv != 0)
        return rv;
    rv = step_take(user, node, &step, &error, &loss);
    if (rv != 0)
        return mu_run_fail_with(run, &error);
    result = step_result(&step, node, loss);
    if (result == NULL)
        return mu_run_fail(run, -MU_ENOMEM, "no memory for the result");
    mu_run_return(run, result);
    return 0;
}

/* ---- The evaluator ---- */

static int evaluate(struct digits *digits, mu_node *node, mu_error *ret_error)
{
    struct digits_score score;
    uint64_t version;
    int rv = parameters_score(digits, node, ret_error, &score, &version);

    if (rv != 0)
        return rv;
    rv = mu_node_report_metric(node, "loss", score.loss, version);
    if (rv == 0)
        rv = mu_node_report_metric(node, "accuracy", score.accuracy, version);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "cannot report: %s", mu_strerror(rv));
}

/* Report scores until the job is done. When the parameters cannot be read, it tries again
 * later: the chief decides whether to continue without an evaluator. */
static int evaluator_program(mu_node *node, void *user)
{
    mu_error error = {0};
    mu_error job = {0};
    int code = 0;
    int rv;

    for (;;) {
        rv = mu_node_wait_job(node, EVALUATE_EACH_MS, &job);
        if (rv == 0)
            return job.code;
        if (rv != -MU_EDEADLINE)
            return rv;
        rv = evaluate(user, node, &error);
        if (rv != 0 && rv != code)
            (void)fprintf(stderr, "digits: cannot evaluate: %s\n", error.message);
        code = rv;
    }
}

/* ---- Loading ---- */

/* The states of all nodes, which are never freed: a plugin is never unloaded, and
 * functions may still run while their node is being closed. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct digits *all;

static struct digits *digits_new(const mu_node *node, const struct settings *settings)
{
    struct digits *digits = calloc(1, sizeof *digits);

    if (digits == NULL)
        return NULL;
    if (pthread_mutex_init(&digits->lock, NULL) != 0) {
        free(digits);
        return NULL;
    }
    digits->settings = *settings;
    digits->data_path = mu_node_get_setting(node, "data");
    (void)pthread_mutex_lock(&all_lock);
    digits->next = all;
    all = digits;
    (void)pthread_mutex_unlock(&all_lock);
    return digits;
}

MU_PLUGIN;

int mu_plugin_open(mu_node *node);

int mu_plugin_open(mu_node *node)
{
    struct settings settings;
    struct digits *digits;
    mu_error error;
    int rv = settings_read(node, &error, &settings);

    if (rv != 0) {
        (void)fprintf(stderr, "digits: %s\n", error.message);
        return rv;
    }
    digits = digits_new(node, &settings);
    if (digits == NULL)
        return -MU_ENOMEM;
    rv = mu_node_register_function(node, "digits_step", digits_step, digits, 0);
    if (rv == 0)
        rv = mu_node_register_program(node, "chief", chief_program, digits);
    if (rv == 0)
        rv = mu_node_register_program(node, "evaluator", evaluator_program, digits);
    return rv;
}
