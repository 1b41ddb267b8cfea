/* Serves a trained model without a cluster: reads lines from standard input, and writes
 * the probability of a click for each to standard output; their score goes to standard
 * error.
 *
 *     ctr_serve FOLDER
 *
 * In the folder are the checkpoints of a job (setting checkpoint=FOLDER): the newest
 * whole one is read, and the increments after it. */
#include "ctr_model.h"
#include "ctr_saved.h"
#include "ctr_score.h"

#include <muster.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 64, PATH_MAX_BYTES = 1024, TEXT_MAX = 1 << 28 };

/* ---- The checkpoints ---- */

struct saved {
    char *paths[PARTS_MAX + 1]; /* the whole one, and increments in order */
    uint64_t steps[PARTS_MAX + 1];
    size_t count;
};

static void insert_part(struct saved *saved, const char *folder, const char *name,
                        uint64_t step)
{
    size_t at = saved->count;
    char *path;

    if (step <= saved->steps[0] || at > PARTS_MAX)
        return;
    path = malloc(PATH_MAX_BYTES);
    if (path == NULL)
        return;
    (void)snprintf(path, PATH_MAX_BYTES, "%s/%s", folder, name);
    for (; at > 1 && saved->steps[at - 1] > step; at--) {
        saved->paths[at] = saved->paths[at - 1];
        saved->steps[at] = saved->steps[at - 1];
    }
    saved->paths[at] = path;
    saved->steps[at] = step;
    saved->count++;
}

static int find_saved(const char *folder, mu_error *ret_error, struct saved *saved)
{
    static const char prefix[] = CTR_SAVED_PART "-";
    struct dirent *entry;
    DIR *directory;
    int rv = mu_checkpoint_latest(folder, CTR_SAVED_WHOLE, ret_error, &saved->paths[0],
                                  &saved->steps[0]);

    if (rv != 0)
        return rv;
    saved->count = 1;
    directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char *end;
        const char *number = entry->d_name + strlen(prefix);

        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && *number != '\0') {
            const unsigned long long step = strtoull(number, &end, 10);

            if (*end == '\0')
                insert_part(saved, folder, entry->d_name, step);
        }
    }
    if (directory != NULL)
        (void)closedir(directory);
    return 0;
}

static void free_saved(struct saved *saved)
{
    for (size_t i = 0; i < saved->count; i++)
        free(saved->paths[i]);
}

/* ---- The model ---- */

struct model {
    mu_table_reader *weights;
    mu_table_reader *factors; /* NULL: logistic regression */
    double bias;
};

static int read_bias(const char *path, mu_error *ret_error, double *ret_bias)
{
    mu_value *content;
    int rv = mu_checkpoint_read(path, ret_error, &content);

    if (rv != 0)
        return rv;
    rv = mu_value_get_float(mu_value_find(mu_value_find(content, "values"), "bias"),
                            ret_bias);
    mu_value_free(content);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "%.400s has no bias", path);
}

/* Increments of a run that was stopped do not follow the whole one: they are left out. */
static int open_model(struct saved *saved, mu_error *ret_error, struct model *model)
{
    const char *const *paths = (const char *const *)saved->paths;
    int rv;

    do
        rv = mu_table_reader_open(paths, saved->count, "weights", ret_error,
                                  &model->weights);
    while (rv == -MU_EPRECONDITION && saved->count > 1 &&
           (free(saved->paths[--saved->count]), 1));
    if (rv == 0)
        rv = mu_table_reader_open(paths, saved->count, "factors", ret_error,
                                  &model->factors);
    if (rv == -MU_ENOTFOUND && model->weights != NULL)
        rv = 0;
    return rv != 0 ? rv : read_bias(paths[saved->count - 1], ret_error, &model->bias);
}

static void close_model(struct model *model)
{
    mu_table_reader_close(model->weights);
    mu_table_reader_close(model->factors);
}

static int look_up(const struct model *model, const struct ctr_batch *batch,
                   float *weights, float *factors, mu_error *ret_error)
{
    int rv = mu_table_reader_lookup(model->weights, batch->ids, batch->count, weights,
                                    ret_error);

    if (rv == 0 && model->factors != NULL)
        rv = mu_table_reader_lookup(model->factors, batch->ids, batch->count, factors,
                                    ret_error);
    return rv;
}

static int predict(const struct model *model, const struct ctr_lines *lines,
                   mu_error *ret_error, double *ret_probabilities)
{
    const unsigned dim = model->factors == NULL ? 0 : mu_table_reader_dim(model->factors);
    struct ctr_batch batch = {0};
    float *weights = malloc((lines->count * CTR_FIELDS + 1) * sizeof *weights);
    float *factors = malloc((lines->count * CTR_FIELDS * dim + 1) * sizeof *factors);
    int rv = -ENOMEM;

    if (weights != NULL && factors != NULL)
        rv = ctr_batch_make(lines->ids, lines->count * CTR_FIELDS, &batch);
    if (rv != 0)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for the rows");
    else
        rv = look_up(model, &batch, weights, factors, ret_error);
    if (rv == 0)
        ctr_predict(&batch, &(struct ctr_rows){dim, (float)model->bias, weights, factors},
                    ret_probabilities);
    ctr_batch_done(&batch);
    free(weights);
    free(factors);
    return rv;
}

/* ---- The program ---- */

static int serve(const struct model *model, const struct ctr_lines *lines,
                 mu_error *ret_error)
{
    double *probabilities = malloc((lines->count + 1) * sizeof *probabilities);
    struct ctr_score score;
    int rv = probabilities == NULL
                 ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for the lines")
                 : predict(model, lines, ret_error, probabilities);

    for (size_t i = 0; rv == 0 && i < lines->count; i++)
        (void)printf("%.6f\n", probabilities[i]);
    if (rv == 0 &&
        ctr_score_compute(lines->labels, probabilities, lines->count, &score) == 0)
        (void)fprintf(stderr,
                      "ctr_serve: batch %llu, %llu rows: AUC %.4f, loss %.4f on %zu "
                      "lines\n",
                      (unsigned long long)mu_table_reader_step(model->weights),
                      (unsigned long long)mu_table_reader_rows(model->weights), score.auc,
                      score.loss, lines->count);
    free(probabilities);
    return rv;
}

static int read_input(mu_error *ret_error, struct ctr_lines *ret_lines)
{
    char *text = malloc(TEXT_MAX);
    size_t bytes;
    int rv;

    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the lines");
    bytes = fread(text, 1, TEXT_MAX, stdin);
    rv = ctr_lines_read(text, bytes, 1, ret_lines);
    free(text);
    return rv == 0 ? 0 : mu_error_set(ret_error, -MU_ENOMEM, "no memory for the lines");
}

static int serve_folder(const char *folder, mu_error *ret_error)
{
    struct ctr_lines lines = {0};
    struct saved saved = {0};
    struct model model = {0};
    int rv = find_saved(folder, ret_error, &saved);

    if (rv == 0)
        rv = open_model(&saved, ret_error, &model);
    if (rv == 0)
        rv = read_input(ret_error, &lines);
    if (rv == 0)
        rv = serve(&model, &lines, ret_error);
    ctr_lines_done(&lines);
    close_model(&model);
    free_saved(&saved);
    return rv;
}

int main(int count, char **arguments)
{
    mu_error error = {0};

    if (count != 2) {
        (void)fprintf(stderr, "usage: ctr_serve FOLDER <LINES\n");
        return 2;
    }
    if (serve_folder(arguments[1], &error) == 0)
        return 0;
    (void)fprintf(stderr, "ctr_serve: %s\n", error.message);
    return 1;
}
