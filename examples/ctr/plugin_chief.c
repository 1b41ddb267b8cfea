/* The chief's program: trains, waits for the last score, and prints it. */
#include "plugin_chief.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPEN_MS = 60000,  /* timeout of opening the coordinator */
    STALL_MS = 60000, /* timeout of a checksum */
    SCORE_MS = 60000, /* timeout for the evaluator's score of the last model */
    REST_MS = 10,
    UNDER_WAY_MAX = 64 /* checksums that are computed at one time */
};

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
    mu_remote_value *values[UNDER_WAY_MAX] = {NULL};
    const uint64_t all = job->ctr->source.train;
    uint64_t sum = 0;
    int rv = 0;

    for (uint64_t i = 0; rv == 0 && i < all + UNDER_WAY_MAX; i++) {
        mu_remote_value **value = &values[i % UNDER_WAY_MAX];

        if (*value != NULL)
            rv = fetch_sum(*value, ret_error, &sum);
        mu_remote_value_free(*value);
        *value = NULL;
        if (rv == 0 && i < all)
            rv = schedule_shard(job, "ctr_sum", i, ret_error, value);
    }
    for (size_t i = 0; i < UNDER_WAY_MAX; i++)
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
        int rv = reported_score(job, ret_score, &version);

        if (rv == 0 && version == wanted)
            return 0;
        if (rv != 0 && rv != -MU_ENOTFOUND)
            return mu_error_set(ret_error, rv, "the evaluator's score: %s",
                                mu_strerror(rv));
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
        rv = checkpoint_restore(job, ret_error);
    if (rv == 0)
        rv = model_open(job->ctr, job->node, ret_error);
    if (rv != 0)
        return rv;
    job->began_ms = now_ms();
    rv = train(job, ret_error);
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
    free(job.saved);
    if (job.curve != NULL)
        (void)fclose(job.curve);
    (void)fflush(stdout);
    return rv;
}
