/* Checkpoints of tables and variables, between two rounds of the training: what is in
 * one are the batches below its step, each once. After a whole one come increments, with
 * the rows that have changed since the one before: the job goes on from whole ones, and
 * who serves the model (program_ctr_serve.c) reads both. */
#include "plugin_chief.h"

#include "ctr_saved.h"

#include <errno.h>
#include <stdlib.h>

enum {
    KEEP = 2,       /* whole ones */
    WHOLE_EACH = 8, /* one of so many is whole */
    TIMEOUT_MS = 600000
};

int checkpoint_restore(struct job *job, mu_error *ret_error)
{
    const char *directory = job->ctr->settings.checkpoint;
    uint64_t step;
    char *path;
    int rv;

    if (directory == NULL)
        return 0;
    rv = mu_checkpoint_latest(directory, CTR_SAVED_WHOLE, ret_error, &path, &step);
    if (rv == -MU_ENOTFOUND)
        return 0;
    if (rv == 0) {
        rv = mu_checkpoint_restore(job->node, path, NULL, 0, TIMEOUT_MS, ret_error);
        free(path);
    }
    if (rv == 0 && step > job->ctr->source.train)
        rv = mu_error_set(ret_error, -MU_EPRECONDITION,
                          "%.400s has a checkpoint of a longer job", directory);
    if (rv != 0)
        return rv;
    job->shards = step;
    (void)printf("ctr: goes on behind batch %llu\n", (unsigned long long)step);
    return 0;
}

/* For who serves the model without a node. */
static mu_value *bias_value(struct ctr *ctr, mu_error *ret_error)
{
    float bias = 0;
    mu_value *values;

    if (mu_variable_read(ctr->bias, &bias, sizeof bias, TIMEOUT_MS, ret_error) != 0)
        return NULL;
    values = mu_value_map();
    if (mu_value_set(values, "bias", mu_value_float(bias)) == 0)
        return values;
    mu_value_free(values);
    (void)ctr_failed(ret_error, -ENOMEM, "a checkpoint");
    return NULL;
}

static int save(struct job *job, const mu_checkpoint_options *options,
                mu_error *ret_error)
{
    struct ctr *ctr = job->ctr;
    mu_variable *const variables[] = {ctr->bias, ctr->counts};
    mu_value *values = bias_value(ctr, ret_error);
    char *path = NULL;
    int rv;

    if (values == NULL)
        return ret_error->code;
    rv = mu_checkpoint_save(options, job->shards, variables, 2, values, ret_error, &path);
    mu_value_free(values);
    if (rv != 0)
        return rv;
    free(job->saved);
    job->saved = path;
    job->saves++;
    return 0;
}

int checkpoint_save(struct job *job, mu_error *ret_error)
{
    struct ctr *ctr = job->ctr;
    mu_table *const tables[] = {ctr->weights, ctr->factors};
    const int is_whole = job->saves % WHOLE_EACH == 0;
    mu_checkpoint_options options;

    if (ctr->settings.checkpoint == NULL)
        return 0;
    mu_checkpoint_options_init(&options);
    options.directory = ctr->settings.checkpoint;
    options.name = is_whole ? CTR_SAVED_WHOLE : CTR_SAVED_PART;
    options.max_to_keep = is_whole ? KEEP : WHOLE_EACH;
    options.timeout_ms = TIMEOUT_MS;
    options.base = is_whole ? NULL : job->saved;
    options.tables = tables;
    options.tables_count = ctr->factors == NULL ? 1 : 2;
    return save(job, &options, ret_error);
}
