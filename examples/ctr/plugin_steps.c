/* The functions of workers.
 *
 * ctr_step      asynchronous: computes the gradient of a shard, and writes it
 * ctr_gradient  synchronous: computes the gradient of a shard, and returns it
 * ctr_apply     synchronous: sums gradients in the order of its arguments, and writes
 *               the sum. It runs again with the same arguments if its worker is lost
 * ctr_sum       a checksum of the rows of a shard's ids */
#include "plugin_ctr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The shard of a closure: of a dataset, whose first shard is `args`, or alone. */
static int shard_read(mu_run *run, const struct ctr *ctr, uint64_t *ret_shard)
{
    const mu_value *args = mu_run_args(run);
    int64_t first = 0;
    int64_t shard;

    (void)mu_value_get_int(mu_value_find(args, "args"), &first);
    if (mu_value_get_int(mu_value_find(args, "shard"), &shard) != 0 || shard < 0 ||
        first < 0 || (uint64_t)first + (uint64_t)shard >= ctr->source.train)
        return mu_run_fail(run, -MU_EINVALID,
                           "expected a map with the whole number shard, below %llu",
                           (unsigned long long)ctr->source.train);
    *ret_shard = (uint64_t)first + (uint64_t)shard;
    return 0;
}

static int ctr_step(mu_run *run, void *user)
{
    struct gradient gradient;
    uint64_t shard;
    mu_error error;
    int rv = shard_read(run, user, &shard);

    if (rv != 0)
        return rv;
    if (gradient_compute(user, mu_run_node(run), shard, &error, &gradient) != 0)
        return mu_run_fail_with(run, &error);
    rv = gradient_write(user, run, &gradient);
    gradient_done(&gradient);
    return rv;
}

/* ---- Gradients as values ---- */

static int set_tensor(mu_value *map, const char *key, int dtype, const void *data,
                      uint64_t count)
{
    return mu_value_set(map, key, mu_value_tensor(dtype, 1, &count, data));
}

static mu_value *value_of_gradient(const struct gradient *g, uint64_t dim)
{
    mu_value *map = mu_value_map();

    if (set_tensor(map, "ids", MU_U64, g->ids, g->count) == 0 &&
        set_tensor(map, "weights", MU_F32, g->weights, g->count) == 0 &&
        set_tensor(map, "factors", MU_F32, g->factors, g->count * dim) == 0 &&
        set_tensor(map, "bias", MU_F32, &g->bias, 1) == 0 &&
        set_tensor(map, "counts", MU_I64, g->counts, COUNTS) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static int ctr_gradient_function(mu_run *run, void *user)
{
    const struct ctr *ctr = user;
    struct gradient gradient;
    mu_value *value;
    uint64_t shard;
    mu_error error;
    int rv = shard_read(run, user, &shard);

    if (rv != 0)
        return rv;
    if (gradient_compute(user, mu_run_node(run), shard, &error, &gradient) != 0)
        return mu_run_fail_with(run, &error);
    value = value_of_gradient(&gradient, ctr->settings.factors);
    gradient_done(&gradient);
    if (value == NULL)
        return mu_run_fail(run, -MU_ENOMEM, "no memory for a gradient");
    mu_run_return(run, value);
    return 0;
}

/* ---- Sums of gradients ---- */

/* A gradient in a value, which owns it. */
struct part {
    mu_tensor ids;
    mu_tensor weights;
    mu_tensor factors;
    mu_tensor bias;
    mu_tensor counts;
    size_t count;
};

static int read_part(const mu_value *map, size_t dim, struct part *ret_part)
{
    const struct {
        const char *key;
        mu_tensor *tensor;
        int dtype;
    } rows[] = {
        {"ids", &ret_part->ids, MU_U64},         {"weights", &ret_part->weights, MU_F32},
        {"factors", &ret_part->factors, MU_F32}, {"bias", &ret_part->bias, MU_F32},
        {"counts", &ret_part->counts, MU_I64},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (mu_value_get_tensor(mu_value_find(map, rows[i].key), rows[i].tensor) != 0 ||
            rows[i].tensor->dtype != rows[i].dtype)
            return -MU_EINVALID;
    ret_part->count = ret_part->ids.bytes / sizeof(uint64_t);
    if (ret_part->weights.bytes != ret_part->count * sizeof(float) ||
        ret_part->factors.bytes != ret_part->count * dim * sizeof(float) ||
        ret_part->bias.bytes != sizeof(float) ||
        ret_part->counts.bytes != COUNTS * sizeof(int64_t))
        return -MU_EINVALID;
    return 0;
}

/* Add a part, whose ids have these places in the sum. */
static void add_part(struct gradient *sum, const struct part *part,
                     const uint32_t *places, size_t dim)
{
    const float *weights = part->weights.data;
    const float *factors = part->factors.data;
    const int64_t *counts = part->counts.data;

    for (size_t i = 0; i < part->count; i++) {
        sum->weights[places[i]] += weights[i];
        for (size_t k = 0; k < dim; k++)
            sum->factors[places[i] * dim + k] += factors[i * dim + k];
    }
    sum->bias += *(const float *)part->bias.data;
    for (size_t i = 0; i < COUNTS; i++)
        sum->counts[i] += counts[i];
}

/* All ids of the parts, one part behind the other. */
static uint64_t *join_ids(const struct part *parts, size_t count, size_t *ret_ids)
{
    uint64_t *ids;
    size_t all = 0;

    for (size_t i = 0; i < count; i++)
        all += parts[i].count;
    ids = malloc((all + 1) * sizeof *ids);
    *ret_ids = all;
    all = 0;
    for (size_t i = 0; ids != NULL && i < count; i++) {
        memcpy(ids + all, parts[i].ids.data, parts[i].ids.bytes);
        all += parts[i].count;
    }
    return ids;
}

static int sum_batch(const struct part *parts, size_t count, size_t dim,
                     struct ctr_batch *batch, struct gradient *sum)
{
    size_t at = 0;

    *sum = (struct gradient){.count = batch->count};
    sum->weights = calloc(batch->count + 1, sizeof *sum->weights);
    sum->factors = calloc(batch->count * dim + 1, sizeof *sum->factors);
    if (sum->weights == NULL || sum->factors == NULL) {
        gradient_done(sum);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        add_part(sum, &parts[i], batch->places + at, dim);
        at += parts[i].count;
    }
    sum->ids = batch->ids;
    batch->ids = NULL;
    return 0;
}

static int sum_parts(const struct part *parts, size_t count, size_t dim,
                     struct gradient *ret_sum)
{
    struct ctr_batch batch;
    size_t ids_count;
    uint64_t *ids = join_ids(parts, count, &ids_count);
    int rv = ids == NULL ? -ENOMEM : ctr_batch_make(ids, ids_count, &batch);

    free(ids);
    if (rv != 0)
        return rv;
    rv = sum_batch(parts, count, dim, &batch, ret_sum);
    ctr_batch_done(&batch);
    return rv;
}

static int ctr_apply(mu_run *run, void *user)
{
    struct ctr *ctr = user;
    const mu_value *args = mu_run_args(run);
    const size_t count = mu_value_count(args);
    struct part *parts = calloc(count + 1, sizeof *parts);
    struct gradient sum;
    mu_error error;
    int rv = parts == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = read_part(mu_value_at(args, i), ctr->settings.factors, &parts[i]);
    if (rv == 0 && sum_parts(parts, count, ctr->settings.factors, &sum) != 0)
        rv = -MU_ENOMEM;
    free(parts);
    if (rv != 0)
        return mu_run_fail(run, rv, "ctr_apply expects a list of gradients");
    if (model_open(ctr, mu_run_node(run), &error) == 0)
        rv = gradient_write(ctr, run, &sum);
    else
        rv = mu_run_fail_with(run, &error);
    gradient_done(&sum);
    return rv;
}

/* ---- The checksum ---- */

static uint64_t hash_row(uint64_t hash, const float *row, size_t dim)
{
    for (size_t k = 0; k < dim; k++) {
        uint32_t bits;

        memcpy(&bits, &row[k], sizeof bits);
        hash = ctr_mix(hash ^ bits);
    }
    return hash;
}

/* A sum of the rows' hashes does not depend on their order. */
static uint64_t sum_rows(const struct ctr_batch *batch, const struct ctr_rows *rows)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < batch->count; i++) {
        const uint64_t hash = hash_row(ctr_mix(batch->ids[i]), rows->weights + i, 1);

        sum += hash_row(hash, rows->factors + i * rows->dim, rows->dim);
    }
    return sum;
}

static int sum_lines(struct ctr *ctr, mu_node *node, const struct ctr_lines *lines,
                     mu_error *ret_error, uint64_t *ret_sum)
{
    struct ctr_batch batch;
    struct ctr_rows rows;
    int rv;

    if (ctr_batch_make(lines->ids, lines->count * CTR_FIELDS, &batch) != 0)
        return ctr_failed(ret_error, -ENOMEM, "a batch");
    rv = model_rows(ctr, node, &batch, ret_error, &rows);
    if (rv == 0) {
        *ret_sum = sum_rows(&batch, &rows) + hash_row(0, &rows.bias, 1);
        model_rows_done(&rows);
    }
    ctr_batch_done(&batch);
    return rv;
}

static int ctr_sum(mu_run *run, void *user)
{
    struct ctr *ctr = user;
    struct ctr_lines lines;
    uint64_t sum = 0;
    uint64_t shard;
    mu_error error;
    int rv = shard_read(run, ctr, &shard);

    if (rv != 0)
        return rv;
    rv = source_read(&ctr->source, shard, 1, NULL, &error, &lines);
    if (rv == 0) {
        rv = sum_lines(ctr, mu_run_node(run), &lines, &error, &sum);
        ctr_lines_done(&lines);
    }
    if (rv != 0)
        return mu_run_fail_with(run, &error);
    mu_run_return(run, mu_value_int((int64_t)sum));
    return 0;
}

int register_steps(mu_node *node, struct ctr *ctr)
{
    const struct {
        const char *name;
        mu_function_fn function;
    } rows[] = {
        {"ctr_step", ctr_step},
        {"ctr_gradient", ctr_gradient_function},
        {"ctr_apply", ctr_apply},
        {"ctr_sum", ctr_sum},
    };
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < sizeof rows / sizeof rows[0]; i++)
        rv = mu_node_register_function(node, rows[i].name, rows[i].function, ctr, 0);
    return rv;
}
