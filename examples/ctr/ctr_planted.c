#include "ctr_planted.h"

#include "ctr_score.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLE = 2000,      /* lines that the bias is set by */
    FACTORS = 2,        /* of a content */
    FACTOR_FIELDS = 4,  /* one column of so many has factors */
    HEAD = 1,           /* contents that are frequent in each column */
    NEGATIVE_FIELD = 1, /* numbers of this column begin with -2 */
    EMPTY_COLUMNS = 3,  /* one column of so many is empty at times */
    EMPTY_PART = 8      /* one of so many contents, then */
};

static const double WEIGHT_SCALE = 0.5;
static const double FACTOR_SCALE = 0.8;
static const double MEAN_LOGIT = -1.3;

/* How many contents each column has: numbers, then categories, as in the Kaggle set. */
static const uint32_t contents[CTR_FIELDS] = {
    100,  30000, 5000,  100,     2000000, 50000,    5000,    500,   20000,   10,
    100,  10,    1000,  1460,    583,     10131227, 2202608, 305,   24,      12517,
    633,  3,     93145, 5683,    8351593, 3194,     27,      14992, 5461306, 10,
    5652, 2173,  4,     7046547, 18,      15,       286181,  105,   142572,
};

/* A random sequence: that of one line. */
struct sequence {
    uint64_t state;
};

static double draw(struct sequence *sequence)
{
    sequence->state = ctr_mix(sequence->state);
    return (double)(sequence->state >> 11) * 0x1p-53;
}

/* A normal number, nearly: the sum of four uniform ones. */
static double normal_of(uint64_t hash)
{
    double sum = 0;

    for (unsigned i = 0; i < 4; i++)
        sum += (double)(hash >> (16 * i) & 0xffff) * 0x1p-16;
    return (sum - 2) * 1.7320508075688772;
}

/* The planted number `which` of a content: its weight (0), or a factor. */
static double planted_number(const struct ctr_planted *planted, unsigned field,
                             uint32_t rank, unsigned which)
{
    const uint64_t hash =
        ctr_mix(ctr_mix(planted->seed + which) ^ ((uint64_t)field << 32 | rank));

    return normal_of(hash) / sqrt(1 + (double)rank / HEAD);
}

/* ---- The text ---- */

static char *write_number(char *at, int64_t number)
{
    char digits[CTR_DIGITS_MAX];
    size_t count = 0;

    if (number < 0) {
        *at++ = '-';
        number = -number;
    }
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

/* 32 bits that are those of no other rank of the column, as 8 digits. */
static char *write_category(char *at, unsigned field, uint32_t rank)
{
    uint32_t bits = rank + (uint32_t)ctr_mix(field);

    bits = (bits ^ (bits >> 16)) * UINT32_C(0x85ebca6b);
    bits = (bits ^ (bits >> 13)) * UINT32_C(0xc2b2ae35);
    bits ^= bits >> 16;
    for (int shift = 28; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[bits >> shift & 15];
    return at;
}

/* ---- The line ---- */

struct sums {
    double weights;
    double factors[FACTORS];
    double squares[FACTORS];
};

static void add_content(const struct ctr_planted *planted, unsigned field, uint32_t rank,
                        struct sums *sums)
{
    sums->weights += WEIGHT_SCALE * planted_number(planted, field, rank, 0);
    if (!planted->factors || field % FACTOR_FIELDS != 0)
        return;
    for (unsigned k = 0; k < FACTORS; k++) {
        const double v = FACTOR_SCALE * planted_number(planted, field, rank, k + 1);

        sums->factors[k] += v;
        sums->squares[k] += v * v;
    }
}

static double logit_of(const struct ctr_planted *planted, const struct sums *sums)
{
    double logit = planted->bias + sums->weights;

    for (unsigned k = 0; k < FACTORS; k++)
        logit += (sums->factors[k] * sums->factors[k] - sums->squares[k]) / 2;
    return logit;
}

/* Numbers within one bucket of the reader have one weight. */
static uint32_t number_rank(int64_t number)
{
    const double log_of = number > 2 ? log((double)number) : 0;

    return (uint32_t)(number > 2 ? (int64_t)(log_of * log_of) + 5 : number + 2);
}

static char *write_field(const struct ctr_planted *planted, unsigned field,
                         struct sequence *sequence, char *at, struct sums *sums)
{
    const uint32_t rank = (uint32_t)exp(draw(sequence) * planted->logs[field]) - 1;
    const int64_t number = (int64_t)rank - (field == NEGATIVE_FIELD ? 2 : 0);

    *at++ = '\t';
    if (field % EMPTY_COLUMNS == 2 && draw(sequence) * EMPTY_PART < 1)
        return at;
    if (field < CTR_NUMBERS) {
        add_content(planted, field, number_rank(number), sums);
        return write_number(at, number);
    }
    add_content(planted, field, rank, sums);
    return write_category(at, field, rank);
}

size_t ctr_planted_line(const struct ctr_planted *planted, uint64_t number,
                        char ret_text[CTR_LINE_MAX], double *ret_probability)
{
    struct sequence sequence = {ctr_mix(planted->seed) ^ ctr_mix(number << 1)};
    struct sums sums = {0};
    char *at = ret_text + 1;

    for (unsigned field = 0; field < CTR_FIELDS; field++)
        at = write_field(planted, field, &sequence, at, &sums);
    *at++ = '\n';
    *ret_probability = ctr_sigmoid(logit_of(planted, &sums));
    ret_text[0] = draw(&sequence) < *ret_probability ? '1' : '0';
    return (size_t)(at - ret_text);
}

static double mean_logit(const struct ctr_planted *planted)
{
    char text[CTR_LINE_MAX];
    double sum = 0;

    for (uint64_t i = 0; i < SAMPLE; i++) {
        double p;

        (void)ctr_planted_line(planted, UINT64_MAX / 2 - i, text, &p);
        sum += log(p / (1 - p));
    }
    return sum / SAMPLE;
}

void ctr_planted_init(uint64_t seed, int factors, struct ctr_planted *ret_planted)
{
    struct ctr_planted planted = {.seed = seed, .factors = factors};

    for (unsigned field = 0; field < CTR_FIELDS; field++)
        planted.logs[field] = log((double)contents[field] + 1);
    planted.bias = MEAN_LOGIT - mean_logit(&planted);
    *ret_planted = planted;
}
