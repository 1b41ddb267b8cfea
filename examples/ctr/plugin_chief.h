/* The parts of the chief's program. */
#ifndef PLUGIN_CHIEF_H
#define PLUGIN_CHIEF_H

#include "plugin_ctr.h"

#include "../progress.h"

#include <stdio.h>

struct job {
    struct ctr *ctr;
    mu_node *node;
    mu_coordinator *coordinator;
    struct held held;
    char *saved;         /* path of the last checkpoint; NULL: none */
    unsigned saves;      /* checkpoints of this run */
    FILE *curve;         /* NULL: none */
    uint64_t shards;     /* trained so far */
    uint64_t began_ms;   /* of the training */
    uint64_t trained_ms; /* when it ended; 0: it has not */
    uint64_t shown_ms;
    uint64_t shown_version; /* of the model whose score is in the curve */
    int terminal;           /* progress lines are overwritten */
};

/* Train on all shards that are left (plugin_train.c). */
int train(struct job *job, mu_error *ret_error);

/* Schedule a function for one shard. */
int schedule_shard(struct job *job, const char *function, uint64_t shard,
                   mu_error *ret_error, mu_remote_value **ret_value);

/* Go on from the newest checkpoint, if there is one; save one, between two closures
 * (plugin_checkpoints.c). Without the setting they do nothing. */
int checkpoint_restore(struct job *job, mu_error *ret_error);
int checkpoint_save(struct job *job, mu_error *ret_error);

/* ---- How the job is shown (plugin_progress.c) ---- */

/* The last score that the evaluator has reported. Returns 0; -MU_ENOTFOUND: there is
 * none; -MU_ECLOSED. */
int reported_score(const struct job *job, struct ctr_score *ret_score,
                   uint64_t *ret_version);

/* Show how far the job is, at most every so often; always with `last`. */
void show_progress(struct job *job, int last);

/* Print what became of the job, with the score of its last model. Returns 0, or the error
 * of a job that has failed by that. */
int print_result(struct job *job, const struct ctr_score *score,
                 const int64_t counts[COUNTS], mu_error *ret_error);

#endif
