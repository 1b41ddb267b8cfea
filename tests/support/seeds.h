/* The loop that every test of seeds has: from the first seed to the last one, each in a
 * run of its own. One that goes wrong, that dies, or whose run does not end is named with
 * how to replay it; now and then one is run twice, and must be the same.
 *
 * Seeds are those of the command line (FIRST COUNT), or as sim_seeds() says: those that
 * MUSTER_SIM_SEED or MUSTER_SIM_SEEDS ask for, or as many as the test has. Of a single
 * one the trace is printed. */
#ifndef MU_TESTS_SEEDS_H
#define MU_TESTS_SEEDS_H

#include "tests/support/test.h"

#include <stdbool.h>

/* What one run came to. */
struct seeds_verdict {
    uint64_t digest;  /* of all that happened */
    char broken[256]; /* "" or what went wrong first */
};

struct seeds {
    const char *replay;    /* a command, to which the seed is added */
    uint64_t count;        /* of seeds, by default */
    uint64_t repeat_every; /* seeds whose number divides by it are run twice */
    unsigned seconds_max;  /* of a run, by the wall clock; no run takes a tenth */

    /* Prints its trace if it is to be shown. Adds what else it came to up in `sum`, which
     * is NULL when it is run again. */
    void (*run)(uint64_t seed, bool show, void *sum, struct seeds_verdict *ret_verdict);
};

/* Reads the command line; false: it was wrong, and was answered with what is expected. */
bool seeds_arguments(const struct seeds *seeds, int argc, char **argv);

/* The end of a program whose tests run seeds: struct seeds `seeds`. */
#define SEEDS_PROGRAM(seeds)                                                      \
    int main(int argc, char **argv)                                               \
    {                                                                             \
        return seeds_arguments(&(seeds), argc, argv) ? tests_run(NULL, NULL) : 2; \
    }

/* Within a test. */
void seeds_expect_well(const struct seeds *seeds, void *sum);

/* `sum` of a run is an array of `count` numbers: how often each of `places` was
 * reached. They are printed, and in a whole run of the test each was reached. */
void seeds_expect_reached(const struct seeds *seeds, const char *const *places,
                          size_t count);

/* Those that once failed. */
void seeds_expect_well_again(const struct seeds *seeds, const uint64_t *list,
                             size_t count);

/* How many there are in this run of the program; fewer than seeds->count prove nothing
 * about rare places. */
uint64_t seeds_count(void);

#endif
