/* Declarations shared by the files of the plugin: its settings, where lines come from,
 * and the model on the parameter servers. */
#ifndef PLUGIN_CTR_H
#define PLUGIN_CTR_H

#include "ctr_model.h"
#include "ctr_planted.h"
#include "ctr_score.h"

#include <muster.h>
#include <pthread.h>

/* ---- Settings (plugin_settings.c) ---- */

struct settings {
    uint64_t factors; /* of a factorization machine; 0: logistic regression */
    uint64_t lines;   /* to train on, if they are generated */
    uint64_t held;    /* held out for the evaluator, if they are generated */
    uint64_t planted; /* 1: generated with products */
    uint64_t batch;   /* lines of a closure */
    uint64_t parts;   /* closures of a step, if it is synchronous */
    uint64_t sync;    /* 1: synchronous steps */
    uint64_t sum;     /* 1: print a checksum of all rows */
    uint64_t seed;    /* of the lines, and of the first factors */
    uint64_t slow_ms; /* delay of each closure, to have something to watch */
    double rate;      /* of FTRL, for the weights */
    double l1;
    double l2;
    double factor_rate;       /* of Adagrad, for the factors */
    double gap;               /* distance of the planted AUC at which the program fails */
    const char *data;         /* a file of lines; NULL: they are generated */
    const char *checkpoint;   /* a folder for checkpoints; NULL: none */
    uint64_t checkpoint_each; /* batches between two */
    const char *curve; /* the chief writes a table of scores there; NULL: it does not */
};

/* Read `muster run --set key=value`, with defaults. Returns 0; -MU_EINVALID, with the
 * setting, its value and what was expected in *ret_error. */
int settings_read(const mu_node *node, mu_error *ret_error,
                  struct settings *ret_settings);

/* ---- Lines (plugin_source.c) ---- */

/* Lines in shards of one closure each: numbers 0 to train - 1 for training, `held` more
 * for the evaluator. */
struct source {
    uint64_t train;
    uint64_t held;
    const struct settings *settings;
    struct ctr_planted planted;
    int file; /* -1: generated */
    uint64_t file_bytes;
};

int source_open(const struct settings *settings, mu_error *ret_error,
                struct source *ret_source);

/* Read shards `first` to `first` + `count` - 1. `probabilities`, if it is not NULL and
 * lines are generated, gets the planted ones, count * batch at most. The caller frees
 * *ret_lines with ctr_lines_done(). Any thread. */
int source_read(const struct source *source, uint64_t first, uint64_t count,
                double *probabilities, mu_error *ret_error, struct ctr_lines *ret_lines);

/* ---- The model (plugin_model.c) ---- */

/* What all closures have done, in a variable: each counts once. */
enum { COUNT_LINES, COUNT_DAMAGED, COUNT_IDS, COUNTS };

/* The plugin's state of one node. Any thread may use it. */
struct ctr {
    struct ctr *next;
    struct settings settings; /* this and the source are constant */
    struct source source;
    pthread_mutex_t lock; /* guards the opening; then all four are constant */
    mu_table *weights;
    mu_table *factors; /* NULL: logistic regression */
    mu_variable *bias;
    mu_variable *counts;
};

/* Open the tables and variables unless they are open; the first caller in the cluster
 * creates them. All calls below do that, too. */
int model_open(struct ctr *ctr, mu_node *node, mu_error *ret_error);

/* Look up the rows of a batch. The caller frees them with model_rows_done(). */
int model_rows(struct ctr *ctr, mu_node *node, const struct ctr_batch *batch,
               mu_error *ret_error, struct ctr_rows *ret_rows);
void model_rows_done(struct ctr_rows *rows);

/* How many gradients were applied. Rows that are looked up afterwards have at least as
 * many. */
int model_version(struct ctr *ctr, mu_node *node, mu_error *ret_error,
                  uint64_t *ret_version);

int model_counts(struct ctr *ctr, mu_node *node, mu_error *ret_error,
                 int64_t ret_counts[COUNTS]);

/* What is pushed to one table: rows of different ids. It owns them. */
struct pushes {
    size_t count;
    uint64_t *ids;
    float *rows;
};

enum { TABLE_WEIGHTS, TABLE_FACTORS, TABLES };

struct gradient {
    struct pushes tables[TABLES];
    float bias;
    int64_t counts[COUNTS];
};

/* Numbers of a row. */
size_t table_dim(const struct ctr *ctr, int table);

/* Compute that of one shard. The caller frees it with gradient_done(). */
int gradient_compute(struct ctr *ctr, mu_node *node, uint64_t shard, mu_error *ret_error,
                     struct gradient *ret_gradient);
void gradient_done(struct gradient *gradient);

/* Write it as effects of a run, which count once. */
int gradient_write(struct ctr *ctr, mu_run *run, const struct gradient *gradient);

/* ---- Held-out lines (plugin_evaluator.c) ---- */

struct held {
    struct ctr_lines lines;
    struct ctr_batch batch;
    int is_planted;
    struct ctr_score planted; /* the best that can be reached */
};

int held_read(const struct ctr *ctr, mu_error *ret_error, struct held *ret_held);
void held_done(struct held *held);

/* The score of the present model, and a lower bound of its version. */
int held_score(struct ctr *ctr, mu_node *node, const struct held *held,
               mu_error *ret_error, struct ctr_score *ret_score, uint64_t *ret_version);

/* ---- Programs, functions and helpers ---- */

int evaluator_program(mu_node *node, void *user);
int chief_program(mu_node *node, void *user); /* plugin_chief.c */

/* Functions of workers (plugin_steps.c). */
int register_steps(mu_node *node, struct ctr *ctr);

/* Set an error of a negative errno. Returns its code. */
int ctr_failed(mu_error *ret_error, int rv, const char *what);

#endif
