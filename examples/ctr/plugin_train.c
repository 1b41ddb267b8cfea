/* Training: deals out the shards, in asynchronous closures or in synchronous steps. */
#include "plugin_chief.h"

#include <errno.h>

enum {
    STALL_MS = 60000, /* training is given up after this time without any result */
    REST_MS = 10,
    PARTS_MAX = 64 /* of settings.parts */
};

static mu_value *shard_args(uint64_t shard)
{
    mu_value *args = mu_value_map();

    if (mu_value_set(args, "shard", mu_value_int((int64_t)shard)) == 0)
        return args;
    mu_value_free(args);
    return NULL;
}

int schedule_shard(struct job *job, const char *function, uint64_t shard,
                   mu_error *ret_error, mu_remote_value **ret_value)
{
    mu_value *args = shard_args(shard);
    int rv;

    if (args == NULL)
        return ctr_failed(ret_error, -ENOMEM, "arguments");
    rv = mu_coordinator_schedule(job->coordinator, function, args, STALL_MS, ret_error,
                                 ret_value);
    mu_value_free(args);
    return rv;
}

/* ---- Asynchronous: each shard is a closure that writes ---- */

/* What closures of a round have done. */
static uint64_t finished(const struct job *job)
{
    mu_coordinator_stats counts;

    mu_coordinator_get_stats(job->coordinator, &counts);
    return counts.finished;
}

static int deal_shards(struct job *job, mu_dataset *dataset, const mu_value *first,
                       mu_error *ret_error)
{
    const uint64_t before = job->shards - finished(job);
    uint64_t last_ms = now_ms();
    mu_closure_options options;
    int rv = 0;

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    while (rv == 0 || rv == -MU_EAGAIN) {
        const uint64_t last = job->shards;

        rv = mu_dataset_schedule(dataset, "ctr_step", first, &options, 0, ret_error);
        job->shards = before + finished(job);
        if (job->shards != last)
            last_ms = now_ms();
        if (now_ms() - last_ms >= STALL_MS)
            return mu_error_set(ret_error, -MU_EDEADLINE, "no batch has ended for %d s",
                                STALL_MS / 1000);
        show_progress(job, 0);
        if (rv == -MU_EAGAIN)
            nap(REST_MS);
    }
    return rv == -MU_ERANGE ? 0 : rv;
}

/* Shards from the next one on, each of which is trained when this returns 0. */
static int train_asynchronously(struct job *job, uint64_t count, mu_error *ret_error)
{
    mu_value *first = mu_value_int((int64_t)job->shards);
    mu_dataset_options options;
    mu_dataset *dataset;
    int rv;

    mu_dataset_options_init(&options);
    options.shards = (unsigned)count;
    options.epochs = 1;
    rv = mu_dataset_open(job->coordinator, &options, ret_error, &dataset);
    if (rv == 0) {
        rv = deal_shards(job, dataset, first, ret_error);
        mu_dataset_close(dataset);
    }
    mu_value_free(first);
    return rv;
}

/* ---- Synchronous: closures of a step return gradients, one writes their sum ---- */

static int apply_parts(struct job *job, mu_remote_value *const *parts, size_t count,
                       mu_error *ret_error)
{
    mu_value *args = mu_value_list();
    mu_remote_value *applied = NULL;
    mu_closure_options options;
    int rv = 0;

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = mu_value_append(args, mu_value_remote(parts[i]));
    if (rv != 0)
        rv = ctr_failed(ret_error, -ENOMEM, "arguments");
    if (rv == 0)
        rv = mu_coordinator_schedule_with(job->coordinator, "ctr_apply", args, &options,
                                          STALL_MS, ret_error, &applied);
    if (rv == 0)
        rv = mu_remote_value_fetch(applied, STALL_MS, ret_error, NULL);
    mu_remote_value_free(applied);
    mu_value_free(args);
    return rv;
}

static int train_step(struct job *job, uint64_t left, mu_error *ret_error)
{
    mu_remote_value *parts[PARTS_MAX] = {NULL};
    size_t count = 0;
    int rv = 0;

    while (rv == 0 && count < job->ctr->settings.parts && count < left) {
        rv = schedule_shard(job, "ctr_gradient", job->shards + count, ret_error,
                            &parts[count]);
        count++;
    }
    if (rv == 0)
        rv = apply_parts(job, parts, count, ret_error);
    for (size_t i = 0; i < count; i++)
        mu_remote_value_free(parts[i]);
    if (rv == 0)
        job->shards += count;
    return rv;
}

static int train_synchronously(struct job *job, uint64_t count, mu_error *ret_error)
{
    const uint64_t end = job->shards + count;
    int rv = 0;

    while (rv == 0 && job->shards < end) {
        rv = train_step(job, end - job->shards, ret_error);
        show_progress(job, 0);
    }
    return rv;
}

/* ---- Rounds, with a checkpoint after each ---- */

static uint64_t shards_of_round(const struct job *job)
{
    const uint64_t left = job->ctr->source.train - job->shards;
    const uint64_t each = job->ctr->settings.checkpoint_each;

    return job->ctr->settings.checkpoint == NULL || left < each ? left : each;
}

int train(struct job *job, mu_error *ret_error)
{
    int rv = 0;

    while (rv == 0 && job->shards < job->ctr->source.train) {
        const uint64_t count = shards_of_round(job);

        rv = job->ctr->settings.sync ? train_synchronously(job, count, ret_error)
                                     : train_asynchronously(job, count, ret_error);
        if (rv == 0)
            rv = checkpoint_save(job, ret_error);
    }
    return rv;
}
