#include "tests/support/seeds.h"

#include "sim/world/sim.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t first;
static uint64_t end;

/* A loop inside of one event, which the simulator cannot see, ends the program; and when
 * an assertion does, it is said which seed it was. */
static char words[128];

static void tell_seed(int number)
{
    static const char endless[] = "an event does not end: ";

    if (number == SIGALRM)
        (void)!write(STDERR_FILENO, endless, sizeof endless - 1);
    (void)!write(STDERR_FILENO, words, strlen(words));
    _exit(1);
}

bool seeds_arguments(const struct seeds *seeds, int argc, char **argv)
{
    sim_seeds(seeds->count, &first, &end);
    if (argc == 3) {
        first = strtoull(argv[1], NULL, 10);
        end = first + strtoull(argv[2], NULL, 10);
    } else if (argc != 1) {
        fprintf(stderr, "usage: %s [FIRST COUNT]\n", argv[0]);
        return false;
    }
    return true;
}

uint64_t seeds_count(void)
{
    return end - first;
}

static struct seeds_verdict run_one(const struct seeds *seeds, uint64_t seed, bool show,
                                    void *sum)
{
    struct seeds_verdict verdict = {0};

    (void)snprintf(words, sizeof words, "seed %" PRIu64 " dies\nreplay: %s %" PRIu64 "\n",
                   seed, seeds->replay, seed);
    (void)alarm(seeds->seconds_max);
    seeds->run(seed, show, sum, &verdict);
    (void)alarm(0);
    if (verdict.broken[0] != '\0')
        fail_msg("seed %" PRIu64 ": %s\nreplay: %s %" PRIu64, seed, verdict.broken,
                 seeds->replay, seed);
    return verdict;
}

static void watch(void)
{
    (void)signal(SIGALRM, tell_seed);
    (void)signal(SIGABRT, tell_seed);
    (void)signal(SIGSEGV, tell_seed);
}

void seeds_expect_well(const struct seeds *seeds, void *sum)
{
    uint64_t before = 0;

    watch();
    for (uint64_t seed = first; seed < end; seed++) {
        struct seeds_verdict verdict = run_one(seeds, seed, seeds_count() == 1, sum);

        if (seed % seeds->repeat_every == 0 &&
            run_one(seeds, seed, false, NULL).digest != verdict.digest)
            fail_msg("seed %" PRIu64 " does not repeat", seed);
        if (verdict.digest == before)
            fail_msg("seed %" PRIu64 " is as the one before it", seed);
        before = verdict.digest;
    }
}

void seeds_expect_reached(const struct seeds *seeds, const char *const *places,
                          size_t count)
{
    uint64_t *reached = calloc(count, sizeof *reached);

    assert_non_null(reached);
    seeds_expect_well(seeds, reached);
    for (size_t i = 0; i < count; i++) {
        print_message("%12" PRIu64 " %s\n", reached[i], places[i]);
        if (seeds_count() >= seeds->count)
            assert_true(reached[i] > 0);
    }
    free(reached);
}

void seeds_expect_well_again(const struct seeds *seeds, const uint64_t *list,
                             size_t count)
{
    watch();
    for (size_t i = 0; i < count; i++)
        (void)run_one(seeds, list[i], false, NULL);
}
