/* The handwritten digits: 1797 images of 8 x 8 pixels in 17 grey levels, and what each
 * of them shows. Knows nothing of muster.
 *
 * Everything here is a pure function of its arguments, except digits_data_load() and
 * digits_data_find(), which look at the file system and the environment. There is no
 * global state: any thread may call anything, and may share data that is not changed. */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#include <stddef.h>
#include <stdint.h>

enum {
    DIGITS_ROWS = 1797,     /* images in the file, one a line */
    DIGITS_PIXELS = 64,     /* columns before the label */
    DIGITS_CLASSES = 10,    /* labels are 0 to 9 */
    DIGITS_GREY_MAX = 16,   /* pixels in the file are 0 to 16 */
    DIGITS_HELD_ROWS = 360, /* a fifth of the rows, rounded up, is never trained on */
    DIGITS_TRAIN_ROWS = DIGITS_ROWS - DIGITS_HELD_ROWS,
    DIGITS_PATH_BYTES = 1024, /* of a path that is found, with its final zero */
    DIGITS_FILE_BYTES_MAX = 1 << 20
};

struct digits_data {
    float pixels[DIGITS_ROWS][DIGITS_PIXELS]; /* 0 to 1: grey level / DIGITS_GREY_MAX */
    uint8_t labels[DIGITS_ROWS];
};

/* One sentence for a person: which file, which line and column, what was expected. */
struct digits_error {
    char text[1536];
};

/* Row numbers of the data, not owned. */
struct digits_rows {
    const uint32_t *index;
    size_t count;
};

/* The rows, each in one of the two parts, both in shuffled order. */
struct digits_split {
    uint32_t held[DIGITS_HELD_ROWS];
    uint32_t train[DIGITS_TRAIN_ROWS];
};

/* Parse the text of the file. `source` names it in errors.
 *
 * Returns: 0; -EINVAL when the text is not DIGITS_ROWS lines of 65 integers in range;
 *          -ENOMEM. *ret_error is written on failure only, *ret_data on success only.
 * Owns:    the caller frees *ret_data with digits_data_free(). */
int digits_data_parse(const char *text, size_t size, const char *source,
                      struct digits_error *ret_error, struct digits_data **ret_data);

/* Read the file and parse it. Returns also -errno of opening and reading, and -EFBIG for
 * a file of more than DIGITS_FILE_BYTES_MAX. */
int digits_data_load(const char *path, struct digits_error *ret_error,
                     struct digits_data **ret_data);

void digits_data_free(struct digits_data *data);

/* Where the file is: `given` when it is neither NULL nor empty, else the environment's
 * MUSTER_DIGITS_DATA, else the first that can be read of digits.csv and data/digits.csv
 * beside the binary that this code is linked into (a plugin, say), else
 * examples/digits/data/digits.csv below the working directory. The first two are not
 * checked here: loading them says what is wrong.
 *
 * Returns: 0; -ENOENT when there is none; -ENAMETOOLONG. */
int digits_data_find(const char *given, struct digits_error *ret_error,
                     char ret_path[DIGITS_PATH_BYTES]);

/* The split that belongs to a seed: the same on every machine. */
void digits_split_make(uint64_t seed, struct digits_split *ret_split);

/* The rows of mini-batch number `step` (from 0). The training part is shuffled anew in
 * each epoch of DIGITS_TRAIN_ROWS / count steps, and no row comes twice in an epoch. A
 * function of its arguments alone: a step that is run again, anywhere, sees the same
 * rows. Writes `count` row numbers. Returns 0; -ERANGE unless 1 <= count <=
 * DIGITS_TRAIN_ROWS. */
int digits_batch(const struct digits_split *split, uint64_t seed, uint64_t step,
                 size_t count, uint32_t *ret_rows);

/* A small seeded generator (splitmix64): same seed, same sequence, on every machine. */
struct digits_random {
    uint64_t state;
};

uint64_t digits_random_next(struct digits_random *random);

/* Uniform over 0 to bound - 1, without bias. `bound` is at least 1. */
uint64_t digits_random_below(struct digits_random *random, uint64_t bound);

/* Uniform over -1 to 1, one of 2^24 values. */
float digits_random_sign(struct digits_random *random);

#endif
