/* Writes lines of a planted model, in Criteo's format, to standard output; to standard
 * error the scores of the planted probabilities on the last tenth of them.
 *
 *     ctr_lines COUNT [SEED [PRODUCTS]]
 *
 * With PRODUCTS 1 the model has products of factors, too. */
#include "ctr_planted.h"
#include "ctr_score.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT_MAX = 1000000000, HELD_PART = 10 };

struct request {
    uint64_t count;
    uint64_t seed;
    uint64_t products;
};

static bool parse_argument(const char *text, uint64_t low, uint64_t high,
                           uint64_t *ret_number)
{
    char *end;
    unsigned long long number;

    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < low ||
        number > high)
        return false;
    *ret_number = number;
    return true;
}

/* The labels and probabilities of the last tenth of the lines. */
struct tail {
    uint8_t *labels;
    double *probabilities;
    size_t count;
};

static bool write_lines(const struct request *request, struct tail *tail)
{
    struct ctr_planted planted;
    char text[CTR_LINE_MAX];

    ctr_planted_init(request->seed, request->products != 0, &planted);
    for (uint64_t i = 0; i < request->count; i++) {
        double probability;
        const size_t bytes = ctr_planted_line(&planted, i, text, &probability);

        if (fwrite(text, 1, bytes, stdout) != bytes)
            return false;
        if (i < request->count - request->count / HELD_PART)
            continue;
        tail->labels[tail->count] = text[0] == '1';
        tail->probabilities[tail->count++] = probability;
    }
    return fflush(stdout) == 0;
}

static int write_and_score(const struct request *request, struct tail *tail)
{
    struct ctr_score score;

    if (!write_lines(request, tail)) {
        perror("ctr_lines");
        return 1;
    }
    if (ctr_score_compute(tail->labels, tail->probabilities, tail->count, &score) == 0)
        (void)fprintf(stderr, "ctr_lines: planted: AUC %.4f, loss %.4f\n", score.auc,
                      score.loss);
    return 0;
}

int main(int count, char **arguments)
{
    struct request request = {.seed = 1};
    struct tail tail = {0};
    int code = 1;

    if (count < 2 || count > 4 ||
        !parse_argument(arguments[1], 1, COUNT_MAX, &request.count) ||
        (count > 2 && !parse_argument(arguments[2], 0, UINT32_MAX, &request.seed)) ||
        (count > 3 && !parse_argument(arguments[3], 0, 1, &request.products))) {
        (void)fprintf(stderr, "usage: ctr_lines COUNT [SEED [PRODUCTS]]\n");
        return 2;
    }
    tail.labels = malloc(request.count / HELD_PART + 1);
    tail.probabilities = malloc((request.count / HELD_PART + 1) * sizeof(double));
    if (tail.labels != NULL && tail.probabilities != NULL)
        code = write_and_score(&request, &tail);
    free(tail.labels);
    free(tail.probabilities);
    return code;
}
