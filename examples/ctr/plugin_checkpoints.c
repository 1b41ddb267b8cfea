/* Checkpoints of tables and variables, between two rounds of the training: what is in
 * one are the batches below its step, each once. */
#include "plugin_chief.h"

#include <stdlib.h>

enum { KEEP = 2, TIMEOUT_MS = 600000 };

int checkpoint_restore(struct job *job, mu_error *ret_error)
{
    const char *directory = job->ctr->settings.checkpoint;
    uint64_t step;
    char *path;
    int rv;

    if (directory == NULL)
        return 0;
    rv = mu_checkpoint_latest(directory, "ctr", ret_error, &path, &step);
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

int checkpoint_save(struct job *job, mu_error *ret_error)
{
    struct ctr *ctr = job->ctr;
    mu_variable *const variables[] = {ctr->bias, ctr->counts};
    mu_table *const tables[] = {ctr->weights, ctr->factors};
    mu_checkpoint_options options;

    if (ctr->settings.checkpoint == NULL)
        return 0;
    mu_checkpoint_options_init(&options);
    options.directory = ctr->settings.checkpoint;
    options.name = "ctr";
    options.max_to_keep = KEEP;
    options.timeout_ms = TIMEOUT_MS;
    options.tables = tables;
    options.tables_count = ctr->factors == NULL ? 1 : 2;
    return mu_checkpoint_save(&options, job->shards, variables, 2, NULL, ret_error, NULL);
}
