/* The model on the parameter servers: a table of weights by FTRL, one of factors by
 * Adagrad, and two dense variables: the bias, and what closures have done. */
#include "plugin_ctr.h"

#include "../progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 60000 }; /* of one call: enough for a server to be replaced */

static const double BIAS_RATE = 0.05;
static const double FACTOR_INITIAL = 0.01; /* standard deviation */

/* ---- Opening ---- */

static int open_weights(struct ctr *ctr, mu_node *node, mu_error *ret_error)
{
    mu_optimizer ftrl = mu_optimizer_make(MU_OPTIMIZER_FTRL, ctr->settings.rate);
    const mu_table_spec spec = {.name = "weights", .dim = 1, .optimizer = &ftrl};

    ftrl.l1 = ctr->settings.l1;
    ftrl.l2 = ctr->settings.l2;
    ftrl.beta = 1;
    return mu_table_open(node, &spec, TIMEOUT_MS, ret_error, &ctr->weights);
}

static int open_factors(struct ctr *ctr, mu_node *node, mu_error *ret_error)
{
    const mu_optimizer adagrad =
        mu_optimizer_make(MU_OPTIMIZER_ADAGRAD, ctr->settings.factor_rate);
    const mu_initializer initial = {MU_INITIALIZER_NORMAL, ctr->settings.seed, 0,
                                    FACTOR_INITIAL};
    const mu_table_spec spec = {
        .name = "factors",
        .dim = (unsigned)ctr->settings.factors,
        .initializer = &initial,
        .optimizer = &adagrad,
    };

    if (ctr->settings.factors == 0)
        return 0;
    return mu_table_open(node, &spec, TIMEOUT_MS, ret_error, &ctr->factors);
}

static int open_variable(mu_node *node, const char *name, int dtype, uint64_t count,
                         mu_error *ret_error, mu_variable **ret_variable)
{
    const mu_variable_spec spec = {
        .name = name,
        .dtype = dtype,
        .rank = 1,
        .dims = &count,
        .shards = 1,
    };

    return mu_variable_open(node, &spec, TIMEOUT_MS, ret_error, ret_variable);
}

/* What is open stays open if a later one cannot be opened: the next call goes on. */
static int open_all(struct ctr *ctr, mu_node *node, mu_error *ret_error)
{
    int rv = 0;

    if (ctr->weights == NULL)
        rv = open_weights(ctr, node, ret_error);
    if (rv == 0 && ctr->factors == NULL)
        rv = open_factors(ctr, node, ret_error);
    if (rv == 0 && ctr->bias == NULL)
        rv = open_variable(node, "bias", MU_F32, 1, ret_error, &ctr->bias);
    if (rv == 0 && ctr->counts == NULL)
        rv = open_variable(node, "counts", MU_I64, COUNTS, ret_error, &ctr->counts);
    return rv;
}

int model_open(struct ctr *ctr, mu_node *node, mu_error *ret_error)
{
    int rv;

    (void)pthread_mutex_lock(&ctr->lock);
    rv = open_all(ctr, node, ret_error);
    (void)pthread_mutex_unlock(&ctr->lock);
    return rv;
}

/* ---- Reading ---- */

/* The factors of ids that have a weight; those of others are not looked at. */
static int look_up_factors(struct ctr *ctr, const struct ctr_batch *batch,
                           const float *weights, float *factors, mu_error *ret_error)
{
    const size_t dim = ctr->settings.factors;
    uint64_t *ids = malloc((batch->count + 1) * sizeof *ids);
    float *rows = malloc((batch->count * dim + 1) * sizeof *rows);
    size_t count = 0;
    int rv;

    for (size_t i = 0; ids != NULL && i < batch->count; i++)
        if (weights[i] != 0)
            ids[count++] = batch->ids[i];
    rv = ids == NULL || rows == NULL
             ? ctr_failed(ret_error, -ENOMEM, "rows")
             : mu_table_lookup(ctr->factors, ids, count, rows, TIMEOUT_MS, ret_error);
    for (size_t i = batch->count; rv == 0 && i-- > 0;)
        if (weights[i] != 0)
            memcpy(factors + i * dim, rows + --count * dim, dim * sizeof *rows);
    free(ids);
    free(rows);
    return rv;
}

static int look_up(struct ctr *ctr, const struct ctr_batch *batch, float *weights,
                   float *factors, float *bias, mu_error *ret_error)
{
    int rv = mu_variable_read(ctr->bias, bias, sizeof *bias, TIMEOUT_MS, ret_error);

    if (rv == 0)
        rv = mu_table_lookup(ctr->weights, batch->ids, batch->count, weights, TIMEOUT_MS,
                             ret_error);
    if (rv == 0 && ctr->factors != NULL)
        rv = look_up_factors(ctr, batch, weights, factors, ret_error);
    return rv;
}

int model_rows(struct ctr *ctr, mu_node *node, const struct ctr_batch *batch,
               mu_error *ret_error, struct ctr_rows *ret_rows)
{
    const size_t dim = ctr->settings.factors;
    float *weights = malloc((batch->count + 1) * sizeof *weights);
    float *factors = calloc(batch->count * dim + 1, sizeof *factors);
    float bias = 0;
    int rv = weights == NULL || factors == NULL ? ctr_failed(ret_error, -ENOMEM, "rows")
                                                : model_open(ctr, node, ret_error);

    if (rv == 0)
        rv = look_up(ctr, batch, weights, factors, &bias, ret_error);
    if (rv != 0) {
        free(weights);
        free(factors);
        return rv;
    }
    *ret_rows = (struct ctr_rows){(unsigned)dim, bias, weights, factors};
    return 0;
}

void model_rows_done(struct ctr_rows *rows)
{
    free((void *)rows->weights);
    free((void *)rows->factors);
    *rows = (struct ctr_rows){0};
}

/* The initial content counts as a write. */
int model_version(struct ctr *ctr, mu_node *node, mu_error *ret_error,
                  uint64_t *ret_version)
{
    uint64_t version;
    int rv = model_open(ctr, node, ret_error);

    if (rv == 0)
        rv = mu_variable_version(ctr->bias, TIMEOUT_MS, ret_error, &version);
    if (rv == 0)
        *ret_version = version - 1;
    return rv;
}

int model_counts(struct ctr *ctr, mu_node *node, mu_error *ret_error,
                 int64_t ret_counts[COUNTS])
{
    int rv = model_open(ctr, node, ret_error);

    return rv != 0 ? rv
                   : mu_variable_read(ctr->counts, ret_counts,
                                      COUNTS * sizeof *ret_counts, TIMEOUT_MS, ret_error);
}

/* ---- Gradients ---- */

size_t table_dim(const struct ctr *ctr, int table)
{
    return table == TABLE_WEIGHTS ? 1 : ctr->settings.factors;
}

void gradient_done(struct gradient *gradient)
{
    for (int i = 0; i < TABLES; i++) {
        free(gradient->tables[i].ids);
        free(gradient->tables[i].rows);
    }
    *gradient = (struct gradient){0};
}

static int make_pushes(size_t count, size_t dim, struct pushes *ret_pushes)
{
    *ret_pushes = (struct pushes){
        .ids = malloc((count + 1) * sizeof(uint64_t)),
        .rows = malloc((count * dim + 1) * sizeof(float)),
    };
    return ret_pushes->ids == NULL || ret_pushes->rows == NULL ? -ENOMEM : 0;
}

/* Of a batch: weights of all ids, factors of those that have a weight. */
static void fill_pushes(const struct ctr_batch *batch, const struct ctr_rows *rows,
                        struct pushes *weights, struct pushes *factors)
{
    const size_t dim = rows->dim;

    memcpy(weights->ids, batch->ids, batch->count * sizeof *weights->ids);
    weights->count = batch->count;
    for (size_t i = 0; dim > 0 && i < batch->count; i++) {
        if (rows->weights[i] == 0)
            continue;
        memmove(factors->rows + factors->count * dim, factors->rows + i * dim,
                dim * sizeof *factors->rows);
        factors->ids[factors->count++] = batch->ids[i];
    }
}

static int compute_batch(struct ctr *ctr, mu_node *node, const struct ctr_lines *lines,
                         const struct ctr_batch *batch, mu_error *ret_error,
                         struct gradient *gradient)
{
    struct pushes *tables = gradient->tables;
    struct ctr_rows rows;
    int rv = model_rows(ctr, node, batch, ret_error, &rows);

    if (rv != 0)
        return rv;
    for (int i = 0; rv == 0 && i < TABLES; i++)
        rv = make_pushes(batch->count, table_dim(ctr, i), &tables[i]);
    if (rv == 0) {
        ctr_gradient(batch, &rows, lines->labels, &gradient->bias,
                     tables[TABLE_WEIGHTS].rows, tables[TABLE_FACTORS].rows);
        fill_pushes(batch, &rows, &tables[TABLE_WEIGHTS], &tables[TABLE_FACTORS]);
    }
    model_rows_done(&rows);
    return rv == 0 ? 0 : ctr_failed(ret_error, rv, "a gradient");
}

static int compute_lines(struct ctr *ctr, mu_node *node, const struct ctr_lines *lines,
                         mu_error *ret_error, struct gradient *ret_gradient)
{
    struct gradient gradient = {
        .counts[COUNT_LINES] = (int64_t)lines->count,
        .counts[COUNT_DAMAGED] = (int64_t)lines->damaged,
    };
    struct ctr_batch batch;
    int rv;

    if (ctr_batch_make(lines->ids, lines->count * CTR_FIELDS, &batch) != 0)
        return ctr_failed(ret_error, -ENOMEM, "a batch");
    rv = compute_batch(ctr, node, lines, &batch, ret_error, &gradient);
    ctr_batch_done(&batch);
    for (int i = 0; i < TABLES; i++)
        gradient.counts[COUNT_IDS] += (int64_t)gradient.tables[i].count;
    if (rv == 0)
        *ret_gradient = gradient;
    else
        gradient_done(&gradient);
    return rv;
}

int gradient_compute(struct ctr *ctr, mu_node *node, uint64_t shard, mu_error *ret_error,
                     struct gradient *ret_gradient)
{
    struct ctr_lines lines;
    int rv = source_read(&ctr->source, shard, 1, NULL, ret_error, &lines);

    if (rv != 0)
        return rv;
    if (lines.damaged > 0)
        (void)fprintf(stderr, "ctr: shard %llu: %llu damaged lines are left out: %s\n",
                      (unsigned long long)shard, (unsigned long long)lines.damaged,
                      lines.first_bad);
    nap(ctr->settings.slow_ms);
    rv = compute_lines(ctr, node, &lines, ret_error, ret_gradient);
    ctr_lines_done(&lines);
    return rv;
}

int gradient_write(struct ctr *ctr, mu_run *run, const struct gradient *gradient)
{
    const mu_optimizer adagrad = mu_optimizer_make(MU_OPTIMIZER_ADAGRAD, BIAS_RATE);
    const struct pushes *weights = &gradient->tables[TABLE_WEIGHTS];
    const struct pushes *factors = &gradient->tables[TABLE_FACTORS];
    int rv = mu_run_table_apply(run, ctr->weights, weights->ids, weights->rows,
                                weights->count, NULL);

    if (rv == 0 && ctr->factors != NULL)
        rv = mu_run_table_apply(run, ctr->factors, factors->ids, factors->rows,
                                factors->count, NULL);
    if (rv == 0)
        rv = mu_run_apply(run, ctr->bias, &gradient->bias, sizeof gradient->bias,
                          &adagrad);
    if (rv == 0)
        rv = mu_run_add(run, ctr->counts, gradient->counts, sizeof gradient->counts);
    return rv;
}
