/* What the chief's program keeps, and how its job is shown (plugin_progress.c). */
#ifndef PLUGIN_CHIEF_H
#define PLUGIN_CHIEF_H

#include "plugin_ctr.h"

#include <stdio.h>

struct job {
    struct ctr *ctr;
    mu_node *node;
    mu_coordinator *coordinator;
    struct held held;
    FILE *curve;         /* NULL: none */
    uint64_t shards;     /* trained so far */
    uint64_t began_ms;   /* of the training */
    uint64_t trained_ms; /* when it ended; 0: it has not */
    uint64_t shown_ms;
    uint64_t shown_version; /* of the model whose score is in the curve */
    int terminal;           /* progress lines are overwritten */
};

uint64_t now_ms(void);

/* The last score that the evaluator has reported. Returns 0, or -MU_ENOTFOUND. */
int reported_score(const struct job *job, struct ctr_score *ret_score,
                   uint64_t *ret_version);

/* Show how far the job is, at most every so often; always with `last`. */
void show_progress(struct job *job, int last);

/* Print what became of the job, with the score of its last model. Returns 0, or the error
 * of a job that has failed by that. */
int print_result(struct job *job, const struct ctr_score *score,
                 const int64_t counts[COUNTS], mu_error *ret_error);

#endif
