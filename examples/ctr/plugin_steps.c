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

static const char *const id_keys[TABLES] = {"weight_ids", "factor_ids"};
static const char *const row_keys[TABLES] = {"weights", "factors"};

static mu_value *value_of_gradient(const struct ctr *ctr, const struct gradient *g)
{
    mu_value *map = mu_value_map();
    int rv = 0;

    for (int i = 0; rv == 0 && i < TABLES; i++) {
        const struct pushes *table = &g->tables[i];

        rv = set_tensor(map, id_keys[i], MU_U64, table->ids, table->count);
        if (rv == 0)
            rv = set_tensor(map, row_keys[i], MU_F32, table->rows,
                            table->count * table_dim(ctr, i));
    }
    if (rv == 0 && set_tensor(map, "bias", MU_F32, &g->bias, 1) == 0 &&
        set_tensor(map, "counts", MU_I64, g->counts, COUNTS) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static int ctr_gradient_function(mu_run *run, void *user)
{
    struct gradient gradient;
    mu_value *value;
    uint64_t shard;
    mu_error error;
    int rv = shard_read(run, user, &shard);

    if (rv != 0)
        return rv;
    if (gradient_compute(user, mu_run_node(run), shard, &error, &gradient) != 0)
        return mu_run_fail_with(run, &error);
    value = value_of_gradient(user, &gradient);
    gradient_done(&gradient);
    if (value == NULL)
        return mu_run_fail(run, -MU_ENOMEM, "no memory for a gradient");
    mu_run_return(run, value);
    return 0;
}

/* ---- Sums of gradients ---- */

/* A gradient in a value, which owns it. */
struct part {
    mu_tensor ids[TABLES];
    mu_tensor rows[TABLES];
    mu_tensor bias;
    mu_tensor counts;
    size_t count[TABLES];
};

static int read_tensor(const mu_value *map, const char *key, int dtype,
                       mu_tensor *ret_tensor)
{
    int rv = mu_value_get_tensor(mu_value_find(map, key), ret_tensor);

    return rv == 0 && ret_tensor->dtype != dtype ? -MU_EINVALID : rv;
}

static int read_part(const struct ctr *ctr, const mu_value *map, struct part *ret_part)
{
    struct part part;

    for (int i = 0; i < TABLES; i++) {
        if (read_tensor(map, id_keys[i], MU_U64, &part.ids[i]) != 0 ||
            read_tensor(map, row_keys[i], MU_F32, &part.rows[i]) != 0)
            return -MU_EINVALID;
        part.count[i] = part.ids[i].bytes / sizeof(uint64_t);
        if (part.rows[i].bytes != part.count[i] * table_dim(ctr, i) * sizeof(float))
            return -MU_EINVALID;
    }
    if (read_tensor(map, "bias", MU_F32, &part.bias) != 0 ||
        read_tensor(map, "counts", MU_I64, &part.counts) != 0 ||
        part.bias.bytes != sizeof(float) || part.counts.bytes != COUNTS * sizeof(int64_t))
        return -MU_EINVALID;
    *ret_part = part;
    return 0;
}

/* All ids of the parts in a table, one part behind the other, each id once. */
static int join_ids(const struct part *parts, size_t count, int table,
                    struct ctr_batch *ret_batch)
{
    uint64_t *ids;
    size_t all = 0;
    int rv;

    for (size_t i = 0; i < count; i++)
        all += parts[i].count[table];
    ids = malloc((all + 1) * sizeof *ids);
    all = 0;
    for (size_t i = 0; ids != NULL && i < count; i++) {
        memcpy(ids + all, parts[i].ids[table].data, parts[i].ids[table].bytes);
        all += parts[i].count[table];
    }
    rv = ids == NULL ? -ENOMEM : ctr_batch_make(ids, all, ret_batch);
    free(ids);
    return rv;
}

/* Sum up the parts' rows of one table, in their order. */
static int sum_table(const struct part *parts, size_t count, int table, size_t dim,
                     struct pushes *ret_sum)
{
    const uint32_t *place;
    struct ctr_batch batch;
    float *sums;

    if (join_ids(parts, count, table, &batch) != 0)
        return -ENOMEM;
    sums = calloc(batch.count * dim + 1, sizeof *sums);
    place = batch.places;
    for (size_t i = 0; sums != NULL && i < count; i++) {
        const float *rows = parts[i].rows[table].data;

        for (size_t j = 0; j < parts[i].count[table]; j++, place++)
            for (size_t k = 0; k < dim; k++)
                sums[*place * dim + k] += rows[j * dim + k];
    }
    if (sums != NULL) {
        *ret_sum = (struct pushes){batch.count, batch.ids, sums};
        batch.ids = NULL;
    }
    ctr_batch_done(&batch);
    return sums == NULL ? -ENOMEM : 0;
}

static int sum_parts(const struct ctr *ctr, const struct part *parts, size_t count,
                     struct gradient *ret_sum)
{
    int rv = 0;

    *ret_sum = (struct gradient){0};
    for (int i = 0; rv == 0 && i < TABLES; i++)
        rv = sum_table(parts, count, i, table_dim(ctr, i), &ret_sum->tables[i]);
    for (size_t i = 0; i < count; i++) {
        const int64_t *counts = parts[i].counts.data;

        ret_sum->bias += *(const float *)parts[i].bias.data;
        for (size_t k = 0; k < COUNTS; k++)
            ret_sum->counts[k] += counts[k];
    }
    return rv;
}

static int read_and_sum(const struct ctr *ctr, const mu_value *args,
                        struct gradient *ret_sum)
{
    const size_t count = mu_value_count(args);
    struct part *parts = calloc(count + 1, sizeof *parts);
    int rv = parts == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = read_part(ctr, mu_value_at(args, i), &parts[i]);
    if (rv == 0 && sum_parts(ctr, parts, count, ret_sum) != 0)
        rv = -MU_ENOMEM;
    free(parts);
    return rv;
}

static int ctr_apply(mu_run *run, void *user)
{
    struct ctr *ctr = user;
    struct gradient sum = {0};
    mu_error error;
    int rv = read_and_sum(ctr, mu_run_args(run), &sum);

    if (rv != 0)
        rv = mu_run_fail(run, rv, "ctr_apply expects a list of gradients");
    else if (model_open(ctr, mu_run_node(run), &error) != 0)
        rv = mu_run_fail_with(run, &error);
    else
        rv = gradient_write(ctr, run, &sum);
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
