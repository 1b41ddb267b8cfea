/* What the tests of the digits example share: its data, and how its training is set.
 *
 * The data is MUSTER_DIGITS_DATA, else the one below MUSTER_SOURCE, which ctest sets,
 * else it is found as the example finds it. */
#ifndef MU_TESTS_DIGITS_FIXTURE_H
#define MU_TESTS_DIGITS_FIXTURE_H

#include "tests/support/test.h"

#include "examples/digits/digits_data.h"
#include "examples/digits/digits_model.h"

/* The example's training, and what it must reach. */
enum {
    SPLIT_SEED = 1,
    HIDDEN = DIGITS_HIDDEN_DEFAULT,
    BATCH = 32,
    STEPS = 3000,
    STALE_MAX = 24, /* three workers, a window of eight closures each */
    SEEDS_USUAL = 3
};

static struct digits_data *data;

static inline int load_data(void **state)
{
    struct digits_error error;
    const char *named = getenv("MUSTER_DIGITS_DATA");
    const char *source = getenv("MUSTER_SOURCE");
    char below[DIGITS_PATH_BYTES] = "";
    char path[DIGITS_PATH_BYTES];

    (void)state;
    if (named == NULL && source != NULL)
        (void)snprintf(below, sizeof below, "%s/examples/digits/data/digits.csv", source);
    if (digits_data_find(below, &error, path) != 0 ||
        digits_data_load(path, &error, &data) != 0) {
        print_error("%s\n", error.text);
        return -1;
    }
    return 0;
}

static inline int free_data(void **state)
{
    (void)state;
    digits_data_free(data);
    return 0;
}

#endif
