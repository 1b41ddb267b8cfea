/* The evaluator: the score of the present model on lines that are not trained on. */
#include "plugin_ctr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVALUATE_EACH_MS = 1000 };

/* ---- Held-out lines ---- */

void held_done(struct held *held)
{
    ctr_lines_done(&held->lines);
    ctr_batch_done(&held->batch);
}

static int read_held(const struct ctr *ctr, double *probabilities, mu_error *ret_error,
                     struct held *held)
{
    const struct source *source = &ctr->source;
    int rv = source_read(source, source->train, source->held, probabilities, ret_error,
                         &held->lines);

    if (rv != 0)
        return rv;
    held->is_planted = probabilities != NULL;
    rv = ctr_batch_make(held->lines.ids, held->lines.count * CTR_FIELDS, &held->batch);
    if (rv == 0 && held->is_planted)
        rv = ctr_score_compute(held->lines.labels, probabilities, held->lines.count,
                               &held->planted);
    return rv == 0 ? 0 : ctr_failed(ret_error, rv, "held-out lines");
}

int held_read(const struct ctr *ctr, mu_error *ret_error, struct held *ret_held)
{
    const struct source *source = &ctr->source;
    struct held held = {0};
    double *probabilities = NULL;
    int rv;

    if (source->file < 0) {
        probabilities = malloc(source->held * ctr->settings.batch * sizeof(double));
        if (probabilities == NULL)
            return ctr_failed(ret_error, -ENOMEM, "held-out lines");
    }
    rv = read_held(ctr, probabilities, ret_error, &held);
    free(probabilities);
    if (rv == 0)
        *ret_held = held;
    else
        held_done(&held);
    return rv;
}

int held_score(struct ctr *ctr, mu_node *node, const struct held *held,
               mu_error *ret_error, struct ctr_score *ret_score, uint64_t *ret_version)
{
    const size_t count = held->lines.count;
    struct ctr_rows rows;
    double *probabilities;
    uint64_t version;
    int rv = model_version(ctr, node, ret_error, &version);

    if (rv == 0)
        rv = model_rows(ctr, node, &held->batch, ret_error, &rows);
    if (rv != 0)
        return rv;
    probabilities = malloc((count + 1) * sizeof *probabilities);
    if (probabilities != NULL)
        ctr_predict(&held->batch, &rows, probabilities);
    rv = probabilities == NULL
             ? -ENOMEM
             : ctr_score_compute(held->lines.labels, probabilities, count, ret_score);
    free(probabilities);
    model_rows_done(&rows);
    if (rv != 0)
        return ctr_failed(ret_error, rv, "a score");
    *ret_version = version;
    return 0;
}

/* ---- The program ---- */

static int evaluate(struct ctr *ctr, mu_node *node, const struct held *held,
                    uint64_t *version, mu_error *ret_error)
{
    struct ctr_score score;
    uint64_t present;
    int rv = model_version(ctr, node, ret_error, &present);

    if (rv != 0 || present == *version)
        return rv;
    rv = held_score(ctr, node, held, ret_error, &score, version);
    if (rv != 0)
        return rv;
    rv = mu_node_report_metric(node, "loss", score.loss, *version);
    if (rv == 0)
        rv = mu_node_report_metric(node, "auc", score.auc, *version);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "cannot report: %s", mu_strerror(rv));
}

/* When the model cannot be read, it tries again later: the chief decides whether to
 * continue without an evaluator. */
static int evaluate_until_end(struct ctr *ctr, mu_node *node, const struct held *held)
{
    uint64_t version = UINT64_MAX;
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
        rv = evaluate(ctr, node, held, &version, &error);
        if (rv != 0 && rv != code)
            (void)fprintf(stderr, "ctr: cannot evaluate: %s\n", error.message);
        code = rv;
    }
}

int evaluator_program(mu_node *node, void *user)
{
    struct held held;
    mu_error error;
    int rv = held_read(user, &error, &held);

    if (rv != 0)
        return mu_node_fail_with(node, &error);
    rv = evaluate_until_end(user, node, &held);
    held_done(&held);
    return rv;
}
