/* The chief's program: deals out the shards, waits for the last score, and prints it. */
#include "plugin_chief.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPEN_MS = 60000,  /* timeout of opening the coordinator */
    STALL_MS = 60000, /* training is given up after this time without any result */
    SCORE_MS = 60000, /* timeout for the evaluator's score of the last model */
    REST_MS = 10,
    PARTS_MAX = 64 /* of settings.parts, and checksums under way */
};

static mu_value *shard_args(uint64_t shard)
{
    mu_value *args = mu_value_map();

    if (mu_value_set(args, "shard", mu_value_int((int64_t)shard)) == 0)
        return args;
    mu_value_free(args);
    return NULL;
}

static int schedule_shard(struct job *job, const char *function, uint64_t shard,
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

/* Returns -MU_ERANGE when all are trained. */
static int deal_shard(struct job *job, mu_dataset *dataset, mu_error *ret_error)
{
    mu_coordinator_stats counts;
    mu_closure_options options;
    int rv;

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    rv = mu_dataset_schedule(dataset, "ctr_step", NULL, &options, 0, ret_error);
    mu_coordinator_get_stats(job->coordinator, &counts);
    job->shards = counts.finished;
    return rv;
}

static int deal_shards(struct job *job, mu_dataset *dataset, mu_error *ret_error)
{
    uint64_t last = 0;
    uint64_t last_ms = now_ms();

    for (;;) {
        int rv = deal_shard(job, dataset, ret_error);

        if (rv == -MU_ERANGE)
            return 0;
        if (rv != 0 && rv != -MU_EAGAIN)
            return rv;
        if (job->shards != last)
            last_ms = now_ms();
        last = job->shards;
        if (now_ms() - last_ms >= STALL_MS)
            return mu_error_set(ret_error, -MU_EDEADLINE, "no batch has ended for %d s",
                                STALL_MS / 1000);
        show_progress(job, 0);
        if (rv != 0)
            nap(REST_MS);
    }
}

static int train_asynchronously(struct job *job, mu_error *ret_error)
{
    mu_dataset_options options;
    mu_dataset *dataset;
    int rv;

    mu_dataset_options_init(&options);
    options.shards = (unsigned)job->ctr->source.train;
    options.epochs = 1;
    rv = mu_dataset_open(job->coordinator, &options, ret_error, &dataset);
    if (rv != 0)
        return rv;
    rv = deal_shards(job, dataset, ret_error);
    mu_dataset_close(dataset);
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

static int train_step(struct job *job, mu_error *ret_error)
{
    mu_remote_value *parts[PARTS_MAX] = {NULL};
    const uint64_t left = job->ctr->source.train - job->shards;
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

static int train_synchronously(struct job *job, mu_error *ret_error)
{
    int rv = 0;

    while (rv == 0 && job->shards < job->ctr->source.train) {
        rv = train_step(job, ret_error);
        show_progress(job, 0);
    }
    return rv;
}

/* ---- The checksum ---- */

static int fetch_sum(mu_remote_value *value, mu_error *ret_error, uint64_t *sum)
{
    mu_value *result = NULL;
    int64_t number = 0;
    int rv = mu_remote_value_fetch(value, STALL_MS, ret_error, &result);

    if (rv == 0 && mu_value_get_int(result, &number) != 0)
        rv = mu_error_set(ret_error, -MU_EINTERNAL, "a checksum is not a number");
    mu_value_free(result);
    *sum += (uint64_t)number;
    return rv;
}

static int sum_shards(struct job *job, mu_error *ret_error, uint64_t *ret_sum)
{
    mu_remote_value *values[PARTS_MAX] = {NULL};
    const uint64_t all = job->ctr->source.train;
    uint64_t sum = 0;
    int rv = 0;

    for (uint64_t i = 0; rv == 0 && i < all + PARTS_MAX; i++) {
        mu_remote_value **value = &values[i % PARTS_MAX];

        if (*value != NULL)
            rv = fetch_sum(*value, ret_error, &sum);
        mu_remote_value_free(*value);
        *value = NULL;
        if (rv == 0 && i < all)
            rv = schedule_shard(job, "ctr_sum", i, ret_error, value);
    }
    for (size_t i = 0; i < PARTS_MAX; i++)
        mu_remote_value_free(values[i]);
    *ret_sum = sum;
    return rv;
}

static int print_sum(struct job *job, mu_error *ret_error)
{
    uint64_t sum;
    int rv;

    if (!job->ctr->settings.sum)
        return 0;
    rv = sum_shards(job, ret_error, &sum);
    if (rv == 0)
        (void)printf("ctr: checksum of the rows: %016" PRIx64 "\n", sum);
    return rv;
}

/* ---- The end ---- */

/* Wait for the evaluator's score of the present model. */
static int ask_evaluator(struct job *job, uint64_t wanted, mu_error *ret_error,
                         struct ctr_score *ret_score)
{
    const uint64_t until_ms = now_ms() + SCORE_MS;
    uint64_t version;

    while (now_ms() < until_ms) {
        if (reported_score(job, ret_score, &version) == 0 && version == wanted)
            return 0;
        nap(REST_MS);
    }
    return mu_error_set(ret_error, -MU_EDEADLINE,
                        "the evaluator has not reported on the last model within %d s",
                        SCORE_MS / 1000);
}

/* In a cluster without an evaluator the chief computes the score itself. */
static int last_score(struct job *job, mu_error *ret_error, struct ctr_score *ret_score)
{
    uint64_t version;
    int rv;

    if (mu_node_task_count(job->node, "evaluator") == 0)
        return held_score(job->ctr, job->node, &job->held, ret_error, ret_score,
                          &version);
    rv = model_version(job->ctr, job->node, ret_error, &version);
    return rv != 0 ? rv : ask_evaluator(job, version, ret_error, ret_score);
}

static int finish(struct job *job, mu_error *ret_error)
{
    int64_t counts[COUNTS];
    struct ctr_score score;
    int rv;

    job->trained_ms = now_ms();
    rv = last_score(job, ret_error, &score);
    show_progress(job, 1);
    if (rv == 0)
        rv = model_counts(job->ctr, job->node, ret_error, counts);
    if (rv == 0)
        rv = print_sum(job, ret_error);
    return rv != 0 ? rv : print_result(job, &score, counts, ret_error);
}

static int open_curve(struct job *job, mu_error *ret_error)
{
    if (job->ctr->settings.curve == NULL)
        return 0;
    job->curve = fopen(job->ctr->settings.curve, "w");
    if (job->curve == NULL)
        return ctr_failed(ret_error, -errno, job->ctr->settings.curve);
    (void)fprintf(job->curve, "seconds,batches,auc,loss\n");
    if (job->held.is_planted)
        (void)fprintf(job->curve, "0.0,0,%.6f,%.6f\n", job->held.planted.auc,
                      job->held.planted.loss);
    return 0;
}

static int run_job(struct job *job, mu_error *ret_error)
{
    int rv = mu_coordinator_open(job->node, OPEN_MS, ret_error, &job->coordinator);

    if (rv == 0)
        rv = held_read(job->ctr, ret_error, &job->held);
    if (rv == 0)
        rv = open_curve(job, ret_error);
    if (rv == 0)
        rv = model_open(job->ctr, job->node, ret_error);
    if (rv != 0)
        return rv;
    job->began_ms = now_ms();
    rv = job->ctr->settings.sync ? train_synchronously(job, ret_error)
                                 : train_asynchronously(job, ret_error);
    if (rv == 0)
        rv = mu_coordinator_join(job->coordinator, STALL_MS, ret_error);
    return rv != 0 ? rv : finish(job, ret_error);
}

/* `muster run` keeps a line that ends with a carriage return at the bottom. */
static int is_terminal(void)
{
    const char *progress = getenv("MUSTER_PROGRESS");

    return (progress != NULL && strcmp(progress, "1") == 0) || isatty(STDOUT_FILENO);
}

int chief_program(mu_node *node, void *user)
{
    struct job job = {.ctr = user, .node = node, .terminal = is_terminal()};
    mu_error error = {0};
    int rv = run_job(&job, &error);

    if (rv != 0 && error.message[0] != '\0')
        (void)mu_node_fail_with(node, &error);
    mu_coordinator_close(job.coordinator);
    held_done(&job.held);
    if (job.curve != NULL)
        (void)fclose(job.curve);
    (void)fflush(stdout);
    return rv;
}
