/* Progress, the curve of scores, and the result of a job. */
#include "plugin_chief.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SHOW_MS = 200,      /* between two lines of progress on a terminal */
    SHOW_LOG_MS = 2000, /* and in a log */
    BAR_COLUMNS = 10
};

static double seconds(const struct job *job)
{
    const uint64_t end_ms = job->trained_ms != 0 ? job->trained_ms : now_ms();

    return (double)(end_ms - job->began_ms + 1) / 1000;
}

int reported_score(const struct job *job, struct ctr_score *ret_score,
                   uint64_t *ret_version)
{
    struct ctr_score score;
    uint64_t loss_version;
    int rv = mu_node_get_metric(job->node, "auc", &score.auc, ret_version);

    if (rv == 0)
        rv = mu_node_get_metric(job->node, "loss", &score.loss, &loss_version);
    if (rv == 0 && loss_version != *ret_version)
        rv = -MU_ENOTFOUND;
    if (rv == 0)
        *ret_score = score;
    return rv;
}

/* ---- Progress ---- */

static void print_progress(const struct job *job)
{
    const uint64_t all = job->ctr->source.train;
    const int filled = (int)(job->shards * BAR_COLUMNS / all);
    mu_coordinator_stats counts;
    struct ctr_score score;
    char scored[64] = "";
    uint64_t version;

    mu_coordinator_get_stats(job->coordinator, &counts);
    if (reported_score(job, &score, &version) == 0)
        (void)snprintf(scored, sizeof scored, ", AUC %.4f, loss %.4f", score.auc,
                       score.loss);
    (void)printf("[%.*s%.*s] %3d %%  %s/%s batches, %.0f/s, %s retried%s, %.0f s%c",
                 filled, "##########", BAR_COLUMNS - filled, "----------",
                 (int)(job->shards * 100 / all), group(job->shards).text, group(all).text,
                 (double)job->shards / seconds(job), group(counts.retried).text, scored,
                 seconds(job), job->terminal ? '\r' : '\n');
    (void)fflush(stdout);
}

/* One row for each model that was scored. */
static void write_curve(struct job *job)
{
    struct ctr_score score;
    uint64_t version;

    if (job->curve == NULL || reported_score(job, &score, &version) != 0 ||
        version == job->shown_version)
        return;
    job->shown_version = version;
    (void)fprintf(job->curve, "%.1f,%" PRIu64 ",%.6f,%.6f\n", seconds(job), job->shards,
                  score.auc, score.loss);
    (void)fflush(job->curve);
}

void show_progress(struct job *job, int last)
{
    const uint64_t now = now_ms();

    if (!last && now - job->shown_ms < (uint64_t)(job->terminal ? SHOW_MS : SHOW_LOG_MS))
        return;
    job->shown_ms = now;
    print_progress(job);
    write_curve(job);
}

/* ---- The result ---- */

static void print_counts(const struct job *job, const int64_t counts[COUNTS])
{
    mu_coordinator_stats closures;

    mu_coordinator_get_stats(job->coordinator, &closures);
    (void)printf("ctr: %s lines in %.1f s (%s/s); %s damaged\n",
                 group((uint64_t)counts[COUNT_LINES]).text, seconds(job),
                 group((uint64_t)((double)counts[COUNT_LINES] / seconds(job))).text,
                 group((uint64_t)counts[COUNT_DAMAGED]).text);
    (void)printf("ctr: %s ids looked up and pushed (%s/s)\n",
                 group((uint64_t)counts[COUNT_IDS]).text,
                 group((uint64_t)((double)counts[COUNT_IDS] / seconds(job))).text);
    (void)printf("ctr: closures: %s scheduled, %s finished, %s retried, %s failed\n",
                 group(closures.scheduled).text, group(closures.finished).text,
                 group(closures.retried).text, group(closures.failed).text);
}

int print_result(struct job *job, const struct ctr_score *score,
                 const int64_t counts[COUNTS], mu_error *ret_error)
{
    const double best = job->held.planted.auc;
    const double gap = job->ctr->settings.gap;

    print_counts(job, counts);
    (void)printf("ctr: AUC %.4f, loss %.4f on %s held-out lines\n", score->auc,
                 score->loss, group(job->held.lines.count).text);
    if (!job->held.is_planted)
        return 0;
    (void)printf("ctr: planted: AUC %.4f, loss %.4f: %swithin %.4f of the best AUC\n",
                 best, job->held.planted.loss, best - score->auc <= gap ? "" : "not ",
                 gap);
    if ((uint64_t)(counts[COUNT_LINES] + counts[COUNT_DAMAGED]) !=
        job->ctr->source.train * job->ctr->settings.batch)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "%" PRId64 " lines were trained on, expected %" PRIu64,
                            counts[COUNT_LINES] + counts[COUNT_DAMAGED],
                            job->ctr->source.train * job->ctr->settings.batch);
    if (best - score->auc <= gap)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "AUC is %.4f, and not within %.4f of %.4f", score->auc, gap,
                        best);
}
